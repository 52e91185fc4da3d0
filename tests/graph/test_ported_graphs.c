/* SPDX-License-Identifier: MIT
 *
 * What PyTorch's tests of graphs say, as far as C can: rewriting of subgraphs, dead code, folding
 * of constants, folding of batch norms. docs/reference/ported-tests.md lists them by their names.
 */
#include "tests/graph/traced.h"

#define HEAD "graph(%self : Net, %x : float32[2, 3], %w : float32[2, 3]):  # tenon.graph 1\n"

static tn_graph *parsed(const char *text)
{
    tn_graph *graph = tn_graph_parse(text, NULL, NULL);

    ck_made(graph);
    return graph;
}

static tn_tensor *run_two(tn_graph *graph, tn_tensor *x, tn_tensor *w)
{
    tn_tensor *const in[] = { x, w };
    tn_tensor *out = NULL;

    ck_ok(tn_graph_run(graph, in, 2, &out, 1));
    return out;
}

static int64_t count_op(const tn_graph *graph, const char *name)
{
    int64_t count = 0;

    for (tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node))
        count += tn_node_kind_of(node) == TN_NODE_OP && strcmp(tn_node_target(node), name) == 0;
    return count;
}

/* A text, a pattern and its replacement; how many places are replaced, and how many calls of `op`
 * are left afterwards. */
static const struct {
    const char *test, *steps, *pattern, *with;
    int64_t places;
    const char *op;
    int64_t left;
} rewrites[] = {
    { "preserves_logic", "  %neg = neg(%x)\n  %add = add(%neg, %w)\n  %y = relu(%add)\n",
      "add(neg(a), b)", "sub(b, a)", 1, "sub", 1 },
    { "with_oneliner_pattern", "  %neg = neg(%x)\n  %y = add(%neg, %w)\n", "neg(a)",
      "mul_scalar(a, value=-1.0)", 1, "mul_scalar", 1 },
    { "single_pattern_match", "  %neg = neg(%x)\n  %relu = relu(%neg)\n  %y = add(%relu, %w)\n",
      "relu(neg(a))", "neg(minimum(a, mul(a, a)))", 1, "relu", 0 },
    { "multiple_pattern_match",
      "  %a = add(%x, %w)\n  %b = relu(%a)\n  %c = add(%b, %w)\n  %d = relu(%c)\n  %y = neg(%d)\n",
      "relu(add(a, b))", "sigmoid(add(a, b))", 2, "sigmoid", 2 },
    { "graph_argument_order", "  %y = sub(%w, %x)\n", "sub(a, b)", "neg(sub(b, a))", 1, "neg", 1 },
    { "pattern_is_entire_graph", "  %neg = neg(%x)\n  %y = add(%neg, %w)\n", "add(neg(a), b)",
      "sub(b, a)", 1, "add", 0 },
    { "internal_pattern_nodes_cannot_have_users_that_are_not_matched",
      "  %neg = neg(%x)\n  %relu = relu(%neg)\n  %y = add(%relu, %neg)\n", "relu(neg(a))", "exp(a)",
      0, "exp", 0 },
    { "pattern_output_pattern_node_can_have_users_that_are_not_matched",
      "  %neg = neg(%x)\n  %relu = relu(%neg)\n  %a = add(%relu, %w)\n  %y = mul(%relu, %a)\n",
      "relu(neg(a))", "exp(a)", 1, "exp", 1 },
    { "replace_consecutive_submodules",
      "  %a = sigmoid(%x)\n  %b = sigmoid(%a)\n  %y = add(%b, %w)\n", "sigmoid(a)", "exp(a)", 2,
      "exp", 2 },
    { "with_overlapping_matches",
      "  %a = sigmoid(%x)\n  %b = sigmoid(%a)\n  %c = sigmoid(%b)\n  %y = add(%c, %w)\n",
      "sigmoid(sigmoid(a))", "exp(a)", 1, "exp", 1 },
    { "nodes_with_kwargs", "  %y = add[alpha=2](%x, %w)\n", "add(a, b, alpha=2)",
      "add(a, add(b, b))", 1, "add", 2 },
    { "placeholder_matching",
      "  %a = add_scalar[value=3.0](%x)\n  %b = neg(%a)\n  %c = sigmoid(%b)\n  %y = add(%c, %w)\n",
      "sigmoid(neg(a))", "exp(a)", 1, "exp", 1 },
    { "an option that differs", "  %a = add_scalar[value=3.0](%x)\n  %y = add(%a, %w)\n",
      "add_scalar(a, value=4.0)", "exp(a)", 0, "exp", 0 },
};

START_TEST(subgraphs_are_rewritten_as_in_pytorch)
{
    for (size_t i = 0; i < sizeof rewrites / sizeof *rewrites; i++) {
        TN_SCOPE;
        char text[1024];
        tn_graph *graph;
        snprintf(text, sizeof text, "%s%s  return (%%y)\n", HEAD, rewrites[i].steps);
        graph = parsed(text);
        ck_assert_msg(tn_graph_replace(graph, rewrites[i].pattern, rewrites[i].with) ==
                          rewrites[i].places,
                      "%s: %s", rewrites[i].test, tn_error_text());
        ck_ok(tn_graph_lint(graph));
        ck_assert_msg(count_op(graph, rewrites[i].op) == rewrites[i].left, "%s", rewrites[i].test);
        ck_assert_ptr_nonnull(run_two(graph, numbers(-2), numbers(1)));
        tn_graph_drop(graph);
    }
}
END_TEST

/* test_subgraph_rewriter_correct_output_replacement, _local_revert */
START_TEST(rewriting_and_back_gives_the_same_values)
{
    TN_SCOPE;
    tn_graph *graph = parsed(HEAD "  %neg = neg(%x)\n  %y = add(%neg, %w)\n  return (%y)\n");
    tn_tensor *before = run_two(graph, numbers(-2), numbers(1));
    ck_assert_int_eq(tn_graph_replace(graph, "add(neg(a), b)", "sub(b, a)"), 1);
    ck_same(run_two(graph, numbers(-2), numbers(1)), before);
    ck_assert_int_eq(tn_graph_replace(graph, "sub(b, a)", "add(neg(a), b)"), 1);
    ck_same(run_two(graph, numbers(-2), numbers(1)), before);
    ck_assert_int_eq(count_op(graph, "neg"), 1);
    tn_graph_drop(graph);
}
END_TEST

/* test_dce_pass: test_simple, test_dead_chain, test_dead_placeholder,
 * test_dead_placeholder_with_user, test_impure_nodes_args, test_impure_kwargs, and a random draw */
START_TEST(dead_code_goes_as_in_pytorch)
{
    TN_SCOPE;
    static const struct {
        const char *steps;
        int64_t removed;
    } cases[] = {
        { "  %a = add(%x, %w)\n  %b = neg(%x)\n  %y = relu(%a)\n", 1 },
        { "  %a = add(%x, %w)\n  %b = neg(%a)\n  %c = exp(%b)\n  %d = relu(%c)\n"
          "  %y = sigmoid(%x)\n",
          4 },
        { "  %y = neg(%x)\n", 0 },
        { "  %a = exp(%w)\n  %y = neg(%x)\n", 1 },
        { "  %c = copy(%x)\n  %d = relu_(%c!)\n  %y = neg(%c)\n", 0 },
        { "  %c = copy(%x)\n  %b = add(%x, %w)\n  %d = add(%b, %b, out=%c!)\n  %y = neg(%c)\n", 0 },
        { "  %c = dropout[p=0.5, training=True](%x)\n  %y = neg(%x)\n", 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        tn_graph *graph;
        snprintf(text, sizeof text, "%s%s  return (%%y)\n", HEAD, cases[i].steps);
        graph = parsed(text);
        ck_assert_msg(tn_graph_dead_code(graph) == cases[i].removed, "%zu", i);
        ck_assert_int_eq(tn_graph_input_count(graph), 2); /* inputs stay */
        ck_ok(tn_graph_lint(graph));
        ck_assert_int_eq(tn_graph_dead_code(graph), 0);
        tn_graph_drop(graph);
    }
}
END_TEST

/* test_dead_getattr */
START_TEST(a_parameter_that_nobody_needs_goes)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    tn_node *w = tn_graph_slot(graph, "w", numbers(1)), *out = step(graph, "neg()", x, NULL);
    step(graph, "mul()", step(graph, "exp()", x, NULL), w);
    ck_ok(tn_graph_output(graph, &out, 1));
    ck_assert_int_eq(tn_graph_dead_code(graph), 3);
    ck_assert_str_eq(names_of(graph), "x neg output");
    tn_graph_drop(graph);
}
END_TEST

/* A graph of x and two constants: folds, and computes the same. */
static int64_t folded(tn_graph *graph, tn_tensor *x, int64_t n_out)
{
    tn_tensor *before[3], *after[3];
    int64_t left = 0;

    ck_ok(tn_graph_run(graph, &x, 1, before, n_out));
    ck_ok(tn_graph_pass(graph, "constants, dead"));
    ck_ok(tn_graph_run(graph, &x, 1, after, n_out));
    for (int64_t i = 0; i < n_out; i++)
        ck_same(after[i], before[i]);
    for (tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node))
        left += tn_node_kind_of(node) == TN_NODE_OP;
    return left;
}

/* test_fx_const_fold: basic_one_attr, basic_two_attr, basic_two_attr_three_input, noop,
 * two_outputs, three_outputs, check_inline_non_const, check_inline_non_const_mult_return */
START_TEST(constants_are_folded_as_in_pytorch)
{
    TN_SCOPE;
    tn_tensor *x = numbers(-2);
    for (int i = 0; i < 5; i++) {
        tn_graph *graph = tn_graph_new();
        tn_node *in = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32), *out[3];
        tn_node *a = tn_graph_constant(graph, "a", numbers(1));
        tn_node *b = tn_graph_constant(graph, "b", numbers(4)), *sum;
        int64_t expected = 1, n_out = 1;
        if (i == 0) { /* one attribute: a + a is folded */
            out[0] = step(graph, "mul()", step(graph, "add()", a, a), in);
        } else if (i == 1) { /* two attributes, in a chain */
            sum = step(graph, "relu()", step(graph, "add()", a, b), NULL);
            out[0] = step(graph, "sub()", in, step(graph, "mul()", sum, b));
        } else if (i == 2) { /* nothing to fold */
            out[0] = step(graph, "add()", step(graph, "mul()", in, a), b);
            expected = 2;
        } else { /* results that are folded, and one that is not */
            out[0] = step(graph, "add()", a, b);
            out[1] = step(graph, "mul()", out[0], in);
            out[2] = step(graph, "neg()", out[0], NULL);
            n_out = i - 1;
        }
        ck_ok(tn_graph_output(graph, out, n_out));
        ck_assert_int_eq(folded(graph, x, n_out), expected);
        tn_graph_drop(graph);
    }
}
END_TEST

/* test_conv_bn_fusion, test_conv_bn_fusion_not_running_state: no running statistics, no fusion */
START_TEST(batch_norms_are_folded_as_in_pytorch)
{
    TN_SCOPE;
    static const char *const nets[] = {
        "Sequential(Conv2d(3, 4, 3), BatchNorm2d(4), ReLU(), Conv2d(4, 4, 3), BatchNorm2d(4))",
        "Sequential(Conv2d(3, 4, 3), BatchNorm2d(4, track_running_stats=False))",
    };
    for (int i = 0; i < 2; i++) {
        tn_module *net = tn_module_new(nets[i]), *fused;
        tn_tensor *x = tn_randn(TN_SHAPE(2, 3, 8, 8)), *y;
        ck_made(tn_module_call(net, x));
        ck_ok(tn_module_eval(net));
        y = tn_module_call(net, x);
        fused = tn_module_fuse(net, x);
        ck_made(fused);
        ck_assert_int_eq(tn_module_child_count(fused), i == 0 ? 3 : 2);
        ck_assert_int_eq(tn_allclose(tn_module_call(fused, x), y, 1e-5, 1e-5), 1);
        tn_module_drop(fused);
        tn_module_drop(net);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { subgraphs_are_rewritten_as_in_pytorch,
                                   rewriting_and_back_gives_the_same_values,
                                   dead_code_goes_as_in_pytorch,
                                   a_parameter_that_nobody_needs_goes,
                                   constants_are_folded_as_in_pytorch,
                                   batch_norms_are_folded_as_in_pytorch,
                                   NULL };

    return suite_run("ported_graphs", tests);
}
