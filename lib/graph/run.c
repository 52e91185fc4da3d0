/* SPDX-License-Identifier: MIT
 *
 * Runs a graph node by node. Each node is a call of its own. */
#include "lib/graph/run.h"
#include "core/tensor/mode.h"

/* ---- what a run relies on -------------------------------------------------------------------- */

bool tn__run_fits(const tn_graph *graph, tn_dtype declared, tn_dtype dtype)
{
    bool traced = graph->fixed == NULL || strcmp(graph->fixed, TN__FIXED_BY_TRACE) == 0;

    return dtype == declared || (traced && (TN_BIT(declared) & TN_MASK_FLOAT) != 0 &&
                                 (TN_BIT(dtype) & TN_MASK_FLOAT) != 0);
}

tn_status tn__run_check_input(const tn_tensor *tensor, const tn_meta *meta, const char *who,
                              const char *what)
{
    tn__text text = { 0 };
    bool same = tensor->dtype == meta->dtype && tensor->view.ndim == meta->ndim;
    tn_status status;

    for (int32_t d = 0; same && d < meta->ndim; d++)
        same = tensor->view.shape[d] == meta->shape[d];
    if (same)
        return TN_OK;
    tn__tensor_text(&text, tensor);
    tn__text_add(&text, "; expected %s", tn_dtype_name(meta->dtype));
    tn__tensor_text_ints(&text, (tn_ints){ meta->shape, meta->ndim });
    tn__text_put(&text, "", 1);
    status = tn_fail(TN_ERR_VALUE, "%s: wrong dtype or shape, got %s, which %s relied on", what,
                     text.failed ? "another tensor" : text.at, who);
    tn__text_free(&text);
    return status;
}

static tn_status check_guard(const tn__guard *guard, const char *name, const char *why)
{
    if (tn__graph_guard_holds(guard))
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME,
                   "tn_graph_run: %s: the tensor has changed since the graph was built; %s", name,
                   why);
}

/* Fails if a gradient would be recorded in a graph that a pass made for inference, because such a
 * graph lacks what gradients need. */
static tn_status check_inference(const tn__run *run)
{
    bool wanted = false;

    if (run->graph->inference == NULL || !tn__grad_on())
        return TN_OK;
    for (int64_t i = 0; i < run->graph->n_inputs; i++)
        wanted |= tn__requires_grad(run->in[i]);
    for (tn_node *node = run->graph->first; node != NULL && tn__graph_is_leaf(node);
         node = node->next)
        wanted |= node->held.tensor != NULL && tn__requires_grad(node->held.tensor);
    if (!wanted)
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME,
                   "tn_graph_run: pass %s made this graph for inference, and a gradient would be "
                   "recorded; run it in inference mode, or between tn_grad_begin(false) and "
                   "tn_grad_end()",
                   run->graph->inference);
}

static tn_status check_constant(const tn_node *node)
{
    return check_guard(&node->held, node->name,
                       "a constant must not change; for a tensor that changes, use tn_graph_slot");
}

static tn_status check_slots(const tn_graph *graph)
{
    tn_status status = TN_OK;
    char what[128];

    for (int64_t i = 0; i < graph->n_guards && status == TN_OK; i++) {
        if (tn__likely(tn__graph_guard_holds(&graph->guards[i])))
            continue;
        tn_snprint(what, sizeof what, "a slot whose values pass %s has used", graph->guards[i].who);
        status = check_guard(&graph->guards[i], what, "run the pass again on the original graph");
    }
    return status;
}

tn_status tn__run_check_guards(const tn_graph *graph)
{
    tn_status status = check_slots(graph);

    for (const tn_node *node = graph->first;
         node != NULL && tn__graph_is_leaf(node) && status == TN_OK; node = node->next)
        if (node->kind == TN_NODE_CONSTANT)
            status = check_constant(node);
    return status;
}

/* ---- one node -------------------------------------------------------------------------------- */

static tn_status take_input(tn__run *run, const tn_node *node, tn_tensor **out)
{
    tn_status status = TN_OK;
    char what[128];

    tn_snprint(what, sizeof what, "tn_graph_run: input %s", node->name);
    *out = run->in[run->taken++];
    if (run->graph->fixed != NULL) {
        tn_meta meta = *node->meta;

        if (tn__run_fits(run->graph, meta.dtype, (*out)->dtype))
            meta.dtype = (*out)->dtype;
        status = tn__run_check_input(*out, &meta, run->graph->fixed, what);
    }
    return status;
}

/* Collects the inputs of a node. An input that no node has made yet is an error of the program that
 * built the graph. */
static tn_status gather(const tn__run *run, const tn_node *node)
{
    for (int64_t i = 0; i < node->n_in; i++) {
        run->operands[i] = TN_NONE;
        if (tn__graph_is_none(node->in[i]))
            continue;
        run->operands[i] = run->values[node->in[i]->id].tensor;
        if (run->operands[i] == NULL)
            return tn_fail(
                TN_ERR_VALUE,
                "tn_graph_run: node %s: input %lld: node %s does not come before this node; "
                "tn_graph_lint checks the order",
                node->name, (long long)i, node->in[i]->name);
    }
    return TN_OK;
}

static tn_status run_op(const tn__run *run, const tn_node *node, tn_tensor *const *in,
                        tn_tensor **out)
{
    const void *options = node->options;
    void *own = NULL;
    tn_status status = TN_OK;

    if (node->n_exprs > 0 && run->bound) {
        status = tn__symbols_options(node, run->symbols, &own);
        options = own != NULL ? own : options;
    }
    if (status == TN_OK && node->kind == TN_NODE_OP) {
        status = tn_op_call(node->op, in, node->n_in, options, out, node->n_out);
    } else if (status == TN_OK) {
        out[0] = in[node->n_in - 1];
        status = tn_op_call_into(node->op, in, node->n_in - 1, options, out[0]);
    }
    tn_free(own);
    return status;
}

/* Collects the results of a module. */
static tn_status take_results(const tn_node *node, const tn_pack *pack, tn_tensor **out)
{
    tn_status status = TN_OK;

    if (node->callee->out != NULL)
        status = tn__values_match(node->callee->out, pack, "results");
    else if (tn_pack_count(pack) != 1)
        status = tn_fail(TN_ERR_TYPE, "results: wrong number, got %lld values; expected one tensor",
                         (long long)tn_pack_count(pack));
    else if (tn_pack_at(pack, 0).kind != TN_VALUE_TENSOR)
        status = tn_fail(TN_ERR_TYPE, "result: wrong kind, got %s; expected a tensor",
                         tn__value_kind_name(tn_pack_at(pack, 0).kind));
    if (status == TN_OK)
        tn__values_list(pack, out);
    for (int32_t i = 0; i < node->n_out && status == TN_OK; i++)
        if (tn_tensor_to_scope(tn_tensor_keep(out[i])) == NULL)
            status = tn_error_last_code();
    return status;
}

static tn_status run_call(const tn__run *run, const tn_node *node, tn_tensor *const *in,
                          tn_tensor **out)
{
    tn_module *module = node->callee->module;
    tn_pack *given, *results;
    tn_status status = TN_ERR_MEMORY;

    tn__autocast_resume(run->autocast); /* as if the program called the module */
    if (run->calls != NULL) {
        int64_t i = 0;

        while (run->calls[i] != node)
            i++;
        module = run->called[i];
    } else if (run->self != NULL && (module = tn_module_find(run->self, node->target)) == NULL)
        return tn_error_last_code();
    if (node->callee->in == NULL && node->callee->out == NULL) {
        out[0] = tn_module_call(module, in[0]);
        return out[0] != NULL ? TN_OK : tn_error_last_code();
    }
    results = tn_pack_new();
    given = node->callee->in != NULL ? tn__values_with(node->callee->in, in) : tn_pack_new();
    if (results != NULL && given != NULL)
        status = node->callee->in != NULL ? TN_OK
                                          : tn_pack_add(given, NULL, tn_value_tensor(in[0]));
    if (status == TN_OK)
        status = tn_module_call_pack(module, given, results);
    if (status == TN_OK)
        status = take_results(node, results, out);
    tn_pack_drop(given);
    tn_pack_drop(results);
    return status;
}

static tn_status run_module(const tn__run *run, const tn_node *node, tn_tensor *const *in,
                            tn_tensor **out)
{
    tn_status status = run_call(run, node, in, out);

    tn__autocast_pause();
    return status;
}

static tn_status run_kind(const tn__run *run, tn_node *node, tn_tensor *const *in, tn_tensor **out)
{
    tn_status status;

    if (node->kind == TN_NODE_CALL)
        return run_module(run, node, in, out);
    if (tn__graph_has_blocks(node))
        return tn__blocks_run(node, run->bound ? run->symbols : NULL, in, out);
    if (node->kind != TN_NODE_REGION)
        return run_op(run, node, in, out);
    status = tn__region_run(node, in, out);
    for (int32_t i = 0; i < node->n_out && status == TN_OK; i++)
        if (tn_tensor_to_scope(out[i]) == NULL)
            status = tn_error_last_code();
    return status;
}

/* Runs a node. The scope owns the results. */
static tn_status run_plain(const tn__run *run, tn_node *node, tn_tensor *const *in, tn_tensor **out)
{
    tn_status status = node->no_grad ? tn_grad_begin(false) : TN_OK;

    if (status == TN_OK)
        status = run_kind(run, node, in, out);
    if (node->no_grad)
        tn_grad_end();
    return status;
}

/* The run of this thread whose handler is called, for tn_node_run. */
static _Thread_local const tn__run *handled TN__TLS_NEAR;

/* Lets the handler run the node, and checks what it returned. The run relies on the nodes, so the
 * handler must not change them. Nodes that it has erased exist as long as the graph. */
static tn_status run_handled(const tn__run *run, tn_node *node)
{
    const tn__run *outer = handled;
    uint64_t mark = tn_error_mark(), edits = run->graph->edits;
    tn_status status;

    for (int32_t i = 0; i < node->n_out; i++)
        run->results[i] = NULL;
    handled = run;
    status = run->handler(run->user, node, run->operands, node->n_in, run->results, node->n_out);
    handled = outer;
    status = tn_error_returned(status, mark, "handler");
    if (status == TN_OK && run->graph->edits != edits)
        status = tn_fail(TN_ERR_REFUSED,
                         "handler: it has changed the graph while the graph runs; expected changes "
                         "before or after the run, or in a copy (tn_graph_copy)");
    for (int32_t i = 0; i < node->n_out && status == TN_OK; i++)
        if (!tn__tensor_ok(run->results[i]))
            status = tn__tensor_bad_at(run->results[i], "handler: out", i);
    return status;
}

static tn_status wrong_node_count(const tn_node *node, const char *what, int64_t got,
                                  int64_t expected)
{
    return tn_fail(TN_ERR_VALUE, "tn_node_run: %s: wrong count, got %lld; node %s has %lld", what,
                   (long long)got, node->name, (long long)expected);
}

tn_status tn_node_run(tn_node *node, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                      int64_t n_out)
{
    tn__run run = { .graph = NULL };
    tn_status status = tn__graph_node_check(NULL, node, "tn_node_run: node");

    if (!tn__given(out != NULL || n_out <= 0, "tn_node_run: out"))
        return TN_ERR_VALUE;
    for (int64_t i = 0; i < n_out; i++)
        out[i] = NULL;
    if (status != TN_OK)
        return status;
    if (!tn__given(in != NULL || n_in <= 0, "tn_node_run: in"))
        return TN_ERR_VALUE;
    if (tn__graph_is_leaf(node) || node->kind == TN_NODE_ITEM || node->kind == TN_NODE_OUTPUT)
        return tn_fail(TN_ERR_TYPE,
                       "tn_node_run: node %s computes nothing; expected an operator, "
                       "a module, a region or a node with blocks",
                       node->name);
    if (n_in != node->n_in)
        return wrong_node_count(node, "in", n_in, node->n_in);
    if (n_out != node->n_out)
        return wrong_node_count(node, "out", n_out, node->n_out);
    for (int64_t i = 0; i < n_in; i++)
        if (in[i] == NULL)
            return tn__tensor_bad_at(in[i], "tn_node_run: in", i);
    if (handled != NULL && handled->graph == node->graph) {
        run.self = handled->self;
        run.bound = handled->bound;
        memcpy(run.symbols, handled->symbols, sizeof run.symbols);
    }
    status = run_plain(&run, node, in, out);
    for (int64_t i = 0; i < n_out && status != TN_OK; i++)
        out[i] = NULL;
    return status;
}

static void put(tn__run *run, const tn_node *node, tn_tensor *tensor)
{
    tn__run_value *value = &run->values[node->id];

    if (node->n_uses == 0) {
        tn_tensor_drop(tensor);
        return;
    }
    value->tensor = tensor;
    value->left = node->n_uses;
}

void tn__run_release(tn__run *run, const tn_node *node)
{
    tn__run_value *value = &run->values[node->id];

    if (--value->left == 0) {
        tn_tensor_drop(value->tensor);
        value->tensor = NULL;
    }
}

/* A node of a block must not write into memory of the graph around it. The checks of the graph do
 * not see operators that return their input for some options, such as reshape. */
static tn_status check_writes(const tn__run *run, const tn_node *node)
{
    for (int64_t i = 0; i < node->n_in; i++)
        for (int64_t k = 0;
             k < run->graph->n_inputs && (node->writes >> (i < 63 ? i : 63) & 1) != 0; k++)
            if (!tn__is_none(run->operands[i]) && run->operands[i]->storage == run->in[k]->storage)
                return tn_fail(TN_ERR_VALUE,
                               "node %s: it writes into an input of the block, which comes from "
                               "outside; expected a block that writes only into what it has made",
                               node->name);
    return TN_OK;
}

static tn_status run_step(tn__run *run, tn_node *node)
{
    tn_status status = gather(run, node);
    uint64_t scope;

    if (status == TN_OK && run->block && node->writes != 0)
        status = check_writes(run, node);
    if (status != TN_OK)
        return status;
    scope = tn_scope_begin();
    status = run->handler != NULL ? run_handled(run, node)
                                  : run_plain(run, node, run->operands, run->results);
    for (int32_t i = 0; i < node->n_out && status == TN_OK; i++)
        tn_tensor_keep(run->results[i]);
    tn_scope_end(scope);
    if (status != TN_OK)
        return tn__graph_node_failed(node->name, node->path);
    for (int64_t i = 0; i < node->n_in; i++)
        if (!tn__graph_is_none(node->in[i]))
            tn__run_release(run, node->in[i]);
    for (int32_t i = 0; i < node->n_out; i++)
        put(run, tn_node_item(node, i), run->results[i]);
    return TN_OK;
}

/* Returns the tensor of a slot or constant. */
static tn_tensor *held_tensor(const tn__run *run, const tn_node *node)
{
    tn_tensor *tensor;
    char path[32 + 3 * TN__NAME_LONGEST];

    if (run->self == NULL)
        return node->held.tensor;
    tn_snprint(path, sizeof path, node->kind == TN_NODE_CONSTANT ? "_constants.%s" : "%s",
               tn__graph_target(node));
    tensor = tn_module_find_tensor(run->self,
                                   node->kind == TN_NODE_CONSTANT ? path : tn__graph_target(node));
    if (tensor != NULL && tn__is_none(tensor))
        tn_fail(TN_ERR_ATTR, "%s: no tensor, got None; expected the tensor of the trace",
                tn__graph_target(node));
    return tn__tensor_ok(tensor) ? tensor : NULL;
}

tn_status tn__run_node(tn__run *run, tn_node *node)
{
    tn_tensor *tensor = NULL;
    tn_status status = TN_OK;

    switch (node->kind) {
    case TN_NODE_ITEM:
    case TN_NODE_OUTPUT: return TN_OK;
    case TN_NODE_INPUT: status = take_input(run, node, &tensor); break;
    case TN_NODE_CONSTANT:
    case TN_NODE_SLOT:
        if (node->kind == TN_NODE_CONSTANT && run->self == NULL)
            status = check_constant(node);
        if (status == TN_OK && (tensor = held_tensor(run, node)) == NULL)
            status = tn__graph_node_failed(node->name, node->path);
        break;
    default: return run_step(run, node);
    }
    if (status == TN_OK)
        put(run, node, tn_tensor_keep(tensor));
    return status;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Passes the outputs to the scope of the caller. */
static tn_status give_outputs(tn__run *run, tn_tensor **out)
{
    const tn_node *node = run->graph->output;
    tn_status status = gather(run, node);

    for (int64_t i = 0; i < node->n_in && status == TN_OK; i++) {
        out[i] = tn_tensor_to_scope(tn_tensor_keep(run->operands[i]));
        if (out[i] == NULL)
            status = tn_error_last_code();
    }
    for (int64_t i = 0; i < node->n_in && status != TN_OK; i++)
        out[i] = NULL;
    return status;
}

tn_status tn__run_begin(tn__run *run)
{
    const tn_graph *graph = run->graph;
    int64_t most_in = 1, most_out = 1;

    for (tn_node *node = graph->first; node != NULL; node = node->next) {
        most_in = node->n_in > most_in ? node->n_in : most_in;
        most_out = node->n_out > most_out ? node->n_out : most_out;
    }
    run->n_values = graph->next_id;
    run->values = tn_calloc((size_t)run->n_values + 1, sizeof *run->values);
    run->operands = tn_malloc((size_t)most_in * sizeof *run->operands);
    run->results = tn_malloc((size_t)most_out * sizeof *run->results);
    return run->values != NULL && run->operands != NULL && run->results != NULL ? TN_OK
                                                                                : TN_ERR_MEMORY;
}

void tn__run_end(tn__run *run)
{
    for (int64_t i = 0; run->values != NULL && i < run->n_values; i++)
        tn_tensor_drop(run->values[i].tensor);
    tn_free(run->values);
    tn_free(run->operands);
    tn_free(run->results);
}

static tn_status run_all(tn__run *run, tn_tensor **out)
{
    tn_graph *graph = run->graph;
    tn_status status = tn__run_begin(run);

    if (status == TN_OK)
        status = check_inference(run);
    if (status == TN_OK)
        status = check_slots(graph);
    if (status == TN_OK && graph->n_symbols > 0 && !run->block) {
        status = tn__symbols_bind(graph, run->in, run->symbols);
        run->bound = true;
    }
    for (tn_node *node = graph->first; node != NULL && status == TN_OK; node = node->next)
        status = tn__likely(node->part == 0) || run->handler != NULL || run->block || !tn__grad_on()
                     ? tn__run_node(run, node)
                     : tn__run_part(run, &node);
    if (status == TN_OK)
        status = give_outputs(run, out);
    tn__run_end(run);
    return status;
}

static tn_status wrong_count(const char *what, int64_t got, int64_t expected)
{
    return tn_fail(TN_ERR_VALUE, "tn_graph_run: %s: wrong count, got %lld; the graph has %lld",
                   what, (long long)got, (long long)expected);
}

tn_status tn__run_graph(tn_graph *graph, tn_module *self, tn_node_handler handler, void *user,
                        tn_tensor *const *in, tn_tensor **out)
{
    tn__run run = { .graph = graph, .self = self, .handler = handler, .user = user, .in = in };
    tn_status status;

    run.autocast = tn__autocast_pause(); /* the dtypes are those that the graph was built with */
    status = run_all(&run, out);
    tn__autocast_resume(run.autocast);
    return status;
}

tn_status tn__run_block(tn_graph *block, const int64_t *symbols, tn_tensor *const *in,
                        tn_tensor **out)
{
    tn__run run = { .graph = block, .in = in, .block = true, .bound = symbols != NULL };

    if (symbols != NULL)
        memcpy(run.symbols, symbols, sizeof run.symbols);
    return run_all(&run, out);
}

tn_status tn_graph_run_with(tn_graph *graph, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                            int64_t n_out, tn_node_handler handler, void *user)
{
    if (!tn__given(out != NULL || n_out <= 0, "tn_graph_run: out"))
        return TN_ERR_VALUE;
    for (int64_t i = 0; i < n_out; i++)
        out[i] = NULL;
    if (!tn__not_null(graph, "tn_graph_run: graph"))
        return tn_error_last_code();
    if (!tn__given(in != NULL || n_in <= 0, "tn_graph_run: in"))
        return TN_ERR_VALUE;
    if (graph->output == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_graph_run: no outputs; call tn_graph_output first");
    if (n_in != graph->n_inputs)
        return wrong_count("in", n_in, graph->n_inputs);
    if (n_out != graph->output->n_in)
        return wrong_count("out", n_out, graph->output->n_in);
    for (int64_t i = 0; i < n_in; i++)
        if (!tn__tensor_ok(in[i]))
            return tn__tensor_bad_at(in[i], "tn_graph_run: in", i);
    tn_graph_keep(graph); /* the handler may drop it */
    tn_status status = tn__run_graph(graph, NULL, handler, user, in, out);
    tn_graph_drop(graph);
    return status;
}

tn_status tn_graph_run(tn_graph *graph, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                       int64_t n_out)
{
    return tn_graph_run_with(graph, in, n_in, out, n_out, NULL, NULL);
}
