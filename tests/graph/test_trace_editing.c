/* SPDX-License-Identifier: MIT
 *
 * Traced graphs are edited: nodes, patterns, text, shapes, and a handler for each node. */
#include "tests/graph/suite.h"
#include "tests/graph/traced.h"
#include "tests/spec/proves.h"

#include <time.h>

START_TEST(a_traced_graph_is_edited_and_run)
{
    TN_SCOPE;
    tn_module *net = convolutional();
    tn_tensor *x = images();
    ck_ok(tn_module_train(net, false));
    tn_graph *graph = traced(net, x, TN_TRACE_THROUGH);
    tn_node *relu = tn_graph_find(graph, "relu"), *in = tn_node_input(relu, 0);
    tn_node *silu = tn_graph_add_op(graph, relu, "silu()", &in, 1);
    ck_assert_int_eq(tn_node_erase(in), TN_ERR_RUNTIME);
    ck_error(TN_ERR_RUNTIME, "Tried to erase Node batch_norm but it still had 2 users in the graph",
             "");
    ck_assert_int_eq(tn_node_replace_uses(relu, silu), 1);
    ck_ok(tn_node_erase(relu));
    ck_assert_int_eq(tn_graph_dead_code(graph), 0);
    ck_ok(tn_graph_lint(graph));
    tn_module *fast = tn_graph_module(graph);
    ck_made(fast);
    ck_same(tn_module_call(fast, x),
            tn_module_call_chain(net, "3 4", tn_silu(tn_module_call_chain(net, "0 1", x))));
    tn_module_drop(fast);
    tn_graph_drop(graph);
    tn_module_drop(net);
    TN_PROVES("FX-006");
}
END_TEST

START_TEST(transforms_work_on_modules_of_the_program)
{
    TN_SCOPE;
    tn_module *module = own(mixed_forward), *made;
    tn_graph *graph = traced(module, numbers(0), 0);
    tn_tensor *x = numbers(-2), *y;
    ck_assert_int_eq(tn_graph_replace(graph, "relu(x)", "neg(x)"), 1);
    made = tn_graph_module(graph);
    ck_made(made);
    y = tn_mul(tn_module_get(module, "scale"), x);
    y = tn_add(y, tn_module_call_child(module, "fc", x));
    ck_same(tn_module_call(made, x), tn_neg(y));
    tn_module_drop(made);
    tn_graph_drop(graph);
    tn_module_drop(module);
    TN_PROVES("FX-018");
}
END_TEST

START_TEST(patterns_are_replaced_without_overlap)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 3), ReLU(), Linear(3, 3))");
    tn_tensor *x = numbers(-2), *a, *b;
    tn_graph *graph = traced(net, x, TN_TRACE_THROUGH);
    ck_ok(tn_graph_run(graph, &x, 1, &a, 1));
    ck_assert_int_eq(tn_graph_replace(graph, "linear(x, w, b)", "add(linear(x, w, None), b)"), 2);
    ck_assert_str_eq(names_of(graph), "input _0_weight _0_bias _2_weight _2_bias linear_2 add relu "
                                      "linear add_1 output");
    ck_ok(tn_graph_run(graph, &x, 1, &b, 1));
    ck_assert_int_eq(tn_allclose(a, b, 1e-5, 1e-6), 1);
    ck_assert_int_eq(tn_graph_replace(graph, "add(linear(x, w, None), b)", "linear(x, w, b)"), 2);
    ck_ok(tn_graph_run(graph, &x, 1, &b, 1));
    ck_same(b, a);
    /* a chain of three: relu(relu(y)) once, not twice */
    tn_node *relu = tn_graph_find(graph, "relu"), *in = tn_node_input(relu, 0), *chain = in;
    for (int i = 0; i < 2; i++)
        chain = tn_graph_add_op(graph, relu, "relu()", &chain, 1);
    ck_ok(tn_node_set_input(relu, 0, chain));
    ck_assert_int_eq(tn_graph_replace(graph, "relu(relu(y))", "relu(y)"), 1);
    /* an inner value that is used elsewhere stays */
    tn_node *out[2] = { tn_node_input(tn_graph_find(graph, "output"), 0),
                        tn_graph_find(graph, "linear_1") };
    ck_ok(tn_graph_output(graph, out, 2));
    ck_assert_int_eq(tn_graph_replace(graph, "relu(linear(x, w, b))", "linear(x, w, b)"), 0);
    ck_assert_int_eq(tn_graph_replace(graph, "x", "relu(x)"), -1);
    ck_error(TN_ERR_VALUE, "pattern", "a call of an operator");
    ck_assert_int_eq(tn_graph_replace(graph, "relu(x)", "relu(y)"), -1);
    ck_error(TN_ERR_VALUE, "no name", "\"y\"");
    ck_assert_int_eq(tn_graph_replace(graph, "relu(", "relu(y)"), -1);
    tn_error_clear();
    tn_graph_drop(graph);
    tn_module_drop(net);
    TN_PROVES("FX-010");
}
END_TEST

START_TEST(the_text_of_a_module_has_calls_and_inlined_none)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 2), ReLU())");
    tn_graph *graph = traced(net, numbers(0), 0), *read;
    char *text = printed(graph, "text"), *again;
    tn_tensor *x = numbers(0), *a, *b;
    ck_assert_str_eq(text, "graph(%self : Sequential, %input : float32[2, 3]):  # tenon.graph 1\n"
                           "  %_0.module : Linear = prim::GetAttr[name=\"0\"](%self)\n"
                           "  %_0 : float32[2, 2] = prim::CallMethod[name=\"forward\"](%_0.module, "
                           "%input)  # (Sequential)\n"
                           "  %_1.module : ReLU = prim::GetAttr[name=\"1\"](%self)\n"
                           "  %_1 : float32[2, 2] = prim::CallMethod[name=\"forward\"](%_1.module, "
                           "%_0)  # (Sequential)\n"
                           "  return (%_1)\n");
    read = tn_graph_parse(text, net, NULL);
    ck_made(read);
    again = printed(read, "text");
    ck_assert_str_eq(again, text);
    free(again);
    free(text);
    ck_ok(tn_graph_inline(read));
    text = printed(read, "text");
    ck_assert_ptr_null(strstr(text, "CallMethod"));
    ck_assert_ptr_nonnull(strstr(text, "linear(%input, %_0_weight, %_0_bias)"));
    free(text);
    ck_ok(tn_graph_run(graph, &x, 1, &a, 1));
    ck_ok(tn_graph_run(read, &x, 1, &b, 1));
    ck_same(b, a);
    tn_graph_drop(read);
    tn_graph_drop(graph);
    tn_module_drop(net);
    TN_PROVES("SCR-004", "SCR-005");
}
END_TEST

START_TEST(shapes_are_written_into_the_nodes)
{
    TN_SCOPE;
    tn_module *net = convolutional();
    tn_graph *graph = traced(net, images(), 0);
    tn_tensor *x = tn_tensor_full(TN_SHAPE(7, 3, 8, 8), 1, TN_F32, NULL);
    uint64_t version = tn_tensor_version(tn_module_find_tensor(net, "1.running_mean"));
    tn_meta meta;
    ck_ok(tn_graph_shapes(graph, &x, 1));
    ck_ok(tn_node_meta(tn_graph_find(graph, "_1"), &meta));
    ck_assert_int_eq(meta.ndim, 4);
    ck_assert_int_eq(meta.shape[0], 7);
    ck_assert_int_eq(meta.shape[1], 8);
    ck_assert_int_eq(meta.shape[2], 6);
    ck_ok(tn_node_meta(tn_graph_find(graph, "_4"), &meta));
    ck_assert_int_eq(meta.shape[0], 7);
    ck_assert_int_eq(meta.shape[1], 4);
    ck_assert_uint_eq(tn_tensor_version(tn_module_find_tensor(net, "1.running_mean")), version);
    x = numbers(0);
    ck_assert_int_ne(tn_graph_shapes(graph, &x, 1), TN_OK);
    tn_error_clear();
    tn_graph_drop(graph);
    tn_module_drop(net);
    TN_PROVES("FX-017");
}
END_TEST

struct timing {
    double seconds[16], total;
    int count;
};

static tn_status timed(void *user, tn_node *node, tn_tensor *const *in, int64_t n_in,
                       tn_tensor **out, int64_t n_out)
{
    struct timing *timing = user;
    struct timespec a, b;
    tn_status status;

    clock_gettime(CLOCK_MONOTONIC, &a);
    status = tn_node_run(node, in, n_in, out, n_out);
    clock_gettime(CLOCK_MONOTONIC, &b);
    timing->seconds[timing->count] = (double)(b.tv_sec - a.tv_sec) +
                                     1e-9 * (double)(b.tv_nsec - a.tv_nsec);
    timing->total += timing->seconds[timing->count++];
    return status;
}

START_TEST(a_handler_measures_each_node)
{
    TN_SCOPE;
    tn_module *net = convolutional();
    tn_tensor *x = images(), *out;
    tn_graph *graph = traced(net, x, 0);
    struct timing timing = { .count = 0 };
    double share = 0;
    ck_ok(tn_graph_run_with(graph, &x, 1, &out, 1, timed, &timing));
    ck_assert_int_eq(timing.count, 5);
    for (int i = 0; i < 5; i++)
        share += 100 * timing.seconds[i] / timing.total;
    ck_assert_double_eq_tol(share, 100, 1e-6);
    tn_graph_drop(graph);
    tn_module_drop(net);
    TN_PROVES("FX-016");
}
END_TEST

static bool is_linear(void *user, tn_module *module, const char *path)
{
    (void)user;
    (void)path;
    return strcmp(tn_module_type(module), "Linear") == 0;
}

/* A pass has folded the weights of a convolution, and the graph also calls a module, which a plan
 * replaces by its operators. The plan relies on the weights as the graph does. */
START_TEST(inlining_keeps_what_a_pass_relied_on)
{
    TN_SCOPE;
    tn_module *net = convolutional();
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_tensor *x = images(), *y;
    tn_graph *graph;
    tn_plan *plan;

    ck_ok(tn_module_eval(net));
    ck_ok(tn_grad_begin(false));
    how.flags = TN_TRACE_THROUGH;
    how.is_leaf = is_linear;
    graph = tn_module_trace(net, x, &how);
    ck_made(graph);
    ck_ok(tn_graph_pass(graph, "conv_bn"));
    plan = tn_plan_new(graph, NULL);
    ck_made(plan);
    ck_ok(tn_plan_run(plan, &x, 1, &y, 1));
    ck_made(tn_mul_scalar_(tn_module_find_tensor(net, "0.weight"), 2));
    ck_assert_int_ne(tn_graph_run(graph, &x, 1, &y, 1), TN_OK);
    ck_error(TN_ERR_RUNTIME, "whose values pass conv_bn has used", "has changed");
    ck_assert_int_ne(tn_plan_run(plan, &x, 1, &y, 1), TN_OK);
    ck_error(TN_ERR_RUNTIME, "whose values pass conv_bn has used", "has changed");
    tn_grad_end();
    tn_plan_drop(plan);
    tn_graph_drop(graph);
    tn_module_drop(net);
}
END_TEST

START_TEST(a_trace_in_autocast_has_each_cast_once)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(LayerNorm([8]), "
                                   "TransformerEncoderLayer(8, 2, 16, batch_first=True))");
    tn_tensor *x = tn_tensor_full(TN_SHAPE(2, 3, 8), 0.5, TN_F32, NULL);
    tn_graph *graph;
    tn_tensor *y;

    ck_ok(tn_module_eval(net));
    ck_ok(tn_grad_begin(false));
    ck_ok(tn_autocast_begin("cpu", TN_BF16, true));
    graph = traced(net, x, TN_TRACE_THROUGH);
    tn_autocast_end();
    for (tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node))
        ck_assert_int_ne(tn_node_kind_of(node), TN_NODE_INPLACE);
    ck_ok(tn_graph_pass(graph, "decompose")); /* its views need the strides of casts */
    ck_ok(tn_graph_run(graph, &x, 1, &y, 1));
    tn_grad_end();
    tn_graph_drop(graph);
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_traced_graph_is_edited_and_run,
                                   transforms_work_on_modules_of_the_program,
                                   patterns_are_replaced_without_overlap,
                                   the_text_of_a_module_has_calls_and_inlined_none,
                                   shapes_are_written_into_the_nodes,
                                   a_handler_measures_each_node,
                                   inlining_keeps_what_a_pass_relied_on,
                                   a_trace_in_autocast_has_each_cast_once,
                                   NULL };
    return suite_run("trace_editing", tests);
}
