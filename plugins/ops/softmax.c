/* SPDX-License-Identifier: MIT
 *
 * Softmax along one dimension, log_softmax, and their derivatives; gumbel_softmax. */
#include "common.h"

/* softmax and log_softmax have option structs of the same layout: one argument, dim. */
static tn_status dim_infer(tn_infer *infer)
{
    const tn_softmax_options *o = infer->options;
    int32_t dim;
    tn_status status = tn__common_dim(o->dim, infer->in[0]->ndim, &dim);

    return status == TN_OK ? tn__common_unary(infer) : status;
}

static tn_tensor *sum_along(tn_tensor *x, int64_t dim)
{
    return tn_sum(x, TN_INTS(dim), true);
}

static tn_tensor *largest_along(tn_tensor *x, int64_t dim)
{
    return tn_amax(x, TN_INTS(dim), true);
}

static tn_status softmax_decompose(const tn_decompose *call)
{
    int64_t dim = ((const tn_softmax_options *)call->options)->dim;
    tn_tensor *e;
    if (tn_tensor_numel(call->in[0]) == 0)
        return tn__common_given(call->out, tn_copy(call->in[0]));
    e = tn_exp(tn_sub(call->in[0], largest_along(call->in[0], dim)));
    return tn__common_given(call->out, tn_div(e, sum_along(e, dim)));
}

static tn_status softmax_derive(tn_derive *d)
{
    d->gin[0] = tn_softmax_grad(d->gout[0], d->out[0],
                                ((const tn_softmax_options *)d->options)->dim);
    return TN_OK;
}

static tn_status softmax_grad_decompose(const tn_decompose *call)
{
    int64_t dim = ((const tn_softmax_grad_options *)call->options)->dim;
    return tn__common_given(
        call->out,
        tn_mul(call->in[1], tn_sub(call->in[0], sum_along(tn_mul(call->in[0], call->in[1]), dim))));
}

static tn_status log_softmax_decompose(const tn_decompose *call)
{
    int64_t dim = ((const tn_log_softmax_options *)call->options)->dim;
    tn_tensor *shifted;
    if (tn_tensor_numel(call->in[0]) == 0)
        return tn__common_given(call->out, tn_copy(call->in[0]));
    shifted = tn_sub(call->in[0], largest_along(call->in[0], dim));
    return tn__common_given(call->out, tn_sub(shifted, tn_ln(sum_along(tn_exp(shifted), dim))));
}

static tn_status log_softmax_derive(tn_derive *d)
{
    d->gin[0] = tn_log_softmax_grad(d->gout[0], d->out[0],
                                    ((const tn_log_softmax_options *)d->options)->dim);
    return TN_OK;
}

static tn_status log_softmax_grad_infer(tn_infer *infer)
{
    int32_t dim;
    tn_status status = tn__common_dim(((const tn_log_softmax_grad_options *)infer->options)->dim,
                                      infer->in[0]->ndim, &dim);

    return status == TN_OK ? tn__common_pair(infer) : status;
}

static tn_status log_softmax_grad_decompose(const tn_decompose *call)
{
    int64_t dim = ((const tn_log_softmax_grad_options *)call->options)->dim;
    return tn__common_given(
        call->out, tn_sub(call->in[0], tn_mul(tn_exp(call->in[1]), sum_along(call->in[0], dim))));
}

static tn_status softmin_infer(tn_infer *infer)
{
    int32_t dim;
    tn_status status = tn__common_dim(((const tn_softmin_options *)infer->options)->dim,
                                      infer->in[0]->ndim, &dim);

    return status == TN_OK ? tn__common_unary(infer) : status;
}

static tn_status softmin_decompose(const tn_decompose *call)
{
    return tn__common_given(
        call->out,
        tn_softmax(tn_neg(call->in[0]), ((const tn_softmin_options *)call->options)->dim));
}

static tn_status gumbel_softmax_infer(tn_infer *infer)
{
    const tn_gumbel_softmax_options *o = infer->options;

    if (!(o->tau > 0))
        return tn_fail(TN_ERR_VALUE, "tau: out of range, got %g; expected more than 0", o->tau);
    return tn__common_open(infer);
}

static tn_status gumbel_softmax_decompose(const tn_decompose *call)
{
    const tn_gumbel_softmax_options *o = call->options;
    tn_tensor *g, *soft, *best, *hard;
    /* Gumbel noise -log(-log u); u is never 0 */
    g = tn_neg(tn_ln(tn_neg(tn_ln(tn_uniform(tn_detach(call->in[0]), 0x1p-24)))));
    soft = tn_softmax(tn_mul_scalar(tn_add(call->in[0], g), 1 / o->tau), o->dim);
    if (!o->hard || soft == NULL)
        return tn__common_given(call->out, soft);
    best = tn_argmax(tn_detach(soft), o->dim, true);
    if (best == NULL)
        return tn_error_last_code();
    hard = tn_scatter(
        tn__common_zeros(soft, tn_tensor_shape(soft)), best,
        tn_tensor_full(tn_tensor_shape(best), 1, tn_tensor_dtype(soft), tn_tensor_device(soft)),
        o->dim);
    return tn__common_given(call->out, tn_add(tn_sub(hard, tn_detach(soft)), soft));
}
TN__OP(softmax, .infer = dim_infer, .derive = softmax_derive, .decompose = softmax_decompose);
TN__OP(log_softmax, .infer = dim_infer, .derive = log_softmax_derive,
       .decompose = log_softmax_decompose);
TN__OP(softmax_grad, .infer = log_softmax_grad_infer, .decompose = softmax_grad_decompose);
TN__OP(log_softmax_grad, .infer = log_softmax_grad_infer, .decompose = log_softmax_grad_decompose);
/* softmin and gumbel_softmax need no derivative: the operators of their decomposition are
 * recorded. */
TN__OP(softmin, .infer = softmin_infer, .decompose = softmin_decompose);
TN__OP(gumbel_softmax, .infer = gumbel_softmax_infer, .decompose = gumbel_softmax_decompose);
