/* SPDX-License-Identifier: MIT
 *
 * Replaces nodes of a graph by a compiled region. The nodes become a graph of their own, the body
 * of the region. */
#include "lib/graph/private.h"

/* ---- the body -------------------------------------------------------------------------------- */

static tn_status body_inputs(const tn_region *region, tn_graph *body, tn_node **made)
{
    for (int64_t i = 0; i < region->n_in; i++) {
        const tn_region_value *value = &region->values[region->in[i]];
        tn_node *node = tn__graph_node_new(body, TN_NODE_INPUT, value->name, false, 0, 1);

        if (node == NULL)
            return tn_error_last_code();
        node->meta[0] = *value->meta;
        body->n_inputs++;
        tn__graph_node_link(node, NULL);
        made[region->in[i]] = node;
    }
    return TN_OK;
}

static tn_status body_nodes(const tn__region_flat *flat, tn_graph *body, tn_node **made)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < flat->region.n_nodes && status == TN_OK; i++) {
        const tn_region_node *row = &flat->region.nodes[i];
        tn_node *node = tn__graph_node_copy(body, flat->nodes[i], false);

        if (node == NULL)
            return tn_error_last_code();
        for (int32_t k = 0; k < row->n_in && status == TN_OK; k++)
            status = tn__graph_node_use(node, k, row->in[k] < 0 ? TN_NODE_NONE : made[row->in[k]]);
        if (status == TN_OK)
            status = tn__graph_node_items(node);
        if (status != TN_OK) {
            tn__graph_node_undo(node);
            return status;
        }
        tn__graph_node_link(node, NULL);
        tn__graph_node_link_items(node);
        for (int32_t k = 0; k < row->n_out; k++)
            made[row->out[k]] = tn_node_item(node, k);
    }
    return status;
}

tn_graph *tn__region_body(const tn__region_flat *flat)
{
    const tn_region *region = &flat->region;
    tn_node **made = tn_calloc((size_t)region->n_values + 1, sizeof(tn_node *));
    tn_node **out = tn_calloc((size_t)region->n_out + 1, sizeof(tn_node *));
    tn_graph *body = tn_graph_new();
    tn_status status = made != NULL && out != NULL && body != NULL ? TN_OK : TN_ERR_MEMORY;

    if (status == TN_OK)
        status = body_inputs(region, body, made);
    if (status == TN_OK)
        status = body_nodes(flat, body, made);
    for (int64_t i = 0; i < region->n_out && status == TN_OK; i++)
        out[i] = made[region->out[i]];
    if (status == TN_OK)
        status = tn_graph_output(body, out, region->n_out);
    tn_free(made);
    tn_free(out);
    if (status == TN_OK)
        return body;
    tn_graph_drop(body);
    return NULL;
}

/* ---- the region ------------------------------------------------------------------------------ */

static tn_status fill(tn_node *node, const tn__region_flat *flat, tn__region *region)
{
    const tn_region *plan = &flat->region;
    tn_status status = TN_OK;

    for (int64_t i = 0; i < plan->n_out; i++)
        node->meta[i] = region->out[i];
    for (int64_t i = 0; i < plan->n_in && status == TN_OK; i++)
        status = tn__graph_node_use(node, i, flat->values[plan->in[i]]);
    return status == TN_OK ? tn__graph_node_items(node) : status;
}

/* Moves the nodes that depend on the region but come before it to the place after it. */
static void move_dependants(tn_node *first, const tn_node *region, tn_node *after,
                            const tn__region_flat *flat, const uint8_t *depends)
{
    for (tn_node *node = first, *next; node != region; node = next) {
        next = node->next;
        while (next->kind == TN_NODE_ITEM)
            next = next->next;
        if (flat->number_of[node->id] < 0 && depends[node->id])
            tn__graph_node_move(node, after);
    }
}

static tn_status put_in(tn_graph *graph, const tn__region_flat *flat, tn_node *node,
                        uint8_t *chosen, uint8_t *depends)
{
    const tn_region *plan = &flat->region;
    tn_node *after = flat->nodes[plan->n_nodes - 1];
    tn_status status;

    for (int64_t i = 0; i < plan->n_nodes; i++)
        chosen[flat->nodes[i]->id] = 1;
    status = tn__region_convex(graph, flat, chosen, depends);
    if (status != TN_OK)
        return status;
    do
        after = after->next; /* ends at the output at the latest */
    while (after->kind == TN_NODE_ITEM);
    tn__graph_node_link(node, after);
    tn__graph_node_link_items(node);
    move_dependants(flat->nodes[0], node, after, flat, depends);
    for (int64_t i = 0; i < plan->n_out && status == TN_OK; i++)
        if (tn_node_replace_uses(flat->values[plan->out[i]], tn_node_item(node, i)) < 0)
            status = tn_error_last_code();
    for (int64_t i = plan->n_nodes - 1; i >= 0 && status == TN_OK; i--)
        tn__graph_node_remove(flat->nodes[i]);
    return status;
}

tn_status tn__region_replace(tn_graph *graph, const tn__region_flat *flat, tn__region *region)
{
    tn_node *node = tn__graph_node_new(graph, TN_NODE_REGION, region->def->name, false,
                                       flat->region.n_in, (int32_t)flat->region.n_out);
    uint8_t *marks = tn_calloc(2, (size_t)graph->next_id + 1);
    tn_status status = node != NULL && marks != NULL ? TN_OK : TN_ERR_MEMORY;

    if (node != NULL)
        node->region = region;
    else
        tn__region_drop(region);
    if (status == TN_OK)
        status = fill(node, flat, region);
    if (status != TN_OK)
        tn__graph_node_undo(node);
    else
        status = put_in(graph, flat, node, marks, marks + graph->next_id + 1);
    tn_free(marks);
    return status;
}
