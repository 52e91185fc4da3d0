/* SPDX-License-Identifier: MIT
 *
 * Finds the steps of a plan: the interpreter runs the graph on tensors without memory, and each
 * kernel that would run is recorded in its place. So a plan has the kernels, layouts and order of
 * the interpreter, decompositions and copies included. */
#include "core/base/map.h"
#include "core/base/vector.h"
#include "core/graph/control.h"
#include "core/graph/plan.h"
#include "core/module/hooks.h"

/* A recording in progress. */
struct recorder {
    tn__tracer tracer; /* first: a tn__tracer is cast to this struct */
    tn__plan_binding *b;
    tn__map roots;       /* from storages to the number of their root, plus 1 */
    const tn_node *node; /* the node that runs */
    tn_error failure;    /* the first one, because code may ignore it */
    bool failed;
};

static struct recorder *recorder_of(tn__tracer *tracer)
{
    return (struct recorder *)(void *)tracer;
}

static tn_status keep_failure(struct recorder *r)
{
    if (!r->failed)
        r->failure = *tn_error_last();
    r->failed = true;
    return tn_error_last_code();
}

/* ---- roots ----------------------------------------------------------------------------------- */

/* Returns the number of the root of a storage, -1 if memory runs out. */
static int32_t root_of(struct recorder *r, tn__storage *storage)
{
    tn__plan_binding *b = r->b;
    void **value = tn__map_value(&r->roots, storage);
    bool traced = (storage->flags & TN__STORAGE_TRACED) != 0;

    if (value != NULL)
        return (int32_t)(intptr_t)*value - 1;
    if (b->n_roots >= INT32_MAX - 1 ||
        !tn__vector_room(&b->roots, &b->roots_capacity, b->n_roots + 1, sizeof *b->roots) ||
        tn__map_add(&r->roots, storage) < 0)
        return -1;
    b->roots[b->n_roots] = (tn__plan_root){ .place = traced ? TN__PLAN_ARENA : TN__PLAN_HELD,
                                            .same = (int32_t)b->n_roots,
                                            .first = INT32_MAX,
                                            .last = -1,
                                            .size = storage->size,
                                            .version = atomic_load(&storage->version),
                                            .storage = tn__storage_keep(storage) };
    *tn__map_value(&r->roots, storage) = (void *)(intptr_t)(b->n_roots + 1);
    return (int32_t)b->n_roots++;
}

/* A step uses a tensor. Without a tensor the operand is absent. */
static tn_status add_operand(struct recorder *r, const tn_view *view, const tn_tensor *tensor)
{
    tn__plan_binding *b = r->b;
    tn__plan_operand *operand;
    tn__plan_root *root;
    int64_t *dims;

    if (!tn__vector_room(&b->operands, &b->operands_capacity, b->n_operands + 1,
                         sizeof *b->operands))
        return TN_ERR_MEMORY;
    operand = &b->operands[b->n_operands];
    *operand = (tn__plan_operand){ .root = -1 };
    b->n_operands++;
    if (view == NULL)
        return TN_OK;
    operand->root = root_of(r, tensor->storage);
    dims = tn__arena_alloc(b->arena, (size_t)view->ndim * 2 * sizeof *dims + 1);
    if (operand->root < 0 || dims == NULL)
        return TN_ERR_MEMORY;
    operand->view = *view;
    operand->view.shape = dims;
    operand->view.strides = dims + view->ndim;
    for (int32_t d = 0; d < view->ndim; d++) {
        operand->view.shape[d] = view->shape[d];
        operand->view.strides[d] = view->strides[d];
    }
    root = &b->roots[operand->root];
    operand->within = view->byte_offset;
    if (root->place != TN__PLAN_HELD)
        operand->within -= tensor->storage->offset;
    root->first = b->n_steps < root->first ? (int32_t)b->n_steps : root->first;
    root->last = (int32_t)b->n_steps;
    return TN_OK;
}

static tn_status add_workspace(struct recorder *r, const tn__kernel_step *from)
{
    tn_meta meta = { .dtype = TN_U8, .ndim = 1, .shape = { (int64_t)from->workspace } };
    tn_tensor *space;
    tn_status status;

    if (from->workspace == 0)
        return TN_OK;
    space = tn__tensor_make(&meta, from->device);
    status = space != NULL ? add_operand(r, &space->view, space) : tn_error_last_code();
    tn_tensor_drop(space);
    return status;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* tn_call.make_output: the shapes of all results are known. */
static tn_status no_output(const tn_call *call, int32_t index, tn_ints shape)
{
    (void)shape;
    return tn_fail(TN_ERR_RUNTIME, "%s: make_output: output %d exists already", call->op,
                   (int)index);
}

static tn_status check_written(struct recorder *r, const tn_tensor *tensor)
{
    int32_t root = root_of(r, tensor->storage);
    tn__plan_place place;

    if (root < 0)
        return TN_ERR_MEMORY;
    place = r->b->roots[root].place;
    if (place == TN__PLAN_ARENA)
        return TN_OK;
    return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                   "it writes into %s, and a plan changes nothing but its results; expected "
                   "evaluation mode, or a graph without this write",
                   place == TN__PLAN_INPUT ? "an input of the graph"
                                           : "a slot, or another tensor that exists");
}

/* Refuses what a plan cannot repeat. */
static tn_status check_step(struct recorder *r, const tn__kernel_step *from)
{
    tn_status status = TN_OK;

    if (from->device != r->b->device)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "it runs on %s, and the plan is for %s; expected one device for all steps",
                       from->device->name, r->b->device->name);
    for (int64_t i = 0; i < from->call->n_in && status == TN_OK; i++)
        if (from->call->in[i] != NULL && (from->writes >> (i < 63 ? i : 63) & 1) != 0)
            status = check_written(r, from->in[i]);
    for (int32_t i = 0; i < from->call->n_out && status == TN_OK; i++)
        status = check_written(r, from->out[i]);
    return status;
}

static tn_status copy_options(struct recorder *r, tn__plan_step *step)
{
    const void *options = step->call.options;
    const tn_op_def *def = step->op != NULL ? &step->op->def : NULL;
    void *space;

    if (options == NULL || def == NULL || def->options == NULL || options == def->defaults)
        return TN_OK;
    space = tn__arena_alloc(r->b->arena,
                            tn__options_copy_bytes(def->options, options, def->options_size));
    if (space == NULL)
        return TN_ERR_MEMORY;
    step->call.options = tn__options_copy(def->options, options, def->options_size, space);
    return TN_OK;
}

static tn_status add_step(struct recorder *r, const tn__kernel_step *from)
{
    tn__plan_binding *b = r->b;
    tn__plan_step *step;
    tn_status status = check_step(r, from);

    if (status != TN_OK)
        return status;
    if (b->n_steps >= INT32_MAX - 1 ||
        !tn__vector_room(&b->steps, &b->steps_capacity, b->n_steps + 1, sizeof *b->steps))
        return TN_ERR_MEMORY;
    step = &b->steps[b->n_steps];
    *step = (tn__plan_step){ .op = from->op,
                             .entry = from->entry,
                             .region = from->region,
                             .plugin = from->plugin,
                             .node = r->node,
                             .call = *from->call,
                             .first = b->n_operands,
                             .workspace = from->workspace > 0 };
    step->call.in = step->call.out = NULL;
    step->call.workspace = NULL;
    step->call.host = step->call.prepared = NULL;
    step->call.constant = 0;
    step->call.make_output = no_output;
    if (step->plugin == NULL)
        step->plugin = "";
    status = copy_options(r, step);
    for (int64_t i = 0; i < from->call->n_in && status == TN_OK; i++)
        status = add_operand(r, from->call->in[i], from->in[i]);
    for (int32_t i = 0; i < from->call->n_out && status == TN_OK; i++)
        status = add_operand(r, from->call->out[i], from->out[i]);
    if (status == TN_OK)
        status = add_workspace(r, from);
    if (status == TN_OK)
        b->n_steps++;
    return status;
}

/* Adds a step for a node with blocks. */
static tn_status add_control(struct recorder *r, const tn__blocks *blocks, tn_tensor *const *out)
{
    const tn_node *node = blocks->node;
    int64_t count = node->n_in + node->n_out;
    const tn_view **views = tn_malloc((size_t)count * sizeof *views);
    tn_call call = { .op = tn_node_target(node), .n_in = node->n_in, .n_out = node->n_out };
    tn__kernel_step step = { .call = &call, .in = blocks->in, .out = out };
    int64_t *symbols = NULL;
    tn_status status;

    if (views == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        views[i] = i < node->n_in ? &blocks->in[i]->view : &out[i - node->n_in]->view;
    call.in = views;
    call.out = views + node->n_in;
    step.device = r->b->device;
    for (int64_t i = 0; i < node->n_out && step.device == r->b->device; i++)
        step.device = out[i]->device;
    status = add_step(r, &step);
    tn_free(views);
    if (status == TN_OK && blocks->symbols != NULL) {
        symbols = tn__arena_alloc(r->b->arena, TN__SYMBOLS * sizeof *symbols);
        if (symbols == NULL)
            return TN_ERR_MEMORY;
        memcpy(symbols, blocks->symbols, TN__SYMBOLS * sizeof *symbols);
    }
    if (status == TN_OK) {
        r->b->steps[r->b->n_steps - 1].control = node;
        r->b->steps[r->b->n_steps - 1].symbols = symbols;
    }
    return status;
}

/* ---- functions of the tracer ----------------------------------------------------------------- */

static tn_status record_kernel(tn__tracer *tracer, const tn__kernel_step *from)
{
    struct recorder *r = recorder_of(tracer);
    tn_status status = add_step(r, from);

    if (status == TN_OK)
        return TN_OK;
    if (from->op != NULL)
        tn_error_prefix("%s: ", from->op->def.name);
    return keep_failure(r);
}

/* The code of a layer reads a tensor that exists: the plan is for the values that it has. */
static bool note_read(tn__tracer *tracer, const tn_tensor *tensor)
{
    struct recorder *r = recorder_of(tracer);
    tn__plan_binding *b = r->b;

    if (tn__vector_room(&b->reads, &b->reads_capacity, b->n_reads + 1, sizeof *b->reads))
        tn__graph_guard_set(&b->reads[b->n_reads++], (tn_tensor *)(uintptr_t)tensor, "plan");
    else
        keep_failure(r);
    return false;
}

static tn_status refuse(tn__tracer *tracer, const tn_tensor *tensor, const char *function)
{
    struct recorder *r = recorder_of(tracer);

    if (tensor != NULL)
        tn_fail(TN_ERR_NOT_IMPLEMENTED,
                "%s: it needs values that only a run has; expected steps that do not depend on "
                "values",
                function);
    else
        tn_fail(TN_ERR_NOT_IMPLEMENTED, "%s: a plan would repeat the same; expected kernels only",
                function);
    return keep_failure(r);
}

static tn_status call_op(tn__tracer *tracer, const tn_op *op, tn_tensor *const *in, int64_t n_in,
                         const void *options, tn_tensor **out, int64_t n_out, tn_tensor *into)
{
    (void)tracer;
    return tn__call_plain(op, in, n_in, options, out, n_out, into);
}

/* The plan has what the module does now: its mode may not change, and hooks are not called. */
static bool module_begin(tn__tracer *tracer, tn_module *module, tn_tensor *input,
                         const tn_pack *pack, tn_status *status)
{
    struct recorder *r = recorder_of(tracer);
    tn__plan_binding *b = r->b;

    (void)input, (void)pack;
    if ((tn__hook_kinds(module) & TN__HOOKS_AROUND) != 0)
        *status = tn_fail(TN_ERR_NOT_IMPLEMENTED,
                          "%s: it has hooks, which a plan does not call; expected none",
                          module->type);
    else if (!tn__vector_room(&b->modules, &b->modules_capacity, b->n_modules + 1,
                              sizeof(tn_module *)) ||
             !tn__vector_room(&b->training, &b->training_capacity, b->n_modules + 1, sizeof(bool)))
        *status = TN_ERR_MEMORY;
    if (*status != TN_OK) {
        keep_failure(r);
        return false;
    }
    b->training[b->n_modules] = module->training;
    b->modules[b->n_modules++] = tn_module_keep(module);
    return false;
}

/* A node with blocks is one step, which the interpreter runs: here it only gives shapes. */
static tn_status record_control(tn__tracer *tracer, const tn__control *control)
{
    struct recorder *r = recorder_of(tracer);
    const tn__blocks *blocks = tn__blocks_of(control);
    tn_status status;

    if (blocks == NULL)
        return refuse(tracer, NULL, tn__control_name(control->kind));
    tracer->kernel = NULL;
    status = tn__control_shapes(control);
    tracer->kernel = record_kernel;
    if (status == TN_OK)
        status = add_control(r, blocks, control->out);
    for (int64_t i = 0; i < control->n_out && status != TN_OK; i++)
        control->out[i] = NULL;
    return status == TN_OK ? TN_OK : keep_failure(r);
}

static void training(tn__tracer *tracer)
{
    (void)tracer;
}

static const tn__tracer functions_of_plan = {
    .silent = 1,
    .stale = note_read,
    .refuse = refuse,
    .op = call_op,
    .module_begin = module_begin,
    .control = record_control,
    .training = training,
    .kernel = record_kernel,
};

/* ---- inputs, slots, results ------------------------------------------------------------------ */

/* Makes inputs without memory like those given. */
static tn_status make_inputs(struct recorder *r, tn_tensor *const *in)
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
        root = root_of(r, b->like[i]->storage);
        if (root < 0)
            return TN_ERR_MEMORY;
        b->roots[root].place = TN__PLAN_INPUT;
        b->roots[root].index = (int32_t)i;
        if (b->device == NULL)
            b->device = in[i]->device;
    }
    return TN_OK;
}

static tn_status find_slots(struct recorder *r, const tn_graph *graph)
{
    tn__plan_binding *b = r->b;

    for (const tn_node *node = graph->first; node != NULL && tn__graph_is_leaf(node);
         node = node->next) {
        tn_tensor *tensor = node->held.tensor;
        tn__plan_slot *slot;
        int64_t *dims;

        if (tensor == NULL)
            continue;
        if (b->device == NULL)
            b->device = tensor->device;
        dims = tn__arena_alloc(b->arena, (size_t)tensor->view.ndim * 2 * sizeof *dims + 1);
        if (dims == NULL || root_of(r, tensor->storage) < 0 ||
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
    }
    return TN_OK;
}

/* A result that is not a new tensor: an input, a slot, or another result. */
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

static tn_status see_result(struct recorder *r, tn_tensor *const *out, int64_t i)
{
    tn__plan_binding *b = r->b;
    tn__plan_result *result = &b->results[i];
    tn__plan_root *root;

    *result = (tn__plan_result){ .same = -1, .input = -1, .root = -1 };
    if (is_known(b, out, i, result))
        return TN_OK;
    result->root = root_of(r, out[i]->storage);
    if (result->root < 0)
        return TN_ERR_MEMORY;
    result->blind = out[i]->blind;
    tn__tensor_meta(out[i], &result->meta);
    root = &b->roots[result->root];
    if (root->place == TN__PLAN_HELD && !is_slot_memory(b, out[i]))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "output %lld: it was made while the plan was made, and each run would "
                       "return it",
                       (long long)i);
    if (root->place == TN__PLAN_ARENA) {
        root->place = TN__PLAN_FRESH;
        root->index = (int32_t)b->n_fresh++;
    }
    if (root->place == TN__PLAN_FRESH) {
        root->first = root->first > root->last ? 0 : root->first;
        root->last = (int32_t)b->n_steps;
    }
    return TN_OK;
}

static tn_status see_results(struct recorder *r, tn_tensor *const *out)
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

/* Fails if a tensor changed that exists: code of a layer wrote values that a step reads. */
static tn_status check_held(const tn__plan_binding *b)
{
    for (int64_t i = 0; i < b->n_roots; i++) {
        const tn__plan_root *root = &b->roots[i];

        if (root->place == TN__PLAN_HELD && atomic_load(&root->storage->version) != root->version)
            return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                           "the values of a tensor changed while the plan was made; expected code "
                           "that writes with operators only");
    }
    return TN_OK;
}

static tn_status run_node(void *user, tn_node *node, tn_tensor *const *in, int64_t n_in,
                          tn_tensor **out, int64_t n_out)
{
    struct recorder *r = user;

    r->node = node;
    return tn_node_run(node, in, n_in, out, n_out);
}

static tn_status run_graph(struct recorder *r, tn_graph *graph, tn_tensor **out)
{
    bool making = tn__making.is.traced;
    tn_status status = tn_grad_begin(false);

    tn__tracer_here = &r->tracer;
    tn__making.is.traced = true;
    tn__observers_traces(1);
    if (status == TN_OK)
        status = tn__run_graph(graph, NULL, run_node, r, r->b->like, out);
    tn__observers_traces(-1);
    tn__making.is.traced = making;
    tn__tracer_here = NULL;
    tn_grad_end();
    if (r->failed && status == TN_OK) { /* the code has ignored the failure */
        tn__error_put(&r->failure);
        status = tn_error_last_code();
    }
    return status;
}

static tn_status record(struct recorder *r, tn_graph *graph, tn_tensor *const *in)
{
    tn__plan_binding *b = r->b;
    tn_tensor **out;
    tn_status status;

    b->n_in = graph->n_inputs;
    b->n_out = graph->output->n_in;
    b->arena = tn__arena_new();
    b->like = tn_calloc((size_t)b->n_in + 1, sizeof(tn_tensor *));
    out = tn_calloc((size_t)b->n_out + 1, sizeof(tn_tensor *));
    status = b->arena != NULL && b->like != NULL && out != NULL ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = make_inputs(r, in);
    if (status == TN_OK)
        status = find_slots(r, graph);
    if (status == TN_OK && b->device == NULL && (b->device = tn_default_device()) == NULL)
        status = tn_error_last_code();
    if (status == TN_OK)
        status = run_graph(r, graph, out);
    if (status == TN_OK)
        status = see_results(r, out);
    tn_free(out);
    if (status == TN_OK)
        status = check_held(b);
    if (status == TN_OK)
        status = tn__plan_lay_out(b);
    return status == TN_OK ? tn__plan_binding_prepare(b) : status;
}

tn__plan_binding *tn__plan_record(tn_graph *graph, tn_tensor *const *in)
{
    struct recorder r = { .tracer = functions_of_plan };
    uint64_t scope = tn_scope_begin();
    tn_status status = TN_ERR_MEMORY;

    r.b = tn_calloc(1, sizeof *r.b);
    if (r.b != NULL) {
        atomic_store_explicit(&r.b->refs, 1, memory_order_relaxed);
        status = record(&r, graph, in);
        if (r.b->device != NULL)
            atomic_fetch_add((_Atomic int32_t *)(uintptr_t)&r.b->device->handles, 1);
    }
    tn__map_free(&r.roots);
    tn_scope_end(scope);
    if (status == TN_OK)
        return r.b;
    tn__plan_binding_drop(r.b);
    return NULL;
}
