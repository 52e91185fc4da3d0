/* SPDX-License-Identifier: MIT
 *
 * Convolutions of 3 x 3 windows by Winograd's method F(4 x 4, 3 x 3): a block of tiles of the image
 * is transformed, 36 products of matrices follow, and their results are transformed back. Blocks
 * depend on the shape alone, so the result has the same bits for any number of threads. */
#include <string.h>

#include "base/scratch.h"
#include "conv/conv.h"
#include "conv/epilogue.h"
#include "conv/winograd.h"
#include "matmul/gemm.h"
#include "op/copy.h"
#include "simd/simd.h"

enum {
    NEAR = 8,      /* channels whose windows are transposed together */
    WIDTH = 64,    /* columns of a panel of the weight, at most, with any instruction set */
    ACROSS = 128,  /* outputs of a piece */
    LINE = 16,     /* elements of a cache line */
    PARTS = 8,     /* maximum number of parts of the weight's gradient */
    KEPT = 1 << 21 /* elements of the sums of all parts, about: large sums have fewer parts */
};

bool tn__winograd_allowed = true;

struct tiles {
    int64_t down, across, all; /* rows and columns of tiles in an image; tiles of all images */
};

/* Returns the distance between matrices of `n` elements, a multiple of LINE, of which a transform
 * writes one element each: an odd number of cache lines, so that these elements fall into different
 * sets of the cache. At a multiple of 4096 bytes they would all evict each other. */
static int64_t apart(int64_t n)
{
    return n | LINE;
}

static struct tiles tiles_of(const struct tn__windows *w)
{
    struct tiles t;

    t.down = (w->count[1] + TN__WINO_OUT - 1) / TN__WINO_OUT;
    t.across = (w->count[2] + TN__WINO_OUT - 1) / TN__WINO_OUT;
    t.all = t.down * t.across * w->images;
    return t;
}

static bool possible(const struct tn__windows *w)
{
    return tn__winograd_allowed && w->ct == TN__F32 && w->groups == 1 && w->kernel[0] == 1 &&
           w->size[0] == 1 && w->kernel[1] == 3 && w->kernel[2] == 3 && w->stride[0] == 1 &&
           w->stride[1] == 1 && w->stride[2] == 1 && w->padding[0] == 0 && w->dilation[1] == 1 &&
           w->dilation[2] == 1 && w->channels % TN__WINO_LANES == 0 &&
           w->outputs % TN__WINO_LANES == 0 && w->channels >= 32 && w->outputs >= 32;
}

/* Compares estimated costs for a pair of one channel and one output, in units of a multiply-add.
 * Left: the 36 products of each tile and, as a constant, the memory traffic of the transformed
 * weight. Right: the 9 products of each window. The factors weigh the cost of a product in the two
 * methods. One image is a case of inference, where the transformed weight is kept and only read;
 * in training each step writes it, too. */
bool tn__winograd_takes(const struct tn__windows *w)
{
    const double traffic = w->images == 1 ? 800 : 2000;

    return possible(w) && (double)tiles_of(w).all * 36 * 1.4 + traffic <
                              (double)w->images * (double)w->places * 9 * 1.1;
}

bool tn__winograd_takes_weight(const struct tn__windows *w)
{
    return possible(w) && (double)tiles_of(w).all * 36 * 1.6 + 4000 <
                              (double)w->images * (double)w->places * 9 * 1.1;
}

/* Returns the square of n x n elements that begins at (row, column) of an image with rows x columns
 * elements. `row` and `column` may be negative: the part outside of the image is absent. */
static struct tn__square square_at(const struct tn__images *x, int64_t image, int64_t rows,
                                   int64_t columns, int64_t row, int64_t column, int32_t n,
                                   int64_t channels)
{
    struct tn__square s = { .row = x->step[1], .column = x->step[2], .channels = channels };

    s.at = (float *)(void *)x->at + image * x->image + row * s.row + column * s.column;
    s.top = row < 0 ? (int32_t)-row : 0;
    s.left = column < 0 ? (int32_t)-column : 0;
    s.bottom = row + n > rows ? (int32_t)(rows - row) : n;
    s.right = column + n > columns ? (int32_t)(columns - column) : n;
    return s;
}

/* Returns the 6 x 6 elements of x that the windows of tile `index` read. */
static struct tn__square seen(const struct tn__windows *w, const struct tn__images *x,
                              const struct tiles *t, int64_t index)
{
    int64_t image = index / (t->down * t->across), row = index / t->across % t->down,
            column = index % t->across;

    return square_at(x, image, w->size[1], w->size[2], row * TN__WINO_OUT - w->padding[1],
                     column * TN__WINO_OUT - w->padding[2], TN__WINO_IN, w->channels);
}

/* Returns the 4 x 4 results of tile `index`, channels [first, first + channels). */
static struct tn__square made(const struct tn__windows *w, const struct tn__images *y,
                              const struct tiles *t, int64_t index, int64_t first, int64_t channels)
{
    int64_t image = index / (t->down * t->across), row = index / t->across % t->down,
            column = index % t->across;
    struct tn__square s = square_at(y, image, w->count[1], w->count[2], row * TN__WINO_OUT,
                                    column * TN__WINO_OUT, TN__WINO_OUT, channels);

    s.at += first;
    return s;
}

/* ---- forward --------------------------------------------------------------------------------- */

struct forward {
    const struct tn__windows *w;
    const struct tn__images *x, *y;
    const float *bias;
    const char *weight;
    bool turned;
    struct tiles tiles;
    int64_t width, panels;
    float *u;       /* [36][panel][channels][width] */
    int64_t u_step; /* elements of u from one of the 36 matrices to the next */
    /* A piece has `block` tiles and `across` outputs. There are `blocks` pieces along the tiles and
     * `strips` pieces along the outputs. */
    int64_t block, blocks, across, strips;
};

/* Copies the windows of `count` neighbouring channels of `outputs` outputs, which lie
 * `f->w->channels` windows apart in the weight, to rows of NEAR windows. There a transposition
 * reads them from the first-level cache: in the weight, rows that are far apart evict each other.
 */
static void bring_near(const struct forward *f, int64_t count, int64_t outputs, const float *from,
                       float *to)
{
    for (int64_t o = 0; o < outputs; o++)
        memcpy(to + o * NEAR * 9, from + o * f->w->channels * 9, sizeof(float) * (size_t)count * 9);
}

/* Transforms the weight into u: items [begin, end), counted as panel * channels + channel. */
static tn_status weigh(void *user, int64_t begin, int64_t end)
{
    const struct forward *f = user;
    const struct tn__windows *w = f->w;
    const float *weight = (const float *)(const void *)f->weight;
    float nine[9 * WIDTH] __attribute__((aligned(64))), near[WIDTH * NEAR * 9];
    int64_t line = f->width * 4, count;

    for (int64_t i = begin; i < end; i += count) {
        int64_t panel = i / w->channels, c = i % w->channels, first = panel * f->width;
        int64_t here = w->outputs - first < f->width ? w->outputs - first : f->width;
        count = w->channels - c < end - i ? w->channels - c : end - i;
        count = count < NEAR ? count : NEAR;
        if (here < f->width)
            memset(nine, 0, sizeof nine);
        if (!f->turned)
            bring_near(f, count, here, weight + (first * w->channels + c) * 9, near);
        for (int64_t k = 0; k < count; k++) {
            if (f->turned)
                tn__copy_transpose_4(9, here, (char *)nine + 8 * line, -line,
                                     (const char *)(weight + ((c + k) * w->outputs + first) * 9),
                                     9 * 4);
            else
                tn__copy_transpose_4(9, here, (char *)nine, line, (const char *)(near + k * 9),
                                     NEAR * 9 * 4);
            tn__simd.winograd->weight(f->width, nine,
                                      f->u + (panel * w->channels + c + k) * f->width, f->u_step);
        }
    }
    return TN_OK;
}

/* Applies what follows the convolution to the results of tile `index`. */
static void follow(const struct forward *f, const struct tn__square *s, int64_t index,
                   int64_t first)
{
    const struct tn__windows *w = f->w;
    const struct tiles *t = &f->tiles;
    int64_t image = index / (t->down * t->across), row = index / t->across % t->down * TN__WINO_OUT,
            column = index % t->across * TN__WINO_OUT + s->left;

    for (int32_t i = s->top; i < s->bottom; i++)
        tn__epilogue_pixels(w->after, (image * w->count[1] + row + i) * w->count[2] + column,
                            s->right - s->left, first, s->channels);
}

static tn_status forward_piece(const struct forward *f, int64_t index)
{
    const struct tn__windows *w = f->w;
    int64_t first = index / f->strips * f->block, output = index % f->strips * f->across;
    int64_t n = f->tiles.all - first < f->block ? f->tiles.all - first : f->block;
    int64_t outputs = w->outputs - output < f->across ? w->outputs - output : f->across;
    int64_t v_step = apart(n * w->channels), m_step = apart(n * outputs);
    float *v = tn__scratch_take((size_t)(TN__WINO_ALL * (v_step + m_step) + w->channels) * 4),
          *m = v + TN__WINO_ALL * v_step, *zeros = m + TN__WINO_ALL * m_step;
    struct tn__gemm g = { .ct = TN__F32,
                          .m = n,
                          .n = outputs,
                          .k = w->channels,
                          .a_step = w->channels,
                          .b_step = f->width,
                          .b_panel = w->channels * f->width,
                          .width = f->width,
                          .ldc = outputs };

    if (!v)
        return TN_ERR_MEMORY;
    memset(zeros, 0, sizeof *zeros * (size_t)w->channels);
    for (int64_t i = 0; i < n; i++) {
        struct tn__square s = seen(w, f->x, &f->tiles, first + i);
        tn__simd.winograd->input(&s, zeros, v + i * w->channels, v_step);
    }
    for (int64_t i = 0; i < TN__WINO_ALL; i++) {
        g.a = v + i * v_step;
        g.b = f->u + i * f->u_step + output * w->channels;
        g.c = m + i * m_step;
        tn__gemm_run(&g);
    }
    for (int64_t i = 0; i < n; i++) {
        struct tn__square s = made(w, f->y, &f->tiles, first + i, output, outputs);
        tn__simd.winograd->output(m + i * outputs, m_step, f->bias ? f->bias + output : NULL, &s);
        if (w->after)
            follow(f, &s, first + i, output);
    }
    tn__scratch_give(v);
    return TN_OK;
}

static tn_status forward_part(void *user, int64_t begin, int64_t end)
{
    tn_status status = TN_OK;
    for (int64_t i = begin; i < end && status == TN_OK; i++)
        status = forward_piece(user, i);
    return status;
}

/* Returns the number of tiles in a piece: few enough that their transforms stay in the cache, and
 * enough that a weight too large for the cache is not read too often. */
static int64_t block_of(int64_t channels, int64_t outputs)
{
    return channels + outputs <= 64    ? 12
           : channels + outputs <= 128 ? 24
           : channels + outputs <= 256 ? 48
                                       : 96;
}

static int64_t u_step_of(const struct tn__windows *w)
{
    return apart(tn__up(w->outputs, tn__gemm_width(TN__F32, w->outputs)) * w->channels);
}

int64_t tn__winograd_bytes(const struct tn__windows *w)
{
    return TN__WINO_ALL * u_step_of(w) * 4;
}

tn_status tn__winograd_transform(const struct tn__windows *w, const char *weight, bool turned,
                                 float *u)
{
    struct forward f = { .w = w,
                         .weight = weight,
                         .turned = turned,
                         .width = tn__gemm_width(TN__F32, w->outputs),
                         .u = u };

    f.panels = (w->outputs + f.width - 1) / f.width;
    f.u_step = u_step_of(w);
    return tn_parallel_for(f.panels * w->channels, 64, weigh, &f);
}

tn_status tn__winograd_forward(const struct tn__windows *w, const struct tn__images *x,
                               const struct tn__images *y, const float *u, const float *bias)
{
    struct forward f = { .w = w,
                         .x = x,
                         .y = y,
                         .bias = bias,
                         .tiles = tiles_of(w),
                         .width = tn__gemm_width(TN__F32, w->outputs),
                         .u = (float *)(uintptr_t)u };

    f.u_step = u_step_of(w);
    f.block = block_of(w->channels, w->outputs);
    f.blocks = (f.tiles.all + f.block - 1) / f.block;
    f.block = tn__up((f.tiles.all + f.blocks - 1) / f.blocks, 12);
    f.blocks = (f.tiles.all + f.block - 1) / f.block;
    f.across = f.blocks >= 8 || w->outputs < ACROSS ? tn__up(w->outputs, f.width) : ACROSS;
    f.strips = (w->outputs + f.across - 1) / f.across;
    return tn_parallel_for(f.blocks * f.strips, 1, forward_part, &f);
}

/* ---- the gradient of the weight -------------------------------------------------------------- */

struct back {
    const struct tn__windows *w;
    const struct tn__images *x, *gy;
    float *gw;
    struct tiles tiles;
    int64_t part, parts; /* tiles of a part, number of parts */
    /* outputs of a piece, number of ranges of outputs, tiles that are transformed together */
    int64_t across, strips, block;
    float *sums;  /* [part][36][output][channel] */
    int64_t step; /* elements of `sums` from one of the 36 matrices to the next */
};

static tn_status back_piece(const struct back *b, int64_t index)
{
    const struct tn__windows *w = b->w;
    int64_t part = index / b->strips, output = index % b->strips * b->across;
    int64_t first = part * b->part, last = first + b->part;
    int64_t outputs = w->outputs - output < b->across ? w->outputs - output : b->across;
    int64_t v_step = apart(b->block * w->channels), u_step = apart(b->block * outputs);
    int64_t most = w->channels > outputs ? w->channels : outputs;
    float *v = tn__scratch_take((size_t)(TN__WINO_ALL * (v_step + u_step) + most) * 4),
          *u = v + TN__WINO_ALL * v_step, *zeros = u + TN__WINO_ALL * u_step;
    float *sums = b->sums + part * TN__WINO_ALL * b->step + output * w->channels;
    struct tn__gemm g = { .ct = TN__F32,
                          .by_columns = true,
                          .m = outputs,
                          .n = w->channels,
                          .a_step = outputs,
                          .b_step = w->channels,
                          .ldc = w->channels };

    if (!v)
        return TN_ERR_MEMORY;
    memset(zeros, 0, sizeof *zeros * (size_t)most);
    g.width = g.b_panel = tn__gemm_width(TN__F32, w->channels);
    last = last < b->tiles.all ? last : b->tiles.all;
    for (int64_t at = first; at < last; at += b->block) {
        g.k = last - at < b->block ? last - at : b->block;
        for (int64_t i = 0; i < g.k; i++) {
            struct tn__square x = seen(w, b->x, &b->tiles, at + i),
                              gy = made(w, b->gy, &b->tiles, at + i, output, outputs);
            tn__simd.winograd->input(&x, zeros, v + i * w->channels, v_step);
            tn__simd.winograd->gradient(&gy, zeros, u + i * outputs, u_step);
        }
        for (int64_t i = 0; i < TN__WINO_ALL; i++) {
            g.a = u + i * u_step;
            g.b = v + i * v_step;
            g.c = sums + i * b->step;
            tn__gemm_run(&g);
        }
        g.add = true;
    }
    tn__scratch_give(v);
    return TN_OK;
}

static tn_status back_part(void *user, int64_t begin, int64_t end)
{
    tn_status status = TN_OK;
    for (int64_t i = begin; i < end && status == TN_OK; i++)
        status = back_piece(user, i);
    return status;
}

/* For outputs [begin, end): adds the sums of all parts in order, and transforms them back to the
 * 3 x 3 windows of gw. */
static tn_status finish(void *user, int64_t begin, int64_t end)
{
    const struct back *b = user;
    int64_t n = b->w->channels;
    float nine[9 * TN__WINO_LANES], sums[TN__WINO_ALL * TN__WINO_LANES];

    for (int64_t o = begin; o < end; o++)
        for (int64_t c = 0; c < n; c += TN__WINO_LANES) {
            for (int64_t i = 0; i < TN__WINO_ALL; i++) {
                const float *from = b->sums + i * b->step + o * n + c;
                float *to = sums + i * TN__WINO_LANES;
                memcpy(to, from, sizeof(float) * TN__WINO_LANES);
                for (int64_t p = 1; p < b->parts; p++) {
                    from += TN__WINO_ALL * b->step;
                    for (int64_t k = 0; k < TN__WINO_LANES; k++)
                        to[k] += from[k];
                }
            }
            tn__simd.winograd->weight_back(TN__WINO_LANES, sums, TN__WINO_LANES, nine);
            tn__copy_transpose_4(TN__WINO_LANES, 9, (char *)(b->gw + (o * n + c) * 9), 9 * 4,
                                 (const char *)nine, TN__WINO_LANES * 4);
        }
    return TN_OK;
}

tn_status tn__winograd_weight(const struct tn__windows *w, const struct tn__images *x,
                              const struct tn__images *gy, float *gw)
{
    struct back b = { .w = w, .x = x, .gy = gy, .gw = gw, .tiles = tiles_of(w) };
    tn_status status;

    b.step = apart(w->outputs * w->channels);
    b.across = w->outputs < ACROSS ? w->outputs : ACROSS;
    b.strips = (w->outputs + b.across - 1) / b.across;
    b.block = w->outputs * w->channels <= 64 * 64 ? 32 : 96;
    b.parts = KEPT / (TN__WINO_ALL * b.step) / b.strips;
    b.parts = b.parts > PARTS ? PARTS : b.parts < 1 ? 1 : b.parts;
    if (b.parts * b.strips < 2)
        b.parts = 2;
    b.part = tn__up((b.tiles.all + b.parts - 1) / b.parts, b.block);
    b.parts = (b.tiles.all + b.part - 1) / b.part;
    b.sums = tn__scratch_take((size_t)(b.parts * TN__WINO_ALL * b.step * 4));
    status = b.sums ? tn_parallel_for(b.parts * b.strips, 1, back_part, &b) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = tn_parallel_for(w->outputs, 1 + 1024 / w->channels, finish, &b);
    tn__scratch_give(b.sums);
    return status;
}
