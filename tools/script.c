/* SPDX-License-Identifier: MIT
 *
 * tenon script MODEL --input SHAPE --out FILE: writes a network with its graphs, as a file that
 * runs without the layers of the network. */
#include <stdlib.h>
#include <string.h>

#include <tenon/foreign.h>

#include "script.h"
#include "train/model.h"

enum { FILE_MOST = INT32_MAX };

typedef script_request request;

/* ---- the script ------------------------------------------------------------------------------ */

/* Traces the network in evaluation mode only, and runs the passes. */
static tn_module *one_mode(tn_module *module, const tn_pack *input, const request *wanted,
                           const tn_tracing_options *how)
{
    tn_graph *graph = tn_module_trace_pack(module, input, how);
    tn_module *holder = NULL, *script = NULL;

    if (graph != NULL && (wanted->passes == NULL || tn_graph_pass(graph, wanted->passes) == TN_OK))
        holder = wanted->passes != NULL ? tn_graph_module(graph) : tn_module_keep(module);
    if (holder != NULL)
        script = tn_script_new(holder, &graph, 1);
    tn_module_drop(holder);
    tn_graph_drop(graph);
    return script;
}

/* The files that the other commands read as texts. */
static const char *const notes_of_models[] = { MODEL_CLASSES, MODEL_TRANSFORM };

static bool is_note(const char *name)
{
    for (size_t i = 0; i < sizeof notes_of_models / sizeof *notes_of_models; i++)
        if (strcmp(name, notes_of_models[i]) == 0)
            return true;
    return false;
}

/* Adds NAME=FILE, or the file under its own name. */
static tn_status add_file(tn_state *files, const char *text)
{
    const char *equal = strchr(text, '='), *path = equal != NULL ? equal + 1 : text;
    char *name = equal != NULL ? strndup(text, (size_t)(equal - text)) : strdup(base_name(path));
    size_t size;
    char *bytes = name != NULL ? read_file("--file", path, FILE_MOST, &size) : NULL;
    tn_status status = name != NULL ? tn_error_code() : TN_ERR_MEMORY;

    if (bytes != NULL)
        status = tn_state_set_value(files, name,
                                    is_note(name) ? tn_value_string(bytes)
                                                  : tn_value_bytes(bytes, (uint32_t)size));
    tn_free(bytes);
    free(name);
    return status;
}

/* Adds the names of classes and the transform to the script, as files. */
static tn_status add_files(tn_module *script, const model_notes *notes, const request *wanted)
{
    tn_state *files = tn_script_files(script);
    tn_status status = files != NULL ? TN_OK : tn_error_code();

    for (size_t i = 0; i < sizeof notes_of_models / sizeof *notes_of_models && status == TN_OK; i++)
        if (model_note(notes, notes_of_models[i]) != NULL)
            status = tn_state_set_value(files, notes_of_models[i],
                                        tn_value_string(model_note(notes, notes_of_models[i])));
    for (int i = 0; i < wanted->file_count && status == TN_OK; i++)
        status = add_file(files, wanted->files[i]);
    return status;
}

static int64_t count_operators(const tn_graph *graph)
{
    int64_t count = 0;

    for (const tn_node *node = graph != NULL ? tn_graph_first(graph) : NULL; node != NULL;
         node = tn_node_next(node)) {
        count += tn_node_kind_of(node) == TN_NODE_OP || tn_node_kind_of(node) == TN_NODE_INPLACE;
        count += count_operators(tn_node_block(node, 0)) + count_operators(tn_node_block(node, 1));
    }
    return count;
}

static void answer(tn_module *script, const request *wanted, bool json)
{
    const tn_graph *graphs[] = { tn_script_graph(script, false), tn_script_graph(script, true) };
    bool one = graphs[0] == graphs[1];

    if (json) {
        json_begin(NULL, '{');
        json_text("out", wanted->out);
        json_text("original", tn_script_original(script));
        json_int("parameters", tn_module_parameter_count(script));
        json_int("operators", count_operators(graphs[0]));
        json_bool("trains", graphs[1] != NULL);
        json_end('}');
        return;
    }
    printf("module      %s, %lld parameters\n", tn_script_original(script),
           (long long)tn_module_parameter_count(script));
    printf("evaluation  %lld operators\n", (long long)count_operators(graphs[0]));
    if (graphs[1] != NULL)
        printf("training    %lld operators%s\n", (long long)count_operators(graphs[1]),
               one ? ", the same" : "");
    printf("written     %s\n", wanted->out);
}

/* Traces the module. Returns NULL and sets the error on failure. */
static tn_module *traced(tn_module *module, const request *wanted)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_pack *input = tn_pack_new();
    tn_module *script = NULL;

    how.flags = TN_TRACE_THROUGH;
    how.dynamic = wanted->dynamic;
    if (input == NULL)
        return NULL;
    if (wanted->inputs.count == 0)
        tn_fail(TN_ERR_VALUE, "--input: missing; expected the shape of an input, such as "
                              "1,3,224,224");
    else if (inputs_add(&wanted->inputs, input) == TN_OK && input_prepare(module, input) == TN_OK)
        script = wanted->eval || wanted->passes != NULL
                     ? one_mode(module, input, wanted, &how)
                     : tn_module_script_pack(module, input, &how);
    tn_pack_drop(input);
    return script;
}

static bool is_script(const tn_module *module)
{
    uint64_t mark = tn_error_mark();
    bool is = tn_script_original(module) != NULL;

    tn_error_restore(mark);
    return is;
}

/* Whether the module is a program that is written as it is. */
static bool is_program(tn_module *module, const char *out)
{
    uint64_t mark = tn_error_mark();
    const char *extension = tn_program_extension(module);
    bool is = extension != NULL && script_ends_with(out, extension);

    tn_error_restore(mark);
    return is;
}

bool script_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), last = strlen(end);

    return length > last && strcmp(text + length - last, end) == 0;
}

static void answer_program(tn_module *module, const request *wanted, bool json)
{
    if (json) {
        json_begin(NULL, '{');
        json_text("out", wanted->out);
        json_int("parameters", tn_module_parameter_count(module));
        json_end('}');
        return;
    }
    printf("program     %lld parameters\n", (long long)tn_module_parameter_count(module));
    printf("written     %s\n", wanted->out);
}

int script_write(const request *wanted, bool json)
{
    TN_SCOPE;
    model_notes notes = { 0 };
    tn_module *module = model_open(wanted->model, wanted->weights, 0, &notes), *script = NULL;
    tn_status status = module != NULL ? tn_module_eval(module) : tn_error_code();
    bool program = status == TN_OK && is_program(module, wanted->out);

    if (status == TN_OK && wanted->cast != TN_DTYPE_AUTO)
        status = tn_module_to(module, NULL, wanted->cast);
    if (status == TN_OK && program) {
        status = tn_module_save(module, wanted->out);
        if (status == TN_OK)
            answer_program(module, wanted, json);
    } else if (status == TN_OK) {
        script = is_script(module) && wanted->inputs.count == 0 ? tn_module_keep(module)
                                                                : traced(module, wanted);
        status = script != NULL ? add_files(script, &notes, wanted) : tn_error_code();
        if (status == TN_OK)
            status = tn_module_save(script, wanted->out);
        if (status == TN_OK)
            answer(script, wanted, json);
    }
    tn_module_drop(script);
    tn_module_drop(module);
    model_notes_free(&notes);
    return status == TN_OK ? EXIT_OK : tool_fail(NULL);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static request wanted = { .inputs = { .dtype = TN_F32 }, .cast = TN_DTYPE_AUTO };

static bool take_out(const char *value)
{
    wanted.out = value;
    return value[0] != '\0';
}

static bool take_input(const char *value)
{
    return inputs_take(&wanted.inputs, value);
}

static bool take_dtype(const char *value)
{
    return tn_dtype_parse(value, &wanted.inputs.dtype) == TN_OK;
}

static bool take_dynamic(const char *value)
{
    wanted.dynamic = value;
    return true;
}

static bool take_passes(const char *value)
{
    wanted.passes = value;
    return true;
}

static bool take_eval(const char *value)
{
    (void)value;
    return wanted.eval = true;
}

static bool take_file(const char *value)
{
    if (wanted.file_count == SCRIPT_FILES)
        return false;
    wanted.files[wanted.file_count++] = value;
    return value[0] != '\0' && value[0] != '=';
}

static bool take_weights(const char *value)
{
    wanted.weights = value;
    return true;
}

static int run(int count, char **arguments, bool json)
{
    (void)count;
    wanted.model = arguments[0];
    if (wanted.out == NULL || wanted.inputs.count == 0) {
        fprintf(stderr, "tenon script: %s is missing; `tenon script --help` lists the arguments\n",
                wanted.out == NULL ? "--out" : "--input");
        return EXIT_USAGE;
    }
    if (!script_ends_with(wanted.out, ".script")) {
        fprintf(stderr, "tenon script: --out: wrong name, got %s; expected NAME.script\n",
                wanted.out);
        return EXIT_USAGE;
    }
    return script_write(&wanted, json);
}

static const tool_option options[] = {
    { "--out", "FILE", "the file that is written, such as net.script", take_out },
    { "--input", "SHAPE",
      "an example of an input, 1,3,224,224 or 8,20:int64; repeat it for each (at most 8)",
      take_input },
    { "--dtype", "DTYPE", "dtype of inputs given without one; default: float32", take_dtype },
    { "--dynamic", "SHAPES", "sizes that may vary, such as \"[N, 3, 224, 224]\"; default: none may",
      take_dynamic },
    { "--eval", NULL, "for evaluation only; default: also for training", take_eval },
    { "--passes", "PASSES",
      "passes to run, such as \"conv_bn, dropout, dead\"; the script is for evaluation only",
      take_passes },
    { "--file", "NAME=FILE", "a file that is kept in the script; at most 16", take_file },
    { "--weights", "FILE", "weights for the model", take_weights },
    { NULL, NULL, NULL, NULL }
};

const command script_command = {
    "script",
    "MODEL --input SHAPE --out FILE",
    "writes a network as a script, which runs without its layers",
    "Traces a network in evaluation and training mode, and writes the graphs with the weights to a "
    "file of safetensors. The file is a MODEL for the other commands, also where the plugins of "
    "the layers are not installed. docs/guides/scripts.md describes it. " MODEL_HELP,
    1,
    1,
    run,
    0,
    options
};
