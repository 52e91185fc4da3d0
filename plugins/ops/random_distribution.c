/* SPDX-License-Identifier: MIT
 *
 * Random numbers of several distributions, computed from uniform and normal ones. */
#include "formula.h"

/* Returns an uninitialized tensor with the device of x. */
static tn_tensor *empty(tn_tensor *x, tn_ints shape, tn_dtype dtype)
{
    return tn_tensor_empty(shape, dtype, tn_tensor_device(x));
}

/* Returns the dtype in which a distribution with this result is computed: float32 or float64. */
static tn_dtype wide(tn_dtype dtype)
{
    return dtype == TN_F64 ? TN_F64 : TN_F32;
}

/* Numbers drawn uniformly from the open interval between 0 and 1. The bounds are half a step of the
 * generator (2^-24; float64: 2^-53) above 0 and one step below 1, so that rounding never gives 0 or
 * 1. */
static tn_tensor *between_0_and_1(tn_tensor *x, tn_ints shape, tn_dtype dtype)
{
    double step = dtype == TN_F64 ? 0x1p-53 : 0x1p-24;

    return tn_uniform(empty(x, shape, dtype), step / 2, 1 - step);
}

/* Numbers of the exponential distribution with rate 1. */
static tn_tensor *waits(tn_tensor *x, tn_ints shape, tn_dtype dtype)
{
    return tn_neg(tn_log1p(tn_neg(between_0_and_1(x, shape, dtype))));
}

/* ---- exponential, geometric, log_normal, cauchy ---- */

static tn_status exponential_infer(tn_infer *infer)
{
    const tn_exponential_options *o = infer->options;

    if (!(o->lambd > 0))
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */ "expects lambda > 0.0, but found lambda=%g",
                       o->lambd);
    return tn__common_unary(infer);
}

static tn_status exponential_decompose(const tn_decompose *call)
{
    const tn_exponential_options *o = call->options;
    tn_dtype dtype = tn_tensor_dtype(call->in[0]);
    tn_tensor *y = waits(call->in[0], tn_tensor_shape(call->in[0]), wide(dtype));
    return tn__common_given(call->out, tn_cast(times(y, 1 / o->lambd), dtype));
}

static tn_status geometric_infer(tn_infer *infer)
{
    const tn_geometric_options *o = infer->options;

    if (!(o->p > 0 && o->p < 1))
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */ "expects p to be in (0, 1), but got p=%g", o->p);
    return tn__common_unary(infer);
}

/* Returns the largest number of an integer dtype; with 64 bits, the largest double that fits. */
static double largest(tn_dtype dtype)
{
    int bits = (int)tn_dtype_size(dtype) * 8;
    bool is_signed = ((TN_BIT(TN_I8) | TN_BIT(TN_I16) | TN_BIT(TN_I32) | TN_BIT(TN_I64)) &
                      TN_BIT(dtype)) != 0;

    if (bits == 64)
        return is_signed ? 0x1p63 - 1024 : 0x1p64 - 2048;
    return ldexp(1, is_signed ? bits - 1 : bits) - 1;
}

static tn_status geometric_decompose(const tn_decompose *call)
{
    const tn_geometric_options *o = call->options;
    tn_dtype dtype = tn_tensor_dtype(call->in[0]);
    tn_tensor *y = waits(call->in[0], tn_tensor_shape(call->in[0]), TN_F64);
    /* Divides, because 1 / log1p(-p) overflows for the smallest p. */
    y = y != NULL ? tn_ceil(divide(y, number(y, -log1p(-o->p)))) : NULL;
    if (tn__is_int(dtype))
        y = clamped(y, 1, largest(dtype));
    return tn__common_given(call->out, tn_cast(y, dtype));
}

static tn_status log_normal_infer(tn_infer *infer)
{
    const tn_log_normal_options *o = infer->options;

    if (!(o->std > 0))
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */ "expects std > 0.0, but found std=%g", o->std);
    return tn__common_unary(infer);
}

static tn_status log_normal_decompose(const tn_decompose *call)
{
    const tn_log_normal_options *o = call->options;
    tn_dtype dtype = tn_tensor_dtype(call->in[0]);
    tn_tensor *y = empty(call->in[0], tn_tensor_shape(call->in[0]), wide(dtype));
    return tn__common_given(call->out, tn_cast(tn_exp(tn_normal(y, o->mean, o->std)), dtype));
}

static tn_status cauchy_infer(tn_infer *infer)
{
    const tn_cauchy_options *o = infer->options;

    if (!(o->sigma > 0))
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */ "expects sigma > 0.0, but found sigma=%g", o->sigma);
    return tn__common_unary(infer);
}

/* tan(pi * (u - 1/2)) as -1 / tan(pi * u), which is exact for the smallest u. */
static tn_status cauchy_decompose(const tn_decompose *call)
{
    const tn_cauchy_options *o = call->options;
    tn_tensor *x = call->in[0], *u = between_0_and_1(x, tn_tensor_shape(x), TN_F64);
    tn_tensor *y = times(tn_reciprocal(tn_tan(times(u, 3.14159265358979323846))), -o->sigma);
    return tn__common_given(call->out, tn_cast(add_number(y, o->median), tn_tensor_dtype(x)));
}

/* ---- multinomial ---- */

static tn_status multinomial_infer(tn_infer *infer)
{
    const tn_multinomial_options *o = infer->options;
    const tn_view *p = infer->in[0];
    int64_t n, shape[2];
    char text[TN__TEXT];

    if (p->ndim != 1 && p->ndim != 2)
        return tn_fail(TN_ERR_RUNTIME, "p: wrong shape, got %s; expected one or two dimensions",
                       tn__common_text(text, tn__common_shape(p)));
    n = p->shape[p->ndim - 1];
    if (o->num_samples < 1)
        return tn_fail(TN_ERR_RUNTIME, "num_samples: out of range, got %lld; expected at least 1",
                       (long long)o->num_samples);
    if (n == 0)
        return tn_fail(TN_ERR_RUNTIME, "p: no categories, got %s; expected at least one",
                       tn__common_text(text, tn__common_shape(p)));
    if (!o->replacement && o->num_samples > n)
        return tn_fail(TN_ERR_RUNTIME,
                       "num_samples: too many, got %lld; expected at most %lld, the number of "
                       "categories, or replacement=True",
                       (long long)o->num_samples, (long long)n);
    shape[0] = p->shape[0];
    shape[p->ndim - 1] = o->num_samples;
    tn__common_plain(&infer->out[0], TN_I64, (tn_ints){ shape, p->ndim });
    return TN_OK;
}

/* Reads a tensor of one element. */
static tn_status read(tn_tensor *x, double *value)
{
    tn_scalar scalar;
    tn_status status = tn_tensor_scalar(x, &scalar);

    if (status == TN_OK)
        *value = tn_scalar_as_float(scalar);
    return status;
}

/* Checks the weights: none is negative, infinite or NaN, their sums do not overflow, and each
 * distribution has at least `needed` weights that are not 0. */
static tn_status weights_fit(tn_tensor *p, int64_t needed)
{
    int64_t last[1] = { -1 };
    double low, high, count;

    if (read(tn_amin(p), &low) != TN_OK || read(tn_amax(p), &high) != TN_OK)
        return tn_error_last_code();
    if (!(low >= 0 && high * (double)tn_tensor_size(p, -1) < (double)INFINITY))
        return tn_fail(TN_ERR_RUNTIME,
                       "p: wrong weights, got %g to %g; expected finite numbers with a finite sum, "
                       "none negative",
                       low, high);
    if (read(tn_amin(tn_count_nonzero(p, ((tn_ints){ last, 1 }))), &count) != TN_OK)
        return tn_error_last_code();
    if (count < (double)needed)
        return tn_fail(TN_ERR_RUNTIME,
                       "p: too few weights that are not 0, got %lld in a distribution; expected at "
                       "least %lld",
                       (long long)count, (long long)needed);
    return TN_OK;
}

/* Checks the weights by their sums; if they do not fit, weights_fit says why. */
static tn_status sums_fit(tn_tensor *p, tn_tensor *sums)
{
    double low, least, most;

    if (read(tn_amin(p), &low) != TN_OK || read(tn_amin(sums), &least) != TN_OK ||
        read(tn_amax(sums), &most) != TN_OK)
        return tn_error_last_code();
    if (low >= 0 && least > 0 && most < (double)INFINITY)
        return TN_OK;
    return weights_fit(tn_cast(p, TN_F64), 1);
}

/* Running sums along the last dimension, in float64. */
static tn_tensor *edges_of(tn_tensor *p)
{
    return tn_cumsum(p, -1, false, TN_F64);
}

static tn_tensor *last_of(tn_tensor *edges)
{
    return edges != NULL ? tn_narrow(edges, -1, tn_tensor_size(edges, -1) - 1, 1) : NULL;
}

/* min(max(x, least), most) of indices */
static tn_tensor *indices_within(tn_tensor *x, int64_t least, int64_t most)
{
    return tn_clamp(x, tn_scalar_int(least), tn_scalar_int(most));
}

/* Returns the place of each number among the edges of its row: how many edges are at most as large
 * as the number. A number below the last edge gets the place of a weight that is not 0. The result
 * is limited to the last place, because a number can be rounded up to the last edge if the weights
 * are subnormal. */
static tn_tensor *places_of(tn_tensor *edges, tn_tensor *numbers)
{
    if (edges == NULL)
        return NULL;
    return indices_within(tn_searchsorted(edges, numbers, TN_NONE, false, true), 0,
                          tn_tensor_size(edges, -1) - 1);
}

/* `count` numbers for each row, uniform from 0 to the sum of the row. The largest factor is 1 -
 * 2^-53, so they are below the sum unless the sum is subnormal. */
static tn_tensor *draws_below(tn_tensor *sums, int64_t count)
{
    if (sums == NULL)
        return NULL;
    return tn_mul(tn_uniform(empty(sums, TN_SHAPE(tn_tensor_size(sums, 0), count), TN_F64)), sums);
}

static tn_tensor *with_replacement(tn_tensor *p, int64_t count)
{
    tn_tensor *edges = edges_of(p), *sums = last_of(edges);

    if (sums == NULL || sums_fit(p, sums) != TN_OK)
        return NULL;
    return places_of(edges, draws_below(sums, count));
}

/* ---- few draws from many weights: running sums of blocks, then within the blocks drawn ---- */

enum { BLOCK = 256 };

/* Sums of blocks of BLOCK weights of p, [1, n], in float64; the last block may be shorter. */
static tn_tensor *block_sums(tn_tensor *p)
{
    int64_t n = tn_tensor_size(p, 1), whole = n / BLOCK * BLOCK;
    tn_tensor *parts[2];

    parts[0] = tn_sum(tn_reshape(tn_narrow(p, 1, 0, whole), TN_SHAPE(1, whole / BLOCK, BLOCK)),
                      TN_INTS(-1), false, TN_F64);
    if (whole == n || parts[0] == NULL)
        return parts[0];
    parts[1] = tn_sum(tn_narrow(p, 1, whole, n - whole), TN_INTS(-1), true, TN_F64);
    return parts[1] != NULL ? tn_cat(parts, 2, 1) : NULL;
}

/* Returns the places of numbers from 0 within blocks of weights, one number for each block. A block
 * may have been added up in another order, so the numbers are kept below its last edge. */
static tn_tensor *places_in_blocks(tn_tensor *p, tn_tensor *first, tn_tensor *numbers)
{
    int64_t n = tn_tensor_numel(p);
    tn_tensor *at = tn_add(tn_unsqueeze(first, 1), tn_arange(p, 0, BLOCK)), *edges;

    edges = tn_take(p, indices_within(at, 0, n - 1));
    edges = edges_of(zero_where(is_at_least(at, (double)n), edges));
    return places_of(edges,
                     tn_minimum(tn_unsqueeze(numbers, 1), times(last_of(edges), 1 - 0x1p-53)));
}

static tn_tensor *few_of_many(tn_tensor *p, int64_t count)
{
    tn_tensor *sums = block_sums(p), *edges, *draws, *block, *first, *rest;

    edges = sums != NULL ? edges_of(sums) : NULL;
    if (edges == NULL || sums_fit(p, last_of(edges)) != TN_OK)
        return NULL;
    draws = draws_below(last_of(edges), count);
    block = tn_reshape(places_of(edges, draws), TN_SHAPE(count));
    draws = tn_reshape(draws, TN_SHAPE(count));
    /* the edge before the block, which is at most as large as the draw */
    rest = tn_take(edges, indices_within(tn_add_scalar(block, -1), 0, INT64_MAX));
    rest = tn_sub(draws, zero_where(is_at_most(block, 0), rest));
    first = times(block, BLOCK);
    block = places_in_blocks(p, first, rest);
    return block != NULL ? tn_add(first, tn_reshape(block, TN_SHAPE(count))) : NULL;
}

/* ---- without replacement ---- */

/* The key of category c is p[c] / e[c], where e[c] is drawn from the exponential distribution with
 * rate 1. The largest key is that of category c with probability p[c] / sum p; the same applies to
 * the next largest among the remaining categories. */
static tn_tensor *without_replacement(tn_tensor *p, int64_t count)
{
    tn_tensor *keys = divide(p, waits(p, tn_tensor_shape(p), TN_F64)), *values, *order;

    return tn_topk(keys, count, &values, &order) == TN_OK ? order : NULL;
}

static tn_status multinomial_decompose(const tn_decompose *call)
{
    const tn_multinomial_options *o = call->options;
    tn_tensor *p = call->in[0], *y;
    int64_t n = tn_tensor_size(p, -1);
    bool one = tn_tensor_ndim(p) == 1;
    if (tn_tensor_numel(p) == 0)
        return tn__common_given(call->out,
                                empty(p, TN_SHAPE(tn_tensor_size(p, 0), o->num_samples), TN_I64));
    if (!o->replacement) {
        p = tn_cast(p, TN_F64);
        if (p == NULL || weights_fit(p, o->num_samples) != TN_OK)
            return tn_error_last_code();
    }
    if (one)
        p = tn_unsqueeze(p, 0);
    if (p == NULL)
        return tn_error_last_code();
    if (!o->replacement)
        y = without_replacement(p, o->num_samples);
    else if (tn_tensor_size(p, 0) == 1 && o->num_samples < n / (2 * BLOCK))
        y = few_of_many(p, o->num_samples);
    else
        y = with_replacement(p, o->num_samples);
    return tn__common_given(call->out, one ? tn_reshape(y, TN_SHAPE(o->num_samples)) : y);
}

TN__OP(exponential, .infer = exponential_infer, .decompose = exponential_decompose);
TN__OP(geometric, .infer = geometric_infer, .decompose = geometric_decompose);
TN__OP(log_normal, .infer = log_normal_infer, .decompose = log_normal_decompose);
TN__OP(cauchy, .infer = cauchy_infer, .decompose = cauchy_decompose);
TN__OP(multinomial, .infer = multinomial_infer, .decompose = multinomial_decompose);
