/* SPDX-License-Identifier: MIT
 *
 * Public functions that any thread may call, on a module that eight threads call in eval mode: the
 * threads get the values that one thread alone gets, and the mode and the running statistics stay.
 * ThreadSanitizer finds no race. */
#include "tests/graph/suite.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 8, ROUNDS = 3 };

static tn_module *net;
static tn_tensor *x, *expected;
static _Atomic bool stop;
static _Atomic int other_values, failures;
static _Atomic int64_t calls[THREADS];

static void *call_often(void *user)
{
    _Atomic int64_t *count = user;
    char want[64], got[64];

    tn_tensor_copy_out(expected, want, sizeof want);
    while (!atomic_load(&stop)) {
        TN_SCOPE;
        tn_tensor *y = tn_module_call(net, x);

        if (y == NULL || tn_tensor_copy_out(y, got, sizeof got) != TN_OK)
            atomic_fetch_add(&failures, 1);
        else if (memcmp(got, want, sizeof got) != 0)
            atomic_fetch_add(&other_values, 1);
        atomic_fetch_add(count, 1);
    }
    return NULL;
}

/* ---- the functions --------------------------------------------------------------------------- */

static void script(void)
{
    tn_module *made = tn_module_script(net, x, NULL);

    ck_made(made);
    ck_ok(tn_module_train(made, true)); /* the mode of the script is not that of the module */
    tn_module_drop(made);
}

static void script_pack(void)
{
    tn_pack *pack = tn_pack_new();
    tn_module *made;

    ck_ok(tn_pack_add(pack, NULL, tn_value_tensor(x)));
    made = tn_module_script_pack(net, pack, NULL);
    ck_made(made);
    tn_module_drop(made);
    tn_pack_drop(pack);
}

static void trace(void)
{
    tn_tracing_options through = TN_TRACING_OPTIONS;
    tn_graph *graph = tn_module_trace(net, x, NULL);
    tn_module *module = tn_graph_module(graph);

    ck_made(module);
    ck_ok(tn_graph_inline(graph));
    ck_ok(tn_graph_shapes(graph, &x, 1));
    tn_module_drop(module);
    tn_graph_drop(graph);
    through.flags = TN_TRACE_THROUGH;
    graph = tn_module_trace(net, x, &through);
    ck_made(graph);
    ck_ok(tn_graph_lint(graph));
    tn_graph_drop(graph);
}

static void state(void)
{
    tn_state *made = tn_module_state(net);

    ck_made(made);
    ck_assert_int_eq(tn_state_count(made), 9);
    tn_state_drop(made);
}

static void copy(void)
{
    tn_module *made = tn_module_copy(net);

    ck_made(made);
    ck_ok(tn_module_train(made, true));
    ck_made(tn_module_call(made, x)); /* writes the statistics of the copy */
    tn_module_drop(made);
}

static void texts(void)
{
    char text[2048];

    ck_assert_int_gt(tn_module_repr(net, text, sizeof text), 0);
    ck_assert_int_gt(tn_module_spec(net, text, sizeof text), 0);
}

static void queries(void)
{
    tn_pack *pack = tn_pack_new();

    ck_assert(!tn_module_is_training(net));
    ck_assert_int_eq(tn_module_parameter_count(net), 74);
    ck_assert_int_eq(tn_module_child_count(net), 5);
    ck_assert_ptr_eq(tn_module_find(net, "1"), tn_module_child_at(net, 1));
    ck_made(tn_module_find_tensor(net, "1.running_mean"));
    ck_made(tn_module_find_parameter(net, "0.weight"));
    ck_assert_int_eq(tn_module_slot_kind(net, "1"), TN_SLOT_CHILD);
    ck_assert(!tn_module_has_fixed_dtype(tn_module_child_at(net, 0), "weight"));
    ck_ok(tn_module_option_get(tn_module_child_at(net, 3), "p", pack));
    tn_pack_drop(pack);
}

static tn_status unchanged(void *user, tn_module *module, const tn_pack *input,
                           const tn_pack *output, tn_pack *replacement, tn_hook_outcome *outcome)
{
    (void)user, (void)module, (void)input, (void)output, (void)replacement, (void)outcome;
    return TN_OK;
}

static void hooks(void)
{
    tn_hook_handle hook = tn_module_hook_forward(net, unchanged, 0, NULL, NULL);

    ck_assert_uint_ne(hook, 0);
    ck_assert(tn_hook_remove(hook));
}

/* The module becomes a part of another, which is called. */
static void share(void)
{
    tn_module *outer = tn_module_new("Sequential()");

    ck_ok(tn_module_add_child(outer, "inner", net));
    ck_same(tn_module_call(outer, x), expected);
    tn_module_drop(outer);
}

static const struct {
    const char *name;
    void (*run)(void);
} functions[] = {
    { "tn_module_script", script },   { "tn_module_script_pack", script_pack },
    { "tn_module_trace", trace },     { "tn_module_state", state },
    { "tn_module_copy", copy },       { "texts", texts },
    { "queries", queries },           { "hooks", hooks },
    { "tn_module_add_child", share },
};

/* ---- the test -------------------------------------------------------------------------------- */

/* Each thread makes a call that begins and one that ends after this. */
static void let_threads_call(void)
{
    for (int i = 0; i < THREADS; i++) {
        int64_t before = atomic_load(&calls[i]);
        while (atomic_load(&calls[i]) < before + 2)
            sched_yield();
    }
}

START_TEST(public_functions_do_not_disturb_threads_that_call_the_module)
{
    TN_SCOPE;
    float values[32];
    pthread_t threads[THREADS];
    tn_tensor *mean, *tracked;
    for (int i = 0; i < 32; i++)
        values[i] = (float)(i % 7) - 3;
    net = tn_module_new(
        "Sequential(Linear(4, 8), BatchNorm1d(8), ReLU(), Dropout(0.5), Linear(8, 2))");
    ck_made(net);
    x = tn_tensor_from(values, TN_F32, TN_SHAPE(8, 4));
    ck_made(tn_module_call(net, x)); /* statistics that are not 0 and 1 */
    tn_module_eval(net);
    expected = tn_module_call(net, x);
    ck_made(expected);
    mean = tn_clone(tn_module_find_buffer(net, "1.running_mean"));
    tracked = tn_clone(tn_module_find_buffer(net, "1.num_batches_tracked"));
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, &calls[i]), 0);
    for (int round = 0; round < ROUNDS; round++)
        for (int64_t i = 0; i < tn__countof(functions); i++) {
            TN_SCOPE;
            let_threads_call();
            functions[i].run();
            ck_assert_msg(!tn_failed(), "%s: %s", functions[i].name, tn_error_text());
            ck_assert_msg(atomic_load(&failures) == 0, "%s: a call failed", functions[i].name);
            ck_assert_msg(atomic_load(&other_values) == 0, "%s: a call gave other values",
                          functions[i].name);
        }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&failures), 0);
    ck_assert_int_eq(atomic_load(&other_values), 0);
    ck_assert(!tn_module_is_training(net));
    ck_same(tn_module_find_buffer(net, "1.running_mean"), mean);
    ck_same(tn_module_find_buffer(net, "1.num_batches_tracked"), tracked);
    ck_same(tn_module_call(net, x), expected);
    tn_module_drop(net);
}
END_TEST

static _Atomic int modes_seen;

static tn_tensor *asks(tn_module *self, tn_tensor *input)
{
    bool training = tn_module_is_training(self);

    atomic_fetch_or(&modes_seen, training ? 2 : 1);
    return training ? tn_neg(input) : tn_relu(input);
}

/* While one mode is traced, the module itself has its own. */
START_TEST(a_script_is_traced_in_both_modes_and_the_module_keeps_its_own)
{
    TN_SCOPE;
    for (int mode = 0; mode < 2; mode++) {
        tn_module *own = tn_module_plain("Own"), *script_of;
        x = numbers(-3);
        atomic_store(&modes_seen, 0);
        ck_ok(tn_module_set_forward(own, asks, NULL, NULL));
        ck_ok(tn_module_train(own, mode == 1));
        script_of = tn_module_script(own, x, NULL);
        ck_made(script_of);
        ck_assert_int_eq(atomic_load(&modes_seen), 3);
        ck_assert_int_eq(tn_module_is_training(own), mode == 1);
        ck_assert_int_eq(tn_module_is_training(script_of), mode == 1);
        ck_ok(tn_module_train(script_of, true));
        ck_same(tn_module_call(script_of, x), tn_neg(x));
        tn_module_eval(script_of);
        ck_same(tn_module_call(script_of, x), tn_relu(x));
        tn_module_drop(script_of);
        tn_module_drop(own);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { public_functions_do_not_disturb_threads_that_call_the_module,
                                   a_script_is_traced_in_both_modes_and_the_module_keeps_its_own,
                                   NULL };
    return suite_run("script_threads", tests);
}
