/* SPDX-License-Identifier: MIT
 *
 * Tests of errors that random programs have found: their values, gradients and errors were compared
 * with PyTorch's. */
#include "core/base/internal.h"
#include "tests/op/suite.h"

static tn_tensor *expanded(tn_tensor *x, int64_t count)
{
    return tn_expand(x, TN_SHAPE(count));
}

START_TEST(an_expanded_view_whose_base_changed_adds_up_its_gradient)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *y = tn_sum(x), *wide = expanded(y, 3);

    tn_add_scalar_(y, 1);
    HAS(wide, 4, 4, 4);
    tn_backward(tn_sum(tn_mul(wide, VEC(1, 2, 3))));
    HAS(tn_tensor_grad(x), 6, 6);
    FINE();
}
END_TEST

START_TEST(a_graph_does_not_hold_itself)
{
    int64_t before = tn_grad_node_count();

    for (int kind = 0; kind < 3; kind++) {
        TN_SCOPE;
        tn_tensor *w = LEAF(3, 4), *y = VEC(1, 2);

        if (kind == 1)
            y = tn_mul_scalar(w, 2);
        if (kind == 2)
            y = tn_narrow(tn_mul_scalar(w, 2), 0, 0, 2);
        tn_add_(y, tn_mul(y, w)); /* the product saved y, which is now made of the product */
        ck_assert(tn_tensor_requires_grad(y));
    }
    ck_assert_int_eq(tn_grad_node_count(), before);
    FINE();
}
END_TEST

/* d/dx of sum(3 x^2) by way of a recorded gradient of x^3 */
static void second(tn_tensor *x, tn_tensor *leaf)
{
    tn_backward_options create = { .size = sizeof create, .create_graph = 1 };
    tn_tensor *y = tn_mul(tn_mul(x, x), x), *one = tn_fill(tn_detach(y), 1), *g = NULL;

    ck_assert_int_eq(tn_grad(&y, &one, 1, &x, &g, 1, &create), TN_OK);
    ck_assert(tn_tensor_requires_grad(g));
    ck_assert_int_eq(tn_backward(tn_sum(g)), TN_OK);
    HAS(tn_tensor_grad(leaf), 12, 18);
}

START_TEST(second_derivatives_follow_leaves_that_are_views_and_inner_tensors)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(2, 3), *view = with_grad(tn_narrow(VEC(1, 2, 3), 0, 1, 2));

    second(view, view);
    second(tn_mul_scalar(x, 1), x);
    FINE();
}
END_TEST

START_TEST(gradients_that_are_recorded_are_tensors_of_their_own)
{
    TN_SCOPE;
    tn_backward_options create = { .size = sizeof create, .create_graph = 1 };
    tn_tensor *a = LEAF(1, 2), *b = LEAF(3, 4), *y = tn_add(a, b), *seed = VEC(1, 1);

    tn_tensor_retain_grad(y);
    ck_assert_int_eq(tn_backward_from(&y, &seed, 1, &create), TN_OK);
    tn_grad_begin(false);
    tn_mul_scalar_(tn_tensor_grad(a), 5);
    tn_grad_end();
    HAS(tn_tensor_grad(a), 5, 5);
    HAS(tn_tensor_grad(b), 1, 1);
    HAS(tn_tensor_grad(y), 1, 1);
    HAS(seed, 1, 1);
    FINE();
}
END_TEST

START_TEST(a_leaf_that_was_frozen_meanwhile_gets_no_gradient)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *w = LEAF(3, 4), *y = tn_sum(tn_mul(x, w));
    tn_backward_options retain = { .size = sizeof retain, .retain_graph = 1 };

    tn_tensor_set_requires_grad(x, false);
    ck_assert_int_eq(tn_backward_from(&y, NULL, 1, &retain), TN_OK);
    ck_assert_ptr_eq(tn_tensor_grad(x), TN_NONE);
    HAS(tn_tensor_grad(w), 1, 2);
    tn_tensor_set_requires_grad(x, true);
    ck_assert_int_eq(tn_backward(y), TN_OK);
    HAS(tn_tensor_grad(x), 3, 4);
    FINE();
}
END_TEST

START_TEST(quotients_may_be_changed_in_place)
{
    TN_SCOPE;
    tn_tensor *a = LEAF(1, 6), *b = LEAF(2, 3), *y = tn_div(a, b);

    tn_neg_(y);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    HAS(tn_tensor_grad(a), -0.5, -1.0 / 3);
    HAS(tn_tensor_grad(b), 0.25, 2.0 / 3);
    y = tn_mul_scalar(a, 1);
    tn_div_(y, b);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    HAS(tn_tensor_grad(b), 0, 0);
    FINE();
}
END_TEST

START_TEST(gradients_past_what_is_not_finite)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(NAN, 1, -1), *m = LEAF(INFINITY, 1, INFINITY), *a = LEAF(1, 3, 2),
              *b = LEAF(2, 1, 2);

    tn_backward(tn_sum(tn_relu(x)));
    HAS(tn_tensor_grad(x), 1, 1, 0);
    tn_backward(tn_amax(m));
    HAS(tn_tensor_grad(m), 0.5, 0, 0.5);
    tn_backward(tn_sum(tn_mul(tn_maximum(a, b), VEC(INFINITY, INFINITY, 4))));
    ck_assert_double_eq(at(tn_tensor_grad(a), 0), 0);
    ck_assert_double_eq(at(tn_tensor_grad(a), 1), INFINITY);
    ck_assert_double_eq(at(tn_tensor_grad(a), 2), 2);
    ck_assert_double_eq(at(tn_tensor_grad(b), 0), INFINITY);
    ck_assert_double_eq(at(tn_tensor_grad(b), 1), 0);
    FINE();
}
END_TEST

START_TEST(flatten_of_one_dimension_is_the_tensor_itself)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2);

    ck_assert_ptr_eq(tn_flatten(x, 0, 0), x);
    ck_assert(tn_tensor_is_leaf(x));
    ck_assert_int_eq(tn_tensor_ndim(tn_flatten(tn_sum(x), 0, 0)), 1);
    FINE();
}
END_TEST

START_TEST(alpha_of_whole_numbers_is_a_whole_number)
{
    TN_SCOPE;
    tn_tensor *x = tn_tensor_from((int64_t[]){ 4, 6 }, TN_I64, TN_SHAPE(2));
    tn_add_options half = TN_ADD_OPTIONS;
    tn_sub_options half_less = TN_SUB_OPTIONS;

    half.alpha = half_less.alpha = TN_SCALAR(0.5);
    ck_assert_ptr_null(tn_add(x, x, half.alpha));
    FAILED(TN_ERR_RUNTIME, "alpha must not be a floating point number");
    ck_assert_ptr_null(tn_sub_(x, x, half_less.alpha));
    FAILED(TN_ERR_RUNTIME, "alpha must not be a floating point number");
    half.alpha = TN_SCALAR(-2);
    HAS(tn_add(x, x, half.alpha), -4, -6);
    FINE();
}
END_TEST

START_TEST(gradients_without_elements_add_up)
{
    TN_SCOPE;
    tn_tensor *x = with_grad(tn_tensor_full(TN_SHAPE(0, 2), 1, TN_F32, NULL));

    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(tn_backward(tn_sum(x)), TN_OK);
    ck_assert_int_eq(tn_tensor_numel(tn_tensor_grad(x)), 0);
    FINE();
}
END_TEST

START_TEST(products_of_expanded_operands_see_one_number)
{
    static const tn_dtype floats[] = { TN_F32, TN_F64 };

    for (int i = 0; i < 2; i++) {
        TN_SCOPE;
        tn_tensor *w = tn_cast(VEC(-1.5, 2, -1.5, 2, 1, 1), floats[i]);
        tn_tensor *x = tn_cast(tn_sum(VEC(2)), floats[i]);

        w = tn_view_to(w, TN_SHAPE(3, 2));
        HAS(tn_linear(expanded(x, 2), w, TN_NONE), 1, 1, 4);
        HAS(tn_linear(expanded(x, 2), tn_narrow(w, 0, 0, 1), TN_NONE), 1);
        HAS(tn_linear(tn_expand(x, TN_SHAPE(2, 2)), w, TN_NONE), 1, 1, 4, 1, 1, 4);
        HAS(tn_matmul(tn_expand(x, TN_SHAPE(3, 1)), tn_narrow(w, 0, 1, 1)), -3, 4, -3, 4, -3, 4);
        HAS(tn_matmul(w, tn_expand(x, TN_SHAPE(2, 1))), 1, 1, 4);
    }
    FINE();
}
END_TEST

static tn_status half_done(tn_function_ctx *ctx, void *user, tn_tensor *const *in, tn_tensor **out)
{
    (void)ctx;
    (void)user;
    out[0] = tn_mul_scalar(in[0], 2); /* and nothing for out[1] */
    return TN_OK;
}

START_TEST(a_function_that_forgot_an_output_leaves_nothing_behind)
{
    const tn_function function = { .name = "half", .forward = half_done };
    const tn_device *device = tn_device_find("cpu");
    tn_memory_stats before, after;

    ck_assert_int_eq(tn_device_memory(device, &before), TN_OK);
    {
        TN_SCOPE;
        tn_tensor *x = VEC(1, 2), *out[2];

        ck_assert_int_ne(tn_function_call(&function, NULL, &x, 1, out, 2), TN_OK);
        FAILED(TN_ERR_RUNTIME, "function half: its forward returned no output 1");
    }
    ck_assert_int_eq(tn_device_memory(device, &after), TN_OK);
    ck_assert_int_eq(after.live_blocks, before.live_blocks);
}
END_TEST

START_TEST(a_begin_without_memory_does_not_end_the_one_outside_it)
{
    const tn_device *meta = tn_device_find("meta"), *cpu = tn_device_find("cpu");
    int depth = 0;

    ck_assert_ptr_nonnull(meta);
    ck_assert_ptr_nonnull(cpu);
    tn_error_clear();
    while (!tn_failed()) { /* until the row has to grow */
        tn__memory_fail(1);
        tn_device_begin(meta);
        tn__memory_fail(0);
        depth++;
    }
    tn_error_clear();
    tn_device_begin(cpu);
    FAILED(TN_ERR_MEMORY, "the enclosing call ran out of memory");
    tn_device_end();
    tn_device_end(); /* the one that failed */
    if (depth > 1)
        ck_assert_ptr_eq(tn_default_device(), meta);
    while (--depth > 0)
        tn_device_end();
    ck_assert_ptr_eq(tn_default_device(), cpu);
    FINE();
    tn_device_end();
    FAILED(TN_ERR_RUNTIME, "no tn_device_begin");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("program-errors");
    TCase *tests = tcase_create("differential");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, an_expanded_view_whose_base_changed_adds_up_its_gradient);
    tcase_add_test(tests, a_graph_does_not_hold_itself);
    tcase_add_test(tests, second_derivatives_follow_leaves_that_are_views_and_inner_tensors);
    tcase_add_test(tests, gradients_that_are_recorded_are_tensors_of_their_own);
    tcase_add_test(tests, a_leaf_that_was_frozen_meanwhile_gets_no_gradient);
    tcase_add_test(tests, quotients_may_be_changed_in_place);
    tcase_add_test(tests, gradients_past_what_is_not_finite);
    tcase_add_test(tests, flatten_of_one_dimension_is_the_tensor_itself);
    tcase_add_test(tests, alpha_of_whole_numbers_is_a_whole_number);
    tcase_add_test(tests, gradients_without_elements_add_up);
    tcase_add_test(tests, products_of_expanded_operands_see_one_number);
    tcase_add_test(tests, a_function_that_forgot_an_output_leaves_nothing_behind);
    tcase_add_test(tests, a_begin_without_memory_does_not_end_the_one_outside_it);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
