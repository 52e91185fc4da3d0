/* SPDX-License-Identifier: MIT
 *
 * Tracing: what becomes a node, what is refused, graphs as modules, patterns, shapes. */
#include "tests/graph/suite.h"
#include "tests/spec/proves.h"

#include <time.h>

static char *printed(const tn_graph *graph, const char *form)
{
    int64_t length = tn_graph_print(graph, form, NULL, 0);
    char *text = malloc((size_t)length + 1);

    ck_assert_int_eq(tn_graph_print(graph, form, text, (size_t)length + 1), length);
    return text;
}

static tn_module *convolutional(void)
{
    tn_module *net;

    tn_random_seed(5);
    net = tn_module_new(
        "Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), ReLU(), Flatten(), Linear(288, 4))");
    ck_made(net);
    return net;
}

static tn_tensor *images(void)
{
    return tn_tensor_full(TN_SHAPE(2, 3, 8, 8), 0.5, TN_F32, NULL);
}

static tn_graph *traced(tn_module *module, tn_tensor *x, uint32_t flags)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_graph *graph;

    how.flags = flags;
    graph = tn_module_trace(module, x, &how);
    ck_made(graph);
    return graph;
}

/* ---- modules of the program ------------------------------------------------------------------ */

/* y = relu(w x + child(x)) with a parameter of its own, in place. */
static tn_tensor *mixed_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_mul(tn_module_get(self, "scale"), x);
    tn_add_(y, tn_module_call_child(self, "fc", x), NULL);
    return tn_relu(y);
}

static tn_tensor *branching_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *mean = tn_mean(tn_module_call_child(self, "fc", x), NULL);
    return tn_item(mean) > 0 ? tn_relu(x) : tn_neg(x); /* tn_item fails; the code goes on */
}

static tn_module *outsider;
static tn_tensor *outside_forward(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_module_call(outsider, x);
}

static tn_tensor *random_forward(tn_module *self, tn_tensor *x)
{
    uint64_t seed, block;
    (void)self;
    return tn_random_take(4, 1, &seed, &block) == TN_OK ? tn_relu(x) : NULL;
}

static tn_tensor *storing_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_relu(x);
    return tn_module_set(self, "seen", y) == TN_OK ? y : NULL;
}

static tn_tensor *reading_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *seen = tn_module_get(self, "seen");
    tn_add_(seen, tn_relu(x), NULL);
    return tn_mul_scalar(x, TN_SCALAR(tn_item(tn_module_get(self, "count")))); /* not written */
}

static tn_tensor *stale_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *count = tn_module_get(self, "count");
    tn_add_scalar_(count, TN_SCALAR(1.0));
    return tn_mul_scalar(x, TN_SCALAR(tn_item(count)));
}

static tn_tensor *detached_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *free_of = tn_detach(tn_module_get(self, "scale")), *y;
    ck_ok(tn_grad_begin(false));
    y = tn_mul(tn_module_get(self, "scale"), x);
    tn_grad_end();
    return tn_add(tn_mul(free_of, y), tn_mul(tn_module_get(self, "scale"), x), NULL);
}

static tn_tensor *making_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *sum = tn_zeros(TN_SHAPE(2, 3)),
              *two = tn_tensor_from((float[3]){ 1, 2, 3 }, TN_F32, TN_SHAPE(3));
    (void)self;
    tn_add_(sum, x, NULL);
    tn_add_(two, tn_tensor_full(TN_SHAPE(3), 1, TN_F32, NULL), NULL); /* into a constant */
    return tn_mul(sum, two);
}

static tn_status pack_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_tensor *x = tn_pack_tensor(input, 0);
    tn_value pair = tn_pack_at(input, 1), both[2];
    tn_value factor = tn_pack_at(input, tn_pack_find(input, "factor"));
    tn_tensor *y = tn_mul(x, tn_value_item(&pair, 0)->as.tensor);

    (void)self;
    y = tn_mul_scalar(y, TN_SCALAR(factor.as.f));
    both[0] = tn_value_tensor(tn_neg(y));
    both[1] = tn_value_tensor(tn_value_item(&pair, 1)->as.tensor);
    if (tn_pack_add(output, NULL, tn_value_tensor(y)) != TN_OK)
        return tn_error_last_code();
    return tn_pack_add(output, NULL, tn_value_tuple(both, 2));
}

static tn_module *own(tn_tensor *(*forward)(tn_module *, tn_tensor *))
{
    tn_module *module = tn_module_plain("Net"), *child = tn_module_new("Linear(3, 3)");

    ck_ok(tn_module_add_parameter(module, "scale", tn_parameter(numbers(1), true)));
    ck_ok(tn_module_add_child(module, "fc", child));
    tn_module_drop(child);
    ck_ok(tn_module_set_forward(module, forward, NULL, NULL));
    return module;
}

/* ---- what becomes a node --------------------------------------------------------------------- */

START_TEST(layers_become_calls_and_the_code_between_them_operators)
{
    TN_SCOPE;
    tn_module *module = own(mixed_forward);
    tn_graph *graph = traced(module, numbers(0), 0);
    tn_node *fc = tn_graph_find(graph, "fc"), *scale = tn_graph_find(graph, "scale");
    char *text = printed(graph, "table");
    ck_assert_str_eq(names_of(graph), "input scale mul fc add_ relu output");
    ck_assert_int_eq(tn_node_kind_of(scale), TN_NODE_SLOT);
    ck_assert_ptr_eq(tn_node_tensor(scale), tn_module_get(module, "scale"));
    ck_assert_int_eq(tn_node_kind_of(fc), TN_NODE_CALL);
    ck_assert_ptr_eq(tn_node_module(fc), tn_module_child(module, "fc"));
    ck_assert_str_eq(tn_node_target(fc), "fc");
    ck_assert_int_eq(tn_node_kind_of(tn_graph_find(graph, "add_")), TN_NODE_INPLACE);
    /* the six kinds of torch.fx */
    ck_assert_ptr_nonnull(strstr(text, "placeholder    input"));
    ck_assert_ptr_nonnull(strstr(text, "get_attr       scale"));
    ck_assert_ptr_nonnull(strstr(text, "call_function  mul"));
    ck_assert_ptr_nonnull(strstr(text, "call_method    add_"));
    ck_assert_ptr_nonnull(strstr(text, "call_module    fc"));
    ck_assert_ptr_nonnull(strstr(text, "output         output"));
    free(text);
    tn_graph_drop(graph);
    tn_module_drop(module);
    TN_PROVES("FX-001", "FX-003", "FX-009");
}
END_TEST

static bool never(void *user, tn_module *module, const char *path)
{
    (void)user;
    (void)module;
    (void)path;
    return false;
}

static bool only_norms(void *user, tn_module *module, const char *path)
{
    ck_assert_str_eq(path, strcmp(tn_module_type(module), "BatchNorm2d") == 0 ? "1" : path);
    ++*(int *)user;
    return strcmp(tn_module_type(module), "BatchNorm2d") == 0;
}

START_TEST(leaves_are_layers_unless_the_program_says_otherwise)
{
    TN_SCOPE;
    tn_module *net = convolutional();
    tn_tracing_options how = TN_TRACING_OPTIONS;
    int asked = 0;
    tn_graph *graph = traced(net, images(), 0);
    ck_assert_str_eq(names_of(graph), "input _0 _1 _2 _3 _4 output");
    ck_assert_str_eq(tn_node_target(tn_graph_find(graph, "_4")), "4");
    tn_graph_drop(graph);
    graph = traced(net, images(), TN_TRACE_THROUGH);
    ck_assert_str_eq(
        names_of(graph),
        "input _0_weight _0_bias _1_num_batches_tracked _1_running_mean _1_running_var "
        "_1_weight _1_bias _4_weight _4_bias conv2d add_scalar_ batch_norm relu "
        "flatten linear output");
    ck_assert_str_eq(tn_node_path(tn_graph_find(graph, "linear")), "4");
    tn_graph_drop(graph);
    how.is_leaf = only_norms;
    how.user = &asked;
    graph = tn_module_trace(net, images(), &how);
    ck_made(graph);
    ck_assert_int_eq(tn_node_kind_of(tn_graph_find(graph, "_1")), TN_NODE_CALL);
    ck_assert_int_eq(tn_node_kind_of(tn_graph_find(graph, "conv2d")), TN_NODE_OP);
    ck_assert_int_eq(asked, 5);
    tn_graph_drop(graph);
    how.is_leaf = never;
    graph = tn_module_trace(net, images(), &how);
    ck_made(tn_graph_find(graph, "batch_norm"));
    tn_graph_drop(graph);
    tn_module_drop(net);
    TN_PROVES("FX-002");
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
    y = tn_add(y, tn_module_call_child(module, "fc", x), NULL);
    ck_same(tn_module_call(made, x), tn_neg(y));
    tn_module_drop(made);
    tn_graph_drop(graph);
    tn_module_drop(module);
    TN_PROVES("FX-018");
}
END_TEST

START_TEST(names_are_unique_and_in_snake_case)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 3), ReLU(), Linear(3, 3), ReLU())");
    tn_graph *graph = traced(net, numbers(0), TN_TRACE_THROUGH);
    ck_assert_str_eq(names_of(graph), "input _0_weight _0_bias _2_weight _2_bias linear relu "
                                      "linear_1 relu_1 output");
    tn_graph_drop(graph);
    tn_module_drop(net);
    TN_PROVES("FX-007");
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

START_TEST(tensors_that_the_code_makes_are_made_in_every_run)
{
    TN_SCOPE;
    tn_module *module = own(making_forward), *made;
    tn_graph *graph = traced(module, numbers(0), 0);
    tn_state *constants = tn_graph_constants(graph);
    char *code = printed(graph, "code");
    tn_tensor *x = numbers(-2), *expected = tn_module_call(module, x);
    ck_assert_int_eq(tn_state_count(constants), 1);
    ck_assert_str_eq(tn_state_name(constants, 0), "c0");
    ck_assert_ptr_nonnull(strstr(code, "CONSTANTS.c0"));
    made = tn_graph_module(graph);
    ck_made(made);
    for (int i = 0; i < 3; i++) /* nothing adds up */
        ck_same(tn_module_call(made, x), expected);
    free(code);
    tn_state_drop(constants);
    tn_graph_drop(graph);
    tn_module_drop(made);
    tn_module_drop(module);
    TN_PROVES("SCR-007");
}
END_TEST

START_TEST(gradients_are_off_where_the_code_switched_them_off)
{
    TN_SCOPE;
    tn_module *module = own(detached_forward), *other = tn_module_copy(module), *made;
    tn_graph *graph = traced(other, numbers(0), 0);
    char *text = printed(graph, "text");
    tn_tensor *x = numbers(-2);
    ck_assert_ptr_nonnull(strstr(text, "= no_grad view[shape=(2, 3)](%scale)"));
    ck_assert_ptr_nonnull(strstr(text, "= no_grad mul(%scale, %input)"));
    made = tn_graph_module(graph);
    ck_ok(tn_backward(tn_sum(tn_module_call(module, x), NULL)));
    ck_ok(tn_backward(tn_sum(tn_module_call(made, x), NULL)));
    ck_same(tn_tensor_grad(tn_module_get(made, "scale")),
            tn_tensor_grad(tn_module_get(module, "scale")));
    free(text);
    tn_graph_drop(graph);
    tn_module_drop(made);
    tn_module_drop(other);
    tn_module_drop(module);
}
END_TEST

static tn_pack *pack_of(double factor)
{
    tn_value pair[2] = { tn_value_tensor(numbers(1)), tn_value_tensor(numbers(7)) };
    tn_pack *pack = tn_pack_new();

    ck_ok(tn_pack_add(pack, NULL, tn_value_tensor(numbers(-2))));
    ck_ok(tn_pack_add(pack, NULL, tn_value_tuple(pair, 2)));
    ck_ok(tn_pack_add(pack, "factor", tn_value_float(factor)));
    return pack;
}

START_TEST(packs_go_in_and_out)
{
    TN_SCOPE;
    tn_module *module = tn_module_plain("Net"), *made;
    tn_pack *in = pack_of(2), *a = tn_pack_new(), *b = tn_pack_new(), *wrong = pack_of(3);
    tn_graph *graph, *read;
    char *text, *again;
    ck_ok(tn_module_set_call(module, pack_call, NULL, NULL));
    graph = tn_module_trace_pack(module, in, NULL);
    ck_made(graph);
    text = printed(graph, "text");
    ck_assert_ptr_nonnull(strstr(text, "graph(%self : Net, %input : float32[2, 3], (%input_1 : "
                                       "float32[2, 3], %input_2 : float32[2, 3]), factor=2.0)"));
    ck_assert_ptr_nonnull(strstr(text, "return (%mul_scalar, (%neg, %input_2))"));
    read = tn_graph_parse(text, module, NULL);
    ck_made(read);
    again = printed(read, "text");
    ck_assert_str_eq(again, text);
    made = tn_graph_module(read);
    ck_made(made);
    ck_ok(tn_module_call_pack(module, in, a));
    ck_ok(tn_module_call_pack(made, in, b));
    ck_same(tn_pack_tensor(b, 0), tn_pack_tensor(a, 0));
    tn_value x = tn_pack_at(a, 1), y = tn_pack_at(b, 1);
    ck_assert_int_eq(y.kind, TN_VALUE_TUPLE);
    ck_same(tn_value_item(&y, 0)->as.tensor, tn_value_item(&x, 0)->as.tensor);
    tn_pack_drop(b);
    b = tn_pack_new();
    ck_assert_int_ne(tn_module_call_pack(made, wrong, b), TN_OK); /* a constant of the graph */
    ck_error(TN_ERR_TYPE, "argument 2", "expected 2");
    ck_assert_ptr_null(tn_module_call(made, numbers(0)));
    ck_error(TN_ERR_TYPE, "wrong arguments", "2 positional and 1 named");
    free(text);
    free(again);
    tn_pack_drop(in);
    tn_pack_drop(wrong);
    tn_pack_drop(a);
    tn_pack_drop(b);
    tn_graph_drop(graph);
    tn_graph_drop(read);
    tn_module_drop(made);
    tn_module_drop(module);
    TN_PROVES("SCR-022");
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------- */

START_TEST(values_and_foreign_modules_are_refused)
{
    TN_SCOPE;
    tn_module *module = own(branching_forward);
    tn_state *before = tn_module_state(module), *after;
    ck_assert_ptr_null(tn_module_trace(module, numbers(0), NULL));
    ck_error(TN_ERR_RUNTIME, "the value of %mean (Net) is asked for while tracing (tn_item)",
             "cannot depend on values");
    after = tn_module_state(module);
    for (int64_t i = 0; i < tn_state_count(before); i++)
        ck_same(tn_state_tensor(before, i), tn_state_tensor(after, i));
    tn_state_drop(before);
    tn_state_drop(after);
    ck_made(tn_module_call(module, numbers(0))); /* works as before */
    tn_module_drop(module);
    module = own(outside_forward);
    outsider = tn_module_new("Linear(3, 3)");
    ck_assert_ptr_null(tn_module_trace(module, numbers(0), NULL));
    ck_error(TN_ERR_KEY, "module is not installed as a submodule", "Linear");
    tn_module_drop(outsider);
    tn_module_drop(module);
    module = own(random_forward);
    ck_assert_ptr_null(tn_module_trace(module, numbers(0), NULL));
    ck_error(TN_ERR_NOT_IMPLEMENTED, "tn_random_take", "one node");
    tn_module_drop(module);
    module = tn_module_new("LazyLinear(3)");
    ck_assert_ptr_null(tn_module_trace(module, numbers(0), NULL));
    ck_error(TN_ERR_RUNTIME, "without shape", "call it once");
    tn_module_drop(module);
    TN_PROVES("FX-005", "SCR-012");
}
END_TEST

START_TEST(buffers_are_not_changed_by_a_trace)
{
    TN_SCOPE;
    tn_module *module = tn_module_plain("Net");
    tn_tensor *x = numbers(1);
    ck_ok(tn_module_add_buffer(module, "seen", numbers(0), 0));
    ck_ok(tn_module_add_buffer(module, "count", tn_zeros(TN_SCALAR_SHAPE), 0));
    ck_ok(tn_module_set_forward(module, storing_forward, NULL, NULL));
    ck_assert_ptr_null(tn_module_trace(module, x, NULL));
    ck_error(TN_ERR_RUNTIME, "the value of %relu (Net)", "tn_module_set");
    ck_same(tn_module_get(module, "seen"), numbers(0));
    ck_ok(tn_module_set_forward(module, reading_forward, NULL, NULL));
    tn_graph *graph = tn_module_trace(module, x, NULL); /* a value that nothing has written */
    ck_made(graph);
    ck_same(tn_module_get(module, "seen"), numbers(0));
    ck_assert_uint_eq(tn_tensor_version(tn_module_get(module, "seen")), 0);
    tn_graph_drop(graph);
    ck_ok(tn_module_set_forward(module, stale_forward, NULL, NULL));
    ck_assert_ptr_null(tn_module_trace(module, x, NULL));
    ck_error(TN_ERR_RUNTIME, "the value of %add_scalar_ (Net)", "tn_item");
    ck_assert_double_eq(tn_item(tn_module_get(module, "count")), 0);
    tn_module_drop(module);
}
END_TEST

START_TEST(failures_of_the_module_are_failures_of_the_trace)
{
    TN_SCOPE;
    tn_module *net = convolutional();
    tn_tracing_options how = TN_TRACING_OPTIONS;
    ck_assert_ptr_null(tn_module_trace(net, numbers(0), NULL));
    ck_error(TN_ERR_RUNTIME, "module \"0\" (Conv2d)", "conv");
    how.flags = 3;
    ck_assert_ptr_null(tn_module_trace(net, images(), &how));
    ck_error(TN_ERR_VALUE, "flags", "0x3");
    ck_assert_ptr_null(tn_module_trace(net, TN_NONE, NULL));
    ck_error(TN_ERR_TYPE, "input", "TN_NONE");
    ck_made(tn_module_call(net, images())); /* no trace is left open */
    tn_module_drop(net);
}
END_TEST

/* ---- editing --------------------------------------------------------------------------------- */

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

/* ---- graphs as modules ----------------------------------------------------------------------- */

static void train(tn_module *net, tn_tensor *x, int steps)
{
    tn_optimizer *optimizer = tn_optimizer_new(net, "SGD(lr=0.1, momentum=0.9)");

    ck_made(optimizer);
    for (int i = 0; i < steps; i++) {
        TN_SCOPE;
        ck_ok(tn_module_zero_grad(net));
        ck_ok(tn_backward(tn_mean(tn_square(tn_module_call(net, x)), NULL)));
        ck_ok(tn_optimizer_step(optimizer));
    }
    tn_optimizer_drop(optimizer);
}

static void same_states(tn_module *a, tn_module *b)
{
    tn_state *x = tn_module_state(a), *y = tn_module_state(b);

    ck_assert_int_eq(tn_state_count(x), tn_state_count(y));
    for (int64_t i = 0; i < tn_state_count(x); i++)
        ck_same(tn_state_tensor(x, i), tn_state_get(y, tn_state_name(x, i)));
    tn_state_drop(x);
    tn_state_drop(y);
}

START_TEST(a_graph_module_trains_copies_and_is_traced_again)
{
    static const uint32_t flags[] = { 0, TN_TRACE_THROUGH };
    for (int i = 0; i < 2; i++) {
        TN_SCOPE;
        tn_module *eager = convolutional(), *net = convolutional(), *made, *copy;
        tn_tensor *x = images();
        tn_graph *graph = traced(net, x, flags[i]), *again;
        char *text = printed(graph, "text"), *second;
        made = tn_graph_module(graph);
        ck_made(made);
        ck_assert_str_eq(tn_module_type(made), "GraphModule");
        ck_assert_ptr_eq(tn_module_find_tensor(made, "0.weight"),
                         tn_module_find_tensor(net, "0.weight"));
        ck_assert_int_eq(tn_module_parameter_count(made), tn_module_parameter_count(net));
        train(eager, x, 100);
        train(made, x, 100);
        same_states(eager, made);
        copy = tn_module_copy(made);
        ck_made(copy);
        ck_assert_ptr_ne(tn_module_find_tensor(copy, "0.weight"),
                         tn_module_find_tensor(net, "0.weight"));
        ck_same(tn_module_call(copy, x), tn_module_call(eager, x));
        train(copy, x, 3); /* on its own tensors */
        ck_ok(tn_module_train(eager, true));
        ck_same(tn_module_call(made, x), tn_module_call(eager, x));
        again = traced(made, x, flags[i]);
        second = printed(again, "text");
        ck_assert_ptr_nonnull(strstr(second, i == 0 ? "CallMethod" : "conv2d["));
        ck_assert_str_eq(names_of(again), i == 0 ? "input _0 _1 _2 _3 _4 output" : names_of(graph));
        free(text);
        free(second);
        tn_graph_drop(again);
        tn_graph_drop(graph);
        tn_module_drop(copy);
        tn_module_drop(made);
        tn_module_drop(net);
        tn_module_drop(eager);
    }
}
END_TEST

START_TEST(a_graph_for_one_mode_says_so)
{
    TN_SCOPE;
    tn_module *net = convolutional(), *made;
    tn_tensor *x = images();
    ck_ok(tn_module_train(net, false));
    tn_graph *graph = traced(net, x, TN_TRACE_THROUGH);
    char *text = printed(graph, "text");
    ck_assert_ptr_nonnull(strstr(text, "# tenon.graph 1, eval\n"));
    made = tn_graph_module(graph);
    ck_assert(!tn_module_is_training(made));
    ck_same(tn_module_call(made, x), tn_module_call(net, x));
    ck_ok(tn_module_train(made, true));
    ck_assert_ptr_null(tn_module_call(made, x));
    ck_error(TN_ERR_RUNTIME, "traced in evaluation mode", "training mode");
    ck_assert_ptr_nonnull(tn_module_graph(made));
    ck_assert_ptr_null(tn_module_graph(net));
    ck_error(TN_ERR_TYPE, "Sequential", "GraphModule");
    free(text);
    tn_module_drop(made);
    tn_graph_drop(graph);
    graph = traced(net, x, 0); /* the layers are called: any mode */
    made = tn_graph_module(graph);
    ck_ok(tn_module_train(made, true));
    ck_made(tn_module_call(made, x));
    tn_module_drop(made);
    tn_graph_drop(graph);
    tn_module_drop(net);
}
END_TEST

START_TEST(children_that_the_graph_does_not_use_are_left_out)
{
    TN_SCOPE;
    tn_module *module = own(mixed_forward), *extra = tn_module_new("Linear(2, 2)"), *made;
    ck_ok(tn_module_add_child(module, "unused", extra));
    tn_graph *graph = traced(module, numbers(0), 0);
    made = tn_graph_module(graph);
    ck_assert_int_eq(tn_module_child_count(made), 1);
    ck_assert_str_eq(tn_module_child_name(made, 0), "fc");
    ck_same(tn_module_call(made, numbers(1)), tn_module_call(module, numbers(1)));
    tn_module_drop(made);
    tn_graph_drop(graph);
    tn_module_drop(extra);
    tn_module_drop(module);
}
END_TEST

static tn_status double_output(void *user, tn_module *module, const tn_pack *input,
                               const tn_pack *output, tn_pack *replacement,
                               tn_hook_outcome *outcome)
{
    (void)user;
    (void)module;
    (void)input;
    *outcome = TN_HOOK_REPLACED;
    return tn_pack_add(replacement, NULL,
                       tn_value_tensor(tn_mul_scalar(tn_pack_tensor(output, 0), TN_SCALAR(2.0))));
}

START_TEST(hooks_are_recorded_where_they_run_or_stay_with_their_module)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 3), ReLU())"), *made;
    tn_tensor *x = numbers(-1);
    ck_assert_uint_ne(
        tn_module_hook_forward(tn_module_child(net, "0"), double_output, 0, NULL, NULL), 0);
    for (int i = 0; i < 2; i++) {
        tn_graph *graph = traced(net, x, i == 0 ? TN_TRACE_THROUGH : 0);
        ck_assert_int_eq(strstr(names_of(graph), "mul_scalar") != NULL, i == 0);
        made = tn_graph_module(graph);
        ck_same(tn_module_call(made, x), tn_module_call(net, x));
        tn_module_drop(made);
        tn_graph_drop(graph);
    }
    tn_module_drop(net);
}
END_TEST

START_TEST(a_region_of_autocast_becomes_casts)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 3), ReLU())");
    tn_tensor *x = numbers(-1), *a, *b;
    ck_ok(tn_autocast_begin("cpu", TN_BF16, true));
    tn_graph *graph = traced(net, x, TN_TRACE_THROUGH);
    a = tn_module_call(net, x);
    tn_autocast_end();
    ck_assert_ptr_nonnull(strstr(names_of(graph), "cast"));
    ck_ok(tn_graph_run(graph, &x, 1, &b, 1));
    ck_same(b, a);
    tn_graph_drop(graph);
    tn_module_drop(net);
}
END_TEST

/* Traces, prints, reads back, makes a module; stops at the first failure. */
static bool live(tn_module *net, tn_tensor *x)
{
    TN_SCOPE;
    tn_tracing_options how = TN_TRACING_OPTIONS;
    char text[4096];
    tn_graph *graph, *read = NULL;
    tn_module *made = NULL;
    bool well;

    how.flags = TN_TRACE_THROUGH;
    graph = tn_module_trace(net, x, &how);
    well = graph != NULL && tn_graph_print(graph, "text", text, sizeof text) > 0 &&
           (read = tn_graph_parse(text, net, NULL)) != NULL &&
           tn_graph_replace(read, "relu(x)", "silu(x)") == 1 &&
           tn_graph_print(read, "json", text, sizeof text) > 0 &&
           (made = tn_graph_module(read)) != NULL && tn_module_call(made, x) != NULL;
    if (made != NULL)
        tn_module_drop(made);
    tn_graph_drop(read);
    tn_graph_drop(graph);
    return well;
}

START_TEST(memory_that_fails_anywhere_is_an_error)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 3), ReLU())");
    tn_tensor *x = numbers(2);
    int failures = 0;
    ck_assert(live(net, x));
    for (uint64_t n = 1;; n++) {
        tn__memory_fail(n);
        bool well = live(net, x);
        uint64_t made = tn__memory_fail(0);
        if (made < n) {
            ck_assert(well);
            break;
        }
        failures++;
        ck_assert_msg(well || tn_error_code() == TN_ERR_MEMORY, "allocation %d: %s", (int)n,
                      tn_error_text());
        tn_error_clear();
    }
    ck_assert_int_gt(failures, 100);
    ck_assert(live(net, x));
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { layers_become_calls_and_the_code_between_them_operators,
                                   leaves_are_layers_unless_the_program_says_otherwise,
                                   transforms_work_on_modules_of_the_program,
                                   names_are_unique_and_in_snake_case,
                                   the_text_of_a_module_has_calls_and_inlined_none,
                                   tensors_that_the_code_makes_are_made_in_every_run,
                                   gradients_are_off_where_the_code_switched_them_off,
                                   packs_go_in_and_out,
                                   values_and_foreign_modules_are_refused,
                                   buffers_are_not_changed_by_a_trace,
                                   failures_of_the_module_are_failures_of_the_trace,
                                   a_traced_graph_is_edited_and_run,
                                   patterns_are_replaced_without_overlap,
                                   shapes_are_written_into_the_nodes,
                                   a_handler_measures_each_node,
                                   a_graph_module_trains_copies_and_is_traced_again,
                                   a_graph_for_one_mode_says_so,
                                   children_that_the_graph_does_not_use_are_left_out,
                                   hooks_are_recorded_where_they_run_or_stay_with_their_module,
                                   a_region_of_autocast_becomes_casts,
                                   memory_that_fails_anywhere_is_an_error,
                                   NULL };
    return suite_run("trace", tests);
}
