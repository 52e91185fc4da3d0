/* SPDX-License-Identifier: MIT
 *
 * Operators that write selected elements of a tensor: whole slices (index_copy, index_fill),
 * single elements (put), elements under a mask (masked_scatter); and take, which reads single
 * elements. */
#include "index.h"

static tn_status index_copy_infer(tn_infer *infer)
{
    const tn_index_copy_options *o = infer->options;

    return index_slices_infer(infer, o->dim);
}

static tn_status index_copy_decompose(const tn_decompose *call)
{
    const tn_index_copy_options *o = call->options;
    int32_t dim;

    if (tn__common_dim(o->dim, tn_tensor_ndim(call->in[0]), &dim) != TN_OK)
        return tn_error_last_code();
    return tn__common_given(
        call->out,
        tn_scatter(call->in[0], tn__common_spread(call->in[1], tn_tensor_shape(call->in[2]), dim),
                   call->in[2], dim));
}

static tn_status index_fill_infer(tn_infer *infer)
{
    const tn_index_fill_options *o = infer->options;
    const tn_view *x = infer->in[0];
    int32_t dim;
    tn_status status = tn__common_dim(o->dim, x->ndim, &dim);

    if (status == TN_OK)
        status = index_row(infer->in[1]);
    if (status == TN_OK && x->ndim > 0)
        status = tn__common_index_into(x, dim, infer->in[1]);
    tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(x));
    return status == TN_OK ? tn__scalar_fits(tn_view_dtype(x), o->value, "value") : status;
}

static tn_status index_fill_decompose(const tn_decompose *call)
{
    const tn_index_fill_options *o = call->options;
    tn_tensor *x = index_vector(call->in[0]), *index = call->in[1], *y;
    int32_t dim;

    if (x == NULL || tn__common_dim(o->dim, tn_tensor_ndim(x), &dim) != TN_OK)
        return tn_error_last_code();
    if (tn_tensor_numel(index) == 0)
        return tn__common_given(call->out, tn_copy(call->in[0]));
    index = index_from_end(index, tn_tensor_size(x, dim));
    index = tn__common_spread(index, tn_tensor_shape(x), dim);
    if (index == NULL)
        return tn_error_last_code();
    y = tn_scatter(x, index, tn_expand(tn__scalar_number(x, o->value), tn_tensor_shape(index)),
                   dim);
    return tn__common_given(call->out, tn_reshape(y, tn_tensor_shape(call->in[0])));
}

/* ---- take, put ---- */

static tn_status not_from_nothing(const tn_view *x, const tn_view *index)
{
    if (tn__common_count(tn__common_shape(x)) == 0 && tn__common_count(tn__common_shape(index)) > 0)
        return tn_fail(TN_ERR_INDEX, "x: it has no elements, but index has; expected an index "
                                     "without elements");
    return TN_OK;
}

static tn_status take_infer(tn_infer *infer)
{
    tn__common_plain(&infer->out[0], tn_view_dtype(infer->in[0]), tn__common_shape(infer->in[1]));
    return not_from_nothing(infer->in[0], infer->in[1]);
}

static tn_status take_decompose(const tn_decompose *call)
{
    tn_tensor *index = index_from_end(index_flat(call->in[1]), tn_tensor_numel(call->in[0]));

    return tn__common_given(call->out, tn_reshape(tn_gather(index_flat(call->in[0]), index, 0),
                                                  tn_tensor_shape(call->in[1])));
}

static tn_status put_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0], *index = infer->in[1], *src = infer->in[2];
    int64_t count = tn__common_count(tn__common_shape(index));

    if (tn__common_same_dtype(x, "x", src, "src") != TN_OK)
        return tn_error_last_code();
    if (count != tn__common_count(tn__common_shape(src)))
        return tn_fail(TN_ERR_RUNTIME,
                       "src: wrong number of elements, got %lld; expected that of index, %lld",
                       (long long)tn__common_count(tn__common_shape(src)), (long long)count);
    tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(x));
    return not_from_nothing(x, index);
}

static tn_status put_decompose(const tn_decompose *call)
{
    const tn_put_options *o = call->options;
    tn_tensor *x = index_flat(call->in[0]), *src = index_flat(call->in[2]);
    tn_tensor *index = index_from_end(index_flat(call->in[1]), tn_tensor_numel(call->in[0]));

    return tn__common_given(call->out, tn_reshape(o->accumulate ? tn_scatter_add(x, index, src, 0)
                                                                : tn_scatter(x, index, src, 0),
                                                  tn_tensor_shape(call->in[0])));
}

/* ---- masked_scatter ---- */

static tn_status masked_scatter_infer(tn_infer *infer)
{
    tn_infer both = *infer;

    if (tn__common_same_dtype(infer->in[0], "x", infer->in[2], "src") != TN_OK)
        return tn_error_last_code();
    both.n_in = 2;
    tn__common_plain(&infer->out[0], tn_view_dtype(infer->in[0]), (tn_ints){ NULL, 0 });
    if (tn__broadcast_all(&both) != TN_OK)
        return tn_error_last_code();
    infer->out[0].dtype = tn_view_dtype(infer->in[0]);
    infer->out[0].flags = 0;
    return TN_OK;
}

/* Numbers the elements where the mask is true from 1, the other elements 0. These numbers are
 * indices into src with a 0 in front. gather fails if src has too few elements. */
static tn_status masked_scatter_decompose(const tn_decompose *call)
{
    const tn_view *views[2] = { tn_tensor_view(call->in[0]), tn_tensor_view(call->in[1]) };
    tn_meta meta = { .flags = 0 };
    tn_infer both = { TN_HEAD(tn_infer), .in = views, .n_in = 2, .n_out = 1, .out = &meta };
    tn_tensor *x, *mask, *numbers, *values[2];
    tn_ints shape;

    if (tn__broadcast_all(&both) != TN_OK)
        return tn_error_last_code();
    shape = (tn_ints){ meta.shape, meta.ndim };
    x = index_flat(tn_expand(call->in[0], shape));
    mask = index_flat(tn_expand(call->in[1], shape));
    numbers = tn_cumsum(mask, 0);
    if (x == NULL || numbers == NULL)
        return tn_error_last_code();
    numbers = tn_masked_fill(numbers, tn_logical_not(mask), 0);
    values[0] = tn__common_zeros(call->in[2], TN_SHAPE(1));
    values[1] = index_flat(call->in[2]);
    x = tn_where(mask, tn_gather(tn_cat(values, 2, 0), numbers, 0), x);
    return tn__common_given(call->out, tn_reshape(x, shape));
}

TN__OP(index_copy, .infer = index_copy_infer, .decompose = index_copy_decompose);
TN__OP(index_fill, .infer = index_fill_infer, .decompose = index_fill_decompose);
TN__OP(take, .infer = take_infer, .decompose = take_decompose);
TN__OP(put, .infer = put_infer, .decompose = put_decompose);
TN__OP(masked_scatter, .infer = masked_scatter_infer, .decompose = masked_scatter_decompose);
