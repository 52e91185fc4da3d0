/* SPDX-License-Identifier: MIT
 *
 * Ranges of integers, and the shapes of scales: one for a whole tensor, for each channel of a
 * dimension, for each block along a dimension, or as numpy broadcasts. */
#include "quant.h"

tn_status scale_dtype(tn_dtype dtype, uint64_t mask, const char *expected)
{
    if (scale_allows(dtype, mask))
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "dtype: not supported, got %s; expected %s",
                   dtype == TN_DTYPE_AUTO ? "None" : tn_dtype_name(dtype), expected);
}

static struct scale_range whole_range(tn_dtype dtype)
{
    switch (dtype) {
    case TN_U8: return (struct scale_range){ 0, 255 };
    case TN_I8: return (struct scale_range){ -128, 127 };
    case TN_I16: return (struct scale_range){ INT16_MIN, INT16_MAX };
    default: return (struct scale_range){ INT32_MIN, INT32_MAX };
    }
}

struct scale_range scale_range_of(tn_dtype dtype, int64_t qmin, int64_t qmax)
{
    struct scale_range range = whole_range(dtype);

    if (qmin != INT64_MIN)
        range.min = qmin;
    if (qmax != INT64_MIN)
        range.max = qmax;
    return range;
}

tn_status scale_range_check(tn_dtype dtype, int64_t qmin, int64_t qmax)
{
    struct scale_range all = whole_range(dtype), range = scale_range_of(dtype, qmin, qmax);

    if (range.min >= all.min && range.max <= all.max && range.min < range.max)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "qmin or qmax: out of range, got %lld and %lld; expected %lld <= qmin < qmax <= "
                   "%lld for %s",
                   (long long)range.min, (long long)range.max, (long long)all.min,
                   (long long)all.max, tn_dtype_name(dtype));
}

tn_status scale_is_one(const tn_view *view, const char *name)
{
    char text[TN__TEXT];

    if (view == NULL || scale_has_one(view))
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "%s: wrong shape, got %s; expected one element, [] or [1]", name,
                   tn__common_text(text, tn__common_shape(view)));
}

/* Whether a scale with the dimensions of x broadcasts to it, or has a number for each block. */
static bool covers(const tn_view *x, const tn_view *scale, int32_t dim, int64_t block)
{
    for (int32_t d = 0; d < x->ndim; d++) {
        int64_t size = block != INT64_MIN && d == dim ? x->shape[d] / block : x->shape[d];

        if (scale->shape[d] != size && (scale->shape[d] != 1 || (block != INT64_MIN && d == dim)))
            return false;
    }
    return true;
}

static tn_status block_fits(const tn_view *x, int32_t dim, int64_t block)
{
    int64_t size = x->ndim > 0 ? x->shape[dim] : 1;

    if (block == INT64_MIN || (block > 0 && size % block == 0 && x->ndim > 0))
        return TN_OK;
    return tn_fail(TN_ERR_VALUE,
                   "block: wrong size, got %lld; expected a divisor of %lld, the size of "
                   "dimension %d",
                   (long long)block, (long long)size, (int)dim);
}

tn_status scale_fits(const tn_view *x, const tn_view *scale, const tn_view *zero_point, int64_t dim,
                     int64_t block)
{
    char text[TN__TEXT], text_x[TN__TEXT];
    int32_t at = 0;
    tn_status status = tn__common_dim(dim, x->ndim, &at);

    if (status == TN_OK)
        status = block_fits(x, at, block);
    if (status != TN_OK)
        return status;
    if (!(block == INT64_MIN && (scale_has_one(scale) || (scale->ndim == 1 && x->ndim > 0 &&
                                                          scale->shape[0] == x->shape[at]))) &&
        !(scale->ndim == x->ndim && covers(x, scale, at, block)))
        return tn_fail(TN_ERR_VALUE,
                       block != INT64_MIN
                           ? "scale: wrong shape, got %s for x %s; expected a number for each block"
                             " of dimension %d"
                           : "scale: wrong shape, got %s for x %s; expected one element, one for "
                             "each element of dimension %d, or the dimensions of x with its sizes "
                             "or 1",
                       tn__common_text(text, tn__common_shape(scale)),
                       tn__common_text(text_x, tn__common_shape(x)), (int)at);
    return tn__common_same_shape(zero_point, "zero_point", tn__common_shape(scale), "scale");
}

tn_status scale_zero_point(const tn_view *q, const char *q_name, const tn_view *scale,
                           const tn_view *zero_point, const char *name)
{
    if (zero_point != NULL && tn_view_dtype(q) != tn_view_dtype(zero_point))
        return tn_fail(TN_ERR_VALUE, "%s: wrong dtype, got %s; expected %s, the dtype of %s", name,
                       tn_dtype_name(tn_view_dtype(zero_point)), tn_dtype_name(tn_view_dtype(q)),
                       q_name);
    return scale != NULL
               ? tn__common_same_shape(zero_point, name, tn__common_shape(scale), "its scale")
               : TN_OK;
}

tn_tensor *scale_plain(tn_tensor *scale)
{
    return scale != NULL && tn_tensor_numel(scale) == 1 && tn_tensor_ndim(scale) == 1
               ? tn_reshape(scale, (tn_ints){ NULL, 0 })
               : scale;
}

static int32_t counted(int64_t dim, int32_t ndim)
{
    return (int32_t)(dim < 0 ? dim + (ndim > 0 ? ndim : 1) : dim);
}

tn_tensor *scale_spread(tn_tensor *scale, tn_tensor *x, int64_t dim, int64_t block)
{
    int64_t shape[TN_MAX_DIMS];
    int32_t ndim, at;

    if (scale == NULL || x == NULL)
        return NULL;
    ndim = tn_tensor_ndim(x);
    at = counted(dim, ndim);
    if (block != INT64_MIN)
        return tn_repeat_interleave_scalar(scale, block, at);
    scale = scale_plain(scale);
    if (scale == NULL || tn_tensor_ndim(scale) != 1 || ndim < 2)
        return scale;
    for (int32_t d = 0; d < ndim; d++)
        shape[d] = d == at ? -1 : 1;
    return tn_reshape(scale, (tn_ints){ shape, ndim });
}

tn_tensor *scale_blocks(tn_tensor *x, int32_t dim, int64_t block)
{
    int64_t outer = 1, inner = 1;

    if (x == NULL)
        return NULL;
    for (int32_t d = 0; d < tn_tensor_ndim(x); d++) {
        int64_t *side = d < dim ? &outer : &inner;

        if (d != dim)
            *side = tn__common_times(*side, tn_tensor_size(x, d));
    }
    return tn_reshape(x, TN_SHAPE(outer, tn_tensor_size(x, dim) / block, block, inner));
}

/* Sums of the blocks along a dimension. */
static tn_tensor *sums_of_blocks(tn_tensor *g, int32_t dim, int64_t block)
{
    int64_t shape[TN_MAX_DIMS];
    int32_t ndim = tn_tensor_ndim(g);

    for (int32_t d = 0; d < ndim; d++)
        shape[d] = d == dim ? tn_tensor_size(g, d) / block : tn_tensor_size(g, d);
    return tn_reshape(tn_sum(scale_blocks(g, dim, block), TN_INTS(2)), (tn_ints){ shape, ndim });
}

tn_tensor *scale_gather(tn_tensor *g, tn_ints scale, int64_t dim, int64_t block)
{
    int64_t shape[TN_MAX_DIMS];
    int32_t ndim, at;

    if (g == NULL)
        return NULL;
    ndim = tn_tensor_ndim(g);
    at = counted(dim, ndim);
    if (block != INT64_MIN)
        return tn_sum_to(sums_of_blocks(g, at, block), scale);
    if (scale.count == 1 && scale.at[0] != 1 && ndim > 1) {
        for (int32_t d = 0; d < ndim; d++)
            shape[d] = d == at ? scale.at[0] : 1;
        g = tn_sum_to(g, (tn_ints){ shape, ndim });
    } else if (scale.count == ndim) {
        g = tn_sum_to(g, scale);
    } else {
        g = tn_sum(g);
    }
    return tn_reshape(g, scale);
}
