/* SPDX-License-Identifier: MIT
 *
 * Loops that compute one element at a time, compiled once, not for each instruction set: powers,
 * common divisors and common multiples of integers, and functions of the C library. */
#include <math.h>

#include "simd/simd.h"

#define BINARY(name, T, expr)                                                                      \
    static void name(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa, const char *bp,  \
                     int64_t sb, const double *numbers)                                            \
    {                                                                                              \
        for (int64_t i = 0; (void)numbers, i < n; i++) {                                           \
            const T a = *(const T *)(const void *)(ap + i * sa);                                   \
            const T b = *(const T *)(const void *)(bp + i * sb);                                   \
            *(T *)(void *)(yp + i * sy) = (T)(expr);                                               \
        }                                                                                          \
    }

#define UNARY(name, T, expr)                                                                       \
    static void name(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa, const char *bp,  \
                     int64_t sb, const double *numbers)                                            \
    {                                                                                              \
        (void)bp, (void)sb, (void)numbers;                                                         \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T a = *(const T *)(const void *)(ap + i * sa);                                   \
            *(T *)(void *)(yp + i * sy) = (T)(expr);                                               \
        }                                                                                          \
    }

/* ---- integers -------------------------------------------------------------------------------- */

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
BINARY(pow_i64, int64, power_of(a, b))

/* Euclid's algorithm on absolute values; that of INT64_MIN wraps around to itself. */
static inline int64_t divisor_of(int64_t a, int64_t b)
{
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    while (y != 0) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return (int64_t)x;
}
BINARY(gcd_i64, int64, divisor_of(a, b))
static inline int64_t multiple_of(int64_t a, int64_t b)
{
    int64_t divisor = divisor_of(a, b);
    uint64_t y = divisor == 0 ? 0 : (uint64_t)(a / divisor) * (uint64_t)b;
    return (int64_t)((int64_t)y < 0 ? 0 - y : y);
}
BINARY(lcm_i64, int64, multiple_of(a, b))

/* ---- floats ---------------------------------------------------------------------------------- */

/* lgamma() without its global variable, which threads would share. */
static inline double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

/* ---- the loops ------------------------------------------------------------------------------- */

/* Defines the loops for a type T with the suffix s, whose functions in the C library have the
 * suffix f. */
#define F_LOOPS(T, s, f)                                                                           \
    UNARY(asinh_##s, T, asinh##f(a))                                                               \
    UNARY(acosh_##s, T, acosh##f(a))
F_LOOPS(float, f32, f)
F_LOOPS(double, f64, )
UNARY(lgamma_f64, double, log_gamma(a))

#define FLOATS(name)                                                                               \
    {                                                                                              \
        [TN__F32] = name##_f32, [TN__F64] = name##_f64                                             \
    }
tn__ew_loop *const tn__scalar_loops[TN__EW_COUNT][TN__I64 + 1] = {
    [TN__EW_pow] = { [TN__I64] = pow_i64 }, [TN__EW_gcd] = { [TN__I64] = gcd_i64 },
    [TN__EW_lcm] = { [TN__I64] = lcm_i64 }, [TN__EW_asinh] = FLOATS(asinh),
    [TN__EW_acosh] = FLOATS(acosh),         [TN__EW_lgamma] = { [TN__F64] = lgamma_f64 },
};
