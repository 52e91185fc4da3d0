/* SPDX-License-Identifier: MIT
 *
 * The pass decompose: replaces operators by those that compute them. */
#include "passes.h"

#include <string.h>

enum { DEEPEST = 16 };

struct options {
    const char *ops;
};

static const tn_option table[] = {
    TN_OPTION_ROW(struct options, ops, "None",
                  "operators to replace, separated by spaces; None: all but primitive ones",
                  TN_OPTION_KIND_STRING, TN_OPTION_OPTIONAL),
    TN_OPTION_END,
};

static bool is_named(const char *names, const char *name)
{
    size_t length = strlen(name);

    while (*names != '\0') {
        size_t here = strcspn(names, " ");

        if (here == length && strncmp(names, name, length) == 0)
            return true;
        names += here + strspn(names + here, " ");
    }
    return false;
}

static bool is_wanted(const tn_node *node, const struct options *o)
{
    const tn_op_def *def;

    if (tn_node_kind_of(node) != TN_NODE_OP)
        return false;
    def = tn_op_definition(tn_node_op(node));
    if (!def->decompose || def->decompose_dtypes != 0 || (def->flags & TN_OP_PRIMITIVE) != 0)
        return false;
    return o->ops == NULL || is_named(o->ops, def->name);
}

static tn_status decompose(const tn_pass_def *self, const tn_pass_args *args)
{
    int64_t replaced = 0, before = -1;

    (void)self;
    for (int round = 0; round < DEEPEST && replaced > before; round++) {
        before = replaced;
        for (tn_node *node = tn_graph_first(args->graph), *next; node; node = next) {
            next = tn_node_next(node);
            while (next && tn_node_kind_of(next) == TN_NODE_ITEM)
                next = tn_node_next(next);
            if (!is_wanted(node, args->data))
                continue;
            if (tn_node_expand(node) != TN_OK)
                return tn_error_last_code();
            replaced++;
        }
    }
    return passes_report(args, replaced, "nodes replaced");
}

const tn_pass_def pass_decompose = { TN_HEAD(tn_pass_def),
                                     .name = "decompose",
                                     .help = "replaces operators by those that compute them",
                                     .options = table,
                                     .data_size = sizeof(struct options),
                                     .flags = TN_PASS_SHAPES,
                                     .after = "conv_bn linear_bn dropout",
                                     .run = decompose };
