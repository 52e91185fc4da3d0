/* SPDX-License-Identifier: MIT
 *
 * The floating-point operations of products, from the shapes of their tensors: two for each
 * multiply-add. */
#include "profile.h"

#include <string.h>

/* How the multiply-adds of an operator are computed. */
enum rule {
    ROW,         /* elements of the output times the last size of the operand */
    FILTER_OUT,  /* elements of the output times elements of a filter of the operand */
    FILTER_IN,   /* elements of input 0 times elements of a filter of the operand */
    FILTER_GRAD, /* elements of input 0 times elements of a filter of the output */
    ATTENTION    /* from q [..., L, E], k [..., S, E], v [..., S, V] */
};

static const struct {
    const char *op;
    enum rule rule;
    int operand; /* the input whose shape gives the factor; of ATTENTION: q */
} rules[] = {
    { "convolution", FILTER_OUT, 1 },
    { "convolution_activation", FILTER_OUT, 1 },
    { "convolution_grad_input", FILTER_IN, 1 },
    { "convolution_grad_weight", FILTER_GRAD, 0 },
    { "conv1d", FILTER_OUT, 1 },
    { "conv2d", FILTER_OUT, 1 },
    { "conv3d", FILTER_OUT, 1 },
    { "conv_transpose1d", FILTER_IN, 1 },
    { "conv_transpose2d", FILTER_IN, 1 },
    { "conv_transpose3d", FILTER_IN, 1 },
    { "linear", ROW, 0 },
    { "linear_activation", ROW, 0 },
    { "matmul", ROW, 0 },
    { "bmm", ROW, 0 },
    { "mv", ROW, 0 },
    { "dot", ROW, 0 },
    { "addmm", ROW, 1 },
    { "baddbmm", ROW, 1 },
    { "attend", ATTENTION, 0 },
    { "scaled_dot_product_attention", ATTENTION, 0 },
    { "attend_grad", ATTENTION, 1 },
};

static double numel(const tn_tensor *tensor)
{
    return (double)tn_tensor_numel(tensor);
}

/* The product of all dimensions but the first. */
static double filter_of(const tn_tensor *weight)
{
    tn_ints shape = tn_tensor_shape(weight);
    double elements = 1;

    for (int64_t i = 1; i < shape.count; i++)
        elements *= (double)shape.at[i];
    return elements;
}

static bool has_shape(const tn_tensor *tensor)
{
    return tensor != NULL && tensor != TN_NONE;
}

/* q k^T and its product with v; backward computes the first again, and four gradients. */
static double attention(tn_tensor *const *in, bool backward)
{
    tn_ints q = tn_tensor_shape(in[0]), v = tn_tensor_shape(in[2]);
    double rows, width, value;

    if (q.count < 2 || v.count < 2 || q.at[q.count - 1] == 0)
        return 0;
    width = (double)q.at[q.count - 1];
    value = (double)v.at[v.count - 1];
    rows = numel(in[0]) / width * (double)v.at[v.count - 2];
    return rows * (backward ? 3 * width + 2 * value : width + value);
}

static double multiply_adds(size_t rule, const tn_op_event *event)
{
    const tn_tensor *operand = event->in[rules[rule].operand], *out = event->out[0];
    tn_ints shape = tn_tensor_shape(operand);

    switch (rules[rule].rule) {
    case ROW: return numel(out) * (shape.count > 0 ? (double)shape.at[shape.count - 1] : 1);
    case FILTER_OUT: return numel(out) * filter_of(operand);
    case FILTER_IN: return numel(event->in[0]) * filter_of(operand);
    case FILTER_GRAD: return numel(event->in[0]) * filter_of(out);
    case ATTENTION: break;
    }
    return attention(event->in + rules[rule].operand, rules[rule].operand == 1);
}

double flops_of(const tn_op_event *event)
{
    size_t rule = 0, count = sizeof rules / sizeof *rules;

    while (rule < count && strcmp(rules[rule].op, event->op->name) != 0)
        rule++;
    if (rule == count || event->n_out < 1 || !has_shape(event->out[0]))
        return 0;
    int64_t needed = rules[rule].operand + (rules[rule].rule == ATTENTION ? 3 : 1);
    for (int64_t i = 0; i < needed; i++)
        if (i >= event->n_in || !has_shape(event->in[i]))
            return 0;
    return 2 * multiply_adds(rule, event);
}
