/* SPDX-License-Identifier: MIT
 *
 * ViT-B/16 of torchvision. The layers have the sequence as first dimension, as MultiheadAttention
 * without batch_first expects it. */
#include "network.h"

static tn_tensor *block(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_module_call_child(self, "ln_1", x), *in[] = { y, y, y };

    tn_module_call_many(tn_module_child(self, "self_attention"), in, 3, &y, 1);
    x = tn_add(x, y);
    return tn_add(x, tn_module_call_chain(self, "ln_2 mlp", x));
}

static tn_tensor *vit(tn_module *self, tn_tensor *x)
{
    tn_tensor *both[2] = { tn_expand(tn_module_get(self, "class_token"),
                                     TN_SHAPE(1, tn_tensor_size(x, 0), -1)) };

    both[1] = tn_permute(tn_flatten(tn_module_call_child(self, "conv_proj", x), 2, -1),
                         TN_SHAPE(2, 0, 1));
    x = tn_transpose(tn_module_find_tensor(self, "encoder.pos_embedding"), 0, 1);
    x = tn_add(tn_cat(both, 2, 0), x);
    x = tn_module_call_chain(tn_module_child(self, "encoder"), "dropout layers ln", x);
    return tn_module_call_child(self, "heads", tn_select(x, 0, 0));
}

void network_forwards(tn_module *net)
{
    tn_module *layers = tn_module_find(net, "encoder.layers");

    for (int64_t i = 0; i < tn_module_child_count(layers); i++)
        tn_module_option_set(tn_module_child(tn_module_child_at(layers, i), "self_attention"),
                             "num_heads", tn_value_int(12));
    tn_module_set_forwards(net, "MLPBlock", tn_module_call_children);
    tn_module_set_forwards(net, "EncoderBlock", block);
    tn_module_set_forwards(net, "VisionTransformer", vit);
}
