/* SPDX-License-Identifier: MIT
 *
 * tn_equal and tn_allclose. */
#include "tests/op/suite.h"

START_TEST(equal_tensors_have_one_shape_and_equal_elements)
{
    TN_SCOPE;
    tn_tensor *x = VEC(1, 2, 3);

    ck_assert_int_eq(tn_equal(x, x), 1);
    ck_assert_int_eq(tn_equal(x, VEC(1, 2, 3)), 1);
    ck_assert_int_eq(tn_equal(x, VEC(1, 2, 4)), 0);
    ck_assert_int_eq(tn_equal(x, VEC(1, 2)), 0);
    ck_assert_int_eq(tn_equal(x, tn_reshape(x, TN_SHAPE(1, 3))), 0);
    ck_assert_int_eq(tn_equal(x, tn_cast(x, TN_F64)), 1);
    ck_assert_int_eq(tn_equal(VEC(NAN), VEC(NAN)), 0);
    ck_assert_int_eq(tn_equal(tn_narrow(x, 0, 0, 0), tn_narrow(x, 0, 1, 0)), 1);
    FINE();
}
END_TEST

START_TEST(close_tensors_are_within_the_tolerances)
{
    TN_SCOPE;
    tn_tensor *x = VEC(1, 2, 100);

    ck_assert_int_eq(tn_allclose(x, VEC(1, 2, 100.5), 1e-2, 0), 1);
    ck_assert_int_eq(tn_allclose(x, VEC(1, 2, 100.5), 1e-3, 0), 0);
    ck_assert_int_eq(tn_allclose(x, VEC(1, 2, 100.5), 0, 0.5), 1);
    ck_assert_int_eq(tn_allclose(VEC(1, 1, 1), VEC(1), 0, 0), 1); /* they broadcast */
    ck_assert_int_eq(tn_allclose(VEC(INFINITY), VEC(INFINITY), 1e-5, 1e-8), 1);
    ck_assert_int_eq(tn_allclose(VEC(NAN), VEC(NAN), 1e-5, 1e-8), 0);
    FINE();
}
END_TEST

START_TEST(errors_are_minus_one_with_a_message)
{
    TN_SCOPE;
    tn_tensor *x = VEC(1, 2, 3);

    ck_assert_int_eq(tn_allclose(x, VEC(1, 2), 0, 0), -1);
    ck_assert_int_eq(tn_failed(), 1);
    tn_error_clear();
    ck_assert_int_eq(tn_allclose(x, tn_cast(x, TN_F64), 0, 0), -1);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "isclose"));
    tn_error_clear();
    ck_assert_int_eq(tn_allclose(x, x, -1, 0), -1);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "rtol"));
    tn_error_clear();
    ck_assert_int_eq(tn_equal(x, NULL), -1);
    ck_assert_int_eq(tn_failed(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("equality");
    TCase *tests = tcase_create("equality");

    tcase_add_test(tests, equal_tensors_have_one_shape_and_equal_elements);
    tcase_add_test(tests, close_tensors_are_within_the_tolerances);
    tcase_add_test(tests, errors_are_minus_one_with_a_message);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
