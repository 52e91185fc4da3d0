/* SPDX-License-Identifier: MIT
 *
 * The error function of float64 numbers, its complement and inverse, and gelu, which uses the
 * normal distribution. Written like float64.h. */
#ifndef TN_BACKEND_CPU_MATH_FLOAT64_ERF_H
#define TN_BACKEND_CPU_MATH_FLOAT64_ERF_H

#include "math/float64.h"
#include "base/vectorize.h"

/* Returns e^(y^2) erfc(y) = t p(t - 1/2) with t = 3 / (3 + y), for 0 <= y <= 28, where y = z +
 * rest. p is steep, so `rest`, the rounding error of z, and the rounding error of t are added to
 * the argument of p. */
TN__INTO_LOOPS double tn__erfc64_scaled(double z, double rest)
{
    double below = 3 + z, t = 3 / below, low, back = tn__product64(t, below, &low);
    double lost = (((3 - back) - low) - t * ((z - (below - 3)) + rest)) * t * (1 / 3.0);
    double u = (t - 0.5) + lost, u2 = u * u, u4 = u2 * u2, u8 = u4 * u4;
    double p = tn__sum8(u, u2, u4, 0x1.6e9827d229d2dp-2, 0x1.2d882f67c6cf9p-1, 0x1.92ede1b27d8dap-1,
                        0x1.a7e42c5727c81p-1, 0x1.4663f61210cefp-1, 0x1.2506628f13b8bp-2,
                        -0x1.a7c53426544f9p-6, -0x1.091ed168ffd69p-3);
    double q = tn__sum8(u, u2, u4, -0x1.7f4bd58176006p-5, 0x1.82f6a467efa20p-5,
                        0x1.2cc34f2ceac10p-5, -0x1.53ff13373d354p-6, -0x1.86c8935093666p-6,
                        0x1.a8e95315ed2c0p-7, 0x1.ee52f92108aa1p-7, -0x1.65097fd9149bap-7);
    double s = TN__MA64(u4,
                        TN__MA64(u2, -0x1.fb7c29db1dbfep-10,
                                 TN__MA64(u, 0x1.10b4a542c071bp-8, 0x1.53f11c54112a5p-11)),
                        tn__sum4(u, u2, -0x1.2043dc7a6935bp-7, 0x1.4a910ed8feeadp-7,
                                 0x1.d278aa214d24ap-9, -0x1.0edd3bfa52c3cp-7));
    return t * TN__MA64(u8, TN__MA64(u8, s, q), p);
}

/* Splits e^(-share z^2) = 2^n (1 + y) with share 1 or 1/2: returns y and sets *scale (see
 * tn__exp64_split). z^2 is computed as high^2, which is exact, and a small rest. */
TN__INTO_LOOPS double tn__bell64(double z, double share, uint64_t *scale)
{
    double high = tn__of_bits_f64(tn__bits_f64(z) & 0xfffffffff8000000u);
    return tn__exp64_sum(-high * high * share, (high - z) * (high + z) * share, scale);
}

/* Returns y 2^n, where the low bits of `scale` are n + 2046 (see tn__exp64_split). 2^n must be in
 * the normal range. */
TN__INTO_LOOPS double tn__raised64(double y, uint64_t scale)
{
    return y * tn__of_bits_f64((scale - 1023) << 52);
}

/* Returns erfc z for 0 <= z <= 26.5 */
TN__INTO_LOOPS double tn__near_erfc64_of(double z)
{
    uint64_t scale;
    double bell = tn__bell64(z, 1, &scale), y = tn__erfc64_scaled(z, 0);
    return tn__raised64(TN__MA64(y, bell, y), scale);
}

/* Returns erfc z for all z >= 0; the result is 0 for z > 27.3. */
TN__INTO_LOOPS double tn__erfc64_of(double z)
{
    uint64_t scale;
    double in = z > 27.3 ? 27.3 : z, bell = tn__bell64(in, 1, &scale);
    double y = tn__erfc64_scaled(in, 0);
    return tn__scaled64(TN__MA64(y, bell, y), scale);
}

/* Returns erf x - x = x p(x^2), for |x| <= 1. */
TN__INTO_LOOPS double tn__erf64_rest(double x)
{
    double z = x * x, z2 = z * z, z4 = z2 * z2;
    double p = tn__sum8(z, z2, z4, 0x1.06eba8214db68p-3, -0x1.812746b03799dp-2,
                        0x1.ce2f21a03f8b7p-4, -0x1.b82ce311a9685p-6, 0x1.565bcceed5e36p-8,
                        -0x1.c02daeb61c123p-11, 0x1.f9a2969881f06p-14, -0x1.f4c82cf346babp-17);
    double q = tn__sum4(z, z2, 0x1.b96b3f64885a6p-20, -0x1.5b8bc3285c77fp-23, 0x1.d3d880fd296bdp-27,
                        -0x1.a22cfc806471cp-31);
    return x * TN__MA64(z4 * z4, q, p);
}

TN__INTO_LOOPS double tn__erf64(double x)
{
    double size = __builtin_fabs(x), far = 1 - tn__near_erfc64_of(size > 6 ? 6.0 : size);
    return size < 1 ? x + tn__erf64_rest(x) : __builtin_copysign(far, x);
}

TN__INTO_LOOPS int32_t tn__erfc64_fits(double x, double unused)
{
    (void)unused;
    return __builtin_fabs(x) <= 26.5;
}

/* Returns erfc x, given y = erfc |x|. For |x| < 1/2 it is 1 - erf x, which is more precise. */
TN__INTO_LOOPS double tn__erfc64_whole(double x, double y)
{
    double near = 1 - (x + tn__erf64_rest(x));
    y = x < 0 ? 2 - y : y;
    return __builtin_fabs(x) < 0.5 ? near : y;
}

TN__INTO_LOOPS double tn__near_erfc64(double x)
{
    return tn__erfc64_whole(x, tn__near_erfc64_of(__builtin_fabs(x)));
}

TN__INTO_LOOPS double tn__erfc64(double x)
{
    return tn__erfc64_whole(x, tn__erfc64_of(__builtin_fabs(x)));
}

/* ---- the normal distribution ----------------------------------------------------------------- */

TN__INTO_LOOPS int32_t tn__normal64_fits(double x, double unused)
{
    (void)unused;
    return __builtin_fabs(x) <= 37;
}

/* For z >= 0: splits e^(-z^2 / 2) = 2^n (1 + bell), sets *bell and *scale, and returns the number
 * whose product with e^(-z^2 / 2) is the probability of values above z. */
TN__INTO_LOOPS double tn__normal64(double z, double *bell, uint64_t *scale)
{
    double low, t = tn__product64(z, 0x1.6a09e667f3bcdp-1, &low);
    *bell = tn__bell64(z, 0.5, scale);
    return tn__erfc64_scaled(t, TN__MA64(z, -0x1.bdd3413b26456p-55, low)) * 0.5;
}

TN__INTO_LOOPS double tn__near_gelu64(double x)
{
    uint64_t scale;
    double bell, y = tn__normal64(__builtin_fabs(x), &bell, &scale);
    y = tn__raised64(TN__MA64(y, bell, y), scale);
    return x * (x < 0 ? y : 1 - y);
}

TN__INTO_LOOPS double tn__gelu64(double x)
{
    uint64_t scale;
    double size = __builtin_fabs(x), bell;
    double y = tn__normal64(size > 39.5 ? 39.5 : size, &bell, &scale);
    y = tn__scaled64(TN__MA64(y, bell, y), scale);
    return x * (x < 0 ? y : 1 - y);
}

/* Returns the derivative of gelu: the probability of values below x, plus x times the density at x.
 */
TN__INTO_LOOPS double tn__near_gelu_slope64(double x)
{
    uint64_t scale;
    double bell, y = tn__normal64(__builtin_fabs(x), &bell, &scale);
    y = tn__raised64(TN__MA64(y, bell, y), scale);
    bell = tn__raised64(1 + bell, scale);
    return TN__MA64(x * 0x1.9884533d43651p-2, bell, x < 0 ? y : 1 - y);
}

TN__INTO_LOOPS double tn__gelu_slope64(double x)
{
    uint64_t scale;
    double size = __builtin_fabs(x), bell;
    double y = tn__normal64(size > 39.5 ? 39.5 : size, &bell, &scale);
    y = tn__scaled64(TN__MA64(y, bell, y), scale);
    bell = tn__scaled64(1 + bell, scale);
    return TN__MA64(x * 0x1.9884533d43651p-2, bell, x < 0 ? y : 1 - y);
}

/* ---- the inverse of the error function ------------------------------------------------------- */

TN__INTO_LOOPS int32_t tn__erfinv64_fits(double x, double unused)
{
    (void)unused;
    return __builtin_fabs(x) <= 0.999;
}

/* erfinv x = x p(w - 3.125) with w = -ln(1 - x^2) */
TN__INTO_LOOPS double tn__erfinv64(double x)
{
    double k, f = tn__split64((1 - x) * (1 + x), &k), u = -3.125 - tn__log64_of(f, k);
    double u2 = u * u, u4 = u2 * u2, u8 = u4 * u4;
    double p = tn__sum8(u, u2, u4, 0x1.a755e7c99ae86p0, 0x1.ebd80d9b13df7p-3, -0x1.8b6c33114ed9cp-8,
                        -0x1.8457694833bfdp-11, 0x1.879c2a20d0f08p-13, -0x1.d1d1f7cb4aa81p-17,
                        -0x1.6e8a53e924804p-20, 0x1.c6b4f8bb6ca28p-22);
    double q = tn__sum8(u, u2, u4, -0x1.f36ce6630eafdp-26, -0x1.1a9eb9634b2c1p-28,
                        0x1.20f4f47f64a63p-30, -0x1.dc3d3da75bb29p-35, -0x1.c8978cf213ff9p-37,
                        0x1.722dafb090727p-39, -0x1.6d673c67180b1p-44, -0x1.680ea6a00f2b9p-45);
    double s = tn__sum8(u, u2, u4, 0x1.dadf94a9193dbp-48, -0x1.9d61b663d36e8p-55,
                        -0x1.2b00c264cb016p-53, 0x1.2590c09131cf1p-56, 0x1.4ccbafa156267p-60,
                        -0x1.ae48def70f2d3p-62, -0x1.987b223d8d6fcp-71, 0x1.092e795c5382ap-68);
    return x * TN__MA64(u8, TN__MA64(u8, s, q), p);
}

/* erfinv x for |x| near 1: the polynomial of tn__near_erfinv_f32, which is off by up to a tenth
 * next to 1, then four of Newton's steps for the logarithm of erfc. The logarithm is close to a
 * parabola, so they converge from there; steps for erfc itself do not. */
static inline double tn__erfinv64_far(double x)
{
    double size = __builtin_fabs(x), rest = 1 - size;
    if (!(size < 1))
        return size == 1 ? x * TN__INFINITY_F64 : TN__NAN_F64;
    double v = __builtin_sqrt(-__builtin_log(rest * (1 + size))) - 3.216915395;
    double y = 9.421440530e-05;
    static const double series[] = { -9.942566400e-05, -3.617910111e-04, 1.113845849e-03,
                                     -1.885520087e-03, 2.761287370e-03,  -4.100019070e-03,
                                     5.763215105e-03,  1.004890881e+00,  3.050632976e+00 };
    for (int i = 0; i < 9; i++)
        y = y * v + series[i];
    y *= size;
    for (int i = 0; i < 4; i++) {
        double left = __builtin_erfc(y);
        y += __builtin_log(left / rest) * left * 0x1.c5bf891b4ef6bp-1 * __builtin_exp(y * y);
    }
    return __builtin_copysign(y, x);
}

#endif
