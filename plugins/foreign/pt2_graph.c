/* SPDX-License-Identifier: MIT
 *
 * The graphs of a `.pt2` file: JSON to calls of functions. Names of values become numbers; a value
 * that is used before it is defined, or defined twice, is refused. */
#include "pt2.h"

#include <math.h>
#include <string.h>

/* ---- values ---------------------------------------------------------------------------------- */

static tn_status define(struct pt2_file *file, struct graph *graph, struct names *names,
                        const char *name, enum value_kind kind, int64_t *out)
{
    struct value *value = &graph->values[graph->n_values];

    if (names_find(names, name) >= 0)
        return tn_fail(TN_ERR_FORMAT, "value %.100s: defined twice; expected once", name);
    *value = (struct value){ pt2_text(file, name), kind, -1 };
    if (value->name == NULL)
        return TN_ERR_MEMORY;
    *out = graph->n_values++;
    return names_add(names, value->name, *out);
}

static tn_status use(const struct names *names, const char *name, struct arg *out)
{
    out->kind = ARG_VALUE;
    out->as.value = names_find(names, name);
    return out->as.value >= 0
               ? TN_OK
               : tn_fail(TN_ERR_FORMAT,
                         "value %.100s: used before it is defined; expected an input, or a result "
                         "of a node before",
                         name);
}

static tn_status constant(struct arg *out, tn_value value)
{
    out->kind = ARG_CONSTANT;
    out->as.constant = value;
    return TN_OK;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static tn_status read_float(const json_t *json, double *out)
{
    static const struct {
        const char *text;
        double value;
    } words[] = { { "Infinity", INFINITY }, { "-Infinity", -INFINITY }, { "NaN", NAN } };

    *out = json_number_value(json);
    if (json_is_number(json))
        return TN_OK;
    for (size_t i = 0; i < sizeof words / sizeof *words && json_is_string(json); i++)
        if (strcmp(json_string_value(json), words[i].text) == 0) {
            *out = words[i].value;
            return TN_OK;
        }
    return tn_fail(TN_ERR_FORMAT, "float: wrong; expected a number, Infinity, -Infinity or NaN");
}

static tn_status wrong_kind(const char *kind, const json_t *json, const char *expected)
{
    static const char *const names[] = { "an object", "a list", "a text", "an integer",
                                         "a float",   "true",   "false",  "null" };

    return tn_fail(TN_ERR_FORMAT, "argument %.40s: wrong value, got %s; expected %s", kind,
                   json != NULL ? names[json_typeof(json)] : "nothing", expected);
}

/* A plain value: as_int, as_float, as_bool, as_string, or one of as_ints and so on. */
static tn_status read_plain(struct pt2_file *file, const char *kind, const json_t *json,
                            struct arg *out)
{
    double number;
    const char *text;

    if (strncmp(kind, "as_int", 6) == 0)
        return json_is_integer(json) ? constant(out, tn_value_int(json_integer_value(json)))
                                     : wrong_kind(kind, json, "an integer");
    if (strncmp(kind, "as_bool", 7) == 0)
        return json_is_boolean(json) ? constant(out, tn_value_bool(json_is_true(json)))
                                     : wrong_kind(kind, json, "true or false");
    if (strncmp(kind, "as_float", 8) == 0)
        return read_float(json, &number) == TN_OK ? constant(out, tn_value_float(number))
                                                  : tn_error_last_code();
    if (!json_is_string(json))
        return wrong_kind(kind, json, "a text");
    text = pt2_text(file, json_string_value(json));
    return text != NULL ? constant(out, tn_value_string(text)) : TN_ERR_MEMORY;
}

static tn_status read_complex(struct pt2_file *file, const json_t *json, struct arg *out)
{
    tn_value *parts = arena_new(&file->program->arena, 2, sizeof *parts);
    double re, im;
    tn_value value = tn_value_none();

    if (parts == NULL)
        return TN_ERR_MEMORY;
    if (read_float(json_object_get(json, "real"), &re) != TN_OK ||
        read_float(json_object_get(json, "imag"), &im) != TN_OK)
        return tn_error_last_code();
    parts[0] = tn_value_float(re);
    parts[1] = tn_value_float(im);
    value.kind = TN_VALUE_COMPLEX;
    value.count = 2;
    value.as.list = parts;
    return constant(out, value);
}

/* Dtypes by their names; layouts and memory formats by their numbers, which no rule uses. */
static tn_status read_enum(const char *kind, const json_t *json, struct arg *out)
{
    const char *name;

    if (!json_is_integer(json))
        return wrong_kind(kind, json, "a number, as enumerations have");
    if (strcmp(kind, "as_scalar_type") != 0)
        return constant(out, tn_value_int(json_integer_value(json)));
    name = pt2_weights_dtype(json_integer_value(json));
    return name != NULL
               ? constant(out, tn_value_string(name))
               : tn_fail(TN_ERR_REFUSED, "dtype: not known here, got number %lld of PyTorch's",
                         (long long)json_integer_value(json));
}

static tn_status read_graph_arg(struct pt2_file *file, const json_t *json, int level,
                                struct arg *out)
{
    struct names names = { 0 };
    tn_status status;

    out->kind = ARG_GRAPH;
    out->as.graph = arena_new(&file->program->arena, 1, sizeof *out->as.graph);
    if (out->as.graph == NULL)
        return TN_ERR_MEMORY;
    status = pt2_graph_read(file, json_object_get(json, "graph"), out->as.graph, &names, level + 1);
    names_free(&names);
    return status;
}

/* A list, whose elements are all of one kind, or written as unions themselves. */
static tn_status read_list(struct pt2_file *file, const char *kind, const json_t *json,
                           const struct names *names, int level, struct arg *out);

/* A reference to a value, {"name": "x"} or {"as_name": "x"}, or what stands in its place. */
static tn_status read_reference(struct pt2_file *file, const char *kind, const json_t *json,
                                const struct names *names, int level, struct arg *out)
{
    const json_t *name = json_object_get(json, "name"), *inner;
    const char *key;

    name = json_is_string(name) ? name : json_object_get(json, "as_name");
    if (json_is_string(name))
        return use(names, json_string_value(name), out);
    if (json_is_array(json))
        return read_list(file, kind, json, names, level, out);
    inner = pt2_union(json, &key);
    if (inner == NULL)
        return wrong_kind(kind, json, "an object with one kind of argument");
    if (strcmp(key, "as_none") == 0)
        return constant(out, tn_value_none());
    return strcmp(key, "as_tensor") == 0 ? read_reference(file, key, inner, names, level + 1, out)
                                         : read_plain(file, key, inner, out);
}

static bool is_one_of(const char *kind, const char *const *kinds)
{
    while (*kinds != NULL && strcmp(kind, *kinds) != 0)
        kinds++;
    return *kinds != NULL;
}

static tn_status read_kind(struct pt2_file *file, const char *kind, const json_t *json,
                           const struct names *names, int level, struct arg *out)
{
    static const char *const plain[] = { "as_int",       "as_float",       "as_bool",  "as_string",
                                         "as_ints",      "as_floats",      "as_bools", "as_strings",
                                         "as_int_lists", "as_float_lists", NULL };
    static const char *const references[] = {
        "as_tensor",          "as_tensors",          "as_sym_int",        "as_sym_ints",
        "as_sym_float",       "as_sym_floats",       "as_sym_bool",       "as_sym_bools",
        "as_optional_tensor", "as_optional_tensors", "as_nested_tensors", NULL
    };
    static const char *const numbers[] = { "as_scalar_type", "as_memory_format", "as_layout",
                                           NULL };

    if (level > PROGRAM_LEVELS)
        return tn_fail(TN_ERR_FORMAT, "argument %.40s: too many levels; expected at most %d", kind,
                       PROGRAM_LEVELS);
    if (strcmp(kind, "as_none") == 0 || strcmp(kind, "as_device") == 0)
        return constant(out,
                        strcmp(kind, "as_none") == 0 ? tn_value_none() : tn_value_string("device"));
    if (is_one_of(kind, plain))
        return json_is_array(json) ? read_list(file, kind, json, names, level, out)
                                   : read_plain(file, kind, json, out);
    if (is_one_of(kind, references))
        return read_reference(file, kind, json, names, level, out);
    if (is_one_of(kind, numbers))
        return read_enum(kind, json, out);
    if (strcmp(kind, "as_complex") == 0)
        return read_complex(file, json, out);
    if (strcmp(kind, "as_graph") == 0)
        return read_graph_arg(file, json, level, out);
    if (strcmp(kind, "as_operator") == 0)
        return read_plain(file, "as_string", json, out);
    if (strcmp(kind, "as_custom_obj") == 0)
        return tn_fail(TN_ERR_REFUSED, "a custom object, which only the program that made it can "
                                       "read; expected tensors and numbers");
    return tn_fail(TN_ERR_FORMAT,
                   "argument: unknown kind, got %.40s; expected one of schema version 8", kind);
}

static tn_status read_list(struct pt2_file *file, const char *kind, const json_t *json,
                           const struct names *names, int level, struct arg *out)
{
    size_t count = json_array_size(json);
    tn_status status = TN_OK;

    if (level > PROGRAM_LEVELS)
        return wrong_kind(kind, json, "fewer lists in each other");
    out->kind = ARG_LIST;
    out->as.list = arena_new(&file->program->arena, count, sizeof *out->as.list);
    if (out->as.list == NULL)
        return TN_ERR_MEMORY;
    out->count = (int64_t)count;
    for (size_t i = 0; i < count && status == TN_OK; i++)
        status = read_kind(file, kind, json_array_get(json, i), names, level + 1, &out->as.list[i]);
    return status;
}

tn_status pt2_graph_arg(struct pt2_file *file, const json_t *json, const struct names *names,
                        int level, struct arg *out)
{
    const char *kind = NULL;
    const json_t *value = pt2_union(json, &kind);

    return value != NULL ? read_kind(file, kind, value, names, level, out)
                         : pt2_wrong("argument", "an object with one member");
}

/* ---- results --------------------------------------------------------------------------------- */

/* The name that a result defines: {"name": "x"}, {"as_name": "x"} or {"as_tensor": {"name": "x"}};
 * NULL if it defines none. */
static const char *defined_name(const json_t *json)
{
    const json_t *name = json_object_get(json, "name");

    if (!json_is_string(name))
        name = json_object_get(json, "as_name");
    if (!json_is_string(name))
        name = json_object_get(json_object_get(json, "as_tensor"), "name");
    return json_string_value(name);
}

static tn_status define_result(struct pt2_file *file, struct graph *graph, struct names *names,
                               const json_t *json, enum value_kind kind, int64_t *out)
{
    const char *name = defined_name(json);

    *out = -1;
    return name != NULL ? define(file, graph, names, name, kind, out) : TN_OK;
}

static tn_status read_result(struct pt2_file *file, struct graph *graph, struct names *names,
                             const json_t *json, struct result *out)
{
    const char *kind = NULL;
    const json_t *value = pt2_union(json, &kind);
    bool number = kind != NULL && strncmp(kind, "as_sym_", 7) == 0;
    tn_status status = TN_OK;

    out->value = -1;
    if (value == NULL || (strncmp(kind, "as_tensor", 9) != 0 && !number &&
                          strncmp(kind, "as_optional_tensor", 18) != 0))
        return TN_OK; /* a constant: nothing refers to it */
    if (!json_is_array(value))
        return define_result(file, graph, names, value, number ? VALUE_NUMBER : VALUE_TENSOR,
                             &out->value);
    out->count = (int64_t)json_array_size(value);
    out->list = arena_new(&file->program->arena, json_array_size(value) + 1, sizeof *out->list);
    if (out->list == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < out->count && status == TN_OK; i++)
        status = define_result(file, graph, names, json_array_get(value, (size_t)i),
                               number ? VALUE_NUMBER : VALUE_TENSOR, &out->list[i]);
    return status;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* "torch.ops.aten.add.Tensor" becomes "aten.add.Tensor". */
static const char *function_name(const char *target)
{
    static const char operators[] = "operator.";

    if (strncmp(target, "torch.ops.", 10) == 0)
        return target + 10;
    return strncmp(target, operators, sizeof operators - 1) == 0 ? NULL : target;
}

static tn_status read_names(struct pt2_file *file, const json_t *json, struct node *node)
{
    const char *target = json_string_value(pt2_member(json, "target", JSON_STRING));
    const char *name = json_string_value(json_object_get(json, "name"));
    char text[300];

    if (target == NULL)
        return tn_error_last_code();
    if (strlen(target) >= 256)
        return pt2_wrong("target", "a name of less than 256 bytes");
    if (function_name(target) == NULL) {
        tn_snprint(text, sizeof text, "_%s", target);
        node->function = pt2_text(file, text);
    } else {
        node->function = pt2_text(file, function_name(target));
    }
    node->name = pt2_text(file, name != NULL ? name : "");
    return node->function != NULL && node->name != NULL ? TN_OK : TN_ERR_MEMORY;
}

static tn_status read_node_args(struct pt2_file *file, const json_t *json,
                                const struct names *names, int level, struct node *node)
{
    const json_t *inputs = pt2_member(json, "inputs", JSON_ARRAY);
    size_t count = json_array_size(inputs);
    tn_status status = inputs != NULL ? TN_OK : tn_error_last_code();

    node->args = arena_new(&file->program->arena, count + 1, sizeof *node->args);
    node->names = arena_new(&file->program->arena, count + 1, sizeof *node->names);
    if (node->args == NULL || node->names == NULL)
        return TN_ERR_MEMORY;
    node->n_args = (int64_t)count;
    for (size_t i = 0; i < count && status == TN_OK; i++) {
        const json_t *input = json_array_get(inputs, i);
        const char *name = json_string_value(json_object_get(input, "name"));

        node->names[i] = pt2_text(file, name != NULL ? name : "");
        status = node->names[i] == NULL ? TN_ERR_MEMORY
                                        : pt2_graph_arg(file, json_object_get(input, "arg"), names,
                                                        level, &node->args[i]);
        if (status != TN_OK && name != NULL && name[0] != '\0')
            tn_error_prefix("argument %.100s: ", name);
    }
    return status;
}

static tn_status read_results(struct pt2_file *file, const json_t *json, struct graph *graph,
                              struct names *names, struct node *node)
{
    const json_t *outputs = pt2_member(json, "outputs", JSON_ARRAY);
    size_t count = json_array_size(outputs);
    tn_status status = outputs != NULL ? TN_OK : tn_error_last_code();

    node->results = arena_new(&file->program->arena, count + 1, sizeof *node->results);
    if (node->results == NULL)
        return TN_ERR_MEMORY;
    node->n_results = (int64_t)count;
    for (size_t i = 0; i < count && status == TN_OK; i++)
        status = read_result(file, graph, names, json_array_get(outputs, i), &node->results[i]);
    return status;
}

static tn_status read_node(struct pt2_file *file, const json_t *json, struct graph *graph,
                           struct names *names, int level)
{
    struct node *node = &graph->nodes[graph->n_nodes++];
    const json_t *metadata = json_object_get(json, "metadata");
    const char *stack = json_string_value(json_object_get(metadata, "nn_module_stack"));
    tn_status status = ++file->program->n_nodes <= PROGRAM_NODES
                           ? read_names(file, json, node)
                           : pt2_wrong("nodes", "at most 1000000 in all graphs");

    if (status == TN_OK)
        status = read_node_args(file, json, names, level, node);
    if (status == TN_OK)
        status = read_results(file, json, graph, names, node);
    if (status == TN_OK && stack != NULL && level == 0)
        status = pt2_stack_read(file, stack, node);
    return status == TN_OK || node->name == NULL
               ? status
               : tn_error_prefix("node %.100s (%s): ", node->name, node->function);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* The most values that a list of results, or of inputs, can define. */
static uint64_t count_results(const json_t *list)
{
    uint64_t count = 0;
    const char *kind;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *result = pt2_union(json_array_get(list, i), &kind);

        count += json_is_array(result) ? json_array_size(result) : 1;
    }
    return count;
}

static uint64_t count_values(const json_t *json)
{
    const json_t *nodes = json_object_get(json, "nodes");
    uint64_t count = count_results(json_object_get(json, "inputs"));

    for (size_t i = 0; i < json_array_size(nodes); i++)
        count += count_results(json_object_get(json_array_get(nodes, i), "outputs"));
    return count;
}

static tn_status read_inputs(struct pt2_file *file, const json_t *inputs, struct graph *graph,
                             struct names *names)
{
    tn_status status = TN_OK;

    graph->n_inputs = (int64_t)json_array_size(inputs);
    for (int64_t i = 0; i < graph->n_inputs && status == TN_OK; i++) {
        struct result result = { .value = -1 };

        status = read_result(file, graph, names, json_array_get(inputs, (size_t)i), &result);
        if (status == TN_OK && result.list != NULL)
            status = tn_fail(TN_ERR_FORMAT,
                             "input %lld of a graph: a list; expected a tensor or a number",
                             (long long)i);
        graph->inputs[i] = result.value;
    }
    return status;
}

static tn_status read_outputs(struct pt2_file *file, const json_t *outputs, struct graph *graph,
                              const struct names *names, int level)
{
    tn_status status = TN_OK;

    graph->n_outputs = (int64_t)json_array_size(outputs);
    for (int64_t i = 0; i < graph->n_outputs && status == TN_OK; i++)
        status = pt2_graph_arg(file, json_array_get(outputs, (size_t)i), names, level,
                               &graph->outputs[i]);
    return status;
}

tn_status pt2_graph_read(struct pt2_file *file, const json_t *json, struct graph *graph,
                         struct names *names, int level)
{
    struct arena *arena = &file->program->arena;
    const json_t *inputs = pt2_member(json, "inputs", JSON_ARRAY);
    const json_t *outputs = pt2_member(json, "outputs", JSON_ARRAY);
    const json_t *nodes = pt2_member(json, "nodes", JSON_ARRAY);
    tn_status status;

    if (inputs == NULL || outputs == NULL || nodes == NULL)
        return tn_error_last_code();
    if (level > PROGRAM_LEVELS)
        return pt2_wrong("graph", "at most 64 graphs in each other");
    graph->values = arena_new(arena, count_values(json), sizeof *graph->values);
    graph->inputs = arena_new(arena, json_array_size(inputs), sizeof *graph->inputs);
    graph->outputs = arena_new(arena, json_array_size(outputs), sizeof *graph->outputs);
    graph->nodes = arena_new(arena, json_array_size(nodes), sizeof *graph->nodes);
    if (graph->values == NULL || graph->inputs == NULL || graph->outputs == NULL ||
        graph->nodes == NULL)
        return TN_ERR_MEMORY;
    status = read_inputs(file, inputs, graph, names);
    for (size_t i = 0; i < json_array_size(nodes) && status == TN_OK; i++)
        status = read_node(file, json_array_get(nodes, i), graph, names, level);
    return status == TN_OK ? read_outputs(file, outputs, graph, names, level) : status;
}
