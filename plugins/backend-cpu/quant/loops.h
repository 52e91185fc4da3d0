/* SPDX-License-Identifier: MIT
 *
 * The inner loops of quantized operators, compiled once for each instruction set (loops.c), and the
 * layout of packed weights that they read. All sums are exact and all roundings are those of
 * sdk/operators/quantize.ops, so every set gives the same bits.
 *
 * In products the weight is unsigned and x signed, as the instruction vpdpbusd has it: an int8
 * weight w is stored as w + 128, a uint8 x as x - 128. What this adds to a sum is subtracted at the
 * end from the sums of x and of the weight. */
#ifndef TN_BACKEND_CPU_QUANT_LOOPS_H
#define TN_BACKEND_CPU_QUANT_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    /* A panel has 16 output channels: [quads][16][4] bytes, where a quad is four neighbours of
     * `in`; of four bits [blocks][4 quads][16][4], with quad q in the low bits and quad q + 4 in
     * the high bits. */
    TN__QUANT_PANEL = 16,
    TN__QUANT_QUAD = 4,
    TN__QUANT_BLOCK = 32,  /* elements of x with a scale in linear_packed */
    TN__QUANT_COLUMNS = 64 /* output channels, at most, of one call of `product` or `blocks` */
};

/* sums[i][n] = sum over k of x[i][k] weight[n][k], for rows of x and whole panels. */
struct tn__quant_product {
    const int8_t *x; /* rows of quads * 4 bytes, x_step bytes apart */
    int64_t x_step, rows, quads;
    const uint8_t *panels;
    int64_t n_panels; /* at most 4 */
    int32_t *sums;    /* rows are TN__QUANT_COLUMNS apart */
    bool dot;         /* the processor has vpdpbusd for 512 bits */
};

/* y[i][n] = sum over blocks b, in order, of (float)(sum of the block) * (x_scale[i][b] *
 * scale[group of b][n]). */
struct tn__quant_blocks {
    const int8_t *x;
    const float *x_scale;                /* [rows][blocks] */
    const int32_t *x_sum;                /* [rows][blocks]: the sum of x in the block */
    int64_t x_step, rows, blocks, group; /* group: blocks of a group */
    const uint8_t *panel;                /* of one panel */
    const float *scale;                  /* [groups][16] */
    const int32_t *zero;                 /* [groups][16]: what the unsigned weight has for 0 */
    float *y;                            /* rows are TN__QUANT_COLUMNS apart */
    bool four_bits, dot;
};

/* What follows the sums of a row. */
struct tn__quant_finish {
    int64_t n;
    const int32_t *sums, *w_sum, *w_zero; /* w_sum: of each output channel of the weight */
    int32_t x_zero, x_sum, k;             /* k: products of each sum */
    float x_scale;
    const float *w_scale, *bias, *residual; /* bias and residual can be NULL */
    float min, max;                         /* NaN: no bound */
    bool quantized, is_signed;              /* y is bytes: int8 or uint8 */
    float y_scale;
    int32_t y_zero;
    void *y;        /* float or bytes */
    int32_t *whole; /* not NULL: only the corrected sums are stored, here */
};

/* The range of a row and how it becomes a scale: operator quantize_rows. */
struct tn__quant_row {
    int64_t n;
    const float *x;
    bool symmetric, is_signed;
    void *q;
    float scale; /* results */
    int32_t zero;
};

struct tn__quant_loops {
    void (*product)(const struct tn__quant_product *p);
    void (*blocks)(const struct tn__quant_blocks *p);
    void (*finish)(const struct tn__quant_finish *f);
    void (*row)(struct tn__quant_row *r);
    /* to[i] = x[i] xor flip; returns the sum of the results. */
    int64_t (*flip)(int64_t n, const void *x, int flip, int8_t *to);
    /* A row of linear_packed in blocks of 32, with zeros up to the end of the last one. */
    void (*x_blocks)(int64_t k, const float *x, int8_t *q, float *scale, int32_t *sum);
    /* to[i][c] = from[c][i] for c < count, 0 up to 16. */
    void (*transpose)(int64_t count, int64_t n, const float *from, float *to);
    /* to[i] = x[i] - zero, x int8 or uint8; sums[i] += x[i] * w. */
    void (*centre)(int64_t n, const void *x, bool is_signed, int32_t zero, int32_t *to);
    void (*tap)(int64_t n, const int32_t *x, int32_t w, int32_t *sums);
    /* Operator quantize for bytes with one scale: y[i] from low to high. */
    void (*to_bytes)(int64_t n, const float *x, float scale, int32_t zero, int32_t low,
                     int32_t high, void *y);
};

extern const struct tn__quant_loops tn__quant_loops_baseline;
#ifdef TN__HAVE_AVX2
extern const struct tn__quant_loops tn__quant_loops_avx2;
#endif
#ifdef TN__HAVE_AVX512
extern const struct tn__quant_loops tn__quant_loops_avx512;
#endif

#endif
