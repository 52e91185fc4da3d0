/* SPDX-License-Identifier: MIT
 *
 * Random numbers: within their bounds, as often as they should be, the same from the same seed. And
 * what indices, shapes and equations refuse, in words. */
#include <check.h>
#include <math.h>
#include <string.h>

#include <tenon/tenon.h>

#include "tests/op/with.h"

enum { N = 20000 };

static double numbers[N];

static void take(tn_tensor *x)
{
    tn_tensor *wide = tn_cast(x, TN_F64);

    ck_assert_msg(wide != NULL, "%s", tn_error_text());
    ck_assert_int_eq(
        tn_tensor_copy_out(wide, numbers, (size_t)tn_tensor_numel(wide) * sizeof(double)), TN_OK);
}

static double mean(int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += numbers[i];
    return sum / (double)n;
}

START_TEST(bernoulli_is_one_as_often_as_asked)
{
    TN_SCOPE;
    tn_random_seed(7);
    for (int k = 0; k <= 4; k++) {
        take(tn_bernoulli(tn_tensor_full(TN_SHAPE(N), k / 4.0, TN_F32, NULL)));
        for (int i = 0; i < N; i++)
            ck_assert(numbers[i] == 0 || numbers[i] == 1);
        ck_assert_double_eq_tol(mean(N), k / 4.0, k % 4 == 0 ? 1e-12 : 0.02);
    }
}
END_TEST

START_TEST(randint_gives_every_number_and_no_other)
{
    TN_SCOPE;
    static const tn_dtype dtypes[] = { TN_I64, TN_I8, TN_F32, TN_F16 };

    for (size_t d = 0; d < 4; d++) {
        int times[7] = { 0 };

        tn_random_seed(8);
        take(tn_randint(tn_tensor_empty(TN_SHAPE(N), dtypes[d], NULL), -3, 4));
        for (int i = 0; i < N; i++) {
            ck_assert(numbers[i] >= -3 && numbers[i] <= 3 && numbers[i] == floor(numbers[i]));
            times[(int)numbers[i] + 3]++;
        }
        for (int k = 0; k < 7; k++)
            ck_assert_int_gt(times[k], N / 7 - N / 50);
    }
    ck_assert_ptr_null(tn_randint(tn_tensor_empty(TN_SHAPE(2), TN_I64, NULL), 4, 4));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "low=4 >= high=4"));
    tn_error_clear();
}
END_TEST

START_TEST(randperm_has_every_number_once)
{
    TN_SCOPE;
    bool seen[1000] = { false };
    bool moved = false;
    double first;

    tn_random_seed(9);
    take(tn_randperm(TN_NONE, 1000));
    first = numbers[0];
    for (int i = 0; i < 1000; i++) {
        ck_assert(!seen[(int)numbers[i]]);
        seen[(int)numbers[i]] = true;
        moved |= numbers[i] != i;
    }
    ck_assert(moved);
    tn_random_seed(9);
    take(tn_randperm(TN_NONE, 1000));
    ck_assert_double_eq(numbers[0], first);
    ck_assert_int_eq(tn_tensor_numel(tn_randperm(TN_NONE, 0)), 0);
}
END_TEST

START_TEST(truncated_normal_stays_between_its_bounds)
{
    TN_SCOPE;
    tn_truncated_normal_options o = TN_TRUNCATED_NORMAL_OPTIONS;
    double square = 0;

    tn_random_seed(10);
    take(tn_truncated_normal(tn_tensor_empty(TN_SHAPE(N), TN_F32, NULL), NULL));
    for (int i = 0; i < N; i++) {
        ck_assert(fabs(numbers[i]) <= 2);
        square += numbers[i] * numbers[i] / N;
    }
    ck_assert_double_eq_tol(mean(N), 0, 0.03);
    ck_assert_double_eq_tol(square, 0.7737, 0.03); /* the variance of that distribution */
    o.mean = 5;
    o.std = 0.5;
    o.low = 5;
    o.high = 9;
    take(tn_truncated_normal(tn_tensor_empty(TN_SHAPE(N), TN_F64, NULL), &o));
    for (int i = 0; i < N; i++)
        ck_assert(numbers[i] >= 5 && numbers[i] <= 9);
}
END_TEST

static void refused(const void *result, const char *words)
{
    ck_assert_ptr_null(result);
    ck_assert_msg(strstr(tn_error_text(), words) != NULL, "\"%s\" is not in: %s", words,
                  tn_error_text());
    tn_error_clear();
}

START_TEST(refusals_say_what_and_where)
{
    TN_SCOPE;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(3, 4), 1, TN_F32, NULL);
    tn_tensor *far = tn_tensor_full(TN_SHAPE(1, 4), 3, TN_I64, NULL);
    tn_tensor *below = tn_tensor_full(TN_SHAPE(2), -1, TN_I64, NULL);
    tn_tensor *pair[] = { x, tn_tensor_full(TN_SHAPE(2, 3), 1, TN_F32, NULL) };
    tn_pad_options mode = TN_PAD_OPTIONS;

    refused(tn_gather(x, far, 0), "gather: index 3 is out of bounds for dimension 0 with size 3");
    refused(tn_scatter_add(x, far, x, 0), "scatter_add: index 3 is out of bounds");
    refused(tn_index_select(x, below, 0), "index -1 is out of bounds");
    refused(tn_embedding(x, below, NULL), "index -1 is out of bounds");
    refused(tn_gather(x, far, 2), "Dimension out of range");
    refused(tn_cat(pair, 2, 0), "cat: Sizes of tensors must match except in dimension 0");
    refused(tn_cumsum(x, 2, NULL), "cumsum: Dimension out of range");
    refused(tn_unfold(x, 0, 4, 1), "maximum size for tensor at dimension 0 is 3 but size is 4");
    mode.mode = "mirror";
    refused(tn_pad(x, (tn_ints){ (int64_t[]){ 1, 1 }, 2 }, &mode), "mirror");
    refused(tn_einsum(pair, 2, "ij,jk->ik"), "j is 4 and 2");
    refused(tn_einsum(pair, 1, "i->i"), "1 letters for operand 0 of 2 dimensions");
    refused(tn_arange(TN_NONE, 1, 0, NULL), "inconsistent with step sign");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("draws");
    TCase *tests = tcase_create("draws");

    tcase_add_test(tests, bernoulli_is_one_as_often_as_asked);
    tcase_add_test(tests, randint_gives_every_number_and_no_other);
    tcase_add_test(tests, randperm_has_every_number_once);
    tcase_add_test(tests, truncated_normal_stays_between_its_bounds);
    tcase_add_test(tests, refusals_say_what_and_where);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
