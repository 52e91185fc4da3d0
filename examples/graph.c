/* SPDX-License-Identifier: MIT
 *
 * A network as a graph: trace it, edit the graph, fold its batch norm, run it as a module, and
 * measure each node. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <tenon/tenon.h>

/* Runs each node as the interpreter does, and prints how long it took. */
static tn_status timed(void *user, tn_node *node, tn_tensor *const *in, int64_t n_in,
                       tn_tensor **out, int64_t n_out)
{
    struct timespec from, to;
    tn_status status;

    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &from);
    status = tn_node_run(node, in, n_in, out, n_out);
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("  %-12s %6.1f us\n", tn_node_name(node),
           1e6 * (double)(to.tv_sec - from.tv_sec) + 1e-3 * (double)(to.tv_nsec - from.tv_nsec));
    return status;
}

int main(void)
{
    TN_SCOPE;
    tn_module *net = tn_module_new(
        "Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), ReLU(), Flatten(), Linear(288, 4))");
    tn_tensor *x = tn_tensor_full(TN_SHAPE(2, 3, 8, 8), 0.5, TN_F32, NULL);
    tn_tracing_options how = TN_TRACING_OPTIONS;
    char text[8192];

    how.dynamic = "[N, 3, 8, 8]";
    how.flags = TN_TRACE_THROUGH; /* operators, not layers, are the nodes */
    tn_module_train(net, false);
    tn_graph *graph = tn_module_trace(net, x, &how);
    tn_node *relu = tn_graph_find(graph, "relu"), *in = tn_node_input(relu, 0);
    tn_node *silu = tn_graph_add_op(graph, relu, "silu()", &in, 1); /* another activation */
    tn_node_replace_uses(relu, silu);
    tn_node_erase(relu); /* refused while it has users */
    tn_graph_replace(graph, "linear(x, w, b)", "add(linear(x, w, None), b)");
    tn_graph_pass(graph, "conv_bn, dropout, constants, dead");
    tn_graph_lint(graph);
    if (tn_graph_print(graph, "text", text, sizeof text) > 0)
        printf("%s", text);

    tn_module *fast = tn_graph_module(graph); /* has state, trains, can be copied */
    tn_tensor *more = tn_tensor_full(TN_SHAPE(5, 3, 8, 8), 0.5, TN_F32, NULL), *y = NULL;
    tn_grad_begin(false);
    y = tn_module_call(fast, more);
    if (y != NULL)
        printf("a batch of 5: [%lld, %lld]\n", (long long)tn_tensor_size(y, 0),
               (long long)tn_tensor_size(y, 1));
    tn_graph_run_with(graph, &x, 1, &y, 1, timed, NULL);
    tn_grad_end();
    tn_module_drop(fast);
    tn_graph_drop(graph);
    tn_module_drop(net);
    if (!tn_failed())
        return 0;
    fprintf(stderr, "%s\n", tn_error_text());
    return 1;
}
