/* SPDX-License-Identifier: MIT
 *
 * Nodes in the form that compilers get: flat, numbered, read-only. Also checks whether a set of
 * nodes can run as one. */
#include "lib/graph/private.h"

/* Returns an upper limit of the number of values of the nodes. */
static int64_t most_values(tn_node *const *nodes, int64_t count)
{
    int64_t most = 1;

    for (int64_t i = 0; i < count; i++)
        most += nodes[i]->n_in + nodes[i]->n_out;
    return most;
}

struct builder {
    tn__region_flat *flat;
    tn_region_value *values;
    int32_t *value_of; /* by id of the node; -1: no value yet */
    int32_t *in, *out;
};

static int32_t add_value(struct builder *b, tn_node *value, int64_t producer)
{
    tn_region *region = &b->flat->region;
    int32_t number = (int32_t)region->n_values++;

    b->flat->values[number] = value;
    b->value_of[value->id] = number;
    b->values[number] = (tn_region_value){
        .name = value->name,
        .meta = value->meta,
        .node = producer,
        .constant = value->kind == TN_NODE_CONSTANT ? &value->held.tensor->view : NULL,
    };
    if (producer < 0)
        b->in[region->n_in++] = number;
    return number;
}

static tn_status add_node(struct builder *b, tn_region_node *to, int64_t number, tn_node *node)
{
    int32_t *in = tn__arena_alloc(b->flat->arena,
                                  ((size_t)node->n_in + (size_t)node->n_out + 1) * sizeof *in);
    int32_t *out = in + node->n_in;

    if (in == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < node->n_in; i++) {
        in[i] = -1;
        if (tn__graph_is_none(node->in[i]))
            continue;
        in[i] = b->value_of[node->in[i]->id];
        if (in[i] < 0)
            in[i] = add_value(b, node->in[i], -1);
    }
    for (int32_t i = 0; i < node->n_out; i++)
        out[i] = add_value(b, node->items != NULL ? node->items[i] : node, number);
    *to = (tn_region_node){ .name = node->name,
                            .op = &node->op->def,
                            .options = node->options,
                            .in = in,
                            .out = out,
                            .n_in = (int32_t)node->n_in,
                            .n_out = node->n_out };
    return TN_OK;
}

/* Finds the values that nodes outside of the set use. They are the outputs of the region. */
static void find_seen(struct builder *b)
{
    tn_region *region = &b->flat->region;

    for (int64_t v = 0; v < region->n_values; v++) {
        const tn_node *value = b->flat->values[v];

        for (int64_t i = 0; b->values[v].node >= 0 && i < value->n_users; i++)
            if (b->flat->number_of[value->users[i].user->id] < 0)
                b->values[v].flags = TN_REGION_SEEN;
        if (b->values[v].flags != 0)
            b->out[region->n_out++] = (int32_t)v;
    }
}

tn_status tn__region_flatten(tn__region_flat *flat, const tn_graph *graph, const tn_device *device,
                             tn_node *const *nodes, int64_t count)
{
    size_t most = (size_t)most_values(nodes, count), ids = (size_t)graph->next_id + 1;
    struct builder b = { .flat = flat };
    tn_region_node *rows;
    tn_status status = TN_OK;

    *flat = (tn__region_flat){ .region = { TN_HEAD(tn_region), .device = device } };
    flat->arena = tn__arena_new();
    if (flat->arena == NULL)
        return TN_ERR_MEMORY;
    rows = tn__arena_alloc(flat->arena, ((size_t)count + 1) * sizeof *rows);
    flat->nodes = tn__arena_alloc(flat->arena, ((size_t)count + 1) * sizeof *flat->nodes);
    flat->values = tn__arena_alloc(flat->arena, most * sizeof *flat->values);
    flat->number_of = tn__arena_alloc(flat->arena, ids * sizeof *flat->number_of);
    b.values = tn__arena_alloc(flat->arena, most * sizeof *b.values);
    b.value_of = tn__arena_alloc(flat->arena, ids * sizeof *b.value_of);
    b.in = tn__arena_alloc(flat->arena, most * sizeof *b.in);
    b.out = tn__arena_alloc(flat->arena, most * sizeof *b.out);
    if (rows == NULL || flat->nodes == NULL || flat->values == NULL || flat->number_of == NULL ||
        b.values == NULL || b.value_of == NULL || b.in == NULL || b.out == NULL)
        return TN_ERR_MEMORY;
    memset(flat->number_of, -1, ids * sizeof *flat->number_of);
    memset(b.value_of, -1, ids * sizeof *b.value_of);
    for (int64_t i = 0; i < count; i++) {
        flat->nodes[i] = nodes[i];
        flat->number_of[nodes[i]->id] = (int32_t)i;
    }
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = add_node(&b, &rows[i], i, nodes[i]);
    if (status != TN_OK)
        return status;
    find_seen(&b);
    flat->region.nodes = rows;
    flat->region.n_nodes = count;
    flat->region.values = b.values;
    flat->region.in = b.in;
    flat->region.out = b.out;
    return TN_OK;
}

void tn__region_flat_free(tn__region_flat *flat)
{
    tn__arena_free(flat->arena);
    flat->arena = NULL;
}

/* ---- sets that can run as one ---------------------------------------------------------------- */

/* Returns the first marked node of which the node uses a value, or NULL. */
static const tn_node *uses_marked(const tn_node *node, const uint8_t *marks)
{
    for (int64_t i = 0; i < node->n_in; i++)
        if (!tn__graph_is_none(node->in[i]) && marks[tn__region_producer(node->in[i])->id])
            return tn__region_producer(node->in[i]);
    return NULL;
}

static tn_status not_convex(const tn_node *between, const tn_node *node)
{
    return tn_fail(TN_ERR_VALUE,
                   "claim: not convex: node %s, which was not claimed, %s, and claimed node %s "
                   "uses it",
                   between->name,
                   tn__graph_draws(between)
                       ? "depends on a claimed node or draws random numbers after one that does"
                       : "depends on a claimed node",
                   node->name);
}

/* Nodes that depend on a chosen one run after the region. Draws keep their order: one that comes
 * after a draw that depends on a chosen node counts as dependent, too. */
tn_status tn__region_convex(const tn_graph *graph, const tn__region_flat *flat,
                            const uint8_t *chosen, uint8_t *depends)
{
    bool draw_depends = false; /* whether a draw so far depends on a chosen node */
    int64_t met = 0, count = 0;

    for (int64_t i = 0; i < flat->region.n_nodes; i++)
        count += chosen[flat->nodes[i]->id];
    for (const tn_node *node = graph->steps; node != NULL && met < count; node = node->next) {
        const tn_node *between = uses_marked(node, depends);

        if (node->kind == TN_NODE_ITEM)
            continue;
        if (chosen[node->id]) {
            if (between != NULL)
                return not_convex(between, node);
            met++;
            continue;
        }
        depends[node->id] = between != NULL || uses_marked(node, chosen) != NULL ||
                            (draw_depends && tn__graph_draws(node));
        draw_depends |= depends[node->id] && tn__graph_draws(node);
    }
    return TN_OK;
}
