/* SPDX-License-Identifier: MIT
 *
 * ResNet-50 of torchvision. */
#include "network.h"

static tn_tensor *bottleneck(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_module_call_chain(self, "conv1 bn1 relu conv2 bn2 relu conv3 bn3", x);

    if (tn_module_slot_kind(self, "downsample") == TN_SLOT_CHILD)
        x = tn_module_call_child(self, "downsample", x);
    return tn_relu(tn_add(y, x));
}

static tn_tensor *resnet(tn_module *self, tn_tensor *x)
{
    x = tn_module_call_chain(self, "conv1 bn1 relu maxpool layer1 layer2 layer3 layer4 avgpool", x);
    return tn_module_call_child(self, "fc", tn_flatten(x, 1, -1));
}

void network_forwards(tn_module *net)
{
    tn_module_set_forwards(net, "Bottleneck", bottleneck);
    tn_module_set_forwards(net, "ResNet", resnet);
}
