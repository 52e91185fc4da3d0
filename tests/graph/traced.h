/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of traced graphs: networks, modules of the program, and their traces. */
#ifndef TN_TESTS_GRAPH_TRACED_H
#define TN_TESTS_GRAPH_TRACED_H

#include "tests/graph/suite.h"

/* A small network for `images`; the same parameters in every call. */
static TN_ATTR(unused) tn_module *convolutional(void)
{
    tn_module *net;

    tn_random_seed(5);
    net = tn_module_new(
        "Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), ReLU(), Flatten(), Linear(288, 4))");
    ck_made(net);
    return net;
}

static TN_ATTR(unused) tn_tensor *images(void)
{
    return tn_tensor_full(TN_SHAPE(2, 3, 8, 8), 0.5, TN_F32, NULL);
}

static TN_ATTR(unused) tn_graph *traced(tn_module *module, tn_tensor *x, uint32_t flags)
{
    tn_tracing_options how = TN_TRACING_OPTIONS;
    tn_graph *graph;

    how.flags = flags;
    graph = tn_module_trace(module, x, &how);
    ck_made(graph);
    return graph;
}

static TN_ATTR(unused) tn_module *script_of(tn_module *net, tn_tensor *x)
{
    tn_module *script = tn_module_script(net, x, NULL);

    ck_made(script);
    return script;
}

/* Trains in training mode; the same random numbers in every call. */
static TN_ATTR(unused) void train_by(const char *rule, tn_module *net, tn_tensor *x, int steps)
{
    tn_optimizer *optimizer = tn_optimizer_new(net, rule);

    ck_made(optimizer);
    tn_random_seed(11);
    ck_ok(tn_module_train(net, true));
    for (int i = 0; i < steps; i++) {
        TN_SCOPE;
        ck_ok(tn_module_zero_grad(net));
        ck_ok(tn_backward(tn_mean(tn_square(tn_module_call(net, x)))));
        ck_ok(tn_optimizer_step(optimizer));
    }
    tn_optimizer_drop(optimizer);
}

/* The states have the same tensors under the same names, and the same ones are parameters. */
static TN_ATTR(unused) void same_states(tn_module *a, tn_module *b)
{
    tn_state *x = tn_module_state(a), *y = tn_module_state(b);

    ck_assert_int_eq(tn_state_count(x), tn_state_count(y));
    for (int64_t i = 0; i < tn_state_count(x); i++) {
        tn_tensor *p = tn_state_tensor(x, i), *q = tn_state_get(y, tn_state_name(x, i));

        ck_same(p, q);
        ck_assert_int_eq(tn_tensor_is_parameter(p), tn_tensor_is_parameter(q));
    }
    tn_state_drop(x);
    tn_state_drop(y);
}

/* The same, in the same order. */
static TN_ATTR(unused) void same_states_in_order(tn_module *a, tn_module *b)
{
    tn_state *x = tn_module_state(a), *y = tn_module_state(b);

    same_states(a, b);
    for (int64_t i = 0; i < tn_state_count(x); i++)
        ck_assert_str_eq(tn_state_name(x, i), tn_state_name(y, i));
    tn_state_drop(x);
    tn_state_drop(y);
}

/* y = relu(scale x + fc(x)), with the sum computed in place. */
static TN_ATTR(unused) tn_tensor *mixed_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_mul(tn_module_get(self, "scale"), x);
    tn_add_(y, tn_module_call_child(self, "fc", x));
    return tn_relu(y);
}

/* A module of the program with a parameter "scale" and a child "fc". */
static TN_ATTR(unused) tn_module *own(tn_tensor *(*forward)(tn_module *, tn_tensor *))
{
    tn_module *module = tn_module_plain("Net"), *child = tn_module_new("Linear(3, 3)");

    ck_ok(tn_module_add_parameter(module, "scale", tn_parameter(numbers(1), true)));
    ck_ok(tn_module_add_child(module, "fc", child));
    tn_module_drop(child);
    ck_ok(tn_module_set_forward(module, forward, NULL, NULL));
    return module;
}

#endif
