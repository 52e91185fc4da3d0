/* SPDX-License-Identifier: MIT
 *
 * Backward hooks and the graph around them: graphs that are cut (detach), fused operators, second
 * derivatives, hooks of all modules, memory that runs out, several threads. Numbers and counts are
 * PyTorch's. */
#include "tests/module/backward_hooks.h"

#include <pthread.h>

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
    y = tn_sum(tn_module_call(m, x));
    ck_assert_msg(tn_grad(&y, NULL, 1, &x, &g, 1, &again) == TN_OK, "%s", tn_error_text());
    ck_assert_float_eq(first(g), 60); /* 10 times 2x */
    expect_trace("a");
    g = tn_sum(g);
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

/* ---- memory runs out ------------------------------------------------------------------------- */

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
        tn_backward(tn_sum(tn_pack_tensor(out, 0)));
    tn_module_drop(m);
    tn_pack_drop(in);
    tn_pack_drop(out);
}

START_TEST(each_allocation_of_a_call_with_hooks_fails_in_turn)
{
    register_all();
    tn_set_log_sink(warn, NULL);
    use();
    ck_assert_msg(!tn_failed(), "%s", tn_error_text());
    expect_trace("bfpg");
    ck_assert_int_eq(released, 4);
    int64_t nodes = tn_grad_node_count(), live = live_bytes();
    int failures = 0;
    for (uint64_t n = 1; n < 100000; n++) {
        tn__memory_fail(n);
        use();
        bool reached = tn__memory_fail(0) >= n;
        ck_assert_msg(!tn_failed() || tn_error_code() == TN_ERR_MEMORY, "allocation %d: %s", (int)n,
                      tn_error_text());
        failures += tn_failed();
        tn_error_clear();
        ck_assert_int_eq(tn__hook_count(), 0);
        ck_assert_int_eq(tn_grad_node_count(), nodes);
        ck_assert_int_eq(live_bytes(), live);
        if (!reached)
            break;
    }
    ck_assert_int_gt(failures, 40);
    tn_set_log_sink(NULL, NULL);
}
END_TEST

/* ---- one graph, several backwards at a time -------------------------------------------------- */

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
        where_the_way_to_the_input_is_cut_the_full_hook_does_not_fire,
        fused_operators_and_shapes_are_no_different,
        gradients_have_the_shapes_of_inputs_and_outputs,
        replaced_gradients_can_be_differentiated_again,
        global_backward_hooks_see_every_call_before_the_modules_own,
        each_allocation_of_a_call_with_hooks_fails_in_turn,
        several_threads_may_go_back_through_one_call,
        NULL,
    };
    return suite_run("backward graphs", tests);
}
