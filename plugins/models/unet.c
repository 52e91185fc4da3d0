/* SPDX-License-Identifier: MIT
 *
 * U-Net (Ronneberger et al., 2015), with padded convolutions and normalizations. The names are
 * those of the PyTorch implementation by milesial, whose weights are published: inc, down1, ...,
 * up1, ..., outc. */
#include "models.h"

/* ---- parts ---- */

struct part {
    int64_t in_channels;
    int64_t out_channels;
    int64_t mid_channels; /* INT64_MIN (None): out_channels */
    bool bilinear;
};

#define CHANNELS                                                                                   \
    TN_OPTION_INT_REQUIRED(struct part, in_channels, "channels of the input"),                     \
        TN_OPTION_INT_REQUIRED(struct part, out_channels, "channels of the result")
static const tn_option part_options[] = { CHANNELS, TN_OPTION_END };
static const tn_option double_options[] = {
    CHANNELS,
    TN_OPTION_ROW(struct part, mid_channels, "None",
                  "channels between the convolutions; None: out_channels", TN_OPTION_KIND_INT,
                  TN_OPTION_OPTIONAL),
    TN_OPTION_END
};
static const tn_option up_options[] = {
    CHANNELS,
    TN_OPTION_BOOL(struct part, bilinear, "False",
                   "enlarges with bilinear interpolation, not with a transposed convolution"),
    TN_OPTION_END
};

static tn_status check(tn_module *self)
{
    const struct part *s = tn_module_data(self);
    tn_status status = models_check_size(self, "in_channels", s->in_channels, 1);

    return status == TN_OK ? models_check_size(self, "out_channels", s->out_channels, 1) : status;
}

static tn_status double_build(tn_module *self)
{
    const struct part *s = tn_module_data(self);
    long long mid = s->mid_channels == INT64_MIN ? s->out_channels : s->mid_channels;
    long long out = s->out_channels;
    tn_status status = check(self);

    if (status == TN_OK)
        status = models_check_size(self, "mid_channels", mid, 1);
    if (status != TN_OK)
        return status;
    return tn_module_add_children(
        self,
        "double_conv=Sequential(Conv2d(%lld, %lld, 3, padding=1, bias=False), BatchNorm2d(%lld), "
        "ReLU(inplace=True), Conv2d(%lld, %lld, 3, padding=1, bias=False), BatchNorm2d(%lld), "
        "ReLU(inplace=True))",
        (long long)s->in_channels, mid, mid, mid, out, out);
}

static tn_status down_build(tn_module *self)
{
    const struct part *s = tn_module_data(self);
    tn_status status = check(self);

    if (status != TN_OK)
        return status;
    return tn_module_add_children(
        self, "maxpool_conv=Sequential(MaxPool2d(2), unet.DoubleConv(%lld, %lld))",
        (long long)s->in_channels, (long long)s->out_channels);
}

static tn_status up_build(tn_module *self)
{
    const struct part *s = tn_module_data(self);
    long long in = s->in_channels, out = s->out_channels;
    tn_status status = check(self);

    if (status == TN_OK && in % 2 != 0)
        status = tn_fail(TN_ERR_VALUE,
                         "%s: in_channels: wrong number, got %lld; expected an even "
                         "one",
                         tn_module_type(self), in);
    if (status != TN_OK)
        return status;
    if (s->bilinear)
        return tn_module_add_children(
            self,
            "up=Upsample(scale_factor=2.0, mode='bilinear', align_corners=True), "
            "conv=unet.DoubleConv(%lld, %lld, %lld)",
            in, out, in / 2);
    return tn_module_add_children(
        self, "up=ConvTranspose2d(%lld, %lld, 2, stride=2), conv=unet.DoubleConv(%lld, %lld)", in,
        in / 2, in, out);
}

static tn_status out_build(tn_module *self)
{
    const struct part *s = tn_module_data(self);
    tn_status status = check(self);

    if (status != TN_OK)
        return status;
    return tn_module_add_children(self, "conv=Conv2d(%lld, %lld, 1)", (long long)s->in_channels,
                                  (long long)s->out_channels);
}

/* Enlarges x and concatenates it with the skip connection. x is first padded to the size of the
 * skip, which is larger if an odd size was halved. */
static tn_tensor *join(tn_module *self, tn_tensor *x, tn_tensor *skip)
{
    tn_tensor *both[2] = { skip, tn_module_call_child(self, "up", x) };
    int64_t high, wide;

    if (skip == NULL || both[1] == NULL)
        return NULL;
    high = tn_tensor_size(skip, 2) - tn_tensor_size(both[1], 2);
    wide = tn_tensor_size(skip, 3) - tn_tensor_size(both[1], 3);
    if (high != 0 || wide != 0)
        both[1] = tn_pad(both[1], TN_INTS(wide / 2, wide - wide / 2, high / 2, high - high / 2));
    return both[1] != NULL ? tn_module_call_child(self, "conv", tn_cat(both, 2, 1)) : NULL;
}

/* The arguments of Up are two tensors: the one to enlarge, and that of the skip connection. */
static tn_status up_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_tensor *y;

    if (tn_pack_count(input) != 2 || tn_pack_positional(input) != 2 ||
        tn_pack_at(input, 0).kind != TN_VALUE_TENSOR ||
        tn_pack_at(input, 1).kind != TN_VALUE_TENSOR)
        return tn_fail(
            TN_ERR_TYPE,
            "%s: inputs: wrong number or kind, got %lld; expected two tensors by position: x "
            "and the skip connection",
            tn_module_type(self), (long long)tn_pack_count(input));
    if (tn_tensor_ndim(tn_pack_tensor(input, 0)) != 4 ||
        tn_tensor_ndim(tn_pack_tensor(input, 1)) != 4)
        return tn_fail(TN_ERR_VALUE,
                       "%s: inputs: wrong number of dimensions, got %d and %d; expected 4",
                       tn_module_type(self), (int)tn_tensor_ndim(tn_pack_tensor(input, 0)),
                       (int)tn_tensor_ndim(tn_pack_tensor(input, 1)));
    y = join(self, tn_pack_tensor(input, 0), tn_pack_tensor(input, 1));
    return y == NULL ? models_status(y) : tn_pack_add(output, NULL, tn_value_tensor(y));
}

#define PART .data_size = sizeof(struct part), .repr = models_no_words
MODEL(unet_double, "unet.DoubleConv", "DoubleConv", PART, .options = double_options,
      .help = "two 3x3 convolutions, each with a normalization and ReLU", .build = double_build,
      .forward = tn_module_call_children);
MODEL(unet_down, "unet.Down", "Down", PART, .options = part_options,
      .help = "halves the image, then two convolutions", .build = down_build,
      .forward = tn_module_call_children);
MODEL(unet_up, "unet.Up", "Up", PART, .options = up_options,
      .help = "y = module(x, skip): doubles x, joins it with skip, then two convolutions",
      .build = up_build, .call = up_call);
MODEL(unet_out, "unet.OutConv", "OutConv", PART, .options = part_options,
      .help = "a 1x1 convolution", .build = out_build, .forward = tn_module_call_children);

/* ---- the network ---- */

enum { DEEPEST = 8 };

struct unet {
    int64_t in_channels;
    int64_t out_channels;
    int64_t base;
    int64_t depth;
    bool bilinear;
};

static const tn_option options[] = {
    MODELS_IN_CHANNELS(struct unet, "3"),
    TN_OPTION_INT(struct unet, out_channels, "1", "channels of the result, such as classes"),
    TN_OPTION_INT(struct unet, base, "64", "channels of the first level; each level doubles them"),
    TN_OPTION_INT(struct unet, depth, "4", "how often the image is halved, 1 to 8 times"),
    TN_OPTION_BOOL(struct unet, bilinear, "False",
                   "enlarges with bilinear interpolation, not with transposed convolutions"),
    TN_OPTION_END
};

static tn_status build(tn_module *self)
{
    const struct unet *s = tn_module_data(self);
    long long base = s->base, factor = s->bilinear ? 2 : 1, depth = s->depth;
    tn_status status = models_check_size(self, "in_channels", s->in_channels, 1);

    if (status == TN_OK)
        status = models_check_size(self, "out_channels", s->out_channels, 1);
    if (status == TN_OK)
        status = models_check_size(self, "base", s->base, 1);
    if (status == TN_OK && (depth < 1 || depth > DEEPEST))
        status = tn_fail(TN_ERR_VALUE, "%s: depth: out of range, got %lld; expected 1 to %d",
                         tn_module_type(self), depth, DEEPEST);
    if (status == TN_OK)
        status = models_check_size(self, "base: channels of the last level", base << depth, 1);
    if (status == TN_OK && s->bilinear && base % 2 != 0)
        status = tn_fail(TN_ERR_VALUE,
                         "%s: base: wrong number, got %lld; expected an even one with bilinear",
                         tn_module_type(self), base);
    if (status == TN_OK)
        status = tn_module_add_children(self, "inc=unet.DoubleConv(%lld, %lld)",
                                        (long long)s->in_channels, base);
    for (int i = 1; i <= depth && status == TN_OK; i++)
        status = tn_module_add_children(self, "down%d=unet.Down(%lld, %lld)", i, base << (i - 1),
                                        (base << i) / (i == depth ? factor : 1));
    for (int i = 1; i <= depth && status == TN_OK; i++)
        status = tn_module_add_children(
            self, "up%d=unet.Up(%lld, %lld, bilinear=%b)", i, base << (depth - i + 1),
            (base << (depth - i)) / (i == depth ? 1 : factor), s->bilinear);
    if (status == TN_OK)
        status = tn_module_add_children(self, "outc=unet.OutConv(%lld, %lld)", base,
                                        (long long)s->out_channels);
    return status;
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const struct unet *s = tn_module_data(self);
    tn_tensor *level[DEEPEST + 1] = { NULL };
    char name[16];

    if (models_check_images(self, x, s->in_channels) != TN_OK)
        return NULL;
    if (tn_tensor_size(x, 2) >> s->depth < 1 || tn_tensor_size(x, 3) >> s->depth < 1) {
        tn_fail(TN_ERR_VALUE,
                "%s: input: too small, got %lld x %lld; expected at least %lld x %lld with depth "
                "%lld",
                tn_module_type(self), (long long)tn_tensor_size(x, 2),
                (long long)tn_tensor_size(x, 3), 1LL << s->depth, 1LL << s->depth,
                (long long)s->depth);
        return NULL;
    }
    level[0] = tn_module_call_child(self, "inc", x);
    for (int i = 1; i <= s->depth; i++) {
        tn_snprint(name, sizeof name, "down%d", i);
        level[i] = tn_module_call_child(self, name, level[i - 1]);
    }
    x = level[s->depth];
    for (int i = 1; i <= s->depth && x != NULL; i++) {
        tn_tensor *in[2] = { x, level[s->depth - i] };

        tn_snprint(name, sizeof name, "up%d", i);
        if (tn_module_call_many(tn_module_child(self, name), in, 2, &x, 1) != TN_OK)
            return NULL;
    }
    return tn_module_call_child(self, "outc", x);
}

MODEL(unet, "unet", "UNet",
      .help = "a value for each pixel of images [N, C, H, W]; a U-Net for segmentation",
      .options = options, .data_size = sizeof(struct unet), .build = build, .forward = forward,
      .repr = models_no_words);
