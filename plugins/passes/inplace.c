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

/* Autocast treats the two forms of these operators differently. */
static const uint64_t autocast = TN_OP_AUTOCAST_LOW | TN_OP_AUTOCAST_F32 | TN_OP_AUTOCAST_WIDEST |
                                 TN_OP_AUTOCAST_REFUSED | TN_OP_AUTOCAST_HOST_LOW |
                                 TN_OP_AUTOCAST_HOST_F32 | TN_OP_AUTOCAST_HOST_WIDEST |
                                 TN_OP_AUTOCAST_HOST_REFUSED;

/* Returns whether the ordinary form of a node in place may replace it. */
static bool is_replaceable(const tn_node *node)
{
    const int64_t n_in = tn_node_input_count(node) - 1; /* of the ordinary form */
    tn_node *into;
    uint64_t flags;

    if (tn_node_kind_of(node) != TN_NODE_INPLACE || n_in < 1 || n_in > TN_MAX_OPERANDS ||
        tn_node_item_count(node) != 1)
        return false;
    flags = tn_op_definition(tn_node_op(node))->flags;
    into = tn_node_input(node, n_in);
    if ((flags & TN_OP_POINTWISE) == 0 || (flags & (TN_OP_RANDOM | TN_OP_ORDERED | autocast)) != 0)
        return false;
    return tn_node_user_count(into) == 1 && is_new(into) && passes_same_shape(into, node);
}

tn_status passes_replace_inplace(tn_graph *graph, int64_t *replaced)
{
    for (tn_node *node = tn_graph_first(graph), *next; node; node = next) {
        int64_t n_in = tn_node_input_count(node) - 1;
        tn_node *in[TN_MAX_OPERANDS], *made;

        next = tn_node_next(node);
        if (!is_replaceable(node))
            continue;
        for (int64_t i = 0; i < n_in; i++)
            in[i] = tn_node_input(node, i);
        made = tn_graph_add_call(graph, node, tn_node_op(node), tn_node_options(node), in, n_in);
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
