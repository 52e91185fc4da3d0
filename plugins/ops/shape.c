/* SPDX-License-Identifier: MIT
 *
 * Changes of shape: views of the same values, or copies if no view is possible. */
#include "common.h"

/* The gradient of operators that keep all elements in row-major order. */
static tn_status same_order_derive(tn_derive *d)
{
    d->gin[0] = tn_reshape(d->gout[0], tn__common_in_shape(d, 0));
    return TN_OK;
}

static tn_status view_infer(tn_infer *infer)
{
    const tn_view_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    char text[TN__TEXT], text_x[TN__TEXT], text_s[TN__TEXT];
    tn_status status = tn__common_complete(x, o->shape, meta->shape);

    if (status == TN_OK)
        status = tn__common_view_of(infer, (int32_t)o->shape.count);
    if (status != TN_OK)
        return status;
    if (!tn__common_view_strides(x, (tn_ints){ meta->shape, meta->ndim }, meta->strides))
        return tn_fail(
            TN_ERR_RUNTIME,
            /* PyTorch's wording */
            "view size %s is not compatible with input tensor's size %s and stride %s (at least "
            "one dimension spans across two contiguous subspaces). Use tn_reshape instead, which "
            "copies the elements",
            tn__common_text(text, o->shape), tn__common_text(text_x, tn__common_shape(x)),
            tn__common_text(text_s, (tn_ints){ x->strides, x->ndim }));
    return TN_OK;
}

static tn_status reshape_infer(tn_infer *infer)
{
    const tn_reshape_options *o = infer->options;
    tn_meta *meta = &infer->out[0];

    meta->dtype = tn_view_dtype(infer->in[0]);
    meta->ndim = (int32_t)o->shape.count;
    return tn__common_complete(infer->in[0], o->shape, meta->shape);
}

static tn_tensor *reshaped(tn_tensor *x, tn_ints shape)
{
    int64_t strides[TN_MAX_DIMS];

    return tn_view_to(tn__common_view_strides(tn_tensor_view(x), shape, strides) ? x : tn_copy(x),
                      shape);
}

static tn_status reshape_decompose(const tn_decompose *call)
{
    const tn_reshape_options *o = call->options;
    int64_t shape[TN_MAX_DIMS];
    tn_status status = tn__common_complete(tn_tensor_view(call->in[0]), o->shape, shape);
    return status == TN_OK
               ? tn__common_given(call->out,
                                  reshaped(call->in[0], (tn_ints){ shape, o->shape.count }))
               : status;
}

static tn_status flat_shape(const tn_view *x, const tn_flatten_options *o, int64_t *shape,
                            int32_t *ndim)
{
    int32_t start, end;
    tn_status status = tn__common_dim(o->start_dim, x->ndim, &start);

    if (status == TN_OK)
        status = tn__common_dim(o->end_dim, x->ndim, &end);
    if (status != TN_OK)
        return status;
    if (start > end)
        return tn_fail(
            TN_ERR_RUNTIME,
            "flatten() has invalid args: start_dim (%lld) cannot come after end_dim (%lld)",
            (long long)o->start_dim, (long long)o->end_dim);
    *ndim = 0;
    if (x->ndim == 0)
        shape[(*ndim)++] = 1;
    for (int32_t d = 0; d < x->ndim; d++) {
        if (d > start && d <= end)
            shape[*ndim - 1] = tn__common_times(shape[*ndim - 1], x->shape[d]);
        else
            shape[(*ndim)++] = x->shape[d];
    }
    return TN_OK;
}

static tn_status flatten_infer(tn_infer *infer)
{
    tn_meta *meta = &infer->out[0];

    meta->dtype = tn_view_dtype(infer->in[0]);
    return flat_shape(infer->in[0], infer->options, meta->shape, &meta->ndim);
}

static tn_status flatten_decompose(const tn_decompose *call)
{
    int64_t shape[TN_MAX_DIMS];
    int32_t ndim;
    tn_status status = flat_shape(tn_tensor_view(call->in[0]), call->options, shape, &ndim);
    if (status != TN_OK)
        return status;
    /* If no dimensions are merged, returns the tensor itself, as in PyTorch. */
    if (ndim > 0 && ndim == tn_tensor_ndim(call->in[0]))
        return tn__common_given(call->out, call->in[0]);
    return tn__common_given(call->out, reshaped(call->in[0], (tn_ints){ shape, ndim }));
}

/* Makes the output a view whose dimension d is dimension order[d] of the input. */
static tn_status reorder(tn_infer *infer, const int32_t *order)
{
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    tn_status status = tn__common_view_of(infer, x->ndim);

    for (int32_t d = 0; d < x->ndim && status == TN_OK; d++) {
        meta->shape[d] = x->shape[order[d]];
        meta->strides[d] = x->strides[order[d]];
    }
    return status;
}

static tn_status permutation(tn_ints dims, int32_t ndim, int32_t *order)
{
    bool seen[TN_MAX_DIMS] = { false };
    char text[TN__TEXT];

    if (dims.count != ndim)
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */
                       "number of dimensions in the tensor input (%d) does not match "
                       "the length of the desired ordering of dimensions %s",
                       (int)ndim, tn__common_text(text, dims));
    for (int32_t d = 0; d < ndim; d++) {
        tn_status status = tn__common_dim(dims.at[d], ndim, &order[d]);

        if (status != TN_OK)
            return status;
        if (seen[order[d]])
            return tn_fail(TN_ERR_RUNTIME, "permute: duplicate dims are not allowed (%s)",
                           tn__common_text(text, dims));
        seen[order[d]] = true;
    }
    return TN_OK;
}

static tn_status permute_infer(tn_infer *infer)
{
    const tn_permute_options *o = infer->options;
    int32_t order[TN_MAX_DIMS];
    tn_status status = permutation(o->dims, infer->in[0]->ndim, order);

    return status == TN_OK ? reorder(infer, order) : status;
}

static tn_status permute_derive(tn_derive *d)
{
    const tn_permute_options *o = d->options;
    int32_t order[TN_MAX_DIMS], ndim = d->in_meta[0].ndim;
    int64_t inverse[TN_MAX_DIMS];
    tn_status status = permutation(o->dims, ndim, order);

    for (int32_t i = 0; i < ndim && status == TN_OK; i++)
        inverse[order[i]] = i;
    if (status == TN_OK)
        d->gin[0] = tn_permute(d->gout[0], (tn_ints){ inverse, ndim });
    return status;
}

static tn_status transpose_infer(tn_infer *infer)
{
    const tn_transpose_options *o = infer->options;
    int32_t order[TN_MAX_DIMS], dim0, dim1, ndim = infer->in[0]->ndim;
    tn_status status = tn__common_dim(o->dim0, ndim, &dim0);

    if (status == TN_OK)
        status = tn__common_dim(o->dim1, ndim, &dim1);
    if (status != TN_OK)
        return status;
    for (int32_t d = 0; d < ndim; d++)
        order[d] = d;
    order[dim0] = dim1;
    order[dim1] = dim0;
    return reorder(infer, order);
}

static tn_status transpose_derive(tn_derive *d)
{
    const tn_transpose_options *o = d->options;

    d->gin[0] = tn_transpose(d->gout[0], o->dim0, o->dim1);
    return TN_OK;
}

static tn_status expand_infer(tn_infer *infer)
{
    const tn_expand_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    int64_t lead = o->shape.count - x->ndim;
    char text[TN__TEXT], text_x[TN__TEXT];
    tn_status status;

    if (lead < 0)
        return tn_fail(
            TN_ERR_RUNTIME,
            /* PyTorch's wording */
            "the number of sizes provided (%lld) must be greater or equal to the number of "
            "dimensions in the "
            "tensor (%d): %s to %s",
            (long long)o->shape.count, (int)x->ndim, tn__common_text(text_x, tn__common_shape(x)),
            tn__common_text(text, o->shape));
    status = tn__common_view_of(infer, o->shape.count > TN_MAX_DIMS ? TN_MAX_DIMS + 1
                                                                    : (int32_t)o->shape.count);
    for (int64_t d = 0; d < o->shape.count && status == TN_OK; d++) {
        int64_t want = o->shape.at[d], have = d >= lead ? x->shape[d - lead] : 1;

        if (want == -1 && d >= lead)
            want = have;
        if (want < 0)
            return tn_fail(
                TN_ERR_RUNTIME,
                /* PyTorch's wording */
                "the expanded size of the tensor (%lld) isn't allowed in %sdimension %lld of %s",
                (long long)want, d < lead ? "a leading, non-existing " : "", (long long)d,
                tn__common_text(text, o->shape));
        if (have != want && have != 1)
            return tn_fail(
                TN_ERR_RUNTIME,
                /* PyTorch's wording */
                "The expanded size of the tensor (%lld) must match the existing size (%lld) at "
                "non-singleton "
                "dimension %lld. Target sizes: %s. Tensor sizes: %s",
                (long long)want, (long long)have, (long long)d, tn__common_text(text, o->shape),
                tn__common_text(text_x, tn__common_shape(x)));
        meta->shape[d] = want;
        meta->strides[d] = d >= lead && have == want ? x->strides[d - lead] : 0;
    }
    return status;
}

static tn_status expand_derive(tn_derive *d)
{
    d->gin[0] = tn_sum_to(d->gout[0], tn__common_in_shape(d, 0));
    return TN_OK;
}

static tn_status unsqueeze_infer(tn_infer *infer)
{
    const tn_unsqueeze_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    int32_t dim;
    tn_status status = tn__common_dim(o->dim, x->ndim + 1, &dim);

    if (status == TN_OK)
        status = tn__common_view_of(infer, x->ndim + 1);
    for (int32_t d = 0; d <= x->ndim && status == TN_OK; d++) {
        int32_t from = d < dim ? d : d - 1;

        meta->shape[d] = d == dim ? 1 : x->shape[from];
        meta->strides[d] = d == dim
                               ? (dim < x->ndim ? tn__common_times(x->shape[dim], x->strides[dim])
                                                : 1)
                               : x->strides[from];
    }
    return status;
}

static tn_status squeeze_infer(tn_infer *infer)
{
    const tn_squeeze_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_meta *meta = &infer->out[0];
    bool chosen[TN_MAX_DIMS];
    int32_t count = 0;
    tn_status status = tn__common_dims(o->dims, x->ndim, chosen);

    if (status == TN_OK)
        status = tn__common_view_of(infer, x->ndim);
    for (int32_t d = 0; d < x->ndim && status == TN_OK; d++) {
        if (chosen[d] && x->shape[d] == 1 && o->dims.count != 0)
            continue;
        meta->shape[count] = x->shape[d];
        meta->strides[count++] = x->strides[d];
    }
    meta->ndim = count;
    return status;
}

TN__OP(view, .infer = view_infer, .derive = same_order_derive);
TN__OP(reshape, .infer = reshape_infer, .decompose = reshape_decompose);
TN__OP(flatten, .infer = flatten_infer, .decompose = flatten_decompose);
TN__OP(permute, .infer = permute_infer, .derive = permute_derive);
TN__OP(transpose, .infer = transpose_infer, .derive = transpose_derive);
TN__OP(expand, .infer = expand_infer, .derive = expand_derive);
TN__OP(unsqueeze, .infer = unsqueeze_infer, .derive = same_order_derive);
TN__OP(squeeze, .infer = squeeze_infer, .derive = same_order_derive);
