/* SPDX-License-Identifier: MIT
 *
 * Resampling of uint8 in integers. With SSE2 two inputs at a time are multiplied and added; the
 * results are the same without it. */
#include "resample.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

/* Two neighbouring weights in each 32 bits. */
static inline __m128i pair_of(const int16_t *weights)
{
    int32_t pair;

    memcpy(&pair, weights, sizeof pair);
    return _mm_set1_epi32(pair);
}

static inline __m128i load4(const unsigned char *at)
{
    int32_t bytes;

    memcpy(&bytes, at, sizeof bytes);
    return _mm_cvtsi32_si128(bytes);
}

/* Rounds sums with `bits` bits after the point, and limits them to 0 to 255: 4 bytes. */
static inline int32_t finish4(__m128i sum, __m128i half, __m128i bits)
{
    __m128i words = _mm_sra_epi32(_mm_add_epi32(sum, half), bits);

    words = _mm_packs_epi32(words, words);
    return _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
}

/* The sum of the products of 8 bytes and 8 weights, in four parts. */
static inline __m128i product8(const unsigned char *at, const int16_t *weights)
{
    __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)at);
    __m128i w = _mm_loadu_si128((const __m128i *)(const void *)weights);

    return _mm_madd_epi16(_mm_unpacklo_epi8(bytes, _mm_setzero_si128()), w);
}

/* The sums of the four parts of each of four numbers. */
static inline __m128i sums4(__m128i a, __m128i b, __m128i c, __m128i d)
{
    __m128i ab = _mm_add_epi32(_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
    __m128i cd = _mm_add_epi32(_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));

    return _mm_add_epi32(_mm_unpacklo_epi64(ab, cd), _mm_unpackhi_epi64(ab, cd));
}

static inline __m128i product(const struct resample_plan *plan, int64_t i,
                              const unsigned char *line)
{
    const unsigned char *at = line + plan->first[i];
    const int16_t *w = plan->fixed + i * plan->taps;
    __m128i sum = _mm_setzero_si128();
    int64_t k = 0;

    for (; k + 8 <= plan->taps; k += 8)
        sum = _mm_add_epi32(sum, product8(at + k, w + k));
    for (; k < plan->taps; k += 2) {
        __m128i two = _mm_unpacklo_epi8(load4(at + k), _mm_setzero_si128());

        sum = _mm_add_epi32(
            sum, _mm_and_si128(_mm_madd_epi16(two, pair_of(w + k)), _mm_set_epi32(0, 0, 0, -1)));
    }
    return sum;
}

void resample_bytes_across(const struct resample_plan *plan, const unsigned char *line,
                           unsigned char *to)
{
    __m128i half = _mm_set1_epi32(plan->bits > 0 ? 1 << (plan->bits - 1) : 0);
    __m128i bits = _mm_cvtsi32_si128(plan->bits);
    int64_t last = plan->out - 1;

    for (int64_t i = 0; i <= last; i += 4) {
        __m128i a = product(plan, i, line);
        __m128i b = product(plan, i + 1 < last ? i + 1 : last, line);
        __m128i c = product(plan, i + 2 < last ? i + 2 : last, line);
        __m128i d = product(plan, i + 3 < last ? i + 3 : last, line);
        int32_t four = finish4(sums4(a, b, c, d), half, bits);

        memcpy(to + i, &four, sizeof four);
    }
}

/* The sums of the three channels of one output; `pairs` pairs of inputs. */
static inline __m128i pixel(const unsigned char *at, const int16_t *w, int64_t pairs)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i sum = zero;

    for (int64_t k = 0; k < pairs; k++) {
        __m128i two = _mm_unpacklo_epi8(load4(at + 6 * k), load4(at + 6 * k + 3));

        sum = _mm_add_epi32(sum, _mm_madd_epi16(_mm_unpacklo_epi8(two, zero), pair_of(w + 2 * k)));
    }
    return sum;
}

/* A line of outputs, each of `pairs` pairs of inputs; 0: of as many as each has. */
static inline void pixels(const struct resample_plan *plan, int64_t start, const unsigned char *rgb,
                          unsigned char *to, int64_t stride, int64_t pairs)
{
    __m128i half = _mm_set1_epi32(plan->bits > 0 ? 1 << (plan->bits - 1) : 0);
    __m128i bits = _mm_cvtsi32_si128(plan->bits);

    for (int64_t i = 0; i < plan->out; i++) {
        const unsigned char *at = rgb + 3 * (plan->first[i] - start);
        const int16_t *w = plan->fixed + i * plan->taps;
        int64_t count = pairs > 0 ? pairs : (plan->count[i] + 1) / 2;
        int32_t result = finish4(pixel(at, w, count), half, bits);

        to[i] = (unsigned char)result;
        to[stride + i] = (unsigned char)(result >> 8);
        to[2 * stride + i] = (unsigned char)(result >> 16);
    }
}

void resample_bytes_across_rgb(const struct resample_plan *plan, int64_t start,
                               const unsigned char *rgb, unsigned char *to, int64_t stride)
{
    /* a constant number of pairs makes a loop without jumps that depend on the position */
    switch (plan->even ? (plan->most + 1) / 2 : 0) {
    case 1: pixels(plan, start, rgb, to, stride, 1); break;
    case 2: pixels(plan, start, rgb, to, stride, 2); break;
    case 3: pixels(plan, start, rgb, to, stride, 3); break;
    case 4: pixels(plan, start, rgb, to, stride, 4); break;
    default: pixels(plan, start, rgb, to, stride, 0); break;
    }
}

/* 16 values of a row of the result. */
static inline void down16(const struct resample_plan *plan, const int16_t *w, int64_t count,
                          const unsigned char *at, int64_t stride, unsigned char *to)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i half = _mm_set1_epi32(plan->bits > 0 ? 1 << (plan->bits - 1) : 0);
    __m128i bits = _mm_cvtsi32_si128(plan->bits), sum[4] = { half, half, half, half };

    for (int64_t k = 0; k < count; k += 2, at += 2 * stride) {
        __m128i one = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i two = k + 1 < count ? _mm_loadu_si128((const __m128i *)(const void *)(at + stride))
                                    : zero;
        __m128i low = _mm_unpacklo_epi8(one, two), high = _mm_unpackhi_epi8(one, two);
        __m128i pair = pair_of(w + k);

        sum[0] = _mm_add_epi32(sum[0], _mm_madd_epi16(_mm_unpacklo_epi8(low, zero), pair));
        sum[1] = _mm_add_epi32(sum[1], _mm_madd_epi16(_mm_unpackhi_epi8(low, zero), pair));
        sum[2] = _mm_add_epi32(sum[2], _mm_madd_epi16(_mm_unpacklo_epi8(high, zero), pair));
        sum[3] = _mm_add_epi32(sum[3], _mm_madd_epi16(_mm_unpackhi_epi8(high, zero), pair));
    }
    for (int j = 0; j < 4; j++)
        sum[j] = _mm_sra_epi32(sum[j], bits);
    _mm_storeu_si128((__m128i *)(void *)to, _mm_packus_epi16(_mm_packs_epi32(sum[0], sum[1]),
                                                             _mm_packs_epi32(sum[2], sum[3])));
}

void resample_bytes_down(const struct resample_plan *plan, int64_t i, const unsigned char *rows,
                         int64_t stride, int64_t count, unsigned char *to)
{
    const int16_t *w = plan->fixed + i * plan->taps;
    unsigned char last[16];
    int64_t j = 0;

    for (; j + 16 <= count; j += 16)
        down16(plan, w, plan->count[i], rows + j, stride, to + j);
    if (j < count) { /* rows have RESAMPLE_SLACK more bytes, the result has not */
        down16(plan, w, plan->count[i], rows + j, stride, last);
        memcpy(to + j, last, (size_t)(count - j));
    }
}
#else
static unsigned char finish(const struct resample_plan *plan, int32_t sum)
{
    sum = (sum + (plan->bits > 0 ? 1 << (plan->bits - 1) : 0)) >> plan->bits;
    return (unsigned char)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

/* Returns result i of the plan: its inputs are `step` bytes apart, the first at `at`. */
static unsigned char value(const struct resample_plan *plan, int64_t i, const unsigned char *at,
                           int64_t step)
{
    const int16_t *w = plan->fixed + i * plan->taps;
    int32_t sum = 0;

    for (int64_t k = 0; k < plan->count[i]; k++)
        sum += w[k] * at[k * step];
    return finish(plan, sum);
}

void resample_bytes_across(const struct resample_plan *plan, const unsigned char *line,
                           unsigned char *to)
{
    for (int64_t i = 0; i < plan->out; i++)
        to[i] = value(plan, i, line + plan->first[i], 1);
}

void resample_bytes_across_rgb(const struct resample_plan *plan, int64_t start,
                               const unsigned char *rgb, unsigned char *to, int64_t stride)
{
    for (int64_t c = 0; c < 3; c++)
        for (int64_t i = 0; i < plan->out; i++)
            to[c * stride + i] = value(plan, i, rgb + 3 * (plan->first[i] - start) + c, 3);
}

void resample_bytes_down(const struct resample_plan *plan, int64_t i, const unsigned char *rows,
                         int64_t stride, int64_t count, unsigned char *to)
{
    for (int64_t j = 0; j < count; j++)
        to[j] = value(plan, i, rows + j, stride);
}
#endif
