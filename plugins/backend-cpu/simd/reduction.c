/* SPDX-License-Identifier: MIT
 *
 * Largest, smallest and product of numbers in a row, and these and sums of columns: compiled once per
 * instruction set. Products of floats are taken in float64. */
#include "simd/simd.h"
#include "simd/sum_template.h"

enum { WIDE = 256, BLOCK = 32, PART = 16 };

/* Without a branch, so that they become comparisons and selections of vectors. */
#define MORE_FLOAT(v, b) ((v > b) | (v != v))
#define LESS_FLOAT(v, b) ((v < b) | (v != v))
#define MORE_WHOLE(v, b) (v > b)
#define LESS_WHOLE(v, b) (v < b)

/* ---- in a row -------------------------------------------------------------------------------- */

/* The instruction for it, where the compiler finds it: the later one of two that are equal. Of numbers that are not
 * NaN; whether one is, is asked beside it, for two at a time. Without a branch in the whole row: on numbers in no
 * order one costs as much as a hundred of them. Indices of the lanes are constants, so that registers hold them. */
#define LARGER(v, b) (b > v ? b : v)
#define SMALLER(v, b) (b < v ? b : v)
#define ODD_FLOAT(v, w) __builtin_isunordered(v, w)
#define ODD_WHOLE(v, w) 0
#define OF_HALVES(half, PICK)                                                                      \
    for (int j = 0; j < (half); j++)                                                               \
        best[j] = PICK(best[j + (half)], best[j]);
#define EXTREME(name, T, A, member, LANES, PICK, ODD)                                              \
    static void name(int64_t n, const void *from, union tn__number *out)                           \
    {                                                                                              \
        const T *x = from;                                                                         \
        T best[LANES], all = x[0];                                                                 \
        int32_t odd[LANES] = { 0 }, any = 0;                                                       \
        int64_t i = 0;                                                                             \
        if (n >= LANES) {                                                                          \
            for (int j = 0; j < LANES; j++)                                                        \
                best[j] = x[0];                                                                    \
            for (; i + 2 * LANES <= n; i += 2 * LANES)                                             \
                for (int j = 0; j < LANES; j++) {                                                  \
                    T v = x[i + j], w = x[i + LANES + j], b = PICK(v, best[j]);                    \
                    odd[j] |= ODD(v, w);                                                           \
                    best[j] = PICK(w, b);                                                          \
                }                                                                                  \
            if (i + LANES <= n) {                                                                  \
                for (int j = 0; j < LANES; j++) {                                                  \
                    T v = x[i + j];                                                                \
                    odd[j] |= ODD(v, v);                                                           \
                    best[j] = PICK(v, best[j]);                                                    \
                }                                                                                  \
                i += LANES;                                                                        \
            }                                                                                      \
            for (int j = 0; j < LANES; j++)                                                        \
                any |= odd[j];                                                                     \
            if (LANES == 32)                                                                       \
                OF_HALVES(16, PICK)                                                                \
            OF_HALVES(8, PICK)                                                                     \
            OF_HALVES(4, PICK)                                                                     \
            OF_HALVES(2, PICK)                                                                     \
            all = PICK(best[1], best[0]);                                                          \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            T v = x[i];                                                                            \
            any |= ODD(v, v);                                                                      \
            all = PICK(v, all);                                                                    \
        }                                                                                          \
        out->member = any ? (A)NOT_A(T) : (A)all;                                                  \
    }
#define NOT_A(T) __builtin_nan("")
EXTREME(max_f32, float, double, f, 32, LARGER, ODD_FLOAT)
EXTREME(max_f64, double, double, f, 16, LARGER, ODD_FLOAT)
EXTREME(min_f32, float, double, f, 32, SMALLER, ODD_FLOAT)
EXTREME(min_f64, double, double, f, 16, SMALLER, ODD_FLOAT)
#undef NOT_A
#define NOT_A(T) 0
EXTREME(max_i64, int64_t, int64_t, i, 16, LARGER, ODD_WHOLE)
EXTREME(min_i64, int64_t, int64_t, i, 16, SMALLER, ODD_WHOLE)

/* A stretch at a time, without a branch in it; only the one that has it is looked at number by number. */
#define PLACE(name, T, member)                                                                     \
    static int64_t name(int64_t n, const void *from, union tn__number best)                        \
    {                                                                                              \
        enum { STRETCH = 64 };                                                                     \
        const T *x = from;                                                                         \
        const T wanted = (T)best.member;                                                           \
        int64_t i = 0;                                                                             \
        for (; i + STRETCH <= n; i += STRETCH) {                                                   \
            T found = 0;                                                                           \
            for (int j = 0; j < STRETCH; j++)                                                      \
                found = ((x[i + j] == wanted) | (x[i + j] != x[i + j])) ? 1 : found;               \
            if (found != 0)                                                                        \
                break;                                                                             \
        }                                                                                          \
        for (; i < n; i++)                                                                         \
            if (x[i] == wanted || x[i] != x[i])                                                    \
                return i;                                                                          \
        return 0;                                                                                  \
    }
PLACE(place_f32, float, f)
PLACE(place_f64, double, f)
PLACE(place_i64, int64_t, i)

/* Products of float32 far below what it holds count as 0: numbers below float64's normal range cost a hundred times as
 * much as others. */
#define KEEP(x) (x)
#define KEEP_NORMAL(x) (__builtin_fabs(x) < 0x1p-600 ? (x)*0 : (x))
#define PRODUCT(name, T, A, R, member, KEPT)                                                       \
    static void name(int64_t n, const void *from, union tn__number *out)                           \
    {                                                                                              \
        enum { LANES = 32, STEPS = 16 };                                                           \
        const T *x = from;                                                                         \
        A part[LANES], rest = 1;                                                                   \
        int64_t i = 0;                                                                             \
        for (int j = 0; j < LANES; j++)                                                            \
            part[j] = 1;                                                                           \
        while (i + LANES <= n) {                                                                   \
            for (int step = 0; step < STEPS && i + LANES <= n; step++, i += LANES)                 \
                for (int j = 0; j < LANES; j++)                                                    \
                    part[j] *= (A)x[i + j];                                                        \
            for (int j = 0; j < LANES; j++)                                                        \
                part[j] = KEPT(part[j]);                                                           \
        }                                                                                          \
        for (int j = 0; j < PART / 2; j++)                                                         \
            part[j] = (part[j] * part[j + 8]) * (part[j + 16] * part[j + 24]);                     \
        for (; i + PART / 2 <= n; i += PART / 2)                                                   \
            for (int j = 0; j < PART / 2; j++)                                                     \
                part[j] *= (A)x[i + j];                                                            \
        for (; i < n; i++)                                                                         \
            rest *= (A)x[i];                                                                       \
        for (int j = 0; j < PART / 4; j++)                                                         \
            part[j] *= part[j + PART / 4];                                                         \
        out->member = (R)(((part[0] * part[1]) * (part[2] * part[3])) * rest);                     \
    }
PRODUCT(prod_f32, float, double, double, f, KEEP_NORMAL)
PRODUCT(prod_f64, double, double, double, f, KEEP)
PRODUCT(prod_i64, int64_t, uint64_t, int64_t, i, KEEP)

static int64_t sum_i64(int64_t n, const int64_t *x)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (uint64_t)x[i];
    return (int64_t)sum;
}

/* ---- columns --------------------------------------------------------------------------------- */

#define ROW(T, k) const T *x##k = (const T *)(const void *)(x + (i + k) * stride) + at
/* Four rows at a time: what there is so far is read and written once for them. */
#define ROWS(name, T, B, A, PICK)                                                                  \
    static void name(int64_t rows, int64_t n, const char *x, int64_t stride, void *to)             \
    {                                                                                              \
        for (int64_t at = 0; at < n; at += WIDE) {                                                 \
            int64_t wide = n - at < WIDE ? n - at : WIDE, i = 0;                                   \
            A *all = (A *)to + at;                                                                 \
            B best[WIDE];                                                                          \
            for (int64_t j = 0; j < wide; j++)                                                     \
                best[j] = (B)all[j];                                                               \
            for (; i + 4 <= rows; i += 4) {                                                        \
                ROW(T, 0);                                                                         \
                ROW(T, 1);                                                                         \
                ROW(T, 2);                                                                         \
                ROW(T, 3);                                                                         \
                for (int64_t j = 0; j < wide; j++) {                                               \
                    B b = best[j], v = (B)x0[j];                                                   \
                    b = PICK(v, b);                                                                \
                    v = (B)x1[j];                                                                  \
                    b = PICK(v, b);                                                                \
                    v = (B)x2[j];                                                                  \
                    b = PICK(v, b);                                                                \
                    v = (B)x3[j];                                                                  \
                    best[j] = PICK(v, b);                                                          \
                }                                                                                  \
            }                                                                                      \
            for (; i < rows; i++) {                                                                \
                ROW(T, 0);                                                                         \
                for (int64_t j = 0; j < wide; j++) {                                               \
                    B b = best[j], v = (B)x0[j];                                                   \
                    best[j] = PICK(v, b);                                                          \
                }                                                                                  \
            }                                                                                      \
            for (int64_t j = 0; j < wide; j++)                                                     \
                all[j] = (A)best[j];                                                               \
        }                                                                                          \
    }
#define PICK_MORE_FLOAT(v, b) (MORE_FLOAT(v, b) ? v : b)
#define PICK_LESS_FLOAT(v, b) (LESS_FLOAT(v, b) ? v : b)
#define PICK_MORE_WHOLE(v, b) (MORE_WHOLE(v, b) ? v : b)
#define PICK_LESS_WHOLE(v, b) (LESS_WHOLE(v, b) ? v : b)
#define PICK_PRODUCT(v, b) (v * b)
#define PICK_SUM(v, b) (v + b)
ROWS(rows_max_f32, float, float, double, PICK_MORE_FLOAT)
ROWS(rows_max_f64, double, double, double, PICK_MORE_FLOAT)
ROWS(rows_max_i64, int64_t, int64_t, int64_t, PICK_MORE_WHOLE)
ROWS(rows_min_f32, float, float, double, PICK_LESS_FLOAT)
ROWS(rows_min_f64, double, double, double, PICK_LESS_FLOAT)
ROWS(rows_min_i64, int64_t, int64_t, int64_t, PICK_LESS_WHOLE)
ROWS(rows_prod_f32, float, double, double, PICK_PRODUCT)
ROWS(rows_prod_f64, double, double, double, PICK_PRODUCT)
ROWS(rows_prod_i64, uint64_t, uint64_t, uint64_t, PICK_PRODUCT)
ROWS(rows_sum_i64, uint64_t, uint64_t, uint64_t, PICK_SUM)

/* 32 rows add up in the type itself, these in float64. */
#define ROWS_SUM(name, T)                                                                          \
    static void name(int64_t rows, int64_t n, const char *x, int64_t stride, void *to)             \
    {                                                                                              \
        for (int64_t at = 0; at < n; at += WIDE) {                                                 \
            int64_t wide = n - at < WIDE ? n - at : WIDE;                                          \
            double *all = (double *)to + at;                                                       \
            for (int64_t first = 0; first < rows; first += BLOCK) {                                \
                int64_t end = rows - first < BLOCK ? rows : first + BLOCK, i = first;              \
                T sum[WIDE] = { 0 };                                                               \
                for (; i + 4 <= end; i += 4) {                                                     \
                    ROW(T, 0);                                                                     \
                    ROW(T, 1);                                                                     \
                    ROW(T, 2);                                                                     \
                    ROW(T, 3);                                                                     \
                    for (int64_t j = 0; j < wide; j++)                                             \
                        sum[j] += (x0[j] + x1[j]) + (x2[j] + x3[j]);                               \
                }                                                                                  \
                for (; i < end; i++) {                                                             \
                    ROW(T, 0);                                                                     \
                    for (int64_t j = 0; j < wide; j++)                                             \
                        sum[j] += x0[j];                                                           \
                }                                                                                  \
                for (int64_t j = 0; j < wide; j++)                                                 \
                    all[j] += (double)sum[j];                                                      \
            }                                                                                      \
        }                                                                                          \
    }
ROWS_SUM(rows_sum_f32, float)
ROWS_SUM(rows_sum_f64, double)

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

const struct tn__simd_reduction TN__SIMD_TABLE(reduction) = {
    .sum_f32 = sum_f32,
    .sum_f64 = sum_f64,
    .sum_i64 = sum_i64,
    .max = EACH_TYPE(max),
    .min = EACH_TYPE(min),
    .prod = EACH_TYPE(prod),
    .find = EACH_TYPE(place),
    .rows_sum = EACH_TYPE(rows_sum),
    .rows_max = EACH_TYPE(rows_max),
    .rows_min = EACH_TYPE(rows_min),
    .rows_prod = EACH_TYPE(rows_prod),
    .rows_argmax = EACH_TYPE(rows_argmax),
    .rows_argmin = EACH_TYPE(rows_argmin),
};
