/* SPDX-License-Identifier: MIT
 *
 * Square roots of 512-bit vectors, correctly rounded like the processor's instruction, but faster:
 * an estimate is improved in a few steps. */
#ifndef TN_BACKEND_CPU_MATH_SQRT_H
#define TN_BACKEND_CPU_MATH_SQRT_H

#ifdef __AVX512F__
#include <immintrin.h>

/* Starts with r, 1 / sqrt(x) to 14 bits, g = x r and h = r / 2. Each step, g += g e and h += h e
 * with e = 1/2 - g h, doubles the number of correct bits. The last step, g + (x - g^2) h, uses the
 * exact remainder. Its error before rounding is smaller than the distance of any root from the
 * middle between two floats, so that rounding is correct; some hundred fractions are an exception,
 * and tests cover them. For numbers whose remainder could be subnormal, and for 0, infinity, NaN
 * and negative numbers, the processor's square root is used. */
static inline __m512 tn__root_f32(__m512 x)
{
    const __m512 half = _mm512_set1_ps(0.5);
    __m512 r = _mm512_rsqrt14_ps(x), g = _mm512_mul_ps(x, r), h = _mm512_mul_ps(r, half);
    for (int i = 0; i < 1; i++) {
        __m512 e = _mm512_fnmadd_ps(g, h, half);
        g = _mm512_fmadd_ps(g, e, g);
        h = _mm512_fmadd_ps(h, e, h);
    }
    __m512 y = _mm512_fmadd_ps(_mm512_fnmadd_ps(g, g, x), h, g);
    __mmask16 odd = _mm512_cmp_epu32_mask(
        _mm512_sub_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x0d800000)),
        _mm512_set1_epi32((0x7f000000) - (0x0d800000)), _MM_CMPINT_NLT);
    return odd ? _mm512_mask_sqrt_ps(y, odd, x) : y;
}

static inline __m512d tn__root_f64(__m512d x)
{
    const __m512d half = _mm512_set1_pd(0.5);
    __m512d r = _mm512_rsqrt14_pd(x), g = _mm512_mul_pd(x, r), h = _mm512_mul_pd(r, half);
    for (int i = 0; i < 2; i++) {
        __m512d e = _mm512_fnmadd_pd(g, h, half);
        g = _mm512_fmadd_pd(g, e, g);
        h = _mm512_fmadd_pd(h, e, h);
    }
    __m512d y = _mm512_fmadd_pd(_mm512_fnmadd_pd(g, g, x), h, g);
    __mmask8 odd = _mm512_cmp_epu64_mask(
        _mm512_sub_epi64(_mm512_castpd_si512(x), _mm512_set1_epi64(0x0600000000000000)),
        _mm512_set1_epi64((0x7fd0000000000000) - (0x0600000000000000)), _MM_CMPINT_NLT);
    return odd ? _mm512_mask_sqrt_pd(y, odd, x) : y;
}
#endif

#endif
