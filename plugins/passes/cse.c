/* SPDX-License-Identifier: MIT
 *
 * The pass cse: computes equal values once. */
#include "passes.h"

#include <stdlib.h>
#include <string.h>

/* A node, with the data by which equal nodes are found. */
struct row {
    tn_node *node;
    char *spec; /* owned */
    int64_t place;
};

static int compare(const struct row *a, const struct row *b)
{
    int64_t n = tn_node_input_count(a->node), m = tn_node_input_count(b->node);
    int order = strcmp(a->spec, b->spec);

    if (order != 0 || n != m)
        return order != 0 ? order : n < m ? -1 : 1;
    for (int64_t i = 0; i < n; i++) {
        uintptr_t x = (uintptr_t)tn_node_input(a->node, i);
        uintptr_t y = (uintptr_t)tn_node_input(b->node, i);

        if (x != y)
            return x < y ? -1 : 1;
    }
    return (int)tn_node_is_no_grad(a->node) - (int)tn_node_is_no_grad(b->node);
}

static int by_value(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = compare(x, y);

    return order != 0 ? order : x->place < y->place ? -1 : x->place > y->place;
}

/* Collects the pure nodes after the last node that may write. Nothing changes their values. */
static tn_status collect(const tn_graph *graph, struct row **rows, int64_t *count)
{
    int64_t room = 0, place = 0;
    bool writes = passes_writes_from(tn_graph_first(graph));

    for (tn_node *node = tn_graph_first(graph); node; node = tn_node_next(node), place++) {
        int64_t length;
        struct row *row;

        if (!passes_is_pure(node) || (writes && passes_writes_from(node)))
            continue;
        if (*count == room) {
            struct row *grown;

            room = room > 0 ? 2 * room : 64;
            grown = tn_realloc(*rows, (size_t)room * sizeof *grown);
            if (!grown)
                return TN_ERR_MEMORY;
            *rows = grown;
        }
        row = &(*rows)[*count];
        *row = (struct row){ .node = node, .place = place };
        length = tn_node_spec(node, NULL, 0);
        row->spec = length >= 0 ? tn_malloc((size_t)length + 1) : NULL;
        if (!row->spec)
            return length < 0 ? tn_error_last_code() : TN_ERR_MEMORY;
        ++*count;
        if (tn_node_spec(node, row->spec, (size_t)length + 1) < 0)
            return tn_error_last_code();
    }
    return TN_OK;
}

/* Replaces a node by an equal earlier one. */
static tn_status merge(tn_node *node, tn_node *by)
{
    for (int64_t i = 0; i < tn_node_item_count(node); i++)
        if (tn_node_replace_uses(tn_node_item(node, i), tn_node_item(by, i)) < 0)
            return tn_error_last_code();
    return tn_node_erase(node);
}

/* Merging nodes can make their users equal, so the pass repeats until nothing changes. */
static tn_status cse(const tn_pass_def *self, const tn_pass_args *args)
{
    int64_t merged = 0, before = -1, replaced = 0;
    tn_status status = passes_replace_inplace(args->graph, &replaced);

    (void)self;
    while (status == TN_OK && merged > before) {
        struct row *rows = NULL;
        int64_t count = 0, first = 0;

        before = merged;
        status = collect(args->graph, &rows, &count);
        if (status == TN_OK && count > 1)
            qsort(rows, (size_t)count, sizeof *rows, by_value);
        /* Equal rows are neighbours; merging does not change the rows that follow, because it
         * changes only inputs of other nodes, which are compared before anything is merged. */
        for (int64_t i = 1; i < count && status == TN_OK; i++)
            if (compare(&rows[first], &rows[i]) != 0)
                first = i;
            else
                rows[i].place = -1 - first;
        for (int64_t i = 1; i < count && status == TN_OK; i++)
            if (rows[i].place < 0) {
                status = merge(rows[i].node, rows[-1 - rows[i].place].node);
                merged++;
            }
        for (int64_t i = 0; i < count; i++)
            tn_free(rows[i].spec);
        tn_free(rows);
    }
    return status == TN_OK ? passes_report(args, merged, "nodes merged") : status;
}

const tn_pass_def pass_cse = {
    TN_HEAD(tn_pass_def),   .name = "cse",        .help = "computes equal values once",
    .flags = TN_PASS_EXACT, .after = "constants", .run = cse
};
