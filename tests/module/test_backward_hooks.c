/* SPDX-License-Identifier: MIT
 *
 * Full backward hooks and backward pre-hooks of one module: the gradients that they get, the
 * gradients that they return, when they run. Numbers and counts are those that PyTorch gives for
 * the same program. */
#include "tests/module/backward_hooks.h"

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
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
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
    *outcome = TN_OUTCOME_REPLACED;
    return tn_pack_add(replacement, NULL, tn_pack_at(grad_output, 0));
}

START_TEST(wrong_answers_and_failures_end_the_backward)
{
    TN_SCOPE;
    register_all();
    tn_module *m = parsed("Scale()");
    tn_hook_handle handle = tn_module_hook_backward(m, insist, 0, NULL, NULL);
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, filled(5)))), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "Backward hook for Modules where no input requires gradient "
                                   "should always return None or None for all gradients.");
    tn_hook_remove(handle);
    TN_PROVES("BWH-004");
    struct grads more = { .letter = 'm', .extra = 1 }, fails = { .letter = 'f', .fail = true };
    handle = full(m, &more, 0);
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, leaf(5)))), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME,
                   "Backward hook returned an invalid number of grad_input, got 2, but expected 1");
    tn_hook_remove(handle);
    TN_PROVES("BWH-008");
    handle = pre(m, &more, 0);
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, leaf(5)))), TN_ERR_RUNTIME);
    expect_failure(
        TN_ERR_RUNTIME,
        "Backward pre hook returned an invalid number of grad_output, got 2, but expected 1");
    tn_hook_remove(handle);
    handle = full(m, &fails, 0);
    tn_tensor *x = leaf(5);
    ck_assert_int_eq(tn_backward(tn_sum(tn_module_call(m, x))), TN_ERR_INDEX);
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
    backward(tn_add(tn_pack_tensor(out, 0), tn_mul_scalar(tn_pack_tensor(out, 2), 10)));
    expect_trace("pa");
    ck_assert_str_eq(a.in, "72.0,none,none");
    ck_assert_str_eq(a.out, "1.0,none,10.0");
    TN_PROVES("BWH-005", "BWH-006");
    ck_assert_float_eq(grad(x), 72);
    tn_pack_drop(out);
    out = mixed(m, x, z);
    backward(tn_pack_tensor(out, 0)); /* the other result is not part of this backward */
    ck_assert_str_eq(a.out, "1.0,none,none");
    ck_assert_str_eq(a.in, "2.0,none,0.0");
    ck_assert_float_eq(grad(z), 0);
    ck_assert_int_eq(a.calls, 2);
    tn_pack_drop(out);
    out = mixed(m, x, z);
    tn_tensor *loss = tn_sum(tn_pack_tensor(out, 2));
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
    expect_failure(TN_ERR_VALUE, "tn_module_hook_backward: flags: not for this kind of hook, got "
                                 "0x2");
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
    tn_set_log_sink(warn, NULL);
    ck_assert_int_eq(tn_module_call_pack(named, in, out), TN_OK);
    tn_set_log_sink(NULL, NULL);
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
    full(m, &a, 0); /* PyTorch refuses it after a hook of its older kind; here is one kind only */
    backward(tn_module_call(m, leaf(5)));
    expect_trace("a");
    ck_assert_str_eq(a.in, "30.0"); /* the last operator's would be 3 */
    TN_PROVES("BWH-024", "BWH-025");
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
        NULL,
    };
    return suite_run("backward hooks", tests);
}
