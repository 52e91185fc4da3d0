/* SPDX-License-Identifier: MIT
 *
 * The pass constants: computes in advance what depends on constants only, with the kernels that
 * would compute it in a run. */
#include "passes.h"

struct options {
    int64_t size;
};

static const tn_option table[] = {
    TN_OPTION_INT(struct options, size, "65536",
                  "most elements of a value that is computed in advance"),
    TN_OPTION_END,
};

/* Returns whether all inputs are constants, and the outputs are known and not too large. */
static bool is_constant(const tn_node *node, int64_t size)
{
    for (int64_t i = 0; i < tn_node_input_count(node); i++) {
        tn_node *in = tn_node_input(node, i);

        if (in != TN_NODE_NONE && tn_node_kind_of(in) != TN_NODE_CONSTANT)
            return false;
    }
    for (int64_t i = 0; i < tn_node_item_count(node); i++) {
        int64_t count = 1;
        tn_meta meta;

        if (tn_node_meta(tn_node_item(node, i), &meta) != TN_OK || meta.ndim < 0)
            return false;
        for (int32_t d = 0; d < meta.ndim; d++)
            count *= meta.shape[d];
        if (count > size)
            return false;
    }
    return true;
}

/* Runs the node, and makes its values constants of the graph. */
static tn_status fold(tn_graph *graph, tn_node *node)
{
    int64_t n_in = tn_node_input_count(node), n_out = tn_node_item_count(node);
    tn_tensor *in[TN_MAX_OPERANDS], *out[TN_MAX_OPERANDS];
    uint64_t scope = tn_scope_begin();
    tn_status status = tn_grad_begin(false);

    for (int64_t i = 0; i < n_in; i++)
        in[i] = tn_node_input(node, i) == TN_NODE_NONE ? TN_NONE
                                                       : tn_node_tensor(tn_node_input(node, i));
    if (status == TN_OK)
        status = tn_node_run(node, in, n_in, out, n_out);
    for (int64_t i = 0; i < n_out && status == TN_OK; i++) {
        tn_node *item = tn_node_item(node, i), *constant;
        tn_tensor *own = tn_copy(out[i]); /* a view of another constant gets its own memory */

        constant = own ? passes_constant(graph, tn_node_name(item), "value", own) : NULL;
        if (!constant || tn_node_replace_uses(item, constant) < 0)
            status = tn_error_last_code();
    }
    tn_grad_end();
    tn_scope_end(scope);
    return status == TN_OK ? tn_node_erase(node) : status;
}

static tn_status constants(const tn_pass_def *self, const tn_pass_args *args)
{
    const struct options *o = args->data;
    int64_t folded = 0, replaced = 0;
    tn_status status = passes_replace_inplace(args->graph, &replaced);

    (void)self;
    for (tn_node *node = tn_graph_first(args->graph), *next; node && status == TN_OK; node = next) {
        next = tn_node_next(node);
        while (next && tn_node_kind_of(next) == TN_NODE_ITEM) /* erased with its operator */
            next = tn_node_next(next);
        if (!passes_is_pure(node) || tn_node_input_count(node) > TN_MAX_OPERANDS ||
            tn_node_item_count(node) > TN_MAX_OPERANDS || !is_constant(node, o->size) ||
            passes_writes_from(node)) /* a later node may write into the value */
            continue;
        status = fold(args->graph, node);
        folded++;
    }
    if (status == TN_OK && tn_graph_dead_code(args->graph) < 0)
        status = tn_error_last_code();
    return status == TN_OK ? passes_report(args, folded, "nodes computed in advance") : status;
}

const tn_pass_def pass_constants = { TN_HEAD(tn_pass_def),
                                     .name = "constants",
                                     .help = "computes in advance what depends on constants only",
                                     .options = table,
                                     .data_size = sizeof(struct options),
                                     .flags = TN_PASS_EXACT,
                                     .after = "conv_bn linear_bn dropout decompose",
                                     .run = constants };
