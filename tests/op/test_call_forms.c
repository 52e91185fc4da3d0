/* SPDX-License-Identifier: MIT
 *
 * Calls of operators with arguments that are left out, in C: a call has the defaults of the schema,
 * whatever it leaves out. */
#include "tests/op/suite.h"

/* Both tensors have the same dtype, shape and bits. */
static void same(tn_tensor *a, tn_tensor *b)
{
    ck_assert_msg(a != NULL && b != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_dtype(a), tn_tensor_dtype(b));
    ck_assert_int_eq(tn_equal(a, b), true);
}

START_TEST(options_at_the_end_may_be_left_out)
{
    TN_SCOPE;
    tn_tensor *x = tn_randn(TN_SHAPE(2, 3, 6, 6)), *w = tn_randn(TN_SHAPE(4, 3, 3, 3));
    tn_tensor *b = tn_randn(TN_SHAPE(4)), *row = VEC(3, -1, 2);
    int64_t dims[] = { 2, 3 };

    same(tn_sum(x), tn_sum(x, tn_no_ints(), false, TN_DTYPE_AUTO));
    same(tn_sum(x, TN_INTS(1)), tn_sum(x, TN_INTS(1), false));
    same(tn_sum(x, ((tn_ints){ dims, 2 }), true), tn_sum(x, TN_INTS(2, 3), true));
    ck_assert_int_eq(tn_tensor_dtype(tn_sum(x, tn_no_ints(), false, TN_F64)), TN_F64);
    HAS(tn_add(row, row), 6, -2, 4);
    HAS(tn_add(row, row, -0.5), 1.5, -0.5, 1);
    HAS(tn_clamp(row, 0), 3, 0, 2);
    HAS(tn_clamp(row, tn_scalar_none(), 2), 2, -1, 2);
    same(tn_conv2d(x, w), tn_conv2d(x, w, TN_NONE));
    same(tn_conv2d(x, w, b), tn_add(tn_conv2d(x, w), tn_reshape(b, TN_SHAPE(4, 1, 1))));
    same(tn_conv2d(x, w, b, TN_INTS(2), TN_INTS(1)),
         tn_conv2d(x, w, b, TN_INTS(2, 2), TN_INTS(1, 1), TN_INTS(1, 1), 1, NULL));
    same(tn_max_pool2d(x, TN_INTS(2)), tn_max_pool2d(x, TN_INTS(2, 2), TN_INTS(2, 2)));
    same(tn_squeeze(tn_unsqueeze(row, 0)), row);
    HAS(tn_slice(row, 0, 1), -1, 2);
    HAS(tn_slice(row, 0, INT64_MIN, INT64_MIN, 2), 3, 2);
    same(tn_flatten(x, 1), tn_reshape(x, TN_SHAPE(2, -1)));
    same(tn_gelu(x), tn_gelu(x, "none"));
    ck_assert_double_eq(tn_item(tn_argmax(row)), 0);
    ck_assert(!tn_failed());
}
END_TEST

START_TEST(results_come_before_the_options_that_may_be_left_out)
{
    TN_SCOPE;
    tn_tensor *x = VEC(3, -1, 2), *values, *indices, *inverse, *counts;

    ck_assert_int_eq(tn_topk(x, 2, &values, &indices), TN_OK);
    HAS(values, 3, 2);
    HAS(indices, 0, 2);
    ck_assert_int_eq(tn_topk(x, 2, &values, &indices, 0, false), TN_OK);
    HAS(values, -1, 2);
    ck_assert_int_eq(tn_sort(x, &values, &indices), TN_OK);
    HAS(values, -1, 2, 3);
    ck_assert_int_eq(tn_sort(x, &values, &indices, -1, true), TN_OK);
    HAS(values, 3, 2, -1);
    ck_assert_int_eq(tn_unique(VEC(2, 1, 2), &values, &inverse, &counts, true, true, true), TN_OK);
    HAS(values, 1, 2);
    HAS(inverse, 1, 0, 1);
    HAS(counts, 1, 2);
    ck_assert(!tn_failed());
}
END_TEST

START_TEST(calls_in_calls_and_in_place_have_defaults_too)
{
    TN_SCOPE;
    tn_tensor *x = VEC(1, 2), *(*all)(tn_tensor *, tn_ints, bool, tn_dtype) = tn_sum;

    HAS(tn_add(tn_add(x, tn_add(x, x)), tn_sum(tn_sum(x))), 6, 9);
    ck_assert_ptr_eq(tn_add_(x, x), x);
    HAS(x, 2, 4);
    ck_assert_ptr_eq(tn_add_(x, x, 2), x);
    HAS(x, 6, 12);
    HAS((tn_sum)(x, TN_INTS(0), true, TN_DTYPE_AUTO), 18);
    HAS(all(x, tn_no_ints(), false, TN_DTYPE_AUTO), 18);
    ck_assert(!tn_failed());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("forms of calls");
    TCase *tests = tcase_create("forms");

    tcase_add_test(tests, options_at_the_end_may_be_left_out);
    tcase_add_test(tests, results_come_before_the_options_that_may_be_left_out);
    tcase_add_test(tests, calls_in_calls_and_in_place_have_defaults_too);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
