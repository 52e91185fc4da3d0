/* SPDX-License-Identifier: MIT
 *
 * Activations and their derivatives times a gradient, element by element. */
#include <string.h>

#include "op/elementwise.h"

static tn_status run_gelu(const tn_call *call)
{
    bool tanh = strcmp(((const tn_gelu_options *)call->options)->approximate, "tanh") == 0;
    return tn__elementwise_run(call, tanh ? TN__GELU_TANH : TN__GELU, 1, NULL);
}

static tn_status run_gelu_grad(const tn_call *call)
{
    bool tanh = strcmp(((const tn_gelu_grad_options *)call->options)->approximate, "tanh") == 0;
    return tn__elementwise_run(call, tanh ? TN__GELU_TANH_GRAD : TN__GELU_GRAD, 2, NULL);
}

/* in[0] sigmoid(in[1]) of the two halves. */
static tn_status run_glu(const tn_call *call)
{
    const tn_view *x = call->in[0];
    int64_t dim = ((const tn_glu_options *)call->options)->dim;
    dim = dim < 0 ? dim + x->ndim : dim;
    tn_view a = *x, b = *x;
    const tn_view *in[2] = { &a, &b };
    tn_call halves = *call;
    a.shape = b.shape = call->out[0]->shape;
    b.byte_offset += (uint64_t)(call->out[0]->shape[dim] * x->strides[dim] * tn__view_item(x));
    halves.in = in;
    halves.n_in = 2;
    return tn__elementwise_run(&halves, TN__GATE, 2, NULL);
}

/* The weight is one number or one per index of dimension 1. */
static tn_status run_prelu(const tn_call *call)
{
    const tn_view *x = call->in[0];
    int64_t shape[TN_MAX_DIMS], strides[TN_MAX_DIMS] = { 0 };
    tn_view weight = *call->in[1];
    const tn_view *in[2] = { x, &weight };
    tn_call aligned = *call;
    aligned.in = in;
    if (tn__view_count(&weight) != 1) {
        for (int32_t d = 0; d < x->ndim - 1; d++)
            shape[d] = 1;
        shape[0] = weight.shape[0];
        strides[0] = weight.strides[0];
        weight.ndim = x->ndim - 1;
    } else {
        weight.ndim = 0;
    }
    weight.shape = shape;
    weight.strides = strides;
    return tn__elementwise_run(&aligned, TN__PRELU, 2, NULL);
}

/* ---- options as numbers ---------------------------------------------------------------------- */

#define SELU_ALPHA 1.6732632423543772848170429916717
#define SELU_SCALE 1.0507009873554804934193349852946

static void fill_relu6(const void *options, double *numbers)
{
    (void)options;
    numbers[1] = 6;
}

static void fill_hardtanh(const void *options, double *numbers)
{
    const tn_hardtanh_options *o = options;
    numbers[0] = o->min_val;
    numbers[1] = o->max_val;
}

static void fill_leaky_relu(const void *options, double *numbers)
{
    const tn_leaky_relu_options *o = options;
    numbers[0] = o->negative_slope;
}

static void fill_elu(const void *options, double *numbers)
{
    const tn_elu_options *o = options;
    numbers[0] = 1;
    numbers[1] = o->alpha;
    numbers[2] = 1;
}

static void fill_selu(const void *options, double *numbers)
{
    (void)options;
    numbers[0] = SELU_SCALE;
    numbers[1] = SELU_SCALE * SELU_ALPHA;
    numbers[2] = 1;
}

static void fill_celu(const void *options, double *numbers)
{
    const tn_celu_options *o = options;
    numbers[0] = 1;
    numbers[1] = o->alpha;
    numbers[2] = 1 / o->alpha;
}

static void fill_softshrink(const void *options, double *numbers)
{
    const tn_softshrink_options *o = options;
    numbers[0] = o->lambd;
}

static void fill_hardshrink(const void *options, double *numbers)
{
    const tn_hardshrink_options *o = options;
    numbers[0] = o->lambd;
}

static void fill_softplus(const void *options, double *numbers)
{
    const tn_softplus_options *o = options;
    numbers[0] = o->beta;
    numbers[1] = o->threshold;
}

static void fill_threshold(const void *options, double *numbers)
{
    const tn_threshold_options *o = options;
    numbers[0] = o->threshold;
    numbers[1] = o->value;
}

static void fill_hardtanh_grad(const void *options, double *numbers)
{
    const tn_hardtanh_grad_options *o = options;
    numbers[0] = o->min_val;
    numbers[1] = o->max_val;
}

static void fill_leaky_relu_grad(const void *options, double *numbers)
{
    const tn_leaky_relu_grad_options *o = options;
    numbers[0] = o->negative_slope;
}

static void fill_threshold_grad(const void *options, double *numbers)
{
    const tn_threshold_grad_options *o = options;
    numbers[0] = o->threshold;
}

static void fill_hardshrink_grad(const void *options, double *numbers)
{
    const tn_hardshrink_grad_options *o = options;
    numbers[0] = o->lambd;
}

static void fill_elu_grad(const void *options, double *numbers)
{
    const tn_elu_grad_options *o = options;
    numbers[0] = o->positive;
    numbers[1] = o->negative;
    numbers[2] = o->inner;
}

static void fill_softplus_grad(const void *options, double *numbers)
{
    const tn_softplus_grad_options *o = options;
    numbers[0] = o->beta;
    numbers[1] = o->threshold;
}

static const tn_kernel_def kernels[] = {
    TN__UNARY_KERNEL(relu, TN__REALS, TN__RELU),
    TN__BINARY_KERNEL(relu_grad, TN__FLOATS, TN__RELU_GRAD),
    TN__UNARY_KERNEL(sigmoid, TN__FLOATS_COMPLEX, TN__SIGMOID),
    TN__UNARY_KERNEL_OPTIONS(relu6, TN__FLOATS, TN__CLAMP),
    TN__UNARY_KERNEL_OPTIONS(hardtanh, TN__FLOATS, TN__CLAMP),
    TN__UNARY_KERNEL_OPTIONS(leaky_relu, TN__FLOATS, TN__LEAKY_RELU),
    TN__UNARY_KERNEL_OPTIONS(elu, TN__FLOATS, TN__ELU),
    TN__UNARY_KERNEL_OPTIONS(selu, TN__FLOATS, TN__ELU),
    TN__UNARY_KERNEL_OPTIONS(celu, TN__FLOATS, TN__ELU),
    TN__UNARY_KERNEL_OPTIONS(softshrink, TN__FLOATS, TN__SOFTSHRINK),
    TN__UNARY_KERNEL_OPTIONS(hardshrink, TN__FLOATS, TN__HARDSHRINK),
    TN__UNARY_KERNEL_OPTIONS(softplus, TN__FLOATS, TN__SOFTPLUS),
    TN__UNARY_KERNEL_OPTIONS(threshold, TN__FLOATS, TN__THRESHOLD),
    TN__KERNEL(gelu, TN__FLOATS),
    TN__UNARY_KERNEL(silu, TN__FLOATS, TN__SILU),
    TN__UNARY_KERNEL(mish, TN__FLOATS, TN__MISH),
    TN__UNARY_KERNEL(hardswish, TN__FLOATS, TN__HARDSWISH),
    TN__UNARY_KERNEL(hardsigmoid, TN__FLOATS, TN__HARDSIGMOID),
    TN__UNARY_KERNEL(logsigmoid, TN__FLOATS, TN__LOGSIGMOID),
    TN__UNARY_KERNEL(tanhshrink, TN__FLOATS, TN__TANHSHRINK),
    TN__UNARY_KERNEL(softsign, TN__FLOATS, TN__SOFTSIGN),
    TN__BINARY_KERNEL(sigmoid_grad, TN__FLOATS, TN__SIGMOID_GRAD),
    TN__BINARY_KERNEL(tanh_grad, TN__FLOATS, TN__TANH_GRAD),
    TN__BINARY_KERNEL_OPTIONS(hardtanh_grad, TN__FLOATS, TN__HARDTANH_GRAD),
    TN__BINARY_KERNEL_OPTIONS(leaky_relu_grad, TN__FLOATS, TN__LEAKY_RELU_GRAD),
    TN__BINARY_KERNEL_OPTIONS(threshold_grad, TN__FLOATS, TN__THRESHOLD_GRAD),
    TN__BINARY_KERNEL(hardsigmoid_grad, TN__FLOATS, TN__HARDSIGMOID_GRAD),
    TN__BINARY_KERNEL(hardswish_grad, TN__FLOATS, TN__HARDSWISH_GRAD),
    TN__BINARY_KERNEL_OPTIONS(hardshrink_grad, TN__FLOATS, TN__HARDSHRINK_GRAD),
    TN__BINARY_KERNEL_OPTIONS(elu_grad, TN__FLOATS, TN__ELU_GRAD),
    TN__BINARY_KERNEL_OPTIONS(softplus_grad, TN__FLOATS, TN__SOFTPLUS_GRAD),
    TN__BINARY_KERNEL(silu_grad, TN__FLOATS, TN__SILU_GRAD),
    TN__BINARY_KERNEL(mish_grad, TN__FLOATS, TN__MISH_GRAD),
    TN__KERNEL(gelu_grad, TN__FLOATS),
    TN__KERNEL(glu, TN__FLOATS),
    TN__KERNEL(prelu, TN__FLOATS),
};
TN__KERNEL_TABLE(activation);
