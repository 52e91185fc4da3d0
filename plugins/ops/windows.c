/* SPDX-License-Identifier: MIT
 *
 * More at the edges of a tensor; columns of windows of images and back. */
#include "common.h"

/* ---- pad ---- */

static bool is_mode(const char *mode, const char *name)
{
    return mode != NULL && strcmp(mode, name) == 0;
}

/* So far sums of sizes can be counted. */
#define FAR (INT64_MAX / 4)

static tn_status pad_infer(tn_infer *infer)
{
    const tn_pad_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    bool constant = is_mode(o->mode, "constant"), reflect = is_mode(o->mode, "reflect");
    bool circular = is_mode(o->mode, "circular");
    char text[TN__TEXT], text_x[TN__TEXT];

    if (!constant && !reflect && !circular && !is_mode(o->mode, "replicate"))
        return tn_fail(TN_ERR_VALUE,
                       "mode is %q: constant, reflect, replicate and circular are there",
                       o->mode != NULL ? o->mode : "");
    if (o->sizes.count % 2 != 0 || o->sizes.count / 2 > x->ndim)
        return tn_fail(
            TN_ERR_RUNTIME,
            "sizes %s: expected pairs (before, after), at most one for each dimension of x %s",
            tn__common_text(text, o->sizes), tn__common_text(text_x, tn__common_shape(x)));
    tn__common_plain(meta, tn_view_dtype(x), tn__common_shape(x));
    for (int64_t i = 0; i < o->sizes.count / 2; i++) {
        int32_t dim = x->ndim - 1 - (int32_t)i;
        int64_t before = o->sizes.at[2 * i], after = o->sizes.at[2 * i + 1], size = x->shape[dim];
        int64_t left;

        if (before > FAR || after > FAR || before < -FAR || after < -FAR)
            return tn_fail(TN_ERR_RUNTIME, "sizes %s: at most %lld at one end are taken",
                           tn__common_text(text, o->sizes), (long long)FAR);
        left = size + (before < 0 ? before : 0) + (after < 0 ? after : 0);
        int64_t most = reflect ? left - 1 : circular ? left : size > 0 ? INT64_MAX : 0;

        if (!constant && ((before > 0 && before > most) || (after > 0 && after > most)))
            return tn_fail(TN_ERR_RUNTIME,
                           "sizes %s do not go with mode %s for dimension %d of x %s",
                           tn__common_text(text, o->sizes), o->mode, (int)dim,
                           tn__common_text(text_x, tn__common_shape(x)));
        meta->shape[dim] += before + after;
        if (!constant && !circular && (before != 0 || after != 0) && meta->shape[dim] < 1)
            return tn_fail(TN_ERR_RUNTIME, "sizes %s leave nothing of dimension %d of x %s",
                           tn__common_text(text, o->sizes), (int)dim,
                           tn__common_text(text_x, tn__common_shape(x)));
        if (meta->shape[dim] < 0 || size + before < 0 || size + after < 0)
            return tn_fail(TN_ERR_RUNTIME, "sizes %s cut more than there is of x %s",
                           tn__common_text(text, o->sizes),
                           tn__common_text(text_x, tn__common_shape(x)));
        if (constant && (before > 0 || after > 0) &&
            tn__common_fits(tn_view_dtype(x), o->value, "value") != TN_OK)
            return tn_error_last()->code;
    }
    return TN_OK;
}

static tn_tensor *flipped(tn_tensor *x, int64_t dim)
{
    return x == NULL ? NULL : tn_flip(x, (tn_ints){ &dim, 1 });
}

/* What goes to an edge of `dim`: `count` elements, at the front or behind. `replicate` repeats an edge of what was there before
 * anything was cut off. */
static tn_tensor *edge(tn_tensor *x, int64_t dim, int64_t count, bool front,
                       const tn_pad_options *o)
{
    int64_t size = tn_tensor_size(x, dim), shape[TN_MAX_DIMS];
    tn_ints row = { shape, tn_tensor_ndim(x) };

    for (int64_t d = 0; d < row.count; d++)
        shape[d] = d == dim ? count : tn_tensor_size(x, d);
    if (is_mode(o->mode, "constant"))
        return tn_tensor_full(row, o->value, tn_tensor_dtype(x), tn_tensor_device(x));
    if (is_mode(o->mode, "replicate"))
        return tn_expand(tn_narrow(x, dim, front ? 0 : size - 1, 1), row);
    if (is_mode(o->mode, "circular"))
        return tn_narrow(x, dim, front ? size - count : 0, count);
    return flipped(tn_narrow(x, dim, front ? 1 : size - 1 - count, count), dim);
}

static tn_tensor *padded(tn_tensor *x, int64_t dim, int64_t before, int64_t after,
                         const tn_pad_options *o)
{
    tn_tensor *parts[3], *whole = x;
    int64_t count = 0;

    if (before < 0 || after < 0) {
        int64_t first = before < 0 ? -before : 0, last = after < 0 ? -after : 0;

        x = tn_narrow(x, dim, first, tn_tensor_size(x, dim) - first - last);
        if (x == NULL)
            return NULL;
    }
    if (before > 0)
        parts[count++] = edge(is_mode(o->mode, "replicate") ? whole : x, dim, before, true, o);
    parts[count++] = x;
    if (after > 0)
        parts[count++] = edge(is_mode(o->mode, "replicate") ? whole : x, dim, after, false, o);
    return count == 1 ? x : tn_cat(parts, count, dim);
}

static tn_status pad_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                               tn_tensor **out)
{
    const tn_pad_options *o = options;
    tn_tensor *y = in[0];

    (void)n_in;
    for (int64_t i = 0; i < o->sizes.count / 2 && y != NULL; i++)
        y = padded(y, tn_tensor_ndim(in[0]) - 1 - i, o->sizes.at[2 * i], o->sizes.at[2 * i + 1], o);
    return tn__common_given(out, y == in[0] ? tn_copy(y) : y);
}

/* ---- columns ---- */

/* Of height and width. */
typedef struct windows {
    int64_t kernel[2], dilation[2], padding[2], stride[2];
    int64_t count[2]; /* of windows */
} windows;

static tn_status pair(tn_ints given, int64_t otherwise, int64_t least, const char *name,
                      int64_t *out)
{
    char text[TN__TEXT];

    for (int i = 0; i < 2; i++)
        out[i] = given.count == 2 ? given.at[i] : given.count == 1 ? given.at[0] : otherwise;
    if (given.count > 2 || out[0] < least || out[1] < least || out[0] > INT32_MAX ||
        out[1] > INT32_MAX)
        return tn_fail(TN_ERR_VALUE, "%s %s has to be one or two numbers, %lld to %lld", name,
                       tn__common_text(text, given), (long long)least, (long long)INT32_MAX);
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
        int64_t room = size[i] + 2 * w->padding[i] - w->dilation[i] * (w->kernel[i] - 1) - 1;

        if (room < 0)
            return tn_fail(TN_ERR_RUNTIME,
                           "a window of %lld, %lld does not fit into an image of %lld, %lld",
                           (long long)w->kernel[0], (long long)w->kernel[1], (long long)size[0],
                           (long long)size[1]);
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
        return tn_fail(TN_ERR_RUNTIME, "x has %d dimension%s; [N, C, H, W] or [C, H, W] are taken",
                       (int)x->ndim, x->ndim == 1 ? "" : "s");
    status = lay_out(x->shape + x->ndim - 2, o->kernel, o->dilation, o->padding, o->stride, &w);
    if (status != TN_OK)
        return status;
    meta->dtype = tn_view_dtype(x);
    meta->ndim = x->ndim - 1;
    meta->shape[0] = x->shape[0];
    meta->shape[x->ndim - 3] = x->shape[x->ndim - 3] * w.kernel[0] * w.kernel[1];
    meta->shape[x->ndim - 2] = w.count[0] * w.count[1];
    return TN_OK;
}

/* [N, C, H, W], padded already, to [N, C * kh * kw, windows]. */
static tn_tensor *columns(tn_tensor *x, const windows *w)
{
    static const int64_t order[] = { 0, 1, 4, 5, 2, 3 };
    int64_t shape[3];

    for (int i = 0; i < 2 && x != NULL; i++) {
        tn_slice_options every = TN_SLICE_OPTIONS;

        every.step = w->dilation[i];
        x = tn_slice(tn_unfold(x, 2 + i, w->dilation[i] * (w->kernel[i] - 1) + 1, w->stride[i]), -1,
                     &every);
    }
    if (x == NULL)
        return NULL;
    shape[0] = tn_tensor_size(x, 0);
    shape[1] = tn_tensor_size(x, 1) * w->kernel[0] * w->kernel[1];
    shape[2] = w->count[0] * w->count[1];
    return tn_reshape(tn_permute(x, (tn_ints){ order, 6 }), (tn_ints){ shape, 3 });
}

static tn_tensor *with_edges(tn_tensor *x, const windows *w)
{
    int64_t sizes[4] = { w->padding[1], w->padding[1], w->padding[0], w->padding[0] };

    return sizes[0] == 0 && sizes[2] == 0 ? x : tn_pad(x, (tn_ints){ sizes, 4 }, NULL);
}

static tn_tensor *batched(tn_tensor *x, int32_t ndim)
{
    return tn_tensor_ndim(x) < ndim ? tn_unsqueeze(x, 0) : x;
}

static tn_tensor *unbatched(tn_tensor *y, bool was)
{
    tn_squeeze_options o = TN_SQUEEZE_OPTIONS;
    int64_t first[1] = { 0 };

    o.dims = (tn_ints){ first, 1 };
    return was || y == NULL ? y : tn_squeeze(y, &o);
}

static tn_status im2col_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                  tn_tensor **out)
{
    const tn_im2col_options *o = options;
    tn_tensor *x = batched(in[0], 4);
    windows w;
    int64_t size[2];

    (void)n_in;
    if (x == NULL)
        return tn_error_last()->code;
    size[0] = tn_tensor_size(x, 2);
    size[1] = tn_tensor_size(x, 3);
    if (lay_out(size, o->kernel, o->dilation, o->padding, o->stride, &w) != TN_OK)
        return tn_error_last()->code;
    return tn__common_given(out, unbatched(columns(with_edges(x, &w), &w), x == in[0]));
}

static tn_status fold_infer(tn_infer *infer)
{
    const tn_fold_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    int64_t size[2], window;
    windows w;
    tn_status status;

    if (x->ndim != 2 && x->ndim != 3)
        return tn_fail(TN_ERR_RUNTIME,
                       "x has %d dimension%s; [N, C * kh * kw, windows] or without N are taken",
                       (int)x->ndim, x->ndim == 1 ? "" : "s");
    status = pair(o->output_size, 0, 1, "output_size", size);
    if (status == TN_OK)
        status = lay_out(size, o->kernel, o->dilation, o->padding, o->stride, &w);
    if (status != TN_OK)
        return status;
    window = w.kernel[0] * w.kernel[1];
    if (x->shape[x->ndim - 2] % window != 0 || x->shape[x->ndim - 1] != w.count[0] * w.count[1])
        return tn_fail(TN_ERR_RUNTIME,
                       "x has %lld rows and %lld columns; a multiple of %lld and %lld are needed",
                       (long long)x->shape[x->ndim - 2], (long long)x->shape[x->ndim - 1],
                       (long long)window, (long long)(w.count[0] * w.count[1]));
    meta->dtype = tn_view_dtype(x);
    meta->ndim = x->ndim + 1;
    meta->shape[0] = x->shape[0];
    meta->shape[x->ndim - 2] = x->shape[x->ndim - 2] / window;
    meta->shape[x->ndim - 1] = size[0];
    meta->shape[x->ndim] = size[1];
    return TN_OK;
}

/* Every element goes where im2col would have taken it from. */
static tn_status fold_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                tn_tensor **out)
{
    const tn_fold_options *o = options;
    tn_tensor *x = batched(in[0], 3), *places, *y;
    int64_t size[2], image[4], flat[2], rows[2];
    windows w;

    (void)n_in;
    if (x == NULL || pair(o->output_size, 0, 1, "output_size", size) != TN_OK ||
        lay_out(size, o->kernel, o->dilation, o->padding, o->stride, &w) != TN_OK)
        return tn_error_last()->code;
    image[0] = image[1] = 1;
    image[2] = size[0] + 2 * w.padding[0];
    image[3] = size[1] + 2 * w.padding[1];
    places = columns(
        tn_reshape(tn_arange(x, 0, (double)(image[2] * image[3]), NULL), (tn_ints){ image, 4 }),
        &w);
    image[0] = tn_tensor_size(x, 0);
    image[1] = tn_tensor_size(x, 1) / (w.kernel[0] * w.kernel[1]);
    rows[0] = flat[0] = image[0] * image[1];
    rows[1] = w.kernel[0] * w.kernel[1] * w.count[0] * w.count[1];
    flat[1] = image[2] * image[3];
    places = tn_expand(tn_reshape(places, (tn_ints){ rows + 1, 1 }), (tn_ints){ rows, 2 });
    y = tn_scatter_add(tn__common_zeros(x, (tn_ints){ flat, 2 }), places,
                       tn_reshape(x, (tn_ints){ rows, 2 }), 1);
    y = tn_reshape(y, (tn_ints){ image, 4 });
    for (int i = 0; i < 2; i++)
        if (w.padding[i] > 0)
            y = tn_narrow(y, 2 + i, w.padding[i], size[i]);
    return tn__common_given(out, unbatched(y, x == in[0]));
}

#define COMPOSED(name, NAME)                                                                       \
    const tn_op_def tn__op_##name = { TN_HEAD(tn_op_def), TN_SCHEMA_##NAME, .infer = name##_infer, \
                                      .decompose = name##_decompose };
COMPOSED(pad, PAD)
COMPOSED(im2col, IM2COL)
COMPOSED(fold, FOLD)
