/* SPDX-License-Identifier: MIT
 *
 * Convolutions of few channels without copying windows. A few lines of the image are copied
 * together with their padding; in this copy the windows of a line of results are a matrix whose
 * rows overlap in memory. */
#include <string.h>

#include "base/kernel.h"
#include "base/scratch.h"
#include "conv/conv.h"
#include "conv/epilogue.h"
#include "matmul/gemm.h"

enum {
    FEW =
        32, /* from this many channels on, copying windows costs little compared with the product */
    LEAST = 8,      /* minimum lines of results in all images; fewer do not occupy the threads */
    PIECES = 16,    /* pieces to aim for */
    NEAR = 1 << 16, /* approximate number of elements of the lines that a piece copies */
    BEHIND = 64     /* elements after the last line, because vectors may read beyond it */
};

/* Returns the number of elements of an image's line with its padding. */
static int64_t line_of(const struct tn__windows *w)
{
    return ((w->count[2] - 1) * w->stride[2] + w->kernel[2]) * w->channels;
}

/* Returns the number of image lines that `results` lines of results read. */
static int64_t lines_for(const struct tn__windows *w, int64_t results)
{
    return (results - 1) * w->stride[1] + (w->kernel[1] - 1) * w->dilation[1] + 1;
}

/* Whether the sizes of copied lines are far from overflow, and few of their elements are padding.
 */
static bool small_steps(const struct tn__windows *w)
{
    return w->padding[1] <= NEAR && w->padding[2] <= NEAR && w->stride[1] <= NEAR &&
           w->stride[2] <= NEAR;
}

bool tn__direct_takes(const struct tn__windows *w)
{
    return w->groups == 1 && w->channels < FEW && w->taps > 1 && w->size[0] == 1 &&
           w->kernel[0] == 1 && w->count[0] == 1 && w->padding[0] == 0 && w->dilation[2] == 1 &&
           small_steps(w) && w->images * w->count[1] >= LEAST;
}

/* Copies the lines of the image that lines [first, first + results) of results read, with zeros as
 * padding. */
static void copy_lines(const struct tn__windows *w, const struct tn__images *x, int64_t image,
                       int64_t first, int64_t results, char *to)
{
    const int64_t item = w->item, pixel = w->channels * item, line = line_of(w) * item;
    const int64_t lines = lines_for(w, results), top = first * w->stride[1] - w->padding[1];
    const int64_t wide = line / (pixel > 0 ? pixel : 1),
                  left = w->padding[2] < wide ? w->padding[2] : wide;
    const int64_t seen = w->size[2] < wide - left ? w->size[2] : wide - left;

    for (int64_t i = 0; i < lines; i++, to += line) {
        const char *from = x->at + (image * x->image + (top + i) * x->step[1]) * item;
        if (top + i < 0 || top + i >= w->size[1]) {
            memset(to, 0, (size_t)line);
            continue;
        }
        memset(to, 0, (size_t)(left * pixel));
        if (x->step[2] == w->channels)
            memcpy(to + left * pixel, from, (size_t)(seen * pixel));
        else
            for (int64_t c = 0; c < seen; c++)
                memcpy(to + (left + c) * pixel, from + c * x->step[2] * item, (size_t)pixel);
        memset(to + (left + seen) * pixel, 0, (size_t)(line - (left + seen) * pixel));
    }
    memset(to, 0, (size_t)(BEHIND * item));
}

static char *take_lines(const struct tn__windows *w, int64_t results)
{
    return tn__scratch_take((size_t)((lines_for(w, results) * line_of(w) + BEHIND) * w->item));
}

/* Returns the number of lines of results in a piece: few enough that the lines that they read stay
 * in the cache and that there are enough pieces. */
static int64_t lines_at_once(const struct tn__windows *w, int64_t images)
{
    int64_t pieces = (PIECES + images - 1) / images, near = NEAR / (line_of(w) * w->stride[1] + 1);
    int64_t lines = (w->count[1] + pieces - 1) / pieces;

    near = near > 1 ? near : 1;
    return lines < near ? lines : near;
}

/* ---- forward --------------------------------------------------------------------------------- */

struct forward {
    const struct tn__windows *w;
    const struct tn__images *x, *y;
    const char *panels, *bias;
    /* columns of a panel, lines of results in a piece, pieces of an image */
    int64_t width, lines, pieces;
};

static tn_status forward_part(void *user, int64_t begin, int64_t end)
{
    const struct forward *f = user;
    const struct tn__windows *w = f->w;
    const int64_t line = line_of(w), around = w->kernel[2] * w->channels;
    char *lines = take_lines(w, f->lines);
    struct tn__gemm g = { .ct = w->ct,
                          .m = w->count[2],
                          .n = w->outputs,
                          .k = w->taps * w->channels,
                          .rounds = w->kernel[1],
                          .a_jump = w->dilation[1] * line - around,
                          .a_step = w->stride[2] * w->channels,
                          .b = f->panels,
                          .b_step = f->width,
                          .b_panel = w->taps * w->channels * f->width,
                          .width = f->width,
                          .ldc = f->y->step[2],
                          .bias = f->bias,
                          .limits = tn__epilogue_limits(w->after) };

    if (!lines)
        return TN_ERR_MEMORY;
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / f->pieces, first = i % f->pieces * f->lines;
        const int64_t here = w->count[1] - first < f->lines ? w->count[1] - first : f->lines;
        copy_lines(w, f->x, image, first, here, lines);
        for (int64_t h = 0; h < here; h++) {
            g.a = lines + h * w->stride[1] * line * w->item;
            g.c = f->y->at + (image * f->y->image + (first + h) * f->y->step[1]) * w->item;
            tn__gemm_run(&g);
            if (tn__epilogue_beyond_limits(w->after))
                tn__epilogue_pixels(w->after, (image * w->count[1] + first + h) * w->count[2],
                                    w->count[2], 0, w->outputs);
        }
    }
    tn__scratch_give(lines);
    return TN_OK;
}

tn_status tn__direct_forward(const struct tn__windows *w, const struct tn__images *x,
                             const struct tn__images *y, const char *panels, int64_t width,
                             const char *bias)
{
    struct forward f = { w, x, y, panels, bias, width, lines_at_once(w, w->images), 0 };

    f.pieces = (w->count[1] + f.lines - 1) / f.lines;
    return tn_parallel_for(w->images * f.pieces, 1, forward_part, &f);
}

/* ---- the gradient of the weight -------------------------------------------------------------- */

tn_status tn__direct_weight(const struct tn__windows *w, const struct tn__images *x,
                            const struct tn__images *gy, int64_t first, int64_t count, char *sums)
{
    const int64_t line = line_of(w), around = w->kernel[2] * w->channels, last = first + count;
    const int64_t most = lines_at_once(w, PIECES);
    char *lines = take_lines(w, most);
    struct tn__gemm g = { .ct = w->ct,
                          .by_columns = true,
                          .m = w->outputs,
                          .n = around,
                          .a_step = gy->step[2],
                          .a_jump = gy->step[1] - w->count[2] * gy->step[2],
                          .b_step = w->stride[2] * w->channels,
                          .b_jump = w->stride[1] * line - w->count[2] * w->stride[2] * w->channels,
                          .ldc = w->taps * w->channels };

    if (!lines)
        return TN_ERR_MEMORY;
    g.width = g.b_panel = tn__gemm_width(w->ct, around);
    for (int64_t next, at = first; at < last; at = next) {
        const int64_t image = at / w->count[1], top = at % w->count[1];
        next = at + most < last ? at + most : last;
        next = next < (image + 1) * w->count[1] ? next : (image + 1) * w->count[1];
        copy_lines(w, x, image, top, next - at, lines);
        g.rounds = next - at;
        g.k = g.rounds * w->count[2];
        g.a = gy->at + (image * gy->image + top * gy->step[1]) * w->item;
        for (int64_t k = 0; k < w->kernel[1]; k++) {
            g.b = lines + k * w->dilation[1] * line * w->item;
            g.c = sums + k * around * w->item;
            tn__gemm_run(&g);
        }
        g.add = true;
    }
    tn__scratch_give(lines);
    return TN_OK;
}
