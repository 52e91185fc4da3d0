/* SPDX-License-Identifier: MIT
 *
 * Activations, and the operators that their derivatives need. */
#include "common.h"

static tn_status relu_derive(tn_derive *d)
{
    d->gin[0] = tn_relu_grad(d->gout[0], d->out[0]);
    return TN_OK;
}

/* Linear in gy: the gradient goes through the same mask. */
static tn_status relu_grad_derive(tn_derive *d)
{
    d->gin[0] = tn_relu_grad(d->gout[0], d->in[1]);
    return TN_OK;
}

static tn_status sigmoid_derive(tn_derive *d)
{
    tn_tensor *y = d->out[0];

    if (tn__is_complex(d->in_meta[0].dtype))
        d->gin[0] = tn__common_chain(d->gout[0], tn_mul(y, tn_add_scalar(tn_neg(y), 1.0)));
    else
        d->gin[0] = tn_sigmoid_grad(d->gout[0], y);
    return TN_OK;
}

static tn_status sigmoid_grad_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                        tn_tensor **out)
{
    tn_tensor *gy = in[0], *y = in[1];

    (void)n_in, (void)options;
    return tn__common_given(out, tn_mul(gy, tn_mul(y, tn_add_scalar(tn_neg(y), 1.0))));
}

static tn_status tanh_grad_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                     tn_tensor **out)
{
    tn_tensor *gy = in[0], *y = in[1];

    (void)n_in, (void)options;
    return tn__common_given(out, tn_mul(gy, tn_add_scalar(tn_neg(tn_mul(y, y)), 1.0)));
}

/* The struct of softmax is that of the whole family: one argument, dim. */
static tn_status dim_infer(tn_infer *infer)
{
    const tn_softmax_options *o = infer->options;
    int32_t dim;
    tn_status status = tn__common_dim(o->dim, infer->in[0]->ndim, &dim);

    return status == TN_OK ? tn__common_unary(infer) : status;
}

static tn_tensor *sum_along(tn_tensor *x, int64_t dim)
{
    tn_sum_options o = TN_SUM_OPTIONS;

    o.dims = (tn_ints){ &dim, 1 };
    o.keepdim = true;
    return tn_sum(x, &o);
}

static tn_tensor *largest_along(tn_tensor *x, int64_t dim)
{
    tn_amax_options o = TN_AMAX_OPTIONS;

    o.dims = (tn_ints){ &dim, 1 };
    o.keepdim = true;
    return tn_amax(x, &o);
}

static tn_status given(tn_tensor **out, tn_tensor *result)
{
    out[0] = result;
    return result != NULL ? TN_OK : tn_error_last()->code;
}

static tn_status softmax_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                   tn_tensor **out)
{
    int64_t dim = ((const tn_softmax_options *)options)->dim;
    tn_tensor *e;

    (void)n_in;
    if (tn_tensor_numel(in[0]) == 0)
        return given(out, tn_copy(in[0]));
    e = tn_exp(tn_sub(in[0], largest_along(in[0], dim), NULL));
    return given(out, tn_div(e, sum_along(e, dim), NULL));
}

static tn_status softmax_derive(tn_derive *d)
{
    d->gin[0] = tn_softmax_grad(d->gout[0], d->out[0],
                                ((const tn_softmax_options *)d->options)->dim);
    return TN_OK;
}

static tn_status softmax_grad_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                        tn_tensor **out)
{
    int64_t dim = ((const tn_softmax_grad_options *)options)->dim;

    (void)n_in;
    return given(out, tn_mul(in[1], tn_sub(in[0], sum_along(tn_mul(in[0], in[1]), dim), NULL)));
}

static tn_status log_softmax_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                       tn_tensor **out)
{
    int64_t dim = ((const tn_log_softmax_options *)options)->dim;
    tn_tensor *shifted;

    (void)n_in;
    if (tn_tensor_numel(in[0]) == 0)
        return given(out, tn_copy(in[0]));
    shifted = tn_sub(in[0], largest_along(in[0], dim), NULL);
    return given(out, tn_sub(shifted, tn_ln(sum_along(tn_exp(shifted), dim)), NULL));
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

static tn_status log_softmax_grad_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                            tn_tensor **out)
{
    int64_t dim = ((const tn_log_softmax_grad_options *)options)->dim;

    (void)n_in;
    return given(out, tn_sub(in[0], tn_mul(tn_exp(in[1]), sum_along(in[0], dim)), NULL));
}

const tn_op_def tn__op_relu = { TN_HEAD(tn_op_def), TN_SCHEMA_RELU, .infer = tn__common_unary,
                                .derive = relu_derive };
const tn_op_def tn__op_relu_grad = { TN_HEAD(tn_op_def), TN_SCHEMA_RELU_GRAD,
                                     .infer = tn__common_pair, .derive = relu_grad_derive };
const tn_op_def tn__op_sigmoid = { TN_HEAD(tn_op_def), TN_SCHEMA_SIGMOID, .infer = tn__common_unary,
                                   .derive = sigmoid_derive, TN__PARTS(sigmoid) };
const tn_op_def tn__op_softmax = { TN_HEAD(tn_op_def), TN_SCHEMA_SOFTMAX, .infer = dim_infer,
                                   .derive = softmax_derive, .decompose = softmax_decompose };
const tn_op_def tn__op_log_softmax = { TN_HEAD(tn_op_def), TN_SCHEMA_LOG_SOFTMAX,
                                       .infer = dim_infer, .derive = log_softmax_derive,
                                       .decompose = log_softmax_decompose };
const tn_op_def tn__op_softmax_grad = { TN_HEAD(tn_op_def), TN_SCHEMA_SOFTMAX_GRAD,
                                        .infer = log_softmax_grad_infer,
                                        .decompose = softmax_grad_decompose };
const tn_op_def tn__op_log_softmax_grad = { TN_HEAD(tn_op_def), TN_SCHEMA_LOG_SOFTMAX_GRAD,
                                            .infer = log_softmax_grad_infer,
                                            .decompose = log_softmax_grad_decompose };
const tn_op_def tn__op_sigmoid_grad = { TN_HEAD(tn_op_def), TN_SCHEMA_SIGMOID_GRAD,
                                        .infer = tn__common_pair,
                                        .decompose = sigmoid_grad_decompose };
const tn_op_def tn__op_tanh_grad = { TN_HEAD(tn_op_def), TN_SCHEMA_TANH_GRAD,
                                     .infer = tn__common_pair, .decompose = tanh_grad_decompose };
