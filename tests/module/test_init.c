/* SPDX-License-Identifier: MIT
 *
 * Initializations of tensors and of layers: distributions, bounds, structure, and what they refuse.
 * Names of rows are those of the behaviour specification. */
#include "tests/module/toy_layers.h"
#include "tests/spec/proves.h"

#include <math.h>

#define PROBLEM(words)                                                                             \
    do {                                                                                           \
        ck_assert_msg(tn_failed() && strstr(tn_error_text(), words) != NULL, "%s",                 \
                      tn_error_text());                                                            \
        tn_error_clear();                                                                          \
    } while (0)

/* The elements as doubles. */
static int64_t elements(tn_tensor *tensor, double *out)
{
    ck_assert_msg(tensor != NULL, "%s", tn_error_text());
    tn_tensor *wide = tn_copy_(tn_tensor_empty(tn_tensor_shape(tensor), TN_F64, NULL),
                               tn_detach(tensor));
    int64_t count = tn_tensor_numel(tensor);
    ck_assert_int_eq(tn_tensor_copy_out(wide, out, (size_t)count * sizeof *out), TN_OK);
    return count;
}

static tn_tensor *zeros(tn_ints shape)
{
    return tn_tensor_full(shape, 0, TN_F32, NULL);
}

static void refused(tn_status status, tn_status code, const char *words)
{
    ck_assert_int_eq(status, code);
    PROBLEM(words);
}

static double share_below(const double *v, int64_t count, double bound)
{
    int64_t below = 0;
    for (int64_t i = 0; i < count; i++)
        below += v[i] < bound;
    return (double)below / (double)count;
}

START_TEST(plain_draws_have_their_distributions)
{
    TN_SCOPE;
    enum { N = 20000 };
    static double v[N];
    tn_tensor *t = tn_parameter(zeros(TN_SHAPE(100, 200)), true);
    tn_random_seed(8);
    ck_assert_int_eq(tn_init(t, "uniform()"), TN_OK);
    ck_assert(tn_tensor_is_leaf(t) && tn_tensor_requires_grad(t));
    TN_PROVES("INI-006");
    elements(t, v);
    for (int i = 1; i < 10; i++)
        ck_assert_double_eq_tol(share_below(v, N, 0.1 * i), 0.1 * i, 0.015);
    tn_init(t, "normal()");
    elements(t, v);
    ck_assert_double_eq_tol(share_below(v, N, 0), 0.5, 0.015);
    ck_assert_double_eq_tol(share_below(v, N, 1), 0.8413, 0.015);
    tn_init(t, "normal(mean=3, std=0.5)");
    elements(t, v);
    ck_assert_double_eq_tol(share_below(v, N, 2.5), 0.1587, 0.015);
    tn_init(t, "uniform(-3, -1)");
    elements(t, v);
    ck_assert(share_below(v, N, -3) == 0 && share_below(v, N, -1) == 1);
    tn_init(t, "constant(2.5)");
    ck_assert_double_eq(tn_item(tn_mean(t)), 2.5);
    tn_init(t, "ones()");
    ck_assert_double_eq(tn_item(tn_sum(t)), N);
    tn_init(t, "zeros()");
    ck_assert_double_eq(tn_item(tn_sum(t)), 0);
    TN_PROVES("INI-007");
    tn_init(t, "trunc_normal(mean=1, std=2, a=-0.5, b=2)");
    elements(t, v);
    ck_assert(share_below(v, N, -0.5) == 0 && share_below(v, N, 2.0000001) == 1);
    /* (Phi(0) - Phi(-0.75)) / (Phi(0.5) - Phi(-0.75)) */
    ck_assert_double_eq_tol(share_below(v, N, 1), 0.27337 / 0.46484, 0.015);
    ck_assert_int_eq(tn_init(t, "trunc_normal(mean=9)"), TN_OK); /* and a warning */
    refused(tn_init(t, "trunc_normal(a=2, b=1)"), TN_ERR_VALUE, "a < b");
    TN_PROVES("INI-008");
    double first[4], again[4];
    tn_tensor *small = zeros(TN_SHAPE(2, 2));
    tn_random_seed(21);
    tn_init(small, "orthogonal()");
    elements(small, first);
    tn_random_seed(21);
    tn_init(small, "orthogonal()");
    elements(small, again);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq(first[i], again[i]);
    TN_PROVES("INI-016");
}
END_TEST

START_TEST(fans_and_gains)
{
    TN_SCOPE;
    static double v[64 * 40 * 3];
    tn_tensor *t = zeros(TN_SHAPE(64, 40, 3)); /* fan_in 120, fan_out 192 */
    static const struct {
        const char *init;
        double bound; /* of a uniform distribution; of a normal one, the standard deviation */
        bool normal;
    } rows[] = {
        { "xavier_uniform()", 0.13867505, false }, /* sqrt(6 / 312) */
        { "xavier_uniform(gain=2)", 0.27735010, false },
        { "xavier_normal()", 0.08006408, true },
        { "kaiming_uniform()", 0.22360680, false }, /* sqrt(2) sqrt(3 / 120) */
        { "kaiming_uniform(mode='fan_out', nonlinearity='linear')", 0.125, false },
        { "kaiming_normal(nonlinearity='relu')", 0.12909944, true },
        /* gains by name, times sqrt(6 / 312) */
        { "xavier_uniform(gain='linear')", 0.13867505, false },
        { "xavier_uniform(gain='conv2d')", 0.13867505, false },
        { "xavier_uniform(gain='sigmoid')", 0.13867505, false },
        { "xavier_uniform(gain='tanh')", 0.23112508, false },
        { "xavier_uniform(gain='relu')", 0.19611614, false },
        { "xavier_uniform(gain='leaky_relu')", 0.19610633, false },
        { "xavier_uniform(gain=('leaky_relu', 1))", 0.13867505, false },
        { "xavier_uniform(gain='selu')", 0.10400629, false },
    };
    tn_random_seed(2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double most = 0, square = 0;
        ck_assert_msg(tn_init(t, "%s", rows[i].init) == TN_OK, "%s", tn_error_text());
        int64_t count = elements(t, v);
        for (int64_t k = 0; k < count; k++) {
            most = fmax(most, fabs(v[k]));
            square += v[k] * v[k];
        }
        if (rows[i].normal)
            ck_assert_double_eq_tol(sqrt(square / (double)count), rows[i].bound,
                                    0.03 * rows[i].bound);
        else
            ck_assert_msg(most <= rows[i].bound * (1 + 1e-6) && most > 0.99 * rows[i].bound,
                          "%s: %g, not %g", rows[i].init, most, rows[i].bound);
    }
    refused(tn_init(zeros(TN_SHAPE(3)), "xavier_normal()"), TN_ERR_VALUE,
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
    refused(tn_init(zeros(TN_SHAPE(3)), "kaiming_normal()"), TN_ERR_VALUE, "Fan in and fan out");
    TN_PROVES("INI-010", "INI-011");
    refused(tn_init(t, "kaiming_normal(mode='fan')"), TN_ERR_VALUE,
            "Mode fan not supported, please use one of fan_in, fan_out");
    ck_assert_int_eq(tn_init(zeros(TN_SHAPE(0, 4)), "kaiming_uniform()"), TN_OK);
    TN_PROVES("INI-012");
    refused(tn_init(t, "xavier_normal(gain='odd')"), TN_ERR_VALUE, "Unsupported nonlinearity odd");
    refused(tn_init(t, "xavier_normal(gain=('leaky_relu', True))"), TN_ERR_VALUE,
            "not a valid number");
    refused(tn_init(t, "xavier_normal(gain=True)"), TN_ERR_TYPE,
            "gain: wrong type, got bool; expected a number");
    TN_PROVES("INI-013");
}
END_TEST

START_TEST(matrices_and_kernels)
{
    TN_SCOPE;
    static double v[4096], dot;
    tn_tensor *t = zeros(TN_SHAPE(2, 3));
    ck_assert_int_eq(tn_init(t, "eye()"), TN_OK);
    elements(t, v);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq(v[i], i % 4 == 0);
    refused(tn_init(zeros(TN_SHAPE(2, 2, 2)), "eye()"), TN_ERR_VALUE,
            "Only tensors with 2 dimensions are supported");
    t = zeros(TN_SHAPE(4, 2, 3, 3));
    ck_assert_int_eq(tn_init(t, "dirac(groups=2)"), TN_OK);
    ck_assert_int_eq(elements(t, v), 72);
    for (int o = 0; o < 4; o++)
        for (int c = 0; c < 2; c++)
            for (int k = 0; k < 9; k++)
                ck_assert_double_eq(v[(o * 2 + c) * 9 + k], k == 4 && o % 2 == c);
    refused(tn_init(zeros(TN_SHAPE(2, 2)), "dirac()"), TN_ERR_VALUE, "3, 4, or 5 dimensions");
    refused(tn_init(t, "dirac(3)"), TN_ERR_VALUE, "divisible by groups");
    TN_PROVES("INI-009");
    tn_ints shapes[] = { TN_SHAPE(5, 12), TN_SHAPE(12, 5), TN_SHAPE(6, 2, 3), TN_SHAPE(40, 40) };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        t = tn_tensor_full(shapes[s], 0, TN_F64, NULL);
        ck_assert_msg(tn_init(t, "orthogonal(gain=2)") == TN_OK, "%s", tn_error_text());
        int64_t rows = shapes[s].at[0], columns = elements(t, v) / rows;
        bool flat = rows <= columns;
        for (int64_t a = 0; a < (flat ? rows : columns); a++)
            for (int64_t b = 0; b <= a; b++) {
                dot = 0;
                for (int64_t k = 0; k < (flat ? columns : rows); k++)
                    dot += flat ? v[a * columns + k] * v[b * columns + k]
                                : v[k * columns + a] * v[k * columns + b];
                ck_assert_double_eq_tol(dot, a == b ? 4 : 0, 1e-12);
            }
    }
    refused(tn_init(zeros(TN_SHAPE(3)), "orthogonal()"), TN_ERR_VALUE, "2 or more dimensions");
    ck_assert_int_eq(tn_init(zeros(TN_SHAPE(0, 3)), "orthogonal()"), TN_OK);
    TN_PROVES("INI-014");
    t = zeros(TN_SHAPE(25, 40));
    ck_assert_int_eq(tn_init(t, "sparse(0.3, std=2)"), TN_OK);
    elements(t, v);
    for (int c = 0; c < 40; c++) {
        int none = 0;
        for (int r = 0; r < 25; r++)
            none += v[r * 40 + c] == 0;
        ck_assert_int_eq(none, 8); /* ceil(7.5) */
    }
    refused(tn_init(zeros(TN_SHAPE(3)), "sparse(0.5)"), TN_ERR_VALUE,
            "Only tensors with 2 dimensions are supported");
    TN_PROVES("INI-015");
}
END_TEST

/* ---- layers, and the bounds of PyTorch ------------------------------------------------------- */

struct spread {
    double low, high, mean, deviation;
};

static struct spread spread_of(tn_tensor *tensor)
{
    int64_t count = tn_tensor_numel(tensor);
    float *values = malloc((size_t)count * sizeof *values);
    ck_assert_int_eq(tn_tensor_copy_out(tensor, values, (size_t)count * sizeof *values), TN_OK);
    struct spread s = { values[0], values[0], 0, 0 };
    double squares = 0;
    for (int64_t i = 0; i < count; i++) {
        s.low = fmin(s.low, values[i]);
        s.high = fmax(s.high, values[i]);
        s.mean += values[i] / (double)count;
        squares += (double)values[i] * values[i] / (double)count;
    }
    s.deviation = sqrt(squares - s.mean * s.mean);
    free(values);
    return s;
}

START_TEST(linear_starts_within_its_bounds_lay_002)
{
    tn_random_seed(5);
    tn_module *m = parsed("Linear(100, 400)");
    struct spread w = spread_of(tn_module_get(m, "weight")),
                  b = spread_of(tn_module_get(m, "bias"));
    ck_assert_double_ge(w.low, -0.1);
    ck_assert_double_lt(w.high, 0.1);
    ck_assert_double_lt(w.low, -0.0995);
    ck_assert_double_gt(w.high, 0.0995);
    ck_assert_double_eq_tol(w.deviation, 0.1 / sqrt(3), 5e-4);
    ck_assert_double_ge(b.low, -0.1);
    ck_assert_double_lt(b.high, 0.1);
    ck_assert_double_gt(b.high - b.low, 0.19);
    tn_module_drop(m);
}
END_TEST

START_TEST(one_seed_gives_the_same_weights_ini_016)
{
    float first[6], second[6], third[6];
    float *const to[] = { first, second, third };
    for (int i = 0; i < 3; i++) {
        tn_random_seed(i < 2 ? 11 : 12);
        tn_module *m = parsed("Linear(2, 3)");
        ck_assert_int_eq(tn_tensor_copy_out(tn_module_get(m, "weight"), to[i], sizeof first),
                         TN_OK);
        tn_module_drop(m);
    }
    ck_assert_mem_eq(first, second, sizeof first);
    ck_assert_mem_ne(first, third, sizeof first);
}
END_TEST

START_TEST(inits_have_pytorchs_bounds_ini_007_ini_011_ini_012_ini_013)
{
    TN_SCOPE;
    tn_random_seed(1);
    tn_tensor *t = tn_tensor_empty(TN_SHAPE(200, 50, 3), TN_F32,
                                   NULL); /* fan_in 150, fan_out 600 */
    struct {
        const char *spec;
        double mean, deviation, bound; /* bound 0: normal */
    } cases[] = {
        { "uniform()", 0.5, 1 / sqrt(12), 1 },
        { "uniform(a=-2, b=2)", 0, 2 / sqrt(3), 2 },
        { "normal(1, std=0.5)", 1, 0.5, 0 },
        { "kaiming_uniform()", 0, sqrt(2.0 / 150), sqrt(6.0 / 150) },
        { "kaiming_uniform(a=2, mode='fan_out')", 0, sqrt(2.0 / 5 / 600), sqrt(6.0 / 5 / 600) },
        { "kaiming_uniform(nonlinearity='tanh')", 0, 5.0 / 3 / sqrt(150),
          5.0 / 3 * sqrt(3.0 / 150) },
        { "kaiming_normal(nonlinearity='relu')", 0, sqrt(2.0 / 150), 0 },
        { "kaiming_normal(nonlinearity='linear')", 0, sqrt(1.0 / 150), 0 },
        { "kaiming_normal(nonlinearity='selu')", 0, 0.75 * sqrt(1.0 / 150), 0 },
        { "xavier_uniform(gain=2)", 0, 2 * sqrt(2.0 / 750), 2 * sqrt(6.0 / 750) },
        { "xavier_normal()", 0, sqrt(2.0 / 750), 0 },
        { "zeros()", 0, 0, 1 },
        { "ones()", 1, 0, 1.000001 },
        { "constant(0.25)", 0.25, 0, 1 },
    };
    for (int64_t i = 0; i < tn__countof(cases); i++) {
        ck_assert_msg(tn_init(t, "%s", cases[i].spec) == TN_OK, "%s: %s", cases[i].spec,
                      tn_error_text());
        struct spread s = spread_of(t);
        ck_assert_msg(fabs(s.mean - cases[i].mean) <= 0.03 * cases[i].deviation + 1e-12,
                      "%s: mean %g", cases[i].spec, s.mean);
        ck_assert_msg(fabs(s.deviation - cases[i].deviation) <= 0.02 * cases[i].deviation + 1e-6,
                      "%s: deviation %g", cases[i].spec, s.deviation);
        if (cases[i].bound > 0)
            ck_assert_msg(s.high <= cases[i].bound && s.low >= -cases[i].bound, "%s: from %g to %g",
                          cases[i].spec, s.low, s.high);
    }
}
END_TEST

START_TEST(inits_refuse_what_pytorch_refuses_ini_010)
{
    TN_SCOPE;
    tn_tensor *line = tn_tensor_empty(TN_SHAPE(4), TN_F32, NULL),
              *plane = tn_tensor_empty(TN_SHAPE(4, 4), TN_F32, NULL);
    ck_assert_int_eq(tn_init(line, "kaiming_uniform()"), TN_ERR_VALUE);
    expect_failure(
        TN_ERR_VALUE,
        "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
    ck_assert_int_eq(tn_init(line, "xavier_normal()"), TN_ERR_VALUE);
    tn_error_clear();
    ck_assert_int_eq(tn_init(plane, "kaiming_uniform(mode='fan')"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "Mode fan not supported, please use one of fan_in, fan_out");
    ck_assert_int_eq(tn_init(plane, "kaiming_normal(nonlinearity='gulp')"), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "Unsupported nonlinearity gulp");
    ck_assert_int_eq(tn_init(plane, "uniform(1, 0)"), TN_ERR_VALUE);
    tn_error_clear();
    ck_assert_int_eq(tn_init(plane, "kaiming()"), TN_ERR_KEY);
    tn_error_clear();
    ck_assert_int_eq(tn_init(plane, "constant()"), TN_ERR_VALUE);
    tn_error_clear();
    ck_assert_int_eq(tn_init(NULL, "zeros()"), TN_ERR_RUNTIME);
    tn_error_clear();
    ck_assert_int_eq(tn_init(TN_NONE, "zeros()"), TN_ERR_TYPE);
    tn_error_clear();
}
END_TEST

START_TEST(an_init_of_a_parameter_is_not_recorded_ini_006)
{
    TN_SCOPE;
    tn_module *m = parsed("Linear(2, 2)");
    tn_tensor *weight = tn_module_get(m, "weight");
    ck_assert_msg(tn_init(weight, "ones()") == TN_OK, "%s", tn_error_text());
    ck_assert(tn_tensor_is_leaf(weight) && tn_tensor_requires_grad(weight));
    ck_assert(tn_grad_enabled());
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        plain_draws_have_their_distributions,
        fans_and_gains,
        matrices_and_kernels,
        linear_starts_within_its_bounds_lay_002,
        one_seed_gives_the_same_weights_ini_016,
        inits_have_pytorchs_bounds_ini_007_ini_011_ini_012_ini_013,
        inits_refuse_what_pytorch_refuses_ini_010,
        an_init_of_a_parameter_is_not_recorded_ini_006,
        NULL,
    };
    return suite_run("init", tests);
}
