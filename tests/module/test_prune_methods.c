/* SPDX-License-Identifier: MIT
 *
 * Pruning methods of a plugin, chains in which one fails, patterns, parameters that cannot be
 * pruned, and every allocation of pruning made to fail. */
#include <math.h>

#include "core/plugin/internal.h"
#include "tests/module/prune.h"

#include <tenon/tenon.h>

#define PLUGIN TN_TEST_BUILDDIR "/tests/module/.libs/prune_plugin.so"

static void load_plugin(void)
{
    ok(tn_plugin_load(PLUGIN));
}

/* ---- methods of a plugin --------------------------------------------------------------------- */

START_TEST(a_plugin_brings_methods_prn_017)
{
    TN_SCOPE;
    tn_module *m = holder(tensor(TN_SHAPE(2, 4), 1, 2, 3, 4, 5, 6, 7, 8));
    tn_tensor *t = tensor(TN_SHAPE(2, 4), 1, 2, 3, 4, 5, 6, 7, 8);

    load_plugin();
    ck_assert_str_eq(tn_registry_plugin(TN_KIND_tn_prune_def, "EveryNth"), "org.example.prune");
    ok(tn_prune(m, "weight", "EveryNth(n=3)"));
    expect(tn_module_get(m, "weight"), 1, 2, 0, 4, 5, 0, 7, 8);
    /* unstructured: the second call sees the six entries that are left */
    ok(tn_prune(m, "weight", "EveryNth(n=3)"));
    expect(tn_module_get(m, "weight"), 1, 2, 0, 0, 5, 0, 7, 0);
    /* structured: the first slice, then the first that is left */
    expect(tn_prune_mask(t, TN_NONE, TN_NONE, "FirstSlice(dim=1), FirstSlice(dim=-1)"), 0, 0, 1, 1,
           0, 0, 1, 1);
    expect(tn_prune_mask(t, TN_NONE, TN_NONE, "FirstSlice, FirstSlice"), 0, 0, 0, 0, 0, 0, 0, 0);
    ck_assert_ptr_null(tn_prune_mask(t, tn_tensor_full(TN_SHAPE(2, 4), 1, TN_F32, NULL), TN_NONE,
                                     "FirstSlice(dim=2)"));
    expect_failure(TN_ERR_INDEX, "FirstSlice: dim: out of range, got 2; expected -2 to 1");
    ck_assert_int_eq(tn_prune(m, "weight", "EveryNth(n=0)"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "EveryNth: n: too small, got 0; expected 1 or more");
    ck_assert_int_eq(tn_prune(m, "weight", "EveryNth(m=0)"), TN_ERR_KEY);
    tn_error_clear();
    TN_PROVES("PRN-017");
    tn_module_drop(m);
}
END_TEST

START_TEST(test_pruning_rollback)
{
    TN_SCOPE;
    static const char *const texts[] = {
        "Broken",
        "Broken(how='silent')",
        "Broken(how='none')",
        "Broken(how='shape')",
        "L1Unstructured(amount=0.2), Broken",
        "Identity, LnStructured(amount=1, n=2, dim=4)",
        "L1Unstructured(amount=2), L1Unstructured(amount=400)",
    };

    load_plugin();
    for (int pruned = 0; pruned < 2; pruned++)
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            tn_module *m = parsed("Conv2d(2, 3, 3)");
            tn_tensor *weight = tn_module_get(m, "weight"), *mask = NULL;
            char before[256], after[256];
            double values[54];

            if (pruned) {
                ok(tn_prune(m, "weight", "L1Unstructured(amount=5)"));
                mask = tn_module_get(m, "weight_mask");
            }
            values_of(tn_module_get(m, "weight"), values, 54);
            names_of(m, before, sizeof before);
            ck_assert_int_ne(tn_prune(m, "weight", texts[i]), TN_OK);
            ck_assert_ptr_nonnull(strstr(tn_error_text(), "tn_prune: \"weight\" of Conv2d: "));
            tn_error_clear();
            names_of(m, after, sizeof after);
            ck_assert_str_eq(before, after);
            ck_assert_ptr_eq(tn_module_get(m, pruned ? "weight_orig" : "weight"), weight);
            if (pruned)
                ck_assert_ptr_eq(tn_module_get(m, "weight_mask"), mask);
            ck_assert_int_eq(tn_prune_count(m, "weight"), pruned);
            expect_values(tn_module_get(m, "weight"), 54, values);
            /* and it can be pruned afterwards */
            ok(tn_prune(m, "weight", "Identity"));
            tn_module_drop(m);
        }
    TN_PROVES("PRN-015");
}
END_TEST

START_TEST(a_global_pruning_that_fails_changes_no_module)
{
    TN_SCOPE;
    tn_module *a = parsed("Linear(3, 4)"), *b = parsed("Linear(4, 2)"), *c = parsed("Linear(2, 2)");
    tn_prune_target all[] = {
        { a, "weight", NULL }, { b, "weight", NULL }, { b, "bias", NULL }, { c, "weight", NULL }
    };
    tn_tensor *mask;

    ok(tn_prune(b, "weight", "L1Unstructured(amount=1)"));
    mask = tn_module_get(b, "weight_mask");
    /* the third parameter cannot be stored: a slot has the name of its mask */
    ok(tn_module_add_buffer(c, "weight_mask", tn_tensor_full(TN_SHAPE(1), 0, TN_F32, NULL), 0));
    ck_assert_int_eq(tn_prune_global(all, 4, "L1Unstructured(amount=5)"), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "attribute 'weight_mask' already exists: it is a buffer of Linear");
    expect_names(a, "weight bias ");
    expect_names(b, "bias weight_orig weight_mask ");
    expect_names(c, "weight bias weight_mask ");
    ck_assert_ptr_eq(tn_module_get(b, "weight_mask"), mask);
    ck_assert_int_eq(tn_prune_count(b, "weight"), 1);
    ck_assert_int_eq(tn_prune_global(all, 3, "L1Unstructured(amount=100)"), TN_ERR_VALUE);
    tn_error_clear();
    all[1].scores = tn_tensor_full(TN_SHAPE(4, 2), 0, TN_F32, NULL);
    ck_assert_int_eq(tn_prune_global(all, 3, "Identity"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "targets[1]: scores: wrong shape, got [4, 2]; expected [2, 4]");
    all[1] = (tn_prune_target){ b, NULL, NULL };
    ck_assert_int_eq(tn_prune_global(all, 3, "Identity"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "targets[1]: name: it is NULL");
    ck_assert(!tn_is_pruned(a));
    tn_module_drop(a);
    tn_module_drop(b);
    tn_module_drop(c);
}
END_TEST

/* ---- patterns -------------------------------------------------------------------------------- */

START_TEST(two_of_four_stay)
{
    TN_SCOPE;
    tn_tensor *t = tensor(TN_SHAPE(2, 8), 1, -4, 3, 2, 0, 0, 0, 0, 9, 8, 7, 6, -1, 2, -3, 4);

    expect(tn_prune_mask(t, TN_NONE, TN_NONE, "NOfM"), 0, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1,
           1);
    expect(tn_prune_mask(t, TN_NONE, TN_NONE, "NOfM(n=1, m=2, dim=0)"), 0, 0, 0, 0, 0, 0, 0, 0, 1,
           1, 1, 1, 1, 1, 1, 1);
    ck_assert_int_eq(zeros_of(tn_prune_mask(t, TN_NONE, TN_NONE, "NOfM(n=0, m=4)")), 16);
    ck_assert_int_eq(zeros_of(tn_prune_mask(t, TN_NONE, TN_NONE, "NOfM(n=4, m=4)")), 0);
    /* entries that are masked already count among those that go */
    expect(tn_prune_mask(t, tensor(TN_SHAPE(2, 8), 1, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1),
                         TN_NONE, "NOfM(2, 4)"),
           0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1);
    ck_assert_ptr_null(tn_prune_mask(t, TN_NONE, TN_NONE, "NOfM(2, 3)"));
    expect_failure(TN_ERR_VALUE, "dimension 1 has no whole groups, got the size 8; expected a "
                                 "multiple of 3");
    ck_assert_ptr_null(tn_prune_mask(t, TN_NONE, TN_NONE, "NOfM(5, 4)"));
    expect_failure(TN_ERR_VALUE, "n or m: out of range, got 5 and 4");
    ck_assert_ptr_null(tn_prune_mask(t, TN_NONE, TN_NONE, "NOfM(dim=2)"));
    expect_failure(TN_ERR_INDEX, "dim: out of range, got 2");
    t = tn_tensor_empty(TN_SHAPE(0, 4), TN_F32, NULL);
    ck_assert_ptr_nonnull(tn_prune_mask(t, TN_NONE, TN_NONE, "NOfM"));
}
END_TEST

START_TEST(two_of_four_of_a_convolution)
{
    TN_SCOPE;
    tn_module *m = parsed("Conv2d(8, 3, 3)");
    double mask[216];

    ok(tn_prune(m, "weight", "NOfM(n=2, m=4)"));
    values_of(tn_module_get(m, "weight_mask"), mask, 216);
    for (int row = 0; row < 3; row++)
        for (int group = 0; group < 2; group++)
            for (int k = 0; k < 9; k++) {
                double left = 0;

                for (int i = 0; i < 4; i++)
                    left += mask[(row * 8 + group * 4 + i) * 9 + k];
                ck_assert(left == 2);
            }
    tn_module_drop(m);
}
END_TEST

/* ---- what cannot be pruned ------------------------------------------------------------------- */

START_TEST(other_things_than_parameters_are_refused)
{
    TN_SCOPE;
    tn_module *m = parsed("BatchNorm1d(3)"), *lazy = parsed("LazyLinear(3)"),
              *net = parsed("Sequential(Linear(2, 2, bias=False))");

    ck_assert_int_eq(tn_prune(m, "running_mean", "Identity"), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "tn_prune: \"running_mean\" of BatchNorm1d: wrong kind, got a "
                                "buffer; expected a parameter with a value");
    ck_assert_int_eq(tn_prune(m, "wieght", "Identity"), TN_ERR_ATTR);
    expect_failure(TN_ERR_ATTR, "'BatchNorm1d' object has no parameter or buffer 'wieght'");
    ck_assert_int_eq(tn_prune(net, "0.bias", "Identity"), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "\"0.bias\" of Sequential: wrong kind, got a reserved parameter");
    ck_assert_int_eq(tn_prune(net, "0", "Identity"), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "\"0\" of Sequential: wrong kind, got a module");
    ck_assert_int_eq(tn_prune(net, "1.weight", "Identity"), TN_ERR_ATTR);
    tn_error_clear();
    ck_assert_int_eq(tn_prune(lazy, "weight", "Identity"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "no shape yet");
    ck_assert_int_ne(tn_prune(NULL, "weight", "Identity"), TN_OK);
    tn_error_clear();
    ck_assert_int_eq(tn_prune_count(m, "nothing"), -1);
    tn_error_clear();
    ok(tn_module_add_parameter(m, "weight_orig",
                               tn_parameter(tn_tensor_full(TN_SHAPE(1), 0, TN_F32, NULL), true)));
    ck_assert_int_eq(tn_prune(m, "weight", "Identity"), TN_ERR_KEY);
    expect_failure(TN_ERR_KEY, "attribute 'weight_orig' already exists");
    tn_module_drop(m);
    tn_module_drop(lazy);
    tn_module_drop(net);
}
END_TEST

/* The whole message, so that no name is in it twice. */
START_TEST(failures_name_the_function_and_the_parameter_once)
{
    static const struct {
        const char *methods, *message;
    } rows[] = {
        { "", "methods: none, got \"\"; expected at least one" },
        { "3",
          "methods: int is not a pruning method; expected names of methods with their options" },
        { "bias=Identity",
          "methods: can only add methods acting on the parameter named 'weight', found 'bias'" },
        { "Identity(2)", "Identity: options: unknown, got \"Identity(2)\"; expected none" },
        { "L1Unstructured(amount=1.5)",
          "L1Unstructured: amount: out of range, got 1.5; expected a fraction from 0.0 to 1.0, or "
          "a number of units of 0 or more" },
        { "L1Unstructured(amount=True)", "L1Unstructured: amount: wrong type, got a bool; expected "
                                         "a number of units or a fraction" },
        { "L1Unstructured(amount=9)", "L1Unstructured: amount: larger than the number of units to "
                                      "prune, got 9; expected at most 6" },
        { "LnStructured(amount=1, n=foo)", "LnStructured: n: not the order of a norm, got \"foo\"; "
                                           "expected a number, inf, -inf or 'fro'" },
        { "LnStructured(amount=1, n=2, dim=2)",
          "LnStructured: dim: out of range, got 2; expected -2 to 1" },
        { "Identity, LnStructured(amount=1, n=2, dim=2)",
          "LnStructured: dim: out of range, got 2; expected -2 to 1" },
        { "NOfM(dim=0)",
          "NOfM: tensor: dimension 0 has no whole groups, got the size 2; expected a "
          "multiple of 4" },
        { "ChannelGroups",
          "ChannelGroups: wrong type of pruning method, got one for whole networks; expected "
          "one that computes a mask for a tensor" },
    };
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(3, 2))");
    tn_tensor *scores = tn_tensor_full(TN_SHAPE(3), 1.0, TN_F32, NULL);
    char wanted[512];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_snprint(wanted, sizeof wanted, "tn_prune: \"0.weight\" of Sequential: %s",
                   rows[i].message);
        ck_assert_int_ne(tn_prune(m, "0.weight", rows[i].methods), TN_OK);
        ck_assert_str_eq(tn_error_text(), wanted);
        tn_error_clear();
    }
    ck_assert_int_ne(tn_prune_by(m, "0.weight", "L1Unstructured(amount=1)", scores), TN_OK);
    ck_assert_str_eq(tn_error_text(),
                     "tn_prune_by: \"0.weight\" of Sequential: scores: wrong shape, "
                     "got [3]; expected [2, 3]");
    tn_error_clear();
    ck_assert_int_ne(tn_prune_by(m, "0.foo", "L1Unstructured(amount=1)", scores), TN_OK);
    ck_assert_str_eq(tn_error_text(), "tn_prune_by: 'Linear' object has no parameter or buffer "
                                      "'foo'; parameters: weight, bias");
    tn_error_clear();
    ck_assert_ptr_null(tn_prune_mask(scores, scores, tensor(TN_SHAPE(1), 1), "Identity"));
    ck_assert_str_eq(tn_error_text(), "tn_prune_mask: scores: wrong shape, got [1]; expected [3]");
    tn_error_clear();
    ck_assert_int_eq(tn_prune_method(m, "0.weight", 0, NULL, 0), -1);
    ck_assert_str_eq(tn_error_text(),
                     "tn_prune_method: index: out of range, got 0; expected that of "
                     "one of the 0 methods of \"0.weight\"");
    tn_error_clear();
    ok(tn_prune(m, "0.weight", "Identity"));
    ok(tn_module_set(tn_module_child(m, "0"), "weight_mask", TN_NONE));
    ck_assert_int_eq(tn_prune_remove(m, "0.weight"), TN_ERR_TYPE);
    ck_assert_str_eq(tn_error_text(),
                     "tn_prune_remove: \"0.weight\" of Sequential: its weight_mask "
                     "is empty; expected a tensor");
    tn_error_clear();
    tn_module_drop(m);
}
END_TEST

START_TEST(an_optimizer_goes_on_through_pruning_and_its_end)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(3, 2)");
    tn_optimizer *adam = tn_optimizer_new(m, "Adam(lr=0.1)");
    tn_tensor *x = tn_tensor_full(TN_SHAPE(1, 3), 1.0, TN_F32, NULL), *weight;
    double before[6], after[6];

    weight = tn_module_get(m, "weight");
    for (int round = 0; round < 3; round++) {
        if (round == 1)
            ok(tn_prune(m, "weight", "L1Unstructured(amount=2)"));
        if (round == 2)
            ok(tn_prune_remove(m, "weight"));
        values_of(weight, before, 6);
        ok(tn_backward(tn_sum(tn_module_call(m, x))));
        ok(tn_optimizer_step(adam));
        tn_optimizer_zero_grad(adam);
        values_of(weight, after, 6);
        ck_assert_mem_ne(before, after, sizeof before);
    }
    ck_assert_int_eq(tn_optimizer_steps(adam, 0), 3);
    tn_optimizer_drop(adam);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_flag_of_the_slot_stays_and_a_computed_slot_cannot_be_set)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(3, 2)");

    ok(tn_module_set_fixed_dtype(m, "weight", true));
    ok(tn_prune(m, "weight", "Identity"));
    ck_assert(tn_module_has_fixed_dtype(m, "weight_orig"));
    ck_assert(tn_module_has_fixed_dtype(m, "weight_mask"));
    ok(tn_module_half(m));
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(m, "weight")), TN_F32);
    ck_assert_int_eq(tn_module_set(m, "weight", tn_tensor_full(TN_SHAPE(2, 3), 0, TN_F32, NULL)),
                     TN_ERR_ATTR);
    expect_failure(TN_ERR_ATTR, "cannot be set");
    ok(tn_prune_remove(m, "weight"));
    ck_assert(tn_module_has_fixed_dtype(m, "weight"));
    tn_module_drop(m);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

static void expect_whole(tn_module *m, tn_tensor *weight)
{
    uint64_t scope = tn_scope_begin();
    bool pruned = tn_prune_count(m, "weight") > 0;

    ck_assert_ptr_eq(tn_module_get(m, pruned ? "weight_orig" : "weight"), weight);
    expect_names(m, pruned ? "bias weight_orig weight_mask " : "weight bias ");
    ck_assert_ptr_nonnull(tn_module_get(m, "weight"));
    tn_scope_end(scope);
}

static tn_status attempt(tn_module *m, int which)
{
    tn_prune_target targets[] = { { m, "weight", NULL }, { m, "bias", NULL } };
    tn_module *copy;

    switch (which) {
    case 0: return tn_prune(m, "weight", "L1Unstructured(amount=2), RandomUnstructured(amount=1)");
    case 1: return tn_prune(m, "weight", "LnStructured(amount=1, n=2, dim=1), NOfM(1, 2)");
    case 2: return tn_prune_global(targets, 2, "L1Unstructured(amount=3)");
    case 3: return tn_prune_from_mask(m, "weight", tn_tensor_full(TN_SHAPE(4, 4), 1, TN_F32, NULL));
    default:
        copy = tn_module_copy(m);
        tn_module_drop(copy);
        return copy != NULL ? TN_OK : TN_ERR_MEMORY;
    }
}

START_TEST(each_allocation_of_pruning_fails_in_turn)
{
    int total = 0;

    for (int which = 0; which < 5; which++)
        for (int pruned = 0; pruned < 2; pruned++) {
            int failures = 0;
            bool done = false;

            for (uint64_t n = 1; !done; n++) {
                TN_SCOPE;
                tn_module *m = parsed("Linear(4, 4)");
                tn_tensor *weight = tn_module_get(m, "weight");

                if (pruned || which == 4)
                    ok(tn_prune(m, "weight", "Identity, Identity"));
                if (n == 1) { /* makes the allocations that happen only once: they are not tested */
                    tn_module *other = tn_module_copy(m);
                    ok(attempt(other, which));
                    tn_module_drop(other);
                }
                tn__memory_fail(n);
                tn_status status = attempt(m, which);
                done = tn__memory_fail(0) < n;
                if (status != TN_OK) {
                    ck_assert_msg(tn_error_code() == TN_ERR_MEMORY, "%s", tn_error_text());
                    failures++;
                    ck_assert_int_eq(tn_prune_count(m, "weight"), pruned || which == 4 ? 2 : 0);
                    ck_assert_int_eq(tn_prune_count(m, "bias"), 0);
                    tn_error_clear();
                    expect_whole(m, weight);
                }
                tn_module_drop(m);
            }
            ck_assert_int_gt(failures, 0);
            total += failures;
        }
    ck_assert_int_gt(total, 100);
}
END_TEST

START_TEST(each_allocation_of_the_end_of_pruning_fails_in_turn)
{
    bool done = false;

    for (uint64_t n = 1; !done; n++) {
        TN_SCOPE;
        tn_module *m = parsed("Linear(4, 4)");
        tn_tensor *weight = tn_module_get(m, "weight");

        ok(tn_prune(m, "weight", "L1Unstructured(amount=3)"));
        tn__memory_fail(n);
        tn_status status = tn_prune_remove(m, "weight");
        done = tn__memory_fail(0) < n;
        if (status != TN_OK) {
            tn_error_clear();
            expect_whole(m, weight);
            ok(tn_prune_remove(m, "weight"));
        }
        expect_names(m, "bias weight ");
        tn_module_drop(m);
    }
}
END_TEST

START_TEST(each_allocation_of_a_smaller_network_fails_in_turn)
{
    const char *text = "Sequential(Linear(3, 4), ReLU(), Linear(4, 2))";
    bool done = false;
    int failures = 0;

    for (uint64_t n = 1; !done; n += 1 + n / 40) {
        TN_SCOPE;
        tn_module *m = parsed(text);
        tn_tensor *x = tn_tensor_full(TN_SHAPE(2, 3), 0.5, TN_F32, NULL);
        double before[4];

        ok(tn_prune(m, "0.weight", "LnStructured(amount=2, n=2, dim=0)"));
        ok(tn_prune_from_mask(m, "0.bias", tensor(TN_SHAPE(4), 0, 0, 0, 0)));
        values_of(tn_module_call(m, x), before, 4);
        if (n == 1) { /* makes the allocations of the first call: they are not tested */
            tn_module *copy = tn_module_copy(m);
            ok(tn_prune_compact(copy, &x, 1, NULL, NULL));
            tn_module_drop(copy);
        }
        tn__memory_fail(n);
        tn_status status = tn_prune_compact(m, &x, 1, NULL, NULL);
        done = tn__memory_fail(0) < n;
        failures += status != TN_OK;
        tn_error_clear();
        ck_assert_int_eq(tn_module_parameter_count(m), status == TN_OK ? 14 : 26);
        ck_assert(tn_module_is_training(m));
        expect_values(tn_module_call(m, x), 4, before);
        tn_module_drop(m);
    }
    ck_assert_int_gt(failures, 20);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_plugin_brings_methods_prn_017,
        test_pruning_rollback,
        a_global_pruning_that_fails_changes_no_module,
        two_of_four_stay,
        two_of_four_of_a_convolution,
        other_things_than_parameters_are_refused,
        failures_name_the_function_and_the_parameter_once,
        an_optimizer_goes_on_through_pruning_and_its_end,
        a_flag_of_the_slot_stays_and_a_computed_slot_cannot_be_set,
        each_allocation_of_pruning_fails_in_turn,
        each_allocation_of_the_end_of_pruning_fails_in_turn,
        each_allocation_of_a_smaller_network_fails_in_turn,
        NULL,
    };

    return suite_run("pruning methods", tests);
}
