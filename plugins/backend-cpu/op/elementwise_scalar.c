/* SPDX-License-Identifier: MIT
 *
 * Functions computed one element at a time, the same code for all instruction sets: quotients,
 * remainders and powers of integers, hypotenuses by the C library. */
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

/* ---- whole numbers --------------------------------------------------------------------------- */

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

/* ---- the loops ------------------------------------------------------------------------------- */

#define F_LOOPS(T, s, f) BINARY(hypot_##s, T, hypot##f(a, b))
F_LOOPS(float, f32, f)
F_LOOPS(double, f64, )

#define FLOATS(name)                                                                               \
    {                                                                                              \
        [TN__F32] = name##_f32, [TN__F64] = name##_f64                                             \
    }
tn__ew_loop *const tn__scalar_loops[TN__EW_COUNT][TN__I64 + 1] = {
    [TN__EW_div_trunc] = { [TN__I64] = div_trunc_i64 },
    [TN__EW_div_floor] = { [TN__I64] = div_floor_i64 },
    [TN__EW_remainder] = { [TN__I64] = remainder_i64 },
    [TN__EW_fmod] = { [TN__I64] = fmod_i64 },
    [TN__EW_pow] = { [TN__I64] = pow_i64 },
    [TN__EW_hypot] = FLOATS(hypot),
};
