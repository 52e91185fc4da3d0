/* SPDX-License-Identifier: MIT
 *
 * Inference mode, and detach in place. */
#include "tests/op/suite.h"

START_TEST(in_inference_mode_nothing_is_recorded_whatever_grad_mode_says)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *y, *z;

    ck_assert(!tn_inference_enabled());
    tn_inference_begin(true);
    ck_assert(tn_inference_enabled() && !tn_grad_enabled());
    tn_grad_begin(true);
    ck_assert(!tn_grad_enabled());
    y = tn_mul(x, x);
    tn_grad_end();
    tn_inference_begin(false);
    ck_assert(!tn_inference_enabled() && tn_grad_enabled());
    z = tn_mul(x, x);
    tn_inference_end();
    ck_assert(tn_inference_enabled());
    tn_inference_end();
    ck_assert(!tn_inference_enabled() && tn_grad_enabled());
    ck_assert(!tn_tensor_requires_grad(y) && tn_tensor_is_inference(y));
    ck_assert(tn_tensor_requires_grad(z) && !tn_tensor_is_inference(z));
    ck_assert(!tn_tensor_is_inference(x));
    HAS(y, 1, 4);
    FINE();
    tn_inference_end();
    FAILED(TN_ERR_RUNTIME, "tn_inference_end: no tn_inference_begin");
    ck_assert(tn_grad_enabled());
}
END_TEST

START_TEST(what_was_made_in_inference_mode_takes_no_part_in_a_graph)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *made, *view, *normal;

    tn_inference_begin(true);
    made = VEC(3, 4);
    view = tn_narrow(made, 0, 0, 1);
    tn_add_(made, made); /* inside it may be changed */
    ck_assert(tn_tensor_is_inference(view));
    ck_assert_int_eq(tn_tensor_set_requires_grad(VEC(1), true), TN_OK);
    tn_inference_end();
    HAS(made, 6, 8);
    FINE();

    ck_assert_ptr_null(tn_add_(made, made));
    FAILED(TN_ERR_RUNTIME, "Inplace update to inference tensor outside InferenceMode");
    ck_assert_ptr_null(tn_fill_(tn_narrow(made, 0, 0, 1), 1));
    FAILED(TN_ERR_RUNTIME, "Inplace update to inference tensor");
    ck_assert_int_eq(tn_tensor_set_requires_grad(made, true), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "Setting requires_grad=True on inference tensor");
    ck_assert_uint_eq(tn_tensor_version(made), 0);
    FAILED(TN_ERR_RUNTIME, "Inference tensors do not track version counter");
    ck_assert_ptr_null(tn_mul(x, made));
    FAILED(TN_ERR_RUNTIME,
           "mul: input 1: Inference tensors cannot be saved for backward; this one");
    HAS(made, 6, 8);

    /* computing with it is fine, also together with a gradient that does not need it */
    HAS(tn_mul(made, made), 36, 64);
    ck_assert(!tn_tensor_is_inference(tn_mul(made, made)));
    ck_assert(tn_tensor_requires_grad(tn_add(x, made)));
    normal = tn_clone(made);
    ck_assert(!tn_tensor_is_inference(normal));
    ck_assert_int_eq(tn_backward(tn_sum(tn_mul(x, normal))), TN_OK);
    HAS(tn_tensor_grad(x), 6, 8);
    FINE();
}
END_TEST

START_TEST(a_view_of_a_normal_tensor_stays_a_normal_one_in_inference_mode)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(1, 2), *y = tn_mul_scalar(x, 2), *view, *plain = VEC(5, 6);
    uint64_t version = tn_tensor_version(plain);

    tn_inference_begin(true);
    view = tn_narrow(y, 0, 0, 1);
    tn_add_(plain, plain); /* a normal tensor may be changed, which its version counts */
    tn_inference_end();
    ck_assert_uint_gt(tn_tensor_version(plain), version);
    ck_assert(!tn_tensor_is_inference(view) && !tn_tensor_is_inference(plain));
    ck_assert_ptr_null(tn_mul_(view, LEAF(3)));
    FAILED(TN_ERR_RUNTIME, "A view was created in no_grad mode or inference mode");
    HAS(plain, 10, 12);
}
END_TEST

START_TEST(detach_in_place_makes_a_leaf)
{
    TN_SCOPE;
    int64_t nodes = tn_grad_node_count();
    tn_tensor *x = LEAF(1, 2), *y = tn_mul(x, x), *view = tn_narrow(y, 0, 0, 1);

    ck_assert_ptr_null(tn_detach_(view));
    FAILED(TN_ERR_RUNTIME, "Can't detach views in-place");
    ck_assert_ptr_eq(tn_detach_(y), y);
    ck_assert(!tn_tensor_requires_grad(y) && tn_tensor_is_leaf(y));
    ck_assert_ptr_null(tn_detach_(TN_NONE));
    tn_error_clear();
    ck_assert_int_eq(tn_backward(tn_sum(tn_mul(view, view))), TN_OK);
    HAS(tn_tensor_grad(x), 4, 0); /* the view kept its history */

    ck_assert_int_eq(tn_tensor_set_requires_grad(y, true), TN_OK);
    ck_assert_int_eq(tn_backward(tn_sum(tn_mul_scalar(y, 3))), TN_OK);
    HAS(tn_tensor_grad(y), 3, 3);
    ck_assert_ptr_eq(tn_detach_(y),
                     y); /* a leaf: it requires nothing any more, its gradient stays */
    ck_assert(!tn_tensor_requires_grad(y));
    HAS(tn_tensor_grad(y), 3, 3);
    tn_mul_(y, y);
    HAS(y, 1, 16);
    FINE();
    ck_assert_int_ge(tn_grad_node_count(), nodes);
}
END_TEST

/* A view that was made a leaf is a leaf for in-place operators, although its base is none. */
START_TEST(a_view_that_was_made_to_require_a_gradient_is_a_leaf)
{
    TN_SCOPE;
    tn_tensor *x = VEC(1, 2, 3), *view = with_grad(tn_narrow(x, 0, 1, 2));

    ck_assert_ptr_null(tn_mul_(view, VEC(2, 2)));
    FAILED(TN_ERR_RUNTIME, "a leaf Variable that requires grad is being used in an in-place");
    HAS(x, 1, 2, 3);
}
END_TEST

/* A constant factor is not held for a gradient that is not requested: it may be changed. */
START_TEST(a_product_keeps_only_what_a_wanted_gradient_needs)
{
    TN_SCOPE;
    tn_tensor *x = LEAF(2, 3), *c = VEC(5, 7), *y = tn_mul(x, c), *free = tn_mul_scalar(x, 1), *z;

    z = tn_mul(free, c); /* gradient of x: c alone */
    tn_add_(free, VEC(1, 1));
    ck_assert_int_eq(tn_backward(tn_sum(tn_add(y, z))), TN_OK);
    HAS(tn_tensor_grad(x), 10, 14);
    z = tn_mul(x, c);
    tn_add_(c, c);
    ck_assert_int_eq(tn_backward(tn_sum(z)), TN_ERR_RUNTIME);
    FAILED(TN_ERR_RUNTIME, "modified by an inplace operation");
    z = tn_bmm(tn_reshape(x, TN_SHAPE(1, 1, 2)), tn_reshape(c, TN_SHAPE(1, 2, 1)));
    FINE();
    ck_assert_int_eq(tn_backward(z), TN_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("modes");
    TCase *all = tcase_create("all");

    tcase_add_test(all, in_inference_mode_nothing_is_recorded_whatever_grad_mode_says);
    tcase_add_test(all, what_was_made_in_inference_mode_takes_no_part_in_a_graph);
    tcase_add_test(all, a_view_of_a_normal_tensor_stays_a_normal_one_in_inference_mode);
    tcase_add_test(all, detach_in_place_makes_a_leaf);
    tcase_add_test(all, a_view_that_was_made_to_require_a_gradient_is_a_leaf);
    tcase_add_test(all, a_product_keeps_only_what_a_wanted_gradient_needs);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
