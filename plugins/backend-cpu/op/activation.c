/* SPDX-License-Identifier: MIT
 *
 * Activations, and gradients through activations, element by element. The formula of an activation
 * is a row in base/activation_list.h; this file has the kernels that need more than a row. */
#include <string.h>

#include "op/elementwise.h"

static tn_status run_gelu(const tn_call *call)
{
    bool tanh = strcmp(((const tn_gelu_options *)call->options)->approximate, "tanh") == 0;
    return tn__elementwise_run(call, tanh ? TN__EW_gelu_tanh : TN__EW_gelu, 1, NULL);
}

static tn_status run_gelu_grad(const tn_call *call)
{
    bool tanh = strcmp(((const tn_gelu_grad_options *)call->options)->approximate, "tanh") == 0;
    return tn__elementwise_run(call, tanh ? TN__EW_gelu_tanh_grad : TN__EW_gelu_grad, 2, NULL);
}

/* Computes a * sigmoid(b), where a and b are the two halves of x along dim. */
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
    return tn__elementwise_run(&halves, TN__EW_glu, 2, NULL);
}

/* The weight has one element, or one for each index of dimension 1; then it is viewed with a shape
 * that broadcasts to x. */
static tn_status run_prelu(const tn_call *call)
{
    const tn_view *x = call->in[0];
    int64_t shape[TN_MAX_DIMS], strides[TN_MAX_DIMS] = { 0 };
    tn_view weight = *call->in[1];
    const tn_view *in[2] = { x, &weight };
    tn_call aligned = *call;
    aligned.in = in;
    if (tn__span_view_count(&weight) != 1) {
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
    return tn__elementwise_run(&aligned, TN__EW_prelu, 2, NULL);
}

/* ---- conversion of options to the numbers p, q, r -------------------------------------------- */

#define SELU_ALPHA 1.6732632423543772848170429916717
#define SELU_SCALE 1.0507009873554804934193349852946
typedef void tn_relu6_options, tn_selu_options; /* these operators have no options */

#define FILL(name, ...)                                                                            \
    static void fill_##name(const tn_call *call, double *numbers)                                  \
    {                                                                                              \
        const tn_##name##_options *o = call->options;                                              \
        const double all[3] = { __VA_ARGS__ };                                                     \
        (void)o;                                                                                   \
        memcpy(numbers, all, sizeof all);                                                          \
    }
#define ACTIVATION_OPTIONS(name, inputs, cost, formula, ...) FILL(name, __VA_ARGS__)
#define ACTIVATION_LIKE(name, inputs, operation, ...) FILL(name, __VA_ARGS__)
#include "base/activation_list.h"

/* ---- the table ------------------------------------------------------------------------------- */

static const tn_kernel_def kernels[] = {
#define ACTIVATION(name, inputs, cost, formula)                                                    \
    TN__##inputs##_KERNEL(name, TN__FLOATS, TN__EW_##name),
#define ACTIVATION_OPTIONS(name, inputs, cost, formula, ...)                                       \
    TN__##inputs##_KERNEL_OPTIONS(name, TN__FLOATS, TN__EW_##name),
#define ACTIVATION_LOOP(name, inputs, cost, formula)
#define ACTIVATION_LIKE(name, inputs, operation, ...)                                              \
    TN__##inputs##_KERNEL_OPTIONS(name, TN__FLOATS, TN__EW_##operation),
#include "base/activation_list.h"
    TN__UNARY_KERNEL(relu, TN__REALS, TN__EW_relu),
    TN__UNARY_KERNEL(sigmoid, TN__FLOATS_COMPLEX, TN__EW_sigmoid),
    TN__KERNEL_OVER(gelu, TN__FLOATS, 1),
    TN__UNARY_KERNEL(silu, TN__FLOATS, TN__EW_silu),
    TN__UNARY_KERNEL(mish, TN__FLOATS, TN__EW_mish),
    TN__KERNEL_OVER(gelu_grad, TN__FLOATS, 3),
    TN__KERNEL(glu, TN__FLOATS),
    TN__KERNEL_OVER(prelu, TN__FLOATS, 1),
};
TN__KERNEL_TABLE(activation);
