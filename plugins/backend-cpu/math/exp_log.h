/* SPDX-License-Identifier: MIT
 *
 * exp, log and related functions for float32 and float64, written so that compilers vectorize loops
 * that call them: without branches, tables and calls. The methods of exp and log are those of
 * FreeBSD's msun (Sun Microsystems, 1993); errors are below one unit in the last place. float32.h
 * and float64.h have the faster ones for ordinary numbers. */
#ifndef TN_BACKEND_CPU_MATH_EXP_LOG_H
#define TN_BACKEND_CPU_MATH_EXP_LOG_H

#include <stdint.h>
#include <string.h>

static inline uint32_t tn__bits_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}
static inline float tn__of_bits_f32(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
static inline uint64_t tn__bits_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}
static inline double tn__of_bits_f64(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

/* e^x = 2^k e^r with |r| <= ln 2 / 2 and e^r = 1 + r + r c / (2 - c), c = r - r^2 P(r^2). The
 * result is multiplied by 2^k in two factors, because 2^k itself may be outside of the normal
 * range; so subnormal results are rounded only once. */
static inline float tn__exp_f32(float x)
{
    float in = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
    float shifted = in * 1.4426950216e+00f + 0x1.8p23f, k = shifted - 0x1.8p23f;
    float hi = in - k * 6.9314575195e-01f, lo = k * 1.4286067653e-06f, r = hi - lo, t = r * r;
    float c = r - t * (1.6666625440e-1f + t * -2.7667332906e-3f);
    float e = 1 + ((r * c / (2 - c) - lo) + hi);
    uint32_t n = tn__bits_f32(shifted) - 0x4b400000u + 512, half = n >> 1;
    return e * tn__of_bits_f32((half - 256 + 127) << 23) *
           tn__of_bits_f32((n - half - 256 + 127) << 23);
}

static inline double tn__exp_f64(double x)
{
    double in = x < -746.0 ? -746.0 : x > 710.0 ? 710.0 : x;
    double shifted = in * 1.44269504088896338700e+00 + 0x1.8p52, k = shifted - 0x1.8p52;
    double hi = in - k * 6.93147180369123816490e-01, lo = k * 1.90821492927058770002e-10,
           r = hi - lo, t = r * r;
    double c = r -
               t * (1.66666666666666019037e-01 +
                    t * (-2.77777777770155933842e-03 +
                         t * (6.61375632143793436117e-05 +
                              t * (-1.65339022054652515390e-06 + t * 4.13813679705723846039e-08))));
    double e = 1 + ((r * c / (2 - c) - lo) + hi);
    uint64_t n = tn__bits_f64(shifted) - 0x4338000000000000u + 4096, half = n >> 1;
    return e * tn__of_bits_f64((half - 2048 + 1023) << 52) *
           tn__of_bits_f64((n - half - 2048 + 1023) << 52);
}

/* 2^x = 2^k 2^r with the polynomial of Cephes for 2^r, |r| <= 1/2. 1.2 units of the last place. */
static inline float tn__exp2_f32(float x)
{
    float in = x < -151.0f ? -151.0f : x > 129.0f ? 129.0f : x;
    float shifted = in + 0x1.8p23f, r = in - (shifted - 0x1.8p23f);
    float p = 9.618437357674640e-03f + r * (1.339887440266574e-03f + r * 1.535336188319500e-04f);
    p = 6.931472028550421e-01f +
        r * (2.402264791363012e-01f + r * (5.550332471162809e-02f + r * p));
    uint32_t n = tn__bits_f32(shifted) - 0x4b400000u + 512, half = n >> 1;
    return (1 + r * p) * tn__of_bits_f32((half - 256 + 127) << 23) *
           tn__of_bits_f32((n - half - 256 + 127) << 23);
}

/* ln x = k ln 2 + ln(1 + f) with sqrt(2)/2 <= 1 + f < sqrt(2), and
 * ln(1 + f) = f - (f^2/2 - s (f^2/2 + R(s^2))) with s = f / (2 + f). */
static inline float tn__log_f32(float x)
{
    int tiny = x < 0x1p-126f;
    float in = tiny ? x * 0x1p25f : x;
    uint32_t bits = tn__bits_f32(in) + (0x3f800000u - 0x3f3504f3u);
    float k = (float)((int32_t)(bits >> 23) - 127) - (tiny ? 25.0f : 0.0f);
    float f = tn__of_bits_f32((bits & 0x007fffffu) + 0x3f3504f3u) - 1;
    float s = f / (2 + f), z = s * s, q = z * z;
    float r = z * (0.66666662693f + q * 0.28498786688f) + q * (0.40000972152f + q * 0.24279078841f),
          h = 0.5f * f * f;
    float y = s * (h + r) + k * 9.0580006145e-06f - h + f + k * 6.9313812256e-01f;
    y = x == tn__of_bits_f32(0x7f800000u) ? x : y;
    y = x == 0 ? tn__of_bits_f32(0xff800000u) : y;
    return x >= 0 ? y : tn__of_bits_f32(0x7fc00000u);
}

static inline double tn__log_f64(double x)
{
    int64_t tiny = x < 0x1p-1022;
    double in = tiny ? x * 0x1p54 : x;
    uint64_t bits = tn__bits_f64(in) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    /* makes a double of the exponent by its bits: older instruction sets cannot convert vectors of
     * int64 */
    double k = tn__of_bits_f64((bits >> 52) | 0x4330000000000000u) - 0x1p52 - 1023.0 -
               (tiny ? 54.0 : 0.0);
    double f = tn__of_bits_f64((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1;
    double s = f / (2 + f), z = s * s, q = z * z, h = 0.5 * f * f;
    double t1 = q * (3.999999999940941908e-01 +
                     q * (2.222219843214978396e-01 + q * 1.531383769920937332e-01));
    double t2 = z * (6.666666666666735130e-01 +
                     q * (2.857142874366239149e-01 +
                          q * (1.818357216161805012e-01 + q * 1.479819860511658591e-01)));
    double y = k * 6.93147180369123816490e-01 -
               ((h - (s * (h + (t1 + t2)) + k * 1.90821492927058770002e-10)) - f);
    y = x == tn__of_bits_f64(0x7ff0000000000000u) ? x : y;
    y = x == 0 ? tn__of_bits_f64(0xfff0000000000000u) : y;
    return x >= 0 ? y : tn__of_bits_f64(0x7ff8000000000000u);
}

/* e^x - 1 = 2^k (e^r - 1) + (2^k - 1). Near 0, k is 0 and no precision is lost. For large x the
 * subtraction of 1 has no effect, and e^x is returned. */
static inline float tn__expm1_f32(float x)
{
    float in = x < -40.0f ? -40.0f : x > 89.0f ? 89.0f : x;
    float shifted = in * 1.4426950216e+00f + 0x1.8p23f, k = shifted - 0x1.8p23f;
    float hi = in - k * 6.9314575195e-01f, lo = k * 1.4286067653e-06f, r = hi - lo, t = r * r;
    float c = r - t * (1.6666625440e-1f + t * -2.7667332906e-3f);
    float e = (r * c / (2 - c) - lo) + hi;
    uint32_t n = tn__bits_f32(shifted) - 0x4b400000u + 512, half = n >> 1;
    float first = tn__of_bits_f32((half - 256 + 127) << 23),
          second = tn__of_bits_f32((n - half - 256 + 127) << 23);
    float small = e * first * second + (first * second - 1);
    small = x == 0 ? x : small; /* -0 too */
    return x > 40 ? (1 + e) * first * second : small;
}

static inline double tn__expm1_f64(double x)
{
    double in = x < -80.0 ? -80.0 : x > 710.0 ? 710.0 : x;
    double shifted = in * 1.44269504088896338700e+00 + 0x1.8p52, k = shifted - 0x1.8p52;
    double hi = in - k * 6.93147180369123816490e-01, lo = k * 1.90821492927058770002e-10,
           r = hi - lo, t = r * r;
    double c = r -
               t * (1.66666666666666019037e-01 +
                    t * (-2.77777777770155933842e-03 +
                         t * (6.61375632143793436117e-05 +
                              t * (-1.65339022054652515390e-06 + t * 4.13813679705723846039e-08))));
    double e = (r * c / (2 - c) - lo) + hi;
    uint64_t n = tn__bits_f64(shifted) - 0x4338000000000000u + 4096, half = n >> 1;
    double first = tn__of_bits_f64((half - 2048 + 1023) << 52),
           second = tn__of_bits_f64((n - half - 2048 + 1023) << 52);
    double small = e * first * second + (first * second - 1);
    return x > 80 ? (1 + e) * first * second : small;
}

/* ln(1 + x) = ln w + (x - (w - 1)) / w, where w is 1 + x rounded to float32. */
static inline float tn__log1p_f32(float x)
{
    float w = 1 + x, y = tn__log_f32(w) + (x - (w - 1)) / w;
    y = w > 0 && w <= 3.4028234664e+38f ? y : tn__log_f32(w);
    return x == 0 ? x : y; /* -0 too */
}

/* x tanh(ln(1 + e^x)) = x n / (n + 2) with n = e (e + 2), e = e^x. Returns x for x > 20. */
static inline float tn__mish_f32(float x)
{
    float e = tn__exp_f32(x > 20 ? 20.0f : x), n = e * (e + 2);
    return x > 20 ? x : x * (n / (n + 2));
}

/* Returns the logarithm of x = 2^k (1 + f) to the base b: k log_b 2 + ln(1 + f) / ln b. The
 * parameters are log_b 2 = high + low, and scale = 1 / ln b. */
static inline float tn__log_base_f32(float x, float high, float low, float scale)
{
    int tiny = x < 0x1p-126f;
    float in = tiny ? x * 0x1p25f : x;
    uint32_t bits = tn__bits_f32(in) + (0x3f800000u - 0x3f3504f3u);
    float k = (float)((int32_t)(bits >> 23) - 127) - (tiny ? 25.0f : 0.0f);
    float m = tn__of_bits_f32((bits & 0x007fffffu) + 0x3f3504f3u), y = tn__log_f32(m) * scale;
    y = k * low + y + k * high;
    y = x == tn__of_bits_f32(0x7f800000u) ? x : y;
    y = x == 0 ? tn__of_bits_f32(0xff800000u) : y;
    return x >= 0 ? y : tn__of_bits_f32(0x7fc00000u);
}

static inline float tn__log2_f32(float x)
{
    return tn__log_base_f32(x, 1, 0, 1.44269504089f);
}

/* log10 2 is given in two parts. The first part has 12 bits, so its products with k are exact. */
static inline float tn__log10_f32(float x)
{
    return tn__log_base_f32(x, 3.010253906e-01f, 4.605038981e-06f, 0.43429448190f);
}

/* cos(2 pi u) for 0 <= u < 1. u is split exactly into the nearest number of quarter turns and a
 * rest of at most an eighth of a turn, to which the series of cosine or sine is applied. */
static inline float tn__cos_turn_f32(float u)
{
    float quarter = (u * 4 + 0x1.8p23f) - 0x1.8p23f, t = (u - quarter * 0.25f) * 6.283185307179586f,
          z = t * t;
    uint32_t n = tn__bits_f32(quarter + 0x1.8p23f) & 3;
    float sine = t + t * z * (-1.6666654611e-1f + z * (8.3321608736e-3f + z * -1.9515295891e-4f));
    float cosine = 1 - 0.5f * z +
                   z * z *
                       (4.166664568298827e-2f +
                        z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f));
    float y = n & 1 ? sine : cosine;
    return n == 1 || n == 2 ? -y : y;
}

static inline double tn__cos_turn_f64(double u)
{
    double quarter = (u * 4 + 0x1.8p52) - 0x1.8p52, t = (u - quarter * 0.25) * 6.283185307179586477,
           z = t * t;
    uint64_t n = tn__bits_f64(quarter + 0x1.8p52) & 3;
    double sine = t + t * z *
                          (-1.66666666666666324348e-01 +
                           z * (8.33333333332248946124e-03 +
                                z * (-1.98412698298579493134e-04 +
                                     z * (2.75573137070700676789e-06 +
                                          z * (-2.50507602534068634195e-08 +
                                               z * 1.58969099521155010221e-10)))));
    double cosine =
        1 - 0.5 * z +
        z * z *
            (4.16666666666666019037e-02 +
             z * (-1.38888888888741095749e-03 +
                  z * (2.48015872894767294178e-05 +
                       z * (-2.75573143513906633035e-07 +
                            z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)))));
    double y = n & 1 ? sine : cosine;
    return n == 1 || n == 2 ? -y : y;
}

#endif
