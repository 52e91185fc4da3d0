/* SPDX-License-Identifier: MIT
 *
 * TransformerEncoderLayer and TransformerDecoderLayer: attention and two linear layers, each with
 * dropout, a residual sum and a normalization. The children have PyTorch's names and order. */
#include "helpers.h"

#include <string.h>

struct transformer {
    int64_t d_model;
    int64_t nhead;
    int64_t dim_feedforward;
    double dropout;
    const char *activation;
    double layer_norm_eps;
    bool batch_first;
    bool norm_first;
    bool bias;
};

static const tn_option options[] = {
    TN_OPTION_ROW(struct transformer, d_model, NULL, "features of input and output",
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct transformer, nhead, NULL, "number of attention heads; must divide d_model",
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct transformer, dim_feedforward, "2048", "features between the linear layers",
                  TN_OPTION_KIND_INT, 0),
    TN_OPTION_ROW(struct transformer, dropout, "0.1", "dropout probability, in training",
                  TN_OPTION_KIND_FLOAT, 0),
    TN_OPTION_ROW(struct transformer, activation, "'relu'", "relu or gelu", TN_OPTION_KIND_STRING,
                  0),
    TN_OPTION_ROW(struct transformer, layer_norm_eps, "1e-05",
                  "added to the variance, for stability", TN_OPTION_KIND_FLOAT, 0),
    TN_OPTION_ROW(struct transformer, batch_first, "False", "tensors are [N, L, E], not [L, N, E]",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_ROW(struct transformer, norm_first, "False",
                  "normalizes the inputs instead of the outputs", TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_ROW(struct transformer, bias, "True", "whether the parts have biases",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_END
};

/* ---- building ---- */

/* Adds the children: `attentions` attention modules, two linear layers with a dropout, and
 * `attentions` + 1 normalizations and dropouts. */
static tn_status build(tn_module *self, int attentions)
{
    static const char *const names[] = { "self_attn", "multihead_attn" };
    const struct transformer *s = tn_module_data(self);
    long long e = s->d_model, wide = s->dim_feedforward;
    const char *bias = layers_truth(s->bias);
    tn_status status = TN_OK;
    char name[16];

    if (strcmp(s->activation, "relu") != 0 && strcmp(s->activation, "gelu") != 0)
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */ "%s: activation should be relu/gelu, not %s",
                       tn_module_type(self), s->activation);
    if (!(s->dropout >= 0 && s->dropout <= 1))
        return tn_fail(TN_ERR_VALUE,
                       "%s: dropout: out of range, got %g; expected a probability from 0 to 1",
                       tn_module_type(self), s->dropout);
    for (int i = 0; i < attentions && status == TN_OK; i++)
        status = layers_child(self, names[i],
                              "MultiheadAttention(%lld, %lld, %g, %s, batch_first=%s)", e,
                              (long long)s->nhead, s->dropout, bias, layers_truth(s->batch_first));
    if (status == TN_OK)
        status = layers_child(self, "linear1", "Linear(%lld, %lld, %s)", e, wide, bias);
    if (status == TN_OK)
        status = layers_child(self, "dropout", "Dropout(%g)", s->dropout);
    if (status == TN_OK)
        status = layers_child(self, "linear2", "Linear(%lld, %lld, %s)", wide, e, bias);
    for (int i = 1; i <= attentions + 1 && status == TN_OK; i++) {
        tn_snprint(name, sizeof name, "norm%d", i);
        status = layers_child(self, name, "LayerNorm(%lld, eps=%g, bias=%s)", e, s->layer_norm_eps,
                              bias);
    }
    for (int i = 1; i <= attentions + 1 && status == TN_OK; i++) {
        tn_snprint(name, sizeof name, "dropout%d", i);
        status = layers_child(self, name, "Dropout(%g)", s->dropout);
    }
    return status;
}

static tn_status encoder_build(tn_module *self)
{
    return build(self, 1);
}

static tn_status decoder_build(tn_module *self)
{
    return build(self, 2);
}

/* ---- calling ---- */

static tn_tensor *through(tn_module *self, const char *name, tn_tensor *x)
{
    tn_module *part = tn_module_child(self, name);

    return part == NULL || x == NULL ? NULL : tn_module_call(part, x);
}

struct attending {
    const char *part;
    const char *dropout;
    tn_value mask;
    tn_value padded;
    bool causal;
};

/* Returns the attention of x to memory, after dropout. */
static tn_tensor *attend(tn_module *self, const struct attending *a, tn_tensor *x,
                         tn_tensor *memory)
{
    static const char *const names[] = { "key_padding_mask", "need_weights", "attn_mask",
                                         "is_causal" };
    const tn_value values[] = { a->padded, tn_value_bool(false), a->mask,
                                tn_value_bool(a->causal) };
    tn_tensor *const in[] = { x, memory, memory };

    return through(self, a->dropout,
                   layers_call(tn_module_child(self, a->part), in, 3, names, values, 4));
}

/* Returns the result of the two linear layers with the activation between them, after dropout. */
static tn_tensor *feed(tn_module *self, const char *dropout, tn_tensor *x)
{
    const struct transformer *s = tn_module_data(self);

    x = through(self, "linear1", x);
    x = strcmp(s->activation, "relu") == 0 ? tn_relu(x) : tn_gelu(x);
    return through(self, dropout, through(self, "linear2", through(self, "dropout", x)));
}

/* One block with residual sum and normalization: attention to memory (to x itself if memory is
 * NULL), or the linear layers if `a` is NULL. */
static tn_tensor *step(tn_module *self, tn_tensor *x, const char *norm, const char *dropout,
                       const struct attending *a, tn_tensor *memory)
{
    const struct transformer *s = tn_module_data(self);
    tn_tensor *in = s->norm_first ? through(self, norm, x) : x;
    tn_tensor *more = a == NULL ? feed(self, dropout, in)
                                : attend(self, a, in, memory == NULL ? in : memory);
    tn_tensor *sum = tn_add(x, more);

    return s->norm_first ? sum : through(self, norm, sum);
}

static tn_status encoder_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    enum { SRC, MASK, PADDED, CAUSAL, COUNT };
    static const char *const names[COUNT] = { "src", "src_mask", "src_key_padding_mask",
                                              "is_causal" };
    struct attending own = { .part = "self_attn", .dropout = "dropout1" };
    tn_value values[COUNT];
    tn_tensor *x = NULL;
    tn_status status = layers_take(self, input, names, COUNT, values);

    if (status == TN_OK)
        status = layers_tensor_of(self, names[SRC], &values[SRC], &x);
    if (status == TN_OK)
        status = layers_flag_of(self, names[CAUSAL], &values[CAUSAL], &own.causal);
    if (status != TN_OK)
        return status;
    own.mask = values[MASK];
    own.padded = values[PADDED];
    x = step(self, x, "norm1", "dropout1", &own, NULL);
    return layers_give(output, step(self, x, "norm2", "dropout2", NULL, NULL));
}

static tn_status decoder_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    enum { TGT, MEMORY, MASK, MEMORY_MASK, PADDED, MEMORY_PADDED, CAUSAL, MEMORY_CAUSAL, COUNT };
    static const char *const names[COUNT] = { "tgt",
                                              "memory",
                                              "tgt_mask",
                                              "memory_mask",
                                              "tgt_key_padding_mask",
                                              "memory_key_padding_mask",
                                              "tgt_is_causal",
                                              "memory_is_causal" };
    struct attending own = { .part = "self_attn", .dropout = "dropout1" };
    struct attending other = { .part = "multihead_attn", .dropout = "dropout2" };
    tn_value values[COUNT];
    tn_tensor *x = NULL, *memory = NULL;
    tn_status status = layers_take(self, input, names, COUNT, values);

    if (status == TN_OK)
        status = layers_tensor_of(self, names[TGT], &values[TGT], &x);
    if (status == TN_OK)
        status = layers_tensor_of(self, names[MEMORY], &values[MEMORY], &memory);
    if (status == TN_OK)
        status = layers_flag_of(self, names[CAUSAL], &values[CAUSAL], &own.causal);
    if (status == TN_OK)
        status = layers_flag_of(self, names[MEMORY_CAUSAL], &values[MEMORY_CAUSAL], &other.causal);
    if (status != TN_OK)
        return status;
    own.mask = values[MASK];
    own.padded = values[PADDED];
    other.mask = values[MEMORY_MASK];
    other.padded = values[MEMORY_PADDED];
    x = step(self, x, "norm1", "dropout1", &own, NULL);
    x = step(self, x, "norm2", "dropout2", &other, memory);
    return layers_give(output, step(self, x, "norm3", "dropout3", NULL, NULL));
}

const tn_layer_def layer_transformer_encoder_layer = {
    TN_HEAD(tn_layer_def),
    .name = "TransformerEncoderLayer",
    .help = "y = module(src, src_mask, src_key_padding_mask, is_causal)",
    .options = options,
    .data_size = sizeof(struct transformer),
    .version = 1,
    .build = encoder_build,
    .call = encoder_call,
    .repr = layers_no_words,
};

const tn_layer_def layer_transformer_decoder_layer = {
    TN_HEAD(tn_layer_def),
    .name = "TransformerDecoderLayer",
    .help = "y = module(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, "
            "memory_key_padding_mask, tgt_is_causal, memory_is_causal)",
    .options = options,
    .data_size = sizeof(struct transformer),
    .version = 1,
    .build = decoder_build,
    .call = decoder_call,
    .repr = layers_no_words,
};
