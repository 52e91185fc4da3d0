/* SPDX-License-Identifier: MIT
 *
 * Nodes of ONNX graphs: their inputs, attributes and outputs. Constants become constants of the
 * program, calls of local functions their nodes. */
#include "foreign.h"
#include "onnx/scope.h"

#include <string.h>

/* A node as it is in the file. */
struct reading {
    struct wire message;
    const char *name, *type, *domain, *function;
    const char *scopes, *classes; /* of PyTorch's exporter; NULL: none */
    struct wire *inputs, *outputs;
    int64_t n_inputs, n_outputs;
    struct attributes attributes;
    int64_t version;
};

/* ---- attributes ------------------------------------------------------------------------------ */

enum attribute_type {
    IS_FLOAT = 1,
    IS_INT,
    IS_STRING,
    IS_TENSOR,
    IS_GRAPH,
    IS_FLOATS,
    IS_INTS,
    IS_STRINGS,
    IS_TYPE = 13 /* of a value that is not there: nothing needs it */
};

/* The field of each type. */
static const uint32_t fields[] = {
    [IS_FLOAT] = 2, [IS_INT] = 3,    [IS_STRING] = 4, [IS_TENSOR] = 5,
    [IS_GRAPH] = 6, [IS_FLOATS] = 7, [IS_INTS] = 8,   [IS_STRINGS] = 9
};

static tn_status type_of(struct wire message, uint32_t *type)
{
    struct wire_field field;
    tn_status status = TN_OK;

    *type = 0;
    while (status == TN_OK && wire_next(&message, &field, &status)) {
        if (field.number == 20 && field.type == WIRE_VARINT) {
            *type = field.value <= IS_TYPE ? (uint32_t)field.value : IS_STRINGS + 1;
            break;
        }
        for (uint32_t i = 1; i <= IS_STRINGS && *type == 0; i++)
            if (fields[i] == field.number)
                *type = i;
    }
    if (status == TN_OK && (*type == 0 || (*type > IS_STRINGS && *type != IS_TYPE)))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "unknown kind, got %u; expected numbers, texts, a tensor or a graph", *type);
    return status;
}

/* Adds an element of an attribute that is a list. */
static tn_status add_item(struct onnx_file *file, uint32_t type, const struct wire_field *field,
                          tn_value *to)
{
    const char *text;

    if (type == IS_FLOAT || type == IS_FLOATS) {
        *to = tn_value_float(wire_float(field));
        return wire_need(field, WIRE_FIXED32, "a number");
    }
    if (type == IS_INT || type == IS_INTS) {
        *to = tn_value_int((int64_t)field->value);
        return wire_need(field, WIRE_VARINT, "an integer");
    }
    if (field->type != WIRE_BYTES)
        return wire_need(field, WIRE_BYTES, "a text");
    text = onnx_model_text(file, field->bytes);
    *to = tn_value_string(text);
    return text != NULL ? TN_OK : tn_error_last_code();
}

static tn_status add_packed(struct onnx_file *file, uint32_t type, struct wire packed,
                            tn_value *items, uint32_t *count)
{
    struct wire_field one = { .type = type == IS_INTS ? WIRE_VARINT : WIRE_FIXED32 };
    tn_status status = TN_OK;

    while (status == TN_OK && packed.at != packed.end) {
        one.value = 0;
        if (type == IS_INTS) {
            status = wire_varint(&packed, &one.value);
        } else if (packed.end - packed.at < 4) {
            status = tn_fail(TN_ERR_FORMAT, "a number beyond the end");
        } else {
            for (size_t i = 0; i < 4; i++)
                one.value |= (uint64_t)packed.at[i] << 8 * i;
            packed.at += 4;
        }
        if (status == TN_OK)
            status = add_item(file, type, &one, &items[(*count)++]);
    }
    return status;
}

/* An attribute of numbers or texts: one, or a list. */
static tn_status read_values(struct onnx_file *file, struct wire message, uint32_t type,
                             tn_value *out)
{
    struct wire_field field;
    bool list = type >= IS_FLOATS;
    uint32_t count = 0;
    tn_value *items = arena_new(&file->program->arena,
                                list ? (uint64_t)(message.end - message.at) + 1 : 1, sizeof *items);
    tn_status status = items != NULL ? TN_OK : TN_ERR_MEMORY;

    if (status == TN_OK)
        items[0] = type == IS_FLOAT    ? tn_value_float(0)
                   : type == IS_STRING ? tn_value_string("")
                                       : tn_value_int(0);
    while (status == TN_OK && wire_next(&message, &field, &status)) {
        if (field.number != fields[type])
            continue;
        if (list && type != IS_STRINGS && field.type == WIRE_BYTES)
            status = add_packed(file, type, field.bytes, items, &count);
        else
            status = add_item(file, type, &field, &items[list ? count++ : 0]);
    }
    *out = list ? tn_value_list(items, count) : items != NULL ? items[0] : tn_value_none();
    return status;
}

/* The message or the text in a field of an attribute. */
static struct wire inner(struct wire message, uint32_t number)
{
    struct wire_field field;
    struct wire found = { NULL, NULL };
    tn_status status = TN_OK;

    while (wire_next(&message, &field, &status))
        if (field.number == number && field.type == WIRE_BYTES)
            found = field.bytes;
    return found;
}

/* An attribute as an argument; of a graph *taken becomes the list of values that it takes. */
static tn_status read_attribute(struct scope *s, const struct attribute *attribute, struct arg *out,
                                struct arg *taken)
{
    struct onnx_tensor tensor;
    struct wire message;
    uint32_t type;
    tn_status status = type_of(attribute->message, &type);

    *out = (struct arg){ .kind = ARG_CONSTANT };
    taken->kind = ARG_CONSTANT;
    if (status == TN_OK && (type == IS_TENSOR || type == IS_GRAPH)) {
        message = inner(attribute->message, fields[type]);
        if (message.at == NULL)
            status = tn_fail(TN_ERR_FORMAT, "missing; expected a value");
        else if (type == IS_GRAPH)
            status = scope_graph(s, message, out, taken);
        else
            status = onnx_tensor_read(s->file, message, &tensor);
        if (status == TN_OK && type == IS_TENSOR)
            status = scope_tensor(s, &tensor, false, out);
    } else if (status == TN_OK && type != IS_TYPE) {
        status = read_values(s->file, attribute->message, type, &out->as.constant);
    }
    return status == TN_OK ? TN_OK : tn_error_prefix("attribute %.100s: ", attribute->name);
}

static const char *attribute_name(struct onnx_file *file, struct wire message)
{
    struct wire name = inner(message, 1);

    return name.at != NULL ? onnx_model_text(file, name) : "";
}

/* Finds an attribute of the call of the function, or its default. */
static tn_status refer(const struct scope *s, const char *name, struct attribute *out, bool *found)
{
    struct wire rest = s->attributes != NULL ? s->attributes->defaults
                                             : (struct wire){ NULL, NULL };
    struct wire_field field;
    tn_status status = TN_OK;

    *found = false;
    if (s->attributes == NULL)
        return tn_fail(TN_ERR_FORMAT, "attribute %.100s: only nodes of functions can refer to one",
                       out->name);
    /* Each reference looks through all attributes and through the function. */
    status = foreign_unpacked(s->file->source, &s->file->unpacked,
                              16 * (uint64_t)s->attributes->count + (uint64_t)(rest.end - rest.at));
    for (int64_t i = 0; i < s->attributes->count && !*found && status == TN_OK; i++)
        if (strcmp(s->attributes->at[i].name, name) == 0) {
            out->message = s->attributes->at[i].message;
            *found = true;
        }
    while (!*found && status == TN_OK && wire_next(&rest, &field, &status)) {
        struct wire own;

        if (field.number != 11 || field.type != WIRE_BYTES)
            continue;
        own = inner(field.bytes, 1);
        if (own.at != NULL && (size_t)(own.end - own.at) == strlen(name) &&
            memcmp(own.at, name, strlen(name)) == 0) {
            out->message = field.bytes;
            *found = true;
        }
    }
    return status;
}

static tn_status add_attribute(struct scope *s, struct reading *r, struct wire message)
{
    struct attribute *to = &r->attributes.at[r->attributes.count];
    struct wire reference = inner(message, 21);
    const char *name;
    bool found = true;
    tn_status status = TN_OK;

    *to = (struct attribute){ attribute_name(s->file, message), message };
    if (to->name == NULL)
        return tn_error_last_code();
    if (reference.at != NULL && reference.at != reference.end) {
        name = onnx_model_text(s->file, reference);
        status = name != NULL ? refer(s, name, to, &found) : tn_error_last_code();
    }
    r->attributes.count += found;
    return status;
}

/* ---- the message ----------------------------------------------------------------------------- */

/* What PyTorch's exporter says of the modules around a node. */
static tn_status read_metadata(struct scope *s, struct reading *r, struct wire message)
{
    struct wire key = inner(message, 1), value = inner(message, 2);
    size_t length = (size_t)(key.end - key.at);
    static const char scopes[] = "pkg.torch.onnx.name_scopes";
    static const char classes[] = "pkg.torch.onnx.class_hierarchy";
    bool is_scopes = length == sizeof scopes - 1 && memcmp(key.at, scopes, length) == 0;
    bool is_classes = length == sizeof classes - 1 && memcmp(key.at, classes, length) == 0;
    const char *text;

    if (value.at == NULL || value.end - value.at > 4096 || (!is_scopes && !is_classes))
        return TN_OK;
    text = onnx_model_text(s->file, value);
    *(is_scopes ? &r->scopes : &r->classes) = text;
    return text != NULL ? TN_OK : tn_error_last_code();
}

static tn_status read_field(struct scope *s, struct reading *r, const struct wire_field *field)
{
    const char **text = field->number == 3   ? &r->name
                        : field->number == 4 ? &r->type
                        : field->number == 7 ? &r->domain
                                             : NULL;

    if (field->type != WIRE_BYTES)
        return TN_OK;
    if (text != NULL) {
        *text = onnx_model_text(s->file, field->bytes);
        return *text != NULL ? TN_OK : tn_error_last_code();
    }
    switch (field->number) {
    case 1: r->inputs[r->n_inputs++] = field->bytes; return TN_OK;
    case 2: r->outputs[r->n_outputs++] = field->bytes; return TN_OK;
    case 5: return add_attribute(s, r, field->bytes);
    case 9: return read_metadata(s, r, field->bytes);
    default: return TN_OK;
    }
}

static tn_status read_message(struct scope *s, struct reading *r)
{
    struct arena *arena = &s->file->program->arena;
    struct wire rest = r->message;
    struct wire_field field;
    uint64_t counts[6] = { 0 };
    char full[2 * 4096 + 2];
    tn_status status = TN_OK;

    while (wire_next(&rest, &field, &status))
        if (field.number < 6)
            counts[field.number]++;
    r->inputs = arena_new(arena, counts[1] + 1, sizeof *r->inputs);
    r->outputs = arena_new(arena, counts[2] + 1, sizeof *r->outputs);
    r->attributes.at = arena_new(arena, counts[5] + 1, sizeof *r->attributes.at);
    if (r->inputs == NULL || r->outputs == NULL || r->attributes.at == NULL)
        return TN_ERR_MEMORY;
    rest = r->message;
    while (status == TN_OK && wire_next(&rest, &field, &status))
        status = read_field(s, r, &field);
    if (status != TN_OK)
        return status;
    if (strcmp(r->domain, "ai.onnx") == 0)
        r->domain = "";
    while (r->n_inputs > 0 && r->inputs[r->n_inputs - 1].at == r->inputs[r->n_inputs - 1].end)
        r->n_inputs--;
    tn_snprint(full, sizeof full, "%s%s%s", r->domain, r->domain[0] != '\0' ? "." : "", r->type);
    r->function = r->domain[0] != '\0' ? arena_text(arena, full, strlen(full)) : r->type;
    if (r->function == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < s->imports->count; i++)
        if (strcmp(s->imports->at[i].domain, r->domain) == 0)
            r->version = s->imports->at[i].version;
    if (r->version == 0 && r->domain[0] == '\0')
        return tn_fail(TN_ERR_FORMAT, "opset_import: no version of the operators of ONNX");
    return TN_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static tn_status read_input(struct scope *s, struct wire name, struct arg *out)
{
    const char *text = onnx_model_text(s->file, name);

    *out = (struct arg){ .kind = ARG_CONSTANT };
    if (text == NULL)
        return tn_error_last_code();
    return text[0] != '\0' ? scope_find(s, text, out) : TN_OK;
}

/* Whether a constant is what its attribute says, "value_ints" or another: numbers of one kind. */
static tn_status check_constant(const char *name, const struct arg *arg)
{
    const tn_value *value = &arg->as.constant;
    uint32_t kind = strncmp(name, "value_float", 11) == 0 ? TN_VALUE_FLOAT : TN_VALUE_INT;
    bool list = name[strlen(name) - 1] == 's';
    bool right = arg->kind == ARG_CONSTANT && value->kind == (list ? TN_VALUE_LIST : kind);

    for (uint32_t i = 0; right && list && i < value->count; i++)
        right = value->as.list[i].kind == kind;
    return right ? TN_OK
                 : tn_fail(TN_ERR_FORMAT,
                           "attribute %.100s: wrong kind, got other values; expected %s", name,
                           kind == TN_VALUE_FLOAT ? "floats" : "integers");
}

/* A Constant gives its output a name. */
static tn_status bind_constant(struct scope *s, const struct reading *r)
{
    static const char *const names[] = { "value", "value_int", "value_ints", "value_float",
                                         "value_floats" };
    const struct attribute *attribute = r->attributes.count == 1 ? &r->attributes.at[0] : NULL;
    struct arg value, taken;
    const char *output;
    bool known = false;
    tn_status status;

    for (size_t i = 0; attribute != NULL && i < sizeof names / sizeof *names; i++)
        known = known || strcmp(attribute->name, names[i]) == 0;
    if (!known || r->n_outputs != 1)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "attribute %.100s: expected one, a tensor of all elements or numbers",
                       attribute != NULL ? attribute->name : "");
    output = onnx_model_text(s->file, r->outputs[0]);
    if (output == NULL)
        return tn_error_last_code();
    if (strcmp(attribute->name, "value") == 0) {
        struct onnx_tensor tensor;
        struct wire message = inner(attribute->message, 5);

        status = message.at != NULL ? onnx_tensor_read(s->file, message, &tensor)
                                    : tn_fail(TN_ERR_FORMAT, "value: missing");
        if (status == TN_OK)
            tensor.name = output;
        if (status == TN_OK)
            status = scope_tensor(s, &tensor, false, &value);
    } else {
        status = read_attribute(s, attribute, &value, &taken);
        if (status == TN_OK)
            status = check_constant(attribute->name, &value);
        if (status == TN_OK && strncmp(attribute->name, "value_float", 11) == 0)
            status = scope_floats(s, output, &value);
    }
    return status == TN_OK ? scope_bind(s, output, value) : status;
}

static tn_status call_function(struct scope *s, const struct reading *r,
                               const struct onnx_function *function)
{
    struct arg *args = arena_new(&s->file->program->arena, (uint64_t)r->n_inputs + 1, sizeof *args);
    tn_status status = args != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < r->n_inputs && status == TN_OK; i++)
        status = read_input(s, r->inputs[i], &args[i]);
    return status == TN_OK ? scope_function(s, function, &r->attributes, args, r->n_inputs,
                                            r->outputs, r->n_outputs)
                           : status;
}

static tn_status add_args(struct scope *s, const struct reading *r, struct node *node)
{
    struct arena *arena = &s->file->program->arena;
    uint64_t most = (uint64_t)r->n_inputs + 2 * (uint64_t)r->attributes.count + 1;
    tn_status status = TN_OK;

    node->args = arena_new(arena, most, sizeof *node->args);
    node->names = arena_new(arena, most, sizeof *node->names);
    if (node->args == NULL || node->names == NULL)
        return TN_ERR_MEMORY;
    for (; node->n_args < r->n_inputs && status == TN_OK; node->n_args++) {
        node->names[node->n_args] = "";
        status = read_input(s, r->inputs[node->n_args], &node->args[node->n_args]);
    }
    for (int64_t i = 0; i < r->attributes.count && status == TN_OK; i++) {
        const struct attribute *attribute = &r->attributes.at[i];
        struct arg *arg = &node->args[node->n_args];

        status = read_attribute(s, attribute, &arg[0], &arg[1]);
        node->names[node->n_args++] = attribute->name;
        if (status == TN_OK && arg[0].kind == ARG_GRAPH)
            node->names[node->n_args++] = "taken";
    }
    return status;
}

static tn_status add_results(struct scope *s, const struct reading *r, struct node *node)
{
    tn_status status = TN_OK;

    node->results = arena_new(&s->file->program->arena, (uint64_t)r->n_outputs + 1,
                              sizeof *node->results);
    if (node->results == NULL)
        return TN_ERR_MEMORY;
    for (; node->n_results < r->n_outputs && status == TN_OK; node->n_results++) {
        const char *name = onnx_model_text(s->file, r->outputs[node->n_results]);

        status = name != NULL ? scope_define(s, name, &node->results[node->n_results].value)
                              : tn_error_last_code();
    }
    return status;
}

static tn_status add_node(struct scope *s, const struct reading *r)
{
    struct graph *graph = s->frame->graph;
    struct node node = { .function = r->function, .name = r->name, .version = r->version };
    struct node *more;
    tn_status status = add_args(s, r, &node);

    if (status == TN_OK)
        status = add_results(s, r, &node);
    if (status == TN_OK && s->frame->around == NULL)
        status = onnx_tree_stack(s->file, r->scopes, r->classes, &node);
    if (status != TN_OK)
        return status;
    if (graph->n_nodes == s->frame->nodes_capacity) {
        int64_t capacity = 2 * s->frame->nodes_capacity + 16;

        more = arena_new(&s->file->program->arena, (uint64_t)capacity, sizeof *more);
        if (more == NULL)
            return TN_ERR_MEMORY;
        if (graph->n_nodes > 0)
            memcpy(more, graph->nodes, (size_t)graph->n_nodes * sizeof *more);
        graph->nodes = more;
        s->frame->nodes_capacity = capacity;
    }
    graph->nodes[graph->n_nodes++] = node;
    return TN_OK;
}

tn_status nodes_read(struct scope *s, struct wire message)
{
    struct reading r = { .message = message, .name = "", .type = "", .domain = "" };
    tn_status status = ++s->file->n_nodes <= PROGRAM_NODES
                           ? read_message(s, &r)
                           : tn_fail(TN_ERR_FORMAT, "too many nodes; expected at most %d",
                                     PROGRAM_NODES);
    int64_t function = status == TN_OK ? names_find(&s->file->function_names, r.function) : -1;

    /* A short file can have functions that call each other very often. */
    if (status == TN_OK && s->attributes != NULL)
        status = foreign_unpacked(s->file->source, &s->file->unpacked,
                                  64 * (uint64_t)(message.end - message.at) + 512);
    if (status != TN_OK)
        return status;
    if (function >= 0)
        status = call_function(s, &r, &s->file->functions[function]);
    else if (strcmp(r.function, "Constant") == 0)
        status = bind_constant(s, &r);
    else
        status = add_node(s, &r);
    return status == TN_OK ? TN_OK : tn_error_prefix("node %.100s (%.100s): ", r.name, r.function);
}
