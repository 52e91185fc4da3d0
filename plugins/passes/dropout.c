/* SPDX-License-Identifier: MIT
 *
 * The pass dropout: removes dropout, which does nothing outside of training. */
#include "passes.h"

#include <string.h>

static const char *const operators[] = { "dropout", "feature_dropout", "alpha_dropout",
                                         "feature_alpha_dropout" };
static const char *const layers[] = { "Dropout",   "Dropout1d",    "Dropout2d",
                                      "Dropout3d", "AlphaDropout", "FeatureAlphaDropout" };

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool is_dropout(const tn_node *node)
{
    if (tn_node_item_count(node) != 1 || tn_node_input_count(node) != 1)
        return false;
    if (tn_node_kind_of(node) == TN_NODE_OP)
        return is_among(tn_node_target(node), operators, sizeof operators / sizeof *operators);
    return tn_node_kind_of(node) == TN_NODE_CALL &&
           is_among(tn_module_type(tn_node_module(node)), layers, sizeof layers / sizeof *layers);
}

static tn_status dropout(const tn_pass_def *self, const tn_pass_args *args)
{
    int64_t removed = 0;

    (void)self;
    for (tn_node *node = tn_graph_first(args->graph), *next; node; node = next) {
        next = tn_node_next(node);
        if (!is_dropout(node))
            continue;
        if (tn_node_replace_uses(node, tn_node_input(node, 0)) < 0 || tn_node_erase(node) != TN_OK)
            return tn_error_last_code();
        removed++;
    }
    return passes_report(args, removed, "nodes removed");
}

const tn_pass_def pass_dropout = { TN_HEAD(tn_pass_def), .name = "dropout",
                                   .help = "removes dropout, which only training needs",
                                   .flags = TN_PASS_INFERENCE, .run = dropout };
