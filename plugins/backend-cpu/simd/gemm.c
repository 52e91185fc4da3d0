/* SPDX-License-Identifier: MIT
 *
 * Sums of products: the innermost loops of products of matrices (tiles and strips), dot products,
 * and y += a x. Unlike most files of this folder, this file is compiled with fused
 * multiply-adds if the instruction set has them, for speed. */
#include "math/exp_log.h"
#include "simd/simd.h"

#if defined(__AVX512F__)
#define TILE_BYTES 64
#define TILE_MR 12
#define STRIP_VECTORS 4
#elif defined(__AVX2__)
#define TILE_BYTES 32
#define TILE_MR 6
#define STRIP_VECTORS 2
#else
#define TILE_BYTES 16
#define TILE_MR 4
#define STRIP_VECTORS 2
#endif
#define TILE_NR_F32 (2 * TILE_BYTES / 4)
#define TILE_NR_F64 (2 * TILE_BYTES / 8)
#define TILE_NR_I64 TILE_NR_F64

/* Unaligned vectors of the instruction set's width. */
typedef float tile_v_f32 __attribute__((vector_size(TILE_BYTES), aligned(4), may_alias));
typedef double tile_v_f64 __attribute__((vector_size(TILE_BYTES), aligned(8), may_alias));
typedef uint64_t tile_v_i64 __attribute__((vector_size(TILE_BYTES), aligned(8), may_alias));

#include "simd/gemm_part.h"

#define T float
#define NAME(x) x##_f32
#include "simd/gemm_tile_template.h"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#include "simd/gemm_tile_template.h"
#undef T
#undef NAME
#define T uint64_t
#define NAME(x) x##_i64
#include "simd/gemm_tile_template.h"
#undef T
#undef NAME
#define TEMPLATE "simd/gemm_all_strips_template.h"
#include "base/for_floats.h"
#define TEMPLATE "simd/gemm_template.h"
#include "base/for_floats.h"

static inline float widened_one(uint16_t x)
{
    return tn__of_bits_f32((uint32_t)x << 16);
}

static float dot_bf16(int64_t n, const float *a, const void *bp)
{
    /* So many sums that an addition does not wait for the one before it. */
    enum { LANES = TILE_BYTES / 4, SUMS = 8, STEP = LANES * SUMS };
    const uint16_t *b = bp;
    tile_v_f32 sums[SUMS] = { 0 };
    float lanes[LANES], sum = 0;
    int64_t i = 0;

    for (; i + STEP <= n; i += STEP)
#pragma GCC unroll 8
        for (int v = 0; v < SUMS; v++)
            sums[v] += *(const tile_v_f32 *)(a + i + v * LANES) * widened_bf16(b + i + v * LANES);
    for (; i + LANES <= n; i += LANES)
        sums[0] += *(const tile_v_f32 *)(a + i) * widened_bf16(b + i);
    *(tile_v_f32 *)lanes = ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
                           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++)
            lanes[j] += lanes[j + half];
    for (; i < n; i++)
        sum += a[i] * widened_one(b[i]);
    return lanes[0] + sum;
}

/* The sums of a few vectors stay in registers while all rows are added: memory sees the rows only.
 */
static void axpy_rows_bf16(int64_t n, int64_t rows, const float *a, const void *xp, int64_t step,
                           float *y)
{
    enum { LANES = TILE_BYTES / 4, VECTORS = 4 };
    const uint16_t *x = xp;
    int64_t j = 0;

    for (; j + LANES * VECTORS <= n; j += LANES * VECTORS) {
        tile_v_f32 sums[VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++)
            sums[v] = *(const tile_v_f32 *)(y + j + v * LANES);
        for (int64_t i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++)
                sums[v] += a[i] * widened_bf16(x + i * step + j + v * LANES);
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++)
            *(tile_v_f32 *)(y + j + v * LANES) = sums[v];
    }
    for (; j < n; j++)
        for (int64_t i = 0; i < rows; i++)
            y[j] += a[i] * widened_one(x[i * step + j]);
}

#if STRIP_VECTORS == 4
#define WIDE(s)                                                                                    \
    { 6, strip_rows_3_##s, strip_columns_3_##s }, { 6, strip_rows_4_##s, strip_columns_4_##s },
#else
#define WIDE(s)
#endif
#define STRIPS(s, T)                                                                               \
    {                                                                                              \
        .mr = TILE_MR, .vector = TILE_BYTES / (int)sizeof(T), .vectors = STRIP_VECTORS,            \
        .of = { { TILE_MR, strip_rows_1_##s, strip_columns_1_##s },                                \
                { TILE_MR, strip_rows_2_##s, strip_columns_2_##s },                                \
                WIDE(s) },                                                                         \
    }

const struct tn__simd_gemm TN__SIMD_TABLE(gemm) = {
    .dot_f32 = dot_f32,
    .dot_f64 = dot_f64,
    .dot_bf16 = dot_bf16,
    .axpy_rows_bf16 = axpy_rows_bf16,
    .axpy_f32 = axpy_f32,
    .axpy_f64 = axpy_f64,
    .axpy4_f32 = axpy4_f32,
    .axpy4_f64 = axpy4_f64,
    .weigh_rows = { [TN__F32] = weigh_rows_f32, [TN__F64] = weigh_rows_f64 },
    .weigh_pixels = { [TN__F32] = weigh_pixels_f32, [TN__F64] = weigh_pixels_f64 },
    .spread_row = { [TN__F32] = spread_row_f32, [TN__F64] = spread_row_f64 },
    .strips = {
        [TN__F32] = STRIPS(f32, float),
        [TN__F64] = STRIPS(f64, double),
    },
    .tile = {
        [TN__F32] = { TILE_MR, TILE_NR_F32, tile_f32 },
        [TN__F64] = { TILE_MR, TILE_NR_F64, tile_f64 },
        [TN__I64] = { TILE_MR, TILE_NR_I64, tile_i64 },
    },
};
