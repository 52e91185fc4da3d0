/* SPDX-License-Identifier: MIT
 *
 * Softmax, its derivative and the rows of attention. */
#include <math.h>
#include <string.h>

#include "math/float64.h"
#include "simd/elementwise.h"
#include "simd/simd.h"
#include "simd/sum_template.h"

/* NaN if any number is: the sum of all differences of numbers with themselves tells (infinity is
 * no difference there). */
#define MAX(name, T, NAN_TEST)                                                                     \
    static T name(int64_t n, const T *x)                                                           \
    {                                                                                              \
        enum { LANES = 16 };                                                                       \
        T best[LANES];                                                                             \
        int32_t odd[LANES] = { 0 };                                                                \
        for (int j = 0; j < LANES; j++)                                                            \
            best[j] = x[0];                                                                        \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int j = 0; j < LANES; j++) {                                                      \
                T v = x[i + j];                                                                    \
                best[j] = v > best[j] ? v : best[j];                                               \
                odd[j] |= NAN_TEST(v);                                                             \
            }                                                                                      \
        for (int j = 0; i < n; i++, j++) {                                                         \
            best[j] = x[i] > best[j] ? x[i] : best[j];                                             \
            odd[j] |= NAN_TEST(x[i]);                                                              \
        }                                                                                          \
        T all = best[0];                                                                           \
        int32_t any = NAN_TEST(x[0]);                                                              \
        for (int j = 0; j < LANES; j++) {                                                          \
            all = best[j] > all ? best[j] : all;                                                   \
            any |= odd[j];                                                                         \
        }                                                                                          \
        return any ? NAN_OF(T) : all;                                                              \
    }
#define NAN_OF(T) (T) __builtin_nan("")
#define IS_ODD(v) ((v) != (v))
MAX(max_f32, float, IS_ODD)
MAX(max_f64, double, IS_ODD)

/* ---- softmax --------------------------------------------------------------------------------- */

#define SOFTMAX(T, s)                                                                              \
    static void softmax_##s(int64_t n, const T *x, T *y)                                           \
    {                                                                                              \
        T top = max_##s(n, x);                                                                     \
        TN__EACH y[i] = EXP_##s(x[i] - top);                                                       \
        T scale = (T)(1 / sum_##s(n, y));                                                          \
        TN__EACH y[i] *= scale;                                                                    \
    }                                                                                              \
    static void log_softmax_##s(int64_t n, const T *x, T *y)                                       \
    {                                                                                              \
        T top = max_##s(n, x);                                                                     \
        TN__EACH y[i] = EXP_##s(x[i] - top);                                                       \
        T norm = (T)log(sum_##s(n, y));                                                            \
        TN__EACH y[i] = (x[i] - top) - norm;                                                       \
    }                                                                                              \
    static void log_softmax_grad_##s(int64_t n, const T *gy, const T *y, T *gx)                    \
    {                                                                                              \
        T sum = (T)sum_##s(n, gy);                                                                 \
        TN__EACH gx[i] = gy[i] - EXP_##s(y[i]) * sum;                                              \
    }
/* y (gy - sum gy y), as gy y - y sum gy y: the products are there already. */
#define SOFTMAX_GRAD(T, s)                                                                         \
    static void softmax_grad_##s(int64_t n, const T *gy, const T *y, T *gx)                        \
    {                                                                                              \
        TN__EACH gx[i] = gy[i] * y[i];                                                             \
        T sum = (T)sum_##s(n, gx);                                                                 \
        TN__EACH gx[i] = gx[i] - y[i] * sum;                                                       \
    }
/* Rows that stand side by side: `rows` lines of n numbers, one of each row. 32 numbers of a row add up in the type
 * itself, these in float64. */
enum { NEIGHBOURS = TN__SOFTMAX_COLUMNS, IN_TYPE = 32 };
#define LINE(T, p, i, s) ((T *)(void *)((p) + (i) * (s)))
#define SOFTMAX_SIDE(T, s)                                                                         \
    static void softmax_columns_##s(int64_t rows, int64_t n, const char *xp, int64_t sx, char *yp, \
                                    int64_t sy, bool logarithm)                                    \
    {                                                                                              \
        T top[NEIGHBOURS], sum[NEIGHBOURS], spare[NEIGHBOURS];                                     \
        double all[NEIGHBOURS] = { 0 };                                                            \
        TN__EACH top[i] = (T)-INFINITY;                                                            \
        for (int64_t k = 0; k < rows; k++) {                                                       \
            const T *x = LINE(const T, xp, k, sx);                                                 \
            TN__EACH top[i] = ((x[i] > top[i]) | (x[i] != x[i])) ? x[i] : top[i];                  \
        }                                                                                          \
        for (int64_t k = 0; k < rows;) {                                                           \
            int64_t end = rows - k < IN_TYPE ? rows : k + IN_TYPE;                                 \
            TN__EACH sum[i] = 0;                                                                   \
            for (; k < end; k++) {                                                                 \
                const T *x = LINE(const T, xp, k, sx);                                             \
                T *y = logarithm ? spare : LINE(T, yp, k, sy);                                     \
                TN__EACH                                                                           \
                {                                                                                  \
                    T e = EXP_##s(x[i] - top[i]);                                                  \
                    y[i] = e;                                                                      \
                    sum[i] += e;                                                                   \
                }                                                                                  \
            }                                                                                      \
            TN__EACH all[i] += (double)sum[i];                                                     \
        }                                                                                          \
        if (logarithm) {                                                                           \
            TN__EACH sum[i] = (T)tn__log64(all[i]);                                                \
            for (int64_t k = 0; k < rows; k++) {                                                   \
                const T *x = LINE(const T, xp, k, sx);                                             \
                T *y = LINE(T, yp, k, sy);                                                         \
                TN__EACH y[i] = (x[i] - top[i]) - sum[i];                                          \
            }                                                                                      \
        } else {                                                                                   \
            TN__EACH sum[i] = (T)(1 / all[i]);                                                     \
            for (int64_t k = 0; k < rows; k++) {                                                   \
                T *y = LINE(T, yp, k, sy);                                                         \
                TN__EACH y[i] *= sum[i];                                                           \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void softmax_grad_columns_##s(int64_t rows, int64_t n, const char *gp, int64_t sg,      \
                                         const char *yp, int64_t sy, char *xp, int64_t sx,         \
                                         bool logarithm)                                           \
    {                                                                                              \
        T sum[NEIGHBOURS];                                                                         \
        double all[NEIGHBOURS] = { 0 };                                                            \
        for (int64_t k = 0; k < rows;) {                                                           \
            int64_t end = rows - k < IN_TYPE ? rows : k + IN_TYPE;                                 \
            TN__EACH sum[i] = 0;                                                                   \
            for (; k < end; k++) {                                                                 \
                const T *g = LINE(const T, gp, k, sg), *y = LINE(const T, yp, k, sy);              \
                if (logarithm)                                                                     \
                    TN__EACH sum[i] += g[i];                                                       \
                else                                                                               \
                    TN__EACH sum[i] += g[i] * y[i];                                                \
            }                                                                                      \
            TN__EACH all[i] += (double)sum[i];                                                     \
        }                                                                                          \
        TN__EACH sum[i] = (T)all[i];                                                               \
        for (int64_t k = 0; k < rows; k++) {                                                       \
            const T *g = LINE(const T, gp, k, sg), *y = LINE(const T, yp, k, sy);                  \
            T *gx = LINE(T, xp, k, sx);                                                            \
            if (logarithm)                                                                         \
                TN__EACH gx[i] = g[i] - EXP_##s(y[i]) * sum[i];                                    \
            else                                                                                   \
                TN__EACH gx[i] = (g[i] - sum[i]) * y[i];                                           \
        }                                                                                          \
    }
/* Of attention: scores become e^(x - top), whose sum is returned; they become e^(x - norm), and their gradient g what
 * goes on: (g - less) of it. */
#define ATTENTION(T, s)                                                                            \
    static double attend_##s(int64_t n, double top, T *x)                                          \
    {                                                                                              \
        const T high = (T)top;                                                                     \
        TN__EACH x[i] = EXP_##s(x[i] - high);                                                      \
        return sum_##s(n, x);                                                                      \
    }                                                                                              \
    static void attend_grad_##s(int64_t n, double norm, double less, T *x, T *g)                   \
    {                                                                                              \
        const T high = (T)norm, mean = (T)less;                                                    \
        TN__EACH x[i] = EXP_##s(x[i] - high);                                                      \
        TN__EACH g[i] = x[i] * (g[i] - mean);                                                      \
    }
#define EXP_f32 tn__near_exp_below_f32
#define EXP_f64 tn__exp64_below
SOFTMAX(float, f32)
SOFTMAX(double, f64)
SOFTMAX_GRAD(float, f32)
SOFTMAX_GRAD(double, f64)
SOFTMAX_SIDE(float, f32)
SOFTMAX_SIDE(double, f64)
ATTENTION(float, f32)
ATTENTION(double, f64)

const struct tn__simd_softmax TN__SIMD_TABLE(softmax) = {
    .max_f32 = max_f32,
    .max_f64 = max_f64,
    .softmax_f32 = softmax_f32,
    .softmax_f64 = softmax_f64,
    .log_softmax_f32 = log_softmax_f32,
    .log_softmax_f64 = log_softmax_f64,
    .log_softmax_grad_f32 = log_softmax_grad_f32,
    .log_softmax_grad_f64 = log_softmax_grad_f64,
    .softmax_grad_f32 = softmax_grad_f32,
    .softmax_grad_f64 = softmax_grad_f64,
    .softmax_columns = { softmax_columns_f32, softmax_columns_f64 },
    .softmax_grad_columns = { softmax_grad_columns_f32, softmax_grad_columns_f64 },
    .attend_f32 = attend_f32,
    .attend_f64 = attend_f64,
    .attend_grad_f32 = attend_grad_f32,
    .attend_grad_f64 = attend_grad_f64,
};
