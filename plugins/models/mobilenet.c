/* SPDX-License-Identifier: MIT
 *
 * MobileNetV2 (Sandler et al., 2018) as in torchvision, with the names, the order and the
 * initialization of its MobileNetV2, InvertedResidual and Conv2dNormActivation. */
#include "models.h"

#include <math.h>

/* ---- a convolution with its normalization and activation ---- */

struct conv {
    int64_t in_channels;
    int64_t out_channels;
    int64_t kernel_size;
    int64_t stride;
    int64_t groups;
};

static const tn_option conv_options[] = {
    TN_OPTION_INT_REQUIRED(struct conv, in_channels, "channels of the input"),
    TN_OPTION_INT_REQUIRED(struct conv, out_channels, "channels of the result"),
    TN_OPTION_INT(struct conv, kernel_size, "3", "size of the window, which is padded"),
    TN_OPTION_INT(struct conv, stride, "1", "stride of the convolution"),
    TN_OPTION_INT(struct conv, groups, "1", "groups of the convolution"),
    TN_OPTION_END
};

static tn_status conv_build(tn_module *self)
{
    const struct conv *s = tn_module_data(self);
    tn_status status = models_check_size(self, "kernel_size", s->kernel_size, 1);

    if (status != TN_OK)
        return status;
    return tn_module_add_children(
        self,
        "0=Conv2d(%lld, %lld, %lld, stride=%lld, padding=%lld, groups=%lld, bias=False), "
        "1=BatchNorm2d(%lld), 2=ReLU6(inplace=True)",
        (long long)s->in_channels, (long long)s->out_channels, (long long)s->kernel_size,
        (long long)s->stride, (long long)(s->kernel_size - 1) / 2, (long long)s->groups,
        (long long)s->out_channels);
}

MODEL(mobilenet_conv, "mobilenet.Conv2dNormActivation", "Conv2dNormActivation",
      .help = "a convolution, its normalization and ReLU6", .options = conv_options,
      .data_size = sizeof(struct conv), .build = conv_build, .forward = tn_module_call_children,
      .repr = models_no_words);

/* ---- a block ---- */

struct block {
    int64_t inp;
    int64_t oup;
    int64_t stride;
    int64_t expand_ratio;
};

static const tn_option block_options[] = {
    TN_OPTION_INT_REQUIRED(struct block, inp, "channels of the input"),
    TN_OPTION_INT_REQUIRED(struct block, oup, "channels of the result"),
    TN_OPTION_INT(struct block, stride, "1", "stride of the 3x3 convolution: 1 or 2"),
    TN_OPTION_INT(struct block, expand_ratio, "6", "inner channels for each channel of the input"),
    TN_OPTION_END
};

static tn_status block_build(tn_module *self)
{
    const struct block *s = tn_module_data(self);
    long long hidden;
    char expand[160] = "";
    tn_status status = models_check_size(self, "inp", s->inp, 1);

    if (status == TN_OK)
        status = models_check_size(self, "oup", s->oup, 1);
    if (status == TN_OK)
        status = models_check_size(self, "expand_ratio", s->expand_ratio, 1);
    if (status == TN_OK && s->stride != 1 && s->stride != 2)
        status = tn_fail(TN_ERR_VALUE, "%s: stride: out of range, got %lld; expected 1 or 2",
                         tn_module_type(self), (long long)s->stride);
    if (status != TN_OK)
        return status;
    hidden = s->inp * s->expand_ratio;
    if (s->expand_ratio != 1)
        tn_snprint(expand, sizeof expand, "mobilenet.Conv2dNormActivation(%lld, %lld, 1), ",
                   (long long)s->inp, hidden);
    return tn_module_add_children(
        self,
        "conv=Sequential(%smobilenet.Conv2dNormActivation(%lld, %lld, 3, stride=%lld, "
        "groups=%lld), Conv2d(%lld, %lld, 1, bias=False), BatchNorm2d(%lld))",
        expand, hidden, hidden, (long long)s->stride, hidden, hidden, (long long)s->oup,
        (long long)s->oup);
}

static tn_tensor *block_forward(tn_module *self, tn_tensor *x)
{
    const struct block *s = tn_module_data(self);
    tn_tensor *y = tn_module_call_child(self, "conv", x);

    return s->stride == 1 && s->inp == s->oup ? tn_add(x, y) : y;
}

MODEL(mobilenet_block, "mobilenet.InvertedResidual", "InvertedResidual",
      .help = "a block of mobilenet_v2: expands the channels, filters each, and projects them",
      .options = block_options, .data_size = sizeof(struct block), .build = block_build,
      .forward = block_forward, .repr = models_no_words);

/* ---- the network ---- */

struct mobilenet {
    int64_t num_classes;
    int64_t in_channels;
    const char *stem;
    double width_mult;
    int64_t round_nearest;
    double dropout;
};

static const tn_option options[] = {
    MODELS_NUM_CLASSES(struct mobilenet, "1000"),
    MODELS_IN_CHANNELS(struct mobilenet, "3"),
    MODELS_STEM(struct mobilenet),
    TN_OPTION_FLOAT(struct mobilenet, width_mult, "1.0", "factor of the channels of all layers"),
    TN_OPTION_INT(struct mobilenet, round_nearest, "8",
                  "numbers of channels are multiples of this number"),
    TN_OPTION_FLOAT(struct mobilenet, dropout, "0.2", "dropout probability before the classifier"),
    TN_OPTION_END
};

/* Returns the number of channels of a layer: the multiple that is nearest to `channels`, but not
 * less than 90 % of `channels`. */
static long long rounded(double channels, int64_t multiple)
{
    int64_t near = (int64_t)(channels + (double)multiple / 2) / multiple * multiple;

    if (near < multiple)
        near = multiple;
    return (double)near < 0.9 * channels ? near + multiple : near;
}

static tn_status check(tn_module *self)
{
    const struct mobilenet *s = tn_module_data(self);
    tn_status status = models_check_size(self, "num_classes", s->num_classes, 1);

    if (status == TN_OK)
        status = models_check_size(self, "in_channels", s->in_channels, 1);
    if (status == TN_OK && (s->round_nearest < 1 || s->round_nearest > 1024))
        status = tn_fail(TN_ERR_VALUE,
                         "%s: round_nearest: out of range, got %lld; expected 1 to 1024",
                         tn_module_type(self), (long long)s->round_nearest);
    if (status == TN_OK && !(s->width_mult > 0 && s->width_mult <= 1024))
        status = tn_fail(TN_ERR_VALUE,
                         "%s: width_mult: out of range, got %g; expected more than 0, at most 1024",
                         tn_module_type(self), s->width_mult);
    return status == TN_OK ? models_check_share(self, "dropout", s->dropout) : status;
}

/* Adds the layers up to the pooling: a convolution, 17 blocks, a convolution. */
static tn_status add_features(tn_module *self, bool small, long long last)
{
    /* expansion, channels, blocks and the stride of the first block */
    static const struct {
        int expand, channels, blocks, stride;
    } stages[] = { { 1, 16, 1, 1 }, { 6, 24, 2, 2 },  { 6, 32, 3, 2 }, { 6, 64, 4, 2 },
                   { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 } };
    const struct mobilenet *s = tn_module_data(self);
    long long channels = rounded(32 * s->width_mult, s->round_nearest);
    tn_module *features = tn_module_new(
        "Sequential(mobilenet.Conv2dNormActivation(%lld, %lld, 3, stride=%d))",
        (long long)s->in_channels, channels, small ? 1 : 2);
    tn_status status = features != NULL ? TN_OK : tn_error_last_code();
    int at = 1;

    for (int i = 0; i < 7; i++)
        for (int k = 0; k < stages[i].blocks && status == TN_OK; k++) {
            long long more = rounded(stages[i].channels * s->width_mult, s->round_nearest);
            bool strided = k == 0 && stages[i].stride == 2 && !(small && i == 1);

            status = tn_module_add_children(
                features, "%d=mobilenet.InvertedResidual(%lld, %lld, stride=%d, expand_ratio=%d)",
                at++, channels, more, strided ? 2 : 1, stages[i].expand);
            channels = more;
        }
    if (status == TN_OK)
        status = tn_module_add_children(
            features, "%d=mobilenet.Conv2dNormActivation(%lld, %lld, 1)", at, channels, last);
    if (status == TN_OK)
        status = tn_module_add_child(self, "features", features);
    tn_module_drop(features);
    return status;
}

static tn_status build(tn_module *self)
{
    const struct mobilenet *s = tn_module_data(self);
    long long last;
    bool small;
    tn_status status = check(self);

    if (status == TN_OK)
        status = models_check_stem(self, s->stem, &small);
    if (status != TN_OK)
        return status;
    last = rounded(1280 * fmax(1.0, s->width_mult), s->round_nearest);
    status = add_features(self, small, last);
    if (status == TN_OK)
        status = tn_module_add_children(self,
                                        "classifier=Sequential(Dropout(%g), Linear(%lld, %lld))",
                                        s->dropout, last, (long long)s->num_classes);
    return status;
}

static tn_status reset(tn_module *self)
{
    tn_status status = models_init_all(self, "Conv2d", "weight", "kaiming_normal(mode='fan_out')");

    if (status == TN_OK)
        status = models_init_one(self, "classifier.1.weight", "normal(std=0.01)");
    return status == TN_OK ? models_init_one(self, "classifier.1.bias", "zeros()") : status;
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const struct mobilenet *s = tn_module_data(self);

    if (models_check_images(self, x, s->in_channels) != TN_OK)
        return NULL;
    x = tn_adaptive_avg_pool2d(tn_module_call_child(self, "features", x), TN_SHAPE(1, 1));
    return tn_module_call_child(self, "classifier", tn_flatten(x, 1, -1));
}

MODEL(mobilenet_v2, "mobilenet_v2", "MobileNetV2",
      .help = "classes of images [N, C, H, W]; a small network of depthwise convolutions",
      .options = options, .data_size = sizeof(struct mobilenet), .build = build, .reset = reset,
      .forward = forward, .repr = models_no_words);
