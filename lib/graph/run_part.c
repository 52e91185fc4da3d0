/* SPDX-License-Identifier: MIT
 *
 * Parts of a graph that backward computes again: the nodes run as the function of a recomputation,
 * whose inputs are the values from before and whose outputs are those that later nodes use. */
#include "lib/graph/run.h"

/* The nodes of a part, and what a second run needs. */
struct part {
    _Atomic int32_t refs; /* of the run, and of the recomputation */
    tn_graph *graph;      /* owned */
    /* The calls of modules in the part, and these modules. There is no reference to the module of
     * the graph, because a plan of that module may own this history. */
    tn_node **calls;
    tn_module **called; /* owned */
    int64_t n_calls;
    tn_node *first, *last;
    tn_node **in, **out; /* `in`: nodes before the part that it uses; `out`: nodes of the part that
                            later nodes use */
    int64_t n_in, n_out;
    int64_t symbols[TN__SYMBOLS];
    bool bound, autocast;
};

static void release(void *user)
{
    struct part *part = user;

    if (atomic_fetch_sub_explicit(&part->refs, 1, memory_order_acq_rel) != 1)
        return;
    tn_graph_drop(part->graph);
    for (int64_t i = 0; i < part->n_calls; i++)
        tn_module_drop(part->called[i]);
    tn_free(part->calls);
    tn_free(part->called);
    tn_free(part->in);
    tn_free(part->out);
    tn_free(part);
}

static bool has(tn_node *const *list, int64_t count, const tn_node *node)
{
    for (int64_t i = 0; i < count; i++)
        if (list[i] == node)
            return true;
    return false;
}

/* Whether a node is in the part, whose nodes follow one another in the graph. */
static bool is_inside(const struct part *part, const tn_node *node)
{
    const tn_node *at = part->first;

    while (at != node && at != part->last)
        at = at->next;
    return at == node;
}

static int64_t uses_outside(const struct part *part, const tn_node *node)
{
    int64_t uses = node->n_uses;

    for (const tn_node *user = part->first;; user = user->next) {
        for (int64_t i = 0; user->kind != TN_NODE_ITEM && i < user->n_in; i++)
            uses -= user->in[i] == node;
        if (user == part->last)
            return uses;
    }
}

static void add_inputs(struct part *part, const tn_node *node)
{
    for (int64_t i = 0; node->kind != TN_NODE_ITEM && i < node->n_in; i++)
        if (!tn__graph_is_none(node->in[i]) && !is_inside(part, node->in[i]) &&
            !has(part->in, part->n_in, node->in[i]))
            part->in[part->n_in++] = node->in[i];
}

/* An operator with several outputs has its values in its items. */
static bool has_value(const tn_node *node)
{
    return node->kind == TN_NODE_ITEM || (node->items == NULL && node->n_out == 1);
}

static tn_status add_call(const tn__run *run, struct part *part, tn_node *node)
{
    tn_module *module = run->self != NULL ? tn_module_find(run->self, node->target)
                                          : node->callee->module;

    if (module == NULL)
        return tn_error_last_code();
    part->calls[part->n_calls] = node;
    part->called[part->n_calls++] = tn_module_keep(module);
    return TN_OK;
}

static tn_status list_values(const tn__run *run, struct part *part)
{
    int64_t n_in = 0, n_nodes = 0;

    for (const tn_node *node = part->first;; node = node->next) {
        n_in += node->n_in;
        n_nodes++;
        if (node == part->last)
            break;
    }
    part->in = tn_malloc((size_t)(n_in + 1) * sizeof(tn_node *));
    part->out = tn_malloc((size_t)(n_nodes + 1) * sizeof(tn_node *));
    part->calls = tn_malloc((size_t)(n_nodes + 1) * sizeof(tn_node *));
    part->called = tn_malloc((size_t)(n_nodes + 1) * sizeof(tn_module *));
    if (part->in == NULL || part->out == NULL || part->calls == NULL || part->called == NULL)
        return TN_ERR_MEMORY;
    for (tn_node *node = part->first;; node = node->next) {
        add_inputs(part, node);
        if (node->kind == TN_NODE_CALL && add_call(run, part, node) != TN_OK)
            return tn_error_last_code();
        if (has_value(node) && uses_outside(part, node) > 0)
            part->out[part->n_out++] = node;
        if (node == part->last)
            return TN_OK;
    }
}

/* The function that is recomputed. */
static tn_status call(void *user, tn_tensor *const *in, tn_tensor **out)
{
    const struct part *part = user;
    tn__run run = { .graph = part->graph,
                    .calls = part->calls,
                    .called = part->called,
                    .autocast = part->autocast,
                    .bound = part->bound };
    bool autocast = tn__autocast_pause();
    tn_status status = tn__run_begin(&run);

    memcpy(run.symbols, part->symbols, sizeof run.symbols);
    for (int64_t i = 0; i < part->n_in && status == TN_OK; i++)
        run.values[part->in[i]->id] = (tn__run_value){ tn_tensor_keep(in[i]),
                                                       INT64_MAX }; /* until the end */
    for (tn_node *node = part->first; status == TN_OK; node = node->next) {
        status = tn__run_node(&run, node);
        if (node == part->last)
            break;
    }
    for (int64_t i = 0; i < part->n_out && status == TN_OK; i++) {
        out[i] = tn_tensor_to_scope(tn_tensor_keep(run.values[part->out[i]->id].tensor));
        if (out[i] == NULL)
            status = tn_error_last_code();
    }
    tn__run_end(&run);
    tn__autocast_resume(autocast);
    return status;
}

static struct part *part_new(const tn__run *run, tn_node *first)
{
    struct part *part = tn_calloc(1, sizeof *part);

    if (part == NULL)
        return NULL;
    atomic_store_explicit(&part->refs, 1, memory_order_relaxed);
    part->graph = tn_graph_keep(run->graph);
    part->first = part->last = first;
    while (part->last->next != NULL &&
           (part->last->next->part == first->part || part->last->next->kind == TN_NODE_ITEM))
        part->last = part->last->next;
    part->bound = run->bound;
    part->autocast = run->autocast;
    memcpy(part->symbols, run->symbols, sizeof part->symbols);
    if (list_values(run, part) == TN_OK)
        return part;
    release(part);
    return NULL;
}

/* Stores the results, and drops the inputs that no later node uses. */
static void take_results(tn__run *run, const struct part *part, tn_tensor *const *out)
{
    for (const tn_node *node = part->first;; node = node->next) {
        if (node->kind != TN_NODE_ITEM)
            for (int64_t i = 0; i < node->n_in; i++)
                if (!tn__graph_is_none(node->in[i]) && has(part->in, part->n_in, node->in[i]))
                    tn__run_release(run, node->in[i]);
        if (node == part->last)
            break;
    }
    for (int64_t i = 0; i < part->n_out; i++)
        run->values[part->out[i]->id] = (tn__run_value){ tn_tensor_keep(out[i]),
                                                         uses_outside(part, part->out[i]) };
}

tn_status tn__run_part(tn__run *run, tn_node **node)
{
    struct part *part = part_new(run, *node);
    uint64_t scope = tn_scope_begin();
    tn_tensor **tensors = part != NULL ? tn_calloc((size_t)(part->n_in + part->n_out) + 1,
                                                   sizeof(tn_tensor *))
                                       : NULL;
    tn_status status = tensors != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; status == TN_OK && i < part->n_in; i++) {
        tensors[i] = run->values[part->in[i]->id].tensor;
        if (tensors[i] == NULL)
            status = tn_fail(TN_ERR_VALUE,
                             "tn_graph_run: node %s does not come before a node that uses it; "
                             "tn_graph_lint checks the order",
                             part->in[i]->name);
    }
    if (status == TN_OK) {
        atomic_fetch_add_explicit(&part->refs, 1, memory_order_relaxed);
        status = tn_recompute_call(call, part, release, tensors, part->n_in, tensors + part->n_in,
                                   part->n_out, 0);
    }
    if (status == TN_OK) {
        take_results(run, part, tensors + part->n_in);
        *node = part->last;
    }
    tn_free(tensors);
    tn_scope_end(scope);
    if (part != NULL)
        release(part);
    return status;
}
