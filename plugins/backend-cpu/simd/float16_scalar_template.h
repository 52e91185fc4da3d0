/* SPDX-License-Identifier: MIT
 *
 * Sums of columns of float16 or bfloat16 through a buffer. NAME(x) is x_f16 or x_bf16. */
static void NAME(rows_sum)(int64_t rows, int64_t n, const char *x, int64_t stride, double *all)
{
    tn__load *load = tn__dtype_load(NAME(DTYPE), TN__F32);
    for (int64_t at = 0; at < n; at += WIDE) {
        int64_t wide = n - at < WIDE ? n - at : WIDE;
        for (int64_t first = 0; first < rows; first += DEEP) {
            int64_t end = rows - first < DEEP ? rows : first + DEEP;
            float sum[WIDE] = { 0 }, row[WIDE];
            for (int64_t i = first; i < end; i++) {
                load(wide, x + i * stride + 2 * at, 2, row);
                for (int64_t j = 0; j < wide; j++)
                    sum[j] += row[j];
            }
            for (int64_t j = 0; j < wide; j++)
                all[at + j] += (double)sum[j];
        }
    }
}
