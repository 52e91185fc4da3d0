/* SPDX-License-Identifier: MIT
 *
 * Sine, cosine, tangent and their inverses of float64 numbers, written like float64.h. For elements
 * for which NAME_fits() returns 0, the C library is called. */
#ifndef TN_BACKEND_CPU_MATH_FLOAT64_TRIG_H
#define TN_BACKEND_CPU_MATH_FLOAT64_TRIG_H

#include "math/float64.h"
#include "base/vectorize.h"

#define TN__PI_HIGH 0x1.921fb54442d18p1
#define TN__PI_LOW 0x1.1a62633145c07p-53

/* ---- sine, cosine, tangent ------------------------------------------------------------------- */

/* Returns 1 if |x| <= 1e6, so that x has fewer than 2^20 quarter turns (pi / 2), else 0. */
TN__INTO_LOOPS int32_t tn__circle64_fits(double x, double unused)
{
    (void)unused;
    return __builtin_fabs(x) <= 1e6;
}

/* Splits x = k pi / 2 + r + low with |r| <= pi / 4: returns r, and sets *low, and *n, whose low
 * bits are k. pi / 2 is given in four parts, 152 bits together, which is enough for every x that
 * tn__circle64_fits() accepts (|x| <= 1e6). The first three parts have at most 33 bits, so that
 * their products with k are exact. */
TN__INTO_LOOPS double tn__quarter64(double x, double *low, uint64_t *n)
{
    double shifted = TN__MA64(x, 0x1.45f306dc9c883p-1, 0x1.8p52), k = shifted - 0x1.8p52;
    double first = TN__MA64(k, -0x1.921fb544p0, x), second = TN__MA64(k, -0x1.0b4611a6p-34, first);
    double rest = TN__MA64(k, -0x1.0b4611a6p-34, first - second);
    rest = TN__MA64(k, -0x1.b839a252049c1p-104, TN__MA64(k, -0x1.3198a2ep-69, rest));
    double r = second + rest;
    *low = (second - r) + rest;
    *n = tn__bits_f64(shifted);
    return r;
}

TN__INTO_LOOPS double tn__sine64(double r, double low)
{
    double z = r * r, z2 = z * z;
    double p = TN__MA64(z2,
                        tn__sum4(z, z2, -0x1.a01a019be9204p-13, 0x1.71de355528aecp-19,
                                 -0x1.ae5e4b8057924p-26, 0x1.5d8b5416182f8p-33),
                        TN__MA64(z, 0x1.111111110f730p-7, -0x1.5555555555548p-3));
    return r + TN__MA64(r * z, p, low);
}

TN__INTO_LOOPS double tn__cosine64(double r, double low)
{
    double z = r * r, z2 = z * z, half = 0.5 * z, y = 1 - half;
    double p = TN__MA64(z2,
                        tn__sum4(z, z2, 0x1.a01a019c8dd1ep-16, -0x1.27e4f7f0501cbp-22,
                                 0x1.1ee9dacb80a54p-29, -0x1.8fa5ec7e52773p-37),
                        TN__MA64(z, -0x1.6c16c16c1500dp-10, 0x1.555555555554bp-5));
    return y + (((1 - y) - half) + TN__MA64(z2, p, -r * low));
}

TN__INTO_LOOPS double tn__sin64(double x)
{
    uint64_t n;
    double low, r = tn__quarter64(x, &low, &n);
    double y = n & 1 ? tn__cosine64(r, low) : tn__sine64(r, low);
    return x == 0 ? x : tn__of_bits_f64(tn__bits_f64(y) ^ (n & 2) << 62);
}

TN__INTO_LOOPS double tn__cos64(double x)
{
    uint64_t n;
    double low, r = tn__quarter64(x, &low, &n);
    double y = n & 1 ? tn__sine64(r, low) : tn__cosine64(r, low);
    return tn__of_bits_f64(tn__bits_f64(y) ^ ((n + 1) & 2) << 62);
}

TN__INTO_LOOPS double tn__tan64(double x)
{
    uint64_t n;
    double low, r = tn__quarter64(x, &low, &n);
    double sine = tn__sine64(r, low), cosine = tn__cosine64(r, low);
    double up = n & 1 ? -cosine : sine, right = n & 1 ? sine : cosine, y = up / right;
    return x == 0 ? x : y;
}

/* ---- inverses -------------------------------------------------------------------------------- */

/* Returns the arctangent of t for 0 <= t <= 1. */
TN__INTO_LOOPS double tn__angle64(double t)
{
    double z = t * t, z2 = z * z, z4 = z2 * z2, z8 = z4 * z4;
    double p = tn__sum8(z, z2, z4, -0x1.5555555555526p-2, 0x1.99999999955b1p-3,
                        -0x1.249249237f4aep-3, 0x1.c71c717fcc8fdp-4, -0x1.745d11ae4592ep-4,
                        0x1.3b1366983a2a9p-4, -0x1.110e5118db217p-4, 0x1.e1bba5d62b448p-5);
    double q = tn__sum8(z, z2, z4, -0x1.ae5e706d06b53p-5, 0x1.82dad08b2631cp-5,
                        -0x1.59a3ee8bee770p-5, 0x1.2c2e3e5f7048ap-5, -0x1.e9f9b6b152dddp-6,
                        0x1.683c69146ec77p-6, -0x1.c78f291928b47p-7, 0x1.d7b855491efeep-8);
    double s = tn__sum4(z, z2, -0x1.7a38d6af58c31p-9, 0x1.b3f9d1020e6aep-11, -0x1.3f3588c4b0707p-13,
                        0x1.bbec83127103dp-17);
    return TN__MA64(t * z, TN__MA64(z8, TN__MA64(z8, s, q), p), t);
}

TN__INTO_LOOPS double tn__atan64(double x)
{
    double size = __builtin_fabs(x), t = size > 1 ? 1 / size : size, y = tn__angle64(t);
    y = size > 1 ? TN__PI_HIGH / 2 - (y - TN__PI_LOW / 2) : y;
    return __builtin_copysign(y, x);
}

/* atan2 of zeros and infinities has special values, which tn__atan2_64 does not compute. */
TN__INTO_LOOPS int32_t tn__angle64_fits(double a, double b)
{
    double size_a = __builtin_fabs(a), size_b = __builtin_fabs(b);
    return (size_a > 0) & (size_b > 0) & (size_a <= TN__LARGEST_F64) & (size_b <= TN__LARGEST_F64);
}

TN__INTO_LOOPS double tn__atan2_64(double a, double b)
{
    double up = __builtin_fabs(a), right = __builtin_fabs(b);
    double small = up > right ? right : up, large = up > right ? up : right;
    double y = tn__angle64(small / large);
    y = up > right ? TN__PI_HIGH / 2 - (y - TN__PI_LOW / 2) : y;
    y = b < 0 ? TN__PI_HIGH - (y - TN__PI_LOW) : y;
    return __builtin_copysign(y, a);
}

/* Splits the arcsine asin s = s + *rest, *rest = s z p(z) with z = s^2, and returns s, where s =
 * size if size <= 1/2, else s = sqrt((1 - size) / 2). In the second case the caller computes
 * asin(size) = pi / 2 - 2 asin(s). */
TN__INTO_LOOPS double tn__asin64_parts(double size, double *rest)
{
    double z = size > 0.5 ? TN__MA64(-0.5, size, 0.5) : size * size, root = __builtin_sqrt(z);
    double s = size > 0.5 ? root : size, z2 = z * z, z4 = z2 * z2;
    double p = tn__sum8(z, z2, z4, 0x1.5555555555390p-3, 0x1.333333336e832p-4, 0x1.6db6db427816ap-5,
                        0x1.f1c72c39df1f6p-6, 0x1.6e89f427aa9ddp-6, 0x1.1c6be33b82062p-6,
                        0x1.c6fda020adcd4p-7, 0x1.8ec3e535e8c78p-7);
    double q = tn__sum4(z, z2, 0x1.abc729a605c54p-8, 0x1.3ffa75fbb10e6p-6, -0x1.09dc7c6edde3fp-6,
                        0x1.0570addabbc8ep-5);
    *rest = s * z * TN__MA64(z4 * z4, q, p);
    return s;
}

TN__INTO_LOOPS double tn__asin64(double x)
{
    double size = __builtin_fabs(x), rest, s = tn__asin64_parts(size, &rest);
    double y = TN__PI_HIGH / 2 - 2 * s, low = (TN__PI_HIGH / 2 - y) - 2 * s;
    y += low - (2 * rest - TN__PI_LOW / 2);
    return __builtin_copysign(size > 0.5 ? y : s + rest, x);
}

TN__INTO_LOOPS double tn__acos64(double x)
{
    double size = __builtin_fabs(x), rest, part = tn__asin64_parts(size, &rest) + rest;
    double near = x < 0 ? TN__PI_HIGH - TN__MA64(2.0, part, -TN__PI_LOW) : 2 * part;
    double far = TN__PI_HIGH / 2 - (__builtin_copysign(part, x) - TN__PI_LOW / 2);
    return size > 0.5 ? near : far;
}

#endif
