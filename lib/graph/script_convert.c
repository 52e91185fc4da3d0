/* SPDX-License-Identifier: MIT
 *
 * The graphs of a script that was converted: with the dtypes and shapes that its tensors have now.
 */
#include "lib/graph/private.h"

#define HOLDER "_constants"

/* Returns the tensor that a script has for a slot or constant of its graph; NULL and sets the error
 * if it has none. */
static tn_tensor *tensor_of(tn_module *script, const tn_node *node)
{
    char path[32 + 3 * TN__NAME_LONGEST];
    const char *target = tn__graph_target(node);
    tn_tensor *tensor;

    if (node->kind == TN_NODE_CONSTANT) {
        tn_snprint(path, sizeof path, HOLDER ".%s", target);
        target = path;
    }
    tensor = tn_module_find_tensor(script, target);
    return tn__tensor_ok(tensor) ? tensor : NULL;
}

static bool is_held(const tn_node *node)
{
    return node->kind == TN_NODE_SLOT || node->kind == TN_NODE_CONSTANT;
}

/* Returns whether the tensors have the dtypes and shapes that the graph declares. */
static bool fits(const tn_graph *graph, tn_module *script)
{
    bool same = true;

    for (const tn_node *node = graph != NULL ? graph->first : NULL;
         node != NULL && tn__graph_is_leaf(node) && same; node = node->next) {
        uint64_t mark = tn_error_mark();
        const tn_tensor *tensor = is_held(node) ? tensor_of(script, node) : NULL;

        if (tensor == NULL) {
            tn_error_restore(mark);
            continue;
        }
        same = tensor->dtype == node->meta->dtype && tensor->view.ndim == node->meta->ndim;
        for (int32_t d = 0; same && d < node->meta->ndim; d++)
            same = tensor->view.shape[d] == node->meta->shape[d];
    }
    return same;
}

static bool all_fit(tn_graph *const graphs[3], tn_module *script)
{
    return fits(graphs[0], script) && fits(graphs[1], script) && fits(graphs[2], script);
}

/* Writes the dtypes and shapes of the tensors into the graph. An input with a dtype that the
 * tensors had before gets the dtype that they have now. */
static tn_status retype(tn_graph *graph, tn_module *script)
{
    tn_dtype now[64] = { 0 };
    tn_status status = TN_OK;

    for (tn_node *node = graph->first; node != NULL && tn__graph_is_leaf(node) && status == TN_OK;
         node = node->next) {
        tn_tensor *tensor = is_held(node) ? tensor_of(script, node) : NULL;

        if (!is_held(node))
            continue;
        if (tensor == NULL)
            return tn_error_last_code();
        if (tensor->dtype != node->meta->dtype && node->meta->dtype < tn__countof(now))
            now[node->meta->dtype] = tensor->dtype;
        tn__build_meta_of(tensor, node->meta);
        if (node->kind == TN_NODE_SLOT) { /* for tn_graph_lint */
            tn__graph_guard_drop(&node->held);
            node->held = (tn__guard){ .tensor = tn_tensor_keep(tensor) };
        }
    }
    for (tn_node *node = graph->first; node != NULL && tn__graph_is_leaf(node); node = node->next)
        if (node->kind == TN_NODE_INPUT && node->meta->dtype < tn__countof(now) &&
            now[node->meta->dtype] != 0)
            node->meta->dtype = now[node->meta->dtype];
    status = tn_graph_lint(graph);
    return status == TN_OK ? TN_OK : tn_error_prefix("script: it was converted: ");
}

/* Returns a graph with the nodes of `graph` for the tensors that the script has now. */
static tn_graph *retyped(tn_graph *graph, tn_module *script)
{
    tn_graph *copy = tn_graph_copy(graph);
    tn_status status = copy != NULL ? retype(copy, script) : tn_error_last_code();
    const tn_node *from = graph->first;

    /* The tensors of this script may be freed before the graph, which copies of the script
     * share. */
    for (tn_node *node = copy != NULL ? copy->first : NULL; node != NULL && tn__graph_is_leaf(node);
         node = node->next, from = from->next) {
        if (node->kind != TN_NODE_SLOT)
            continue;
        tn__graph_guard_drop(&node->held);
        node->held = (tn__guard){ .tensor = tn_tensor_keep(from->held.tensor) };
    }
    if (status == TN_OK)
        return copy;
    tn_graph_drop(copy);
    return NULL;
}

static tn_graph *const *retyped_graphs(tn__modes *modes, tn_module *script)
{
    tn__retyped *at = modes->retyped;

    while (at != NULL && !all_fit(at->graphs, script))
        at = at->next;
    if (at != NULL)
        return at->graphs;
    at = tn_calloc(1, sizeof *at);
    for (int i = 0; i < 3 && at != NULL; i++) {
        if (modes->graphs[i] == NULL)
            continue;
        at->graphs[i] = i == 1 && modes->graphs[1] == modes->graphs[0]
                            ? tn_graph_keep(at->graphs[0])
                            : retyped(modes->graphs[i], script);
        if (at->graphs[i] == NULL) {
            tn_graph_drop(at->graphs[0]);
            tn_graph_drop(at->graphs[1]);
            tn_free(at);
            at = NULL;
        }
    }
    if (at == NULL)
        return NULL;
    at->next = modes->retyped;
    modes->retyped = at;
    return at->graphs;
}

tn_graph *const *tn__script_graphs(tn__modes *modes, tn_module *script)
{
    tn_graph *const *graphs;

    if (all_fit(modes->graphs, script))
        return modes->graphs;
    pthread_mutex_lock(&modes->lock);
    graphs = retyped_graphs(modes, script);
    pthread_mutex_unlock(&modes->lock);
    return graphs;
}
