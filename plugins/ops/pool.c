/* SPDX-License-Identifier: MIT
 *
 * Pooling: computes one number from each window of [N, C, ...]. */
#include "window.h"

/* The options that all pooling operators have. */
typedef struct pool {
    tn_ints kernel, stride, padding, dilation;
    bool ceil_mode;
} pool;

static tn_status lay_out(tn__window *s, tn_ints size, const pool *o)
{
    char text[TN__TEXT], text_k[TN__TEXT];
    tn_status status;

    if (size.count < 1 || size.count > TN__WINDOW_DIMS)
        return tn_fail(
            TN_ERR_RUNTIME,
            "x: wrong number of dimensions, got image size %s; expected one to three dimensions "
            "after [N, C]",
            tn__common_text(text, size));
    if (o->kernel.count < 1)
        return tn_fail(TN_ERR_VALUE, "kernel: empty, got 0 sizes; expected 1 to 3");
    s->dims = (int32_t)size.count;
    for (int64_t i = 0; i < size.count; i++)
        s->size[i] = size.at[i];
    status = tn__window_row(o->kernel, s->dims, 1, 1, "kernel", s->kernel);
    if (status == TN_OK)
        status = tn__window_row(o->padding, s->dims, 0, 0, "padding", s->padding);
    for (int32_t i = 0; i < s->dims && status == TN_OK; i++) {
        if (s->padding[i] > s->kernel[i] / 2)
            return tn_fail(
                TN_ERR_RUNTIME,
                "padding: too large, got %s for the kernel %s; expected at most half of it",
                tn__common_text(text, o->padding), tn__common_text(text_k, o->kernel));
        if (s->size[i] < 1)
            return tn_fail(TN_ERR_RUNTIME, "x: empty images, got %s; expected sizes of at least 1",
                           tn__common_text(text, size));
    }
    if (status != TN_OK)
        return status;
    return tn__window_lay(s, o->stride.count > 0 ? o->stride : o->kernel, o->padding, o->dilation,
                          o->ceil_mode);
}

static tn_status image_infer(const tn_view *x, const pool *o, tn__window *s)
{
    char text[TN__TEXT];

    if (x->ndim < 3 || x->ndim > 2 + TN__WINDOW_DIMS)
        return tn_fail(
            TN_ERR_RUNTIME,
            "x: wrong shape, got %s; expected [N, C, ...] with one to three more dimensions",
            tn__common_text(text, tn__common_shape(x)));
    return lay_out(s, (tn_ints){ x->shape + 2, x->ndim - 2 }, o);
}

static tn_ints behind(tn_ints shape)
{
    return (tn_ints){ shape.at + 2, shape.count - 2 };
}

/* Merges the kernel dimensions of windows [N, C, count..., kernel...] into one. */
static tn_tensor *flat_windows(tn_tensor *windows, const tn__window *s)
{
    int64_t shape[3 + TN__WINDOW_DIMS];

    if (windows == NULL)
        return NULL;
    for (int32_t i = 0; i < 2 + s->dims; i++)
        shape[i] = tn_tensor_size(windows, i);
    shape[2 + s->dims] = tn__window_product(s->kernel, s->dims);
    return tn_reshape(windows, (tn_ints){ shape, 3 + s->dims });
}

static tn_tensor *one_each(tn_tensor *x, int64_t dim)
{
    return x == NULL ? NULL : tn_squeeze(x, TN_INTS(dim));
}

/* Finds the maximum of each window (out[0]) and its index in the image (out[1]). `windows` is [N,
 * C, count..., k]. `places` is [1, 1, count..., k]: the index in the image of each element of a
 * window. */
static tn_status largest(tn_tensor *windows, tn_tensor *places, tn_tensor **out)
{
    int64_t last = windows == NULL ? 0 : tn_tensor_ndim(windows) - 1;
    tn_tensor *which;
    tn_status status;

    status = tn_max_dim(windows, last, &out[0], &which, true);
    if (status != TN_OK)
        return status;
    out[0] = one_each(out[0], last);
    out[1] = one_each(tn_gather(tn_expand(places, tn_tensor_shape(windows)), which, last), last);
    return out[0] != NULL && out[1] != NULL ? TN_OK : tn_error_last_code();
}

/* ---- max_pool ---- */

static pool max_options(const tn_max_pool_options *o)
{
    return (pool){ o->kernel, o->stride, o->padding, o->dilation, o->ceil_mode };
}

static tn_status max_pool_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];
    pool o = max_options(infer->options);
    tn__window s;
    tn_status status = image_infer(x, &o, &s);

    if (status != TN_OK)
        return status;
    tn__window_meta(&infer->out[0], tn_view_dtype(x), x->shape[0], x->shape[1], s.count, s.dims);
    tn__window_meta(&infer->out[1], TN_I64, x->shape[0], x->shape[1], s.count, s.dims);
    tn__window_keep_order(&infer->out[0], x);
    tn__window_keep_order(&infer->out[1], x);
    return TN_OK;
}

static tn_status max_pool_decompose(const tn_decompose *call)
{
    pool o = max_options(call->options);
    tn__window s;
    if (lay_out(&s, behind(tn_tensor_shape(call->in[0])), &o) != TN_OK)
        return tn_error_last_code();
    return largest(flat_windows(tn__window_windows(call->in[0], &s, -INFINITY, false), &s),
                   flat_windows(tn__window_places(call->in[0], &s), &s), call->out);
}

static tn_status max_pool_derive(tn_derive *d)
{
    d->gin[0] = d->gout[0] == TN_NONE
                    ? TN_NONE
                    : tn_max_pool_grad(d->gout[0], d->out[1], behind(tn__common_in_shape(d, 0)));
    return TN_OK;
}

static tn_status max_pool_grad_infer(tn_infer *infer)
{
    const tn_max_pool_grad_options *o = infer->options;
    const tn_view *gy = infer->in[0], *indices = infer->in[1];
    char text[TN__TEXT], text_i[TN__TEXT], text_s[TN__TEXT];
    bool same = gy->ndim == indices->ndim && gy->ndim == o->input_size.count + 2 &&
                o->input_size.count >= 1 && o->input_size.count <= TN__WINDOW_DIMS;

    for (int32_t i = 0; same && i < gy->ndim; i++)
        same = gy->shape[i] == indices->shape[i];
    for (int64_t i = 0; same && i < o->input_size.count; i++)
        same = o->input_size.at[i] > 0;
    if (!same)
        return tn_fail(
            TN_ERR_RUNTIME,
            "gy, indices or input_size: wrong shape, got %s, %s and %s; expected the same shape "
            "for gy and indices, [N, C, ...] with one more dimension for each size in input_size, "
            "and sizes above 0",
            tn__common_text(text, tn__common_shape(gy)),
            tn__common_text(text_i, tn__common_shape(indices)),
            tn__common_text(text_s, o->input_size));
    tn__window_meta(&infer->out[0], tn_view_dtype(gy), gy->shape[0], gy->shape[1], o->input_size.at,
                    (int32_t)o->input_size.count);
    /* The indices have the stride order that x had. */
    tn__window_keep_order(&infer->out[0], indices);
    return TN_OK;
}

/* flat() reshapes [N, C, ...] to [N, C, all]; unflat() reshapes it back to `size`. */
static tn_tensor *flat(tn_tensor *x)
{
    return tn_flatten(x, 2, -1);
}

static tn_tensor *unflat(tn_tensor *x, tn_ints size)
{
    int64_t shape[2 + TN__WINDOW_DIMS];

    if (x == NULL)
        return NULL;
    shape[0] = tn_tensor_size(x, 0);
    shape[1] = tn_tensor_size(x, 1);
    for (int64_t i = 0; i < size.count; i++)
        shape[2 + i] = size.at[i];
    return tn_reshape(x, (tn_ints){ shape, 2 + size.count });
}

static tn_tensor *blank(tn_tensor *like, int64_t count)
{
    return tn__common_zeros(like,
                            TN_SHAPE(tn_tensor_size(like, 0), tn_tensor_size(like, 1), count));
}

static tn_status max_pool_grad_decompose(const tn_decompose *call)
{
    const tn_max_pool_grad_options *o = call->options;
    int64_t all = tn__window_product(o->input_size.at, (int32_t)o->input_size.count);
    return tn__common_given(
        call->out,
        unflat(tn_scatter_add(blank(call->in[0], all), flat(call->in[1]), flat(call->in[0]), 2),
               o->input_size));
}

static tn_status max_pool_grad_derive(tn_derive *d)
{
    tn_ints shape = tn__common_in_shape(d, 0);

    d->gin[0] = unflat(tn_gather(flat(d->gout[0]), flat(d->in[1]), 2), behind(shape));
    return TN_OK;
}

/* ---- avg_pool ---- */

typedef struct mean_options {
    pool pool;
    bool with_pad;
    int64_t divisor; /* divisor_override; INT64_MIN: divide by the number of elements */
} mean_options;

static mean_options avg_options(const tn_avg_pool_options *o)
{
    return (mean_options){ { o->kernel, o->stride, o->padding, { NULL, 0 }, o->ceil_mode },
                           o->count_include_pad,
                           o->divisor_override };
}

static mean_options avg_grad_options(const tn_avg_pool_grad_options *o)
{
    return (mean_options){ { o->kernel, o->stride, o->padding, { NULL, 0 }, o->ceil_mode },
                           o->count_include_pad,
                           o->divisor_override };
}

static tn_status check_divisor(const mean_options *o)
{
    return o->divisor != 0
               ? TN_OK
               : tn_fail(TN_ERR_VALUE,
                         "divisor_override: out of range, got 0; expected another number");
}

/* Computes the number of elements in each window. If all windows have the same number, returns NULL
 * and stores this number in *all; if not, returns the numbers as [1, 1, count...]. */
static tn_tensor *counts(tn_tensor *like, const tn__window *s, const mean_options *o, double *all)
{
    tn_tensor *product = NULL;
    bool even = true;

    *all = o->divisor != INT64_MIN ? (double)o->divisor
                                   : (double)tn__window_product(s->kernel, s->dims);
    for (int32_t i = 0; i < s->dims; i++) {
        int64_t end = tn__common_plus((s->count[i] - 1) * s->stride[i], s->kernel[i]);

        even &= end <= s->size[i] + 2 * s->padding[i] && (o->with_pad || s->padding[i] == 0);
        even &= o->with_pad || end <= s->size[i];
    }
    if (even || o->divisor != INT64_MIN)
        return NULL;
    *all = 0;
    /* the number along one dimension is the overlap of window and image */
    for (int32_t i = 0; i < s->dims; i++) {
        int64_t pad = s->padding[i], low = o->with_pad ? -pad : 0,
                high = s->size[i] + (o->with_pad ? pad : 0),
                shape[2 + TN__WINDOW_DIMS] = { 1, 1, 1, 1, 1 };
        tn_tensor *start, *length;

        start = tn_arange(like, -pad, tn__common_times(s->count[i], s->stride[i]) - pad,
                          s->stride[i], TN_I64);
        length = tn_sub(tn_clamp(tn_add_scalar(start, s->kernel[i]), tn_scalar_none(), high),
                        tn_clamp(start, low));
        shape[2 + i] = s->count[i];
        length = tn_reshape(length, (tn_ints){ shape, 2 + s->dims });
        product = product == NULL ? length : tn_mul(product, length);
        if (product == NULL)
            return NULL;
    }
    return tn_cast(product, tn_tensor_dtype(like));
}

/* Divides x by the number of elements of its windows. counts() returns NULL with a nonzero `all` if
 * one number is valid for all windows, and with `all` = 0 after an error. */
static tn_tensor *over_counts(tn_tensor *x, const tn__window *s, const mean_options *o)
{
    double all;
    tn_tensor *each = x == NULL ? NULL : counts(x, s, o, &all);

    if (x == NULL)
        return NULL;
    if (each == NULL && all == 0)
        return NULL;
    return each != NULL ? tn_div(x, each) : tn_div(x, tn__scalar_number(x, all));
}

static tn_status avg_pool_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];
    mean_options o = avg_options(infer->options);
    tn__window s;
    tn_status status = image_infer(x, &o.pool, &s);

    if (status == TN_OK)
        status = check_divisor(&o);
    if (status != TN_OK)
        return status;
    tn__window_meta(&infer->out[0], tn_view_dtype(x), x->shape[0], x->shape[1], s.count, s.dims);
    tn__window_keep_order(&infer->out[0], x);
    return TN_OK;
}

static tn_status avg_pool_decompose(const tn_decompose *call)
{
    const tn_avg_pool_options *given = call->options;
    mean_options o = avg_options(given);
    int64_t dims[TN__WINDOW_DIMS];
    tn__window s;
    /* Computes in float32, because the sum may overflow float16 even if the mean does not. */
    if (tn__common_narrow(call->in[0]))
        return tn__common_given(
            call->out, tn_cast(tn_avg_pool(tn_cast(call->in[0], TN_F32), given->kernel,
                                           given->stride, given->padding, given->ceil_mode,
                                           given->count_include_pad, given->divisor_override),
                               tn_tensor_dtype(call->in[0])));
    if (lay_out(&s, behind(tn_tensor_shape(call->in[0])), &o.pool) != TN_OK)
        return tn_error_last_code();
    for (int32_t i = 0; i < s.dims; i++)
        dims[i] = 2 + s.dims + i;
    return tn__common_given(call->out,
                            over_counts(tn_sum(tn__window_windows(call->in[0], &s, 0, false),
                                               ((tn_ints){ dims, s.dims })),
                                        &s, &o));
}

static tn_status avg_pool_derive(tn_derive *d)
{
    const tn_avg_pool_options *o = d->options;

    d->gin[0] = tn_avg_pool_grad(d->gout[0], behind(tn__common_in_shape(d, 0)), o->kernel,
                                 o->stride, o->padding, o->ceil_mode, o->count_include_pad,
                                 o->divisor_override);
    return TN_OK;
}

static tn_status avg_pool_grad_infer(tn_infer *infer)
{
    const tn_avg_pool_grad_options *given = infer->options;
    const tn_view *gy = infer->in[0];
    mean_options o = avg_grad_options(given);
    char text[TN__TEXT], text_c[TN__TEXT];
    tn__window s;
    tn_status status = lay_out(&s, given->input_size, &o.pool);
    bool fits;

    if (status == TN_OK)
        status = check_divisor(&o);
    if (status != TN_OK)
        return status;
    fits = gy->ndim == 2 + s.dims;
    for (int32_t i = 0; fits && i < s.dims; i++)
        fits = gy->shape[2 + i] == s.count[i];
    if (!fits)
        return tn_fail(TN_ERR_RUNTIME,
                       "gy: wrong shape, got %s; expected [N, C, ...] with the last sizes %s",
                       tn__common_text(text, tn__common_shape(gy)),
                       tn__common_text(text_c, (tn_ints){ s.count, s.dims }));
    tn__window_meta(&infer->out[0], tn_view_dtype(gy), gy->shape[0], gy->shape[1], s.size, s.dims);
    tn__window_keep_order(&infer->out[0], gy);
    return TN_OK;
}

/* Adds the gradient of each window to all of its elements; the part for the padding is dropped. */
static tn_status avg_pool_grad_decompose(const tn_decompose *call)
{
    const tn_avg_pool_grad_options *given = call->options;
    mean_options o = avg_grad_options(given);
    int64_t shape[2 + 2 * TN__WINDOW_DIMS], padded[TN__WINDOW_DIMS];
    tn__window s, wide;
    tn_tensor *each, *places, *y;
    /* Computes in float32, because sums over overlapping windows may overflow float16. */
    if (tn__common_narrow(call->in[0]))
        return tn__common_given(
            call->out,
            tn_cast(tn_avg_pool_grad(tn_cast(call->in[0], TN_F32), given->input_size, given->kernel,
                                     given->stride, given->padding, given->ceil_mode,
                                     given->count_include_pad, given->divisor_override),
                    tn_tensor_dtype(call->in[0])));
    if (lay_out(&s, given->input_size, &o.pool) != TN_OK)
        return tn_error_last_code();
    each = over_counts(call->in[0], &s, &o);
    for (int32_t i = 0; i < 2 + s.dims; i++)
        shape[i] = tn_tensor_size(call->in[0], i);
    for (int32_t i = 0; i < s.dims; i++) {
        int64_t end = tn__common_plus((s.count[i] - 1) * s.stride[i], s.kernel[i]);

        shape[2 + s.dims + i] = s.kernel[i];
        padded[i] = s.size[i] + s.padding[i];
        padded[i] = end > padded[i] ? end : padded[i];
    }
    wide = s;
    for (int32_t i = 0; i < s.dims; i++) {
        wide.size[i] = padded[i];
        wide.padding[i] = 0;
        each = tn_unsqueeze(each, -1);
    }
    each = flat(tn_expand(each, (tn_ints){ shape, 2 + 2 * s.dims }));
    places = tn__window_places(call->in[0], &wide);
    if (each == NULL || places == NULL)
        return tn_error_last_code();
    places = tn_expand(flat(places), tn_tensor_shape(each));
    y = unflat(
        tn_scatter_add(blank(call->in[0], tn__window_product(padded, s.dims)), places, each, 2),
        (tn_ints){ padded, s.dims });
    for (int32_t i = 0; i < s.dims; i++)
        y = tn_narrow(y, 2 + i, s.padding[i], s.size[i]);
    return tn__common_given(call->out, y);
}

static tn_status avg_pool_grad_derive(tn_derive *d)
{
    const tn_avg_pool_grad_options *o = d->options;

    d->gin[0] = tn_avg_pool(d->gout[0], o->kernel, o->stride, o->padding, o->ceil_mode,
                            o->count_include_pad, o->divisor_override);
    return TN_OK;
}

TN__OP(max_pool, .infer = max_pool_infer, .derive = max_pool_derive,
       .decompose = max_pool_decompose);
TN__OP(max_pool_grad, .infer = max_pool_grad_infer, .derive = max_pool_grad_derive,
       .decompose = max_pool_grad_decompose);
TN__OP(avg_pool, .infer = avg_pool_infer, .derive = avg_pool_derive,
       .decompose = avg_pool_decompose);
TN__OP(avg_pool_grad, .infer = avg_pool_grad_infer, .derive = avg_pool_grad_derive,
       .decompose = avg_pool_grad_decompose);
