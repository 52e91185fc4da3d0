/* SPDX-License-Identifier: MIT
 *
 * Combines rows of type T column by column, in type ACCUMULATOR; results have type RESULT. Four
 * rows are combined at a time, so that results are read and written once for four rows. */
#define ROW(k) const T *x##k = (const T *)(const void *)(x + (i + k) * stride) + at

typedef ACCUMULATOR NAME(combination)(ACCUMULATOR v, ACCUMULATOR b);

TN__INTO_LOOPS void NAME(rows_choice)(int64_t rows, int64_t n, const char *x, int64_t stride,
                                      void *to, NAME(combination) * combine)
{
    for (int64_t at = 0; at < n; at += WIDE) {
        int64_t wide = n - at < WIDE ? n - at : WIDE, i = 0;
        RESULT *all = (RESULT *)to + at;
        ACCUMULATOR best[WIDE];
        for (int64_t j = 0; j < wide; j++)
            best[j] = (ACCUMULATOR)all[j];
        for (; i + 4 <= rows; i += 4) {
            ROW(0);
            ROW(1);
            ROW(2);
            ROW(3);
            for (int64_t j = 0; j < wide; j++) {
                ACCUMULATOR b = combine((ACCUMULATOR)x0[j], best[j]);
                b = combine((ACCUMULATOR)x1[j], b);
                b = combine((ACCUMULATOR)x2[j], b);
                best[j] = combine((ACCUMULATOR)x3[j], b);
            }
        }
        for (; i < rows; i++) {
            ROW(0);
            for (int64_t j = 0; j < wide; j++)
                best[j] = combine((ACCUMULATOR)x0[j], best[j]);
        }
        for (int64_t j = 0; j < wide; j++)
            all[j] = (RESULT)best[j];
    }
}
#undef ROW
#undef ACCUMULATOR
