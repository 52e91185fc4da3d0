/* SPDX-License-Identifier: MIT
 *
 * Gradients of complex numbers against differences of both parts, second derivatives where a
 * product has zeros, and reductions with a given type. */
#include <complex.h>

#include "tests/op/suite.h"

typedef tn_status code(void *user, tn_tensor *const *in, tn_tensor **out);

/* Complex numbers in all four quarters, none on a cut. */
static tn_tensor *input(tn_ints shape, double first)
{
    tn_tensor *x = tn_tensor_empty(shape, TN_C128, NULL);
    int64_t count = 2 * tn_tensor_numel(x);
    double *values = malloc((size_t)count * sizeof *values + 1);

    for (int64_t i = 0; i < count; i++)
        values[i] = 0.9 * sin(1.7 * (double)i + first) + 0.05 * cos((double)i);
    ck_assert_int_eq(tn_tensor_copy_in(x, values, (size_t)count * sizeof *values), TN_OK);
    free(values);
    return x;
}

#define CODE(name, expression)                                                                     \
    static tn_status name(void *user, tn_tensor *const *in, tn_tensor **out)                       \
    {                                                                                              \
        tn_tensor *x = in[0], *w = in[1];                                                          \
                                                                                                   \
        (void)user, (void)w;                                                                       \
        out[0] = (expression);                                                                     \
        return out[0] != NULL ? TN_OK : tn_error_code();                                           \
    }

static tn_tensor *spread(tn_tensor *x)
{
    return tn_add(tn_var(x, TN_INTS(1)), tn_std(x));
}

static tn_tensor *norms(tn_tensor *x)
{
    tn_norm_options o = TN_NORM_OPTIONS;
    tn_tensor *two = tn_norm(x, o.p, o.dims);

    o.p = 3;
    o.dims = TN_INTS(0);
    return tn_add(two, tn_norm(x, o.p, o.dims));
}

static tn_tensor *along(tn_tensor *x)
{
    return tn_add(tn_unsqueeze(tn_prod(x, TN_INTS(1)), 1), tn_cumsum(tn_cumprod(x, 1), 0));
}

static tn_tensor *sums(tn_tensor *x, tn_tensor *w)
{
    tn_tensor *both[2] = { x, w };

    return tn_einsum(both, 2, "ij,kj->ik");
}

CODE(rules, tn_sub(tn_mul(x, w), tn_div(x, w)))
CODE(powers, tn_add(tn_pow(x, w), tn_pow_scalar(x, 3.5)))
CODE(exponentials, tn_add(tn_exp(x), tn_expm1(w)))
CODE(logarithms, tn_add(tn_add(tn_ln(x), tn_log1p(w)), tn_add(tn_log2(x), tn_log10(x))))
CODE(roots, tn_add(tn_sqrt(x), tn_rsqrt(w)))
CODE(squares, tn_add(tn_square(x), tn_reciprocal(w)))
CODE(circles, tn_add(tn_add(tn_sin(x), tn_cos(w)), tn_tan(x)))
CODE(arcs, tn_add(tn_add(tn_asin(x), tn_acos(w)), tn_atan(x)))
CODE(hyperbolas, tn_add(tn_add(tn_sinh(x), tn_cosh(w)), tn_tanh(x)))
CODE(curves, tn_add(tn_add(tn_sigmoid(x), tn_silu(w)), tn_add(tn_softsign(x), tn_tanhshrink(w))))
CODE(sizes, tn_add(tn_abs(x), tn_angle(w)))
CODE(directions, tn_add(tn_sgn(x), tn_conj(w)))
CODE(pieces, tn_mul(tn_real(x), tn_imag(w)))
CODE(matrices, tn_add(tn_matmul(x, tn_transpose(w, 0, 1)), tn_linear(x, w, TN_NONE)))
CODE(equation, sums(x, w))
CODE(mixed, tn_add(tn_lerp(x, w, x), tn_addcmul(x, x, w)))
CODE(fractions, tn_addcdiv(x, x, w))
CODE(whole, tn_add(tn_mean(x), tn_sum(w)))
CODE(spreads, spread(x))
CODE(lengths, norms(x))
CODE(runs, along(x))
CODE(chosen, tn_where(tn_gt(tn_real(x), tn_real(w)), x, w))

static tn_tensor *with_alpha(tn_tensor *x, tn_tensor *w, tn_scalar alpha)
{
    static const int64_t places[2] = { 1, 1 };
    tn_tensor *index = tn_tensor_from(places, TN_I64, TN_SHAPE(2));

    return tn_add(tn_mul(tn_add(x, w, alpha), tn_sub(w, x, alpha)),
                  tn_index_add(x, index, w, 0, alpha));
}

static tn_tensor *with_value(tn_tensor *x, tn_tensor *w, tn_scalar value)
{
    return tn_add(tn_addcmul(x, x, w, value), tn_addcdiv(w, x, w, value));
}

static tn_tensor *with_factors(tn_tensor *x, tn_tensor *w, tn_scalar factor)
{
    return tn_addmm(tn_narrow(x, 1, 0, 2), x, tn_transpose(w, 0, 1), -0.5 + 0.25 * I, factor);
}

/* A real input of a complex result. */
static tn_tensor *from_real(tn_tensor *x, tn_scalar factor)
{
    return tn_add(tn_mul_scalar(tn_real(x), factor), tn_pow_scalar(tn_abs(x), factor));
}

#define NUMBER TN_SCALAR(0.3 - 0.7 * I)
CODE(scalars, tn_mul(tn_mul_scalar(x, NUMBER), tn_add_scalar(w, NUMBER)))
CODE(scalar_powers, tn_add(tn_pow_scalar(x, NUMBER), tn_pow_scalar(w, 2)))
CODE(alphas, with_alpha(x, w, NUMBER))
CODE(values, with_value(x, w, NUMBER))
CODE(factors, with_factors(x, w, NUMBER))
CODE(mixtures, tn_mul(tn_lerp_scalar(x, w, NUMBER), x))
CODE(reals, from_real(x, NUMBER))

#define ROW(name)                                                                                  \
    {                                                                                              \
#name, name                                                                                \
    }
static const struct {
    const char *name;
    code *run;
} rows[] = { ROW(rules),   ROW(powers),    ROW(exponentials), ROW(logarithms), ROW(roots),
             ROW(squares), ROW(circles),   ROW(arcs),         ROW(hyperbolas), ROW(curves),
             ROW(sizes),   ROW(pieces),    ROW(directions),   ROW(matrices),   ROW(equation),
             ROW(mixed),   ROW(fractions), ROW(whole),        ROW(spreads),    ROW(lengths),
             ROW(runs),    ROW(chosen),    ROW(scalars),      ROW(alphas),     ROW(scalar_powers),
             ROW(values),  ROW(factors),   ROW(mixtures),     ROW(reals) };

START_TEST(gradients_of_complex_numbers_are_those_of_their_parts)
{
    TN_SCOPE;
    tn_tensor *in[2] = { input(TN_SHAPE(2, 3), 0.4), input(TN_SHAPE(2, 3), 2.1) };

    ck_assert_msg(tn_gradcheck(rows[_i].run, NULL, in, 2, 1, 1e-6, 1e-6) == TN_OK, "%s: %s",
                  rows[_i].name, tn_error_text());
    ck_assert_msg(tn_gradgradcheck(rows[_i].run, NULL, in, 2, 1, 1e-6, 1e-5) == TN_OK, "%s: %s",
                  rows[_i].name, tn_error_text());
}
END_TEST

/* conj where there should be none. */
static tn_status wrong(tn_function_ctx *ctx, void *user, tn_tensor *const *in, tn_tensor **out)
{
    (void)user;
    out[0] = tn_mul(in[0], in[0]);
    return tn_function_save(ctx, in[0]);
}

static tn_status wrong_back(tn_function_ctx *ctx, void *user, tn_tensor *const *gout,
                            tn_tensor **gin)
{
    (void)user;
    gin[0] = tn_mul(gout[0], tn_mul_scalar(tn_function_saved(ctx, 0), 2));
    return gin[0] != NULL ? TN_OK : tn_error_code();
}

static tn_status call_wrong(void *user, tn_tensor *const *in, tn_tensor **out)
{
    static const tn_function function = { .name = "wrong",
                                          .forward = wrong,
                                          .backward = wrong_back };

    return tn_function_call(&function, user, in, 1, out, 1);
}

START_TEST(a_derivative_that_forgets_the_conjugate_is_found)
{
    TN_SCOPE;
    tn_tensor *x = input(TN_SHAPE(2), 0.4), *narrow = tn_cast(x, TN_C64);

    ck_assert_int_eq(tn_gradcheck(call_wrong, NULL, &x, 1, 1, 0, 0), TN_ERR_ASSERT);
    FAILED(TN_ERR_ASSERT, "element 0, real part: wrong derivative, got");
    ck_assert_int_eq(tn_gradcheck(call_wrong, NULL, &narrow, 1, 1, 0, 0), TN_ERR_TYPE);
    FAILED(TN_ERR_TYPE, "float64 or complex128");
}
END_TEST

CODE(product, tn_prod(x))
CODE(running, tn_cumprod(x, 0))
static tn_tensor *product_over(tn_tensor *x)
{
    return tn_prod(x, TN_INTS(0, 2), true);
}
CODE(products, product_over(x))

START_TEST(second_derivatives_of_products_are_right_where_factors_are_zero)
{
    TN_SCOPE;
    static const double none[4] = { 0, 2, -3, 0.5 }, both[5] = { 2, 0, 3, 0, -1 };
    double cube[12] = { 1, 2, 0, 3, 4, 5, 6, 0, 7, 8, 0, 2 };
    tn_tensor *x[2] = { tn_tensor_from(none, TN_F64, TN_SHAPE(4)), NULL };
    code *codes[2] = { product, running };

    for (int k = 0; k < 2; k++) {
        x[0] = tn_tensor_from(none, TN_F64, TN_SHAPE(4));
        x[1] = x[0];
        ck_assert_msg(tn_gradcheck(codes[k], NULL, x, 1, 1, 0, 0) == TN_OK, "%s", tn_error_text());
        ck_assert_msg(tn_gradgradcheck(codes[k], NULL, x, 1, 1, 0, 0) == TN_OK, "%s",
                      tn_error_text());
        x[0] = x[1] = tn_tensor_from(both, TN_F64, TN_SHAPE(5));
        ck_assert_msg(tn_gradcheck(codes[k], NULL, x, 1, 1, 0, 0) == TN_OK, "%s", tn_error_text());
        ck_assert_msg(tn_gradgradcheck(codes[k], NULL, x, 1, 1, 0, 0) == TN_OK, "%s",
                      tn_error_text());
    }
    x[0] = x[1] = tn_tensor_from(cube, TN_F64, TN_SHAPE(2, 3, 2));
    ck_assert_msg(tn_gradgradcheck(products, NULL, x, 1, 1, 0, 0) == TN_OK, "%s", tn_error_text());
}
END_TEST

/* The kink of |z|: both derivatives are 0 there, as in PyTorch. */
START_TEST(the_second_derivative_of_the_absolute_value_of_0_is_0)
{
    TN_SCOPE;
    const double values[4] = { 0, 0, 3, 4 }, slopes[4] = { 0, 0, 0.6, 0.8 };
    const double expected[4] = { 0, 0, -0.064, 0.048 };
    tn_backward_options create = { .size = sizeof create, .create_graph = 1 };
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(2), TN_C128, NULL), *y, *g, *h, *loss;
    double first[4], second[4];

    ck_assert_int_eq(tn_tensor_copy_in(x, values, sizeof values), TN_OK);
    ck_assert_int_eq(tn_tensor_set_requires_grad(x, true), TN_OK);
    y = tn_sum(tn_abs(x));
    ck_assert_int_eq(tn_grad(&y, NULL, 1, &x, &g, 1, &create), TN_OK);
    loss = tn_sum(tn_add(tn_real(g), tn_imag(g), tn_scalar_int(2)));
    ck_assert_int_eq(tn_grad(&loss, NULL, 1, &x, &h, 1, NULL), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(tn_detach(g), first, sizeof first), TN_OK);
    ck_assert_int_eq(tn_tensor_copy_out(h, second, sizeof second), TN_OK);
    for (int i = 0; i < 4; i++) {
        ck_assert_msg(fabs(first[i] - slopes[i]) < 1e-14, "%d: slope %g", i, first[i]);
        ck_assert_msg(fabs(second[i] - expected[i]) < 1e-14, "%d: second %g", i, second[i]);
    }
}
END_TEST

START_TEST(a_reduction_works_in_the_type_that_is_asked_for)
{
    TN_SCOPE;
    tn_sum_options sum = TN_SUM_OPTIONS;
    tn_tensor *x = LEAF(1.5F, 2.5F), *whole = tn_cast(tn_detach(x), TN_I64), *y;

    sum.dtype = TN_F64;
    y = tn_sum(x, sum.dims, sum.keepdim, sum.dtype);
    ck_assert_int_eq(tn_tensor_dtype(y), TN_F64);
    ck_assert_int_eq(tn_backward(y), TN_OK);
    ck_assert_int_eq(tn_tensor_dtype(tn_tensor_grad(x)), TN_F32);
    HAS(tn_tensor_grad(x), 1, 1);
    sum.dtype = TN_I32;
    y = tn_sum(x, sum.dims, sum.keepdim, sum.dtype); /* 1 and 2: cast first */
    ck_assert_int_eq(tn_tensor_dtype(y), TN_I32);
    HAS(y, 3);
    ck_assert_ptr_null(tn_mean(whole));
    FAILED(TN_ERR_RUNTIME, "the option dtype");
    HAS(tn_mean(whole, tn_no_ints(), false, TN_F32), 1.5);
    y = tn_prod(whole, tn_no_ints(), false, TN_F64);
    ck_assert_int_eq(tn_tensor_dtype(y), TN_F64);
    HAS(y, 2);
    y = tn_cumsum(whole, 0, false, TN_I16);
    ck_assert_int_eq(tn_tensor_dtype(y), TN_I16);
    HAS(y, 1, 3);
    y = tn_cumprod(x, 0, TN_F64);
    ck_assert_int_eq(tn_tensor_dtype(y), TN_F64);
    HAS(y, 1.5, 3.75);
    FINE();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("complex");
    TCase *all = tcase_create("all");

    tcase_add_loop_test(all, gradients_of_complex_numbers_are_those_of_their_parts, 0,
                        (int)(sizeof rows / sizeof *rows));
    tcase_add_test(all, a_derivative_that_forgets_the_conjugate_is_found);
    tcase_add_test(all, second_derivatives_of_products_are_right_where_factors_are_zero);
    tcase_add_test(all, the_second_derivative_of_the_absolute_value_of_0_is_0);
    tcase_add_test(all, a_reduction_works_in_the_type_that_is_asked_for);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
