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

/* y = relu(w x + child(x)) with a parameter of its own, in place. */
static TN_ATTR(unused) tn_tensor *mixed_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_mul(tn_module_get(self, "scale"), x);
    tn_add_(y, tn_module_call_child(self, "fc", x), NULL);
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
