/* SPDX-License-Identifier: MIT
 *
 * The pass inplace: an operator in place whose old value nothing else reads becomes the ordinary
 * operator, such as relu in place of relu_. Networks with ReLU(inplace=True) have many of them, and
 * other passes and the compilers leave nodes alone that come before a write. A plan still computes
 * in place where a kernel can. */
#include "passes.h"

#include <string.h>

/* Operators that are decomposed, but whose results are new tensors, too. */
static const char *const new_results[] = {
    "conv1d",           "conv2d",           "conv3d",     "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "linear",     "batch_norm",
    "group_norm",       "instance_norm",    "layer_norm", "rms_norm",
};

/* Returns whether a value is new memory, which no other value of the graph shares. Decomposed
 * operators can return their inputs, as reshape does. */
static bool is_new(const tn_node *value)
{
    const tn_node *from = tn_node_kind_of(value) == TN_NODE_ITEM ? tn_node_input(value, 0) : value;
    uint64_t flags;

    if (tn_node_kind_of(from) != TN_NODE_OP)
        return false;
    flags = tn_op_definition(tn_node_op(from))->flags;
    if ((flags & TN_OP_VIEW) != 0)
        return false;
    if ((flags & TN_OP_PRIMITIVE) != 0)
        return true;
    for (size_t i = 0; i < sizeof new_results / sizeof *new_results; i++)
        if (passes_is_op(from, new_results[i]))
            return true;
    return false;
}

/* Autocast treats the two forms of these operators differently, and the ordinary form of
 * TN_OP_PROMOTE_FLOAT can have another dtype. */
static const uint64_t refused_flags = TN_OP_RANDOM | TN_OP_ORDERED | TN_OP_PROMOTE_FLOAT |
                                      TN_OP_AUTOCAST_LOW | TN_OP_AUTOCAST_F32 |
                                      TN_OP_AUTOCAST_WIDEST | TN_OP_AUTOCAST_REFUSED |
                                      TN_OP_AUTOCAST_HOST_LOW | TN_OP_AUTOCAST_HOST_F32 |
                                      TN_OP_AUTOCAST_HOST_WIDEST | TN_OP_AUTOCAST_HOST_REFUSED;

/* Operators whose derivative in place, from the result, has the bits of that from the input. Those
 * of elu, selu and celu differ by rounding. */
static const char *const same_derivatives[] = { "leaky_relu" };

static bool has_same_derivative(const tn_op_def *def)
{
    if (def->result_suffices == NULL)
        return true;
    for (size_t i = 0; i < sizeof same_derivatives / sizeof *same_derivatives; i++)
        if (strcmp(def->name, same_derivatives[i]) == 0)
            return true;
    return false;
}

/* Returns whether the ordinary form of a node in place may replace it. Only operators of one tensor
 * are replaced: the result of others can get the dtype, shape or order of strides of the second
 * tensor. A node without gradients stays, because the value that it changes can keep a history. */
static bool is_replaceable(const tn_node *node)
{
    const tn_op_def *def;
    tn_node *into;

    if (tn_node_kind_of(node) != TN_NODE_INPLACE || tn_node_input_count(node) != 2 ||
        tn_node_item_count(node) != 1 || tn_node_is_no_grad(node))
        return false;
    def = tn_op_definition(tn_node_op(node));
    into = tn_node_input(node, 1);
    if ((def->flags & TN_OP_POINTWISE) == 0 || (def->flags & refused_flags) != 0 ||
        !has_same_derivative(def) || tn_node_input(node, 0) != into)
        return false;
    return tn_node_user_count(into) == 1 && is_new(into) && passes_same_shape(into, node);
}

tn_status passes_replace_inplace(tn_graph *graph, int64_t *replaced)
{
    for (tn_node *node = tn_graph_first(graph), *next; node; node = next) {
        tn_node *in, *made;

        next = tn_node_next(node);
        if (!is_replaceable(node))
            continue;
        in = tn_node_input(node, 0);
        made = tn_graph_add_call(graph, node, tn_node_op(node), tn_node_options(node), &in, 1);
        if (made == NULL)
            return tn_error_last_code();
        if (!passes_same_shape(made, node)) { /* the form in place casts its result */
            if (tn_node_erase(made) != TN_OK)
                return tn_error_last_code();
            continue;
        }
        if (tn_node_replace_uses(node, made) < 0 || tn_node_erase(node) != TN_OK)
            return tn_error_last_code();
        ++*replaced;
    }
    return TN_OK;
}

static tn_status inplace(const tn_pass_def *self, const tn_pass_args *args)
{
    int64_t replaced = 0;
    tn_status status = passes_replace_inplace(args->graph, &replaced);

    (void)self;
    return status == TN_OK ? passes_report(args, replaced, "operators no longer in place") : status;
}

const tn_pass_def pass_inplace = { TN_HEAD(tn_pass_def), .name = "inplace",
                                   .help = "ordinary operators for those in place whose old value "
                                           "nothing else reads",
                                   .flags = TN_PASS_EXACT, .run = inplace };
