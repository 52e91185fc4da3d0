/* SPDX-License-Identifier: MIT
 *
 * Products of bytes with AVX2 and, where the file is compiled for it and the processor has it, with
 * AVX512-VNNI, for loops.c. Loops are unrolled so that arrays of sums become registers. AVX2
 * multiplies bytes as 16-bit integers (vpmaddwd), which is exact; vpmaddubsw would saturate. */
#ifndef TN_BACKEND_CPU_QUANT_LOOPS_X86_H
#define TN_BACKEND_CPU_QUANT_LOOPS_X86_H

#include <immintrin.h>
#include <string.h>

#include "base/vectorize.h"
#include "quant/loops.h"

enum { PANEL = TN__QUANT_PANEL, QUAD = TN__QUANT_QUAD, BYTES = PANEL * QUAD };

/* Four bytes of x. */
TN__INTO_LOOPS int32_t quad_at(const int8_t *x)
{
    int32_t four;

    memcpy(&four, x, sizeof four);
    return four;
}

/* ---- AVX2: four channels in a register, the sums of two products each ------------------------ */

TN__INTO_LOOPS __m256i wide_x(const int8_t *x)
{
    return _mm256_cvtepi8_epi16(_mm_set1_epi32(quad_at(x)));
}

/* sums[j] += products with channels 4 j to 4 j + 3; w[j] has their bytes as 16 bits. */
TN__INTO_LOOPS void add_wide(__m256i x, const __m256i *w, __m256i *sums)
{
#pragma GCC unroll 8
    for (int j = 0; j < 4; j++)
        sums[j] = _mm256_add_epi32(sums[j], _mm256_madd_epi16(w[j], x));
}

/* The sums of eight channels. */
TN__INTO_LOOPS __m256i joined(__m256i a, __m256i b)
{
    return _mm256_permute4x64_epi64(_mm256_hadd_epi32(a, b), 0xd8);
}

TN__INTO_LOOPS void wide_w(const uint8_t *w, __m256i *to)
{
#pragma GCC unroll 8
    for (int j = 0; j < 4; j++)
        to[j] = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(w + 16 * j)));
}

TN__INTO_LOOPS void product_tile(const struct tn__quant_product *p, int rows, int64_t i, int64_t j)
{
    const uint8_t *w = p->panels + j * p->quads * BYTES;
    const int8_t *x = p->x + i * p->x_step;
    __m256i sums[2][4], four[4];

#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < 4; c++)
            sums[r][c] = _mm256_setzero_si256();
    for (int64_t q = 0; q < p->quads; q++) {
        wide_w(w + q * BYTES, four);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            add_wide(wide_x(x + r * p->x_step + q * QUAD), four, sums[r]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        int32_t *to = p->sums + (i + r) * TN__QUANT_COLUMNS + j * PANEL;

        _mm256_storeu_si256((__m256i *)(void *)to, joined(sums[r][0], sums[r][1]));
        _mm256_storeu_si256((__m256i *)(void *)(to + 8), joined(sums[r][2], sums[r][3]));
    }
}

static void product_avx2(const struct tn__quant_product *p)
{
    for (int64_t j = 0; j < p->n_panels; j++) {
        int64_t i = 0;

        for (; i + 2 <= p->rows; i += 2)
            product_tile(p, 2, i, j);
        if (i < p->rows)
            product_tile(p, 1, i, j);
    }
}

/* The sums of block b for one or two rows of x. */
TN__INTO_LOOPS void block_sums(const struct tn__quant_blocks *p, int rows, const int8_t *x,
                               int64_t b, __m256i (*sums)[4])
{
    const uint8_t *w = p->panel + b * TN__QUANT_BLOCK * PANEL / (p->four_bits ? 2 : 1);
    const __m256i mask = _mm256_set1_epi16(15);
    __m256i four[4], high[4];

#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < 4; c++)
            sums[r][c] = _mm256_setzero_si256();
    for (int q = 0; q < (p->four_bits ? 4 : 8); q++) {
        wide_w(w + q * BYTES, four);
        if (p->four_bits)
#pragma GCC unroll 8
            for (int c = 0; c < 4; c++) {
                high[c] = _mm256_srli_epi16(four[c], 4);
                four[c] = _mm256_and_si256(four[c], mask);
            }
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const int8_t *at = x + r * p->x_step + q * QUAD;

            add_wide(wide_x(at), four, sums[r]);
            if (p->four_bits)
                add_wide(wide_x(at + 4 * QUAD), high, sums[r]);
        }
    }
}

TN__INTO_LOOPS __m256 eight_added(__m256 y, __m256i sums, const int32_t *zero, const float *scale,
                                  int32_t x_sum, float x_scale)
{
    __m256i less = _mm256_mullo_epi32(_mm256_loadu_si256((const __m256i *)(const void *)zero),
                                      _mm256_set1_epi32(x_sum));
    __m256 factor = _mm256_mul_ps(_mm256_set1_ps(x_scale), _mm256_loadu_ps(scale));

    return _mm256_add_ps(y,
                         _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(sums, less)), factor));
}

TN__INTO_LOOPS void blocks_tile(const struct tn__quant_blocks *p, int rows, int64_t i)
{
    const int8_t *x = p->x + i * p->x_step;
    __m256 y[2][2];

#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        y[r][0] = y[r][1] = _mm256_setzero_ps();
    for (int64_t b = 0; b < p->blocks; b++) {
        const float *scale = p->scale + b / p->group * PANEL;
        const int32_t *zero = p->zero + b / p->group * PANEL;
        __m256i sums[2][4];

        block_sums(p, rows, x + b * TN__QUANT_BLOCK, b, sums);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
            for (int h = 0; h < 2; h++)
                y[r][h] = eight_added(y[r][h], joined(sums[r][2 * h], sums[r][2 * h + 1]),
                                      zero + 8 * h, scale + 8 * h,
                                      p->x_sum[(i + r) * p->blocks + b],
                                      p->x_scale[(i + r) * p->blocks + b]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int h = 0; h < 2; h++)
            _mm256_storeu_ps(p->y + (i + r) * TN__QUANT_COLUMNS + 8 * h, y[r][h]);
}

static void blocks_avx2(const struct tn__quant_blocks *p)
{
    int64_t i = 0;

    for (; i + 2 <= p->rows; i += 2)
        blocks_tile(p, 2, i);
    if (i < p->rows)
        blocks_tile(p, 1, i);
}

#ifdef __AVX512F__

/* ---- AVX512-VNNI: sixteen channels in a register --------------------------------------------- */

/* sums += w . x, four products in each sum. As assembly, so that the file need not be compiled for
 * VNNI and the compiler keeps the sums in registers. */
TN__INTO_LOOPS void add_dot(__m512i *sums, __m512i w, __m512i x)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(*sums) : "v"(w), "v"(x));
}

TN__INTO_LOOPS void dot_tile(const struct tn__quant_product *p, int rows, int panels, int64_t i,
                             int64_t j)
{
    const int64_t next = p->quads * BYTES;
    const uint8_t *w = p->panels + j * next;
    const int8_t *x = p->x + i * p->x_step;
    __m512i sums[6][4], four[4];

#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < panels; c++)
            sums[r][c] = _mm512_setzero_si512();
    for (int64_t q = 0; q < p->quads; q++) {
#pragma GCC unroll 8
        for (int c = 0; c < panels; c++)
            four[c] = _mm512_loadu_si512(w + c * next + q * BYTES);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            __m512i of_row = _mm512_set1_epi32(quad_at(x + r * p->x_step + q * QUAD));

#pragma GCC unroll 8
            for (int c = 0; c < panels; c++)
                add_dot(&sums[r][c], four[c], of_row);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < panels; c++)
            _mm512_storeu_si512(p->sums + (i + r) * TN__QUANT_COLUMNS + (j + c) * PANEL,
                                sums[r][c]);
}

static void product_dot(const struct tn__quant_product *p)
{
    int64_t i = 0;

    if (p->n_panels < 4) {
        for (int64_t j = 0; j < p->n_panels; j++) {
            for (i = 0; i + 6 <= p->rows; i += 6)
                dot_tile(p, 6, 1, i, j);
            for (; i < p->rows; i++)
                dot_tile(p, 1, 1, i, j);
        }
        return;
    }
    for (; i + 6 <= p->rows; i += 6)
        dot_tile(p, 6, 4, i, 0);
    for (; i + 2 <= p->rows; i += 2)
        dot_tile(p, 2, 4, i, 0);
    if (i < p->rows)
        dot_tile(p, 1, 4, i, 0);
}

/* The registers of a block of weights: eight quads. */
TN__INTO_LOOPS void block_of(const struct tn__quant_blocks *p, int64_t b, __m512i *w)
{
    const __m512i mask = _mm512_set1_epi8(15);
    const uint8_t *at = p->panel + b * TN__QUANT_BLOCK * PANEL / (p->four_bits ? 2 : 1);

    if (!p->four_bits) {
#pragma GCC unroll 8
        for (int q = 0; q < 8; q++)
            w[q] = _mm512_loadu_si512(at + q * BYTES);
        return;
    }
#pragma GCC unroll 8
    for (int q = 0; q < 4; q++) {
        __m512i both = _mm512_loadu_si512(at + q * BYTES);

        w[q] = _mm512_and_si512(both, mask);
        w[q + 4] = _mm512_and_si512(_mm512_srli_epi16(both, 4), mask);
    }
}

TN__INTO_LOOPS void dot_blocks_tile(const struct tn__quant_blocks *p, int rows, int64_t i)
{
    const int8_t *x = p->x + i * p->x_step;
    __m512 y[8];

#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        y[r] = _mm512_setzero_ps();
    for (int64_t b = 0; b < p->blocks; b++) {
        const __m512i zero = _mm512_loadu_si512(p->zero + b / p->group * PANEL);
        const __m512 scale = _mm512_loadu_ps(p->scale + b / p->group * PANEL);
        __m512i w[8];

        block_of(p, b, w);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const int8_t *at = x + r * p->x_step + b * TN__QUANT_BLOCK;
            const int64_t which = (i + r) * p->blocks + b;
            __m512i sums[2] = { _mm512_setzero_si512(), _mm512_setzero_si512() }, less;

#pragma GCC unroll 8
            for (int q = 0; q < 8; q++)
                add_dot(&sums[q & 1], w[q], _mm512_set1_epi32(quad_at(at + q * QUAD)));
            less = _mm512_mullo_epi32(zero, _mm512_set1_epi32(p->x_sum[which]));
            sums[0] = _mm512_sub_epi32(_mm512_add_epi32(sums[0], sums[1]), less);
            y[r] = _mm512_add_ps(
                y[r], _mm512_mul_ps(_mm512_cvtepi32_ps(sums[0]),
                                    _mm512_mul_ps(_mm512_set1_ps(p->x_scale[which]), scale)));
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        _mm512_storeu_ps(p->y + (i + r) * TN__QUANT_COLUMNS, y[r]);
}

static void blocks_dot(const struct tn__quant_blocks *p)
{
    int64_t i = 0;

    for (; i + 8 <= p->rows; i += 8)
        dot_blocks_tile(p, 8, i);
    for (; i + 2 <= p->rows; i += 2)
        dot_blocks_tile(p, 2, i);
    if (i < p->rows)
        dot_blocks_tile(p, 1, i);
}
#else
static void product_dot(const struct tn__quant_product *p)
{
    product_avx2(p);
}
static void blocks_dot(const struct tn__quant_blocks *p)
{
    blocks_avx2(p);
}
#endif

static void product(const struct tn__quant_product *p)
{
    if (p->dot)
        product_dot(p);
    else
        product_avx2(p);
}

static void blocks(const struct tn__quant_blocks *p)
{
    if (p->dot)
        blocks_dot(p);
    else
        blocks_avx2(p);
}

/* ---- scales ---------------------------------------------------------------------------------- */

/* Eight rows of eight numbers become eight columns, 16 numbers apart. */
TN__INTO_LOOPS void eight_by_eight(int64_t n, const float *from, float *to)
{
    __m256 x[8], y[8];

#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        x[i] = _mm256_loadu_ps(from + i * n);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 2) {
        y[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
        y[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 4) {
        x[i] = _mm256_shuffle_ps(y[i], y[i + 2], 0x44);
        x[i + 1] = _mm256_shuffle_ps(y[i], y[i + 2], 0xee);
        x[i + 2] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0x44);
        x[i + 3] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0xee);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(to + i * PANEL, _mm256_permute2f128_ps(x[i], x[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * PANEL, _mm256_permute2f128_ps(x[i], x[i + 4], 0x31));
    }
}

/* Transposes columns in groups of eight of 16 rows of n numbers; returns how many. */
static int64_t transpose_eights(int64_t n, const float *from, float *to)
{
    int64_t i = 0;

    for (; i + 8 <= n; i += 8) {
        eight_by_eight(n, from + i, to + i * PANEL);
        eight_by_eight(n, from + 8 * n + i, to + i * PANEL + 8);
    }
    return i;
}

#endif
