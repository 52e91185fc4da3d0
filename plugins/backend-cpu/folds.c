/* SPDX-License-Identifier: MIT
 *
 * Largest, smallest and product, of numbers in a row and of columns: compiled once per
 * instruction set, like loops.c. Products of floats are taken in float64. */
#include "cpu.h"

#ifndef TN__LOOPS_NAME
#define TN__LOOPS_NAME tn__loops_base
#endif
#define PASTE_TWO(a, b) a##b
#define PASTE(a, b) PASTE_TWO(a, b)

enum { WIDE = 256 };

/* Without a branch, so that they become comparisons and selections of vectors. */
#define MORE_FLOAT(v, b) ((v > b) | (v != v))
#define LESS_FLOAT(v, b) ((v < b) | (v != v))
#define MORE_WHOLE(v, b) (v > b)
#define LESS_WHOLE(v, b) (v < b)

/* ---- in a row -------------------------------------------------------------------------------- */

#define EXTREME(name, T, A, member, LANES, BETTER)                                                 \
    static void name(int64_t n, const void *from, union tn__number *out)                           \
    {                                                                                              \
        const T *x = from;                                                                         \
        T best[LANES], all = x[0];                                                                 \
        int64_t i = 0;                                                                             \
        for (int j = 0; j < LANES; j++)                                                            \
            best[j] = x[0];                                                                        \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int j = 0; j < LANES; j++) {                                                      \
                T v = x[i + j], b = best[j];                                                       \
                best[j] = BETTER(v, b) ? v : b;                                                    \
            }                                                                                      \
        for (int j = 0; j < LANES; j++)                                                            \
            all = BETTER(best[j], all) ? best[j] : all;                                            \
        for (; i < n; i++)                                                                         \
            all = BETTER(x[i], all) ? x[i] : all;                                                  \
        out->member = (A)all;                                                                      \
    }
EXTREME(max_f32, float, double, f, 64, MORE_FLOAT)
EXTREME(max_f64, double, double, f, 32, MORE_FLOAT)
EXTREME(max_i64, int64_t, int64_t, i, 32, MORE_WHOLE)
EXTREME(min_f32, float, double, f, 64, LESS_FLOAT)
EXTREME(min_f64, double, double, f, 32, LESS_FLOAT)
EXTREME(min_i64, int64_t, int64_t, i, 32, LESS_WHOLE)

#define PRODUCT(name, T, A, R, member)                                                             \
    static void name(int64_t n, const void *from, union tn__number *out)                           \
    {                                                                                              \
        enum { LANES = 32 };                                                                       \
        const T *x = from;                                                                         \
        A part[LANES];                                                                             \
        int64_t i = 0;                                                                             \
        for (int j = 0; j < LANES; j++)                                                            \
            part[j] = 1;                                                                           \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int j = 0; j < LANES; j++)                                                        \
                part[j] *= (A)x[i + j];                                                            \
        for (int j = 0; i < n; i++, j++)                                                           \
            part[j] *= (A)x[i];                                                                    \
        for (int half = LANES / 2; half > 0; half /= 2)                                            \
            for (int j = 0; j < half; j++)                                                         \
                part[j] *= part[j + half];                                                         \
        out->member = (R)part[0];                                                                  \
    }
PRODUCT(prod_f32, float, double, double, f)
PRODUCT(prod_f64, double, double, double, f)
PRODUCT(prod_i64, int64_t, uint64_t, int64_t, i)

/* ---- columns --------------------------------------------------------------------------------- */

#define ROWS(name, T, A, expr)                                                                     \
    static void name(int64_t rows, int64_t n, const char *x, int64_t stride, void *to)             \
    {                                                                                              \
        for (int64_t at = 0; at < n; at += WIDE) {                                                 \
            int64_t wide = n - at < WIDE ? n - at : WIDE;                                          \
            A *all = (A *)to + at;                                                                 \
            T best[WIDE];                                                                          \
            for (int64_t j = 0; j < wide; j++)                                                     \
                best[j] = (T)all[j];                                                               \
            for (int64_t i = 0; i < rows; i++) {                                                   \
                const T *row = (const T *)(const void *)(x + i * stride) + at;                     \
                for (int64_t j = 0; j < wide; j++) {                                               \
                    T v = row[j], b = best[j];                                                     \
                    best[j] = expr;                                                                \
                }                                                                                  \
            }                                                                                      \
            for (int64_t j = 0; j < wide; j++)                                                     \
                all[j] = (A)best[j];                                                               \
        }                                                                                          \
    }
ROWS(rows_max_f32, float, double, MORE_FLOAT(v, b) ? v : b)
ROWS(rows_max_f64, double, double, MORE_FLOAT(v, b) ? v : b)
ROWS(rows_max_i64, int64_t, int64_t, MORE_WHOLE(v, b) ? v : b)
ROWS(rows_min_f32, float, double, LESS_FLOAT(v, b) ? v : b)
ROWS(rows_min_f64, double, double, LESS_FLOAT(v, b) ? v : b)
ROWS(rows_min_i64, int64_t, int64_t, LESS_WHOLE(v, b) ? v : b)
ROWS(rows_prod_f64, double, double, v *b)
ROWS(rows_prod_i64, uint64_t, uint64_t, v *b)

static void rows_prod_f32(int64_t rows, int64_t n, const char *x, int64_t stride, void *to)
{
    double *all = to;
    for (int64_t i = 0; i < rows; i++) {
        const float *row = (const float *)(const void *)(x + i * stride);
        for (int64_t j = 0; j < n; j++)
            all[j] *= (double)row[j];
    }
}

/* A NaN that is there already stays. */
#define FIRST_FLOAT(BETTER, v, b) (BETTER(v, b) & (b == b))
#define FIRST_WHOLE(BETTER, v, b) BETTER(v, b)
#define ROWS_PLACE(name, T, A, I, FIRST, BETTER)                                                   \
    static void name(int64_t rows, int64_t n, const char *x, int64_t stride, void *to,             \
                     int64_t *places, int64_t first)                                               \
    {                                                                                              \
        for (int64_t at = 0; at < n; at += WIDE) {                                                 \
            int64_t wide = n - at < WIDE ? n - at : WIDE;                                          \
            A *all = (A *)to + at;                                                                 \
            T best[WIDE];                                                                          \
            I place[WIDE];                                                                         \
            for (int64_t j = 0; j < wide; j++) {                                                   \
                best[j] = (T)all[j];                                                               \
                place[j] = -1;                                                                     \
            }                                                                                      \
            for (int64_t i = 0; i < rows; i++) {                                                   \
                const T *row = (const T *)(const void *)(x + i * stride) + at;                     \
                const I here = (I)i;                                                               \
                for (int64_t j = 0; j < wide; j++) {                                               \
                    T v = row[j], b = best[j];                                                     \
                    I p = place[j];                                                                \
                    best[j] = FIRST(BETTER, v, b) ? v : b;                                         \
                    place[j] = FIRST(BETTER, v, b) ? here : p;                                     \
                }                                                                                  \
            }                                                                                      \
            for (int64_t j = 0; j < wide; j++) {                                                   \
                all[j] = (A)best[j];                                                               \
                places[at + j] = place[j] >= 0 ? first + place[j] : places[at + j];                \
            }                                                                                      \
        }                                                                                          \
    }
ROWS_PLACE(rows_argmax_f32, float, double, int32_t, FIRST_FLOAT, MORE_FLOAT)
ROWS_PLACE(rows_argmax_f64, double, double, int64_t, FIRST_FLOAT, MORE_FLOAT)
ROWS_PLACE(rows_argmax_i64, int64_t, int64_t, int64_t, FIRST_WHOLE, MORE_WHOLE)
ROWS_PLACE(rows_argmin_f32, float, double, int32_t, FIRST_FLOAT, LESS_FLOAT)
ROWS_PLACE(rows_argmin_f64, double, double, int64_t, FIRST_FLOAT, LESS_FLOAT)
ROWS_PLACE(rows_argmin_i64, int64_t, int64_t, int64_t, FIRST_WHOLE, LESS_WHOLE)

/* ---- the table ------------------------------------------------------------------------------- */

#define EACH_TYPE(name)                                                                            \
    {                                                                                              \
        [TN__F32] = name##_f32, [TN__F64] = name##_f64, [TN__I64] = name##_i64                     \
    }

const struct tn__folds PASTE(TN__LOOPS_NAME, _folds) = {
    .max = EACH_TYPE(max),
    .min = EACH_TYPE(min),
    .prod = EACH_TYPE(prod),
    .rows_max = EACH_TYPE(rows_max),
    .rows_min = EACH_TYPE(rows_min),
    .rows_prod = EACH_TYPE(rows_prod),
    .rows_argmax = EACH_TYPE(rows_argmax),
    .rows_argmin = EACH_TYPE(rows_argmin),
};
