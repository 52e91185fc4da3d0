/* SPDX-License-Identifier: MIT
 *
 * Forward pre-hooks and forward hooks: what they see, replace and cannot. */
#include "tests/module/forward_hooks.h"

START_TEST(a_call_runs_pre_hooks_forward_hooks_and_the_layers_function_alone_none)
{
    TN_SCOPE;
    register_hooked();
    tn_module *m = parsed("Probe(1)"), *tree;
    struct act a = { .letter = 'a' }, b = { .letter = 'b' };
    pre(m, &a, 0);
    after(m, &b, 0);
    ck_assert_float_eq(first(tn_module_call(m, filled(1))), 2);
    expect_trace("ab");
    ck_assert_double_eq(a.seen, 1);
    ck_assert_double_eq(b.seen, 2);
    ck_assert_ptr_eq(a.module, m);
    ck_assert_ptr_eq(b.module, m);
    ck_assert_float_eq(first(probe_forward(m, filled(1))), 2);
    expect_trace("");
    TN_PROVES("FWH-001", "FWH-023");
    tree = parsed("Unheard(\n  (0): ReLU()\n)");
    ck_assert_ptr_null(tn_module_call(tree, filled(1)));
    expect_failure(TN_ERR_NOT_IMPLEMENTED,
                   "Module [Unheard] is missing the required \"forward\" function");
    TN_PROVES("FWH-002");
    tn_module_drop(tree);
    tn_module_drop(m);
    ck_assert_int_eq(released, 2);
}
END_TEST

START_TEST(pre_hooks_replace_the_arguments_one_after_the_other)
{
    TN_SCOPE;
    register_hooked();
    tn_module *m = parsed("Scale()");
    struct act a = { .letter = 'a', .add = 1 }, b = { .letter = 'b', .add = 1 },
               c = { .letter = 'c' };
    pre(m, &a, 0);
    pre(m, &b, 0);
    pre(m, &c, 0);
    ck_assert_float_eq(first(tn_module_call(m, filled(5))), 21);
    expect_trace("abc");
    ck_assert_double_eq(b.seen, 6);
    ck_assert_double_eq(c.seen, 7);
    TN_PROVES("FWH-003", "FWH-004");
    tn_module_drop(m);
}
END_TEST

static tn_status swap_arity(void *user, tn_module *module, const tn_pack *input,
                            tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)user;
    (void)module;
    *outcome = TN_OUTCOME_REPLACED;
    tn_status status = tn_pack_add(replacement, NULL, tn_pack_at(input, 0));
    return status == TN_OK ? tn_pack_add(replacement, "b", tn_value_tensor(filled(100))) : status;
}

START_TEST(a_hook_with_named_arguments_gives_both_and_what_is_malformed_is_refused)
{
    TN_SCOPE;
    register_hooked();
    tn_module *m = parsed("Pair()");
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_pack_add(in, NULL, tn_value_tensor(filled(1)));
    tn_hook_handle handle = tn_module_hook_forward_pre(m, swap_arity, TN_HOOK_NAMED, NULL, NULL);
    ck_assert_int_eq(tn_module_call_pack(m, in, out), TN_OK); /* one argument became two */
    ck_assert_float_eq(first(tn_pack_tensor(out, 0)), 101);
    ck_assert_int_eq(tn_pack_count(out), 2);
    tn_hook_remove(handle);
    struct act wrong = { .letter = 'w', .outcome = 7 };
    handle = pre(m, &wrong, TN_HOOK_NAMED);
    tn_pack_drop(out);
    out = tn_pack_new();
    ck_assert_int_eq(tn_module_call_pack(m, in, out), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "in Pair: forward pre-hook must return None or a tuple of "
                                   "(new_args, new_kwargs), but got outcome 7");
    ck_assert_int_eq(tn_pack_count(out), 0);
    tn_hook_remove(handle);
    handle = tn_module_hook_forward_pre(m, swap_arity, 0, NULL, NULL);
    ck_assert_int_eq(tn_module_call_pack(m, in, out), TN_ERR_RUNTIME);
    expect_failure(TN_ERR_RUNTIME, "but got \"b\" by name");
    tn_hook_remove(handle);
    TN_PROVES("FWH-005");
    tn_pack_drop(in);
    tn_pack_drop(out);
    tn_module_drop(m);
}
END_TEST

static tn_status forget_to_say(void *user, tn_module *module, const tn_pack *input,
                               const tn_pack *output, tn_pack *replacement,
                               tn_hook_outcome *outcome)
{
    (void)user;
    (void)module;
    (void)input;
    (void)outcome;
    return tn_pack_add(replacement, NULL, tn_pack_at(output, 0));
}

START_TEST(forward_hooks_replace_the_output_one_after_the_other)
{
    TN_SCOPE;
    register_hooked();
    tn_module *m = parsed("Scale()");
    struct act p = { .letter = 'p', .add = 1 }, a = { .letter = 'a', .times = 10 },
               b = { .letter = 'b', .add = 1 }, c = { .letter = 'c' };
    pre(m, &p, 0);
    after(m, &a, 0);
    after(m, &b, 0);
    after(m, &c, 0);
    ck_assert_float_eq(first(tn_module_call(m, filled(1))), 61);
    expect_trace("pabc");
    ck_assert_double_eq(a.seen, 6);
    ck_assert_double_eq(b.seen, 60);
    ck_assert_double_eq(c.seen, 61);
    TN_PROVES("FWH-006");
    tn_module_hook_forward(m, forget_to_say, 0, NULL, NULL);
    ck_assert_ptr_null(tn_module_call(m, filled(1)));
    expect_failure(TN_ERR_RUNTIME, "forward hook must return None or another output, but got 1 "
                                   "value with TN_OUTCOME_UNCHANGED");
    tn_module_drop(m);
}
END_TEST

static tn_status add_named_bias(void *user, tn_module *module, const tn_pack *input,
                                const tn_pack *output, tn_pack *replacement,
                                tn_hook_outcome *outcome)
{
    (void)module;
    int64_t bias = tn_pack_find(input, "bias");
    if (bias < 0)
        return tn_fail(TN_ERR_KEY, "no bias");
    *outcome = TN_OUTCOME_REPLACED;
    tn_tensor *more = tn_mul_scalar(tn_pack_tensor(input, bias), *(double *)user);
    return tn_pack_add(replacement, NULL, tn_value_tensor(tn_add(tn_pack_tensor(output, 0), more)));
}

static tn_status double_bias(void *user, tn_module *module, const tn_pack *input,
                             tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)user;
    (void)module;
    *outcome = TN_OUTCOME_REPLACED;
    tn_status status = tn_pack_add(replacement, NULL, tn_pack_at(input, 0));
    tn_tensor *twice = tn_mul_scalar(tn_pack_tensor(input, tn_pack_find(input, "bias")), 2);
    return status == TN_OK ? tn_pack_add(replacement, "bias", tn_value_tensor(twice)) : status;
}

START_TEST(named_arguments_reach_the_layer_and_the_hooks_that_ask_for_them)
{
    TN_SCOPE;
    register_hooked();
    tn_module *m = parsed("Scale()");
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    double two = 2;
    struct act blind = { .letter = 'p' }, blind_after = { .letter = 'a' };
    tn_pack_add(in, NULL, tn_value_tensor(filled(1)));
    tn_pack_add(in, "bias", tn_value_tensor(filled(10)));
    pre(m, &blind, 0);
    after(m, &blind_after, 0);
    ck_assert_int_eq(tn_module_call_pack(m, in, out), TN_OK);
    ck_assert_float_eq(first(tn_pack_tensor(out, 0)), 13);
    ck_assert_int_eq(blind.positional, 1);
    ck_assert_int_eq(blind.named, 0);
    ck_assert_int_eq(blind_after.named, 0);
    struct act shift = { .letter = 's', .add = 1 };
    tn_hook_handle shifting = pre(m, &shift, 0);
    tn_pack_drop(out);
    out = tn_pack_new();
    ck_assert_int_eq(tn_module_call_pack(m, in, out), TN_OK);
    ck_assert_float_eq(first(tn_pack_tensor(out, 0)), 16);
    tn_hook_remove(shifting);
    TN_PROVES("FWH-008");
    tn_pack_drop(out);
    out = tn_pack_new();
    tn_module_hook_forward(m, add_named_bias, TN_HOOK_NAMED, &two, NULL);
    tn_module_hook_forward_pre(m, double_bias, TN_HOOK_NAMED, NULL, NULL);
    ck_assert_int_eq(tn_module_call_pack(m, in, out), TN_OK);
    ck_assert_float_eq(first(tn_pack_tensor(out, 0)), 3 + 20 + 40); /* the hook sees bias 20 */
    TN_PROVES("FWH-007");
    tn_pack_drop(in);
    tn_pack_drop(out);
    tn_module_drop(m);
}
END_TEST

static tn_status overwrite_input(void *user, tn_module *module, const tn_pack *input,
                                 const tn_pack *output, tn_pack *replacement,
                                 tn_hook_outcome *outcome)
{
    (void)user;
    (void)module;
    (void)output;
    (void)replacement;
    (void)outcome;
    return tn_fill_(tn_pack_tensor(input, 0), 9) != NULL ? TN_OK : tn_error_code();
}

START_TEST(changing_the_input_after_forward_does_not_change_the_output)
{
    TN_SCOPE;
    register_hooked();
    tn_module *m = parsed("Scale()");
    tn_tensor *x = filled(2);
    tn_module_hook_forward(m, overwrite_input, 0, NULL, NULL);
    ck_assert_float_eq(first(tn_module_call(m, x)), 6);
    ck_assert_float_eq(first(x), 9);
    TN_PROVES("FWH-009");
    tn_module_drop(m);
}
END_TEST

START_TEST(prepended_hooks_go_before_and_global_ones_before_all)
{
    TN_SCOPE;
    register_hooked();
    tn_module *m = parsed("Scale()");
    struct act n[5], g = { .letter = 'g' }, h = { .letter = 'h' };
    for (int i = 0; i < 5; i++)
        n[i] = (struct act){ .letter = (char)('0' + i) };
    after(m, &n[0], 0);
    after(m, &n[1], TN_HOOK_PREPEND);
    after(m, &n[2], 0);
    after(m, &n[3], 0);
    after(m, &n[4], TN_HOOK_PREPEND);
    ck_assert_ptr_nonnull(tn_module_call(m, filled(1)));
    expect_trace("41023");
    tn_module_unhook(m);
    ck_assert_int_eq(released, 5);
    pre(m, &n[0], TN_HOOK_PREPEND);
    pre(m, &n[1], 0);
    pre(m, &n[2], 0);
    pre(m, &n[3], 0);
    pre(m, &n[4], TN_HOOK_PREPEND);
    ck_assert_ptr_nonnull(tn_module_call(m, filled(1)));
    expect_trace("40123");
    TN_PROVES("FWH-010");
    {
        TN_HOOK_BLOCK(tn_global_hook_forward_pre(on_forward_pre, 0, &g, NULL));
        TN_HOOK_BLOCK(tn_global_hook_forward(on_forward, 0, &h, NULL));
        after(m, &n[0], TN_HOOK_PREPEND);
        ck_assert_ptr_nonnull(tn_module_call(m, filled(1)));
        expect_trace("g40123h0");
        TN_PROVES("FWH-011");
    }
    ck_assert_ptr_nonnull(tn_module_call(m, filled(1)));
    expect_trace("401230");
    ck_assert_uint_eq(tn_global_hook_forward_pre(on_forward_pre, TN_HOOK_NAMED, &g, NULL), 0);
    expect_failure(TN_ERR_VALUE, "tn_global_hook_forward_pre: flags: not for this kind of hook, "
                                 "got 0x2; expected none");
    ck_assert_uint_eq(tn_module_hook_forward_pre(m, on_forward_pre, TN_HOOK_ALWAYS, &g, NULL), 0);
    expect_failure(TN_ERR_VALUE, "flags: not for this kind of hook, got 0x4; expected "
                                 "TN_HOOK_PREPEND, TN_HOOK_NAMED");
    ck_assert_uint_eq(tn_module_hook_forward(m, NULL, 0, NULL, NULL), 0);
    expect_failure(TN_ERR_VALUE, "tn_module_hook_forward: hook: it is NULL");
    ck_assert_uint_eq(tn_module_hook_forward(NULL, on_forward, 0, NULL, NULL), 0);
    expect_failure(TN_ERR_RUNTIME, "hook: module: it is NULL");
    tn_module_drop(m);
}
END_TEST

START_TEST(hooks_that_always_run_run_once_and_cannot_end_the_failure)
{
    TN_SCOPE;
    register_hooked();
    tn_module *m = parsed("Loud()"), *fine = parsed("Scale()");
    struct act p = { .letter = 'p' }, plain = { .letter = 'a' },
               always = { .letter = 'b', .add = 1 }, last = { .letter = 'c' };
    pre(m, &p, 0);
    after(m, &plain, 0);
    after(m, &always, TN_HOOK_ALWAYS);
    after(m, &last, TN_HOOK_ALWAYS);
    ck_assert_ptr_null(tn_module_call(m, filled(1)));
    expect_trace("pbc");
    ck_assert(always.no_output && always.failed);
    ck_assert_int_eq(always.positional, 1);
    ck_assert_str_eq(tn_error_text(), "in Loud: the sky is falling");
    tn_error_clear();
    p.fail = true; /* a pre-hook fails: the same */
    ck_assert_ptr_null(tn_module_call(m, filled(1)));
    expect_trace("pbc");
    ck_assert_str_eq(tn_error_text(), "in Loud: hook p fails");
    tn_error_clear();
    TN_PROVES("FWH-012", "FWH-014");

    struct act one = { .letter = '1', .add = 1 }, two = { .letter = '2', .fail = true },
               three = { .letter = '3', .times = 5 }, four = { .letter = '4' },
               five = { .letter = '5' };
    after(fine, &one, TN_HOOK_ALWAYS);
    after(fine, &two, TN_HOOK_ALWAYS);
    after(fine, &three, TN_HOOK_ALWAYS);
    after(fine, &four, 0);
    after(fine, &five, TN_HOOK_ALWAYS);
    ck_assert_ptr_null(tn_module_call(fine, filled(1)));
    expect_trace("1235");
    ck_assert_int_eq(one.calls, 1);
    ck_assert_int_eq(two.calls, 1);
    ck_assert_int_eq(four.calls, 0);
    ck_assert_double_eq(three.seen, 4); /* forward gave 3, hook 1 made it 4 */
    ck_assert_double_eq(five.seen, 20);
    ck_assert_str_eq(tn_error_text(), "in Scale: hook 2 fails");
    tn_error_clear();
    TN_PROVES("FWH-013", "FWH-015");

    always.fail = true;
    p.fail = false;
    tn_set_log_sink(warn, NULL);
    tn_module *outer = parsed("Sequential()");
    struct act around = { .letter = 'o', .silent = true };
    tn_module_add_child(outer, "in", m);
    after(outer, &around, TN_HOOK_ALWAYS);
    tn_fail(TN_ERR_IO, "an older failure");
    ck_assert_ptr_null(tn_module_call(outer, filled(1)));
    expect_trace("pbco");
    tn_set_log_sink(NULL, NULL);
    ck_assert_ptr_nonnull(strstr(warned, "with always_call raised an exception that was silenced"));
    ck_assert_str_eq(tn_error_text(), "an older failure");
    ck_assert_str_eq(tn_error_last()->message,
                     "in Sequential, module \"in\" (Loud): the sky is falling");
    ck_assert_int_eq(tn_error_last_code(), TN_ERR_INDEX);
    tn_error_clear();
    TN_PROVES("FWH-012");
    tn_module_drop(outer);
    tn_module_drop(fine);
    tn_module_drop(m);
}
END_TEST

START_TEST(the_named_arguments_are_there_on_the_way_out_of_a_failure_too)
{
    TN_SCOPE;
    register_hooked();
    tn_module *m = parsed("Scale()");
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    struct act g = { .letter = 'g' }, own = { .letter = 'o' };
    tn_pack_add(in, NULL, tn_value_tensor(filled(1)));
    tn_pack_add(in, "bias", tn_value_int(3)); /* no tensor: forward fails */
    tn_hook_handle handle = tn_global_hook_forward(on_forward, TN_HOOK_NAMED | TN_HOOK_ALWAYS, &g,
                                                   NULL);
    after(m, &own, TN_HOOK_NAMED | TN_HOOK_ALWAYS);
    ck_assert_int_eq(tn_module_call_pack(m, in, out), TN_ERR_TYPE);
    expect_failure(TN_ERR_TYPE, "wrong kind, got int");
    expect_trace("go");
    ck_assert_int_eq(g.named, 1);
    ck_assert_int_eq(own.named, 1);
    TN_PROVES("FWH-016", "GLH-002");
    tn_hook_remove(handle);
    tn_pack_drop(in);
    tn_pack_drop(out);
    tn_module_drop(m);
}
END_TEST

static tn_status add_another(void *user, tn_module *module, const tn_pack *input,
                             const tn_pack *output, tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)input;
    (void)output;
    (void)replacement;
    (void)outcome;
    return tn_module_hook_forward(module, on_forward, 0, user, NULL) != 0 ? TN_OK : tn_error_code();
}

START_TEST(what_runs_is_what_was_there_when_the_hooks_began)
{
    TN_SCOPE;
    register_hooked();
    tn_module *m = parsed("Scale()");
    tn_hook_handle handles[2], adder;
    struct act a = { .letter = 'a', .remove = &handles[1] },
               b = { .letter = 'b', .remove = &handles[0] }, late = { .letter = 'l' };
    int64_t before = tn__hook_count();
    handles[0] = after(m, &a, 0);
    handles[1] = after(m, &b, 0);
    ck_assert_ptr_nonnull(tn_module_call(m, filled(1)));
    expect_trace("ab");
    ck_assert_int_eq(tn__hook_count(), before);
    ck_assert_int_eq(released, 2);
    ck_assert_ptr_nonnull(tn_module_call(m, filled(1)));
    expect_trace("");
    handles[0] = pre(m, &a, 0);
    handles[1] = pre(m, &b, 0);
    ck_assert_ptr_nonnull(tn_module_call(m, filled(1)));
    expect_trace("ab");
    ck_assert_int_eq(tn__hook_count(), before);
    adder = tn_module_hook_forward(m, add_another, 0, &late, NULL);
    ck_assert_ptr_nonnull(tn_module_call(m, filled(1)));
    expect_trace("");
    tn_hook_remove(adder);
    ck_assert_ptr_nonnull(tn_module_call(m, filled(1)));
    expect_trace("l");
    TN_PROVES("FWH-017");
    tn_module_drop(m);
}
END_TEST

START_TEST(hooks_run_in_every_call_and_the_state_and_the_mode_do_not_know_them)
{
    TN_SCOPE;
    register_hooked();
    tn_module *m = parsed("Sequential(Scale(), Scale())"), *copy = parsed("Scale()");
    tn_module *inner = tn_module_child_at(m, 0);
    struct act a = { .letter = 'a' }, b = { .letter = 'b' };
    after(inner, &a, 0);
    after(inner, &a, 0); /* the same once more: two registrations */
    tn_grad_begin(false);
    ck_assert_ptr_nonnull(tn_module_call(m, filled(1)));
    tn_grad_end();
    expect_trace("aa");
    TN_PROVES("FWH-021", "FWH-022");
    tn_module_eval(m);
    tn_tensor *y = tn_module_call(m, filled(1));
    expect_trace("aa");
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    expect_trace("");
    TN_PROVES("FWH-018");
    tn_module_train(m, true);
    pre(inner, &b, 0);
    ck_assert_int_eq(tn__module_hooks_copy(inner, copy), TN_OK);
    tn_state *state = tn_module_state(m);
    ck_assert_int_eq(tn_state_count(state), 2);
    tn_state_drop(state);
    tn_module_drop(m);
    ck_assert_int_eq(released, 0); /* the copy has them */
    ck_assert_ptr_nonnull(tn_module_call(copy, filled(1)));
    expect_trace("baa");
    TN_PROVES("FWH-020");
    tn_module_drop(copy);
    ck_assert_int_eq(released, 3);
}
END_TEST

START_TEST(a_call_without_hooks_is_just_forward)
{
    TN_SCOPE;
    register_hooked();
    tn_module *m = parsed("Probe(1)");
    tn_tensor *x = filled(1);
    tn_module_eval(m);
    tn_module_call(m, x);
    tn__memory_fail(UINT64_MAX);
    for (int i = 0; i < 100; i++)
        ck_assert_ptr_eq(tn_module_call(m, x), x);
    ck_assert_uint_le(tn__memory_fail(0), 4); /* the scope's list of what it owns grew */
    struct act a = { .letter = 'a' };
    tn_hook_handle handle = after(m, &a, 0);
    tn__memory_fail(UINT64_MAX);
    ck_assert_ptr_eq(tn_module_call(m, x), x);
    ck_assert_uint_ge(tn__memory_fail(0), 3); /* packs */
    tn_hook_remove(handle);
    tn__memory_fail(UINT64_MAX);
    ck_assert_ptr_eq(tn_module_call(m, x), x);
    ck_assert_uint_le(tn__memory_fail(0), 1);
    TN_PROVES("FWH-019");
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_call_runs_pre_hooks_forward_hooks_and_the_layers_function_alone_none,
        pre_hooks_replace_the_arguments_one_after_the_other,
        a_hook_with_named_arguments_gives_both_and_what_is_malformed_is_refused,
        forward_hooks_replace_the_output_one_after_the_other,
        named_arguments_reach_the_layer_and_the_hooks_that_ask_for_them,
        changing_the_input_after_forward_does_not_change_the_output,
        prepended_hooks_go_before_and_global_ones_before_all,
        hooks_that_always_run_run_once_and_cannot_end_the_failure,
        the_named_arguments_are_there_on_the_way_out_of_a_failure_too,
        what_runs_is_what_was_there_when_the_hooks_began,
        hooks_run_in_every_call_and_the_state_and_the_mode_do_not_know_them,
        a_call_without_hooks_is_just_forward,
        NULL,
    };
    return suite_run("hooks", tests);
}
