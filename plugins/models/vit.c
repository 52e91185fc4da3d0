/* SPDX-License-Identifier: MIT
 *
 * Vision transformers (Dosovitskiy et al., 2020) as in torchvision, with the names, the order and
 * the initialization of its VisionTransformer. vit_base is its vit_b_16; vit_tiny has the sizes of
 * timm's vit_tiny_patch16_224. Both also load states with timm's names. */
#include "models.h"

#include <math.h>
#include <stdlib.h>

struct vit {
    int64_t num_classes;
    int64_t image_size;
    int64_t patch_size;
    int64_t in_channels;
    int64_t num_layers;
    int64_t num_heads;
    int64_t hidden_dim;
    int64_t mlp_dim; /* of a network: INT64_MIN (None) is 4 * hidden_dim */
    double dropout;
    double attention_dropout;
    int64_t seq_length; /* of an encoder: patches and the class token */
};

#define HEADS_ROW(def)                                                                             \
    TN_OPTION_INT(struct vit, num_heads, def, "attention heads; must divide hidden_dim")
#define DROPOUT_ROWS                                                                               \
    TN_OPTION_FLOAT(struct vit, dropout, "0.0", "dropout probability, in training"),               \
        TN_OPTION_FLOAT(struct vit, attention_dropout, "0.0", "dropout probability of attention")
#define BLOCK_ROWS                                                                                 \
    TN_OPTION_INT_REQUIRED(struct vit, num_heads, "attention heads; must divide hidden_dim"),      \
        TN_OPTION_INT_REQUIRED(struct vit, hidden_dim, "features of a patch"),                     \
        TN_OPTION_INT_REQUIRED(struct vit, mlp_dim, "features between the linear layers"),         \
        DROPOUT_ROWS
static const tn_option mlp_options[] = {
    TN_OPTION_INT_REQUIRED(struct vit, hidden_dim, "features of a patch"),
    TN_OPTION_INT_REQUIRED(struct vit, mlp_dim, "features between the linear layers"),
    TN_OPTION_FLOAT(struct vit, dropout, "0.0", "dropout probability, in training"), TN_OPTION_END
};
static const tn_option block_options[] = { BLOCK_ROWS, TN_OPTION_END };
static const tn_option encoder_options[] = {
    TN_OPTION_INT_REQUIRED(struct vit, seq_length, "patches, the class token included"),
    TN_OPTION_INT_REQUIRED(struct vit, num_layers, "blocks"), BLOCK_ROWS, TN_OPTION_END
};
#define OPTIONS(heads, features)                                                                   \
    MODELS_NUM_CLASSES(struct vit, "1000"),                                                        \
        TN_OPTION_INT(struct vit, image_size, "224",                                               \
                      "height and width of the images; a multiple of patch_size"),                 \
        TN_OPTION_INT(struct vit, patch_size, "16", "height and width of a patch"),                \
        MODELS_IN_CHANNELS(struct vit, "3"),                                                       \
        TN_OPTION_INT(struct vit, num_layers, "12", "blocks"), HEADS_ROW(heads),                   \
        TN_OPTION_INT(struct vit, hidden_dim, features, "features of a patch"),                    \
        TN_OPTION_ROW(struct vit, mlp_dim, "None",                                                 \
                      "features between the linear layers; None: 4 hidden_dim",                    \
                      TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL),                                     \
        DROPOUT_ROWS, TN_OPTION_END
static const tn_option tiny_options[] = { OPTIONS("3", "192") };
static const tn_option base_options[] = { OPTIONS("12", "768") };

/* ---- checks ---- */

static tn_status check_mlp(tn_module *self)
{
    const struct vit *s = tn_module_data(self);
    tn_status status = models_check_size(self, "hidden_dim", s->hidden_dim, 1);

    if (status == TN_OK && s->mlp_dim != INT64_MIN)
        status = models_check_size(self, "mlp_dim", s->mlp_dim, 1);
    return status == TN_OK ? models_check_share(self, "dropout", s->dropout) : status;
}

static tn_status check_block(tn_module *self)
{
    const struct vit *s = tn_module_data(self);
    tn_status status = check_mlp(self);

    if (status == TN_OK)
        status = models_check_size(self, "num_heads", s->num_heads, 1);
    if (status == TN_OK)
        status = models_check_share(self, "attention_dropout", s->attention_dropout);
    if (status == TN_OK && s->hidden_dim % s->num_heads != 0)
        status = tn_fail(TN_ERR_VALUE,
                         "%s: num_heads: does not divide hidden_dim, got %lld and %lld; expected a "
                         "divisor",
                         tn_module_type(self), (long long)s->num_heads, (long long)s->hidden_dim);
    return status;
}

static tn_status check(tn_module *self)
{
    const struct vit *s = tn_module_data(self);
    tn_status status = models_check_size(self, "num_classes", s->num_classes, 1);

    if (status == TN_OK)
        status = models_check_size(self, "in_channels", s->in_channels, 1);
    if (status == TN_OK)
        status = models_check_size(self, "patch_size", s->patch_size, 1);
    if (status == TN_OK)
        status = models_check_size(self, "image_size", s->image_size, 1);
    if (status == TN_OK && s->image_size % s->patch_size != 0)
        status = tn_fail(TN_ERR_VALUE,
                         "%s: image_size: not a multiple of patch_size, got %lld and %lld; "
                         "expected a multiple",
                         tn_module_type(self), (long long)s->image_size, (long long)s->patch_size);
    if (status == TN_OK)
        status = models_check_count(self, "num_layers", s->num_layers);
    return status == TN_OK ? check_block(self) : status;
}

/* ---- MLPBlock ---- */

static tn_status mlp_build(tn_module *self)
{
    const struct vit *s = tn_module_data(self);
    long long in = s->hidden_dim, wide = s->mlp_dim;
    tn_status status = check_mlp(self);

    if (status != TN_OK)
        return status;
    return tn_module_add_children(self,
                                  "0=Linear(%lld, %lld), 1=GELU(), 2=Dropout(%g), "
                                  "3=Linear(%lld, %lld), 4=Dropout(%g)",
                                  in, wide, s->dropout, wide, in, s->dropout);
}

static tn_status mlp_reset(tn_module *self)
{
    tn_status status = models_init_all(self, "Linear", "weight", "xavier_uniform()");

    return status == TN_OK ? models_init_all(self, "Linear", "bias", "normal(std=1e-06)") : status;
}

/* In files that torchvision wrote before its version 0.14, the layers have names. */
static tn_status mlp_load(tn_module *self, tn_loading *loading)
{
    static const char *const names[][2] = { { "linear_1.weight", "0.weight" },
                                            { "linear_1.bias", "0.bias" },
                                            { "linear_2.weight", "3.weight" },
                                            { "linear_2.bias", "3.bias" } };
    tn_status status = TN_OK;

    for (int i = 0; i < 4 && status == TN_OK; i++)
        status = models_rename(loading, names[i][0], names[i][1]);
    return status == TN_OK ? tn_module_load_own(self, loading) : status;
}

MODEL(vit_mlp, "vit.MLPBlock", "MLPBlock", .help = "two linear layers with GELU between them",
      .options = mlp_options, .data_size = sizeof(struct vit), .build = mlp_build,
      .reset = mlp_reset, .load_state = mlp_load, .forward = tn_module_call_children,
      .repr = models_no_words);

/* ---- EncoderBlock ---- */

static tn_status block_build(tn_module *self)
{
    const struct vit *s = tn_module_data(self);
    long long features = s->hidden_dim;
    tn_status status = check_block(self);

    if (status != TN_OK)
        return status;
    return tn_module_add_children(
        self,
        "ln_1=LayerNorm(%lld, eps=1e-06), "
        "self_attention=MultiheadAttention(%lld, %lld, dropout=%g, batch_first=True), "
        "dropout=Dropout(%g), ln_2=LayerNorm(%lld, eps=1e-06), "
        "mlp=vit.MLPBlock(%lld, %lld, %g)",
        features, features, (long long)s->num_heads, s->attention_dropout, s->dropout, features,
        features, (long long)s->mlp_dim, s->dropout);
}

/* Returns the attention of x to itself, without the weights, which cost time. */
static tn_tensor *attend(tn_module *self, tn_tensor *x)
{
    tn_pack *input = tn_pack_new(), *output = tn_pack_new();
    tn_status status = input == NULL || output == NULL || x == NULL ? tn_error_last_code() : TN_OK;
    tn_tensor *y = NULL;

    for (int i = 0; i < 3 && status == TN_OK; i++)
        status = tn_pack_add(input, NULL, tn_value_tensor(x));
    if (status == TN_OK)
        status = tn_pack_add(input, "need_weights", tn_value_bool(false));
    if (status == TN_OK)
        status = tn_module_call_pack(tn_module_child(self, "self_attention"), input, output);
    if (status == TN_OK)
        y = tn_pack_tensor(output, 0);
    if (y != NULL)
        y = tn_tensor_to_scope(tn_keep(y));
    tn_pack_drop(input);
    tn_pack_drop(output);
    return y;
}

static tn_tensor *block_forward(tn_module *self, tn_tensor *x)
{
    tn_tensor *y = attend(self, tn_module_call_child(self, "ln_1", x));

    x = tn_add(x, tn_module_call_child(self, "dropout", y));
    return tn_add(x, tn_module_call_chain(self, "ln_2 mlp", x));
}

MODEL(vit_block, "vit.EncoderBlock", "EncoderBlock",
      .help = "a block of vit_base: attention and two linear layers, each normalized first",
      .options = block_options, .data_size = sizeof(struct vit), .build = block_build,
      .forward = block_forward, .repr = models_no_words);

/* ---- Encoder ---- */

static tn_status encoder_build(tn_module *self)
{
    const struct vit *s = tn_module_data(self);
    long long features = s->hidden_dim;
    tn_status status = models_check_size(self, "seq_length", s->seq_length, 1);

    if (status == TN_OK)
        status = models_check_count(self, "num_layers", s->num_layers);
    if (status == TN_OK)
        status = check_block(self);
    if (status == TN_OK)
        status = models_add_parameter(self, "pos_embedding",
                                      TN_SHAPE(1, s->seq_length, s->hidden_dim));
    if (status != TN_OK)
        return status;
    return tn_module_add_children(
        self,
        "dropout=Dropout(%g), layers=Sequential(encoder_layer_{0..%lld}=vit.EncoderBlock(%lld, "
        "%lld, %lld, %g, %g)), ln=LayerNorm(%lld, eps=1e-06)",
        s->dropout, (long long)s->num_layers - 1, (long long)s->num_heads, features,
        (long long)s->mlp_dim, s->dropout, s->attention_dropout, features);
}

static tn_status encoder_reset(tn_module *self)
{
    return models_init_one(self, "pos_embedding", "normal(std=0.02)");
}

static tn_tensor *encoder_forward(tn_module *self, tn_tensor *x)
{
    return tn_module_call_chain(self, "dropout layers ln",
                                tn_add(x, tn_module_get(self, "pos_embedding")));
}

MODEL(vit_encoder, "vit.Encoder", "Encoder", .help = "the blocks of vit_base, with positions",
      .options = encoder_options, .data_size = sizeof(struct vit), .build = encoder_build,
      .reset = encoder_reset, .forward = encoder_forward, .repr = models_no_words);

/* ---- the network ---- */

static tn_status build(tn_module *self)
{
    const struct vit *s = tn_module_data(self);
    long long features = s->hidden_dim, patches = 0;
    tn_status status = check(self);

    if (status == TN_OK) {
        patches = s->image_size / s->patch_size;
        status = models_check_size(self, "image_size: patches", patches * patches, 1);
    }
    if (status == TN_OK)
        status = models_add_parameter(self, "class_token", TN_SHAPE(1, 1, s->hidden_dim));
    if (status != TN_OK)
        return status;
    return tn_module_add_children(
        self,
        "conv_proj=Conv2d(%lld, %lld, %lld, stride=%lld), "
        "encoder=vit.Encoder(%lld, %lld, %lld, %lld, %lld, %g, %g), "
        "heads=Sequential(head=Linear(%lld, %lld))",
        (long long)s->in_channels, features, (long long)s->patch_size, (long long)s->patch_size,
        patches * patches + 1, (long long)s->num_layers, (long long)s->num_heads, features,
        s->mlp_dim == INT64_MIN ? 4 * features : (long long)s->mlp_dim, s->dropout,
        s->attention_dropout, features, (long long)s->num_classes);
}

static tn_status reset(tn_module *self)
{
    static const char *const zeros[] = { "class_token", "conv_proj.bias", "heads.head.weight",
                                         "heads.head.bias" };
    const struct vit *s = tn_module_data(self);
    double inputs = (double)s->in_channels * (double)s->patch_size * (double)s->patch_size;
    char init[64];
    tn_status status;

    tn_snprint(init, sizeof init, "trunc_normal(std=%g)", sqrt(1 / inputs));
    status = models_init_one(self, "conv_proj.weight", init);
    for (int i = 0; i < 4 && status == TN_OK; i++)
        status = models_init_one(self, zeros[i], "zeros()");
    return status;
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const struct vit *s = tn_module_data(self);
    tn_tensor *in[2];

    if (models_check_image_size(self, x, s->in_channels, s->image_size) != TN_OK)
        return NULL;
    in[0] = tn_expand(tn_module_get(self, "class_token"), TN_SHAPE(tn_tensor_size(x, 0), -1, -1));
    in[1] = tn_transpose(tn_flatten(tn_module_call_child(self, "conv_proj", x), 2, -1), 1, 2);
    if (in[0] == NULL || in[1] == NULL)
        return NULL;
    x = tn_module_call_child(self, "encoder", tn_cat(in, 2, 1));
    return x != NULL ? tn_module_call_child(self, "heads", tn_select(x, 1, 0)) : NULL;
}

/* ---- states with timm's names ---- */

/* Writes torchvision's name for an entry that timm calls `name`. Returns false if there is none. */
static bool from_timm(const char *name, char *out, size_t size)
{
    static const char *const names[][2] = { { "cls_token", "class_token" },
                                            { "pos_embed", "encoder.pos_embedding" },
                                            { "patch_embed.proj.weight", "conv_proj.weight" },
                                            { "patch_embed.proj.bias", "conv_proj.bias" },
                                            { "norm.weight", "encoder.ln.weight" },
                                            { "norm.bias", "encoder.ln.bias" },
                                            { "head.weight", "heads.head.weight" },
                                            { "head.bias", "heads.head.bias" } };
    static const char *const parts[][2] = { { "norm1.", "ln_1." },
                                            { "attn.qkv.", "self_attention.in_proj_" },
                                            { "attn.proj.", "self_attention.out_proj." },
                                            { "norm2.", "ln_2." },
                                            { "mlp.fc1.", "mlp.0." },
                                            { "mlp.fc2.", "mlp.3." } };
    char *rest;
    long block;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i][0]) == 0)
            return tn_snprint(out, size, "%s", names[i][1]) < (int64_t)size;
    if (strncmp(name, "blocks.", 7) != 0 || name[7] < '0' || name[7] > '9')
        return false;
    block = strtol(name + 7, &rest, 10);
    for (size_t i = 0; *rest == '.' && i < sizeof parts / sizeof *parts; i++) {
        size_t length = strlen(parts[i][0]);

        if (strncmp(rest + 1, parts[i][0], length) == 0)
            return tn_snprint(out, size, "encoder.layers.encoder_layer_%ld.%s%s", block,
                              parts[i][1], rest + 1 + length) < (int64_t)size;
    }
    return false;
}

/* Renames the entries of a state with timm's names to torchvision's names. Both have the same
 * tensors. */
static tn_status load(tn_module *self, tn_loading *loading)
{
    size_t prefix = strlen(loading->prefix);
    char name[512], to[256];
    tn_status status = TN_OK;

    tn_snprint(name, sizeof name, "%scls_token", loading->prefix);
    if (tn_state_find(loading->state, name) < 0)
        return tn_module_load_own(self, loading);
    for (int64_t i = 0; i < tn_state_count(loading->state) && status == TN_OK; i++) {
        const char *entry = tn_state_name(loading->state, i);

        if (strlen(entry) < sizeof name && from_timm(entry + prefix, to, sizeof to)) {
            tn_snprint(name, sizeof name, "%s", entry + prefix);
            status = models_rename(loading, name, to);
        }
    }
    return status == TN_OK ? tn_module_load_own(self, loading) : status;
}

#define VIT                                                                                        \
    .data_size = sizeof(struct vit), .build = build, .reset = reset, .forward = forward,           \
    .load_state = load, .repr = models_no_words
MODEL(vit_tiny, "vit_tiny", "VisionTransformer", VIT, .options = tiny_options,
      .help = "classes of images [N, C, H, W]; a small vision transformer");
MODEL(vit_base, "vit_base", "VisionTransformer", VIT, .options = base_options,
      .help = "classes of images [N, C, H, W]; the vision transformer vit_b_16");
