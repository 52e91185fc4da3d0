/* SPDX-License-Identifier: MIT
 *
 * Control flow: functions whose arguments are graphs. Where a tensor decides, tn_cond and tn_loop
 * run the graphs, so that scripts of the module have them, too. */
#include "run.h"

#include <string.h>

/* ---- arguments ------------------------------------------------------------------------------- */

static const struct graph *graph_at(const struct node *node, int64_t index)
{
    if (index < node->n_args && node->args[index].kind == ARG_GRAPH)
        return node->args[index].as.graph;
    tn_fail(TN_ERR_FORMAT, "argument %lld: missing or wrong; expected a graph",
            (long long)index + 1);
    return NULL;
}

static tn_status value_at(const struct run *run, const struct node *node, int64_t index,
                          tn_rule_call *call, tn_value *out)
{
    if (index < node->n_args)
        return run_arg(run, call, &node->args[index], out);
    return tn_fail(TN_ERR_FORMAT, "argument %lld: missing", (long long)index + 1);
}

/* Values that go into a graph. */
struct operands {
    tn_value *at;
    int64_t count;
};

static tn_status add_value(struct operands *operands, tn_rule_call *call, const tn_value *value)
{
    tn_value *more;

    if ((operands->count & (operands->count - 1)) == 0) {
        more = rule_memory(call, 2 * operands->count + 1, sizeof *more);
        if (more == NULL)
            return call->status;
        if (operands->count > 0)
            memcpy(more, operands->at, (size_t)operands->count * sizeof *more);
        operands->at = more;
    }
    operands->at[operands->count++] = *value;
    return TN_OK;
}

/* Adds the arguments from `first` to before `end`: values, or lists of values. Arguments with a
 * name are settings. */
static tn_status add_operands(const struct run *run, const struct node *node, int64_t first,
                              int64_t end, tn_rule_call *call, struct operands *operands)
{
    tn_status status = TN_OK;

    for (int64_t i = first; i < end && i < node->n_args && status == TN_OK; i++) {
        tn_value value;

        if (node->names[i][0] != '\0')
            continue;
        status = value_at(run, node, i, call, &value);
        if (status != TN_OK || value.kind != TN_VALUE_LIST) {
            if (status == TN_OK)
                status = add_value(operands, call, &value);
            continue;
        }
        for (uint32_t k = 0; k < value.count && status == TN_OK; k++)
            status = add_value(operands, call, &value.as.list[k]);
    }
    return status;
}

/* Runs a graph; its outputs become the results of the call. */
static tn_status give_graph(const struct run *run, const struct graph *graph,
                            const struct operands *operands, tn_rule_call *call)
{
    tn_value *out = rule_memory(call, graph->n_outputs, sizeof *out);
    tn_status status = out != NULL ? run_graph(run, call, graph, operands->at, operands->count, out)
                                   : call->status;

    for (int64_t i = 0; i < graph->n_outputs && status == TN_OK; i++)
        status = rule_give_value(call, out[i]);
    return status;
}

/* ---- blocks of tn_cond and tn_loop ----------------------------------------------------------- */

/* What the functions of tn_cond and tn_loop need: two graphs, and the values of a call, of which
 * the first `n_tensors` tensors are replaced by those that the function gets. */
struct blocks {
    const struct run *run;
    const struct graph *first, *second;
    const struct operands *operands;
    tn_rule_call *call;
};

static tn_status run_block(const struct blocks *blocks, const struct graph *graph,
                           tn_tensor *const *in, int64_t n_in, tn_value *out)
{
    int64_t count = blocks->operands->count, at = 0;
    tn_value *values = tn_calloc((size_t)count + 1, sizeof *values);
    tn_status status;

    if (values == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        values[i] = blocks->operands->at[i].kind == TN_VALUE_TENSOR && at < n_in
                        ? tn_value_tensor(in[at++])
                        : blocks->operands->at[i];
    status = run_graph(blocks->run, blocks->call, graph, values, count, out);
    tn_free(values);
    return status;
}

static tn_status tensors_of_block(const struct blocks *blocks, const struct graph *graph,
                                  tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                                  int64_t n_out)
{
    tn_value *values = tn_calloc((size_t)graph->n_outputs + 1, sizeof *values);
    tn_status status = values == NULL ? TN_ERR_MEMORY
                       : graph->n_outputs != n_out
                           ? tn_fail(TN_ERR_FORMAT, "a graph has %lld outputs; expected %lld",
                                     (long long)graph->n_outputs, (long long)n_out)
                           : run_block(blocks, graph, in, n_in, values);

    for (int64_t i = 0; i < n_out && status == TN_OK; i++) {
        out[i] = values[i].kind == TN_VALUE_TENSOR ? values[i].as.tensor
                                                   : rules_number(&values[i], NULL);
        if (out[i] == NULL)
            status = tn_error_last_code();
    }
    tn_free(values);
    return status;
}

static tn_status first_block(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                             int64_t n_out)
{
    const struct blocks *blocks = user;

    return tensors_of_block(blocks, blocks->first, in, n_in, out, n_out);
}

static tn_status second_block(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                              int64_t n_out)
{
    const struct blocks *blocks = user;

    return tensors_of_block(blocks, blocks->second, in, n_in, out, n_out);
}

/* The tensors among the values. */
static tn_tensor **tensors_among(const struct operands *operands, tn_rule_call *call,
                                 int64_t *count)
{
    tn_tensor **tensors = rule_memory(call, operands->count, sizeof *tensors);

    *count = 0;
    for (int64_t i = 0; i < operands->count && tensors != NULL; i++)
        if (operands->at[i].kind == TN_VALUE_TENSOR)
            tensors[(*count)++] = operands->at[i].as.tensor;
    return tensors;
}

/* ---- cond, while_loop ------------------------------------------------------------------------ */

static tn_status call_cond(const struct run *run, const struct node *node, tn_rule_call *call)
{
    const struct graph *then_graph = graph_at(node, 1), *else_graph = graph_at(node, 2);
    struct operands operands = { 0 };
    struct blocks blocks = { run, then_graph, else_graph, &operands, call };
    tn_value predicate;
    tn_tensor **in, **out;
    int64_t n_in;
    tn_status status;

    if (then_graph == NULL || else_graph == NULL)
        return tn_error_last_code();
    status = value_at(run, node, 0, call, &predicate);
    if (status == TN_OK)
        status = add_operands(run, node, 3, node->n_args, call, &operands);
    if (status != TN_OK)
        return status;
    if (predicate.kind == TN_VALUE_BOOL || predicate.kind == TN_VALUE_INT)
        return give_graph(run, predicate.as.i != 0 ? then_graph : else_graph, &operands, call);
    if (predicate.kind != TN_VALUE_TENSOR)
        return tn_fail(TN_ERR_TYPE, "predicate: wrong kind, got %s; expected a tensor or a bool",
                       tn_value_kind_name(predicate.kind));
    in = tensors_among(&operands, call, &n_in);
    out = rule_memory(call, then_graph->n_outputs, sizeof *out);
    if (in == NULL || out == NULL)
        return call->status;
    status = tn_cond(predicate.as.tensor, first_block, second_block, in, n_in, out,
                     then_graph->n_outputs, &blocks);
    return status == TN_OK ? rule_give_all(call, out, then_graph->n_outputs) : status;
}

/* Whether a value of a test is true. */
static tn_status truth(const tn_value *value, bool *out)
{
    tn_scalar scalar;

    if (value->kind != TN_VALUE_TENSOR) {
        *out = value->as.i != 0;
        return value->kind == TN_VALUE_BOOL || value->kind == TN_VALUE_INT
                   ? TN_OK
                   : tn_fail(TN_ERR_TYPE, "test: wrong kind, got %s; expected a bool",
                             tn_value_kind_name(value->kind));
    }
    if (tn_tensor_scalar(value->as.tensor, &scalar) != TN_OK)
        return tn_error_last_code();
    *out = scalar.as.i != 0;
    return TN_OK;
}

/* A loop with numbers among the values that change: the host runs it. */
static tn_status loop_on_host(const struct run *run, const struct graph *test,
                              const struct graph *body, struct operands *operands, int64_t count,
                              tn_rule_call *call)
{
    tn_value *out = rule_memory(call, body->n_outputs, sizeof *out), go;
    tn_status status = out != NULL ? TN_OK : call->status;
    bool more = true;

    if (status == TN_OK && (test->n_outputs != 1 || body->n_outputs != count))
        return tn_fail(TN_ERR_FORMAT, "graphs: wrong number of outputs; expected 1 and %lld",
                       (long long)count);
    for (uint64_t step = 0; status == TN_OK; step++) {
        status = tn_progress_report("running a loop", step, 0);
        if (status == TN_OK)
            status = run_graph(run, call, test, operands->at, operands->count, &go);
        if (status == TN_OK)
            status = truth(&go, &more);
        if (status != TN_OK || !more)
            break;
        status = run_graph(run, call, body, operands->at, operands->count, out);
        for (int64_t i = 0; i < count && status == TN_OK; i++)
            operands->at[i] = out[i];
    }
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = rule_give_value(call, operands->at[i]);
    return status;
}

static tn_status call_while(const struct run *run, const struct node *node, tn_rule_call *call)
{
    const struct graph *test = graph_at(node, 0), *body = graph_at(node, 1);
    struct operands operands = { 0 };
    struct blocks blocks = { run, test, body, &operands, call };
    tn_tensor **in, **out;
    int64_t count, n_in;
    tn_status status;

    if (test == NULL || body == NULL)
        return tn_error_last_code();
    status = add_operands(run, node, 2, 3, call, &operands);
    count = operands.count;
    for (int64_t i = 0; i < count && status == TN_OK; i++)
        if (operands.at[i].kind != TN_VALUE_TENSOR) {
            status = add_operands(run, node, 3, node->n_args, call, &operands);
            return status == TN_OK ? loop_on_host(run, test, body, &operands, count, call) : status;
        }
    if (status == TN_OK)
        status = add_operands(run, node, 3, node->n_args, call, &operands);
    in = status == TN_OK ? tensors_among(&operands, call, &n_in) : NULL;
    out = rule_memory(call, count, sizeof *out);
    if (status != TN_OK || in == NULL || out == NULL)
        return status != TN_OK ? status : call->status;
    status = tn_loop(first_block, second_block, -1, in, out, count, &blocks);
    return status == TN_OK ? rule_give_all(call, out, count) : status;
}

/* ---- scan, map ------------------------------------------------------------------------------- */

/* What scan and map loop over: the first dimension of some values; the others are the same in each
 * step, or carried on. */
struct loop {
    struct operands carried, over, same, all;
    int64_t steps;
};

static tn_status count_steps(struct loop *loop)
{
    for (int64_t i = 0; i < loop->over.count; i++)
        if (loop->over.at[i].kind != TN_VALUE_TENSOR ||
            tn_tensor_ndim(loop->over.at[i].as.tensor) == 0 ||
            tn_tensor_size(loop->over.at[i].as.tensor, 0) !=
                tn_tensor_size(loop->over.at[0].as.tensor, 0))
            return tn_fail(TN_ERR_VALUE,
                           "xs: expected tensors of the same size in their first dimension");
    if (loop->over.count == 0)
        return tn_fail(TN_ERR_VALUE, "xs: empty; expected at least one tensor");
    loop->steps = tn_tensor_size(loop->over.at[0].as.tensor, 0);
    return loop->steps > 0 ? TN_OK
                           : tn_fail(TN_ERR_VALUE, "xs: no steps; expected a size of at least 1");
}

/* Fills loop->all with the arguments of step `at`: the values that are carried on, a slice of each
 * tensor that is looped over, and the values that are the same in each step. */
static tn_status fill_step(struct loop *loop, int64_t at)
{
    int64_t n = 0;

    for (int64_t i = 0; i < loop->carried.count; i++)
        loop->all.at[n++] = loop->carried.at[i];
    for (int64_t i = 0; i < loop->over.count; i++) {
        tn_tensor *slice = tn_select(loop->over.at[i].as.tensor, 0, at);

        if (slice == NULL)
            return tn_error_last_code();
        loop->all.at[n++] = tn_value_tensor(slice);
    }
    for (int64_t i = 0; i < loop->same.count; i++)
        loop->all.at[n++] = loop->same.at[i];
    return TN_OK;
}

static tn_status give_stacked(tn_rule_call *call, tn_tensor **parts, int64_t steps, int64_t count)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < count && status == TN_OK; i++)
        status = rule_give(call, tn_stack(parts + i * steps, steps, 0));
    return status;
}

static tn_status run_loop(const struct run *run, const struct graph *graph, struct loop *loop,
                          tn_rule_call *call)
{
    int64_t n_carried = loop->carried.count, stacked = graph->n_outputs - n_carried;
    tn_value *out = rule_memory(call, graph->n_outputs, sizeof *out);
    tn_tensor **parts;
    tn_status status = count_steps(loop);

    if (status == TN_OK && stacked < 0)
        status = tn_fail(TN_ERR_FORMAT, "graph: too few outputs; expected the carried values");
    loop->all.count = n_carried + loop->over.count + loop->same.count;
    loop->all.at = rule_memory(call, loop->all.count, sizeof *loop->all.at);
    parts = status == TN_OK ? rule_memory(call, loop->steps, (size_t)stacked * sizeof *parts)
                            : NULL;
    if (status != TN_OK || out == NULL || parts == NULL || loop->all.at == NULL)
        return status != TN_OK ? status : call->status;
    for (int64_t t = 0; t < loop->steps && status == TN_OK; t++) {
        status = tn_progress_report("running a loop", (uint64_t)t, (uint64_t)loop->steps);
        if (status == TN_OK)
            status = fill_step(loop, t);
        if (status == TN_OK)
            status = run_graph(run, call, graph, loop->all.at, loop->all.count, out);
        for (int64_t i = 0; i < graph->n_outputs && status == TN_OK; i++)
            if (i < n_carried)
                loop->carried.at[i] = out[i];
            else if (out[i].kind == TN_VALUE_TENSOR)
                parts[(i - n_carried) * loop->steps + t] = out[i].as.tensor;
            else
                status = tn_fail(TN_ERR_TYPE, "graph: an output is no tensor");
    }
    for (int64_t i = 0; i < n_carried && status == TN_OK; i++)
        status = rule_give_value(call, loop->carried.at[i]);
    return status == TN_OK ? give_stacked(call, parts, loop->steps, stacked) : status;
}

static tn_status call_scan(const struct run *run, const struct node *node, tn_rule_call *call)
{
    const struct graph *graph = graph_at(node, 0);
    struct loop loop = { 0 };
    tn_status status = graph != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK)
        status = add_operands(run, node, 1, 2, call, &loop.carried);
    if (status == TN_OK)
        status = add_operands(run, node, 2, 3, call, &loop.over);
    if (status == TN_OK)
        status = add_operands(run, node, 3, node->n_args, call, &loop.same);
    return status == TN_OK ? run_loop(run, graph, &loop, call) : status;
}

static tn_status call_map(const struct run *run, const struct node *node, tn_rule_call *call)
{
    const struct graph *graph = graph_at(node, 0);
    struct loop loop = { 0 };
    tn_status status = graph != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK)
        status = add_operands(run, node, 1, 2, call, &loop.over);
    if (status == TN_OK)
        status = add_operands(run, node, 2, node->n_args, call, &loop.same);
    return status == TN_OK ? run_loop(run, graph, &loop, call) : status;
}

/* ---- regions --------------------------------------------------------------------------------- */

static tn_status call_region(const struct run *run, const struct node *node, int64_t graph_index,
                             int64_t first, tn_rule_call *call)
{
    const struct graph *graph = graph_at(node, graph_index);
    struct operands operands = { 0 };
    tn_status status = graph != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK)
        status = add_operands(run, node, first, node->n_args, call, &operands);
    return status == TN_OK ? give_graph(run, graph, &operands, call) : status;
}

static tn_status call_grad(const struct run *run, const struct node *node, tn_rule_call *call)
{
    tn_value enabled;
    tn_status status = value_at(run, node, 0, call, &enabled);

    if (status == TN_OK && enabled.kind != TN_VALUE_BOOL)
        status = tn_fail(TN_ERR_FORMAT, "enabled: wrong kind, got %s; expected a bool",
                         tn_value_kind_name(enabled.kind));
    if (status != TN_OK)
        return status;
    status = tn_grad_begin(enabled.as.i != 0);
    if (status == TN_OK)
        status = call_region(run, node, 1, 2, call);
    tn_grad_end();
    return status;
}

/* The type of the device on which the operands are, whatever the program was exported on. */
static const char *device_type(const struct run *run)
{
    for (int64_t i = 0; i < run->count; i++)
        if (run->values[i].kind == TN_VALUE_TENSOR)
            return tn_device_type(tn_tensor_device(run->values[i].as.tensor));
    return tn_device_type(tn_default_device());
}

static tn_status call_autocast(const struct run *run, const struct node *node, tn_rule_call *call)
{
    tn_value dtype, enabled;
    tn_dtype low = TN_DTYPE_AUTO;
    tn_status status = value_at(run, node, 1, call, &dtype);

    if (status == TN_OK)
        status = value_at(run, node, 2, call, &enabled);
    if (status == TN_OK && dtype.kind == TN_VALUE_STRING)
        status = tn_dtype_parse(dtype.as.s, &low);
    if (status == TN_OK && enabled.kind != TN_VALUE_BOOL)
        status = tn_fail(TN_ERR_FORMAT, "enabled: wrong kind, got %s; expected a bool",
                         tn_value_kind_name(enabled.kind));
    if (status != TN_OK)
        return status;
    status = tn_autocast_begin(device_type(run), low, enabled.as.i != 0);
    if (status == TN_OK)
        status = call_region(run, node, 4, 5, call);
    tn_autocast_end();
    return status;
}

/* Memory is saved by the program that trains (tn_module_recompute), not by the file. */
static tn_status call_checkpoint(const struct run *run, const struct node *node, tn_rule_call *call)
{
    return call_region(run, node, 0, 1, call);
}

static tn_status call_subgraph(const struct run *run, const struct node *node, tn_rule_call *call)
{
    return call_region(run, node, 0, 2, call);
}

/* ---- the list -------------------------------------------------------------------------------- */

static const struct control controls[] = {
    { "higher_order.cond", call_cond },
    { "higher_order.while_loop", call_while },
    { "higher_order.scan", call_scan },
    { "higher_order.map_impl", call_map },
    { "higher_order.wrap_with_set_grad_enabled", call_grad },
    { "higher_order.wrap_with_autocast", call_autocast },
    { "higher_order.tag_activation_checkpoint", call_checkpoint },
    { "higher_order.wrap_activation_checkpoint", call_checkpoint },
    { "higher_order.invoke_subgraph", call_subgraph },
    { NULL, NULL },
};

const struct control *control_find(enum rules_of of, const char *function)
{
    const struct control *control = of == RULES_ONNX ? controls_onnx : controls;

    for (; control->function != NULL; control++)
        if (strcmp(control->function, function) == 0)
            return control;
    return NULL;
}

tn_status control_call(const struct run *run, const struct node *node, tn_rule_call *call)
{
    return node->control->call(run, node, call);
}
