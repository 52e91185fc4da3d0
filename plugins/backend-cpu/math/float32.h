/* SPDX-License-Identifier: MIT
 *
 * Functions of ordinary float32 numbers: short polynomials in float32, whose steps depend little on
 * each other; errors are a few units in the last place. Each function is for a range of numbers. A
 * number is in the range if NAME_fits() says so, or if NAME_key() is at most a limit (KEYED and
 * TESTED in simd/elementwise_costly.c); for other numbers (large numbers, or zeros and infinities)
 * the loops use another function. The choice is made for each element alone, so that a result does
 * not depend on the neighbours of the element. Multiply-adds are fused if the instruction set has
 * them: AVX2, AVX-512 and NEON give equal bits, a processor without fused multiply-adds may differ
 * in the last place. The polynomials are minimax approximations. */
#ifndef TN_BACKEND_CPU_MATH_FLOAT32_H
#define TN_BACKEND_CPU_MATH_FLOAT32_H

#include "math/exp_log.h"
#include "base/vectorize.h"

/* All functions here are TN__INTO_LOOPS, always inlined: the compiler does not vectorize a loop
 * with a call. */

/* Computes a * b + c, fused if the instruction set can. */
#ifdef __FP_FAST_FMAF
#define TN__MA(a, b, c) __builtin_fmaf(a, b, c)
#else
#define TN__MA(a, b, c) ((a) * (b) + (c))
#endif
#ifdef __FP_FAST_FMA
#define TN__MA64(a, b, c) __builtin_fma(a, b, c)
#else
#define TN__MA64(a, b, c) ((a) * (b) + (c))
#endif

#define TN__LARGEST_F32 0x1.fffffep127f

/* ---- e^x ------------------------------------------------------------------------------------- */

/* Returns an integer that grows with |x|; that of NaN is larger than that of any number. */
TN__INTO_LOOPS uint32_t tn__size_key(float x)
{
    return tn__bits_f32(x) & 0x7fffffffu;
}
#define TN__EXP_LIMIT 0x42ae0000u /* 87 */

/* Returns 2^k e^r with k = shifted - 0x1.8p23, |r| <= ln 2 / 2, and e^r = 1 + r + r^2 p(r). k is
 * added to the exponent's bits, which is correct because the result is in the normal range. */
TN__INTO_LOOPS float tn__near_exp_of_f32(float r, float shifted)
{
    float p = TN__MA(r, 1.381314454e-03f, 8.369418832e-03f);
    p = TN__MA(r, p, 4.166845679e-02f);
    p = TN__MA(r, p, 1.666651479e-01f);
    p = TN__MA(r, p, 4.999999305e-01f);
    float e = TN__MA(r, TN__MA(r, p, 1.0f), 1.0f);
    return tn__of_bits_f32(tn__bits_f32(e) + (tn__bits_f32(shifted) << 23));
}

/* Splits x = k ln 2 + r: returns r, and sets *shifted to k + 0x1.8p23. */
TN__INTO_LOOPS float tn__near_rest_f32(float x, float *shifted)
{
    *shifted = TN__MA(x, 1.44269504089f, 0x1.8p23f);
    float k = *shifted - 0x1.8p23f;
    return TN__MA(k, -1.42860677e-06f, TN__MA(k, -6.93145752e-01f, x));
}

/* e^(x + low) */
TN__INTO_LOOPS float tn__near_exp_sum_f32(float x, float low)
{
    float shifted, r = tn__near_rest_f32(x, &shifted);
    return tn__near_exp_of_f32(r + low, shifted);
}

TN__INTO_LOOPS float tn__near_exp_f32(float x)
{
    float shifted, r = tn__near_rest_f32(x, &shifted);
    return tn__near_exp_of_f32(r, shifted);
}

/* e^x - 1 = 2^k (e^r - 1) + (2^k - 1) */
TN__INTO_LOOPS float tn__near_expm1_f32(float x)
{
    float shifted = TN__MA(x, 1.44269504089f, 0x1.8p23f), k = shifted - 0x1.8p23f;
    float r = TN__MA(k, -1.42860677e-06f, TN__MA(k, -6.93145752e-01f, x)), z = r * r;
    float p = TN__MA(z, TN__MA(z, 1.388239582e-03f, TN__MA(r, 8.367180857e-03f, 4.166722127e-02f)),
                     TN__MA(r, 1.666653868e-01f, 4.999999804e-01f));
    float e = TN__MA(z, p, r), power = tn__of_bits_f32((tn__bits_f32(shifted) + 127) << 23);
    float y = TN__MA(e, power, power - 1);
    return x == 0 ? x : y; /* -0 too */
}

/* e^x - 1 for x <= 0; below -30 it is -1 after rounding. */
TN__INTO_LOOPS float tn__near_expm1_below_f32(float x)
{
    return tn__near_expm1_f32(x < -30.0f ? -30.0f : x);
}

TN__INTO_LOOPS float tn__near_sigmoid_f32(float x)
{
    return 1 / (1 + tn__near_exp_f32(-x));
}

/* x tanh(ln(1 + e^x)) = x n / (n + 2) with n = e (e + 2), e = e^x. Returns x for x > 20. */
TN__INTO_LOOPS float tn__near_mish_f32(float x)
{
    float e = tn__near_exp_f32(x > 20 ? 20.0f : x), n = e * (e + 2);
    return x > 20 ? x : x * (n / (n + 2));
}

/* tanh x = x p(x^2) / q(x^2) for |x| <= 9.1; for larger |x|, |tanh x| rounds to 1. */
TN__INTO_LOOPS float tn__near_tanh_f32(float x)
{
    float size = __builtin_fabsf(x), in = 9.1f < size ? 9.1f : size, z = in * in;
    float p = TN__MA(z, 1.31775105e-08f, 2.04811754e-05f),
          q = TN__MA(z, 7.70404047e-07f, 3.27291894e-04f);
    p = TN__MA(z, p, 3.48781022e-03f);
    q = TN__MA(z, q, 2.58473853e-02f);
    p = TN__MA(z, p, 1.33744744e-01f);
    q = TN__MA(z, q, 4.67077882e-01f);
    p = TN__MA(z, p, 9.99999977e-01f);
    q = TN__MA(z, q, 1.0f);
    float y = in * p / q, down = 1.0f < y ? 1.0f : y;
    return __builtin_copysignf(down, x);
}

/* Returns the error function: x p(x^2) / q(x^2) for |x| <= 4; for larger |x|, |erf x| rounds to
 * 1. */
TN__INTO_LOOPS float tn__near_erf_f32(float x)
{
    float above = x < -4.0f ? -4.0f : x, in = above > 4.0f ? 4.0f : above, z = in * in;
    float p = TN__MA(z, -2.72614225801306e-10f, 2.77068142495902e-08f);
    p = TN__MA(p, z, -2.10102402082508e-06f);
    p = TN__MA(p, z, -5.69250639462346e-05f);
    p = TN__MA(p, z, -7.34990630326855e-04f);
    p = TN__MA(p, z, -2.95459980854025e-03f);
    p = TN__MA(p, z, -1.60960333262415e-02f);
    float q = TN__MA(z, -1.45660718464996e-05f, -2.13374055278905e-04f);
    q = TN__MA(q, z, -1.68282697438203e-03f);
    q = TN__MA(q, z, -7.37332916720468e-03f);
    q = TN__MA(q, z, -1.42647390514189e-02f);
    return in * p / q;
}

#define TN__ERFC_LIMIT 0x41100000u /* 9 */

/* erfc z = e^(-z^2) t p(t - 0.58) with z = |x|, t = 1 / (1 + z / 2). z^2 is computed as high^2,
 * which is exact, and a small rest. */
TN__INTO_LOOPS float tn__near_erfc_f32(float x)
{
    float z = __builtin_fabsf(x), t = 1 / TN__MA(0.5f, z, 1.0f), u = t - 0.58f, v = u * u;
    float high = tn__of_bits_f32(tn__bits_f32(z) & 0xfffff000u);
    float e = tn__near_exp_sum_f32(-high * high, (high - z) * (high + z));
    float p01 = TN__MA(u, 7.790187491e-01f, 5.694087295e-01f),
          p23 = TN__MA(u, 8.515306665e-02f, 5.868513921e-01f),
          p45 = TN__MA(u, -5.173584951e-02f, -2.032239544e-01f),
          p67 = TN__MA(u, 4.879985002e-03f, 1.118778036e-01f),
          p89 = TN__MA(u, 1.484221142e-02f, -5.944583072e-02f);
    float p = TN__MA(v, TN__MA(v, TN__MA(v, TN__MA(v, p89, p67), p45), p23), p01), y = t * p * e;
    return x < 0 ? 2 - y : y;
}

/* ---- logarithms ------------------------------------------------------------------------------ */

/* The key is at most TN__LOG_LIMIT for positive normal numbers, and larger for all others. */
TN__INTO_LOOPS uint32_t tn__log_key(float x)
{
    return tn__bits_f32(x) - 0x00800000u;
}
#define TN__LOG_LIMIT (0x7f7fffffu - 0x00800000u)

/* Returns f p(f) - 1/2, where ln(1 + f) - f = f^2 (f p(f) - 1/2), for
 * sqrt(2)/2 <= 1 + f < sqrt(2). */
TN__INTO_LOOPS float tn__near_log_rest_f32(float f)
{
    float p = TN__MA(f, -7.634497756e-02f, 1.276157754e-01f);
    p = TN__MA(f, p, -1.316018216e-01f);
    p = TN__MA(f, p, 1.420175792e-01f);
    p = TN__MA(f, p, -1.662335736e-01f);
    p = TN__MA(f, p, 2.000122688e-01f);
    p = TN__MA(f, p, -2.500082103e-01f);
    p = TN__MA(f, p, 3.333333171e-01f);
    return TN__MA(f, p, -0.5f);
}

/* ln(1 + f) */
TN__INTO_LOOPS float tn__near_log_of_f32(float f)
{
    return TN__MA(f * f, tn__near_log_rest_f32(f), f);
}

/* Splits x = 2^k (1 + f): sets *k and returns f. */
TN__INTO_LOOPS float tn__near_split_f32(float x, float *k)
{
    uint32_t above = tn__bits_f32(x) - 0x3f3504f3u;
    *k = (float)((int32_t)above >> 23);
    return tn__of_bits_f32((above & 0x007fffffu) + 0x3f3504f3u) - 1;
}

/* With fused multiply-adds, k ln 2 is not rounded before the addition, and ln 2 rounded to one
 * float32 is precise enough. Without them ln 2 is given in two parts. */
TN__INTO_LOOPS float tn__near_log_f32(float x)
{
    float k, f = tn__near_split_f32(x, &k);
#ifdef __FP_FAST_FMAF
    return TN__MA(k, 6.9314718056e-01f, tn__near_log_of_f32(f));
#else
    float rest = f * f * tn__near_log_rest_f32(f);
    return TN__MA(k, 6.9313812256e-01f, f + TN__MA(k, 9.0580006145e-06f, rest));
#endif
}

TN__INTO_LOOPS float tn__near_log2_f32(float x)
{
    float k, f = tn__near_split_f32(x, &k);
    return TN__MA(tn__near_log_of_f32(f), 1.44269504089f, k);
}

TN__INTO_LOOPS float tn__near_log10_f32(float x)
{
    float k, f = tn__near_split_f32(x, &k), y = tn__near_log_of_f32(f) * 0.43429448190f;
    return TN__MA(k, 3.010253906e-01f, TN__MA(k, 4.605038981e-06f, y));
}

/* ln(1 + e) for 0 <= e <= 1. For e > sqrt(2) - 1 it is ln 2 + ln(1 + (e - 1) / 2). */
TN__INTO_LOOPS float tn__near_log1p_f32(float e)
{
    float f = e > 0.414213562f ? TN__MA(e, 0.5f, -0.5f) : e;
    float k = e > 0.414213562f ? 6.9314718056e-01f : 0.0f;
    return k + tn__near_log_of_f32(f);
}

/* e^x for x <= 0; below -87 it is 0. */
TN__INTO_LOOPS float tn__near_exp_below_f32(float x)
{
    float y = tn__near_exp_f32(-87.0f > x ? -87.0f : x);
    return x < -87.0f ? 0.0f : y;
}

/* ln(1 + e^x) */
TN__INTO_LOOPS float tn__near_softplus_f32(float x)
{
    return (x > 0 ? x : 0) + tn__near_log1p_f32(tn__near_exp_below_f32(-__builtin_fabsf(x)));
}

/* ---- hyperbolic functions -------------------------------------------------------------------- */

/* atanh x = x + x^3 p(x^2) below 1/2, above it half the logarithm of (1 + x) / (1 - x) */
TN__INTO_LOOPS float tn__near_atanh_f32(float x)
{
    float size = __builtin_fabsf(x), in = size < 0.5f ? 0.5f : size, z = size * size;
    float p = TN__MA(z, 1.575678658e-01f, 6.490692745e-02f);
    p = TN__MA(z, p, 1.147041436e-01f);
    p = TN__MA(z, p, 1.426393818e-01f);
    p = TN__MA(z, p, 2.000047441e-01f);
    p = TN__MA(z, p, 3.333333168e-01f);
    float low = TN__MA(size * z, p, size);
    float high = 0.5f * tn__near_log_f32((1 + in) / (1 - in));
    float y = size < 0.5f ? low
              : size < 1  ? high
              : size == 1 ? __builtin_inff()
                          : __builtin_nanf("");
    return __builtin_copysignf(y, x);
}

/* cosh x for |x| <= 87: (e + 1 / e) / 2 with e = e^|x| */
TN__INTO_LOOPS float tn__near_cosh_f32(float x)
{
    float e = tn__near_exp_f32(__builtin_fabsf(x));
    return TN__MA(0.5f, e, 0.5f / e);
}

/* sinh x for |x| <= 87: x + x^3 p(x^2) below 1, above it (e - 1 / e) / 2 with e = e^x */
TN__INTO_LOOPS float tn__near_sinh_f32(float x)
{
    float size = __builtin_fabsf(x), z = x * x, e = tn__near_exp_f32(size);
    float p = TN__MA(z, 2.806331254e-06f, 1.983809559e-04f);
    p = TN__MA(z, p, 8.333339695e-03f);
    p = TN__MA(z, p, 1.666666665e-01f);
    float y = TN__MA(0.5f, e, -0.5f / e);
    return size < 1 ? TN__MA(x * z, p, x) : __builtin_copysignf(y, x);
}

/* ---- trigonometric functions ----------------------------------------------------------------- */

#define TN__CIRCLE_LIMIT 0x46000000u /* 8192 */

/* Splits x = k pi / 2 + r with |r| <= pi / 4: returns r, and k in the low bits of *n. pi / 2 is
 * given in four parts with few bits, so that their products with k, which has at most 13 bits, are
 * exact. */
TN__INTO_LOOPS float tn__near_quarter_f32(float x, uint32_t *n)
{
    float shifted = TN__MA(x, 6.36619772e-01f, 0x1.8p23f), k = shifted - 0x1.8p23f;
    float r = TN__MA(k, -1.5703125f, x);
    r = TN__MA(k, -4.837512969970703125e-04f, r);
    r = TN__MA(k, -7.54953362047672271728515625e-08f, r);
    *n = tn__bits_f32(shifted);
    return TN__MA(k, -2.56334406825708960298e-12f, r);
}

TN__INTO_LOOPS float tn__near_sine_f32(float r, float z)
{
    float p = TN__MA(z, TN__MA(z, -1.950877380e-04f, 8.332113280e-03f), -1.666665387e-01f);
    return r * TN__MA(z, p, 1.0f); /* a product, so that the sine of -0 is -0 */
}

TN__INTO_LOOPS float tn__near_cosine_f32(float z)
{
    float p = TN__MA(z, TN__MA(z, 2.442571877e-05f, -1.388725181e-03f), 4.166664437e-02f);
    return TN__MA(z * z, p, TN__MA(z, -0.5f, 1.0f));
}

/* Returns the sine of x if `turn` is 0, the cosine if it is 1. */
TN__INTO_LOOPS float tn__near_circle_f32(float x, uint32_t turn)
{
    uint32_t n;
    float r = tn__near_quarter_f32(x, &n), z = r * r;
    float sine = tn__near_sine_f32(r, z), cosine = tn__near_cosine_f32(z);
    n += turn;
    float y = n & 1 ? cosine : sine;
    return tn__of_bits_f32(tn__bits_f32(y) ^ (n & 2) << 30);
}

TN__INTO_LOOPS float tn__near_tan_f32(float x)
{
    uint32_t n;
    float r = tn__near_quarter_f32(x, &n), z = r * r;
    float sine = tn__near_sine_f32(r, z), cosine = tn__near_cosine_f32(z);
    return n & 1 ? -cosine / sine : sine / cosine;
}

/* Returns the arctangent of t for 0 <= t <= 1. */
TN__INTO_LOOPS float tn__near_angle_f32(float t)
{
    float z = t * t, z2 = z * z;
    float p01 = TN__MA(z, 1.999377283e-01f, -3.333315274e-01f),
          p23 = TN__MA(z, 1.066600452e-01f, -1.421105527e-01f),
          p45 = TN__MA(z, 4.321185819e-02f, -7.552214048e-02f),
          p67 = TN__MA(z, 2.920691871e-03f, -1.636792649e-02f);
    float p = TN__MA(z2, TN__MA(z2, TN__MA(z2, p67, p45), p23), p01);
    return TN__MA(t * z, p, t);
}

TN__INTO_LOOPS float tn__near_atan_f32(float x)
{
    float size = __builtin_fabsf(x), t = size > 1 ? 1 / size : size, y = tn__near_angle_f32(t);
    y = size > 1 ? 1.57079637e+00f - (y + 4.37113883e-08f) : y;
    return __builtin_copysignf(y, x);
}

/* atan2 of zeros and infinities has special values, which tn__near_atan2_f32 does not compute. */
TN__INTO_LOOPS int tn__angle_fits(float a, float b)
{
    float size_a = __builtin_fabsf(a), size_b = __builtin_fabsf(b);
    return (size_a > 0) & (size_b > 0) & (size_a <= TN__LARGEST_F32) & (size_b <= TN__LARGEST_F32);
}

TN__INTO_LOOPS float tn__near_atan2_f32(float a, float b)
{
    float up = __builtin_fabsf(a), right = __builtin_fabsf(b);
    float small = up > right ? right : up, large = up > right ? up : right;
    float y = tn__near_angle_f32(small / large);
    y = up > right ? 1.57079637e+00f - (y + 4.37113883e-08f) : y;
    y = b < 0 ? 3.14159274e+00f - (y + 8.74227766e-08f) : y;
    return __builtin_copysignf(y, a);
}

/* Returns asin(s), where s = size if size <= 1/2, else s = sqrt((1 - size) / 2). In the second case
 * the caller computes asin(size) = pi / 2 - 2 asin(s). asin s = s + s z p(z) with z = s^2. */
TN__INTO_LOOPS float tn__near_asin_part_f32(float size)
{
    float z = size > 0.5f ? TN__MA(-0.5f, size, 0.5f) : size * size;
    float s = size > 0.5f ? __builtin_sqrtf(z) : size, z2 = z * z;
    float p01 = TN__MA(z, 7.500127553e-02f, 1.666666589e-01f),
          p23 = TN__MA(z, 3.114201826e-02f, 4.459332381e-02f),
          p45 = TN__MA(z, 3.375294228e-02f, 1.704440165e-02f);
    return TN__MA(s * z, TN__MA(z2, TN__MA(z2, p45, p23), p01), s);
}

TN__INTO_LOOPS float tn__near_asin_f32(float x)
{
    float size = __builtin_fabsf(x), part = tn__near_asin_part_f32(size);
    float far = 1.57079637e+00f - TN__MA(2.0f, part, 4.37113883e-08f);
    return __builtin_copysignf(size > 0.5f ? far : part, x);
}

TN__INTO_LOOPS float tn__near_acos_f32(float x)
{
    float size = __builtin_fabsf(x), part = tn__near_asin_part_f32(size);
    float near = x < 0 ? 3.14159274e+00f - TN__MA(2.0f, part, 8.74227766e-08f) : 2 * part;
    float far = 1.57079637e+00f - (__builtin_copysignf(part, x) + 4.37113883e-08f);
    return size > 0.5f ? near : far;
}

/* ---- the inverse of the error function ------------------------------------------------------- */

/* erfinv x = x p(w) with w = -ln(1 - x^2). There are two polynomials: for w < 5 in w, with an error
 * of 4e-9, above in sqrt(w), with an error of 3e-8. */
TN__INTO_LOOPS float tn__near_erfinv_f32(float x)
{
    float w = -tn__near_log_f32((1 - x) * (1 + x)), u = w - 2.5f;
    float v = __builtin_sqrtf(w < 0 ? 0 : w) - 3.216915395f;
    float low = TN__MA(u, 4.351147420e-10f, -8.739830957e-09f);
    low = TN__MA(low, u, 1.648717663e-08f);
    low = TN__MA(low, u, 4.654287304e-07f);
    low = TN__MA(low, u, -3.426175949e-06f);
    low = TN__MA(low, u, -4.959743505e-06f);
    low = TN__MA(low, u, 2.182639231e-04f);
    low = TN__MA(low, u, -1.252748416e-03f);
    low = TN__MA(low, u, -4.177324924e-03f);
    low = TN__MA(low, u, 2.466402894e-01f);
    low = TN__MA(low, u, 1.501409352e+00f);
    float high = TN__MA(v, 9.421440530e-05f, -9.942566400e-05f);
    high = TN__MA(high, v, -3.617910111e-04f);
    high = TN__MA(high, v, 1.113845849e-03f);
    high = TN__MA(high, v, -1.885520087e-03f);
    high = TN__MA(high, v, 2.761287370e-03f);
    high = TN__MA(high, v, -4.100019070e-03f);
    high = TN__MA(high, v, 5.763215105e-03f);
    high = TN__MA(high, v, 1.004890881e+00f);
    high = TN__MA(high, v, 3.050632976e+00f);
    float size = __builtin_fabsf(x), y = x * (w < 5 ? low : high);
    return size < 1 ? y
                    : x * (size == 1 ? tn__of_bits_f32(0x7f800000u) : tn__of_bits_f32(0x7fc00000u));
}

/* ---- powers ---------------------------------------------------------------------------------- */

/* Returns whether a is positive, normal and finite, and a^b is far enough inside of the normal
 * range, which is estimated from the exponent of a. False if a or b is NaN. */
TN__INTO_LOOPS int tn__power_fits(float a, float b)
{
    float exponent = (float)((int32_t)(tn__bits_f32(a) >> 23) - 127);
    return (a >= 0x1p-126f) & (a <= TN__LARGEST_F32) &
           ((__builtin_fabsf(exponent) + 1) * __builtin_fabsf(b) <= 125.0f);
}

/* e^(b ln a), computed in float64, because the absolute error of b ln a becomes a relative error of
 * the result. */
TN__INTO_LOOPS float tn__near_pow_f32(float a, float b)
{
    float k, f32 = tn__near_split_f32(a, &k);
    double f = (double)f32, z = f * f, z2 = z * z;
    double p01 = TN__MA64(f, -0.2499996695, 0.3333333237),
           p23 = TN__MA64(f, -0.16669405966, 0.2000009052),
           p45 = TN__MA64(f, -0.12424392578, 0.14285117322),
           p67 = TN__MA64(f, -0.10819610796, 0.11036211652),
           p89 = TN__MA64(f, -0.05976769138, 0.10631999036);
    double p = TN__MA64(z2, TN__MA64(z2, p89, TN__MA64(z, p67, p45)), TN__MA64(z, p23, p01));
    double log = TN__MA64((double)k, 6.93147180559945309417e-01, f + TN__MA64(f * z, p, -0.5 * z)),
           x = log * (double)b;
    double shifted = TN__MA64(x, 1.44269504088896338700, 0x1.8p52), n = shifted - 0x1.8p52;
    double r = TN__MA64(n, -6.93147180559945309417e-01, x), s = r * r;
    double q = TN__MA64(s,
                        TN__MA64(s, TN__MA64(r, 0.00019789266722, 0.00139457529656),
                                 TN__MA64(r, 0.00833350374994, 0.04166628031395)),
                        TN__MA64(r, 0.16666665820091, 0.50000000716761));
    double e = TN__MA64(s, q, r) + 1;
    return (float)(e * tn__of_bits_f64((tn__bits_f64(shifted) + 1023) << 52));
}

#endif
