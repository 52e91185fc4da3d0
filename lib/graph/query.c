/* SPDX-License-Identifier: MIT
 *
 * What nodes write, where they come from, and which nodes are not needed. */
#include "lib/graph/private.h"

uint64_t tn_node_writes(const tn_node *node)
{
    return tn__graph_node_asked(node, "tn_node_writes: node") ? node->writes : 0;
}

const char *tn_node_target(const tn_node *node)
{
    if (!tn__graph_node_asked(node, "tn_node_target: node"))
        return NULL;
    if (node->op != NULL)
        return node->op->def.name;
    if (tn__graph_has_blocks(node))
        return node->kind == TN_NODE_IF ? "cond" : "loop";
    return node->region != NULL ? node->region->def->name : tn__graph_target(node);
}

int64_t tn_node_most(const tn_node *node)
{
    return tn__graph_node_asked(node, "tn_node_most: node") && node->kind == TN_NODE_LOOP
               ? node->most
               : -1;
}

tn_module *tn_node_module(const tn_node *node)
{
    if (!tn__graph_node_asked(node, "tn_node_module: node"))
        return NULL;
    if (node->callee != NULL)
        return node->callee->module;
    tn_fail(TN_ERR_TYPE,
            "tn_node_module: node %s is not a call of a module; expected a node of "
            "kind TN_NODE_CALL",
            node->name);
    return NULL;
}

const char *tn_node_path(const tn_node *node)
{
    return tn__graph_node_asked(node, "tn_node_path: node") ? node->path : NULL;
}

bool tn_node_is_no_grad(const tn_node *node)
{
    return tn__graph_node_asked(node, "tn_node_is_no_grad: node") && node->no_grad;
}

tn_status tn_node_set_module(tn_node *node, tn_module *module)
{
    tn_status status = tn__graph_node_check(NULL, node, "tn_node_set_module: node");
    tn__callee *callee;

    if (status != TN_OK)
        return status;
    if (!tn__not_null(module, "tn_node_set_module: module"))
        return tn_error_last_code();
    if (node->callee == NULL)
        return tn_fail(TN_ERR_TYPE,
                       "tn_node_set_module: node %s is not a call of a module; "
                       "expected a node of kind TN_NODE_CALL",
                       node->name);
    callee = tn__graph_callee_new(module, node->callee->in, node->callee->out);
    if (callee == NULL)
        return tn_error_last_code();
    tn__graph_callee_drop(node->callee);
    node->callee = callee;
    return TN_OK;
}

tn_status tn__graph_inherit_place(tn_node *node, const tn_node *from)
{
    tn_status status = TN_OK;

    if (tn__graph_is_leaf(node) || node->kind == TN_NODE_ITEM)
        return TN_OK;
    status = tn__graph_set_text(&node->path, from->path);
    return status == TN_OK ? tn__graph_set_text(&node->type, from->type) : status;
}

tn_status tn__graph_inherit(tn_node *node, const tn_node *from)
{
    bool same = node->n_out == 1 && from->n_out == 1 && node->meta->ndim == from->meta->ndim;
    bool fresh = !tn__graph_is_leaf(node) && node->kind != TN_NODE_ITEM;
    tn_status status = TN_OK;

    if (fresh && node->path == NULL && node->type == NULL)
        status = tn__graph_inherit_place(node, from);
    for (int32_t d = 0; same && d < node->meta->ndim; d++)
        same = node->meta->shape[d] == from->meta->shape[d];
    for (int64_t i = 0; fresh && same && i < from->n_exprs && status == TN_OK; i++)
        if (from->exprs[i].row < 0 &&
            tn__symbols_find(node, from->exprs[i].row, from->exprs[i].item) == NULL)
            status = tn__symbols_add(node, &from->exprs[i]);
    return status;
}

/* Returns whether a node only computes its values, so that it is not needed if they are not. */
static bool is_pure(const tn_node *node)
{
    if (node->kind == TN_NODE_SLOT || node->kind == TN_NODE_CONSTANT ||
        node->kind == TN_NODE_REGION)
        return true;
    if (tn__graph_has_blocks(node))
        return !tn__graph_draws(node);
    return node->kind == TN_NODE_OP && node->writes == 0 && node->n_out > 0 &&
           (node->op->flags & (TN_OP_RANDOM | TN_OP_ORDERED)) == 0;
}

int64_t tn_graph_dead_code(tn_graph *graph)
{
    int64_t removed = 0;
    tn_node *node, *before;

    if (!tn__not_null(graph, "tn_graph_dead_code: graph"))
        return -1;
    for (node = graph->last; node != NULL; node = before) { /* users come before what they use */
        int64_t users = node->n_users;

        before = node->prev;
        for (int32_t i = 0; node->items != NULL && i < node->n_out; i++)
            users += node->items[i]->n_users;
        if (users > 0 || !is_pure(node)) {
            for (int i = 0; i < 2 && tn__graph_has_blocks(node); i++)
                removed += tn_graph_dead_code(node->blocks[i]);
            continue;
        }
        /* The items of the node come after it, and so were passed already. */
        tn__graph_node_remove(node);
        removed++;
    }
    return removed;
}

/* ---- parts ----------------------------------------------------------------------------------- */

tn_status tn_node_set_part(tn_node *node, int64_t part)
{
    tn_status status = tn__graph_node_check(NULL, node, "tn_node_set_part: node");

    if (status != TN_OK)
        return status;
    if (part != 0 && (node->writes != 0 || tn__graph_is_leaf(node) || node->kind == TN_NODE_OUTPUT))
        return tn_fail(
            TN_ERR_VALUE, "tn_node_set_part: node %s: %s; expected one that only computes values",
            node->name, node->writes != 0 ? "it writes into a tensor" : "it computes nothing");
    node->part = part;
    return TN_OK;
}

int64_t tn_node_part(const tn_node *node)
{
    return tn__graph_node_asked(node, "tn_node_part: node") ? node->part : 0;
}

bool tn_node_is_erased(const tn_node *node)
{
    return tn__graph_node_asked(node, "tn_node_is_erased: node") && node->erased;
}
