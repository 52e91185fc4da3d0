/* SPDX-License-Identifier: MIT
 *
 * DenseNet-121 of torchvision. */
#include "network.h"

/* Each layer gets the results of all layers before it. */
static tn_tensor *dense_block(tn_module *self, tn_tensor *x)
{
    for (int64_t i = 0; i < tn_module_child_count(self); i++) {
        tn_tensor *both[] = { x, tn_module_call(tn_module_child_at(self, i), x) };

        x = tn_cat(both, 2, 1);
    }
    return x;
}

static tn_tensor *densenet(tn_module *self, tn_tensor *x)
{
    x = tn_relu(tn_module_call_child(self, "features", x));
    x = tn_flatten(tn_adaptive_avg_pool2d(x, TN_SHAPE(1, 1)), 1, -1);
    return tn_module_call_child(self, "classifier", x);
}

void network_forwards(tn_module *net)
{
    tn_module_set_forwards(net, "_DenseLayer", tn_module_call_children);
    tn_module_set_forwards(net, "_DenseBlock", dense_block);
    tn_module_set_forwards(net, "_Transition", tn_module_call_children);
    tn_module_set_forwards(net, "DenseNet", densenet);
}
