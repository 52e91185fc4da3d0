/* SPDX-License-Identifier: MIT
 *
 * The gradient of the input, which is also a transposed convolution, for few channels. The product
 * of the pixels of gy with the whole weight gives the windows [kernel row][kernel column][channel]
 * that each pixel adds to the image, and the rows of a window are contiguous in the image's lines.
 * A piece computes some lines of the image. */
#include <string.h>

#include "base/scratch.h"
#include "base/vectorize.h"
#include "conv/conv.h"
#include "matmul/gemm.h"
#include "simd/simd.h"

enum {
    ROWS = 96,  /* pixels of gy that are multiplied together, about */
    PIECES = 16 /* pieces to aim for */
};

struct spread {
    const struct tn__windows *w;
    const struct tn__images *gy, *gx;
    const char *panels;
    int64_t window; /* elements of a window */
    int64_t around; /* elements of a row of a window */
    int64_t line;   /* elements of a line of the image, with padding */
    int64_t width;  /* columns of a panel */
    int64_t lines;  /* lines of the image in a piece */
    int64_t pieces; /* pieces of an image */
};

bool tn__conv_few_channels_takes(const struct tn__windows *w)
{
    return w->groups == 1 && w->channels < tn__simd.gemm->strips[w->ct].vector && w->taps > 1 &&
           w->size[0] == 1 && w->kernel[0] == 1 && w->count[0] == 1 && w->padding[0] == 0 &&
           w->dilation[2] == 1 && w->channels * w->taps > w->channels;
}

#define ADD(s, T)                                                                                  \
    static void add_##s(int64_t n, T *to, const T *from)                                           \
    {                                                                                              \
        TN__IVDEP for (int64_t i = 0; i < n; i++) to[i] += from[i];                                \
    }
ADD(f32, float)
ADD(f64, double)

/* Adds the windows of line h of gy, `pitch` elements apart, to lines [first, first + count) of the
 * image. Windows that overlap are not added one after the other, because each would wait for the
 * one before. */
static void add_windows(const struct spread *f, int64_t h, const char *windows, int64_t pitch,
                        int64_t first, int64_t count, char *lines)
{
    const struct tn__windows *w = f->w;
    const int64_t item = w->item, step = w->stride[2] * w->channels;
    const int64_t apart = (w->kernel[2] + w->stride[2] - 1) / w->stride[2];
    const int64_t top = h * w->stride[1] - w->padding[1] - first;

    for (int64_t start = 0; start < apart; start++)
        for (int64_t k = 0; k < w->kernel[1]; k++) {
            const int64_t row = top + k * w->dilation[1];
            char *to = lines + row * f->line * item;
            if (row < 0 || row >= count)
                continue;
            for (int64_t p = start; p < w->count[2]; p += apart) {
                const char *from = windows + (p * pitch + k * f->around) * item;
                if (w->ct == TN__F32)
                    add_f32(f->around, (float *)(void *)(to + p * step * item),
                            (const float *)(const void *)from);
                else
                    add_f64(f->around, (double *)(void *)(to + p * step * item),
                            (const double *)(const void *)from);
            }
        }
}

/* Copies a line without its padding to line `row` of the image. */
static void store_line(const struct spread *f, const char *line, int64_t image, int64_t row)
{
    const struct tn__windows *w = f->w;
    const int64_t item = w->item, pixel = w->channels * item, step = f->gx->step[2] * item;
    const int64_t wide = f->line / w->channels - w->padding[2];
    const int64_t seen = wide < 0 ? 0 : wide < w->size[2] ? wide : w->size[2];
    char *to = f->gx->at + (image * f->gx->image + row * f->gx->step[1]) * item;

    line += w->padding[2] * pixel;
    if (step == pixel) {
        memcpy(to, line, (size_t)(seen * pixel));
        memset(to + seen * pixel, 0, (size_t)((w->size[2] - seen) * pixel));
        return;
    }
    for (int64_t c = 0; c < w->size[2]; c++)
        if (c < seen)
            memcpy(to + c * step, line + c * pixel, (size_t)pixel);
        else
            memset(to + c * step, 0, (size_t)pixel);
}

static tn_status piece(const struct spread *f, int64_t index)
{
    const struct tn__windows *w = f->w;
    const int64_t item = w->item, image = index / f->pieces, first = index % f->pieces * f->lines;
    const int64_t count = w->size[1] - first < f->lines ? w->size[1] - first : f->lines;
    const int64_t reach = (w->kernel[1] - 1) * w->dilation[1], pitch = tn__up(f->window, 16);
    const int64_t low = first + w->padding[1] - reach, high = first + count - 1 + w->padding[1];
    const int64_t from = low > 0 ? (low + w->stride[1] - 1) / w->stride[1] : 0;
    const int64_t end = high / w->stride[1] + 1 < w->count[1] ? high / w->stride[1] + 1
                                                              : w->count[1];
    const bool even = f->gy->step[1] == w->count[2] * f->gy->step[2];
    int64_t together = even && w->count[2] < ROWS ? ROWS / w->count[2] : 1;
    const size_t bytes = (size_t)(count * f->line * item);
    char *lines = tn__scratch_take(bytes + (size_t)(together * w->count[2] * pitch * item)),
         *windows = lines + bytes;
    struct tn__gemm g = { .ct = w->ct,
                          .n = f->window,
                          .k = w->outputs,
                          .a_step = f->gy->step[2],
                          .b = f->panels,
                          .b_step = f->width,
                          .b_panel = w->outputs * f->width,
                          .width = f->width,
                          .c = windows,
                          .ldc = pitch };

    if (!lines)
        return TN_ERR_MEMORY;
    memset(lines, 0, bytes);
    for (int64_t h = from; h < end; h += together) {
        together = end - h < together ? end - h : together;
        g.m = together * w->count[2];
        g.a = f->gy->at + (image * f->gy->image + h * f->gy->step[1]) * item;
        tn__gemm_run(&g);
        for (int64_t i = 0; i < together; i++)
            add_windows(f, h + i, windows + i * w->count[2] * pitch * item, pitch, first, count,
                        lines);
    }
    for (int64_t i = 0; i < count; i++)
        store_line(f, lines + i * f->line * item, image, first + i);
    tn__scratch_give(lines);
    return TN_OK;
}

static tn_status pieces(void *user, int64_t begin, int64_t end)
{
    tn_status status = TN_OK;

    for (int64_t i = begin; i < end && status == TN_OK; i++)
        status = piece(user, i);
    return status;
}

tn_status tn__conv_few_channels_back(const struct tn__windows *w, const struct tn__images *gy,
                                     const struct tn__images *gx, const char *panels)
{
    struct spread f = { .w = w, .gy = gy, .gx = gx, .panels = panels };

    f.window = w->taps * w->channels;
    f.around = w->kernel[2] * w->channels;
    f.line = ((w->count[2] - 1) * w->stride[2] + w->kernel[2]) * w->channels;
    f.width = tn__gemm_width(w->ct, f.window);
    f.pieces = (PIECES + w->images - 1) / w->images;
    f.lines = (w->size[1] + f.pieces - 1) / f.pieces;
    if (f.lines < 2 * w->kernel[1]) /* lines of gy at the edges are multiplied twice */
        f.lines = 2 * w->kernel[1] < w->size[1] ? 2 * w->kernel[1] : w->size[1];
    f.pieces = (w->size[1] + f.lines - 1) / f.lines;
    return tn_parallel_for(w->images * f.pieces, 1, pieces, &f);
}
