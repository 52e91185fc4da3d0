/* SPDX-License-Identifier: MIT
 *
 * Operators that combine elements with those that an index selects: sums, products, means, maxima
 * and minima. */
#include "index.h"

static tn_status wrong_reduce(const char *reduce, const char *expected)
{
    return tn_fail(TN_ERR_RUNTIME, "reduce: unknown, got %q; expected %s", reduce, expected);
}

static bool is_extreme(const char *reduce)
{
    return is(reduce, "amax") || is(reduce, "amin");
}

static tn_status check_mean(const tn_view *x, const char *reduce)
{
    if (is(reduce, "mean") && tn_view_dtype(x) == TN_BOOL)
        return tn_fail(TN_ERR_TYPE, "x: wrong dtype, got bool with reduce mean; expected numbers");
    return TN_OK;
}

static tn_status scatter_reduce_infer(tn_infer *infer)
{
    const tn_scatter_reduce_options *o = infer->options;
    tn_status status = index_into_infer(infer, o->dim);

    if (status == TN_OK && !is(o->reduce, "sum") && !is(o->reduce, "prod") &&
        !is(o->reduce, "mean") && !is_extreme(o->reduce))
        return wrong_reduce(o->reduce, "sum, prod, mean, amax or amin");
    return status == TN_OK ? check_mean(infer->in[0], o->reduce) : status;
}

/* The operands of a reduction: x, the index, and the corner of src that has the shape of the
 * index. */
struct operands {
    tn_tensor *x, *index, *src;
    int64_t dim;
    const char *reduce;
};

static tn_tensor *combine(const char *reduce, tn_tensor *a, tn_tensor *b)
{
    return is(reduce, "prod")   ? tn_mul(a, b)
           : is(reduce, "amax") ? tn_maximum(a, b)
                                : tn_minimum(a, b);
}

/* A value for each element of `index`, all equal to `value`, with the dtype of `like`. */
static tn_tensor *same_for_all(tn_tensor *like, tn_tensor *index, double value)
{
    return index != NULL ? tn_expand(number(like, value), tn_tensor_shape(index)) : NULL;
}

/* Returns x; if the elements of x do not count as values, the selected elements are 0. */
static tn_tensor *start_of_sum(const struct operands *of, bool include_self)
{
    return include_self ? of->x
                        : tn_scatter(of->x, of->index, same_for_all(of->x, of->index, 0), of->dim);
}

/* Returns, for each element of the result, how many values it combines; at least 1; int64. */
static tn_tensor *number_of_values(const struct operands *of, bool include_self)
{
    tn_tensor *start = tn_tensor_full(tn_tensor_shape(of->x), include_self ? 1 : 0, TN_I64,
                                      tn_tensor_device(of->x));

    return at_least(tn_scatter_add(start, of->index, same_for_all(start, of->index, 1), of->dim),
                    1);
}

static tn_tensor *mean_of(tn_tensor *sum, tn_tensor *count)
{
    if (sum == NULL || count == NULL)
        return NULL;
    return tn_div(sum, tn_cast(count, tn_tensor_dtype(sum)),
                  tn__is_int(tn_tensor_dtype(sum)) ? "floor" : NULL);
}

/* prod, amax, amin: sorts the values by index and combines those of equal indices in a scan with
 * about log2(length) steps. After the scan the last value of each group is the result of the
 * group, and scatter uses the last value. */
static tn_tensor *scanned(const struct operands *of, bool include_self)
{
    int64_t n = tn_tensor_size(of->index, of->dim), dim = of->dim;
    tn_tensor *keys, *order, *values, *to;

    if (tn_sort(of->index, &keys, &order, dim) != TN_OK)
        return NULL;
    values = tn_gather(of->src, order, dim);
    for (int64_t step = 1; step < n && values != NULL; step *= 2) {
        tn_tensor *later = tn_narrow(values, dim, step, n - step);
        tn_tensor *earlier = tn_narrow(values, dim, 0, n - step);
        tn_tensor *equal = tn_eq(tn_narrow(keys, dim, step, n - step),
                                 tn_narrow(keys, dim, 0, n - step));
        tn_tensor *parts[2] = { tn_narrow(values, dim, 0, step),
                                tn_where(equal, combine(of->reduce, later, earlier), later) };

        values = tn_cat(parts, 2, dim);
    }
    if (!include_self)
        return tn_scatter(of->x, keys, values, dim);
    to = is(of->reduce, "prod") ? tn_expand(number(of->x, 1), tn_tensor_shape(of->x)) : of->x;
    return combine(of->reduce, of->x, tn_scatter(to, keys, values, dim));
}

static tn_tensor *reduced(const struct operands *of, bool include_self)
{
    tn_tensor *sum;

    if (of->index == NULL || of->src == NULL)
        return NULL;
    if (tn_tensor_numel(of->index) == 0)
        return tn_copy(of->x);
    if (!is(of->reduce, "sum") && !is(of->reduce, "mean"))
        return scanned(of, include_self);
    sum = tn_scatter_add(start_of_sum(of, include_self), of->index, of->src, of->dim);
    return is(of->reduce, "sum") ? sum : mean_of(sum, number_of_values(of, include_self));
}

static tn_status scatter_reduce_decompose(const tn_decompose *call)
{
    const tn_scatter_reduce_options *o = call->options;
    tn_tensor *x = call->in[0], *src = index_vector(call->in[2]), *y;
    struct operands of = { index_vector(x), index_vector(call->in[1]), src, 0, o->reduce };
    int32_t dim;

    if (tn__common_dim(o->dim, tn_tensor_ndim(x), &dim) != TN_OK || of.index == NULL || src == NULL)
        return tn_error_last_code();
    of.dim = dim;
    for (int64_t d = 0; tn_tensor_numel(of.index) > 0 && d < tn_tensor_ndim(of.index); d++)
        of.src = tn_narrow(of.src, d, 0, tn_tensor_size(of.index, d));
    if (tn_tensor_dtype(x) == TN_BOOL) { /* true is 1, and a result that is not 0 is true */
        of.x = tn_cast(of.x, TN_I32);
        of.src = tn_cast(of.src, TN_I32);
    }
    y = reduced(&of, o->include_self);
    if (tn_tensor_dtype(x) == TN_BOOL)
        y = tn_cast(y, TN_BOOL);
    return tn__common_given(call->out, tn_tensor_ndim(x) == 0 ? tn_reshape(y, TN_SHAPE()) : y);
}

/* ---- derivative: with vectors in place of 0-d tensors, and the corner of src ---- */

struct gradients {
    tn_tensor *x, *src;
};

/* Counts the zeros among the values of each element. A value that is the only zero of its element
 * has the product of the other values as its derivative; the other values have
 * result / value, or 0 if there is a zero among the others. */
static struct gradients of_product(const struct operands *of, tn_tensor *y, tn_tensor *gy,
                                   bool include_self)
{
    tn_tensor *x_zero = tn_eq(of->x, number(of->x, 0)),
              *src_zero = tn_eq(of->src, number(of->src, 0));
    tn_tensor *x_filled = tn_masked_fill(of->x, x_zero, 1), *zeros, *single, *by_single, *by_rest;
    struct gradients of_both = { NULL, NULL };

    of_both.x = tn_mul(
        gy, divide(tn_scatter_reduce(x_filled, of->index, of->src, of->dim, "prod", include_self),
                   x_filled));
    zeros = tn_scatter_add(tn_cast(x_zero, TN_I64), of->index, tn_cast(src_zero, TN_I64), of->dim);
    if (!include_self)
        zeros = tn_scatter_add(tn_mul_scalar(tn_cast(x_zero, TN_I64), 0), of->index,
                               tn_cast(src_zero, TN_I64), of->dim);
    zeros = tn_gather(zeros, of->index, of->dim);
    single = tn_logical_and(src_zero, tn_eq(zeros, number(zeros, 1)));
    by_single = tn_scatter_reduce(of->x, of->index, tn_masked_fill(of->src, single, 1), of->dim,
                                  "prod", include_self);
    by_single = tn_gather(tn_mul(gy, by_single), of->index, of->dim);
    by_rest = divide(tn_gather(tn_mul(gy, y), of->index, of->dim),
                     tn_masked_fill(of->src, src_zero, 1));
    of_both.src = tn_where(single, by_single, by_rest);
    return of_both;
}

/* Divides the gradient evenly among the values that are equal to the result. */
static struct gradients of_extreme(const struct operands *of, tn_tensor *y, tn_tensor *gy,
                                   bool include_self)
{
    struct gradients of_both = { NULL, NULL };
    tn_dtype dtype = tn_tensor_dtype(gy);
    tn_tensor *x_is = tn_cast(tn_eq(of->x, y), dtype);
    tn_tensor *src_is = tn_cast(tn_eq(of->src, tn_gather(y, of->index, of->dim)), dtype);
    tn_tensor *count;

    if (!include_self)
        x_is = tn_scatter(x_is, of->index, same_for_all(gy, of->index, 0), of->dim);
    count = tn_scatter_add(x_is, of->index, src_is, of->dim);
    gy = divide(gy, at_least(count, 1));
    of_both.x = tn_mul(x_is, gy);
    of_both.src = tn_mul(src_is, tn_gather(gy, of->index, of->dim));
    return of_both;
}

static tn_status scatter_reduce_derive(tn_derive *d)
{
    const tn_scatter_reduce_options *o = d->options;
    tn_ints in_shape = tn__common_in_shape(d, 0), src_shape = tn__common_in_shape(d, 2);
    tn_tensor *gy = index_vector(d->gout[0]), *y = index_vector(d->out[0]);
    struct operands of = { index_vector(d->in[0]), index_vector(d->in[1]), index_vector(d->in[2]),
                           0, o->reduce };
    struct gradients of_both;
    int32_t dim;

    if (of.x == NULL || of.index == NULL || of.src == NULL || y == NULL ||
        tn__common_dim(o->dim, (int32_t)in_shape.count, &dim) != TN_OK)
        return tn_error_last_code();
    of.dim = dim;
    if (tn_tensor_numel(of.index) == 0) {
        d->gin[0] = d->gout[0];
        d->gin[2] = TN_NONE;
        return TN_OK;
    }
    for (int64_t k = 0; k < tn_tensor_ndim(of.index); k++)
        of.src = tn_narrow(of.src, k, 0, tn_tensor_size(of.index, k));
    if (is(o->reduce, "prod")) {
        of_both = of_product(&of, y, gy, o->include_self);
    } else if (is_extreme(o->reduce)) {
        of_both = of_extreme(&of, y, gy, o->include_self);
    } else {
        if (is(o->reduce, "mean"))
            gy = mean_of(gy, number_of_values(&of, o->include_self));
        of_both.x = gy;
        of_both.src = tn_gather(gy, of.index, of.dim);
    }
    if (!o->include_self)
        of_both.x = tn_scatter(of_both.x, of.index, same_for_all(gy, of.index, 0), of.dim);
    if (tn__needs(d, 0))
        d->gin[0] = in_shape.count == 0 ? tn_reshape(of_both.x, in_shape) : of_both.x;
    if (tn__needs(d, 2))
        d->gin[2] = src_shape.count == 0 ? tn_reshape(of_both.src, src_shape)
                                         : index_corner(of_both.src, src_shape);
    return TN_OK;
}

static tn_status index_reduce_infer(tn_infer *infer)
{
    const tn_index_reduce_options *o = infer->options;
    tn_status status = index_slices_infer(infer, o->dim);

    if (status == TN_OK && !is(o->reduce, "prod") && !is(o->reduce, "mean") &&
        !is_extreme(o->reduce))
        return wrong_reduce(o->reduce, "prod, mean, amax or amin (index_add adds)");
    return status == TN_OK ? check_mean(infer->in[0], o->reduce) : status;
}

/* The mean of slices: an index has the same number of values in all elements of its slice. */
static tn_tensor *mean_of_slices(tn_tensor *x, tn_tensor *index, tn_tensor *src, int32_t dim,
                                 bool include_self)
{
    int64_t size = tn_tensor_size(x, dim), shape[TN_MAX_DIMS];
    struct operands of = { x, tn__common_spread(index, tn_tensor_shape(src), dim), src, dim,
                           "mean" };
    struct operands one = { tn__common_nothing(x, TN_SHAPE(size)), index_vector(index), NULL, 0,
                            "mean" };
    tn_tensor *count;

    if (of.index == NULL || one.x == NULL || one.index == NULL)
        return NULL;
    count = number_of_values(&one, include_self);
    for (int32_t d = 0; d < tn_tensor_ndim(x); d++)
        shape[d] = d == dim ? size : 1;
    return mean_of(tn_scatter_add(start_of_sum(&of, include_self), of.index, src, dim),
                   tn_reshape(count, (tn_ints){ shape, tn_tensor_ndim(x) }));
}

static tn_status index_reduce_decompose(const tn_decompose *call)
{
    const tn_index_reduce_options *o = call->options;
    int32_t dim;

    if (tn__common_dim(o->dim, tn_tensor_ndim(call->in[0]), &dim) != TN_OK)
        return tn_error_last_code();
    if (is(o->reduce, "mean") && tn_tensor_ndim(call->in[0]) > 0 &&
        tn_tensor_numel(call->in[1]) > 0)
        return tn__common_given(
            call->out, mean_of_slices(call->in[0], call->in[1], call->in[2], dim, o->include_self));
    return tn__common_given(
        call->out,
        tn_scatter_reduce(call->in[0],
                          tn__common_spread(call->in[1], tn_tensor_shape(call->in[2]), dim),
                          call->in[2], dim, o->reduce, o->include_self));
}

TN__OP(scatter_reduce, .infer = scatter_reduce_infer, .derive = scatter_reduce_derive,
       .decompose = scatter_reduce_decompose);
TN__OP(index_reduce, .infer = index_reduce_infer, .decompose = index_reduce_decompose);
