/* SPDX-License-Identifier: MIT
 *
 * The passes of the plugin tenon.passes, and the fusion of batch norms. */
#include "tests/graph/suite.h"

#include "tests/graph/exchange.h"
#include "tests/graph/traced.h"
#include "tests/spec/proves.h"

static void near(tn_tensor *a, tn_tensor *b)
{
    ck_made(a);
    ck_made(b);
    ck_assert_int_eq(tn_allclose(a, b, 1e-5, 1e-5), 1);
}

/* A module whose running statistics are not those of a new one. */
static tn_module *used(const char *spec, tn_tensor *x)
{
    tn_module *module;

    tn_random_seed(11);
    module = tn_module_parse(spec);
    ck_made(module);
    for (int i = 0; i < 3; i++)
        ck_made(tn_module_call(module, tn_normal(x)));
    ck_ok(tn_module_train(module, false));
    return module;
}

static const struct {
    const char *spec;
    int64_t shape[5], ndim;
} fusions[] = {
    { "Sequential(Conv1d(3, 4, 3), BatchNorm1d(4))", { 2, 3, 9 }, 3 },
    { "Sequential(Conv2d(3, 4, 3, bias=False), BatchNorm2d(4))", { 2, 3, 7, 6 }, 4 },
    { "Sequential(Conv3d(2, 4, 2), BatchNorm3d(4))", { 2, 2, 3, 4, 3 }, 5 },
    { "Sequential(Conv2d(4, 4, 3, groups=2), BatchNorm2d(4, affine=False))", { 2, 4, 6, 6 }, 4 },
    { "Sequential(ConvTranspose2d(3, 4, 3), BatchNorm2d(4, eps=0.01))", { 2, 3, 5, 5 }, 4 },
    { "Sequential(Linear(6, 4), BatchNorm1d(4))", { 3, 6 }, 2 },
    { "Sequential(Linear(6, 4, bias=False), BatchNorm1d(4))", { 3, 6 }, 2 },
};

START_TEST(batch_norms_are_folded_as_layers_and_as_operators)
{
    for (size_t i = 0; i < sizeof fusions / sizeof *fusions; i++) {
        TN_SCOPE;
        tn_tensor *x = tn_normal(
            tn_tensor_empty((tn_ints){ fusions[i].shape, fusions[i].ndim }, TN_F32, NULL));
        tn_module *net = used(fusions[i].spec, x), *fused;
        tn_tensor *y = tn_module_call(net, x), *out;
        tn_state *before = tn_module_state(net), *after;
        tn_graph *graph;
        char text[256];
        /* the module: no batch norm is left, the layer is another, the original is the same */
        fused = tn_module_fuse(net, x);
        ck_made(fused);
        ck_assert_int_eq(tn_module_child_count(fused), 1);
        ck_assert_ptr_ne(tn_module_child(fused, "0"), tn_module_child(net, "0"));
        ck_assert_str_eq(tn_module_type(tn_module_child(fused, "0")),
                         tn_module_type(tn_module_child(net, "0")));
        near(tn_module_call(fused, x), y);
        ck_same(tn_module_call(net, x), y);
        after = tn_module_state(net);
        for (int64_t k = 0; k < tn_state_count(before); k++)
            ck_same(tn_state_tensor(after, k), tn_state_tensor(before, k));
        tn_module_drop(fused);
        /* the two modules alone */
        fused = tn_fuse_batch_norm(tn_module_child(net, "0"), tn_module_child(net, "1"));
        ck_made(fused);
        near(tn_module_call(fused, x), y);
        tn_module_drop(fused);
        /* the operators */
        graph = traced(net, x, TN_TRACE_THROUGH);
        ck_ok(tn_graph_pass(graph, "conv_bn, linear_bn, dead"));
        ck_assert_ptr_null(strstr(names_of(graph), "batch_norm"));
        ck_assert_int_gt(tn_graph_report(graph, text, sizeof text), 0);
        ck_assert_ptr_nonnull(strstr(text, "1 batch norms folded"));
        ck_ok(tn_grad_begin(false));
        ck_ok(tn_graph_run(graph, &x, 1, &out, 1));
        tn_grad_end();
        near(out, y);
        tn_graph_drop(graph);
        tn_state_drop(before);
        tn_state_drop(after);
        tn_module_drop(net);
    }
    TN_PROVES("FX-012", "FX-013");
}
END_TEST

START_TEST(dtype_and_requires_grad_stay)
{
    TN_SCOPE;
    tn_tensor *x = tn_normal(tn_tensor_empty(TN_SHAPE(2, 3, 6, 6), TN_F32, NULL));
    tn_module *net = used("Sequential(Conv2d(3, 4, 3), BatchNorm2d(4))", x);
    tn_module *conv = tn_module_child(net, "0"), *norm = tn_module_child(net, "1"), *fused;
    ck_ok(tn_tensor_set_requires_grad(tn_module_get(conv, "weight"), false));
    fused = tn_fuse_batch_norm(conv, norm);
    ck_made(fused);
    ck_assert(!tn_tensor_requires_grad(tn_module_get(fused, "weight")));
    ck_assert(tn_tensor_requires_grad(tn_module_get(fused, "bias")));
    ck_assert(tn_tensor_is_parameter(tn_module_get(fused, "weight")));
    tn_module_drop(fused);
    ck_ok(tn_module_to(conv, NULL, TN_BF16));
    fused = tn_fuse_batch_norm(conv, norm);
    ck_made(fused);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(fused, "weight")), TN_BF16);
    ck_assert_int_eq(tn_tensor_dtype(tn_module_get(fused, "bias")), TN_BF16);
    tn_module_drop(fused);
    ck_ok(tn_module_train(net, true));
    ck_assert_ptr_null(tn_fuse_batch_norm(conv, norm));
    ck_error(TN_ERR_ASSERT, "Fusion only for eval!", "");
    tn_module_drop(net);
    norm = tn_module_new("BatchNorm2d(4, track_running_stats=False)");
    conv = tn_module_new("Conv2d(3, 4, 3)");
    ck_ok(tn_module_train(norm, false));
    ck_ok(tn_module_train(conv, false));
    ck_assert_ptr_null(tn_fuse_batch_norm(conv, norm));
    ck_error(TN_ERR_ASSERT, "no running statistics", "BatchNorm2d");
    tn_module_drop(norm);
    norm = tn_module_new("BatchNorm2d(5)");
    ck_ok(tn_module_train(norm, false));
    ck_assert_ptr_null(tn_fuse_batch_norm(conv, norm));
    ck_error(TN_ERR_ASSERT, "got 5", "expected 4");
    tn_module_drop(norm);
    tn_module_drop(conv);
    TN_PROVES("FX-011", "FX-014");
}
END_TEST

START_TEST(what_cannot_be_folded_stays)
{
    static const char *const specs[] = {
        "Sequential(Conv2d(4, 4, 3), BatchNorm2d(4, track_running_stats=False))",
        "Sequential(Conv2d(4, 4, 3), ReLU(), BatchNorm2d(4))",
        "Sequential(ConvTranspose2d(4, 4, 3, groups=2), BatchNorm2d(4))",
    };
    for (int i = 0; i < 3; i++) {
        TN_SCOPE;
        tn_tensor *x = tn_normal(tn_tensor_empty(TN_SHAPE(2, 4, 6, 6), TN_F32, NULL)), *out;
        tn_module *net = used(specs[i], x);
        tn_graph *graph = traced(net, x, TN_TRACE_THROUGH);
        ck_ok(tn_graph_pass(graph, "conv_bn"));
        ck_made(tn_graph_find(graph, "batch_norm"));
        ck_ok(tn_grad_begin(false));
        ck_ok(tn_graph_run(graph, &x, 1, &out, 1));
        ck_same(out, tn_module_call(net, x));
        tn_grad_end();
        tn_graph_drop(graph);
        tn_module_drop(net);
    }
    { /* a convolution that is called twice: folding it would change both calls */
        TN_SCOPE;
        tn_tensor *x = tn_normal(tn_tensor_empty(TN_SHAPE(2, 4, 6, 6), TN_F32, NULL));
        tn_module *net = used("Sequential(Conv2d(4, 4, 1), BatchNorm2d(4))", x), *fused;
        tn_module *twice = tn_module_new("Sequential()");
        ck_ok(tn_module_add_child(twice, "0", tn_module_child(net, "0")));
        ck_ok(tn_module_add_child(twice, "1", tn_module_child(net, "1")));
        ck_ok(tn_module_add_child(twice, "2", tn_module_child(net, "0")));
        ck_ok(tn_module_train(twice, false));
        fused = tn_module_fuse(twice, x);
        ck_made(fused);
        ck_same(tn_module_call(fused, x), tn_module_call(twice, x));
        tn_module_drop(fused);
        tn_module_drop(twice);
        tn_module_drop(net);
    }
}
END_TEST

START_TEST(dropout_goes_for_inference)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 3), Dropout(0.5), ReLU())");
    tn_tensor *x = numbers(-1), *out;
    for (int through = 0; through < 2; through++) {
        tn_graph *graph = traced(net, x, through ? TN_TRACE_THROUGH : 0);
        ck_assert_ptr_nonnull(strstr(names_of(graph), through ? "dropout" : "_1"));
        ck_ok(tn_graph_pass(graph, "dropout"));
        ck_assert_ptr_null(strstr(names_of(graph), through ? "dropout" : "_1"));
        ck_ok(tn_grad_begin(false));
        ck_ok(tn_graph_run(graph, &x, 1, &out, 1));
        ck_same(out, tn_module_call_chain(net, "0 2", x));
        tn_grad_end();
        tn_graph_drop(graph);
    }
    tn_module_drop(net);
    TN_PROVES("FX-015");
}
END_TEST

START_TEST(equal_values_are_computed_once_and_constants_in_advance)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
    tn_node *c = tn_graph_constant(graph, "c", numbers(2)), *a[2], *b[2], *sum;
    tn_tensor *in = numbers(-2), *before, *after;
    char text[256];
    a[0] = step(graph, "exp()", x, NULL);
    a[1] = step(graph, "neg()", a[0], NULL);
    b[0] = step(graph, "exp()", x, NULL);
    b[1] = step(graph, "neg()", b[0], NULL);
    sum = step(graph, "add()", step(graph, "mul()", a[1], b[1]),
               step(graph, "relu()", step(graph, "neg()", c, NULL), NULL));
    ck_ok(tn_graph_output(graph, &sum, 1));
    ck_ok(tn_graph_run(graph, &in, 1, &before, 1));
    ck_ok(tn_graph_pass(graph, "constants, cse, dead"));
    ck_assert_str_eq(names_of(graph), "x relu_value exp neg mul add output");
    ck_assert_int_gt(tn_graph_report(graph, text, sizeof text), 0);
    ck_assert_str_eq(text, "constants: 2 nodes computed in advance\ncse: 2 nodes merged\n"
                           "dead: 0 nodes removed\n");
    ck_ok(tn_graph_run(graph, &in, 1, &after, 1));
    ck_same(after, before);
    tn_graph_drop(graph);
}
END_TEST

/* The constants of a folded norm have names of their own, when layers that are folded one after the
 * other have the same stem, too. */
START_TEST(norms_that_follow_each_other_are_folded)
{
    TN_SCOPE;
    tn_tensor *x = tn_normal(tn_tensor_empty(TN_SHAPE(2, 3, 5, 5), TN_F32, NULL)), *y;
    tn_module *net = used("Sequential(Conv2d(3, 4, 1), BatchNorm2d(4), Conv2d(4, 4, 1), "
                          "BatchNorm2d(4), BatchNorm2d(4))",
                          x);
    tn_graph *graph = traced(net, x, TN_TRACE_THROUGH);

    ck_ok(tn_graph_pass(graph, "conv_bn, dead"));
    ck_assert_ptr_null(strstr(names_of(graph), "batch_norm"));
    tn_inference_begin(true);
    y = run1(graph, x);
    tn_inference_end();
    near(y, tn_module_call(net, x));
    tn_graph_drop(graph);
    tn_module_drop(net);
}
END_TEST

START_TEST(random_and_written_values_are_not_merged)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32), *y[4], *old[2], *out;
    tn_tensor *in = numbers(1), *before, *after;
    y[0] = step(graph, "dropout(p=0.5)", x, NULL);
    y[1] = step(graph, "dropout(p=0.5)", x, NULL);
    y[2] = step(graph, "exp()", x, NULL);
    old[0] = step(graph, "sin()", y[2], NULL);
    y[2] = tn_graph_add_inplace(graph, NULL, "relu()", y[2], (tn_node *[]){ y[2] }, 1);
    y[3] = step(graph, "exp()", x, NULL);
    old[1] = step(graph, "sin()", y[3], NULL);
    y[3] = tn_graph_add_inplace(graph, NULL, "neg()", y[3], (tn_node *[]){ y[3] }, 1);
    y[0] = step(graph, "add()", y[0], y[1]);
    y[0] = step(graph, "add()", y[0], step(graph, "add()", old[0], old[1]));
    out = step(graph, "add()", y[0], step(graph, "mul()", y[2], y[3]));
    ck_ok(tn_graph_output(graph, &out, 1));
    tn_random_seed(4);
    ck_ok(tn_graph_run(graph, &in, 1, &before, 1));
    ck_ok(tn_graph_pass(graph, "constants, cse, dead"));
    ck_assert_str_eq(names_of(graph),
                     "x dropout dropout_1 exp sin relu_ exp_1 sin_1 neg_ add add_1 add_2 mul add_3 "
                     "output");
    tn_random_seed(4);
    ck_ok(tn_graph_run(graph, &in, 1, &after, 1));
    ck_same(after, before);
    tn_graph_drop(graph);
}
END_TEST

START_TEST(calls_that_keep_their_order_are_neither_merged_nor_removed)
{
    TN_SCOPE;
    tn_graph *graph = tn_graph_new();
    tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32), *out;

    register_exchange();
    step(graph, "test_exchange()", x, NULL); /* unused: the other processes wait for it */
    out = step(graph, "add()", step(graph, "test_exchange()", x, NULL),
               step(graph, "test_exchange()", x, NULL));
    out = step(graph, "add()", out,
               step(graph, "test_exchange()", tn_graph_constant(graph, "c", numbers(2)), NULL));
    ck_ok(tn_graph_output(graph, &out, 1));
    ck_ok(tn_graph_pass(graph, "constants, cse, dead"));
    ck_assert_str_eq(names_of(graph), "x c test_exchange test_exchange_1 test_exchange_2 add "
                                      "test_exchange_3 add_1 output");
    ck_same(run1(graph, numbers(1)), tn_add(tn_mul_scalar(numbers(1), 2), numbers(2)));
    tn_graph_drop(graph);
}
END_TEST

START_TEST(attention_is_decomposed_unless_it_draws)
{
    for (int draws = 0; draws < 2; draws++) {
        TN_SCOPE;
        tn_graph *graph = tn_graph_new();
        tn_node *x = tn_graph_input(graph, "x", TN_SHAPE(1, 2, 3, 4), TN_F32);
        tn_node *in[] = { x, x, x, TN_NODE_NONE }, *y;
        y = tn_graph_add_op(graph, NULL,
                            draws ? "scaled_dot_product_attention(dropout_p=0.5)"
                                  : "scaled_dot_product_attention()",
                            in, 4);
        ck_made(y);
        ck_ok(tn_graph_output(graph, &y, 1));
        ck_ok(tn_graph_pass(graph, "decompose"));
        ck_assert_int_eq(strstr(names_of(graph), "scaled_dot_product_attention") != NULL, draws);
        tn_graph_drop(graph);
    }
}
END_TEST

/* A constant of a decomposition never has the name of another constant. */
START_TEST(constants_of_a_decomposition_have_names_of_their_own)
{
    TN_SCOPE;
    char text[9000];
    tn_state *given = tn_state_new(), *held;
    tn_tensor *x = tn_ones(TN_SHAPE(2, 3, 4, 8)), *expected, *out;
    tn_graph *graph, *again;

    ck_ok(tn_state_set(given, "c1", tn_tensor_full(TN_SHAPE(9), 100, TN_F32, NULL)));
    graph = tn_graph_parse("graph(%self : Module, %x : float32[2, 3, 4, 8]):  # tenon.graph 1\n"
                           "  %k : float32[9] = prim::Constant[name=\"c1\"]()\n"
                           "  %y : float32[2, 3, 5, 9] = interpolate[output_size=(5, 9), "
                           "mode=\"bilinear\"](%x)\n"
                           "  %mul : float32[2, 3, 5, 9] = mul(%y, %k)\n"
                           "  return (%mul)\n",
                           NULL, given);
    ck_made(graph);
    ck_ok(tn_graph_run(graph, &x, 1, &expected, 1));
    ck_ok(tn_graph_pass(graph, "decompose(ops='interpolate')"));
    ck_assert_int_lt(tn_graph_print(graph, "text", text, sizeof text), (int64_t)sizeof text);
    held = tn_graph_constants(graph);
    ck_made(held);
    again = tn_graph_parse(text, NULL, held);
    ck_made(again);
    ck_ok(tn_graph_run(again, &x, 1, &out, 1));
    near(out, expected);
    tn_graph_drop(again);
    tn_graph_drop(graph);
    tn_state_drop(held);
    tn_state_drop(given);
}
END_TEST

START_TEST(operators_are_replaced_by_their_decomposition)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 3), LayerNorm(3), SiLU())");
    tn_tensor *x = numbers(-1), *out;
    tn_graph *graph = traced(net, x, TN_TRACE_THROUGH);
    ck_ok(tn_graph_pass(graph, "decompose(ops='linear layer_norm')"));
    ck_assert_ptr_null(strstr(names_of(graph), " linear"));
    ck_assert_ptr_null(strstr(names_of(graph), "layer_norm"));
    ck_assert_ptr_nonnull(strstr(names_of(graph), "silu"));
    ck_ok(tn_graph_run(graph, &x, 1, &out, 1));
    near(out, tn_module_call(net, x));
    ck_assert_int_ne(tn_node_expand(tn_graph_find(graph, "input")), TN_OK);
    ck_error(TN_ERR_TYPE, "input", "not a call of an operator");
    tn_graph_drop(graph);
    tn_module_drop(net);
}
END_TEST

static const struct {
    const char *spec, *left; /* what the operators are afterwards */
} followed[] = {
    { "Sequential(Linear(6, 4), ReLU())", "linear_activation(activation='relu')" },
    { "Sequential(Linear(6, 4, bias=False), GELU())", "linear_activation(activation='gelu')" },
    { "Sequential(Linear(6, 4), GELU(approximate='tanh'))",
      "linear_activation(activation='gelu_tanh')" },
    { "Sequential(Linear(6, 4), SiLU())", "linear_activation(activation='silu')" },
    { "Sequential(Linear(6, 4), Tanh())", "linear() tanh()" },
    { "Sequential(BatchNorm1d(6), ReLU())", "batch_norm_relu(" },
    { "Sequential(BatchNorm1d(6), ReLU6())", "max=6.0)" },
    { "Sequential(Linear(6, 6), BatchNorm1d(6), ReLU())", "linear() batch_norm_relu(" },
};

/* The calls of a graph, with spaces between. */
static const char *calls_of(const tn_graph *graph)
{
    static char text[512];

    text[0] = '\0';
    for (tn_node *node = tn_graph_first(graph); node != NULL; node = tn_node_next(node)) {
        size_t length = strlen(text);
        char spec[256];

        if (tn_node_kind_of(node) != TN_NODE_OP)
            continue;
        ck_assert_int_gt(tn_node_spec(node, spec, sizeof spec), 0);
        snprintf(text + length, sizeof text - length, "%s%s", length > 0 ? " " : "", spec);
    }
    return text;
}

START_TEST(epilogue_makes_one_operator_with_the_same_bits)
{
    for (size_t i = 0; i < sizeof followed / sizeof *followed; i++) {
        TN_SCOPE;
        tn_tensor *x = tn_normal(tn_tensor_empty(TN_SHAPE(5, 6), TN_F32, NULL)), *out;
        tn_module *net = used(followed[i].spec, x);
        tn_graph *graph = traced(net, x, TN_TRACE_THROUGH);

        ck_ok(tn_graph_pass(graph, "epilogue"));
        ck_assert_ptr_nonnull(strstr(calls_of(graph), followed[i].left));
        out = run1(graph, x);
        ck_same(out, tn_module_call(net, x));
        ck_assert(tn_tensor_requires_grad(out) == (tn_module_parameter_count(net) > 0));
        tn_graph_drop(graph);
        tn_module_drop(net);
    }
}
END_TEST

/* The same for images. The norm is in evaluation. */
static const struct {
    const char *spec, *left;
} image_followed[] = {
    { "Sequential(Conv2d(6, 4, 3, padding=1), ReLU())",
      "convolution_activation(activation='relu', stride=(1, 1), padding=(1, 1)" },
    { "Sequential(Conv2d(6, 4, 3, stride=2, bias=False), BatchNorm2d(4, eps=0.25))",
      "convolution_activation(activation='none', stride=(2, 2)" },
    { "Sequential(Conv2d(6, 6, 3, groups=3, padding=1), BatchNorm2d(6), ReLU6())",
      "convolution_activation(activation='relu6'" },
    { "Residual(Conv2d(6, 6, 1), BatchNorm2d(6), activation=SiLU())",
      "convolution_activation(activation='silu'" },
    { "Residual(Conv2d(6, 6, 1), activation=Hardswish())",
      "convolution_activation(activation='hardswish'" },
    { "Sequential(Conv2d(6, 4, 1), Tanh())", "conv2d(" },
    { "Sequential(Conv2d(6, 4, 3, padding='same'), ReLU())", "conv2d(" },
    { "Sequential(Conv2d(6, 4, 1), BatchNorm2d(4, track_running_stats=False), Tanh())", "conv2d(" },
};

/* Calls a module in evaluation: in a graph, after the pass, and with another pass that folds. */
START_TEST(epilogue_makes_one_operator_of_a_convolution_and_what_follows)
{
    for (size_t i = 0; i < sizeof image_followed / sizeof *image_followed; i++)
        for (int grads = 0; grads < 2; grads++) {
            TN_SCOPE;
            tn_tensor *x = tn_normal(tn_tensor_empty(TN_SHAPE(2, 6, 7, 5), TN_F32, NULL));
            tn_module *net = used(image_followed[i].spec, x);
            tn_graph *graph;
            tn_tensor *out, *eager;

            ck_ok(tn_grad_begin(grads));
            graph = traced(net, x, TN_TRACE_THROUGH);
            ck_ok(tn_graph_pass(graph, "epilogue"));
            ck_assert_msg(strncmp(calls_of(graph), image_followed[i].left,
                                  strlen(image_followed[i].left)) == 0,
                          "%s", calls_of(graph));
            ck_assert((strstr(calls_of(graph), ") ") == NULL) == /* one call */
                      (strncmp(image_followed[i].left, "conv2d", 6) != 0));
            out = run1(graph, x);
            eager = tn_module_call(net, x);
            ck_same(out, eager);
            ck_assert(tn_tensor_requires_grad(out) == tn_tensor_requires_grad(eager));
            tn_grad_end();
            tn_graph_drop(graph);
            tn_module_drop(net);
        }
}
END_TEST

/* y = relu(x w) + r, and the same where something else uses a value between, or the sum is not of
 * one shape. */
START_TEST(epilogue_takes_sums_of_one_shape_and_leaves_values_with_other_users)
{
    TN_SCOPE;
    tn_tensor *w = tn_reshape(numbers(-4), TN_SHAPE(2, 3)), *x = numbers(1), *expected;
    static const char *const sums[] = { "add()", "add(alpha=2)" };

    for (int way = 0; way < 4; way++) {
        tn_graph *graph = tn_graph_new();
        tn_node *in = tn_graph_input(graph, "x", TN_SHAPE(2, 3), TN_F32);
        tn_node *r = tn_graph_input(graph, "r", way == 1 ? TN_SHAPE(1, 2) : TN_SHAPE(2, 2), TN_F32);
        tn_node *three[] = { in, tn_graph_slot(graph, "w", w), TN_NODE_NONE };
        tn_node *linear = tn_graph_add_op(graph, NULL, "linear()", three, 3);
        tn_node *relu = step(graph, "relu()", linear, NULL);
        tn_node *sum = step(graph, sums[way == 3], relu, r), *both[] = { sum, linear };
        tn_tensor *given[] = { x, tn_tensor_full(way == 1 ? TN_SHAPE(1, 2) : TN_SHAPE(2, 2), 3,
                                                 TN_F32, NULL) };
        tn_tensor *out[2];

        ck_ok(tn_graph_output(graph, both, way == 2 ? 2 : 1));
        ck_ok(tn_graph_run(graph, given, 2, out, way == 2 ? 2 : 1));
        expected = out[0];
        ck_ok(tn_graph_pass(graph, "epilogue"));
        ck_assert_str_eq(calls_of(graph),
                         way == 0   ? "linear_activation(activation='relu')"
                         : way == 2 ? "linear() relu() add(alpha=1)"
                         : way == 1 ? "linear_activation(activation='relu') add(alpha=1)"
                                    : "linear_activation(activation='relu') add(alpha=2)");
        ck_ok(tn_graph_run(graph, given, 2, out, way == 2 ? 2 : 1));
        ck_same(out[0], expected);
        tn_graph_drop(graph);
    }
}
END_TEST

START_TEST(a_norm_that_stays_is_reported_with_the_reason)
{
    TN_SCOPE;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(2, 3, 8, 8), 0.5, TN_F32, NULL);
    tn_module *net = used("Sequential(Conv2d(3, 4, 3), BatchNorm2d(4, track_running_stats=False), "
                          "ReLU(), BatchNorm2d(4))",
                          x);
    tn_graph *graph = traced(net, x, TN_TRACE_THROUGH);
    char text[512];

    ck_ok(tn_graph_pass(graph, "conv_bn"));
    ck_assert_int_gt(tn_graph_report(graph, text, sizeof text), 0);
    ck_assert_ptr_nonnull(strstr(text, "conv_bn: batch_norm stays: it is in training mode\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "conv_bn: batch_norm_1 stays: no convolution is before it\n"));
    ck_assert_ptr_nonnull(strstr(text, "conv_bn: 0 batch norms folded\n"));
    tn_graph_drop(graph);
    tn_module_drop(net);
}
END_TEST

/* Without a batch, the 4 positions of the results are the channels of BatchNorm1d. */
START_TEST(a_norm_after_a_convolution_without_a_batch_stays)
{
    TN_SCOPE;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(3, 6), 0.5, TN_F32, NULL), *y, *expected;
    tn_module *net = tn_module_new("Sequential(Conv1d(3, 4, 3), BatchNorm1d(4))");

    ck_made(tn_copy_(tn_module_find_tensor(net, "1.running_mean"),
                     tn_arange(TN_NONE, 0, 4, 1, TN_F32)));
    ck_ok(tn_module_eval(net));
    ck_ok(tn_grad_begin(false));
    expected = tn_module_call(net, x);
    for (int through = 0; through < 2; through++) {
        tn_graph *graph = traced(net, x, through ? TN_TRACE_THROUGH : 0);
        char text[512];

        ck_ok(tn_graph_pass(graph, "conv_bn"));
        ck_assert_int_gt(tn_graph_report(graph, text, sizeof text), 0);
        ck_assert_msg(strstr(text, "stays: the input of the convolution has no batch\n") != NULL,
                      "%s", text);
        y = run1(graph, x);
        ck_same(y, expected);
        tn_graph_drop(graph);
    }
    tn_grad_end();
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        epilogue_makes_one_operator_with_the_same_bits,
        epilogue_makes_one_operator_of_a_convolution_and_what_follows,
        epilogue_takes_sums_of_one_shape_and_leaves_values_with_other_users,
        a_norm_that_stays_is_reported_with_the_reason,
        a_norm_after_a_convolution_without_a_batch_stays,
        batch_norms_are_folded_as_layers_and_as_operators,
        dtype_and_requires_grad_stay,
        what_cannot_be_folded_stays,
        dropout_goes_for_inference,
        equal_values_are_computed_once_and_constants_in_advance,
        norms_that_follow_each_other_are_folded,
        random_and_written_values_are_not_merged,
        calls_that_keep_their_order_are_neither_merged_nor_removed,
        operators_are_replaced_by_their_decomposition,
        attention_is_decomposed_unless_it_draws,
        constants_of_a_decomposition_have_names_of_their_own,
        NULL
    };
    return suite_run("passes-plugin", tests);
}
