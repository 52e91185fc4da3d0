/* SPDX-License-Identifier: MIT
 *
 * Functions that set all modules of a tree: training and eval, requires_grad, gradients. The rows
 * are of the area MODE of the behaviour specification. */
#include "tests/module/toy_layers.h"
#include "tests/spec/proves.h"

static tn_tensor *ones(int64_t rows, int64_t columns)
{
    return tn_tensor_full(TN_SHAPE(rows, columns), 1.0, TN_F32, NULL);
}

/* ---- a layer that keeps its first child in eval mode ----------------------------------------- */

static int told;

static tn_status keep_eval(tn_module *self, bool training)
{
    told += training ? 1 : 100;
    return tn_module_train(tn_module_child_at(self, 0), false);
}

static tn_status refuse_mode(tn_module *self, bool training)
{
    (void)self;
    return training ? TN_ERR_VALUE : TN_OK;
}

static tn_status build_one(tn_module *self)
{
    tn_module *child = tn_module_new("ReLU()");
    tn_status status = tn_module_add_child(self, "frozen", child);
    tn_module_drop(child);
    return status;
}

static tn_tensor *pass(tn_module *self, tn_tensor *x)
{
    (void)self;
    return x;
}

static const tn_layer_def keeper = { TN_HEAD(tn_layer_def), .name = "Keeper", .build = build_one,
                                     .forward = pass, .train = keep_eval };
static const tn_layer_def refuser = { TN_HEAD(tn_layer_def), .name = "Refuser", .forward = pass,
                                      .train = refuse_mode };

START_TEST(eval_is_train_false_and_a_layer_is_told_mode_003)
{
    ck_assert_int_eq(tn_register(&keeper), TN_OK);
    ck_assert_int_eq(tn_register(&refuser), TN_OK);
    tn_module *m = parsed("Sequential(Keeper(), Tanh())");
    ck_assert_int_eq(tn_module_eval(m), TN_OK);
    ck_assert_int_eq(told, 100);
    ck_assert(!tn_module_is_training(m) && !tn_module_is_training(tn_module_find(m, "1")));
    ck_assert_int_eq(tn_module_train(m, true), TN_OK);
    ck_assert_int_eq(told, 101);
    ck_assert(tn_module_is_training(tn_module_find(m, "0")));
    ck_assert(!tn_module_is_training(tn_module_find(m, "0.frozen")));
    ck_assert(tn_module_is_training(tn_module_find(m, "1")));
    TN_PROVES("MODE-003");
    /* Any number other than 0 counts as true. */
    ck_assert_int_eq(tn_module_eval(m), TN_OK);
    ck_assert_int_eq(tn_module_train(m, 2), TN_OK);
    ck_assert(tn_module_is_training(m));
    TN_PROVES("MODE-002");
    tn_module *bad = parsed("Sequential(Refuser())");
    ck_assert_int_eq(tn_module_train(bad, true), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "layer Refuser: train: failed with");
    tn_module_drop(bad);
    tn_module_drop(m);
}
END_TEST

START_TEST(only_layers_that_know_the_mode_change_with_it_mode_004_mode_005)
{
    TN_SCOPE;
    register_probes();
    tn_module *m = parsed("Sequential(Probe(1), Linear(1, 1, bias=False))");
    tn_module_set(tn_module_child(m, "1"), "weight", tn_parameter(ones(1, 1), true));
    ck_assert_double_eq(tn_item(tn_module_call(m, ones(1, 1))), 2.0);
    tn_module_eval(m);
    tn_tensor *y = tn_module_call(m, ones(1, 1));
    ck_assert_double_eq(tn_item(y), 1.0);
    TN_PROVES("MODE-004");
    /* eval records as training does, and no-grad leaves the mode alone */
    ck_assert(tn_tensor_requires_grad(y) && !tn_tensor_is_leaf(y));
    ck_assert_int_eq(tn_backward(y), TN_OK);
    ck_assert_double_eq(tn_item(tn_tensor_grad(tn_module_find_tensor(m, "1.weight"))), 1.0);
    tn_module_train(m, true);
    tn_grad_begin(false);
    ck_assert(tn_module_is_training(m));
    y = tn_module_call(m, ones(1, 1));
    tn_grad_end();
    ck_assert(!tn_tensor_requires_grad(y));
    ck_assert(tn_module_is_training(m));
    TN_PROVES("MODE-005");
    tn_module_drop(m);
}
END_TEST

START_TEST(a_child_keeps_its_mode_when_it_is_added_mode_006)
{
    tn_module *m = parsed("Sequential(ReLU())"), *child = parsed("Dropout()");
    ck_assert(tn_module_is_training(m) && tn_module_is_training(tn_module_child(m, "0")));
    tn_module_eval(child);
    tn_module_add_child(m, "late", child);
    ck_assert(tn_module_is_training(m) && !tn_module_is_training(child));
    TN_PROVES("MODE-006");
    tn_module_drop(child);
    tn_module_drop(m);
}
END_TEST

START_TEST(freezing_sets_parameters_only_and_keeps_their_gradients_mode_007_mode_008)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(2, 2), BatchNorm1d(2), Linear(2, 1))");
    tn_tensor *w = tn_module_find_tensor(m, "0.weight"),
              *mean = tn_module_find_tensor(m, "1.running_mean");
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, ones(3, 2)))), TN_OK);
    tn_tensor *gradient = tn_tensor_grad(w);
    ck_assert_ptr_ne(gradient, TN_NONE);
    ck_assert_int_eq(tn_module_set_requires_grad(m, false), TN_OK);
    ck_assert(!tn_tensor_requires_grad(w) && !tn_tensor_requires_grad(mean));
    ck_assert_ptr_eq(tn_module_find_tensor(m, "0.weight"), w);
    ck_assert_int_eq(tn_module_set_requires_grad(m, true), TN_OK);
    ck_assert(tn_tensor_requires_grad(w));
    ck_assert(!tn_tensor_requires_grad(mean));
    ck_assert(tn_tensor_requires_grad(tn_module_find_tensor(m, "2.bias")));
    TN_PROVES("MODE-007");
    ck_assert_int_eq(tn_module_set_requires_grad(tn_module_child(m, "0"), false), TN_OK);
    tn_module_zero_grad(tn_module_child(m, "2"));
    double before = tn_item(tn_sum(tn_tensor_grad(w)));
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, ones(3, 2)))), TN_OK);
    ck_assert_ptr_eq(tn_tensor_grad(w), gradient);
    ck_assert_double_eq(tn_item(tn_sum(gradient)), before);
    ck_assert_double_eq(tn_item(tn_tensor_grad(tn_module_find_tensor(m, "2.bias"))), 3.0);
    TN_PROVES("MODE-008");
    tn_module_drop(m);
}
END_TEST

START_TEST(gradients_become_zero_in_place_mode_010)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(2, 2), Linear(2, 1))");
    tn_tensor *w = tn_module_find_tensor(m, "0.weight"), *b = tn_module_find_tensor(m, "0.bias"),
              *last = tn_module_find_tensor(m, "1.bias");
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, ones(3, 2)))), TN_OK);
    tn_tensor_set_grad(b, TN_NONE);
    /* one gradient with a history, one that requires grad itself */
    tn_tensor *leaf = ones(2, 2);
    tn_tensor_set_requires_grad(leaf, true);
    tn_tensor *made_by_mul = tn_mul_scalar(leaf, 3.0);
    void *memory = tn_tensor_data(made_by_mul), *other = tn_tensor_data(tn_tensor_grad(last));
    ck_assert_int_eq(tn_tensor_set_grad(w, made_by_mul), TN_OK);
    tn_tensor_set_requires_grad(tn_tensor_grad(last), true);
    ck_assert_int_eq(tn_module_zero_grad_in_place(m), TN_OK);
    tn_tensor *gradient = tn_tensor_grad(w);
    ck_assert_ptr_eq(tn_tensor_data(gradient), memory);
    ck_assert(tn_tensor_is_leaf(gradient) && !tn_tensor_requires_grad(gradient));
    ck_assert_double_eq(tn_item(tn_sum(tn_abs(gradient))), 0.0);
    ck_assert_ptr_eq(tn_tensor_grad(b), TN_NONE);
    ck_assert_ptr_eq(tn_tensor_data(tn_tensor_grad(last)), other);
    ck_assert(!tn_tensor_requires_grad(tn_tensor_grad(last)));
    ck_assert_double_eq(tn_item(tn_tensor_grad(last)), 0.0);
    ck_assert_ptr_ne(tn_tensor_grad(tn_module_find_tensor(m, "1.weight")), TN_NONE);
    TN_PROVES("MODE-010");
    tn_module_drop(m);
}
END_TEST

START_TEST(only_gradients_of_parameters_go_mode_011)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(2, 1))");
    tn_tensor *x = ones(1, 2), *buffer = ones(1, 2);
    tn_tensor_set_requires_grad(x, true);
    tn_tensor_set_requires_grad(buffer, true);
    tn_module_add_buffer(m, "b", buffer, 0);
    tn_module_add_parameter(m, "tied", tn_module_find_parameter(m, "0.weight"));
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, tn_add(x, buffer)))), TN_OK);
    ck_assert_ptr_ne(tn_tensor_grad(tn_module_get(m, "tied")), TN_NONE);
    ck_assert_int_eq(tn_module_zero_grad_in_place(m), TN_OK);
    ck_assert_int_eq(tn_module_zero_grad(m), TN_OK);
    ck_assert_ptr_eq(tn_tensor_grad(tn_module_get(m, "tied")), TN_NONE);
    ck_assert_ptr_ne(tn_tensor_grad(x), TN_NONE);
    ck_assert_ptr_ne(tn_tensor_grad(buffer), TN_NONE);
    ck_assert(tn_item(tn_sum(tn_abs(tn_tensor_grad(x)))) > 0);
    TN_PROVES("MODE-011");
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        eval_is_train_false_and_a_layer_is_told_mode_003,
        only_layers_that_know_the_mode_change_with_it_mode_004_mode_005,
        a_child_keeps_its_mode_when_it_is_added_mode_006,
        freezing_sets_parameters_only_and_keeps_their_gradients_mode_007_mode_008,
        gradients_become_zero_in_place_mode_010,
        only_gradients_of_parameters_go_mode_011,
        NULL,
    };
    return suite_run("mode", tests);
}
