/* SPDX-License-Identifier: MIT
 *
 * Residual networks (He et al., 2015) as in torchvision: resnet18, resnet34, resnet50, with the
 * names, the order and the initialization of torchvision's ResNet, BasicBlock and Bottleneck. */
#include "models.h"

enum { STAGES = 4, EXPANSION = 4 };

/* ---- blocks ---- */

struct block {
    int64_t inplanes;
    int64_t planes;
    int64_t stride;
    int64_t groups;
    int64_t base_width;
};

#define BLOCK_OPTIONS                                                                              \
    TN_OPTION_INT_REQUIRED(struct block, inplanes, "channels of the input"),                       \
        TN_OPTION_INT_REQUIRED(struct block, planes, "channels of the inner convolutions"),        \
        TN_OPTION_INT(struct block, stride, "1", "stride of the 3x3 convolution")
static const tn_option basic_options[] = { BLOCK_OPTIONS, TN_OPTION_END };
static const tn_option bottleneck_options[] = {
    BLOCK_OPTIONS, TN_OPTION_INT(struct block, groups, "1", "groups of the 3x3 convolution"),
    TN_OPTION_INT(struct block, base_width, "64",
                  "channels of a group of the 3x3 convolution, per 64 planes"),
    TN_OPTION_END
};

static tn_status check_block(tn_module *self)
{
    const struct block *s = tn_module_data(self);
    tn_status status = models_check_size(self, "inplanes", s->inplanes, 1);

    if (status == TN_OK)
        status = models_check_size(self, "planes", s->planes, 1);
    return status == TN_OK ? models_check_size(self, "stride", s->stride, 1) : status;
}

/* The shortcut, where the block changes the size or the number of channels. */
static tn_status add_shortcut(tn_module *self, int64_t outplanes)
{
    const struct block *s = tn_module_data(self);

    if (s->stride == 1 && s->inplanes == outplanes)
        return TN_OK;
    return tn_module_add_children(
        self,
        "downsample=Sequential(Conv2d(%lld, %lld, 1, stride=%lld, bias=False), "
        "BatchNorm2d(%lld))",
        (long long)s->inplanes, (long long)outplanes, (long long)s->stride, (long long)outplanes);
}

static tn_status basic_build(tn_module *self)
{
    const struct block *s = tn_module_data(self);
    long long planes = s->planes;
    tn_status status = check_block(self);

    if (status == TN_OK)
        status = tn_module_add_children(
            self,
            "conv1=Conv2d(%lld, %lld, 3, stride=%lld, padding=1, bias=False), "
            "bn1=BatchNorm2d(%lld), relu=ReLU(inplace=True), "
            "conv2=Conv2d(%lld, %lld, 3, padding=1, bias=False), bn2=BatchNorm2d(%lld)",
            (long long)s->inplanes, planes, (long long)s->stride, planes, planes, planes, planes);
    return status == TN_OK ? add_shortcut(self, s->planes) : status;
}

static tn_status bottleneck_build(tn_module *self)
{
    const struct block *s = tn_module_data(self);
    long long width, outplanes;
    tn_status status = check_block(self);

    if (status == TN_OK)
        status = models_check_size(self, "groups", s->groups, 1);
    if (status == TN_OK)
        status = models_check_size(self, "base_width", s->base_width, 1);
    if (status != TN_OK)
        return status;
    width = (long long)((double)s->planes * ((double)s->base_width / 64.0));
    status = models_check_size(self, "base_width: inner channels", width, 1);
    if (status == TN_OK)
        status = models_check_size(self, "groups: channels of all groups", width * s->groups, 1);
    if (status != TN_OK)
        return status;
    width *= s->groups;
    outplanes = s->planes * EXPANSION;
    status = tn_module_add_children(
        self,
        "conv1=Conv2d(%lld, %lld, 1, bias=False), bn1=BatchNorm2d(%lld), "
        "conv2=Conv2d(%lld, %lld, 3, stride=%lld, padding=1, groups=%lld, bias=False), "
        "bn2=BatchNorm2d(%lld), conv3=Conv2d(%lld, %lld, 1, bias=False), bn3=BatchNorm2d(%lld), "
        "relu=ReLU(inplace=True)",
        (long long)s->inplanes, width, width, width, width, (long long)s->stride,
        (long long)s->groups, width, width, outplanes, outplanes);
    return status == TN_OK ? add_shortcut(self, outplanes) : status;
}

static bool has_shortcut(const tn_module *self)
{
    return tn_module_slot_kind(self, "downsample") == TN_SLOT_CHILD;
}

static tn_tensor *basic_forward(tn_module *self, tn_tensor *x)
{
    return tn_module_call_chain(self,
                                has_shortcut(self) ? "conv1 bn1 relu conv2 bn2 +downsample relu"
                                                   : "conv1 bn1 relu conv2 bn2 + relu",
                                x);
}

static tn_tensor *bottleneck_forward(tn_module *self, tn_tensor *x)
{
    return tn_module_call_chain(self,
                                has_shortcut(self)
                                    ? "conv1 bn1 relu conv2 bn2 relu conv3 bn3 +downsample relu"
                                    : "conv1 bn1 relu conv2 bn2 relu conv3 bn3 + relu",
                                x);
}

#define BLOCK .data_size = sizeof(struct block), .repr = models_no_words
MODEL(resnet_basic, "resnet.BasicBlock", "BasicBlock", BLOCK, .options = basic_options,
      .help = "a block of resnet18: two 3x3 convolutions and a shortcut", .build = basic_build,
      .forward = basic_forward);
MODEL(resnet_bottleneck, "resnet.Bottleneck", "Bottleneck", BLOCK, .options = bottleneck_options,
      .help = "a block of resnet50: 1x1, 3x3 and 1x1 convolutions and a shortcut",
      .build = bottleneck_build, .forward = bottleneck_forward);

/* ---- networks ---- */

struct resnet {
    int64_t num_classes;
    int64_t in_channels;
    const char *stem;
    int64_t width;
    tn_ints layers;
    bool zero_init_residual;
    int64_t groups;
    int64_t width_per_group;
};

#define RESNET_OPTIONS(layers_)                                                                    \
    MODELS_NUM_CLASSES(struct resnet, "1000"), MODELS_IN_CHANNELS(struct resnet, "3"),             \
        MODELS_STEM(struct resnet),                                                                \
        TN_OPTION_INT(struct resnet, width, "64", "channels of the first stage"),                  \
        TN_OPTION_INTS(struct resnet, layers, layers_, "blocks of each stage, 1 to 4 stages"),     \
        TN_OPTION_BOOL(struct resnet, zero_init_residual, "False",                                 \
                       "begins with blocks that are the identity: zeros in their last norm")
#define RESNET_OPTIONS_BOTTLENECK(layers_)                                                         \
    RESNET_OPTIONS(layers_),                                                                       \
        TN_OPTION_INT(struct resnet, groups, "1", "groups of the 3x3 convolutions"),               \
        TN_OPTION_INT(struct resnet, width_per_group, "64",                                        \
                      "channels of a group, in blocks with 64 planes")
static const tn_option options18[] = { RESNET_OPTIONS("[2, 2, 2, 2]"), TN_OPTION_END };
static const tn_option options34[] = { RESNET_OPTIONS("[3, 4, 6, 3]"), TN_OPTION_END };
static const tn_option options50[] = { RESNET_OPTIONS_BOTTLENECK("[3, 4, 6, 3]"), TN_OPTION_END };

static bool has_bottlenecks(const tn_module *self)
{
    return strcmp(tn_module_type(self), "resnet50") == 0;
}

static tn_status check(tn_module *self)
{
    const struct resnet *s = tn_module_data(self);
    tn_status status = models_check_size(self, "num_classes", s->num_classes, 1);

    if (status == TN_OK)
        status = models_check_size(self, "in_channels", s->in_channels, 1);
    if (status == TN_OK)
        status = models_check_size(self, "width", s->width, 1);
    /* the widest layer has 32 times as many channels */
    if (status == TN_OK)
        status = models_check_size(self, "width: channels of the last stage",
                                   s->width * EXPANSION << (STAGES - 1), 1);
    if (status == TN_OK && (s->layers.count < 1 || s->layers.count > STAGES))
        status = tn_fail(TN_ERR_VALUE,
                         "%s: layers: wrong number of stages, got %lld; expected 1 "
                         "to %d",
                         tn_module_type(self), (long long)s->layers.count, STAGES);
    for (int64_t i = 0; status == TN_OK && i < s->layers.count; i++)
        status = models_check_count(self, "layers", s->layers.at[i]);
    return status;
}

/* Adds a stage: the first block has the stride and changes the channels. */
static tn_status add_stage(tn_module *self, int64_t stage, int64_t *channels)
{
    const struct resnet *s = tn_module_data(self);
    bool bottlenecks = has_bottlenecks(self);
    long long planes = s->width << stage, count = s->layers.at[stage];
    long long outplanes = bottlenecks ? planes * EXPANSION : planes, inplanes = *channels;
    const char *type = bottlenecks ? "resnet.Bottleneck" : "resnet.BasicBlock";
    int stride = stage > 0 ? 2 : 1;
    char more[96] = "", rest[192] = "";

    if (bottlenecks)
        tn_snprint(more, sizeof more, ", groups=%lld, base_width=%lld", (long long)s->groups,
                   (long long)s->width_per_group);
    if (count > 1)
        tn_snprint(rest, sizeof rest, ", {1..%lld}=%s(%lld, %lld%s)", count - 1, type, outplanes,
                   planes, more);
    *channels = outplanes;
    return tn_module_add_children(self, "layer%d=Sequential({0..0}=%s(%lld, %lld, stride=%d%s)%s)",
                                  (int)stage + 1, type, inplanes, planes, stride, more, rest);
}

static tn_status build(tn_module *self)
{
    const struct resnet *s = tn_module_data(self);
    int64_t channels = s->width;
    bool small;
    tn_status status = check(self);

    if (status == TN_OK)
        status = models_check_stem(self, s->stem, &small);
    if (status == TN_OK)
        status = tn_module_add_children(
            self,
            "conv1=Conv2d(%lld, %lld, %d, stride=%d, padding=%d, bias=False), "
            "bn1=BatchNorm2d(%lld), relu=ReLU(inplace=True), maxpool=%s",
            (long long)s->in_channels, (long long)s->width, small ? 3 : 7, small ? 1 : 2,
            small ? 1 : 3, (long long)s->width,
            small ? "Identity()" : "MaxPool2d(3, stride=2, padding=1)");
    for (int64_t i = 0; status == TN_OK && i < s->layers.count; i++)
        status = add_stage(self, i, &channels);
    if (status == TN_OK)
        status = tn_module_add_children(self,
                                        "avgpool=AdaptiveAvgPool2d((1, 1)), fc=Linear(%lld, "
                                        "%lld)",
                                        (long long)channels, (long long)s->num_classes);
    return status;
}

static tn_status reset(tn_module *self)
{
    const struct resnet *s = tn_module_data(self);
    tn_status status = models_init_all(self, "Conv2d", "weight",
                                       "kaiming_normal(mode='fan_out', nonlinearity='relu')");
    tn_walk *walk;

    if (status != TN_OK || !s->zero_init_residual)
        return status;
    walk = tn_walk_begin(self, TN_SLOT_CHILD, NULL);
    status = walk != NULL ? TN_OK : tn_error_last_code();
    for (const tn_visit *at = tn_walk_next(walk); at != NULL && status == TN_OK;
         at = tn_walk_next(walk)) {
        if (strcmp(tn_module_type(at->module), "resnet.BasicBlock") == 0)
            status = models_init_one(at->module, "bn2.weight", "zeros()");
        else if (strcmp(tn_module_type(at->module), "resnet.Bottleneck") == 0)
            status = models_init_one(at->module, "bn3.weight", "zeros()");
    }
    tn_walk_end(walk);
    return status;
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    static const char *const chains[] = { "layer1", "layer1 layer2", "layer1 layer2 layer3",
                                          "layer1 layer2 layer3 layer4" };
    const struct resnet *s = tn_module_data(self);

    if (models_check_images(self, x, s->in_channels) != TN_OK)
        return NULL;
    x = tn_module_call_chain(self, "conv1 bn1 relu maxpool", x);
    x = tn_module_call_child(self, "avgpool",
                             tn_module_call_chain(self, chains[s->layers.count - 1], x));
    return tn_module_call_child(self, "fc", tn_flatten(x, 1, -1));
}

#define RESNET                                                                                     \
    .data_size = sizeof(struct resnet), .build = build, .reset = reset, .forward = forward,        \
    .repr = models_no_words
MODEL(resnet18, "resnet18", "ResNet", RESNET, .options = options18,
      .help = "classes of images [N, C, H, W]; a residual network with 8 basic blocks");
MODEL(resnet34, "resnet34", "ResNet", RESNET, .options = options34,
      .help = "classes of images [N, C, H, W]; a residual network with 16 basic blocks");
MODEL(resnet50, "resnet50", "ResNet", RESNET, .options = options50,
      .help = "classes of images [N, C, H, W]; a residual network with 16 bottlenecks");
