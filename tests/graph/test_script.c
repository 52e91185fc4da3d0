/* SPDX-License-Identifier: MIT
 *
 * Scripts: made of a module, they run, train, are copied and converted without its layers; their
 * slots are frozen. test_script_files.c saves and loads them. */
#include "tests/graph/suite.h"
#include "tests/graph/traced.h"
#include "tests/spec/proves.h"

/* A network whose graphs for evaluation and training differ. */
static tn_module *network(void)
{
    tn_module *net;

    tn_random_seed(5);
    net = tn_module_new("Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), ReLU(), Dropout(0.25), "
                        "Flatten(), Linear(288, 4))");
    ck_made(net);
    return net;
}

static char *repr_of(tn_module *module)
{
    int64_t length = tn_module_repr(module, NULL, 0);
    char *text = malloc((size_t)length + 1);

    tn_module_repr(module, text, (size_t)length + 1);
    return text;
}

START_TEST(a_script_computes_and_trains_as_its_module)
{
    TN_SCOPE;
    tn_module *net = network(), *eager = network(), *script, *copy;
    tn_tensor *x = images();
    script = script_of(net, x);
    ck_assert(tn_module_is_training(net));
    ck_assert(tn_module_is_training(script));
    ck_assert_ptr_eq(tn_module_find_tensor(script, "0.weight"),
                     tn_module_find_tensor(net, "0.weight"));
    ck_assert_int_eq(tn_module_child_count(script), 6);
    ck_assert_ptr_eq(tn_module_find(script, "3") != NULL ? net : NULL, net);
    same_states_in_order(script, net);
    train_by("SGD(lr=0.1, momentum=0.9)", eager, x, 20);
    train_by("SGD(lr=0.1, momentum=0.9)", script, x, 20); /* the tensors of net */
    same_states_in_order(net, eager);
    ck_ok(tn_module_eval(script));
    ck_ok(tn_module_eval(eager));
    ck_same(tn_module_call(script, x), tn_module_call(eager, x));
    TN_PROVES("SCR-010");
    /* a script of a script is the script */
    tn_module *again = tn_module_script(script, x, NULL);
    ck_assert_ptr_eq(again, script);
    tn_module_drop(again);
    TN_PROVES("SCR-001");
    /* a copy has tensors of its own */
    copy = tn_module_copy(script);
    ck_made(copy);
    train_by("SGD(lr=0.1, momentum=0.9)", copy, x, 3);
    same_states_in_order(net, eager);
    ck_assert_ptr_ne(tn_script_graph(copy, true), NULL);
    ck_assert_str_eq(tn_script_original(copy), "Sequential");
    ck_assert_int_eq(tn_module_remove(copy, "0"), TN_ERR_RUNTIME);
    tn_error_clear();
    TN_PROVES("SCR-024");
    /* conversions */
    ck_ok(tn_module_to(copy, NULL, TN_F64));
    ck_ok(tn_module_to(eager, NULL, TN_F64));
    tn_state *state = tn_module_state(eager);
    ck_ok(tn_module_load_state(copy, state, true));
    ck_ok(tn_module_eval(copy));
    x = tn_tensor_full(TN_SHAPE(2, 3, 8, 8), 0.5, TN_F64, NULL);
    ck_same(tn_module_call(copy, x), tn_module_call(eager, x));
    tn_state_drop(state);
    tn_module_drop(copy);
    tn_module_drop(script);
    tn_module_drop(net);
    tn_module_drop(eager);
}
END_TEST

static tn_status count(void *user, const char *path, tn_tensor *tensor)
{
    (void)path;
    (void)tensor;
    ++*(int *)user;
    return TN_OK;
}

static tn_status count_modules(void *user, const char *path, tn_module *module)
{
    (void)path;
    (void)module;
    ++*(int *)user;
    return TN_OK;
}

static tn_status nothing(void *user, tn_module *module)
{
    (void)user;
    return module != NULL ? TN_OK : TN_ERR_VALUE;
}

static tn_status twice(void *user, tn_module *module, const tn_pack *input, const tn_pack *output,
                       tn_pack *replacement, tn_hook_outcome *outcome)
{
    tn_tensor *y = tn_mul_scalar(tn_pack_at(output, 0).as.tensor, TN_SCALAR(2.0));

    (void)module;
    (void)input;
    ++*(int *)user;
    *outcome = TN_OUTCOME_REPLACED;
    return tn_pack_add(replacement, NULL, tn_value_tensor(y));
}

/* The methods that PyTorch's page has for ScriptModule. */
START_TEST(a_script_has_the_methods_of_a_module)
{
    TN_SCOPE;
    tn_module *net = network(), *script;
    tn_tensor *x = images(), *y;
    int n = 0;
    script = script_of(net, x);
    ck_ok(tn_module_each_tensor(script, TN_SLOT_PARAMETER, false, count, &n));
    ck_assert_int_eq(n, 6);
    ck_ok(tn_module_each_tensor(script, TN_SLOT_BUFFER, false, count, &n));
    ck_assert_int_eq(n, 9);
    n = 0;
    ck_ok(tn_module_each(script, false, count_modules, &n));
    ck_assert_int_eq(n, 7);
    ck_ok(tn_module_apply(script, nothing, NULL));
    ck_made(tn_module_find(script, "1"));
    ck_made(tn_module_find_parameter(script, "0.weight"));
    ck_made(tn_module_find_buffer(script, "1.running_mean"));
    ck_ok(tn_module_set_requires_grad(script, false));
    ck_assert(!tn_tensor_requires_grad(tn_module_find_parameter(script, "0.weight")));
    ck_ok(tn_module_set_requires_grad(script, true));
    ck_ok(tn_module_eval(script));
    y = tn_module_call(script, x);
    ck_made(y);
    ck_ok(tn_module_zero_grad(script));
    ck_ok(tn_module_share_memory(script));
    /* hooks run around the script, too */
    n = 0;
    tn_hook_handle handle = tn_module_hook_forward(script, twice, 0, &n, NULL);
    ck_assert(handle != 0);
    ck_same(tn_module_call(script, x), tn_mul_scalar(y, TN_SCALAR(2.0)));
    ck_assert_int_eq(n, 1);
    ck_assert(tn_hook_remove(handle));
    ck_ok(tn_module_compile(script, "plan()"));
    ck_ok(tn_inference_begin(true));
    ck_same(tn_module_call(script, x), y);
    tn_inference_end();
    ck_ok(tn_module_to(script, NULL, TN_F64));
    ck_assert_int_eq(tn_tensor_dtype(tn_module_find_parameter(script, "5.bias")), TN_F64);
    ck_ok(tn_module_to_empty(script, tn_device_find("cpu"), true));
    TN_PROVES("SCR-002", "SCR-003");
    tn_module_drop(script);
    tn_module_drop(net);
}
END_TEST

START_TEST(a_script_prints_its_original_names)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 3), ReLU())"), *script, *linear;
    char *text;
    script = script_of(net, numbers(0));
    text = repr_of(script);
    ck_assert_str_eq(text, "RecursiveScriptModule(\n"
                           "  original_name=Sequential\n"
                           "  (0): RecursiveScriptModule(original_name=Linear)\n"
                           "  (1): RecursiveScriptModule(original_name=ReLU)\n"
                           ")");
    linear = tn_module_child(script, "0");
    ck_assert_str_eq(tn_script_original(linear), "Linear");
    ck_assert_ptr_null(tn_script_original(net));
    ck_error(TN_ERR_TYPE, "Sequential", "expected a script");
    ck_assert_ptr_null(tn_script_files(linear));
    ck_error(TN_ERR_TYPE, "RecursiveScriptModule", "expected a script");
    TN_PROVES("SCR-023");
    free(text);
    tn_module_drop(script);
    tn_module_drop(net);
}
END_TEST

START_TEST(the_slots_of_a_script_are_frozen)
{
    TN_SCOPE;
    tn_module *net = own(mixed_forward), *script, *other = tn_module_new("ReLU()");
    tn_tensor *w = tn_parameter(numbers(7), true);
    script = script_of(net, numbers(0));
    ck_assert_int_ne(tn_module_add_parameter(script, "new", w), TN_OK);
    ck_error(TN_ERR_RUNTIME, "Can't add a new parameter after ScriptModule construction", "'new'");
    ck_assert_int_ne(tn_module_set(script, "new", w), TN_OK);
    ck_error(TN_ERR_RUNTIME, "Can't add a new parameter after ScriptModule construction", "'new'");
    ck_assert_int_ne(tn_module_add_buffer(script, "new", numbers(1), 0), TN_OK);
    ck_error(TN_ERR_RUNTIME, "Can't add a new buffer", "'new'");
    ck_assert_int_ne(tn_module_add_child(script, "new", other), TN_OK);
    ck_error(TN_ERR_RUNTIME, "Can't add a new module", "'new'");
    ck_assert_int_ne(tn_module_remove(script, "scale"), TN_OK);
    ck_error(TN_ERR_RUNTIME, "cannot delete methods or parameters of a script module", "scale");
    ck_assert_int_ne(tn_module_set(script, "scale", TN_NONE), TN_OK);
    ck_error(TN_ERR_RUNTIME, "cannot delete methods or parameters", "scale");
    ck_assert_int_ne(tn_module_assign(script, "fc", tn_value_module(other)), TN_OK);
    ck_error(TN_ERR_RUNTIME, "Cannot re-assign modules in a ScriptModule with non-scripted module",
             "'fc'");
    ck_assert_int_ne(tn_module_reserve_child(script, "fc"), TN_OK);
    ck_error(TN_ERR_RUNTIME, "Cannot re-assign modules", "'fc'");
    ck_assert_int_ne(tn_module_set_child(script, "fc", other, true), TN_OK);
    ck_error(TN_ERR_RUNTIME, "Cannot re-assign modules", "'fc'");
    ck_assert_int_ne(tn_module_set(script, "fc", w), TN_OK);
    ck_error(TN_ERR_RUNTIME, "Can't add a new parameter", "'fc'");
    ck_assert_int_ne(tn_prune(script, "scale", "L1Unstructured(amount=1)"), TN_OK);
    ck_error(TN_ERR_RUNTIME, "Can't add a new", "scale");
    ck_assert_int_ne(tn_parametrize_with(script, "scale", "Sequential()"), TN_OK);
    ck_error(TN_ERR_RUNTIME, "Can't add a new module", "parametrizations");
    /* what is there takes values of its kind */
    ck_ok(tn_module_set(script, "scale", w));
    ck_ok(tn_module_set(net, "scale", w));
    ck_same(tn_module_call(script, numbers(2)), tn_module_call(net, numbers(2)));
    tn_module_drop(other);
    tn_module_drop(script);
    tn_module_drop(net);
}
END_TEST

static tn_tensor *constant_forward(tn_module *self, tn_tensor *x)
{
    return tn_mul(tn_module_call_child(self, "fc", x), numbers(3));
}

START_TEST(constants_are_in_the_code_and_not_in_the_state)
{
    TN_SCOPE;
    tn_module *net = own(constant_forward), *script, *conv;
    char *code;
    script = script_of(net, numbers(0));
    code = printed(tn_script_graph(script, false), "code");
    ck_assert_ptr_nonnull(strstr(code, "CONSTANTS.c0"));
    same_states_in_order(script, net);
    ck_same(tn_module_call(script, numbers(2)), tn_module_call(net, numbers(2)));
    ck_assert_int_ne(tn_module_set(tn_module_child(script, "_constants"), "c0", numbers(1)), TN_OK);
    ck_error(TN_ERR_ATTR, "Cannot mutate TorchScript constant value", "'c0'");
    TN_PROVES("SCR-008");
    free(code);
    tn_module_drop(script);
    conv = tn_module_new("Conv2d(3, 8, 3, stride=2, bias=False)");
    script = script_of(conv, images());
    code = printed(tn_script_graph(script, false), "code");
    ck_assert_ptr_nonnull(strstr(code, "stride=(2, 2)"));
    tn_state *state = tn_module_state(script);
    ck_assert_int_eq(tn_state_count(state), 1);
    TN_PROVES("SCR-011");
    tn_state_drop(state);
    free(code);
    tn_module_drop(script);
    tn_module_drop(conv);
    tn_module_drop(net);
}
END_TEST

START_TEST(wrong_inputs_are_refused_with_the_signature)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Linear(3, 2)"), *script;
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_tensor *x = numbers(0), *wrong = tn_cast(x, TN_I64);
    tn_pack *pack = tn_pack_new(), *out = tn_pack_new();
    how.dynamic = "[N, 3]";
    script = tn_module_script(net, x, &how);
    ck_made(script);
    ck_ok(tn_pack_add(pack, NULL, tn_value_tensor(x)));
    ck_ok(tn_pack_add(pack, NULL, tn_value_tensor(x)));
    ck_assert_int_ne(tn_module_call_pack(script, pack, out), TN_OK);
    ck_error(TN_ERR_TYPE, "forward(self : Linear, input : float32[N, 3])",
             "got 2 positional and 0 named");
    ck_assert_ptr_null(tn_module_call(script, wrong));
    ck_error(tn_error_last()->code, "forward(self : Linear, input : float32[N, 3])",
             "input input is int64");
    ck_same(tn_module_call(script, tn_cat((tn_tensor *[]){ x, x }, 2, 0)),
            tn_module_call(net, tn_cat((tn_tensor *[]){ x, x }, 2, 0)));
    tn_module_drop(script);
    script = script_of(net, x); /* for these sizes only */
    ck_made(tn_module_call(script, x));
    tn_pack_drop(pack);
    tn_pack_drop(out);
    tn_module_drop(script);
    tn_module_drop(net);
}
END_TEST

START_TEST(what_a_script_cannot_hold_is_refused)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 3), ReLU())"), *fc;
    tn_tensor *x = numbers(0);
    tn_graph *graph, *both[2];
    fc = tn_module_child(net, "0");
    ck_ok(tn_parametrize_with(fc, "weight", "Symmetric()"));
    ck_assert_ptr_null(tn_module_script(net, x, NULL));
    ck_error(TN_ERR_RUNTIME, "Parametrization is not working with scripting.", "\"0\" (Linear)");
    ck_ok(tn_parametrize_remove(fc, "weight", true));
    ck_ok(tn_prune(fc, "weight", "L1Unstructured(amount=2)"));
    ck_assert_ptr_null(tn_module_script(net, x, NULL));
    ck_error(TN_ERR_RUNTIME, "computed tensor \"weight\"", "\"0\" (Linear)");
    ck_ok(tn_prune_remove(fc, "weight"));
    TN_PROVES("SCR-026");
    graph = traced(net, x, 0);
    ck_assert_ptr_null(tn_script_new(net, &graph, 1));
    ck_error(TN_ERR_VALUE, "a call of the module Linear", "tn_graph_inline");
    ck_ok(tn_graph_inline(graph));
    both[0] = both[1] = graph;
    ck_assert_ptr_null(tn_script_new(net, both, 2));
    ck_error(TN_ERR_VALUE, "graphs: number 0 of 2 is for all modes", "tn_script_new");
    ck_assert_ptr_null(tn_script_new(net, both, 0));
    ck_error(TN_ERR_VALUE, "got 0", "expected 1 to 3");
    ck_ok(tn_module_set(fc, "weight",
                        tn_parameter(tn_tensor_full(TN_SHAPE(3, 3), 1.0, TN_F32, NULL), true)));
    ck_assert_ptr_null(tn_script_new(net, &graph, 1));
    ck_error(TN_ERR_VALUE, "another tensor", "0.weight");
    tn_graph_drop(graph);
    tn_module_drop(net);
}
END_TEST

START_TEST(a_script_has_its_constants_in_a_child)
{
    TN_SCOPE;
    tn_module *net = own(mixed_forward), *child = tn_module_new("Linear(3, 3)");
    ck_ok(tn_module_add_child(net, "_constants", child));
    ck_assert_ptr_null(tn_module_script(net, numbers(0), NULL));
    ck_error(TN_ERR_KEY, "child \"_constants\"", "expected another name");
    tn_module_drop(child);
    tn_module_drop(net);
}
END_TEST

START_TEST(hooks_before_the_script_are_in_it)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 3), ReLU())"), *script;
    tn_tensor *x = numbers(0), *y;
    int n = 0;
    tn_hook_handle handle = tn_module_hook_forward(tn_module_child(net, "0"), twice, 0, &n, NULL);
    ck_assert(handle != 0);
    script = script_of(net, x);
    y = tn_module_call(net, x);
    n = 0;
    ck_same(tn_module_call(script, x), y);
    ck_assert_int_eq(n, 0);
    ck_assert(tn_hook_remove(handle));
    ck_same(tn_module_call(script, x), y);
    tn_module_drop(script);
    tn_module_drop(net);
}
END_TEST

START_TEST(a_folded_graph_makes_a_script_for_evaluation)
{
    TN_SCOPE;
    tn_module *net = network(), *made, *script;
    tn_tensor *x = images();
    tn_graph *graph;
    char *text;
    ck_ok(tn_module_eval(net));
    graph = traced(net, x, TN_TRACE_THROUGH);
    ck_ok(tn_graph_pass(graph, "conv_bn, dropout, dead"));
    made = tn_graph_module(graph);
    ck_made(made);
    script = tn_script_new(made, &graph, 1);
    ck_made(script);
    ck_assert(!tn_module_is_training(script));
    text = printed(tn_script_graph(script, false), "text");
    ck_assert_msg(strstr(text, "# tenon.graph 1, eval(\"1\", \"3\"), fixed, inference, folded\n"),
                  "%s", text);
    ck_assert_ptr_null(strstr(text, "batch_norm"));
    ck_assert_ptr_null(tn_script_graph(script, true));
    ck_ok(tn_inference_begin(true));
    ck_same(tn_module_call(script, x), run1(graph, x));
    tn_inference_end();
    ck_assert_ptr_null(tn_module_call(script, x));
    ck_error(TN_ERR_RUNTIME, "made this graph for inference", "gradient");
    ck_ok(tn_module_train(script, true));
    ck_assert_ptr_null(tn_module_call(script, x));
    ck_error(TN_ERR_RUNTIME, "traced in evaluation mode", "training mode");
    free(text);
    tn_graph_drop(graph);
    tn_module_drop(script);
    tn_module_drop(made);
    tn_module_drop(net);
}
END_TEST

static bool make_again(void *user)
{
    TN_SCOPE;
    tn_module *script = tn_module_script(user, numbers(0), NULL);
    bool made = script != NULL;

    if (made)
        tn_module_drop(script);
    return made;
}

START_TEST(every_failed_allocation_is_reported)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 3), Dropout())");
    ck_assert(make_again(net));
    ck_assert_int_gt(fail_each_allocation(make_again, net), 50);
    ck_assert(tn_module_is_training(net));
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_script_computes_and_trains_as_its_module,
                                   a_script_has_the_methods_of_a_module,
                                   a_script_prints_its_original_names,
                                   the_slots_of_a_script_are_frozen,
                                   constants_are_in_the_code_and_not_in_the_state,
                                   wrong_inputs_are_refused_with_the_signature,
                                   what_a_script_cannot_hold_is_refused,
                                   a_script_has_its_constants_in_a_child,
                                   hooks_before_the_script_are_in_it,
                                   a_folded_graph_makes_a_script_for_evaluation,
                                   every_failed_allocation_is_reported,
                                   NULL };
    return suite_run("scripts", tests);
}
