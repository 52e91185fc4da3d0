/* SPDX-License-Identifier: MIT
 *
 * If, Loop and Scan. The values that a graph takes from outside are a list after it among the
 * arguments of the node (nodes.c). */
#include "run.h"

#include <string.h>

/* ---- arguments ------------------------------------------------------------------------------- */

struct body {
    const struct graph *graph;
    tn_value taken;
};

/* The argument with this name, or -1. */
static int64_t argument_at(const struct node *node, const char *name)
{
    for (int64_t i = 0; i < node->n_args; i++)
        if (strcmp(node->names[i], name) == 0)
            return i;
    return -1;
}

static tn_status find_body(const struct run *run, const struct node *node, const char *name,
                           tn_rule_call *call, struct body *out)
{
    int64_t at = argument_at(node, name);

    if (at < 0 || node->args[at].kind != ARG_GRAPH)
        return tn_fail(TN_ERR_FORMAT, "attribute %s: missing; expected a graph", name);
    out->graph = node->args[at].as.graph;
    return run_arg(run, call, &node->args[at + 1], &out->taken);
}

/* The number of inputs of the node: arguments without names. */
static int64_t count_inputs(const struct node *node)
{
    int64_t n = 0;

    while (n < node->n_args && node->names[n][0] == '\0')
        n++;
    return n;
}

static tn_value input_at(const struct run *run, const struct node *node, int64_t index,
                         tn_rule_call *call)
{
    tn_value value = tn_value_none();

    if (index < count_inputs(node) && call->status == TN_OK)
        call->status = run_arg(run, call, &node->args[index], &value);
    return value;
}

/* Runs a body with these values, and those that it takes from outside. */
static tn_status run_body(const struct run *run, tn_rule_call *call, const struct body *body,
                          const tn_value *in, int64_t n_in, tn_value *out)
{
    int64_t count = n_in + body->taken.count;
    tn_value *all = tn_calloc((size_t)count + 1, sizeof *all);
    tn_status status = all != NULL ? TN_OK : TN_ERR_MEMORY;

    if (status == TN_OK) {
        if (n_in > 0)
            memcpy(all, in, (size_t)n_in * sizeof *all);
        if (body->taken.count > 0)
            memcpy(all + n_in, body->taken.as.list, body->taken.count * sizeof *all);
        status = run_graph(run, call, body->graph, all, count, out);
    }
    tn_free(all);
    return status;
}

/* A value as one truth, a number of the host. */
static tn_status truth(const tn_value *value, bool *out)
{
    tn_scalar scalar;

    if (value->kind == TN_VALUE_LIST && value->count == 1)
        value = &value->as.list[0];
    if (value->kind != TN_VALUE_TENSOR) {
        *out = value->as.i != 0;
        return value->kind == TN_VALUE_INT || value->kind == TN_VALUE_BOOL
                   ? TN_OK
                   : tn_fail(TN_ERR_TYPE,
                             "condition: wrong kind, got %s; expected a tensor, a bool or an int",
                             tn_value_kind_name(value->kind));
    }
    if (tn_tensor_numel(value->as.tensor) != 1)
        return tn_fail(TN_ERR_VALUE, "condition: %lld elements; expected one",
                       (long long)tn_tensor_numel(value->as.tensor));
    if (tn_tensor_scalar(tn_reshape(value->as.tensor, TN_SCALAR_SHAPE), &scalar) != TN_OK)
        return tn_error_last_code();
    *out = scalar.as.i != 0;
    return TN_OK;
}

/* ---- If -------------------------------------------------------------------------------------- */

/* For tn_cond: both bodies, and which tensor of its arguments is which value that they take. */
struct choice {
    const struct run *run;
    tn_rule_call *call;
    const struct body *bodies[2];
    tn_value *others; /* results that are no tensors */
    bool *is_other;
    int calls; /* of bodies; two while a module is traced */
    bool has_others;
};

static tn_status run_choice(struct choice *c, int which, tn_tensor *const *in, tn_tensor **out,
                            int64_t n_out)
{
    const struct body *body = c->bodies[which];
    struct body inner = *body;
    tn_value *taken = tn_calloc(body->taken.count + (size_t)body->graph->n_outputs + 1,
                                sizeof *taken);
    tn_value *values = taken != NULL ? taken + body->taken.count : NULL;
    int64_t at = 0;
    tn_status status = taken != NULL ? TN_OK : TN_ERR_MEMORY;

    /* The tensors of the first body come before those of the second. */
    for (uint32_t i = 0; which == 1 && i < c->bodies[0]->taken.count; i++)
        at += c->bodies[0]->taken.as.list[i].kind == TN_VALUE_TENSOR;
    for (uint32_t i = 0; i < body->taken.count && taken != NULL; i++)
        taken[i] = body->taken.as.list[i].kind == TN_VALUE_TENSOR ? tn_value_tensor(in[at++])
                                                                  : body->taken.as.list[i];
    inner.taken = tn_value_list(taken, body->taken.count);
    if (status == TN_OK)
        status = run_body(c->run, c->call, &inner, NULL, 0, values);
    for (int64_t i = 0; i < n_out && status == TN_OK; i++) {
        status = host_tensor(&values[i]);
        out[i] = NULL;
        if (status == TN_OK && values[i].kind == TN_VALUE_TENSOR) {
            out[i] = values[i].as.tensor;
        } else if (status == TN_OK) { /* a sequence, or None: a tensor stands for it */
            c->others[i] = values[i];
            c->is_other[i] = true;
            c->has_others = true;
            out[i] = tn_full(TN_NONE, TN_SCALAR_SHAPE, tn_scalar_int(0), TN_F32);
            status = out[i] != NULL ? TN_OK : tn_error_last_code();
        }
    }
    c->calls++;
    tn_free(taken);
    return status;
}

static tn_status give_choice(const struct choice *c, tn_tensor *const *out, int64_t n_out)
{
    tn_status status = TN_OK;

    if (c->has_others && c->calls > 1)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "a branch gives a sequence; expected tensors in a graph");
    for (int64_t i = 0; i < n_out && status == TN_OK; i++)
        status = c->is_other[i] ? rule_give_value(c->call, c->others[i])
                                : rule_give(c->call, out[i]);
    return status;
}

static tn_status first_choice(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                              int64_t n_out)
{
    (void)n_in;
    return run_choice(user, 0, in, out, n_out);
}

static tn_status second_choice(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                               int64_t n_out)
{
    (void)n_in;
    return run_choice(user, 1, in, out, n_out);
}

/* A tensor decides: while a module is traced both branches are recorded. */
static tn_status call_cond(const struct run *run, tn_rule_call *call, const struct body *bodies,
                           tn_tensor *condition)
{
    struct choice choice = { .run = run, .call = call, .bodies = { &bodies[0], &bodies[1] } };
    int64_t n_out = bodies[0].graph->n_outputs, n_in = 0;
    tn_tensor **in = rule_memory(call, bodies[0].taken.count + bodies[1].taken.count, sizeof *in);
    tn_tensor **out = rule_memory(call, n_out, sizeof *out);
    tn_status status;

    choice.others = rule_memory(call, n_out, sizeof *choice.others);
    choice.is_other = rule_memory(call, n_out, sizeof *choice.is_other);
    if (in == NULL || out == NULL || choice.others == NULL || choice.is_other == NULL)
        return call->status;
    for (int which = 0; which < 2; which++)
        for (uint32_t i = 0; i < bodies[which].taken.count; i++)
            if (bodies[which].taken.as.list[i].kind == TN_VALUE_TENSOR)
                in[n_in++] = bodies[which].taken.as.list[i].as.tensor;
    status = tn_cond(rule_cast(tn_reshape(condition, TN_SCALAR_SHAPE), TN_BOOL), first_choice,
                     second_choice, in, n_in, out, n_out, &choice);
    return status == TN_OK ? give_choice(&choice, out, n_out) : status;
}

static tn_status call_if(const struct run *run, const struct node *node, tn_rule_call *call)
{
    tn_value condition = input_at(run, node, 0, call), *out;
    struct body bodies[2];
    bool which = false;
    tn_status status = find_body(run, node, "then_branch", call, &bodies[0]);

    if (status == TN_OK)
        status = find_body(run, node, "else_branch", call, &bodies[1]);
    if (status != TN_OK || call->status != TN_OK)
        return status != TN_OK ? status : call->status;
    if (bodies[0].graph->n_outputs != bodies[1].graph->n_outputs)
        return tn_fail(TN_ERR_FORMAT, "else_branch: %lld outputs; expected %lld",
                       (long long)bodies[1].graph->n_outputs,
                       (long long)bodies[0].graph->n_outputs);
    if (condition.kind == TN_VALUE_TENSOR)
        return call_cond(run, call, bodies, condition.as.tensor);
    status = truth(&condition, &which);
    if (status != TN_OK)
        return status;
    out = rule_memory(call, bodies[0].graph->n_outputs, sizeof *out);
    if (out == NULL)
        return call->status;
    status = run_body(run, call, &bodies[which ? 0 : 1], NULL, 0, out);
    for (int64_t i = 0; i < bodies[0].graph->n_outputs && status == TN_OK; i++)
        status = rule_give_value(call, out[i]);
    return status;
}

/* ---- results of loops ------------------------------------------------------------------------ */

/* A value of each step, put together afterwards. The tensors are owned. */
struct collected {
    tn_tensor **at;
    int64_t count, capacity;
};

static void drop_collected(const struct collected *scans, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < scans[i].count; k++)
            tn_tensor_drop(scans[i].at[k]);
}

static tn_status collect(tn_rule_call *call, struct collected *c, tn_value value)
{
    tn_tensor **more;

    if (host_tensor(&value) != TN_OK)
        return tn_error_last_code();
    if (value.kind != TN_VALUE_TENSOR)
        return tn_fail(TN_ERR_TYPE, "a scan output is %s; expected a tensor",
                       tn_value_kind_name(value.kind));
    if (c->count == c->capacity) {
        c->capacity = 2 * c->capacity + 16;
        more = rule_memory(call, c->capacity, sizeof *more);
        if (more == NULL)
            return call->status;
        if (c->count > 0)
            memcpy(more, c->at, (size_t)c->count * sizeof *more);
        c->at = more;
    }
    c->at[c->count++] = tn_tensor_keep(value.as.tensor);
    return TN_OK;
}

static tn_status give_collected(tn_rule_call *call, struct collected *c, int64_t axis,
                                bool backwards)
{
    if (c->count == 0)
        return rule_give(call, tn_full(TN_NONE, TN_SHAPE(0), tn_scalar_int(0), TN_F32));
    for (int64_t i = 0; backwards && i < c->count / 2; i++) {
        tn_tensor *other = c->at[c->count - 1 - i];

        c->at[c->count - 1 - i] = c->at[i];
        c->at[i] = other;
    }
    return rule_give(call, tn_stack(c->at, c->count, axis));
}

/* Keeps the values that a step gives to the next one; those of the step before are dropped. */
static tn_status carry(struct run *carried, tn_value *in, const tn_value *out, int64_t n)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < n && status == TN_OK; i++) {
        status = run_set(carried, i, out[i]);
        in[i] = carried->values[i];
    }
    return status;
}

/* ---- Loop ------------------------------------------------------------------------------------ */

/* The number of trips; INT64_MAX for None. */
static int64_t count_trips(tn_rule_call *call, tn_value value)
{
    int64_t count = INT64_MAX;

    if (value.kind == TN_VALUE_TENSOR)
        call->status = host_numbers(call, &value);
    if (value.kind == TN_VALUE_LIST && value.count == 1)
        value = value.as.list[0];
    if (value.kind == TN_VALUE_INT)
        count = value.as.i;
    else if (value.kind != TN_VALUE_NONE && call->status == TN_OK)
        call->status = tn_fail(TN_ERR_TYPE, "M: expected an integer");
    return count;
}

static tn_status call_loop(const struct run *run, const struct node *node, tn_rule_call *call)
{
    int64_t trips = count_trips(call, input_at(run, node, 0, call)), n_carried, n_out;
    tn_value go = input_at(run, node, 1, call), *in, *out;
    struct collected *scans;
    struct run carried;
    struct body body;
    bool more = true;
    tn_status status = find_body(run, node, "body", call, &body);

    n_carried = count_inputs(node) > 2 ? count_inputs(node) - 2 : 0;
    if (status != TN_OK || call->status != TN_OK)
        return status != TN_OK ? status : call->status;
    n_out = body.graph->n_outputs;
    if (n_out < 1 + n_carried)
        return tn_fail(TN_ERR_FORMAT, "body: %lld outputs; expected at least %lld",
                       (long long)n_out, (long long)(1 + n_carried));
    in = rule_memory(call, 2 + n_carried, sizeof *in);
    out = rule_memory(call, n_out, sizeof *out);
    scans = rule_memory(call, n_out, sizeof *scans);
    for (int64_t i = 0; i < n_carried && in != NULL; i++)
        in[2 + i] = input_at(run, node, 2 + i, call);
    if (call->status != TN_OK)
        return call->status;
    if (go.kind != TN_VALUE_NONE)
        status = truth(&go, &more);
    if (status == TN_OK)
        status = run_begin(&carried, run->program, run->module, run->training, n_carried);
    else
        carried = (struct run){ 0 };
    for (int64_t step = 0; status == TN_OK && more && step < trips; step++) {
        uint64_t scope = tn_scope_begin();

        status = tn_progress_report("running a loop", (uint64_t)step, 0);
        in[0] = tn_value_int(step);
        in[1] = tn_value_bool(true);
        if (status == TN_OK)
            in[1] = tn_value_tensor(
                tn_full(TN_NONE, TN_SCALAR_SHAPE, tn_scalar_bool(true), TN_BOOL));
        if (status == TN_OK && in[1].as.tensor == NULL)
            status = tn_error_last_code();
        if (status == TN_OK)
            status = run_body(run, call, &body, in, 2 + n_carried, out);
        if (status == TN_OK)
            status = truth(&out[0], &more);
        if (status == TN_OK)
            status = carry(&carried, in + 2, out + 1, n_carried);
        for (int64_t i = 1 + n_carried; i < n_out && status == TN_OK; i++)
            status = collect(call, &scans[i], out[i]);
        tn_scope_end(scope);
    }
    for (int64_t i = 0; i < n_carried && status == TN_OK; i++) {
        status = run_move(call, &in[2 + i]);
        if (status == TN_OK)
            status = rule_give_value(call, in[2 + i]);
    }
    for (int64_t i = 1 + n_carried; i < n_out && status == TN_OK; i++)
        status = give_collected(call, &scans[i], 0, false);
    drop_collected(scans, n_out);
    run_end(&carried);
    return status;
}

/* ---- Scan ------------------------------------------------------------------------------------ */

/* An integer of an attribute that is a list, or 0. */
static int64_t setting(const struct node *node, const char *name, int64_t index)
{
    int64_t at = argument_at(node, name);
    const tn_value *value = at >= 0 && node->args[at].kind == ARG_CONSTANT
                                ? &node->args[at].as.constant
                                : NULL;

    if (value == NULL)
        return 0;
    if (value->kind == TN_VALUE_INT)
        return value->as.i;
    return value->kind == TN_VALUE_LIST && index < (int64_t)value->count &&
                   value->as.list[index].kind == TN_VALUE_INT
               ? value->as.list[index].as.i
               : 0;
}

/* The slice of an input for a step; all inputs have the same number of steps. */
static tn_status take_slice(const struct node *node, tn_value input, int64_t index, int64_t step,
                            int64_t *steps, tn_value *out)
{
    int64_t axis = setting(node, "scan_input_axes", index);
    tn_tensor *x;

    if (host_tensor(&input) != TN_OK)
        return tn_error_last_code();
    if (input.kind != TN_VALUE_TENSOR)
        return tn_fail(TN_ERR_TYPE, "a scan input is %s; expected a tensor",
                       tn_value_kind_name(input.kind));
    x = input.as.tensor;
    axis += axis < 0 ? tn_tensor_ndim(x) : 0;
    if (axis < 0 || axis >= tn_tensor_ndim(x))
        return tn_fail(TN_ERR_INDEX, "scan_input_axes: out of range, got %lld; expected 0 to %lld",
                       (long long)axis, (long long)tn_tensor_ndim(x) - 1);
    if (*steps < 0)
        *steps = tn_tensor_size(x, axis);
    if (tn_tensor_size(x, axis) != *steps)
        return tn_fail(TN_ERR_VALUE, "scan input %lld: %lld steps; expected %lld", (long long)index,
                       (long long)tn_tensor_size(x, axis), (long long)*steps);
    if (step >= *steps)
        return TN_OK;
    if (setting(node, "scan_input_directions", index) == 1)
        step = *steps - 1 - step;
    *out = tn_value_tensor(tn_select(x, axis, step));
    return out->as.tensor != NULL ? TN_OK : tn_error_last_code();
}

static tn_status call_scan(const struct run *run, const struct node *node, tn_rule_call *call)
{
    int64_t n_in = count_inputs(node), n_scan = setting(node, "num_scan_inputs", 0);
    int64_t n_carried = n_scan >= 1 ? n_in - n_scan : -1, steps = -1, n_out;
    tn_value *given = rule_memory(call, n_in, sizeof *given), *in, *out;
    struct collected *scans;
    struct run carried;
    struct body body;
    tn_status status = find_body(run, node, "body", call, &body);

    if (status != TN_OK)
        return status;
    n_out = body.graph->n_outputs;
    if (n_scan < 1 || n_carried < 0 || n_out < n_carried || node->version < 9)
        return tn_fail(
            TN_ERR_NOT_IMPLEMENTED,
            "num_scan_inputs: %lld of %lld inputs; expected some, and version 9 or later",
            (long long)n_scan, (long long)n_in);
    in = rule_memory(call, n_in, sizeof *in);
    out = rule_memory(call, n_out, sizeof *out);
    scans = rule_memory(call, n_out, sizeof *scans);
    for (int64_t i = 0; i < n_in && given != NULL && in != NULL; i++)
        in[i] = given[i] = input_at(run, node, i, call);
    if (call->status != TN_OK)
        return call->status;
    status = run_begin(&carried, run->program, run->module, run->training, n_carried);
    for (int64_t step = 0; status == TN_OK && (steps < 0 || step < steps); step++) {
        uint64_t scope = tn_scope_begin();

        for (int64_t i = 0; i < n_scan && status == TN_OK; i++)
            status = take_slice(node, given[n_carried + i], i, step, &steps, &in[n_carried + i]);
        if (status == TN_OK && step < steps)
            status = tn_progress_report("running a loop", (uint64_t)step, (uint64_t)steps);
        if (status == TN_OK && step < steps) {
            status = run_body(run, call, &body, in, n_in, out);
            if (status == TN_OK)
                status = carry(&carried, in, out, n_carried);
            for (int64_t i = n_carried; i < n_out && status == TN_OK; i++)
                status = collect(call, &scans[i], out[i]);
        }
        tn_scope_end(scope);
    }
    for (int64_t i = 0; i < n_carried && status == TN_OK; i++) {
        status = run_move(call, &in[i]);
        if (status == TN_OK)
            status = rule_give_value(call, in[i]);
    }
    for (int64_t i = n_carried; i < n_out && status == TN_OK; i++)
        status = give_collected(call, &scans[i], setting(node, "scan_output_axes", i - n_carried),
                                setting(node, "scan_output_directions", i - n_carried) == 1);
    drop_collected(scans, n_out);
    run_end(&carried);
    return status;
}

/* ---- SequenceMap ----------------------------------------------------------------------------- */

/* Calls the body for the elements of the sequences; the results are sequences. */
static tn_status call_map(const struct run *run, const struct node *node, tn_rule_call *call)
{
    int64_t n_in = count_inputs(node), n_out, count;
    tn_value *given = rule_memory(call, n_in, sizeof *given), *in, *out, *items;
    struct body body;
    tn_status status = find_body(run, node, "body", call, &body);

    if (status != TN_OK || given == NULL || n_in < 1)
        return status != TN_OK ? status : tn_fail(TN_ERR_FORMAT, "no inputs");
    for (int64_t i = 0; i < n_in; i++)
        given[i] = input_at(run, node, i, call);
    n_out = body.graph->n_outputs;
    count = given[0].kind == TN_VALUE_LIST ? given[0].count : 0;
    in = rule_memory(call, n_in, sizeof *in);
    out = rule_memory(call, n_out, sizeof *out);
    items = rule_memory(call, n_out * (count + 1), sizeof *items);
    if (call->status != TN_OK)
        return call->status;
    for (int64_t step = 0; step < count && status == TN_OK; step++) {
        for (int64_t i = 0; i < n_in && status == TN_OK; i++) {
            bool list = given[i].kind == TN_VALUE_LIST;

            if (list && (int64_t)given[i].count <= step)
                return tn_fail(TN_ERR_VALUE, "input %lld: too few elements", (long long)i);
            in[i] = list ? given[i].as.list[step] : given[i];
        }
        status = run_body(run, call, &body, in, n_in, out);
        for (int64_t i = 0; i < n_out && status == TN_OK; i++) {
            status = host_tensor(&out[i]);
            items[i * count + step] = out[i];
            if (status == TN_OK && out[i].kind != TN_VALUE_TENSOR)
                status = tn_fail(TN_ERR_TYPE, "body: wrong output, got %s; expected a tensor",
                                 tn_value_kind_name(out[i].kind));
        }
    }
    for (int64_t i = 0; i < n_out && status == TN_OK; i++)
        status = rule_give_value(call, tn_value_list(items + i * count, (uint32_t)count));
    return status;
}

const struct control controls_onnx[] = {
    { "If", call_if },           { "Loop", call_loop }, { "Scan", call_scan },
    { "SequenceMap", call_map }, { NULL, NULL },
};
