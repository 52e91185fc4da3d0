/* SPDX-License-Identifier: MIT
 *
 * Convolution and the gradient of its input as products of matrices. Forward: the windows of the
 * image, copied a block at a time as rows of a matrix, times the weight packed into panels. The
 * gradient of the input is computed in the same way if the stride is 1; with strides it is one
 * product for each tap, added to the elements that the tap read. Pieces of work depend on the shape
 * alone, so the result has the same bits for any number of threads. */
#include <string.h>

#include "base/kernel.h"
#include "base/scratch.h"
#include "base/span.h"
#include "conv/conv.h"
#include "conv/epilogue.h"
#include "conv/weight.h"
#include "conv/winograd.h"
#include "matmul/gemm.h"
#include "op/float32_call.h"
#include "simd/simd.h"

enum {
    DEPTH = 512,  /* approximate number of elements of a window that are copied at a time */
    MOST = 192,   /* maximum number of rows (windows) of a block */
    ACROSS = 256, /* outputs that are computed together */
    SOME = 48,    /* windows of small images that are multiplied together, about */
    SPARSE = 4    /* pixels for each window from which on a convolution would read mostly padding */
};

/* ---- forward --------------------------------------------------------------------------------- */

struct forward {
    struct windows_of {
        struct tn__windows w;
        struct tn__images x, y;
    } * at;
    const struct tn__panels *panels;
    const char *bias; /* [group][outputs rounded up to whole panels] */
    /* A piece has `rows` windows and `across` outputs. There are `blocks` pieces along the windows
     * and `strips` pieces along the outputs. */
    int64_t rows, blocks, strips, across;
};

/* Where a product is in the result of the convolution, and the epilogue to apply to it. */
struct place {
    const struct tn__epilogue *after;
    int64_t pixel, channel;
};

static void follow_block(void *user, int64_t i, int64_t m, int64_t j, int64_t n)
{
    const struct place *at = user;

    tn__epilogue_pixels(at->after, at->pixel + i, m, at->channel + j, n);
}

static tn_status forward_block(const struct forward *f, int64_t index)
{
    const struct tn__windows *w = &f->at->w;
    const struct tn__panels *p = f->panels;
    int64_t item = w->item, all = w->images * w->places, step;
    int64_t group = index / f->strips / f->blocks, first = index % f->blocks * f->rows;
    int64_t column = index / f->blocks % f->strips * f->across;
    int64_t full = tn__up(w->outputs, p->width);
    bool plain = tn__im2col_plain(w, &f->at->x, &step);
    int64_t taps = w->channels > 0 && w->channels < DEPTH ? DEPTH / w->channels : 1;
    struct place place = { w->after, first, group * w->outputs + column };
    struct tn__gemm g = { .ct = w->ct, .width = p->width, .b_step = p->width, .user = &place };
    char *rows = NULL;

    if (taps > w->taps)
        taps = w->taps;
    g.m = all - first < f->rows ? all - first : f->rows;
    g.n = w->outputs - column < f->across ? w->outputs - column : f->across;
    g.b_panel = p->depth * p->width;
    g.ldc = f->at->y.step[TN__DIMS - 1];
    g.c = f->at->y.at + (first * g.ldc + group * w->outputs + column) * item;
    g.bias = f->bias + (group * full + column) * item;
    g.a_step = taps * w->channels + 16;
    if (plain) {
        g.a = f->at->x.at + (first * step + group * w->channels) * item;
        g.a_step = step;
        taps = w->taps;
    } else {
        g.a = rows = tn__scratch_take((size_t)(g.m * g.a_step * item));
        if (!rows)
            return TN_ERR_MEMORY;
    }
    for (int64_t tap = 0; tap < w->taps; tap += taps) {
        int64_t here = w->taps - tap < taps ? w->taps - tap : taps;
        if (!plain)
            tn__im2col_rows(w, &f->at->x, group, first, g.m, tap, here, rows, g.a_step);
        g.k = here * w->channels;
        g.b = p->to + ((group * full + column) * p->depth + tap * w->channels * p->width) * item;
        if (tap + here == w->taps) {
            g.limits = tn__epilogue_limits(w->after);
            if (tn__epilogue_beyond_limits(w->after))
                g.done = follow_block;
        }
        tn__gemm_run(&g);
        g.add = true;
        g.bias = NULL;
    }
    tn__scratch_give(rows);
    return TN_OK;
}

static tn_status forward_part(void *user, int64_t begin, int64_t end)
{
    tn_status status = TN_OK;
    for (int64_t i = begin; i < end && status == TN_OK; i++)
        status = forward_block(user, i);
    return status;
}

/* Returns the bias, or zeros if `bias` is NULL, as [group][outputs rounded up to `width`] in
 * scratch memory; NULL when memory runs out. */
static char *bias_of(const struct tn__windows *w, const tn_view *bias, int64_t width)
{
    int64_t full = tn__up(w->outputs, width);
    char *to = tn__scratch_take((size_t)(w->groups * full * w->item));

    if (!to)
        return NULL;
    memset(to, 0, (size_t)(w->groups * full * w->item));
    for (int64_t i = 0; bias && i < w->groups * w->outputs; i++)
        memcpy(to + (i / w->outputs * full + i % w->outputs) * w->item,
               tn__view_at(bias) + i * bias->strides[0] * w->item, (size_t)w->item);
    return to;
}

/* Computes y, the windows of x times the weight plus the bias, with the weight in the order
 * `how`. */
static tn_status multiply(struct windows_of *at, enum tn__reading how, const char *weight,
                          const tn_view *bias)
{
    struct tn__windows *w = &at->w;
    int64_t all = w->images * w->places, mr = tn__simd.gemm->strips[w->ct].mr;
    int64_t blocks = (all + MOST - 1) / MOST;
    struct tn__panels p = tn__weight_panels(w, false);
    struct forward f = { .at = at, .panels = &p };
    char *padded;
    tn_status status;

    if (how == TN__READ_TRANSFORMED) {
        padded = bias ? bias_of(w, bias, TN__WINO_LANES) : NULL;
        status = bias && !padded
                     ? TN_ERR_MEMORY
                     : tn__winograd_forward(w, &at->x, &at->y, (const float *)(const void *)weight,
                                            (const float *)(const void *)padded);
        tn__scratch_give(padded);
        return status;
    }
    padded = bias_of(w, bias, p.width);
    if (!padded)
        return TN_ERR_MEMORY;
    if (tn__direct_takes(w)) {
        status = tn__direct_forward(w, &at->x, &at->y, weight, p.width, padded);
    } else {
        p.to = (char *)(uintptr_t)weight;
        f.bias = padded;
        f.rows = tn__up((all + blocks - 1) / blocks, mr);
        f.blocks = (all + f.rows - 1) / f.rows;
        f.across = w->outputs < ACROSS ? tn__up(w->outputs, p.width) : ACROSS;
        f.strips = (w->outputs + f.across - 1) / f.across;
        status = tn_parallel_for(f.blocks * f.strips * w->groups, 1, forward_part, &f);
    }
    tn__scratch_give(padded);
    return status;
}

static enum tn__reading forward_reading(const struct tn__windows *w)
{
    return tn__winograd_takes(w) ? TN__READ_TRANSFORMED : TN__READ_PANELS;
}

static tn_status forward(struct windows_of *at, const tn_view *weight, bool turned,
                         const tn_view *bias, const void *prepared)
{
    const enum tn__reading how = forward_reading(&at->w);
    const char *ordered;
    void *copy;
    tn_status status = tn__weight_take(&at->w, how, turned, weight, prepared, &ordered, &copy);

    if (status == TN_OK)
        status = multiply(at, how, ordered, bias);
    tn__scratch_give(copy);
    return status;
}

/* Fills `w` from a call of convolution or convolution_activation. */
static void read_windows(const tn_call *call, struct tn__windows *w)
{
    if (strcmp(call->op, "convolution") == 0) {
        const tn_convolution_options *o = call->options;
        tn__im2col_windows(w, call->in[0], call->out[0], call->in[1], o->stride, o->padding,
                           o->dilation, o->groups);
    } else {
        const tn_convolution_activation_options *o = call->options;
        tn__im2col_windows(w, call->in[0], call->out[0], call->in[1], o->stride, o->padding,
                           o->dilation, o->groups);
    }
}

static enum tn__reading reading_of(const tn_call *call, struct tn__windows *w)
{
    read_windows(call, w);
    return tn__planes_takes(w, call->in[0], call->out[0]) || tn__depthwise_takes(w)
               ? TN__READ_IN_PLACE
               : forward_reading(w);
}

/* Weights of float16 and bfloat16 are kept in float32. */
static uint64_t key_convolution(const tn_call *call)
{
    struct tn__float32_call to;
    struct tn__windows w;

    tn__float32_call_describe(&to, call);
    return tn__weight_key(&w, reading_of(&to.call, &w));
}

static tn_status prepare_convolution(const tn_call *call, tn_prepared_data *out)
{
    struct tn__float32_call to;
    struct tn__windows w;

    tn__float32_call_describe(&to, call);
    return tn__weight_prepare(call, &w, reading_of(&to.call, &w), false, out);
}

static tn_status run_planes(const tn_call *call, const struct tn__windows *w)
{
    const char *plain;
    void *copy = NULL;
    tn_status status = tn__weight_plain(call->in[1], w->ct, &plain, &copy);

    if (status == TN_OK)
        status = tn__planes_forward(w, call->in[0], call->out[0], plain, call->in[2]);
    tn__scratch_give(copy);
    return status;
}

/* Computes a convolution; `after`, which may be NULL, follows it. */
static tn_status run_images(const tn_call *call, struct windows_of *at, struct tn__epilogue *after)
{
    const tn_view *x = call->in[0], *weight = call->in[1], *y = call->out[0];
    tn_status status = tn__images_take(&at->x, x, false), last;

    if (status != TN_OK)
        return status;
    status = tn__images_take(&at->y, y, true);
    if (status == TN_OK) {
        if (after)
            tn__epilogue_into(after, &at->y);
        status = tn__depthwise_takes(&at->w)
                     ? tn__depthwise_forward(&at->w, &at->x, &at->y, weight, call->in[2])
                     : forward(at, weight, false, call->in[2], call->prepared);
        last = tn__images_done(&at->y, y, status == TN_OK);
        status = status == TN_OK ? last : status;
    }
    tn__images_done(&at->x, x, false);
    return status;
}

/* Returns the mask of the weight if a call of float16 or bfloat16 does not read it, because it is
 * prepared. A prepared call can get a result of another layout, for which the weight is read in
 * place. */
static uint64_t unread_weight(const tn_call *call)
{
    struct tn__float32_call to;
    struct tn__windows w;

    if (!call->prepared)
        return 0;
    tn__float32_call_describe(&to, call);
    return reading_of(&to.call, &w) == TN__READ_IN_PLACE ? 0 : 2;
}

static tn_status run_convolution(const tn_call *call)
{
    struct windows_of at;

    if (tn__span_view_count(call->out[0]) == 0)
        return TN_OK;
    if (tn__float32_call_needed(call))
        return tn__float32_call_run(call, unread_weight(call), run_convolution);
    read_windows(call, &at.w);
    return tn__planes_takes(&at.w, call->in[0], call->out[0]) ? run_planes(call, &at.w)
                                                              : run_images(call, &at, NULL);
}

static tn_status run_convolution_activation(const tn_call *call)
{
    struct tn__epilogue after;
    struct windows_of at;
    tn_status status;
    bool planes;

    if (tn__span_view_count(call->out[0]) == 0)
        return TN_OK;
    read_windows(call, &at.w);
    planes = tn__planes_takes(&at.w, call->in[0], call->out[0]);
    status = tn__epilogue_begin(&after, call, planes);
    if (status != TN_OK)
        return status;
    at.w.after = &after;
    status = planes ? run_planes(call, &at.w) : run_images(call, &at, &after);
    tn__epilogue_end(&after);
    return status;
}

/* ---- the gradient of the input, with strides ------------------------------------------------- */

struct back {
    const struct tn__windows *w;
    const struct tn__images *gy, *gx;
    const char *panels;     /* [group][tap][panel][outputs][width] */
    int64_t width, full;    /* columns of a panel; channels rounded up to whole panels */
    int64_t blocks, across; /* pieces across the channels, channels of a piece */
    int64_t together;       /* images of a piece */
};

#define ADD_ROW(s, T)                                                                              \
    static void add_row_##s(int64_t n, T *to, const T *from)                                       \
    {                                                                                              \
        TN__IVDEP for (int64_t i = 0; i < n; i++) to[i] += from[i];                                \
    }
ADD_ROW(f32, float)
ADD_ROW(f64, double)

/* Adds row i of `rows`, the product for tap `tap` of window first + i, counted over all images from
 * `image` on, to the element that this tap of the window read, for n windows. */
static void add_products(const struct back *b, char *image, int64_t channels, int64_t first,
                         int64_t n, int64_t tap, const char *rows, int64_t pitch)
{
    const struct tn__windows *w = b->w;
    int64_t k[TN__DIMS] = { tap / w->kernel[2] / w->kernel[1], tap / w->kernel[2] % w->kernel[1],
                            tap % w->kernel[2] };

    for (int64_t i = 0; i < n; i++) {
        int64_t place = (first + i) % w->places, at[TN__DIMS],
                to = (first + i) / w->places * b->gx->image;
        bool inside = true;
        at[2] = place % w->count[2];
        at[1] = place / w->count[2] % w->count[1];
        at[0] = place / w->count[2] / w->count[1];
        for (int32_t d = 0; d < TN__DIMS; d++) {
            int64_t c = at[d] * w->stride[d] - w->padding[d] + k[d] * w->dilation[d];
            inside = inside && c >= 0 && c < w->size[d];
            to += c * b->gx->step[d];
        }
        if (!inside)
            continue;
        if (w->ct == TN__F32)
            add_row_f32(channels, (float *)(void *)image + to,
                        (const float *)(const void *)rows + i * pitch);
        else
            add_row_f64(channels, (double *)(void *)image + to,
                        (const double *)(const void *)rows + i * pitch);
    }
}

/* Sets the given channels of an image to 0. */
static void clear_image(const struct back *b, char *image, int64_t channels)
{
    const struct tn__windows *w = b->w;
    const int64_t *step = b->gx->step;

    for (int64_t d = 0; d < w->size[0]; d++)
        for (int64_t h = 0; h < w->size[1]; h++)
            for (int64_t c = 0; c < w->size[2]; c++)
                memset(image + (d * step[0] + h * step[1] + c * step[2]) * w->item, 0,
                       (size_t)(channels * w->item));
}

static tn_status back_piece(const struct back *b, int64_t index)
{
    const struct tn__windows *w = b->w;
    int64_t item = w->item, image = index / b->blocks / w->groups * b->together,
            group = index / b->blocks % w->groups, first = index % b->blocks * b->across;
    int64_t images = w->images - image < b->together ? w->images - image : b->together,
            windows = images * w->places;
    int64_t channels = w->channels - first < b->across ? w->channels - first : b->across;
    int64_t rows = windows < MOST ? windows : MOST, pitch = tn__up(channels, b->width) + 16;
    char *sums = tn__scratch_take((size_t)(rows * pitch * item));
    char *at = b->gx->at + (image * b->gx->image + group * w->channels + first) * item;
    int64_t step = b->gy->step[TN__DIMS - 1];
    struct tn__gemm g = { .ct = w->ct,
                          .n = channels,
                          .k = w->outputs,
                          .a_step = step,
                          .b_step = b->width,
                          .width = b->width,
                          .c = sums,
                          .ldc = pitch };

    if (!sums)
        return TN_ERR_MEMORY;
    g.b_panel = w->outputs * b->width;
    for (int64_t i = 0; i < images; i++)
        clear_image(b, at + i * b->gx->image * item, channels);
    for (int64_t place = 0; place < windows; place += rows) {
        g.m = windows - place < rows ? windows - place : rows;
        g.a = b->gy->at + (image * b->gy->image + place * step + group * w->outputs) * item;
        for (int64_t tap = 0; tap < w->taps; tap++) {
            g.b = b->panels +
                  ((group * w->taps + tap) * w->outputs * b->full + first * w->outputs) * item;
            tn__gemm_run(&g);
            add_products(b, at, channels, place, g.m, tap, sums, pitch);
        }
    }
    tn__scratch_give(sums);
    return TN_OK;
}

static tn_status back_part(void *user, int64_t begin, int64_t end)
{
    tn_status status = TN_OK;
    for (int64_t i = begin; i < end && status == TN_OK; i++)
        status = back_piece(user, i);
    return status;
}

static tn_status back(const struct tn__windows *w, const struct tn__images *gy,
                      const struct tn__images *gx, const tn_view *weight, const void *prepared)
{
    struct back b = { .w = w, .gy = gy, .gx = gx, .width = tn__gemm_width(w->ct, w->channels) };
    void *copy;
    tn_status status;

    b.full = tn__up(w->channels, b.width);
    b.across = w->images >= 8 && w->channels < ACROSS ? b.full : 2 * b.width;
    b.blocks = (w->channels + b.across - 1) / b.across;
    b.together = w->places > 0 && w->places < SOME ? SOME / w->places : 1;
    status = tn__weight_take(w, TN__READ_TAPS, false, weight, prepared, &b.panels, &copy);
    if (status == TN_OK)
        status = tn_parallel_for((w->images + b.together - 1) / b.together * w->groups * b.blocks,
                                 1, back_part, &b);
    tn__scratch_give(copy);
    return status;
}

/* Changes `w` so that a convolution of gy with the rotated weight computes the gradient of the
 * input. Returns false and does not change `w` if a stride is not 1, if the padding would be
 * negative, or if there are so few windows that most of what they multiply would be padding. */
static bool turn(struct tn__windows *w)
{
    int64_t channels = w->channels;

    if (tn__windows_product(w->size) / SPARSE >= w->places)
        return false;
    for (int32_t i = 0; i < TN__DIMS; i++)
        if (w->stride[i] != 1 || w->dilation[i] * (w->kernel[i] - 1) < w->padding[i])
            return false;
    for (int32_t i = 0; i < TN__DIMS; i++) {
        int64_t size = w->size[i];
        w->padding[i] = w->dilation[i] * (w->kernel[i] - 1) - w->padding[i];
        w->size[i] = w->count[i];
        w->count[i] = size;
    }
    w->places = tn__windows_product(w->count);
    w->channels = w->outputs;
    w->outputs = channels;
    return true;
}

static tn_status spread(const struct windows_of *at, const tn_view *weight, const void *prepared)
{
    const char *panels;
    void *copy;
    tn_status status = tn__weight_take(&at->w, TN__READ_WINDOWS, false, weight, prepared, &panels,
                                       &copy);

    if (status == TN_OK)
        status = tn__conv_few_channels_back(&at->w, &at->x, &at->y, panels);
    tn__scratch_give(copy);
    return status;
}

static void read_gradient_windows(const tn_call *call, struct tn__windows *w)
{
    const tn_convolution_grad_input_options *o = call->options;

    tn__im2col_windows(w, call->out[0], call->in[0], call->in[1], o->stride, o->padding,
                       o->dilation, o->groups);
}

/* Returns how the gradient of the input reads the weight. Sets *turned to whether the gradient is
 * computed as a convolution of gy, which `w` then describes. */
static enum tn__reading reading_of_gradient(const tn_call *call, struct tn__windows *w,
                                            bool *turned)
{
    read_gradient_windows(call, w);
    *turned = false;
    if (tn__depthwise_takes(w))
        return TN__READ_IN_PLACE;
    if (tn__conv_few_channels_takes(w))
        return TN__READ_WINDOWS;
    *turned = turn(w);
    return *turned ? forward_reading(w) : TN__READ_TAPS;
}

static uint64_t key_convolution_grad_input(const tn_call *call)
{
    struct tn__float32_call to;
    struct tn__windows w;
    enum tn__reading how;
    bool turned;

    tn__float32_call_describe(&to, call);
    how = reading_of_gradient(&to.call, &w, &turned);

    return tn__weight_key(&w, how);
}

static tn_status prepare_convolution_grad_input(const tn_call *call, tn_prepared_data *out)
{
    struct tn__float32_call to;
    struct tn__windows w;
    enum tn__reading how;
    bool turned;

    tn__float32_call_describe(&to, call);
    how = reading_of_gradient(&to.call, &w, &turned);

    return tn__weight_prepare(call, &w, how, turned, out);
}

static tn_status run_convolution_grad_input(const tn_call *call)
{
    const tn_view *gy = call->in[0], *weight = call->in[1], *gx = call->out[0];
    struct windows_of at;
    tn_status status, last;

    if (tn__span_view_count(gx) == 0)
        return TN_OK;
    /* How the weight is read depends on shapes alone, so prepared data replaces it. */
    if (tn__float32_call_needed(call))
        return tn__float32_call_run(call, call->prepared ? 2 : 0, run_convolution_grad_input);
    read_gradient_windows(call, &at.w);
    status = tn__images_take(&at.x, gy, false);
    if (status != TN_OK)
        return status;
    status = tn__images_take(&at.y, gx, true);
    if (status == TN_OK) {
        if (tn__depthwise_takes(&at.w))
            status = tn__depthwise_back(&at.w, &at.x, &at.y, weight);
        else if (tn__conv_few_channels_takes(&at.w))
            status = spread(&at, weight, call->prepared);
        else
            status = turn(&at.w) ? forward(&at, weight, true, NULL, call->prepared)
                                 : back(&at.w, &at.x, &at.y, weight, call->prepared);
        last = tn__images_done(&at.y, gx, status == TN_OK);
        status = status == TN_OK ? last : status;
    }
    tn__images_done(&at.x, gy, false);
    return status;
}

static const tn_kernel_def kernels[] = {
    /* The first two have the same functions, so that they share the kept weights. */
    TN__KERNEL_KEEPS(convolution, TN__F32_F64 | TN__NARROW, .weights = 2,
                     .prepare_key = key_convolution, .prepare = prepare_convolution,
                     .release = tn__weight_release),
    TN__KERNEL_KEEPS(convolution_activation, TN__F32_F64, .supports = tn__epilogue_supports,
                     .weights = 2, .prepare_key = key_convolution, .prepare = prepare_convolution,
                     .release = tn__weight_release),
    TN__KERNEL_KEEPS(convolution_grad_input, TN__F32_F64 | TN__NARROW, .weights = 2,
                     .prepare_key = key_convolution_grad_input,
                     .prepare = prepare_convolution_grad_input, .release = tn__weight_release),
};
TN__KERNEL_TABLE(conv);
