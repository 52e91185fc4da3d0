/* SPDX-License-Identifier: MIT
 *
 * Exponentials and logarithms of float64 numbers, and related functions, written so that compilers
 * vectorize loops that call them: without branches, tables and calls. They accept all numbers,
 * including subnormal ones, infinities and NaN; a function that has a companion NAME_fits() accepts
 * only numbers for which NAME_fits() does not return 0. Multiply-adds are fused if the instruction
 * set has them, as in math/float32.h. fit_series.py printed the polynomials; they are summed in
 * pairs, so that few steps depend on each other. float64_avx512.h has some of these functions by
 * tables, which AVX-512 keeps in registers. */
#ifndef TN_BACKEND_CPU_MATH_FLOAT64_H
#define TN_BACKEND_CPU_MATH_FLOAT64_H

#include "math/float32.h"
#include "base/vectorize.h"

#define TN__LARGEST_F64 0x1.fffffffffffffp1023
#define TN__INFINITY_F64 tn__of_bits_f64(0x7ff0000000000000u)
#define TN__NAN_F64 tn__of_bits_f64(0x7ff8000000000000u)

/* ---- polynomials ----------------------------------------------------------------------------- */

/* tn__sum4 returns a + b x + c x^2 + d x^3, tn__sum8 adds e x^4 to h x^7. x2 = x^2, x4 = x^4. */
TN__INTO_LOOPS double tn__sum4(double x, double x2, double a, double b, double c, double d)
{
    return TN__MA64(x2, TN__MA64(x, d, c), TN__MA64(x, b, a));
}
TN__INTO_LOOPS double tn__sum8(double x, double x2, double x4, double a, double b, double c,
                               double d, double e, double f, double g, double h)
{
    return TN__MA64(x4, tn__sum4(x, x2, e, f, g, h), tn__sum4(x, x2, a, b, c, d));
}

/* Returns a * b rounded, and sets *low to the rounding error: a * b is exactly the result + *low,
 * for numbers up to 2^990. */
TN__INTO_LOOPS double tn__product64(double a, double b, double *low)
{
    double p = a * b;
#ifdef __FP_FAST_FMA
    *low = __builtin_fma(a, b, -p);
#else
    /* splits a and b into halves of at most 26 bits, whose products are exact */
    double ca = a * 134217729.0, cb = b * 134217729.0, ah = ca - (ca - a), bh = cb - (cb - b),
           al = a - ah, bl = b - bh;
    *low = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
    return p;
}

/* ---- e^x ------------------------------------------------------------------------------------- */

#define TN__LN2_HIGH 0x1.62e42feep-1 /* 32 bits, so that products with exponents are exact */
#define TN__LN2_LOW 0x1.a39ef35793c76p-33

/* Splits x = n ln 2 + r + rest with |r| <= ln 2 / 2, for -800 <= x <= 712. Returns r, sets *rest,
 * and sets *scale, whose low bits are n + 2046. */
TN__INTO_LOOPS double tn__exp64_split(double x, double *rest, uint64_t *scale)
{
    double shifted = TN__MA64(x, 0x1.71547652b82fep0, 0x1.8p52 + 2046),
           k = shifted - (0x1.8p52 + 2046);
    double high = TN__MA64(k, -TN__LN2_HIGH, x), r = TN__MA64(k, -TN__LN2_LOW, high);
    *rest = TN__MA64(k, -TN__LN2_LOW, high - r);
    *scale = tn__bits_f64(shifted);
    return r;
}

/* Returns e^(r + rest) - 1 - r. */
TN__INTO_LOOPS double tn__exp64_tail(double r, double rest)
{
    double r2 = r * r, r4 = r2 * r2;
    double p = tn__sum8(r, r2, r4, 0x1p-1, 0x1.5555555555559p-3, 0x1.555555555553fp-5,
                        0x1.111111110f6dap-7, 0x1.6c16c16c1f0bdp-10, 0x1.a01a01afd3e76p-13,
                        0x1.a01a017baea67p-16, 0x1.71ddf87e9b45cp-19);
    double q = TN__MA64(r2, 0x1.1ee837fa7b140p-29,
                        TN__MA64(r, 0x1.af5e755723e7ap-26, 0x1.27e53660493acp-22));
    return TN__MA64(r2, TN__MA64(r4 * r4, q, p), rest);
}

/* Splits e^x = 2^n (1 + r + tail): returns r, and sets *tail and, as tn__exp64_split, *scale. */
TN__INTO_LOOPS double tn__exp64_parts(double x, double *tail, uint64_t *scale)
{
    double rest, r = tn__exp64_split(x, &rest, scale);
    *tail = tn__exp64_tail(r, rest);
    return r;
}

/* Splits e^(x + low) = 2^n (1 + y): returns y and sets *scale. `low` is small compared with 1. */
TN__INTO_LOOPS double tn__exp64_sum(double x, double low, uint64_t *scale)
{
    double rest, first = tn__exp64_split(x, &rest, scale), r = first + (rest += low);
    return r + tn__exp64_tail(r, (first - r) + rest);
}

/* Returns y 2^n. It multiplies by two factors, because 2^n itself may be outside of the normal
 * range; so subnormal results are rounded only once. */
TN__INTO_LOOPS double tn__scaled64(double y, uint64_t scale)
{
    uint64_t half = scale >> 1;
    return y * tn__of_bits_f64(half << 52) * tn__of_bits_f64((scale - half) << 52);
}

/* Returns whether 2^n in e^x = 2^n e^r is in the normal range. */
TN__INTO_LOOPS int32_t tn__exp64_fits(double x, double unused)
{
    (void)unused;
    return __builtin_fabs(x) <= 708.0;
}

/* e^x for |x| <= 708, with the same bits as tn__exp64 but less work. */
TN__INTO_LOOPS double tn__near_exp64(double x)
{
    double shifted = TN__MA64(x, 0x1.71547652b82fep0, 0x1.8p52 + 1023),
           k = shifted - (0x1.8p52 + 1023);
    double r = TN__MA64(k, -TN__LN2_LOW, TN__MA64(k, -TN__LN2_HIGH, x));
    double y = 1 + (r + tn__exp64_tail(r, 0));
    return y * tn__of_bits_f64(tn__bits_f64(shifted) << 52);
}

TN__INTO_LOOPS double tn__exp64(double x)
{
    double in = x < -746.0 ? -746.0 : x, rest, r;
    uint64_t scale;
    r = tn__exp64_split(in > 710.0 ? 710.0 : in, &rest, &scale);
    return tn__scaled64(1 + (r + tn__exp64_tail(r, 0)), scale);
}

/* e^x for x <= 0; below -708, where it would be subnormal, it is 0. */
TN__INTO_LOOPS double tn__exp64_below(double x)
{
    double y = tn__near_exp64(x);
    return x < -708.0 ? 0.0 : y;
}

/* Returns (e^x - 1) / 2 for e^x = 2^n (1 + r + tail), n <= 1024: the sum of 2^(n - 1) - 1/2 and of
 * r and tail times 2^(n - 1), with a correction for the rounding of the sum. Half, because e^x may
 * overflow. */
TN__INTO_LOOPS double tn__half_expm1_64(double r, double tail, uint64_t scale)
{
    double power = tn__of_bits_f64((scale - 1024) << 52), s = power - 0.5, a = r * power, y = s + a;
    return y + (((s - y) + a) + tail * power);
}

TN__INTO_LOOPS double tn__near_expm1_64(double x)
{
    double tail, r, y;
    uint64_t scale;
    r = tn__exp64_parts(x, &tail, &scale);
    y = 2 * tn__half_expm1_64(r, tail, scale);
    return __builtin_fabs(x) < 0x1p-500 ? x : y;
}

TN__INTO_LOOPS double tn__expm1_64(double x)
{
    double in = x < -40.0 ? -40.0 : x;
    return tn__near_expm1_64(in > 710.0 ? 710.0 : in);
}

TN__INTO_LOOPS double tn__near_sigmoid64(double x)
{
    return 1 / (1 + tn__near_exp64(-x));
}

TN__INTO_LOOPS double tn__sigmoid64(double x)
{
    return 1 / (1 + tn__exp64(-x));
}

/* tanh x = h / (h + 1) with h = (e^2x - 1) / 2. For x > 20, tanh x rounds to 1. */
TN__INTO_LOOPS double tn__tanh64(double x)
{
    double size = __builtin_fabs(x), tail, r;
    uint64_t scale;
    r = tn__exp64_parts(2 * (size > 20 ? 20.0 : size), &tail, &scale);
    double h = tn__half_expm1_64(r, tail, scale), y = __builtin_copysign(h / (h + 1), x);
    return size < 0x1p-500 ? x : y;
}

/* cosh x = e + 1 / (4 e) with e = e^|x| / 2 */
TN__INTO_LOOPS double tn__cosh64(double x)
{
    double size = __builtin_fabs(x), tail, r;
    uint64_t scale;
    r = tn__exp64_parts(size > 712 ? 712.0 : size, &tail, &scale);
    double e = tn__scaled64(1 + (r + tail), scale - 1);
    return e + 0.25 / e;
}

/* sinh x = h + h / (2 h + 1) with h = (e^x - 1) / 2. For large x, sinh x rounds to e^x / 2. */
TN__INTO_LOOPS double tn__sinh64(double x)
{
    double size = __builtin_fabs(x), tail, r;
    uint64_t scale;
    r = tn__exp64_parts(size > 712 ? 712.0 : size, &tail, &scale);
    double h = tn__half_expm1_64(r, tail, scale), y = h + h / (2 * h + 1);
    y = __builtin_copysign(size > 40 ? tn__scaled64(1 + (r + tail), scale - 1) : y, x);
    return size < 0x1p-500 ? x : y;
}

/* x tanh(ln(1 + e^x)) = x n / (n + 2) with n = e (e + 2), e = e^x. Returns x for x > 40. */
TN__INTO_LOOPS double tn__mish64(double x)
{
    double e = tn__exp64(x > 40 ? 40.0 : x), n = e * (e + 2), y = x * (n / (n + 2));
    return x > 40 ? x : y;
}

/* ---- logarithms ------------------------------------------------------------------------------ */

/* Splits x = 2^k (1 + f) with sqrt(2)/2 <= 1 + f < sqrt(2), for positive normal x: sets *k and
 * returns f. A double is made of the exponent by its bits, because older instruction sets cannot
 * convert vectors of int64. */
TN__INTO_LOOPS double tn__split64(double x, double *k)
{
    uint64_t bits = tn__bits_f64(x) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    *k = tn__of_bits_f64((bits >> 52) | 0x4330000000000000u) - (0x1p52 + 1023);
    return tn__of_bits_f64((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1;
}

/* Like tn__split64, also for subnormal numbers. */
TN__INTO_LOOPS double tn__split_all64(double x, double *k)
{
    double f = tn__split64(x < 0x1p-1022 ? x * 0x1p54 : x, k);
    *k -= x < 0x1p-1022 ? 54.0 : 0.0;
    return f;
}

/* Returns ln(1 + f) - f = f^3 p(f) - f^2 / 2. */
TN__INTO_LOOPS double tn__log64_rest(double f)
{
    double f2 = f * f, f4 = f2 * f2, f8 = f4 * f4;
    double p = tn__sum8(f, f2, f4, 0x1.555555555556bp-2, -0x1.ffffffffffe7cp-3,
                        0x1.9999999994dbfp-3, -0x1.555555556b18ep-3, 0x1.249249275d733p-3,
                        -0x1.fffffff3a956ep-4, 0x1.c71c702e116ecp-4, -0x1.99999aa01a046p-4);
    double q = tn__sum8(f, f2, f4, 0x1.745d58d297d09p-4, -0x1.555576cafed6cp-4,
                        0x1.3b0d78adc6ca6p-4, -0x1.24894aa4e9362p-4, 0x1.116a00ab58a6ap-4,
                        -0x1.00cfb41aa064ep-4, 0x1.dc97d69e0ca9cp-5, -0x1.b45ddcca89faap-5);
    double s = tn__sum4(f, f2, 0x1.bbabb0dbf525ep-5, -0x1.010735e7ca162p-4, 0x1.d2b477ec3ee5dp-5,
                        -0x1.8dc36bb4e3545p-6);
    return TN__MA64(f * f2, TN__MA64(f8, TN__MA64(f8, s, q), p), -0.5 * f2);
}

/* Returns ln(2^k (1 + f)). */
TN__INTO_LOOPS double tn__log64_of(double f, double k)
{
    return TN__MA64(k, TN__LN2_HIGH, f + TN__MA64(k, TN__LN2_LOW, tn__log64_rest(f)));
}

/* Returns y, the logarithm of x, corrected for an x that is not positive and finite. */
TN__INTO_LOOPS double tn__log64_ends(double x, double y)
{
    y = x == TN__INFINITY_F64 ? x : y;
    y = x == 0 ? -TN__INFINITY_F64 : y;
    return x >= 0 ? y : TN__NAN_F64;
}

TN__INTO_LOOPS int32_t tn__log64_fits(double x, double unused)
{
    (void)unused;
    return (x >= 0x1p-1022) & (x <= TN__LARGEST_F64);
}

TN__INTO_LOOPS double tn__near_log64(double x)
{
    double k, f = tn__split64(x, &k);
    return tn__log64_of(f, k);
}

TN__INTO_LOOPS double tn__log64(double x)
{
    double k, f = tn__split_all64(x, &k);
    return tn__log64_ends(x, tn__log64_of(f, k));
}

TN__INTO_LOOPS double tn__log2_of(double f, double k)
{
    return TN__MA64(f + tn__log64_rest(f), 0x1.71547652b82fep0, k);
}

TN__INTO_LOOPS double tn__near_log2_64(double x)
{
    double k, f = tn__split64(x, &k);
    return tn__log2_of(f, k);
}

TN__INTO_LOOPS double tn__log2_64(double x)
{
    double k, f = tn__split_all64(x, &k);
    return tn__log64_ends(x, tn__log2_of(f, k));
}

/* log10(2^k (1 + f)). log10 2 is given in two parts; the first has 42 bits, so its products with k
 * are exact. */
TN__INTO_LOOPS double tn__log10_of(double f, double k)
{
    double rest = (f + tn__log64_rest(f)) * 0x1.bcb7b1526e50ep-2;
    return TN__MA64(k, 0x1.34413509f7p-2, TN__MA64(k, 0x1.3fde623e2566bp-43, rest));
}

TN__INTO_LOOPS double tn__near_log10_64(double x)
{
    double k, f = tn__split64(x, &k);
    return tn__log10_of(f, k);
}

TN__INTO_LOOPS double tn__log10_64(double x)
{
    double k, f = tn__split_all64(x, &k);
    return tn__log64_ends(x, tn__log10_of(f, k));
}

/* ln(1 + x). 1 + x is exactly u + c, where u is 1 + x rounded; c, divided by the power of two of u,
 * is added to f. */
TN__INTO_LOOPS double tn__log1p_64(double x)
{
    double u = 1 + x, c = x - (u - 1), k, f = tn__split64(u, &k);
    double scale = tn__of_bits_f64((tn__bits_f64(0x1p52 + 1023 - k)) << 52);
    f += x < 0x1p54 ? c * scale : 0;
    double y = tn__log64_ends(u, tn__log64_of(f, k));
    return x == 0 ? x : y;
}

/* ln(1 + e) for 0 <= e <= 1. For e > sqrt(2) - 1 it is ln 2 + ln(1 + (e - 1) / 2). */
TN__INTO_LOOPS double tn__log1p_unit64(double e)
{
    double far = e > 0.414213562373095 ? 1.0 : 0.0, f = far != 0 ? TN__MA64(e, 0.5, -0.5) : e;
    return tn__log64_of(f, far);
}

/* ln(1 + e^x) */
TN__INTO_LOOPS double tn__softplus64(double x)
{
    return (x > 0 ? x : 0) + tn__log1p_unit64(tn__exp64_below(-__builtin_fabs(x)));
}

#endif
