/* SPDX-License-Identifier: MIT
 *
 * Makes a plan of a graph: the interpreter runs the graph on tensors without memory, and each
 * kernel that would run is recorded in its place (steps.c). So a plan has the kernels, layouts
 * and order of the interpreter, decompositions and copies included. */
#include "core/base/vector.h"
#include "lib/plan/plan.h"

/* ---- inputs, slots, results ------------------------------------------------------------------ */

/* Makes inputs without memory like those given. */
static tn_status make_inputs(tn__plan_recorder *r, tn_tensor *const *in)
{
    tn__plan_binding *b = r->b;

    for (int64_t i = 0; i < b->n_in; i++) {
        tn_meta meta;
        int32_t root;

        tn__tensor_meta(in[i], &meta);
        b->like[i] = tn__trace_make_like(&meta, in[i]->device);
        if (b->like[i] == NULL)
            return tn_error_last_code();
        tn_tensor_keep(b->like[i]);
        root = tn__plan_steps_root(r, b->like[i]->storage);
        if (root < 0)
            return TN_ERR_MEMORY;
        b->roots[root].place = TN__PLAN_INPUT;
        b->roots[root].index = (int32_t)i;
        if (b->device == NULL)
            b->device = in[i]->device;
    }
    return TN_OK;
}

tn_status tn__plan_slot_add(tn__plan_binding *b, tn_tensor *tensor)
{
    int64_t *dims = tn__arena_alloc(b->arena, (size_t)tensor->view.ndim * 2 * sizeof *dims + 1);
    tn__plan_slot *slot;

    if (dims == NULL ||
        !tn__vector_room(&b->slots, &b->slots_capacity, b->n_slots + 1, sizeof *b->slots))
        return TN_ERR_MEMORY;
    slot = &b->slots[b->n_slots++];
    *slot = (tn__plan_slot){ tn_tensor_keep(tensor), tensor->storage, tensor->view };
    slot->view.shape = dims;
    slot->view.strides = dims + tensor->view.ndim;
    for (int32_t d = 0; d < tensor->view.ndim; d++) {
        dims[d] = tensor->view.shape[d];
        dims[tensor->view.ndim + d] = tensor->view.strides[d];
    }
    return TN_OK;
}

static tn_status find_slots(tn__plan_recorder *r, const tn_graph *graph)
{
    tn__plan_binding *b = r->b;

    for (const tn_node *node = graph->first; node != NULL && tn__graph_is_leaf(node);
         node = node->next) {
        tn_tensor *tensor = node->held.tensor;

        if (tensor == NULL)
            continue;
        if (b->device == NULL)
            b->device = tensor->device;
        if (tn__plan_steps_root(r, tensor->storage) < 0 || tn__plan_slot_add(b, tensor) != TN_OK)
            return TN_ERR_MEMORY;
    }
    return TN_OK;
}

/* Returns whether result i is not a new tensor but an earlier result, an input or a slot. Then sets
 * the members of *result that say which. */
static bool is_known(const tn__plan_binding *b, tn_tensor *const *out, int64_t i,
                     tn__plan_result *result)
{
    for (int64_t k = 0; k < i && result->same < 0; k++)
        if (out[k] == out[i])
            result->same = (int32_t)k;
    for (int64_t k = 0; k < b->n_in && result->input < 0; k++)
        if (out[i] == b->like[k])
            result->input = (int32_t)k;
    for (int64_t k = 0; k < b->n_slots && result->tensor == NULL; k++)
        if (out[i] == b->slots[k].tensor)
            result->tensor = tn_tensor_keep(out[i]);
    return result->same >= 0 || result->input >= 0 || result->tensor != NULL;
}

static bool is_slot_memory(const tn__plan_binding *b, const tn_tensor *tensor)
{
    for (int64_t k = 0; k < b->n_slots; k++)
        if (b->slots[k].storage == tensor->storage)
            return true;
    return false;
}

static tn_status see_result(tn__plan_recorder *r, tn_tensor *const *out, int64_t i)
{
    tn__plan_binding *b = r->b;
    tn__plan_result *result = &b->results[i];
    tn__plan_root *root;

    *result = (tn__plan_result){ .same = -1, .input = -1, .root = -1 };
    if (is_known(b, out, i, result))
        return TN_OK;
    result->root = tn__plan_steps_root(r, out[i]->storage);
    if (result->root < 0)
        return TN_ERR_MEMORY;
    result->blind = out[i]->blind;
    tn__tensor_meta(out[i], &result->meta);
    root = &b->roots[result->root];
    if (root->place == TN__PLAN_HELD && !is_slot_memory(b, out[i]))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "output %lld: it was made while the plan was made, and each run would "
                       "return it; expected a result that operators compute in each run",
                       (long long)i);
    if (root->place == TN__PLAN_SLAB) {
        root->place = TN__PLAN_FRESH;
        root->index = (int32_t)b->n_fresh++;
    }
    if (root->place == TN__PLAN_FRESH) {
        root->first = root->first > root->last ? 0 : root->first;
        root->last = (int32_t)b->n_steps;
    }
    return TN_OK;
}

static tn_status see_results(tn__plan_recorder *r, tn_tensor *const *out)
{
    tn__plan_binding *b = r->b;
    tn_status status = TN_OK;

    b->results = tn_calloc((size_t)b->n_out + 1, sizeof *b->results);
    if (b->results == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < b->n_out && status == TN_OK; i++)
        status = see_result(r, out, i);
    return status;
}

/* ---- the recording --------------------------------------------------------------------------- */

/* What a recording runs. */
struct recorded {
    tn_graph *graph;
    tn_tensor **out;
};

static tn_status run_node(void *user, tn_node *node, tn_tensor *const *in, int64_t n_in,
                          tn_tensor **out, int64_t n_out)
{
    tn__plan_recorder *r = user;

    r->node = node;
    return tn_node_run(node, in, n_in, out, n_out);
}

static tn_status run_graph(tn__plan_recorder *r, void *user)
{
    const struct recorded *recorded = user;
    tn_status status = tn_grad_begin(false);

    if (status == TN_OK)
        status = tn__run_graph(recorded->graph, NULL, run_node, r, r->b->like, recorded->out);
    tn_grad_end();
    return status;
}

static tn_status record(tn__plan_recorder *r, tn_graph *graph, tn_tensor *const *in)
{
    tn__plan_binding *b = r->b;
    struct recorded recorded = { .graph = graph };
    tn_status status;

    b->n_in = graph->n_inputs;
    b->n_out = graph->output->n_in;
    b->arena = tn__arena_new();
    b->like = tn_calloc((size_t)b->n_in + 1, sizeof(tn_tensor *));
    recorded.out = tn_calloc((size_t)b->n_out + 1, sizeof(tn_tensor *));
    status = b->arena != NULL && b->like != NULL && recorded.out != NULL ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = make_inputs(r, in);
    if (status == TN_OK)
        status = find_slots(r, graph);
    if (status == TN_OK && b->device == NULL && (b->device = tn_default_device()) == NULL)
        status = tn_error_last_code();
    if (status == TN_OK)
        status = tn__plan_steps_run(r, run_graph, &recorded);
    if (status == TN_OK)
        status = see_results(r, recorded.out);
    tn_free(recorded.out);
    if (status == TN_OK)
        status = tn__plan_steps_check(r);
    if (status == TN_OK)
        status = tn__plan_lay_out(b);
    return status == TN_OK ? tn__plan_binding_prepare(b) : status;
}

tn__plan_binding *tn__plan_record(tn_graph *graph, tn_tensor *const *in)
{
    tn__plan_recorder r = { .b = NULL };
    uint64_t scope = tn_scope_begin();
    tn_status status = TN_ERR_MEMORY;

    r.b = tn_calloc(1, sizeof *r.b);
    if (r.b != NULL) {
        atomic_store_explicit(&r.b->refs, 1, memory_order_relaxed);
        status = record(&r, graph, in);
        if (r.b->device != NULL)
            atomic_fetch_add((_Atomic int32_t *)(uintptr_t)&r.b->device->handles, 1);
    }
    tn__plan_steps_free(&r);
    tn_scope_end(scope);
    if (status == TN_OK)
        return r.b;
    tn__plan_binding_drop(r.b);
    return NULL;
}
