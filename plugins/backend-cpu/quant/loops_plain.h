/* SPDX-License-Identifier: MIT
 *
 * Products of bytes in plain C, for loops.c. */
#ifndef TN_BACKEND_CPU_QUANT_LOOPS_PLAIN_H
#define TN_BACKEND_CPU_QUANT_LOOPS_PLAIN_H

#include "base/vectorize.h"
#include "quant/loops.h"

enum { PANEL = TN__QUANT_PANEL, QUAD = TN__QUANT_QUAD };

/* Adds the products of one quad of a row of x. */
TN__INTO_LOOPS void add_quad(const int8_t *x, const uint8_t *w, int32_t *sums)
{
    for (int n = 0; n < PANEL; n++)
        sums[n] += x[0] * w[QUAD * n] + x[1] * w[QUAD * n + 1] + x[2] * w[QUAD * n + 2] +
                   x[3] * w[QUAD * n + 3];
}

static void product(const struct tn__quant_product *p)
{
    for (int64_t j = 0; j < p->n_panels; j++)
        for (int64_t i = 0; i < p->rows; i++) {
            const uint8_t *w = p->panels + j * p->quads * PANEL * QUAD;
            const int8_t *x = p->x + i * p->x_step;
            int32_t sums[PANEL] = { 0 };

            for (int64_t q = 0; q < p->quads; q++)
                add_quad(x + q * QUAD, w + q * PANEL * QUAD, sums);
            for (int n = 0; n < PANEL; n++)
                p->sums[i * TN__QUANT_COLUMNS + j * PANEL + n] = sums[n];
        }
}

/* The sums of one block of a row of x. */
static void block_sums(const struct tn__quant_blocks *p, const int8_t *x, int64_t b, int32_t *sums)
{
    const uint8_t *w = p->panel + b * TN__QUANT_BLOCK * PANEL / (p->four_bits ? 2 : 1);
    uint8_t low[PANEL * QUAD], high[PANEL * QUAD];

    for (int q = 0; q < (p->four_bits ? 4 : 8); q++, w += PANEL * QUAD) {
        if (!p->four_bits) {
            add_quad(x + q * QUAD, w, sums);
            continue;
        }
        for (int n = 0; n < PANEL * QUAD; n++) {
            low[n] = w[n] & 15;
            high[n] = w[n] >> 4;
        }
        add_quad(x + q * QUAD, low, sums);
        add_quad(x + (q + 4) * QUAD, high, sums);
    }
}

static void blocks(const struct tn__quant_blocks *p)
{
    for (int64_t i = 0; i < p->rows; i++) {
        float *y = p->y + i * TN__QUANT_COLUMNS;

        for (int n = 0; n < PANEL; n++)
            y[n] = 0;
        for (int64_t b = 0; b < p->blocks; b++) {
            const float *scale = p->scale + b / p->group * PANEL;
            const int32_t *zero = p->zero + b / p->group * PANEL;
            const float x_scale = p->x_scale[i * p->blocks + b];
            const int32_t x_sum = p->x_sum[i * p->blocks + b];
            int32_t sums[PANEL] = { 0 };

            block_sums(p, p->x + i * p->x_step + b * TN__QUANT_BLOCK, b, sums);
            for (int n = 0; n < PANEL; n++)
                y[n] = y[n] + (float)(sums[n] - zero[n] * x_sum) * (x_scale * scale[n]);
        }
    }
}

/* Transposes columns in groups of eight of 16 rows of n numbers; returns how many. */
static int64_t transpose_eights(int64_t n, const float *from, float *to)
{
    (void)n, (void)from, (void)to;
    return 0;
}

#endif
