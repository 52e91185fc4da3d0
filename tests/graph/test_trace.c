/* SPDX-License-Identifier: MIT
 *
 * Tracing: which calls become nodes of the graph. */
#include "tests/graph/suite.h"
#include "tests/graph/traced.h"
#include "tests/spec/proves.h"

static tn_tensor *detached_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *free_of = tn_detach(tn_module_get(self, "scale")), *y;
    ck_ok(tn_grad_begin(false));
    y = tn_mul(tn_module_get(self, "scale"), x);
    tn_grad_end();
    return tn_add(tn_mul(free_of, y), tn_mul(tn_module_get(self, "scale"), x));
}

static tn_tensor *making_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *sum = tn_zeros(TN_SHAPE(2, 3)),
              *two = tn_tensor_from((float[3]){ 1, 2, 3 }, TN_F32, TN_SHAPE(3));
    (void)self;
    tn_add_(sum, x);
    tn_add_(two, tn_tensor_full(TN_SHAPE(3), 1, TN_F32, NULL)); /* into a constant */
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
    for (int i = 0; i < 3; i++) /* a call leaves nothing that changes the next one */
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
    ck_ok(tn_backward(tn_sum(tn_module_call(module, x))));
    ck_ok(tn_backward(tn_sum(tn_module_call(made, x))));
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

static tn_status multiply_output(void *user, tn_module *module, const tn_pack *input,
                                 const tn_pack *output, tn_pack *replacement,
                                 tn_hook_outcome *outcome)
{
    const double factor = *(const double *)user;
    tn_tensor *y = tn_mul_scalar(tn_pack_tensor(output, 0), TN_SCALAR(factor));

    (void)module;
    (void)input;
    *outcome = TN_OUTCOME_REPLACED;
    return tn_pack_add(replacement, NULL, tn_value_tensor(y));
}

START_TEST(hooks_are_recorded_where_they_run_or_stay_with_their_module)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 3), ReLU())"), *made;
    tn_tensor *x = numbers(-1);
    double factor = 2;
    ck_assert_uint_ne(
        tn_module_hook_forward(tn_module_child(net, "0"), multiply_output, 0, &factor, NULL), 0);
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

struct network {
    tn_module *net;
    tn_tensor *x;
};

/* Traces, prints, reads back, makes a module; stops at the first failure. */
static bool live(void *user)
{
    TN_SCOPE;
    const struct network *n = user;
    tn_tracing_options how = TN_TRACING_OPTIONS;
    char text[4096];
    tn_graph *graph, *read = NULL;
    tn_module *made = NULL;
    bool well;

    how.flags = TN_TRACE_THROUGH;
    graph = tn_module_trace(n->net, n->x, &how);
    well = graph != NULL && tn_graph_print(graph, "text", text, sizeof text) > 0 &&
           (read = tn_graph_parse(text, n->net, NULL)) != NULL &&
           tn_graph_replace(read, "relu(x)", "silu(x)") == 1 &&
           tn_graph_print(read, "json", text, sizeof text) > 0 &&
           (made = tn_graph_module(read)) != NULL && tn_module_call(made, n->x) != NULL;
    if (made != NULL)
        tn_module_drop(made);
    tn_graph_drop(read);
    tn_graph_drop(graph);
    return well;
}

START_TEST(memory_that_fails_anywhere_is_an_error)
{
    TN_SCOPE;
    struct network n = { tn_module_new("Sequential(Linear(3, 3), ReLU())"), numbers(2) };
    ck_assert(live(&n));
    ck_assert_int_gt(fail_each_allocation(live, &n), 100);
    ck_assert(live(&n));
    tn_module_drop(n.net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { layers_become_calls_and_the_code_between_them_operators,
                                   leaves_are_layers_unless_the_program_says_otherwise,
                                   names_are_unique_and_in_snake_case,
                                   tensors_that_the_code_makes_are_made_in_every_run,
                                   gradients_are_off_where_the_code_switched_them_off,
                                   packs_go_in_and_out,
                                   hooks_are_recorded_where_they_run_or_stay_with_their_module,
                                   a_region_of_autocast_becomes_casts,
                                   memory_that_fails_anywhere_is_an_error,
                                   NULL };
    return suite_run("trace", tests);
}
