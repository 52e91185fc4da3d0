/* SPDX-License-Identifier: MIT
 *
 * Windows that slide over images, for convolutions and pooling. */
#include "window.h"

#include "channels.h"

tn_status tn__window_row(tn_ints given, int32_t dims, int64_t otherwise, int64_t least,
                         const char *name, int64_t *out)
{
    char text[TN__TEXT];

    if (given.count > 1 && given.count != dims)
        return tn_fail(TN_ERR_VALUE, "%s: wrong count, got %s; expected 1 or %d numbers", name,
                       tn__common_text(text, given), (int)dims);
    for (int32_t i = 0; i < dims; i++) {
        out[i] = given.count <= 0 ? otherwise : given.at[given.count == 1 ? 0 : i];
        if (out[i] < least || out[i] > INT32_MAX)
            return tn_fail(TN_ERR_VALUE,
                           "%s: out of range, got %s; expected numbers from %lld to %lld", name,
                           tn__common_text(text, given), (long long)least, (long long)INT32_MAX);
    }
    return TN_OK;
}

tn_status tn__window_lay(tn__window *s, tn_ints stride, tn_ints padding, tn_ints dilation, bool up)
{
    char text[TN__TEXT], text_k[TN__TEXT];
    tn_status status = tn__window_row(stride, s->dims, 1, 1, "stride", s->stride);

    if (status == TN_OK)
        status = tn__window_row(padding, s->dims, 0, 0, "padding", s->padding);
    if (status == TN_OK)
        status = tn__window_row(dilation, s->dims, 1, 1, "dilation", s->dilation);
    for (int32_t i = 0; i < s->dims && status == TN_OK; i++) {
        int64_t before = s->kernel[i] > 0 ? s->kernel[i] - 1 : 0;
        int64_t reach = tn__common_plus(tn__common_times(s->dilation[i], before), 1);
        int64_t all = s->size[i] >= 0 ? tn__common_plus(s->size[i], 2 * s->padding[i]) : -1;
        int64_t room = tn__common_plus(all - reach, up ? s->stride[i] - 1 : 0);

        if (all == INT64_MAX)
            return tn_fail(TN_ERR_RUNTIME,
                           "padding: too large, got %lld at both ends of an image of %s; expected "
                           "less than 2^63 - 1 together",
                           (long long)s->padding[i],
                           tn__common_text(text, (tn_ints){ s->size, s->dims }));
        if (room < 0 || s->kernel[i] < 1 || s->size[i] < 0)
            return tn_fail(
                TN_ERR_RUNTIME,
                "kernel: does not fit, got %s with dilation %lld, which spans %lld; expected sizes "
                "from 1 on that span at most the image size %s plus padding of %lld at both ends",
                tn__common_text(text_k, (tn_ints){ s->kernel, s->dims }), (long long)s->dilation[i],
                (long long)reach, tn__common_text(text, (tn_ints){ s->size, s->dims }),
                (long long)s->padding[i]);
        s->count[i] = room / s->stride[i] + 1;
        /* The last window must begin inside the image or in the padding before the image. */
        if (up && (s->count[i] - 1) * s->stride[i] >= tn__common_plus(s->size[i], s->padding[i]))
            s->count[i]--;
    }
    return status;
}

tn_tensor *tn__window_windows(tn_tensor *x, const tn__window *s, double value, bool replicate)
{
    int64_t sizes[2 * TN__WINDOW_DIMS];
    bool any = false;

    for (int32_t i = 0; i < s->dims; i++) {
        int64_t end = tn__common_plus((s->count[i] - 1) * s->stride[i],
                                      s->dilation[i] * (s->kernel[i] - 1) + 1);
        int64_t *pair = sizes + 2 * (s->dims - 1 - i), after = end - s->padding[i] - s->size[i];

        pair[0] = s->padding[i];
        pair[1] = after > 0 ? after : 0;
        any |= pair[0] > 0 || pair[1] > 0;
    }
    if (any)
        x = tn_pad(x, ((tn_ints){ sizes, 2 * s->dims }), replicate ? "replicate" : "constant",
                   replicate ? 0.0 : value);
    for (int32_t i = 0; i < s->dims && x != NULL; i++) {
        int64_t reach = s->dilation[i] * (s->kernel[i] - 1) + 1;

        x = tn_unfold(x, 2 + i, reach, s->stride[i]);
        /* There may be more windows than s->count if strides skip the end of the padding. */
        if (x != NULL && tn_tensor_size(x, 2 + i) > s->count[i])
            x = tn_narrow(x, 2 + i, 0, s->count[i]);
        if (s->dilation[i] > 1)
            x = tn_slice(x, -1, INT64_MIN, INT64_MIN, s->dilation[i]);
    }
    return x;
}

tn_tensor *tn__window_places(tn_tensor *like, const tn__window *s)
{
    int64_t shape[2 + TN__WINDOW_DIMS] = { 1, 1 };

    for (int32_t i = 0; i < s->dims; i++)
        shape[2 + i] = s->size[i];
    return tn__window_windows(tn_reshape(tn_arange(like, 0, tn__window_product(s->size, s->dims)),
                                         (tn_ints){ shape, 2 + s->dims }),
                              s, 0, true);
}

tn_tensor *tn__window_batched(tn_tensor *x, int32_t dims)
{
    return x != NULL && tn_tensor_ndim(x) == dims + 1 ? tn_unsqueeze(x, 0) : x;
}

tn_tensor *tn__window_unbatched(tn_tensor *y, int32_t dims, const tn_tensor *x)
{
    int64_t first[1] = { 0 };

    return y == NULL || tn_tensor_ndim(x) != dims + 1 ? y : tn_squeeze(y, ((tn_ints){ first, 1 }));
}

tn_status tn__window_check(const tn_view *x, int32_t dims)
{
    char text[TN__TEXT];

    if (x->ndim == dims + 1 || x->ndim == dims + 2)
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME,
                   "x: wrong shape, got %s; expected %d dimensions ([N, C, ...]) or %d (without N)",
                   tn__common_text(text, tn__common_shape(x)), (int)dims + 2, (int)dims + 1);
}

void tn__window_meta(tn_meta *meta, tn_dtype dtype, int64_t n, int64_t c, const int64_t *rest,
                     int32_t dims)
{
    meta->dtype = dtype;
    meta->ndim = dims + 2;
    meta->shape[0] = n;
    meta->shape[1] = c;
    for (int32_t i = 0; i < dims; i++)
        meta->shape[2 + i] = rest[i];
}

void tn__window_keep_order(tn_meta *meta, const tn_view *x)
{
    if (tn__channels_are_last(x))
        tn__channels_set_last(meta);
}

void tn__window_choose_order(tn_meta *meta, const tn_infer *infer)
{
    if ((infer->device_flags & TN_BACKEND_CHANNELS_LAST) != 0 ||
        tn__channels_are_last(infer->in[0]))
        tn__channels_set_last(meta);
}

tn_tensor *tn__window_per_channel(tn_tensor *bias, int32_t dims)
{
    int64_t shape[2 + TN__WINDOW_DIMS] = { 1, tn_tensor_numel(bias), 1, 1, 1 };

    return tn_reshape(bias, (tn_ints){ shape, 2 + dims });
}
