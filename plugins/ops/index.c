/* SPDX-License-Identifier: MIT
 *
 * Elements selected by index or by mask. */
#include "index.h"

static tn_status sizes_differ(const tn_view *x, const tn_view *index, const char *rule)
{
    char text_x[TN__TEXT], text_i[TN__TEXT];

    return tn_fail(TN_ERR_RUNTIME,
                   "index: wrong shape, got %s for a tensor of shape %s; expected %s",
                   tn__common_text(text_i, tn__common_shape(index)),
                   tn__common_text(text_x, tn__common_shape(x)), rule);
}

tn_status index_same_dtype(const tn_view *x, const tn_view *other, const char *name)
{
    if (tn_view_dtype(other) == tn_view_dtype(x))
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME,
                   "x or %s: wrong dtype, got %s and %s; expected the same: tn_cast one of them",
                   name, tn_dtype_name(tn_view_dtype(x)), tn_dtype_name(tn_view_dtype(other)));
}

static tn_status index_fits(const tn_view *x, const tn_view *index, int64_t dim)
{
    int32_t at;
    tn_status status = tn__common_dim(dim, x->ndim, &at);

    if (status != TN_OK || tn__common_count(tn__common_shape(index)) == 0)
        return status;
    if ((x->ndim > 0 ? x->ndim : 1) != (index->ndim > 0 ? index->ndim : 1))
        return sizes_differ(x, index, "the same number of dimensions");
    for (int32_t d = 0; d < x->ndim && d < index->ndim; d++)
        if (d != at && index->shape[d] > x->shape[d])
            return sizes_differ(x, index, "no size larger than that of x, except along dim");
    return x->ndim > 0 ? tn__common_index_into(x, at, index) : TN_OK;
}

static tn_status gather_infer(tn_infer *infer)
{
    const tn_gather_options *o = infer->options;

    tn__common_plain(&infer->out[0], tn_view_dtype(infer->in[0]), tn__common_shape(infer->in[1]));
    return index_fits(infer->in[0], infer->in[1], o->dim);
}

static tn_status gather_derive(tn_derive *d)
{
    const tn_gather_options *o = d->options;

    d->gin[0] = tn__common_scattered(d, d->in[1], d->gout[0], o->dim);
    return TN_OK;
}

tn_status index_into_infer(tn_infer *infer, int64_t dim)
{
    const tn_view *x = infer->in[0], *index = infer->in[1], *src = infer->in[2];
    tn_status status = index_fits(x, index, dim);

    if (status != TN_OK)
        return status;
    status = index_same_dtype(x, src, "src");
    if (status != TN_OK)
        return status;
    tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(x));
    if (tn__common_count(tn__common_shape(index)) == 0)
        return TN_OK;
    if ((src->ndim > 0 ? src->ndim : 1) != (index->ndim > 0 ? index->ndim : 1))
        return sizes_differ(src, index, "the number of dimensions of src");
    for (int32_t d = 0; d < src->ndim && d < index->ndim; d++)
        if (index->shape[d] > src->shape[d])
            return sizes_differ(src, index, "no size larger than that of src");
    return TN_OK;
}

static tn_status scatter_infer(tn_infer *infer)
{
    return index_into_infer(infer, ((const tn_scatter_options *)infer->options)->dim);
}

static tn_status scatter_add_infer(tn_infer *infer)
{
    return index_into_infer(infer, ((const tn_scatter_add_options *)infer->options)->dim);
}

tn_tensor *index_corner(tn_tensor *gradient, tn_ints shape)
{
    for (int64_t d = 0; d < shape.count && gradient != NULL; d++) {
        int64_t sizes[TN_MAX_DIMS];

        if (tn_tensor_size(gradient, d) == shape.at[d])
            continue;
        for (int64_t k = 0; k < shape.count; k++)
            sizes[k] = k == d ? shape.at[d] : tn_tensor_size(gradient, k);
        gradient = tn_narrow_grad(gradient, (tn_ints){ sizes, shape.count }, d, 0);
    }
    return gradient;
}

static tn_status scatter_derive(tn_derive *d)
{
    const tn_scatter_options *o = d->options;
    tn_tensor *gy = d->gout[0], *index = d->in[1];

    if (index == NULL)
        return tn_error_last_code();
    if (tn__needs(d, 0))
        d->gin[0] = tn_scatter(gy, index, tn__common_zeros(gy, tn_tensor_shape(index)), o->dim);
    if (tn__needs(d, 2))
        d->gin[2] = index_corner(tn_gather(gy, index, o->dim), tn__common_in_shape(d, 2));
    return TN_OK;
}

static tn_status scatter_add_derive(tn_derive *d)
{
    const tn_scatter_add_options *o = d->options;

    d->gin[0] = d->gout[0];
    if (tn__needs(d, 2))
        d->gin[2] = index_corner(tn_gather(d->gout[0], d->in[1], o->dim),
                                 tn__common_in_shape(d, 2));
    return TN_OK;
}

/* ---- index_select, index_add ---- */

tn_status index_row(const tn_view *index)
{
    if (index->ndim <= 1)
        return TN_OK;
    return tn_fail(
        TN_ERR_INDEX,
        /* PyTorch's wording */ "index is supposed to be a vector, but it has %d dimensions",
        (int)index->ndim);
}

static tn_status index_select_infer(tn_infer *infer)
{
    const tn_index_select_options *o = infer->options;
    const tn_view *x = infer->in[0], *index = infer->in[1];
    int32_t dim;
    tn_status status = tn__common_dim(o->dim, x->ndim, &dim);

    if (status == TN_OK)
        status = index_row(index);
    tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(x));
    if (status == TN_OK && x->ndim > 0)
        status = tn__common_index_into(x, dim, index);
    if (status == TN_OK && x->ndim > 0)
        infer->out[0].shape[dim] = tn__common_count(tn__common_shape(index));
    else if (status == TN_OK && tn__common_count(tn__common_shape(index)) != 1)
        return tn_fail(TN_ERR_INDEX,
                       "index: wrong number of indices, got %lld; expected one for a tensor of 0 "
                       "dimensions",
                       (long long)tn__common_count(tn__common_shape(index)));
    return status;
}

static tn_status index_select_decompose(const tn_decompose *call)
{
    const tn_index_select_options *o = call->options;
    int32_t dim;
    if (tn__common_dim(o->dim, tn_tensor_ndim(call->in[0]), &dim) != TN_OK)
        return tn_error_last_code();
    return tn__common_given(
        call->out,
        tn_gather(call->in[0], tn__common_spread(call->in[1], tn_tensor_shape(call->in[0]), dim),
                  dim));
}

tn_status index_slices_infer(tn_infer *infer, int64_t along)
{
    const tn_view *x = infer->in[0], *index = infer->in[1], *src = infer->in[2];
    char text_x[TN__TEXT], text_s[TN__TEXT];
    int32_t dim;
    tn_status status = tn__common_dim(along, x->ndim, &dim);
    bool fits = src->ndim == x->ndim;

    if (status == TN_OK)
        status = index_row(index);
    if (status != TN_OK)
        return status;
    status = index_same_dtype(x, src, "src");
    if (status != TN_OK)
        return status;
    for (int32_t d = 0; d < x->ndim && fits; d++)
        fits = src->shape[d] ==
               (d == dim ? tn__common_count(tn__common_shape(index)) : x->shape[d]);
    if (!fits)
        return tn_fail(
            TN_ERR_RUNTIME,
            "src: wrong shape, got %s; expected the shape of x %s, but with one element for each "
            "index along dim %d",
            tn__common_text(text_s, tn__common_shape(src)),
            tn__common_text(text_x, tn__common_shape(x)), (int)dim);
    if (x->ndim == 0 && tn__common_count(tn__common_shape(index)) != 1)
        return tn_fail(TN_ERR_RUNTIME,
                       "index: wrong number of elements, got %lld; expected 1, as x has no "
                       "dimensions",
                       (long long)tn__common_count(tn__common_shape(index)));
    tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(x));
    return x->ndim > 0 ? tn__common_index_into(x, dim, index) : TN_OK;
}

static tn_status index_add_infer(tn_infer *infer)
{
    const tn_index_add_options *o = infer->options;
    tn_status status = index_slices_infer(infer, o->dim);
    tn_dtype dtype = tn_view_dtype(infer->in[0]);

    if (status == TN_OK && tn__is_int(dtype) && o->alpha.kind == TN_SCALAR_FLOAT)
        return tn_fail(TN_ERR_RUNTIME,
                       "alpha: not an integer, got the float %g; expected an integer for %s",
                       o->alpha.as.f, tn_dtype_name(dtype));
    return status == TN_OK ? tn__scalar_factor(dtype, o->alpha, "alpha") : status;
}

static tn_status index_add_decompose(const tn_decompose *call)
{
    const tn_index_add_options *o = call->options;
    tn_tensor *src = tn__scalar_is(o->alpha, 1) ? call->in[2]
                                                : tn_mul_scalar(call->in[2], o->alpha);
    int32_t dim;
    if (tn__common_dim(o->dim, tn_tensor_ndim(call->in[0]), &dim) != TN_OK)
        return tn_error_last_code();
    return tn__common_given(
        call->out, tn_scatter_add(call->in[0],
                                  tn__common_spread(call->in[1], tn_tensor_shape(call->in[2]), dim),
                                  src, dim));
}

/* ---- nonzero, masked_select ---- */

static tn_status nonzero_infer(tn_infer *infer)
{
    infer->out[0].dtype = TN_I64;
    infer->out[0].ndim = -1;
    return TN_OK;
}

static tn_status masked_select_decompose(const tn_decompose *call)
{
    const tn_view *views[2] = { tn_tensor_view(call->in[0]), tn_tensor_view(call->in[1]) };
    int64_t flat[1] = { -1 };
    tn_ints row = { flat, 1 }, shape;
    tn_meta meta = { .flags = 0 };
    tn_infer both = { TN_HEAD(tn_infer), .in = views, .n_in = call->n_in, .n_out = 1,
                      .out = &meta };
    tn_tensor *places;
    tn_status status = tn__broadcast_all(&both);
    if (status != TN_OK)
        return status;
    shape = (tn_ints){ meta.shape, meta.ndim };
    flat[0] = tn__common_count(shape);
    places = tn_nonzero(tn_reshape(tn_expand(call->in[1], shape), row));
    flat[0] = places != NULL ? tn_tensor_numel(places) : 0;
    places = tn_reshape(places, row);
    flat[0] = tn__common_count(shape);
    return tn__common_given(call->out,
                            tn_gather(tn_reshape(tn_expand(call->in[0], shape), row), places, 0));
}

TN__OP(index_select, .infer = index_select_infer, .decompose = index_select_decompose);
TN__OP(index_add, .infer = index_add_infer, .decompose = index_add_decompose);
TN__OP(masked_select, .infer = tn__common_open, .decompose = masked_select_decompose);

TN__OP(gather, .infer = gather_infer, .derive = gather_derive, TN__PARTS(gather));
TN__OP(scatter, .infer = scatter_infer, .derive = scatter_derive, TN__PARTS(scatter));
TN__OP(scatter_add, .infer = scatter_add_infer, .derive = scatter_add_derive,
       .decompose = tn__complex_parts_scatter_add,
       .decompose_dtypes = TN_MASK_COMPLEX | TN_BIT(TN_BOOL));
TN__OP(nonzero, .infer = nonzero_infer, TN__PARTS(nonzero));
