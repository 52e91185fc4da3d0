/* SPDX-License-Identifier: MIT
 *
 * The gradient of the input, which is also a transposed convolution, of images with few windows:
 * the weight is much larger than the images, so it is read once and not copied. The product of all
 * windows with a part of the weight is added to the pixels that the taps read. */
#include <string.h>

#include "base/scratch.h"
#include "base/vectorize.h"
#include "conv/conv.h"
#include "matmul/gemm.h"
#include "simd/simd.h"

enum {
    FEW = 64,    /* windows of all images, at most */
    PART = 512,  /* columns of the weight in a piece, approximately */
    HEAVY = 4096 /* elements of the weight for each output, at least */
};

struct few {
    const struct tn__windows *w;
    const struct tn__images *gy, *gx;
    const char *weight;   /* [groups * outputs][channels][taps] */
    int64_t part, pieces; /* channels of a piece; pieces of a group */
};

bool tn__conv_few_windows_takes(const struct tn__windows *w)
{
    return w->images * w->places <= FEW && w->outputs * w->channels * w->taps >= 16 * HEAVY &&
           w->channels % tn__simd.gemm->strips[w->ct].vector == 0;
}

#define ADD_TAP(s, T)                                                                              \
    static void add_tap_##s(int64_t n, int64_t step, const void *from, void *to)                   \
    {                                                                                              \
        const T *x = from;                                                                         \
        T *y = to;                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] += x[i * step];                                                                   \
    }
ADD_TAP(f32, float)
ADD_TAP(f64, double)

/* Adds the products of one window, [channels][taps], to the pixels of an image. */
static void spread(const struct few *f, char *image, int64_t channels, int64_t place,
                   const char *sums)
{
    const struct tn__windows *w = f->w;
    const int64_t at[TN__DIMS] = { place / w->count[2] / w->count[1],
                                   place / w->count[2] % w->count[1], place % w->count[2] };

    for (int64_t tap = 0; tap < w->taps; tap++) {
        const int64_t k[TN__DIMS] = { tap / w->kernel[2] / w->kernel[1],
                                      tap / w->kernel[2] % w->kernel[1], tap % w->kernel[2] };
        int64_t to = 0;
        bool inside = true;
        for (int32_t d = 0; d < TN__DIMS; d++) {
            const int64_t c = at[d] * w->stride[d] - w->padding[d] + k[d] * w->dilation[d];
            inside = inside && c >= 0 && c < w->size[d];
            to += c * f->gx->step[d];
        }
        if (inside)
            (w->ct == TN__F32 ? add_tap_f32 : add_tap_f64)(channels, w->taps, sums + tap * w->item,
                                                           image + to * w->item);
    }
}

static tn_status piece(const struct few *f, int64_t index)
{
    const struct tn__windows *w = f->w;
    const int64_t group = index / f->pieces, first = index % f->pieces * f->part;
    const int64_t channels = w->channels - first < f->part ? w->channels - first : f->part;
    const int64_t columns = channels * w->taps, step = f->gy->step[TN__DIMS - 1];
    struct tn__gemm g = { .ct = w->ct,
                          .m = w->places,
                          .n = columns,
                          .k = w->outputs,
                          .a_step = step,
                          .b = f->weight +
                               (group * w->outputs * w->channels + first) * w->taps * w->item,
                          .b_step = w->channels * w->taps,
                          .width = tn__gemm_width(w->ct, columns),
                          .ldc = columns };
    char *sums = tn__scratch_take((size_t)(w->places * columns * w->item));

    if (!sums)
        return TN_ERR_MEMORY;
    g.b_panel = g.width;
    g.c = sums;
    for (int64_t image = 0; image < w->images; image++) {
        char *at = f->gx->at + (image * f->gx->image + group * w->channels + first) * w->item;
        for (int64_t d = 0; d < w->size[0]; d++)
            for (int64_t h = 0; h < w->size[1]; h++)
                for (int64_t c = 0; c < w->size[2]; c++)
                    memset(at + (d * f->gx->step[0] + h * f->gx->step[1] + c * f->gx->step[2]) *
                                    w->item,
                           0, (size_t)(channels * w->item));
        g.a = f->gy->at + (image * f->gy->image + group * w->outputs) * w->item;
        tn__gemm_run(&g);
        for (int64_t place = 0; place < w->places; place++)
            spread(f, at, channels, place, sums + place * columns * w->item);
    }
    tn__scratch_give(sums);
    return TN_OK;
}

static tn_status pieces(void *user, int64_t begin, int64_t end)
{
    tn_status status = TN_OK;

    for (int64_t i = begin; i < end && status == TN_OK; i++)
        status = piece(user, i);
    return status;
}

tn_status tn__conv_few_windows_back(const struct tn__windows *w, const struct tn__images *gy,
                                    const struct tn__images *gx, const char *weight)
{
    struct few f = { .w = w, .gy = gy, .gx = gx, .weight = weight };

    f.part = tn__up((PART + w->taps - 1) / w->taps, tn__simd.gemm->strips[w->ct].vector);
    f.pieces = (w->channels + f.part - 1) / f.part;
    return tn_parallel_for(w->groups * f.pieces, 1, pieces, &f);
}
