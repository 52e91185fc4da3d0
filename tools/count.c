/* SPDX-License-Identifier: MIT
 *
 * Computes the cost of operators from the shapes of their tensors. Only multiply-adds of products
 * are counted, as in published numbers. Operators that are not in the table count as 0, even if a
 * device computes them with products. */
#include "count.h"

#include <string.h>

/* How the multiply-adds of an operator are computed. */
enum rule {
    /* elements of the output times the last size of the operand */
    PER_OUTPUT_ROW,
    /* elements of the output times elements of a filter; weight: [out, in / groups, ...] */
    PER_OUTPUT_FILTER,
    /* elements of the input times elements of a filter; weight: [in, out / groups, ...] */
    PER_INPUT_FILTER,
    /* the products q k^T and its result times v */
    ATTENTION,
    /* the sum over the operators of the decomposition */
    INSIDE
};

static const struct {
    const char *op;
    enum rule rule;
    int operand; /* the input whose shape gives the factor */
} rules[] = {
    { "linear", PER_OUTPUT_ROW, 0 },
    { "linear_int8", PER_OUTPUT_ROW, 0 },
    { "linear_packed", PER_OUTPUT_ROW, 0 },
    { "matmul_int8", PER_OUTPUT_ROW, 0 },
    { "convolution_int8", PER_OUTPUT_FILTER, 2 },
    { "matmul", PER_OUTPUT_ROW, 0 },
    { "bmm", PER_OUTPUT_ROW, 0 },
    { "mv", PER_OUTPUT_ROW, 0 },
    { "dot", PER_OUTPUT_ROW, 0 },
    { "addmm", PER_OUTPUT_ROW, 1 },
    { "baddbmm", PER_OUTPUT_ROW, 1 },
    { "conv1d", PER_OUTPUT_FILTER, 1 },
    { "conv2d", PER_OUTPUT_FILTER, 1 },
    { "conv3d", PER_OUTPUT_FILTER, 1 },
    { "conv_transpose1d", PER_INPUT_FILTER, 1 },
    { "conv_transpose2d", PER_INPUT_FILTER, 1 },
    { "conv_transpose3d", PER_INPUT_FILTER, 1 },
    { "scaled_dot_product_attention", ATTENTION, 1 },
    { "bilinear", INSIDE, 0 },
    { "einsum", INSIDE, 0 },
    { "multi_head_attention", INSIDE, 0 },
    { "multi_head_attention_with_weights", INSIDE, 0 },
    { "rnn_tanh_cell", INSIDE, 0 },
    { "rnn_relu_cell", INSIDE, 0 },
    { "lstm_cell", INSIDE, 0 },
    { "gru_cell", INSIDE, 0 },
    { "rnn_sequence", INSIDE, 0 },
    { "lstm_sequence", INSIDE, 0 },
    { "gru_sequence", INSIDE, 0 },
};
enum { RULES = sizeof rules / sizeof *rules };

static bool has_shape(tn_tensor *tensor)
{
    return tensor != NULL && tensor != TN_NONE;
}

/* Returns the number of elements of one filter: the product of all dimensions but the first. */
static int64_t filter_of(const tn_tensor *weight)
{
    tn_ints shape = tn_tensor_shape(weight);
    int64_t elements = 1;
    for (int64_t i = 1; i < shape.count; i++)
        elements *= shape.at[i];
    return elements;
}

/* For q [..., L, E], k [..., S, E], v [..., S, V]: L * S * (E + V) for each batch. */
static int64_t attention(tn_tensor *const *in)
{
    tn_tensor *q = in[0], *v = in[2];
    int64_t width = tn_tensor_size(q, -1), rows = width > 0 ? tn_tensor_numel(q) / width : 0;
    return rows * tn_tensor_size(v, -2) * (width + tn_tensor_size(v, -1));
}

static void begin_counted(op_count *count, int rule, tn_tensor *const *in)
{
    tn_tensor *operand = in[rules[rule].operand];
    count->counted_at = count->depth;
    count->of_output = rules[rule].rule == PER_OUTPUT_ROW || rules[rule].rule == PER_OUTPUT_FILTER;
    switch (rules[rule].rule) {
    case PER_OUTPUT_ROW:
        count->factor = tn_tensor_ndim(operand) > 0 ? tn_tensor_size(operand, -1) : 1;
        break;
    case PER_OUTPUT_FILTER: count->factor = filter_of(operand); break;
    case PER_INPUT_FILTER: count->factor = tn_tensor_numel(in[0]) * filter_of(operand); break;
    case ATTENTION: count->factor = attention(in); break;
    case INSIDE: count->counted_at = 0; break;
    }
}

static uint64_t begin(void *user, const tn_op_event *event)
{
    op_count *count = user;
    tn_tensor *const *in = event->in;
    if (count->depth++ == 0)
        count->before = count->macs;
    int i = 0;
    while (i < RULES && strcmp(rules[i].op, event->op->name) != 0)
        i++;
    bool known = i < RULES && rules[i].operand < event->n_in && has_shape(in[0]) &&
                 has_shape(in[rules[i].operand]) &&
                 (rules[i].rule != ATTENTION || (event->n_in > 2 && has_shape(in[2])));
    if (count->counted_at == 0 && count->closed_at == 0 && known)
        begin_counted(count, i, in);
    else if (count->counted_at == 0 && count->closed_at == 0)
        count->closed_at = count->depth;
    return 0;
}

/* Records the name of an operator that is not counted, except views. */
static void not_counted(op_count *count, const tn_op_def *op)
{
    int64_t i = 0;
    while (i < count->name_count && strcmp(count->names[i], op->name) != 0)
        i++;
    if (i == COUNT_NAMES || (i == count->name_count && (op->flags & TN_OP_VIEW)))
        return;
    count->names[i] = op->name;
    count->calls[i]++;
    count->name_count += i == count->name_count;
}

static void end(void *user, uint64_t token, const tn_op_event *event)
{
    op_count *count = user;
    (void)token;
    if (count->counted_at == count->depth) {
        if (event->status == TN_OK && event->n_out > 0 && has_shape(event->out[0]))
            count->macs += count->factor * (count->of_output ? tn_tensor_numel(event->out[0]) : 1);
        count->counted_at = 0;
    }
    if (count->closed_at == count->depth)
        count->closed_at = 0;
    if (--count->depth == 0 && count->macs == count->before && event->status == TN_OK)
        not_counted(count, event->op);
}

tn_status count_operators(op_count *count)
{
    static tn_observer_def observer = { TN_HEAD(tn_observer_def), .name = "count" };
    observer.user = count;
    observer.op_begin = begin;
    observer.op_end = end;
    return tn_register(&observer);
}
