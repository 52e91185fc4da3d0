/* SPDX-License-Identifier: MIT
 *
 * Functions of numbers that the C library works out: one number at a time, the same code for all
 * instruction sets. */
#include <math.h>

#include "cpu.h"

#define BINARY(name, T, expr)                                                                      \
    static void name(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa, const char *bp,  \
                     int64_t sb, const double *numbers)                                            \
    {                                                                                              \
        (void)numbers;                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T a = *(const T *)(const void *)(ap + i * sa);                                   \
            const T b = *(const T *)(const void *)(bp + i * sb);                                   \
            *(T *)(void *)(yp + i * sy) = (T)(expr);                                               \
        }                                                                                          \
    }
#define UNARY(name, T, expr)                                                                       \
    static void name(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa, const char *bp,  \
                     int64_t sb, const double *numbers)                                            \
    {                                                                                              \
        const T p = (T)numbers[0], q = (T)numbers[1], r = (T)numbers[2];                           \
        (void)bp, (void)sb, (void)p, (void)q, (void)r;                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T a = *(const T *)(const void *)(ap + i * sa);                                   \
            *(T *)(void *)(yp + i * sy) = (T)(expr);                                               \
        }                                                                                          \
    }

/* ---- quotients and remainders ---------------------------------------------------------------- */

/* The quotient comes from the remainder, so that it is right where a / b is rounded up to a whole
 * number. */
static inline double floor_of_f64(double a, double b)
{
    if (b == 0)
        return a / b;
    double rest = fmod(a, b), quotient = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0))
        quotient -= 1;
    if (quotient == 0)
        return copysign(0, a / b);
    double below = floor(quotient);
    return quotient - below > 0.5 ? below + 1 : below;
}

static inline double remainder_of_f64(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}

/* Kernels have refused zeros; the smallest number over -1 wraps around. */
static inline int64_t quotient_of(int64_t a, int64_t b)
{
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : b == 0 ? 0 : a / b;
}
static inline int64_t rest_of(int64_t a, int64_t b)
{
    return b == -1 || b == 0 ? 0 : a % b;
}
static inline int64_t floor_of(int64_t a, int64_t b)
{
    int64_t rest = rest_of(a, b);
    return quotient_of(a, b) - (rest != 0 && (rest < 0) != (b < 0));
}
static inline int64_t remainder_of(int64_t a, int64_t b)
{
    int64_t rest = rest_of(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static inline int64_t power_of(int64_t a, int64_t b)
{
    uint64_t y = 1, x = (uint64_t)a;
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    for (; b > 0; b >>= 1, x *= x)
        y *= b & 1 ? x : 1;
    return (int64_t)y;
}
typedef int64_t int64;
BINARY(div_trunc_i64, int64, quotient_of(a, b))
BINARY(div_floor_i64, int64, floor_of(a, b))
BINARY(remainder_i64, int64, remainder_of(a, b))
BINARY(fmod_i64, int64, rest_of(a, b))
BINARY(pow_i64, int64, power_of(a, b))

/* ---- inverse of the error function ----------------------------------------------------------- */

/* A rational function in the middle and another one in the tails, then two steps of Newton's. */
static double erfinv(double y)
{
    double size = fabs(y), x;
    if (!(size < 1))
        return size == 1 ? copysign(INFINITY, y) : NAN;
    if (size <= 0.7) {
        double z = y * y;
        x = y * (((-0.140543331 * z + 0.914624893) * z - 1.645349621) * z + 0.886226899) /
            ((((0.012229801 * z - 0.329097515) * z + 1.442710462) * z - 2.118377725) * z + 1);
    } else {
        double z = sqrt(-log((1 - size) / 2));
        x = copysign(((1.641345311 * z + 3.429567803) * z - 1.624906493) * z - 1.970840454, y) /
            ((1.637067800 * z + 3.543889200) * z + 1);
    }
    for (int step = 0; step < 2; step++)
        x -= (erf(x) - y) / (1.12837916709551257390 * exp(-x * x));
    return x;
}

/* ---- the loops ------------------------------------------------------------------------------- */

#define F_LOOPS(T, s, f) BINARY(hypot_##s, T, hypot##f(a, b))
F_LOOPS(float, f32, f)
F_LOOPS(double, f64, )
UNARY(sin_f64, double, sin(a))
UNARY(cos_f64, double, cos(a))
UNARY(tan_f64, double, tan(a))
UNARY(atan_f64, double, atan(a))
BINARY(div_floor_f64, double, floor_of_f64(a, b))
BINARY(remainder_f64, double, remainder_of_f64(a, b))
BINARY(fmod_f64, double, fmod(a, b))
BINARY(pow_f64, double, pow(a, b))
BINARY(atan2_f64, double, atan2(a, b))
UNARY(erf_f64, double, erf(a))
UNARY(log2_f64, double, log2(a))
UNARY(log10_f64, double, log10(a))
UNARY(asin_f64, double, asin(a))
UNARY(acos_f64, double, acos(a))
UNARY(sinh_f64, double, sinh(a))
UNARY(cosh_f64, double, cosh(a))
UNARY(erfc_f64, double, erfc(a))
UNARY(erfinv_f64, double, erfinv(a))
UNARY(gelu_f64, double, a * 0.5 * erfc(a * -0.70710678118654752440))

#define FLOATS(name)                                                                               \
    {                                                                                              \
        [TN__F32] = name##_f32, [TN__F64] = name##_f64                                             \
    }
tn__ew_loop *const tn__loops_once[TN__EW_COUNT][TN__I64 + 1] = {
    [TN__DIV_TRUNC] = { [TN__I64] = div_trunc_i64 },
    [TN__DIV_FLOOR] = { [TN__F64] = div_floor_f64, [TN__I64] = div_floor_i64 },
    [TN__REMAINDER] = { [TN__F64] = remainder_f64, [TN__I64] = remainder_i64 },
    [TN__FMOD] = { [TN__F64] = fmod_f64, [TN__I64] = fmod_i64 },
    [TN__POW] = { [TN__F64] = pow_f64, [TN__I64] = pow_i64 },
    [TN__ATAN2] = { [TN__F64] = atan2_f64 },
    [TN__HYPOT] = FLOATS(hypot),
    [TN__LOG2] = { [TN__F64] = log2_f64 },
    [TN__LOG10] = { [TN__F64] = log10_f64 },
    [TN__SIN] = { [TN__F64] = sin_f64 },
    [TN__COS] = { [TN__F64] = cos_f64 },
    [TN__TAN] = { [TN__F64] = tan_f64 },
    [TN__ASIN] = { [TN__F64] = asin_f64 },
    [TN__ACOS] = { [TN__F64] = acos_f64 },
    [TN__ATAN] = { [TN__F64] = atan_f64 },
    [TN__SINH] = { [TN__F64] = sinh_f64 },
    [TN__COSH] = { [TN__F64] = cosh_f64 },
    [TN__ERF] = { [TN__F64] = erf_f64 },
    [TN__ERFC] = { [TN__F64] = erfc_f64 },
    [TN__ERFINV] = { [TN__F64] = erfinv_f64 },
    [TN__GELU] = { [TN__F64] = gelu_f64 },
};
