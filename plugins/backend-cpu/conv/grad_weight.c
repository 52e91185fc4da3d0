/* SPDX-License-Identifier: MIT
 *
 * The gradient of a convolution's weight: the transposed matrix of gy's pixels times the matrix of
 * x's windows. A piece of the work is a range of taps, a range of outputs and a part of all pixels.
 * Each part of the pixels has its own sums, and at the end the sums of all parts are added in
 * order. Pieces depend on the shape alone, so the result has the same bits for any number of
 * threads. */
#include <string.h>

#include "base/scratch.h"
#include "base/span.h"
#include "conv/conv.h"
#include "conv/winograd.h"
#include "matmul/gemm.h"
#include "op/copy.h"
#include "op/float32_call.h"
#include "simd/simd.h"

enum {
    ROWS = 128,      /* windows that are copied at a time */
    DEPTH = 576,     /* approximate number of elements of a window in a piece */
    ACROSS = 252,    /* outputs of a piece: a multiple of the rows of a strip */
    PIECES = 12,     /* minimum number of pieces to aim for */
    KEPT = 1 << 21,  /* maximum number of elements of the sums of all parts */
    SHORTEST = 1024, /* minimum number of pixels of a part */
};

struct weigh {
    struct tn__windows w;
    struct tn__images gy, x;
    char *gw;
    int64_t taps, tap_ranges;      /* taps of a piece; number of ranges of taps */
    int64_t across, output_ranges; /* outputs of a piece; number of ranges of outputs */
    int64_t rows, parts; /* pixels (direct: lines of results) of a part, number of parts */
    bool direct;         /* direct.c computes the parts */
    char *sums;          /* [part][group][output][tap][channel] */
    int64_t size;        /* elements of the sums of a part */
    /* Windows of one pixel: the sums have the order of gw, so the first part's are there, and
     * `sums` begins with those of the second. */
    bool in_place;
};

static char *sums_of(const struct weigh *f, int64_t part)
{
    if (f->in_place && part == 0)
        return f->gw;
    return f->sums + (part - f->in_place) * f->size * f->w.item;
}

static tn_status weigh_piece(const struct weigh *f, int64_t index)
{
    const struct tn__windows *w = &f->w;
    int64_t item = w->item, part = index % f->parts, rest = index / f->parts;
    if (f->direct) {
        const int64_t lines = w->images * w->count[1] - part * f->rows;
        return tn__direct_weight(w, &f->x, &f->gy, part * f->rows,
                                 lines < f->rows ? lines : f->rows, sums_of(f, part));
    }
    int64_t tap = rest % f->tap_ranges * f->taps, group;
    int64_t output = rest / f->tap_ranges % f->output_ranges * f->across;
    int64_t all = w->images * w->places, first = part * f->rows, step;
    int64_t last = all - first < f->rows ? all : first + f->rows;
    int64_t taps = w->taps - tap < f->taps ? w->taps - tap : f->taps, n = taps * w->channels;
    int64_t depth = w->taps * w->channels;
    bool plain = tn__im2col_plain(w, &f->x, &step);
    struct tn__gemm g = {
        .ct = w->ct, .by_columns = true, .n = n, .a_step = f->gy.step[TN__DIMS - 1], .ldc = depth
    };
    char *rows = NULL;

    group = rest / f->tap_ranges / f->output_ranges;
    g.width = g.b_panel = tn__gemm_width(w->ct, n);
    plain = plain && n % g.width == 0;
    g.b_step = plain ? step : tn__up(n, g.width) + 16;
    g.m = w->outputs - output < f->across ? w->outputs - output : f->across;
    g.k = ROWS;
    const int64_t strip = tn__gemm_strip(w->ct, ROWS), mr = tn__simd.gemm->strips[w->ct].mr;
    const int64_t strips = (g.m + mr - 1) / mr, a_step = g.a_step;
    const bool crowded = tn__gemm_crowded(&g);
    char *gathered = crowded ? tn__scratch_take((size_t)(strips * strip * item)) : NULL;
    if (crowded && !gathered)
        return TN_ERR_MEMORY;
    if (!plain) {
        rows = tn__scratch_take((size_t)(ROWS * g.b_step * item));
        if (!rows) {
            tn__scratch_give(gathered);
            return TN_ERR_MEMORY;
        }
        memset(rows, 0, (size_t)(ROWS * g.b_step * item));
    }
    g.c = sums_of(f, part) + ((group * w->outputs + output) * depth + tap * w->channels) * item;
    for (int64_t at = first; at < last; at += ROWS) {
        g.k = last - at < ROWS ? last - at : ROWS;
        g.a = f->gy.at + (at * a_step + group * w->outputs + output) * item;
        if (crowded) {
            g.a_step = a_step;
            tn__gemm_gather(&g, strip, 0, strips, gathered);
            g.a = gathered;
            g.a_step = mr;
            g.a_strip = strip;
        }
        if (plain)
            g.b = f->x.at + (at * step + group * w->channels) * item;
        else
            tn__im2col_rows(w, &f->x, group, at, g.k, tap, taps, rows, g.b_step);
        if (!plain)
            g.b = rows;
        tn__gemm_run(&g);
        g.add = true;
    }
    tn__scratch_give(rows);
    tn__scratch_give(gathered);
    return TN_OK;
}

static tn_status weigh_part(void *user, int64_t begin, int64_t end)
{
    tn_status status = TN_OK;
    for (int64_t i = begin; i < end && status == TN_OK; i++)
        status = weigh_piece(user, i);
    return status;
}

#define ADD_UP(s, T)                                                                               \
    static void add_up_##s(const struct weigh *f, int64_t row, int64_t n)                          \
    {                                                                                              \
        T *to = (T *)(void *)sums_of(f, 0) + row * n;                                              \
        for (int64_t p = 1; p < f->parts; p++) {                                                   \
            const T *from = (const T *)(const void *)sums_of(f, p) + row * n;                      \
            TN__IVDEP for (int64_t i = 0; i < n; i++) to[i] += from[i];                            \
        }                                                                                          \
    }
ADD_UP(f32, float)
ADD_UP(f64, double)

/* Adds the sums of all parts for outputs [begin, end) and, unless they are there already, stores
 * them in gw as [output][channel][tap]. */
static tn_status finish(void *user, int64_t begin, int64_t end)
{
    const struct weigh *f = user;
    const struct tn__windows *w = &f->w;
    int64_t n = w->taps * w->channels;

    for (int64_t i = begin; i < end; i++) {
        if (w->ct == TN__F32)
            add_up_f32(f, i, n);
        else
            add_up_f64(f, i, n);
        if (f->in_place)
            continue;
        const char *from = f->sums + i * n * w->item;
        char *to = f->gw + i * n * w->item;
        if (w->item == 4)
            tn__copy_transpose_4(w->channels, w->taps, to, w->taps * 4, from, w->channels * 4);
        else
            tn__copy_transpose_8(w->channels, w->taps, to, w->taps * 8, from, w->channels * 8);
    }
    return TN_OK;
}

/* Chooses the pieces. */
static void cut(struct weigh *f)
{
    const struct tn__windows *w = &f->w;
    int64_t all = w->images * w->places;

    f->direct = tn__direct_takes(w);
    f->taps = f->direct ? w->taps : w->channels < DEPTH ? DEPTH / w->channels : 1;
    f->taps = f->taps < w->taps ? f->taps : w->taps;
    f->tap_ranges = (w->taps + f->taps - 1) / f->taps;
    f->across = f->direct || w->outputs < ACROSS ? w->outputs : ACROSS;
    f->output_ranges = (w->outputs + f->across - 1) / f->across;
    f->size = w->groups * w->outputs * w->channels * w->taps;
    f->in_place = w->taps == 1;
    f->parts = PIECES / (f->tap_ranges * f->output_ranges * w->groups);
    if (f->parts > KEPT / (f->size + 1))
        f->parts = KEPT / (f->size + 1);
    if (f->parts > all / SHORTEST)
        f->parts = all / SHORTEST;
    f->parts = f->parts < 1 ? 1 : f->parts;
    if (f->direct)
        all = w->images * w->count[1];
    f->rows = tn__up((all + f->parts - 1) / f->parts, f->direct ? 1 : ROWS);
    f->parts = (all + f->rows - 1) / f->rows;
}

static tn_status run_convolution_grad_weight(const tn_call *call)
{
    const tn_convolution_grad_weight_options *o = call->options;
    const tn_view *gy = call->in[0], *x = call->in[1], *gw = call->out[0];
    struct weigh f = { .gw = tn__view_at(gw) };
    tn_status status;

    if (tn__span_view_count(gw) == 0)
        return TN_OK;
    if (tn__span_view_count(gy) == 0)
        return tn__copy_zero(gw);
    if (tn__float32_call_needed(call))
        return tn__float32_call_run(call, 0, run_convolution_grad_weight);
    tn__im2col_windows(&f.w, x, gy, gw, o->stride, o->padding, o->dilation, o->groups);
    cut(&f);
    status = tn__images_take(&f.x, x, false);
    if (status != TN_OK)
        return status;
    status = tn__images_take(&f.gy, gy, false);
    if (status == TN_OK && tn__depthwise_takes(&f.w)) {
        status = tn__depthwise_weight(&f.w, &f.x, &f.gy, f.gw);
        tn__images_done(&f.gy, gy, false);
    } else if (status == TN_OK && tn__winograd_takes_weight(&f.w)) {
        status = tn__winograd_weight(&f.w, &f.x, &f.gy, (float *)(void *)f.gw);
        tn__images_done(&f.gy, gy, false);
    } else if (status == TN_OK) {
        f.sums = tn__scratch_take((size_t)((f.parts - f.in_place) * f.size * f.w.item));
        status = f.sums ? tn_parallel_for(f.parts * f.tap_ranges * f.output_ranges * f.w.groups, 1,
                                          weigh_part, &f)
                        : TN_ERR_MEMORY;
        if (status == TN_OK && (f.parts > 1 || !f.in_place))
            status = tn_parallel_for(f.w.groups * f.w.outputs,
                                     1 + 32768 / (f.w.taps * f.w.channels), finish, &f);
        tn__scratch_give(f.sums);
        tn__images_done(&f.gy, gy, false);
    }
    tn__images_done(&f.x, x, false);
    return status;
}

/* The kernel writes a row-major result. The core allocates results so; a result that the caller
 * supplied may have other strides, and such a call is declined. */
static bool supports_unit_padding(const tn_call *call, char *reason, size_t size)
{
    if (tn__span_result_dense(call))
        return true;
    tn_snprint(reason, size, "the gradient of the weight must be contiguous");
    return false;
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL_SUPPORTS(convolution_grad_weight, TN__F32_F64 | TN__NARROW, supports_unit_padding),
};
TN__KERNEL_TABLE(conv_grad_weight);
