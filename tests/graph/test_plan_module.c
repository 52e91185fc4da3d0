/* SPDX-License-Identifier: MIT
 *
 * Modules that are compiled to plans: results have the same bits as those of eager calls; tests of
 * which calls run eagerly, of the changes after which a new plan is made, of threads and of
 * failures. */
#include <pthread.h>

#include "tests/graph/plan_module.h"
#include "tests/spec/proves.h"

/* A compiled network in evaluation mode, and the same network that runs eagerly. */
struct pair {
    tn_module *net, *eager;
};

static struct pair make_pair(const char *how)
{
    struct pair p = { .net = convolutional() };

    ck_ok(tn_module_eval(p.net));
    p.eager = tn_module_copy(p.net);
    ck_made(p.eager);
    ck_ok(tn_module_compile(p.net, how));
    return p;
}

static void drop_pair(struct pair *p)
{
    tn_module_drop(p->net);
    tn_module_drop(p->eager);
}

static void ck_equal(struct pair *p, tn_tensor *x)
{
    ck_ok(tn_grad_begin(false));
    ck_same(tn_module_call(p->net, x), tn_module_call(p->eager, x));
    tn_grad_end();
}

/* ---- which code runs: a module that counts the calls of its forward -------------------------- */

static int calls;

static tn_tensor *counting(tn_module *self, tn_tensor *x)
{
    calls++;
    return tn_relu(tn_mul(tn_module_get(self, "scale"), x));
}

static tn_module *counter(const char *how)
{
    tn_module *net = own(counting);

    ck_ok(tn_module_eval(net));
    ck_ok(tn_module_compile(net, how));
    calls = 0;
    return net;
}

static tn_tensor *infer(tn_module *net, tn_tensor *x)
{
    tn_tensor *y;

    ck_ok(tn_grad_begin(false));
    y = tn_module_call(net, x);
    tn_grad_end();
    return y;
}

START_TEST(a_compiled_module_computes_the_bits_of_an_eager_one)
{
    TN_SCOPE;
    struct pair p = make_pair("plan()");

    for (int i = 0; i < 3; i++) {
        ck_equal(&p, numbered(TN_SHAPE(2, 3, 8, 8), i));
        ck_equal(&p, numbered(TN_SHAPE(1, 3, 8, 8), i)); /* Flatten: another trace */
    }
    TN_PROVES("CNV-028");
    drop_pair(&p);
}
END_TEST

START_TEST(forward_runs_once_and_plans_after_it)
{
    TN_SCOPE;
    tn_module *net = counter("plan(bindings=1)");
    tn_tensor *x = numbers(1), *scale = tn_module_get(net, "scale");

    ck_same(infer(net, x), tn_relu(tn_mul(scale, x)));
    ck_same(infer(net, scale), tn_relu(tn_mul(scale, scale)));
    ck_assert_int_eq(calls, 1);
    infer(net, tn_reshape(numbers(1), TN_SHAPE(1, 2, 3))); /* another shape, and one plan is kept */
    ck_assert_int_eq(calls, 2);
    infer(net, x);
    ck_assert_int_eq(calls, 3);
    ck_ok(tn_module_compile(net, "eager()"));
    infer(net, x);
    infer(net, x);
    ck_assert_int_eq(calls, 5);
    tn_module_drop(net);
}
END_TEST

START_TEST(training_gradients_and_traces_run_eagerly)
{
    TN_SCOPE;
    tn_module *net = counter("plan()"), *copy;
    tn_tensor *x = numbers(1), *y;
    tn_graph *graph;

    for (int i = 0; i < 2; i++) {
        y = tn_module_call(net, x); /* scale requires a gradient */
        ck_ok(tn_backward(tn_sum(y)));
    }
    ck_assert_int_eq(calls, 2);
    ck_ok(tn_module_train(net, true));
    infer(net, x);
    infer(net, x);
    ck_assert_int_eq(calls, 4);
    ck_ok(tn_module_eval(net));
    graph = traced(net, x, TN_TRACE_THROUGH);
    ck_assert_int_eq(calls, 5);
    ck_assert_str_eq(names_of(graph), "input scale mul relu output");
    tn_graph_drop(graph);
    infer(net, x);
    infer(net, x);
    ck_assert_int_eq(calls, 6);
    copy = tn_module_copy(net);
    infer(copy, x);
    infer(copy, x);
    ck_assert_int_eq(calls, 8); /* a copy is eager */
    tn_module_drop(copy);
    tn_module_drop(net);
}
END_TEST

START_TEST(a_change_of_the_module_makes_the_plan_again)
{
    TN_SCOPE;
    struct pair p = make_pair("plan()");
    tn_tensor *x = numbered(TN_SHAPE(2, 3, 8, 8), 1);
    tn_module *relu = tn_module_new("SiLU()"), *both[2];

    both[0] = p.net;
    both[1] = p.eager;
    ck_equal(&p, x);
    for (int i = 0; i < 2; i++) { /* values, then the tensor itself */
        tn_tensor *weight = tn_module_find_tensor(both[i], "0.weight");

        ck_ok(tn_grad_begin(false));
        ck_made(tn_add_(weight, weight));
        tn_grad_end();
    }
    ck_equal(&p, x);
    for (int i = 0; i < 2; i++)
        ck_ok(tn_module_set(tn_module_find(both[i], "0"), "bias",
                            tn_parameter(numbered(TN_SHAPE(8), 3), true)));
    ck_equal(&p, x);
    for (int i = 0; i < 2; i++)
        ck_ok(tn_list_set(both[i], 2, relu));
    ck_equal(&p, x);
    ck_ok(tn_module_to(p.net, NULL, TN_F64));
    ck_ok(tn_module_to(p.eager, NULL, TN_F64));
    ck_equal(&p, tn_cast(x, TN_F64));
    tn_module_drop(relu);
    drop_pair(&p);
}
END_TEST

/* Doubles the result. */
static tn_status double_hook(void *user, tn_module *module, const tn_pack *in, const tn_pack *out,
                             tn_pack *replacement, tn_hook_outcome *outcome)
{
    tn_tensor *y = tn_pack_at(out, 0).as.tensor;

    (void)user, (void)module, (void)in;
    *outcome = TN_OUTCOME_REPLACED;
    return tn_pack_add(replacement, NULL, tn_value_tensor(tn_add(y, y)));
}

static tn_status count_hook(void *user, tn_module *module, const tn_pack *in, const tn_pack *out,
                            tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)module, (void)in, (void)out, (void)replacement, (void)outcome;
    ++*(int *)user;
    return TN_OK;
}

START_TEST(hooks_of_the_module_run_and_those_below_are_refused)
{
    TN_SCOPE;
    struct pair p = make_pair("plan()");
    tn_tensor *x = numbered(TN_SHAPE(2, 3, 8, 8), 1);
    int outer = 0, inner = 0;

    tn_module_hook_forward(p.net, count_hook, 0, &outer, NULL);
    ck_equal(&p, x);
    ck_equal(&p, x);
    ck_assert_int_eq(outer, 2);
    tn_module_hook_forward(p.net, double_hook, 0, NULL, NULL);
    tn_module_hook_forward(p.eager, double_hook, 0, NULL, NULL);
    ck_ok(tn_module_compile(p.net, "plan()"));
    ck_equal(&p, x);
    ck_equal(&p, x);
    tn_module_unhook(p.net);
    tn_module_unhook(p.eager);
    outer = 2;
    ck_equal(&p, x);
    ck_assert_int_eq(outer, 2);
    tn_module_hook_forward(tn_module_find(p.net, "1"), count_hook, 0, &inner, NULL);
    ck_assert_ptr_null(infer(p.net, x));
    ck_error(TN_ERR_NOT_IMPLEMENTED, "plan: ", "hooks");
    drop_pair(&p);
}
END_TEST

static tn_status two_tensors(tn_module *self, const tn_pack *in, tn_pack *out)
{
    tn_tensor *x = tn_pack_at(in, 0).as.tensor, *y = tn_pack_at(in, 1).as.tensor;

    (void)self;
    calls++;
    ck_ok(tn_pack_add(out, NULL, tn_value_tensor(tn_mul(x, y))));
    return tn_pack_add(out, "sum", tn_value_tensor(tn_add(x, y)));
}

START_TEST(packs_keep_their_form)
{
    TN_SCOPE;
    tn_module *net = tn_module_plain("Two");
    tn_tensor *x = numbers(1), *y = numbers(5);

    ck_ok(tn_module_set_call(net, two_tensors, NULL, NULL));
    ck_ok(tn_module_eval(net));
    ck_ok(tn_module_compile(net, "plan()"));
    calls = 0;
    for (int i = 0; i < 3; i++) {
        tn_pack *in = tn_pack_new(), *out = tn_pack_new();

        ck_ok(tn_pack_add(in, NULL, tn_value_tensor(x)));
        ck_ok(tn_pack_add(in, NULL, tn_value_tensor(y)));
        ck_ok(tn_module_call_pack(net, in, out));
        ck_assert_int_eq(tn_pack_count(out), 2);
        for (int64_t k = 0; k < 2; k++)
            ck_same(tn_pack_at(out, k).as.tensor,
                    tn_pack_name(out, k) != NULL ? tn_add(x, y) : tn_mul(x, y));
        tn_pack_drop(in);
        tn_pack_drop(out);
    }
    ck_assert_int_eq(calls, 1);
    tn_module_drop(net);
}
END_TEST

START_TEST(compilers_take_regions_of_a_plan)
{
    TN_SCOPE;
    struct pair p = make_pair("plan(compilers='fuse')");
    tn_module *net = tn_module_new("Sequential(Linear(3, 4), SiLU(), Tanh(), Sigmoid())");
    tn_module *copy = tn_module_copy(net);
    char text[1024];

    ck_equal(&p, numbered(TN_SHAPE(2, 3, 8, 8), 1));
    drop_pair(&p);
    ck_ok(tn_module_eval(net));
    ck_ok(tn_module_eval(copy));
    ck_ok(tn_module_compile(net, "plan(compilers='fuse')"));
    for (int i = 0; i < 2; i++)
        ck_same(infer(net, numbers(1)), infer(copy, numbers(1)));
    ck_assert_int_ge(tn_module_compile_print(net, true, text, sizeof text), 0);
    ck_assert_msg(strstr(text, ": fuse -> float32[2, 4]") != NULL, "%s", text);
    ck_ok(tn_module_compile(net, "plan(compilers='nothing')"));
    ck_assert_ptr_null(infer(net, numbers(1)));
    ck_error(TN_ERR_KEY, "plan: ", "nothing");
    tn_module_drop(net);
    tn_module_drop(copy);
}
END_TEST

static tn_tensor *draws(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_bernoulli(x);
}

START_TEST(an_error_names_the_node_and_its_module)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 3), Sequential())");
    tn_module *child = tn_module_plain("Draws");

    ck_ok(tn_module_set_forward(child, draws, NULL, NULL));
    ck_ok(tn_module_add_child(tn_module_child_at(net, 1), "coin", child));
    ck_ok(tn_module_eval(net));
    ck_ok(tn_module_compile(net, "plan()"));
    ck_assert_ptr_null(infer(net, numbers(1)));
    ck_error(TN_ERR_NOT_IMPLEMENTED,
             "plan: node bernoulli (1.coin): bernoulli: ", "a plan would repeat the same");
    tn_module_drop(child);
    tn_module_drop(net);
}
END_TEST

START_TEST(what_has_no_plan_fails_with_the_reason)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Linear(3, 2)"), *reads;

    ck_assert_int_eq(tn_module_compile(net, "plan(bindings=0)"), TN_ERR_VALUE);
    ck_error(TN_ERR_VALUE, "tn_module_compile: plan: bindings: out of range, got 0", "1 or more");
    ck_assert_int_ne(tn_module_compile(net, "plan(deep=1)"), TN_OK);
    ck_error(tn_error_last()->code, "plan(deep=1): column 6: no option", "deep");
    ck_ok(tn_module_compile(net, "plan(passes='nothing')"));
    ck_ok(tn_module_eval(net));
    ck_assert_ptr_null(infer(net, numbers(1)));
    ck_error(TN_ERR_KEY, "plan: ", "nothing");
    reads = tn_module_new("BatchNorm1d(3, track_running_stats=False)");
    ck_ok(tn_module_eval(reads));
    ck_ok(tn_module_compile(reads, "plan()"));
    ck_made(infer(reads, numbers(1)));
    tn_module_drop(net);
    tn_module_drop(reads);
}
END_TEST

/* ---- threads and memory that fails ----------------------------------------------------------- */

struct shared {
    struct pair p;
    char expected[6][256];
};

static void *call_often(void *user)
{
    struct shared *shared = user;

    ck_ok(tn_grad_begin(false));
    for (int i = 0; i < 40; i++) {
        TN_SCOPE;
        char text[256];
        tn_tensor *y = tn_module_call(shared->p.net, numbered(TN_SHAPE(1 + i % 3, 3, 8, 8), i % 6));

        if (y == NULL)
            return user;
        tn_tensor_text(y, text, sizeof text);
        if (strcmp(text, shared->expected[i % 6]) != 0)
            return user;
    }
    tn_grad_end();
    return NULL;
}

START_TEST(eight_threads_call_one_module)
{
    TN_SCOPE;
    struct shared shared = { .p = make_pair("plan(bindings=2)") };
    pthread_t threads[8];

    for (int i = 0; i < 6; i++)
        tn_tensor_text(infer(shared.p.eager, numbered(TN_SHAPE(1 + i % 3, 3, 8, 8), i)),
                       shared.expected[i], sizeof shared.expected[i]);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, &shared), 0);
    for (int i = 0; i < 8; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
    drop_pair(&shared.p);
}
END_TEST

static bool compile_and_call(void *user)
{
    TN_SCOPE;
    tn_module *net = user;
    tn_tensor *x = numbers(1);

    return x != NULL && tn_module_compile(net, "plan(passes='dead')") == TN_OK &&
           tn_module_call(net, x) != NULL && tn_module_call(net, x) != NULL;
}

START_TEST(each_allocation_that_fails_is_an_error)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(3, 4), ReLU())");

    ck_ok(tn_module_eval(net));
    ck_ok(tn_grad_begin(false));
    ck_assert(compile_and_call(net));
    ck_assert_int_gt(fail_each_allocation(compile_and_call, net), 50);
    tn_grad_end();
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_compiled_module_computes_the_bits_of_an_eager_one,
                                   forward_runs_once_and_plans_after_it,
                                   training_gradients_and_traces_run_eagerly,
                                   a_change_of_the_module_makes_the_plan_again,
                                   hooks_of_the_module_run_and_those_below_are_refused,
                                   packs_keep_their_form,
                                   what_has_no_plan_fails_with_the_reason,
                                   an_error_names_the_node_and_its_module,
                                   compilers_take_regions_of_a_plan,
                                   eight_threads_call_one_module,
                                   each_allocation_that_fails_is_an_error,
                                   NULL };
    return suite_run("planned", tests);
}
