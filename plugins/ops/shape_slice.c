/* SPDX-License-Identifier: MIT
 *
 * Views of a part of a tensor: narrow, select, slice, diagonal, unfold. */
#include "common.h"

/* Checks the arguments of narrow. Sets *at to the dimension and *first to the first index. */
static tn_status range(const tn_view *x, int64_t dim, int64_t start, int64_t length, int32_t *at,
                       int64_t *first)
{
    tn_status status;

    if (x->ndim == 0)
        return tn_fail(TN_ERR_RUNTIME, "x: too few dimensions, got 0; expected at least 1");
    status = tn__common_dim(dim, x->ndim, at);
    if (status != TN_OK)
        return status;
    if (length < 0)
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */ "length must be non-negative, not %lld",
                       (long long)length);
    if (start < -x->shape[*at] || start > x->shape[*at])
        return tn_fail(TN_ERR_INDEX,
                       /* PyTorch's wording */
                       "start out of range (expected to be in range of [%lld, %lld], but got %lld)",
                       (long long)-x->shape[*at], (long long)x->shape[*at], (long long)start);
    *first = start < 0 ? start + x->shape[*at] : start;
    if (*first > x->shape[*at] - length)
        return tn_fail(
            TN_ERR_RUNTIME,
            /* PyTorch's wording */ "start (%lld) + length (%lld) exceeds dimension size (%lld).",
            (long long)*first, (long long)length, (long long)x->shape[*at]);
    return TN_OK;
}

static tn_status narrow_infer(tn_infer *infer)
{
    const tn_narrow_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    int64_t first = 0;
    int32_t dim;
    tn_status status = range(x, o->dim, o->start, o->length, &dim, &first);

    if (status == TN_OK)
        status = tn__common_view_of(infer, x->ndim);
    if (status != TN_OK)
        return status;
    for (int32_t d = 0; d < x->ndim; d++) {
        meta->shape[d] = d == dim ? o->length : x->shape[d];
        meta->strides[d] = x->strides[d];
    }
    if (tn__common_count((tn_ints){ meta->shape, meta->ndim }) > 0)
        meta->offset += first * x->strides[dim];
    return TN_OK;
}

static tn_status narrow_derive(tn_derive *d)
{
    const tn_narrow_options *o = d->options;
    tn_tensor *sum = tn__common_sum(d);
    int64_t start = o->start;

    if (sum != NULL) {
        if (tn_add_(tn_narrow(sum, o->dim, start, o->length), d->gout[0]) != NULL)
            d->gin[0] = sum;
        return TN_OK;
    }
    if (start < 0) {
        int32_t dim;

        if (tn__common_dim(o->dim, d->in_meta[0].ndim, &dim) != TN_OK)
            return tn_error_last_code();
        start += d->in_meta[0].shape[dim];
    }
    d->gin[0] = tn_narrow_grad(d->gout[0], tn__common_in_shape(d, 0), o->dim, start);
    return TN_OK;
}

static tn_status narrow_grad_infer(tn_infer *infer)
{
    const tn_narrow_grad_options *o = infer->options;
    const tn_view *gy = infer->in[0];
    bool fits = gy->ndim == o->shape.count;
    char text[TN__TEXT], text_g[TN__TEXT];
    int32_t dim;
    tn_status status = tn__common_dim(o->dim, gy->ndim, &dim);

    if (status != TN_OK)
        return status;
    for (int32_t d = 0; fits && d < gy->ndim; d++)
        fits = d == dim ? o->start >= 0 && o->shape.at[d] >= gy->shape[d] &&
                              o->start <= o->shape.at[d] - gy->shape[d]
                        : gy->shape[d] == o->shape.at[d];
    if (!fits)
        return tn_fail(
            TN_ERR_RUNTIME,
            "gy: wrong shape, got %s; expected a shape that fits into %s from index %lld on along "
            "dimension %lld",
            tn__common_text(text_g, tn__common_shape(gy)), tn__common_text(text, o->shape),
            (long long)o->start, (long long)o->dim);
    tn__common_plain(&infer->out[0], tn_view_dtype(gy), o->shape);
    return TN_OK;
}

static tn_status narrow_grad_derive(tn_derive *d)
{
    const tn_narrow_grad_options *o = d->options;
    int32_t dim;
    tn_status status = tn__common_dim(o->dim, d->in_meta[0].ndim, &dim);

    if (status == TN_OK)
        d->gin[0] = tn_narrow(d->gout[0], dim, o->start, d->in_meta[0].shape[dim]);
    return status;
}

static tn_status select_range(const tn_view *x, const tn_select_options *o, int32_t *dim)
{
    tn_status status;

    if (x->ndim == 0)
        return tn_fail(TN_ERR_INDEX,
                       "x: too few dimensions, got a 0-dim tensor; expected at least one");
    status = tn__common_dim(o->dim, x->ndim, dim);
    if (status == TN_OK && (o->index < -x->shape[*dim] || o->index >= x->shape[*dim]))
        return tn_fail(TN_ERR_INDEX,
                       /* PyTorch's wording */
                       "index %lld out of range for tensor of size %lld at dimension %d",
                       (long long)o->index, (long long)x->shape[*dim], (int)*dim);
    return status;
}

static tn_status select_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    int32_t dim;
    tn_status status = select_range(x, infer->options, &dim);

    meta->dtype = tn_view_dtype(x);
    for (int32_t d = 0; d < x->ndim && status == TN_OK; d++)
        if (d != dim)
            meta->shape[meta->ndim++] = x->shape[d];
    return status;
}

static tn_status select_decompose(const tn_decompose *call)
{
    const tn_select_options *o = call->options;
    int64_t dims[1];
    int32_t dim;
    tn_status status = select_range(tn_tensor_view(call->in[0]), o, &dim);
    if (status != TN_OK)
        return status;
    dims[0] = dim;
    return tn__common_given(
        call->out, tn_squeeze(tn_narrow(call->in[0], dim, o->index, 1), ((tn_ints){ dims, 1 })));
}

/* Returns the gradient of a view in which each element occurs at most once: writes gy through
 * `view`, a view of gx. The rest of gx stays 0. */
static tn_tensor *put_into(tn_tensor *gx, tn_tensor *view, tn_tensor *gy)
{
    return tn_copy_(view, gy) != NULL ? gx : NULL;
}

/* Like put_into(), if other uses gave a gradient already: adds gy to `sum` through `view`. */
static tn_tensor *add_into(tn_tensor *sum, tn_tensor *view, tn_tensor *gy)
{
    return tn_add_(view, gy) != NULL ? sum : NULL;
}

/* Returns the gradient of a view in which elements may occur several times. `places` is the same
 * view of a tensor that has at each element its row-major index; gy is added at these indices. */
static tn_tensor *back_through(tn_tensor *places, tn_tensor *gy, tn_ints shape)
{
    int64_t all[1] = { tn__common_count(shape) }, seen[1];
    tn_tensor *gx;

    if (places == NULL || gy == NULL)
        return NULL;
    seen[0] = tn_tensor_numel(gy);
    gx = tn__common_zeros(gy, (tn_ints){ all, 1 });
    return tn_reshape(tn_scatter_add(gx, tn_reshape(places, (tn_ints){ seen, 1 }),
                                     tn_reshape(gy, (tn_ints){ seen, 1 }), 0),
                      shape);
}

static tn_tensor *numbers(tn_tensor *like, tn_ints shape)
{
    return tn_reshape(tn_arange(like, 0, tn__common_count(shape)), shape);
}

static int64_t bound(int64_t at, int64_t size, int64_t otherwise)
{
    if (at == INT64_MIN)
        return otherwise;
    if (at < 0)
        at += size;
    return at < 0 ? 0 : at > size ? size : at;
}

static tn_status slice_infer(tn_infer *infer)
{
    const tn_slice_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    int64_t start, end;
    int32_t dim;
    tn_status status;

    if (x->ndim == 0)
        return tn_fail(TN_ERR_RUNTIME, "x: too few dimensions, got 0; expected at least 1");
    status = tn__common_dim(o->dim, x->ndim, &dim);
    if (status == TN_OK && o->step <= 0)
        return tn_fail(TN_ERR_VALUE,
                       /* PyTorch's wording */ "slice step must be positive, not %lld",
                       (long long)o->step);
    if (status == TN_OK)
        status = tn__common_view_of(infer, x->ndim);
    if (status != TN_OK)
        return status;
    start = bound(o->start, x->shape[dim], 0);
    end = bound(o->end, x->shape[dim], x->shape[dim]);
    for (int32_t d = 0; d < x->ndim; d++) {
        meta->shape[d] = x->shape[d];
        meta->strides[d] = x->strides[d];
    }
    meta->shape[dim] = end > start ? (end - start - 1) / o->step + 1 : 0;
    /* with a single element the stride is not used, and the product might overflow */
    meta->strides[dim] = meta->shape[dim] > 1 ? tn__common_times(x->strides[dim], o->step)
                                              : x->strides[dim];
    if (tn__common_count((tn_ints){ meta->shape, meta->ndim }) > 0)
        meta->offset += start * x->strides[dim];
    return TN_OK;
}

static tn_status slice_derive(tn_derive *d)
{
    const tn_slice_options *o = d->options;
    tn_ints shape = tn__common_in_shape(d, 0);
    tn_tensor *sum = tn__common_sum(d);
    int32_t dim;

    if (tn__common_dim(o->dim, (int32_t)shape.count, &dim) != TN_OK)
        return tn_error_last_code();
    if (sum != NULL) {
        d->gin[0] = add_into(sum, tn_slice(sum, dim, o->start, o->end, o->step), d->gout[0]);
    } else if (o->step == 1) {
        int64_t start = bound(o->start, shape.at[dim], 0);

        if (tn_tensor_size(d->gout[0], dim) == 0)
            start = 0;
        d->gin[0] = tn_narrow_grad(d->gout[0], shape, dim, start);
    } else {
        tn_tensor *gx = tn__common_zeros(d->gout[0], shape);

        d->gin[0] = put_into(gx, tn_slice(gx, dim, o->start, o->end, o->step), d->gout[0]);
    }
    return TN_OK;
}

static tn_status diagonal_infer(tn_infer *infer)
{
    const tn_diagonal_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    int32_t dim1 = 0, dim2 = 0, at = 0;
    int64_t rows, columns, count;
    tn_status status;

    if (x->ndim == 0)
        return tn_fail(TN_ERR_RUNTIME, "x: too few dimensions, got 0; expected at least 2");
    status = tn__common_dim(o->dim1, x->ndim, &dim1);
    if (status == TN_OK)
        status = tn__common_dim(o->dim2, x->ndim, &dim2);
    if (status == TN_OK && dim1 == dim2)
        return tn_fail(TN_ERR_RUNTIME,
                       "diagonal dimensions cannot be identical: %lld and %lld of %d",
                       (long long)o->dim1, (long long)o->dim2, (int)x->ndim);
    if (status == TN_OK)
        status = tn__common_view_of(infer, x->ndim - 1);
    if (status != TN_OK)
        return status;
    rows = x->shape[dim1] + (o->offset < 0 ? o->offset : 0);
    columns = x->shape[dim2] - (o->offset > 0 ? o->offset : 0);
    count = rows < columns ? rows : columns;
    for (int32_t d = 0; d < x->ndim; d++) {
        if (d == dim1 || d == dim2)
            continue;
        meta->shape[at] = x->shape[d];
        meta->strides[at++] = x->strides[d];
    }
    meta->shape[at] = count > 0 ? count : 0;
    meta->strides[at] = tn__common_plus(x->strides[dim1], x->strides[dim2]);
    if (tn__common_count((tn_ints){ meta->shape, meta->ndim }) > 0)
        meta->offset += o->offset < 0 ? -o->offset * x->strides[dim1]
                                      : o->offset * x->strides[dim2];
    return TN_OK;
}

static tn_status diagonal_derive(tn_derive *d)
{
    const tn_diagonal_options *o = d->options;
    tn_tensor *gx = tn__common_sum(d);

    if (gx != NULL) {
        d->gin[0] = add_into(gx, tn_diagonal(gx, o->offset, o->dim1, o->dim2), d->gout[0]);
        return TN_OK;
    }
    gx = tn__common_zeros(d->gout[0], tn__common_in_shape(d, 0));
    d->gin[0] = put_into(gx, tn_diagonal(gx, o->offset, o->dim1, o->dim2), d->gout[0]);
    return TN_OK;
}

static tn_status unfold_infer(tn_infer *infer)
{
    const tn_unfold_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    int64_t size = 1;
    int32_t dim;
    tn_status status = tn__common_dim(o->dim, x->ndim, &dim);

    if (status != TN_OK)
        return status;
    if (x->ndim > 0)
        size = x->shape[dim];
    if (o->window < 0 || o->window > size)
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */
                       "maximum size for tensor at dimension %d is %lld but size is %lld", (int)dim,
                       (long long)size, (long long)o->window);
    if (o->step <= 0)
        return tn_fail(TN_ERR_RUNTIME, "step: out of range, got %lld; expected more than 0",
                       (long long)o->step);
    status = tn__common_view_of(infer, x->ndim + 1);
    if (status != TN_OK)
        return status;
    for (int32_t d = 0; d < x->ndim; d++) {
        meta->shape[d] = d == dim ? (size - o->window) / o->step + 1 : x->shape[d];
        meta->strides[d] = x->strides[d];
        /* With a single window the stride is not used, and the product might overflow. */
        if (d == dim && meta->shape[d] > 1)
            meta->strides[d] = tn__common_times(x->strides[d], o->step);
    }
    meta->shape[x->ndim] = o->window;
    meta->strides[x->ndim] = x->ndim > 0 ? x->strides[dim] : 1;
    return TN_OK;
}

/* The longest window for which gradients are added with one slice for each position in the
 * window. */
enum { MOST_SLICES = 64 };

static tn_status unfold_derive(tn_derive *d)
{
    const tn_unfold_options *o = d->options;
    tn_ints shape = tn__common_in_shape(d, 0);
    tn_tensor *gx, *ok;
    int32_t dim;

    if (shape.count == 0 || o->window > MOST_SLICES) {
        d->gin[0] = back_through(tn_unfold(numbers(d->gout[0], shape), o->dim, o->window, o->step),
                                 d->gout[0], shape);
        return TN_OK;
    }
    if (tn__common_dim(o->dim, (int32_t)shape.count, &dim) != TN_OK)
        return tn_error_last_code();
    gx = tn__common_sum(d);
    ok = gx = gx != NULL ? gx : tn__common_zeros(d->gout[0], shape);
    for (int64_t k = 0; k < o->window && ok != NULL; k++) { /* position k of all windows */
        ok = tn_add_(tn_slice(gx, dim, k, shape.at[dim] - o->window + k + 1, o->step),
                     tn_select(d->gout[0], -1, k));
    }
    d->gin[0] = ok != NULL ? gx : NULL;
    return ok != NULL ? TN_OK : tn_error_last_code();
}
TN__OP(narrow, .infer = narrow_infer, .derive = narrow_derive);
TN__OP(narrow_grad, .infer = narrow_grad_infer, .derive = narrow_grad_derive,
       TN__PARTS(narrow_grad));
TN__OP(select, .infer = select_infer, .decompose = select_decompose);
TN__OP(slice, .infer = slice_infer, .derive = slice_derive);
TN__OP(diagonal, .infer = diagonal_infer, .derive = diagonal_derive);
TN__OP(unfold, .infer = unfold_infer, .derive = unfold_derive);
