/* SPDX-License-Identifier: MIT
 *
 * Convolutions of images whose channels come first, without a copy with the channels last: those
 * whose windows are single pixels, which are products of the weight with the planes, and depthwise
 * ones, whose planes do not depend on each other. */
#include <string.h>

#include "base/scratch.h"
#include "base/span.h"
#include "conv/conv.h"
#include "conv/epilogue.h"
#include "matmul/gemm.h"
#include "simd/simd.h"

enum {
    PANELS = 8, /* panels of a piece of a product */
    LONG = 24,  /* minimum length of a line of results, because each tap has a loop over the line */
    GRAIN = 1 << 16 /* minimum number of multiplications for one thread */
};

struct planes {
    const struct tn__windows *w;
    const char *x, *y, *weight;
    int64_t x_image, y_image; /* bytes from one image to the next */
    int64_t x_plane;          /* elements of a plane of x */
    const tn_view *bias;
    int64_t across, columns; /* product: pieces of a plane, columns of a piece */
};

/* Returns whether the planes of `view` are contiguous, one after the other. */
static bool is_planar(const tn_view *view)
{
    int64_t next = 1;

    for (int32_t d = view->ndim; d-- > 1; next *= view->shape[d])
        if (view->shape[d] > 1 && view->strides[d] != next)
            return false;
    return next > view->shape[1];
}

static bool is_pointwise(const struct tn__windows *w)
{
    for (int32_t i = 0; i < TN__DIMS; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->padding[i] != 0)
            return false;
    return true;
}

bool tn__planes_takes(const struct tn__windows *w, const tn_view *x, const tn_view *y)
{
    return is_planar(x) && is_planar(y) &&
           (tn__depthwise_takes(w) ? w->size[0] == 1 && w->kernel[0] == 1 && w->count[2] >= LONG
                                   : is_pointwise(w));
}

/* Returns the bias of output channel `index`, 0 if there is none. */
static double bias_at(const struct planes *p, int64_t index)
{
    double value = 0;

    if (p->bias)
        tn__dtype_load(tn_view_dtype(p->bias), TN__F64)(
            1, tn__view_at(p->bias) + index * p->bias->strides[0] * p->w->item, 0, &value);
    return value;
}

/* ---- windows of single pixels ---------------------------------------------------------------- */

/* Multiplies the weight of a group by `n` columns of its planes. The columns that do not fill a
 * vector are packed, because whole vectors are read. */
static tn_status multiply(const struct planes *p, const char *weight, const char *x, int64_t n,
                          char *y)
{
    const struct tn__windows *w = p->w;
    const int64_t vector = tn__simd.gemm->strips[w->ct].vector, rest = n % vector, whole = n - rest;
    struct tn__gemm g = { .ct = w->ct,
                          .m = w->outputs,
                          .n = whole,
                          .k = w->channels,
                          .a = weight,
                          .a_step = w->channels,
                          .b = x,
                          .b_step = w->places,
                          .width = tn__gemm_width(w->ct, whole),
                          .c = y,
                          .ldc = w->places };
    char *packed;

    g.b_panel = g.width;
    if (whole > 0)
        tn__gemm_run(&g);
    if (rest == 0)
        return TN_OK;
    packed = tn__scratch_take((size_t)(w->channels * vector * w->item));
    if (!packed)
        return TN_ERR_MEMORY;
    tn__gemm_pack(w->ct, w->channels, rest, vector, x + whole * w->item, w->places, 1, packed);
    g.n = rest;
    g.b = packed;
    g.b_step = g.width = vector;
    g.b_panel = w->channels * vector;
    g.c = y + whole * w->item;
    tn__gemm_run(&g);
    tn__scratch_give(packed);
    return TN_OK;
}

static tn_status pixels_part(void *user, int64_t begin, int64_t end)
{
    const struct planes *p = user;
    const struct tn__windows *w = p->w;
    tn__ew_loop *add = tn__loop_of(TN__EW_add_scalar, w->ct);
    tn_status status = TN_OK;

    for (int64_t i = begin; i < end && status == TN_OK; i++) {
        const int64_t j = i % p->across * p->columns, group = i / p->across % w->groups,
                      image = i / p->across / w->groups;
        const int64_t n = w->places - j < p->columns ? w->places - j : p->columns;
        char *y = (char *)(uintptr_t)p->y + image * p->y_image +
                  (group * w->outputs * w->places + j) * w->item;
        status = multiply(
            p, p->weight + group * w->outputs * w->channels * w->item,
            p->x + image * p->x_image + (group * w->channels * w->places + j) * w->item, n, y);
        for (int64_t c = 0; p->bias && c < w->outputs; c++, y += w->places * w->item) {
            const double numbers[3] = { bias_at(p, group * w->outputs + c), 0, 0 };
            add(n, y, w->item, y, w->item, y, w->item, numbers);
        }
        for (int64_t c = 0; w->after && c < w->outputs; c++)
            tn__epilogue_plane(w->after, image, group * w->outputs + c, j, n);
    }
    return status;
}

/* ---- depthwise ------------------------------------------------------------------------------- */

#define TEMPLATE "conv/planes_template.h"
#include "base/for_floats.h"

/* Copies a line of x with its padding, divided into phases: element i of phase f is element
 * i * stride + f of the padded line. */
static void read_line(const struct tn__windows *w, const char *x, int64_t length, char *to)
{
    const int64_t stride = w->stride[2], padding = w->padding[2], item = w->item;

    memset(to, 0, (size_t)(length * stride * item));
    for (int64_t phase = 0; phase < stride; phase++, to += length * item) {
        int64_t first = (padding - phase + stride - 1) / stride, from, count;
        first = padding > phase ? first : 0;
        from = first * stride + phase - padding;
        count = from < w->size[2] ? (w->size[2] - from + stride - 1) / stride : 0;
        count = count < length - first ? count : length - first;
        if (stride == 1 && count > 0)
            memcpy(to + first * item, x + from * item, (size_t)(count * item));
        else
            (w->ct == TN__F32 ? pick_f32 : pick_f64)(count, stride, x + from * item,
                                                     to + first * item);
    }
}

static void add_tap(const struct tn__windows *w, const char *weight, const char *line, char *y)
{
    float f32;
    double f64;

    if (w->ct == TN__F32) {
        memcpy(&f32, weight, sizeof f32);
        tn__simd.gemm->axpy_f32(w->count[2], f32, (const float *)(const void *)line,
                                (float *)(void *)y);
    } else {
        memcpy(&f64, weight, sizeof f64);
        tn__simd.gemm->axpy_f64(w->count[2], f64, (const double *)(const void *)line,
                                (double *)(void *)y);
    }
}

/* One plane of the result, from the lines of x with their padding. */
static void plane(const struct planes *p, int64_t channel, const char *lines, int64_t length,
                  char *y)
{
    const struct tn__windows *w = p->w;
    const int64_t stride = w->stride[2], line = length * stride * w->item;
    const double bias = bias_at(p, channel);

    for (int64_t i = 0; i < w->count[1]; i++, y += w->count[2] * w->item) {
        const char *weight = p->weight + channel * w->taps * w->item;
        (w->ct == TN__F32 ? fill_f32 : fill_f64)(w->count[2], bias, y);
        for (int64_t k = 0; k < w->kernel[1]; k++) {
            const int64_t row = i * w->stride[1] - w->padding[1] + k * w->dilation[1];
            for (int64_t c = 0; c < w->kernel[2]; c++, weight += w->item) {
                const int64_t at = c * w->dilation[2];
                if (row >= 0 && row < w->size[1])
                    add_tap(w, weight,
                            lines + row * line + (at % stride * length + at / stride) * w->item, y);
            }
        }
    }
}

static tn_status planes_part(void *user, int64_t begin, int64_t end)
{
    const struct planes *p = user;
    const struct tn__windows *w = p->w;
    const int64_t reach = (w->kernel[2] - 1) * w->dilation[2];
    const int64_t length = w->count[2] + reach / w->stride[2] + 1;
    const int64_t line = length * w->stride[2] * w->item;
    char *lines = tn__scratch_take((size_t)(w->size[1] * line));

    if (!lines)
        return TN_ERR_MEMORY;
    for (int64_t i = begin; i < end; i++) {
        const int64_t channel = i % w->groups, image = i / w->groups;
        const char *x = p->x + image * p->x_image + channel * p->x_plane * w->item;
        for (int64_t r = 0; r < w->size[1]; r++)
            read_line(w, x + r * w->size[2] * w->item, length, lines + r * line);
        plane(p, channel, lines, length,
              (char *)(uintptr_t)p->y + image * p->y_image + channel * w->places * w->item);
        if (w->after)
            tn__epilogue_plane(w->after, image, channel, 0, w->places);
    }
    tn__scratch_give(lines);
    return TN_OK;
}

/* ---- the call -------------------------------------------------------------------------------- */

tn_status tn__planes_forward(const struct tn__windows *w, const tn_view *x, const tn_view *y,
                             const char *weight, const tn_view *bias)
{
    struct planes p = { .w = w,
                        .x = tn__view_at(x),
                        .y = tn__view_at(y),
                        .weight = weight,
                        .x_image = x->strides[0] * w->item,
                        .y_image = y->strides[0] * w->item,
                        .bias = bias };
    int64_t each;

    p.x_plane = w->size[0] * w->size[1] * w->size[2];
    if (tn__depthwise_takes(w)) {
        each = w->places * w->taps;
        return tn_parallel_for(w->images * w->groups, 1 + GRAIN / each, planes_part, &p);
    }
    p.columns = PANELS * tn__gemm_width(w->ct, w->places);
    p.across = (w->places + p.columns - 1) / p.columns;
    each = w->outputs * w->channels * (w->places < p.columns ? w->places : p.columns);
    return tn_parallel_for(w->images * w->groups * p.across, 1 + GRAIN / each, pixels_part, &p);
}
