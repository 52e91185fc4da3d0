/* SPDX-License-Identifier: MIT
 *
 * Upsample and its two older variants; PixelShuffle, PixelUnshuffle, ChannelShuffle. */
#include "helpers.h"
#include <string.h>

enum { MOST = 3 };

struct upsample {
    tn_ints size;
    tn_floats scale_factor;
    const char *mode;
    bool align_corners, recompute_scale_factor;
};

#define SIZES                                                                                      \
    TN_OPTION_ROW(struct upsample, size, "None", "size of the result, without N and C",            \
                  TN_OPTION_KIND_INTS, TN_OPTION_OPTIONAL),                                        \
        TN_OPTION_ROW(struct upsample, scale_factor, "None",                                       \
                      "factor of the size, instead of size", TN_OPTION_KIND_FLOATS,                \
                      TN_OPTION_OPTIONAL)

static const tn_option upsample_options[] = {
    SIZES,
    TN_OPTION_ROW(struct upsample, mode, "'nearest'",
                  "nearest, nearest-exact, linear, bilinear, bicubic, trilinear or area",
                  TN_OPTION_KIND_STRING, 0),
    TN_OPTION_ROW(struct upsample, align_corners, "False",
                  "aligns the centres of the corner elements", TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_ROW(struct upsample, recompute_scale_factor, "False",
                  "computes the scale from the rounded sizes", TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_END
};
/* PyTorch prints the mode of the older variants, too. */
#define FIXED_OPTIONS(mode_)                                                                       \
    {                                                                                              \
        SIZES,                                                                                     \
            TN_OPTION_ROW(struct upsample, mode, "'" mode_ "'",                                    \
                          "the mode that the printed form names: " mode_, TN_OPTION_KIND_STRING,   \
                          TN_OPTION_KEYWORD),                                                      \
            TN_OPTION_END                                                                          \
    }
static const tn_option nearest_options[] = FIXED_OPTIONS("nearest");
static const tn_option bilinear_options[] = FIXED_OPTIONS("bilinear");

static tn_status check(tn_module *self)
{
    const struct upsample *s = tn_module_data(self);

    if ((s->size.count > 0) == (s->scale_factor.count > 0))
        return tn_fail(TN_ERR_VALUE,
                       "%s: size or scale_factor: wrong number, got %s; expected one of them",
                       tn_module_type(self), s->size.count > 0 ? "both" : "none");
    if (s->size.count == 0 || s->scale_factor.count == 0)
        return tn_fail(TN_ERR_VALUE, "%s: %s: empty; expected a number, or one for each dimension",
                       tn_module_type(self), s->size.count == 0 ? "size" : "scale_factor");
    for (int64_t i = 0; i < s->scale_factor.count; i++)
        if (!(s->scale_factor.at[i] > 0))
            return tn_fail(TN_ERR_VALUE,
                           "%s: scale_factor: out of range, got %g; expected more than 0",
                           tn_module_type(self), s->scale_factor.at[i]);
    return TN_OK;
}

static tn_status check_fixed(tn_module *self, const char *mode)
{
    const struct upsample *s = tn_module_data(self);

    if (strcmp(s->mode, mode) != 0)
        return tn_fail(TN_ERR_VALUE, "%s: mode: wrong value, got %q; expected %q: use Upsample",
                       tn_module_type(self), s->mode, mode);
    return check(self);
}

static tn_status nearest_build(tn_module *self)
{
    return check_fixed(self, "nearest");
}

static tn_status bilinear_build(tn_module *self)
{
    return check_fixed(self, "bilinear");
}

static tn_tensor *upsampled(tn_module *self, tn_tensor *x, const char *mode, bool corners)
{
    const struct upsample *s = tn_module_data(self);
    tn_interpolate_options o = TN_INTERPOLATE_OPTIONS;
    int64_t sizes[MOST], dims = x == NULL ? 0 : tn_tensor_ndim(x) - 2;
    bool scaled = s->scale_factor.count > 0;
    int64_t given = scaled ? s->scale_factor.count : s->size.count;
    const char *words = scaled ? "scale_factor" : "size";

    if (x == NULL)
        return NULL;
    if (dims < 1 || dims > MOST || (given != 1 && given != dims)) {
        tn_fail(
            TN_ERR_VALUE,
            "%s: input or %s: wrong number of dimensions, got %d with %lld numbers in %s; expected "
            "[N, C] and one to three more dimensions, with one %s in all or one for each of these "
            "dimensions",
            tn_module_type(self), words, (int)tn_tensor_ndim(x), (long long)given, words, words);
        return NULL;
    }
    for (int64_t d = 0; d < dims && !scaled; d++)
        sizes[d] = s->size.at[given == 1 ? 0 : d];
    o.mode = mode;
    o.align_corners = corners;
    if (scaled)
        o.scale_factor = s->scale_factor;
    o.recompute_scale_factor = s->recompute_scale_factor;
    return tn_interpolate(x, ((tn_ints){ sizes, scaled ? 0 : dims }), o.mode, o.align_corners,
                          o.scale_factor, o.recompute_scale_factor);
}

static tn_tensor *upsample_forward(tn_module *self, tn_tensor *x)
{
    const struct upsample *s = tn_module_data(self);

    return upsampled(self, x, s->mode, s->align_corners);
}

static tn_tensor *nearest_forward(tn_module *self, tn_tensor *x)
{
    return upsampled(self, x, "nearest", false);
}

static tn_tensor *bilinear_forward(tn_module *self, tn_tensor *x)
{
    return upsampled(self, x, "bilinear", true);
}

static int64_t upsample_repr(tn_module *self, char *out, size_t size)
{
    const struct upsample *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    if (s->scale_factor.count > 0) {
        layers_put(&text, "scale_factor=%s", s->scale_factor.count > 1 ? "(" : "");
        for (int64_t i = 0; i < s->scale_factor.count; i++)
            layers_put(&text, "%s%g", i > 0 ? ", " : "", s->scale_factor.at[i]);
        layers_put(&text, "%s", s->scale_factor.count > 1 ? ")" : "");
    } else {
        layers_put(&text, "size=");
        layers_put_row(&text, s->size, 0);
    }
    layers_put(&text, ", mode='%s'", s->mode);
    return text.used;
}

#define UPSAMPLE(build_, forward_)                                                                 \
    .data_size = sizeof(struct upsample), .build = build_, .forward = forward_,                    \
    .repr = upsample_repr
LAYER(upsample, "Upsample", UPSAMPLE(check, upsample_forward), .options = upsample_options,
      .help = "resizes the input");
LAYER(upsampling_nearest2d, "UpsamplingNearest2d", UPSAMPLE(nearest_build, nearest_forward),
      .options = nearest_options,
      .help = "resizes the image: each element is the nearest element of the input");
LAYER(upsampling_bilinear2d, "UpsamplingBilinear2d", UPSAMPLE(bilinear_build, bilinear_forward),
      .options = bilinear_options,
      .help = "resizes the image with bilinear interpolation and aligned corners");

/* ---- PixelShuffle, PixelUnshuffle, ChannelShuffle ---- */

struct shuffle {
    int64_t factor;
};

#define FACTOR(name_, help_)                                                                       \
    TN_OPTION_NAMED(name_, struct shuffle, factor, NULL, help_, TN_OPTION_KIND_INT,                \
                    TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD)
static const tn_option up_options[] = { FACTOR("upscale_factor", "upscaling factor"),
                                        TN_OPTION_END };
static const tn_option down_options[] = { FACTOR("downscale_factor", "downscaling factor"),
                                          TN_OPTION_END };
static const tn_option group_options[] = {
    FACTOR("groups", "number of groups; must divide the channels"), TN_OPTION_END
};

#define SHUFFLE(op)                                                                                \
    static tn_tensor *op##_forward(tn_module *self, tn_tensor *x)                                  \
    {                                                                                              \
        const struct shuffle *s = tn_module_data(self);                                            \
        return tn_##op(x, s->factor);                                                              \
    }
SHUFFLE(pixel_shuffle)
SHUFFLE(pixel_unshuffle)
SHUFFLE(channel_shuffle)

LAYER(pixel_shuffle, "PixelShuffle", .options = up_options, .data_size = sizeof(struct shuffle),
      .forward = pixel_shuffle_forward, .help = "rearranges channels into pixels");
LAYER(pixel_unshuffle, "PixelUnshuffle", .options = down_options,
      .data_size = sizeof(struct shuffle), .forward = pixel_unshuffle_forward,
      .help = "rearranges pixels into channels");
LAYER(channel_shuffle, "ChannelShuffle", .options = group_options,
      .data_size = sizeof(struct shuffle), .forward = channel_shuffle_forward,
      .help = "interleaves the channels of the groups");
