/* SPDX-License-Identifier: MIT
 *
 * The CPU's ways of going through large tensors: reductions by rows and by columns, softmax of
 * transposed rows, order, running sums, rows chosen by index, transposed and reversed copies. */
#include "tests/backend/backend.h"

static const tn_device *cpu(void)
{
    EACH_DEVICE(device)
    if (strcmp(tn_device_type(device), "cpu") == 0)
        return device;
    return NULL;
}

enum { MOST = 80000 };
static const int64_t shapes[][2] = { { 70, 1030 }, { 1030, 70 }, { 300, 3 }, { 5, 9000 } };
enum { SHAPES = sizeof shapes / sizeof *shapes };
static const tn_dtype types[] = { TN_F32, TN_F64, TN_BF16 };
enum { TYPES = sizeof types / sizeof *types };
static double x[MOST];

/* ---- reductions ---- */

enum what {
    MEAN,
    VAR,
    STD,
    NORM,
    NORM_1,
    NORM_3,
    NORM_INF,
    LOGSUMEXP,
    AMAX,
    AMIN,
    PROD,
    ARGMAX,
    ARGMIN,
    ANY,
    ALL,
    WHATS
};

/* Reduces n numbers, `step` apart, as `what` says. */
static double folded(enum what what, const double *at, int64_t n, int64_t step)
{
    double mean = 0, sum = 0, most = -INFINITY, least = INFINITY, size = 0, p1 = 0, p2 = 0, p3 = 0,
           prod = 1, e = 0, any = 0, all = 1, place_most = 0, place_least = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = at[i * step];
        mean += v / (double)n;
        if (v > most)
            place_most = (double)i;
        if (v < least)
            place_least = (double)i;
        most = fmax(most, v);
        least = fmin(least, v);
        size = fmax(size, fabs(v));
        p1 += fabs(v);
        p2 += v * v;
        p3 += fabs(v * v * v);
        prod *= v;
        e += exp(v);
        any = any != 0 || v != 0;
        all = all != 0 && v != 0;
    }
    for (int64_t i = 0; i < n; i++)
        sum += (at[i * step] - mean) * (at[i * step] - mean) / (double)(n - 1);
    const double results[] = { mean,     sum,        sqrt(sum),   sqrt(p2), p1,
                               cbrt(p3), size,       log(e),      most,     least,
                               prod,     place_most, place_least, any,      all };
    return results[what];
}

static tn_tensor *reduced(enum what what, tn_tensor *in, tn_ints dims)
{
    switch (what) {
    case MEAN: return tn_mean(in, dims);
    case VAR: return tn_var(in, dims);
    case STD: return tn_std(in, dims);
    case NORM:
    case NORM_1:
    case NORM_3:
    case NORM_INF:
        return tn_norm(in,
                       what == NORM_1     ? 1
                       : what == NORM_3   ? 3
                       : what == NORM_INF ? INFINITY
                                          : 2,
                       dims);
    case LOGSUMEXP: return tn_logsumexp(in, dims);
    case AMAX: return tn_amax(in, dims);
    case AMIN: return tn_amin(in, dims);
    case PROD: return tn_prod(in, dims);
    /* An empty list means that no dimension is reduced: to reduce all, it must be left out. */
    case ANY:
        if (dims.count == 0)
            return tn_any(in);
        return tn_any(in, dims);
    case ALL:
        if (dims.count == 0)
            return tn_all(in);
        return tn_all(in, dims);
    case ARGMAX: {
        tn_argmax_options o = TN_ARGMAX_OPTIONS;
        if (dims.count == 1)
            o.dim = dims.at[0];
        return tn_argmax(in, o.dim);
    }
    default: {
        tn_argmin_options o = TN_ARGMIN_OPTIONS;
        if (dims.count == 1)
            o.dim = dims.at[0];
        return tn_argmin(in, o.dim);
    }
    }
}

static void check_reductions(tn_dtype dtype, const int64_t *shape, enum layout layout)
{
    int64_t rows = shape[0], columns = shape[1];
    for (enum what what = 0; what < WHATS; what++) {
        double expected[9000], low = what == PROD ? 0.999 : -1, high = what == PROD ? 1.001 : 1;
        bool exact = what >= AMAX && what != PROD;
        /* A product has the error of each of its numbers. */
        double ulps = exact ? 0 : what == PROD && dtype == TN_F64 ? 4000 : 80;
        numbers(x, rows * columns, low, high, dtype);
        for (int64_t i = 0; what == ANY && i < rows * columns; i++)
            x[i] = i % 211 == 3;
        for (int64_t i = 0; what == ALL && i < rows * columns; i++)
            x[i] = i % 1999 != 3;
        tn_tensor *in = put(cpu(), dtype, (tn_ints){ shape, 2 }, x, layout);
        for (int64_t j = 0; j < columns; j++)
            expected[j] = folded(what, x + j, rows, columns);
        tn_dtype to = what == ARGMAX || what == ARGMIN ? TN_I64
                      : what == ANY || what == ALL     ? TN_BOOL
                                                       : dtype;
        same("columns", cpu(), to, reduced(what, in, TN_INTS(0)), expected, ulps, 1);
        for (int64_t i = 0; i < rows; i++)
            expected[i] = folded(what, x + i * columns, columns, 1);
        same("rows", cpu(), to, reduced(what, in, TN_INTS(1)), expected, ulps, 1);
        expected[0] = folded(what, x, rows * columns, 1);
        same("all", cpu(), to, reduced(what, in, tn_no_ints()), expected, ulps, 1);
    }
}

START_TEST(reductions_by_rows_and_columns_are_those_of_their_definition)
{
    for (int t = 0; t < TYPES; t++)
        for (int s = 0; s < SHAPES; s++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                TN_SCOPE;
                check_reductions(types[t], shapes[s], (enum layout)layout);
            }
    ck_assert_int_gt(checks_made, 100000);
}
END_TEST

START_TEST(NaN_reaches_the_results_of_its_column_and_row)
{
    TN_SCOPE;
    enum { ROWS = 50, COLUMNS = 40 };
    tn_argmax_options most = TN_ARGMAX_OPTIONS;
    tn_argmin_options least = TN_ARGMIN_OPTIONS;
    double places[COLUMNS] = { 0 }, largest[COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = -(i / COLUMNS);
    x[7 * COLUMNS + 5] = x[9 * COLUMNS + 5] = NAN;
    tn_tensor *in = put(cpu(), TN_F32, TN_SHAPE(ROWS, COLUMNS), x, DENSE);
    for (int j = 0; j < COLUMNS; j++)
        largest[j] = j == 5 ? NAN : 0;
    same("amax", cpu(), TN_F32, reduced(AMAX, in, TN_INTS(0)), largest, 0, 0);
    places[5] = 7;
    most.dim = least.dim = 0;
    same("argmax", cpu(), TN_I64, tn_argmax(in, most.dim), places, 0, 0);
    for (int j = 0; j < COLUMNS; j++)
        places[j] = j == 5 ? 7 : ROWS - 1;
    same("argmin", cpu(), TN_I64, tn_argmin(in, least.dim), places, 0, 0);
    ck_assert(isnan(tn_item(reduced(AMIN, in, tn_no_ints()))));
    ck_assert(isnan(tn_item(reduced(LOGSUMEXP, in, TN_INTS(0, 1)))));
}
END_TEST

/* A line that is divided into pieces, with a NaN in each piece in turn; argmax and argmin return
 * the place of the first NaN. */
START_TEST(NaN_in_any_piece_of_a_long_line_counts)
{
    enum { LONG = 70000 };
    static const int64_t places[] = { 0, 30000, LONG - 1 };
    static const tn_dtype wide[] = { TN_F32, TN_F64 };
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < 3; i++) {
            TN_SCOPE;
            for (int j = 0; j < LONG; j++)
                x[j] = j % 1000;
            x[places[i]] = x[LONG - 1] = NAN;
            tn_tensor *in = put(cpu(), wide[t], TN_SHAPE(LONG), x, DENSE);
            ck_assert(isnan(tn_item(tn_amax(in))));
            ck_assert(isnan(tn_item(tn_amin(in))));
            ck_assert_double_eq(tn_item(tn_argmax(in)), (double)places[i]);
            ck_assert_double_eq(tn_item(tn_argmin(in)), (double)places[i]);
        }
}
END_TEST

START_TEST(reductions_of_nothing)
{
    TN_SCOPE;
    tn_tensor *in = put(cpu(), TN_F32, TN_SHAPE(0, 6), x, DENSE);
    double none[6] = { 0 }, minus[6], odd[6], one[6];
    for (int j = 0; j < 6; j++) {
        minus[j] = -INFINITY;
        odd[j] = NAN;
        one[j] = 1;
    }
    same("mean", cpu(), TN_F32, reduced(MEAN, in, TN_INTS(0)), odd, 0, 0);
    same("var", cpu(), TN_F32, reduced(VAR, in, TN_INTS(0)), odd, 0, 0);
    same("norm", cpu(), TN_F32, reduced(NORM, in, TN_INTS(0)), none, 0, 0);
    same("logsumexp", cpu(), TN_F32, reduced(LOGSUMEXP, in, TN_INTS(0)), minus, 0, 0);
    same("prod", cpu(), TN_F32, reduced(PROD, in, TN_INTS(0)), one, 0, 0);
    same("all", cpu(), TN_BOOL, reduced(ALL, in, TN_INTS(0)), one, 0, 0);
    same("any", cpu(), TN_BOOL, reduced(ANY, in, TN_INTS(0)), none, 0, 0);
    ck_assert_int_eq(tn_tensor_numel(reduced(ANY, in, TN_INTS(1))), 0);
}
END_TEST

START_TEST(reductions_do_not_depend_on_the_number_of_threads)
{
    TN_SCOPE;
    static const int64_t shape[2] = { 400, 2000 };
    double *many = malloc(800000 * sizeof *many), *first[3] = { NULL, NULL, NULL };
    numbers(many, 800000, -1, 1, TN_F32);
    tn_tensor *in = put(cpu(), TN_F32, (tn_ints){ shape, 2 }, many, DENSE);
    const tn_ints dims[3] = { TN_INTS(0), TN_INTS(1), tn_no_ints() };
    for (int threads = 1; threads <= 3; threads++) {
        ok(tn_set_num_threads(threads));
        for (int d = 0; d < 3; d++) {
            tn_tensor *got = reduced(VAR, in, dims[d]);
            double *now = get(got);
            if (first[d] == NULL) {
                first[d] = now;
                continue;
            }
            ck_assert_int_eq(memcmp(first[d], now, (size_t)tn_tensor_numel(got) * sizeof *now), 0);
            free(now);
        }
    }
    for (int d = 0; d < 3; d++)
        free(first[d]);
    free(many);
}
END_TEST

/* ---- softmax ---- */

START_TEST(softmax_of_upright_rows)
{
    enum { ROWS = 130, COLUMNS = 300 };
    static double y[ROWS * COLUMNS], logs[ROWS * COLUMNS], gx[ROWS * COLUMNS], g[ROWS * COLUMNS];
    for (int t = 0; t < 2; t++) {
        TN_SCOPE;
        numbers(x, ROWS * COLUMNS, -30, 30, types[t]);
        numbers(g, ROWS * COLUMNS, -1, 1, types[t]);
        for (int j = 0; j < COLUMNS; j++) {
            double all = 0, sum = 0;
            for (int i = 0; i < ROWS; i++) {
                all += exp(x[i * COLUMNS + j]);
                sum += g[i * COLUMNS + j];
            }
            for (int i = j; i < ROWS * COLUMNS; i += COLUMNS) {
                y[i] = exp(x[i]) / all;
                logs[i] = x[i] - log(all);
                gx[i] = g[i] - y[i] * sum;
            }
        }
        tn_tensor *in = put(cpu(), types[t], TN_SHAPE(ROWS, COLUMNS), x, DENSE), *out;
        same("softmax", cpu(), types[t], tn_softmax(in, 0), y, 40, 1);
        out = tn_log_softmax(in, 0);
        same("log_softmax", cpu(), types[t], out, logs, 8, 60);
        out = tn_log_softmax_grad(put(cpu(), types[t], TN_SHAPE(ROWS, COLUMNS), g, DENSE), out, 0);
        same("log_softmax_grad", cpu(), types[t], out, gx, 400, 1);
        for (int j = 0; j < COLUMNS; j++) {
            double sum = 0;

            for (int i = j; i < ROWS * COLUMNS; i += COLUMNS)
                sum += g[i] * y[i];
            for (int i = j; i < ROWS * COLUMNS; i += COLUMNS)
                gx[i] = y[i] * (g[i] - sum);
        }
        out = tn_softmax_grad(put(cpu(), types[t], TN_SHAPE(ROWS, COLUMNS), g, DENSE),
                              put(cpu(), types[t], TN_SHAPE(ROWS, COLUMNS), y, DENSE), 0);
        same("softmax_grad", cpu(), types[t], out, gx, 400, 1);
    }
}
END_TEST

/* ---- order ---- */

static bool down;
static int by_value(const void *a, const void *b)
{
    double p = x[*(const int *)a], q = x[*(const int *)b];
    if (p != q)
        return (p < q) != down ? -1 : 1;
    return *(const int *)a < *(const int *)b ? -1 : 1;
}

START_TEST(long_lines_are_sorted_and_their_first_ones_found)
{
    enum { COUNT = 9000 };
    static const tn_dtype sorts[] = { TN_F32, TN_F64, TN_BF16, TN_I64, TN_I32, TN_U8, TN_I8 };
    static const int64_t firsts[] = { 1, 7, 300, 2000, 8000, COUNT };
    static int order[COUNT];
    static double values[COUNT], places[COUNT];
    for (size_t t = 0; t < sizeof sorts / sizeof *sorts; t++) {
        for (int which = 0; which < 2; which++) {
            TN_SCOPE;
            tn_sort_options o = TN_SORT_OPTIONS;
            tn_tensor *got, *at;
            numbers(x, COUNT, sorts[t] == TN_U8 ? 0 : -100, 100, sorts[t]);
            down = o.descending = which == 1;
            for (int i = 0; i < COUNT; i++)
                order[i] = i;
            qsort(order, COUNT, sizeof *order, by_value);
            for (int i = 0; i < COUNT; i++) {
                values[i] = x[order[i]];
                places[i] = order[i];
            }
            tn_tensor *in = put(cpu(), sorts[t], TN_SHAPE(COUNT), x, which ? DENSE : EVERY_SECOND);
            ok(tn_sort(in, &got, &at, o.dim, o.descending));
            same("sort", cpu(), sorts[t], got, values, 0, 0);
            same("sort", cpu(), TN_I64, at, places, 0, 0);
            for (size_t k = 0; k < sizeof firsts / sizeof *firsts; k++) {
                ok(tn_topk(in, firsts[k], &got, &at, -1, down));
                ck_assert_int_eq(tn_tensor_numel(got), firsts[k]);
                same("topk", cpu(), sorts[t], got, values, 0, 0);
                same("topk", cpu(), TN_I64, at, places, 0, 0);
                if (down)
                    continue;
                ok(tn_kthvalue(in, firsts[k], &got, &at));
                same("kthvalue", cpu(), sorts[t], got, values + firsts[k] - 1, 0, 0);
                same("kthvalue", cpu(), TN_I64, at, places + firsts[k] - 1, 0, 0);
            }
        }
    }
}
END_TEST

START_TEST(the_gradient_of_topk_goes_to_what_was_chosen)
{
    TN_SCOPE;
    tn_tensor *in = put(cpu(), TN_F32, TN_SHAPE(2, 4), NUMBERS(1, 5, 3, 5, -1, -2, -3, -4), DENSE),
              *got, *at;
    ok(tn_tensor_set_requires_grad(in, true));
    ok(tn_topk(in, 2, &got, &at, 1));
    ok(tn_backward(tn_sum(tn_mul(got, got))));
    same("topk", cpu(), TN_F32, tn_tensor_grad(in), NUMBERS(0, 10, 0, 10, -2, -4, 0, 0), 0, 0);
}
END_TEST

/* ---- running sums ---- */

START_TEST(running_sums_of_lines_side_by_side)
{
    enum { ROWS = 37, COLUMNS = 600 };
    static double sums[ROWS * COLUMNS];
    static const tn_dtype both[] = { TN_F32, TN_F64, TN_I64 };
    for (int t = 0; t < 3; t++) {
        for (int i = 0; i < ROWS * COLUMNS; i++)
            x[i] = i % 7 - 3;
        for (int back = 0; back < 2; back++) {
            TN_SCOPE;
            tn_cumsum_options o = TN_CUMSUM_OPTIONS;
            o.reverse = back == 1;
            tn_tensor *in = put(cpu(), both[t], TN_SHAPE(ROWS, COLUMNS), x, DENSE);
            for (int j = 0; j < COLUMNS; j++) {
                double all = 0;
                for (int i = 0; i < ROWS; i++) {
                    int at = (back ? ROWS - 1 - i : i) * COLUMNS + j;
                    sums[at] = all += x[at];
                }
            }
            same("cumsum", cpu(), both[t], tn_cumsum(in, 0, o.reverse), sums, 0, 0);
            for (int i = 0; i < ROWS; i++) {
                double all = 0;
                for (int j = 0; j < COLUMNS; j++) {
                    int at = i * COLUMNS + (back ? COLUMNS - 1 - j : j);
                    sums[at] = all += x[at];
                }
            }
            same("cumsum", cpu(), both[t], tn_cumsum(in, 1, o.reverse), sums, 0, 0);
        }
    }
}
END_TEST

/* ---- by index ---- */

START_TEST(numbers_too_small_for_float32_are_not_zero)
{
    TN_SCOPE;
    tn_tensor *in = put(cpu(), TN_F64, TN_SHAPE(4), NUMBERS(0, 1e-300, -0.0, 2), DENSE),
              *at = tn_nonzero(in);
    ck_assert_int_eq(tn_tensor_size(at, 0), 2);
    same("nonzero", cpu(), TN_I64, at, NUMBERS(1, 3), 0, 0);
}
END_TEST

/* The input is strided, the result contiguous. */
START_TEST(running_sums_of_lines_with_gaps)
{
    enum { LINES = 40, LONG = 60 };
    for (int t = 0; t < 2; t++)
        for (int gaps = 2; gaps <= 3; gaps++) {
            TN_SCOPE;
            for (int i = 0; i < LINES * LONG; i++)
                x[i] = i % 7 - 3;
            tn_tensor *all = put(cpu(), types[t], TN_SHAPE(LINES, LONG), x, DENSE), *in;
            in = tn_slice(all, 1, INT64_MIN, INT64_MIN, gaps);
            int64_t length = LONG / gaps;
            static double sums[LINES * LONG];
            for (int64_t i = 0; i < LINES; i++)
                for (int64_t j = 0; j < length; j++)
                    sums[i * length + j] = x[i * LONG + j * gaps] +
                                           (j > 0 ? sums[i * length + j - 1] : 0);
            same("cumsum", cpu(), types[t], tn_cumsum(in, 1), sums, 0, 0);
        }
}
END_TEST

START_TEST(rows_and_columns_chosen_and_added_by_index)
{
    enum { ROWS = 40, COLUMNS = 500, MANY = 90 };
    static double chosen[MANY * COLUMNS], sums[ROWS * COLUMNS], index[MANY];
    for (int i = 0; i < MANY; i++)
        index[i] = i * 7 % ROWS;
    for (int t = 0; t < TYPES; t++) {
        for (int threads = 1; threads <= 3; threads++) {
            TN_SCOPE;
            ok(tn_set_num_threads(threads));
            for (int i = 0; i < ROWS * COLUMNS; i++) {
                x[i] = i % 13 - 6;
                sums[i] = 0;
            }
            for (int i = 0; i < MANY * COLUMNS; i++) {
                int at = (int)index[i / COLUMNS] * COLUMNS + i % COLUMNS;
                chosen[i] = x[at];
                sums[at] += chosen[i];
            }
            tn_tensor *in = put(cpu(), types[t], TN_SHAPE(ROWS, COLUMNS), x, EVERY_SECOND),
                      *at = put(cpu(), TN_I64, TN_SHAPE(MANY), index, DENSE),
                      *got = tn_index_select(in, at, 0), *none = tn_sub(in, in);
            same("index_select", cpu(), types[t], got, chosen, 0, 0);
            same("index_add", cpu(), types[t], tn_index_add(none, at, got, 0), sums, 0, 0);
            got = tn_transpose(tn_index_select(tn_transpose(in, 0, 1), at, 1), 0, 1);
            same("index_select", cpu(), types[t], got, chosen, 0, 0);
        }
    }
}
END_TEST

/* ---- copies ---- */

START_TEST(transposed_and_reversed_copies)
{
    enum { A = 3, B = 67, C = 70 };
    static const tn_dtype all[] = { TN_F32, TN_F64, TN_BF16, TN_U8, TN_C128 };
    static double turned[A * B * C], back[A * B * C];
    for (int i = 0; i < A * B * C; i++)
        x[i] = i % 251;
    for (int a = 0; a < A; a++)
        for (int b = 0; b < B; b++)
            for (int c = 0; c < C; c++) {
                turned[(c * A + a) * B + b] = x[(a * B + b) * C + c];
                back[(a * B + b) * C + C - 1 - c] = x[((A - 1 - a) * B + b) * C + c];
            }
    for (size_t t = 0; t < sizeof all / sizeof *all; t++) {
        for (int layout = 0; layout < LAYOUTS; layout++) {
            TN_SCOPE;
            tn_tensor *in = put(cpu(), all[t], TN_SHAPE(A, B, C), x, (enum layout)layout), *got;
            got = tn_reshape(tn_permute(in, TN_INTS(2, 0, 1)), TN_SHAPE(A * B * C));
            same("permute", cpu(), all[t], got, turned, 0, 0);
            same("flip", cpu(), all[t], tn_flip(in, TN_INTS(0, -1)), back, 0, 0);
        }
    }
}
END_TEST

START_TEST(repeat_along_several_dimensions)
{
    TN_SCOPE;
    tn_tensor *in = put(cpu(), TN_F32, TN_SHAPE(1, 2), NUMBERS(1, 2), DENSE), *y;
    y = tn_repeat(in, TN_INTS(2, 2, 2));
    same("repeat", cpu(), TN_F32, y, NUMBERS(1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2), 0, 0);
    y = tn_repeat(in, TN_INTS(3, 1));
    ok(tn_fill_(y, 9) != NULL ? TN_OK : TN_ERR_RUNTIME);
    same("repeat", cpu(), TN_F32, in, NUMBERS(1, 2), 0, 0);
    ck_assert_int_eq(tn_tensor_numel(tn_repeat(in, TN_INTS(0, 4))), 0);
}
END_TEST

RUN_SUITE("large_tensors", reductions_by_rows_and_columns_are_those_of_their_definition,
          NaN_reaches_the_results_of_its_column_and_row, NaN_in_any_piece_of_a_long_line_counts,
          reductions_of_nothing, reductions_do_not_depend_on_the_number_of_threads,
          softmax_of_upright_rows, long_lines_are_sorted_and_their_first_ones_found,
          the_gradient_of_topk_goes_to_what_was_chosen, running_sums_of_lines_side_by_side,
          running_sums_of_lines_with_gaps, numbers_too_small_for_float32_are_not_zero,
          rows_and_columns_chosen_and_added_by_index, transposed_and_reversed_copies,
          repeat_along_several_dimensions)
