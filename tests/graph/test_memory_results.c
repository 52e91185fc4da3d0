/* SPDX-License-Identifier: MIT
 *
 * Each allocation fails in turn. A call that reports success has the result that it has without a
 * failure: structure, states, texts and files are compared, not only the status; and no failure is
 * recorded. A call that reports a failure has recorded it. */
#include "tests/graph/suite.h"

#include <unistd.h>

/* What a call made. */
struct made {
    tn_module *module;
    tn_graph *graph;
    tn_state *state;
    const char *file;
    tn_status status;
};

static tn_module *net;
static tn_tensor *x;
static char file[64];

static struct made of_module(tn_module *module)
{
    return (struct made){ .module = module,
                          .status = module != NULL ? TN_OK : tn_error_last_code() };
}
static struct made of_graph(tn_graph *graph)
{
    return (struct made){ .graph = graph, .status = graph != NULL ? TN_OK : tn_error_last_code() };
}
static struct made of_state(tn_state *state)
{
    return (struct made){ .state = state, .status = state != NULL ? TN_OK : tn_error_last_code() };
}

/* ---- what the results are -------------------------------------------------------------------- */

static uint64_t hash(uint64_t h, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < size; i++)
        h = (h ^ at[i]) * 1099511628211u;
    return h;
}

static void add_state(tn__text *text, const tn_state *state)
{
    for (int64_t i = 0; i < tn_state_count(state); i++) {
        tn_value value = tn_state_value(state, i);

        tn__text_add(text, "%s ", tn_state_name(state, i));
        if (value.kind == TN_VALUE_TENSOR && value.as.tensor != TN_NONE) {
            tn_tensor *t = value.as.tensor;
            size_t size = (size_t)tn_tensor_numel(t) * tn_dtype_size(tn_tensor_dtype(t));
            char *bytes = malloc(size + 1);
            ck_ok(tn_tensor_copy_out(t, bytes, size));
            for (int64_t d = 0; d < tn_tensor_shape(t).count; d++)
                tn__text_add(text, "%d ", (int)tn_tensor_size(t, d));
            tn__text_add(text, "%s %x\n", tn_dtype_name(tn_tensor_dtype(t)),
                         (unsigned)hash(14695981039346656037u, bytes, size));
            free(bytes);
        }
    }
}

static void add_file(tn__text *text, const char *name)
{
    FILE *from = fopen(name, "rb");
    char bytes[4096];
    uint64_t h = 14695981039346656037u;
    size_t size;

    ck_assert_msg(from != NULL, "%s is missing", name);
    while ((size = fread(bytes, 1, sizeof bytes, from)) > 0)
        h = hash(h, bytes, size);
    fclose(from);
    tn__text_add(text, "%x", (unsigned)h);
}

static void add_module(tn__text *text, tn_module *module)
{
    static char long_text[1 << 16];
    tn_state *state = tn_module_state(module);

    ck_assert_msg(tn_module_repr(module, long_text, sizeof long_text) > 0, "%s", tn_error_text());
    tn__text_add(text, "%s\n", long_text);
    ck_made(state);
    add_state(text, state);
    tn_state_drop(state);
}

/* Describes what was made, and drops it. */
static char *described(const struct made *made)
{
    static char long_text[1 << 16];
    tn__text text = { 0 };

    tn__text_put(&text, "", 0);
    if (made->module != NULL)
        add_module(&text, made->module);
    if (made->graph != NULL) {
        ck_assert_msg(tn_graph_print(made->graph, "text", long_text, sizeof long_text) > 0, "%s",
                      tn_error_text());
        tn__text_add(&text, "%s", long_text);
    }
    if (made->state != NULL)
        add_state(&text, made->state);
    if (made->file != NULL)
        add_file(&text, made->file);
    tn_module_drop(made->module);
    tn_graph_drop(made->graph);
    tn_state_drop(made->state);
    return tn__text_take(&text);
}

/* ---- the calls ------------------------------------------------------------------------------- */

static struct made new_spec(void)
{
    tn_random_seed(1);
    return of_module(tn_module_new("Sequential(a=Linear(3, %d), b=Sequential(ReLU(), "
                                   "Conv2d(1, 2, (3, 3), stride=[1, 2])), act=ReLU())",
                                   3));
}

static struct made new_range(void)
{
    tn_random_seed(1);
    return of_module(tn_module_new("Sequential(a_layer_whose_name_is_longer_than_sixty_four_"
                                   "characters_so_that_it_grows_{0..3}_end=Linear(2, 2))"));
}

static struct made new_printed(void)
{
    tn_random_seed(1);
    return of_module(tn_module_new(
        "Net(\n  (fc): Linear(in_features=2, out_features=2, bias=True)\n"
        "  (act): Sequential(\n    (0-1): 2 x ReLU()\n  )\n  (own): Other(3, mode='x')\n)"));
}

/* A printed layer whose children share what `build` has made. */
static struct made new_printed_layer(void)
{
    tn_random_seed(1);
    return of_module(tn_module_new(
        "MultiheadAttention(\n  (out_proj): NonDynamicallyQuantizableLinear(in_features=4, "
        "out_features=4, bias=True)\n)"));
}

static struct made new_model(void)
{
    tn_random_seed(1);
    return of_module(tn_module_new("resnet18(num_classes=2)"));
}

static struct made add_children(void)
{
    tn_module *module = tn_module_plain("Net");
    struct made made = of_module(module);

    if (module != NULL) {
        tn_random_seed(1);
        made.status = tn_module_add_children(
            module, "fc=Linear(2, 2), a_rather_long_name_of_a_block_with_a_number_after_it_and_"
                    "more_{0..2}=ReLU(), last=Sequential(Tanh())");
    }
    return made;
}

static struct made copy(void)
{
    return of_module(tn_module_copy(net));
}

static struct made state(void)
{
    return of_state(tn_module_state(net));
}

static struct made slice(void)
{
    return of_module(tn_list_slice(net, 1, TN_LIST_OPEN, 1));
}

static struct made trace(void)
{
    return of_graph(tn_module_trace(net, x, NULL));
}

static struct made trace_through(void)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;

    how.flags = TN_TRACE_THROUGH;
    return of_graph(tn_module_trace(net, x, &how));
}

static struct made inlined(void)
{
    tn_graph *graph = tn_module_trace(net, x, NULL);
    struct made made = of_graph(graph);

    if (graph != NULL)
        made.status = tn_graph_inline(graph);
    return made;
}

static struct made shapes(void)
{
    tn_graph *graph = tn_module_trace(net, x, NULL);
    struct made made = of_graph(graph);

    if (graph != NULL)
        made.status = tn_graph_shapes(graph, &x, 1);
    return made;
}

static struct made passes(void)
{
    struct made made = trace_through();

    if (made.graph != NULL)
        made.status = tn_graph_pass(made.graph, "decompose, cse, dead, inplace");
    return made;
}

static struct made graph_module(void)
{
    tn_graph *graph = tn_module_trace(net, x, NULL);
    struct made made = { .status = tn_error_last_code() };

    if (graph != NULL)
        made = of_module(tn_graph_module(graph));
    tn_graph_drop(graph);
    return made;
}

static struct made script(void)
{
    return of_module(tn_module_script(net, x, NULL));
}

static struct made parse_text(void)
{
    static char text[1 << 14];

    if (text[0] == '\0') {
        tn_graph *graph = tn_module_trace(net, x, NULL);
        ck_assert_int_gt(tn_graph_print(graph, "text", text, sizeof text), 0);
        tn_graph_drop(graph);
    }
    return of_graph(tn_graph_parse(text, net, NULL));
}

static struct made save(void)
{
    return (struct made){ .status = tn_module_save(net, file), .file = file };
}

static struct made load(void)
{
    struct made made = copy();

    if (made.module != NULL)
        made.status = tn_module_load(made.module, file);
    return made;
}

static struct made converted(void)
{
    struct made made = copy();

    if (made.module != NULL)
        made.status = tn_module_to(made.module, NULL, TN_F64);
    return made;
}

static struct made pruned(void)
{
    struct made made = copy();

    if (made.module != NULL)
        made.status = tn_prune(tn_module_child_at(made.module, 0), "weight",
                               "L1Unstructured(amount=0.5)");
    return made;
}

static const struct {
    const char *name;
    struct made (*call)(void);
} calls[] = {
    { "a spec", new_spec },
    { "a spec with a range of names", new_range },
    { "a printed network", new_printed },
    { "a printed layer", new_printed_layer },
    { "tn_module_add_children", add_children },
    { "tn_module_copy", copy },
    { "tn_module_state", state },
    { "tn_list_slice", slice },
    { "tn_module_trace", trace },
    { "tn_module_trace through layers", trace_through },
    { "tn_graph_inline", inlined },
    { "tn_graph_shapes", shapes },
    { "tn_graph_pass", passes },
    { "tn_graph_module", graph_module },
    { "tn_module_script", script },
    { "tn_graph_parse", parse_text },
    { "tn_module_save", save },
    { "tn_module_load", load },
    { "tn_module_to", converted },
    { "tn_prune", pruned },
    { "a model", new_model },
};

/* Returns whether the call has made as many allocations. */
static bool try_allocation(int64_t which, uint64_t n, const char *expected, int *failed)
{
    TN_SCOPE;
    tn__memory_fail(n);
    struct made made = calls[which].call();
    bool reached = tn__memory_fail(0) >= n;
    const char *name = calls[which].name;

    ck_assert_msg((made.status == TN_OK) == !tn_failed(), "%s, allocation %d: status %s, record %s",
                  name, (int)n, tn_status_name(made.status), tn_error_text());
    ck_assert_msg(made.status == TN_OK || tn_error_code() == TN_ERR_MEMORY, "%s, allocation %d: %s",
                  name, (int)n, tn_error_text());
    *failed += made.status != TN_OK;
    if (made.status != TN_OK) {
        tn_error_clear();
        tn_module_drop(made.module);
        tn_graph_drop(made.graph);
        tn_state_drop(made.state);
        return reached;
    }
    char *got = described(&made);
    ck_assert_msg(strcmp(got, expected) == 0,
                  "%s: allocation %d fails, success is reported, and the result is\n%s\nnot\n%s",
                  name, (int)n, got, expected);
    tn_free(got);
    return reached;
}

/* A large call is tried with every `stride`th allocation. */
static uint64_t stride_of(uint64_t count)
{
    return count < 2000 ? 1 : count / 50;
}

START_TEST(an_allocation_that_fails_never_changes_what_is_reported_as_good)
{
    TN_SCOPE;
    tn_snprint(file, sizeof file, "memory-results-%d.safetensors", (int)getpid());
    tn_random_seed(7);
    net = tn_module_new("Sequential(fc=Linear(3, 3), norm=BatchNorm1d(3), out=Linear(3, 2))");
    ck_made(net);
    ck_made(tn_module_eval(net) == TN_OK ? net : NULL);
    x = numbers(-2);
    ck_ok(tn_module_save(net, file));
    for (int64_t i = 0; i < tn__countof(calls); i++) {
        struct made made = calls[i].call();
        ck_assert_msg(made.status == TN_OK, "%s: %s", calls[i].name, tn_error_text());
        char *expected = described(&made);
        tn__memory_fail(UINT64_MAX);
        made = calls[i].call();
        uint64_t count = tn__memory_fail(0), stride = stride_of(count);
        char *again = described(&made);
        ck_assert_msg(strcmp(expected, again) == 0, "%s: two calls differ", calls[i].name);
        int failed = 0;
        bool reached = true;
        for (uint64_t n = 1; reached; n += stride)
            reached = try_allocation(i, n, expected, &failed);
        ck_assert_msg(failed > 3, "%s: %d failures", calls[i].name, failed);
        tn_free(expected);
        tn_free(again);
    }
    unlink(file);
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { an_allocation_that_fails_never_changes_what_is_reported_as_good,
                                   NULL };
    return suite_run("memory_results", tests);
}
