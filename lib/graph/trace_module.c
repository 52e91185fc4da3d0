/* SPDX-License-Identifier: MIT
 *
 * Traces a module: the call, and the calls of modules in it. */
#include "lib/graph/tracing.h"
#include "core/module/hooks.h"
#include "core/op/needed.h"

/* ---- what a call of a module becomes --------------------------------------------------------- */

/* Returns whether a call of the module becomes one node. */
static bool is_leaf(const tn__trace *trace, tn_module *module, const char *path)
{
    const tn_tracing_options *o = trace->options;
    uint32_t flags = module->layer != NULL ? module->layer->flags : 0;

    if (trace->calls == 0)
        return false;
    if ((tn__hook_kinds(module) & TN__HOOKS_BACKWARD) != 0)
        return true; /* a graph has no backward hooks */
    if (o->is_leaf != NULL)
        return o->is_leaf(o->user, module, path);
    if ((flags & (TN_LAYER_LEAF | TN_LAYER_THROUGH)) != 0)
        return (flags & TN_LAYER_LEAF) != 0;
    if ((o->flags & (TN_TRACE_THROUGH | TN_TRACE_LEAVES)) != 0)
        return (o->flags & TN_TRACE_LEAVES) != 0;
    return module->plugin != NULL && strcmp(module->plugin->id, "program") != 0 &&
           (flags & (TN_LAYER_LIST | TN_LAYER_DICT)) == 0;
}

bool tn__trace_module_begin(tn__tracer *tracer, tn_module *module, tn_tensor *input,
                            const tn_pack *pack, tn_status *status)
{
    tn__trace *trace = tn__trace_of(tracer);
    void **path = tn__map_value(&trace->modules, module);
    bool leaf;

    (void)input;
    (void)pack;
    if (tracer->silent > 0)
        return false;
    if (path == NULL) { /* PyTorch's wording, with the type */
        *status = tn_fail(
            TN_ERR_KEY,
            "module is not installed as a submodule: a %s is called that is not below "
            "the module that is traced (%s)",
            module->type, trace->root->type);
        tn__trace_keep_failure(trace);
        return false;
    }
    if (trace->block != NULL && (tn__hook_kinds(module) & TN__HOOKS_BACKWARD) != 0) {
        *status = tn_fail(TN_ERR_NOT_IMPLEMENTED,
                          "%s: it has backward hooks, and a function of tn_cond or tn_loop calls "
                          "it; expected none, because a block has no calls of modules",
                          module->type);
        tn__trace_keep_failure(trace);
        return false;
    }
    leaf = trace->block == NULL && is_leaf(trace, module, *path);
    trace->calls++;
    if (leaf)
        *status = tn__trace_silent_begin(trace);
    if (leaf && *status != TN_OK)
        tn__trace_silent_end(trace);
    return leaf && *status == TN_OK;
}

/* Returns NULL for a pack of just one tensor by position, whose form need not be kept; else the
 * pack. */
static const tn_pack *form_of(const tn_pack *pack)
{
    bool plain = pack == NULL || (tn_pack_count(pack) == 1 && tn_pack_positional(pack) == 1 &&
                                  tn_pack_at(pack, 0).kind == TN_VALUE_TENSOR);

    return plain ? NULL : pack;
}

/* The tensors of a call: those of a pack, or one. */
struct tensors {
    tn_tensor **at, *few;
    int64_t count;
};

static tn_status tensors_take(struct tensors *tensors, const tn_pack *pack, tn_tensor *one,
                              const char *what)
{
    tensors->count = 1;
    tensors->few = one;
    tensors->at = &tensors->few;
    if (pack == NULL)
        return TN_OK;
    tensors->count = tn__values_count(pack, what);
    if (tensors->count < 0)
        return tn_error_last_code();
    tensors->at = tn_malloc(((size_t)tensors->count + 1) * sizeof(tn_tensor *));
    if (tensors->at == NULL)
        return TN_ERR_MEMORY;
    tn__values_list(pack, tensors->at);
    return TN_OK;
}

static void tensors_free(struct tensors *tensors)
{
    if (tensors->at != &tensors->few)
        tn_free(tensors->at);
}

/* Adds the CALL node. */
static tn_status record_call(tn__trace *trace, tn_module *module, const struct tensors *in,
                             const struct tensors *out, const tn_pack *form_in,
                             const tn_pack *form_out)
{
    void **path = tn__map_value(&trace->modules, module);
    tn_node **nodes = tn_malloc(((size_t)in->count + 1) * sizeof(tn_node *));
    tn_meta *metas = tn_malloc(((size_t)out->count + 1) * sizeof *metas);
    tn_status status = nodes != NULL && metas != NULL ? TN_OK : TN_ERR_MEMORY;
    tn__callee *callee = NULL;
    tn_node *node = NULL;

    for (int64_t i = 0; i < in->count && status == TN_OK; i++)
        if ((nodes[i] = tn__trace_node(trace, in->at[i])) == NULL)
            status = tn_error_last_code();
    for (int64_t i = 0; i < out->count && status == TN_OK; i++)
        tn__build_meta_of(out->at[i], &metas[i]);
    if (status == TN_OK)
        callee = tn__graph_callee_new(module, form_in, form_out);
    if (callee != NULL)
        node = tn__build_call(trace->level.graph, NULL, callee, *path, NULL, nodes, in->count,
                              metas, (int32_t)out->count);
    if (status == TN_OK)
        status = node != NULL ? tn__trace_where(trace, node) : tn_error_last_code();
    for (int64_t i = 0; i < out->count && status == TN_OK; i++)
        status = tn__trace_map(trace, out->at[i], node->items != NULL ? node->items[i] : node);
    if (node != NULL)
        node->no_grad = !tn__grad_on() && !tn__making.is.inference;
    tn_free(nodes);
    tn_free(metas);
    return status;
}

tn_status tn__trace_module_end(tn__tracer *tracer, tn_module *module, tn_tensor *input,
                               const tn_pack *pack, tn_tensor **output, tn_pack *out,
                               tn_status status)
{
    tn__trace *trace = tn__trace_of(tracer);
    struct tensors from = { .at = &from.few }, to = { .at = &to.few };

    tn__trace_silent_end(trace);
    if (status != TN_OK) {
        tn__trace_keep_failure(trace);
        return status;
    }
    status = tensors_take(&from, pack, input, "input of a module");
    if (status == TN_OK && out == NULL)
        status = tn__trace_make_own(output, &input, input != NULL);
    if (status == TN_OK)
        status = tensors_take(&to, out, out == NULL ? *output : NULL, "result of a module");
    if (status == TN_OK)
        status = record_call(trace, module, &from, &to, form_of(pack), form_of(out));
    tensors_free(&from);
    tensors_free(&to);
    if (status != TN_OK) {
        tn__trace_keep_failure(trace);
        if (output != NULL && out == NULL)
            tn_tensor_drop(*output);
    }
    return status;
}

/* ---- the root -------------------------------------------------------------------------------- */

static tn_status add_found(tn__trace *trace, const tn__met *met, tn__traced_slot *slot)
{
    const void *key = met->tensor != NULL ? (const void *)met->tensor : met->module;
    tn__map *map = met->tensor != NULL ? &trace->held : &trace->modules;
    int added = tn__map_add(map, key);

    if (added < 0)
        return TN_ERR_MEMORY;
    if (added == 0) /* shared: the first path counts */
        return TN_OK;
    *slot = (tn__traced_slot){ met->path, met->kind | met->flags << 16, 0 };
    if (met->tensor != NULL)
        slot->version = atomic_load(&met->tensor->storage->version);
    *tn__map_value(map, key) = met->tensor != NULL ? (void *)slot : met->path;
    return TN_OK;
}

tn_status tn__trace_find(tn__trace *trace)
{
    tn_status status = tn__walk_collect(
        trace->root, TN_SLOT_CHILD | TN_SLOT_PARAMETER | TN_SLOT_BUFFER, false, &trace->walk);

    trace->slots = tn_malloc(((size_t)trace->walk.count + 1) * sizeof *trace->slots);
    if (status == TN_OK && trace->slots == NULL)
        status = TN_ERR_MEMORY;
    for (int64_t i = 0; i < trace->walk.count && status == TN_OK; i++) {
        const tn__met *met = &trace->walk.at[i];

        if (met->tensor == NULL && tn__module_waits(met->module))
            return tn_fail(TN_ERR_RUNTIME,
                           "tn_module_trace: module %q (%s) has parameters without shape; call it "
                           "once before it is traced",
                           met->path, met->module->type);
        if (met->tensor == NULL || tn__tensor_ok(met->tensor))
            status = add_found(trace, met, &trace->slots[i]);
    }
    return status;
}

/* A trace writes nothing, so the versions of tensors that it has increased are restored. */
static void restore_versions(tn__trace *trace)
{
    for (int64_t i = 0; i < trace->held.count; i++) {
        const tn_tensor *tensor = trace->held.at[i].key;
        const tn__traced_slot *slot = trace->held.at[i].value;

        atomic_store(&tensor->storage->version, slot->version);
    }
}

/* Makes a tensor like an input, without memory, and its node. */
static tn_tensor *add_input(tn__trace *trace, tn_tensor *like, const char *name)
{
    char base[3 * TN__NAME_LONGEST];
    tn_tensor *tensor;
    tn_node *node;
    tn_meta meta;

    tn__tensor_meta(like, &meta);
    meta.offset = 0;
    tensor = tn__tensor_make(&meta, like->device);
    if (tensor == NULL || tn_tensor_to_scope(tensor) == NULL)
        return NULL;
    tensor->storage->flags |= TN__STORAGE_PENDING;
    tn__graph_name_of(name != NULL ? name : "input", base, sizeof base);
    node = tn__graph_node_new(trace->level.graph, TN_NODE_INPUT, base, false, 0, 1);
    if (node == NULL)
        return NULL;
    tn__build_meta_of(tensor, &node->meta[0]);
    trace->level.graph->n_inputs++;
    tn__graph_node_link(node, NULL);
    return tn__trace_map(trace, tensor, node) == TN_OK ? tensor : NULL;
}

/* Makes the inputs of the trace. `in` are the tensors of the pack, or the one input. */
static tn_status add_inputs(tn__trace *trace, const struct tensors *in, const tn_pack *pack,
                            tn_tensor **out)
{
    int64_t at = 0, left = 0;

    for (int64_t i = 0, value = -1; i < in->count; i++, left--) {
        const char *name = NULL;

        while (pack != NULL && left == 0) { /* the name of the value that has this tensor */
            struct tensors here = { .count = 0 };
            tn_pack *one = tn_pack_new();
            tn_status status = one != NULL ? tn_pack_add(one, NULL, tn_pack_at(pack, ++value))
                                           : TN_ERR_MEMORY;

            here.count = status == TN_OK ? tn__values_count(one, "input") : -1;
            tn_pack_drop(one);
            if (here.count < 0)
                return tn_error_last_code();
            left = here.count;
        }
        if (pack != NULL)
            name = tn_pack_name(pack, value);
        if (!tn__tensor_ok(in->at[i]))
            return tn__tensor_bad(in->at[i], "tn_module_trace: input");
        out[at++] = add_input(trace, in->at[i], name);
        if (out[at - 1] == NULL)
            return tn_error_last_code();
    }
    return TN_OK;
}

/* Makes the results of the module the outputs of the graph. */
static tn_status add_outputs(tn__trace *trace, const struct tensors *out)
{
    tn_node **nodes = tn_malloc(((size_t)out->count + 1) * sizeof(tn_node *));
    tn_status status = nodes != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < out->count && status == TN_OK; i++)
        if ((nodes[i] = tn__trace_node(trace, out->at[i])) == NULL)
            status = tn_error_last_code();
    if (status == TN_OK)
        status = tn_graph_output(trace->level.graph, nodes, out->count);
    tn_free(nodes);
    return status;
}

/* A constant that the code writes into is created again in every run. */
static tn_status copy_written(tn_graph *graph)
{
    for (tn_node *node = graph->steps; node != NULL; node = node->next)
        for (int64_t i = 0; i < node->n_in; i++) {
            tn_node *value = node->in[i], *copy;

            if ((node->writes >> (i < 63 ? i : 63) & 1) == 0 || value->kind != TN_NODE_CONSTANT)
                continue;
            copy = tn__build_recorded(graph, graph->steps, tn__op_needed(TN__NEED_copy), NULL,
                                      &value, 1, false);
            if (copy == NULL || tn_node_replace_uses(value, copy) < 0)
                return tn_error_last_code();
        }
    return TN_OK;
}

/* Calls the module; meanwhile calls of this thread go to the tracer. */
static tn_status call_root(tn__trace *trace, const struct tensors *in, const tn_pack *pack)
{
    struct tensors out = { .at = &out.few };
    tn_tensor **inputs = tn_malloc(((size_t)in->count + 1) * sizeof(tn_tensor *));
    tn_pack *given = NULL, *results = pack != NULL ? tn_pack_new() : NULL;
    tn_tensor *result = NULL;
    tn_status status = inputs != NULL && (pack == NULL || results != NULL) ? TN_OK : TN_ERR_MEMORY;

    if (status == TN_OK)
        status = add_inputs(trace, in, pack, inputs);
    if (status == TN_OK && pack != NULL) {
        given = tn__values_with(pack, inputs);
        status = given != NULL ? tn_module_call_pack(trace->root, given, results) : TN_ERR_MEMORY;
    } else if (status == TN_OK) {
        result = tn_module_call(trace->root, inputs[0]);
        status = result != NULL ? TN_OK : tn_error_last_code();
    }
    if (status == TN_OK && trace->failed)
        status = tn_fail(trace->failure.code, "%s", trace->failure.message);
    if (status == TN_OK)
        status = tensors_take(&out, results, result, "tn_module_trace: results");
    if (status == TN_OK)
        status = add_outputs(trace, &out);
    if (status == TN_OK && form_of(pack) != NULL &&
        (trace->level.graph->in = tn__values_with(pack, NULL)) == NULL)
        status = tn_error_last_code();
    if (status == TN_OK && form_of(results) != NULL &&
        (trace->level.graph->out = tn__values_with(results, NULL)) == NULL)
        status = tn_error_last_code();
    tensors_free(&out);
    tn_free(inputs);
    tn_pack_drop(given);
    tn_pack_drop(results);
    return status;
}

void tn__trace_open(tn__trace *trace)
{
    tn__tracer_here = &trace->tracer;
    tn__making.is.traced = true;
    tn__observers_traces(1);
}

void tn__trace_close(tn__trace *trace)
{
    tn__observers_traces(-1);
    tn__making.is.traced = false;
    tn__tracer_here = NULL;
    restore_versions(trace);
}

static tn_status run_trace(tn__trace *trace, const struct tensors *in, const tn_pack *pack)
{
    uint64_t scope = tn_scope_begin();
    tn_status status = tn_grad_begin(true);

    tn__trace_open(trace);
    if (status == TN_OK)
        status = call_root(trace, in, pack);
    tn__trace_close(trace);
    tn_grad_end();
    tn_scope_end(scope);
    if (status == TN_OK)
        status = copy_written(trace->level.graph);
    return status;
}

void tn__trace_free(tn__trace *trace)
{
    tn__trace_level_free(&trace->level);
    tn_free(trace->written);
    tn_free(trace->slots);
    tn__map_free(&trace->held);
    tn__map_free(&trace->modules);
    tn__walk_free(&trace->walk);
}

static tn_status check(tn_module *module, const tn_tracing_options *options)
{
    if (options->size != sizeof *options)
        return tn_fail(TN_ERR_VALUE,
                       "tn_module_trace: options.size: wrong, got %u; initialize the struct with "
                       "TN_TRACING_OPTIONS",
                       options->size);
    if ((options->flags & ~3u) != 0 || (options->flags & 3u) == 3u)
        return tn_fail(TN_ERR_VALUE,
                       "tn_module_trace: options.flags: wrong, got 0x%x; expected at most one of "
                       "TN_TRACE_THROUGH and TN_TRACE_LEAVES",
                       options->flags);
    if (tn__tracer_here != NULL)
        return tn_fail(TN_ERR_RUNTIME,
                       "tn_module_trace: this thread traces a module already (%s is called in it)",
                       module->type);
    return TN_OK;
}

bool tn__trace_has_sizes(const tn_graph *graph)
{
    for (const tn_node *node = graph->steps; node != NULL; node = node->next) {
        if (node->kind == TN_NODE_LOOP && node->most >= 0)
            return true;
        for (int i = 0; i < 2 && tn__graph_has_blocks(node); i++)
            if (tn__trace_has_sizes(node->blocks[i]))
                return true;
        for (int32_t r = 0;
             node->options != NULL && node->op->def.options[r].kind != TN_OPTION_KIND_END; r++)
            if (node->op->def.options[r].kind == TN_OPTION_KIND_INT ||
                node->op->def.options[r].kind == TN_OPTION_KIND_INTS)
                return true;
    }
    return false;
}

static tn_graph *trace_once(tn_module *module, const tn_tracing_options *options,
                            const tn_pack *pack, tn_tensor *input)
{
    tn__trace trace = { .tracer = tn__trace_functions, .root = module, .options = options };
    struct tensors in = { .at = &in.few };
    tn_status status = check(module, options);

    if (status == TN_OK)
        status = tensors_take(&in, pack, input, "tn_module_trace: input");
    if (status == TN_OK)
        status = tn__trace_find(&trace);
    if (status == TN_OK && (trace.level.graph = tn_graph_new()) == NULL)
        status = TN_ERR_MEMORY;
    if (status == TN_OK)
        status = tn__graph_set_text(&trace.level.graph->type, module->type);
    if (status == TN_OK) {
        trace.level.graph->evaluates = !module->training;
        status = run_trace(&trace, &in, pack);
    }
    if (status == TN_OK && options->dynamic == NULL && tn__trace_has_sizes(trace.level.graph))
        trace.level.graph->fixed = TN__FIXED_BY_TRACE;
    tensors_free(&in);
    tn__trace_free(&trace);
    if (status == TN_OK)
        return trace.level.graph;
    tn_graph_drop(trace.level.graph);
    return NULL;
}

/* A trace with symbols is made several times, with other inputs. */
struct again {
    tn__symbols_call call; /* first: trace_again gets its address */
    tn_module *module;
    const tn_tracing_options *options;
    const tn_pack *pack;
};

static tn_graph *trace_again(const tn__symbols_call *call, tn_tensor *const *in)
{
    const struct again *again = (const void *)call;
    tn_pack *pack;
    tn_graph *graph;

    if (again->pack == NULL)
        return trace_once(again->module, again->options, NULL, in[0]);
    pack = tn__values_with(again->pack, in);
    graph = pack != NULL ? trace_once(again->module, again->options, pack, NULL) : NULL;
    tn_pack_drop(pack);
    return graph;
}

static tn_graph *trace_with(tn_module *module, const tn_tracing_options *options,
                            const tn_pack *pack, tn_tensor *input)
{
    const tn_tracing_options all = TN_TRACING_OPTIONS;
    struct again again = { .call = { .trace = trace_again }, .module = module, .pack = pack };
    struct tensors in = { .at = &in.few };
    tn_graph *graph = NULL;

    again.options = options != NULL ? options : &all;
    if (check(module, again.options) != TN_OK)
        return NULL;
    if (again.options->dynamic == NULL)
        return trace_once(module, again.options, pack, input);
    if (tensors_take(&in, pack, input, "tn_module_trace: input") != TN_OK)
        return NULL;
    for (int64_t i = 0; i < in.count; i++)
        if (!tn__tensor_ok(in.at[i])) {
            tn__tensor_bad(in.at[i], "tn_module_trace: input");
            tensors_free(&in);
            return NULL;
        }
    again.call.in = in.at;
    again.call.count = in.count;
    graph = tn__symbols_trace(&again.call, again.options->dynamic);
    tensors_free(&in);
    return graph;
}

tn_graph *tn_module_trace(tn_module *module, tn_tensor *input, const tn_tracing_options *options)
{
    if (!tn__not_null(module, "tn_module_trace: module"))
        return NULL;
    if (!tn__tensor_ok(input)) {
        tn__tensor_bad(input, "tn_module_trace: input");
        return NULL;
    }
    return trace_with(module, options, NULL, input);
}

tn_graph *tn_module_trace_pack(tn_module *module, const tn_pack *input,
                               const tn_tracing_options *options)
{
    if (!tn__not_null(module, "tn_module_trace_pack: module") ||
        !tn__given(input != NULL, "tn_module_trace_pack: input"))
        return NULL;
    return trace_with(module, options, input, NULL);
}
