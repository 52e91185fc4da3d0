/* SPDX-License-Identifier: MIT
 *
 * Distinct values (unique, unique_consecutive) and numbers of values (bincount, histc). */
#include "formula.h"

static tn_tensor *flat(tn_tensor *x)
{
    return x != NULL ? tn_reshape(x, TN_SHAPE(tn_tensor_numel(x))) : NULL;
}

/* x[from : from + count] along dimension 0 */
static tn_tensor *rows(tn_tensor *x, int64_t from, int64_t count)
{
    return tn_narrow(x, 0, from, count);
}

/* What a call returns besides the values. */
struct asked {
    bool inverse, counts;
    int64_t dim;
};

static tn_status unique_check(tn_infer *infer, int64_t dim)
{
    const tn_view *x = infer->in[0];
    int32_t at;

    for (int32_t i = 0; i < infer->n_out; i++) {
        infer->out[i].dtype = i == 0 ? tn_view_dtype(x) : TN_I64;
        infer->out[i].ndim = -1;
    }
    if (dim == INT64_MIN)
        return TN_OK;
    if (tn__common_dim(dim, x->ndim, &at) != TN_OK)
        return tn_error_last_code();
    for (int32_t d = 0; d < x->ndim; d++)
        if (d != at && x->shape[d] == 0)
            return tn_fail(TN_ERR_RUNTIME,
                           "There are 0 sized dimensions, and they aren't selected, so unique "
                           "cannot be applied");
    return TN_OK;
}

/* Rows of a matrix along dimension dim of x; for dim None the vector of all elements. */
static tn_tensor *slices(tn_tensor *x, int64_t dim)
{
    int64_t n, order[TN_MAX_DIMS], ndim = tn_tensor_ndim(x), at = dim < 0 ? dim + ndim : dim;

    if (dim == INT64_MIN || ndim <= 1)
        return flat(x);
    n = tn_tensor_size(x, dim);
    /* moves the dimension to the front: the others keep their order, by which slices are sorted */
    for (int64_t d = 0; d < ndim; d++)
        order[d] = d == 0 ? at : d <= at ? d - 1 : d;
    x = tn_permute(x, (tn_ints){ order, ndim });
    return tn_reshape(x, TN_SHAPE(n, n > 0 ? tn_tensor_numel(x) / n : 0));
}

/* For the sorted or given order of elements: `starts` is true at the first element of each group of
 * equal ones. `order` has the index in x of each element, or is NULL if they are in x's order. Sets
 * *firsts to the indices in x of the first elements, and computes out[1] and out[2], which are
 * empty unless `asked` says otherwise. */
static tn_status groups(tn_tensor *starts, tn_tensor *order, tn_ints shape, struct asked asked,
                        tn_tensor **firsts, tn_tensor **out)
{
    tn_tensor *places = flat(tn_nonzero(starts)), *ends[2];
    int64_t n;

    if (places == NULL)
        return tn_error_last_code();
    n = tn_tensor_numel(starts);
    out[1] = out[2] = tn__common_zeros(places, TN_SHAPE(0));
    if (asked.inverse) {
        tn_tensor *group = add_number(tn_cumsum(starts, 0), -1);

        if (order != NULL)
            group = tn_scatter(tn__common_nothing(group, TN_SHAPE(n)), order, group, 0);
        out[1] = tn_reshape(group, asked.dim == INT64_MIN ? shape : TN_SHAPE(n));
    }
    if (asked.counts) {
        int64_t count = tn_tensor_numel(places);

        ends[0] = rows(places, count > 0 ? 1 : 0, count > 0 ? count - 1 : 0);
        ends[1] = tn_tensor_full(TN_SHAPE(count > 0 ? 1 : 0), (double)n, TN_I64,
                                 tn_tensor_device(places));
        out[2] = minus(tn_cat(ends, 2, 0), places);
    }
    *firsts = order != NULL ? tn_gather(order, places, 0) : places;
    return *firsts != NULL && out[1] != NULL && out[2] != NULL ? TN_OK : tn_error_last_code();
}

/* true for the first row, and for each row that differs from the one before. */
static tn_tensor *starts_of(tn_tensor *x)
{
    int64_t n, one[1] = { 1 };
    tn_tensor *parts[2];

    if (x == NULL)
        return NULL;
    n = tn_tensor_size(x, 0);
    if (n == 0)
        return tn_tensor_full(TN_SHAPE(0), 0, TN_BOOL, tn_tensor_device(x));
    parts[0] = tn_tensor_full(TN_SHAPE(1), 1, TN_BOOL, tn_tensor_device(x));
    parts[1] = tn_ne(rows(x, 1, n - 1), rows(x, 0, n - 1));
    if (tn_tensor_ndim(x) > 1)
        parts[1] = tn_any(parts[1], ((tn_ints){ one, 1 }));
    return tn_cat(parts, 2, 0);
}

/* Sorts along dimension 0. */
static tn_status sorted(tn_tensor *x, tn_tensor **values, tn_tensor **order)
{
    return tn_sort(x, values, order, 0);
}

/* The rank of each element of a matrix within its column, from 0; equal elements have the same
 * rank. */
static tn_tensor *ranks(tn_tensor *x)
{
    tn_tensor *values, *order, *differ, *parts[2];
    int64_t n = tn_tensor_size(x, 0), m = tn_tensor_size(x, 1);

    if (sorted(x, &values, &order) != TN_OK)
        return NULL;
    differ = tn_cast(tn_ne(rows(values, 1, n - 1), rows(values, 0, n - 1)), TN_I64);
    parts[0] = tn__common_zeros(order, TN_SHAPE(1, m));
    parts[1] = tn_cumsum(differ, 0);
    return tn_scatter(tn__common_nothing(order, TN_SHAPE(n, m)), order, tn_cat(parts, 2, 0), 0);
}

/* Ranks of rows in lexicographic order, as a vector. Ranks the elements of all columns, then joins
 * each pair of neighbouring columns to one number and ranks again, until one column is left. */
static tn_tensor *row_ranks(tn_tensor *x)
{
    int64_t n = tn_tensor_size(x, 0), m = tn_tensor_size(x, 1);

    x = ranks(x);
    while (m > 1 && x != NULL) {
        int64_t pairs = m / 2;
        tn_tensor *even = tn_reshape(tn_narrow(x, 1, 0, 2 * pairs), TN_SHAPE(n, pairs, 2));
        tn_tensor *joined = plus(tn_mul_scalar(tn_select(even, 2, 0), n), tn_select(even, 2, 1));
        tn_tensor *parts[2] = { joined, tn_narrow(x, 1, 2 * pairs, m - 2 * pairs) };

        x = m % 2 != 0 ? tn_cat(parts, 2, 1) : joined;
        m = pairs + m % 2;
        x = x != NULL ? ranks(x) : NULL;
    }
    return x != NULL ? flat(x) : NULL;
}

static tn_status unique_infer(tn_infer *infer)
{
    return unique_check(infer, ((const tn_unique_options *)infer->options)->dim);
}

static tn_status unique_decompose(const tn_decompose *call)
{
    const tn_unique_options *o = call->options;
    struct asked asked = { o->return_inverse, o->return_counts, o->dim };
    tn_tensor *x = call->in[0], *keys = slices(x, o->dim), *values, *order, *firsts;
    bool single;

    if (keys == NULL)
        return tn_error_last_code();
    single = tn_tensor_ndim(keys) == 1;
    if (!single && tn_tensor_size(keys, 0) > 0)
        keys = row_ranks(keys);
    else if (!single)
        keys = tn__common_zeros(keys, TN_SHAPE(0));
    if (keys == NULL || sorted(keys, &values, &order) != TN_OK ||
        groups(starts_of(values), order, tn_tensor_shape(x), asked, &firsts, call->out) != TN_OK)
        return tn_error_last_code();
    return tn__common_given(call->out, single ? tn_gather(keys, firsts, 0)
                                              : tn_index_select(x, firsts, o->dim));
}

static tn_status unique_consecutive_infer(tn_infer *infer)
{
    return unique_check(infer, ((const tn_unique_consecutive_options *)infer->options)->dim);
}

static tn_status unique_consecutive_decompose(const tn_decompose *call)
{
    const tn_unique_consecutive_options *o = call->options;
    struct asked asked = { o->return_inverse, o->return_counts, o->dim };
    tn_tensor *x = call->in[0], *keys = slices(x, o->dim), *firsts;

    if (keys == NULL ||
        groups(starts_of(keys), NULL, tn_tensor_shape(x), asked, &firsts, call->out) != TN_OK)
        return tn_error_last_code();
    return tn__common_given(call->out, tn_tensor_ndim(keys) == 1
                                           ? tn_gather(keys, firsts, 0)
                                           : tn_index_select(x, firsts, o->dim));
}

/* ---- bincount, histc ---- */

static tn_status bincount_infer(tn_infer *infer)
{
    const tn_bincount_options *o = infer->options;
    const tn_view *x = infer->in[0], *weights = infer->in[1];
    tn_dtype dtype = weights == NULL ? TN_I64 : tn_view_dtype(weights) == TN_F32 ? TN_F32 : TN_F64;

    infer->out[0].dtype = dtype;
    infer->out[0].ndim = -1;
    if (x->ndim != 1)
        return tn_fail(TN_ERR_RUNTIME,
                       "x: wrong shape, got %d dimensions; bincount only supports 1-d "
                       "non-negative integral inputs",
                       (int)x->ndim);
    if (o->minlength < 0)
        return tn_fail(
            TN_ERR_RUNTIME,
            "minlength: out of range, got %lld; expected 0 or more: minlength should be >= 0",
            (long long)o->minlength);
    if (weights != NULL && (weights->ndim != 1 || weights->shape[0] != x->shape[0])) {
        char text[TN__TEXT];

        return tn_fail(
            TN_ERR_RUNTIME,
            "weights: wrong shape, got %s; weights should be 1-d and have the same length "
            "as input, %lld",
            tn__common_text(text, tn__common_shape(weights)), (long long)x->shape[0]);
    }
    return TN_OK;
}

static tn_status bincount_decompose(const tn_decompose *call)
{
    const tn_bincount_options *o = call->options;
    tn_tensor *x = tn_cast(call->in[0], TN_I64), *weights, *zeros;
    int64_t size = o->minlength, n = tn_tensor_numel(call->in[0]);
    tn_dtype dtype = TN_I64;

    if (x == NULL)
        return tn_error_last_code();
    if (n > 0) {
        tn_scalar least, most;

        if (tn_tensor_scalar(tn_amin(x), &least) != TN_OK ||
            tn_tensor_scalar(tn_amax(x), &most) != TN_OK)
            return tn_error_last_code();
        if (tn_scalar_as_int(least) < 0)
            return tn_fail(
                TN_ERR_RUNTIME,
                "bincount: x: out of range, got %lld; expected 0 or more: bincount only supports "
                "1-d non-negative integral inputs",
                (long long)tn_scalar_as_int(least));
        if (tn_scalar_as_int(most) == INT64_MAX)
            return tn_fail(TN_ERR_MEMORY,
                           "bincount: x: too large, got %lld; the result would need "
                           "one more element",
                           (long long)INT64_MAX);
        size = tn_scalar_as_int(most) >= size ? tn_scalar_as_int(most) + 1 : size;
    }
    if (call->in[1] != TN_NONE)
        dtype = tn_tensor_dtype(call->in[1]) == TN_F32 ? TN_F32 : TN_F64;
    zeros = tn_tensor_full(TN_SHAPE(size), 0, dtype, tn_tensor_device(x));
    weights = call->in[1] != TN_NONE ? tn_cast(call->in[1], dtype)
                                     : tn_expand(number(zeros, 1), TN_SHAPE(n));
    return tn__common_given(call->out, tn_scatter_add(zeros, x, weights, 0));
}

static tn_status histc_infer(tn_infer *infer)
{
    const tn_histc_options *o = infer->options;

    if (o->bins <= 0 || o->bins > INT32_MAX)
        return tn_fail(TN_ERR_RUNTIME,
                       "bins: out of range, got %lld; expected 1 to %d: bins must be > 0",
                       (long long)o->bins, INT32_MAX);
    if (!isfinite(o->min) || !isfinite(o->max))
        return tn_fail(TN_ERR_RUNTIME, "min and max: range of [%g, %g] is not finite", o->min,
                       o->max);
    if (o->min > o->max)
        return tn_fail(
            TN_ERR_RUNTIME,
            "min and max: out of range, got %g and %g; expected min <= max: max must be larger "
            "than min",
            o->min, o->max);
    tn__common_plain(&infer->out[0], tn_view_dtype(infer->in[0]), TN_SHAPE(o->bins));
    return TN_OK;
}

static tn_status read_range(tn_tensor *x, double *min, double *max)
{
    tn_scalar least, most;

    if (*min == *max && tn_tensor_numel(x) > 0) {
        if (tn_tensor_scalar(tn_amin(x), &least) != TN_OK ||
            tn_tensor_scalar(tn_amax(x), &most) != TN_OK)
            return tn_error_last_code();
        *min = tn_scalar_as_float(least);
        *max = tn_scalar_as_float(most);
    }
    if (!isfinite(*min) || !isfinite(*max))
        return tn_fail(TN_ERR_RUNTIME, "histc: x: range of [%g, %g] is not finite", *min, *max);
    if (*min == *max) {
        *min -= 1;
        *max += 1;
    }
    return TN_OK;
}

static tn_status histc_decompose(const tn_decompose *call)
{
    const tn_histc_options *o = call->options;
    tn_dtype dtype = tn_tensor_dtype(call->in[0]);
    tn_tensor *x = flat(call->in[0]), *bin, *inside, *zeros;
    double min = o->min, max = o->max;

    if (tn__common_narrow(call->in[0]))
        x = tn_cast(x, TN_F32);
    if (x == NULL || read_range(x, &min, &max) != TN_OK)
        return tn_error_last_code();
    if (o->min == o->max && min < max) /* the ends are known: a device may have a kernel */
        return tn__common_given(call->out, tn_histc(call->in[0], o->bins, min, max));
    inside = tn_logical_and(is_at_least(x, min), is_at_most(x, max));
    bin = times(divide(add_number(x, -min), number(x, max - min)), (double)o->bins);
    bin = tn_cast(tn_masked_fill(bin, tn_logical_not(inside), 0), TN_I64);
    bin = bin != NULL ? tn_minimum(bin, number(bin, o->bins - 1)) : NULL;
    zeros = tn_tensor_full(TN_SHAPE(o->bins), 0, TN_I64, tn_tensor_device(x));
    return tn__common_given(call->out,
                            tn_cast(tn_scatter_add(zeros, bin, tn_cast(inside, TN_I64), 0), dtype));
}

TN__OP(unique, .infer = unique_infer, .decompose = unique_decompose);
TN__OP(unique_consecutive, .infer = unique_consecutive_infer,
       .decompose = unique_consecutive_decompose);
TN__OP(bincount, .infer = bincount_infer, .decompose = bincount_decompose);
TN__OP(histc, .infer = histc_infer, .decompose = histc_decompose);
