/* SPDX-License-Identifier: MIT
 *
 * EfficientNet-B0 of torchvision. */
#include "network.h"

static tn_tensor *squeeze_excitation(tn_module *self, tn_tensor *x)
{
    return tn_mul(x, tn_module_call_chain(self, "avgpool fc1 activation fc2 scale_activation", x));
}

static tn_tensor *mbconv(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_module_call_chain(self, "block stochastic_depth", x);
    bool same = tn_tensor_size(y, 1) == tn_tensor_size(x, 1) &&
                tn_tensor_size(y, 2) == tn_tensor_size(x, 2);

    return same ? tn_add(x, y) : tn_module_call_child(self, "block", x);
}

static tn_tensor *efficientnet(tn_module *self, tn_tensor *x)
{
    x = tn_flatten(tn_module_call_chain(self, "features avgpool", x), 1, -1);
    return tn_module_call_child(self, "classifier", x);
}

void network_forwards(tn_module *net)
{
    tn_module_set_forwards(net, "Conv2dNormActivation", tn_module_call_children);
    tn_module_set_forwards(net, "SqueezeExcitation", squeeze_excitation);
    tn_module_set_forwards(net, "MBConv", mbconv);
    tn_module_set_forwards(net, "EfficientNet", efficientnet);
}
