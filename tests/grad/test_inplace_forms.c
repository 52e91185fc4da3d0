/* SPDX-License-Identifier: MIT
 *
 * In-place forms of operators that choose, scan, compare and multiply. The numbers are PyTorch's,
 * derivatives are compared with central differences. */
#include "tests/op/suite.h"

#define INTS(...)                                                                                  \
    tn_tensor_from((const int64_t[]){ __VA_ARGS__ }, TN_I64,                                       \
                   TN_SHAPE((int64_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))))
#define WITH(name, ...)                                                                            \
    &(tn_##name##_options)                                                                         \
    {                                                                                              \
        sizeof(tn_##name##_options), __VA_ARGS__                                                   \
    }
#define ROWS(tensor) tn_reshape(tensor, TN_SHAPE(2, -1))

/* 1 to 6 in two rows, every other element of memory, so that the gaps are checked too. */
static tn_tensor *table(void)
{
    tn_tensor *base = VEC(1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0);

    return tn_select(tn_reshape(base, TN_SHAPE(2, 3, 2)), 2, 0);
}

START_TEST(what_indices_choose_is_written_in_place)
{
    TN_SCOPE;
    tn_tensor *x = table(), *some[2];

    ck_assert_ptr_eq(tn_scatter_(x, ROWS(INTS(2, 0, 1, 1)), ROWS(VEC(7, 8, 9, 10)), 1), x);
    HAS(x, 8, 2, 7, 4, 10, 6);
    x = table();
    tn_scatter_add_(x, ROWS(INTS(1, 0, 1, 1, 1, 0)), ROWS(VEC(10, 20, 30, 40, 50, 60)), 0);
    HAS(x, 1, 22, 63, 54, 55, 36);
    x = table();
    tn_index_add_(x, INTS(2, 0, 2), ROWS(VEC(10, 20, 30, 40, 50, 60)), 1,
                  WITH(index_add, 1, TN_SCALAR(0.5)));
    FINE();
    HAS(x, 11, 2, 23, 29, 5, 56);
    x = table();
    some[0] = INTS(1, 0, 1), some[1] = INTS(0, -1, 0);
    tn_index_put_(x, VEC(0.5f, 0.25f, 2), some, 2, WITH(index_put, true));
    HAS(x, 1, 2, 3.25, 6.5, 5, 6);
    some[0] = INTS(1, 0);
    tn_index_put_(x, VEC(9, 8, 7), some, 1, NULL);
    HAS(x, 9, 8, 7, 9, 8, 7);
    FINE();
}
END_TEST

START_TEST(scans_triangles_products_and_comparisons_are_written_in_place)
{
    TN_SCOPE;
    tn_tensor *x, *i = INTS(3, 0, 2), *square = ROWS(VEC(1, 2, 3, 4));

    HAS(tn_cumsum_(table(), 1, NULL), 1, 3, 6, 4, 9, 15);
    HAS(tn_cumprod_(table(), 0, NULL), 1, 2, 3, 4, 10, 18);
    HAS(tn_cumsum_(tn_cast(i, TN_I32), 0, NULL), 3, 3, 5);
    HAS(tn_tril_(table(), NULL), 1, 0, 0, 4, 5, 0);
    HAS(tn_triu_(table(), WITH(triu, 1)), 0, 2, 3, 0, 0, 6);
    x = tn_copy(square);
    tn_addmm_(x, square, ROWS(VEC(5, 6, 7, 8)), WITH(addmm, TN_SCALAR(0.5), TN_SCALAR(2)));
    HAS(x, 38.5, 45, 87.5, 102);
    x = tn_copy(square);
    HAS(tn_addmm_(x, x, x, NULL), 8, 12, 18, 26);
    x = tn_reshape(tn_copy(square), TN_SHAPE(1, 2, 2));
    HAS(tn_baddbmm_(x, x, x, NULL), 8, 12, 18, 26);
    HAS(tn_lt_(table(), VEC(2, 2, 9)), 1, 0, 1, 0, 0, 1);
    HAS(tn_ge_(table(), VEC(2, 2, 9)), 0, 1, 0, 1, 1, 0);
    HAS(tn_logical_and_(VEC(0, 2, 3), VEC(1, 0, 5)), 0, 0, 1);
    HAS(tn_logical_not_(INTS(0, 2, 3)), 1, 0, 0);
    x = tn_eq_(INTS(0, 2, 3), VEC(0, 2.5f, 3));
    HAS(x, 1, 0, 1);
    ck_assert_int_eq(tn_tensor_dtype(x), TN_I64);
    x = tn_ne(VEC(0, 1), VEC(0, 0));
    ck_assert_ptr_eq(tn_eq_(x, tn_eq(VEC(0, 0), VEC(0, 0))), x);
    ck_assert_int_eq(tn_tensor_dtype(x), TN_BOOL);
    HAS(x, 0, 1);
    FINE();
}
END_TEST

START_TEST(what_is_read_in_another_order_may_not_be_what_is_written)
{
    TN_SCOPE;
    tn_tensor *x = VEC(1, 2, 3), *i = INTS(1, 0, 0), *other = VEC(5, 6, 7);

    ck_assert_ptr_null(tn_scatter_(x, i, x, 0));
    FAILED(TN_ERR_RUNTIME,
           "scatter: unsupported operation: src and the written-to tensor partly share");
    ck_assert_ptr_null(tn_scatter_(i, i, INTS(5, 6, 7), 0));
    FAILED(TN_ERR_RUNTIME, "index and the written-to tensor partly share");
    ck_assert_ptr_null(tn_scatter_add_(x, i, x, 0));
    FAILED(TN_ERR_RUNTIME, "src and the written-to tensor partly share");
    ck_assert_ptr_null(tn_index_add_(x, i, x, 0, NULL));
    FAILED(TN_ERR_RUNTIME, "src and the written-to tensor partly share");
    ck_assert_ptr_null(tn_index_put_(x, x, &i, 1, NULL));
    FAILED(TN_ERR_RUNTIME, "values and the written-to tensor partly share");
    ck_assert_ptr_null(tn_index_put_(i, INTS(5, 6, 7), &i, 1, NULL));
    FAILED(TN_ERR_RUNTIME, "indices and the written-to tensor partly share");
    HAS(x, 1, 2, 3);
    HAS(i, 1, 0, 0);
    HAS(tn_scatter(x, i, x, 0), 3, 1, 3); /* into a new tensor all is well */
    ck_assert_ptr_null(tn_cumsum_(tn_eq(x, x), 0, NULL));
    FAILED(TN_ERR_RUNTIME, "result type int64 can't be cast to the desired output type bool");
    ck_assert_ptr_null(tn_lt_(VEC(1, 2), ROWS(VEC(1, 2, 3, 4))));
    FAILED(TN_ERR_RUNTIME, "lt: ");
    ck_assert_ptr_null(tn_scatter_(x, INTS(0, 1, 3), other, 0)); /* nothing is half written */
    FAILED(TN_ERR_INDEX, "index 3 is out of bounds for dimension 0 with size 3");
    HAS(x, 1, 2, 3);
    ck_assert_ptr_null(tn_index_add_(x, INTS(0, 1, -1), other, 0, NULL));
    FAILED(TN_ERR_INDEX, "index -1 is out of bounds");
    HAS(x, 1, 2, 3);
    FINE();
}
END_TEST

/* ---- derivatives ----------------------------------------------------------------------------- */

static tn_tensor *input(double first)
{
    double values[6];

    for (int i = 0; i < 6; i++)
        values[i] = first + sin(1.7 * i + first) + 0.013 * i;
    return tn_tensor_from(values, TN_F64, TN_SHAPE(2, 3));
}

#define FORMS(X)                                                                                   \
    X(scatter, tn_scatter_(y, ROWS(INTS(2, 0, 1, 0)), b, 1))                                       \
    X(scatter_add, tn_scatter_add_(y, ROWS(INTS(2, 0, 1, 1)), b, 1))                               \
    X(index_add, tn_index_add_(y, INTS(1, 0), b, 0, WITH(index_add, 0, TN_SCALAR(-2))))            \
    X(index_put, tn_index_put_(y, b, (tn_tensor *[]){ INTS(1, 0) }, 1, NULL))                      \
    X(index_put_sum, tn_index_put_(y, b, (tn_tensor *[]){ INTS(1, 1) }, 1, WITH(index_put, true))) \
    X(tril, tn_mul_(tn_tril_(y, NULL), b))                                                         \
    X(triu, tn_mul_(tn_triu_(y, NULL), b))                                                         \
    X(cumsum, tn_mul_(tn_cumsum_(y, 1, NULL), b))                                                  \
    X(cumprod, tn_cumprod_(y, 1, NULL))                                                            \
    X(addmm, tn_addmm_(y, tn_matmul(b, tn_transpose(b, 0, 1)), b,                                  \
                       WITH(addmm, TN_SCALAR(0.5), TN_SCALAR(2))))                                 \
    X(addmm_view, tn_addmm_(tn_narrow(y, 1, 0, 2), b, tn_transpose(b, 0, 1), NULL))                \
    X(lt, tn_lt_(tn_narrow(y, 1, 0, 1), tn_narrow(b, 1, 0, 1)))                                    \
    X(logical_or, tn_logical_or_(tn_narrow(y, 1, 1, 1), tn_narrow(b, 1, 0, 1)))

#define CODE(name, expression)                                                                     \
    static tn_tensor *name##_code(tn_tensor *a, tn_tensor *b)                                      \
    {                                                                                              \
        tn_tensor *y = tn_mul_scalar(a, 1.5);                                                      \
                                                                                                   \
        return (expression) != NULL ? tn_mul(tn_mul(y, y), b) : NULL;                              \
    }
FORMS(CODE)

static const struct {
    const char *name;
    tn_tensor *(*code)(tn_tensor *a, tn_tensor *b);
} forms[] = {
#define FORM(name, expression) { #name, name##_code },
    FORMS(FORM)
};

static tn_status value_of(void *user, tn_tensor *const *in, tn_tensor **out)
{
    out[0] = forms[*(int *)user].code(in[0], in[1]);
    return out[0] != NULL ? TN_OK : tn_error_code();
}

START_TEST(derivatives_in_place_agree_with_central_differences)
{
    for (int i = 0; i < (int)(sizeof forms / sizeof forms[0]); i++) {
        TN_SCOPE;
        tn_tensor *in[2] = { input(0.4), input(1.1) };
        tn_status status = tn_gradcheck(value_of, &i, in, 2, 1, 1e-5, 1e-6);

        ck_assert_msg(status == TN_OK, "%s: %s", forms[i].name, tn_error_text());
        status = tn_gradgradcheck(value_of, &i, in, 2, 1, 1e-5, 1e-5);
        ck_assert_msg(status == TN_OK, "%s, second: %s", forms[i].name, tn_error_text());
    }
    FINE();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("in-place forms");
    TCase *tests = tcase_create("forms");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, what_indices_choose_is_written_in_place);
    tcase_add_test(tests, scans_triangles_products_and_comparisons_are_written_in_place);
    tcase_add_test(tests, what_is_read_in_another_order_may_not_be_what_is_written);
    tcase_add_test(tests, derivatives_in_place_agree_with_central_differences);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
