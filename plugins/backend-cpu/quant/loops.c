/* SPDX-License-Identifier: MIT
 *
 * The inner loops of quantized operators; loops.h says what they compute. This file is compiled
 * once for each instruction set, without contraction to fused multiply-adds: each rounding counts.
 */
#include "quant/loops.h"

#include <string.h>

#include "base/vectorize.h"
#include "simd/simd.h"

#if defined(__AVX2__)
#include "quant/loops_x86.h"
#else
#include "quant/loops_plain.h"
#endif

enum { LANES = 16 };

/* Rounds to the nearest integer, halves to even, for |x| < 2^22: the sum has no fraction. */
TN__INTO_LOOPS float nearest(float x)
{
    return (x + 0x1.8p23f) - 0x1.8p23f;
}

/* round(x / scale) + zero within [low, high]; NaN gives zero. The bound of the quotient is beyond
 * every range of bytes. */
TN__INTO_LOOPS int32_t to_integer(float x, float scale, int32_t zero, int32_t low, int32_t high)
{
    float quotient = x / scale, t = quotient;
    int32_t q;

    /* A mask instead of a third choice, which would not become vector code. */
    t = t > -4096.0f ? t : -4096.0f;
    t = t < 4096.0f ? t : 4096.0f;
    q = ((int32_t)nearest(t) & -(int32_t)(quotient == quotient)) + zero;
    q = q < low ? low : q;
    return q > high ? high : q;
}

/* The low byte is that of int8 and of uint8. */
static void to_bytes(int64_t n, const float *x, float scale, int32_t zero, int32_t low,
                     int32_t high, void *y)
{
    uint8_t *to = y;

    TN__IVDEP
    for (int64_t i = 0; i < n; i++)
        to[i] = (uint8_t)to_integer(x[i], scale, zero, low, high);
}

static void bound(int64_t n, float min, float max, float *y)
{
    if (min == min)
        for (int64_t i = 0; i < n; i++)
            y[i] = y[i] < min ? min : y[i];
    if (max == max)
        for (int64_t i = 0; i < n; i++)
            y[i] = y[i] > max ? max : y[i];
}

static void add(int64_t n, const float *x, float *y)
{
    TN__IVDEP
    for (int64_t i = 0; i < n; i++)
        y[i] = y[i] + x[i];
}

static void finish(const struct tn__quant_finish *f)
{
    const int32_t *sums = f->sums, *w_sum = f->w_sum, *w_zero = f->w_zero;
    const uint32_t x_zero = (uint32_t)f->x_zero, x_rest = (uint32_t)f->k * x_zero;
    const uint32_t x_sum = (uint32_t)f->x_sum;
    const float *w_scale = f->w_scale, *bias = f->bias, *residual = f->residual;
    const float x_scale = f->x_scale;
    int32_t whole[TN__QUANT_COLUMNS], *to = f->whole ? f->whole : whole;
    float y[TN__QUANT_COLUMNS], *at = f->quantized ? y : f->y;
    const int64_t n = f->n;

    TN__IVDEP
    for (int64_t i = 0; i < n; i++)
        to[i] = (int32_t)((uint32_t)sums[i] - x_zero * (uint32_t)w_sum[i] +
                          (uint32_t)w_zero[i] * (x_rest - x_sum));
    if (f->whole)
        return;
    TN__IVDEP
    for (int64_t i = 0; i < n; i++)
        at[i] = (float)to[i] * (x_scale * w_scale[i]);
    if (bias)
        add(n, bias, at);
    if (residual)
        add(n, residual, at);
    bound(n, f->min, f->max, at);
    if (!f->quantized)
        return;
    to_bytes(n, y, f->y_scale, f->y_zero, f->is_signed ? -128 : 0, f->is_signed ? 127 : 255, f->y);
}

/* The smallest and the largest number, and 0; NaN is passed over. */
static void range_of(int64_t n, const float *x, float *least, float *most)
{
    float low[LANES] = { 0 }, high[LANES] = { 0 };
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            low[j] = x[i + j] < low[j] ? x[i + j] : low[j];
            high[j] = x[i + j] > high[j] ? x[i + j] : high[j];
        }
    for (; i < n; i++) {
        low[0] = x[i] < low[0] ? x[i] : low[0];
        high[0] = x[i] > high[0] ? x[i] : high[0];
    }
    for (int j = 1; j < LANES; j++) {
        low[0] = low[j] < low[0] ? low[j] : low[0];
        high[0] = high[j] > high[0] ? high[j] : high[0];
    }
    *least = low[0];
    *most = high[0];
}

static void row(struct tn__quant_row *r)
{
    const int32_t from = r->symmetric ? -127 : r->is_signed ? -128 : 0;
    const int32_t to = r->is_signed ? 127 : 255;
    float low, high, scale;
    int32_t zero = 0;

    range_of(r->n, r->x, &low, &high);
    scale = r->symmetric ? (-low > high ? -low : high) / 127.0f : (high - low) / 255.0f;
    if (scale == 0)
        scale = 1;
    if (!r->symmetric && r->n > 0)
        zero = to_integer(-low, scale, from, from, to);
    r->scale = scale;
    r->zero = zero;
    to_bytes(r->n, r->x, scale, zero, from, to, r->q);
}

static int64_t flip(int64_t n, const void *x, int by, int8_t *to)
{
    enum { PART = 1 << 16 };
    const uint8_t *from = x;
    int64_t sum = 0;

    for (int64_t i = 0; i < n; i += PART) {
        int64_t end = n - i < PART ? n : i + PART;
        int32_t part = 0;

        for (int64_t j = i; j < end; j++) {
            to[j] = (int8_t)(from[j] ^ by);
            part += to[j];
        }
        sum += part;
    }
    return sum;
}

static void x_blocks(int64_t k, const float *x, int8_t *q, float *scale, int32_t *sum)
{
    enum { BLOCK = TN__QUANT_BLOCK };

    for (int64_t i = 0; i < k; i += BLOCK, q += BLOCK) {
        float some[BLOCK] = { 0 };
        struct tn__quant_row r = { BLOCK, x + i, true, true, q, 0, 0 };

        if (k - i < BLOCK) {
            memcpy(some, x + i, (size_t)(k - i) * sizeof *some);
            r.x = some;
        }
        row(&r);
        *scale++ = r.scale;
        *sum = 0;
        for (int j = 0; j < BLOCK; j++)
            *sum += q[j];
        sum++;
    }
}

static void centre(int64_t n, const void *x, bool is_signed, int32_t zero, int32_t *to)
{
    const uint8_t *from = x;
    const int32_t flip = is_signed ? 128 : 0, less = zero + flip;

    TN__IVDEP
    for (int64_t i = 0; i < n; i++)
        to[i] = (from[i] ^ flip) - less;
}

static void tap(int64_t n, const int32_t *x, int32_t w, int32_t *sums)
{
    TN__IVDEP
    for (int64_t i = 0; i < n; i++)
        sums[i] += x[i] * w;
}

static void transpose(int64_t count, int64_t n, const float *from, float *to)
{
    int64_t i = 0;

    if (count == TN__QUANT_PANEL)
        i = transpose_eights(n, from, to);
    for (; i < n; i++)
        for (int64_t c = 0; c < TN__QUANT_PANEL; c++)
            to[i * TN__QUANT_PANEL + c] = c < count ? from[c * n + i] : 0;
}

#define LOOPS_(set) tn__quant_loops_##set
#define LOOPS(set) LOOPS_(set)
const struct tn__quant_loops LOOPS(TN__SIMD_SET) = {
    .product = product,
    .blocks = blocks,
    .finish = finish,
    .row = row,
    .flip = flip,
    .x_blocks = x_blocks,
    .transpose = transpose,
    .centre = centre,
    .tap = tap,
    .to_bytes = to_bytes,
};
