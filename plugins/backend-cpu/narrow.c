/* SPDX-License-Identifier: MIT
 *
 * What float16 and bfloat16 do without a buffer of float32 beside them: signs, sums of two, sums at places. Compiled once
 * per instruction set, like loops.c. A sum of two numbers of either type that is rounded to float32 first is the same as
 * one that is rounded once: float32 has more than twice their digits. */
#ifdef __F16C__
#include <immintrin.h>
#endif

#include "each.h"
#include "narrow.h"

#ifndef TN__LOOPS_NAME
#define TN__LOOPS_NAME tn__loops_base
#endif
#define PASTE_TWO(a, b) a##b
#define PASTE(a, b) PASTE_TWO(a, b)

TN__UNARY(other_sign, uint16_t, a ^ 0x8000)
TN__UNARY(no_sign, uint16_t, a & 0x7fff)

#define SUM_BF16(a, b) float_to_bf16(bf16_to_float(a) + bf16_to_float(b))
#ifdef __F16C__
#define SUM_F16(a, b) _cvtss_sh(_cvtsh_ss(a) + _cvtsh_ss(b), 0)
#else
#define SUM_F16(a, b) float_to_f16(f16_to_float(a) + f16_to_float(b))
#endif
TN__BINARY(add_bf16, uint16_t, SUM_BF16(a, b))
TN__BINARY(add_f16, uint16_t, SUM_F16(a, b))

/* Eight at a time, which the compiler does not find. */
#ifdef __F16C__
static void add_halves(int64_t n, char *y, int64_t sy, const char *a, int64_t sa, const char *b,
                       int64_t sb, const double *param)
{
    int64_t i = 0;
    for (; sy == 2 && sa == 2 && sb == 2 && i + 8 <= n; i += 8) {
        __m256 v = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(a + 2 * i)));
        __m256 w = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(b + 2 * i)));
        _mm_storeu_si128((__m128i *)(void *)(y + 2 * i), _mm256_cvtps_ph(_mm256_add_ps(v, w), 0));
    }
    add_f16(n - i, y + i * sy, sy, a + i * sa, sa, b + i * sb, sb, param);
}
#else
#define add_halves add_f16
#endif

#define ADD_AT(name, SUM)                                                                          \
    static int64_t name(int64_t n, char *x, int64_t sx, int64_t step, uint64_t size,               \
                        const char *index, int64_t si, const char *other, int64_t so)              \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            int64_t at;                                                                            \
            uint16_t v, w;                                                                         \
            memcpy(&at, index + i * si, sizeof at);                                                \
            if ((uint64_t)at >= size)                                                              \
                return i;                                                                          \
            char *to = x + i * sx + at * step;                                                     \
            memcpy(&v, to, sizeof v);                                                              \
            memcpy(&w, other + i * so, sizeof w);                                                  \
            v = SUM(v, w);                                                                         \
            memcpy(to, &v, sizeof v);                                                              \
        }                                                                                          \
        return n;                                                                                  \
    }
ADD_AT(add_at_f16, SUM_F16)
ADD_AT(add_at_bf16, SUM_BF16)

const struct tn__narrow PASTE(TN__LOOPS_NAME, _narrow) = {
    .neg = other_sign,
    .abs = no_sign,
    .add = { add_halves, add_bf16 },
    .add_at = { add_at_f16, add_at_bf16 },
};
