/* SPDX-License-Identifier: MIT
 *
 * Random numbers: bounds, frequencies, the same numbers from the same seed. Also the messages for
 * wrong indices, shapes and equations, and second derivatives. */
#include "tests/libcheck.h"
#include <math.h>
#include <string.h>

#include <tenon/tenon.h>

#include "tests/op/suite.h"

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

START_TEST(randperm_is_the_order_of_uniform_numbers)
{
    static const int64_t sizes[] = { 1, 2, 255, 2048, 2049, 5000, 100003, 400000 };

    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        TN_SCOPE;
        tn_tensor *order, *values, *places;

        tn_random_seed(11 + k);
        order = tn_randperm(TN_NONE, sizes[k]);
        tn_random_seed(11 + k);
        ck_assert_int_eq(tn_sort(tn_uniform(tn_tensor_empty(TN_SHAPE(sizes[k]), TN_F64, NULL)),
                                 &values, &places),
                         TN_OK);
        ck_assert_int_eq(tn_tensor_item(tn_all(tn_eq(order, places))), 1);
    }
}
END_TEST

START_TEST(truncated_normal_stays_between_its_bounds)
{
    TN_SCOPE;
    double square = 0;

    tn_random_seed(10);
    take(tn_truncated_normal(tn_tensor_empty(TN_SHAPE(N), TN_F32, NULL)));
    for (int i = 0; i < N; i++) {
        ck_assert(fabs(numbers[i]) <= 2);
        square += numbers[i] * numbers[i] / N;
    }
    ck_assert_double_eq_tol(mean(N), 0, 0.03);
    ck_assert_double_eq_tol(square, 0.7737, 0.03); /* the variance of that distribution */
    take(tn_truncated_normal(tn_tensor_empty(TN_SHAPE(N), TN_F64, NULL), 5, 0.5, 5, 9));
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

    refused(tn_gather(x, far, 0), "gather: index 3 is out of bounds for dimension 0 with size 3");
    refused(tn_scatter_add(x, far, x, 0), "scatter_add: index 3 is out of bounds");
    refused(tn_index_select(x, below, 0), "index -1 is out of bounds");
    refused(tn_embedding(x, below), "index -1 is out of bounds");
    refused(tn_gather(x, far, 2), "Dimension out of range");
    refused(tn_cat(pair, 2, 0), "cat: Sizes of tensors must match except in dimension 0");
    refused(tn_cumsum(x, 2), "cumsum: Dimension out of range");
    refused(tn_unfold(x, 0, 4, 1), "maximum size for tensor at dimension 0 is 3 but size is 4");
    refused(tn_pad(x, ((tn_ints){ (int64_t[]){ 1, 1 }, 2 }), "mirror"), "mirror");
    refused(tn_einsum(pair, 2, "ij,jk->ik"), "j: different sizes, got 4 and 2");
    refused(tn_einsum(pair, 1, "i->i"), "operand 0: wrong number of letters, got 1; expected 2");
    refused(tn_einsum(pair, 1, "ijk...->i"),
            "operand 0: wrong number of letters, got 3; expected 2");
    refused(tn_einsum(pair, 1, "..i->i"),
            "unknown character, got \".\"; expected letters, commas, ... and ->");
    refused(tn_einsum(pair, 1, "...i...->i"), "... occurs twice in an operand; expected it once");
    refused(tn_einsum(pair, 1, "...i->...i..."), "each once");
    refused(tn_einsum(pair, 1, "...i->.i"), "each once");
    refused(tn_einsum(pair, 2, "i...,i..."), "einsum");
    refused(tn_arange(TN_NONE, 1, 0), "inconsistent with step sign");
    refused(tn_full(TN_NONE, TN_SHAPE(2, -1), 1), "full: shape: negative size, got -1");
    refused(tn_index_put(x, x, NULL, 0), "index_put: inputs: wrong number, got 2");
    refused(tn_index_put(x, x, NULL, 99),
            "index_put: indices: wrong list, got 99 tensors and NULL");
    for (int i = 0; i < 2; i++) { /* of 3 rows, 3 and -4 are none */
        tn_tensor *row = tn_cast(tn_full(TN_NONE, TN_SHAPE(1), i == 0 ? 3 : -4), TN_I64);

        refused(tn_index_put(x, tn_full(TN_NONE, TN_SHAPE(1), 1), &row, 1),
                "out of bounds for dimension 0 with size 3");
    }
}
END_TEST

START_TEST(clone_keeps_strides_and_owns_its_memory)
{
    TN_SCOPE;
    tn_tensor *x = tn_full(TN_NONE, TN_SHAPE(3, 4), 2);
    tn_tensor *y = tn_clone(tn_transpose(x, 0, 1));

    ck_assert_msg(y != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_strides(y).at[0], 1);
    ck_assert_int_eq(tn_tensor_strides(y).at[1], 4);
    ck_assert_ptr_nonnull(tn_fill_(x, 5));
    ck_assert_double_eq(tn_tensor_item(tn_amax(y)), 2);
}
END_TEST

/* ---- second derivatives: x is [3, 4] ---- */

enum { BY_RANK = 13, CODES = 23 };

static tn_tensor *by_rank(int i, tn_tensor *x)
{
    tn_quantile_options along = TN_QUANTILE_OPTIONS;
    tn_aminmax_options both = TN_AMINMAX_OPTIONS;
    tn_tensor *fraction = tn_cast(tn_full(TN_NONE, TN_SHAPE(2), 0.3), TN_F64);
    tn_tensor *values, *places;

    along.dim = both.dim = 1;
    switch (i - BY_RANK) {
    case 0: return tn_cummax(x, 1, &values, &places) == TN_OK ? values : NULL;
    case 1: return tn_cummin(x, 0, &values, &places) == TN_OK ? values : NULL;
    case 2: return tn_logcumsumexp(x, 1);
    case 3: return tn_kthvalue(x, 2, &values, &places) == TN_OK ? values : NULL;
    case 4: return tn_median(x);
    case 5: return tn_nanmedian_dim(x, 0, &values, &places) == TN_OK ? values : NULL;
    case 6: return tn_mode(x, &values, &places) == TN_OK ? values : NULL;
    case 7: return tn_quantile(x, fraction, along.dim);
    case 8: return tn_nanmean(x);
    default:
        return tn_aminmax(x, &values, &places, both.dim) == TN_OK ? tn_mul(values, places) : NULL;
    }
}

static tn_tensor *code_of(int i, tn_tensor *x)
{
    int64_t last[] = { 1 };
    tn_ints dims = { last, 1 };
    tn_var_options spread = TN_VAR_OPTIONS;
    tn_std_options deviation = TN_STD_OPTIONS;
    tn_norm_options cubic = TN_NORM_OPTIONS;
    tn_prod_options product = TN_PROD_OPTIONS;
    tn_tensor *pair[] = { x, x }, *values, *places;

    spread.dims = deviation.dims = cubic.dims = product.dims = dims;
    cubic.p = 3;
    switch (i) {
    case 0: return tn_var(x, spread.dims);
    case 1: return tn_std(x, deviation.dims);
    case 2: return tn_norm(x, cubic.p, cubic.dims);
    case 3: return tn_prod(x, product.dims);
    case 4: return tn_logsumexp(x, dims);
    case 5: return tn_cumsum(x, 1);
    case 6: return tn_cumprod(x, 1);
    case 7: return tn_sort(x, &values, &places) == TN_OK ? values : NULL;
    case 8: return tn_slice(x, 1, INT64_MIN, INT64_MIN, 2);
    case 9: return tn_unfold(x, 1, 2, 1);
    case 10: return tn_diagonal(x);
    case 11: return tn_cat(pair, 2, 0);
    case 12: return tn_einsum(pair, 2, "ij,kj->ik");
    default: return by_rank(i, x);
    }
}

static tn_status gradient_of(void *user, tn_tensor *const *in, tn_tensor **out)
{
    tn_backward_options again = { .size = sizeof again, .create_graph = 1 };
    tn_tensor *x = in[0], *loss;
    tn_status status;

    if (!tn_grad_enabled()) /* the differences are taken without a graph */
        tn_tensor_set_requires_grad(x = tn_detach(x), true);
    tn_grad_begin(true);
    loss = tn_sum(tn_square(code_of(*(int *)user, x)));
    status = tn_grad(&loss, NULL, 1, &x, out, 1, &again);
    tn_grad_end();
    return status;
}

START_TEST(derivatives_can_be_differentiated_again)
{
    for (int i = 0; i < CODES; i++) {
        TN_SCOPE;
        tn_tensor *x = tn_reshape(
            tn_add_scalar(tn_mul_scalar(tn_cast(tn_arange(TN_NONE, 0, 12), TN_F64), 0.31), 0.4),
            TN_SHAPE(3, 4));

        x = tn_detach(tn_sin(x));
        ck_assert_int_eq(tn_tensor_set_requires_grad(x, true), TN_OK);
        ck_assert_msg(tn_gradcheck(gradient_of, &i, &x, 1, 1, 1e-5, 1e-5) == TN_OK, "%d: %s", i,
                      tn_error_text());
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("random");
    TCase *tests = tcase_create("random");

    tcase_add_test(tests, bernoulli_is_one_as_often_as_asked);
    tcase_add_test(tests, randint_gives_every_number_and_no_other);
    tcase_add_test(tests, randperm_has_every_number_once);
    tcase_add_test(tests, randperm_is_the_order_of_uniform_numbers);
    tcase_add_test(tests, truncated_normal_stays_between_its_bounds);
    tcase_add_test(tests, refusals_say_what_and_where);
    tcase_add_test(tests, clone_keeps_strides_and_owns_its_memory);
    tcase_add_test(tests, derivatives_can_be_differentiated_again);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
