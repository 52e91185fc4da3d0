/* SPDX-License-Identifier: MIT
 *
 * A network that decides by its values how often it runs a layer: tn_loop in the code, and a loop
 * in the graph that is traced from it. */
#include <stdio.h>

#include <tenon/tenon.h>

/* Continues while the mean of the values is small. */
static tn_status is_small(void *self, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                          int64_t n_out)
{
    (void)self, (void)n_in, (void)n_out;
    out[0] = tn_lt(tn_mean(in[0]), tn_tensor_full(TN_SCALAR_SHAPE, 2, TN_F32, NULL));
    return out[0] != NULL ? TN_OK : tn_error_last_code();
}

/* Runs the layer again, and counts. */
static tn_status refine(void *self, tn_tensor *const *in, int64_t n_in, tn_tensor **out,
                        int64_t n_out)
{
    (void)n_in, (void)n_out;
    out[0] = tn_add(in[0], tn_sigmoid(tn_module_call_child(self, "layer", in[0])));
    out[1] = tn_add_scalar(in[1], TN_SCALAR(1.0));
    return out[0] != NULL && out[1] != NULL ? TN_OK : tn_error_last_code();
}

/* Returns the values and the number of steps, side by side. */
static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *const in[] = { x, tn_zeros(TN_SHAPE(1, 1)) };
    tn_tensor *out[2];

    if (tn_loop(is_small, refine, 20, in, out, 2, self) != TN_OK)
        return NULL;
    return tn_cat((tn_tensor *[]){ out[0], out[1] }, 2, 1);
}

int main(void)
{
    TN_SCOPE;
    tn_random_seed(1);
    tn_module *net = tn_module_plain("Adaptive"), *layer = tn_module_new("Linear(4, 4)");
    tn_module_add_child(net, "layer", layer);
    tn_module_set_forward(net, forward, NULL, NULL);
    tn_graph *graph = tn_module_trace(net, tn_zeros(TN_SHAPE(1, 4)), NULL);
    char text[4096];
    int differ = 0;

    if (graph != NULL && tn_graph_print(graph, "text", text, sizeof text) > 0)
        fputs(text, stdout);
    for (int i = 0; i < 4 && graph != NULL; i++) {
        tn_tensor *x = tn_tensor_full(TN_SHAPE(1, 4), 0.7 * i, TN_F32, NULL), *y = NULL;
        tn_tensor *eager = tn_module_call(net, x);

        tn_graph_run(graph, &x, 1, &y, 1);
        differ |= tn_equal(eager, y) != 1;
        printf("from %.1f: %.0f steps\n", 0.7 * i,
               tn_item(tn_detach(tn_select(tn_select(y, 0, 0), 0, 4))));
    }
    tn_graph_drop(graph);
    tn_module_drop(layer);
    tn_module_drop(net);
    if (!tn_failed())
        return differ;
    fprintf(stderr, "%s\n", tn_error_text());
    return 1;
}
