/* SPDX-License-Identifier: MIT
 *
 * Elements by their rank along one dimension (kthvalue, median, quantile) or by how often they
 * occur (mode). */
#include "formula.h"

/* ---- one element of each line, with its index ---- */

static tn_status rank_infer(tn_infer *infer, int64_t dim, bool keepdim)
{
    tn_status status = tn__common_extreme(infer, (tn_ints){ &dim, 1 }, keepdim,
                                          tn_view_dtype(infer->in[0]));

    infer->out[1] = infer->out[0];
    infer->out[1].dtype = TN_I64;
    return status;
}

static tn_status rank_derive(tn_derive *d, int64_t dim, bool keepdim)
{
    tn_ints shape = tn__common_in_shape(d, 0), dims = { &dim, 1 };

    if (d->gout[0] != TN_NONE)
        d->gin[0] = tn__common_scattered(d, tn__common_unreduced(d->out[1], shape, dims, keepdim),
                                         tn__common_unreduced(d->gout[0], shape, dims, keepdim),
                                         dim);
    return TN_OK;
}

/* Sorts along dim. */
static tn_status sorted(tn_tensor *x, int64_t dim, tn_tensor **values, tn_tensor **order)
{
    return tn_sort(x, values, order, dim);
}

/* Outputs the elements of `values` and of `order`, their indices, at `places`, which has dimension
 * `dim` with size 1. */
static tn_status taken(tn_tensor *values, tn_tensor *order, tn_tensor *places, int64_t dim,
                       bool keepdim, tn_tensor **out)
{
    out[0] = tn_gather(values, places, dim);
    out[1] = tn_gather(order, places, dim);
    if (!keepdim && out[0] != NULL && tn_tensor_ndim(values) > 0) {
        out[0] = tn_squeeze(out[0], TN_INTS(dim));
        out[1] = tn_squeeze(out[1], TN_INTS(dim));
    }
    return out[0] != NULL && out[1] != NULL ? TN_OK : tn_error_last_code();
}

/* Returns the same index `at` for each line of x. */
static tn_tensor *same_place(tn_tensor *x, int64_t dim, int64_t at)
{
    int64_t shape[TN_MAX_DIMS];
    tn_ints given = tn_tensor_shape(x);
    int32_t d;

    if (tn__common_dim(dim, (int32_t)given.count, &d) != TN_OK)
        return NULL;
    for (int64_t k = 0; k < given.count; k++)
        shape[k] = k == d ? 1 : given.at[k];
    return tn_tensor_full((tn_ints){ shape, given.count }, (double)at, TN_I64, tn_tensor_device(x));
}

static int64_t length(const tn_tensor *x, int64_t dim)
{
    return tn_tensor_ndim(x) > 0 ? tn_tensor_size(x, dim) : 1;
}

/* For each line of x, the number of its elements that are not NaN; dimension dim has size 1. */
static tn_tensor *numbers_of(tn_tensor *x, int64_t dim)
{
    return tn_sum(tn_logical_not(tn_isnan(x)), TN_INTS(dim), true);
}

/* ---- kthvalue ---- */

static tn_status kthvalue_infer(tn_infer *infer)
{
    const tn_kthvalue_options *o = infer->options;
    const tn_view *x = infer->in[0];
    tn_status status = rank_infer(infer, o->dim, o->keepdim);
    int32_t at;
    int64_t n;

    if (status == TN_OK)
        status = tn__common_dim(o->dim, x->ndim, &at);
    if (status != TN_OK)
        return status;
    n = x->ndim > 0 ? x->shape[at] : 1;
    if (o->k < 1 || o->k > n)
        return tn_fail(TN_ERR_RUNTIME,
                       "k: out of range, got %lld; expected 1 to %lld, the size of dimension %d",
                       (long long)o->k, (long long)n, (int)at);
    return TN_OK;
}

static tn_status kthvalue_derive(tn_derive *d)
{
    const tn_kthvalue_options *o = d->options;

    return rank_derive(d, o->dim, o->keepdim);
}

static tn_status kthvalue_decompose(const tn_decompose *call)
{
    const tn_kthvalue_options *o = call->options;
    tn_tensor *values, *order;
    tn_status status = sorted(call->in[0], o->dim, &values, &order);
    if (status != TN_OK)
        return status;
    return taken(values, order, same_place(values, o->dim, o->k - 1), o->dim, o->keepdim,
                 call->out);
}

/* ---- median, nanmedian ---- */

static tn_status median_dim_infer(tn_infer *infer)
{
    const tn_median_dim_options *o = infer->options;

    return rank_infer(infer, o->dim, o->keepdim);
}

static tn_status nanmedian_dim_infer(tn_infer *infer)
{
    const tn_nanmedian_dim_options *o = infer->options;

    return rank_infer(infer, o->dim, o->keepdim);
}

static tn_status median_dim_derive(tn_derive *d)
{
    const tn_median_dim_options *o = d->options;

    return rank_derive(d, o->dim, o->keepdim);
}

static tn_status nanmedian_dim_derive(tn_derive *d)
{
    const tn_nanmedian_dim_options *o = d->options;

    return rank_derive(d, o->dim, o->keepdim);
}

/* The median of a line with NaN is its first NaN, which follows all numbers in the sorted line.
 * With skip_nan it is the median of the numbers, or NaN if there are none. */
static tn_status middle(const tn_decompose *call, int64_t dim, bool keepdim, bool skip_nan)
{
    tn_tensor *x = call->in[0], *values, *order, *places, *count;
    int64_t n = length(x, dim);
    tn_status status = sorted(x, dim, &values, &order);
    if (status != TN_OK)
        return status;
    places = same_place(x, dim, (n - 1) / 2);
    if (TN_MASK_FLOAT & TN_BIT(tn_tensor_dtype(x))) {
        count = numbers_of(x, dim);
        if (skip_nan)
            places = tn_div(at_least(add_number(count, -1), 0), number(count, 2), "floor");
        else
            places = tn_where(tn_lt(count, number(count, n)), count, places);
    }
    return taken(values, order, places, dim, keepdim, call->out);
}

static tn_status median_dim_decompose(const tn_decompose *call)
{
    const tn_median_dim_options *o = call->options;
    return middle(call, o->dim, o->keepdim, false);
}

static tn_status nanmedian_dim_decompose(const tn_decompose *call)
{
    const tn_nanmedian_dim_options *o = call->options;
    return middle(call, o->dim, o->keepdim, true);
}

static tn_status median_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];
    tn_dtype dtype = tn_view_dtype(x);

    if (tn__is_int(dtype) && tn__common_count(tn__common_shape(x)) == 0)
        return tn_fail(TN_ERR_VALUE, "x: no elements; expected at least one, because no %s is NaN",
                       tn_dtype_name(dtype));
    tn__common_plain(&infer->out[0], dtype, (tn_ints){ NULL, 0 });
    return TN_OK;
}

static tn_status median_decompose(const tn_decompose *call)
{
    tn_tensor *x = tn_flatten(call->in[0], 0, -1), *place;
    if (x == NULL)
        return tn_error_last_code();
    if (tn_tensor_numel(x) == 0)
        return tn__common_given(call->out, tn_tensor_full((tn_ints){ NULL, 0 }, (double)NAN,
                                                          tn_tensor_dtype(x), tn_tensor_device(x)));
    return tn_median_dim(x, 0, &call->out[0], &place);
}

static tn_status nanmedian_decompose(const tn_decompose *call)
{
    tn_tensor *x = tn_flatten(call->in[0], 0, -1), *place;
    if (x == NULL)
        return tn_error_last_code();
    if (tn_tensor_numel(x) == 0)
        return median_decompose(call);
    return tn_nanmedian_dim(x, 0, &call->out[0], &place);
}

/* Distributes the gradient evenly among the elements that are equal to the result; NaN counts as
 * equal to NaN. */
static tn_status median_derive(tn_derive *d)
{
    tn_tensor *x = d->in[0], *y = d->out[0], *mask;

    if (x == NULL || y == NULL)
        return tn_error_last_code();
    mask = tn_logical_or(tn_eq(x, y), tn_logical_and(tn_isnan(x), tn_isnan(y)));
    if (mask == NULL)
        return tn_error_last_code();
    mask = tn_cast(mask, tn_tensor_dtype(x));
    d->gin[0] = tn_mul(mask, divide(d->gout[0], tn_sum(mask)));
    return TN_OK;
}

/* ---- mode ---- */

static tn_status mode_infer(tn_infer *infer)
{
    const tn_mode_options *o = infer->options;

    return rank_infer(infer, o->dim, o->keepdim);
}

static tn_status mode_derive(tn_derive *d)
{
    const tn_mode_options *o = d->options;

    return rank_derive(d, o->dim, o->keepdim);
}

/* Sorts each line, so that equal elements form runs, and numbers the elements of each run from 0.
 * The largest number is at the end of the longest run; argmax takes the first of equally long runs,
 * which is that of the smallest element. */
static tn_status mode_decompose(const tn_decompose *call)
{
    const tn_mode_options *o = call->options;
    tn_tensor *x = call->in[0], *values, *order, *places, *first, *begins, *parts[2];
    int64_t n = length(x, o->dim);
    int32_t at;
    tn_status status = sorted(x, o->dim, &values, &order);
    if (status != TN_OK)
        return status;
    if (n <= 1)
        return taken(values, order, same_place(x, o->dim, 0), o->dim, o->keepdim, call->out);
    status = tn__common_dim(o->dim, tn_tensor_ndim(x), &at);
    if (status != TN_OK)
        return status;
    places = tn__common_spread(tn_arange(x, 0, n, 1, TN_I64), tn_tensor_shape(x), at);
    parts[0] = tn_narrow(places, at, 0, 1);
    parts[1] = tn_where(tn_ne(tn_narrow(values, at, 1, n - 1), tn_narrow(values, at, 0, n - 1)),
                        tn_narrow(places, at, 1, n - 1), number(places, 0));
    status = tn_cummax(tn_cat(parts, 2, at), at, &begins, &first);
    if (status != TN_OK)
        return status;
    return taken(values, order, tn_argmax(minus(places, begins), o->dim, true), o->dim, o->keepdim,
                 call->out);
}

/* ---- quantile, nanquantile ---- */

static const char *const interpolations[] = { "linear",   "lower",   "higher",
                                              "midpoint", "nearest", NULL };

static tn_status quantile_fits(const tn_view *x, const tn_view *q, const char *interpolation)
{
    if (tn__common_count(tn__common_shape(x)) == 0)
        return tn_fail(TN_ERR_RUNTIME, /* PyTorch's wording */ "input tensor must be non-empty");
    if (q->ndim > 1)
        return tn_fail(
            TN_ERR_RUNTIME,
            /* PyTorch's wording */ "q must be a scalar or 1D tensor, not of %d dimensions",
            (int)q->ndim);
    for (int i = 0; interpolations[i] != NULL; i++)
        if (is(interpolation, interpolations[i]))
            return q->ndim == 0 ? TN_OK : tn__common_same_dtype(x, "x", q, "q");
    return tn_fail(TN_ERR_RUNTIME,
                   /* PyTorch's wording */
                   "interpolation must be one of linear, lower, higher, midpoint or nearest, but "
                   "got %s",
                   interpolation != NULL ? interpolation : "none");
}

static tn_status quantile_shape(tn_infer *infer, int64_t dim, bool keepdim,
                                const char *interpolation)
{
    const tn_view *x = infer->in[0], *q = infer->in[1];
    tn_ints dims = { &dim, dim == INT64_MIN ? 0 : 1 };
    bool reduced[TN_MAX_DIMS];
    tn_meta *y = &infer->out[0];
    tn_status status = quantile_fits(x, q, interpolation);

    if (status == TN_OK)
        status = tn__common_dims(dims, x->ndim, reduced);
    if (status != TN_OK)
        return status;
    y->dtype = tn_view_dtype(x);
    tn__common_reduced(x, reduced, keepdim, y);
    if (q->ndim == 0)
        return TN_OK;
    if (y->ndim == TN_MAX_DIMS)
        return tn_fail(TN_ERR_VALUE, "result: too many dimensions, got %d; expected at most %d",
                       TN_MAX_DIMS + 1, TN_MAX_DIMS);
    memmove(y->shape + 1, y->shape, (size_t)y->ndim * sizeof *y->shape);
    y->shape[0] = q->shape[0];
    y->ndim++;
    return TN_OK;
}

static tn_status quantile_infer(tn_infer *infer)
{
    const tn_quantile_options *o = infer->options;

    return quantile_shape(infer, o->dim, o->keepdim, o->interpolation);
}

static tn_status nanquantile_infer(tn_infer *infer)
{
    const tn_nanquantile_options *o = infer->options;

    return quantile_shape(infer, o->dim, o->keepdim, o->interpolation);
}

/* Reads the smallest and the largest element of q. */
static tn_status fractions_fit(tn_tensor *q)
{
    tn_scalar least, most;
    double low, high;

    if (tn_tensor_numel(q) == 0)
        return TN_OK;
    if (tn_tensor_scalar(tn_amin(q), &least) != TN_OK ||
        tn_tensor_scalar(tn_amax(q), &most) != TN_OK)
        return tn_error_last_code();
    low = tn_scalar_as_float(least);
    high = tn_scalar_as_float(most);
    if (low >= 0 && high <= 1)
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME,
                   /* PyTorch's wording */
                   "q values must be in the range [0, 1], but q has %g to %g", low, high);
}

/* Gives y, whose last dimension has the results for the elements of q, the shape of the result:
 * these first, then the dimensions of x. The last dimension of y changed places with `dim`. */
static tn_tensor *results_first(tn_tensor *y, tn_tensor *x, tn_tensor *q, int64_t dim, bool keepdim)
{
    int64_t order[TN_MAX_DIMS], shape[TN_MAX_DIMS + 1], count = 0;
    tn_ints given = tn_tensor_shape(x), dims = { &dim, dim == INT64_MIN ? 0 : 1 };
    bool reduced[TN_MAX_DIMS], one = tn_tensor_ndim(q) == 0;
    int32_t at = 0;

    if (tn__common_dims(dims, (int32_t)given.count, reduced) != TN_OK || y == NULL)
        return NULL;
    if (!one)
        shape[count++] = tn_tensor_numel(q);
    for (int64_t d = 0; d < given.count; d++) {
        if (!reduced[d])
            shape[count++] = given.at[d];
        else if (keepdim)
            shape[count++] = 1;
    }
    if (dims.count > 0 && given.count > 0) {
        if (tn__common_dim(dim, (int32_t)given.count, &at) != TN_OK)
            return NULL;
        order[0] = at;
        for (int64_t d = 0, next = 1; d < given.count; d++)
            if (d != at)
                order[next++] = d;
        y = tn_permute(tn_transpose(y, at, -1), (tn_ints){ order, given.count });
    }
    return tn_reshape(y, (tn_ints){ shape, count });
}

/* The ranks q * (n - 1), one for each line and element of q. A line with NaN gets the rank of its
 * last element, which is NaN. With skip_nan, n is the number of elements that are not NaN, and a
 * line without any gets rank 0. */
static tn_tensor *ranks_of(tn_tensor *lines, tn_tensor *q, bool skip_nan)
{
    int64_t n = tn_tensor_size(lines, -1);
    tn_tensor *numbers;

    if (!skip_nan)
        return tn_where(tn_isnan(tn_narrow(lines, -1, n - 1, 1)), number(q, n - 1),
                        times(q, n - 1));
    numbers = numbers_of(tn_detach(lines), -1);
    if (numbers == NULL || q == NULL)
        return NULL;
    return tn_mul(q, tn_cast(at_least(add_number(numbers, -1), 0), tn_tensor_dtype(q)));
}

static tn_tensor *at_ranks(tn_tensor *lines, tn_tensor *ranks)
{
    return ranks != NULL ? tn_gather(lines, tn_cast(tn_detach(ranks), TN_I64), -1) : NULL;
}

static tn_tensor *interpolated(tn_tensor *lines, tn_tensor *ranks, const char *interpolation)
{
    tn_tensor *below, *share;

    if (lines == NULL || ranks == NULL)
        return NULL;
    if (is(interpolation, "higher"))
        return at_ranks(lines, tn_ceil(ranks));
    if (is(interpolation, "nearest"))
        return at_ranks(lines, tn_round(ranks));
    below = tn_detach(tn_floor(ranks));
    if (is(interpolation, "lower"))
        return at_ranks(lines, below);
    share = is(interpolation, "midpoint") ? number(ranks, 0.5) : minus(ranks, below);
    return tn_lerp(at_ranks(lines, below), at_ranks(lines, tn_ceil(ranks)), share);
}

static tn_status at_fractions(const tn_decompose *call, int64_t dim, bool keepdim, bool skip_nan,
                              const char *interpolation)
{
    tn_tensor *x = call->in[0], *q = call->in[1], *values, *order, *fractions, *lines;
    bool along = dim != INT64_MIN && tn_tensor_ndim(x) > 0;
    tn_status status = fractions_fit(tn_detach(q));
    if (status != TN_OK)
        return status;
    /* Contiguous lines are sorted and read faster than strided ones. */
    lines = along ? tn_transpose(x, dim, -1) : tn_reshape(x, TN_SHAPE(-1));
    if (along && dim != -1 && dim != tn_tensor_ndim(x) - 1)
        lines = tn_copy(lines);
    status = sorted(lines, -1, &values, &order);
    if (status != TN_OK)
        return status;
    fractions = tn_cast(tn_reshape(q, TN_SHAPE(-1)), tn_tensor_dtype(x));
    lines = interpolated(values, ranks_of(values, fractions, skip_nan), interpolation);
    return tn__common_given(call->out, results_first(lines, x, q, dim, keepdim));
}

static tn_status quantile_decompose(const tn_decompose *call)
{
    const tn_quantile_options *o = call->options;
    return at_fractions(call, o->dim, o->keepdim, false, o->interpolation);
}

static tn_status nanquantile_decompose(const tn_decompose *call)
{
    const tn_nanquantile_options *o = call->options;
    return at_fractions(call, o->dim, o->keepdim, true, o->interpolation);
}

TN__OP(kthvalue, .infer = kthvalue_infer, .derive = kthvalue_derive,
       .decompose = kthvalue_decompose);
TN__OP(median, .infer = median_infer, .derive = median_derive, .decompose = median_decompose);
TN__OP(median_dim, .infer = median_dim_infer, .derive = median_dim_derive,
       .decompose = median_dim_decompose);
TN__OP(nanmedian, .infer = median_infer, .derive = median_derive, .decompose = nanmedian_decompose);
TN__OP(nanmedian_dim, .infer = nanmedian_dim_infer, .derive = nanmedian_dim_derive,
       .decompose = nanmedian_dim_decompose);
TN__OP(mode, .infer = mode_infer, .derive = mode_derive, .decompose = mode_decompose);
TN__OP(quantile, .infer = quantile_infer, .decompose = quantile_decompose);
TN__OP(nanquantile, .infer = nanquantile_infer, .decompose = nanquantile_decompose);
