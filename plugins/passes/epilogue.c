/* SPDX-License-Identifier: MIT
 *
 * The pass epilogue: one operator in place of a linear, convolution or batch norm and what follows
 * it. linear, then an activation, a sum, or both become linear_activation; a convolution, then
 * batch_norm with running statistics, a sum, an activation, or several of them in this order become
 * convolution_activation; batch_norm, maybe a sum, then relu or relu6 become batch_norm_relu. */
#include "passes.h"

#include <string.h>

/* Returns the node that uses a value. Returns NULL if it is not the only one, is no call of an
 * operator (an output of the graph is none), or differs from `node` in whether it records. */
static tn_node *only_user(const tn_node *node)
{
    tn_node *user = tn_node_user_count(node) == 1 ? tn_node_user(node, 0) : NULL;

    return user != NULL && tn_node_kind_of(user) == TN_NODE_OP &&
                   tn_node_is_no_grad(user) == tn_node_is_no_grad(node)
               ? user
               : NULL;
}

static bool is_one(tn_scalar value)
{
    return (value.kind == TN_SCALAR_INT && value.as.i == 1) ||
           (value.kind == TN_SCALAR_FLOAT && value.as.f == 1);
}

/* Returns the other operand if a node adds `value` and a tensor of the same shape, else NULL. */
static tn_node *addend(const tn_node *node, const tn_node *value)
{
    const tn_add_options *o;
    tn_node *other;

    if (node == NULL || !passes_is_op(node, "add"))
        return NULL;
    o = tn_node_options(node);
    other = tn_node_input(node, tn_node_input(node, 0) == value);
    return is_one(o->alpha) && other != value && passes_same_shape(other, value) ? other : NULL;
}

/* Returns the name that linear_activation has for an activation, NULL if it has none. */
static const char *activation_of(const tn_node *node)
{
    if (node == NULL)
        return NULL;
    if (passes_is_op(node, "relu"))
        return "relu";
    if (passes_is_op(node, "silu"))
        return "silu";
    if (!passes_is_op(node, "gelu"))
        return NULL;
    return strcmp(((const tn_gelu_options *)tn_node_options(node))->approximate, "tanh") == 0
               ? "gelu_tanh"
               : "gelu";
}

/* Replaces nodes that follow each other by one, whose first result is theirs. */
static tn_status replace(tn_node *const *chain, int count, tn_node *made)
{
    if (made == NULL || tn_node_replace_uses(chain[count - 1], tn_node_item(made, 0)) < 0)
        return tn_error_last_code();
    for (int i = count; i-- > 0;)
        if (tn_node_erase(chain[i]) != TN_OK)
            return tn_error_last_code();
    return TN_OK;
}

static tn_status follow_linear(tn_graph *graph, tn_node *node, tn_node **made)
{
    tn_linear_activation_options o = TN_LINEAR_ACTIVATION_OPTIONS;
    tn_node *chain[3] = { node }, *in[4], *user = only_user(node);
    const char *activation = activation_of(user);
    int count = 1;

    if (activation != NULL) {
        chain[count++] = user;
        user = only_user(user);
    }
    in[3] = addend(user, chain[count - 1]);
    if (in[3] != NULL)
        chain[count++] = user;
    else
        in[3] = TN_NODE_NONE;
    if (count == 1)
        return TN_OK;
    o.activation = activation != NULL ? activation : "none";
    for (int i = 0; i < 3; i++)
        in[i] = tn_node_input(node, i);
    *made = tn_graph_add_call(graph, chain[count - 1], tn_op_find("linear_activation", 0), &o, in,
                              4);
    return replace(chain, count, *made);
}

static tn_status follow_norm(tn_graph *graph, tn_node *node, tn_node **made)
{
    const tn_batch_norm_options *from = tn_node_options(node);
    tn_batch_norm_relu_options o = TN_BATCH_NORM_RELU_OPTIONS;
    tn_node *chain[3] = { node }, *in[6], *user = only_user(node);
    int count = 1;

    in[5] = addend(user, node);
    if (in[5] != NULL) {
        chain[count++] = user;
        user = only_user(user);
    } else {
        in[5] = TN_NODE_NONE;
    }
    if (user == NULL || (!passes_is_op(user, "relu") && !passes_is_op(user, "relu6")))
        return TN_OK;
    if (passes_is_op(user, "relu6"))
        o.max = 6.0;
    chain[count++] = user;
    o.training = from->training;
    o.momentum = from->momentum;
    o.eps = from->eps;
    for (int i = 0; i < 5; i++)
        in[i] = tn_node_input(node, i);
    *made = tn_graph_add_call(graph, chain[count - 1], tn_op_find("batch_norm_relu", 0), &o, in, 6);
    return replace(chain, count, *made);
}

/* Returns the name that convolution_activation has for an activation, NULL if it has none. */
static const char *image_activation_of(const tn_node *node)
{
    static const char *const names[] = { "relu", "relu6", "silu", "hardswish" };

    for (size_t i = 0; node != NULL && i < sizeof names / sizeof *names; i++)
        if (passes_is_op(node, names[i]))
            return names[i];
    return NULL;
}

/* Copies the options of a convolution of images with a batch dimension. Returns false if the node
 * is none, or if its padding depends on the kernel. */
static bool read_convolution(const tn_node *node, tn_convolution_activation_options *o)
{
    static const char *const names[] = { "conv1d", "conv2d", "conv3d" };
    const tn_convolution_options *plain = tn_node_options(node);
    const tn_conv2d_options *given = tn_node_options(node); /* conv1d and conv3d have the same */
    int dims = 0;
    tn_meta meta;

    if (passes_is_op(node, "convolution")) {
        o->stride = plain->stride;
        o->padding = plain->padding;
        o->dilation = plain->dilation;
        o->groups = plain->groups;
        return true;
    }
    while (dims < 3 && !passes_is_op(node, names[dims]))
        dims++;
    if (dims == 3 || given->auto_padding != NULL ||
        tn_node_meta(tn_node_input(node, 0), &meta) != TN_OK || meta.ndim != dims + 3)
        return false;
    o->stride = given->stride;
    o->padding = given->padding;
    o->dilation = given->dilation;
    o->groups = given->groups;
    return true;
}

/* Returns whether a node is batch_norm with running statistics, of the result of `before`. */
static bool is_running_norm(const tn_node *node, const tn_node *before)
{
    return node != NULL && passes_is_op(node, "batch_norm") && tn_node_input(node, 0) == before &&
           !((const tn_batch_norm_options *)tn_node_options(node))->training &&
           tn_node_input(node, 1) != TN_NODE_NONE && tn_node_input(node, 2) != TN_NODE_NONE;
}

static tn_status follow_convolution(tn_graph *graph, tn_node *node, tn_node **made)
{
    tn_convolution_activation_options o = TN_CONVOLUTION_ACTIVATION_OPTIONS;
    tn_node *chain[4] = { node }, *in[8], *user = only_user(node);
    int count = 1;

    if (!read_convolution(node, &o))
        return TN_OK;
    for (int i = 0; i < 8; i++)
        in[i] = i < 3 ? tn_node_input(node, i) : TN_NODE_NONE;
    if (is_running_norm(user, node)) {
        o.eps = ((const tn_batch_norm_options *)tn_node_options(user))->eps;
        for (int i = 1; i < 5; i++)
            in[2 + i] = tn_node_input(user, i);
        chain[count++] = user;
        user = only_user(user);
    }
    in[7] = addend(user, chain[count - 1]);
    if (in[7] != NULL) {
        chain[count++] = user;
        user = only_user(user);
    } else {
        in[7] = TN_NODE_NONE;
    }
    o.activation = image_activation_of(user);
    if (o.activation != NULL)
        chain[count++] = user;
    else
        o.activation = "none";
    if (count == 1)
        return TN_OK;
    *made = tn_graph_add_call(graph, chain[count - 1], tn_op_find("convolution_activation", 0), &o,
                              in, 8);
    return replace(chain, count, *made);
}

/* The fused node takes the place of the last of its nodes, because a sum may add a value that is
 * computed after the first. The earlier nodes are thus computed later, so nothing is fused if this
 * node or a later one may write into a value. */
static tn_status epilogue(const tn_pass_def *self, const tn_pass_args *args)
{
    int64_t changed = 0, replaced = 0;
    tn_status status = passes_replace_inplace(args->graph, &replaced);

    (void)self;
    for (tn_node *node = tn_graph_first(args->graph); node && status == TN_OK;
         node = tn_node_next(node)) {
        tn_node *made = NULL;

        if (tn_node_kind_of(node) != TN_NODE_OP || tn_node_is_no_grad(node) ||
            passes_writes_from(node))
            continue;
        if (passes_is_op(node, "linear"))
            status = follow_linear(args->graph, node, &made);
        else if (passes_is_op(node, "batch_norm"))
            status = follow_norm(args->graph, node, &made);
        else
            status = follow_convolution(args->graph, node, &made);
        if (made != NULL)
            node = made;
        changed += made != NULL;
    }
    return status == TN_OK ? passes_report(args, changed, "operators with what follows them")
                           : status;
}

const tn_pass_def pass_epilogue = { TN_HEAD(tn_pass_def), .name = "epilogue",
                                    .help = "one operator for a linear, convolution or batch norm "
                                            "and what follows it: norm, sum, activation",
                                    .after = "conv_bn linear_bn dropout", .run = epilogue };
