/* SPDX-License-Identifier: MIT
 *
 * TransformerEncoder, TransformerDecoder and Transformer: stacks of layers with an optional
 * normalization at the end. The layers of a stack start as copies of one layer. */
#include "helpers.h"

#include <string.h>

/* ---- stacks ---- */

struct stack {
    tn_value layer;
    int64_t num_layers;
    tn_value norm;
    bool enable_nested_tensor;
    bool mask_check;
};

/* A macro, because two tables begin with the same rows. */
#define STACK(name_, help_)                                                                        \
    TN_OPTION_NAMED(name_, struct stack, layer, NULL, help_, TN_OPTION_KIND_VALUE,                 \
                    TN_OPTION_REQUIRED),                                                           \
        TN_OPTION_ROW(struct stack, num_layers, NULL, "number of layers", TN_OPTION_KIND_INT,      \
                      TN_OPTION_REQUIRED),                                                         \
        TN_OPTION_ROW(struct stack, norm, "None",                                                  \
                      "a module applied at the end, such as LayerNorm(512)", TN_OPTION_KIND_VALUE, \
                      0)
static const tn_option encoder_options[] = {
    STACK("encoder_layer", "the layer that is copied, such as TransformerEncoderLayer(512, 8)"),
    TN_OPTION_ROW(struct stack, enable_nested_tensor, "True",
                  "accepted without effect: padded positions are always computed",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_ROW(struct stack, mask_check, "True",
                  "accepted without effect, like enable_nested_tensor", TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_END
};
static const tn_option decoder_options[] = {
    STACK("decoder_layer", "the layer that is copied, such as TransformerDecoderLayer(512, 8)"),
    TN_OPTION_END
};

static tn_status add_copies(tn_module *list, tn_module *first, int64_t count)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        tn_module *made = tn_module_copy(first);

        status = made == NULL ? tn_error_last_code() : tn_list_append(list, made);
        tn_module_drop(made);
    }
    return status;
}

static tn_status stack_build(tn_module *self)
{
    const struct stack *s = tn_module_data(self);
    tn_module *first, *list;
    tn_status status;

    if (s->num_layers < 1)
        return tn_fail(TN_ERR_VALUE, "%s: num_layers: out of range, got %lld; expected 1 or more",
                       tn_module_type(self), (long long)s->num_layers);
    first = layers_module(&s->layer);
    if (first == NULL)
        return tn_error_prefix("%s: layers: ", tn_module_type(self));
    list = tn_module_new("ModuleList()");
    status = list == NULL ? tn_error_last_code() : add_copies(list, first, s->num_layers);
    if (status == TN_OK)
        status = tn_module_add_child(self, "layers", list);
    tn_module_drop(list);
    tn_module_drop(first);
    if (status == TN_OK && s->norm.kind != TN_VALUE_NONE)
        status = layers_child_value(self, "norm", &s->norm);
    return status;
}

/* Calls all layers in order, then the normalization. */
static tn_status run(tn_module *self, tn_tensor *x, tn_tensor *memory, const char *const *names,
                     const tn_value *values, int64_t count, tn_pack *output)
{
    const struct stack *s = tn_module_data(self);
    tn_module *list = tn_module_child(self, "layers");
    tn_tensor *in[2] = { x, memory };

    for (int64_t i = 0; i < tn_module_child_count(list) && in[0] != NULL; i++)
        in[0] = layers_call(tn_module_child_at(list, i), in, memory != NULL ? 2 : 1, names, values,
                            count);
    if (s->norm.kind != TN_VALUE_NONE)
        in[0] = layers_call(tn_module_child(self, "norm"), in, 1, NULL, NULL, 0);
    return layers_give(output, in[0]);
}

enum { ENCODER_MORE = 3, DECODER_MORE = 6 };

static tn_status encoder_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    static const char *const names[] = { "src", "mask", "src_key_padding_mask", "is_causal" };
    static const char *const part_names[] = { "src_mask", "src_key_padding_mask", "is_causal" };
    tn_value values[1 + ENCODER_MORE];
    tn_tensor *x = NULL;
    bool causal;
    tn_status status = layers_take(self, input, names, 1 + ENCODER_MORE, values);

    if (status == TN_OK)
        status = layers_tensor_of(self, names[0], &values[0], &x);
    if (status == TN_OK)
        status = layers_flag_of(self, names[3], &values[3], &causal);
    return status == TN_OK ? run(self, x, NULL, part_names, values + 1, ENCODER_MORE, output)
                           : status;
}

static const char *const decoder_names[] = { "tgt",
                                             "memory",
                                             "tgt_mask",
                                             "memory_mask",
                                             "tgt_key_padding_mask",
                                             "memory_key_padding_mask",
                                             "tgt_is_causal",
                                             "memory_is_causal" };

static tn_status decoder_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_value values[2 + DECODER_MORE];
    tn_tensor *x = NULL, *memory = NULL;
    bool causal;
    tn_status status = layers_take(self, input, decoder_names, 2 + DECODER_MORE, values);

    if (status == TN_OK)
        status = layers_tensor_of(self, decoder_names[0], &values[0], &x);
    if (status == TN_OK)
        status = layers_tensor_of(self, decoder_names[1], &values[1], &memory);
    for (int i = 6; i < 8 && status == TN_OK; i++)
        status = layers_flag_of(self, decoder_names[i], &values[i], &causal);
    return status == TN_OK
               ? run(self, x, memory, decoder_names + 2, values + 2, DECODER_MORE, output)
               : status;
}

const tn_layer_def layer_transformer_encoder = {
    TN_HEAD(tn_layer_def),
    .name = "TransformerEncoder",
    .help = "y = module(src, mask, src_key_padding_mask, is_causal)",
    .options = encoder_options,
    .data_size = sizeof(struct stack),
    .version = 1,
    .build = stack_build,
    .call = encoder_call,
    .repr = layers_no_words,
};

const tn_layer_def layer_transformer_decoder = {
    TN_HEAD(tn_layer_def),
    .name = "TransformerDecoder",
    .help = "y = module(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, "
            "memory_key_padding_mask, tgt_is_causal, memory_is_causal)",
    .options = decoder_options,
    .data_size = sizeof(struct stack),
    .version = 1,
    .build = stack_build,
    .call = decoder_call,
    .repr = layers_no_words,
};

/* ---- Transformer: an encoder and a decoder ---- */

struct whole {
    int64_t d_model;
    int64_t nhead;
    int64_t num_encoder_layers;
    int64_t num_decoder_layers;
    int64_t dim_feedforward;
    double dropout;
    const char *activation;
    tn_value custom_encoder;
    tn_value custom_decoder;
    double layer_norm_eps;
    bool batch_first;
    bool norm_first;
    bool bias;
};

static const tn_option whole_options[] = {
    TN_OPTION_ROW(struct whole, d_model, "512", "features of input and output", TN_OPTION_KIND_INT,
                  0),
    TN_OPTION_ROW(struct whole, nhead, "8", "number of attention heads; must divide d_model",
                  TN_OPTION_KIND_INT, 0),
    TN_OPTION_ROW(struct whole, num_encoder_layers, "6", "layers of the encoder",
                  TN_OPTION_KIND_INT, 0),
    TN_OPTION_ROW(struct whole, num_decoder_layers, "6", "layers of the decoder",
                  TN_OPTION_KIND_INT, 0),
    TN_OPTION_ROW(struct whole, dim_feedforward, "2048", "features between the linear layers",
                  TN_OPTION_KIND_INT, 0),
    TN_OPTION_ROW(struct whole, dropout, "0.1", "dropout probability, in training",
                  TN_OPTION_KIND_FLOAT, 0),
    TN_OPTION_ROW(struct whole, activation, "'relu'", "relu or gelu", TN_OPTION_KIND_STRING, 0),
    TN_OPTION_ROW(struct whole, custom_encoder, "None", "a module that replaces the encoder",
                  TN_OPTION_KIND_VALUE, 0),
    TN_OPTION_ROW(struct whole, custom_decoder, "None", "a module that replaces the decoder",
                  TN_OPTION_KIND_VALUE, 0),
    TN_OPTION_ROW(struct whole, layer_norm_eps, "1e-05", "added to the variance, for stability",
                  TN_OPTION_KIND_FLOAT, 0),
    TN_OPTION_ROW(struct whole, batch_first, "False", "tensors are [N, L, E], not [L, N, E]",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_ROW(struct whole, norm_first, "False", "normalizes the inputs instead of the outputs",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_ROW(struct whole, bias, "True", "whether the parts have biases", TN_OPTION_KIND_BOOL,
                  0),
    TN_OPTION_END
};

static tn_status add_stack(tn_module *self, const char *name, const char *Name, int64_t count,
                           const tn_value *custom)
{
    const struct whole *s = tn_module_data(self);

    if (custom->kind != TN_VALUE_NONE)
        return layers_child_value(self, name, custom);
    return layers_child(
        self, name,
        "Transformer%s(Transformer%sLayer(%lld, %lld, %lld, %g, '%s', %g, %s, %s, %s), %lld, "
        "LayerNorm(%lld, eps=%g, bias=%s))",
        Name, Name, (long long)s->d_model, (long long)s->nhead, (long long)s->dim_feedforward,
        s->dropout, s->activation, s->layer_norm_eps, layers_truth(s->batch_first),
        layers_truth(s->norm_first), layers_truth(s->bias), (long long)count, (long long)s->d_model,
        s->layer_norm_eps, layers_truth(s->bias));
}

static tn_status whole_build(tn_module *self)
{
    const struct whole *s = tn_module_data(self);
    tn_status status;

    if (strcmp(s->activation, "relu") != 0 && strcmp(s->activation, "gelu") != 0)
        return tn_fail(
            TN_ERR_RUNTIME,
            /* PyTorch's wording */ "Transformer: activation should be relu/gelu, not %s",
            s->activation);
    status = add_stack(self, "encoder", "Encoder", s->num_encoder_layers, &s->custom_encoder);
    return status == TN_OK
               ? add_stack(self, "decoder", "Decoder", s->num_decoder_layers, &s->custom_decoder)
               : status;
}

static tn_status reset_matrix(void *user, const char *path, tn_tensor *tensor)
{
    (void)user;
    (void)path;
    return tn_tensor_ndim(tensor) > 1 ? tn_init(tensor, "xavier_uniform()") : TN_OK;
}

static tn_status whole_reset(tn_module *self)
{
    return tn_module_each_tensor(self, TN_SLOT_PARAMETER, false, reset_matrix, NULL);
}

static tn_status whole_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    enum {
        SRC,
        TGT,
        SRC_MASK,
        TGT_MASK,
        MEMORY_MASK,
        SRC_PADDED,
        TGT_PADDED,
        MEMORY_PADDED,
        SRC_CAUSAL,
        TGT_CAUSAL,
        MEMORY_CAUSAL,
        COUNT
    };
    static const char *const names[COUNT] = { "src",
                                              "tgt",
                                              "src_mask",
                                              "tgt_mask",
                                              "memory_mask",
                                              "src_key_padding_mask",
                                              "tgt_key_padding_mask",
                                              "memory_key_padding_mask",
                                              "src_is_causal",
                                              "tgt_is_causal",
                                              "memory_is_causal" };
    static const char *const encoder_names[] = { "mask", "src_key_padding_mask", "is_causal" };
    const struct whole *s = tn_module_data(self);
    tn_value v[COUNT];
    tn_tensor *src = NULL, *tgt = NULL, *y;
    tn_status status = layers_take(self, input, names, COUNT, v);

    if (status == TN_OK)
        status = layers_tensor_of(self, names[SRC], &v[SRC], &src);
    if (status == TN_OK)
        status = layers_tensor_of(self, names[TGT], &v[TGT], &tgt);
    if (status != TN_OK)
        return status;
    int batch = s->batch_first ? 0 : 1;
    if (tn_tensor_ndim(src) == 3 && tn_tensor_ndim(tgt) == 3 &&
        tn_tensor_size(src, batch) != tn_tensor_size(tgt, batch))
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */
                       "Transformer: the batch number of src and tgt must be "
                       "equal, got %lld and %lld",
                       (long long)tn_tensor_size(src, batch),
                       (long long)tn_tensor_size(tgt, batch));
    if (tn_tensor_ndim(src) < 1 || tn_tensor_ndim(tgt) < 1 ||
        tn_tensor_size(src, -1) != s->d_model || tn_tensor_size(tgt, -1) != s->d_model)
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */
                       "Transformer: the feature number of src and tgt must be equal to d_model, "
                       "%lld; they have %lld and %lld",
                       (long long)s->d_model,
                       (long long)(tn_tensor_ndim(src) > 0 ? tn_tensor_size(src, -1) : 1),
                       (long long)(tn_tensor_ndim(tgt) > 0 ? tn_tensor_size(tgt, -1) : 1));
    const tn_value encoder[] = { v[SRC_MASK], v[SRC_PADDED], v[SRC_CAUSAL] };
    const tn_value decoder[] = { v[TGT_MASK],      v[MEMORY_MASK], v[TGT_PADDED],
                                 v[MEMORY_PADDED], v[TGT_CAUSAL],  v[MEMORY_CAUSAL] };
    y = layers_call(tn_module_child(self, "encoder"), &src, 1, encoder_names, encoder,
                    ENCODER_MORE);
    if (y != NULL) {
        tn_tensor *in[] = { tgt, y };

        y = layers_call(tn_module_child(self, "decoder"), in, 2, decoder_names + 2, decoder,
                        DECODER_MORE);
    }
    return layers_give(output, y);
}

const tn_layer_def layer_transformer = {
    TN_HEAD(tn_layer_def),
    .name = "Transformer",
    .help = "y = module(src, tgt, src_mask, tgt_mask, memory_mask, src_key_padding_mask, "
            "tgt_key_padding_mask, memory_key_padding_mask, src_is_causal, tgt_is_causal, "
            "memory_is_causal)",
    .options = whole_options,
    .data_size = sizeof(struct whole),
    .version = 1,
    .build = whole_build,
    .reset = whole_reset,
    .call = whole_call,
    .repr = layers_no_words,
};
