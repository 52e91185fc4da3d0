/* SPDX-License-Identifier: MIT
 *
 * Runs the nodes of a segment one after the other. A value is dropped after its last use, so that a
 * call needs no more memory than the same network of layers. */
#include "run.h"

#include <string.h>

/* ---- values ---------------------------------------------------------------------------------- */

tn_status run_begin(struct run *run, const struct program *program, tn_module *module,
                    bool training, int64_t count)
{
    *run = (struct run){ program, module, training, NULL, count };
    run->values = tn_calloc((size_t)count + 1, sizeof *run->values);
    return run->values != NULL ? TN_OK : TN_ERR_MEMORY;
}

static void drop_value(tn_value value)
{
    for (uint32_t i = 0; value.kind == TN_VALUE_LIST && i < value.count; i++)
        drop_value(value.as.list[i]);
    if (value.kind == TN_VALUE_TENSOR)
        tn_tensor_drop(value.as.tensor);
    if (value.kind == TN_VALUE_LIST)
        tn_free((void *)(uintptr_t)value.as.list);
}

static void drop(struct run *run, int64_t index)
{
    drop_value(run->values[index]);
    run->values[index] = tn_value_none();
}

/* Makes a value that the call owns, as sequences of ONNX are. */
static tn_status own(tn_value *value)
{
    tn_value *items;
    tn_status status = TN_OK;

    if (value->kind == TN_VALUE_TENSOR)
        tn_tensor_keep(value->as.tensor);
    if (value->kind != TN_VALUE_LIST)
        return TN_OK;
    items = tn_calloc((size_t)value->count + 1, sizeof *items);
    if (items == NULL)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < value->count && status == TN_OK; i++) {
        items[i] = value->as.list[i];
        status = own(&items[i]);
        if (status != TN_OK)
            items[i] = tn_value_none();
    }
    *value = tn_value_list(items, value->count);
    if (status != TN_OK)
        drop_value(*value);
    return status;
}

void run_end(struct run *run)
{
    for (int64_t i = 0; i < run->count && run->values != NULL; i++)
        drop(run, i);
    tn_free(run->values);
}

tn_status run_set(struct run *run, int64_t index, tn_value value)
{
    tn_status status = own(&value);

    drop(run, index);
    run->values[index] = status == TN_OK ? value : tn_value_none();
    return status;
}

/* ---- arguments ------------------------------------------------------------------------------- */

tn_status run_arg(const struct run *run, tn_rule_call *call, const struct arg *arg, tn_value *out)
{
    tn_value *items;
    tn_status status = TN_OK;

    switch (arg->kind) {
    case ARG_CONSTANT: *out = arg->as.constant; return TN_OK;
    case ARG_VALUE:
        *out = run->values[arg->as.value];
        return out->kind != TN_VALUE_NONE || run->program->rules_of == RULES_ONNX
                   ? TN_OK
                   : tn_fail(TN_ERR_NOT_IMPLEMENTED, "uses a result that no rule gives");
    case ARG_GRAPH:
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "a graph as an argument; expected values");
    case ARG_LIST: break;
    }
    items = rule_memory(call, arg->count, sizeof *items);
    if (items == NULL)
        return call->status;
    for (int64_t i = 0; i < arg->count && status == TN_OK; i++)
        status = run_arg(run, call, &arg->as.list[i], &items[i]);
    *out = tn_value_list(items, (uint32_t)arg->count);
    return status;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static tn_status too_few(const tn_rule_call *call)
{
    return tn_fail(TN_ERR_RUNTIME, "the rule gives %lld results; expected more",
                   (long long)call->n_results);
}

/* Stores a result that is a list of values. */
static tn_status store_list(struct run *run, const struct result *result, const tn_value *value)
{
    if (value->kind != TN_VALUE_LIST || (int64_t)value->count != result->count)
        return tn_fail(TN_ERR_RUNTIME, "a result is %s of %lld; expected a list of %lld",
                       tn_value_kind_name(value->kind), (long long)value->count,
                       (long long)result->count);
    for (int64_t i = 0; i < result->count; i++) {
        if (result->list[i] < 0)
            continue;
        if (value->as.list[i].kind == TN_VALUE_LIST)
            return tn_fail(TN_ERR_TYPE,
                           "element %lld of a result is a list; expected a tensor or a number",
                           (long long)i);
        if (run_set(run, result->list[i], value->as.list[i]) != TN_OK)
            return tn_error_last_code();
    }
    return TN_OK;
}

/* The results of a rule in order; a function with one list as its result may give its elements. */
static tn_status store(struct run *run, const struct node *node, const tn_rule_call *call)
{
    tn_status status = TN_OK;

    if (node->n_results == 1 && node->results[0].list != NULL &&
        !(call->n_results == 1 && call->results[0].kind == TN_VALUE_LIST)) {
        tn_value list = tn_value_list(call->results, (uint32_t)call->n_results);

        return store_list(run, &node->results[0], &list);
    }
    for (int64_t i = 0; i < node->n_results && status == TN_OK; i++) {
        const struct result *result = &node->results[i];

        if (result->list == NULL && result->value < 0)
            continue;
        if (i >= call->n_results)
            return too_few(call);
        if (result->list != NULL)
            status = store_list(run, result, &call->results[i]);
        else if (call->results[i].kind == TN_VALUE_LIST && !call->host)
            status = tn_fail(TN_ERR_RUNTIME, "result %lld is a list; expected one value",
                             (long long)i);
        else
            status = run_set(run, result->value, call->results[i]);
    }
    return status;
}

/* The mode of the module takes the place of the one that the program was exported in. */
static void set_mode(const struct run *run, const struct rules_bound *bound, tn_value *values)
{
    tn_value *mode = bound->mode >= 0 ? &values[bound->mode] : NULL;

    if (mode == NULL)
        return;
    if (mode->kind == TN_VALUE_BOOL || mode->kind == TN_VALUE_INT)
        mode->as.i = run->training;
    else if (mode->kind == TN_VALUE_FLOAT && !run->training)
        mode->as.f = 0.0;
}

static tn_status call_rule(struct run *run, const struct node *node, tn_rule_call *call)
{
    tn_value values[RULES_ARGUMENTS];
    tn_status status = TN_OK;

    for (int64_t i = 0; i < node->n_args && status == TN_OK; i++)
        status = run_arg(run, call, &node->args[i], &values[i]);
    if (status != TN_OK)
        return status;
    set_mode(run, node->rule, values);
    call->names = node->rule->names;
    call->values = values;
    call->count = node->n_args;
    if (node->in_place) {
        if (node->n_args == 0 || values[0].kind != TN_VALUE_TENSOR)
            return tn_fail(TN_ERR_FORMAT, "in place: the first argument is no tensor");
        call->into = values[0].as.tensor;
    }
    return rules_call_run(node->rule, call);
}

/* Increments the count of batches of the norm in this module. */
static tn_status count_batch(const struct run *run)
{
    uint64_t scope;
    tn_tensor *count;
    tn_status status;

    if (!run->training || tn_module_slot_kind(run->module, PROGRAM_COUNTER) == 0)
        return TN_OK;
    scope = tn_scope_begin();
    count = tn_module_get(run->module, PROGRAM_COUNTER);
    status = count == NULL ? tn_error_last_code() : count == TN_NONE ? TN_OK : tn_grad_begin(false);
    if (status == TN_OK && count != TN_NONE) {
        if (tn_add_scalar_(count, 1) == NULL)
            status = tn_error_last_code();
        tn_grad_end();
    }
    tn_scope_end(scope);
    return status;
}

static tn_status run_node(struct run *run, const struct node *node)
{
    tn_rule_call call = { .name = node->function,
                          .training = run->training,
                          .n_outputs = node->n_results,
                          .host = run->program->rules_of == RULES_ONNX };
    uint64_t scope;
    tn_status status;

    scope = tn_scope_begin();
    for (int64_t i = 0; i < node->n_results; i++)
        if (node->results[i].value >= 0 || node->results[i].list != NULL)
            call.wanted = i + 1;
    if (node->counts && !run->training) /* the count stays */
        status = rule_give_value(&call, run->values[node->args[0].as.value]);
    else
        status = node->control != NULL ? control_call(run, node, &call)
                                       : call_rule(run, node, &call);
    if (status == TN_OK)
        status = store(run, node, &call);
    if (status == TN_OK && node->normalizes)
        status = count_batch(run);
    if (status != TN_OK)
        status = tn_error_prefix("%s (node %.100s): ", node->function, node->name);
    rules_call_end(&call);
    tn_scope_end(scope);
    return status;
}

/* ---- segments -------------------------------------------------------------------------------- */

tn_status run_segment(struct run *run, const struct segment *segment)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < segment->n_steps && status == TN_OK; i++) {
        const struct step *step = &segment->steps[i];
        const int64_t *dies = step->node != NULL ? step->node->dies : step->call->dies;
        int64_t n_dies = step->node != NULL ? step->node->n_dies : step->call->n_dies;

        status = step->node != NULL ? run_node(run, step->node) : module_call(run, step->call);
        for (int64_t k = 0; k < n_dies; k++)
            drop(run, dies[k]);
    }
    return status;
}

tn_status run_move(tn_rule_call *call, tn_value *value)
{
    tn_value *items;
    tn_status status = TN_OK;

    if (value->kind == TN_VALUE_TENSOR)
        tn_tensor_to_scope(tn_tensor_keep(value->as.tensor));
    if (value->kind != TN_VALUE_LIST)
        return TN_OK;
    items = rule_memory(call, value->count, sizeof *items);
    if (items == NULL)
        return call->status;
    for (uint32_t i = 0; i < value->count && status == TN_OK; i++) {
        items[i] = value->as.list[i];
        status = run_move(call, &items[i]);
    }
    *value = tn_value_list(items, value->count);
    return status;
}

static tn_status give_outputs(const struct run *run, tn_rule_call *outer, const struct graph *graph,
                              tn_value *out)
{
    tn_rule_call call = { 0 };
    tn_status status = TN_OK;

    for (int64_t i = 0; i < graph->n_outputs && status == TN_OK; i++) {
        status = run_arg(run, &call, &graph->outputs[i], &out[i]);
        if (status == TN_OK && out[i].kind == TN_VALUE_LIST && run->program->rules_of != RULES_ONNX)
            status = tn_fail(TN_ERR_NOT_IMPLEMENTED,
                             "output %lld of a graph is a list; expected a tensor or a number",
                             (long long)i);
        if (status == TN_OK)
            status = run_move(outer, &out[i]);
    }
    rules_call_end(&call);
    return status;
}

tn_status run_graph(const struct run *around, tn_rule_call *call, const struct graph *graph,
                    const tn_value *in, int64_t n_in, tn_value *out)
{
    struct run run;
    tn_status status;

    if (n_in != graph->n_inputs)
        return tn_fail(TN_ERR_FORMAT, "a graph gets %lld arguments; expected %lld", (long long)n_in,
                       (long long)graph->n_inputs);
    status = run_begin(&run, around->program, around->module, around->training,
                       graph->whole->n_values);
    for (int64_t i = 0; i < n_in && status == TN_OK; i++)
        if (graph->inputs[i] >= 0)
            status = run_set(&run, graph->inputs[i], in[i]);
    if (status == TN_OK)
        status = run_segment(&run, graph->whole);
    if (status == TN_OK)
        status = give_outputs(&run, call, graph, out);
    run_end(&run);
    return status;
}
