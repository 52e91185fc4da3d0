/* SPDX-License-Identifier: MIT
 *
 * What nodes write, where they come from, and which nodes nobody needs. */
#include "core/graph/private.h"

static bool asked(const tn_node *node, const char *what)
{
    if (node != NULL && !tn__graph_is_none(node))
        return true;
    tn__graph_node_check(NULL, node, what);
    return false;
}

uint64_t tn_node_writes(const tn_node *node)
{
    return asked(node, "tn_node_writes: node") ? node->writes : 0;
}

const char *tn_node_target(const tn_node *node)
{
    if (!asked(node, "tn_node_target: node"))
        return NULL;
    if (node->op != NULL)
        return node->op->def.name;
    return node->region != NULL ? node->region->def->name : tn__graph_target(node);
}

tn_module *tn_node_module(const tn_node *node)
{
    if (!asked(node, "tn_node_module: node"))
        return NULL;
    if (node->callee != NULL)
        return node->callee->module;
    tn_fail(TN_ERR_TYPE, "tn_node_module: node %s is not a call of a module", node->name);
    return NULL;
}

const char *tn_node_path(const tn_node *node)
{
    return asked(node, "tn_node_path: node") ? node->path : NULL;
}

/* Returns whether a node only computes its values, so that it is not needed if they are not. */
static bool is_pure(const tn_node *node)
{
    if (node->kind == TN_NODE_SLOT || node->kind == TN_NODE_CONSTANT ||
        node->kind == TN_NODE_REGION)
        return true;
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
        if (users > 0 || !is_pure(node))
            continue;
        /* The items of the node come after it, and so were passed already. */
        tn__graph_node_remove(node);
        removed++;
    }
    return removed;
}
