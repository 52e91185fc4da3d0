/* SPDX-License-Identifier: MIT
 *
 * tenon graph MODEL --input SHAPE: prints the graph of a network, traced on tensors without
 * memory. */
#include <stdlib.h>
#include <string.h>

#include "tool.h"
#include "train/model.h"

enum { INPUTS = 8 };

typedef struct request {
    const char *model, *passes, *format, *weights;
    const char *inputs[INPUTS];
    int input_count;
    tn_dtype dtype; /* of inputs given without a dtype */
    bool train, layers;
} request;

static tn_status add_input(const char *text, tn_dtype dtype, tn_pack *pack)
{
    int64_t sizes[TN_MAX_DIMS], count = 0;
    tn_tensor *tensor;

    if (!input_read(text, &dtype, sizes, &count))
        return tn_error_code();
    tensor = tn_tensor_full((tn_ints){ sizes, count }, TN_SCALAR(0.0), dtype, NULL);
    return tensor != NULL ? tn_pack_add(pack, NULL, tn_value_tensor(tensor)) : tn_error_code();
}

static tn_status is_lazy(void *user, const char *path, tn_module *module)
{
    (void)path;
    *(bool *)user |= tn_module_is_lazy(module, NULL);
    return TN_OK;
}

/* Lazy layers get their shapes from a call. */
static tn_status prepare(tn_module *module, const tn_pack *input)
{
    bool lazy = false;
    tn_status status = tn_module_each(module, true, is_lazy, &lazy);
    tn_pack *output;

    if (status != TN_OK || !lazy)
        return status;
    output = tn_pack_new();
    status = output != NULL ? tn_module_call_pack(module, input, output) : TN_ERR_MEMORY;
    tn_pack_drop(output);
    return status;
}

static int print(const tn_graph *graph, const char *format)
{
    int64_t length = tn_graph_print(graph, format, NULL, 0);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;

    if (text == NULL || tn_graph_print(graph, format, text, (size_t)length + 1) < 0) {
        free(text);
        return length < 0 ? tool_fail(NULL) : tool_refuse(TN_ERR_MEMORY, "out of memory");
    }
    fputs(text, stdout);
    free(text);
    return EXIT_OK;
}

/* Writes the reports of the passes to standard error, so that the graph alone can be piped. */
static void print_report(const tn_graph *graph)
{
    char text[4096];

    if (tn_graph_report(graph, text, sizeof text) > 0)
        fputs(text, stderr);
}

static int show(const request *wanted)
{
    TN_SCOPE;
    tn_tracing_options how = TN_TRACING_OPTIONS;
    model_notes notes = { 0 };
    tn_module *module = model_open(wanted->model, wanted->weights, 0, &notes);
    tn_pack *input = module != NULL ? tn_pack_new() : NULL;
    tn_status status = input != NULL ? tn_module_train(module, wanted->train) : tn_error_code();
    tn_graph *graph = NULL;
    int code = EXIT_NOT_OK;

    how.flags = wanted->layers ? TN_TRACE_LEAVES : TN_TRACE_THROUGH;
    for (int i = 0; i < wanted->input_count && status == TN_OK; i++)
        status = add_input(wanted->inputs[i], wanted->dtype, input);
    if (status == TN_OK)
        status = prepare(module, input);
    if (status == TN_OK)
        graph = tn_module_trace_pack(module, input, &how);
    if (graph != NULL && wanted->passes != NULL)
        status = tn_graph_pass(graph, wanted->passes);
    if (graph != NULL && status == TN_OK) {
        print_report(graph);
        code = print(graph, wanted->format);
    } else {
        code = tool_fail(NULL);
    }
    tn_graph_drop(graph);
    tn_pack_drop(input);
    tn_module_drop(module);
    model_notes_free(&notes);
    return code;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static request wanted = { .dtype = TN_F32 };

static bool take_input(const char *value)
{
    if (wanted.input_count == INPUTS)
        return false;
    wanted.inputs[wanted.input_count++] = value;
    return true;
}

static bool take_dtype(const char *value)
{
    return tn_dtype_parse(value, &wanted.dtype) == TN_OK;
}

static bool take_passes(const char *value)
{
    wanted.passes = value;
    return true;
}

static bool take_format(const char *value)
{
    static const char *const forms[] = { "text", "code", "table", "json", "graphviz" };

    wanted.format = value;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(value, forms[i]) == 0)
            return true;
    return false;
}

static bool take_weights(const char *value)
{
    wanted.weights = value;
    return true;
}

static bool take_train(const char *value)
{
    (void)value;
    return wanted.train = true;
}

static bool take_layers(const char *value)
{
    (void)value;
    return wanted.layers = true;
}

static int run(int count, char **arguments, bool json)
{
    (void)count;
    wanted.model = arguments[0];
    if (wanted.format == NULL)
        wanted.format = json ? "json" : "text";
    if (wanted.input_count == 0) {
        fprintf(stderr, "tenon graph: --input is missing; `tenon graph --help` lists the "
                        "arguments\n");
        return EXIT_USAGE;
    }
    return show(&wanted);
}

static const tool_option options[] = {
    { "--input", "SHAPE", "an input, 1,3,224,224 or 8,20:int64; repeat it for each (at most 8)",
      take_input },
    { "--dtype", "DTYPE", "dtype of inputs given without one; default: float32", take_dtype },
    { "--passes", "PASSES", "passes to run, such as \"conv_bn, dropout, dead\"", take_passes },
    { "--format", "FORMAT", "text, code, table, json or graphviz; default: text", take_format },
    { "--weights", "FILE", "weights for the model, which passes may need", take_weights },
    { "--layers", NULL, "layers are nodes, in place of operators", take_layers },
    { "--train", NULL, "in training mode; default: evaluation", take_train },
    { NULL, NULL, NULL, NULL }
};

const command graph_command = {
    "graph",
    "MODEL --input SHAPE",
    "prints the operators of a network as a graph",
    "Calls a network with tensors without memory, and prints the operators that its forward calls, "
    "with their options, types and shapes. Passes change the graph before it is printed; their "
    "reports go to standard error. docs/guides/graphs.md describes the formats. " MODEL_HELP,
    1,
    1,
    run,
    0,
    options
};
