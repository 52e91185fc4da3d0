/* SPDX-License-Identifier: MIT
 *
 * Trains a graph: the module that runs it has the parameters of the network, and its losses are
 * those of the network, to the bit. */
#include <stdio.h>

#include <tenon/tenon.h>

/* Trains for ten steps, and returns the last loss. */
static double train(tn_module *net)
{
    tn_optimizer *opt = tn_optimizer_new(net, "SGD(lr=0.1)");
    double loss = 0;

    for (int i = 0; i < 10 && opt != NULL; i++) {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_full(TN_SHAPE(4, 16), 0.1 * (i + 1), TN_F32, NULL);
        tn_tensor *mean = tn_mean(tn_square(tn_module_call(net, x)));

        tn_module_zero_grad(net);
        if (tn_backward(mean) != TN_OK || tn_optimizer_step(opt) != TN_OK)
            break;
        loss = tn_item(tn_detach(mean));
    }
    tn_optimizer_drop(opt);
    return loss;
}

int main(void)
{
    TN_SCOPE;
    tn_random_seed(1);
    tn_module *net = tn_module_new("Sequential(Linear(16, 8), Tanh(), Linear(8, 2))");
    tn_module *copy = tn_module_copy(net);
    tn_tensor *x = tn_tensor_full(TN_SHAPE(4, 16), 0.5, TN_F32, NULL);
    tn_graph *graph = tn_module_trace(copy, x, NULL);
    tn_module *traced = tn_graph_module(graph);
    double a = train(net), b = train(traced);

    printf("loss %.9g, as a graph %.9g\n", a, b);
    tn_module_drop(traced);
    tn_graph_drop(graph);
    tn_module_drop(copy);
    tn_module_drop(net);
    if (!tn_failed())
        return a == b ? 0 : 1;
    fprintf(stderr, "%s\n", tn_error_text());
    return 1;
}
