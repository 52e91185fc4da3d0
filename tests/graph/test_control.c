/* SPDX-License-Identifier: MIT
 *
 * tn_cond and tn_loop: eager calls, and what they refuse. */
#include "tests/graph/control.h"
#include "tests/graph/suite.h"

static tn_tensor *flag(bool value)
{
    return tn_tensor_full(TN_SCALAR_SHAPE, value, TN_BOOL, NULL);
}

static tn_status twice(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                       int64_t n_out)
{
    int *calls = user;

    ck_assert_int_eq(n_in, 1);
    ck_assert_int_eq(n_out, 1);
    ++*calls;
    out[0] = tn_mul_scalar(in[0], TN_SCALAR(2.0));
    return TN_OK;
}

static tn_status same(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                      int64_t n_out)
{
    (void)user, (void)n_in, (void)n_out;
    out[0] = in[0];
    return TN_OK;
}

static tn_status fails(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                       int64_t n_out)
{
    (void)user, (void)in, (void)n_in, (void)out, (void)n_out;
    return TN_ERR_REFUSED;
}

static tn_status forgets(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                         int64_t n_out)
{
    (void)user, (void)in, (void)n_in, (void)out, (void)n_out;
    return TN_OK;
}

static tn_status ever(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                      int64_t n_out)
{
    (void)user, (void)in, (void)n_in, (void)n_out;
    out[0] = flag(true);
    return TN_OK;
}

static tn_status total(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                       int64_t n_out)
{
    (void)user, (void)n_in, (void)n_out;
    out[0] = tn_sum(in[0]);
    return TN_OK;
}

START_TEST(cond_calls_one_function)
{
    TN_SCOPE;
    tn_tensor *x = numbers(1), *y;
    int calls = 0;
    ck_ok(tn_cond(flag(true), twice, same, &x, 1, &y, 1, &calls));
    ck_same(y, tn_mul_scalar(x, TN_SCALAR(2.0)));
    ck_ok(tn_cond(flag(false), twice, same, &x, 1, &y, 1, &calls));
    ck_same(y, x);
    ck_assert_ptr_ne(y, x); /* a result is not an input */
    tn_add_scalar_(y, TN_SCALAR(1.0));
    ck_same(x, numbers(1));
    ck_assert_int_eq(calls, 1);
}
END_TEST

START_TEST(cond_has_the_gradient_of_the_function_that_ran)
{
    TN_SCOPE;
    tn_tensor *x = tn_parameter(numbers(1), true), *y;
    int calls = 0;
    ck_ok(tn_cond(flag(true), twice, same, &x, 1, &y, 1, &calls));
    ck_ok(tn_backward(tn_sum(y)));
    ck_same(tn_tensor_grad(x), tn_tensor_full(TN_SHAPE(2, 3), 2, TN_F32, NULL));
    ck_ok(tn_cond(flag(false), twice, same, &x, 1, &y, 1, &calls)); /* a copy has a gradient, too */
    ck_ok(tn_backward(tn_sum(y)));
    ck_same(tn_tensor_grad(x), tn_tensor_full(TN_SHAPE(2, 3), 3, TN_F32, NULL));
}
END_TEST

START_TEST(loops_stop_at_the_test_and_at_the_limit)
{
    TN_SCOPE;
    tn_tensor *x = numbers(1), *y, *expected = x;
    int calls = 0;
    ck_ok(tn_loop(ever, twice, 3, &x, &y, 1, &calls));
    for (int i = 0; i < 3; i++)
        expected = tn_mul_scalar(expected, TN_SCALAR(2.0));
    ck_same(y, expected);
    ck_assert_int_eq(calls, 3);
    ck_ok(tn_loop(ever, twice, 0, &x, &y, 1, &calls));
    ck_same(y, x);
    ck_assert_ptr_ne(y, x);
    ck_ok(tn_loop(is_small, twice, -1, &x, &y, 1, &calls)); /* 91 is, 364 is, 1456 is not */
    ck_same(y, tn_mul_scalar(x, TN_SCALAR(4.0)));
    ck_assert_int_eq(calls, 5);
}
END_TEST

START_TEST(loops_have_the_gradients_of_their_steps)
{
    TN_SCOPE;
    tn_tensor *x = tn_parameter(numbers(1), true), *y;
    int calls = 0;
    ck_ok(tn_loop(ever, twice, 5, &x, &y, 1, &calls));
    ck_ok(tn_backward(tn_sum(y)));
    ck_same(tn_tensor_grad(x), tn_tensor_full(TN_SHAPE(2, 3), 32, TN_F32, NULL));
}
END_TEST

START_TEST(failures_name_the_function)
{
    TN_SCOPE;
    tn_tensor *x = numbers(1), *y = x;
    ck_assert_int_eq(tn_cond(flag(true), fails, same, &x, 1, &y, 1, NULL), TN_ERR_REFUSED);
    ck_error(TN_ERR_REFUSED, "tn_cond: then: ", "recorded no message");
    ck_assert_ptr_null(y);
    tn_cond(flag(false), same, forgets, &x, 1, &y, 1, NULL);
    ck_error(TN_ERR_RUNTIME, "tn_cond: else: result 0", "");
    tn_loop(fails, same, -1, &x, &y, 1, NULL);
    ck_error(TN_ERR_REFUSED, "tn_loop: test: ", "recorded no message");
    tn_loop(same, same, -1, &x, &y, 1, NULL);
    ck_error(TN_ERR_TYPE, "tn_loop: test: result: wrong dtype or shape, got float32[2, 3]",
             "expected one element of bool");
    tn_loop(ever, total, -1, &x, &y, 1, NULL);
    ck_error(TN_ERR_VALUE, "tn_loop: body: result 0: wrong dtype or shape, got float32[]",
             "expected float32[2, 3]");
    ck_assert_ptr_null(y);
    tn_cond(x, same, same, &x, 1, &y, 1, NULL);
    ck_error(TN_ERR_TYPE, "tn_cond: predicate: wrong dtype or shape, got float32[2, 3]", "bool");
    tn_cond(TN_NONE, same, same, &x, 1, &y, 1, NULL);
    ck_error(TN_ERR_TYPE, "tn_cond: predicate", "TN_NONE");
    tn_cond(flag(true), NULL, same, &x, 1, &y, 1, NULL);
    ck_error(TN_ERR_VALUE, "tn_cond: function", "NULL");
    tn_cond(flag(true), same, same, &x, 1, &y, 0, NULL);
    ck_error(TN_ERR_VALUE, "tn_cond: wrong count", "0 results");
    tn_loop(ever, same, -1, (tn_tensor *[]){ TN_NONE }, &y, 1, NULL);
    ck_error(TN_ERR_TYPE, "tn_loop: in", "TN_NONE");
}
END_TEST

/* A branch that fails in a module has the path of the module in its message. */
START_TEST(failures_have_the_path)
{
    TN_SCOPE;
    tn_module *inner = own(cond_forward), *outer = tn_module_plain("Outer");
    ck_ok(tn_module_add_child(outer, "inner", inner));
    ck_assert_ptr_null(
        tn_module_call_child(outer, "inner", tn_tensor_full(TN_SHAPE(2, 2), 9, TN_F32, NULL)));
    ck_error(TN_ERR_RUNTIME, "tn_cond: then: ", "\"fc\" (Linear)");
    tn_module_drop(inner);
    tn_module_drop(outer);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { cond_calls_one_function,
                                   cond_has_the_gradient_of_the_function_that_ran,
                                   loops_stop_at_the_test_and_at_the_limit,
                                   loops_have_the_gradients_of_their_steps,
                                   failures_name_the_function,
                                   failures_have_the_path,
                                   NULL };
    return suite_run("control", tests);
}
