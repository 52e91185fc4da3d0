/* SPDX-License-Identifier: MIT
 *
 * The inner loops, compiled once per instruction set: TN__LOOPS_NAME is the name of the table,
 * and the compiler's target options decide what the loops become. Sums run in lanes of a fixed
 * number and contraction to fused multiply-adds is off (local.mk), so that elementwise
 * functions, reductions and random numbers give the same bits on every instruction set. */
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "simd/elementwise.h"
#include "math/float64.h"
#include "math/sqrt.h"

#ifndef TN__LOOPS_NAME
#define TN__LOOPS_NAME tn__loops_base
#define TN__LOOPS_TEXT "baseline"
#endif

/* ---- element by element ---------------------------------------------------------------------- */

/* Results are bytes. */
#define COMPARE(name, T, expr)                                                                     \
    static void name(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa, const char *bp,  \
                     int64_t sb, const double *param)                                              \
    {                                                                                              \
        const int64_t w = (int64_t)sizeof(T);                                                      \
        uint8_t *y = (uint8_t *)yp;                                                                \
        const T *pa = (const T *)(const void *)ap, *pb = (const T *)(const void *)bp;              \
        (void)param;                                                                               \
        if (sy == 1 && sa == w && sb == w) {                                                       \
            TN__EACH                                                                               \
            {                                                                                      \
                const T a = pa[i], b = pb[i];                                                      \
                y[i] = (uint8_t)(expr);                                                            \
            }                                                                                      \
        } else if (sy == 1 && sa == w && sb == 0) {                                                \
            const T b = n > 0 ? *pb : 0;                                                           \
            TN__EACH                                                                               \
            {                                                                                      \
                const T a = pa[i];                                                                 \
                y[i] = (uint8_t)(expr);                                                            \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const T a = *(const T *)(const void *)(ap + i * sa);                               \
                const T b = *(const T *)(const void *)(bp + i * sb);                               \
                *(uint8_t *)(yp + i * sy) = (uint8_t)(expr);                                       \
            }                                                                                      \
        }                                                                                          \
    }
#define COMPARISONS(T, s)                                                                          \
    COMPARE(eq_##s, T, a == b)                                                                     \
    COMPARE(ne_##s, T, a != b)                                                                     \
    COMPARE(lt_##s, T, a < b)                                                                      \
    COMPARE(le_##s, T, a <= b)                                                                     \
    COMPARE(gt_##s, T, a > b)                                                                      \
    COMPARE(ge_##s, T, a >= b)

#define FLOAT_LOOPS(T, s, f)                                                                       \
    COMPARISONS(T, s)                                                                              \
    TN__BINARY(add_##s, T, a + b)                                                                  \
    TN__BINARY(sub_##s, T, a - b)                                                                  \
    TN__BINARY(add_alpha_##s, T, a + p * b)                                                        \
    TN__BINARY(mul_##s, T, a *b)                                                                   \
    TN__BINARY(div_##s, T, a / b)                                                                  \
    TN__BINARY(div_trunc_##s, T, __builtin_trunc##f(a / b))                                        \
    TN__BINARY(maximum_##s, T, ((a != a) | (a > b)) ? a : b)                                       \
    TN__BINARY(minimum_##s, T, ((a != a) | (a < b)) ? a : b)                                       \
    TN__BINARY(relu_grad_##s, T, b <= 0 ? 0 : a)                                                   \
    TN__BINARY(prelu_##s, T, a > 0 ? a : a * b)                                                    \
    TN__UNARY(add_scalar_##s, T, a + p)                                                            \
    TN__UNARY(mul_scalar_##s, T, a *p)                                                             \
    TN__UNARY(neg_##s, T, -a)                                                                      \
    TN__UNARY(abs_##s, T, __builtin_fabs##f(a))                                                    \
    TN__UNARY(sign_##s, T, (T)(a > 0) - (T)(a < 0))                                                \
    TN__UNARY(floor_##s, T, __builtin_floor##f(a))                                                 \
    TN__UNARY(ceil_##s, T, __builtin_ceil##f(a))                                                   \
    TN__UNARY(trunc_##s, T, __builtin_trunc##f(a))                                                 \
    TN__UNARY(round_##s, T, __builtin_rint##f(a))                                                  \
    TN__UNARY(frac_##s, T, a - __builtin_trunc##f(a))                                              \
    TN__UNARY(square_##s, T, a *a)                                                                 \
    TN__UNARY(cube_##s, T, a *a *a)                                                                \
    TN__UNARY(reciprocal_##s, T, 1 / a)                                                            \
    TN__UNARY(clamp_##s, T, BOUNDED(a, p, q))                                                      \
    TN__UNARY(relu_##s, T, a < 0 ? 0 : a)                                                          \
    TN__UNARY(leaky_relu_##s, T, a > 0 ? a : a * p)                                                \
    TN__UNARY(hardsigmoid_##s, T, BOUNDED(a + 3, 0, 6) / 6)                                        \
    TN__UNARY(hardswish_##s, T, a *BOUNDED(a + 3, 0, 6) / 6)                                       \
    TN__UNARY(softshrink_##s, T, a > p ? a - p : a < -p ? a + p : a * 0)                           \
    TN__UNARY(hardshrink_##s, T, ((a >= -p) & (a <= p)) ? 0 : a)                                   \
    TN__UNARY(threshold_##s, T, a <= p ? q : a)                                                    \
    TN__UNARY(softsign_##s, T, a / (1 + __builtin_fabs##f(a)))
/* Bounds that are NaN are none; the upper one has the last word. */
#define AT_LEAST(x, low) ((x) < (low) ? (low) : (x))
#define BOUNDED(x, low, high) (AT_LEAST(x, low) > (high) ? (high) : AT_LEAST(x, low))
FLOAT_LOOPS(float, f32, f)
FLOAT_LOOPS(double, f64, )
/* int64 wraps around: done on unsigned numbers. A scalar outside of int64 becomes its limit. */
static inline int64_t whole(double p)
{
    return p >= 0x1p63 ? INT64_MAX : p >= -0x1p63 ? (int64_t)p : INT64_MIN;
}
#define U(x) (uint64_t)(x)
typedef int64_t int64;
TN__BINARY(add_i64, int64, U(a) + U(b))
TN__BINARY(sub_i64, int64, U(a) - U(b))
TN__BINARY(add_alpha_i64, int64, U(a) + U(whole(param[0])) * U(b))
TN__BINARY(mul_i64, int64, U(a) * U(b))
TN__BINARY(maximum_i64, int64, a > b ? a : b)
TN__UNARY(add_scalar_i64, int64, U(a) + U(whole(param[0])))
TN__UNARY(mul_scalar_i64, int64, U(a) * U(whole(param[0])))
TN__UNARY(neg_i64, int64, 0 - U(a))
TN__UNARY(relu_i64, int64, a < 0 ? 0 : a)
TN__BINARY(minimum_i64, int64, a < b ? a : b)
TN__UNARY(abs_i64, int64, a < 0 ? 0 - U(a) : U(a))
TN__UNARY(sign_i64, int64, (a > 0) - (a < 0))
TN__UNARY(same_i64, int64, a)
TN__UNARY(square_i64, int64, U(a) * U(a))
TN__BINARY(and_i64, int64, a &b)
TN__BINARY(or_i64, int64, a | b)
TN__BINARY(xor_i64, int64, a ^ b)
TN__UNARY(not_i64, int64, ~a)
TN__UNARY(logical_not_i64, int64, a == 0)
COMPARISONS(int64, i64)

static void clamp_i64(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa, const char *bp,
                      int64_t sb, const double *param)
{
    const int64_t low = param[0] == param[0] ? whole(param[0]) : INT64_MIN;
    const int64_t high = param[1] == param[1] ? whole(param[1]) : INT64_MAX;
    (void)bp, (void)sb;
    for (int64_t i = 0; i < n; i++) {
        const int64_t a = *(const int64_t *)(const void *)(ap + i * sa);
        *(int64_t *)(void *)(yp + i * sy) = BOUNDED(a, low, high);
    }
}

/* ---- three numbers --------------------------------------------------------------------------- */

#define MIX(name, T, expr)                                                                         \
    static void name(int64_t n, char *const *at, const int64_t *stride, double number)             \
    {                                                                                              \
        const int64_t w = (int64_t)sizeof(T);                                                      \
        const T p = (T)number;                                                                     \
        (void)p;                                                                                   \
        if (stride[0] == w && stride[1] == w && stride[2] == w && stride[3] == w) {                \
            T *y = (T *)(void *)at[0];                                                             \
            const T *pa = (const T *)(const void *)at[1], *pb = (const T *)(const void *)at[2],    \
                    *pc = (const T *)(const void *)at[3];                                          \
            TN__EACH                                                                               \
            {                                                                                      \
                const T a = pa[i], b = pb[i], c = pc[i];                                           \
                (void)c;                                                                           \
                y[i] = expr;                                                                       \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T a = *(const T *)(const void *)(at[1] + i * stride[1]),                         \
                    b = *(const T *)(const void *)(at[2] + i * stride[2]),                         \
                    c = *(const T *)(const void *)(at[3] + i * stride[3]);                         \
            (void)c;                                                                               \
            *(T *)(void *)(at[0] + i * stride[0]) = expr;                                          \
        }                                                                                          \
    }
#define MIXTURES(T, s)                                                                                 \
    /* At least b, then at most c. NaN is asked for last: choices that follow from one another       \
     * become branches, and no vectors. */ \
    TN__INTO_LOOPS T within_##s(T a, T b, T c)                                                         \
    {                                                                                                  \
        T high = a > b ? a : b, y = high < c ? high : c;                                               \
        y = b != b ? b : y;                                                                            \
        return a != a ? a : y;                                                                         \
    }                                                                                                  \
    MIX(lerp_##s, T, a + c * (b - a))                                                                  \
    MIX(lerp_scalar_##s, T, a + p * (b - a))                                                           \
    MIX(addcmul_##s, T, a + p * (b * c))                                                               \
    MIX(addcdiv_##s, T, a + p * (b / c))                                                               \
    MIX(clamp_tensor_##s, T, within_##s(a, b, c))
MIXTURES(float, f32)
MIXTURES(double, f64)

/* ---- reductions ------------------------------------------------------------------------------ */

/* 64 (32) running sums, then a tree, with what is left over in a quarter of them: a block of 4096
 * numbers adds some 64 of them in a row at most. Indices are constants, so that registers hold them. */
#define SUM(name, T, LANES)                                                                        \
    static T name##_block(int64_t n, const T *x)                                                   \
    {                                                                                              \
        T acc[LANES] = { 0 }, rest = 0;                                                            \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int j = 0; j < LANES; j++)                                                        \
                acc[j] += x[i + j];                                                                \
        for (int j = 0; j < LANES / 2; j++)                                                        \
            acc[j] += acc[j + LANES / 2];                                                          \
        for (int j = 0; j < LANES / 4; j++)                                                        \
            acc[j] += acc[j + LANES / 4];                                                          \
        for (; i + LANES / 4 <= n; i += LANES / 4)                                                 \
            for (int j = 0; j < LANES / 4; j++)                                                    \
                acc[j] += x[i + j];                                                                \
        for (; i < n; i++)                                                                         \
            rest += x[i];                                                                          \
        for (int j = 0; j < LANES / 8; j++)                                                        \
            acc[j] += acc[j + LANES / 8];                                                          \
        for (int j = 0; j < LANES / 16; j++)                                                       \
            acc[j] += acc[j + LANES / 16];                                                         \
        for (int j = 1; j < LANES / 16; j++)                                                       \
            rest += acc[j];                                                                        \
        return acc[0] + rest;                                                                      \
    }                                                                                              \
    /* Blocks add up in float64 with a compensation. */                                            \
    static double name(int64_t n, const T *x)                                                      \
    {                                                                                              \
        double sum = 0, rest = 0;                                                                  \
        if (n <= 4096)                                                                             \
            return name##_block(n, x);                                                             \
        for (int64_t at = 0; at < n; at += 4096) {                                                 \
            double block = name##_block(n - at < 4096 ? n - at : 4096, x + at),                    \
                   next = sum + block;                                                             \
            double large = __builtin_fabs(sum) >= __builtin_fabs(block) ? sum : block;             \
            double small = __builtin_fabs(sum) >= __builtin_fabs(block) ? block : sum;             \
            rest += (large - next) + small;                                                        \
            sum = next;                                                                            \
        }                                                                                          \
        double all = sum + rest;                                                                   \
        return all - all == 0 ? all : sum;                                                         \
    }
SUM(sum_f32, float, 64)
SUM(sum_f64, double, 32)

static int64_t sum_i64(int64_t n, const int64_t *x)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (uint64_t)x[i];
    return (int64_t)sum;
}

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
#undef NAN_OF
#define NAN_OF(T) 0
#define NEVER_ODD(v) 0
MAX(max_i64, int64_t, NEVER_ODD)

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
enum { NEIGHBOURS = TN__NEIGHBOURS, IN_TYPE = 32 };
#define LINE(T, p, i, s) ((T *)(void *)((p) + (i) * (s)))
#define SOFTMAX_SIDE(T, s)                                                                         \
    static void softmax_side_##s(int64_t rows, int64_t n, const char *xp, int64_t sx, char *yp,    \
                                 int64_t sy, bool logarithm)                                       \
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
    static void softmax_grad_side_##s(int64_t rows, int64_t n, const char *gp, int64_t sg,         \
                                      const char *yp, int64_t sy, char *xp, int64_t sx,            \
                                      bool logarithm)                                              \
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

/* ---- random numbers -------------------------------------------------------------------------- */

/* Philox 4x32-10 of Salmon et al. (Random123), many blocks side by side: words[k][j] is word k
 * of block `block + j`. */
enum { SIDE = 64 }; /* some vectors, so that their rounds need not wait for each other */

static void philox(uint64_t seed, uint64_t block, uint32_t words[4][SIDE])
{
    uint32_t *c0 = words[0], *c1 = words[1], *c2 = words[2], *c3 = words[3];
    for (int j = 0; j < SIDE; j++) {
        c0[j] = (uint32_t)(block + (uint64_t)j);
        c1[j] = (uint32_t)((block + (uint64_t)j) >> 32);
        c2[j] = c3[j] = 0;
    }
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        for (int j = 0; j < SIDE; j++) {
            uint64_t p0 = (uint64_t)c0[j] * 0xD2511F53u, p1 = (uint64_t)c2[j] * 0xCD9E8D57u;
            uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1[j] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3[j] ^ k1;
            c1[j] = (uint32_t)p1;
            c3[j] = (uint32_t)p0;
            c0[j] = n0;
            c2[j] = n2;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* Element `first + i` is made from `words_each` words of the stream: w(0), w(1) ... in `expr`. A
 * batch of blocks at a time; the first may begin in the middle of a block. Element e of each block
 * is worked out for all blocks, side by side. */
#define w(k) words[e * WORDS + (k)][j]
#define RANDOM(name, T, words_each, expr)                                                          \
    static void name(uint64_t seed, uint64_t block, uint64_t first, int64_t n, T p0, T p1, T *y)   \
    {                                                                                              \
        enum { WORDS = words_each, PER = 4 / WORDS, BATCH = SIDE * PER };                          \
        uint32_t words[4][SIDE];                                                                   \
        T beside[PER][SIDE], numbers[BATCH];                                                       \
        int64_t skip = (int64_t)(first % PER);                                                     \
        block += first / PER;                                                                      \
        for (int64_t done = 0; done < n; block += SIDE, skip = 0) {                                \
            philox(seed, block, words);                                                            \
            for (int e = 0; e < PER; e++)                                                          \
                for (int j = 0; j < SIDE; j++)                                                     \
                    beside[e][j] = expr;                                                           \
            for (int j = 0; j < SIDE; j++)                                                         \
                for (int e = 0; e < PER; e++)                                                      \
                    numbers[j * PER + e] = beside[e][j];                                           \
            int64_t count = n - done < BATCH - skip ? n - done : BATCH - skip;                     \
            memcpy(y + done, numbers + skip, (size_t)count * sizeof *y);                           \
            done += count;                                                                         \
        }                                                                                          \
    }
/* The words become signed first: that conversion to float exists everywhere. */
#define UNIT32(word) ((float)(int32_t)((word) >> 8) * 0x1p-24f)
#define BITS53(high, low) (int64_t)(((uint64_t)(high) << 32 | (low)) >> 11)
#define UNIT64(high, low) ((double)BITS53(high, low) * 0x1p-53)
RANDOM(uniform_f32, float, 1, __builtin_fmaf(UNIT32(w(0)), p1, p0))
RANDOM(uniform_f64, double, 2, __builtin_fma(UNIT64(w(0), w(1)), p1, p0))
RANDOM(normal_f32, float, 2,
       p0 + p1 * (__builtin_sqrtf(-2 * tn__log_f32(UNIT32(w(0)) + 0x1p-24f)) *
                  tn__cos_turn_f32(UNIT32(w(1)))))
RANDOM(normal_f64, double, 4,
       p0 + p1 * (__builtin_sqrt(-2 * tn__log_f64(UNIT64(w(0), w(1)) + 0x1p-53)) *
                  tn__cos_turn_f64(UNIT64(w(2), w(3)))))

/* ---- the table ------------------------------------------------------------------------------- */

#define FLOATS(name)                                                                               \
    {                                                                                              \
        [TN__F32] = name##_f32, [TN__F64] = name##_f64                                             \
    }
#define NUMBERS(name)                                                                              \
    {                                                                                              \
        [TN__F32] = name##_f32, [TN__F64] = name##_f64, [TN__I64] = name##_i64                     \
    }

#define STEPS(name)                                                                                \
    {                                                                                              \
        [TN__F32] = name##_f32, [TN__F64] = name##_f64, [TN__I64] = same_i64                       \
    }
#define WHOLE(name)                                                                                \
    {                                                                                              \
        [TN__I64] = name##_i64                                                                     \
    }

const struct tn__loops TN__LOOPS_NAME = {
    .name = TN__LOOPS_TEXT,
    .ew = {
        [TN__ADD] = NUMBERS(add),
        [TN__SUB] = NUMBERS(sub),
        [TN__ADD_ALPHA] = NUMBERS(add_alpha),
        [TN__MUL] = NUMBERS(mul),
        [TN__DIV] = FLOATS(div),
        [TN__DIV_TRUNC] = FLOATS(div_trunc),
        [TN__MAXIMUM] = NUMBERS(maximum),
        [TN__MINIMUM] = NUMBERS(minimum),
        [TN__RELU_GRAD] = FLOATS(relu_grad),
        [TN__PRELU] = FLOATS(prelu),
        [TN__ADD_SCALAR] = NUMBERS(add_scalar),
        [TN__MUL_SCALAR] = NUMBERS(mul_scalar),
        [TN__NEG] = NUMBERS(neg),
        [TN__ABS] = NUMBERS(abs),
        [TN__SIGN] = NUMBERS(sign),
        [TN__SQUARE] = NUMBERS(square),
        [TN__CUBE] = FLOATS(cube),
        [TN__CLAMP] = NUMBERS(clamp),
        [TN__RELU] = NUMBERS(relu),
        [TN__EQ] = NUMBERS(eq),
        [TN__NE] = NUMBERS(ne),
        [TN__LT] = NUMBERS(lt),
        [TN__LE] = NUMBERS(le),
        [TN__GT] = NUMBERS(gt),
        [TN__GE] = NUMBERS(ge),
        [TN__FRAC] = FLOATS(frac),
        [TN__LEAKY_RELU] = FLOATS(leaky_relu),
        [TN__HARDSIGMOID] = FLOATS(hardsigmoid),
        [TN__HARDSWISH] = FLOATS(hardswish),
        [TN__SOFTSHRINK] = FLOATS(softshrink),
        [TN__HARDSHRINK] = FLOATS(hardshrink),
        [TN__THRESHOLD] = FLOATS(threshold),
        [TN__SOFTSIGN] = FLOATS(softsign),
        [TN__SQRT] = FLOATS(sqrt),
        [TN__RECIPROCAL] = FLOATS(reciprocal),
        [TN__RSQRT] = FLOATS(rsqrt),
        [TN__FLOOR] = STEPS(floor),
        [TN__CEIL] = STEPS(ceil),
        [TN__TRUNC] = STEPS(trunc),
        [TN__ROUND] = STEPS(round),
        [TN__BITWISE_AND] = WHOLE(and),
        [TN__BITWISE_OR] = WHOLE(or),
        [TN__BITWISE_XOR] = WHOLE(xor),
        [TN__BITWISE_NOT] = WHOLE(not),
        [TN__LOGICAL_NOT] = WHOLE(logical_not),
    },
    .mix = {
        [TN__MIX_LERP] = FLOATS(lerp),
        [TN__MIX_LERP_SCALAR] = FLOATS(lerp_scalar),
        [TN__MIX_ADDCMUL] = FLOATS(addcmul),
        [TN__MIX_ADDCDIV] = FLOATS(addcdiv),
        [TN__MIX_CLAMP_TENSOR] = FLOATS(clamp_tensor),
    },
    .sum_f32 = sum_f32,
    .sum_f64 = sum_f64,
    .sum_i64 = sum_i64,
    .max_f32 = max_f32,
    .max_f64 = max_f64,
    .max_i64 = max_i64,
    .softmax_f32 = softmax_f32,
    .softmax_f64 = softmax_f64,
    .log_softmax_f32 = log_softmax_f32,
    .log_softmax_f64 = log_softmax_f64,
    .log_softmax_grad_f32 = log_softmax_grad_f32,
    .log_softmax_grad_f64 = log_softmax_grad_f64,
    .softmax_grad_f32 = softmax_grad_f32,
    .softmax_grad_f64 = softmax_grad_f64,
    .softmax_side = { softmax_side_f32, softmax_side_f64 },
    .softmax_grad_side = { softmax_grad_side_f32, softmax_grad_side_f64 },
    .attend_f32 = attend_f32,
    .attend_f64 = attend_f64,
    .attend_grad_f32 = attend_grad_f32,
    .attend_grad_f64 = attend_grad_f64,
    .uniform_f32 = uniform_f32,
    .uniform_f64 = uniform_f64,
    .normal_f32 = normal_f32,
    .normal_f64 = normal_f64,
};
