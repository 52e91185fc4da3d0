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
        ck_ok(tn_backward(tn_mean(tn_square(tn_module_call(module, x)))));
        ck_ok(tn_backward(tn_mean(tn_square(tn_module_call(copy, z)))));
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
    ck_assert_int_eq(tn_node_most(y), -1);
    ck_assert_int_eq(tn_node_most(x), -1);
    ck_assert_int_eq(tn_node_most(NULL), -1);
    tn_error_clear();
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
        if (f == 1)
            ck_assert_int_eq(tn_node_most(node_of_kind(again, TN_NODE_LOOP)), 12);
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

/* ---- what the reader of blocks relies on ----------------------------------------------------- */

#define IF_OF(then)                                                                                \
    "graph(%self : Net, %x : float32[2, 1], %p : bool[]):  # tenon.graph 1\n"                      \
    "  %y = prim::If(%p, %x)\n    block then(%x : float32[2, 1]):\n" then                          \
    "    block else(%x : float32[2, 1]):\n      %w = neg(%x)\n      return (%w)\n"                 \
    "  return (%y)\n"

/* reshape and cast return their input's memory, which the flags of the operator do not say. */
START_TEST(blocks_write_into_no_input)
{
    TN_SCOPE;
    tn_tensor *in[] = { tn_tensor_full(TN_SHAPE(2, 1), -1, TN_F32, NULL),
                        tn_tensor_full(TN_SCALAR_SHAPE, 1, TN_BOOL, NULL) };
    tn_tensor *before = tn_clone(in[0]), *y;
    tn_graph *graph = tn_graph_parse(IF_OF("      %r = reshape[shape=[2, 1]](%x)\n"
                                           "      %z = relu_(%r!)\n      return (%z)\n"),
                                     NULL, NULL);
    ck_made(graph);
    ck_assert_int_eq(tn_graph_run(graph, in, 2, &y, 1), TN_ERR_VALUE);
    ck_error(TN_ERR_VALUE, "node z: it writes into an input of the block", "from outside");
    ck_same(in[0], before);
    tn_graph_drop(graph);
    graph = tn_graph_parse(IF_OF("      %r = neg(%x)\n      %z = relu_(%r!)\n"
                                 "      return (%z)\n"),
                           NULL, NULL);
    ck_made(graph);
    ck_ok(tn_graph_run(graph, in, 2, &y, 1));
    ck_same(y, tn_tensor_full(TN_SHAPE(2, 1), 1, TN_F32, NULL));
    tn_graph_drop(graph);
}
END_TEST

/* A loop that returns an input that does not change: the result has memory of its own. */
START_TEST(results_of_loops_are_apart)
{
    TN_SCOPE;
    tn_tensor *in[] = { tn_zeros(TN_SHAPE(2)), tn_tensor_full(TN_SHAPE(2), 3, TN_F32, NULL) };
    tn_tensor *y;
    tn_graph *graph = tn_graph_parse(
        "graph(%self : Net, %x : float32[2], %s : float32[2]):  # tenon.graph 1\n"
        "  %y = prim::Loop[most=2](%x, %s)\n"
        "    block test(%x : float32[2], %s : float32[2]):\n"
        "      %a = sum(%x)\n      %b = sum(%s)\n      %t = lt(%a, %b)\n      return (%t)\n"
        "    block body(%x : float32[2], %s : float32[2]):\n      return (%s)\n"
        "  return (%y)\n",
        NULL, NULL);
    ck_made(graph);
    ck_ok(tn_graph_run(graph, in, 2, &y, 1));
    ck_same(y, in[1]);
    tn_add_scalar_(y, TN_SCALAR(1.0));
    ck_same(in[1], tn_tensor_full(TN_SHAPE(2), 3, TN_F32, NULL));
    tn_graph_drop(graph);
}
END_TEST

static tn_graph *block_of(const char *head, const char *step)
{
    char text[512];
    tn_graph *graph;

    snprintf(text, sizeof text, "graph(%%self : Net, %s\n  %%y = %s\n  return (%%y)\n", head, step);
    graph = tn_graph_parse(text, NULL, NULL);
    ck_made(graph);
    return graph;
}

#define PLAIN "%x : float32[2, 3]):  # tenon.graph 1"

START_TEST(what_blocks_rely_on_is_kept)
{
    TN_SCOPE;
    static const struct {
        const char *words, *part;
    } rows[] = { { ", typed", "# tenon.graph 1, typed\n" },
                 { ", fixed", "# tenon.graph 1, fixed\n" },
                 { ", inference", "# tenon.graph 1, inference\n" },
                 { ", train", "# tenon.graph 1, train\n" } };
    tn_graph *other = block_of(PLAIN, "relu(%x)");
    for (int i = 0; i < 4; i++) {
        tn_graph *graph = tn_graph_new(), *block, *eval = block_of(PLAIN ", eval", "abs(%x)");
        tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
        tn_node *z = tn_graph_input(graph, "z", TN_SHAPE(4, 3), TN_F32);
        tn_node *p = tn_graph_input(graph, "p", TN_SCALAR_SHAPE, TN_BOOL), *y;
        char head[128], *text;
        snprintf(head, sizeof head, "%s%s", PLAIN, rows[i].words);
        block = block_of(head, "neg(%x)");
        y = tn_graph_add_cond(graph, NULL, p, other, block, &x, 1);
        ck_made(y);
        ck_ok(tn_graph_output(graph, &y, 1));
        text = printed(graph, "text");
        ck_assert_msg(strstr(text, rows[i].part) != NULL, "%s", text);
        free(text);
        if (i < 2) {
            ck_assert_ptr_null(tn_graph_add_cond(graph, NULL, p, other, block, &z, 1));
            ck_error(TN_ERR_VALUE,
                     "else: input x: wrong dtype or shape, got float32[4, 3]; expected", " relied");
        } else if (i == 3) {
            ck_assert_ptr_null(tn_graph_add_cond(graph, NULL, p, other, eval, &x, 1));
            ck_error(TN_ERR_VALUE, "block: it is for evaluation mode", "expected training mode");
        }
        tn_graph_drop(eval);
        tn_graph_drop(block);
        tn_graph_drop(graph);
    }
    tn_graph_drop(other);
}
END_TEST

START_TEST(sizes_of_blocks_are_those_of_the_graph)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_graph *block = block_of("%x : float32[N, 3]):  # tenon.graph 1, N = 2 >= 1", "neg(%x)");
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    tn_node *p = tn_graph_input(graph, "p", TN_SCALAR_SHAPE, TN_BOOL);
    ck_assert_ptr_null(tn_graph_add_cond(graph, NULL, p, block, block, &x, 1));
    ck_error(TN_ERR_VALUE, "block: its sizes that vary",
             "the same sizes in the same order, or none");
    tn_graph_drop(block);
    tn_graph_drop(graph);
}
END_TEST

/* A graph whose sizes vary gets the shapes of its results; what is in its blocks stays. */
START_TEST(shapes_of_graphs_with_sizes)
{
    TN_SCOPE;
    tn_tensor *in[] = { tn_zeros(TN_SHAPE(5, 3)),
                        tn_tensor_full(TN_SCALAR_SHAPE, 1, TN_BOOL, NULL) };
    tn_meta meta;
    tn_graph *graph = tn_graph_parse(
        "graph(%self : Net, %x : float32[N, 3], %p : bool[]):  # tenon.graph 1, N = 2 >= 1\n"
        "  %y = prim::If(%p, %x)\n    block then(%x : float32[N, 3]):\n"
        "      %a = reshape[shape=[3*N]](%x)\n      return (%a)\n"
        "    block else(%x : float32[N, 3]):\n"
        "      %a = reshape[shape=[3*N]](%x)\n      return (%a)\n  return (%y)\n",
        NULL, NULL);
    tn_tensor *y;
    ck_made(graph);
    ck_ok(tn_graph_run(graph, in, 2, &y, 1));
    ck_assert_int_eq(tn_tensor_size(y, 0), 15);
    ck_ok(tn_graph_shapes(graph, in, 2));
    ck_ok(tn_node_meta(tn_graph_first(graph), &meta));
    ck_assert_int_eq(meta.shape[0], 5);
    tn_graph_drop(graph);
}
END_TEST

/* A block that is in a graph can get blocks of its own later: only tn_graph_lint counts all levels.
 */
START_TEST(lint_counts_levels_from_above)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new(),
             *inner = block_of("%x : bool[]):  # tenon.graph 1", "logical_not(%x)");
    tn_node *x = tn_graph_input(graph, "x", TN_SCALAR_SHAPE, TN_BOOL), *y;
    tn_graph *at = graph;
    for (int level = 0; level <= 32; level++) {
        x = tn_graph_first(at);
        y = tn_graph_add_cond(at, NULL, x, inner, inner, &x, 1);
        ck_made(y);
        if (at == graph)
            ck_ok(tn_graph_output(graph, &y, 1));
        if (level == 31)
            ck_ok(tn_graph_lint(graph));
        at = tn_node_block(y, 0);
    }
    ck_assert_int_eq(tn_graph_lint(graph), TN_ERR_VALUE);
    ck_error(TN_ERR_VALUE, "tn_graph_lint: blocks: nested too deep; expected at most 32 levels",
             "");
    tn_graph_drop(inner);
    tn_graph_drop(graph);
}
END_TEST

/* The maximum number of steps may come from a size, although no operator of the graph has an
 * integer as option: the graph is only for the sizes of the trace. */
static tn_status flagged(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                         int64_t n_out)
{
    (void)in, (void)n_in, (void)n_out;
    out[0] = tn_module_get(user, "flag");
    return TN_OK;
}

static tn_status negate(void *user, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                        int64_t n_out)
{
    (void)user, (void)n_in, (void)n_out;
    out[0] = tn_neg(in[0]);
    return TN_OK;
}

static tn_tensor *rows_forward(tn_module *self, tn_tensor *x)
{
    int64_t most = tn_tensor_size(x, 0);
    tn_tensor *out;

    return tn_loop(flagged, negate, most, &x, &out, 1, self) == TN_OK ? out : NULL;
}

START_TEST(a_number_of_steps_is_a_size)
{
    TN_SCOPE;
    tn_module *module = own(rows_forward);
    tn_tensor *x = tn_tensor_full(TN_SHAPE(3, 3), 9, TN_F32, NULL), *y;
    tn_graph *graph;
    ck_ok(
        tn_module_add_buffer(module, "flag", tn_tensor_full(TN_SCALAR_SHAPE, 1, TN_BOOL, NULL), 0));
    graph = graph_of(module);
    ck_same(run1(graph, numbers(4)), numbers(4)); /* two steps */
    ck_assert_int_eq(tn_graph_run(graph, &x, 1, &y, 1), TN_ERR_VALUE);
    ck_error(TN_ERR_VALUE, "wrong dtype or shape, got float32[3, 3]", "the trace relied on");
    tn_graph_drop(graph);
    tn_module_drop(module);
}
END_TEST

/* As in tn_graph_run, autocast has no effect: the dtypes are those of the trace. */
START_TEST(plans_pause_autocast_in_blocks)
{
    TN_SCOPE;
    tn_module *module = own(cond_forward);
    tn_graph *graph = graph_of(module);
    tn_plan *plan = tn_plan_new(graph, NULL);
    tn_tensor *x = numbers(4.123f), *expected = tn_module_call(module, x), *y = NULL;
    ck_made(plan);
    ck_ok(tn_inference_begin(true));
    ck_ok(tn_autocast_begin("cpu", TN_BF16, true));
    ck_ok(tn_plan_run(plan, &x, 1, &y, 1));
    tn_autocast_end();
    tn_inference_end();
    ck_same(y, expected);
    tn_plan_drop(plan);
    tn_graph_drop(graph);
    tn_module_drop(module);
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
                                   blocks_write_into_no_input,
                                   results_of_loops_are_apart,
                                   what_blocks_rely_on_is_kept,
                                   sizes_of_blocks_are_those_of_the_graph,
                                   shapes_of_graphs_with_sizes,
                                   lint_counts_levels_from_above,
                                   a_number_of_steps_is_a_size,
                                   plans_pause_autocast_in_blocks,
                                   NULL };
    return suite_run("control_graphs", tests);
}
