/* SPDX-License-Identifier: MIT
 *
 * Kernels that move elements without changing them (fill, flip, index), bitwise operators, and the
 * extremes of rows with NaN at every index: for every length close to multiples of the vector
 * length. */
#include "tests/backend/backend.h"

enum { MOST = 200 };

static const tn_dtype sizes[] = { TN_U8, TN_I16, TN_F32, TN_F64 };

START_TEST(one_value_and_backwards_at_every_length)
{
    for (int t = 0; t < 4; t++)
        for (int64_t n = 1; n <= MOST; n += n < 70 ? 1 : 13) {
            TN_SCOPE;
            tn_tensor *x = tn_cast(tn_arange(TN_NONE, 0, (double)n), sizes[t]),
                      *seven = tn_tensor_full((tn_ints){ &n, 1 }, 7, sizes[t], NULL);
            int64_t first = 0;
            double *back = get(tn_flip(x, (tn_ints){ &first, 1 })), *full = get(seven);
            for (int64_t i = 0; i < n; i++) {
                ck_assert_msg(back[i] == (double)(n - 1 - i), "%d bytes, %lld: %g", 1 << t,
                              (long long)n, back[i]);
                ck_assert_double_eq(full[i], 7);
            }
        }
}
END_TEST

START_TEST(truth_values_at_every_length)
{
    for (int64_t n = 1; n <= MOST; n += n < 70 ? 1 : 13) {
        TN_SCOPE;
        double a[MOST], b[MOST];
        for (int64_t i = 0; i < n; i++) {
            a[i] = (double)(i % 3 == 0);
            b[i] = (double)(i % 5 < 2);
        }
        tn_tensor *x = tn_cast(tn_tensor_from(a, TN_F64, (tn_ints){ &n, 1 }), TN_BOOL),
                  *y = tn_cast(tn_tensor_from(b, TN_F64, (tn_ints){ &n, 1 }), TN_BOOL);
        double *both = get(tn_logical_and(x, y)), *any = get(tn_logical_or(x, y)),
               *one = get(tn_logical_xor(x, y)), *none = get(tn_logical_not(x)),
               *bits = get(tn_bitwise_not(tn_cast(x, TN_I64)));
        for (int64_t i = 0; i < n; i++) {
            ck_assert_double_eq(both[i], a[i] * b[i]);
            ck_assert_double_eq(any[i], a[i] + b[i] > 0);
            ck_assert_double_eq(one[i], a[i] != b[i]);
            ck_assert_double_eq(none[i], 1 - a[i]);
            ck_assert_double_eq(bits[i], -1 - a[i]);
        }
    }
}
END_TEST

START_TEST(elements_by_index_along_each_dimension)
{
    static const tn_dtype dtypes[] = { TN_U8, TN_I16, TN_F32, TN_F64, TN_C128 };
    const int64_t shape[3] = { 3, 5, 4 }, picks = 40;
    double x[60], at[40];
    for (int i = 0; i < 60; i++)
        x[i] = i;
    for (int t = 0; t < 5; t++)
        for (int dim = 0; dim < 3; dim++)
            for (int turned = 0; turned < 2; turned++) {
                TN_SCOPE;
                tn_tensor *all = tn_cast(tn_tensor_from(x, TN_F64, (tn_ints){ shape, 3 }),
                                         dtypes[t]),
                          *index, *y;
                for (int i = 0; i < picks; i++)
                    at[i] = i * 7 % shape[dim];
                index = tn_cast(tn_tensor_from(at, TN_F64, (tn_ints){ &picks, 1 }), TN_I64);
                if (turned) /* the same numbers from columns */
                    all = tn_transpose(tn_clone(tn_transpose(all, 0, 2)), 0, 2);
                y = tn_index_select(all, index, dim);
                for (int64_t k = 0; k < picks; k += 3) {
                    double *got = get(tn_cast(tn_select(y, dim, k), TN_F64)),
                           *want = get(tn_cast(tn_select(all, dim, (int64_t)at[k]), TN_F64));
                    for (int64_t i = 0; i < 60 / shape[dim]; i++)
                        ck_assert_double_eq(got[i], want[i]);
                }
            }
    TN_SCOPE;
    tn_tensor *row = tn_tensor_from(x, TN_F64, TN_SHAPE(5)),
              *far = tn_cast(tn_tensor_from(x + 4, TN_F64, TN_SHAPE(2)), TN_I64);
    ck_assert_ptr_null(tn_index_select(row, far, 0));
    ck_assert_ptr_nonnull(
        strstr(tn_error_text(), "index 5 is out of bounds for dimension 0 with size 5"));
    tn_error_clear();
    same("index_select", tn_default_device(), TN_F64,
         tn_index_select(tn_select(row, 0, 3),
                         tn_cast(tn_tensor_from(x, TN_F64, TN_SHAPE(1)), TN_I64), 0),
         NUMBERS(3), 0, 0);
}
END_TEST

/* Checks amax, amin and sum of three rows; the middle row has a NaN at index `odd` (-1: none). */
static void check_rows(int64_t n, int64_t odd, tn_dtype dtype)
{
    TN_SCOPE;
    static double x[3 * MOST];
    const int64_t shape[2] = { 3, n }, last = 1;
    tn_amax_options most = TN_AMAX_OPTIONS;
    tn_amin_options least = TN_AMIN_OPTIONS;
    tn_sum_options sum = TN_SUM_OPTIONS;
    most.dims = least.dims = sum.dims = (tn_ints){ &last, 1 };
    for (int64_t i = 0; i < 3 * n; i++)
        x[i] = (double)(i * 37 % 101 - 50);
    if (odd >= 0)
        x[n + odd] = NAN;
    tn_tensor *in = tn_cast(tn_tensor_from(x, TN_F64, (tn_ints){ shape, 2 }), dtype);
    double *high = get(tn_amax(in, most.dims)), *low = get(tn_amin(in, least.dims)),
           *all = get(tn_sum(in, sum.dims));
    for (int64_t r = 0; r < 3; r++) {
        double a = x[r * n], b = a, c = 0;
        for (int64_t i = 0; i < n; i++) {
            a = x[r * n + i] > a ? x[r * n + i] : a;
            b = x[r * n + i] < b ? x[r * n + i] : b;
            c += x[r * n + i];
        }
        if (r == 1 && odd >= 0) {
            ck_assert_msg(isnan(high[r]) && isnan(low[r]) && isnan(all[r]),
                          "%s, NaN at %lld of %lld", tn_dtype_name(dtype), (long long)odd,
                          (long long)n);
            continue;
        }
        ck_assert_msg(high[r] == a && low[r] == b && all[r] == c,
                      "%s, row %lld of %lld: %g %g %g, not %g %g %g", tn_dtype_name(dtype),
                      (long long)r, (long long)n, high[r], low[r], all[r], a, b, c);
    }
}

START_TEST(extremes_and_sums_of_rows_at_every_length)
{
    for (int64_t n = 1; n <= MOST; n += n < 70 ? 1 : 11)
        for (int t = 0; t < 2; t++) {
            check_rows(n, -1, t ? TN_F64 : TN_F32);
            check_rows(n, -1, TN_I64);
            for (int64_t odd = 0; odd < n; odd += n < 70 ? 3 : 17)
                check_rows(n, odd, t ? TN_F64 : TN_F32);
        }
}
END_TEST

START_TEST(special_numbers_among_others_in_place)
{
    TN_SCOPE;
    enum { N = 1000 };
    static double x[N];
    const int64_t n = N;
    for (int i = 0; i < N; i++)
        x[i] = 0.5;
    x[3] = INFINITY, x[4] = -INFINITY, x[5] = NAN, x[6] = 1000, x[7] = -1000, x[8] = 0, x[9] = -0.0;
    x[10] = 0x1p-140, x[600] = -1;
    tn_tensor *t = tn_cast(tn_tensor_from(x, TN_F64, (tn_ints){ &n, 1 }), TN_F32);
    double *e = get(tn_exp(t)), *l = get(tn_ln(t)), *h = get(tn_tanh(t)), *s = get(tn_sigmoid(t));
    for (int i = 0; i < N; i++) {
        ck_assert_msg(fabs(e[i] - exp(x[i])) <= 2e-7 * exp(x[i]) ||
                          (float)exp(x[i]) == (float)e[i] || (isnan(x[i]) && isnan(e[i])),
                      "exp(%g) = %g", x[i], e[i]);
        ck_assert_msg(isnan(l[i]) ? isnan(log(x[i]))
                                  : (l[i] == log(x[i]) || fabs(l[i] - log(x[i])) < 2e-5),
                      "log(%g) = %g", x[i], l[i]);
        ck_assert_msg(isnan(h[i])
                          ? isnan(x[i])
                          : (fabs(h[i] - tanh(x[i])) < 2e-6 && signbit(h[i]) == signbit(x[i])),
                      "tanh(%g) = %g", x[i], h[i]);
        ck_assert_msg(isnan(s[i]) ? isnan(x[i]) : fabs(s[i] - 1 / (1 + exp(-x[i]))) < 1e-6,
                      "sigmoid(%g) = %g", x[i], s[i]);
    }
    ck_assert(isinf(e[6]) && e[7] == 0 && l[8] == -INFINITY && isinf(l[3]));
}
END_TEST

/* Two matrices next to each other: each row of the result is copied from two rows. */
START_TEST(rows_side_by_side_at_every_length)
{
    static double start[6 * 1200];
    for (int t = 0; t < 4; t++)
        for (int64_t n = 1; n <= 1100; n += n < 140 ? 1 : 97) {
            TN_SCOPE;
            for (int64_t i = 0; i < 6 * n; i++)
                start[i] = (double)(i % 101);
            tn_tensor *x = put(tn_default_device(), sizes[t], TN_SHAPE(3, 2 * n), start, DENSE);
            tn_tensor *left = tn_narrow(x, 1, 0, n), *right = tn_clone(tn_narrow(x, 1, n, n));
            double *y = get(tn_cat(((tn_tensor *[]){ right, left }), 2, 1));
            for (int64_t i = 0; i < 6 * n; i++)
                ck_assert_double_eq(y[i], start[i / (2 * n) * (2 * n) + (i + n) % (2 * n)]);
        }
}
END_TEST

/* Rows of float16 and bfloat16 in place, with neighbours that must stay. */
START_TEST(narrow_rows_in_place_at_every_length)
{
    enum { WIDTH = 80 };
    double start[3 * WIDTH];
    for (int i = 0; i < 3 * WIDTH; i++)
        start[i] = i;
    for (int t = 0; t < 2; t++)
        for (int64_t n = 1; n < WIDTH; n++) {
            TN_SCOPE;
            tn_tensor *x = put(tn_default_device(), t ? TN_F16 : TN_BF16, TN_SHAPE(3, WIDTH), start,
                               DENSE);
            tn_tensor *row = tn_narrow(x, 1, 0, n);
            ok(tn_op_call_into(tn_op_find("add", 0), (tn_tensor *[]){ row, tn_clone(row) }, 2, NULL,
                               row));
            double *y = get(x);
            for (int i = 0; i < 3 * WIDTH; i++)
                ck_assert_double_eq(y[i], i % WIDTH < n ? 2 * i : i);
        }
}
END_TEST

/* Sums of 5 and of 40 rows. */
START_TEST(bags_of_rows_at_every_length)
{
    static const tn_dtype dtypes[] = { TN_F16, TN_BF16, TN_F32, TN_F64 };
    double start[7 * 140], at[80];
    for (int t = 0; t < 4; t++)
        for (int64_t n = 1; n < 140; n += n < 70 ? 1 : 11)
            for (int64_t many = 5; many <= 40; many += 35) {
                TN_SCOPE;
                for (int i = 0; i < 2 * many; i++)
                    at[i] = i * 3 % 7;
                for (int64_t i = 0; i < 7 * n; i++)
                    start[i] = (double)(i % 3);
                const tn_device *cpu = tn_default_device();
                tn_tensor *weight = put(cpu, dtypes[t], TN_SHAPE(7, n), start, DENSE),
                          *index = put(cpu, TN_I64, TN_SHAPE(2, many), at, DENSE);
                double *y = get(tn_embedding_bag(weight, index, TN_NONE, TN_NONE, "sum"));
                for (int64_t i = 0; i < 2 * n; i++) {
                    double want = 0;
                    for (int64_t k = 0; k < many; k++)
                        want += start[(int64_t)at[i / n * many + k] * n + i % n];
                    ck_assert_double_eq(y[i], want);
                }
            }
}
END_TEST

RUN_SUITE("vector_tails", one_value_and_backwards_at_every_length, truth_values_at_every_length,
          elements_by_index_along_each_dimension, extremes_and_sums_of_rows_at_every_length,
          special_numbers_among_others_in_place, rows_side_by_side_at_every_length,
          narrow_rows_in_place_at_every_length, bags_of_rows_at_every_length)
