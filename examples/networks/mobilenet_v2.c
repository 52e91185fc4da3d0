/* SPDX-License-Identifier: MIT
 *
 * MobileNetV2 of torchvision. */
#include "network.h"

static tn_tensor *inverted_residual(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_module_call_child(self, "conv", x);
    bool same = tn_tensor_size(y, 1) == tn_tensor_size(x, 1) &&
                tn_tensor_size(y, 2) == tn_tensor_size(x, 2);

    return same ? tn_add(x, y) : y;
}

static tn_tensor *mobilenet(tn_module *self, tn_tensor *x)
{
    x = tn_adaptive_avg_pool2d(tn_module_call_child(self, "features", x), TN_SHAPE(1, 1));
    return tn_module_call_child(self, "classifier", tn_flatten(x, 1, -1));
}

void network_forwards(tn_module *net)
{
    tn_module_set_forwards(net, "Conv2dNormActivation", tn_module_call_children);
    tn_module_set_forwards(net, "InvertedResidual", inverted_residual);
    tn_module_set_forwards(net, "MobileNetV2", mobilenet);
}
