/* SPDX-License-Identifier: MIT
 *
 * Numbers of other distributions, and categories: within their bounds, with their moments and
 * shares, the same from the same seed on every device. */
#include "tests/libcheck.h"
#include <math.h>
#include <string.h>

#include <tenon/tenon.h>

#include "tests/op/suite.h"

enum { N = 40000 };

static double numbers[N];

static int64_t take(tn_tensor *x)
{
    tn_tensor *wide = tn_cast(x, TN_F64);

    ck_assert_msg(wide != NULL, "%s", tn_error_text());
    ck_assert_int_le(tn_tensor_numel(wide), N);
    ck_assert_int_eq(
        tn_tensor_copy_out(wide, numbers, (size_t)tn_tensor_numel(wide) * sizeof(double)), TN_OK);
    return tn_tensor_numel(wide);
}

/* The share of the numbers that are below `bound`. */
static double below(double bound)
{
    int64_t count = 0;

    for (int64_t i = 0; i < N; i++)
        count += numbers[i] < bound;
    return (double)count / N;
}

static void refused(const void *result, const char *words)
{
    ck_assert_ptr_null(result);
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "\"%s\" is not in: %s", words,
                  tn_error_text());
    tn_error_clear();
}

static tn_tensor *empty(tn_dtype dtype)
{
    return tn_tensor_empty(TN_SHAPE(N), dtype, NULL);
}

static const tn_dtype floats[] = { TN_F32, TN_F64, TN_BF16, TN_F16 };

START_TEST(exponential_has_its_rate)
{
    tn_exponential_options o = TN_EXPONENTIAL_OPTIONS;

    o.lambd = 2;
    for (int t = 0; t < 4; t++) {
        TN_SCOPE;
        tn_random_seed(21);
        take(tn_exponential(empty(floats[t]), o.lambd));
        for (int i = 0; i < N; i++)
            ck_assert(numbers[i] >= 0 && (numbers[i] > 0 || floats[t] == TN_F16) &&
                      numbers[i] < 20);
        ck_assert_double_eq_tol(below(0.5 * log(2)), 0.5, 0.02);
        ck_assert_double_eq_tol(below(0.5 * log(10)), 0.9, 0.02);
    }
    TN_SCOPE;
    o.lambd = 0;
    refused(tn_exponential(empty(TN_F32), o.lambd), "exponential: expects lambda > 0.0");
    o.lambd = NAN;
    refused(tn_exponential(empty(TN_F32), o.lambd), "lambda=nan");
    refused(tn_exponential(empty(TN_I64)), "int64");
}
END_TEST

START_TEST(geometric_counts_trials)
{
    static const tn_dtype dtypes[] = { TN_F32, TN_F64, TN_F16, TN_I64, TN_I32, TN_U8 };

    for (int t = 0; t < 6; t++) {
        TN_SCOPE;
        tn_random_seed(22);
        take(tn_geometric(empty(dtypes[t]), 0.25));
        for (int i = 0; i < N; i++)
            ck_assert(numbers[i] >= 1 && numbers[i] == floor(numbers[i]));
        ck_assert_double_eq_tol(below(1.5), 0.25, 0.02);
        ck_assert_double_eq_tol(below(2.5), 1 - 0.75 * 0.75, 0.02);
    }
    TN_SCOPE;
    take(tn_geometric(empty(TN_I8), 1e-9)); /* nearly all are beyond 127 */
    ck_assert_double_le(below(127), 0.01);
    ck_assert_double_eq(below(128), 1);
    take(tn_geometric(empty(TN_I64), 1e-300));
    ck_assert_double_le(below(0x1p62), 0.01);
    refused(tn_geometric(empty(TN_F32), 0), "geometric: expects p to be in (0, 1)");
    refused(tn_geometric(empty(TN_F32), 1), "got p=1");
    refused(tn_geometric(empty(TN_F32), NAN), "got p=nan");
}
END_TEST

START_TEST(log_normal_and_cauchy_have_their_quartiles)
{
    tn_log_normal_options o = TN_LOG_NORMAL_OPTIONS;
    tn_cauchy_options c = TN_CAUCHY_OPTIONS;

    o.mean = 0.5;
    o.std = 0.25;
    c.median = 3;
    c.sigma = 2;
    for (int t = 0; t < 4; t++) {
        TN_SCOPE;
        tn_random_seed(23);
        take(tn_log_normal(empty(floats[t]), o.mean, o.std));
        ck_assert_double_eq(below(0), 0);
        ck_assert_double_eq_tol(below(exp(0.5)), 0.5, 0.02);
        ck_assert_double_eq_tol(below(exp(0.5 + 0.25)), 0.8413, 0.02);
        take(tn_cauchy(empty(floats[t]), c.median, c.sigma));
        ck_assert_double_eq_tol(below(1), 0.25, 0.02);
        ck_assert_double_eq_tol(below(3), 0.5, 0.02);
        ck_assert_double_eq_tol(below(5), 0.75, 0.02);
    }
    TN_SCOPE;
    o.std = 0;
    refused(tn_log_normal(empty(TN_F32), o.mean, o.std), "log_normal: expects std > 0.0");
    c.sigma = -1;
    refused(tn_cauchy(empty(TN_F32), c.median, c.sigma), "cauchy: expects sigma > 0.0");
}
END_TEST

static tn_tensor *weights(tn_dtype dtype)
{
    static const double p[8] = { 1, 0, 3, 4, 0, 0, 5, 5 };
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(2, 4), TN_F64, NULL);

    ck_assert_int_eq(tn_tensor_copy_in(x, p, sizeof p), TN_OK);
    return tn_cast(x, dtype);
}

START_TEST(multinomial_draws_with_the_weights)
{
    static const double share[2][4] = { { 0.125, 0, 0.375, 0.5 }, { 0, 0, 0.5, 0.5 } };

    for (int t = 0; t < 4; t++) {
        int times[2][4] = { { 0 } };

        TN_SCOPE;
        tn_random_seed(24);
        ck_assert_int_eq(take(tn_multinomial(weights(floats[t]), N / 2, true)), N);
        for (int i = 0; i < N; i++) {
            ck_assert(numbers[i] >= 0 && numbers[i] < 4);
            times[i / (N / 2)][(int)numbers[i]]++;
        }
        for (int i = 0; i < 8; i++) {
            double got = times[i / 4][i % 4] / (N / 2.0), want = share[i / 4][i % 4];

            ck_assert_double_eq_tol(got, want, want == 0 ? 1e-12 : 0.02);
        }
    }
}
END_TEST

/* Few draws are compared with all boundaries, many are sorted together with them: both give the
 * same categories from the same numbers. */
START_TEST(multinomial_of_few_and_of_many_draws_agree)
{
    double few[16];
    TN_SCOPE;
    tn_tensor *p = tn_tensor_full(TN_SHAPE(1000), 1, TN_F32, NULL);

    tn_random_seed(25);
    ck_assert_int_eq(take(tn_multinomial(p, 16, true)), 16);
    memcpy(few, numbers, sizeof few);
    tn_random_seed(25);
    ck_assert_int_eq(take(tn_multinomial(p, 500, true)), 500);
    for (int i = 0; i < 16; i++)
        ck_assert_double_eq(few[i], numbers[i]);
}
END_TEST

/* Few draws from many weights are taken from the sums of blocks. */
START_TEST(multinomial_of_few_draws_from_many_weights_agrees_too)
{
    enum { WEIGHTS = 70000, FEW = 20, MANY = 200 };
    double few[FEW];
    TN_SCOPE;
    tn_random_seed(31);
    tn_tensor *p = tn_tensor_empty(TN_SHAPE(2 * WEIGHTS), TN_F32, NULL);
    p = tn_uniform(p);
    /* Strided; a third of the weights is 0, all of some blocks, and those at the end. */
    p = tn_select(tn_reshape(p, TN_SHAPE(WEIGHTS, 2)), 1, 1);
    p = tn_relu(tn_add_scalar(p, -1.0 / 3));
    tn_fill_(tn_narrow(p, 0, 1000, 4000), 0);
    tn_fill_(tn_narrow(p, 0, WEIGHTS - 50, 50), 0);
    for (int64_t seed = 40; seed < 60; seed++) {
        tn_random_seed((uint64_t)seed);
        ck_assert_int_eq(take(tn_multinomial(p, FEW, true)), FEW);
        memcpy(few, numbers, sizeof few);
        tn_random_seed((uint64_t)seed);
        ck_assert_int_eq(take(tn_multinomial(p, MANY, true)), MANY);
        for (int i = 0; i < FEW; i++)
            ck_assert_double_eq(few[i], numbers[i]);
    }
    tn_fill_(p, 0);
    tn_fill_(tn_narrow(p, 0, WEIGHTS - 1, 1), 1); /* the last block has 112 weights */
    ck_assert_int_eq(take(tn_multinomial(p, FEW, true)), FEW);
    for (int i = 0; i < FEW; i++)
        ck_assert_double_eq(numbers[i], WEIGHTS - 1);
    refused(tn_multinomial(tn_neg(p), 1, true), "p: wrong weights, got -1.0 to ");
    refused(tn_multinomial(tn_mul_scalar(p, 0), 1, true), "too few weights that are not 0, got 0");
    refused(tn_multinomial(tn_mul_scalar(p, NAN), 1, true), "p: wrong weights");
}
END_TEST

START_TEST(multinomial_without_replacement_draws_each_once)
{
    int first[4] = { 0 };

    for (int k = 0; k < 2000; k++) {
        TN_SCOPE;
        if (k == 0)
            tn_random_seed(26);
        ck_assert_int_eq(take(tn_multinomial(tn_select(weights(TN_F32), 0, 0), 3)), 3);
        ck_assert(numbers[0] != numbers[1] && numbers[1] != numbers[2] && numbers[0] != numbers[2]);
        for (int i = 0; i < 3; i++)
            ck_assert(numbers[i] == 0 || numbers[i] == 2 || numbers[i] == 3);
        first[(int)numbers[0]]++;
    }
    ck_assert_double_eq_tol(first[0] / 2000.0, 0.125, 0.03);
    ck_assert_double_eq_tol(first[2] / 2000.0, 0.375, 0.04);
    ck_assert_double_eq_tol(first[3] / 2000.0, 0.5, 0.04);
}
END_TEST

START_TEST(multinomial_refuses_what_is_no_distribution)
{
    TN_SCOPE;
    tn_tensor *ones = tn_tensor_full(TN_SHAPE(3), 1, TN_F32, NULL);

    refused(tn_multinomial(ones, 4), "num_samples: too many, got 4; expected at most 3");
    refused(tn_multinomial(ones, 0), "expected at least 1");
    refused(tn_multinomial(tn_reshape(ones, TN_SHAPE(1, 1, 3)), 1), "one or two dimensions");
    refused(tn_multinomial(weights(TN_F32), 3), "too few weights that are not 0, got 2");
    refused(tn_multinomial(tn_mul_scalar(ones, 0), 1, true),
            "too few weights that are not 0, got 0");
    refused(tn_multinomial(tn_neg(ones), 1, true), "p: wrong weights, got -1.0 to -1.0");
    refused(tn_multinomial(tn_mul_scalar(ones, NAN), 1, true), "p: wrong weights");
    refused(tn_multinomial(tn_mul_scalar(ones, INFINITY), 1, true), "p: wrong weights");
    refused(tn_multinomial(tn_mul_scalar(tn_cast(ones, TN_F64), 1e308), 1, true), "a finite sum");
    refused(tn_multinomial(tn_tensor_empty(TN_SHAPE(2, 0), TN_F32, NULL), 1, true),
            "p: no categories, got [2, 0]");
    ck_assert_int_eq(
        tn_tensor_numel(tn_multinomial(tn_tensor_empty(TN_SHAPE(0, 2), TN_F32, NULL), 1)), 0);
}
END_TEST

static tn_tensor *drawn(int i, const tn_device *device)
{
    tn_tensor *x = tn_tensor_full(TN_SHAPE(100), 0.5, TN_F32, device);
    tn_multinomial_options o = TN_MULTINOMIAL_OPTIONS;

    o.replacement = i == 5;
    switch (i) {
    case 0: return tn_exponential(x);
    case 1: return tn_geometric(x, 0.1);
    case 2: return tn_log_normal(x);
    case 3: return tn_cauchy(x);
    default: return tn_multinomial(x, 50, o.replacement);
    }
}

START_TEST(every_device_draws_the_same)
{
    static double first[100];

    for (int i = 0; i < 6; i++)
        for (int64_t d = 0; d < tn_device_count(); d++) {
            TN_SCOPE;
            const tn_device *device = tn_device_at(d);

            if (!tn_device_has_memory(device))
                continue;
            tn_random_seed(27);
            int64_t n = take(drawn(i, device));
            for (int64_t k = 0; k < n; k++) {
                if (d == 0)
                    first[k] = numbers[k];
                ck_assert_double_eq_tol(numbers[k], first[k], 1e-5 * (1 + fabs(first[k])));
            }
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("distributions");
    TCase *tests = tcase_create("distributions");

    tcase_add_test(tests, exponential_has_its_rate);
    tcase_add_test(tests, geometric_counts_trials);
    tcase_add_test(tests, log_normal_and_cauchy_have_their_quartiles);
    tcase_add_test(tests, multinomial_draws_with_the_weights);
    tcase_add_test(tests, multinomial_of_few_and_of_many_draws_agree);
    tcase_add_test(tests, multinomial_of_few_draws_from_many_weights_agrees_too);
    tcase_add_test(tests, multinomial_without_replacement_draws_each_once);
    tcase_add_test(tests, multinomial_refuses_what_is_no_distribution);
    tcase_add_test(tests, every_device_draws_the_same);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
