/* SPDX-License-Identifier: MIT
 *
 * tenon graph MODEL --input SHAPE: prints the graph of a network, traced on tensors without
 * memory. */
#include <stdlib.h>
#include <string.h>

#include "graph_c.h"
#include "graph_page.h"
#include "tool.h"
#include "train/model.h"

typedef struct request {
    const char *model, *passes, *format, *weights;
    input_list inputs;
    bool train, layers, why;
} request;

/* Writes a text of a graph or a plan. */
static int64_t write_text(const tn_graph *graph, tn_plan *plan, const char *format, char *out,
                          size_t size)
{
    if (plan != NULL)
        return tn_plan_print(plan, out, size);
    return format != NULL ? tn_graph_print(graph, format, out, size)
                          : tn_graph_report(graph, out, size);
}

/* Prints a graph in a format (NULL: the reports of its passes), or the steps of a plan. */
static int print(const tn_graph *graph, tn_plan *plan, const char *format, FILE *to)
{
    int64_t length = write_text(graph, plan, format, NULL, 0);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;

    if (text == NULL || write_text(graph, plan, format, text, (size_t)length + 1) < 0) {
        free(text);
        return length < 0 ? tool_fail(NULL) : tool_refuse(TN_ERR_MEMORY, "out of memory");
    }
    fputs(text, to);
    free(text);
    return EXIT_OK;
}

/* Says what the passes did and left, and what a plan of the graph needs or why there is none. */
static int explain(const tn_graph *graph)
{
    tn_plan *plan = tn_plan_new(graph, NULL);
    tn_plan_stats stats;
    int code = print(graph, NULL, NULL, stdout);

    if (plan == NULL) {
        printf("plan: not made: %s\n", tn_error_text());
        return EXIT_NOT_OK;
    }
    if (code == EXIT_OK && tn_plan_describe(plan, &stats) != TN_OK)
        code = tool_fail(NULL);
    else if (code == EXIT_OK)
        printf("plan: %lld steps; %lld bytes for values (at least %lld, without sharing %lld), "
               "%lld prepared\n",
               (long long)stats.steps, (long long)stats.bytes, (long long)stats.bytes_least,
               (long long)stats.bytes_apart, (long long)stats.bytes_prepared);
    tn_plan_drop(plan);
    return code;
}

static int print_plan(const tn_graph *graph)
{
    tn_plan *plan = tn_plan_new(graph, NULL);
    int code = plan != NULL ? print(graph, plan, NULL, stdout) : tool_fail(NULL);

    tn_plan_drop(plan);
    return code;
}

/* Writes the page, for which the graph runs. */
static int print_page(tn_graph *graph, const request *wanted, const tn_pack *input)
{
    tn_tensor *in[INPUTS_MOST];
    char inputs[1024] = "";
    graph_page page = { wanted->model, wanted->passes, inputs, wanted->train };

    for (int i = 0; i < wanted->inputs.count; i++) {
        size_t length = strlen(inputs);

        snprintf(inputs + length, sizeof inputs - length, "%s%s", i > 0 ? " and " : "",
                 wanted->inputs.at[i]);
        in[i] = tn_pack_at(input, i).as.tensor;
    }
    return graph_page_write(&page, graph, in, wanted->inputs.count) == TN_OK ? EXIT_OK
                                                                             : tool_fail(NULL);
}

/* The reports of the passes go to standard error, so that the graph alone can be piped. */
static int print_graph(tn_graph *graph, const request *wanted, tn_module *module,
                       const tn_pack *input)
{
    int code;

    if (wanted->why)
        return explain(graph);
    if (strcmp(wanted->format, "html") == 0)
        return print_page(graph, wanted, input);
    code = print(graph, NULL, NULL, stderr);
    if (code != EXIT_OK)
        return code;
    if (strcmp(wanted->format, "c") == 0)
        return graph_c_write(wanted->model, module, graph) == TN_OK ? EXIT_OK : tool_fail(NULL);
    return strcmp(wanted->format, "plan") == 0 ? print_plan(graph)
                                               : print(graph, NULL, wanted->format, stdout);
}

/* ---- plans of training ----------------------------------------------------------------------- */

/* Runs backward with gradients of ones for all results that require gradients. */
static tn_status run_backward(const tn_pack *output)
{
    tn_tensor *results[INPUTS_MOST], *ones[INPUTS_MOST];
    int64_t count = 0;

    for (int64_t i = 0; i < tn_pack_count(output) && count < INPUTS_MOST; i++) {
        tn_value value = tn_pack_at(output, i);

        if (value.kind != TN_VALUE_TENSOR || !tn_tensor_requires_grad(value.as.tensor))
            continue;
        results[count] = value.as.tensor;
        ones[count] = tn_tensor_full(tn_tensor_shape(value.as.tensor), TN_SCALAR(1.0),
                                     tn_tensor_dtype(value.as.tensor),
                                     tn_tensor_device(value.as.tensor));
        if (ones[count++] == NULL)
            return tn_error_code();
    }
    return tn_backward_from(results, ones, count, NULL);
}

static int print_compiled(tn_module *module, bool steps)
{
    int64_t length = tn_module_compile_print(module, steps, NULL, 0);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;
    int code = EXIT_OK;

    if (text == NULL || tn_module_compile_print(module, steps, text, (size_t)length + 1) < 0)
        code = length < 0 ? tool_fail(NULL) : tool_refuse(TN_ERR_MEMORY, "out of memory");
    else
        fputs(text, stdout);
    free(text);
    return code;
}

/* Calls the compiled network once, with its backward, and prints its plans, or why it has none. */
static int show_training(const request *wanted, tn_module *module, const tn_pack *input)
{
    tn_pack *output = tn_pack_new();
    tn_status status = output != NULL ? tn_module_compile(module, "plan(train=True)")
                                      : tn_error_code();

    if (status == TN_OK)
        status = tn_module_call_pack(module, input, output);
    if (status == TN_OK)
        status = run_backward(output);
    tn_pack_drop(output);
    if (status != TN_OK && !wanted->why)
        return tool_fail(NULL);
    if (status != TN_OK) {
        printf("plan: not made: %s\n", tn_error_text());
        return EXIT_NOT_OK;
    }
    return print_compiled(module, !wanted->why);
}

/* Evaluation is traced in inference mode: scripts that passes have made for inference run only
 * where no gradient is recorded. */
static tn_graph *trace(const request *wanted, tn_module *module, const tn_pack *input)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_graph *graph = NULL;

    how.flags = wanted->layers ? TN_TRACE_LEAVES : TN_TRACE_THROUGH;
    if (wanted->train)
        return tn_module_trace_pack(module, input, &how);
    if (tn_inference_begin(true) == TN_OK)
        graph = tn_module_trace_pack(module, input, &how);
    tn_inference_end();
    return graph;
}

static bool shows_training(const request *wanted)
{
    return wanted->train && (wanted->why || strcmp(wanted->format, "plan") == 0);
}

static int show(const request *wanted)
{
    TN_SCOPE;
    model_notes notes = { 0 };
    tn_module *module = model_open(wanted->model, wanted->weights, 0, &notes);
    tn_pack *input = module != NULL ? tn_pack_new() : NULL;
    tn_status status = input != NULL ? tn_module_train(module, wanted->train) : tn_error_code();
    tn_graph *graph = NULL;
    int code;

    if (status == TN_OK)
        status = inputs_add(&wanted->inputs, input);
    if (status == TN_OK)
        status = input_prepare(module, input);
    if (status == TN_OK && !shows_training(wanted))
        graph = trace(wanted, module, input);
    if (graph != NULL && wanted->passes != NULL)
        status = tn_graph_pass(graph, wanted->passes);
    if (status == TN_OK && shows_training(wanted))
        code = show_training(wanted, module, input);
    else
        code = graph != NULL && status == TN_OK ? print_graph(graph, wanted, module, input)
                                                : tool_fail(NULL);
    tn_graph_drop(graph);
    tn_pack_drop(input);
    tn_module_drop(module);
    model_notes_free(&notes);
    return code;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static request wanted = { .inputs = { .dtype = TN_F32 } };

static bool take_input(const char *value)
{
    return inputs_take(&wanted.inputs, value);
}

static bool take_dtype(const char *value)
{
    return tn_dtype_parse(value, &wanted.inputs.dtype) == TN_OK;
}

static bool take_passes(const char *value)
{
    wanted.passes = value;
    return true;
}

static bool take_format(const char *value)
{
    static const char *const forms[] = { "text", "code",     "c",    "table",
                                         "json", "graphviz", "plan", "html" };

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

static bool take_why(const char *value)
{
    (void)value;
    return wanted.why = true;
}

static int run(int count, char **arguments, bool json)
{
    (void)count;
    wanted.model = arguments[0];
    if (wanted.format == NULL)
        wanted.format = json ? "json" : "text";
    if (wanted.inputs.count == 0) {
        fprintf(stderr, "tenon graph: --input is missing; `tenon graph --help` lists the "
                        "arguments\n");
        return EXIT_USAGE;
    }
    if (json && (wanted.why || strcmp(wanted.format, "plan") == 0)) {
        fprintf(stderr, "tenon graph: --json with --why or --format plan: they print text only\n");
        return EXIT_USAGE;
    }
    if (shows_training(&wanted) && wanted.passes != NULL) {
        fprintf(stderr, "tenon graph: --passes with --train and a plan: plans of training have no "
                        "passes\n");
        return EXIT_USAGE;
    }
    return show(&wanted);
}

static const tool_option options[] = {
    { "--input", "SHAPE", "an input, 1,3,224,224 or 8,20:int64; repeat it for each (at most 8)",
      take_input },
    { "--dtype", "DTYPE", "dtype of inputs given without one; default: float32", take_dtype },
    { "--passes", "PASSES", "passes to run, such as \"conv_bn, dropout, dead\"", take_passes },
    { "--format", "FORMAT",
      "text, code, table, json, graphviz; c: a C file that makes the module without its layers; "
      "plan: the kernels of a plan and its memory; html: a page with times, for which the graph "
      "runs; default: text",
      take_format },
    { "--why", NULL,
      "in place of the graph: what passes left and why, what a plan needs or why there is none",
      take_why },
    { "--weights", "FILE", "weights for the model, which passes may need", take_weights },
    { "--layers", NULL, "layers are nodes, in place of operators", take_layers },
    { "--train", NULL,
      "in training mode; default: evaluation. With --why or --format plan: the plan of training, "
      "for which the network runs once, with its backward",
      take_train },
    { NULL, NULL, NULL, NULL }
};

const command graph_command = {
    "graph",
    "MODEL --input SHAPE",
    "prints the operators of a network as a graph",
    "Calls a network with tensors without memory, and prints the operators that its forward calls, "
    "with their options, dtypes and shapes. Passes change the graph before it is printed; their "
    "reports go to standard error. docs/guides/graphs.md describes the formats. " MODEL_HELP,
    1,
    1,
    run,
    0,
    options
};
