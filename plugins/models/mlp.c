/* SPDX-License-Identifier: MIT
 *
 * Small networks: mlp, as torchvision.ops.MLP with its names and order, and lenet5 (LeCun et al.,
 * 1998) for images of any size from 4 x 4. */
#include "models.h"

/* ---- mlp ---- */

struct mlp {
    tn_ints sizes;
    const char *activation;
    const char *norm;
    double dropout;
    bool bias;
    bool flatten;
};

static const tn_option mlp_options[] = {
    TN_OPTION_ROW(struct mlp, sizes, NULL,
                  "features of the input, of each layer in between, and of the result",
                  TN_OPTION_KIND_INTS, TN_OPTION_REQUIRED),
    TN_OPTION_STRING(struct mlp, activation, "'relu'",
                     "between the layers: relu, gelu, silu, tanh, sigmoid, elu or leaky_relu"),
    TN_OPTION_STRING(struct mlp, norm, "'none'",
                     "normalization before each activation: none, batch or layer"),
    TN_OPTION_FLOAT(struct mlp, dropout, "0.0", "dropout probability after each layer"),
    TN_OPTION_BOOL(struct mlp, bias, "True", "whether the layers have biases"),
    TN_OPTION_BOOL(struct mlp, flatten, "False",
                   "whether all dimensions of the input but the first are merged, as for images"),
    TN_OPTION_END
};

/* Returns the name of the layer for the name of an activation. */
static const char *layer_of(const char *activation)
{
    static const char *const names[][2] = { { "relu", "ReLU" },           { "gelu", "GELU" },
                                            { "silu", "SiLU" },           { "tanh", "Tanh" },
                                            { "sigmoid", "Sigmoid" },     { "elu", "ELU" },
                                            { "leaky_relu", "LeakyReLU" } };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(activation, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

static tn_status mlp_check(tn_module *self)
{
    const struct mlp *s = tn_module_data(self);
    tn_status status = TN_OK;

    if (s->sizes.count < 2)
        return tn_fail(TN_ERR_VALUE,
                       "%s: sizes: too few, got %lld; expected 2 or more, as in [64, 32, 10]",
                       tn_module_type(self), (long long)s->sizes.count);
    for (int64_t i = 0; i < s->sizes.count && status == TN_OK; i++)
        status = models_check_size(self, "sizes", s->sizes.at[i], 1);
    if (status == TN_OK && layer_of(s->activation) == NULL)
        status = models_check_word(self, "activation", s->activation,
                                   "relu gelu silu tanh sigmoid elu leaky_relu");
    if (status == TN_OK)
        status = models_check_word(self, "norm", s->norm, "none batch layer");
    return status == TN_OK ? models_check_share(self, "dropout", s->dropout) : status;
}

static tn_status mlp_build(tn_module *self)
{
    const struct mlp *s = tn_module_data(self);
    const char *norm = strcmp(s->norm, "batch") == 0   ? "BatchNorm1d"
                       : strcmp(s->norm, "layer") == 0 ? "LayerNorm"
                                                       : NULL;
    long long at = 0;
    tn_status status = mlp_check(self);

    for (int64_t i = 1; i < s->sizes.count && status == TN_OK; i++) {
        long long in = s->sizes.at[i - 1], out = s->sizes.at[i];
        bool last = i == s->sizes.count - 1;

        status = tn_module_add_children(self, "%lld=Linear(%lld, %lld, bias=%b)", at++, in, out,
                                        s->bias);
        if (status == TN_OK && !last && norm != NULL)
            status = tn_module_add_children(self, "%lld=%s(%lld)", at++, norm, out);
        if (status == TN_OK && !last)
            status = tn_module_add_children(self, "%lld=%s()", at++, layer_of(s->activation));
        if (status == TN_OK)
            status = tn_module_add_children(self, "%lld=Dropout(%g)", at++, s->dropout);
    }
    return status;
}

static tn_tensor *mlp_forward(tn_module *self, tn_tensor *x)
{
    const struct mlp *s = tn_module_data(self);

    if (s->flatten && tn_tensor_ndim(x) > 2)
        x = tn_flatten(x, 1, -1);
    if (x != NULL && tn_tensor_size(x, -1) != s->sizes.at[0]) {
        tn_fail(
            TN_ERR_VALUE,
            "%s: input: wrong size of the last dimension, got %lld; expected %lld, the first of "
            "sizes%s",
            tn_module_type(self), (long long)tn_tensor_size(x, -1), (long long)s->sizes.at[0],
            tn_tensor_ndim(x) > 2 ? "; flatten=True merges the dimensions of images" : "");
        return NULL;
    }
    return x != NULL ? tn_module_call_children(self, x) : NULL;
}

MODEL(mlp, "mlp", "MLP", .help = "linear layers with an activation between them",
      .options = mlp_options, .data_size = sizeof(struct mlp), .build = mlp_build,
      .forward = mlp_forward, .repr = models_no_words);

/* ---- lenet5 ---- */

struct lenet {
    int64_t num_classes;
    int64_t in_channels;
    int64_t image_size;
    const char *activation;
    const char *pool;
};

static const tn_option lenet_options[] = {
    MODELS_NUM_CLASSES(struct lenet, "10"),
    MODELS_IN_CHANNELS(struct lenet, "1"),
    TN_OPTION_INT(struct lenet, image_size, "32",
                  "height and width of the images, at least 4; convolutions are padded below 32"),
    TN_OPTION_STRING(struct lenet, activation, "'tanh'", "tanh or relu"),
    TN_OPTION_STRING(struct lenet, pool, "'avg'", "pooling: avg or max"),
    TN_OPTION_END
};

static tn_status lenet_check(tn_module *self)
{
    const struct lenet *s = tn_module_data(self);
    tn_status status = models_check_size(self, "num_classes", s->num_classes, 1);

    if (status == TN_OK)
        status = models_check_size(self, "in_channels", s->in_channels, 1);
    if (status == TN_OK && (s->image_size < 4 || s->image_size > 65536))
        status = tn_fail(TN_ERR_VALUE,
                         "%s: image_size: out of range, got %lld; expected 4 to 65536",
                         tn_module_type(self), (long long)s->image_size);
    if (status == TN_OK)
        status = models_check_word(self, "activation", s->activation, "tanh relu");
    return status == TN_OK ? models_check_word(self, "pool", s->pool, "avg max") : status;
}

/* The original pads images of 28 x 28 to 32 x 32; so does the first convolution here. Below 28 the
 * second one is padded too, or nothing would be left of the image. */
static tn_status lenet_build(tn_module *self)
{
    const struct lenet *s = tn_module_data(self);
    int64_t first = s->image_size < 32 ? 2 : 0, second = s->image_size < 28 ? 2 : 0;
    int64_t size = (s->image_size + 2 * first - 4) / 2;
    tn_status status = lenet_check(self);

    if (status != TN_OK)
        return status;
    size = (size + 2 * second - 4) / 2;
    return tn_module_add_children(
        self,
        "conv1=Conv2d(%lld, 6, 5, padding=%d), conv2=Conv2d(6, 16, 5, padding=%d), "
        "fc1=Linear(%lld, 120), fc2=Linear(120, 84), fc3=Linear(84, %lld)",
        (long long)s->in_channels, (int)first, (int)second, (long long)(16 * size * size),
        (long long)s->num_classes);
}

static tn_tensor *activated(tn_module *self, const char *name, tn_tensor *x)
{
    const struct lenet *s = tn_module_data(self);

    x = tn_module_call_child(self, name, x);
    return strcmp(s->activation, "tanh") == 0 ? tn_tanh(x) : tn_relu(x);
}

static tn_tensor *pooled(tn_module *self, const char *name, tn_tensor *x)
{
    const struct lenet *s = tn_module_data(self);

    x = activated(self, name, x);
    return strcmp(s->pool, "avg") == 0 ? tn_avg_pool2d(x, TN_INTS(2))
                                       : tn_max_pool2d(x, TN_INTS(2));
}

static tn_tensor *lenet_forward(tn_module *self, tn_tensor *x)
{
    const struct lenet *s = tn_module_data(self);

    if (models_check_image_size(self, x, s->in_channels, s->image_size) != TN_OK)
        return NULL;
    x = tn_flatten(pooled(self, "conv2", pooled(self, "conv1", x)), 1, -1);
    return tn_module_call_child(self, "fc3", activated(self, "fc2", activated(self, "fc1", x)));
}

MODEL(lenet5, "lenet5", "LeNet5",
      .help = "classes of images [N, C, H, W]; two convolutions and three linear layers",
      .options = lenet_options, .data_size = sizeof(struct lenet), .build = lenet_build,
      .forward = lenet_forward, .repr = models_no_words);
