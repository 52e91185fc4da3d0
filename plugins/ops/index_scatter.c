/* SPDX-License-Identifier: MIT
 *
 * Elements chosen by index. */
#include "common.h"

static tn_status sizes_differ(const tn_view *x, const tn_view *index, const char *rule)
{
    char text_x[TN__TEXT], text_i[TN__TEXT];

    return tn_fail(TN_ERR_RUNTIME, "index %s and x %s: %s",
                   tn__common_text(text_i, tn__common_shape(index)),
                   tn__common_text(text_x, tn__common_shape(x)), rule);
}

static tn_status index_fits(const tn_view *x, const tn_view *index, int64_t dim)
{
    int32_t at;
    tn_status status = tn__common_dim(dim, x->ndim, &at);

    if (status != TN_OK || tn__common_count(tn__common_shape(index)) == 0)
        return status;
    if ((x->ndim > 0 ? x->ndim : 1) != (index->ndim > 0 ? index->ndim : 1))
        return sizes_differ(x, index, "they have to have the same number of dimensions");
    for (int32_t d = 0; d < x->ndim && d < index->ndim; d++)
        if (d != at && index->shape[d] > x->shape[d])
            return sizes_differ(x, index, "it may be larger along dim only");
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

static tn_status into_infer(tn_infer *infer, int64_t dim)
{
    const tn_view *x = infer->in[0], *index = infer->in[1], *src = infer->in[2];
    tn_status status = index_fits(x, index, dim);

    if (status != TN_OK)
        return status;
    if (tn_view_dtype(src) != tn_view_dtype(x))
        return tn_fail(TN_ERR_RUNTIME, "x is %s and src is %s; tn_cast one of them",
                       tn_dtype_name(tn_view_dtype(x)), tn_dtype_name(tn_view_dtype(src)));
    tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(x));
    if (tn__common_count(tn__common_shape(index)) == 0)
        return TN_OK;
    if ((src->ndim > 0 ? src->ndim : 1) != (index->ndim > 0 ? index->ndim : 1))
        return sizes_differ(src, index, "src has to have the same number of dimensions");
    for (int32_t d = 0; d < src->ndim && d < index->ndim; d++)
        if (index->shape[d] > src->shape[d])
            return sizes_differ(src, index, "index may not be larger than src");
    return TN_OK;
}

static tn_status scatter_infer(tn_infer *infer)
{
    return into_infer(infer, ((const tn_scatter_options *)infer->options)->dim);
}

static tn_status scatter_add_infer(tn_infer *infer)
{
    return into_infer(infer, ((const tn_scatter_add_options *)infer->options)->dim);
}

/* What the used corner of src gets, in all of src's shape. */
static tn_tensor *corner(tn_tensor *gradient, tn_ints shape)
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
        return tn_error_last()->code;
    if (tn__needs(d, 0))
        d->gin[0] = tn_scatter(gy, index, tn__common_zeros(gy, tn_tensor_shape(index)), o->dim);
    if (tn__needs(d, 2))
        d->gin[2] = corner(tn_gather(gy, index, o->dim), tn__common_in_shape(d, 2));
    return TN_OK;
}

static tn_status scatter_add_derive(tn_derive *d)
{
    const tn_scatter_add_options *o = d->options;

    d->gin[0] = d->gout[0];
    if (tn__needs(d, 2))
        d->gin[2] = corner(tn_gather(d->gout[0], d->in[1], o->dim), tn__common_in_shape(d, 2));
    return TN_OK;
}

const tn_op_def tn__op_gather = { TN_HEAD(tn_op_def), TN_SCHEMA_GATHER, .infer = gather_infer,
                                  .derive = gather_derive, TN__PARTS(gather) };
const tn_op_def tn__op_scatter = { TN_HEAD(tn_op_def), TN_SCHEMA_SCATTER, .infer = scatter_infer,
                                   .derive = scatter_derive, TN__PARTS(scatter) };
const tn_op_def tn__op_scatter_add = { TN_HEAD(tn_op_def),
                                       TN_SCHEMA_SCATTER_ADD,
                                       .infer = scatter_add_infer,
                                       .derive = scatter_add_derive,
                                       .decompose = tn__parts_scatter_add,
                                       .decompose_dtypes = TN_MASK_COMPLEX | TN_BIT(TN_BOOL) };
