/* SPDX-License-Identifier: MIT
 *
 * Pruning of parameters: the tests of PyTorch's test_pruning.py, with their names, except those
 * that only make sense in Python. test_prune_chains has those of several methods,
 * test_prune_methods that of the failures, and test_prune_pytorch the numbers of PyTorch. */
#include <math.h>

#include "tests/module/prune.h"

/* ---- amounts --------------------------------------------------------------------------------- */

/* The number of entries that an amount of a vector of `size` masks; -1 if it is refused. */
static int64_t masked_by(const char *amount, int64_t size)
{
    char text[96];
    uint64_t scope = tn_scope_begin();
    tn_module *m = holder(tn_tensor_full(TN_SHAPE(size), 2.0, TN_F32, NULL));
    int64_t count = -1;

    tn_snprint(text, sizeof text, "L1Unstructured(amount=%s)", amount);
    if (tn_prune(m, "weight", text) == TN_OK)
        count = zeros_of(tn_module_get(m, "weight_mask"));
    tn_module_drop(m);
    tn_scope_end(scope);
    return count;
}

START_TEST(test_validate_pruning_amount_init)
{
    ck_assert_int_eq(masked_by("'I\\'m a string'", 5), -1);
    expect_failure(TN_ERR_TYPE, "amount");
    ck_assert_int_eq(masked_by("1.1", 5), -1);
    expect_failure(TN_ERR_VALUE, "amount: out of range, got 1.1; expected a fraction");
    ck_assert_int_eq(masked_by("20.0", 50), -1);
    expect_failure(TN_ERR_VALUE, "got 20");
    ck_assert_int_eq(masked_by("-10", 50), -1);
    expect_failure(TN_ERR_VALUE, "got -10");
    ck_assert_int_eq(masked_by("-0.1", 50), -1);
    expect_failure(TN_ERR_VALUE, "got -0.1");
    ck_assert_int_eq(masked_by("nan", 50), -1);
    expect_failure(TN_ERR_VALUE, "amount");
    ck_assert_int_eq(masked_by("inf", 50), -1);
    expect_failure(TN_ERR_VALUE, "amount");
    ck_assert_int_eq(masked_by("True", 50), -1);
    expect_failure(TN_ERR_TYPE, "amount");
    ck_assert_int_eq(masked_by("1j", 50), -1);
    expect_failure(TN_ERR_TYPE, "amount");
    ck_assert_int_eq(masked_by("None", 50), -1);
    tn_error_clear();
    ck_assert_int_eq(masked_by("18446744073709551615", 50), -1);
    tn_error_clear();
    ck_assert_int_eq(masked_by("9223372036854775807", 50), -1);
    expect_failure(TN_ERR_VALUE, "amount");
    ck_assert_int_eq(masked_by("0.34", 50), 17);
    ck_assert_int_eq(masked_by("20", 50), 20);
}
END_TEST

START_TEST(test_validate_pruning_amount)
{
    ck_assert_int_eq(masked_by("20", 19), -1);
    expect_failure(TN_ERR_VALUE, "larger than the number of units to prune, got 20; expected at "
                                 "most 19");
    ck_assert_int_eq(masked_by("0.3", 2), 1);
    ck_assert_int_eq(masked_by("20", 20), 20);
}
END_TEST

START_TEST(test_compute_nparams_to_prune)
{
    ck_assert_int_eq(masked_by("0", 15), 0);
    ck_assert_int_eq(masked_by("10", 15), 10);
    ck_assert_int_eq(masked_by("1", 15), 1);
    ck_assert_int_eq(masked_by("1.0", 15), 15);
    ck_assert_int_eq(masked_by("0.4", 17), 7);
    ck_assert_int_eq(masked_by("0.5", 5), 2); /* 2.5 is rounded to even */
    ck_assert_int_eq(masked_by("0.5", 7), 4);
    TN_PROVES("PRN-004", "PRN-005");
}
END_TEST

/* ---- random pruning -------------------------------------------------------------------------- */

static const char *const layers[] = { "Linear(5, 7)", "Conv3d(2, 2, 2)", "LSTM(3, 4)" };
static const char *const names[] = { "weight", "weight", "weight_ih_l0" };

START_TEST(test_random_pruning_sizes)
{
    for (int i = 0; i < 3; i++)
        for (int bias = 0; bias < 2; bias++) {
            TN_SCOPE;
            tn_module *m = parsed(layers[i]);
            const char *name = !bias ? names[i] : i == 2 ? "bias_ih_l0" : "bias";
            tn_tensor *original = tn_module_get(m, name), *mask;
            char slot[64];

            ok(tn_prune(m, name, "RandomUnstructured(amount=0.1)"));
            tn_snprint(slot, sizeof slot, "%s_orig", name);
            ck_assert_ptr_eq(tn_module_get(m, slot), original);
            ck_assert_int_eq(tn_module_slot_kind(m, slot), TN_SLOT_PARAMETER);
            tn_snprint(slot, sizeof slot, "%s_mask", name);
            mask = tn_module_get(m, slot);
            ck_assert_int_eq(tn_module_slot_kind(m, slot), TN_SLOT_BUFFER);
            ck_assert_int_eq(tn_tensor_dtype(mask), tn_tensor_dtype(original));
            ck_assert_int_eq(tn_tensor_ndim(mask), tn_tensor_ndim(original));
            for (int d = 0; d < tn_tensor_ndim(mask); d++)
                ck_assert_int_eq(tn_tensor_size(mask, d), tn_tensor_size(original, d));
            ck_assert_int_eq(tn_module_slot_kind(m, name), TN_SLOT_COMPUTED);
            tn_module_drop(m);
        }
}
END_TEST

/* test_random_pruning_orig, test_random_pruning_new_weight */
START_TEST(test_random_pruning_orig_and_new_weight)
{
    TN_SCOPE;
    double values[35], mask[35];
    tn_module *m = parsed("Linear(5, 7)");

    values_of(tn_module_get(m, "weight"), values, 35);
    ok(tn_prune(m, "weight", "RandomUnstructured(amount=0.1)"));
    expect_values(tn_module_get(m, "weight_orig"), 35, values);
    expect_names(m, "bias weight_orig weight_mask ");
    values_of(tn_module_get(m, "weight_mask"), mask, 35);
    for (int i = 0; i < 35; i++)
        values[i] *= mask[i];
    expect_values(tn_module_get(m, "weight"), 35, values);
    tn_module_drop(m);
}
END_TEST

/* A method that masks nothing: all entries get gradients, and the module is pruned. */
static void masks_nothing(const char *method)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(5, 2)");
    tn_tensor *x = tn_tensor_full(TN_SHAPE(5), 1.0, TN_F32, NULL);

    ok(tn_prune(m, "weight", method));
    ok(tn_backward(tn_sum(tn_module_call(m, x))));
    expect(tn_tensor_grad(tn_module_get(m, "weight_orig")), 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    ck_assert_int_eq(zeros_of(tn_module_get(m, "weight_mask")), 0);
    ck_assert(tn_is_pruned(m));
    tn_module_drop(m);
}

START_TEST(test_identity_pruning)
{
    masks_nothing("Identity");
    TN_PROVES("PRN-011");
}
END_TEST

START_TEST(test_random_pruning_0perc)
{
    masks_nothing("RandomUnstructured(amount=0.0)");
}
END_TEST

START_TEST(test_random_pruning)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(5, 2)");
    tn_tensor *x, *loss;
    double first[] = { 0, 1, 1, 0, 1, 1, 1, 1, 1, 1 }, before[10], after[10];
    tn_optimizer *sgd;

    /* masked entries get no gradient, and SGD leaves them */
    ok(tn_prune_from_mask(m, "weight", numbers(TN_SHAPE(2, 5), first)));
    x = tn_tensor_full(TN_SHAPE(1, 5), 1.0, TN_F32, NULL);
    loss = tn_sum(tn_module_call(m, x));
    ok(tn_backward(loss));
    expect_values(tn_tensor_grad(tn_module_get(m, "weight_orig")), 10, first);
    values_of(tn_module_get(m, "weight_orig"), before, 10);
    sgd = tn_optimizer_new(m, "SGD(lr=0.5)");
    ck_assert_msg(sgd != NULL, "%s", tn_error_text());
    ok(tn_optimizer_step(sgd));
    values_of(tn_module_get(m, "weight_orig"), after, 10);
    for (int i = 0; i < 10; i++)
        ck_assert(fabs(after[i] - (before[i] - 0.5 * first[i])) < 1e-6);
    ck_assert_int_eq(zeros_of(tn_module_get(m, "weight")), 2);
    TN_PROVES("PRN-003");
    tn_optimizer_drop(sgd);
    tn_module_drop(m);
}
END_TEST

/* A Linear(5, 2) of which all weights but the first and the last one are masked. */
static tn_module *first_and_last(void)
{
    tn_module *m = parsed("Linear(5, 2)");

    ok(tn_prune_from_mask(m, "weight", tensor(TN_SHAPE(2, 5), 1, 0, 0, 0, 0, 0, 0, 0, 0, 1)));
    return m;
}

START_TEST(test_random_pruning_forward)
{
    TN_SCOPE;
    tn_module *m = first_and_last();
    double weight[10], bias[2];
    tn_tensor *x = tn_tensor_full(TN_SHAPE(1, 5), 1.0, TN_F32, NULL);

    values_of(tn_module_get(m, "weight_orig"), weight, 10);
    values_of(tn_module_get(m, "bias"), bias, 2);
    expect(tn_module_call(m, x), weight[0] + bias[0], weight[9] + bias[1]);
    TN_PROVES("PRN-001");
    tn_module_drop(m);
}
END_TEST

START_TEST(exactly_k_entries_are_masked_and_a_seed_repeats_them)
{
    enum { SIZE = 60, ROUNDS = 400, K = 15 };
    int64_t hits[SIZE] = { 0 };
    double mask[SIZE], again[SIZE];

    for (int round = 0; round < ROUNDS; round++) {
        TN_SCOPE;
        tn_tensor *t = tn_tensor_full(TN_SHAPE(6, 10), 1.0, TN_F32, NULL), *made;

        tn_random_seed((uint64_t)round);
        made = tn_prune_mask(t, TN_NONE, TN_NONE, "RandomUnstructured(amount=15)");
        values_of(made, mask, SIZE);
        ck_assert_int_eq(zeros_of(made), K);
        tn_random_seed((uint64_t)round);
        values_of(tn_prune_mask(t, TN_NONE, TN_NONE, "RandomUnstructured(amount=0.25)"), again,
                  SIZE);
        ck_assert_mem_eq(mask, again, sizeof mask);
        for (int i = 0; i < SIZE; i++)
            hits[i] += mask[i] == 0;
    }
    /* 100 times each, with a standard deviation of 8.7 */
    for (int i = 0; i < SIZE; i++)
        ck_assert_msg(hits[i] > 60 && hits[i] < 140, "entry %d: %d times", i, (int)hits[i]);
    TN_PROVES("PRN-006");
}
END_TEST

/* ---- the end of pruning ---------------------------------------------------------------------- */

START_TEST(test_remove_pruning_forward)
{
    TN_SCOPE;
    tn_module *m = first_and_last();
    double before[2];
    tn_tensor *x = tn_tensor_full(TN_SHAPE(1, 5), 1.0, TN_F32, NULL);

    values_of(tn_module_call(m, x), before, 2);
    ok(tn_prune_remove(m, "weight"));
    expect_values(tn_module_call(m, x), 2, before);
    tn_module_drop(m);
}
END_TEST

START_TEST(test_pruning_id_consistency)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(5, 2, bias=False)");
    tn_tensor *weight = tn_module_get(m, "weight");

    ok(tn_prune(m, "weight", "L1Unstructured(amount=1)"));
    ck_assert_ptr_eq(tn_module_get(m, "weight_orig"), weight);
    ck_assert_int_eq(tn_module_parameter_count(m), 10);
    ok(tn_prune_remove(m, "weight"));
    ck_assert_ptr_eq(tn_module_get(m, "weight"), weight);
    ck_assert(tn_tensor_requires_grad(weight) && tn_tensor_is_leaf(weight));
    TN_PROVES("PRN-002");
    tn_module_drop(m);
}
END_TEST

START_TEST(test_random_pruning_pickle)
{
    /* A deep copy of a pruned module is pruned, and the two are independent. */
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(5, 7), ReLU())"), *copy;
    double values[35];

    ok(tn_prune(m, "0.weight", "RandomUnstructured(amount=0.1), Identity"));
    copy = tn_module_copy(m);
    ck_assert_msg(copy != NULL, "%s", tn_error_text());
    ck_assert(tn_is_pruned(copy));
    ck_assert_int_eq(tn_prune_count(copy, "0.weight"), 2);
    values_of(tn_module_find_tensor(m, "0.weight_mask"), values, 35);
    expect_values(tn_module_find_tensor(copy, "0.weight_mask"), 35, values);
    ok(tn_prune_remove(copy, "0.weight"));
    ck_assert(!tn_is_pruned(copy));
    ck_assert(tn_is_pruned(m));
    values_of(tn_module_get(tn_module_child(m, "0"), "weight"), values, 35);
    expect_values(tn_module_find_tensor(copy, "0.weight"), 35, values);
    tn_module_drop(copy);
    tn_module_drop(m);
}
END_TEST

START_TEST(test_remove_pruning)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(5, 7)");
    double values[35];

    ok(tn_prune(m, "weight", "RandomUnstructured(amount=0.5)"));
    expect_names(m, "bias weight_orig weight_mask ");
    values_of(tn_module_get(m, "weight"), values, 35);
    ok(tn_prune_remove(m, "weight"));
    expect_names(m, "bias weight ");
    expect_values(tn_module_get(m, "weight"), 35, values);
    ck_assert_int_eq(tn_module_slot_kind(m, "weight"), TN_SLOT_PARAMETER);
    ck_assert_int_eq(tn_module_slot_kind(m, "weight_orig"), 0);
    ck_assert_int_eq(tn_module_slot_kind(m, "weight_mask"), 0);
    ck_assert(!tn_is_pruned(m));
    /* the name goes to the end, after other pruned parameters too */
    ok(tn_prune(m, "weight", "Identity"));
    ok(tn_prune(m, "bias", "Identity"));
    expect_names(m, "weight_orig bias_orig weight_mask bias_mask ");
    ok(tn_prune_remove(m, "weight"));
    expect_names(m, "bias_orig weight bias_mask ");
    TN_PROVES("PRN-013");
    tn_module_drop(m);
}
END_TEST

START_TEST(test_remove_pruning_exception)
{
    tn_module *m = parsed("Linear(5, 7)");

    ck_assert(!tn_is_pruned(m));
    ck_assert_int_eq(tn_prune_remove(m, "weight"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "Parameter 'weight' of module Linear has to be pruned before "
                                 "pruning can be removed");
    ck_assert_int_eq(tn_prune_remove(m, "nothing"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "Parameter 'nothing' of module Linear has to be pruned");
    ck_assert_int_eq(tn_prune_remove(m, "0.weight"), TN_ERR_ATTR);
    tn_error_clear();
    tn_module_drop(m);
}
END_TEST

START_TEST(is_pruned_looks_at_all_modules_prn_014)
{
    tn_module *m = parsed("Sequential(Linear(2, 2), Sequential(ReLU(), Linear(2, 2)))");

    ck_assert(!tn_is_pruned(m));
    ok(tn_prune(m, "1.1.bias", "L1Unstructured(amount=1)"));
    ck_assert(tn_is_pruned(m));
    ck_assert(!tn_is_pruned(tn_module_child(m, "0")));
    ck_assert_int_eq(tn_prune_count(m, "1.1.bias"), 1);
    ck_assert_int_eq(tn_prune_count(m, "1.1.weight"), 0);
    ok(tn_prune_remove(m, "1.1.bias"));
    ck_assert(!tn_is_pruned(m));
    TN_PROVES("PRN-014");
    tn_module_drop(m);
}
END_TEST

/* ---- states ---------------------------------------------------------------------------------- */

START_TEST(test_pruning_serialization_state_dict)
{
    TN_SCOPE;
    const char *text = "Sequential(Linear(10, 10), ReLU(), Linear(10, 1))";
    tn_module *m = parsed(text), *other = parsed(text);
    double values[100];
    tn_state *state;

    ok(tn_prune(m, "0.weight", "L1Unstructured(amount=0.9)"));
    ok(tn_prune(other, "0.weight", "Identity"));
    expect_names(m, "0.bias 0.weight_orig 0.weight_mask 2.weight 2.bias ");
    values_of(tn_module_get(tn_module_child(m, "0"), "weight"), values, 100);
    state = tn_module_state(m);
    ok(tn_module_load_state(other, state, true));
    tn_state_drop(state);
    expect_values(tn_module_get(tn_module_child(other, "0"), "weight"), 100, values);
    tn_module_drop(other);
    ok(tn_prune_remove(m, "0.weight"));
    expect_names(m, "0.bias 0.weight 2.weight 2.bias ");
    other = parsed(text);
    state = tn_module_state(m);
    ok(tn_module_load_state(other, state, true));
    tn_state_drop(state);
    expect_values(tn_module_find_tensor(other, "0.weight"), 100, values);
    TN_PROVES("PRN-016");
    tn_module_drop(other);
    tn_module_drop(m);
}
END_TEST

START_TEST(test_pruning_serialization_model)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(10, 10), ReLU(), Linear(10, 1))"), *copy;
    double before[1];
    tn_tensor *x = tn_tensor_full(TN_SHAPE(1, 10), 1.0, TN_F32, NULL);

    ok(tn_prune(m, "0.weight", "L1Unstructured(amount=0.9)"));
    ok(tn_module_half(m));
    ck_assert_int_eq(tn_tensor_dtype(tn_module_find_tensor(m, "0.weight_mask")), TN_F16);
    ok(tn_module_float(m));
    values_of(tn_module_call(m, x), before, 1);
    copy = tn_module_copy(m);
    expect_values(tn_module_call(copy, x), 1, before);
    tn_module_drop(copy);
    tn_module_drop(m);
}
END_TEST

/* ---- tensors --------------------------------------------------------------------------------- */

START_TEST(test_prune)
{
    TN_SCOPE;
    tn_tensor *t = tensor(TN_SHAPE(2, 4), 1, 2, 3, 4, 5, 6, 7, 8);
    tn_tensor *mask = tensor(TN_SHAPE(2, 4), 1, 1, 1, 0, 1, 1, 0, 1);

    expect(tn_prune_tensor(t, mask, TN_NONE, "L1Unstructured(amount=2)"), 0, 0, 3, 0, 5, 6, 0, 8);
    expect(tn_prune_tensor(t, TN_NONE, TN_NONE, "L1Unstructured(amount=2)"), 0, 0, 3, 4, 5, 6, 7,
           8);
    TN_PROVES("PRN-018");
}
END_TEST

START_TEST(test_prune_importance_scores)
{
    TN_SCOPE;
    tn_tensor *t = tensor(TN_SHAPE(2, 4), 1, 2, 3, 4, 5, 6, 7, 8);
    tn_tensor *scores = tensor(TN_SHAPE(2, 4), 1, 2, 3, 4, 1.5, 1.6, 1.7, 1.8);
    tn_tensor *mask = tensor(TN_SHAPE(2, 4), 1, 1, 1, 0, 1, 1, 0, 1);

    expect(tn_prune_tensor(t, mask, scores, "L1Unstructured(amount=2)"), 0, 2, 3, 0, 0, 6, 0, 8);
}
END_TEST

START_TEST(test_prune_importance_scores_mimic_default)
{
    TN_SCOPE;
    tn_tensor *t = tensor(TN_SHAPE(2, 4), 1, 2, 3, 4, 5, 6, 7, 8);
    tn_tensor *mask = tensor(TN_SHAPE(2, 4), 1, 1, 1, 0, 1, 1, 0, 1);
    double alone[8];

    values_of(tn_prune_tensor(t, mask, TN_NONE, "L1Unstructured(amount=2)"), alone, 8);
    expect_values(tn_prune_tensor(t, mask, t, "L1Unstructured(amount=2)"), 8, alone);
}
END_TEST

START_TEST(test_rnn_pruning)
{
    TN_SCOPE;
    tn_module *m = parsed("LSTM(32, 32)");
    tn_tensor *x = tn_tensor_full(TN_SHAPE(1, 1, 32), 0.5, TN_F32, NULL), *out[1];

    ok(tn_prune(m, "weight_ih_l0", "L1Unstructured(amount=0.5)"));
    ck_assert_int_eq(zeros_of(tn_module_get(m, "weight_ih_l0")), 2048);
    ok(tn_module_call_many(m, &x, 1, out, 1));
    ok(tn_backward(tn_sum(out[0])));
    ck_assert_int_ge(zeros_of(tn_tensor_grad(tn_module_get(m, "weight_ih_l0_orig"))), 2048);
    ok(tn_prune_remove(m, "weight_ih_l0"));
    ck_assert_int_eq(tn_module_slot_kind(m, "weight_ih_l0"), TN_SLOT_PARAMETER);
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        test_validate_pruning_amount_init,
        test_validate_pruning_amount,
        test_compute_nparams_to_prune,
        test_random_pruning_sizes,
        test_random_pruning_orig_and_new_weight,
        test_identity_pruning,
        test_random_pruning_0perc,
        test_random_pruning,
        test_random_pruning_forward,
        exactly_k_entries_are_masked_and_a_seed_repeats_them,
        test_remove_pruning_forward,
        test_pruning_id_consistency,
        test_random_pruning_pickle,
        test_remove_pruning,
        test_remove_pruning_exception,
        is_pruned_looks_at_all_modules_prn_014,
        test_pruning_serialization_state_dict,
        test_pruning_serialization_model,
        test_prune,
        test_prune_importance_scores,
        test_prune_importance_scores_mimic_default,
        test_rnn_pruning,
        NULL,
    };
    return suite_run("prune", tests);
}
