/* SPDX-License-Identifier: MIT
 *
 * Runs graphs on tensors without memory: for shapes, and to replace calls of modules by what they
 * call. */
#include "lib/graph/tracing.h"

/* Returns the device of the first tensor of the modules; NULL: they have none. Allocates nothing.
 */
static const tn_device *device_of(const tn_module *module)
{
    const tn__slots *maps[] = { &module->parameters, &module->buffers };
    const tn_device *device = NULL;

    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < maps[k]->count && device == NULL; i++)
            if (tn__tensor_ok(maps[k]->at[i].tensor))
                device = maps[k]->at[i].tensor->device;
    for (int64_t i = 0; i < module->children.count && device == NULL; i++)
        if (module->children.at[i].child != NULL)
            device = device_of(module->children.at[i].child);
    return device;
}

/* Returns the device on which a graph probably runs. */
static const tn_device *device_for(const tn_graph *graph, const tn_module *module)
{
    const tn_device *device = NULL;

    for (const tn_node *node = graph->first; node != NULL && device == NULL; node = node->next)
        if (node->held.tensor != NULL)
            device = node->held.tensor->device;
    if (device == NULL && module != NULL)
        device = device_of(module);
    return device != NULL ? device : tn_default_device();
}

tn_tensor *tn__trace_make_like(const tn_meta *like, const tn_device *device)
{
    bool making = tn__making.is.traced;
    tn_meta meta = *like;
    tn_tensor *tensor;

    meta.offset = 0;
    tn__making.is.traced = true;
    tensor = tn__tensor_make(&meta, device);
    tn__making.is.traced = making;
    if (tensor == NULL || tn_tensor_to_scope(tensor) == NULL)
        return NULL;
    tensor->storage->flags |= TN__STORAGE_PENDING;
    return tensor;
}

tn_status tn__trace_make_inputs(const tn_graph *graph, tn_module *module, tn_tensor *const *like,
                                tn_tensor **out)
{
    const tn_device *device = device_for(graph, module);

    if (device == NULL)
        return tn_error_last_code();
    for (const tn_node *node = graph->first; node != NULL; node = node->next) {
        tn_meta meta;

        if (node->kind != TN_NODE_INPUT)
            continue;
        meta = node->meta[0];
        if (like != NULL)
            tn__tensor_meta(*like, &meta);
        *out = tn__trace_make_like(&meta, like != NULL ? (*like++)->device : device);
        if (*out++ == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

/* Calls the operator for shapes. */
static tn_status call_node(tn__trace *trace, const tn_node *node, tn_tensor *const *in,
                           tn_tensor **out)
{
    tn_status status = tn__trace_silent_begin(trace);

    tn__trace_open(trace);
    if (status == TN_OK)
        status = tn_op_call(node->op, in, node->n_in, node->options, out, node->n_out);
    tn__trace_close(trace);
    tn__trace_silent_end(trace);
    for (int32_t i = 0; i < node->n_out && status == TN_OK; i++)
        tn__build_meta_of(out[i], &node->meta[i]);
    return status;
}

tn_status tn__trace_infer(tn_node *node)
{
    tn__trace trace = { .tracer = tn__trace_functions };
    const tn_device *device = device_for(node->graph, NULL);
    tn_tensor **all = tn_malloc((size_t)(node->n_in + node->n_out) * sizeof(tn_tensor *));
    uint64_t scope = tn_scope_begin(), mark = tn_error_mark();
    tn_status status = device == NULL ? tn_error_last_code() : all == NULL ? TN_ERR_MEMORY : TN_OK;

    for (int64_t i = 0; i < node->n_in && status == TN_OK; i++) {
        const tn_node *in = node->in[i];

        all[i] = tn__graph_is_none(in)     ? TN_NONE
                 : in->held.tensor != NULL ? in->held.tensor
                                           : tn__trace_make_like(in->meta, device);
        if (all[i] == NULL)
            status = tn_error_last_code();
    }
    if (status == TN_OK)
        status = call_node(&trace, node, all, all + node->n_in);
    tn_scope_end(scope);
    tn_free(all);
    if (status != TN_OK && (trace.failed || status == TN_ERR_NOT_IMPLEMENTED)) {
        tn_error_restore(mark); /* only a run can tell the shape */
        return TN_OK;
    }
    return status;
}

/* Runs a node for shapes only, and keeps them. */
static tn_status note_shapes(void *user, tn_node *node, tn_tensor *const *in, int64_t n_in,
                             tn_tensor **out, int64_t n_out)
{
    tn_status status = tn_node_run(node, in, n_in, out, n_out);

    (void)user;
    for (int64_t i = 0; i < n_out && status == TN_OK; i++) {
        tn__build_meta_of(out[i], &node->meta[i]);
        if (node->items != NULL)
            node->items[i]->meta[0] = node->meta[i];
    }
    return status;
}

static tn_status shapes(tn__trace *trace, tn_graph *graph, tn_tensor *const *in)
{
    tn_tensor **all = tn_calloc((size_t)(graph->n_inputs + graph->output->n_in) + 1,
                                sizeof(tn_tensor *));
    uint64_t scope = tn_scope_begin();
    tn_status status = all != NULL ? tn__trace_make_inputs(graph, NULL, in, all) : TN_ERR_MEMORY;

    if (status == TN_OK)
        status = tn__trace_silent_begin(trace);
    tn__trace_open(trace);
    if (status == TN_OK)
        status = tn__run_graph(graph, NULL, note_shapes, NULL, all, all + graph->n_inputs);
    tn__trace_close(trace);
    tn__trace_silent_end(trace);
    tn_scope_end(scope);
    tn_free(all);
    return status;
}

/* Infers the blocks of a graph whose nodes have got their types. The options of a graph with sizes
 * that vary are those of its trace: then only a run can tell what is in its blocks. */
static tn_status infer_blocks(tn_graph *graph, tn_tensor *const *in)
{
    tn_status status = TN_OK;

    for (tn_node *node = graph->first; node != NULL && status == TN_OK; node = node->next) {
        if (node->kind == TN_NODE_INPUT)
            tn__build_meta_of(*in++, &node->meta[0]);
        if (tn__graph_has_blocks(node))
            status = graph->n_symbols > 0 ? tn__blocks_inputs(node) : tn__blocks_infer(node);
    }
    return status;
}

/* Gives the nodes of a graph the types that those of its copy have. */
static void take_types(tn_graph *graph, const tn_graph *copy)
{
    const tn_node *from = copy->first;

    for (tn_node *node = graph->first; node != NULL; node = node->next, from = from->next) {
        for (int32_t i = 0; i < node->n_out; i++)
            node->meta[i] = from->meta[i];
        for (int i = 0; i < 2 && tn__graph_has_blocks(node); i++)
            take_types(node->blocks[i], from->blocks[i]);
    }
}

tn_status tn_graph_shapes(tn_graph *graph, tn_tensor *const *in, int64_t n_in)
{
    tn__trace trace = { .tracer = tn__trace_functions };
    tn_graph *copy;
    tn_status status;

    if (!tn__not_null(graph, "tn_graph_shapes: graph") ||
        !tn__given(in != NULL || n_in <= 0, "tn_graph_shapes: in"))
        return tn_error_last_code();
    if (n_in != graph->n_inputs)
        return tn_fail(TN_ERR_VALUE,
                       "tn_graph_shapes: in: wrong count, got %lld; the graph has %lld",
                       (long long)n_in, (long long)graph->n_inputs);
    for (int64_t i = 0; i < n_in; i++)
        if (!tn__tensor_ok(in[i]))
            return tn__tensor_bad_at(in[i], "tn_graph_shapes: in", i);
    if (tn__tracer_here != NULL)
        return tn_fail(TN_ERR_RUNTIME,
                       "tn_graph_shapes: not allowed while this thread traces a module; expected "
                       "a call after the trace");
    if (graph->fixed != NULL)
        return tn_fail(TN_ERR_REFUSED,
                       "tn_graph_shapes: %s relied on the declared shapes; "
                       "expected the graph before that",
                       graph->fixed);
    /* Finds the modules that the graph calls, so that the trace can restore the versions of their
     * tensors. */
    trace.root = tn_graph_module(graph);
    status = trace.root != NULL ? tn__trace_find(&trace) : tn_error_last_code();
    copy = trace.level.graph = status == TN_OK ? tn_graph_copy(graph) : NULL;
    if (status == TN_OK)
        status = copy != NULL ? shapes(&trace, copy, in) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = infer_blocks(copy, in);
    if (status == TN_OK)
        take_types(graph, copy);
    tn_graph_drop(copy);
    tn__trace_free(&trace);
    if (trace.root != NULL)
        tn_module_drop(trace.root);
    return status;
}

/* Gives the inputs of a graph the names that another has. */
static tn_status name_inputs(const tn_graph *from, const tn_graph *to)
{
    const tn_node *a = from->first;
    tn_status status = TN_OK;

    for (tn_node *b = to->first; b != NULL && status == TN_OK; b = b->next) {
        if (b->kind != TN_NODE_INPUT)
            continue;
        while (a->kind != TN_NODE_INPUT)
            a = a->next;
        status = tn__graph_node_rename(b, a->name);
        a = a->next;
    }
    return status;
}

/* A graph whose calls of modules are replaced by what they call. */
struct inlining {
    tn__symbols_make make; /* first: inline_at gets its address */
    const tn_graph *graph;
    tn_module *module; /* that runs the graph */
};

/* Makes tensors without memory for the inputs. `symbols` has the values of the symbols; NULL: the
 * sizes are those that the graph declares. */
static tn_status inputs_at(const struct inlining *inlining, const int64_t *symbols, tn_tensor **in)
{
    tn_status status = tn__trace_make_inputs(inlining->graph, inlining->module, NULL, in);

    for (const tn_node *node = inlining->graph->first;
         node != NULL && symbols != NULL && status == TN_OK; node = node->next) {
        tn_meta meta;

        if (node->kind != TN_NODE_INPUT)
            continue;
        meta = node->meta[0];
        for (int32_t d = 0; d < meta.ndim; d++) {
            const tn__expr *expr = tn__symbols_find(node, -1, d);

            if (expr != NULL)
                meta.shape[d] = tn__symbols_value(expr, symbols);
        }
        meta.flags = 0;
        *in = tn__trace_make_like(&meta, (*in)->device);
        if (*in++ == NULL)
            status = tn_error_last_code();
    }
    return status;
}

/* Returns what the graph and the modules that it calls do with inputs of these sizes. */
static tn_graph *inline_at(const tn__symbols_make *make, const int64_t *symbols)
{
    const struct inlining *inlining = (const void *)make;
    const tn_graph *graph = inlining->graph;
    tn_tracing_options how = TN_TRACING_OPTIONS;
    uint64_t scope = tn_scope_begin();
    tn_tensor **in = tn_calloc((size_t)graph->n_inputs + 1, sizeof(tn_tensor *));
    tn_status status = in != NULL ? inputs_at(inlining, symbols, in) : TN_ERR_MEMORY;
    tn_graph *made = NULL;
    tn_pack *pack = NULL;

    how.flags = TN_TRACE_THROUGH;
    if (status == TN_OK && graph->in != NULL)
        pack = tn__values_with(graph->in, in);
    else if (status == TN_OK && (pack = tn_pack_new()) != NULL)
        for (int64_t i = 0; i < graph->n_inputs && status == TN_OK; i++)
            status = tn_pack_add(pack, NULL, tn_value_tensor(in[i]));
    if (status == TN_OK && pack != NULL)
        made = tn_module_trace_pack(inlining->module, pack, &how);
    tn_pack_drop(pack);
    tn_free(in);
    tn_scope_end(scope);
    return made;
}

/* Gives a graph what another relies on: what passes have recorded, and the mode. */
static tn_status take_reliance(const tn_graph *from, tn_graph *to)
{
    if (from->fixed != NULL && strcmp(from->fixed, TN__FIXED_BY_TRACE) != 0)
        to->fixed = from->fixed;
    to->inference = from->inference;
    to->evaluates = from->evaluates;
    return tn__graph_copy_guards(from, to);
}

tn_status tn_graph_inline(tn_graph *graph)
{
    struct inlining inlining = { { inline_at }, graph, NULL };
    const char *inference;
    bool varies;
    tn_graph *made = NULL;
    tn_status status;

    if (!tn__not_null(graph, "tn_graph_inline: graph"))
        return tn_error_last_code();
    inference = graph->inference;
    graph->inference = NULL; /* for the trace, which records no gradients */
    inlining.module = tn_graph_module(graph);
    graph->inference = inference;
    if (inlining.module == NULL)
        return tn_error_last_code();
    varies = graph->n_symbols > 0 && graph->fixed == NULL;
    made = varies ? tn__symbols_fit(&inlining.make, graph) : inline_at(&inlining.make, NULL);
    status = made != NULL ? tn__graph_set_text(&made->type, graph->type) : tn_error_last_code();
    if (status == TN_OK && varies)
        made->fixed = NULL;
    if (status == TN_OK)
        status = take_reliance(graph, made);
    if (status == TN_OK)
        status = name_inputs(graph, made);
    if (status == TN_OK)
        tn__graph_take(graph, made);
    else
        tn_graph_drop(made);
    tn_module_drop(inlining.module);
    return status;
}

/* ---- decompositions -------------------------------------------------------------------------- */

/* Records the decomposition before the node, and replaces the node by it. */
static tn_status expand(tn__trace *trace, tn_node *node, tn_tensor **in, tn_tensor **out)
{
    const tn_device *device = device_for(node->graph, NULL);
    tn_status status = device != NULL ? TN_OK : tn_error_last_code();

    for (int64_t i = 0; i < node->n_in && status == TN_OK; i++) {
        tn_node *value = node->in[i];

        in[i] = TN_NONE;
        if (tn__graph_is_none(value))
            continue;
        for (int64_t k = 0; k < i; k++)
            if (node->in[k] == value)
                in[i] = in[k];
        if (tn__is_none(in[i]))
            in[i] = value->held.tensor != NULL ? value->held.tensor
                                               : tn__trace_make_like(value->meta, device);
        status = in[i] != NULL ? tn__trace_map(trace, in[i], value) : tn_error_last_code();
    }
    if (status == TN_OK)
        status = tn_grad_begin(!node->no_grad);
    tn__trace_open(trace);
    if (status == TN_OK)
        status = tn__decompose_call(node->op, in, node->n_in, node->options, out);
    tn__trace_close(trace);
    tn_grad_end();
    for (int32_t i = 0; i < node->n_out && status == TN_OK; i++) {
        tn_node *value = tn__trace_node(trace, out[i]);

        tn_tensor_to_scope(out[i]);
        if (value == NULL ||
            tn_node_replace_uses(node->items != NULL ? node->items[i] : node, value) < 0)
            status = tn_error_last_code();
    }
    return status == TN_OK ? tn_node_erase(node) : status;
}

tn_status tn_node_expand(tn_node *node)
{
    tn__trace trace = { .tracer = tn__trace_functions };
    tn_tensor **space;
    uint64_t scope;
    tn_status status = tn__graph_node_check(NULL, node, "tn_node_expand: node");

    if (status != TN_OK)
        return status;
    if (node->kind != TN_NODE_OP)
        return tn_fail(TN_ERR_TYPE,
                       "tn_node_expand: node %s is not a call of an operator that returns new "
                       "tensors; "
                       "expected a node of kind TN_NODE_OP",
                       node->name);
    if (tn__tracer_here != NULL)
        return tn_fail(TN_ERR_RUNTIME,
                       "tn_node_expand: not allowed while this thread traces a module; expected a "
                       "call after the trace");
    space = tn_calloc((size_t)(node->n_in + node->n_out) + 1, sizeof(tn_tensor *));
    if (space == NULL)
        return TN_ERR_MEMORY;
    trace.level.graph = node->graph;
    trace.level.before = node;
    trace.where = node;
    scope = tn_scope_begin();
    status = expand(&trace, node, space, space + node->n_in);
    tn_scope_end(scope);
    tn__trace_free(&trace);
    tn_free(space);
    return status == TN_OK ? TN_OK : tn_error_prefix("tn_node_expand: node %s: ", node->name);
}
