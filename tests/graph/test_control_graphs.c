/* SPDX-License-Identifier: MIT
 *
 * tn_cond and tn_loop in traces: nodes with blocks, their texts, gradients, plans, and edits. */
#include "tests/graph/control.h"

/* Inputs for which the branches and the numbers of steps differ. */
static const float starts[] = { -3, 0, 0.25f, 1, 2, 4 };
enum { STARTS = sizeof starts / sizeof *starts };

typedef tn_tensor *(*forward_fn)(tn_module *, tn_tensor *);
static const forward_fn forwards[] = { cond_forward, loop_forward, nested_forward };
enum { FORWARDS = sizeof forwards / sizeof *forwards };

static tn_graph *graph_of(tn_module *module)
{
    return traced(module, numbers(1), TN_TRACE_THROUGH);
}

static tn_node *node_of_kind(const tn_graph *graph, tn_node_kind kind)
{
    for (tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node))
        if (tn_node_kind_of(node) == kind)
            return node;
    return NULL;
}

START_TEST(graphs_compute_what_the_code_does)
{
    TN_SCOPE;
    for (int f = 0; f < FORWARDS; f++) {
        tn_module *module = own(forwards[f]), *graphed;
        tn_graph *graph = graph_of(module);
        graphed = tn_graph_module(graph);
        ck_made(graphed);
        for (int i = 0; i < STARTS; i++) {
            tn_tensor *x = numbers(starts[i]), *eager = tn_module_call(module, x);
            ck_same(run1(graph, x), eager);
            ck_same(tn_module_call(graphed, x), eager);
        }
        tn_graph_drop(graph);
        tn_module_drop(graphed);
        tn_module_drop(module);
    }
}
END_TEST

START_TEST(texts_read_back_as_the_same_graph)
{
    TN_SCOPE;
    static const char *const forms[] = { "text", "code" };
    for (int f = 0; f < FORWARDS; f++) {
        tn_module *module = own(forwards[f]);
        tn_graph *graph = graph_of(module);
        char *text = printed(graph, "text");
        for (int i = 0; i < 2; i++) {
            char *form = printed(graph, forms[i]), *again;
            tn_state *constants = tn_graph_constants(graph);
            tn_graph *read = tn_graph_parse(form, module, constants);
            ck_made(read);
            again = printed(read, "text");
            ck_assert_str_eq(text, again);
            for (int k = 0; k < STARTS; k++)
                ck_same(run1(read, numbers(starts[k])), run1(graph, numbers(starts[k])));
            tn_graph_drop(read);
            tn_state_drop(constants);
            free(again);
            free(form);
        }
        free(text);
        tn_graph_drop(graph);
        tn_module_drop(module);
    }
}
END_TEST

START_TEST(gradients_and_training_are_those_of_the_code)
{
    TN_SCOPE;
    for (int f = 0; f < FORWARDS; f++) {
        tn_module *module = own(forwards[f]), *graphed, *copy;
        tn_graph *graph = graph_of(module);
        tn_tensor *x = tn_parameter(numbers(0.25f), true), *z = tn_parameter(numbers(0.25f), true);
        graphed = tn_graph_module(graph);
        ck_made(graphed);
        copy = tn_module_copy(graphed);
        ck_made(copy);
        ck_ok(tn_backward(tn_mean(tn_square(tn_module_call(module, x)), NULL)));
        ck_ok(tn_backward(tn_mean(tn_square(tn_module_call(copy, z)), NULL)));
        ck_same(tn_tensor_grad(z), tn_tensor_grad(x));
        ck_same(tn_tensor_grad(tn_module_get(copy, "scale")),
                tn_tensor_grad(tn_module_get(module, "scale")));
        tn_module_drop(copy);
        copy = tn_module_copy(graphed); /* before the shared tensors are trained */
        train_by("SGD(lr=0.001)", module, numbers(0.25f), 100);
        train_by("SGD(lr=0.001)", copy, numbers(0.25f), 100);
        if (f < 2) /* the last one does not use `fc` */
            same_states(module, copy);
        ck_same(tn_module_get(copy, "scale"), tn_module_get(module, "scale"));
        tn_graph_drop(graph);
        tn_module_drop(copy);
        tn_module_drop(graphed);
        tn_module_drop(module);
    }
}
END_TEST

START_TEST(plans_run_blocks)
{
    TN_SCOPE;
    for (int f = 0; f < FORWARDS; f++) {
        tn_module *module = own(forwards[f]);
        tn_graph *graph = graph_of(module);
        tn_plan *plan = tn_plan_new(graph, NULL);
        char steps[4096];
        ck_made(plan);
        ck_ok(tn_inference_begin(true));
        for (int round = 0; round < 2; round++)
            for (int i = 0; i < STARTS; i++) {
                tn_tensor *x = numbers(starts[i]), *y = NULL;
                ck_ok(tn_plan_run(plan, &x, 1, &y, 1));
                ck_same(y, tn_module_call(module, x));
            }
        tn_inference_end();
        ck_assert_int_gt(tn_plan_print(plan, steps, sizeof steps), 0);
        ck_assert_ptr_nonnull(strstr(steps, f == 0 ? "cond: cond -> " : "loop: loop -> "));
        tn_plan_drop(plan);
        tn_graph_drop(graph);
        tn_module_drop(module);
    }
}
END_TEST

START_TEST(other_forms_show_blocks)
{
    TN_SCOPE;
    tn_module *module = own(cond_forward);
    tn_graph *graph = graph_of(module);
    char *text = printed(graph, "text"), *table = printed(graph, "table");
    char *json = printed(graph, "json"), *dot = printed(graph, "graphviz");
    ck_assert_ptr_nonnull(strstr(text,
                                 "%cond = prim::If(%gt, %input, %fc_weight, %fc_bias, "
                                 "%scale)  # (Net)\n    block then(%input : float32[2, 3], "));
    ck_assert_ptr_nonnull(strstr(text, "%relu : float32[2, 3] = relu(%linear)  # (Net)\n      "
                                       "return (%relu, %input)\n    block else("));
    ck_assert_ptr_nonnull(strstr(table, "\n then\n  placeholder"));
    ck_assert_ptr_nonnull(strstr(json, "\"target\": \"cond\""));
    ck_assert_ptr_nonnull(strstr(json, "\"else\": [\n"));
    ck_assert_ptr_nonnull(strstr(dot, "subgraph \"cluster_cond.then.\""));
    free(text), free(table), free(json), free(dot);
    tn_graph_drop(graph);
    tn_module_drop(module);
}
END_TEST

START_TEST(sizes_in_blocks_may_vary)
{
    TN_SCOPE;
    tn_tracing_options how = TN_TRACING_OPTIONS;
    how.dynamic = "[N, 3]";
    for (int f = 0; f < FORWARDS; f++) {
        tn_module *module = own(forwards[f]), *graphed;
        tn_graph *graph = tn_module_trace(module, tn_zeros(TN_SHAPE(2, 3)), &how), *read;
        tn_state *constants;
        char *text;
        ck_assert_ptr_null(graph); /* scale has 2 rows */
        ck_error(TN_ERR_RUNTIME, "mul", "2");
        tn_module_set(module, "scale",
                      tn_parameter(tn_tensor_full(TN_SHAPE(3), 0.5, TN_F32, NULL), true));
        graph = tn_module_trace(module, tn_zeros(TN_SHAPE(2, 3)), &how);
        ck_made(graph);
        text = printed(graph, "text");
        constants = tn_graph_constants(graph);
        read = tn_graph_parse(text, module, constants);
        ck_made(read);
        graphed = tn_graph_module(read);
        ck_made(graphed);
        for (int rows = 1; rows < 6; rows++) {
            tn_tensor *x = tn_tensor_full(TN_SHAPE(rows, 3), 1.5, TN_F32, NULL);
            ck_same(tn_module_call(graphed, x), tn_module_call(module, x));
        }
        free(text);
        tn_state_drop(constants);
        tn_module_drop(graphed);
        tn_graph_drop(read);
        tn_graph_drop(graph);
        tn_module_drop(module);
    }
}
END_TEST

START_TEST(passes_leave_blocks_alone_but_dead_code)
{
    TN_SCOPE;
    tn_module *module = own(cond_forward);
    tn_graph *graph = graph_of(module), *block;
    tn_node *in, *cond;
    ck_ok(tn_graph_pass(graph, "cse, dead"));
    cond = node_of_kind(graph, TN_NODE_IF);
    ck_made(cond);
    block = tn_node_block(cond, 0);
    ck_made(block);
    ck_assert_ptr_null(tn_node_block(cond, 2));
    ck_assert_ptr_null(tn_node_block(tn_graph_first(graph), 0));
    in = tn_graph_first(block);
    ck_made(tn_graph_add_op(block, NULL, "neg()", &in, 1));
    ck_ok(tn_graph_lint(graph));
    ck_assert_int_eq(tn_graph_dead_code(graph), 1);
    ck_same(run1(graph, numbers(4)), tn_module_call(module, numbers(4)));
    tn_graph_drop(graph);
    tn_module_drop(module);
}
END_TEST

/* x where a flag is set, else 2 x; built by hand. */
START_TEST(nodes_are_built_by_hand)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new(), *twice = tn_graph_new(), *same = tn_graph_new();
    tn_node *x = tn_graph_input(twice, "x", TN_SHAPE(2, 3), TN_F32);
    tn_node *y = step(twice, "add(alpha=1)", x, x), *p, *unused;
    tn_meta meta;
    ck_ok(tn_graph_output(twice, &y, 1));
    x = tn_graph_input(same, "x", TN_SHAPE(2, 3), TN_F32);
    ck_ok(tn_graph_output(same, &x, 1));
    x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    p = step(graph, "gt()", step(graph, "sum()", x, NULL),
             tn_graph_constant(graph, "limit", tn_tensor_full(TN_SCALAR_SHAPE, 20, TN_F32, NULL)));
    y = tn_graph_add_cond(graph, NULL, p, same, twice, &x, 1);
    ck_made(y);
    unused = tn_graph_add_cond(graph, NULL, p, same, twice, &x, 1);
    ck_made(unused);
    ck_assert_str_eq(tn_node_name(unused), "cond_1");
    ck_ok(tn_graph_output(graph, &y, 1));
    ck_assert_int_eq(tn_graph_dead_code(graph), 1);
    ck_same(run1(graph, numbers(4)), numbers(4));
    ck_same(run1(graph, numbers(0)), tn_mul_scalar(numbers(0), TN_SCALAR(2.0)));
    ck_assert_ptr_null(tn_graph_add_cond(graph, NULL, x, same, twice, &x, 1));
    ck_error(TN_ERR_TYPE,
             "predicate: wrong dtype or shape, got float32[2, 3]; expected one element of",
             "node cond_");
    ck_assert_ptr_null(tn_graph_add_cond(graph, NULL, p, same, twice, NULL, 0));
    ck_error(TN_ERR_VALUE, "then: inputs: wrong number, got 1", "expected 0");
    ck_assert_ptr_null(tn_graph_add_loop(graph, NULL, same, twice, 3, &x, 1));
    ck_error(TN_ERR_TYPE, "tn_loop: test: result: wrong dtype or shape", "bool");
    ck_ok(tn_graph_lint(graph));
    ck_ok(tn_graph_shapes(graph, (tn_tensor *[]){ tn_zeros(TN_SHAPE(5, 3)) }, 1));
    ck_ok(tn_node_meta(y, &meta));
    ck_assert_int_eq(meta.shape[0], 5);
    tn_graph_drop(same);
    tn_graph_drop(twice);
    tn_graph_drop(graph);
}
END_TEST

START_TEST(graphs_are_traced_again)
{
    TN_SCOPE;
    for (int f = 0; f < FORWARDS; f++) {
        tn_module *module = own(forwards[f]), *graphed;
        tn_graph *graph = traced(module, numbers(1), 0), *again;
        char *a, *b;
        graphed = tn_graph_module(graph);
        ck_made(graphed);
        again = traced(graphed, numbers(1), TN_TRACE_THROUGH);
        ck_ok(tn_graph_inline(graph));
        ck_made(node_of_kind(again, f == 0 ? TN_NODE_IF : TN_NODE_LOOP));
        a = printed(again, "table");
        b = printed(graph, "table");
        ck_assert_str_eq(a, b);
        ck_same(run1(again, numbers(1)), tn_module_call(module, numbers(1)));
        free(a), free(b);
        tn_graph_drop(again);
        tn_graph_drop(graph);
        tn_module_drop(graphed);
        tn_module_drop(module);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { graphs_compute_what_the_code_does,
                                   texts_read_back_as_the_same_graph,
                                   gradients_and_training_are_those_of_the_code,
                                   plans_run_blocks,
                                   other_forms_show_blocks,
                                   sizes_in_blocks_may_vary,
                                   passes_leave_blocks_alone_but_dead_code,
                                   nodes_are_built_by_hand,
                                   graphs_are_traced_again,
                                   NULL };
    return suite_run("control_graphs", tests);
}
