/* SPDX-License-Identifier: MIT
 *
 * GPT-2 (small) of transformers. The file has the embedding of the tokens once, because lm_head
 * shares it. */
#include "network.h"

enum { HEADS = 12 };

/* transformers' Conv1D: a Linear whose weight is transposed. */
static tn_tensor *conv1d(tn_module *self, tn_tensor *x)
{
    return tn_add(tn_matmul(x, tn_module_get(self, "weight")), tn_module_get(self, "bias"));
}

static tn_tensor *gelu(tn_module *self, tn_tensor *x)
{
    (void)self;
    return tn_gelu(x, "tanh");
}

/* [N, L, E] as [N, HEADS, L, E / HEADS] */
static tn_tensor *heads(tn_tensor *x)
{
    tn_ints shape = TN_SHAPE(tn_tensor_size(x, 0), tn_tensor_size(x, 1), HEADS, -1);

    return tn_transpose(tn_reshape(x, shape), 1, 2);
}

static tn_tensor *attention(tn_module *self, tn_tensor *x)
{
    tn_tensor *part[3] = { NULL, NULL, NULL };

    tn_chunk(tn_module_call_child(self, "c_attn", x), 3, -1, part, 3);
    x = tn_scaled_dot_product_attention(heads(part[0]), heads(part[1]), heads(part[2]), TN_NONE,
                                        0.0, true);
    return tn_module_call_child(self, "c_proj", tn_flatten(tn_transpose(x, 1, 2), 2, -1));
}

static tn_tensor *block(tn_module *self, tn_tensor *x)
{
    x = tn_add(x, tn_module_call_chain(self, "ln_1 attn", x));
    return tn_add(x, tn_module_call_chain(self, "ln_2 mlp.c_fc mlp.act mlp.c_proj", x));
}

static tn_tensor *model(tn_module *self, tn_tensor *words)
{
    tn_tensor *places = tn_arange(words, 0, tn_tensor_size(words, 1));
    tn_tensor *x = tn_add(tn_module_call_child(self, "wte", words),
                          tn_module_call_child(self, "wpe", places));

    x = tn_module_call_children(tn_module_child(self, "h"), tn_module_call_child(self, "drop", x));
    return tn_module_call_child(self, "ln_f", x);
}

void network_forwards(tn_module *net)
{
    tn_module_set_forwards(net, "Conv1D", conv1d);
    tn_module_set_forwards(net, "NewGELUActivation", gelu);
    tn_module_set_forwards(net, "GPT2Attention", attention);
    tn_module_set_forwards(net, "GPT2Block", block);
    tn_module_set_forwards(net, "GPT2Model", model);
    tn_module_set_forwards(net, "GPT2LMHeadModel", tn_module_call_children);
    tn_module_set(tn_module_find(net, "lm_head"), "weight",
                  tn_module_find_tensor(net, "transformer.wte.weight"));
}
