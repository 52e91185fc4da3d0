/* SPDX-License-Identifier: MIT
 *
 * Full backward hooks and backward pre-hooks, of one module and of all. Numbers and counts are
 * those that PyTorch gives for the same program. */
#include "tests/module/hooked.h"

#include <pthread.h>

/* What the hook saw of the last gradients, as text: "42,none" */
struct grads {
    char letter;
    double times; /* replaces every gradient with so many times it */
    double set;   /* replaces every gradient with this number */
    int extra;    /* so many values more in the replacement */
    bool fail;
    int calls;
    char in[64], out[64];
    int64_t in_ndim, in_size;
};

static void shown(const tn_pack *pack, char *out, size_t size)
{
    out[0] = '\0';
    for (int64_t i = 0; i < tn_pack_count(pack); i++) {
        size_t at = strlen(out);
        const char *comma = i > 0 ? "," : "";
        if (tn_pack_at(pack, i).kind == TN_VALUE_NONE)
            tn_snprint(out + at, size - at, "%snone", comma);
        else
            tn_snprint(out + at, size - at, "%s%g", comma, (double)first(tn_pack_tensor(pack, i)));
    }
}

static tn_status answer(struct grads *g, const tn_pack *seen, tn_pack *replacement,
                        tn_hook_outcome *outcome)
{
    strncat(trace, &g->letter, 1);
    g->calls++;
    if (g->fail)
        return tn_fail(TN_ERR_INDEX, "hook %c fails", g->letter);
    if (g->times == 0 && g->set == 0 && g->extra == 0)
        return TN_OK;
    *outcome = TN_HOOK_REPLACED;
    tn_status status = TN_OK;
    for (int64_t i = 0; i < tn_pack_count(seen) + g->extra && status == TN_OK; i++) {
        tn_value value = { .kind = TN_VALUE_NONE };
        if (i < tn_pack_count(seen) && tn_pack_at(seen, i).kind == TN_VALUE_TENSOR) {
            tn_tensor *t = tn_pack_tensor(seen, i);
            value = tn_value_tensor(
                g->set != 0 ? tn_tensor_full(tn_tensor_shape(t), g->set, tn_tensor_dtype(t), NULL)
                            : tn_mul_scalar(t, g->times != 0 ? g->times : 1));
        }
        status = tn_pack_add(replacement, NULL, value);
    }
    return status;
}

static tn_status on_pre(void *user, tn_module *module, const tn_pack *grad_output,
                        tn_pack *replacement, tn_hook_outcome *outcome)
{
    struct grads *g = user;
    (void)module;
    shown(grad_output, g->out, sizeof g->out);
    return answer(g, grad_output, replacement, outcome);
}

static tn_status on_full(void *user, tn_module *module, const tn_pack *grad_input,
                         const tn_pack *grad_output, tn_pack *replacement, tn_hook_outcome *outcome)
{
    struct grads *g = user;
    (void)module;
    shown(grad_input, g->in, sizeof g->in);
    shown(grad_output, g->out, sizeof g->out);
    return answer(g, grad_input, replacement, outcome);
}

static tn_hook_handle full(tn_module *m, struct grads *g, uint32_t flags)
{
    tn_hook_handle handle = tn_module_hook_backward(m, on_full, flags, g, act_release);
    ck_assert_msg(handle != 0, "%s", tn_error_text());
    return handle;
}

static tn_hook_handle pre(tn_module *m, struct grads *g, uint32_t flags)
{
    tn_hook_handle handle = tn_module_hook_backward_pre(m, on_pre, flags, g, act_release);
    ck_assert_msg(handle != 0, "%s", tn_error_text());
    return handle;
}

static tn_tensor *leaf(double value)
{
    tn_tensor *x = filled(value);
    ck_assert_int_eq(tn_tensor_set_requires_grad(x, true), TN_OK);
    return x;
}

static void backward(tn_tensor *y)
{
    ck_assert_msg(tn_backward(tn_sum(y, NULL)) == TN_OK, "%s", tn_error_text());
}

static float grad(tn_tensor *x)
{
    ck_assert_ptr_ne(tn_tensor_grad(x), TN_NONE);
    return first(tn_tensor_grad(x));
}

/* ---- Mix(a, words, b): 2a and ab and a string; "cut" ignores its input; "named" gives by name -------- */

static tn_status mix_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_tensor *a = tn_pack_tensor(input, 0), *b = tn_pack_tensor(input, 2);
    tn_status status = tn_pack_add(output, NULL, tn_value_tensor(tn_mul_scalar(a, 2)));
    (void)self;
    if (status == TN_OK)
        status = tn_pack_add(output, NULL, tn_value_string("between"));
    return status == TN_OK ? tn_pack_add(output, NULL, tn_value_tensor(tn_mul(a, b))) : status;
}

static tn_tensor *inside; /* what the last forward got */

static tn_tensor *keeper_forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    tn_tensor_drop(inside);
    inside = tn_tensor_keep(input);
    return tn_mul_scalar(input, 1);
}

static tn_tensor *writer_forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    return tn_mul_scalar(tn_add_scalar_(input, 1), 1);
}

static tn_tensor *cut_forward(tn_module *self, tn_tensor *input)
{
    (void)input;
    return tn_mul_scalar(tn_module_get(self, "weight"), 2);
}

static tn_status naming_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    (void)self;
    return tn_pack_add(output, "y", tn_value_tensor(tn_mul_scalar(tn_pack_tensor(input, 0), 2)));
}

static tn_tensor *square_forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    return tn_mul(input, input);
}

static tn_tensor *steps_forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    return tn_mul_scalar(tn_mul(input, input), 3);
}

static const tn_layer steps = { TN_HEAD(tn_layer), .name = "Steps", .forward = steps_forward };
static const tn_layer mix = { TN_HEAD(tn_layer), .name = "Mix", .call = mix_call };
static const tn_layer keeper = { TN_HEAD(tn_layer), .name = "Keeper", .forward = keeper_forward };
static const tn_layer writer = { TN_HEAD(tn_layer), .name = "Writer", .forward = writer_forward };
static const tn_layer cutter = { TN_HEAD(tn_layer), .name = "Cutter", .build = scale_build,
                                 .forward = cut_forward };
static const tn_layer naming = { TN_HEAD(tn_layer), .name = "Naming", .call = naming_call };
static const tn_layer square = { TN_HEAD(tn_layer), .name = "Square", .forward = square_forward };

static void register_all(void)
{
    const tn_layer *const layers[] = { &mix, &keeper, &writer, &cutter, &naming, &square, &steps };
    register_hooked();
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        ck_assert_int_eq(tn_register(layers[i]), TN_OK);
}

/* Three arguments through Mix. */
static tn_pack *mixed(tn_module *m, tn_tensor *a, tn_tensor *b)
{
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_pack_add(in, NULL, tn_value_tensor(a));
    tn_pack_add(in, NULL, tn_value_string("words"));
    tn_pack_add(in, NULL, tn_value_tensor(b));
    ck_assert_msg(tn_module_call_pack(m, in, out) == TN_OK, "%s", tn_error_text());
    tn_pack_drop(in);
    return out;
}

START_TEST(a_full_hook_sees_and_replaces_the_gradients_of_inputs_and_not_those_of_parameters)
{
    register_all();
    uint64_t scope = tn_scope_begin();
    tn_module *m = parsed("Scale()");
    struct grads plain = { .letter = 'a' }, answer42 = { .letter = 'b', .set = 42 },
                 last = { .letter = 'c' };
    tn_tensor *x = leaf(5);
    full(m, &plain, 0);
    full(m, &answer42, 0);
    full(m, &last, 0);
    backward(tn_module_call(m, x));
    expect_trace("abc");
    ck_assert_str_eq(plain.in, "3.0");
    ck_assert_str_eq(plain.out, "1.0");
    TN_PROVES("BWH-001");
    ck_assert_str_eq(last.in, "42.0");
    ck_assert_float_eq(grad(x), 42);
    ck_assert_float_eq(grad(tn_module_get(m, "weight")), 5);
    ck_assert_float_eq(first(x), 5);
    TN_PROVES("BWH-007", "BWH-009");
    tn_module_drop(m);
    ck_assert_int_eq(released, 0); /* the graph holds them */
    tn_scope_end(scope);
    ck_assert_int_eq(released, 3);
}
END_TEST

START_TEST(without_an_input_that_requires_a_gradient_it_fires_at_the_outputs)
{
    TN_SCOPE;
    register_all();
    tn_module *m = parsed("Scale()");
    struct grads a = { .letter = 'a' }, p = { .letter = 'p' }, wrong = { .letter = 'w' };
    full(m, &a, 0);
    pre(m, &p, 0);
    backward(tn_module_call(m, filled(5)));
    expect_trace("pa");
    ck_assert_str_eq(a.in, "none");
    ck_assert_str_eq(a.out, "1.0");
    TN_PROVES("BWH-002", "BWH-011");
    tn_grad_begin(false);
    ck_assert_ptr_nonnull(tn_module_call(m, leaf(5)));
    tn_grad_end();
    tn_module *none = parsed("ReLU()");
    struct grads never = { .letter = 'n' };
    full(none, &never, 0);
    pre(none, &never, 0);
    tn_tensor *y = tn_module_call(none, filled(1));
    ck_assert(!tn_tensor_requires_grad(y));
    backward(tn_mul(y, leaf(1)));
    expect_trace("");
    TN_PROVES("BWH-003");
    wrong.extra = 1; /* as many values more, but all none: that is allowed */
    tn_hook_handle handle = full(m, &wrong, 0);
    backward(tn_module_call(m, filled(5)));
    expect_trace("paw");
    tn_hook_remove(handle);
    tn_module_drop(none);
    tn_module_drop(m);
}
END_TEST

static tn_status insist(void *user, tn_module *module, const tn_pack *grad_input,
                        const tn_pack *grad_output, tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)user;
    (void)module;
    (void)grad_input;
    *outcome = TN_HOOK_REPLACED;
    return tn_pack_add(replacement, NULL, tn_pack_at(grad_output, 0));
}

START_TEST(wrong_answers_and_failures_end_the_backward)
{
    TN_SCOPE;
    register_all();
    tn_module *m = parsed("Scale()");
    tn_hook_handle handle = tn_module_hook_backward(m, insist, 0, NULL, NULL);
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, filled(5)), NULL)), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "Backward hook for Modules where no input requires gradient "
                                   "should always return None or None for all gradients.");
    tn_hook_remove(handle);
    TN_PROVES("BWH-004");
    struct grads more = { .letter = 'm', .extra = 1 }, fails = { .letter = 'f', .fail = true };
    handle = full(m, &more, 0);
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, leaf(5)), NULL)), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME,
                   "Backward hook returned an invalid number of grad_input, got 2, but expected 1");
    tn_hook_remove(handle);
    TN_PROVES("BWH-008");
    handle = pre(m, &more, 0);
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, leaf(5)), NULL)), TN_ERR_RUNTIME);
    expect_failure(
        TN_ERR_RUNTIME,
        "Backward pre hook returned an invalid number of grad_output, got 2, but expected 1");
    tn_hook_remove(handle);
    handle = full(m, &fails, 0);
    tn_tensor *x = leaf(5);
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, x), NULL)), TN_ERR_INDEX);
    expect_failure(TN_ERR_INDEX, "hook f fails");
    ck_assert_ptr_eq(tn_tensor_grad(x), TN_NONE);
    tn_hook_remove(handle);
    TN_PROVES("BWH-023");
    tn_module_drop(m);
}
END_TEST

START_TEST(gradients_stand_where_the_arguments_and_the_results_stand)
{
    TN_SCOPE;
    register_all();
    tn_module *m = parsed("Mix()");
    struct grads a = { .letter = 'a' }, p = { .letter = 'p' };
    tn_tensor *x = leaf(5), *y = filled(7), *z = leaf(7);
    full(m, &a, 0);
    pre(m, &p, 0);
    tn_pack *out = mixed(m, x, y);
    backward(tn_add(tn_pack_tensor(out, 0), tn_mul_scalar(tn_pack_tensor(out, 2), 10), NULL));
    expect_trace("pa");
    ck_assert_str_eq(a.in, "72.0,none,none");
    ck_assert_str_eq(a.out, "1.0,none,10.0");
    TN_PROVES("BWH-005", "BWH-006");
    ck_assert_float_eq(grad(x), 72);
    tn_pack_drop(out);
    out = mixed(m, x, z);
    backward(tn_pack_tensor(out, 0)); /* the other result has no part in it */
    ck_assert_str_eq(a.out, "1.0,none,none");
    ck_assert_str_eq(a.in, "2.0,none,0.0");
    ck_assert_float_eq(grad(z), 0);
    ck_assert_int_eq(a.calls, 2);
    tn_pack_drop(out);
    out = mixed(m, x, z);
    tn_tensor *loss = tn_sum(tn_pack_tensor(out, 2), NULL);
    tn_backward_options keep = { .size = sizeof keep, .retain_graph = 1 };
    ck_assert_int_eq(tn_backward_from(&loss, NULL, 1, &keep), TN_OK);
    ck_assert_str_eq(a.out, "none,none,1.0");
    ck_assert_str_eq(a.in, "7.0,none,5.0");
    ck_assert_int_eq(tn_backward(loss), TN_OK);
    ck_assert_int_eq(a.calls, 4);
    ck_assert_int_eq(p.calls, 4);
    TN_PROVES("BWH-019", "BWH-021");
    tn_pack_drop(out);
    tn_module_drop(m);
}
END_TEST

START_TEST(pre_hooks_scale_what_the_full_hooks_and_the_module_see)
{
    TN_SCOPE;
    register_all();
    tn_module *m = parsed("Scale()");
    struct grads half = { .letter = 'h', .times = 0.5 }, again = { .letter = 'i', .times = 0.5 },
                 a = { .letter = 'a' };
    tn_tensor *x = leaf(8);
    pre(m, &half, 0);
    pre(m, &again, 0);
    full(m, &a, 0);
    backward(tn_module_call(m, x));
    expect_trace("hia");
    ck_assert_str_eq(again.out, "0.5");
    ck_assert_str_eq(a.out, "0.25");
    ck_assert_str_eq(a.in, "0.75");
    ck_assert_float_eq(grad(x), 0.75);
    ck_assert_float_eq(grad(tn_module_get(m, "weight")), 2);
    TN_PROVES("BWH-010");
    tn_module_unhook(m);
    struct grads n[5];
    for (int i = 0; i < 5; i++)
        n[i] = (struct grads){ .letter = (char)('0' + i) };
    full(m, &n[0], 0);
    full(m, &n[1], 0);
    full(m, &n[2], 0);
    full(m, &n[3], TN_HOOK_PREPEND);
    full(m, &n[4], TN_HOOK_PREPEND);
    pre(m, &n[0], TN_HOOK_PREPEND);
    pre(m, &n[1], TN_HOOK_PREPEND);
    pre(m, &n[2], 0);
    pre(m, &n[3], 0);
    pre(m, &n[4], 0);
    backward(tn_module_call(m, x));
    expect_trace("1023443012");
    TN_PROVES("BWH-012");
    ck_assert_uint_eq(tn_module_hook_backward(m, on_full, TN_HOOK_NAMED, NULL, NULL), 0);
    expect_failure(TN_ERR_VALUE, "tn_module_hook_backward: flags 0x2 are not for this kind");
    tn_module_drop(m);
}
END_TEST

START_TEST(hooks_are_those_of_the_time_of_the_call)
{
    TN_SCOPE;
    register_all();
    tn_module *m = parsed("Scale()");
    struct grads early = { .letter = 'e' }, late = { .letter = 'l' };
    tn_hook_handle handle = full(m, &early, 0);
    tn_tensor *y = tn_module_call(m, leaf(1));
    tn_hook_remove(handle);
    full(m, &late, 0);
    ck_assert_int_eq(released, 0);
    backward(y);
    expect_trace("e");
    backward(tn_module_call(m, leaf(1)));
    expect_trace("l");
    TN_PROVES("BWH-013");
    tn_tensor *x = leaf(1), *twice = tn_module_call(m, tn_module_call(m, x));
    tn_module_drop(m); /* the graph keeps what it needs */
    backward(twice);
    expect_trace("ll");
    ck_assert_float_eq(grad(x), 9);
    TN_PROVES("BWH-022");
}
END_TEST

START_TEST(identity_nodes_look_at_the_same_memory_and_keep_what_requires_a_gradient)
{
    TN_SCOPE;
    register_all();
    tn_module *m = parsed("Keeper()");
    struct grads a = { .letter = 'a' };
    tn_tensor *x = leaf(1), *plain = filled(1), *y;
    full(m, &a, 0);
    y = tn_module_call(m, x);
    ck_assert_ptr_ne(inside, x);
    ck_assert_ptr_eq(tn_tensor_data(inside), tn_tensor_data(x));
    ck_assert(tn_tensor_requires_grad(inside));
    ck_assert_str_eq(tn_tensor_grad_op(inside), "BackwardHookFunction");
    ck_assert_str_eq(tn_tensor_grad_op(y), "BackwardHookFunction");
    tn_module_call(m, plain);
    ck_assert(!tn_tensor_requires_grad(inside));
    tn_grad_begin(false);
    tn_module_call(m, x);
    tn_grad_end();
    ck_assert_ptr_eq(inside, x);
    TN_PROVES("BWH-014", "BWH-015");
    tn_tensor_drop(inside);
    inside = NULL;
    tn_module_drop(m);
}
END_TEST

START_TEST(changing_in_place_what_a_node_gave_is_refused)
{
    register_all();
    tn_module *m = parsed("Keeper()"), *bad = parsed("Writer()");
    struct grads a = { .letter = 'a' };
    for (int kind = 0; kind < 2; kind++) {
        TN_SCOPE;
        tn_hook_handle one = kind == 0 ? full(m, &a, 0) : pre(m, &a, 0),
                       two = kind == 0 ? full(bad, &a, 0) : pre(bad, &a, 0);
        tn_tensor *x = leaf(1), *own = tn_mul_scalar(x, 1), *y;
        backward(tn_module_call(m, x));
        expect_trace("a");
        ck_assert_ptr_null(tn_module_call(bad, tn_mul_scalar(x, 1)));
        expect_failure(
            TN_ERR_RUNTIME,
            "Output 0 of BackwardHookFunctionBackward is a view and is being modified inplace");
        tn_module_call(m, own);
        ck_assert_ptr_nonnull(tn_mul_scalar_(tn_select(own, 0, 0), 1));
        ck_assert_ptr_null(tn_add_scalar(inside, 2));
        expect_failure(TN_ERR_RUNTIME,
                       "Output 0 of BackwardHookFunctionBackward is a view and its base or another "
                       "view of its base has been modified inplace");
        y = tn_module_call(m, x);
        ck_assert_ptr_null(tn_add_scalar_(y, 1));
        expect_failure(TN_ERR_RUNTIME,
                       "BackwardHookFunctionBackward is a view and is being modified inplace");
        ck_assert_ptr_null(tn_add_scalar_(tn_select(y, 0, 0), 1)); /* nor through a view of it */
        expect_failure(TN_ERR_RUNTIME, "is a view and is being modified inplace");
        tn_hook_remove(one);
        tn_hook_remove(two);
        tn_tensor_drop(inside);
        inside = NULL;
    }
    TN_PROVES("BWH-016");
    tn_module_drop(m);
    tn_module_drop(bad);
}
END_TEST

static char warned[512];
static int warnings;

static void warn(void *user, int level, const char *plugin, const char *text)
{
    (void)user;
    (void)plugin;
    if (level == TN_LOG_WARNING) {
        tn_snprint(warned, sizeof warned, "%s", text);
        warnings++;
    }
}

START_TEST(named_arguments_and_named_results_are_not_tracked)
{
    TN_SCOPE;
    register_all();
    tn_module *m = parsed("ReLU()"), *named = parsed("Naming()");
    struct grads a = { .letter = 'a' }, never = { .letter = 'n' };
    struct act forward = { .letter = 'f' };
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_pack_add(in, "input", tn_value_tensor(leaf(1)));
    full(m, &a, 0);
    ck_assert_int_eq(tn_module_call_pack(m, in, out), TN_OK);
    backward(tn_pack_tensor(out, 0));
    expect_trace("a");
    ck_assert_str_eq(a.in, "");
    ck_assert_str_eq(a.out, "1.0");
    TN_PROVES("BWH-017");
    tn_pack_drop(in);
    tn_pack_drop(out);
    in = tn_pack_new(), out = tn_pack_new();
    tn_pack_add(in, NULL, tn_value_tensor(leaf(1)));
    full(named, &never, 0);
    tn_module_hook_forward(named, on_forward, 0, &forward, NULL);
    tn_log_set_sink(warn, NULL);
    ck_assert_int_eq(tn_module_call_pack(named, in, out), TN_OK);
    tn_log_set_sink(NULL, NULL);
    backward(tn_pack_tensor(out, 0));
    ck_assert_int_eq(warnings, 1);
    ck_assert_ptr_nonnull(strstr(warned, "For backward hooks to be called, module output should be "
                                         "a Tensor or a tuple of Tensors"));
    expect_trace("f");
    TN_PROVES("BWH-018", "BWH-026");
    tn_pack_drop(in);
    tn_pack_drop(out);
    tn_module_drop(m);
    tn_module_drop(named);
}
END_TEST

START_TEST(hooks_see_the_modules_gradients_not_those_of_its_last_operator)
{
    TN_SCOPE;
    register_all();
    tn_module *m = parsed("Steps()");
    struct grads a = { .letter = 'a' };
    tn_hook_remove(full(m, &a, 0));
    full(m, &a, 0); /* there is one kind: nothing that was there before refuses it */
    backward(tn_module_call(m, leaf(5)));
    expect_trace("a");
    ck_assert_str_eq(a.in, "30.0"); /* the last operator's would be 3 */
    TN_PROVES("BWH-024", "BWH-025");
    tn_module_drop(m);
}
END_TEST

START_TEST(where_the_way_to_the_input_is_cut_the_full_hook_does_not_fire)
{
    TN_SCOPE;
    register_all();
    tn_module *m = parsed("Cutter()");
    struct grads a = { .letter = 'a' }, p = { .letter = 'p' };
    tn_tensor *x = leaf(1);
    full(m, &a, 0);
    pre(m, &p, 0);
    backward(tn_module_call(m, x));
    expect_trace("p");
    ck_assert_float_eq(grad(tn_module_get(m, "weight")), 2);
    ck_assert_ptr_eq(tn_tensor_grad(x), TN_NONE);
    TN_PROVES("BWH-020");
    tn_module_drop(m);
}
END_TEST

START_TEST(fused_operators_and_shapes_are_no_different)
{
    TN_SCOPE;
    register_all();
    tn_module *norm = parsed("LogSoftmax(dim=1)"), *linear = parsed("Linear(3, 5)");
    struct grads a = { .letter = 'a' }, b = { .letter = 'b' };
    tn_tensor *x = tn_tensor_full(TN_SHAPE(2, 3), 1, TN_F32, NULL);
    tn_tensor_set_requires_grad(x, true);
    full(norm, &a, 0);
    full(linear, &b, 0);
    backward(tn_module_call(norm, tn_module_call(linear, x)));
    expect_trace("ab");
    ck_assert_ptr_null(strchr(a.in, ','));
    ck_assert_ptr_null(strchr(a.out, ','));
    ck_assert_str_eq(a.out, "1.0");
    ck_assert_int_eq(tn_tensor_ndim(tn_tensor_grad(x)), 2);
    TN_PROVES("BWH-027");
    tn_module_drop(norm);
    tn_module_drop(linear);
}
END_TEST

static tn_status shapes(void *user, tn_module *module, const tn_pack *grad_input,
                        const tn_pack *grad_output, tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)user;
    (void)module;
    (void)replacement;
    (void)outcome;
    tn_ints in = tn_tensor_shape(tn_pack_tensor(grad_input, 0)),
            out = tn_tensor_shape(tn_pack_tensor(grad_output, 0));
    ck_assert(in.count == 2 && in.at[0] == 2 && in.at[1] == 3);
    ck_assert(out.count == 2 && out.at[0] == 2 && out.at[1] == 5);
    strcat(trace, "s");
    return TN_OK;
}

START_TEST(gradients_have_the_shapes_of_inputs_and_outputs)
{
    TN_SCOPE;
    register_all();
    tn_module *linear = parsed("Linear(3, 5)");
    tn_tensor *x = tn_tensor_full(TN_SHAPE(2, 3), 1, TN_F32, NULL);
    tn_tensor_set_requires_grad(x, true);
    tn_module_hook_backward(linear, shapes, 0, NULL, NULL);
    backward(tn_module_call(linear, x));
    expect_trace("s");
    TN_PROVES("BWH-028");
    tn_module_drop(linear);
}
END_TEST

START_TEST(replaced_gradients_can_be_differentiated_again)
{
    TN_SCOPE;
    register_all();
    tn_module *m = parsed("Square()");
    struct grads a = { .letter = 'a', .times = 10 };
    tn_tensor *x = leaf(3), *y, *g, *gg;
    tn_backward_options again = { .size = sizeof again, .create_graph = 1 };
    full(m, &a, 0);
    y = tn_sum(tn_module_call(m, x), NULL);
    ck_assert_msg(tn_grad(&y, NULL, 1, &x, &g, 1, &again) == TN_OK, "%s", tn_error_text());
    ck_assert_float_eq(first(g), 60); /* 10 times 2x */
    expect_trace("a");
    g = tn_sum(g, NULL);
    ck_assert_msg(tn_grad(&g, NULL, 1, &x, &gg, 1, NULL) == TN_OK, "%s", tn_error_text());
    ck_assert_float_eq(first(gg), 20);
    expect_trace(""); /* that gradient did not come by the outputs */
    TN_PROVES("BWH-029");
    tn_module_drop(m);
}
END_TEST

START_TEST(global_backward_hooks_see_every_call_before_the_modules_own)
{
    register_all();
    uint64_t scope = tn_scope_begin();
    tn_module *m = parsed("Sequential(Scale(), Scale())");
    struct grads g = { .letter = 'g' }, q = { .letter = 'q' }, own = { .letter = 'o' },
                 p = { .letter = 'p', .times = 2 };
    struct act f = { .letter = 'f' }, b = { .letter = 'b' };
    tn_tensor *x = leaf(1);
    {
        TN_HOOK_BLOCK(tn_global_hook_backward(on_full, 0, &g, act_release));
        TN_HOOK_BLOCK(tn_global_hook_backward_pre(on_pre, 0, &q, act_release));
        TN_HOOK_BLOCK(tn_global_hook_forward_pre(on_forward_pre, 0, &b, NULL));
        TN_HOOK_BLOCK(tn_global_hook_forward(on_forward, 0, &f, NULL));
        full(m, &own, TN_HOOK_PREPEND);
        pre(m, &p, TN_HOOK_PREPEND);
        tn_tensor *y = tn_module_call(m, x);
        expect_trace("bbfbff");
        backward(y);
        expect_trace("qpqgqggo");
        ck_assert_int_eq(g.calls, 3);
        ck_assert_str_eq(g.in, "18.0");
        ck_assert_str_eq(own.in, "18.0");
    }
    TN_PROVES("GLH-001", "GLH-003", "GLH-004", "GLH-005");
    backward(tn_module_call(m, x));
    expect_trace("po");
    tn_module_drop(m);
    ck_assert_int_eq(released, 0); /* the graph holds them */
    tn_scope_end(scope);
    ck_assert_int_eq(released, 4);
}
END_TEST

/* ---- memory runs out ------------------------------------------------------------------------------ */

/* A call with hooks of every kind, and its backward. */
static void use(void)
{
    static struct grads g = { .letter = 'g', .times = 2 }, p = { .letter = 'p', .times = 2 };
    static struct act f = { .letter = 'f', .times = 2 }, b = { .letter = 'b', .add = 1 };
    TN_SCOPE;
    tn_module *m = tn_module_new("Sequential(Scale())");
    tn_module *inner = m != NULL ? tn_module_child_at(m, 0) : NULL;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(2), 1, TN_F32, NULL);
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    if (x != NULL)
        tn_tensor_set_requires_grad(x, true);
    trace[0] = '\0';
    if (!tn_failed()) {
        tn_pack_add(in, NULL, tn_value_tensor(x));
        tn_module_hook_forward_pre(inner, on_forward_pre, 0, &b, act_release);
        tn_module_hook_forward(inner, on_forward, TN_HOOK_ALWAYS, &f, act_release);
        tn_module_hook_backward(inner, on_full, 0, &g, act_release);
        tn_module_hook_backward_pre(inner, on_pre, 0, &p, act_release);
    }
    if (!tn_failed() && tn_module_call_pack(m, in, out) == TN_OK)
        tn_backward(tn_sum(tn_pack_tensor(out, 0), NULL));
    tn_module_drop(m);
    tn_pack_drop(in);
    tn_pack_drop(out);
}

START_TEST(each_allocation_of_a_call_with_hooks_fails_in_turn)
{
    register_all();
    tn_log_set_sink(warn, NULL);
    use();
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    expect_trace("bfpg");
    ck_assert_int_eq(released, 4);
    int64_t nodes = tn_graph_node_count(), live = live_bytes();
    int failures = 0;
    for (uint64_t n = 1; n < 100000; n++) {
        tn__fail_alloc(n);
        use();
        bool reached = tn__fail_alloc(0) >= n;
        ck_assert_msg(!tn_failed() || tn_error_code() == TN_ERR_MEMORY, "allocation %d: %s", (int)n,
                      tn_error_text());
        failures += tn_failed();
        tn_error_clear();
        ck_assert_int_eq(tn__handle_count(), 0);
        ck_assert_int_eq(tn_graph_node_count(), nodes);
        ck_assert_int_eq(live_bytes(), live);
        if (!reached)
            break;
    }
    ck_assert_int_gt(failures, 40);
    tn_log_set_sink(NULL, NULL);
}
END_TEST

/* ---- one graph, several backwards at a time ------------------------------------------------------- */

static _Atomic int counted, wrong;

static tn_status count(void *user, tn_module *module, const tn_pack *grad_input,
                       const tn_pack *grad_output, tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)user;
    (void)module;
    (void)replacement;
    (void)outcome;
    float in = first(tn_pack_tensor(grad_input, 0)), out = first(tn_pack_tensor(grad_output, 0));
    atomic_fetch_add(&counted, 1);
    if (in != 3 * out)
        atomic_fetch_add(&wrong, 1);
    return TN_OK;
}

struct job {
    tn_tensor *x, *y;
    double seed;
    bool failed;
};

static void *differentiate(void *user)
{
    struct job *job = user;
    tn_backward_options keep = { .size = sizeof keep, .retain_graph = 1 };
    for (int i = 0; i < 100; i++) {
        TN_SCOPE;
        tn_tensor *cotangent = tn_tensor_full(TN_SHAPE(2), job->seed, TN_F32, NULL), *g;
        if (tn_grad(&job->y, &cotangent, 1, &job->x, &g, 1, &keep) != TN_OK ||
            first(g) != 3 * job->seed)
            job->failed = true;
    }
    return NULL;
}

START_TEST(several_threads_may_go_back_through_one_call)
{
    TN_SCOPE;
    register_all();
    tn_module *m = parsed("Scale()");
    tn_tensor *x = leaf(1), *y;
    pthread_t threads[4];
    struct job jobs[4];
    tn_module_hook_backward(m, count, 0, NULL, NULL);
    y = tn_module_call(m, x);
    for (int i = 0; i < 4; i++) {
        jobs[i] = (struct job){ x, y, i + 1, false };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, differentiate, &jobs[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        ck_assert(!jobs[i].failed);
    }
    ck_assert_int_eq(atomic_load(&counted), 400);
    ck_assert_int_eq(atomic_load(&wrong), 0);
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_full_hook_sees_and_replaces_the_gradients_of_inputs_and_not_those_of_parameters,
        without_an_input_that_requires_a_gradient_it_fires_at_the_outputs,
        wrong_answers_and_failures_end_the_backward,
        gradients_stand_where_the_arguments_and_the_results_stand,
        pre_hooks_scale_what_the_full_hooks_and_the_module_see,
        hooks_are_those_of_the_time_of_the_call,
        identity_nodes_look_at_the_same_memory_and_keep_what_requires_a_gradient,
        changing_in_place_what_a_node_gave_is_refused,
        named_arguments_and_named_results_are_not_tracked,
        hooks_see_the_modules_gradients_not_those_of_its_last_operator,
        where_the_way_to_the_input_is_cut_the_full_hook_does_not_fire,
        fused_operators_and_shapes_are_no_different,
        gradients_have_the_shapes_of_inputs_and_outputs,
        replaced_gradients_can_be_differentiated_again,
        global_backward_hooks_see_every_call_before_the_modules_own,
        each_allocation_of_a_call_with_hooks_fails_in_turn,
        several_threads_may_go_back_through_one_call,
        NULL,
    };
    return suite_run("backward hooks", tests);
}
