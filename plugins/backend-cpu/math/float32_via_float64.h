/* SPDX-License-Identifier: MIT
 *
 * Functions of float32 numbers computed in float64: short polynomials are precise enough, and only
 * the last rounding has an error that counts. For elements for which `.._fits` is false (rarely)
 * the C library is called. The choice is made for each element alone, so that a result does not
 * depend on the neighbours of the element. */
#ifndef TN_BACKEND_CPU_MATH_FLOAT32_VIA_FLOAT64_H
#define TN_BACKEND_CPU_MATH_FLOAT32_VIA_FLOAT64_H

#include "math/float32.h"
#include "math/float64.h"
#include "base/vectorize.h"

/* ---- trigonometric functions ----------------------------------------------------------------- */

/* Up to 2^27, the number of quarter turns in x is computed exactly. */
TN__INTO_LOOPS int tn__turn_fits(float x, float unused)
{
    (void)unused;
    return __builtin_fabsf(x) < 0x1p27f;
}

/* Returns the sine of x if `turn` is 0, the cosine if it is 1. x is reduced to at most an eighth of
 * a turn; the two polynomials are those of FreeBSD's msun. */
TN__INTO_LOOPS double tn__sine(double x, uint64_t turn)
{
    double shifted = x * 6.36619772367581382433e-01 + 0x1.8p52, k = shifted - 0x1.8p52;
    double r = (x - k * 1.57079631090164184570e+00) - k * 1.58932547735281966916e-08, z = r * r;
    uint64_t n = tn__bits_f64(shifted) + turn;
    double s = z * r, p = -0x1a00f9e2cae774.0p-65 + z * 0x16cd878c3b46a7.0p-71;
    double sine = (r + s * (-0x15555554cbac77.0p-55 + z * 0x111110896efbb2.0p-59)) + s * z * z * p;
    double c = -0x16c087e80f1e27.0p-62 + z * 0x199342e0ee5069.0p-68;
    double cosine = ((1 + z * -0x1ffffffd0c5e81.0p-54) + z * z * 0x155553e1053a42.0p-57) +
                    z * z * z * c;
    double y = n & 1 ? cosine : sine;
    return n & 2 ? -y : y;
}

TN__INTO_LOOPS float tn__wide_sin(float x, float unused)
{
    (void)unused;
    return x == 0 ? x : (float)tn__sine((double)x, 0);
}

TN__INTO_LOOPS float tn__wide_cos(float x, float unused)
{
    (void)unused;
    return (float)tn__sine((double)x, 1);
}

TN__INTO_LOOPS float tn__wide_tan(float x, float unused)
{
    (void)unused;
    return x == 0 ? x : (float)(tn__sine((double)x, 0) / tn__sine((double)x, 1));
}

/* ---- hyperbolic functions -------------------------------------------------------------------- */

TN__INTO_LOOPS float tn__wide_cosh(float x, float unused)
{
    double e = tn__exp_f64(__builtin_fabs((double)x));
    (void)unused;
    return (float)(0.5 * (e + 1 / e));
}

/* |x| is limited to 100, because sinh 100 is infinite in float32 already. */
TN__INTO_LOOPS float tn__wide_sinh(float x, float unused)
{
    double size = __builtin_fabs((double)x), e = tn__expm1_f64(size > 100 ? 100.0 : size);
    (void)unused;
    return (float)__builtin_copysign(0.5 * (e + e / (e + 1)), (double)x);
}

/* ---- a root ---------------------------------------------------------------------------------- */

/* No square of a float32 overflows in float64. An infinite side counts more than NaN. */
TN__INTO_LOOPS float tn__wide_hypot(float a, float b)
{
    double p = (double)a, q = (double)b, y = __builtin_sqrt(p * p + q * q);
    int infinite = (__builtin_fabsf(a) > 0x1.fffffep127f) | (__builtin_fabsf(b) > 0x1.fffffep127f);
    return infinite ? __builtin_inff() : (float)y;
}

/* ---- remainders ------------------------------------------------------------------------------ */

/* Below 2^27 the integer part of the quotient is exact, and so is its product with b. */
TN__INTO_LOOPS int tn__rest_fits(float a, float b)
{
    double quotient = (double)a / (double)b;
    return (__builtin_fabs(quotient) < 0x1p27) & (__builtin_fabsf(b) <= 0x1.fffffep127f);
}

TN__INTO_LOOPS float tn__wide_fmod(float a, float b)
{
    double rest = (double)a - __builtin_trunc((double)a / (double)b) * (double)b;
    return __builtin_copysignf((float)rest, a);
}

TN__INTO_LOOPS float tn__wide_remainder(float a, float b)
{
    float rest = tn__wide_fmod(a, b);
    return ((rest != 0) & ((b < 0) != (rest < 0))) ? rest + b : rest;
}

/* floor(a / b), computed from the remainder, because the rounded quotient a / b can be an integer
 * that is larger than the exact quotient. */
static inline float tn__div_floor_f32(float a, float b)
{
    if (b == 0)
        return a / b;
    float rest = __builtin_fmodf(a, b), quotient = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0))
        quotient -= 1;
    if (quotient == 0)
        return __builtin_copysignf(0, a / b);
    float below = __builtin_floorf(quotient);
    return quotient - below > 0.5f ? below + 1 : below;
}

TN__INTO_LOOPS float tn__wide_div_floor(float a, float b)
{
    float rest = tn__wide_fmod(a, b), quotient = (a - rest) / b;
    quotient = ((rest != 0) & ((b < 0) != (rest < 0))) ? quotient - 1 : quotient;
    float below = __builtin_floorf(quotient);
    below = quotient - below > 0.5f ? below + 1 : below;
    return quotient == 0 ? __builtin_copysignf(0, a / b) : below;
}

/* ---- powers ---------------------------------------------------------------------------------- */

/* Returns whether a is positive and finite and b is finite. */
TN__INTO_LOOPS int tn__power_is_plain(float a, float b)
{
    return (a > 0) & (a <= 0x1.fffffep127f) & (__builtin_fabsf(b) <= 0x1.fffffep127f);
}

TN__INTO_LOOPS float tn__wide_pow(float a, float b)
{
    return (float)tn__exp_f64((double)b * tn__log_f64((double)a));
}

#endif
