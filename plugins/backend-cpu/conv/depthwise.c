/* SPDX-License-Identifier: MIT
 *
 * Depthwise convolutions and their gradients, without copying windows: a few pixels at a time that
 * read the same taps, with a loop over all channels. The addresses of the lines that a line of the
 * result needs are computed once for the line. The gradient of the weight is computed pixel by
 * pixel, in parts that depend on the shape alone, so it has the same bits for any number of
 * threads. */
#include <string.h>

#include "base/scratch.h"
#include "base/span.h"
#include "conv/conv.h"
#include "conv/epilogue.h"
#include "matmul/gemm.h"
#include "op/copy.h"
#include "simd/simd.h"

enum {
    TAPS = 128,     /* maximum number of taps of a window */
    PARTS = 16,     /* maximum number of parts of the weight's gradient */
    NEAR = 1 << 19, /* bytes of an image that stays in the second-level cache */
    GRAIN = 1 << 15 /* minimum number of multiplications for one thread */
};

/* Up to TN__PIXELS pixels of a line of `to` that read the same taps of each row of the kernel. */
struct run {
    int64_t at;        /* the first pixel */
    int64_t tap, taps; /* the first tap, how many */
    int64_t place;     /* the pixel of `from` that this tap of the first pixel reads */
    int pixels;
};

struct deep {
    const struct tn__windows *w;
    const struct tn__images *from, *to; /* the image that is read, the image to compute */
    bool back;                          /* computes the gradient of the input: from = gy, to = gx */
    int64_t channels;
    int64_t size[TN__DIMS]; /* of `to` */
    char *weight;           /* [tap][channel] */
    char *bias;             /* [channel], or NULL */
    char *sums;             /* [part][tap][channel] */
    const struct tn__limits *limits;
    int64_t lines, parts; /* lines of `to` in all images; parts of the weight's gradient */
    /* The pixels of a line; NULL: one by one. From one pixel of a run to the next, `along` pixels
     * of `from`; from one tap to the next, `tap_along`. */
    struct run *runs;
    int64_t n_runs, along, tap_along;
};

bool tn__depthwise_takes(const struct tn__windows *w)
{
    return w->groups > 1 && w->channels == 1 && w->outputs == 1 && w->taps <= TAPS;
}

/* Sets *place to the coordinate in dimension d of the element in `from` that tap k of pixel `at`
 * multiplies. Returns false if there is none: the coordinate is outside of the image or, for the
 * gradient, no window has this pixel at tap k. */
static bool looks_at(const struct deep *f, int32_t d, int64_t at, int64_t k, int64_t *place)
{
    const struct tn__windows *w = f->w;
    int64_t c;

    if (!f->back) {
        *place = at * w->stride[d] - w->padding[d] + k * w->dilation[d];
        return *place >= 0 && *place < w->size[d];
    }
    c = at + w->padding[d] - k * w->dilation[d];
    *place = w->stride[d] == 1 ? c : c / w->stride[d];
    return c >= 0 && *place * w->stride[d] == c && *place < w->count[d];
}

/* The lines of `from` that one line of `to` needs, and for each the first tap of its row in the
 * kernel. */
struct rows {
    int64_t count;
    const char *line[TAPS];
    int64_t tap[TAPS];
    char *target; /* the line of `to` */
};

static void rows_of(const struct deep *f, int64_t index, struct rows *r)
{
    const struct tn__windows *w = f->w;
    int64_t image = index / f->size[1] / f->size[0], down = index % f->size[1],
            deep = index / f->size[1] % f->size[0], d, h;

    r->count = 0;
    r->target = f->to->at +
                (image * f->to->image + deep * f->to->step[0] + down * f->to->step[1]) * w->item;
    for (int64_t k0 = 0; k0 < w->kernel[0]; k0++)
        for (int64_t k1 = 0; k1 < w->kernel[1]; k1++)
            if (looks_at(f, 0, deep, k0, &d) && looks_at(f, 1, down, k1, &h)) {
                r->line[r->count] = f->from->at + (image * f->from->image + d * f->from->step[0] +
                                                   h * f->from->step[1]) *
                                                      w->item;
                r->tap[r->count++] = (k0 * w->kernel[1] + k1) * w->kernel[2];
            }
}

/* Stores in x[] the addresses of the pixels that pixel `at` of the line multiplies, and in row[]
 * for each of them its tap's row of table[tap][channel]. Returns their count. */
static int64_t meet(const struct deep *f, const struct rows *r, int64_t at, char *table,
                    const void **x, void **row)
{
    const struct tn__windows *w = f->w;
    int64_t count = 0, place;

    for (int64_t i = 0; i < r->count; i++)
        for (int64_t k = 0; k < w->kernel[2]; k++) {
            if (!looks_at(f, 2, at, k, &place))
                continue;
            x[count] = r->line[i] + place * f->from->step[2] * w->item;
            row[count++] = table + (r->tap[i] + k) * f->channels * w->item;
        }
    return count;
}

/* Divides the pixels of a line into runs, in scratch memory: pixels at the edges read other taps
 * than their neighbours. Makes none for gradients with strides, whose neighbours always do, and of
 * large images, where writing several pixels at a time was slower. */
static tn_status make_runs(struct deep *f)
{
    const struct tn__windows *w = f->w;

    f->along = f->back ? 1 : w->stride[2];
    f->tap_along = f->back ? -w->dilation[2] : w->dilation[2];
    if (f->back && (w->stride[2] > 1 || f->size[1] * f->size[2] > NEAR / (f->channels * w->item)))
        return TN_OK;
    f->runs = tn__scratch_take((size_t)f->size[2] * sizeof *f->runs);
    if (!f->runs)
        return TN_ERR_MEMORY;
    for (int64_t at = 0; at < f->size[2]; at++) {
        struct run here = { .at = at, .pixels = 1 };
        struct run *last = f->n_runs > 0 ? &f->runs[f->n_runs - 1] : NULL;
        int64_t place;
        while (here.tap < w->kernel[2] && !looks_at(f, 2, at, here.tap, &here.place))
            here.tap++;
        while (here.tap + here.taps < w->kernel[2] &&
               looks_at(f, 2, at, here.tap + here.taps, &place))
            here.taps++;
        if (here.taps == 0)
            here.tap = here.place = 0;
        if (last && last->pixels < TN__PIXELS && last->tap == here.tap && last->taps == here.taps)
            last->pixels++;
        else
            f->runs[f->n_runs++] = here;
    }
    return TN_OK;
}

/* Computes one pixel of a line. */
static void weigh_pixel(const struct deep *f, const struct rows *r, int64_t at)
{
    const void *x[TAPS];
    void *weight[TAPS];
    const int64_t count = meet(f, r, at, f->weight, x, weight);

    tn__simd.gemm->weigh_rows[f->w->ct](f->channels, count, x, weight, f->bias, f->limits,
                                        r->target + at * f->to->step[2] * f->w->item);
}

static void weigh_run(const struct deep *f, const struct rows *r, const struct run *run)
{
    const struct tn__windows *w = f->w;
    const void *x[TAPS], *weight[TAPS];
    const int64_t step = f->from->step[2];

    for (int64_t i = 0; i < r->count; i++) {
        x[i] = r->line[i] + run->place * step * w->item;
        weight[i] = f->weight + (r->tap[i] + run->tap) * f->channels * w->item;
    }
    tn__simd.gemm->weigh_pixels[w->ct](
        &(struct tn__pixels){ .n = f->channels,
                              .rows = r->count,
                              .taps = run->taps,
                              .pixels = run->pixels,
                              .x = x,
                              .w = weight,
                              .tap = run->taps > 1 ? f->tap_along * step : 0,
                              .pixel = run->pixels > 1 ? f->along * step : 0,
                              .w_tap = f->channels,
                              .bias = f->bias,
                              .y = r->target + run->at * f->to->step[2] * w->item,
                              .y_step = f->to->step[2],
                              .limits = f->limits });
}

static tn_status lines_part(void *user, int64_t begin, int64_t end)
{
    const struct deep *f = user;
    struct rows r;

    for (int64_t line = begin; line < end; line++) {
        rows_of(f, line, &r);
        for (int64_t at = 0; at < f->size[2] && !f->runs; at++)
            weigh_pixel(f, &r, at);
        for (int64_t i = 0; i < f->n_runs; i++) {
            weigh_run(f, &r, &f->runs[i]);
            if (tn__epilogue_beyond_limits(f->w->after))
                tn__epilogue_pixels(f->w->after, line * f->size[2] + f->runs[i].at,
                                    f->runs[i].pixels, 0, f->channels);
        }
    }
    return TN_OK;
}

/* Computes parts [begin, end) of the weight's gradient. The sums over a line are computed
 * separately and then added to the sums of the part, because one long sum would lose more
 * precision. */
static tn_status weigh_part(void *user, int64_t begin, int64_t end)
{
    const struct deep *f = user;
    const struct tn__windows *w = f->w;
    int64_t numbers = w->taps * f->channels;
    const void *x[TAPS];
    void *sum[TAPS];
    struct rows r;
    char *here = tn__scratch_take((size_t)(numbers * w->item));

    if (!here)
        return TN_ERR_MEMORY;
    for (int64_t part = begin; part < end; part++) {
        char *all = f->sums + part * numbers * w->item;
        memset(all, 0, (size_t)(numbers * w->item));
        for (int64_t line = part * f->lines / f->parts; line < (part + 1) * f->lines / f->parts;
             line++) {
            memset(here, 0, (size_t)(numbers * w->item));
            rows_of(f, line, &r);
            for (int64_t at = 0; at < f->size[2]; at++) {
                int64_t count = meet(f, &r, at, here, x, sum);
                const char *gy = r.target + at * f->to->step[2] * w->item;
                tn__simd.gemm->spread_row[w->ct](f->channels, count, x, gy, sum);
            }
            tn__gemm_add_row(w->ct, numbers, here, all);
        }
    }
    tn__scratch_give(here);
    return TN_OK;
}

/* Copies the weight and the bias, which may have any strides, to f->weight and f->bias. */
static tn_status read_weight(struct deep *f, const tn_view *weight, const tn_view *bias)
{
    const struct tn__windows *w = f->w;
    int32_t dims = weight->ndim - 2;
    int64_t item = w->item;

    f->weight = tn__scratch_take((size_t)(w->taps * f->channels * item));
    f->bias = bias ? tn__scratch_take((size_t)(f->channels * item)) : NULL;
    if (!f->weight || (bias && !f->bias))
        return TN_ERR_MEMORY;
    if (tn__span_view_dense(weight) && w->ct == TN__F32)
        tn__copy_transpose_4(w->taps, f->channels, f->weight, f->channels * 4, tn__view_at(weight),
                             w->taps * 4);
    else if (tn__span_view_dense(weight))
        tn__copy_transpose_8(w->taps, f->channels, f->weight, f->channels * 8, tn__view_at(weight),
                             w->taps * 8);
    for (int64_t tap = 0; tap < w->taps && !tn__span_view_dense(weight); tap++) {
        int64_t rest = tap, from = 0;
        for (int32_t d = dims; d-- > 0; rest /= weight->shape[2 + d])
            from += rest % weight->shape[2 + d] * weight->strides[2 + d];
        for (int64_t c = 0; c < f->channels; c++)
            memcpy(f->weight + (tap * f->channels + c) * item,
                   tn__view_at(weight) + (from + c * weight->strides[0]) * item, (size_t)item);
    }
    for (int64_t c = 0; bias && c < f->channels; c++)
        memcpy(f->bias + c * item, tn__view_at(bias) + c * bias->strides[0] * item, (size_t)item);
    return TN_OK;
}

static tn_status walk(struct deep *f, const tn_view *weight, const tn_view *bias)
{
    const struct tn__windows *w = f->w;
    tn_status status = read_weight(f, weight, bias);

    memcpy(f->size, f->back ? w->size : w->count, sizeof f->size);
    f->lines = w->images * f->size[0] * f->size[1];
    if (status == TN_OK)
        status = make_runs(f);
    if (status == TN_OK)
        status = tn_parallel_for(f->lines, 1 + GRAIN / (w->taps * f->channels * f->size[2]),
                                 lines_part, f);
    tn__scratch_give(f->runs);
    tn__scratch_give(f->bias);
    tn__scratch_give(f->weight);
    return status;
}

tn_status tn__depthwise_forward(const struct tn__windows *w, const struct tn__images *x,
                                const struct tn__images *y, const tn_view *weight,
                                const tn_view *bias)
{
    struct deep f = {
        .w = w, .from = x, .to = y, .channels = w->groups, .limits = tn__epilogue_limits(w->after)
    };

    return walk(&f, weight, bias);
}

tn_status tn__depthwise_back(const struct tn__windows *w, const struct tn__images *gy,
                             const struct tn__images *gx, const tn_view *weight)
{
    struct deep f = {
        .w = w, .from = gy, .to = gx, .channels = w->groups, .back = true, .limits = &tn__no_limits
    };

    return walk(&f, weight, NULL);
}

tn_status tn__depthwise_weight(const struct tn__windows *w, const struct tn__images *x,
                               const struct tn__images *gy, void *gw)
{
    struct deep f = { .w = w, .from = x, .to = gy, .channels = w->groups };
    int64_t numbers = w->taps * f.channels;
    tn_status status;

    memcpy(f.size, w->count, sizeof f.size);
    f.lines = w->images * f.size[0] * f.size[1];
    f.parts = f.lines < PARTS ? f.lines : PARTS;
    f.sums = tn__scratch_take((size_t)(f.parts * numbers * w->item));
    if (!f.sums)
        return TN_ERR_MEMORY;
    status = tn_parallel_for(f.parts, 1, weigh_part, &f);
    for (int64_t part = 1; status == TN_OK && part < f.parts; part++)
        tn__gemm_add_row(w->ct, numbers, f.sums + part * numbers * w->item, f.sums);
    if (status == TN_OK && w->ct == TN__F32)
        tn__copy_transpose_4(f.channels, w->taps, gw, w->taps * 4, f.sums, f.channels * 4);
    else if (status == TN_OK)
        tn__copy_transpose_8(f.channels, w->taps, gw, w->taps * 8, f.sums, f.channels * 8);
    tn__scratch_give(f.sums);
    return status;
}
