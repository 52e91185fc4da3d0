/* SPDX-License-Identifier: MIT
 *
 * Functions of eight float64 numbers by AVX-512, for which a function looks numbers up in tables of
 * 16 that stay in registers (vpermi2pd), so that short polynomials are enough. math/float64.h has
 * the functions for other instruction sets; their results may differ in the last bits. Functions
 * without limits below accept all numbers, with C's results. */
#ifndef TN_BACKEND_CPU_MATH_FLOAT64_AVX512_H
#define TN_BACKEND_CPU_MATH_FLOAT64_AVX512_H

#include <immintrin.h>

#include "base/vectorize.h"
#include "math/float64_tables.h"

typedef __m512d tn__eight;

TN__INTO_LOOPS tn__eight tn__all8(double x)
{
    return _mm512_set1_pd(x);
}

/* Returns a b + c, and c - a b. */
TN__INTO_LOOPS tn__eight tn__ma8(tn__eight a, tn__eight b, tn__eight c)
{
    return _mm512_fmadd_pd(a, b, c);
}
TN__INTO_LOOPS tn__eight tn__less8(tn__eight a, tn__eight b, tn__eight c)
{
    return _mm512_fnmadd_pd(a, b, c);
}

/* Returns the numbers of the table at the lowest four bits of `at`. */
TN__INTO_LOOPS tn__eight tn__pick8(const double *table, __m512i at)
{
    return _mm512_permutex2var_pd(_mm512_load_pd(table), at, _mm512_load_pd(table + 8));
}

/* Returns c[0] + c[1] x + c[2] x^2 + c[3] x^3. */
TN__INTO_LOOPS tn__eight tn__sum4_8(tn__eight x, tn__eight x2, double a, double b, double c,
                                    double d)
{
    tn__eight high = tn__ma8(x, tn__all8(d), tn__all8(c));
    return tn__ma8(x2, high, tn__ma8(x, tn__all8(b), tn__all8(a)));
}

/* Returns the sum of rows 0 to 3 of `rows`, picked at `at`, times 1, x, x^2, x^3. */
TN__INTO_LOOPS tn__eight tn__picked4_8(tn__eight x, tn__eight x2, const double (*rows)[16],
                                       __m512i at)
{
    tn__eight high = tn__ma8(x, tn__pick8(rows[3], at), tn__pick8(rows[2], at));
    return tn__ma8(x2, high, tn__ma8(x, tn__pick8(rows[1], at), tn__pick8(rows[0], at)));
}

/* Like tn__picked4_8, for 13 rows and the powers of x up to 12. */
TN__INTO_LOOPS tn__eight tn__picked13_8(tn__eight x, const double (*rows)[16], __m512i at)
{
    tn__eight x2 = _mm512_mul_pd(x, x), x4 = _mm512_mul_pd(x2, x2);
    tn__eight s = tn__ma8(x4, tn__pick8(rows[12], at), tn__picked4_8(x, x2, rows + 8, at));
    s = tn__ma8(x4, s, tn__picked4_8(x, x2, rows + 4, at));
    return tn__ma8(x4, s, tn__picked4_8(x, x2, rows, at));
}

/* ---- exponentials and logarithms ------------------------------------------------------------- */

/* Returns 2^k e^r, |r| <= ln 2 / 32; the lowest four bits of `shifted` are those of 16 k. */
TN__INTO_LOOPS tn__eight tn__power8(tn__eight r, tn__eight k, tn__eight shifted)
{
    __m512i j = _mm512_castpd_si512(shifted);
    tn__eight t = tn__pick8(tn__power_table, j), r2 = _mm512_mul_pd(r, r);
    tn__eight high = tn__ma8(r, tn__all8(0x1.11120b03cd855p-7), tn__all8(0x1.555555551946fp-5));
    high = tn__ma8(r2, tn__all8(0x1.6c17bb5ebddb4p-10), high);
    tn__eight q = tn__ma8(r, tn__all8(0x1.55555554dd388p-3), tn__all8(0.5));
    q = tn__ma8(r2, tn__ma8(r2, high, q), _mm512_add_pd(r, tn__pick8(tn__power_rest, j)));
    return _mm512_scalef_pd(tn__ma8(t, q, t), k);
}

/* e^(x - rest) for -760 <= x <= 720, `rest` small: x = k ln 2 + r, 16 k whole. */
TN__INTO_LOOPS tn__eight tn__exp8_of(tn__eight x, tn__eight rest)
{
    tn__eight shifted = tn__ma8(x, tn__all8(0x1.71547652b82fep0), tn__all8(0x1.8p48));
    tn__eight k = _mm512_sub_pd(shifted, tn__all8(0x1.8p48));
    tn__eight r = tn__less8(k, tn__all8(0x1.62e42fefa39efp-1), x);
    r = _mm512_sub_pd(tn__less8(k, tn__all8(0x1.abc9e3b39803fp-56), r), rest);
    return tn__power8(r, k, shifted);
}

/* 2^x */
TN__INTO_LOOPS tn__eight tn__exp2_8(tn__eight x)
{
    x = _mm512_max_pd(tn__all8(-1100), _mm512_min_pd(tn__all8(1030), x));
    tn__eight shifted = _mm512_add_pd(x, tn__all8(0x1.8p48));
    tn__eight k = _mm512_sub_pd(shifted, tn__all8(0x1.8p48));
    tn__eight r = _mm512_mul_pd(_mm512_sub_pd(x, k), tn__all8(0x1.62e42fefa39efp-1));
    return tn__power8(r, k, shifted);
}

/* The second operand of a maximum is the result if either is NaN. */
TN__INTO_LOOPS tn__eight tn__exp8(tn__eight x)
{
    x = _mm512_max_pd(tn__all8(-760), _mm512_min_pd(tn__all8(720), x));
    return tn__exp8_of(x, _mm512_setzero_pd());
}

/* What a logarithm to some base needs: in two parts each, a table of the logarithms of 1 /
 * tn__inverse_table, the logarithm of 2, and 1 / ln base. */
struct tn__base8 {
    const double *high, *low;
    double two_high, two_low, scale, scale_low;
};

/* x = 2^k m with 1 <= m < 2; with c from the table, r = m c - 1 is small, and
 * ln x = k ln 2 - ln c + ln(1 + r). The high parts are summed without an error. */
TN__INTO_LOOPS tn__eight tn__log8_of(tn__eight x, const struct tn__base8 b)
{
    tn__eight k = _mm512_getexp_pd(x);
    tn__eight m = _mm512_getmant_pd(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan);
    __m512i j = _mm512_srli_epi64(_mm512_castpd_si512(m), 48);
    tn__eight r = tn__ma8(m, tn__pick8(tn__inverse_table, j), tn__all8(-1));
    tn__eight high = tn__ma8(k, tn__all8(b.two_high), tn__pick8(b.high, j));
    tn__eight low = tn__ma8(k, tn__all8(b.two_low), tn__pick8(b.low, j));
    tn__eight r2 = _mm512_mul_pd(r, r), r4 = _mm512_mul_pd(r2, r2);
    const double s = b.scale;
    tn__eight p = tn__sum4_8(r, r2, s * -0x1.fffffffffffffp-2, s * 0x1.5555555555a3ap-2,
                             s * -0x1.0000000004190p-2, s * 0x1.999999898ca88p-3);
    tn__eight q = tn__sum4_8(r, r2, s * -0x1.55555443d9487p-3, s * 0x1.2492b09e0fc2dp-3,
                             s * -0x1.0009a59a92b8ep-3, s * 0x1.c5ea4752e2c4ep-4);
    p = tn__ma8(r4, tn__ma8(r4, tn__all8(s * -0x1.6a3df3a2d0318p-4), q), p);
    low = tn__ma8(r2, p, low);
    if (b.scale_low != 0)
        low = tn__ma8(r, tn__all8(b.scale_low), low);
    tn__eight y = _mm512_add_pd(high, tn__ma8(r, tn__all8(s), low));
    /* by the kind of x: NaN and numbers below 0 to NaN, 0 to -infinity, infinity to itself */
    return _mm512_fixupimm_pd(y, x, _mm512_set1_epi64(0x03530422), 0);
}

TN__INTO_LOOPS tn__eight tn__log8(tn__eight x)
{
    const struct tn__base8 b = { .high = tn__ln_high,
                                 .low = tn__ln_low,
                                 .two_high = 0x1.62e42fefa4000p-1,
                                 .two_low = -0x1.8432a1b0e2634p-43,
                                 .scale = 1 };
    return tn__log8_of(x, b);
}

TN__INTO_LOOPS tn__eight tn__log2_8(tn__eight x)
{
    const struct tn__base8 b = { .high = tn__log2_high,
                                 .low = tn__log2_low,
                                 .two_high = 1,
                                 .scale = 0x1.71547652b82fep0,
                                 .scale_low = 0x1.777d0ffda0d24p-56 };
    return tn__log8_of(x, b);
}

TN__INTO_LOOPS tn__eight tn__log10_8(tn__eight x)
{
    const struct tn__base8 b = { .high = tn__log10_high,
                                 .low = tn__log10_low,
                                 .two_high = 0x1.34413509f8000p-2,
                                 .two_low = -0x1.80433b83b532ap-44,
                                 .scale = 0x1.bcb7b1526e50ep-2,
                                 .scale_low = 0x1.95355baaafad3p-57 };
    return tn__log8_of(x, b);
}

/* ---- sine, cosine, tangent ------------------------------------------------------------------- */

/* Returns a, negated if bit 4 of `turns` is set. */
TN__INTO_LOOPS tn__eight tn__turned8(tn__eight a, __m512i turns)
{
    __m512i sign = _mm512_and_si512(_mm512_slli_epi64(turns, 59), _mm512_set1_epi64(INT64_MIN));
    return _mm512_castsi512_pd(_mm512_xor_si512(_mm512_castpd_si512(a), sign));
}

/* Returns the sine of x + ahead pi / 16 and, if `cosine` is not NULL, the cosine, both up to the
 * sign, which *turns tells, for |x| <= 1e6. x is k pi / 16 + r + rest, |r| <= pi / 32, and the
 * sine is sin(k pi / 16) cos r + cos(k pi / 16) sin r. pi / 16 is given in three parts; the first
 * two have 30 bits, so that their products with k are exact. */
TN__INTO_LOOPS tn__eight tn__circle8(tn__eight x, double ahead, tn__eight *cosine, __m512i *turns)
{
    tn__eight shifted = tn__ma8(x, tn__all8(0x1.45f306dc9c883p2), tn__all8(0x1.8p52 + ahead));
    tn__eight k = _mm512_sub_pd(shifted, tn__all8(0x1.8p52 + ahead));
    __m512i j = *turns = _mm512_castpd_si512(shifted);
    tn__eight part = tn__less8(k, tn__all8(0x1.921fb548p-3), x);
    tn__eight near = tn__ma8(k, tn__all8(0x1.de973ddp-34), part);
    tn__eight rest = tn__ma8(k, tn__all8(0x1.de973ddp-34), _mm512_sub_pd(part, near));
    rest = tn__less8(k, tn__all8(0x1.313198a2e0370p-64), rest);
    tn__eight r = _mm512_add_pd(near, rest);
    rest = _mm512_add_pd(_mm512_sub_pd(near, r), rest);
    tn__eight z = _mm512_mul_pd(r, r), z2 = _mm512_mul_pd(z, z);
    tn__eight up = tn__sum4_8(z, z2, -0x1.5555555555555p-3, 0x1.111111111046fp-7,
                              -0x1.a01a0139b7e26p-13, 0x1.71cda20bfd969p-19);
    tn__eight down = tn__sum4_8(z, z2, -0.5, 0x1.5555555553298p-5, -0x1.6c16c0df50911p-10,
                                0x1.a00330523baa9p-16);
    /* up = sin(r + rest) - r, down = cos(r) - 1 */
    up = tn__ma8(_mm512_mul_pd(r, z), up, rest);
    down = _mm512_mul_pd(z, down);
    tn__eight s = tn__pick8(tn__sine_table, j), c = tn__pick8(tn__cosine_table, j);
    tn__eight y = tn__ma8(c, up, tn__ma8(s, down, tn__pick8(tn__sine_rest, j)));
    if (cosine) {
        tn__eight w = tn__ma8(c, down, tn__pick8(tn__cosine_rest, j));
        *cosine = _mm512_add_pd(c, tn__less8(s, r, tn__less8(s, up, w)));
    }
    return _mm512_add_pd(s, tn__ma8(c, r, y));
}

/* Returns x where it is 0, whose sign counts, and y elsewhere. */
TN__INTO_LOOPS tn__eight tn__or_zero8(tn__eight x, tn__eight y)
{
    return _mm512_mask_mov_pd(y, _mm512_cmp_pd_mask(x, _mm512_setzero_pd(), _CMP_EQ_OQ), x);
}

TN__INTO_LOOPS tn__eight tn__sin8(tn__eight x)
{
    __m512i turns;
    tn__eight y = tn__circle8(x, 0, NULL, &turns);
    return tn__or_zero8(x, tn__turned8(y, turns));
}

TN__INTO_LOOPS tn__eight tn__cos8(tn__eight x)
{
    __m512i turns;
    tn__eight y = tn__circle8(x, 8, NULL, &turns);
    return tn__turned8(y, turns);
}

TN__INTO_LOOPS tn__eight tn__tan8(tn__eight x)
{
    __m512i turns;
    tn__eight cosine, sine = tn__circle8(x, 0, &cosine, &turns);
    return tn__or_zero8(x, _mm512_div_pd(sine, cosine));
}

/* ---- the error function ---------------------------------------------------------------------- */

/* The error function rounds to 1 above 5.93. */
TN__INTO_LOOPS tn__eight tn__erf8(tn__eight x)
{
    tn__eight size = _mm512_min_pd(tn__all8(5.93), _mm512_abs_pd(x));
    __m512i j = _mm512_castpd_si512(tn__ma8(size, tn__all8(1 / 0.383), tn__all8(0x1.8p52)));
    tn__eight d = _mm512_sub_pd(size, tn__pick8(tn__erf_center, j));
    tn__eight y = tn__ma8(d, tn__picked13_8(d, tn__erf_table + 1, j), d);
    y = _mm512_add_pd(tn__pick8(tn__erf_table[0], j), y);
    __m512i sign = _mm512_and_si512(_mm512_castpd_si512(x), _mm512_set1_epi64(INT64_MIN));
    return _mm512_castsi512_pd(_mm512_or_si512(_mm512_castpd_si512(y), sign));
}

/* Returns erfc x for |x| <= 15. 1 + |x| selects the polynomial: there is one for each quarter of
 * the interval from one power of 2 to the next. */
TN__INTO_LOOPS tn__eight tn__erfc8(tn__eight x)
{
    tn__eight size = _mm512_abs_pd(x);
    __m512i j = _mm512_srli_epi64(_mm512_castpd_si512(_mm512_add_pd(size, tn__all8(1))), 50);
    tn__eight d = _mm512_sub_pd(size, tn__pick8(tn__erfc_center, j));
    tn__eight y = tn__picked13_8(d, tn__erfc_table + 1, j);
    y = tn__ma8(d, y, tn__pick8(tn__erfc_table[0], j));
    tn__eight square = _mm512_mul_pd(x, x), rest = _mm512_fmsub_pd(x, x, square);
    y = _mm512_mul_pd(y, tn__exp8_of(_mm512_sub_pd(_mm512_setzero_pd(), square), rest));
    __mmask8 below = _mm512_cmp_pd_mask(x, _mm512_setzero_pd(), _CMP_LT_OQ);
    return _mm512_mask_sub_pd(y, below, tn__all8(2), y);
}

/* The polynomial of tn__erfinv64. */
static const double tn__erfinv_terms[6][4] = {
    { 0x1.a755e7c99ae86p0, 0x1.ebd80d9b13df7p-3, -0x1.8b6c33114ed9cp-8, -0x1.8457694833bfdp-11 },
    { 0x1.879c2a20d0f08p-13, -0x1.d1d1f7cb4aa81p-17, -0x1.6e8a53e924804p-20,
      0x1.c6b4f8bb6ca28p-22 },
    { -0x1.f36ce6630eafdp-26, -0x1.1a9eb9634b2c1p-28, 0x1.20f4f47f64a63p-30,
      -0x1.dc3d3da75bb29p-35 },
    { -0x1.c8978cf213ff9p-37, 0x1.722dafb090727p-39, -0x1.6d673c67180b1p-44,
      -0x1.680ea6a00f2b9p-45 },
    { 0x1.dadf94a9193dbp-48, -0x1.9d61b663d36e8p-55, -0x1.2b00c264cb016p-53,
      0x1.2590c09131cf1p-56 },
    { 0x1.4ccbafa156267p-60, -0x1.ae48def70f2d3p-62, -0x1.987b223d8d6fcp-71,
      0x1.092e795c5382ap-68 },
};

/* As tn__erfinv64, for |x| <= 0.999. */
TN__INTO_LOOPS tn__eight tn__erfinv8(tn__eight x)
{
    const tn__eight one = tn__all8(1);
    tn__eight u = tn__log8(_mm512_mul_pd(_mm512_sub_pd(one, x), _mm512_add_pd(one, x)));
    u = _mm512_sub_pd(tn__all8(-3.125), u);
    tn__eight u2 = _mm512_mul_pd(u, u), u4 = _mm512_mul_pd(u2, u2);
    const double(*c)[4] = tn__erfinv_terms;
    tn__eight p = tn__sum4_8(u, u2, c[5][0], c[5][1], c[5][2], c[5][3]);
    for (int k = 4; k >= 0; k--)
        p = tn__ma8(u4, p, tn__sum4_8(u, u2, c[k][0], c[k][1], c[k][2], c[k][3]));
    return _mm512_mul_pd(x, p);
}

#endif
