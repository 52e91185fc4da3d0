/* SPDX-License-Identifier: MIT
 *
 * Cumulative sums and products along one dimension. */
#include "common.h"

static tn_status scan_infer(tn_infer *infer, int64_t dim, tn_dtype asked)
{
    const tn_view *x = infer->in[0];
    tn_dtype dtype = tn__common_asked(infer, asked);
    int32_t at;
    tn_status status = tn__common_dim(dim, x->ndim, &at);

    if (asked == TN_DTYPE_AUTO && ((TN_MASK_INT | TN_BIT(TN_BOOL)) & TN_BIT(dtype)))
        dtype = TN_I64;
    tn__common_plain(&infer->out[0], dtype, tn__common_shape(x));
    return status;
}

static tn_status cumsum_infer(tn_infer *infer)
{
    const tn_cumsum_options *o = infer->options;

    return scan_infer(infer, o->dim, o->dtype);
}

static tn_tensor *backwards(tn_tensor *x, int64_t dim)
{
    return tn_cumsum(x, dim, true);
}

static tn_status cumsum_derive(tn_derive *d)
{
    const tn_cumsum_options *o = d->options;

    d->gin[0] = o->reverse ? tn_cumsum(d->gout[0], o->dim) : backwards(d->gout[0], o->dim);
    return TN_OK;
}

static tn_status cumprod_infer(tn_infer *infer)
{
    const tn_cumprod_options *o = infer->options;

    return scan_infer(infer, o->dim, o->dtype);
}

/* Returns the gradient of cumprod, one element after the other: for element k, sums gy times the
 * products that contain element k, computed without this factor. Uses no division, so the result
 * has a correct derivative even if x has zeros. */
static tn_tensor *one_by_one(tn_tensor *x, tn_tensor *gy, int64_t dim)
{
    int64_t n = tn_tensor_size(x, dim), last[1] = { dim };
    tn_tensor *all = NULL;

    for (int64_t k = 0; k < n; k++) {
        tn_tensor *parts[3] = { tn_narrow(x, dim, 0, k), tn_fill(tn_narrow(x, dim, k, 1), 1.0),
                                tn_narrow(x, dim, k + 1, n - k - 1) };
        tn_tensor *without = tn_narrow(tn_cumprod(tn_cat(parts, 3, dim), dim), dim, k, n - k);
        tn_tensor *pair[2] = { all, tn_sum(tn_mul(without, tn_narrow(gy, dim, k, n - k)),
                                           ((tn_ints){ last, 1 }), true) };

        all = k == 0 ? pair[1] : tn_cat(pair, 2, dim);
        if (all == NULL)
            return NULL;
    }
    return all != NULL ? all : tn_copy(gy);
}

static tn_status cumprod_derive(tn_derive *d)
{
    const tn_cumprod_options *o = d->options;

    d->gin[0] = d->in_meta[0].ndim > 0
                    ? tn_cumprod_grad(d->gout[0], tn__common_conj(d->in[0]), o->dim)
                    : d->gout[0];
    return TN_OK;
}

static tn_status cumprod_grad_infer(tn_infer *infer)
{
    int32_t at;
    tn_status status = tn__common_pair(infer);

    return status == TN_OK ? tn__common_dim(((const tn_cumprod_grad_options *)infer->options)->dim,
                                            infer->in[0]->ndim, &at)
                           : status;
}

/* Without zeros, the gradient is computed by division. With zeros: before the first zero by
 * division as well; at the first zero it is the sum of the products without this zero; after it 0.
 */
static tn_tensor *by_division(tn_tensor *x, tn_tensor *gy, int64_t dim)
{
    tn_tensor *zero = tn__scalar_number(x, 0.0), *none = tn_eq(x, zero);
    tn_tensor *zeros, *before, *first, *shares, *by_first, *by_rest;

    if (none == NULL)
        return NULL;
    /* Counts zeros in float32: float32 sums are faster than integer sums and exact enough to
     * distinguish 1 from more. */
    zeros = tn_cumsum(tn_cast(none, TN_F32), dim);
    before = tn_eq(zeros, tn__scalar_number(zeros, 0.0));
    first = tn_logical_and(none, tn_eq(zeros, tn__scalar_number(zeros, 1.0)));
    shares = tn_mul(gy, tn_cumprod(tn_where(first, tn__scalar_number(x, 1.0), x), dim));
    by_first = backwards(shares, dim);
    by_rest = tn_div(backwards(tn_where(before, shares, zero), dim), x);
    return tn_where(before, by_rest, tn_where(first, by_first, zero));
}

/* If the gradient may be differentiated again, it must not divide by elements that may be 0. */
static tn_status cumprod_grad_decompose(const tn_decompose *call)
{
    int64_t dim = ((const tn_cumprod_grad_options *)call->options)->dim;
    tn_dtype dtype = tn_tensor_dtype(call->in[1]);
    bool narrow = tn_dtype_size(dtype) < 4; /* computed in float32, so that it is rounded once */
    tn_tensor *gy = narrow ? tn_cast(call->in[0], TN_F32) : call->in[0], *gx;
    tn_tensor *x = narrow ? tn_cast(call->in[1], TN_F32) : call->in[1];

    if (gy == NULL || x == NULL)
        return tn_error_last_code();
    if (tn_grad_enabled() && (tn_tensor_requires_grad(gy) || tn_tensor_requires_grad(x)))
        gx = tn_tensor_ndim(x) > 0 ? one_by_one(x, gy, dim) : tn_copy(gy);
    else
        gx = by_division(x, gy, dim);
    return tn__common_given(call->out, narrow && gx != NULL ? tn_cast(gx, dtype) : gx);
}

TN__OP(cumsum, .infer = cumsum_infer, .derive = cumsum_derive, TN__PARTS(cumsum));
TN__OP(cumprod, .infer = cumprod_infer, .derive = cumprod_derive, TN__PARTS(cumprod));
/* It has no derivative of its own: a second derivative comes from the operators of its
 * decomposition, which are recorded. */
TN__OP(cumprod_grad, .infer = cumprod_grad_infer, .decompose = cumprod_grad_decompose);
