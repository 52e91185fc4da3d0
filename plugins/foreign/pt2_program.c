/* SPDX-License-Identifier: MIT
 *
 * The program of a `.pt2` file: its modules, its main graph, and its signature, which says what the
 * inputs and outputs of the graph are: arguments, parameters, buffers, constants, results, or
 * values to be written to buffers and arguments. */
#include "pt2.h"

#include <string.h>

enum { PARTS = 100000 };

/* ---- modules --------------------------------------------------------------------------------- */

static tn_status reserve_parts(struct program *program)
{
    struct part *more;

    if ((program->n_parts & (program->n_parts - 1)) != 0)
        return TN_OK;
    more = arena_new(&program->arena, 2 * (uint64_t)program->n_parts + 1, sizeof *more);
    if (more == NULL)
        return TN_ERR_MEMORY;
    if (program->n_parts > 0)
        memcpy(more, program->parts, (size_t)program->n_parts * sizeof *more);
    program->parts = more;
    return TN_OK;
}

static int64_t add_part(struct pt2_file *file, const char *path)
{
    struct program *program = file->program;
    struct part *part;

    if (program->n_parts >= PARTS) {
        pt2_wrong("modules", "at most 100000");
        return -1;
    }
    if (reserve_parts(program) != TN_OK)
        return -1;
    part = &program->parts[program->n_parts];
    *part = (struct part){ .path = pt2_text(file, path), .program = program, .mode = -1 };
    if (part->path == NULL || names_add(&file->parts, part->path, program->n_parts) != TN_OK)
        return -1;
    return program->n_parts++;
}

int64_t pt2_program_part(struct pt2_file *file, const char *path)
{
    char above[PROGRAM_PATH];
    int64_t levels = 0, found = names_find(&file->parts, path);

    if (found >= 0)
        return found;
    if (path[0] == '\0')
        return add_part(file, path);
    if (strlen(path) >= sizeof above || path[0] == '.' || path[strlen(path) - 1] == '.' ||
        strstr(path, "..") != NULL) {
        pt2_wrong("path of a module", "names separated by dots, less than 1000 bytes");
        return -1;
    }
    if (pt2_program_part(file, "") < 0)
        return -1;
    for (const char *at = path; (at = strchr(at, '.')) != NULL; at++) {
        memcpy(above, path, (size_t)(at - path));
        above[at - path] = '\0';
        if (++levels > PROGRAM_LEVELS) {
            pt2_wrong("modules", "at most 64 in each other");
            return -1;
        }
        if (names_find(&file->parts, above) < 0 && add_part(file, above) < 0)
            return -1;
    }
    return add_part(file, path);
}

/* "module_call_graph" has all modules in their order; "b@1" is another call of "b". */
static tn_status read_modules(struct pt2_file *file, const json_t *calls)
{
    int64_t part = pt2_program_part(file, "");

    for (size_t i = 0; i < json_array_size(calls) && part >= 0; i++) {
        const char *path = json_string_value(json_object_get(json_array_get(calls, i), "fqn"));

        if (path != NULL && strchr(path, '@') == NULL)
            part = pt2_program_part(file, path);
    }
    return part >= 0 ? TN_OK : tn_error_last_code();
}

/* ---- signature: inputs ----------------------------------------------------------------------- */

#define AN_INPUT "an input of the graph that no other spec names"

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* The value that an argument of the signature names: {"name": "x"}, {"as_tensor": {"name": "x"}} or
 * {"as_sym_int": {"as_name": "x"}}; NULL if it names none. */
static const char *value_name(const json_t *arg)
{
    const char *kind = NULL, *name = text_of(arg, "name");
    const json_t *inner = pt2_union(arg, &kind);

    if (name == NULL)
        name = text_of(inner, "name");
    return name != NULL ? name : text_of(inner, "as_name");
}

/* Takes the input of the main graph that a spec names; -1: there is none, or another spec has it.
 */
static int64_t take_input(struct pt2_file *file, const struct names *names, const char *name)
{
    int64_t value = name != NULL ? names_find(names, name) : -1;

    if (value < 0 || !file->unnamed[value])
        return -1;
    file->unnamed[value] = false;
    return value;
}

/* Whether the main graph had a value with a gradient: in files whose tables do not say so. */
static bool had_gradient(const struct pt2_file *file, const char *name)
{
    const json_t *graph = json_object_get(json_object_get(file->json, "graph_module"), "graph");
    const json_t *meta = json_object_get(json_object_get(graph, "tensor_values"), name);

    return json_is_true(json_object_get(meta, "requires_grad"));
}

/* A parameter, a buffer or a constant: the value is the slot. */
static tn_status read_slot(struct pt2_file *file, const char *kind, const json_t *spec,
                           const struct names *names)
{
    char member[64];
    const char *path, *value = value_name(json_object_get(spec, "arg"));
    struct slot *slot;
    int64_t index, at;

    tn_snprint(member, sizeof member, "%s_name", kind);
    path = text_of(spec, member);
    at = take_input(file, names, value);
    if (path == NULL || at < 0)
        return pt2_wrong(kind, "the name of a tensor, and " AN_INPUT);
    index = names_find(&file->slots, path);
    if (index < 0)
        return tn_fail(TN_ERR_FORMAT, "%s: pt2: %s %.100s: the archive has no such tensor",
                       file->source->path, kind, path);
    slot = &file->program->slots[index];
    file->program->main.values[at].bound = index;
    if (strcmp(kind, "parameter") != 0) {
        bool kept = strcmp(kind, "buffer") == 0 &&
                    !json_is_false(json_object_get(spec, "persistent"));

        slot->parameter = false;
        slot->flags = kept ? 0 : TN_SLOT_FLAG_NOT_PERSISTENT;
    } else if (!slot->parameter) {
        slot->parameter = true;
        slot->grad = had_gradient(file, value);
    }
    return TN_OK;
}

static tn_status read_constant_input(struct pt2_file *file, const json_t *spec,
                                     struct program_input *input)
{
    struct names none = { 0 };
    struct arg arg;
    tn_status status = pt2_graph_arg(file, json_object_get(spec, "value"), &none, 0, &arg);

    if (status != TN_OK)
        return status;
    if (arg.kind != ARG_CONSTANT)
        return pt2_wrong("constant_input", "a plain value");
    input->constant = true;
    input->value = arg.as.constant;
    return TN_OK;
}

static tn_status read_user_input(struct pt2_file *file, const char *kind, const json_t *spec,
                                 const struct names *names)
{
    struct program *program = file->program;
    struct program_input *input = &program->inputs[program->n_inputs];
    const json_t *arg = json_object_get(spec, "arg");
    const char *name = value_name(arg);
    struct names none = { 0 };
    struct arg constant;
    tn_status status = TN_OK;

    *input = (struct program_input){ .to = -1 };
    if (strcmp(kind, "constant_input") == 0) {
        status = read_constant_input(file, spec, input);
    } else if (name != NULL) {
        input->to = take_input(file, names, name);
        if (input->to < 0)
            return pt2_wrong("user_input", AN_INPUT);
        name = program->main.values[input->to].name;
        if (names_find(&file->inputs, name) < 0)
            status = names_add(&file->inputs, name, program->n_inputs);
    } else { /* a plain value that the program was exported with */
        status = pt2_graph_arg(file, arg, &none, 0, &constant);
        if (status == TN_OK && constant.kind != ARG_CONSTANT)
            status = pt2_wrong("user_input", "a tensor, a number or a plain value");
        input->constant = true;
        input->value = status == TN_OK ? constant.as.constant : tn_value_none();
    }
    program->n_inputs++;
    return status;
}

static tn_status read_input(struct pt2_file *file, const json_t *json, const struct names *names)
{
    const char *kind = "";
    const json_t *spec = pt2_union(json, &kind);

    if (strcmp(kind, "parameter") == 0 || strcmp(kind, "buffer") == 0 ||
        strcmp(kind, "tensor_constant") == 0)
        return read_slot(file, kind, spec, names);
    if (strcmp(kind, "user_input") == 0 || strcmp(kind, "constant_input") == 0)
        return read_user_input(file, kind, spec, names);
    if (strcmp(kind, "token") == 0) {
        take_input(file, names, value_name(json_object_get(spec, "arg")));
        return TN_OK;
    }
    if (strcmp(kind, "custom_obj") == 0)
        return tn_fail(
            TN_ERR_REFUSED,
            "%s: pt2: input %.100s: a custom object, which only the program that made it "
            "can read; expected tensors and numbers",
            file->source->path,
            text_of(spec, "custom_obj_name") != NULL ? text_of(spec, "custom_obj_name") : "");
    return pt2_wrong("input_specs", "kinds that are known here");
}

/* ---- signature: outputs ---------------------------------------------------------------------- */

/* Whether the signature names another value than the graph has as this output. */
static bool is_other(const struct arg *output, const json_t *arg, const struct names *values)
{
    const char *name = value_name(arg);

    return name != NULL &&
           (output->kind != ARG_VALUE || names_find(values, name) != output->as.value);
}

static tn_status read_output(struct pt2_file *file, const json_t *json, const struct names *values,
                             const struct arg *output, struct program_output *out)
{
    const char *kind = "", *name = NULL;
    const json_t *spec = pt2_union(json, &kind);
    const struct names *names = &file->slots;

    if (is_other(output, json_object_get(spec, "arg"), values))
        return pt2_wrong("output_specs", "the names of the outputs of the graph, in their order");
    if (strcmp(kind, "user_output") == 0 || strcmp(kind, "loss_output") == 0) {
        out->kind = OUTPUT_USER;
        return TN_OK;
    }
    out->kind = OUTPUT_SLOT;
    if (strcmp(kind, "buffer_mutation") == 0) {
        name = text_of(spec, "buffer_name");
    } else if (strcmp(kind, "parameter_mutation") == 0) {
        name = text_of(spec, "parameter_name");
    } else if (strcmp(kind, "user_input_mutation") == 0) {
        out->kind = OUTPUT_INPUT;
        name = text_of(spec, "user_input_name");
        names = &file->inputs;
    } else {
        return tn_fail(
            TN_ERR_REFUSED,
            "%s: pt2: output_specs: %.60s: not supported; expected results and writes to "
            "buffers, parameters and arguments: export the network, not its gradients",
            file->source->path, kind);
    }
    out->index = name != NULL ? names_find(names, name) : -1;
    return out->index >= 0 ? TN_OK : pt2_wrong(kind, "the name of a tensor or an input");
}

/* Notes the inputs of the main graph. */
static tn_status begin_inputs(struct pt2_file *file)
{
    const struct graph *main = &file->program->main;

    file->unnamed = arena_new(&file->program->arena, (uint64_t)main->n_values + 1,
                              sizeof *file->unnamed);
    for (int64_t i = 0; i < main->n_inputs && file->unnamed != NULL; i++)
        if (main->inputs[i] >= 0)
            file->unnamed[main->inputs[i]] = true;
    return file->unnamed != NULL ? TN_OK : TN_ERR_MEMORY;
}

static tn_status end_inputs(const struct pt2_file *file)
{
    const struct graph *main = &file->program->main;

    for (int64_t i = 0; i < main->n_values; i++)
        if (file->unnamed[i])
            return tn_fail(TN_ERR_FORMAT,
                           "%s: pt2: input_specs: none for the input %.100s of the graph; expected "
                           "one for each",
                           file->source->path, main->values[i].name);
    return TN_OK;
}

static tn_status read_signature(struct pt2_file *file, const json_t *json,
                                const struct names *names)
{
    struct program *program = file->program;
    const json_t *inputs = pt2_member(json, "input_specs", JSON_ARRAY);
    const json_t *outputs = pt2_member(json, "output_specs", JSON_ARRAY);
    tn_status status = TN_OK;

    if (inputs == NULL || outputs == NULL)
        return tn_error_last_code();
    program->inputs = arena_new(&program->arena, json_array_size(inputs) + 1,
                                sizeof *program->inputs);
    program->outputs = arena_new(&program->arena, json_array_size(outputs) + 1,
                                 sizeof *program->outputs);
    if (program->inputs == NULL || program->outputs == NULL)
        return TN_ERR_MEMORY;
    status = begin_inputs(file);
    for (size_t i = 0; i < json_array_size(inputs) && status == TN_OK; i++)
        status = read_input(file, json_array_get(inputs, i), names);
    if (status == TN_OK)
        status = end_inputs(file);
    program->n_outputs = (int64_t)json_array_size(outputs);
    if (status == TN_OK && program->n_outputs != program->main.n_outputs)
        status = pt2_wrong("output_specs", "one for each output of the graph");
    for (int64_t i = 0; i < program->n_outputs && status == TN_OK; i++)
        status = read_output(file, json_array_get(outputs, (size_t)i), names,
                             &program->main.outputs[i], &program->outputs[i]);
    return status;
}

/* ---- the program ----------------------------------------------------------------------------- */

tn_status pt2_program_read(struct pt2_file *file)
{
    const json_t *module = pt2_member(file->json, "graph_module", JSON_OBJECT);
    const json_t *calls = json_object_get(module, "module_call_graph");
    const json_t *graph = module != NULL ? pt2_member(module, "graph", JSON_OBJECT) : NULL;
    const json_t *signature = graph != NULL ? pt2_member(module, "signature", JSON_OBJECT) : NULL;
    struct names names = { 0 };
    tn_status status = signature != NULL ? read_modules(file, calls) : tn_error_last_code();

    if (status == TN_OK)
        status = pt2_weights_read(file);
    if (status == TN_OK)
        status = pt2_graph_read(file, graph, &file->program->main, &names, 0);
    if (status == TN_OK)
        status = read_signature(file, signature, &names);
    if (status == TN_OK)
        status = pt2_spec_read(file, calls);
    names_free(&names);
    return status;
}
