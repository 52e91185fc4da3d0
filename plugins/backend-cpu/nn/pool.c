/* SPDX-License-Identifier: MIT
 *
 * Pooling. One thread computes a plane, one channel of one image, at a time. With the channels
 * last, it computes a row of windows for all channels; a gradient, up to WIDE channels of one
 * image. */
#include <math.h>
#include <string.h>

#include "base/scratch.h"
#include "base/span.h"
#include "conv/images.h"
#include "op/copy.h"
#include "op/float32_call.h"
#include "simd/simd.h"

enum { DIMS = 3, PLANES = 4 /* minimum number of planes for one thread */ };

struct pool;
/* Computes one plane; `where` are the indices of its maxima, or NULL. */
typedef tn_status plane_function(const struct pool *p, void *image, void *result, int64_t *where);

struct pool {
    plane_function *plane;
    /* [N, C, size...]; [N, C, count...]; the indices of maxima, shaped as the result, or NULL */
    const tn_view *image, *result, *places;
    enum tn__ct ct;
    int64_t size[DIMS], count[DIMS], kernel[DIMS], stride[DIMS], padding[DIMS], dilation[DIMS];
    int64_t image_step[DIMS], result_step[DIMS], places_step[DIMS];
    bool with_pad;   /* an average counts padding */
    int64_t divisor; /* of an average; INT64_MIN: the number of elements of the window */
};

static void row(tn_ints given, int32_t dims, int64_t otherwise, int64_t *out)
{
    for (int32_t i = 0; i < DIMS; i++) {
        int32_t own = i - (DIMS - dims);
        out[i] = own < 0 || given.count <= 0 ? otherwise : given.at[given.count == 1 ? 0 : own];
    }
}

static void lay_out(struct pool *p, const tn_view *image, const tn_view *result,
                    const tn_view *places, tn_ints kernel, tn_ints stride, tn_ints padding,
                    tn_ints dilation)
{
    int32_t dims = image->ndim - 2;
    p->image = image;
    p->result = result;
    p->places = places;
    p->ct = tn__dtype_ct(tn_view_dtype(image));
    row(kernel, dims, 1, p->kernel);
    row(stride.count > 0 ? stride : kernel, dims, 1, p->stride);
    row(padding, dims, 0, p->padding);
    row(dilation, dims, 1, p->dilation);
    for (int32_t i = 0; i < DIMS; i++) {
        int32_t own = i - (DIMS - dims);
        p->size[i] = own < 0 ? 1 : image->shape[2 + own];
        p->image_step[i] = own < 0 ? 0 : image->strides[2 + own];
        p->count[i] = own < 0 ? 1 : result->shape[2 + own];
        p->result_step[i] = own < 0 ? 0 : result->strides[2 + own];
        p->places_step[i] = own < 0 || !places ? 0 : places->strides[2 + own];
        if (own < 0) {
            p->kernel[i] = p->stride[i] = p->dilation[i] = 1;
            p->padding[i] = 0;
        }
    }
}

/* Sets [*from, *to) to the elements of window `i` in dimension d that are inside of the image. */
static void inside(const struct pool *p, int32_t d, int64_t i, int64_t *from, int64_t *to)
{
    int64_t first = i * p->stride[d] - p->padding[d], step = p->dilation[d];
    if (step == 1) { /* without divisions, which would cost more than a window of few channels */
        *from = first >= 0 ? 0 : -first;
        *to = p->size[d] - first;
    } else {
        *from = first >= 0 ? 0 : (-first + step - 1) / step;
        *to = first >= p->size[d] ? 0 : (p->size[d] - 1 - first) / step + 1;
    }
    if (*to > p->kernel[d])
        *to = p->kernel[d];
}

/* Returns the divisor of the average of window `at`. */
static double share_of(const struct pool *p, const int64_t *at)
{
    double count = 1;
    if (p->divisor != INT64_MIN)
        return (double)p->divisor;
    for (int32_t d = 0; d < DIMS; d++) {
        int64_t first = at[d] * p->stride[d] - p->padding[d], last = first + p->kernel[d];
        int64_t low = p->with_pad ? -p->padding[d] : 0,
                high = p->size[d] + (p->with_pad ? p->padding[d] : 0);
        count *= (double)((last < high ? last : high) - (first > low ? first : low));
    }
    return count;
}

/* Loops over the windows `at` of a plane; over the elements (k0, k1, k2) of a window that are
 * inside of the image. */
#define EACH_WINDOW                                                                                \
    int64_t at[DIMS];                                                                              \
    for (at[0] = 0; at[0] < p->count[0]; at[0]++)                                                  \
        for (at[1] = 0; at[1] < p->count[1]; at[1]++)                                              \
            for (at[2] = 0; at[2] < p->count[2]; at[2]++)
#define PLACE(steps) (at[0] * steps[0] + at[1] * steps[1] + at[2] * steps[2])
#define EACH_MEMBER                                                                                \
    int64_t low[DIMS], high[DIMS], first[DIMS];                                                    \
    for (int32_t d = 0; d < DIMS; d++) {                                                           \
        inside(p, d, at[d], &low[d], &high[d]);                                                    \
        first[d] = at[d] * p->stride[d] - p->padding[d];                                           \
    }                                                                                              \
    for (int64_t k0 = low[0]; k0 < high[0]; k0++)                                                  \
        for (int64_t k1 = low[1]; k1 < high[1]; k1++)                                              \
            for (int64_t k2 = low[2]; k2 < high[2]; k2++)
#define MEMBER(d, k) (first[d] + (k)*p->dilation[d])
#define IN_IMAGE                                                                                   \
    (MEMBER(0, k0) * p->image_step[0] + MEMBER(1, k1) * p->image_step[1] +                         \
     MEMBER(2, k2) * p->image_step[2])

/* Returns the coordinate in dimension d inside of the image that is nearest to window `at`, for a
 * window that is all padding. */
static int64_t nearest(const struct pool *p, const int64_t *at, int32_t d)
{
    int64_t near = at[d] * p->stride[d] - p->padding[d];
    return near < 0 ? 0 : near >= p->size[d] ? p->size[d] - 1 : near;
}

static tn_status out_of_range(int64_t place, int64_t most)
{
    return tn_fail(TN_ERR_INDEX, "max_pool_grad: index: out of range, got %lld; expected 0 to %lld",
                   (long long)place, (long long)most - 1);
}

/* ---- channels last --------------------------------------------------------------------------- */

enum {
    WIDE = 256,  /* channels at a time */
    FEW = 128,   /* fewer channels: lines of the image at a time */
    LINE = 16384 /* most elements of such a line */
};

static bool channels_last(const struct pool *p)
{
    return p->image->strides[1] == 1 && p->result->strides[1] == 1 &&
           (!p->places || p->places->strides[1] == 1) && p->image->shape[1] > 1 &&
           p->size[0] * p->size[1] * p->size[2] <= INT32_MAX;
}

/* Whether element i of each plane, in row-major order, is i * image_step[2] from the plane's first
 * element. */
static bool is_even(const struct pool *p)
{
    return p->image_step[1] == p->size[2] * p->image_step[2] &&
           (p->size[0] == 1 || p->image_step[0] == p->size[1] * p->image_step[1]);
}

/* Returns the address of plane `index` of a view; NULL if the view is NULL. */
static void *plane_of(const tn_view *view, int64_t index)
{
    if (!view)
        return NULL;
    return tn__view_at(view) +
           (index / view->shape[1] * view->strides[0] + index % view->shape[1] * view->strides[1]) *
               tn__view_item(view);
}

typedef int32_t index_f32;
typedef int64_t index_f64;
enum { CT_f32 = TN__F32, CT_f64 = TN__F64 };
#define TEMPLATE "nn/pool_max_template.h"
#include "base/for_floats.h"
#define TEMPLATE "nn/pool_avg_template.h"
#include "base/for_floats.h"
#define TEMPLATE "nn/pool_grad_template.h"
#include "base/for_floats.h"

/* ---- planes ---- */

static tn_status planes_part(void *user, int64_t begin, int64_t end)
{
    const struct pool *p = user;
    tn_status status = TN_OK;
    for (int64_t i = begin; i < end && status == TN_OK; i++)
        status = p->plane(p, plane_of(p->image, i), plane_of(p->result, i), plane_of(p->places, i));
    return status;
}

static tn_status planes(struct pool *p, plane_function *f32, plane_function *f64)
{
    p->plane = p->ct == TN__F32 ? f32 : f64;
    return tn_parallel_for(p->image->shape[0] * p->image->shape[1], PLANES, planes_part, p);
}

typedef tn_status pieces_function(void *user, int64_t begin, int64_t end);

/* Calls a function for blocks of channels of each image. */
static tn_status in_blocks(struct pool *p, pieces_function *f32, pieces_function *f64)
{
    return tn_parallel_for(p->image->shape[0] * ((p->image->shape[1] + WIDE - 1) / WIDE), 1,
                           p->ct == TN__F32 ? f32 : f64, p);
}

static tn_status max_grad_channels_last(struct pool *p)
{
    return in_blocks(p, max_grad_channels_last_f32, max_grad_channels_last_f64);
}

static tn_status run_max_pool(const tn_call *call)
{
    const tn_max_pool_options *o = call->options;
    struct pool p = { 0 };

    if (tn__float32_call_needed(call))
        return tn__float32_call_run(call, 0, run_max_pool);
    lay_out(&p, call->in[0], call->out[0], call->out[1], o->kernel, o->stride, o->padding,
            o->dilation);
    if (channels_last(&p)) {
        int64_t channels = p.image->shape[1];
        bool few = channels <= FEW && p.size[2] * channels <= LINE &&
                   (p.size[2] == 1 || p.image_step[2] == channels) &&
                   (p.count[2] == 1 ||
                    (p.result_step[2] == channels && p.places_step[2] == channels));

        return tn_parallel_for(
            p.image->shape[0] * p.count[0] * p.count[1], 1 + 4096 / (p.count[2] * channels),
            p.ct == TN__F32 ? (few ? max_few_channels_last_f32 : max_rows_channels_last_f32)
                            : (few ? max_few_channels_last_f64 : max_rows_channels_last_f64),
            &p);
    }
    if (p.image_step[2] == 1 && p.result_step[2] == 1 && p.places_step[2] == 1 &&
        p.size[2] <= LINE && p.size[0] * p.size[1] * p.size[2] <= INT32_MAX)
        return tn_parallel_for(p.image->shape[0] * p.image->shape[1], PLANES,
                               p.ct == TN__F32 ? max_planes_f32 : max_planes_f64, &p);
    return planes(&p, max_f32, max_f64);
}

/* The gradient of max_pool if image and indices have the channels last and gy does not: gy is first
 * copied to that layout. */
static tn_status turned_grad(struct pool *p, const tn_view *gy)
{
    int64_t strides[TN_MAX_DIMS];
    struct tn__images images;
    tn_view turned = *gy;
    tn_status status = tn__images_take(&images, gy, false);

    if (status != TN_OK)
        return status;
    strides[0] = images.image;
    strides[1] = 1;
    for (int32_t d = 2; d < gy->ndim; d++)
        strides[d] = p->result_step[DIMS - gy->ndim + d] = images.step[DIMS - gy->ndim + d];
    turned.data = images.at;
    turned.byte_offset = 0;
    turned.strides = strides;
    p->result = &turned;
    status = max_grad_channels_last(p);
    p->result = gy;
    tn__images_done(&images, gy, false);
    return status;
}

static tn_status run_max_pool_grad(const tn_call *call)
{
    const tn_view *gx = call->out[0], *gy = call->in[0], *places = call->in[1];
    struct pool p = { 0 };
    tn_status status;

    if (tn__float32_call_needed(call))
        return tn__float32_call_run(call, 0, run_max_pool_grad);
    status = tn__copy_zero(gx);
    lay_out(&p, gx, gy, places, tn_no_ints(), tn_no_ints(), tn_no_ints(), tn_no_ints());
    if (status != TN_OK)
        return status;
    if (channels_last(&p))
        return max_grad_channels_last(&p);
    p.result = places; /* channels_last() then tests only the layouts of gx and of the indices */
    if (channels_last(&p) && tn__span_view_count(gy) > 0)
        return turned_grad(&p, gy);
    p.result = gy;
    return planes(&p, max_grad_f32, max_grad_f64);
}

static tn_status run_avg_pool(const tn_call *call)
{
    const tn_avg_pool_options *o = call->options;
    struct pool p = { .with_pad = o->count_include_pad, .divisor = o->divisor_override };

    if (tn__float32_call_needed(call))
        return tn__float32_call_run(call, 0, run_avg_pool);
    lay_out(&p, call->in[0], call->out[0], NULL, o->kernel, o->stride, o->padding, tn_no_ints());
    if (channels_last(&p))
        return tn_parallel_for(
            p.image->shape[0] * p.count[0] * p.count[1],
            1 + 4096 / (p.count[2] * p.image->shape[1]),
            p.ct == TN__F32 ? avg_rows_channels_last_f32 : avg_rows_channels_last_f64, &p);
    return planes(&p, avg_f32, avg_f64);
}

static tn_status run_avg_pool_grad(const tn_call *call)
{
    const tn_avg_pool_grad_options *o = call->options;
    struct pool p = { .with_pad = o->count_include_pad, .divisor = o->divisor_override };
    tn_status status;

    if (tn__float32_call_needed(call))
        return tn__float32_call_run(call, 0, run_avg_pool_grad);
    status = tn__copy_zero(call->out[0]);
    lay_out(&p, call->out[0], call->in[0], NULL, o->kernel, o->stride, o->padding, tn_no_ints());
    if (status != TN_OK)
        return status;
    return channels_last(&p) ? in_blocks(&p, avg_grad_channels_last_f32, avg_grad_channels_last_f64)
                             : planes(&p, avg_grad_f32, avg_grad_f64);
}

static const tn_kernel_def kernels[] = {
    TN__KERNEL(max_pool, TN__F32_F64 | TN__NARROW),
    TN__KERNEL(max_pool_grad, TN__F32_F64 | TN__NARROW),
    TN__KERNEL(avg_pool, TN__F32_F64 | TN__NARROW),
    TN__KERNEL(avg_pool_grad, TN__F32_F64 | TN__NARROW),
};
TN__KERNEL_TABLE(pool);
