/* SPDX-License-Identifier: MIT
 *
 * im2col (windows of images as columns) and fold (columns added up to images). */
#include "common.h"

/* The geometry of the windows: [0] for the height, [1] for the width. */
typedef struct windows {
    int64_t kernel[2], dilation[2], padding[2], stride[2];
    int64_t count[2]; /* number of windows */
} windows;

static tn_status pair(tn_ints given, int64_t otherwise, int64_t least, const char *name,
                      int64_t *out)
{
    char text[TN__TEXT];

    for (int i = 0; i < 2; i++)
        out[i] = given.count == 2 ? given.at[i] : given.count == 1 ? given.at[0] : otherwise;
    if (given.count > 2 || out[0] < least || out[1] < least || out[0] > INT32_MAX ||
        out[1] > INT32_MAX)
        return tn_fail(
            TN_ERR_VALUE,
            "%s: out of range or too many, got %s; expected one or two numbers from %lld to %lld",
            name, tn__common_text(text, given), (long long)least, (long long)INT32_MAX);
    return TN_OK;
}

static tn_status lay_out(const int64_t *size, tn_ints kernel, tn_ints dilation, tn_ints padding,
                         tn_ints stride, windows *w)
{
    tn_status status = pair(kernel, 0, 1, "kernel", w->kernel);

    if (status == TN_OK)
        status = pair(dilation, 1, 1, "dilation", w->dilation);
    if (status == TN_OK)
        status = pair(padding, 0, 0, "padding", w->padding);
    if (status == TN_OK)
        status = pair(stride, 1, 1, "stride", w->stride);
    for (int i = 0; i < 2 && status == TN_OK; i++) {
        int64_t all = tn__common_plus(size[i], 2 * w->padding[i]);
        int64_t room = all - w->dilation[i] * (w->kernel[i] - 1) - 1;

        if (all == INT64_MAX)
            return tn_fail(TN_ERR_RUNTIME,
                           "padding: too large, got %lld at both ends of %lld elements; expected "
                           "less than 2^63 - 1 together",
                           (long long)w->padding[i], (long long)size[i]);
        if (room < 0)
            return tn_fail(
                TN_ERR_RUNTIME,
                "kernel: too large, got %lld with dilation %lld, which spans %lld elements; "
                "expected at most %lld, the size with its padding",
                (long long)w->kernel[i], (long long)w->dilation[i],
                (long long)(w->dilation[i] * (w->kernel[i] - 1) + 1), (long long)all);
        w->count[i] = room / w->stride[i] + 1;
    }
    return status;
}

static tn_status im2col_infer(tn_infer *infer)
{
    const tn_im2col_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    windows w;
    tn_status status;

    if (x->ndim != 3 && x->ndim != 4)
        return tn_fail(TN_ERR_RUNTIME,
                       "x: wrong number of dimensions, got %d; expected [N, C, H, W] or [C, H, W]",
                       (int)x->ndim);
    status = lay_out(x->shape + x->ndim - 2, o->kernel, o->dilation, o->padding, o->stride, &w);
    if (status != TN_OK)
        return status;
    meta->dtype = tn_view_dtype(x);
    meta->ndim = x->ndim - 1;
    meta->shape[0] = x->shape[0];
    meta->shape[x->ndim - 3] = tn__common_times(x->shape[x->ndim - 3], w.kernel[0] * w.kernel[1]);
    meta->shape[x->ndim - 2] = tn__common_times(w.count[0], w.count[1]);
    return TN_OK;
}

/* Returns the windows of x [N, C, H, W], already padded, as [N, C * kh * kw, windows]. */
static tn_tensor *columns(tn_tensor *x, const windows *w)
{
    static const int64_t order[] = { 0, 1, 4, 5, 2, 3 };
    int64_t shape[3];

    for (int i = 0; i < 2 && x != NULL; i++) {
        x = tn_slice(tn_unfold(x, 2 + i, w->dilation[i] * (w->kernel[i] - 1) + 1, w->stride[i]), -1,
                     INT64_MIN, INT64_MIN, w->dilation[i]);
    }
    if (x == NULL)
        return NULL;
    shape[0] = tn_tensor_size(x, 0);
    shape[1] = tn__common_times(tn_tensor_size(x, 1), w->kernel[0] * w->kernel[1]);
    shape[2] = tn__common_times(w->count[0], w->count[1]);
    return tn_reshape(tn_permute(x, (tn_ints){ order, 6 }), (tn_ints){ shape, 3 });
}

static tn_tensor *with_edges(tn_tensor *x, const windows *w)
{
    int64_t sizes[4] = { w->padding[1], w->padding[1], w->padding[0], w->padding[0] };

    return sizes[0] == 0 && sizes[2] == 0 ? x : tn_pad(x, ((tn_ints){ sizes, 4 }));
}

static tn_tensor *batched(tn_tensor *x, int32_t ndim)
{
    return tn_tensor_ndim(x) < ndim ? tn_unsqueeze(x, 0) : x;
}

static tn_tensor *unbatched(tn_tensor *y, bool was)
{
    int64_t first[1] = { 0 };

    return was || y == NULL ? y : tn_squeeze(y, ((tn_ints){ first, 1 }));
}

static tn_status im2col_decompose(const tn_decompose *call)
{
    const tn_im2col_options *o = call->options;
    tn_tensor *x = batched(call->in[0], 4), *y;
    windows w;
    int64_t size[2];
    if (x == NULL)
        return tn_error_last_code();
    size[0] = tn_tensor_size(x, 2);
    size[1] = tn_tensor_size(x, 3);
    if (lay_out(size, o->kernel, o->dilation, o->padding, o->stride, &w) != TN_OK)
        return tn_error_last_code();
    y = tn__common_apart(columns(with_edges(x, &w), &w), x); /* windows of one pixel are x */
    return tn__common_given(call->out, unbatched(y, x == call->in[0]));
}

static tn_status fold_infer(tn_infer *infer)
{
    const tn_fold_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    int64_t size[2], window, all;
    windows w;
    tn_status status;

    if (x->ndim != 2 && x->ndim != 3)
        return tn_fail(
            TN_ERR_RUNTIME,
            "x: wrong number of dimensions, got %d; expected [N, C * kh * kw, windows] or without "
            "N",
            (int)x->ndim);
    status = pair(o->output_size, 0, 1, "output_size", size);
    if (status == TN_OK)
        status = lay_out(size, o->kernel, o->dilation, o->padding, o->stride, &w);
    if (status != TN_OK)
        return status;
    window = w.kernel[0] * w.kernel[1];
    all = tn__common_times(w.count[0], w.count[1]);
    if (x->shape[x->ndim - 2] % window != 0 || x->shape[x->ndim - 1] != all)
        return tn_fail(
            TN_ERR_RUNTIME,
            "x: wrong size, got %lld rows and %lld columns; expected a multiple of %lld rows, and "
            "%lld columns",
            (long long)x->shape[x->ndim - 2], (long long)x->shape[x->ndim - 1], (long long)window,
            (long long)all);
    meta->dtype = tn_view_dtype(x);
    meta->ndim = x->ndim + 1;
    meta->shape[0] = x->shape[0];
    meta->shape[x->ndim - 2] = x->shape[x->ndim - 2] / window;
    meta->shape[x->ndim - 1] = size[0];
    meta->shape[x->ndim] = size[1];
    return TN_OK;
}

/* Adds every element to the place from which im2col would have taken it. */
static tn_status fold_decompose(const tn_decompose *call)
{
    const tn_fold_options *o = call->options;
    tn_tensor *x = batched(call->in[0], 3), *places, *y;
    int64_t size[2], image[4], flat[2], rows[2];
    windows w;
    if (x == NULL || pair(o->output_size, 0, 1, "output_size", size) != TN_OK ||
        lay_out(size, o->kernel, o->dilation, o->padding, o->stride, &w) != TN_OK)
        return tn_error_last_code();
    image[0] = image[1] = 1;
    image[2] = size[0] + 2 * w.padding[0];
    image[3] = size[1] + 2 * w.padding[1];
    places = columns(
        tn_reshape(tn_arange(x, 0, tn__common_times(image[2], image[3])), (tn_ints){ image, 4 }),
        &w);
    image[0] = tn_tensor_size(x, 0);
    image[1] = tn_tensor_size(x, 1) / (w.kernel[0] * w.kernel[1]);
    rows[0] = flat[0] = image[0] * image[1];
    rows[1] = tn__common_times(w.kernel[0] * w.kernel[1], tn__common_times(w.count[0], w.count[1]));
    flat[1] = tn__common_times(image[2], image[3]);
    places = tn_expand(tn_reshape(places, (tn_ints){ rows + 1, 1 }), (tn_ints){ rows, 2 });
    y = tn_scatter_add(tn__common_zeros(x, (tn_ints){ flat, 2 }), places,
                       tn_reshape(x, (tn_ints){ rows, 2 }), 1);
    y = tn_reshape(y, (tn_ints){ image, 4 });
    for (int i = 0; i < 2; i++)
        if (w.padding[i] > 0)
            y = tn_narrow(y, 2 + i, w.padding[i], size[i]);
    return tn__common_given(call->out, unbatched(y, x == call->in[0]));
}

TN__OP(im2col, .infer = im2col_infer, .decompose = im2col_decompose);
TN__OP(fold, .infer = fold_infer, .decompose = fold_decompose);
