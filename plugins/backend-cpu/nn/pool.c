/* SPDX-License-Identifier: MIT
 *
 * Pooling: a plane [N, C] at a time, each by one thread; where channels lie side by side, a row of windows with all channels. */
#include <math.h>
#include <string.h>

#include "base/span.h"
#include "conv/conv.h"
#include "op/copy.h"
#include "simd/simd.h"

enum { DIMS = 3, PLANES = 4 /* for a thread at least */ };

struct pool {
    const tn_view *image, *result,
        *places; /* [N, C, size...], [N, C, count...], and the indices or NULL */
    enum tn__ct ct;
    int64_t size[DIMS], count[DIMS], kernel[DIMS], stride[DIMS], padding[DIMS], dilation[DIMS];
    int64_t image_step[DIMS], result_step[DIMS], places_step[DIMS];
    bool with_pad;
    int64_t divisor; /* INT64_MIN: the count */
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
    p->ct = tn__ct_of(tn_view_dtype(image));
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

/* The part [from, to) of window `i` that is inside, by its members. */
static void inside(const struct pool *p, int32_t d, int64_t i, int64_t *from, int64_t *to)
{
    int64_t first = i * p->stride[d] - p->padding[d], step = p->dilation[d];
    *from = first >= 0 ? 0 : (-first + step - 1) / step;
    *to = first >= p->size[d] ? 0 : (p->size[d] - 1 - first) / step + 1;
    if (*to > p->kernel[d])
        *to = p->kernel[d];
}

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

/* The place in dimension d that is nearest to a window in the padding. */
static int64_t nearest(const struct pool *p, const int64_t *at, int32_t d)
{
    int64_t near = at[d] * p->stride[d] - p->padding[d];
    return near < 0 ? 0 : near >= p->size[d] ? p->size[d] - 1 : near;
}

static tn_status out_of_range(int64_t place, int64_t most)
{
    return tn_fail(TN_ERR_INDEX, "max_pool_grad: index %lld is out of range for %lld elements",
                   (long long)place, (long long)most);
}

#define PLANES_OF(s, T)                                                                            \
    static void max_##s(const struct pool *p, const T *x, T *y, int64_t *where)                    \
    {                                                                                              \
        EACH_WINDOW                                                                                \
        {                                                                                          \
            T best = -(T)INFINITY;                                                                 \
            int64_t place = -1;                                                                    \
            EACH_MEMBER                                                                            \
            {                                                                                      \
                T value = x[IN_IMAGE];                                                             \
                if (value > best || value != value || place < 0) {                                 \
                    if (place >= 0 && best != best)                                                \
                        continue; /* the first NaN stays */                                        \
                    best = value;                                                                  \
                    place = (MEMBER(0, k0) * p->size[1] + MEMBER(1, k1)) * p->size[2] +            \
                            MEMBER(2, k2);                                                         \
                }                                                                                  \
            }                                                                                      \
            if (place < 0) /* all of it is in the padding: the nearest place */                    \
                for (int32_t d = 0; d < DIMS; d++)                                                 \
                    place = (place < 0 ? 0 : place) * p->size[d] + nearest(p, at, d);              \
            y[PLACE(p->result_step)] = best;                                                       \
            where[PLACE(p->places_step)] = place;                                                  \
        }                                                                                          \
    }                                                                                              \
    static void avg_##s(const struct pool *p, const T *x, T *y)                                    \
    {                                                                                              \
        EACH_WINDOW                                                                                \
        {                                                                                          \
            T sum = 0;                                                                             \
            EACH_MEMBER sum += x[IN_IMAGE];                                                        \
            y[PLACE(p->result_step)] = sum / (T)share_of(p, at);                                   \
        }                                                                                          \
    }                                                                                              \
    static void avg_back_##s(const struct pool *p, T *gx, const T *gy)                             \
    {                                                                                              \
        EACH_WINDOW                                                                                \
        {                                                                                          \
            T each = gy[PLACE(p->result_step)] / (T)share_of(p, at);                               \
            EACH_MEMBER gx[IN_IMAGE] += each;                                                      \
        }                                                                                          \
    }                                                                                              \
    static tn_status max_back_##s(const struct pool *p, T *gx, const T *gy, const int64_t *where)  \
    {                                                                                              \
        int64_t plane = p->size[1] * p->size[2], most = p->size[0] * plane;                        \
        EACH_WINDOW                                                                                \
        {                                                                                          \
            int64_t place = where[PLACE(p->places_step)];                                          \
            if (place < 0 || place >= most)                                                        \
                return out_of_range(place, most);                                                  \
            gx[place / plane * p->image_step[0] +                                                  \
               place / p->size[2] % p->size[1] * p->image_step[1] +                                \
               place % p->size[2] * p->image_step[2]] += gy[PLACE(p->result_step)];                \
        }                                                                                          \
        return TN_OK;                                                                              \
    }
PLANES_OF(f32, float)
PLANES_OF(f64, double)

/* ---- channels side by side ------------------------------------------------------------------- */

enum { WIDE = 256 /* channels at a time */ };

static bool side_by_side(const struct pool *p)
{
    return p->image->strides[1] == 1 && p->result->strides[1] == 1 &&
           (!p->places || p->places->strides[1] == 1) && p->image->shape[1] > 1 &&
           p->size[0] * p->size[1] * p->size[2] <= INT32_MAX;
}

#define SIDE(s, T, I)                                                                              \
    /* A NaN is largest, and the first stays. */                                                   \
    static void side_max_##s(int64_t n, const T *x, int64_t at, T *best, I *place)                 \
    {                                                                                              \
        const I here = (I)at;                                                                      \
        TN__IVDEP                                                                                  \
        for (int64_t k = 0; k < n; k++) {                                                          \
            T v = x[k], b = best[k];                                                               \
            I old = place[k];                                                                      \
            bool more = !(v <= b) & (b == b);                                                      \
            best[k] = more ? v : b;                                                                \
            place[k] = more ? here : old;                                                          \
        }                                                                                          \
    }                                                                                              \
    static tn_status side_max_rows_##s(void *user, int64_t begin, int64_t end)                     \
    {                                                                                              \
        const struct pool *p = user;                                                               \
        int64_t channels = p->image->shape[1], lines = p->count[0] * p->count[1];                  \
        T best[WIDE];                                                                              \
        I place[WIDE];                                                                             \
        for (int64_t line = begin; line < end; line++) {                                           \
            int64_t at[DIMS] = { line % lines / p->count[1], line % p->count[1], 0 };              \
            const T *x = (const T *)(const void *)tn__view_at(p->image) +                          \
                         line / lines * p->image->strides[0];                                      \
            T *y = (T *)(void *)tn__view_at(p->result) + line / lines * p->result->strides[0];     \
            int64_t *where = (int64_t *)(void *)tn__view_at(p->places) +                           \
                             line / lines * p->places->strides[0];                                 \
            for (; at[2] < p->count[2]; at[2]++)                                                   \
                for (int64_t c = 0; c < channels; c += WIDE) {                                     \
                    int64_t n = channels - c < WIDE ? channels - c : WIDE, near = 0;               \
                    bool any = false;                                                              \
                    EACH_MEMBER                                                                    \
                    {                                                                              \
                        const T *from = x + IN_IMAGE + c;                                          \
                        int64_t here = (MEMBER(0, k0) * p->size[1] + MEMBER(1, k1)) * p->size[2] + \
                                       MEMBER(2, k2);                                              \
                        if (any) {                                                                 \
                            side_max_##s(n, from, here, best, place);                              \
                            continue;                                                              \
                        }                                                                          \
                        any = true;                                                                \
                        for (int64_t k = 0; k < n; k++) {                                          \
                            best[k] = from[k];                                                     \
                            place[k] = (I)here;                                                    \
                        }                                                                          \
                    }                                                                              \
                    for (int32_t d = 0; !any && d < DIMS; d++)                                     \
                        near = near * p->size[d] + nearest(p, at, d);                              \
                    for (int64_t k = 0; !any && k < n; k++) {                                      \
                        best[k] = -(T)INFINITY;                                                    \
                        place[k] = (I)near;                                                        \
                    }                                                                              \
                    memcpy(y + PLACE(p->result_step) + c, best, (size_t)n * sizeof(T));            \
                    for (int64_t k = 0; k < n; k++)                                                \
                        where[PLACE(p->places_step) + c + k] = place[k];                           \
                }                                                                                  \
        }                                                                                          \
        return TN_OK;                                                                              \
    }                                                                                              \
    /* Pieces are WIDE channels of an image. */                                                    \
    static tn_status side_back_##s(void *user, int64_t begin, int64_t end)                         \
    {                                                                                              \
        const struct pool *p = user;                                                               \
        int64_t channels = p->image->shape[1], blocks = (channels + WIDE - 1) / WIDE;              \
        int64_t plane = p->size[1] * p->size[2], most = p->size[0] * plane;                        \
        bool even = p->image_step[1] == p->size[2] * p->image_step[2] &&                           \
                    (p->size[0] == 1 || p->image_step[0] == p->size[1] * p->image_step[1]);        \
        for (int64_t i = begin; i < end; i++) {                                                    \
            int64_t c = i % blocks * WIDE, n = channels - c < WIDE ? channels - c : WIDE;          \
            T *gx = (T *)(void *)tn__view_at(p->image) + i / blocks * p->image->strides[0] + c;    \
            const T *gy = (const T *)(const void *)tn__view_at(p->result) +                        \
                          i / blocks * p->result->strides[0] + c;                                  \
            const int64_t *where = (const int64_t *)(const void *)tn__view_at(p->places) +         \
                                   i / blocks * p->places->strides[0] + c;                         \
            EACH_WINDOW                                                                            \
            for (int64_t k = 0; k < n; k++) {                                                      \
                int64_t place = where[PLACE(p->places_step) + k];                                  \
                if (place < 0 || place >= most)                                                    \
                    return out_of_range(place, most);                                              \
                int64_t to = even ? place * p->image_step[2]                                       \
                                  : place / plane * p->image_step[0] +                             \
                                        place / p->size[2] % p->size[1] * p->image_step[1] +       \
                                        place % p->size[2] * p->image_step[2];                     \
                gx[to + k] += gy[PLACE(p->result_step) + k];                                       \
            }                                                                                      \
        }                                                                                          \
        return TN_OK;                                                                              \
    }
SIDE(f32, float, int32_t)
SIDE(f64, double, int64_t)

/* ---- planes ---- */

/* The plane `index` of a view, NULL for none. */
static void *plane_of(const tn_view *view, int64_t index)
{
    if (!view)
        return NULL;
    return tn__view_at(view) +
           (index / view->shape[1] * view->strides[0] + index % view->shape[1] * view->strides[1]) *
               tn__view_item(view);
}

#define PART(name, call_f32, call_f64)                                                             \
    static tn_status name##_part(void *user, int64_t begin, int64_t end)                           \
    {                                                                                              \
        const struct pool *p = user;                                                               \
        tn_status status = TN_OK;                                                                  \
        for (int64_t i = begin; i < end && status == TN_OK; i++) {                                 \
            void *image = plane_of(p->image, i), *result = plane_of(p->result, i),                 \
                 *places = plane_of(p->places, i);                                                 \
            (void)places;                                                                          \
            if (p->ct == TN__F32)                                                                  \
                call_f32;                                                                          \
            else                                                                                   \
                call_f64;                                                                          \
        }                                                                                          \
        return status;                                                                             \
    }
PART(max, max_f32(p, image, result, places), max_f64(p, image, result, places))
PART(avg, avg_f32(p, image, result), avg_f64(p, image, result))
PART(avg_back, avg_back_f32(p, image, result), avg_back_f64(p, image, result))
PART(max_back, status = max_back_f32(p, image, result, places),
     status = max_back_f64(p, image, result, places))

static tn_status planes(struct pool *p, tn_status (*part)(void *, int64_t, int64_t))
{
    return tn_parallel_for(p->image->shape[0] * p->image->shape[1], PLANES, part, p);
}

static tn_status side_back(struct pool *p)
{
    return tn_parallel_for(p->image->shape[0] * ((p->image->shape[1] + WIDE - 1) / WIDE), 1,
                           p->ct == TN__F32 ? side_back_f32 : side_back_f64, p);
}

static tn_status run_max_pool(const tn_call *call)
{
    const tn_max_pool_options *o = call->options;
    struct pool p = { 0 };
    lay_out(&p, call->in[0], call->out[0], call->out[1], o->kernel, o->stride, o->padding,
            o->dilation);
    if (side_by_side(&p))
        return tn_parallel_for(p.image->shape[0] * p.count[0] * p.count[1],
                               1 + 4096 / (p.count[2] * p.image->shape[1]),
                               p.ct == TN__F32 ? side_max_rows_f32 : side_max_rows_f64, &p);
    return planes(&p, max_part);
}

/* Image and indices have their channels side by side, gy has not: it is turned first. */
static tn_status turned_back(struct pool *p, const tn_view *gy)
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
    status = side_back(p);
    p->result = gy;
    tn__images_done(&images, gy, false);
    return status;
}

static tn_status run_max_pool_grad(const tn_call *call)
{
    const tn_view *gx = call->out[0], *gy = call->in[0], *places = call->in[1];
    struct pool p = { 0 };
    tn_status status = tn__copy_zero(gx);

    lay_out(&p, gx, gy, places, tn_no_ints(), tn_no_ints(), tn_no_ints(), tn_no_ints());
    if (status != TN_OK)
        return status;
    if (side_by_side(&p))
        return side_back(&p);
    p.result = places; /* would it be, with gy as the indices lie? */
    if (side_by_side(&p) && tn__view_count(gy) > 0)
        return turned_back(&p, gy);
    p.result = gy;
    return planes(&p, max_back_part);
}

static tn_status run_avg_pool(const tn_call *call)
{
    const tn_avg_pool_options *o = call->options;
    struct pool p = { .with_pad = o->count_include_pad, .divisor = o->divisor_override };
    lay_out(&p, call->in[0], call->out[0], NULL, o->kernel, o->stride, o->padding, tn_no_ints());
    return planes(&p, avg_part);
}

static tn_status run_avg_pool_grad(const tn_call *call)
{
    const tn_avg_pool_grad_options *o = call->options;
    struct pool p = { .with_pad = o->count_include_pad, .divisor = o->divisor_override };
    tn_status status = tn__copy_zero(call->out[0]);
    lay_out(&p, call->out[0], call->in[0], NULL, o->kernel, o->stride, o->padding, tn_no_ints());
    return status == TN_OK ? planes(&p, avg_back_part) : status;
}

static const tn_kernel kernels[] = {
    TN__KERNEL(max_pool, TN__F32_F64),
    TN__KERNEL(max_pool_grad, TN__F32_F64),
    TN__KERNEL(avg_pool, TN__F32_F64),
    TN__KERNEL(avg_pool_grad, TN__F32_F64),
};
TN__KERNEL_TABLE(pool);
