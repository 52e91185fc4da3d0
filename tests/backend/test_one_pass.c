/* SPDX-License-Identifier: MIT
 *
 * Kernels of the CPU that compute in one pass what a decomposition computes in several, compared
 * with loops in C: at the ends of vectors and blocks, in every layout, with one thread and several.
 */
#include "tests/backend/backend.h"

static const tn_dtype floats[] = { TN_F32, TN_F64, TN_BF16, TN_F16 };

/* ---- extremes of narrow integers ---- */

/* Fails unless aminmax of the rows of `in` and of all of it is what is given. */
static void check_both(tn_tensor *in, tn_dtype dtype, const double *low, const double *high,
                       double least, double most)
{
    tn_tensor *min, *max;

    for (int threads = 1; threads < 4; threads += 2) {
        ok(tn_set_num_threads(threads));
        ok(tn_aminmax(in, &min, &max, 1));
        same("smallest of rows", tn_default_device(), dtype, min, low, 0, 0);
        same("largest of rows", tn_default_device(), dtype, max, high, 0, 0);
        ok(tn_aminmax(in, &min, &max));
        ck_assert_int_eq(tn_tensor_ndim(min), 0);
        same("smallest", tn_default_device(), dtype, min, &least, 0, 0);
        same("largest", tn_default_device(), dtype, max, &most, 0, 0);
    }
    ok(tn_set_num_threads(1));
}

static void check_extremes(tn_dtype dtype, int64_t n, enum layout layout)
{
    TN_SCOPE;
    double *x = room(3 * n), high[3], low[3], most, least;
    double top = dtype == TN_BOOL ? 1 : 50, bottom = dtype == TN_BOOL || dtype == TN_U8 ? 0 : -50;
    int64_t last = 1;
    tn_tensor *in;

    for (int64_t i = 0; i < 3 * n; i++)
        x[i] = dtype == TN_BOOL ? i % n != 0 : bottom + 10 + (double)(i * 7 % 31);
    x[n - 1] = top; /* the last of a row, the first, one in the middle */
    x[n] = bottom;
    x[2 * n + n / 2] = top;
    for (int r = 0; r < 3; r++) {
        high[r] = low[r] = x[r * n];
        for (int64_t i = 0; i < n; i++) {
            high[r] = fmax(high[r], x[r * n + i]);
            low[r] = fmin(low[r], x[r * n + i]);
        }
    }
    most = fmax(high[0], fmax(high[1], high[2]));
    least = fmin(low[0], fmin(low[1], low[2]));
    in = put(tn_default_device(), dtype, TN_SHAPE(3, n), x, layout);
    same("amax", tn_default_device(), dtype, tn_amax(in, TN_INTS(last)), high, 0, 0);
    same("amin", tn_default_device(), dtype, tn_amin(in, TN_INTS(last)), low, 0, 0);
    same("amax", tn_default_device(), dtype, tn_amax(in), &most, 0, 0);
    same("amin", tn_default_device(), dtype, tn_amin(in), &least, 0, 0);
    check_both(in, dtype, low, high, least, most);
}

START_TEST(extremes_of_narrow_integers_at_every_length)
{
    static const tn_dtype dtypes[] = { TN_U8, TN_I8, TN_I16, TN_I32, TN_BOOL };

    for (int t = 0; t < 5; t++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            for (int64_t n = 1; n < 140; n += n < 70 ? 1 : 11)
                check_extremes(dtypes[t], n, (enum layout)layout);
            check_extremes(dtypes[t], 5000, (enum layout)layout);
            check_extremes(dtypes[t], 70001, (enum layout)layout);
        }
}
END_TEST

START_TEST(a_nan_is_the_smallest_and_the_largest)
{
    static const tn_dtype dtypes[] = { TN_F32, TN_F64, TN_BF16, TN_F16, TN_I64 };
    static const int64_t sizes[] = { 1, 2, 63, 1000, 4097, 70001 };

    for (int t = 0; t < 5; t++)
        for (int s = 0; s < 6; s++)
            for (int odd = 0; odd < 4; odd++) {
                TN_SCOPE;
                int64_t n = sizes[s], at = n + (odd == 1 ? 0 : odd == 2 ? n / 2 : n - 1);
                double *x = room(2 * n), low[2], high[2];
                bool nan = odd > 0 && t < 4;

                for (int64_t i = 0; i < 2 * n; i++)
                    x[i] = (double)(i % 11) - 5;
                x[n - 1] = 100;
                for (int r = 0; r < 2; r++) {
                    low[r] = high[r] = x[r * n];
                    for (int64_t i = 0; i < n; i++) {
                        low[r] = fmin(low[r], x[r * n + i]);
                        high[r] = fmax(high[r], x[r * n + i]);
                    }
                }
                if (nan)
                    x[at] = low[1] = high[1] = NAN;
                check_both(put(tn_default_device(), dtypes[t], TN_SHAPE(2, n), x, DENSE), dtypes[t],
                           low, high, nan ? NAN : fmin(low[0], low[1]),
                           nan ? NAN : fmax(high[0], high[1]));
            }
}
END_TEST

/* ---- histc ---- */

enum { COUNTED = 70001 };

/* The arithmetic of the operator, in float32 but for float64. */
static void count(const double *x, int64_t n, tn_dtype dtype, int64_t bins, double min, double max,
                  double *y)
{
    memset(y, 0, (size_t)bins * sizeof *y);
    for (int64_t i = 0; i < n; i++) {
        float f = ((float)x[i] - (float)min) / (float)(max - min) * (float)bins;
        double d = (x[i] - min) / (max - min) * (double)bins;
        int64_t at;

        if (!(x[i] >= min && x[i] <= max))
            continue;
        at = (int64_t)(dtype == TN_F64 ? d : (double)f);
        y[at < bins ? at : bins - 1]++;
    }
    for (int64_t b = 0; b < bins; b++)
        y[b] = stored(y[b], dtype);
}

START_TEST(elements_are_counted_in_their_bins)
{
    static const int64_t bins[] = { 1, 7, 100, 5000 }, sizes[] = { 0, 1, 511, 513, COUNTED };
    const tn_device *cpu = tn_default_device();
    double *x = room(COUNTED), *y = room(5000);

    for (int t = 0; t < 4; t++) {
        numbers(x, COUNTED, -4, 4, floats[t]);
        x[0] = 3, x[1] = -3, x[2] = NAN, x[3] = INFINITY, x[4] = -INFINITY, x[5] = 2.5;
        for (int s = 0; s < 5; s++)
            for (int b = 0; b < 4; b++)
                for (int layout = 0; layout < LAYOUTS; layout++)
                    for (int threads = 1; threads < 4; threads += 2) {
                        TN_SCOPE;
                        tn_tensor *in = put(cpu, floats[t], TN_SHAPE(sizes[s]), x,
                                            (enum layout)layout);
                        ok(tn_set_num_threads(threads));
                        count(x, sizes[s], floats[t], bins[b], -3, 3, y);
                        same("histc", cpu, floats[t], tn_histc(in, bins[b], -3, 3), y, 0, 0);
                    }
    }
    ok(tn_set_num_threads(1));
}
END_TEST

/* The ends, rounded to float32, are further apart than the width of all bins. */
START_TEST(bins_narrower_than_the_distance_of_two_numbers)
{
    TN_SCOPE;
    double y[1000] = { [0] = 1, [999] = 2 };

    same("histc", tn_default_device(), TN_F32,
         tn_histc(put(tn_default_device(), TN_F32, TN_SHAPE(3),
                      NUMBERS(16777216, 16777218, 16777218), DENSE),
                  1000, 16777216.9999999, 16777217.0000001),
         y, 0, 0);
}
END_TEST

/* A result that the caller supplies may have any strides; what lies between stays as it is. */
START_TEST(results_go_into_strided_tensors)
{
    static const char *const names[] = { "take", "put", "masked_scatter", "embedding_sum" };
    tn_put_options adds = TN_PUT_OPTIONS;

    adds.accumulate = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int more = 0; more < 1 + (i == 1); more++) {
            TN_SCOPE;
            const tn_device *cpu = tn_default_device();
            tn_tensor *x = put(cpu, TN_F32, TN_SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 6), DENSE);
            tn_tensor *index = put(cpu, TN_I64, TN_SHAPE(2, 3), NUMBERS(0, 1, 1, 1, 0, 0), DENSE);
            tn_tensor *mask = put(cpu, TN_BOOL, TN_SHAPE(2, 3), NUMBERS(1, 0, 1, 0, 1, 1), DENSE);
            tn_tensor *in[3] = { x, i == 2 ? mask : index, x }, *wanted = NULL, *all, *into;
            const tn_op *op = tn_op_find(names[i], 0);
            const int64_t n = i == 0 || i == 3 ? 2 : 3;
            double *got, *want;

            ok(tn_op_call(op, in, n, more ? &adds : NULL, &wanted, 1));
            all = tn_tensor_full(TN_SHAPE(2, 6), -1, TN_F32, NULL);
            into = tn_slice(all, 1, 0, 6, 2);
            ok(tn_op_call_into(op, in, n, more ? &adds : NULL, into));
            want = get(wanted);
            got = get(all);
            for (int k = 0; k < 12; k++)
                ck_assert_msg(got[k] == (k % 2 == 0 ? want[k / 2] : -1), "%s: %g at %d", names[i],
                              got[k], k);
        }
}
END_TEST

/* Equal ends are those of x; if x has one value only, the bins reach from 1 below to 1 above. */
START_TEST(equal_ends_of_bins_are_found_in_x)
{
    const tn_device *cpu = tn_default_device();

    for (int t = 0; t < 4; t++) {
        TN_SCOPE;
        same("histc", cpu, floats[t],
             tn_histc(
                 put(cpu, floats[t], TN_SHAPE(2, 3), NUMBERS(1, 2, 5, 2, 4.5, 1), EVERY_SECOND), 4),
             NUMBERS(2, 2, 0, 2), 0, 0);
        same("histc", cpu, floats[t],
             tn_histc(put(cpu, floats[t], TN_SHAPE(2), NUMBERS(7, 7), DENSE), 2), NUMBERS(0, 2), 0,
             0);
        same("histc", cpu, floats[t],
             tn_histc(put(cpu, floats[t], TN_SHAPE(0), NUMBERS(0), DENSE), 3), NUMBERS(0, 0, 0), 0,
             0);
        ck_assert(tn_histc(put(cpu, floats[t], TN_SHAPE(2), NUMBERS(7, NAN), DENSE), 2) == NULL);
        ck_assert_ptr_nonnull(strstr(tn_error_text(), "is not finite"));
        tn_error_clear();
    }
}
END_TEST

/* ---- ldexp ---- */

START_TEST(whole_powers_of_2_are_exact)
{
    enum { N = 66000 };
    const tn_device *cpu = tn_default_device();
    double *x = room(N), *e = room(N), *y = room(N);

    for (int t = 0; t < 2; t++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (int threads = 1; threads < 4; threads += 2) {
                TN_SCOPE;
                int least = t ? -1080 : -155, most = t ? 1030 : 135;
                tn_tensor *a, *b;

                ok(tn_set_num_threads(threads));
                for (int i = 0; i < N; i++) {
                    x[i] = i % 7 == 3 ? -0.75 : 1 + i % 16 / 16.0;
                    e[i] = least + i % (most - least);
                    y[i] = stored(ldexp(x[i], (int)e[i]), floats[t]);
                }
                x[9] = NAN, y[9] = NAN, x[10] = 0, y[10] = 0, x[11] = INFINITY, y[11] = INFINITY;
                e[12] = INFINITY, x[12] = 1, y[12] = INFINITY, e[13] = -INFINITY, y[13] = 0;
                x[14] = 1, e[14] = NAN, y[14] = NAN;
                a = put(cpu, floats[t], TN_SHAPE(N), x, (enum layout)layout);
                b = put(cpu, floats[t], TN_SHAPE(N), e, (enum layout)layout);
                same("ldexp", cpu, floats[t], tn_ldexp(a, b), y, 0, 0);
                there(tn_ldexp_(a, b));
                same("ldexp_", cpu, floats[t], a, y, 0, 0);
                a = put(cpu, floats[t], TN_SHAPE(3, 1), NUMBERS(1, 3, -5), (enum layout)layout);
                b = put(cpu, floats[t], TN_SHAPE(2), NUMBERS(2, -1), (enum layout)layout);
                same("ldexp", cpu, floats[t], tn_ldexp(a, b), NUMBERS(4, 0.5, 12, 1.5, -20, -2.5),
                     0, 0);
            }
    ok(tn_set_num_threads(1));
}
END_TEST

/* ---- the first of a long line ---- */

static int64_t rank_of(const double *x, int64_t n, int64_t i, bool largest)
{
    int64_t before = 0;

    for (int64_t k = 0; k < n; k++) {
        bool nan = isnan(x[k]), mine = isnan(x[i]);
        bool less = largest ? (nan && !mine) || x[k] > x[i] : (mine && !nan) || x[k] < x[i];
        bool equal = (nan && mine) || x[k] == x[i];

        before += less || (equal && k < i);
    }
    return before;
}

START_TEST(the_first_of_long_lines_are_those_of_a_stable_sort)
{
    enum { N = 9000, K = 40 };
    static const tn_dtype dtypes[] = { TN_F64, TN_I64, TN_F32, TN_I32 };
    const tn_device *cpu = tn_default_device();
    double *x = room(N), want[K], where[K];

    for (int t = 0; t < 4; t++)
        for (int few = 0; few < 3; few++)
            for (int largest = 0; largest < 2; largest++)
                for (int layout = 0; layout < LAYOUTS; layout++) {
                    TN_SCOPE;
                    tn_tensor *values, *places;
                    /* many different numbers, many equal ones, and ever better ones */
                    for (int i = 0; i < N; i++)
                        x[i] = few == 0   ? (i * 7919 % 9001) - 4000
                               : few == 1 ? i * 7919 % 9001 % 40
                               : largest  ? i
                                          : -i;
                    if (dtypes[t] == TN_F64 || dtypes[t] == TN_F32)
                        x[700] = x[8999] = NAN, x[701] = INFINITY, x[702] = -INFINITY;
                    for (int i = 0; i < N; i++) {
                        int64_t rank = few != 1 && fabs(x[i]) < 3900 && !isnan(x[i]) && few == 0
                                           ? K
                                           : rank_of(x, N, i, largest != 0);
                        if (rank < K)
                            want[rank] = x[i], where[rank] = i;
                    }
                    ok(tn_topk(put(cpu, dtypes[t], TN_SHAPE(N), x, (enum layout)layout), K, &values,
                               &places, 0, largest != 0));
                    same("topk", cpu, dtypes[t], values, want, 0, 0);
                    same("topk", cpu, TN_I64, places, where, 0, 0);
                }
}
END_TEST

/* ---- sums and means where an index says ---- */

enum { ROWS = 70, WIDE = 83, ALL = ROWS * WIDE, MANY = 40001 };

START_TEST(elements_are_added_where_they_are_put)
{
    static const tn_dtype dtypes[] = { TN_F32, TN_F64, TN_BF16, TN_F16,
                                       TN_I64, TN_I32, TN_I16,  TN_U8 };
    const tn_device *cpu = tn_default_device();
    double *x = room(ALL), *src = room(MANY), *at = room(MANY), *y = room(ALL);

    for (int t = 0; t < 8; t++)
        for (int threads = 1; threads < 4; threads += 2) {
            TN_SCOPE;
            tn_tensor *in, *index;

            ok(tn_set_num_threads(threads));
            for (int i = 0; i < ALL; i++)
                x[i] = y[i] = i % 5;
            for (int i = 0; i < MANY; i++) {
                int place = (int)((int64_t)i * 7919 % ALL);

                src[i] = i % 3;
                at[i] = i % 3 == 0 ? place - ALL : place;
                y[place] = stored(y[place] + src[i], dtypes[t]);
            }
            in = put(cpu, dtypes[t], TN_SHAPE(ROWS, WIDE), x, DENSE);
            index = put(cpu, TN_I64, TN_SHAPE(MANY), at, DENSE);
            same("put", cpu, dtypes[t],
                 tn_put(in, index, put(cpu, dtypes[t], TN_SHAPE(MANY), src, DENSE), true), y, 0, 0);
            at[MANY - 1] = -ALL - 1;
            index = put(cpu, TN_I64, TN_SHAPE(MANY), at, DENSE);
            ck_assert(tn_put_(in, index, put(cpu, dtypes[t], TN_SHAPE(MANY), src, DENSE), true) ==
                      NULL);
            ck_assert_ptr_nonnull(strstr(tn_error_text(), "put: index -5811 is out of bounds"));
            tn_error_clear();
            same("put", cpu, dtypes[t], in, x, 0, 0); /* nothing was written */
        }
    ok(tn_set_num_threads(1));
}
END_TEST

START_TEST(a_mask_says_where_elements_go)
{
    static const tn_dtype dtypes[] = { TN_U8, TN_BF16, TN_F32, TN_F64 };
    static const int64_t sizes[] = { 1, 2, 65, 16384, 16385, MANY };
    const tn_device *cpu = tn_default_device();
    double *x = room(MANY), *src = room(MANY), *mask = room(MANY), *y = room(MANY);

    for (int t = 0; t < 4; t++)
        for (int s = 0; s < 6; s++)
            for (int threads = 1; threads < 4; threads += 2) {
                TN_SCOPE;
                int64_t n = sizes[s], found = 0;
                tn_tensor *in, *where;

                ok(tn_set_num_threads(threads));
                for (int64_t i = 0; i < n; i++) {
                    mask[i] = i % 5 == 0 || i % 7 == 3;
                    x[i] = (double)(i % 100);
                    src[i] = (double)(100 + i % 90);
                    y[i] = mask[i] != 0 ? (double)(100 + found++ % 90) : x[i];
                }
                in = put(cpu, dtypes[t], TN_SHAPE(n), x, DENSE);
                where = put(cpu, TN_BOOL, TN_SHAPE(n), mask, DENSE);
                same("masked_scatter", cpu, dtypes[t],
                     tn_masked_scatter(in, where, put(cpu, dtypes[t], TN_SHAPE(n), src, DENSE)), y,
                     0, 0);
                ck_assert(tn_masked_scatter_(
                              in, where, put(cpu, dtypes[t], TN_SHAPE(found - 1), src, DENSE)) ==
                          NULL);
                tn_error_clear();
                same("masked_scatter", cpu, dtypes[t], in, x, 0, 0); /* nothing was written */
                there(tn_masked_scatter_(in, where,
                                         put(cpu, dtypes[t], TN_SHAPE(found), src, DENSE)));
                same("masked_scatter", cpu, dtypes[t], in, y, 0, 0);
            }
    ok(tn_set_num_threads(1));
}
END_TEST

START_TEST(means_of_slices_count_each_index)
{
    static const tn_dtype dtypes[] = { TN_F32, TN_F64, TN_I64 };
    const tn_device *cpu = tn_default_device();
    double x[6] = { 1, 2, 3, 4, 5, 6 }, src[8] = { 7, 9, 2, 4, -7, 1, 5, 5 };

    for (int t = 0; t < 3; t++) {
        TN_SCOPE;
        bool whole = dtypes[t] == TN_I64;
        tn_tensor *in = put(cpu, dtypes[t], TN_SHAPE(3, 2), x, EVERY_SECOND),
                  *index = put(cpu, TN_I64, TN_SHAPE(4), NUMBERS(2, 0, 2, 2), DENSE),
                  *values = put(cpu, dtypes[t], TN_SHAPE(4, 2), src, REVERSED), *along;
        along = tn_index_reduce(in, index, values, 0, "mean");
        same("mean", cpu, dtypes[t], along,
             whole ? NUMBERS(1, 3, 3, 4, 2, 5) : NUMBERS(1.5, 3, 3, 4, 2.5, 5.25), 0, 0);
        along = tn_index_reduce(in, index, values, 0, "mean", false);
        same("mean", cpu, dtypes[t], along,
             whole ? NUMBERS(2, 4, 3, 4, 1, 5) : NUMBERS(2, 4, 3, 4, stored(5.0 / 3, dtypes[t]), 5),
             0, 0);
        along = tn_index_reduce(tn_transpose(in, 0, 1), index, tn_transpose(values, 0, 1), -1,
                                "mean");
        same("mean", cpu, dtypes[t], along,
             whole ? NUMBERS(1, 3, 2, 3, 4, 5) : NUMBERS(1.5, 3, 2.5, 3, 4, 5.25), 0, 0);
    }
}
END_TEST

/* The gradient of sums of bags, in each of the ways to add it: copied rows, the indices at one
 * place of all bags, all indices of one bag. */
START_TEST(gradients_of_bags_reach_each_row)
{
    static const int64_t shapes[][3] = { { 5, 3, 4 },    { 300, 4, 70 }, { 3, 300, 70 },
                                         { 4, 0, 6000 }, { 0, 4, 70 },   { 4, 0, 3 } };
    enum { TABLE = 40 };
    const tn_device *cpu = tn_default_device();
    double *y = room(TABLE * 6000), *gy = room(4 * 6000 + 300 * 70), *at = room(1200);

    for (int s = 0; s < 6; s++)
        for (int mean = 0; mean < 2; mean++)
            for (int times = 1; times < 3; times++) { /* the second gradient is added */
                TN_SCOPE;
                int64_t bags = shapes[s][0], length = shapes[s][1], wide = shapes[s][2];
                tn_tensor *weight = put(cpu, TN_F64, TN_SHAPE(TABLE, wide), y, DENSE), *sum = NULL;

                ok(tn_tensor_set_requires_grad(weight, true));
                memset(y, 0, TABLE * 6000 * sizeof *y);
                for (int64_t i = 0; i < bags * wide; i++)
                    gy[i] = (double)(i % 9) * 4;
                for (int64_t i = 0; i < bags * length; i++) {
                    at[i] = (double)(i * 31 % (TABLE - 1));
                    for (int64_t j = 0; j < wide; j++)
                        y[(int64_t)at[i] * wide + j] += times * gy[i / length * wide + j] /
                                                        (double)(mean ? length : 1);
                }
                for (int k = 0; k < times; k++) {
                    tn_tensor *part = tn_sum(
                        tn_mul(tn_embedding_bag(weight,
                                                put(cpu, TN_I64, TN_SHAPE(bags, length), at, DENSE),
                                                TN_NONE, TN_NONE, mean ? "mean" : "sum"),
                               put(cpu, TN_F64, TN_SHAPE(bags, wide), gy, DENSE)));
                    sum = sum != NULL ? tn_add(sum, part) : part;
                }
                there(sum);
                ok(tn_backward(sum));
                same("gradient", cpu, TN_F64, tn_tensor_grad(weight), y, 8, 1e-9);
            }
}
END_TEST

/* The gradient of the sums is linear in gy, so that its gradient is sums of bags again. */
START_TEST(gradients_of_bags_can_be_derived_again)
{
    static const int64_t shapes[][3] = { { 5, 3, 4 }, { 300, 4, 70 }, { 3, 300, 70 } };
    enum { TABLE = 40 };
    const tn_device *cpu = tn_default_device();
    double *x = room(300 * 70), *at = room(1200);

    numbers(x, 300 * 70, -1, 1, TN_F64);
    for (int s = 0; s < 3; s++) {
        TN_SCOPE;
        int64_t bags = shapes[s][0], length = shapes[s][1], wide = shapes[s][2];
        tn_tensor *weight = put(cpu, TN_F64, TN_SHAPE(TABLE, wide), x, DENSE),
                  *other = put(cpu, TN_F64, TN_SHAPE(TABLE, wide), x, REVERSED),
                  *gy = put(cpu, TN_F64, TN_SHAPE(bags, wide), x, DENSE), *index, *y, *gradient;
        tn_backward_options options = { .size = sizeof options, .create_graph = true };

        for (int64_t i = 0; i < bags * length; i++)
            at[i] = (double)(i * 31 % TABLE);
        index = put(cpu, TN_I64, TN_SHAPE(bags, length), at, DENSE);
        ok(tn_tensor_set_requires_grad(weight, true));
        ok(tn_tensor_set_requires_grad(gy, true));
        y = tn_embedding_bag(weight, index);
        ok(tn_grad(&y, &gy, 1, &weight, &gradient, 1, &options));
        ok(tn_backward(tn_sum(tn_mul(gradient, other))));
        same("gradient", cpu, TN_F64, tn_tensor_grad(gy), get(tn_embedding_bag(other, index)), 8,
             1e-3);
    }
}
END_TEST

RUN_SUITE("one_pass", gradients_of_bags_can_be_derived_again,
          extremes_of_narrow_integers_at_every_length, elements_are_counted_in_their_bins,
          bins_narrower_than_the_distance_of_two_numbers, results_go_into_strided_tensors,
          equal_ends_of_bins_are_found_in_x, whole_powers_of_2_are_exact,
          the_first_of_long_lines_are_those_of_a_stable_sort, elements_are_added_where_they_are_put,
          a_mask_says_where_elements_go, a_nan_is_the_smallest_and_the_largest,
          means_of_slices_count_each_index, gradients_of_bags_reach_each_row)
