/* SPDX-License-Identifier: MIT
 *
 * Functions for a tile's vectors that differ by instruction set. load_part_* and store_part_*:
 * vectors of which only the first n elements, 0 < n < all, are in memory; other elements are
 * neither read nor written. limited_*: x < low ? low : x > high ? high : x, for each element.
 * widened_bf16: a vector of bfloat16 as float32. */
#ifndef TN_BACKEND_CPU_SIMD_GEMM_PART_H
#define TN_BACKEND_CPU_SIMD_GEMM_PART_H

#if defined(__AVX512F__)
#include <immintrin.h>

static inline tile_v_f32 widened_bf16(const uint16_t *x)
{
    const __m512i bits = _mm512_cvtepu16_epi32(
        _mm256_loadu_si256((const __m256i_u *)(const void *)x));
    return (tile_v_f32)_mm512_slli_epi32(bits, 16);
}

static inline tile_v_f32 load_part_f32(const float *from, int64_t n)
{
    return (tile_v_f32)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from);
}

static inline void store_part_f32(float *to, tile_v_f32 x, int64_t n)
{
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << n) - 1), (__m512)x);
}

static inline tile_v_f64 load_part_f64(const double *from, int64_t n)
{
    return (tile_v_f64)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), from);
}

static inline void store_part_f64(double *to, tile_v_f64 x, int64_t n)
{
    _mm512_mask_storeu_pd(to, (__mmask8)((1u << n) - 1), (__m512d)x);
}

/* A NaN stays, as the second operand is the result when one is a NaN; so does -0 with a limit of
 * 0. */
static inline tile_v_f32 limited_f32(tile_v_f32 x, float low, float high)
{
    return (tile_v_f32)_mm512_min_ps(_mm512_set1_ps(high),
                                     _mm512_max_ps(_mm512_set1_ps(low), (__m512)x));
}

static inline tile_v_f64 limited_f64(tile_v_f64 x, double low, double high)
{
    return (tile_v_f64)_mm512_min_pd(_mm512_set1_pd(high),
                                     _mm512_max_pd(_mm512_set1_pd(low), (__m512d)x));
}

#elif defined(__AVX2__)
#include <immintrin.h>

static inline tile_v_f32 widened_bf16(const uint16_t *x)
{
    const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)(const void *)x));
    return (tile_v_f32)_mm256_slli_epi32(bits, 16);
}

static inline __m256i part_of_8(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline __m256i part_of_4(int64_t n)
{
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}

static inline tile_v_f32 load_part_f32(const float *from, int64_t n)
{
    return (tile_v_f32)_mm256_maskload_ps(from, part_of_8(n));
}

static inline void store_part_f32(float *to, tile_v_f32 x, int64_t n)
{
    _mm256_maskstore_ps(to, part_of_8(n), (__m256)x);
}

static inline tile_v_f64 load_part_f64(const double *from, int64_t n)
{
    return (tile_v_f64)_mm256_maskload_pd(from, part_of_4(n));
}

static inline void store_part_f64(double *to, tile_v_f64 x, int64_t n)
{
    _mm256_maskstore_pd(to, part_of_4(n), (__m256d)x);
}

/* A NaN stays, as the second operand is the result when one is a NaN; so does -0 with a limit of
 * 0. */
static inline tile_v_f32 limited_f32(tile_v_f32 x, float low, float high)
{
    return (tile_v_f32)_mm256_min_ps(_mm256_set1_ps(high),
                                     _mm256_max_ps(_mm256_set1_ps(low), (__m256)x));
}

static inline tile_v_f64 limited_f64(tile_v_f64 x, double low, double high)
{
    return (tile_v_f64)_mm256_min_pd(_mm256_set1_pd(high),
                                     _mm256_max_pd(_mm256_set1_pd(low), (__m256d)x));
}

#else
#if defined(__SSE2__)
#include <emmintrin.h>

static inline tile_v_f32 widened_bf16(const uint16_t *x)
{
    const __m128i four = _mm_loadl_epi64((const __m128i *)(const void *)x);
    return (tile_v_f32)_mm_unpacklo_epi16(_mm_setzero_si128(), four);
}
#else
typedef uint16_t tile_half __attribute__((vector_size(TILE_BYTES / 2), aligned(2), may_alias));
typedef uint32_t tile_bits __attribute__((vector_size(TILE_BYTES)));

static inline tile_v_f32 widened_bf16(const uint16_t *x)
{
    return (tile_v_f32)(__builtin_convertvector(*(const tile_half *)x, tile_bits) << 16);
}
#endif

static inline tile_v_f32 load_part_f32(const float *from, int64_t n)
{
    float x[TILE_BYTES / 4] = { 0 };

    for (int64_t i = 0; i < n; i++)
        x[i] = from[i];
    return *(const tile_v_f32 *)(const void *)x;
}

static inline void store_part_f32(float *to, tile_v_f32 x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = x[i];
}

static inline tile_v_f64 load_part_f64(const double *from, int64_t n)
{
    double x[TILE_BYTES / 8] = { 0 };

    for (int64_t i = 0; i < n; i++)
        x[i] = from[i];
    return *(const tile_v_f64 *)(const void *)x;
}

static inline void store_part_f64(double *to, tile_v_f64 x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = x[i];
}

/* Vectors of integers as masks: a comparison gives -1 for true. */
typedef int32_t tile_mask_f32 __attribute__((vector_size(TILE_BYTES)));
typedef int64_t tile_mask_f64 __attribute__((vector_size(TILE_BYTES)));

static inline tile_v_f32 limited_f32(tile_v_f32 x, float low, float high)
{
    const tile_v_f32 zero = { 0 }, least = zero + low, most = zero + high;
    const tile_mask_f32 under = (tile_mask_f32)(x < least), over = (tile_mask_f32)(x > most);

    return (tile_v_f32)(((tile_mask_f32)x & ~(under | over)) | ((tile_mask_f32)least & under) |
                        ((tile_mask_f32)most & over));
}

static inline tile_v_f64 limited_f64(tile_v_f64 x, double low, double high)
{
    const tile_v_f64 zero = { 0 }, least = zero + low, most = zero + high;
    const tile_mask_f64 under = (tile_mask_f64)(x < least), over = (tile_mask_f64)(x > most);

    return (tile_v_f64)(((tile_mask_f64)x & ~(under | over)) | ((tile_mask_f64)least & under) |
                        ((tile_mask_f64)most & over));
}
#endif

#endif
