/* SPDX-License-Identifier: MIT
 *
 * The pass decompose: replaces operators by the operators of their decompositions. */
#include "passes.h"

#include <string.h>

enum { DEEPEST = 16 };

struct options {
    const char *ops;
};

static const tn_option table[] = {
    TN_OPTION_ROW(
        struct options, ops, "None",
        "operators to replace, separated by spaces; None: all but primitive and random ones",
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

/* Operators of attention draw random numbers only if their option dropout_p is above 0. */
static bool may_draw(const tn_node *node, const tn_op_def *def)
{
    const char *options = tn_node_options(node);
    double p;

    if ((def->flags & TN_OP_RANDOM) == 0)
        return false;
    for (const tn_option *row = def->options; row && row->name && options; row++)
        if (row->kind == TN_OPTION_KIND_FLOAT && strcmp(row->name, "dropout_p") == 0) {
            memcpy(&p, options + row->offset, sizeof p);
            return p > 0;
        }
    return true;
}

static bool is_wanted(const tn_node *node, const struct options *o)
{
    const tn_op_def *def;

    if (tn_node_kind_of(node) != TN_NODE_OP)
        return false;
    def = tn_op_definition(tn_node_op(node));
    if (!def->decompose || def->decompose_dtypes != 0 || (def->flags & TN_OP_PRIMITIVE) != 0)
        return false;
    if (o->ops != NULL)
        return is_named(o->ops, def->name);
    return !may_draw(node, def); /* what draws cannot be recorded */
}

/* ---- layouts --------------------------------------------------------------------------------- */

/* Sets the strides, in elements; returns false if they are known only in a run. */
static bool strides_of(const tn_node *node, tn_meta *meta)
{
    int64_t step = 1;

    if (tn_node_meta(node, meta) != TN_OK || meta->ndim < 0)
        return false;
    for (int32_t d = meta->ndim; (meta->flags & TN_META_STRIDED) == 0 && d-- > 0;) {
        meta->strides[d] = step;
        step *= meta->shape[d];
    }
    return true;
}

static bool same_strides(const tn_meta *a, const tn_meta *b)
{
    bool same = a->ndim == b->ndim;

    for (int32_t d = 0; same && d < a->ndim; d++)
        same = a->shape[d] == b->shape[d] && (a->shape[d] <= 1 || a->strides[d] == b->strides[d]);
    return same;
}

/* Orders the dimensions by their strides, the largest first. Returns false if there are gaps
 * between the elements, or if several elements share memory. */
static bool order_of(const tn_meta *meta, int64_t *order)
{
    int64_t step = 1;

    for (int64_t d = 0; d < meta->ndim; d++) {
        int64_t at = d;

        for (; at > 0 && meta->strides[order[at - 1]] < meta->strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    for (int64_t i = meta->ndim; i-- > 0; step *= meta->shape[order[i]])
        if (meta->shape[order[i]] > 1 && meta->strides[order[i]] != step)
            return false;
    return true;
}

static tn_node *permuted(tn_graph *graph, tn_node *before, tn_node *value, const int64_t *order,
                         int64_t ndim)
{
    const tn_permute_options o = { sizeof o, { order, ndim } };

    return value != NULL ? tn_graph_add_call(graph, before, tn_op_find("permute", 0), &o, &value, 1)
                         : NULL;
}

/* Gives the copy, which is row-major, the strides of a value that was packed in another order. */
static tn_status keep_order(tn_graph *graph, tn_node *copy, const tn_meta *was)
{
    int64_t order[TN_MAX_DIMS], back[TN_MAX_DIMS];
    tn_node *value = tn_node_input(copy, 0), *after = tn_node_next(copy);
    bool rows = true;

    if (!order_of(was, order))
        return TN_OK;
    for (int64_t d = 0; d < was->ndim; d++) {
        back[order[d]] = d;
        rows &= order[d] == d;
    }
    if (rows)
        return TN_OK;
    value = permuted(graph, after, value, order, was->ndim);
    value = value != NULL ? tn_graph_add_op(graph, after, "copy()", &value, 1) : NULL;
    value = permuted(graph, after, value, back, was->ndim);
    if (value == NULL || tn_node_replace_uses(copy, value) < 0)
        return tn_error_last_code();
    return tn_node_erase(copy);
}

/* Views after the node were made for the strides of its value (`was`), so the value that replaces
 * it must have the same strides. If it has others, the copy is kept and gets the strides of `was`;
 * otherwise the copy is removed. */
static tn_status settle(tn_graph *graph, tn_node *copy, const tn_meta *was)
{
    tn_node *value = tn_node_input(copy, 0);
    tn_meta now;

    if (was->ndim >= 0 && strides_of(value, &now) && !same_strides(&now, was))
        return keep_order(graph, copy, was);
    if (tn_node_replace_uses(copy, value) < 0)
        return tn_error_last_code();
    return tn_node_erase(copy);
}

static tn_status expand(tn_graph *graph, tn_node *node, tn_node *next)
{
    enum { MOST = TN_MAX_OPERANDS };
    tn_node *copies[MOST] = { NULL };
    tn_meta was[MOST];
    int64_t count = tn_node_item_count(node);
    tn_status status = TN_OK;

    for (int64_t i = 0; i < count && i < MOST && status == TN_OK; i++) {
        tn_node *item = tn_node_item(node, i);

        if (tn_node_user_count(item) == 0)
            continue;
        if (!strides_of(item, &was[i]))
            was[i].ndim = -1;
        copies[i] = tn_graph_add_op(graph, next, "copy()", &item, 1);
        status = copies[i] != NULL && tn_node_replace_uses(item, copies[i]) >= 0
                     ? tn_node_set_input(copies[i], 0, item)
                     : tn_error_last_code();
    }
    if (status == TN_OK)
        status = tn_node_expand(node);
    for (int64_t i = 0; i < count && i < MOST && status == TN_OK; i++)
        if (copies[i] != NULL)
            status = settle(graph, copies[i], &was[i]);
    return status;
}

/* ---- the pass -------------------------------------------------------------------------------- */

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
            if (expand(args->graph, node, next) != TN_OK)
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
