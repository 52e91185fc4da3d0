/* SPDX-License-Identifier: MIT
 *
 * Sums of columns for the float type T. Sums of BLOCK rows are accumulated in T, and added to the
 * results in float64. */
#define ROW(k) const T *x##k = (const T *)(const void *)(x + (i + k) * stride) + at

static void NAME(rows_sum)(int64_t rows, int64_t n, const char *x, int64_t stride, void *to)
{
    for (int64_t at = 0; at < n; at += WIDE) {
        int64_t wide = n - at < WIDE ? n - at : WIDE;
        double *all = (double *)to + at;
        for (int64_t first = 0; first < rows; first += BLOCK) {
            int64_t end = rows - first < BLOCK ? rows : first + BLOCK, i = first;
            T sum[WIDE] = { 0 };
            for (; i + 4 <= end; i += 4) {
                ROW(0);
                ROW(1);
                ROW(2);
                ROW(3);
                for (int64_t j = 0; j < wide; j++)
                    sum[j] += (x0[j] + x1[j]) + (x2[j] + x3[j]);
            }
            for (; i < end; i++) {
                ROW(0);
                for (int64_t j = 0; j < wide; j++)
                    sum[j] += x0[j];
            }
            for (int64_t j = 0; j < wide; j++)
                all[j] += (double)sum[j];
        }
    }
}
#undef ROW

/* Adds rows that may be anywhere, a block of columns at a time, which stays in registers. */
static void NAME(add_rows)(int64_t rows, int64_t n, const void *const *x, void *to)
{
    enum { COLUMNS = 128 / sizeof(T) };
    T *all = to;
    int64_t at = 0;
    for (; at + COLUMNS <= n; at += COLUMNS) {
        T sum[COLUMNS];
        for (int j = 0; j < COLUMNS; j++)
            sum[j] = all[at + j];
        for (int64_t i = 0; i < rows; i++) {
            const T *row = (const T *)x[i] + at;
            for (int j = 0; j < COLUMNS; j++)
                sum[j] += row[j];
        }
        for (int j = 0; j < COLUMNS; j++)
            all[at + j] = sum[j];
    }
    for (; at < n; at++)
        for (int64_t i = 0; i < rows; i++)
            all[at] += ((const T *)x[i])[at];
}
