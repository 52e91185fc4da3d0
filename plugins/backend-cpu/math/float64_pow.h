/* SPDX-License-Identifier: MIT
 *
 * Powers and remainders of float64 numbers, written like float64.h. For elements for which
 * NAME_fits() returns 0, the C library is called. */
#ifndef TN_BACKEND_CPU_MATH_FLOAT64_POW_H
#define TN_BACKEND_CPU_MATH_FLOAT64_POW_H

#include "math/float64.h"
#include "base/vectorize.h"

/* ---- powers ---------------------------------------------------------------------------------- */

/* Computes ln x as the result + *low, with about 66 correct bits. With x = 2^k (1 + f) and
 * s = f / (2 + f), ln(1 + f) is 2 s + 2/3 s^3 + s^5 p(s^2); each of the first two terms is computed
 * as a sum of two numbers. */
TN__INTO_LOOPS double tn__log64_long(double x, double *low)
{
    double k, f = tn__split_all64(x, &k), g = 2 + f, inverse = 1 / g, s = f * inverse, s_low;
    double back = tn__product64(s, g, &s_low);
    s_low = (((f - back) - s_low) - s * (f - (g - 2))) * inverse;
    double z_low, z = tn__product64(s, s, &z_low), z2 = z * z, z4 = z2 * z2, v_low, c_low;
    z_low += 2 * s * s_low;
    double c = tn__product64(z, 0x1.5555555555555p-1, &c_low);
    c_low += z * 0x1.5555555555555p-55 + z_low * 0x1.5555555555555p-1;
    double v = tn__product64(s, c, &v_low), h = 2 * s + v;
    double p = tn__sum8(z, z2, z4, 0x1.9999999999996p-2, 0x1.2492492492f4fp-2, 0x1.c71c71c596e98p-3,
                        0x1.745d182924679p-3, 0x1.3b1364d793541p-3, 0x1.11206cf7fa765p-3,
                        0x1.de3dcb2d43716p-4, 0x1.eac2cd902cb54p-4);
    double rest = (2 * s - h) + v;
    rest += 2 * s_low + TN__MA64(s * z2, p, v_low + s * c_low + s_low * c);
    double most = k * TN__LN2_HIGH, y = most + h;
    rest += (most - y) + h + k * TN__LN2_LOW;
    double sum = y + rest;
    *low = (y - sum) + rest;
    return sum;
}

/* Returns whether a is finite and b so small that its float64 tells whether b is an odd integer. */
TN__INTO_LOOPS int32_t tn__pow64_fits(double a, double b)
{
    return (__builtin_fabs(a) <= TN__LARGEST_F64) & (__builtin_fabs(b) < 0x1p50);
}

/* a^b = e^(b ln |a|). For a that is 0 or negative, the results are those of C's pow. */
TN__INTO_LOOPS double tn__pow64(double a, double b)
{
    double size = __builtin_fabs(a), log_low, log = tn__log64_long(size, &log_low);
    double low, x = tn__product64(b, log, &low), in = x < -746 ? -746.0 : x > 710 ? 710.0 : x;
    uint64_t scale;
    double y = tn__exp64_sum(in, in == x ? TN__MA64(b, log_low, low) : 0.0, &scale);
    y = tn__scaled64(1 + y, scale);
    double shifted = b + 0x1.8p52, whole = shifted - 0x1.8p52,
           none = b > 0 ? 0.0 : TN__INFINITY_F64;
    none = b == 0 ? 1.0 : none;
    y = size == 0 ? none : y;
    uint64_t odd = tn__bits_f64(shifted) << 63;
    y = tn__of_bits_f64(tn__bits_f64(y) ^ (tn__bits_f64(a) & (whole == b ? odd : (uint64_t)0)));
    return ((a < 0) & (whole != b)) ? TN__NAN_F64 : y;
}

/* ---- remainders ------------------------------------------------------------------------------ */

/* Returns whether the integer part of a / b is exact, and its product with b as well. */
TN__INTO_LOOPS int32_t tn__rest64_fits(double a, double b)
{
    double size = __builtin_fabs(b);
    return (__builtin_fabs(a / b) < 0x1p52) & (size > 0x1p-900) & (size < 0x1p900);
}

/* If a / b was rounded up to an integer, the rest has the wrong sign, and is corrected by |b|. */
TN__INTO_LOOPS double tn__fmod64(double a, double b)
{
    double quotient = __builtin_trunc(a / b), low, product = tn__product64(quotient, b, &low);
    double rest = (a - product) - low, size = __builtin_fabs(b);
    double other = a < 0 ? rest - size : rest + size;
    rest = (a < 0 ? rest > 0 : rest < 0) ? other : rest;
    return __builtin_copysign(rest, a);
}

TN__INTO_LOOPS double tn__remainder64(double a, double b)
{
    double rest = tn__fmod64(a, b);
    return ((rest != 0) & ((b < 0) != (rest < 0))) ? rest + b : rest;
}

/* floor(a / b), computed from the remainder, because the rounded quotient a / b can be an integer
 * that is larger than the exact quotient. */
TN__INTO_LOOPS double tn__div_floor64(double a, double b)
{
    double rest = tn__fmod64(a, b), quotient = (a - rest) / b;
    quotient = ((rest != 0) & ((b < 0) != (rest < 0))) ? quotient - 1 : quotient;
    double below = __builtin_floor(quotient);
    below = quotient - below > 0.5 ? below + 1 : below;
    return quotient == 0 ? __builtin_copysign(0.0, a / b) : below;
}

/* ---- for elements outside of the ranges above ------------------------------------------------ */

static inline double tn__remainder64_far(double a, double b)
{
    double rest = __builtin_fmod(a, b);
    return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}

static inline double tn__div_floor64_far(double a, double b)
{
    if (b == 0)
        return a / b;
    double rest = __builtin_fmod(a, b), quotient = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0))
        quotient -= 1;
    if (quotient == 0)
        return __builtin_copysign(0, a / b);
    double below = __builtin_floor(quotient);
    return quotient - below > 0.5 ? below + 1 : below;
}

#endif
