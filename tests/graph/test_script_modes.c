/* SPDX-License-Identifier: MIT
 *
 * Scripts of modules whose parts are in different modes: frozen batch norms in a network that
 * trains, and the like. */
#include "tests/graph/traced.h"
#include "tests/spec/proves.h"

#include <unistd.h>

static char path[] = "/tmp/tenon-modes-XXXXXX.script";

/* A network that trains with a frozen batch norm. */
static tn_module *frozen(const char *spec)
{
    tn_module *net;

    tn_random_seed(5);
    net = tn_module_new(spec);
    ck_made(net);
    ck_ok(tn_module_eval(tn_module_child(net, "1")));
    return net;
}

static tn_module *saved(tn_module *script)
{
    tn_module *loaded;

    ck_ok(tn_module_save(script, path));
    loaded = tn_module_from_file(path);
    ck_made(loaded);
    return loaded;
}

static void same_modes(tn_module *a, tn_module *b)
{
    ck_assert_int_eq(tn_module_is_training(a), tn_module_is_training(b));
    for (int64_t i = 0; i < tn_module_child_count(a); i++)
        same_modes(tn_module_child_at(a, i), tn_module_child_at(b, i));
}

/* Fails unless both have the same result with the same random numbers. */
static void same_call(tn_module *a, tn_module *b, tn_tensor *x)
{
    tn_tensor *y;

    tn_random_seed(3);
    y = tn_module_call(a, x);
    tn_random_seed(3);
    ck_same(y, tn_module_call(b, x));
}

/* Trains without a change of modes. */
static void train_frozen(tn_module *net, tn_tensor *x)
{
    tn_optimizer *optimizer = tn_optimizer_new(net, "SGD(lr=0.1)");

    tn_random_seed(9);
    for (int i = 0; i < 5; i++) {
        TN_SCOPE;
        ck_ok(tn_module_zero_grad(net));
        ck_ok(tn_backward(tn_mean(tn_square(tn_module_call(net, x)))));
        ck_ok(tn_optimizer_step(optimizer));
    }
    tn_optimizer_drop(optimizer);
}

START_TEST(parts_keep_their_modes_and_are_switched_as_in_the_module)
{
    static const char *const nets[] = {
        "Sequential(Conv2d(3, 4, 3), BatchNorm2d(4), Dropout(0.5), Flatten(), Linear(144, 3))",
        /* only frozen parts compute other results in evaluation */
        "Sequential(Conv2d(3, 4, 3), BatchNorm2d(4), ReLU(), Flatten(), Linear(144, 3))",
        "Sequential(Conv2d(3, 4, 3), Sequential(BatchNorm2d(4), Dropout(0.25)), BatchNorm2d(4))",
    };
    tn_tensor *x = images();
    for (int i = 0; i < 3; i++) {
        TN_SCOPE;
        tn_module *net = frozen(nets[i]), *script, *loaded;
        script = script_of(net, x);
        same_modes(net, script);
        ck_assert(tn_module_is_training(net));
        ck_assert(!tn_module_is_training(tn_module_child(net, "1")));
        loaded = saved(script);
        same_modes(net, loaded);
        same_call(net, loaded, x); /* `script` shares the running statistics of `net` */
        train_frozen(net, x);
        train_frozen(loaded, x);
        same_states(net, loaded);
        same_call(net, loaded, x);
        ck_ok(tn_module_eval(net));
        ck_ok(tn_module_eval(loaded));
        same_call(net, loaded, x);
        ck_ok(tn_module_train(net, true));
        ck_ok(tn_module_train(loaded, true));
        same_call(net, loaded, x);
        same_states(net, loaded); /* running statistics have moved */
        ck_ok(tn_module_eval(tn_module_child(net, "1")));
        ck_ok(tn_module_eval(tn_module_child(loaded, "1")));
        same_modes(net, loaded);
        same_call(net, loaded, x);
        same_states(net, loaded);
        tn_module_drop(script);
        script = saved(loaded);
        same_call(net, script, x);
        tn_module_drop(script);
        script = tn_module_copy(loaded);
        same_modes(net, script);
        same_call(net, script, x);
        tn_module_drop(script);
        tn_module_drop(loaded);
        tn_module_drop(net);
    }
    TN_PROVES("SCR-010");
}
END_TEST

START_TEST(other_modes_are_refused)
{
    TN_SCOPE;
    tn_module *net = frozen("Sequential(Conv2d(3, 4, 3), BatchNorm2d(4), Dropout(), ReLU())");
    tn_module *script = script_of(net, images());
    char *text = printed(tn_script_graph_mixed(script), "text");
    ck_assert_msg(strstr(text, "# tenon.graph 1, train(\"2\"), eval(\"1\")") != NULL, "%s", text);
    free(text);
    ck_ok(tn_module_eval(tn_module_child(script, "3"))); /* its mode changes no result */
    ck_made(tn_module_call(script, images()));
    ck_ok(tn_module_train(tn_module_child(script, "1"), true));
    ck_made(tn_module_call(script, images()));
    ck_ok(tn_module_eval(tn_module_child(script, "2")));
    ck_assert_ptr_null(tn_module_call(script, images()));
    ck_error(TN_ERR_RUNTIME, "\"1\": training, \"2\": evaluation",
             "or the modes that they had when the script was made");
    ck_ok(tn_module_eval(script));
    ck_made(tn_module_call(script, images()));
    ck_assert_ptr_null(tn_script_graph_mixed(net));
    ck_error(TN_ERR_TYPE, "tn_script_graph_mixed", "Sequential");
    tn_module_drop(script);
    tn_module_drop(net);
    net = convolutional();
    script = script_of(net, images());
    ck_assert_ptr_null(tn_script_graph_mixed(script));
    ck_assert_int_eq(tn_error_code(), TN_OK);
    tn_module_drop(script);
    tn_module_drop(net);
}
END_TEST

/* A module that is in two places has one mode, whatever the modes of those around it. */
START_TEST(shared_parts_keep_their_mode)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential()"), *script, *loaded;
    tn_module *norm = tn_module_new("BatchNorm1d(3)");
    for (int i = 0; i < 2; i++) {
        tn_module *part = tn_module_new("Sequential(Linear(3, 3))");
        ck_ok(tn_module_add_child(part, "norm", norm));
        ck_ok(tn_module_add_child(net, i == 0 ? "0" : "1", part));
        tn_module_drop(part);
    }
    ck_ok(tn_module_eval(tn_module_child(net, "0")));
    ck_ok(tn_module_train(norm, true));
    script = script_of(net, numbers(0));
    loaded = saved(script);
    same_modes(net, loaded);
    ck_ok(tn_module_eval(norm));
    ck_ok(tn_module_eval(tn_module_child(tn_module_child(loaded, "1"), "norm")));
    same_call(net, loaded, numbers(0));
    tn_module_drop(loaded);
    loaded = script_of(net, numbers(0)); /* root trains, the norm does not */
    same_modes(net, loaded);
    same_call(net, loaded, numbers(0));
    tn_module_drop(loaded);
    tn_module_drop(script);
    tn_module_drop(norm);
    tn_module_drop(net);
}
END_TEST

START_TEST(graphs_of_modes_are_read_back)
{
    TN_SCOPE;
    tn_module *net = frozen("Sequential(Linear(3, 3), BatchNorm1d(3), Dropout())"), *script;
    tn_graph *graph = traced(net, numbers(0), TN_TRACE_THROUGH), *again, *all[2];
    char *text = printed(graph, "code"), *other;
    again = tn_graph_parse(text, net, NULL);
    ck_made(again);
    other = printed(again, "code");
    ck_assert_str_eq(other, text);
    free(text);
    free(other);
    all[0] = graph;
    all[1] = again;
    ck_assert_ptr_null(tn_script_new(net, all, 2));
    ck_error(TN_ERR_VALUE, "two for one mode", "parts in different modes");
    script = tn_script_new(net, all, 1);
    ck_made(script);
    same_call(net, script, numbers(0));
    ck_ok(tn_module_eval(script));
    ck_assert_ptr_null(tn_module_call(script, numbers(0)));
    tn_error_clear();
    ck_assert_ptr_null(tn_graph_parse("graph(%self : Net, %x : float32[2]):  # tenon.graph 1, "
                                      "train(1)\n  return (%x)\n",
                                      NULL, NULL));
    ck_error(TN_ERR_FORMAT, "paths of modules in quotes", "line 1");
    tn_module_drop(script);
    tn_graph_drop(again);
    tn_graph_drop(graph);
    tn_module_drop(net);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { parts_keep_their_modes_and_are_switched_as_in_the_module,
                                   other_modes_are_refused, shared_parts_keep_their_mode,
                                   graphs_of_modes_are_read_back, NULL };
    int fd = mkstemps(path, 7), code;

    if (fd < 0)
        return EXIT_FAILURE;
    close(fd);
    code = suite_run("script_modes", tests);
    unlink(path);
    return code;
}
