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

/* Makes views of the two halves of x along dim; `half` has their shape. */
static void split(const tn_view *x, int64_t dim, const tn_view *half, tn_view *halves)
{
    dim = dim < 0 ? dim + x->ndim : dim;
    halves[0] = halves[1] = *x;
    halves[0].shape = halves[1].shape = half->shape;
    halves[1].byte_offset += (uint64_t)(half->shape[dim] * x->strides[dim] * tn__view_item(x));
}

static tn_status run_two(const tn_call *call, enum tn__ew op, const tn_view *y, const tn_view *a,
                         const tn_view *b)
{
    const tn_view *in[2] = { a, b };
    tn_call two = *call;
    two.in = in;
    two.n_in = 2;
    two.out = &y;
    return tn__elementwise_run(&two, op, 2, NULL);
}

/* Computes a * sigmoid(b), where a and b are the two halves of x along dim. */
static tn_status run_glu(const tn_call *call)
{
    tn_view x[2];
    split(call->in[0], ((const tn_glu_options *)call->options)->dim, call->out[0], x);
    return run_two(call, TN__EW_glu, call->out[0], &x[0], &x[1]);
}

static tn_status run_glu_grad(const tn_call *call)
{
    int64_t dim = ((const tn_glu_grad_options *)call->options)->dim;
    const tn_view *gy = call->in[0];
    tn_view x[2], gx[2];
    split(call->in[1], dim, gy, x);
    split(call->out[0], dim, gy, gx);
    tn_status status = run_two(call, TN__EW_glu, &gx[0], gy, &x[1]);
    /* The slope of the sigmoid first: it is at most 1/4, so that gy * a does not overflow. */
    if (status == TN_OK)
        status = run_two(call, TN__EW_step_grad, &gx[1], gy, &x[1]);
    return status == TN_OK ? run_two(call, TN__EW_mul, &gx[1], &gx[1], &x[0]) : status;
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
    TN__KERNEL(glu_grad, TN__FLOATS),
    TN__KERNEL_OVER(prelu, TN__FLOATS, 1),
};
TN__KERNEL_TABLE(activation);
