/* SPDX-License-Identifier: MIT
 *
 * Products of matrices on the CPU, by each instruction set, compared with sums in long double: rows
 * and columns that do not fill strips, panels and vectors, more than one round of depth, every
 * layout, batches that share a matrix; the bits do not depend on the number of threads. */
#include "tests/backend/backend.h"

static const tn_device *cpu(void)
{
    return tn_device_find("cpu");
}

/* rows, depth, columns: sizes just below and above those of a strip, a panel and a vector, and
 * multiples of them. */
static const int64_t sizes[][3] = { { 6, 3, 2 },      { 7, 1, 15 },     { 12, 64, 16 },
                                    { 13, 31, 17 },   { 18, 513, 33 },  { 25, 100, 47 },
                                    { 40, 2, 48 },    { 193, 65, 49 },  { 64, 64, 63 },
                                    { 30, 200, 64 },  { 31, 77, 65 },   { 24, 1025, 80 },
                                    { 205, 33, 130 }, { 11, 520, 260 }, { 260, 257, 300 },
                                    { 6, 30, 700 },   { 100, 1100, 97 } };
enum { SIZES = (int)(sizeof sizes / sizeof sizes[0]) };

/* [batch, rows, columns], row-major or (`upright`) column-major, with `gap` elements after each
 * line. */
static tn_tensor *matrix(tn_dtype dtype, int64_t batch, int64_t rows, int64_t columns, bool upright,
                         int64_t gap, double **numbers_)
{
    int64_t lines = upright ? columns : rows, line = upright ? rows : columns;
    double *x = room(batch * rows * columns), *lying = room(batch * lines * (line + gap));
    tn_tensor *made;

    numbers(x, batch * rows * columns, -1, 1, dtype);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++)
                lying[(b * lines + (upright ? j : i)) * (line + gap) + (upright ? i : j)] =
                    x[(b * rows + i) * columns + j];
    made = tn_narrow(put(cpu(), dtype, TN_SHAPE(batch, lines, line + gap), lying, DENSE), 2, 0,
                     line);
    *numbers_ = x;
    return upright ? tn_transpose(made, 1, 2) : made;
}

/* Fails unless each element is near the exact sum of k = s[1] products: the bound grows with k,
 * because each partial sum is rounded. */
static void near_the_sums(const char *what, tn_dtype dtype, tn_tensor *got, const double *a,
                          const double *b, const double *bias, const int64_t *s, int64_t batch,
                          bool shared)
{
    const double *y = get(got);

    ck_assert_msg(!tn_failed(), "%s: %s", what, tn_error_text());
    for (int64_t n = 0; n < batch; n++)
        for (int64_t i = 0; i < s[0]; i++)
            for (int64_t j = 0; j < s[2]; j++) {
                long double sum = bias ? bias[j] : 0;
                double here = y[(n * s[0] + i) * s[2] + j];
                for (int64_t k = 0; k < s[1]; k++)
                    sum += (long double)a[(n * s[0] + i) * s[1] + k] *
                           b[((shared ? 0 : n) * s[1] + k) * s[2] + j];
                ck_assert_msg(fabsl(here - sum) <= epsilon(dtype) * (4 + (double)s[1]),
                              "%s: [%d, %d, %d] is %.17g, not %.17Lg", what, (int)n, (int)i, (int)j,
                              here, sum);
            }
}

static void all_sizes(tn_dtype dtype)
{
    for (int i = 0; i < SIZES; i++)
        for (int way = 0; way < 4; way++) {
            TN_SCOPE;
            const int64_t *s = sizes[i], gap = (i + way) % 3 == 0 ? 5 : 0;
            double *a, *b, *w, *bias = room(s[2]);
            char what[80];
            tn_tensor *x = matrix(dtype, 1, s[0], s[1], way & 1, gap, &a);
            tn_tensor *y = matrix(dtype, 1, s[1], s[2], way >> 1, gap, &b);

            snprintf(what, sizeof what, "%s, size %d, way %d", tn_dtype_name(dtype), i, way);
            near_the_sums(what, dtype, tn_matmul(tn_select(x, 0, 0), tn_select(y, 0, 0)), a, b,
                          NULL, s, 1, true);
            numbers(bias, s[2], -1, 1, dtype);
            near_the_sums(what, dtype,
                          tn_linear(tn_select(x, 0, 0), tn_transpose(tn_select(y, 0, 0), 0, 1),
                                    put(cpu(), dtype, TN_SHAPE(s[2]), bias, DENSE)),
                          a, b, bias, s, 1, true);
            if (s[0] * s[1] * s[2] > 200000)
                continue;
            x = matrix(dtype, 3, s[0], s[1], way & 1, gap, &a);
            y = matrix(dtype, 3, s[1], s[2], way >> 1, gap, &w);
            near_the_sums(what, dtype, tn_bmm(x, y), a, w, NULL, s, 3, false);
            y = matrix(dtype, 1, s[1], s[2], way >> 1, gap, &b);
            near_the_sums(what, dtype, tn_matmul(x, y), a, b, NULL, s, 3, true);
        }
}

static void with_instruction_set(const char *name)
{
    if (!instruction_set(name))
        return;
    all_sizes(TN_F32);
    all_sizes(TN_F64);
}

START_TEST(products_are_the_sums_with_avx512)
{
    with_instruction_set("avx512");
}
END_TEST

START_TEST(products_are_the_sums_with_avx2)
{
    with_instruction_set("avx2");
}
END_TEST

START_TEST(products_are_the_sums_with_the_baseline_instructions)
{
    with_instruction_set("baseline");
}
END_TEST

/* A large product, whose depth is computed in rounds, to copy little memory at a time. The first
 * matrix is column-major. */
START_TEST(rounds_add_up_and_bits_do_not_depend_on_threads)
{
    TN_SCOPE;
    const int64_t s[3] = { 700, 1300, 3000 };
    double *a, *b;
    float *first = NULL;
    size_t bytes = (size_t)(s[0] * s[2]) * sizeof(float);
    tn_tensor *x = tn_select(matrix(TN_F32, 1, s[0], s[1], true, 0, &a), 0, 0);
    tn_tensor *y = tn_select(matrix(TN_F32, 1, s[1], s[2], false, 0, &b), 0, 0);

    for (int threads = 1; threads <= 4; threads *= 2) {
        float *here = malloc(bytes);
        tn_set_num_threads(threads);
        ck_assert_int_eq(tn_tensor_copy_out(tn_matmul(x, y), here, bytes), TN_OK);
        for (int64_t i = 0; i < s[0]; i += 37)
            for (int64_t j = 0; j < s[2]; j += 101) {
                long double sum = 0;
                for (int64_t k = 0; k < s[1]; k++)
                    sum += (long double)a[i * s[1] + k] * b[k * s[2] + j];
                ck_assert_msg(fabsl(here[i * s[2] + j] - sum) < 1e-4, "[%d, %d] is %g, not %Lg",
                              (int)i, (int)j, here[i * s[2] + j], sum);
            }
        if (first)
            ck_assert_msg(memcmp(first, here, bytes) == 0, "%d threads", threads);
        else
            first = here;
        if (first != here)
            free(here);
    }
    free(first);
}
END_TEST

/* The matrices of a batch are computed in groups, and many columns in parts, because the copies of
 * all of them would take much memory. */
START_TEST(many_matrices_and_many_columns_are_computed_in_parts)
{
    static const int64_t batch[] = { 8, 520, 300 }, wide[] = { 7, 520, 12500 };

    for (int way = 0; way < 4; way++) {
        TN_SCOPE;
        double *a, *b;
        tn_tensor *x = matrix(TN_F32, 40, batch[0], batch[1], way & 1, 0, &a), *y;

        y = matrix(TN_F32, 40, batch[1], batch[2], way >> 1, 0, &b);
        near_the_sums("40 matrices", TN_F32, tn_bmm(x, y), a, b, NULL, batch, 40, false);
        x = matrix(TN_F32, 1, wide[0], wide[1], way & 1, 3, &a);
        y = matrix(TN_F32, 1, wide[1], wide[2], way >> 1, 3, &b);
        near_the_sums("12500 columns", TN_F32, tn_matmul(x, y), a, b, NULL, wide, 1, true);
    }
}
END_TEST

/* Up to four rows times a matrix with contiguous rows: each thread reads its part of the columns in
 * one pass. */
static void few_rows(tn_dtype dtype)
{
    static const int64_t shapes[][3] = {
        { 1, 96, 9000 }, { 2, 402, 3077 }, { 3, 770, 768 }, { 4, 301, 2311 }
    };

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        TN_SCOPE;
        const int64_t *s = shapes[i];
        const size_t bytes = (size_t)(s[0] * s[2] * tn_dtype_size(dtype));
        double *a, *b, *bias = room(s[2]);
        tn_tensor *x = tn_select(matrix(dtype, 1, s[0], s[1], false, 0, &a), 0, 0), *shift;
        tn_tensor *w = tn_select(matrix(dtype, 1, s[1], s[2], false, 0, &b), 0, 0), *y, *last;
        char *first = NULL;

        numbers(bias, s[2], -1, 1, dtype);
        shift = put(cpu(), dtype, TN_SHAPE(s[2]), bias, DENSE);
        for (int threads = 1; threads <= 4; threads++) {
            char *here = malloc(bytes);
            tn_set_num_threads(threads);
            y = tn_linear(x, tn_transpose(w, 0, 1), shift);
            ck_assert_int_eq(tn_tensor_copy_out(y, here, bytes), TN_OK);
            near_the_sums("few rows", dtype, y, a, b, bias, s, 1, true);
            if (first)
                ck_assert_msg(memcmp(first, here, bytes) == 0, "%d threads", threads);
            else
                first = here;
            if (first != here)
                free(here);
        }
        /* Where a column is in the matrix does not matter. */
        last = tn_linear(x, tn_transpose(tn_narrow(w, 1, 256, s[2] - 256), 0, 1),
                         tn_narrow(shift, 0, 256, s[2] - 256));
        ck_assert(tn_equal(last, tn_narrow(y, 1, 256, s[2] - 256)));
        free(first);
    }
}

START_TEST(few_rows_are_the_sums_and_bits_do_not_depend_on_threads)
{
    few_rows(TN_F32);
    few_rows(TN_F64);
}
END_TEST

/* A matrix with contiguous rows is read in place or packed, depending on the distance between its
 * rows. */
START_TEST(matrices_read_in_place_and_packed_give_the_same_bits)
{
    static const int64_t rows[] = { 6, 100, 301 };

    for (int i = 0; i < 3; i++)
        for (int wide = 0; wide < 2; wide++)
            for (int upright = 0; upright < 2; upright++) {
                TN_SCOPE;
                const tn_dtype dtype = wide ? TN_F64 : TN_F32;
                const int64_t s[3] = { rows[i], 700, wide ? 512 : 1024 };
                double *a, *b, *bias = room(s[2]);
                tn_tensor *x = tn_select(matrix(dtype, 1, s[0], s[1], upright, 0, &a), 0, 0), *y;
                tn_tensor *w = tn_select(matrix(dtype, 1, s[1], s[2], false, 16, &b), 0, 0), *shift;

                tn_tensor *dense = put(cpu(), dtype, TN_SHAPE(s[1], s[2]), b, DENSE);

                ck_assert_int_ne(tn_tensor_strides(w).at[0], s[2]);
                numbers(bias, s[2], -1, 1, dtype);
                shift = put(cpu(), dtype, TN_SHAPE(s[2]), bias, DENSE);
                y = tn_matmul(x, w);
                if (rows[i] < 10)
                    near_the_sums("in place", dtype, y, a, b, NULL, s, 1, true);
                ck_assert(tn_equal(y, tn_matmul(x, dense)));
                y = tn_linear(x, tn_transpose(w, 0, 1), shift);
                ck_assert(tn_equal(y, tn_linear(x, tn_transpose(dense, 0, 1), shift)));
            }
}
END_TEST

RUN_SUITE("matmul", products_are_the_sums_with_avx512, products_are_the_sums_with_avx2,
          products_are_the_sums_with_the_baseline_instructions,
          rounds_add_up_and_bits_do_not_depend_on_threads,
          many_matrices_and_many_columns_are_computed_in_parts,
          few_rows_are_the_sums_and_bits_do_not_depend_on_threads,
          matrices_read_in_place_and_packed_give_the_same_bits)
