/* SPDX-License-Identifier: MIT
 *
 * Activations, and the operators that their derivatives need. */
#include "common.h"

static tn_status relu_derive(tn_derive *d)
{
    d->gin[0] = tn_relu_grad(d->gout[0], d->out[0]);
    return TN_OK;
}

/* Two inputs of one shape and dtype: a gradient and what it belongs to. */
static tn_status pair_infer(tn_infer *infer)
{
    const tn_view *g = infer->in[0], *y = infer->in[1];
    char text_g[TN__TEXT], text_y[TN__TEXT];
    bool same = g->ndim == y->ndim;

    for (int32_t i = 0; same && i < g->ndim; i++)
        same = g->shape[i] == y->shape[i];
    if (!same || tn_view_dtype(g) != tn_view_dtype(y))
        return tn_fail(
            TN_ERR_RUNTIME, "gy (%s%s) and y (%s%s) have to have one shape and dtype",
            tn_dtype_name(tn_view_dtype(g)), tn__common_text(text_g, tn__common_shape(g)),
            tn_dtype_name(tn_view_dtype(y)), tn__common_text(text_y, tn__common_shape(y)));
    return tn__common_binary(infer);
}

/* Linear in gy: the gradient goes through the same mask. */
static tn_status relu_grad_derive(tn_derive *d)
{
    d->gin[0] = tn_relu_grad(d->gout[0], d->in[1]);
    return TN_OK;
}

/* gx = gy * y * (1 - y) */
static tn_status sigmoid_derive(tn_derive *d)
{
    tn_tensor *y = d->out[0];

    d->gin[0] = tn__common_chain(d->gout[0], tn_mul(y, tn_add_scalar(tn_neg(y), 1.0)));
    return TN_OK;
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

/* gx = y * (gy - sum(gy * y)) */
static tn_status softmax_derive(tn_derive *d)
{
    int64_t dim = ((const tn_softmax_options *)d->options)->dim;
    tn_tensor *y = d->out[0];

    d->gin[0] = tn_mul(y, tn_sub(d->gout[0], sum_along(tn_mul(d->gout[0], y), dim), NULL));
    return TN_OK;
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

    return status == TN_OK ? pair_infer(infer) : status;
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
const tn_op_def tn__op_relu_grad = { TN_HEAD(tn_op_def), TN_SCHEMA_RELU_GRAD, .infer = pair_infer,
                                     .derive = relu_grad_derive };
const tn_op_def tn__op_sigmoid = { TN_HEAD(tn_op_def), TN_SCHEMA_SIGMOID, .infer = tn__common_unary,
                                   .derive = sigmoid_derive, TN__PARTS(sigmoid) };
const tn_op_def tn__op_softmax = { TN_HEAD(tn_op_def), TN_SCHEMA_SOFTMAX, .infer = dim_infer,
                                   .derive = softmax_derive, .decompose = softmax_decompose };
const tn_op_def tn__op_log_softmax = { TN_HEAD(tn_op_def), TN_SCHEMA_LOG_SOFTMAX,
                                       .infer = dim_infer, .derive = log_softmax_derive,
                                       .decompose = log_softmax_decompose };
const tn_op_def tn__op_log_softmax_grad = { TN_HEAD(tn_op_def), TN_SCHEMA_LOG_SOFTMAX_GRAD,
                                            .infer = log_softmax_grad_infer,
                                            .decompose = log_softmax_grad_decompose };
