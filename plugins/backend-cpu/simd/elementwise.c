/* SPDX-License-Identifier: MIT
 *
 * The inner loops, compiled once per instruction set: TN__LOOPS_NAME is the name of the table,
 * and the compiler's target options decide what the loops become. Sums run in lanes of a fixed
 * number and contraction to fused multiply-adds is off (local.mk), so that elementwise
 * functions, reductions and random numbers give the same bits on every instruction set. */
#include <math.h>
#include <string.h>

#include "math/float64.h"
#include "math/sqrt.h"
#include "simd/elementwise.h"
#include "simd/simd.h"

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

const struct tn__simd_elementwise TN__SIMD_TABLE(elementwise) = {
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
    .ternary = {
        [TN__TERNARY_LERP] = FLOATS(lerp),
        [TN__TERNARY_LERP_SCALAR] = FLOATS(lerp_scalar),
        [TN__TERNARY_ADDCMUL] = FLOATS(addcmul),
        [TN__TERNARY_ADDCDIV] = FLOATS(addcdiv),
        [TN__TERNARY_CLAMP_TENSOR] = FLOATS(clamp_tensor),
    },
};
