/* SPDX-License-Identifier: MIT
 *
 * Calls of modules: tn_module_call and tn_module_call_many with layers of either form, errors that
 * name the path, observers, scopes, threads. */
#include "tests/module/toy_layers.h"

#include <pthread.h>

static tn_tensor *filled(double value)
{
    return tn_tensor_full(TN_SHAPE(2), value, TN_F32, NULL);
}

static float first(tn_tensor *tensor)
{
    float values[2] = { -77, -77 };
    ck_assert_msg(tensor != NULL, "%s", tn_error_text());
    ck_assert_int_eq(tn_tensor_copy_out(tensor, values, sizeof values), TN_OK);
    return values[0];
}

START_TEST(forward_sees_the_mode_mode_004)
{
    TN_SCOPE;
    register_probes();
    tn_module *m = parsed("Sequential(Probe(1), Probe(1))");
    ck_assert_float_eq(first(tn_module_call(m, filled(5))), 7);
    tn_module_eval(m);
    tn_tensor *x = filled(5);
    ck_assert_ptr_eq(tn_module_call(m, x), x);
    tn_module_drop(m);
}
END_TEST

START_TEST(an_empty_sequence_gives_its_input_back_ctr_002)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential()");
    tn_tensor *x = filled(1);
    ck_assert_ptr_eq(tn_module_call(m, x), x);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_result_outlives_the_module_and_the_scopes_inside)
{
    TN_SCOPE;
    register_probes();
    tn_module *m = parsed("Giver(2)");
    tn_tensor *out = tn_module_call(m, filled(1));
    tn_module_drop(m);
    ck_assert_float_eq(first(out), 2);
}
END_TEST

START_TEST(intermediates_die_with_the_call)
{
    TN_SCOPE;
    register_probes();
    tn_module *m = parsed("Sequential(Probe(1), Probe(1), Probe(1))");
    tn_tensor *x = tn_tensor_full(TN_SHAPE(1000), 0, TN_F32, NULL);
    int64_t before = live_bytes();
    tn_tensor *out = tn_module_call(m, x);
    ck_assert_ptr_nonnull(out);
    ck_assert_int_lt(live_bytes() - before, 2 * 4000);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_layer_of_packs_takes_one_tensor_and_a_layer_of_tensors_takes_a_pack_plg_003)
{
    TN_SCOPE;
    register_probes();
    tn_module *two = parsed("Pair()"), *one = parsed("Probe(1)");
    ck_assert_float_eq(first(tn_module_call(two, filled(4))), 8);
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_pack_add(in, NULL, tn_value_tensor(filled(3)));
    ck_assert_int_eq(tn_module_call_pack(one, in, out), TN_OK);
    ck_assert_int_eq(tn_pack_count(out), 1);
    ck_assert_float_eq(first(tn_pack_tensor(out, 0)), 4);
    ck_assert_int_eq(tn_module_call_pack(one, in, out), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "output: not empty, got 1 values");
    tn_pack_drop(out);
    out = tn_pack_new();
    tn_pack_add(in, "b", tn_value_tensor(filled(10)));
    ck_assert_int_eq(tn_module_call_pack(two, in, out), TN_OK);
    ck_assert_int_eq(tn_pack_count(out), 2);
    ck_assert_float_eq(first(tn_pack_tensor(out, 0)), 13);
    ck_assert_str_eq(tn_pack_at(out, 1).as.s, "two");
    tn_pack_drop(out);
    out = tn_pack_new();
    ck_assert_int_eq(tn_module_call_pack(one, in, out), TN_ERR_TYPE);
    expect_failure(
        TN_ERR_TYPE,
        "in Probe: forward: wrong arguments, got 1 positional and 1 named; expected one tensor "
        "(\"input\")");
    tn_pack_drop(in);
    in = tn_pack_new();
    tn_pack_add(in, "input", tn_value_tensor(filled(3)));
    ck_assert_int_eq(tn_module_call_pack(one, in, out), TN_OK);
    tn_pack_drop(in);
    tn_pack_drop(out);
    tn_module_drop(one);
    tn_module_drop(two);
}
END_TEST

START_TEST(losses_take_input_and_target)
{
    static const float scores[6] = { 1, 2, 3, 3, 2, 1 };
    static const int64_t targets[2] = { 2, 1 };
    TN_SCOPE;
    tn_module *loss = parsed("CrossEntropyLoss(reduction='sum')");
    tn_pack *in = tn_pack_new(), *out = tn_pack_new();
    tn_tensor *x = tn_tensor_from(scores, TN_F32, TN_SHAPE(2, 3)),
              *y = tn_tensor_from(targets, TN_I64, TN_SHAPE(2));
    tn_pack_add(in, NULL, tn_value_tensor(x));
    ck_assert_int_eq(tn_module_call_pack(loss, in, out), TN_ERR_TYPE);
    ck_assert_str_eq(
        tn_error_text(),
        "in CrossEntropyLoss: inputs: wrong number or names, got 1; expected 2, input and target");
    expect_failure(TN_ERR_TYPE, "in CrossEntropyLoss: inputs: wrong number");
    tn_pack_add(in, "target", tn_value_tensor(y));
    ck_assert_msg(tn_module_call_pack(loss, in, out) == TN_OK, "%s", tn_error_text());
    ck_assert_double_eq_tol(tn_item(tn_pack_tensor(out, 0)), 0.40760596 + 1.40760596, 1e-5);
    tn_pack_drop(in);
    tn_pack_drop(out);
    tn_module_drop(loss);
}
END_TEST

START_TEST(a_failure_says_where_in_the_tree_once)
{
    TN_SCOPE;
    register_probes();
    tn_module *m = parsed("Sequential(Linear(2, 3), body=Sequential(ReLU(), Linear(4, 1)))");
    tn_module *alone = parsed("Loud()");
    ck_assert_ptr_null(tn_module_call(m, tn_tensor_full(TN_SHAPE(1, 2), 1, TN_F32, NULL)));
    ck_assert_msg(strncmp(tn_error_text(), "in Sequential, module \"body.1\" (Linear): ", 41) == 0,
                  "%s", tn_error_text());
    ck_assert_ptr_null(strstr(tn_error_text() + 1, "in Sequential"));
    tn_error_clear();
    ck_assert_ptr_null(tn_module_call(alone, filled(1)));
    ck_assert_str_eq(tn_error_text(), "in Loud: the sky is falling");
    ck_assert_int_eq(tn_error_code(), TN_ERR_INDEX);
    tn_error_clear();
    /* A layer that names itself is named once. */
    tn_module *pad = tn_module_new("CircularPad1d(2)");
    ck_assert_ptr_null(tn_module_call(pad, tn_tensor_full(TN_SHAPE(4), 0, TN_F32, NULL)));
    ck_assert_str_eq(
        tn_error_text(),
        "in CircularPad1d: input: wrong number of dimensions, got 1; expected 2, or 3 with a "
        "batch dimension");
    tn_module_drop(pad);
    tn_error_clear();
    tn_module_drop(alone);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_forward_that_fails_without_words_gets_some)
{
    TN_SCOPE;
    register_probes();
    tn_module *m = parsed("Sequential(Silent())");
    ck_assert_ptr_null(tn_module_call(m, filled(1)));
    expect_failure(TN_ERR_RUNTIME, "in Sequential, module \"0\" (Silent): forward: failed with");
    tn_module_drop(m);
}
END_TEST

START_TEST(null_goes_through_and_the_first_failure_stays)
{
    register_probes();
    tn_module *m = parsed("ReLU()");
    ck_assert_ptr_null(tn_module_call(NULL, NULL));
    ck_assert_int_eq(tn_error_code(), TN_ERR_RUNTIME);
    tn_error_clear();
    ck_assert_ptr_null(tn_module_new("Nothing()"));
    uint64_t mark = tn_error_mark();
    ck_assert_ptr_null(tn_module_call(m, tn_module_call(NULL, NULL)));
    ck_assert_int_eq(tn_module_zero_grad(NULL), TN_ERR_KEY);
    ck_assert_int_eq(tn_module_save(NULL, "x"), TN_ERR_KEY);
    ck_assert_int_eq(tn_module_add_child(m, "x", NULL), TN_ERR_KEY);
    ck_assert_uint_eq(tn_error_mark(), mark);
    tn_error_clear();
    tn_module_drop(m);
    tn_module_drop(NULL);
}
END_TEST

/* ---- observers ------------------------------------------------------------------------------- */

static char watched[256];
static uint64_t token;

static uint64_t watch_begin(void *user, const tn_module_event *event)
{
    (void)user;
    strcat(strcat(watched, "<"), tn_module_type(event->module));
    if (event->path[0])
        strcat(strcat(watched, ":"), event->path);
    return ++token;
}

static void watch_end(void *user, uint64_t given, const tn_module_event *event)
{
    (void)user;
    char text[32];
    tn_snprint(text, sizeof text, "%d%s>", (int)given, event->status == TN_OK ? "" : "!");
    strcat(watched, text);
}

static const tn_observer_def watcher = { TN_HEAD(tn_observer_def), .name = "test.watcher",
                                         .module_begin = watch_begin, .module_end = watch_end };

START_TEST(observers_see_begin_and_end_of_every_module_call)
{
    TN_SCOPE;
    register_probes();
    ck_assert_int_eq(tn_register(&watcher), TN_OK);
    tn_module *m = parsed("Sequential(Probe(1), Loud())");
    watched[0] = '\0';
    ck_assert_ptr_null(tn_module_call(m, filled(1)));
    ck_assert_str_eq(watched, "<Sequential<Probe:02><Loud:13!>1!>");
    tn_error_clear();
    tn_module_drop(m);
}
END_TEST

static void watch_op(void *user, uint64_t given, const tn_op_event *event)
{
    (void)user;
    ck_assert_uint_eq(given, 0);
    if (event->kernel == NULL)
        return;
    ck_assert_str_eq(event->kernel->op, event->op->name);
    strcat(strcat(watched, event->module != NULL ? tn_module_type(event->module) : "-"), " ");
}

static const tn_observer_def op_watcher = { TN_HEAD(tn_observer_def), .name = "test.op_watcher",
                                            .op_end = watch_op };

START_TEST(observers_of_operators_know_the_module_and_the_kernel)
{
    TN_SCOPE;
    ck_assert_int_eq(tn_register(&op_watcher), TN_OK);
    tn_module *m = parsed("Sequential(ReLU(), Sigmoid())");
    tn_tensor *x = filled(1);
    watched[0] = '\0';
    ck_assert_ptr_nonnull(tn_module_call(m, tn_relu(x)));
    ck_assert_str_eq(watched, "- ReLU Sigmoid ");
    tn_module_drop(m);
}
END_TEST

/* ---- paths of modules that are not children of their caller ---------------------------------- */

static tn_module *stranger; /* a Loud() that is not in the tree of its caller */

static tn_tensor *calls_a_stranger(tn_module *self, tn_tensor *input)
{
    (void)self;
    return tn_module_call(stranger, input);
}

static tn_tensor *calls_far_modules(tn_module *self, tn_tensor *input)
{
    tn_module *deep = tn_module_find(self, "body.inner.last");

    return calls_a_stranger(self, tn_module_call(deep, input));
}

START_TEST(a_module_deeper_in_the_tree_of_its_caller_has_its_whole_path)
{
    TN_SCOPE;
    register_probes();
    tn_module *m = parsed("Sequential(body=Sequential(ReLU(), inner=Sequential(ReLU(), "
                          "last=Sigmoid())))");
    tn_module *root = tn_module_plain("Root"), *other = parsed("Sequential(Loud())");
    stranger = tn_module_child(other, "0");
    ck_assert_int_eq(tn_module_set_forward(root, calls_far_modules, NULL, NULL), TN_OK);
    ck_assert_int_eq(tn_module_add_child(root, "body", tn_module_child(m, "body")), TN_OK);
    ck_assert_int_eq(tn_register(&watcher), TN_OK);
    watched[0] = '\0';
    token = 0;
    ck_assert_ptr_null(tn_module_call(root, filled(1)));
    ck_assert_str_eq(watched, "<Root<Sigmoid:body.inner.last2><Loud:<Loud>3!>1!>");
    ck_assert_str_eq(tn_error_text(), "in Root, module \"<Loud>\" (Loud): the sky is falling");
    tn_error_clear();
    tn_module_drop(root);
    tn_module_drop(other);
    tn_module_drop(m);
}
END_TEST

START_TEST(a_search_ends_in_a_network_with_very_many_paths)
{
    TN_SCOPE;
    register_probes();
    tn_module *other = parsed("Sequential(Loud())"), *m = parsed("ReLU()");
    stranger = tn_module_child(other, "0");
    for (int i = 0; i < 60; i++) { /* 2^60 paths */
        tn_module *outer = tn_module_plain("Both");
        ck_assert_int_eq(tn_module_add_child(outer, "left", m), TN_OK);
        ck_assert_int_eq(tn_module_add_child(outer, "right", m), TN_OK);
        tn_module_drop(m);
        m = outer;
    }
    ck_assert_int_eq(tn_module_set_forward(m, calls_a_stranger, NULL, NULL), TN_OK);
    ck_assert_ptr_null(tn_module_call(m, filled(1)));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "in Both, module \"<Loud>\" (Loud): "));
    tn_error_clear();
    tn_module_drop(m);
    tn_module_drop(other);
}
END_TEST

START_TEST(a_failure_in_a_parametrization_names_its_path)
{
    TN_SCOPE;
    tn_module *m = parsed("Sequential(Linear(4, 3))");
    ck_assert_int_eq(tn_parametrize_with(m, "0.weight", "Linear(4, 4)"), TN_OK);
    tn_module *by = tn_module_find(m, "0.parametrizations.weight.0");
    ck_assert_ptr_nonnull(by);
    tn_tensor *wide = tn_tensor_full(TN_SHAPE(4, 5), 1, TN_F32, NULL);
    ck_assert_msg(tn_module_set(by, "weight", tn_parameter(wide, true)) == TN_OK, "%s",
                  tn_error_text());
    ck_assert_ptr_null(tn_module_call(m, tn_tensor_full(TN_SHAPE(1, 4), 1, TN_F32, NULL)));
    ck_assert_msg(strstr(tn_error_text(),
                         "in Sequential, module \"0.parametrizations.weight.0\" (Linear): ") !=
                      NULL,
                  "%s", tn_error_text());
    tn_error_clear();
    tn_module_drop(m);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

static void *call_often(void *user)
{
    for (int i = 0; i < 200; i++) {
        TN_SCOPE;
        tn_tensor *out = tn_module_call(user, tn_tensor_full(TN_SHAPE(3, 4), 1, TN_F32, NULL));
        if (out == NULL)
            return (void *)tn_error_text();
    }
    return NULL;
}

START_TEST(one_module_in_eval_mode_serves_several_threads)
{
    tn_module *m = parsed("Sequential(Linear(4, 8), ReLU(), Linear(8, 2))");
    tn_module_eval(m);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, m), 0);
    for (int i = 0; i < 4; i++) {
        void *failure = NULL;
        pthread_join(threads[i], &failure);
        ck_assert_ptr_null(failure);
    }
    tn_module_drop(m);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        forward_sees_the_mode_mode_004,
        an_empty_sequence_gives_its_input_back_ctr_002,
        a_result_outlives_the_module_and_the_scopes_inside,
        intermediates_die_with_the_call,
        a_layer_of_packs_takes_one_tensor_and_a_layer_of_tensors_takes_a_pack_plg_003,
        losses_take_input_and_target,
        a_failure_says_where_in_the_tree_once,
        a_forward_that_fails_without_words_gets_some,
        null_goes_through_and_the_first_failure_stays,
        observers_see_begin_and_end_of_every_module_call,
        observers_of_operators_know_the_module_and_the_kernel,
        a_module_deeper_in_the_tree_of_its_caller_has_its_whole_path,
        a_search_ends_in_a_network_with_very_many_paths,
        a_failure_in_a_parametrization_names_its_path,
        one_module_in_eval_mode_serves_several_threads,
        NULL,
    };
    return suite_run("call", tests);
}
