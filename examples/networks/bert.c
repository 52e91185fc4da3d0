/* SPDX-License-Identifier: MIT
 *
 * BERT (base) with a classifier, of transformers. */
#include "network.h"

static tn_tensor *attention(tn_module *self, tn_tensor *x)
{
    tn_ints to = TN_SHAPE(tn_tensor_size(x, 0), tn_tensor_size(x, 1), 12, -1); /* by heads */
    tn_tensor *y[3];

    for (int i = 0; i < 3; i++)
        y[i] = tn_transpose(tn_reshape(tn_module_call(tn_module_child_at(self, i), x), to), 1, 2);
    x = tn_scaled_dot_product_attention(y[0], y[1], y[2]);
    return tn_flatten(tn_transpose(x, 1, 2), 2, -1);
}

static tn_tensor *layer(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = tn_module_call_chain(self, "attention.self attention.output.dense", x);

    x = tn_module_call_chain(self, "attention.output.LayerNorm", tn_add(x, y));
    y = tn_gelu(tn_module_call_chain(self, "intermediate.dense", x));
    y = tn_module_call_chain(self, "output.dense", y);
    return tn_module_call_chain(self, "output.LayerNorm", tn_add(x, y));
}

static tn_tensor *bert(tn_module *self, tn_tensor *words)
{
    tn_tensor *place = tn_module_find_tensor(self, "bert.embeddings.position_embeddings.weight");
    tn_tensor *type = tn_module_find_tensor(self, "bert.embeddings.token_type_embeddings.weight");
    tn_tensor *x = tn_module_call_chain(self, "bert.embeddings.word_embeddings", words);

    x = tn_add(x, tn_narrow(place, 0, 0, tn_tensor_size(words, 1)));
    x = tn_add(x, tn_select(type, 0, 0));
    x = tn_module_call_chain(self, "bert.embeddings.LayerNorm bert.encoder.layer.*", x);
    return tn_module_call_chain(self, "bert.pooler.* classifier", tn_select(x, 1, 0));
}

void network_forwards(tn_module *net)
{
    tn_module_set_forwards(net, "BertSelfAttention", attention);
    tn_module_set_forwards(net, "BertLayer", layer);
    tn_module_set_forwards(net, "BertForSequenceClassification", bert);
}
