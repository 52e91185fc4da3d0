/* SPDX-License-Identifier: MIT
 *
 * The plugin with passes over graphs. */
#include "passes.h"

#include <string.h>

tn_status passes_report(const tn_pass_args *args, int64_t count, const char *what)
{
    char words[96];

    tn_snprint(words, sizeof words, "%lld %s", (long long)count, what);
    return args->report(args, words);
}

tn_status passes_report_left(const tn_pass_args *args, const tn_node *node, const char *why)
{
    char words[256];

    tn_snprint(words, sizeof words, "%.100s stays: %s", tn_node_name(node), why);
    return args->report(args, words);
}

bool passes_is_pure(const tn_node *node)
{
    return tn_node_kind_of(node) == TN_NODE_OP && tn_node_writes(node) == 0 &&
           tn_node_item_count(node) > 0 &&
           (tn_op_definition(tn_node_op(node))->flags & (TN_OP_RANDOM | TN_OP_ORDERED)) == 0;
}

bool passes_writes_from(const tn_node *from)
{
    for (; from != NULL; from = tn_node_next(from))
        if (tn_node_writes(from) != 0 || tn_node_kind_of(from) == TN_NODE_CALL)
            return true;
    return false;
}

bool passes_is_op(const tn_node *node, const char *name)
{
    return tn_node_kind_of(node) == TN_NODE_OP && strcmp(tn_node_target(node), name) == 0;
}

bool passes_same_shape(const tn_node *a, const tn_node *b)
{
    tn_meta x, y;
    bool same = tn_node_meta(a, &x) == TN_OK && tn_node_meta(b, &y) == TN_OK && x.ndim >= 0 &&
                x.ndim == y.ndim && x.dtype == y.dtype;

    for (int32_t d = 0; same && d < x.ndim; d++)
        same = x.shape[d] == y.shape[d];
    return same;
}

tn_node *passes_constant(tn_graph *graph, const char *stem, const char *suffix, tn_tensor *tensor)
{
    char name[128];
    int length = (int)tn_snprint(name, sizeof name, "%.80s_%s", stem, suffix);

    for (int i = 1; i > 0; i++) {
        uint64_t mark = tn_error_mark();
        bool taken = tn_graph_find(graph, name) != NULL;

        tn_error_restore(mark);
        if (!taken)
            break;
        tn_snprint(name + length, sizeof name - (size_t)length, "_%d", i);
    }
    return tn_graph_constant(graph, name, tensor);
}

/* ---- the plugin ------------------------------------------------------------------------------ */

static const void *const contributions[] = {
    &pass_recompute, &pass_constants, &pass_conv_bn,  &pass_cse,     &pass_dead,
    &pass_decompose, &pass_dropout,   &pass_epilogue, &pass_inplace, &pass_linear_bn,
};

static const tn_plugin passes = {
    TN_HEAD(tn_plugin),
    .id = "tenon.passes",
    .version = "0.1.0",
    .help = "passes over graphs",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof *contributions),
};

TN_PLUGIN_EXPORT(passes);
