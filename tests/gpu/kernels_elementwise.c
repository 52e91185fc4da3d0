/* SPDX-License-Identifier: MIT
 *
 * Elementwise operators: one and two inputs, every type and layout, in place, infinities and NaN,
 * empty tensors and many dimensions. */
#include "tests/gpu/kernels.h"

struct binary {
    const char *op;
    uint64_t dtypes;
    double (*f)(double a, double b);
};

static double f_add(double a, double b)
{
    return a + 2 * b;
}
static double f_sub(double a, double b)
{
    return a - 3 * b;
}
static double f_mul(double a, double b)
{
    return a * b;
}
static double f_div(double a, double b)
{
    return a / b;
}
static double f_maximum(double a, double b)
{
    return a != a || a > b ? a : b;
}
static double f_relu_grad(double a, double b)
{
    return b <= 0 ? 0 : a;
}
static const tn_add_options add_options = { sizeof add_options, TN_SCALAR_INIT_INT(2) };
static const tn_sub_options sub_options = { sizeof sub_options, TN_SCALAR_INIT_INT(3) };
static const struct binary binaries[] = { { "add", FLOATS | INTS, f_add },
                                          { "sub", FLOATS | INTS, f_sub },
                                          { "mul", FLOATS | INTS | TN_BIT(TN_BOOL), f_mul },
                                          { "div", FLOATS, f_div },
                                          { "maximum", FLOATS | INTS | TN_BIT(TN_BOOL), f_maximum },
                                          { "relu_grad", FLOATS, f_relu_grad } };

static const void *options_of(const char *op)
{
    return strcmp(op, "add") == 0   ? (const void *)&add_options
           : strcmp(op, "sub") == 0 ? (const void *)&sub_options
                                    : NULL;
}

static void try_binary(const struct binary *row, tn_dtype dtype, enum layout la, enum layout lb,
                       enum layout ly)
{
    struct array *a = array_new(&here, dtype, 3, shape3, la),
                 *b = array_new(&here, dtype, 3, shape3, lb);
    struct array *y = array_new(&here, dtype, 3, shape3, ly);
    struct array *const in[] = { a, b }, *const out[] = { y };

    numbers(a, 1);
    numbers(b, 2);
    array_up(y);
    CALL(&here, row->op, options_of(row->op), in, out);
    array_down(y);
    for (int64_t i = 0; i < COUNT3; i++)
        close_to(array_get(y, i), wrapped(dtype, row->f(array_get(a, i), array_get(b, i))),
                 tolerance(dtype), row->op, i);
    array_drop(a);
    array_drop(b);
    array_drop(y);
}

START_TEST(operators_of_two_inputs_work_in_every_type_and_layout)
{
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
        for (int dtype = 0; dtype < TN_DTYPE_COUNT; dtype++)
            if (binaries[i].dtypes & tried & TN_BIT(dtype))
                try_binary(&binaries[i], (tn_dtype)dtype, (enum layout)(dtype % LAYOUTS),
                           (enum layout)((dtype + 1) % LAYOUTS), (enum layout)(dtype % 3));
    for (int la = 0; la < LAYOUTS; la++)
        for (int lb = 0; lb < LAYOUTS; lb++)
            for (int ly = 0; ly < REPEATED; ly++)
                try_binary(&binaries[0], TN_F32, (enum layout)la, (enum layout)lb, (enum layout)ly);
}
END_TEST

START_TEST(inputs_broadcast_from_their_own_shapes)
{
    const int64_t a_shape[] = { 3, 1, 7 }, b_shape[] = { 5, 1 };
    struct array *a = array_new(&here, TN_F32, 3, a_shape, TURNED),
                 *b = array_new(&here, TN_F32, 2, b_shape, GAPS);
    struct array *y = array_new(&here, TN_F32, 3, shape3, TURNED);
    struct array *const in[] = { a, b }, *const out[] = { y };

    numbers(a, 1);
    numbers(b, 2);
    CALL(&here, "mul", NULL, in, out);
    array_down(y);
    for (int64_t i = 0; i < COUNT3; i++)
        close_to(array_get(y, i), array_get(a, i / 35 * 7 + i % 7) * array_get(b, i / 7 % 5), 0,
                 "mul", i);
    array_drop(a);
    array_drop(b);
    array_drop(y);
}
END_TEST

static double f_neg(double a)
{
    return -a;
}
static double f_relu(double a)
{
    return a < 0 ? 0 : a;
}
static double f_sigmoid(double a)
{
    return 1 / (1 + exp(-a));
}
static const struct {
    const char *op;
    uint64_t dtypes;
    double (*f)(double a);
    bool positive;
} unaries[] = { { "neg", FLOATS | (INTS & ~TN_BIT(TN_U8)), f_neg, false },
                { "exp", FLOATS, exp, false },
                { "log", FLOATS, log, true },
                { "sqrt", FLOATS, sqrt, true },
                { "relu", FLOATS | INTS, f_relu, false },
                { "sigmoid", FLOATS, f_sigmoid, false } };

START_TEST(operators_of_one_input_work_in_every_type_and_in_place)
{
    for (size_t r = 0; r < sizeof unaries / sizeof *unaries; r++)
        for (int dtype = 0; dtype < TN_DTYPE_COUNT; dtype++) {
            struct array *x, *y, *before;

            if (!(unaries[r].dtypes & tried & TN_BIT(dtype)))
                continue;
            x = array_new(&here, (tn_dtype)dtype, 3, shape3, (enum layout)(dtype % 3));
            before = array_new(&here, (tn_dtype)dtype, 3, shape3, PLAIN);
            y = dtype % 2
                    ? x
                    : array_new(&here, (tn_dtype)dtype, 3, shape3, (enum layout)((dtype + 1) % 3));
            numbers(x, 1);
            for (int64_t i = 0; i < COUNT3; i++) {
                if (unaries[r].positive)
                    array_set(x, i, fabs(array_get(x, i)));
                array_set(before, i, array_get(x, i));
            }
            array_up(x);
            {
                struct array *const in[] = { x }, *const out[] = { y };
                CALL(&here, unaries[r].op, NULL, in, out);
            }
            array_down(y);
            for (int64_t i = 0; i < COUNT3; i++)
                close_to(array_get(y, i), unaries[r].f(array_get(before, i)),
                         tolerance((tn_dtype)dtype), unaries[r].op, i);
            if (y != x)
                array_drop(y);
            array_drop(before);
            array_drop(x);
        }
}
END_TEST

START_TEST(infinity_and_nan_go_where_they_should)
{
    static const double xs[] = { -INFINITY, -1000, -0.0, 0.0, 1000, INFINITY, NAN };
    const int64_t shape[] = { 7 };
    struct array *x = array_new(&here, TN_F32, 1, shape, PLAIN),
                 *y = array_new(&here, TN_F32, 1, shape, PLAIN);
    struct array *one = array_new(&here, TN_F32, 1, (const int64_t[]){ 1 }, PLAIN);
    struct array *const in[] = { x }, *const out[] = { y }, *const two[] = { one, x };

    for (int i = 0; i < 7; i++)
        array_set(x, i, xs[i]);
    array_up(x);
    CALL(&here, "sigmoid", NULL, in, out);
    array_down(y);
    for (int i = 0; i < 7; i++)
        close_to(array_get(y, i), f_sigmoid(xs[i]), 1e-6, "sigmoid", i);
    CALL(&here, "relu", NULL, in, out);
    array_down(y);
    for (int i = 0; i < 7; i++)
        close_to(array_get(y, i), f_relu(xs[i]), 0, "relu", i);
    array_set(one, 0, 1);
    array_up(one);
    CALL(&here, "maximum", NULL, two, out);
    array_down(y);
    for (int i = 0; i < 7; i++)
        close_to(array_get(y, i), isnan(xs[i]) ? NAN : xs[i] > 1 ? xs[i] : 1, 0, "maximum", i);
    array_set(one, 0, NAN);
    array_up(one);
    CALL(&here, "maximum", NULL, two, out);
    array_down(y);
    for (int i = 0; i < 7; i++)
        ck_assert(isnan(array_get(y, i)));
    array_drop(x);
    array_drop(y);
    array_drop(one);
}
END_TEST

START_TEST(a_number_is_added_in_the_type_of_the_result)
{
    const tn_add_scalar_options plus = { sizeof plus, TN_SCALAR_INIT_FLOAT(0.5) };
    const tn_mul_scalar_options times = { sizeof times, TN_SCALAR_INIT_INT(3) };
    struct array *whole = array_new(&here, TN_I32, 3, shape3, TURNED),
                 *y = array_new(&here, TN_F32, 3, shape3, PLAIN);
    struct array *z = array_new(&here, TN_I32, 3, shape3, GAPS);
    struct array *const in[] = { whole }, *const out[] = { y }, *const out2[] = { z };

    numbers(whole, 1);
    CALL(&here, "add_scalar", &plus, in, out);
    CALL(&here, "mul_scalar", &times, in, out2);
    array_down(y);
    array_down(z);
    for (int64_t i = 0; i < COUNT3; i++) {
        close_to(array_get(y, i), array_get(whole, i) + 0.5, 0, "add_scalar", i);
        close_to(array_get(z, i), array_get(whole, i) * 3, 0, "mul_scalar", i);
    }
    array_drop(whole);
    array_drop(y);
    array_drop(z);
}
END_TEST

/* ---- edges ----------------------------------------------------------------------------------- */

START_TEST(nothing_happens_for_empty_tensors_and_one_element_works_without_dimensions)
{
    const int64_t empty[] = { 2, 0 };
    struct array *a = array_new(&here, TN_F32, 2, empty, PLAIN),
                 *y = array_new(&here, TN_F32, 2, empty, PLAIN);
    struct array *p = array_new(&here, TN_F32, 0, NULL, PLAIN),
                 *q = array_new(&here, TN_F32, 0, NULL, GAPS);
    struct array *const in[] = { a, a }, *const out[] = { y }, *const in0[] = { p, p },
                        *const out0[] = { q };

    CALL(&here, "add", NULL, in, out);
    CALL(&here, "copy", NULL, in, out);
    array_set(p, 0, 2.5);
    array_up(p);
    CALL(&here, "add", NULL, in0, out0);
    array_down(q);
    close_to(array_get(q, 0), 5, 0, "add", 0);
    array_drop(a);
    array_drop(y);
    array_drop(p);
    array_drop(q);
}
END_TEST

START_TEST(sixteen_dimensions_are_not_too_many)
{
    const int64_t shape[] = { 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1 };
    struct array *a = array_new(&here, TN_F32, 16, shape, TURNED),
                 *y = array_new(&here, TN_F32, 16, shape, PLAIN);
    struct array *const in[] = { a, a }, *const out[] = { y };

    numbers(a, 1);
    CALL(&here, "add", NULL, in, out);
    array_down(y);
    for (int64_t i = 0; i < 256; i++)
        close_to(array_get(y, i), 2 * array_get(a, i), 0, "add", i);
    array_drop(a);
    array_drop(y);
}
END_TEST

void add_elementwise(TCase *to, bool slow)
{
    if (slow) {
        tcase_add_test(to, inputs_broadcast_from_their_own_shapes);
        return;
    }
    tcase_add_test(to, operators_of_two_inputs_work_in_every_type_and_layout);
    tcase_add_test(to, inputs_broadcast_from_their_own_shapes);
    tcase_add_test(to, operators_of_one_input_work_in_every_type_and_in_place);
    tcase_add_test(to, infinity_and_nan_go_where_they_should);
    tcase_add_test(to, a_number_is_added_in_the_type_of_the_result);
    tcase_add_test(to, nothing_happens_for_empty_tensors_and_one_element_works_without_dimensions);
    tcase_add_test(to, sixteen_dimensions_are_not_too_many);
}
