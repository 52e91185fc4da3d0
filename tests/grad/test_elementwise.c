/* SPDX-License-Identifier: MIT
 *
 * First and second derivatives of arithmetic and activations against central differences. */
#include "tests/op/suite.h"

/* Distinct values, none close to a kink. */
static tn_tensor *input(double first)
{
    double values[6];

    for (int i = 0; i < 6; i++)
        values[i] = first + sin(1.7 * i + first) + 0.013 * i;
    return tn_tensor_from(values, TN_F64, TN_SHAPE(2, 3));
}

#define CODE(name, expression)                                                                     \
    static tn_tensor *name##_code(tn_tensor *const *in, int n)                                     \
    {                                                                                              \
        tn_tensor *a = in[0], *b = n > 1 ? in[1] : NULL, *c = n > 2 ? in[2] : NULL;                \
                                                                                                   \
        (void)a, (void)b, (void)c;                                                                 \
        return (expression);                                                                       \
    }
#define WITH(name, ...)                                                                            \
    &(tn_##name##_options)                                                                         \
    {                                                                                              \
        sizeof(tn_##name##_options), __VA_ARGS__                                                   \
    }
#define LESS(x) tn_mul_scalar(x, 0.4)

/* name, inputs, where the values begin, code */
#define ROWS(X)                                                                                    \
    X(minimum, 2, 0.1, tn_minimum(a, b))                                                           \
    X(remainder, 2, 4.1, tn_remainder(a, b))                                                       \
    X(remainder_both, 2, 4.1, tn_remainder(tn_mul(a, b), b))                                       \
    X(fmod, 2, 4.1, tn_fmod(a, b))                                                                 \
    X(pow, 2, 2.5, tn_pow(a, b))                                                                   \
    X(pow_2, 1, 0.1, tn_pow_scalar(a, 2))                                                          \
    X(pow_3, 1, 0.1, tn_pow_scalar(a, 3))                                                          \
    X(pow_fraction, 1, 2.5, tn_pow_scalar(a, 1.7))                                                 \
    X(pow_minus, 1, 2.5, tn_pow_scalar(a, -1.5))                                                   \
    X(atan2, 2, 2.5, tn_atan2(a, b))                                                               \
    X(abs, 1, 0.1, tn_abs(a))                                                                      \
    X(frac, 1, 0.15, tn_frac(a))                                                                   \
    X(square, 1, 0.1, tn_square(a))                                                                \
    X(reciprocal, 1, 2.5, tn_reciprocal(a))                                                        \
    X(rsqrt, 1, 2.5, tn_rsqrt(a))                                                                  \
    X(expm1, 1, 0.1, tn_expm1(a))                                                                  \
    X(log1p, 1, 0.8, tn_log1p(a))                                                                  \
    X(log2, 1, 2.5, tn_log2(a))                                                                    \
    X(log10, 1, 2.5, tn_log10(a))                                                                  \
    X(sin, 1, 0.1, tn_sin(a))                                                                      \
    X(cos, 1, 0.1, tn_cos(a))                                                                      \
    X(tan, 1, 0.1, tn_tan(LESS(a)))                                                                \
    X(asin, 1, 0.1, tn_asin(LESS(a)))                                                              \
    X(acos, 1, 0.1, tn_acos(LESS(a)))                                                              \
    X(atan, 1, 0.1, tn_atan(a))                                                                    \
    X(sinh, 1, 0.1, tn_sinh(a))                                                                    \
    X(cosh, 1, 0.1, tn_cosh(a))                                                                    \
    X(tanh, 1, 0.1, tn_tanh(a))                                                                    \
    X(erf, 1, 0.1, tn_erf(a))                                                                      \
    X(erfc, 1, 0.1, tn_erfc(a))                                                                    \
    X(erfinv, 1, 0.1, tn_erfinv(LESS(a)))                                                          \
    X(clamp, 1, 0.1, tn_clamp(a, WITH(clamp, TN_SCALAR(-0.33), TN_SCALAR(0.44))))                  \
    X(clamp_tensor, 3, 0.1, tn_clamp_tensor(a, b, c))                                              \
    X(clamp_below, 2, 0.1, tn_clamp_tensor(a, TN_NONE, b))                                         \
    X(lerp, 3, 0.1, tn_lerp(a, b, c))                                                              \
    X(lerp_scalar, 2, 0.1, tn_lerp_scalar(a, b, 0.3))                                              \
    X(addcmul, 3, 0.1, tn_addcmul(a, b, c, WITH(addcmul, TN_SCALAR(-1.5))))                        \
    X(addcdiv, 3, 2.5, tn_addcdiv(a, b, c, WITH(addcdiv, TN_SCALAR(-1.5))))                        \
    X(where, 2, 0.1, tn_where(tn_lt(a, b), tn_mul(a, b), b))                                       \
    X(masked_fill, 1, 0.1, tn_masked_fill(a, tn_gt(a, zero_like(a)), 2))                           \
    X(nan_to_num, 1, 0.1, tn_nan_to_num(a, NULL))                                                  \
    X(relu6, 1, 0.1, tn_relu6(a))                                                                  \
    X(relu_squared, 1, 0.1, tn_relu_squared(a))                                                    \
    X(leaky_relu, 1, 0.1, tn_leaky_relu(a, WITH(leaky_relu, 0.2)))                                 \
    X(prelu, 2, 0.1, tn_prelu(a, tn_select(b, 0, 0)))                                              \
    X(elu, 1, 0.1, tn_elu(a, WITH(elu, 1.3)))                                                      \
    X(selu, 1, 0.1, tn_selu(a))                                                                    \
    X(celu, 1, 0.1, tn_celu(a, WITH(celu, 1.3)))                                                   \
    X(gelu, 1, 0.1, tn_gelu(a, NULL))                                                              \
    X(gelu_tanh, 1, 0.1, tn_gelu(a, WITH(gelu, "tanh")))                                           \
    X(silu, 1, 0.1, tn_silu(a))                                                                    \
    X(mish, 1, 0.1, tn_mish(a))                                                                    \
    X(hardtanh, 1, 0.1, tn_hardtanh(a, NULL))                                                      \
    X(hardswish, 1, 0.1, tn_hardswish(tn_mul_scalar(a, 4)))                                        \
    X(hardsigmoid, 1, 0.1, tn_hardsigmoid(tn_mul_scalar(a, 4)))                                    \
    X(logsigmoid, 1, 0.1, tn_logsigmoid(a))                                                        \
    X(tanhshrink, 1, 0.1, tn_tanhshrink(a))                                                        \
    X(softshrink, 1, 0.1, tn_softshrink(a, NULL))                                                  \
    X(hardshrink, 1, 0.1, tn_hardshrink(a, NULL))                                                  \
    X(softplus, 1, 0.1, tn_softplus(a, WITH(softplus, 1.5, 1.1)))                                  \
    X(softsign, 1, 0.1, tn_softsign(a))                                                            \
    X(threshold, 1, 0.1, tn_threshold(a, 0.2, 3))                                                  \
    X(glu, 1, 0.1, tn_glu(tn_transpose(a, 0, 1), WITH(glu, 1)))                                    \
    X(softmin, 1, 0.1, tn_softmin(a, 1))

static tn_tensor *zero_like(tn_tensor *x)
{
    return tn_fill(tn_detach(x), 0);
}
#define ROW_CODE(name, inputs, first, expression) CODE(name, expression)
ROWS(ROW_CODE)

#define ROW(name, inputs, first, expression) { #name, name##_code, inputs, first },
static const struct {
    const char *name;
    tn_tensor *(*code)(tn_tensor *const *in, int n);
    int inputs;
    double first;
} rows[] = { ROWS(ROW) };

static tn_status value_of(void *user, tn_tensor *const *in, tn_tensor **out)
{
    const size_t *row = user;

    out[0] = rows[*row].code(in, rows[*row].inputs);
    return out[0] != NULL ? TN_OK : tn_error_last_code();
}

/* The gradient of a row's code as code itself; of squares, so that it depends on the values. */
static tn_status gradient_of(void *user, tn_tensor *const *in, tn_tensor **out)
{
    const size_t *row = user;
    tn_backward_options create = { .size = sizeof create, .create_graph = 1 };
    tn_tensor *y, *loss, *free_of_graph[3];
    bool numeric = !tn_grad_enabled();
    tn_status status;

    for (int i = 0; i < rows[*row].inputs; i++) {
        free_of_graph[i] = in[i];
        if (numeric)
            tn_tensor_set_requires_grad(free_of_graph[i] = tn_detach(in[i]), true);
    }
    tn_grad_begin(true);
    status = value_of(user, free_of_graph, &y);
    loss = tn_sum(tn_mul(y, y), NULL);
    if (status == TN_OK)
        status = tn_grad(&loss, NULL, 1, free_of_graph, out, rows[*row].inputs, &create);
    tn_grad_end();
    return status;
}

static void check(bool second)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        TN_SCOPE;
        double first = rows[i].first;
        tn_tensor *in[3] = { input(first), input(first + 0.37), input(first + 0.61) };
        tn_status status = second ? tn_gradcheck(gradient_of, &i, in, rows[i].inputs,
                                                 rows[i].inputs, 1e-5, 1e-6)
                                  : tn_gradcheck(value_of, &i, in, rows[i].inputs, 1, 1e-5, 1e-7);

        ck_assert_msg(status == TN_OK, "%s: %s", rows[i].name, tn_error_text());
    }
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
}

START_TEST(derivatives_agree_with_central_differences)
{
    check(false);
}
END_TEST

START_TEST(second_derivatives_agree_with_central_differences)
{
    check(true);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("derivatives");
    TCase *tests = tcase_create("elementwise");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, derivatives_agree_with_central_differences);
    tcase_add_test(tests, second_derivatives_agree_with_central_differences);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
