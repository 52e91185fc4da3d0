/* SPDX-License-Identifier: MIT
 *
 * ConvNeXt-Tiny of torchvision. */
#include "network.h"

/* The printed text of the model lacks the dimensions of the two Permute modules of each block, its
 * children 1 and 6, so this function permutes in their place. */
static tn_tensor *block(tn_module *self, tn_tensor *x)
{
    tn_module *body = tn_module_child(self, "block");
    tn_tensor *y = tn_permute(tn_module_call_child(body, "0", x), TN_SHAPE(0, 2, 3, 1));

    y = tn_mul(tn_permute(tn_module_call_chain(body, "2 3 4 5", y), TN_SHAPE(0, 3, 1, 2)),
               tn_module_get(self, "layer_scale"));
    return tn_add(x, tn_module_call_child(self, "stochastic_depth", y));
}

void network_forwards(tn_module *net)
{
    tn_module_set_forwards(net, "Conv2dNormActivation", tn_module_call_children);
    tn_module_set_forwards(net, "CNBlock", block);
    tn_module_set_forwards(net, "ConvNeXt", tn_module_call_children);
}
