/* SPDX-License-Identifier: MIT
 *
 * grouped_mm besides the cases of tests/oracle: derivatives of both orders, integers and complex
 * numbers, what comes after the last group, shapes without values, refused offsets. */
#include "tests/op/suite.h"

enum { ROWS, COLUMNS, BOTH, NONE, FORMS };

static const char *const names[FORMS] = { "rows", "columns", "both", "none" };

/* Shapes of both factors for each form. A dimension of size 6 is divided into groups of 2, 0 and 3,
 * with one element after the last group; in the last form each factor has one matrix per group. */
static const int64_t shapes[FORMS][2][3] = {
    { { 6, 2, -1 }, { 3, 2, 3 } },
    { { 3, 2, 2 }, { 2, 6, -1 } },
    { { 2, 6, -1 }, { 6, 3, -1 } },
    { { 3, 2, 2 }, { 3, 2, 3 } },
};

static tn_tensor *ends(const int64_t *at, int64_t count)
{
    return tn_tensor_from(at, TN_I64, TN_SHAPE(count));
}

#define ENDS(...)                                                                                  \
    ends((const int64_t[]){ __VA_ARGS__ },                                                         \
         (int64_t)(sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)))

static tn_tensor *offsets(int form)
{
    return form == NONE ? TN_NONE : ENDS(2, 2, 5);
}

static tn_ints shape_of(const int64_t *size)
{
    return (tn_ints){ size, size[2] < 0 ? 2 : 3 };
}

static tn_tensor *factor(int form, int which, tn_dtype dtype)
{
    double re[36], im[36];
    tn_ints shape = shape_of(shapes[form][which]);
    tn_tensor *x;

    for (int i = 0; i < 36; i++) {
        re[i] = sin(1.7 * i + which);
        im[i] = cos(2.3 * i + which);
    }
    x = tn_tensor_from(re, TN_F64, shape);
    return with_grad(dtype == TN_F64 ? x
                                     : tn_detach(tn_complex(x, tn_tensor_from(im, TN_F64, shape))));
}

static tn_status product(void *user, tn_tensor *const *in, tn_tensor **out)
{
    out[0] = tn_grouped_mm(in[0], in[1], offsets(*(int *)user));
    return out[0] != NULL ? TN_OK : tn_error_last_code();
}

START_TEST(derivatives_of_both_orders_agree_with_central_differences)
{
    for (int form = 0; form < FORMS; form++)
        for (int complex = 0; complex < 2; complex++) {
            TN_SCOPE;
            tn_dtype dtype = complex ? TN_C128 : TN_F64;
            tn_tensor *in[2] = { factor(form, 0, dtype), factor(form, 1, dtype) };

            ck_assert_msg(tn_gradcheck(product, &form, in, 2, 1, 1e-5, 1e-6) == TN_OK,
                          "%s of %s: %s", names[form], tn_dtype_name(dtype), tn_error_text());
            ck_assert_msg(tn_gradgradcheck(product, &form, in, 2, 1, 1e-5, 1e-6) == TN_OK,
                          "%s of %s: %s", names[form], tn_dtype_name(dtype), tn_error_text());
        }
    FINE();
}
END_TEST

/* Each group by a matmul of its own. */
START_TEST(groups_are_products_of_their_own)
{
    TN_SCOPE;
    tn_tensor *a = factor(ROWS, 0, TN_C128), *b = factor(ROWS, 1, TN_C128);
    tn_tensor *y = tn_grouped_mm(a, b, ENDS(2, 2, 5));
    tn_tensor *last = tn_matmul(tn_narrow(a, 0, 2, 3), tn_select(b, 0, 2));

    ck_assert_msg(y != NULL && last != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_equal(tn_narrow(y, 0, 2, 3), last), 1);
    ck_assert_int_eq(tn_equal(tn_narrow(y, 0, 5, 1), tn_mul_scalar(tn_narrow(last, 0, 0, 1), 0)),
                     1);
    a = tn_tensor_from((const int64_t[]){ 1, 2, 3, 4, 5, 6 }, TN_I64, TN_SHAPE(3, 2));
    b = tn_tensor_from((const int64_t[]){ 1, 0, 0, 1, 10, 0, 0, 100 }, TN_I64, TN_SHAPE(2, 2, 2));
    HAS(tn_grouped_mm(a, b, ENDS(1, 3)), 1, 2, 30, 400, 50, 600);
    HAS(tn_grouped_mm(a, b, tn_cast(ENDS(2, 2), TN_I32)), 1, 2, 3, 4, 0, 0);
    FINE();
}
END_TEST

/* Rows that belong to no group do not affect the results, not even as NaN times 0. */
START_TEST(what_comes_after_the_last_group_is_ignored)
{
    TN_SCOPE;
    tn_tensor *a = with_grad(tn_reshape(VEC(1, 2, NAN, INFINITY), TN_SHAPE(2, 2)));
    tn_tensor *b = with_grad(tn_reshape(VEC(3, 4, 5, 6), TN_SHAPE(1, 2, 2)));
    tn_tensor *y = tn_grouped_mm(a, b, ENDS(1)), *grads[2];
    tn_tensor *both = tn_grouped_mm(tn_transpose(a, 0, 1), a, ENDS(1));

    HAS(y, 13, 16, 0, 0);
    HAS(both, 1, 2, 2, 4);
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    grads[0] = tn_tensor_grad(a);
    grads[1] = tn_tensor_grad(b);
    HAS(grads[0], 7, 11, 0, 0);
    HAS(grads[1], 1, 1, 2, 2);
    FINE();
}
END_TEST

START_TEST(shapes_without_values)
{
    static const int64_t expected[FORMS][3] = {
        { 6, 3, -1 }, { 2, 6, -1 }, { 3, 2, 3 }, { 3, 2, 3 }
    };
    const tn_device *meta = tn_device_find("meta");

    for (int form = 0; form < FORMS; form++) {
        TN_SCOPE;
        tn_tensor *a = tn_tensor_empty(shape_of(shapes[form][0]), TN_F32, meta);
        tn_tensor *b = tn_tensor_empty(shape_of(shapes[form][1]), TN_F32, meta);
        tn_tensor *offs = form == NONE ? TN_NONE : tn_tensor_empty(TN_SHAPE(3), TN_I64, meta);
        tn_tensor *y = tn_grouped_mm(a, b, offs);
        tn_ints shape = shape_of(expected[form]);

        ck_assert_msg(y != NULL, "%s: %s", names[form], tn_error_text());
        ck_assert_int_eq(tn_tensor_ndim(y), shape.count);
        for (int64_t d = 0; d < shape.count; d++)
            ck_assert_int_eq(tn_tensor_size(y, (int)d), shape.at[d]);
    }
    FINE();
}
END_TEST

START_TEST(wrong_calls_say_what_is_wrong)
{
    TN_SCOPE;
    tn_tensor *a = factor(ROWS, 0, TN_F64), *b = factor(ROWS, 1, TN_F64);
    tn_tensor *a3 = factor(COLUMNS, 0, TN_F64), *b2 = factor(COLUMNS, 1, TN_F64);

    ck_assert_ptr_null(tn_grouped_mm(a, b, ENDS(3, 2, 6)));
    FAILED(TN_ERR_VALUE, "grouped_mm: offs[1]: out of range, got 2; expected ends that never "
                         "decrease and are from 0 to 6");
    ck_assert_ptr_null(tn_grouped_mm(a, b, ENDS(-1, 2, 6)));
    FAILED(TN_ERR_VALUE, "grouped_mm: offs[0]: out of range, got -1");
    ck_assert_ptr_null(tn_grouped_mm(a, b, ENDS(1, 2, 7)));
    FAILED(TN_ERR_VALUE, "grouped_mm: offs[2]: out of range, got 7");
    ck_assert_ptr_null(tn_grouped_mm(a3, b2, ENDS(1, 7, 3)));
    FAILED(TN_ERR_VALUE, "grouped_mm: offs[1]: out of range, got 7");
    ck_assert_ptr_null(tn_grouped_mm(a, b, ENDS(1, INT64_MIN, 3)));
    FAILED(TN_ERR_VALUE, "grouped_mm: offs[1]: out of range, got -9223372036854775808");
    ck_assert_ptr_null(tn_grouped_mm(a, b, ENDS(1, 6)));
    FAILED(TN_ERR_RUNTIME, "grouped_mm: offs: wrong size, got 2; expected 3, one end for each "
                           "group");
    ck_assert_ptr_null(tn_grouped_mm(a, b, TN_NONE));
    FAILED(TN_ERR_RUNTIME, "grouped_mm: offs: it is absent; expected");
    ck_assert_ptr_null(tn_grouped_mm(a3, b, ENDS(1, 2, 3)));
    FAILED(TN_ERR_RUNTIME, "grouped_mm: offs: got a tensor; expected");
    ck_assert_ptr_null(tn_grouped_mm(a, b, tn_reshape(ENDS(1, 2, 6), TN_SHAPE(1, 3))));
    FAILED(TN_ERR_RUNTIME, "grouped_mm: offs: wrong number of dimensions, got 2; expected 1");
    ck_assert_ptr_null(tn_grouped_mm(b2, b, ENDS(1, 1, 2)));
    FAILED(TN_ERR_RUNTIME, "grouped_mm: inputs: wrong shape, got [2, 6] and [3, 2, 3]; expected");
    ck_assert_ptr_null(tn_grouped_mm(tn_select(a, 0, 0), b, ENDS(1, 1, 2)));
    FAILED(TN_ERR_RUNTIME, "grouped_mm: inputs: wrong shape, got [2] and [3, 2, 3]; expected");
    ck_assert_ptr_null(tn_grouped_mm(a, tn_cast(b, TN_F32), ENDS(1, 1, 2)));
    FAILED(TN_ERR_RUNTIME, "same dtype");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("grouped_mm");
    TCase *tcase = tcase_create("grouped_mm");

    tcase_add_test(tcase, derivatives_of_both_orders_agree_with_central_differences);
    tcase_add_test(tcase, groups_are_products_of_their_own);
    tcase_add_test(tcase, what_comes_after_the_last_group_is_ignored);
    tcase_add_test(tcase, shapes_without_values);
    tcase_add_test(tcase, wrong_calls_say_what_is_wrong);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
