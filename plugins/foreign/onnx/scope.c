/* SPDX-License-Identifier: MIT
 *
 * Graphs of ONNX files. A graph in an attribute uses values of the graphs around it by their names:
 * they become inputs of it, and arguments of its node. The nodes of a local function take the place
 * of its call. */
#include "onnx/scope.h"

#include "foreign.h"

#include <string.h>

enum {
    TAKEN = 4096,      /* values that a graph uses of the one around it, at most */
    PLACES = 2 * TAKEN /* of their hash table */
};

/* ---- names ----------------------------------------------------------------------------------- */

static tn_status new_value(struct scope *s, const char *name, int64_t bound, int64_t *out)
{
    struct graph *graph = s->frame->graph;
    struct value *more;

    if (graph->n_values == s->frame->values_capacity) {
        int64_t capacity = 2 * s->frame->values_capacity + 64;

        more = arena_new(&s->file->program->arena, (uint64_t)capacity, sizeof *more);
        if (more == NULL)
            return TN_ERR_MEMORY;
        if (graph->n_values > 0)
            memcpy(more, graph->values, (size_t)graph->n_values * sizeof *more);
        graph->values = more;
        s->frame->values_capacity = capacity;
    }
    graph->values[graph->n_values] = (struct value){ name, VALUE_TENSOR, bound };
    *out = graph->n_values++;
    return TN_OK;
}

static tn_status bind(struct scope *s, const char *name, struct arg arg)
{
    if (s->count == s->capacity) {
        int64_t capacity = 2 * s->capacity + 64;
        struct arg *more = arena_new(&s->file->program->arena, (uint64_t)capacity, sizeof *more);

        if (more == NULL)
            return TN_ERR_MEMORY;
        if (s->count > 0)
            memcpy(more, s->args, (size_t)s->count * sizeof *more);
        s->args = more;
        s->capacity = capacity;
    }
    if (names_find(&s->names, name) >= 0)
        return tn_fail(TN_ERR_FORMAT, "value %.100s: given twice; expected once", name);
    s->args[s->count] = arg;
    return names_add(&s->names, name, s->count++);
}

static struct arg value_arg(int64_t value)
{
    return (struct arg){ .kind = ARG_VALUE, .as.value = value };
}

/* Adds a value that a node makes, or an input. */
static tn_status define(struct scope *s, const char *name, int64_t *out)
{
    tn_status status = new_value(s, name, -1, out);

    return status == TN_OK ? bind(s, name, value_arg(*out)) : status;
}

/* The place of a value of the graph around, 0 there if the frame does not take it. */
static int16_t *place_of(const struct frame *frame, int64_t value)
{
    uint64_t at = (uint64_t)value * UINT64_C(0x9E3779B97F4A7C15) >> 32;

    for (at %= PLACES;; at = (at + 1) % PLACES) {
        int16_t taken = frame->places[at];

        if (taken == 0 || frame->taken[taken - 1].as.value == value)
            return &frame->places[at];
    }
}

/* Makes a value of the frame `from`, which is around `to`, an input of it and of all between. */
static tn_status bring(struct scope *s, struct frame *to, const struct frame *from, struct arg *arg)
{
    struct scope at = { .file = s->file, .frame = to };
    struct arg outside = *arg;
    int16_t *place;
    int64_t value;
    tn_status status;

    if (to == from || arg->kind != ARG_VALUE)
        return TN_OK;
    status = bring(s, to->around, from, &outside);
    if (status == TN_OK && to->places == NULL) {
        to->places = tn_calloc(PLACES, sizeof *to->places);
        status = to->places != NULL ? TN_OK : TN_ERR_MEMORY;
    }
    if (status != TN_OK)
        return status;
    place = place_of(to, outside.as.value);
    if (*place != 0) {
        *arg = value_arg(to->inside[*place - 1]);
        return TN_OK;
    }
    if (to->n_taken == TAKEN)
        status = tn_fail(TN_ERR_FORMAT, "a graph uses more than %d values of the one around it",
                         TAKEN);
    if (status == TN_OK)
        status = new_value(&at, to->around->graph->values[outside.as.value].name, -1, &value);
    if (status == TN_OK && (to->n_taken & (to->n_taken - 1)) == 0) {
        struct arena *arena = &s->file->program->arena;
        struct arg *taken = arena_new(arena, 2 * (uint64_t)to->n_taken + 1, sizeof *taken);
        int64_t *inside = arena_new(arena, 2 * (uint64_t)to->n_taken + 1, sizeof *inside);

        if (taken == NULL || inside == NULL)
            return TN_ERR_MEMORY;
        if (to->n_taken > 0) {
            memcpy(taken, to->taken, (size_t)to->n_taken * sizeof *taken);
            memcpy(inside, to->inside, (size_t)to->n_taken * sizeof *inside);
        }
        to->taken = taken;
        to->inside = inside;
    }
    if (status != TN_OK)
        return status;
    to->taken[to->n_taken] = outside;
    to->inside[to->n_taken++] = value;
    *place = (int16_t)to->n_taken;
    *arg = value_arg(value);
    return TN_OK;
}

tn_status scope_find(struct scope *s, const char *name, struct arg *out)
{
    for (struct scope *at = s; at != NULL; at = at->outer) {
        int64_t found = names_find(&at->names, name);

        if (found < 0)
            continue;
        *out = at->args[found];
        return bring(s, s->frame, at->frame, out);
    }
    return tn_fail(TN_ERR_FORMAT,
                   "value %.100s: used before it is defined; expected nodes in their order", name);
}

static struct frame *main_frame(struct frame *frame)
{
    while (frame->around != NULL)
        frame = frame->around;
    return frame;
}

/* Makes a tensor a slot of the program, and brings it to the scope. */
static tn_status add_slot(struct scope *s, const char *name, tn_tensor *tensor, bool parameter,
                          struct arg *out)
{
    struct onnx_file *file = s->file;
    struct scope at = { .file = file, .frame = main_frame(s->frame) };
    int64_t value,
        slot = tensor != NULL
                   ? onnx_tree_slot(file, name[0] != '\0' ? name : "constant", tensor, parameter,
                                    parameter ? 0 : TN_SLOT_FLAG_NOT_PERSISTENT)
                   : -1;
    tn_status status;

    if (slot < 0)
        return tn_error_last_code();
    status = new_value(&at, file->program->slots[slot].path, slot, &value);
    *out = value_arg(value);
    return status == TN_OK ? bring(s, s->frame, at.frame, out) : status;
}

tn_status scope_tensor(struct scope *s, const struct onnx_tensor *tensor, bool parameter,
                       struct arg *out)
{
    uint64_t scope;
    tn_status status;

    if (onnx_tensor_is_host(tensor)) {
        *out = (struct arg){ .kind = ARG_CONSTANT };
        return onnx_tensor_host(s->file, tensor, &out->as.constant);
    }
    /* A writer writes the values of initializers of the main graph only. */
    s->file->program->beside = s->file->program->beside || (tensor->location != NULL && !parameter);
    scope = tn_scope_begin();
    parameter = parameter && (TN_BIT(tensor->dtype) & TN_MASK_FLOAT) != 0 && tensor->ndim > 0;
    status = add_slot(s, tensor->name, onnx_tensor_load(s->file, tensor), parameter, out);
    tn_scope_end(scope);
    return status;
}

tn_status scope_floats(struct scope *s, const char *name, struct arg *arg)
{
    const tn_value *value = &arg->as.constant;
    bool list = value->kind == TN_VALUE_LIST;
    int64_t count = list ? value->count : 1;
    float *numbers = tn_calloc((size_t)count + 1, sizeof *numbers);
    uint64_t scope = tn_scope_begin();
    tn_status status = numbers != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < count && status == TN_OK; i++)
        numbers[i] = (float)(list ? value->as.list[i].as.f : value->as.f);
    if (status == TN_OK)
        status = add_slot(s, name,
                          tn_tensor_from(numbers, TN_F32, (tn_ints){ &count, list ? 1 : 0 }), false,
                          arg);
    tn_scope_end(scope);
    tn_free(numbers);
    return status;
}

/* ---- inputs, outputs, initializers ----------------------------------------------------------- */

/* Returns the name of a ValueInfoProto, NULL on failure. Sets *kind to the number of the field that
 * its TypeProto has: 1 tensor, 4 sequence, 9 optional, 0 none. Refuses maps and sparse tensors. */
static const char *value_info(struct onnx_file *file, struct wire message, uint32_t *kind)
{
    struct wire_field field, inner;
    const char *name = "";
    tn_status status = TN_OK;

    *kind = 0;
    while (status == TN_OK && wire_next(&message, &field, &status)) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == 1) {
            name = onnx_model_text(file, field.bytes);
            status = name != NULL ? TN_OK : tn_error_last_code();
        }
        while (field.number == 2 && status == TN_OK && wire_next(&field.bytes, &inner, &status))
            if (inner.number != 6)
                *kind = inner.number;
    }
    if (status == TN_OK && (*kind == 5 || *kind == 8))
        status = tn_fail(TN_ERR_NOT_IMPLEMENTED,
                         "%.100s: a map or a sparse tensor; expected a "
                         "tensor, a sequence or an optional value",
                         name);
    return status == TN_OK ? name : NULL;
}

static tn_status read_initializers(struct scope *s, struct wire message)
{
    struct wire_field field;
    struct onnx_tensor tensor;
    struct arg arg;
    bool main = s->frame->around == NULL;
    tn_status status = TN_OK;

    while (status == TN_OK && wire_next(&message, &field, &status)) {
        if (field.number == 15)
            status = tn_fail(TN_ERR_NOT_IMPLEMENTED,
                             "sparse_initializer: expected tensors with all their elements");
        if (field.number != 5 || field.type != WIRE_BYTES || status != TN_OK)
            continue;
        status = onnx_tensor_read(s->file, field.bytes, &tensor);
        if (status == TN_OK && tensor.name[0] == '\0')
            status = tn_fail(TN_ERR_FORMAT, "initializer: no name");
        if (status == TN_OK)
            status = scope_tensor(s, &tensor, main, &arg);
        if (status == TN_OK)
            status = bind(s, tensor.name, arg);
        if (status == TN_OK && main && arg.kind == ARG_VALUE) {
            int64_t slot = s->frame->graph->values[arg.as.value].bound;

            s->file->program->slots[slot].source = tensor.name;
            status = names_add(&s->file->initializers, tensor.name, slot);
        }
    }
    return status;
}

/* Finds the next value in this field of a graph, and its name; false at the end or on failure. */
static bool next_info(struct onnx_file *file, struct wire *message, uint32_t number,
                      const char **name, uint32_t *kind, tn_status *status)
{
    struct wire_field field;

    while (*status == TN_OK && wire_next(message, &field, status)) {
        if (field.number != number || field.type != WIRE_BYTES)
            continue;
        *name = value_info(file, field.bytes, kind);
        if (*name == NULL)
            *status = tn_error_last_code();
        return *name != NULL;
    }
    return false;
}

/* The inputs without an initializer, in their order. Old files list initializers, too. */
static tn_status read_inputs(struct scope *s, struct wire message, struct program_input *named)
{
    struct graph *graph = s->frame->graph;
    const char *name;
    uint32_t kind;
    tn_status status = TN_OK;

    while (next_info(s->file, &message, 11, &name, &kind, &status)) {
        int64_t value;

        if (names_find(&s->names, name) >= 0)
            continue;
        status = define(s, name, &value);
        if (named != NULL)
            named[graph->n_inputs] = (struct program_input){ .name = name,
                                                             .optional = kind == 9,
                                                             .to = value };
        graph->inputs[graph->n_inputs++] = value;
    }
    return status;
}

static tn_status read_outputs(struct scope *s, struct wire message, struct program_output *named)
{
    struct graph *graph = s->frame->graph;
    const char *name;
    uint32_t kind;
    tn_status status = TN_OK;

    while (next_info(s->file, &message, 12, &name, &kind, &status)) {
        if (named != NULL)
            named[graph->n_outputs].name = name;
        status = scope_find(s, name, &graph->outputs[graph->n_outputs++]);
    }
    return status;
}

static uint64_t count_fields(struct wire message, uint32_t number)
{
    struct wire_field field;
    uint64_t count = 0;
    tn_status status = TN_OK;

    while (wire_next(&message, &field, &status))
        count += field.number == number;
    return count;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static tn_status read_nodes(struct scope *s, struct wire message, uint32_t number)
{
    struct wire_field field;
    tn_status status = TN_OK;

    while (status == TN_OK && wire_next(&message, &field, &status))
        if (field.number == number && field.type == WIRE_BYTES)
            status = nodes_read(s, field.bytes);
    return status;
}

/* ---- results that nothing uses --------------------------------------------------------------- */

static void mark(const struct arg *args, int64_t count, bool *used)
{
    for (int64_t i = 0; i < count; i++)
        if (args[i].kind == ARG_VALUE)
            used[args[i].as.value] = true;
        else if (args[i].kind == ARG_LIST)
            mark(args[i].as.list, args[i].count, used);
}

/* Takes results away that nothing uses: a rule then need not give them (tn_rule_call.wanted). */
static tn_status drop_results(const struct graph *graph)
{
    bool *used = tn_calloc((size_t)graph->n_values + 1, sizeof *used);

    if (used == NULL)
        return TN_ERR_MEMORY;
    mark(graph->outputs, graph->n_outputs, used);
    for (int64_t i = 0; i < graph->n_nodes; i++)
        mark(graph->nodes[i].args, graph->nodes[i].n_args, used);
    for (int64_t i = 0; i < graph->n_nodes; i++)
        for (int64_t k = 0; k < graph->nodes[i].n_results; k++) {
            int64_t *value = &graph->nodes[i].results[k].value;

            if (*value >= 0 && !used[*value])
                *value = -1;
        }
    tn_free(used);
    return TN_OK;
}

static tn_status read_graph(struct scope *s, struct wire message, struct program_input *inputs,
                            struct program_output *outputs)
{
    struct graph *graph = s->frame->graph;
    struct arena *arena = &s->file->program->arena;
    tn_status status = TN_OK;

    graph->inputs = arena_new(arena, count_fields(message, 11) + 1, sizeof *graph->inputs);
    graph->outputs = arena_new(arena, count_fields(message, 12) + 1, sizeof *graph->outputs);
    if (graph->inputs == NULL || graph->outputs == NULL)
        return TN_ERR_MEMORY;
    status = read_initializers(s, message);
    if (status == TN_OK)
        status = read_inputs(s, message, inputs);
    if (status == TN_OK)
        status = read_nodes(s, message, 1);
    if (status == TN_OK)
        status = read_outputs(s, message, outputs);
    return status == TN_OK ? drop_results(graph) : status;
}

/* A graph in an attribute; the values that it takes follow its inputs. */
tn_status scope_graph(struct scope *around, struct wire message, struct arg *graph_arg,
                      struct arg *taken)
{
    struct arena *arena = &around->file->program->arena;
    struct graph *graph = arena_new(arena, 1, sizeof *graph);
    struct frame frame = { .graph = graph, .around = around->frame };
    struct scope s = { .file = around->file,
                       .outer = around,
                       .frame = &frame,
                       .imports = around->imports,
                       .level = around->level + 1,
                       .attributes = around->attributes };
    int64_t *inputs, n;
    tn_status status = graph != NULL ? TN_OK : TN_ERR_MEMORY;

    if (s.level > PROGRAM_LEVELS)
        return tn_fail(TN_ERR_FORMAT, "graphs: too many in each other; expected at most %d",
                       PROGRAM_LEVELS);
    if (status == TN_OK)
        status = read_graph(&s, message, NULL, NULL);
    tn_free(frame.places);
    names_free(&s.names);
    if (status != TN_OK)
        return status;
    n = graph->n_inputs;
    inputs = arena_new(arena, (uint64_t)(n + frame.n_taken) + 1, sizeof *inputs);
    if (inputs == NULL)
        return TN_ERR_MEMORY;
    memcpy(inputs, graph->inputs, (size_t)n * sizeof *inputs);
    if (frame.n_taken > 0)
        memcpy(inputs + n, frame.inside, (size_t)frame.n_taken * sizeof *inputs);
    graph->inputs = inputs;
    graph->n_inputs = n + frame.n_taken;
    *graph_arg = (struct arg){ .kind = ARG_GRAPH, .as.graph = graph };
    *taken = (struct arg){ .kind = ARG_LIST, .count = frame.n_taken, .as.list = frame.taken };
    return TN_OK;
}

/* ---- local functions ------------------------------------------------------------------------- */

static tn_status bind_inputs(struct scope *s, struct wire message, const struct arg *args,
                             int64_t n_args)
{
    struct arg none = { .kind = ARG_CONSTANT };
    struct wire_field field;
    int64_t n = 0;
    tn_status status = TN_OK;

    while (status == TN_OK && wire_next(&message, &field, &status)) {
        const char *name;

        if (field.number == 9 && field.type == WIRE_BYTES)
            status = onnx_model_import(s->file, field.bytes, s->imports);
        if (field.number != 4 || field.type != WIRE_BYTES)
            continue;
        name = onnx_model_text(s->file, field.bytes);
        if (name == NULL)
            return tn_error_last_code();
        status = bind(s, name, n < n_args ? args[n] : none);
        n++;
    }
    return status;
}

tn_status scope_function(struct scope *around, const struct onnx_function *function,
                         const struct attributes *given, const struct arg *args, int64_t n_args,
                         const struct wire *outputs, int64_t n_outputs)
{
    struct onnx_imports imports = { .count = 0 };
    struct attributes attributes = { .at = given->at,
                                     .count = given->count,
                                     .defaults = function->message };
    struct scope s = { .file = around->file,
                       .frame = around->frame,
                       .imports = &imports,
                       .level = around->level + 1,
                       .attributes = &attributes };
    struct wire rest = function->message;
    struct wire_field field;
    int64_t n = 0;
    tn_status status;

    if (s.level > ONNX_FUNCTIONS)
        return tn_fail(TN_ERR_FORMAT, "functions: too many in each other; expected at most %d",
                       ONNX_FUNCTIONS);
    if (function->overload)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED, "overload: expected functions without overloads");
    /* A short file can call a long function very often, even one without nodes. */
    status = foreign_unpacked(s.file->source, &s.file->unpacked,
                              64 * (uint64_t)(rest.end - rest.at) + 512);
    if (status == TN_OK)
        status = bind_inputs(&s, function->message, args, n_args);
    if (status == TN_OK)
        status = read_nodes(&s, function->message, 7);
    while (status == TN_OK && wire_next(&rest, &field, &status)) {
        const char *inside, *outside;
        struct arg value;

        if (field.number != 5 || field.type != WIRE_BYTES || n >= n_outputs)
            continue;
        inside = onnx_model_text(s.file, field.bytes);
        outside = inside != NULL ? onnx_model_text(s.file, outputs[n++]) : NULL;
        if (outside == NULL)
            status = tn_error_last_code();
        else if (outside[0] != '\0')
            status = scope_find(&s, inside, &value);
        if (status == TN_OK && outside[0] != '\0')
            status = bind(around, outside, value);
    }
    names_free(&s.names);
    return status != TN_OK ? tn_error_prefix("function %.100s: ", function->name) : TN_OK;
}

/* ---- results of nodes ------------------------------------------------------------------------ */

tn_status scope_define(struct scope *s, const char *name, int64_t *out)
{
    *out = -1;
    return name[0] != '\0' ? define(s, name, out) : TN_OK;
}

tn_status scope_bind(struct scope *s, const char *name, struct arg arg)
{
    return bind(s, name, arg);
}

/* ---- the main graph -------------------------------------------------------------------------- */

tn_status onnx_graph_read_main(struct onnx_file *file, struct wire message)
{
    struct program *program = file->program;
    struct arena *arena = &program->arena;
    struct frame frame = { .graph = &program->main };
    struct scope s = { .file = file, .frame = &frame, .imports = &file->imports };
    tn_status status;

    program->inputs = arena_new(arena, count_fields(message, 11) + 1, sizeof *program->inputs);
    program->outputs = arena_new(arena, count_fields(message, 12) + 1, sizeof *program->outputs);
    if (program->inputs == NULL || program->outputs == NULL || onnx_tree_part(file, "") < 0)
        return tn_error_last_code();
    status = read_graph(&s, message, program->inputs, program->outputs);
    names_free(&s.names);
    program->n_inputs = program->main.n_inputs;
    program->n_outputs = program->main.n_outputs;
    program->n_nodes = file->n_nodes;
    if (status == TN_OK && program->n_outputs == 0)
        status = tn_fail(TN_ERR_FORMAT, "graph: no outputs");
    return status == TN_OK ? onnx_tree_finish(file) : status;
}
