/* SPDX-License-Identifier: MIT
 *
 * The pass inplace: which operators in place become ordinary ones, and that no result changes. */
#include "tests/graph/suite.h"

#include "tests/graph/traced.h"

static tn_node *in_place(tn_graph *graph, const char *spec, tn_node *into, tn_node *other)
{
    tn_node *const in[] = { into, other };
    tn_node *node = tn_graph_add_inplace(graph, NULL, spec, into, in, other != NULL ? 2 : 1);

    ck_made(node);
    return node;
}

/* Runs the graph, then passes, then again: the results, and the input afterwards, have the same
 * bits. */
static void ck_pass(tn_graph *graph, const char *passes, tn_tensor *in, const char *names)
{
    const int64_t count = tn_graph_output_count(graph);
    tn_tensor *inputs[] = { tn_clone(in), tn_clone(in) }, *before[2], *after[2];

    ck_ok(tn_graph_run(graph, &inputs[0], 1, before, count));
    ck_ok(tn_graph_pass(graph, passes));
    ck_assert_str_eq(names_of(graph), names);
    ck_ok(tn_graph_run(graph, &inputs[1], 1, after, count));
    for (int64_t i = 0; i < count; i++)
        ck_same(after[i], before[i]);
    ck_same(inputs[1], inputs[0]);
}

START_TEST(operators_in_place_become_ordinary_ones)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32), *y;
    char text[128];

    y = in_place(graph, "relu()", step(graph, "sin()", x, NULL), NULL);
    y = in_place(graph, "mul_scalar(value=3)", y, NULL);
    ck_ok(tn_graph_output(graph, &y, 1));
    ck_pass(graph, "inplace", numbers(-2), "x sin relu mul_scalar output");
    ck_assert_int_gt(tn_graph_report(graph, text, sizeof text), 0);
    ck_assert_str_eq(text, "inplace: 2 operators no longer in place\n");
    tn_graph_drop(graph);
}
END_TEST

/* Writes that are seen elsewhere, or that do what the ordinary operator does not do: `before` makes
 * the value, `in_place` changes it, with x as a second operand if `two`. */
static const struct {
    const char *before, *in_place;
    bool two;
    const char *names;
} left[] = {
    /* the input of the graph, a view of it, and what may be one */
    { NULL, "relu()", false, "x relu_ output" },
    { "transpose(dim0=0, dim1=1)", "neg()", false, "x transpose neg_ output" },
    { "reshape(shape=(3, 2))", "neg()", false, "x reshape neg_ output" },
    /* a second tensor, which can decide about dtype, shape and strides */
    { "sin()", "add()", true, "x sin add_ output" },
    { "cast(dtype=float16)", "add()", true, "x cast add_ output" },
    /* a derivative from the result, which rounds in another way */
    { "sin()", "elu()", false, "x sin elu_ output" },
    { "sin()", "selu()", false, "x sin selu_ output" },
};

START_TEST(writes_that_others_see_stay)
{
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        TN_SCOPE;
        tn_graph *graph = tn_graph_new();
        tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
        tn_node *y = left[i].before != NULL ? step(graph, left[i].before, x, NULL) : x;

        y = in_place(graph, left[i].in_place, y, left[i].two ? x : NULL);
        ck_ok(tn_graph_output(graph, (tn_node *[]){ y, x }, 2));
        ck_pass(graph, "inplace", numbers(-2), left[i].names);
        tn_graph_drop(graph);
    }
}
END_TEST

START_TEST(writes_into_slots_stay)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_node *slot = tn_graph_slot(graph, "w", numbers(-2)),
            *y = in_place(graph, "neg()", slot, NULL);

    ck_ok(tn_graph_output(graph, &y, 1));
    ck_ok(tn_graph_pass(graph, "inplace"));
    ck_assert_str_eq(names_of(graph), "w neg_ output");
    tn_graph_drop(graph);
}
END_TEST

/* The old value is read before the write, or a view of it after the write. */
START_TEST(values_with_other_readers_stay)
{
    for (int i = 0; i < 2; i++) {
        TN_SCOPE;
        tn_graph *graph = tn_graph_new();
        tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
        tn_node *y = step(graph, "sin()", x, NULL);
        tn_node *other = step(graph, i == 0 ? "cos()" : "transpose(dim0=0, dim1=1)", y, NULL);

        y = in_place(graph, "neg()", y, NULL);
        ck_ok(tn_graph_output(graph, (tn_node *[]){ y, other }, 2));
        ck_pass(graph, "inplace", numbers(-2),
                i == 0 ? "x sin cos neg_ output" : "x sin transpose neg_ output");
        tn_graph_drop(graph);
    }
}
END_TEST

/* The passes that stop at writes do this first. */
START_TEST(other_passes_apply_to_networks_in_place)
{
    static const struct {
        const char *spec, *names;
    } cases[] = {
        { "Sequential(Conv2d(3, 8, 3), ReLU(inplace=True), Conv2d(8, 4, 3, groups=4), "
          "ReLU6(inplace=True), Conv2d(4, 4, 1), Hardswish(inplace=True))",
          "convolution_activation convolution_activation_1 convolution_activation_2" },
        { "Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), SiLU(inplace=True))",
          "convolution_activation" },
        { "Sequential(Flatten(), Linear(192, 8), ReLU(inplace=True))",
          "flatten linear_activation linear_activation_y linear_activation_before" },
        { "Sequential(Residual(Sequential(Conv2d(3, 3, 1))), ReLU(inplace=True))",
          "convolution_activation" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TN_SCOPE;
        char names[512] = "";
        tn_module *net;
        tn_graph *graph;

        tn_random_seed(7);
        net = tn_module_parse(cases[i].spec);
        ck_made(net);
        ck_ok(tn_module_train(net, false));
        tn_tensor *x = tn_normal(images()), *before = tn_module_call(net, x), *after;
        graph = traced(net, x, TN_TRACE_THROUGH);
        ck_ok(tn_graph_pass(graph, "epilogue, dead"));
        for (tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node))
            if (tn_node_kind_of(node) == TN_NODE_OP || tn_node_kind_of(node) == TN_NODE_ITEM) {
                size_t length = strlen(names);
                snprintf(names + length, sizeof names - length, "%s%s", length > 0 ? " " : "",
                         tn_node_name(node));
            }
        ck_assert_str_eq(names, cases[i].names);
        tn_inference_begin(true);
        after = run1(graph, x);
        tn_inference_end();
        ck_same(after, before);
        tn_graph_drop(graph);
        tn_module_drop(net);
    }
}
END_TEST

/* A value that was changed without gradients keeps its history, and fused operators would have
 * one. */
START_TEST(nodes_without_gradients_stay)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_parse("graph(%self : Module, %x : float32[2, 3]):  # tenon.graph 1\n"
                                     "  %sin : float32[2, 3] = sin(%x)\n"
                                     "  %relu_ : float32[2, 3] = no_grad relu_(%sin!)\n"
                                     "  return (%relu_)\n",
                                     NULL, NULL);
    tn_tensor *x = numbers(-2), *leaf;

    ck_made(graph);
    ck_ok(tn_graph_pass(graph, "inplace, epilogue"));
    ck_assert_str_eq(names_of(graph), "x sin relu_ output");
    leaf = tn_clone(x);
    ck_ok(tn_tensor_set_requires_grad(leaf, true));
    ck_ok(tn_backward(tn_sum(run1(graph, leaf))));
    ck_same(tn_tensor_grad(leaf), tn_cos(x));
    tn_graph_drop(graph);
    graph = tn_graph_parse("graph(%self : Module, %x : float32[2, 3]):  # tenon.graph 1\n"
                           "  %linear : float32[2, 2] = no_grad linear(%x, %x, none)\n"
                           "  %relu : float32[2, 2] = no_grad relu(%linear)\n"
                           "  return (%relu)\n",
                           NULL, NULL);
    ck_made(graph);
    ck_ok(tn_graph_pass(graph, "epilogue"));
    ck_assert(!tn_tensor_requires_grad(run1(graph, leaf)));
    tn_graph_drop(graph);
}
END_TEST

/* The gradients of a graph that trains stay the same, too. */
START_TEST(gradients_have_the_same_bits)
{
    TN_SCOPE;
    tn_tensor *gradients[2], *x = tn_normal(images());

    for (int i = 0; i < 2; i++) {
        tn_module *net;
        tn_graph *graph;

        tn_random_seed(9);
        net = tn_module_parse(
            "Sequential(Conv2d(3, 4, 3), BatchNorm2d(4), ReLU(inplace=True), "
            "Conv2d(4, 4, 3), LeakyReLU(inplace=True), Flatten(), Linear(64, 3))");
        ck_made(net);
        graph = traced(net, x, TN_TRACE_THROUGH);
        if (i == 1) {
            ck_assert_ptr_nonnull(strstr(names_of(graph), "relu_ "));
            ck_ok(tn_graph_pass(graph, "inplace"));
            ck_assert_ptr_null(strstr(names_of(graph), "relu_ "));
        }
        ck_ok(tn_backward(tn_sum(run1(graph, x))));
        gradients[i] = tn_clone(tn_tensor_grad(tn_module_get(tn_module_child(net, "0"), "weight")));
        ck_made(gradients[i]);
        tn_graph_drop(graph);
        tn_module_drop(net);
    }
    ck_same(gradients[1], gradients[0]);
    ck_assert_double_gt(tn_item(tn_sum(tn_abs(gradients[0]))), 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        operators_in_place_become_ordinary_ones,
        writes_that_others_see_stay,
        writes_into_slots_stay,
        values_with_other_readers_stay,
        other_passes_apply_to_networks_in_place,
        nodes_without_gradients_stay,
        gradients_have_the_same_bits,
        NULL,
    };
    return suite_run("pass inplace", tests);
}
