/* SPDX-License-Identifier: MIT
 *
 * Square roots and their reciprocals. The processor's square root of a 512-bit vector keeps its unit
 * busy for longer than an estimate and what corrects it take; the result is rounded just the same. */
#ifndef TN_BACKEND_CPU_ROOTS_H
#define TN_BACKEND_CPU_ROOTS_H

#include "simd/elementwise.h"

#ifdef __AVX512F__
#include <immintrin.h>

/* With r = 1 / sqrt(x) to 14 bits: g = x r, h = r / 2; each step g += g e, h += h e, e = 1/2 - g h,
 * doubles the bits. The last one goes by the exact rest, g + (x - g^2) h: what is lost before it is
 * rounded is less than any root is apart from the middle of two numbers, but for some hundred
 * fractions, and tests know those. Numbers whose rest might leave the normal range, among them 0,
 * infinity and NaN, take the processor's root. */
#define TN__ROOT(name, V, F, MASK, INT, CAST, first, behind, steps)                                \
    static inline V name(V x)                                                                      \
    {                                                                                              \
        const V half = _mm512_set1_##F(0.5);                                                       \
        V r = _mm512_rsqrt14_##F(x), g = _mm512_mul_##F(x, r), h = _mm512_mul_##F(r, half);        \
        for (int i = 0; i < (steps); i++) {                                                        \
            V e = _mm512_fnmadd_##F(g, h, half);                                                   \
            g = _mm512_fmadd_##F(g, e, g);                                                         \
            h = _mm512_fmadd_##F(h, e, h);                                                         \
        }                                                                                          \
        V y = _mm512_fmadd_##F(_mm512_fnmadd_##F(g, g, x), h, g);                                  \
        MASK odd = _mm512_cmp_##INT##_mask(                                                        \
            _mm512_sub_##CAST(_mm512_cast##F##_si512(x), _mm512_set1_##CAST(first)),               \
            _mm512_set1_##CAST((behind) - (first)), _MM_CMPINT_NLT);                               \
        return odd ? _mm512_mask_sqrt_##F(y, odd, x) : y;                                          \
    }
TN__ROOT(tn__root_f32, __m512, ps, __mmask16, epu32, epi32, 0x0d800000, 0x7f000000, 1)
TN__ROOT(tn__root_f64, __m512d, pd, __mmask8, epu64, epi64, 0x0600000000000000, 0x7fd0000000000000,
         2)

/* expr of the root g of each vector. */
#define TN__ROOTS(name, T, V, F, MASK, s, f, expr, scalar)                                         \
    static void name(int64_t n, char *yp, int64_t sy, const char *ap, int64_t sa, const char *bp,  \
                     int64_t sb, const double *param)                                              \
    {                                                                                              \
        enum { WIDE = 64 / sizeof(T) };                                                            \
        (void)bp, (void)sb, (void)param;                                                           \
        if (sy != (int64_t)sizeof(T) || sa != (int64_t)sizeof(T)) {                                \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const T g = __builtin_sqrt##f(*(const T *)(const void *)(ap + i * sa));            \
                *(T *)(void *)(yp + i * sy) = scalar;                                              \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        const V one = _mm512_set1_##F(1);                                                          \
        T *y = (T *)(void *)yp;                                                                    \
        const T *a = (const T *)(const void *)ap;                                                  \
        (void)one;                                                                                 \
        for (; n >= WIDE; n -= WIDE, a += WIDE, y += WIDE) {                                       \
            const V g = tn__root_##s(_mm512_loadu_##F(a));                                         \
            _mm512_storeu_##F(y, expr);                                                            \
        }                                                                                          \
        if (n > 0) {                                                                               \
            const MASK some = (MASK)((1u << n) - 1);                                               \
            const V g = tn__root_##s(_mm512_mask_loadu_##F(one, some, a));                         \
            _mm512_mask_storeu_##F(y, some, expr);                                                 \
        }                                                                                          \
    }
TN__ROOTS(sqrt_f32, float, __m512, ps, __mmask16, f32, f, g, g)
TN__ROOTS(sqrt_f64, double, __m512d, pd, __mmask8, f64, , g, g)
TN__ROOTS(rsqrt_f32, float, __m512, ps, __mmask16, f32, f, _mm512_div_ps(one, g), 1 / g)
TN__ROOTS(rsqrt_f64, double, __m512d, pd, __mmask8, f64, , _mm512_div_pd(one, g), 1 / g)
#else
TN__UNARY(sqrt_f32, float, __builtin_sqrtf(a))
TN__UNARY(sqrt_f64, double, __builtin_sqrt(a))
TN__UNARY(rsqrt_f32, float, 1 / __builtin_sqrtf(a))
TN__UNARY(rsqrt_f64, double, 1 / __builtin_sqrt(a))
#endif

#endif
