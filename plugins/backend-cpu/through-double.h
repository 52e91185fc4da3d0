/* SPDX-License-Identifier: MIT
 *
 * Functions of float32 numbers that are worked out in float64: short series do, and results are
 * right but for the last rounding. Where `.._fits` says no (rare), the C library has to. The
 * choice is made number by number, so that it depends on nothing else. */
#ifndef TN_BACKEND_CPU_THROUGH_DOUBLE_H
#define TN_BACKEND_CPU_THROUGH_DOUBLE_H

#include "functions.h"

/* ---- circles --------------------------------------------------------------------------------- */

/* Up to 2^27 the quarter turns are counted exactly. */
static inline int tn__turn_fits(float x, float unused)
{
    (void)unused;
    return __builtin_fabsf(x) < 0x1p27f;
}

/* Sine (turn 0) and cosine (turn 1): the rest within an eighth of a turn, in two series of FreeBSD's
 * msun. */
static inline double tn__sine(double x, uint64_t turn)
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

static inline float tn__wide_sin(float x, float unused)
{
    (void)unused;
    return x == 0 ? x : (float)tn__sine((double)x, 0);
}

static inline float tn__wide_cos(float x, float unused)
{
    (void)unused;
    return (float)tn__sine((double)x, 1);
}

static inline float tn__wide_tan(float x, float unused)
{
    (void)unused;
    return x == 0 ? x : (float)(tn__sine((double)x, 0) / tn__sine((double)x, 1));
}

/* The angle of a point whose coordinates are not negative, y <= x: t p(t^2), p fitted to 1e-11. */
static inline double tn__eighth(double t)
{
    double z = t * t, p = 4.19233938676251937e-04;
    p = p * z - 3.19546183461662855e-03;
    p = p * z + 1.14277296457811223e-02;
    p = p * z - 2.60061417220421864e-02;
    p = p * z + 4.36467291335357263e-02;
    p = p * z - 6.02220521889062221e-02;
    p = p * z + 7.49526609111912240e-02;
    p = p * z - 9.04918011477332390e-02;
    p = p * z + 1.11053069078771549e-01;
    p = p * z - 1.42852256253409415e-01;
    p = p * z + 1.99999783370026274e-01;
    p = p * z - 3.33333329516655841e-01;
    p = p * z + 9.99999999988737009e-01;
    return t * p;
}

static inline int tn__always_fits(float x, float unused)
{
    (void)x, (void)unused;
    return 1;
}

static inline float tn__wide_atan(float x, float unused)
{
    double size = __builtin_fabs((double)x), t = size > 1 ? 1 / size : size, y = tn__eighth(t);
    (void)unused;
    return (float)__builtin_copysign(size > 1 ? 1.57079632679489661923 - y : y, (double)x);
}

/* Zeros and infinities are special. */
static inline int tn__angle_fits(float a, float b)
{
    float size_a = __builtin_fabsf(a), size_b = __builtin_fabsf(b);
    return (size_a > 0) & (size_b > 0) & (size_a <= 0x1.fffffep127f) & (size_b <= 0x1.fffffep127f);
}

static inline float tn__wide_atan2(float a, float b)
{
    double up = __builtin_fabs((double)a), right = __builtin_fabs((double)b);
    double y = tn__eighth(up > right ? right / up : up / right);
    y = up > right ? 1.57079632679489661923 - y : y;
    y = b < 0 ? 3.14159265358979323846 - y : y;
    return (float)__builtin_copysign(y, (double)a);
}

/* ---- hyperbolas ------------------------------------------------------------------------------- */

static inline float tn__wide_cosh(float x, float unused)
{
    double e = tn__exp_f64(__builtin_fabs((double)x));
    (void)unused;
    return (float)(0.5 * (e + 1 / e));
}

/* Beyond 100 it is infinite in float32. */
static inline float tn__wide_sinh(float x, float unused)
{
    double size = __builtin_fabs((double)x), e = tn__expm1_f64(size > 100 ? 100.0 : size);
    (void)unused;
    return (float)__builtin_copysign(0.5 * (e + e / (e + 1)), (double)x);
}

/* ---- the error function's complement ------------------------------------------------------- */

/* e^(-z^2) t p(t), t = 1 / (1 + z / 2), p fitted to 6e-10 up to 10.5, beyond which it is 0 in
 * float32. */
static inline float tn__wide_erfc(float x, float unused)
{
    double size = __builtin_fabs((double)x), z = size > 10.5 ? 10.5 : size;
    double t = 1 / (1 + 0.5 * z), u = t - 0.58;
    double p = -3.05651965192719650e-02;
    p = p * u + 3.32010854560953750e-02;
    p = p * u + 3.09409999003404310e-02;
    p = p * u - 7.31903159300360540e-02;
    p = p * u + 1.63555346180759400e-03;
    p = p * u + 1.13855231974953480e-01;
    p = p * u - 5.14365867377138061e-02;
    p = p * u - 2.03338682467567644e-01;
    p = p * u + 8.51413636699356463e-02;
    p = p * u + 5.86853672191359532e-01;
    p = p * u + 7.79018881375411421e-01;
    p = p * u + 5.69408722529349154e-01;
    double y = t * p * tn__exp_f64(-z * z);
    (void)unused;
    return (float)(x < 0 ? 2 - y : y);
}

/* ---- remainders ------------------------------------------------------------------------------ */

/* The quotient's whole part is exact below 2^27, and so is its product with b. */
static inline int tn__rest_fits(float a, float b)
{
    double quotient = (double)a / (double)b;
    return (__builtin_fabs(quotient) < 0x1p27) & (__builtin_fabsf(b) <= 0x1.fffffep127f);
}

static inline float tn__wide_fmod(float a, float b)
{
    double rest = (double)a - __builtin_trunc((double)a / (double)b) * (double)b;
    return __builtin_copysignf((float)rest, a);
}

static inline float tn__wide_remainder(float a, float b)
{
    float rest = tn__wide_fmod(a, b);
    return ((rest != 0) & ((b < 0) != (rest < 0))) ? rest + b : rest;
}

/* ---- powers ---------------------------------------------------------------------------------- */

/* Zeros, infinities and NaN are special, and so are powers of negative numbers. */
static inline int tn__power_fits(float a, float b)
{
    return (a > 0) & (a <= 0x1.fffffep127f) & (__builtin_fabsf(b) <= 0x1.fffffep127f);
}

static inline float tn__wide_pow(float a, float b)
{
    return (float)tn__exp_f64((double)b * tn__log_f64((double)a));
}

#endif
