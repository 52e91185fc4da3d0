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

static float dot_bf16(int64_t n, const float *a, const void *bp)
{
    enum { LANES = 64 };
    const uint16_t *b = bp;
    float acc[LANES] = { 0 }, rest = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            acc[j] += a[i + j] * tn__of_bits_f32((uint32_t)b[i + j] << 16);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++)
            acc[j] += acc[j + half];
    for (; i < n; i++)
        rest += a[i] * tn__of_bits_f32((uint32_t)b[i] << 16);
    return acc[0] + rest;
}

static void axpy4_bf16(int64_t n, const float *a, const void *xp, int64_t step, float *y)
{
    const float a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
    const uint16_t *x = xp, *x1 = x + step, *x2 = x1 + step, *x3 = x2 + step;
    TN__IVDEP for (int64_t i = 0; i < n; i++)
        y[i] = (y[i] + a0 * tn__of_bits_f32((uint32_t)x[i] << 16) +
                a1 * tn__of_bits_f32((uint32_t)x1[i] << 16)) +
               (a2 * tn__of_bits_f32((uint32_t)x2[i] << 16) +
                a3 * tn__of_bits_f32((uint32_t)x3[i] << 16));
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
    .axpy4_bf16 = axpy4_bf16,
    .axpy_f32 = axpy_f32,
    .axpy_f64 = axpy_f64,
    .axpy4_f32 = axpy4_f32,
    .axpy4_f64 = axpy4_f64,
    .weigh_rows = { [TN__F32] = weigh_rows_f32, [TN__F64] = weigh_rows_f64 },
    .weigh_four = { [TN__F32] = weigh_four_f32, [TN__F64] = weigh_four_f64 },
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
