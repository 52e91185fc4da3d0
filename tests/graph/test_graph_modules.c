/* SPDX-License-Identifier: MIT
 *
 * Graphs as modules: they train, are copied and traced again, and know their mode. */
#include "tests/graph/suite.h"
#include "tests/graph/traced.h"
#include "tests/spec/proves.h"

START_TEST(a_graph_module_trains_copies_and_is_traced_again)
{
    static const uint32_t flags[] = { 0, TN_TRACE_THROUGH };
    for (int i = 0; i < 2; i++) {
        TN_SCOPE;
        tn_module *eager = convolutional(), *net = convolutional(), *made, *copy;
        tn_tensor *x = images();
        tn_graph *graph = traced(net, x, flags[i]), *again;
        char *text = printed(graph, "text"), *second;
        made = tn_graph_module(graph);
        ck_made(made);
        ck_assert_str_eq(tn_module_type(made), "GraphModule");
        ck_assert_ptr_eq(tn_module_find_tensor(made, "0.weight"),
                         tn_module_find_tensor(net, "0.weight"));
        ck_assert_int_eq(tn_module_parameter_count(made), tn_module_parameter_count(net));
        train_by("SGD(lr=0.1, momentum=0.9)", eager, x, 100);
        train_by("SGD(lr=0.1, momentum=0.9)", made, x, 100);
        same_states(eager, made);
        copy = tn_module_copy(made);
        ck_made(copy);
        ck_assert_ptr_ne(tn_module_find_tensor(copy, "0.weight"),
                         tn_module_find_tensor(net, "0.weight"));
        ck_same(tn_module_call(copy, x), tn_module_call(eager, x));
        train_by("SGD(lr=0.1, momentum=0.9)", copy, x, 3); /* on its own tensors */
        ck_ok(tn_module_train(eager, true));
        ck_same(tn_module_call(made, x), tn_module_call(eager, x));
        again = traced(made, x, flags[i]);
        second = printed(again, "text");
        ck_assert_ptr_nonnull(strstr(second, i == 0 ? "CallMethod" : "conv2d["));
        ck_assert_str_eq(names_of(again), i == 0 ? "input _0 _1 _2 _3 _4 output" : names_of(graph));
        free(text);
        free(second);
        tn_graph_drop(again);
        tn_graph_drop(graph);
        tn_module_drop(copy);
        tn_module_drop(made);
        tn_module_drop(net);
        tn_module_drop(eager);
    }
}
END_TEST

START_TEST(a_graph_for_one_mode_says_so)
{
    TN_SCOPE;
    tn_module *net = convolutional(), *made;
    tn_tensor *x = images();
    ck_ok(tn_module_train(net, false));
    tn_graph *graph = traced(net, x, TN_TRACE_THROUGH);
    char *text = printed(graph, "text");
    ck_assert_ptr_nonnull(strstr(text, "# tenon.graph 1, eval(\"1\"), fixed\n"));
    made = tn_graph_module(graph);
    ck_assert(!tn_module_is_training(made));
    ck_same(tn_module_call(made, x), tn_module_call(net, x));
    ck_ok(tn_module_train(made, true));
    ck_assert_ptr_null(tn_module_call(made, x));
    ck_error(TN_ERR_RUNTIME, "traced in evaluation mode", "training mode");
    ck_assert_ptr_nonnull(tn_module_graph(made));
    ck_assert_ptr_null(tn_module_graph(net));
    ck_error(TN_ERR_TYPE, "Sequential", "GraphModule");
    free(text);
    tn_module_drop(made);
    tn_graph_drop(graph);
    graph = traced(net, x, 0); /* the layers are called: any mode */
    made = tn_graph_module(graph);
    ck_ok(tn_module_train(made, true));
    ck_made(tn_module_call(made, x));
    tn_module_drop(made);
    tn_graph_drop(graph);
    tn_module_drop(net);
}
END_TEST

START_TEST(children_that_the_graph_does_not_use_are_left_out)
{
    TN_SCOPE;
    tn_module *module = own(mixed_forward), *extra = tn_module_new("Linear(2, 2)"), *made;
    ck_ok(tn_module_add_child(module, "unused", extra));
    tn_graph *graph = traced(module, numbers(0), 0);
    made = tn_graph_module(graph);
    ck_assert_int_eq(tn_module_child_count(made), 1);
    ck_assert_str_eq(tn_module_child_name(made, 0), "fc");
    ck_same(tn_module_call(made, numbers(1)), tn_module_call(module, numbers(1)));
    tn_module_drop(made);
    tn_graph_drop(graph);
    tn_module_drop(extra);
    tn_module_drop(module);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_graph_module_trains_copies_and_is_traced_again,
                                   a_graph_for_one_mode_says_so,
                                   children_that_the_graph_does_not_use_are_left_out, NULL };
    return suite_run("graph_modules", tests);
}
