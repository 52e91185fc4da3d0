/* SPDX-License-Identifier: MIT
 *
 * Runs a graph node by node. Each node is a call of its own. */
#include "core/graph/private.h"
#include "core/tensor/mode.h"

/* The value of a node during a run. */
struct value {
    tn_tensor *tensor; /* owned reference */
    int64_t left;      /* number of uses that are still to come */
};

struct run {
    tn_graph *graph;
    tn_tensor *const *in;
    struct value *values; /* by the id of the node */
    tn_tensor **operands; /* space for the inputs of any node */
    tn_tensor **results;
    int64_t taken; /* number of inputs used so far */
};

/* ---- what a run relies on -------------------------------------------------------------------- */

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
    status = tn_fail(TN_ERR_VALUE, "%s: wrong type or shape, got %s, which %s relied on", what,
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
static tn_status check_inference(const struct run *run)
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

static tn_status check_guards(const struct run *run)
{
    const tn_graph *graph = run->graph;
    tn_status status = check_inference(run);
    char what[128];

    for (int64_t i = 0; i < graph->n_guards && status == TN_OK; i++) {
        tn_snprint(what, sizeof what, "a slot whose values pass %s has used", graph->guards[i].who);
        status = check_guard(&graph->guards[i], what, "run the pass again on the original graph");
    }
    return status;
}

/* ---- one node -------------------------------------------------------------------------------- */

static tn_status take_input(struct run *run, const tn_node *node, tn_tensor **out)
{
    tn_status status = TN_OK;
    char what[128];

    tn_snprint(what, sizeof what, "tn_graph_run: input %s", node->name);
    *out = run->in[run->taken++];
    if (run->graph->fixed != NULL)
        status = tn__run_check_input(*out, node->meta, run->graph->fixed, what);
    return status;
}

/* Collects the inputs of a node. An input that no node has made yet is an error of the program that
 * built the graph. */
static tn_status gather(const struct run *run, const tn_node *node)
{
    for (int64_t i = 0; i < node->n_in; i++) {
        run->operands[i] = TN_NONE;
        if (tn__graph_is_none(node->in[i]))
            continue;
        run->operands[i] = run->values[node->in[i]->id].tensor;
        if (run->operands[i] == NULL)
            return tn_fail(
                TN_ERR_VALUE,
                "tn_graph_run: node %s: input %lld: node %s does not come before this node "
                "(tn_graph_lint)",
                node->name, (long long)i, node->in[i]->name);
    }
    return TN_OK;
}

/* Calls the operator. The run owns the results. */
static tn_status call_op(const struct run *run, const tn_node *node)
{
    uint64_t scope = tn_scope_begin();
    tn_status status = tn_op_call(node->op, run->operands, node->n_in, node->options, run->results,
                                  node->n_out);

    for (int32_t i = 0; i < node->n_out && status == TN_OK; i++)
        tn_tensor_keep(run->results[i]);
    tn_scope_end(scope);
    return status;
}

static void put(struct run *run, const tn_node *node, tn_tensor *tensor)
{
    struct value *value = &run->values[node->id];

    if (node->n_uses == 0) {
        tn_tensor_drop(tensor);
        return;
    }
    value->tensor = tensor;
    value->left = node->n_uses;
}

/* Drops the inputs that no later node uses. */
static void release_inputs(struct run *run, const tn_node *node)
{
    for (int64_t i = 0; i < node->n_in; i++) {
        struct value *value;

        if (tn__graph_is_none(node->in[i]))
            continue;
        value = &run->values[node->in[i]->id];
        if (--value->left == 0) {
            tn_tensor_drop(value->tensor);
            value->tensor = NULL;
        }
    }
}

static tn_status run_step(struct run *run, tn_node *node)
{
    tn_status status = gather(run, node);

    if (status != TN_OK)
        return status;
    status = node->kind == TN_NODE_REGION ? tn__region_run(node, run->operands, run->results)
                                          : call_op(run, node);
    if (status != TN_OK)
        return tn_error_prefix("node %s: ", node->name);
    release_inputs(run, node);
    for (int32_t i = 0; i < node->n_out; i++)
        put(run, tn_node_item(node, i), run->results[i]);
    return TN_OK;
}

static tn_status run_node(struct run *run, tn_node *node)
{
    tn_tensor *tensor = node->held.tensor;
    tn_status status = TN_OK;

    switch (node->kind) {
    case TN_NODE_ITEM:
    case TN_NODE_OUTPUT: return TN_OK;
    case TN_NODE_OP:
    case TN_NODE_REGION: return run_step(run, node);
    case TN_NODE_INPUT: status = take_input(run, node, &tensor); break;
    case TN_NODE_CONSTANT:
        status = check_guard(&node->held, node->name,
                             "a constant must not change; for a tensor that changes, use "
                             "tn_graph_slot");
        break;
    default: break;
    }
    if (status == TN_OK)
        put(run, node, tn_tensor_keep(tensor));
    return status;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Passes the outputs to the scope of the caller. */
static tn_status give_outputs(struct run *run, tn_tensor **out)
{
    const tn_node *node = run->graph->output;
    tn_status status = gather(run, node);

    for (int64_t i = 0; i < node->n_in && status == TN_OK; i++) {
        out[i] = tn__scope_push(tn_tensor_keep(run->operands[i]));
        if (out[i] == NULL)
            status = tn_error_last_code();
    }
    for (int64_t i = 0; i < node->n_in && status != TN_OK; i++)
        out[i] = NULL;
    return status;
}

static tn_status run_all(struct run *run, tn_tensor **out)
{
    tn_graph *graph = run->graph;
    int64_t most_in = 1, most_out = 1;
    tn_status status = TN_ERR_MEMORY;

    for (tn_node *node = graph->first; node != NULL; node = node->next) {
        most_in = node->n_in > most_in ? node->n_in : most_in;
        most_out = node->n_out > most_out ? node->n_out : most_out;
    }
    run->values = tn_calloc((size_t)graph->next_id + 1, sizeof *run->values);
    run->operands = tn_malloc((size_t)most_in * sizeof *run->operands);
    run->results = tn_malloc((size_t)most_out * sizeof *run->results);
    if (run->values != NULL && run->operands != NULL && run->results != NULL)
        status = check_guards(run);
    for (tn_node *node = graph->first; node != NULL && status == TN_OK; node = node->next)
        status = run_node(run, node);
    if (status == TN_OK)
        status = give_outputs(run, out);
    for (int64_t i = 0; run->values != NULL && i < graph->next_id; i++)
        tn_tensor_drop(run->values[i].tensor);
    tn_free(run->values);
    tn_free(run->operands);
    tn_free(run->results);
    return status;
}

static tn_status wrong_count(const char *what, int64_t got, int64_t expected)
{
    return tn_fail(TN_ERR_VALUE, "tn_graph_run: %s: wrong count, got %lld; the graph has %lld",
                   what, (long long)got, (long long)expected);
}

tn_status tn_graph_run(tn_graph *graph, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                       int64_t n_out)
{
    struct run run = { .graph = graph, .in = in };
    bool autocast;
    tn_status status;

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
            return tn__tensor_bad(in[i], "tn_graph_run: in");
    autocast = tn__autocast_pause(); /* a graph computes in the dtypes that it was built with */
    status = run_all(&run, out);
    tn__autocast_resume(autocast);
    return status;
}
