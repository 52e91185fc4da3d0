/* SPDX-License-Identifier: MIT
 *
 * Graphs for sizes that vary: finding the sizes, printing and reading them, running such graphs,
 * errors. */
#include "tests/graph/suite.h"

static tn_graph *traced(tn_module *module, tn_tensor *x, const char *dynamic)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;

    how.flags = TN_TRACE_THROUGH;
    how.dynamic = dynamic;
    return tn_module_trace(module, x, &how);
}

static tn_tensor *drawn(int64_t n, int64_t c, int64_t h, int64_t w)
{
    return tn_normal(tn_tensor_empty(TN_SHAPE(n, c, h, w), TN_F32, NULL));
}

START_TEST(batch_height_and_width_vary)
{
    TN_SCOPE;
    tn_module *net = tn_module_new(
        "Sequential(Conv2d(3, 4, 3, padding=1), MaxPool2d(2), Flatten(2))");
    tn_graph *graph = traced(net, drawn(2, 3, 8, 12), "[N, 3, 2*H, 2*W]"), *read;
    char text[4096], again[4096];
    tn_module *made;
    ck_made(graph);
    ck_assert_int_gt(tn_graph_print(graph, "text", text, sizeof text), 0);
    ck_assert_ptr_nonnull(strstr(text,
                                 "graph(%self : Sequential, %input : float32[N, 3, 2*H, 2*W]):"
                                 "  # tenon.graph 1, N = 2 >= 1, H = 4 >= 1, W = 6 >= 1\n"));
    ck_assert_ptr_nonnull(strstr(text, "%conv2d : float32[N, 4, 2*H, 2*W] = "));
    ck_assert_ptr_nonnull(strstr(text, "%flatten : float32[N, 4, H*W] = "));
    read = tn_graph_parse(text, net, NULL);
    ck_made(read);
    ck_assert_int_gt(tn_graph_print(read, "text", again, sizeof again), 0);
    ck_assert_str_eq(again, text);
    made = tn_graph_module(read);
    ck_made(made);
    for (int64_t n = 1; n < 4; n++) {
        tn_tensor *x = drawn(n, 3, 2 * n + 2, 10);
        ck_same(tn_module_call(made, x), tn_module_call(net, x));
    }
    ck_assert_ptr_null(tn_module_call(made, drawn(2, 3, 7, 8)));
    ck_error(TN_ERR_VALUE, "got float32[2, 3, 7, 8]", "expected float32[N, 3, 2*H, 2*W]");
    ck_assert_ptr_null(tn_module_call(made, drawn(2, 4, 8, 8)));
    ck_error(TN_ERR_VALUE, "input", "wrong dtype or shape");
    tn_module_drop(made);
    tn_graph_drop(read);
    tn_graph_drop(graph);
    tn_module_drop(net);
}
END_TEST

/* x + positions, and a view whose sizes are computed in C. */
static tn_tensor *sized_forward(tn_module *self, tn_tensor *x)
{
    int64_t n = tn_tensor_size(x, 0), l = tn_tensor_size(x, 1);
    tn_tensor *at = tn_cast(tn_arange(TN_NONE, 0, l), TN_F32);
    (void)self;
    x = tn_add(x, tn_add(at, tn_tensor_full(TN_SHAPE(l), 0.5, TN_F32, NULL)));
    return tn_view_to(x, TN_SHAPE(n * l));
}

static tn_tensor *branching_forward(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_tensor_size(x, 0) > 2 ? tn_relu(x) : tn_neg(x);
}

static tn_tensor *single_forward(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_tensor_size(x, 0) == 1 ? tn_relu(x) : tn_neg(x);
}

START_TEST(integers_that_the_code_computes_are_expressions)
{
    TN_SCOPE;
    tn_module *net = tn_module_plain("Net");
    tn_tensor *x = numbers(0);
    char text[4096];
    ck_ok(tn_module_set_forward(net, sized_forward, NULL, NULL));
    tn_graph *graph = traced(net, x, "[N, L]");
    ck_made(graph);
    ck_assert_int_gt(tn_graph_print(graph, "text", text, sizeof text), 0);
    ck_assert_ptr_nonnull(strstr(text, "view[shape=(N*L,)]"));
    ck_assert_ptr_nonnull(strstr(text, "full[shape=(L,)"));
    tn_module *made = tn_graph_module(graph);
    for (int64_t n = 1; n < 6; n++) {
        tn_tensor *y = tn_normal(tn_tensor_empty(TN_SHAPE(n, 7 - n), TN_F32, NULL));
        ck_same(tn_module_call(made, y), tn_module_call(net, y));
    }
    tn_module_drop(made);
    tn_graph_drop(graph);
    ck_ok(tn_module_set_forward(net, branching_forward, NULL, NULL));
    ck_assert_ptr_null(traced(net, x, "[N, 3]"));
    ck_error(TN_ERR_NOT_IMPLEMENTED, "the list of operators varies with the sizes", "node");
    ck_ok(tn_module_set_forward(net, single_forward, NULL, NULL));
    graph = traced(net, x, "[N, 3]"); /* for two or more */
    ck_made(graph);
    ck_assert_int_gt(tn_graph_print(graph, "text", text, sizeof text), 0);
    ck_assert_ptr_nonnull(strstr(text, "N = 2 >= 2"));
    made = tn_graph_module(graph);
    ck_assert_ptr_null(
        tn_module_call(made, tn_normal(tn_tensor_empty(TN_SHAPE(1, 3), TN_F32, NULL))));
    ck_error(TN_ERR_VALUE, "expected float32[N, 3], with N >= 2", "got float32[1, 3]");
    tn_module_drop(made);
    tn_graph_drop(graph);
    tn_module_drop(net);
}
END_TEST

START_TEST(wrong_names_of_sizes_are_refused)
{
    static const char *const wrong[] = { "",       "[N]",      "[N, 3",    "[N, 4]",  "[N, 3] x",
                                         "[N, N]", "[0*N, 3]", "[4*N, 3]", "[N,, 3]", "[N, 3, 4]",
                                         "N, 3",   "[N 3]",    "[-1, 3]" };
    TN_SCOPE;
    tn_module *net = tn_module_new("ReLU()");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(traced(net, numbers(0), wrong[i]) == NULL, "%s", wrong[i]);
        ck_error(TN_ERR_FORMAT, "tn_module_trace: dynamic:", "expected");
    }
    tn_graph *graph = traced(net, numbers(0), "[2, 3]");
    ck_made(graph);
    tn_graph_drop(graph);
    tn_module_drop(net);
}
END_TEST

/* A multiple of 0 fits no size, and a number that no int64 holds is no multiple. */
START_TEST(wrong_multiples_in_texts_are_refused)
{
    static const char *const none = "graph(%self : Net, %x : float32[0*N, 3]):"
                                    "  # tenon.graph 1, N = 2 >= 1\n"
                                    "  return (%x)\n";
    static const char *const large = "graph(%self : Net, %x : float32[9223372036854775808*N, 3]):"
                                     "  # tenon.graph 1, N = 2 >= 1\n"
                                     "  return (%x)\n";
    TN_SCOPE;
    tn_graph *graph = tn_graph_parse(none, NULL, NULL);
    tn_tensor *x = numbers(0), *out;
    ck_made(graph);
    ck_assert_int_eq(tn_graph_run(graph, &x, 1, &out, 1), TN_ERR_VALUE);
    ck_error(TN_ERR_VALUE, "tn_graph_run: input x: wrong dtype or shape", "with N >= 1");
    tn_graph_drop(graph);
    ck_assert_ptr_null(tn_graph_parse(large, NULL, NULL));
    ck_error(TN_ERR_FORMAT, "tn_graph_parse: line 1", "expected");
}
END_TEST

static const struct {
    const char *types;
    int64_t x[2], y[2];
    bool fits;
} sums_and_products[] = {
    { "%x : float32[N+1, 3], %y : float32[N, 3]", { 5, 3 }, { 4, 3 }, true },
    { "%x : float32[N+1, 3], %y : float32[N, 3]", { 4, 3 }, { 4, 3 }, false },
    { "%x : float32[N+1, 3], %y : float32[N, 3]", { 1, 3 }, { 0, 3 }, false }, /* N >= 1 */
    { "%x : float32[2*N-1, 3], %y : float32[N, 3]", { 7, 3 }, { 4, 3 }, true },
    { "%x : float32[2*N-1, 3], %y : float32[N, 3]", { 8, 3 }, { 4, 3 }, false },
    { "%x : float32[N, 3], %y : float32[N*N, 3]", { 4, 3 }, { 16, 3 }, true },
    { "%x : float32[N, 3], %y : float32[N*N, 3]", { 4, 3 }, { 4, 3 }, false },
    { "%x : float32[N*N, 3], %y : float32[N, 3]", { 16, 3 }, { 4, 3 }, true },
    { "%x : float32[N*N, 3], %y : float32[N, 3]", { 12, 3 }, { 4, 3 }, false },
    { "%x : float32[N*N, N], %y : float32[1, 3]", { 16, 4 }, { 1, 3 }, true },
    { "%x : float32[N*N, N], %y : float32[1, 3]", { 16, 3 }, { 1, 3 }, false },
    { "%x : float32[-1*N+10, N], %y : float32[1, 3]", { 7, 3 }, { 1, 3 }, true },
    { "%x : float32[-1*N+10, N], %y : float32[1, 3]", { 7, 4 }, { 1, 3 }, false },
    { "%x : float32[-1*N+10, N], %y : float32[1, 3]", { 10, 0 }, { 1, 3 }, false }, /* N >= 1 */
    { "%x : float32[N*N, 3], %y : float32[1, 3]", { 16, 3 }, { 1, 3 }, false }, /* N is unknown */
};

START_TEST(sizes_of_inputs_are_sums_and_products)
{
    for (size_t i = 0; i < sizeof sums_and_products / sizeof *sums_and_products; i++) {
        TN_SCOPE;
        bool fits = sums_and_products[i].fits;
        tn_tensor *in[2], *out;
        tn_graph *graph;
        char text[256];

        snprintf(text, sizeof text,
                 "graph(%%self : Net, %s):  # tenon.graph 1, N = 2 >= 1\n  return (%%x)\n",
                 sums_and_products[i].types);
        graph = tn_graph_parse(text, NULL, NULL);
        ck_made(graph);
        in[0] = tn_zeros((tn_ints){ sums_and_products[i].x, 2 });
        in[1] = tn_zeros((tn_ints){ sums_and_products[i].y, 2 });
        ck_assert_int_eq(tn_graph_run(graph, in, 2, &out, 1), fits ? TN_OK : TN_ERR_VALUE);
        if (!fits)
            ck_error(TN_ERR_VALUE, "wrong dtype or shape", "N");
        tn_graph_drop(graph);
    }
}
END_TEST

START_TEST(without_names_the_sizes_are_those_of_the_trace)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Flatten(0), ReLU())"), *made;
    tn_graph *graph = traced(net, numbers(0), NULL);
    made = tn_graph_module(graph);
    ck_made(tn_module_call(made, numbers(1)));
    ck_assert_ptr_null(tn_module_call(made, tn_zeros(TN_SHAPE(4, 3))));
    ck_error(TN_ERR_VALUE, "got float32[4, 3]", "which the trace relied on");
    tn_module_drop(made);
    tn_graph_drop(graph);
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { batch_height_and_width_vary,
                                   integers_that_the_code_computes_are_expressions,
                                   wrong_names_of_sizes_are_refused,
                                   wrong_multiples_in_texts_are_refused,
                                   sizes_of_inputs_are_sums_and_products,
                                   without_names_the_sizes_are_those_of_the_trace,
                                   NULL };
    return suite_run("symbols", tests);
}
