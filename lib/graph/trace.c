/* SPDX-License-Identifier: MIT
 *
 * Records in a graph the operators that a traced module calls: nodes for tensors, and nodes for
 * calls. core/tensor/trace.h declares the functions (struct tn__tracer) by which the core calls
 * this file. */
#include "lib/graph/control.h"
#include "lib/graph/tracing.h"
#include "core/module/mode_seen.h"
#include "core/op/needed.h"

#include <tenon/ops.h>

/* ---- failures -------------------------------------------------------------------------------- */

/* Keeps the first failure, because the traced code may ignore it. */
tn_status tn__trace_keep_failure(tn__trace *trace)
{
    if (!trace->failed)
        trace->failure = *tn_error_last();
    trace->failed = true;
    return tn_error_last_code();
}

static const tn_node *node_in(const tn__trace_level *level, const tn_tensor *tensor)
{
    void **value = tn__map_value(&level->values, tensor);

    for (int64_t i = level->n_kept - 1; value == NULL && i >= 0; i--)
        if (level->kept[i]->storage == tensor->storage)
            value = tn__map_value(&level->values, level->kept[i]);
    return value != NULL ? *value : NULL;
}

/* Returns the node of a tensor or, if there is none, that of another view of its memory. */
static const tn_node *node_near(const tn__trace *trace, const tn_tensor *tensor)
{
    const tn_node *node = tensor != NULL ? node_in(&trace->level, tensor) : NULL;

    for (const tn__trace_block *at = trace->block; at != NULL && node == NULL && tensor != NULL;
         at = at->outer)
        node = node_in(&at->level, tensor);
    return node;
}

static bool stale(tn__tracer *tracer, const tn_tensor *tensor)
{
    const tn__trace *trace = tn__trace_of(tracer);

    for (int64_t i = 0; i < trace->n_written && tracer->silent == 0; i++)
        if (trace->written[i] == tensor->storage)
            return true;
    return false;
}

/* Records which tensors with memory a recorded call writes. */
static tn_status note_written(tn__trace *trace, const tn_node *node, tn_tensor *const *in,
                              int64_t n_in, const tn_tensor *into)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < node->n_in; i++) {
        const tn_tensor *tensor = i < n_in ? in[i] : into;

        if ((node->writes >> (i < 63 ? i : 63) & 1) == 0 || !tn__tensor_ok(tensor) ||
            (tensor->storage->flags & TN__STORAGE_TRACED) != 0)
            continue;
        if (!tn__vector_room(&trace->written, &trace->written_capacity, trace->n_written + 1,
                             sizeof *trace->written))
            return TN_ERR_MEMORY;
        trace->written[trace->n_written++] = tensor->storage;
    }
    for (int64_t i = 0; i < node->n_in && status == TN_OK && trace->block != NULL; i++) {
        const tn_tensor *tensor = i < n_in ? in[i] : into;

        if ((node->writes >> (i < 63 ? i : 63) & 1) != 0 && tn__tensor_ok(tensor))
            status = tn__trace_check_write(trace, tensor);
    }
    return status;
}

static tn_status refuse(tn__tracer *tracer, const tn_tensor *tensor, const char *function)
{
    tn__trace *trace = tn__trace_of(tracer);
    const tn_node *node = node_near(trace, tensor);
    const char *type = trace->root != NULL ? trace->root->type : "the graph";
    tn__text where = { 0 };

    tn__call_path(&where);
    tn__text_put(&where, "", 1);
    if (node != NULL)
        tn_fail(TN_ERR_RUNTIME,
                "the value of %%%s (%s) is asked for while tracing (%s); a graph cannot depend on "
                "values, except by tn_cond and tn_loop",
                node->name, node->path != NULL && node->path[0] != '\0' ? node->path : type,
                function);
    else if (tensor != NULL)
        tn_fail(TN_ERR_RUNTIME,
                "a value that %s has computed is asked for while tracing (%s); a graph cannot "
                "depend on values, except by tn_cond and tn_loop",
                where.at != NULL && where.at[0] != '\0' ? where.at : type, function);
    else
        tn_fail(TN_ERR_NOT_IMPLEMENTED,
                "%s: cannot be recorded in a graph; trace the module that calls it as one node: "
                "set tn_tracing_options.is_leaf",
                function);
    tn__text_free(&where);
    return tn__trace_keep_failure(trace);
}

/* ---- tensors and their nodes ----------------------------------------------------------------- */

tn_status tn__trace_map(tn__trace *trace, tn_tensor *tensor, tn_node *node)
{
    void **value = tn__map_value(&trace->level.values, tensor);

    if (value == NULL) {
        if (!tn__vector_room(&trace->level.kept, &trace->level.kept_capacity,
                             trace->level.n_kept + 1, sizeof(tn_tensor *)) ||
            tn__map_add(&trace->level.values, tensor) < 0)
            return TN_ERR_MEMORY;
        trace->level.kept[trace->level.n_kept++] = tn_tensor_keep(tensor);
        value = tn__map_value(&trace->level.values, tensor);
    }
    *value = node;
    return TN_OK;
}

static bool has_constant(const tn_graph *graph, const char *name)
{
    for (const tn_node *node = graph->first; node != NULL && tn__graph_is_leaf(node);
         node = node->next)
        if (node->kind == TN_NODE_CONSTANT && strcmp(tn__graph_target(node), name) == 0)
            return true;
    return false;
}

/* Adds a node for a tensor that no operator of the trace has made: a slot, or a constant. */
static tn_node *held_node(tn__trace *trace, tn_tensor *tensor)
{
    void **found = tn__map_value(&trace->held, tensor);
    const tn__traced_slot *slot = found != NULL ? *found : NULL;
    static const char folder[] = "_constants.";
    char name[32];
    tn_node *node;

    if (slot != NULL && strncmp(slot->path, folder, sizeof folder - 1) != 0) {
        node = tn__build_held(trace->level.graph, TN_NODE_SLOT, slot->path, NULL, tensor);
        if (node != NULL)
            node->slot = slot->kind;
        return node;
    }
    do /* a graph to which a decomposition is added may have a c0 */
        tn_snprint(name, sizeof name, "c%lld", (long long)trace->n_constants++);
    while (has_constant(trace->level.graph, name));
    return tn__build_held(trace->level.graph, TN_NODE_CONSTANT, name, NULL, tensor);
}

/* Orders the dimensions by their strides, the largest first. Returns false if the memory has gaps
 * or is row-major. */
static bool is_permuted(const tn_tensor *tensor, int64_t *order)
{
    const tn_view *view = &tensor->view;
    int64_t step = 1;

    for (int64_t d = 0; d < view->ndim; d++) {
        int64_t at = d;

        for (; at > 0 && view->strides[order[at - 1]] < view->strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    for (int64_t i = view->ndim; i-- > 0; step *= view->shape[order[i]])
        if (view->shape[order[i]] > 1 && view->strides[order[i]] != step)
            return false;
    return !tensor->contiguous;
}

/* Adds a node for a new tensor whose values were never set. Views of it may need its strides, so a
 * tensor in another order of memory is a view of one in that order. */
static tn_node *empty_node(tn__trace *trace, tn_tensor *tensor)
{
    tn_full_options o = TN_FULL_OPTIONS;
    tn_permute_options back = TN_PERMUTE_OPTIONS;
    int64_t order[TN_MAX_DIMS], place[TN_MAX_DIMS], shape[TN_MAX_DIMS];
    bool permuted = is_permuted(tensor, order);
    tn_node *like = TN_NODE_NONE, *node;

    for (int64_t i = 0; i < tensor->view.ndim && permuted; i++) {
        shape[i] = tensor->view.shape[order[i]];
        place[order[i]] = i;
    }
    o.shape = permuted ? (tn_ints){ shape, tensor->view.ndim } : tn__shape(tensor);
    o.value = tn_scalar_int(0);
    o.dtype = (tn_dtype)tensor->dtype;
    node = tn_graph_add_call(trace->level.graph, trace->level.before, tn__op_needed(TN__NEED_full),
                             &o, &like, 1);
    if (node == NULL || !permuted)
        return node;
    back.dims = (tn_ints){ place, tensor->view.ndim };
    return tn_graph_add_call(trace->level.graph, trace->level.before,
                             tn__op_needed(TN__NEED_permute), &back, &node, 1);
}

/* Returns the node of a tensor, NULL and sets the error if it has none. */
tn_node *tn__trace_node(tn__trace *trace, tn_tensor *tensor)
{
    void **value;
    tn_node *node;
    uint16_t flags;

    if (tn__is_none(tensor))
        return TN_NODE_NONE;
    value = tn__map_value(&trace->level.values, tensor);
    if (value != NULL)
        return *value;
    if (trace->block != NULL) {
        bool outside;

        node = tn__trace_take(trace, tensor, &outside);
        if (outside && node == NULL)
            tn__trace_keep_failure(trace);
        if (outside)
            return node;
    }
    flags = tensor->storage->flags;
    if ((flags & TN__STORAGE_PENDING) != 0) {
        tn_fail(
            TN_ERR_NOT_IMPLEMENTED,
            "a tensor that no operator has made (tn_tensor_as_strided, tn_parameter), or that a "
            "function of tn_cond or tn_loop has made and not returned, cannot be traced; expected "
            "results of operators");
        tn__trace_keep_failure(trace);
        return NULL;
    }
    node = (flags & TN__STORAGE_TRACED) != 0 ? empty_node(trace, tensor) : held_node(trace, tensor);
    if (node == NULL || tn__trace_map(trace, tensor, node) != TN_OK) {
        tn__trace_keep_failure(trace);
        return NULL;
    }
    return node;
}

/* Sets path and type of a node: those of trace->where or, if that is NULL, of the module that is
 * being called. */
tn_status tn__trace_where(tn__trace *trace, tn_node *node)
{
    tn_module *module = tn__call_now();
    void **path = module != NULL ? tn__map_value(&trace->modules, module) : NULL;
    tn_status status;

    if (trace->where != NULL) {
        status = tn__graph_set_text(&node->path, trace->where->path);
        return status == TN_OK ? tn__graph_set_text(&node->type, trace->where->type) : status;
    }
    if (path == NULL)
        return TN_OK;
    status = tn__graph_set_text(&node->path, *path);
    return status == TN_OK ? tn__graph_set_text(&node->type, module->type) : status;
}

/* ---- silent calls ---------------------------------------------------------------------------- */

/* Begins a call that becomes one node. */
tn_status tn__trace_silent_begin(tn__trace *trace)
{
    trace->tracer.silent++;
    return tn_grad_begin(false);
}

void tn__trace_silent_end(tn__trace *trace)
{
    tn_grad_end();
    trace->tracer.silent--;
}

/* A result that is one of the inputs gets an object of its own, so that the input keeps its node.
 */
tn_status tn__trace_make_own(tn_tensor **out, tn_tensor *const *in, int64_t n_in)
{
    for (int64_t i = 0; i < n_in; i++)
        if (*out == in[i]) {
            tn_tensor *alias = tn__tensor_alias(*out);

            if (alias == NULL)
                return tn_error_last_code();
            tn_tensor_drop(*out);
            *out = alias;
            return TN_OK;
        }
    return TN_OK;
}

/* ---- operators ------------------------------------------------------------------------------- */

static tn_status record(tn__trace *trace, const tn_op *op, tn_node **in, int64_t n_in,
                        const void *options, tn_tensor *const *out, bool inplace, bool no_grad,
                        tn_node **made)
{
    bool autocast = tn__autocast_pause();
    tn_node *node = tn__build_recorded(trace->level.graph, trace->level.before, op, options, in,
                                       n_in, inplace);
    tn_status status = node != NULL ? tn__trace_where(trace, node) : tn_error_last_code();

    tn__autocast_resume(autocast);
    for (int32_t i = 0; i < op->def.n_outputs && status == TN_OK; i++) {
        tn_node *value = node->items != NULL ? node->items[i] : node;

        tn__build_meta_of(out[i], &node->meta[i]);
        value->meta[0] = node->meta[i];
        status = tn__trace_map(trace, out[i], value);
    }
    if (node != NULL)
        node->no_grad = no_grad;
    *made = node;
    return status;
}

/* Calls the operator for shapes and views only. Nothing is written, so this function restores the
 * versions of the inputs. */
static tn_status call_silent(tn__trace *trace, const tn_op *op, tn_tensor *const *in, int64_t n_in,
                             const void *options, tn_tensor **out, int64_t n_out, tn_tensor *into)
{
    uint64_t few[8], *versions = n_in < 8 ? few : tn_malloc(((size_t)n_in + 1) * sizeof *versions);
    tn_status status;

    if (versions == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i <= n_in; i++) {
        const tn_tensor *tensor = i < n_in ? in[i] : into;

        versions[i] = tn__tensor_ok(tensor) ? atomic_load(&tensor->storage->version) : 0;
    }
    status = tn__trace_silent_begin(trace);
    if (status == TN_OK)
        status = tn__call_plain(op, in, n_in, options, out, n_out, into);
    tn__trace_silent_end(trace);
    for (int64_t i = 0; i <= n_in; i++) {
        const tn_tensor *tensor = i < n_in ? in[i] : into;

        if (tn__tensor_ok(tensor))
            atomic_store(&tensor->storage->version, versions[i]);
    }
    if (versions != few)
        tn_free(versions);
    return status;
}

/* Finds the dtypes that autocast gives to the inputs. The casts that it makes are not recorded. */
static tn_status tried_dtypes(tn__trace *trace, const tn_op *op, tn_tensor *const *in, int64_t n_in,
                              const void *options, tn_dtype *dtypes)
{
    tn_status status = tn__trace_silent_begin(trace);

    if (status == TN_OK)
        status = tn__autocast_dtypes(op, in, n_in, options, dtypes);
    tn__trace_silent_end(trace);
    return status;
}

/* In a region of autocast: makes the casts nodes of their own. *cast is NULL if there are none. */
static tn_status cast_inputs(tn__trace *trace, const tn_op *op, tn_tensor *const *in, int64_t n_in,
                             const void *options, tn_tensor ***cast)
{
    tn_dtype *dtypes = tn_malloc(((size_t)n_in + 1) * sizeof *dtypes);
    tn_tensor **made = tn_malloc(((size_t)n_in + 1) * sizeof(tn_tensor *));
    tn_status status = dtypes != NULL && made != NULL ? TN_OK : TN_ERR_MEMORY;

    if (status == TN_OK)
        status = tried_dtypes(trace, op, in, n_in, options, dtypes);
    for (int64_t i = 0; i < n_in && status == TN_OK; i++) {
        made[i] = in[i];
        if (tn__tensor_ok(in[i]) && (tn_dtype)in[i]->dtype != dtypes[i]) {
            tn_cast_options o = TN_CAST_OPTIONS;

            o.dtype = dtypes[i];
            status = tn_op_call(tn__op_needed(TN__NEED_cast), &in[i], 1, &o, &made[i], 1);
        }
    }
    tn_free(dtypes);
    if (status == TN_OK)
        *cast = made;
    else
        tn_free(made);
    return status;
}

static tn_status call_recorded(tn__trace *trace, const tn_op *op, tn_tensor *const *in,
                               int64_t n_in, const void *options, tn_tensor **out, int64_t n_out,
                               tn_tensor *into)
{
    bool no_grad = !tn__grad_on() && !tn__making.is.inference;
    tn_node **nodes = tn_malloc(((size_t)n_in + 1) * sizeof(tn_node *)), *node;
    tn_status status = nodes != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < n_in && status == TN_OK; i++)
        if (in[i] != NULL && (nodes[i] = tn__trace_node(trace, in[i])) == NULL)
            status = tn_error_last_code();
    if (status == TN_OK && tn__tensor_ok(into) &&
        (nodes[n_in] = tn__trace_node(trace, into)) == NULL)
        status = tn_error_last_code();
    if (status == TN_OK)
        status = call_silent(trace, op, in, n_in, options, out, n_out, into);
    if (status != TN_OK) {
        tn_free(nodes);
        return status;
    }
    for (int64_t i = 0; i < n_out && into == NULL && status == TN_OK; i++)
        status = tn__trace_make_own(&out[i], in, n_in);
    if (status == TN_OK)
        status = record(trace, op, nodes, n_in + (into != NULL), options,
                        into != NULL ? &into : out, into != NULL, no_grad, &node);
    if (status == TN_OK)
        status = note_written(trace, node, in, n_in, into);
    tn_free(nodes);
    if (status == TN_OK)
        return TN_OK;
    for (int64_t i = 0; i < n_out && into == NULL; i++) {
        tn_tensor_drop(out[i]);
        out[i] = NULL;
    }
    return tn__trace_keep_failure(trace);
}

static tn_status trace_op(tn__tracer *tracer, const tn_op *op, tn_tensor *const *in, int64_t n_in,
                          const void *options, tn_tensor **out, int64_t n_out, tn_tensor *into)
{
    tn__trace *trace = tn__trace_of(tracer);
    tn_tensor **cast = NULL;
    bool autocast;
    tn_status status;

    if (tracer->silent > 0)
        return tn__call_plain(op, in, n_in, options, out, n_out, into);
    if (tn__autocast_on() && into == NULL) {
        status = cast_inputs(trace, op, in, n_in, options, &cast);
        if (status != TN_OK)
            return status;
    }
    autocast = tn__autocast_pause();
    status = call_recorded(trace, op, cast != NULL ? cast : in, n_in, options, out, n_out, into);
    tn__autocast_resume(autocast);
    tn_free(cast);
    return status;
}

/* Returns a tensor on the device, TN_NONE if there is none. */
static tn_tensor *tensor_on(const tn__trace_level *level, const tn_device *device)
{
    for (int64_t i = 0; i < level->n_kept; i++)
        if (level->kept[i]->device == device)
            return level->kept[i];
    return TN_NONE;
}

static tn_tensor *trace_full(tn__tracer *tracer, tn_ints shape, tn_scalar value, tn_dtype dtype,
                             const tn_device *device)
{
    tn__trace *trace = tn__trace_of(tracer);
    tn_tensor *like = TN_NONE, *out = NULL;
    tn_full_options o = TN_FULL_OPTIONS;

    if (device != NULL)
        like = tensor_on(&trace->level, device);
    for (const tn__trace_block *at = trace->block;
         at != NULL && tn__is_none(like) && device != NULL; at = at->outer)
        like = tensor_on(&at->level, device);
    if (device == NULL || device == tn_default_device())
        like = TN_NONE;
    o.shape = shape;
    o.value = value;
    o.dtype = dtype;
    return tn_op_call(tn__op_needed(TN__NEED_full), &like, 1, &o, &out, 1) == TN_OK ? out : NULL;
}

/* A view of the whole tensor, made without gradients. */
static tn_tensor *trace_detach(tn__tracer *tracer, tn_tensor *tensor)
{
    tn_view_options o = TN_VIEW_OPTIONS;
    tn_tensor *out = NULL;
    tn_status status = tn_grad_begin(false);

    (void)tracer;
    o.shape = tn__shape(tensor);
    if (status == TN_OK)
        status = tn_op_call(tn__op_needed(TN__NEED_view), &tensor, 1, &o, &out, 1);
    tn_grad_end();
    return status == TN_OK ? out : NULL;
}

/* The graph of the root is the outermost one. */
static tn_graph *outermost(const tn__trace *trace)
{
    tn_graph *graph = trace->level.graph;

    for (const tn__trace_block *at = trace->block; at != NULL; at = at->outer)
        graph = at->level.graph;
    return graph;
}

static void trace_training(tn__tracer *tracer)
{
    const tn__trace *trace = tn__trace_of(tracer);

    if (tracer->silent == 0)
        outermost(trace)->training = tn__mode_is_training(trace->root);
}

static void trace_asked(tn__tracer *tracer, const tn_module *module)
{
    tn__trace *trace = tn__trace_of(tracer);
    void **path = tn__map_value(&trace->modules, module);

    if (tracer->silent == 0 && path != NULL &&
        tn__graph_ask(outermost(trace), *path, tn__mode_is_training(module)) != TN_OK)
        tn__trace_keep_failure(trace);
}

const tn__tracer tn__trace_functions = {
    .stale = stale,
    .refuse = refuse,
    .full = trace_full,
    .detach = trace_detach,
    .op = trace_op,
    .module_begin = tn__trace_module_begin,
    .module_end = tn__trace_module_end,
    .control = tn__trace_control,
    .training = trace_training,
    .asked = trace_asked,
};
