/* SPDX-License-Identifier: MIT
 *
 * Normalization layers over the last dimensions; LayerNorm2d, over the channels. */
#include "helpers.h"

#include <math.h>

struct last {
    tn_ints normalized_shape;
    double eps;
    bool elementwise_affine;
    bool bias;
};

static const tn_option layer_options[] = {
    TN_OPTION_ROW(struct last, normalized_shape, NULL, "the last dimensions", TN_OPTION_KIND_INTS,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct last, eps, "1e-05", "added to the variance, for stability",
                  TN_OPTION_KIND_FLOAT, 0),
    TN_OPTION_ROW(struct last, elementwise_affine, "True", "whether a weight is learned",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_ROW(struct last, bias, "True", "whether a bias is learned as well",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_END
};
static const tn_option rms_options[] = {
    TN_OPTION_ROW(struct last, normalized_shape, NULL, "the last dimensions", TN_OPTION_KIND_INTS,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct last, eps, "None",
                  "added to the mean of squares, for stability; None: the "
                  "dtype's machine epsilon",
                  TN_OPTION_KIND_FLOAT, TN_OPTION_OPTIONAL),
    TN_OPTION_ROW(struct last, elementwise_affine, "True", "whether a weight is learned",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_END
};

static tn_status layer_build(tn_module *self)
{
    const struct last *s = tn_module_data(self);

    return layers_add_affine(self, s->elementwise_affine, s->elementwise_affine && s->bias,
                             s->normalized_shape);
}

static tn_tensor *layer_forward(tn_module *self, tn_tensor *x)
{
    const struct last *s = tn_module_data(self);

    return tn_layer_norm(x, tn_module_get(self, "weight"), tn_module_get(self, "bias"),
                         s->normalized_shape, s->eps);
}

static int64_t layer_repr(tn_module *self, char *out, size_t size)
{
    const struct last *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    layers_put_row(&text, s->normalized_shape, s->normalized_shape.count);
    layers_put(&text, ", eps=%g, elementwise_affine=%s", s->eps,
               layers_truth(s->elementwise_affine));
    layers_put(&text, ", bias=%s", layers_truth(s->elementwise_affine && s->bias));
    return text.used;
}

const tn_layer_def layer_layer_norm = {
    TN_HEAD(tn_layer_def),
    .name = "LayerNorm",
    .help = "normalizes the last dimensions: (x - mean) / std * weight + bias",
    .options = layer_options,
    .data_size = sizeof(struct last),
    .version = 1,
    .build = layer_build,
    .reset = layers_reset_affine,
    .forward = layer_forward,
    .repr = layer_repr,
};

/* ---- LayerNorm2d ---- */

/* torchvision's: LayerNorm of the channels of [N, C, H, W]. */
static tn_tensor *channels_forward(tn_module *self, tn_tensor *x)
{
    if (tn_tensor_ndim(x) != 4) {
        tn_fail(TN_ERR_VALUE,
                "LayerNorm2d: input: wrong number of dimensions, got %d; expected [N, C, H, W]",
                (int)tn_tensor_ndim(x));
        return NULL;
    }
    return tn_permute(layer_forward(self, tn_permute(x, TN_INTS(0, 2, 3, 1))), TN_INTS(0, 3, 1, 2));
}

const tn_layer_def layer_layer_norm2d = {
    TN_HEAD(tn_layer_def),
    .name = "LayerNorm2d",
    .help = "normalizes the channels of [N, C, H, W], as torchvision's layer does",
    .options = layer_options,
    .data_size = sizeof(struct last),
    .version = 1,
    .build = layer_build,
    .reset = layers_reset_affine,
    .forward = channels_forward,
    .repr = layer_repr,
};

/* ---- RMSNorm ---- */

static tn_status rms_build(tn_module *self)
{
    const struct last *s = tn_module_data(self);

    return layers_add(self, "weight", s->elementwise_affine, s->normalized_shape);
}

static tn_status rms_reset(tn_module *self)
{
    return layers_fill(self, "weight", 1);
}

static tn_tensor *rms_forward(tn_module *self, tn_tensor *x)
{
    const struct last *s = tn_module_data(self);

    return tn_rms_norm(x, tn_module_get(self, "weight"), s->normalized_shape, s->eps);
}

static int64_t rms_repr(tn_module *self, char *out, size_t size)
{
    const struct last *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    layers_put_row(&text, s->normalized_shape, s->normalized_shape.count);
    if (isnan(s->eps))
        layers_put(&text, ", eps=None");
    else
        layers_put(&text, ", eps=%g", s->eps);
    layers_put(&text, ", elementwise_affine=%s", layers_truth(s->elementwise_affine));
    return text.used;
}

const tn_layer_def layer_rms_norm = {
    TN_HEAD(tn_layer_def),
    .name = "RMSNorm",
    .help = "divides the last dimensions by their root mean square, times weight",
    .options = rms_options,
    .data_size = sizeof(struct last),
    .version = 1,
    .build = rms_build,
    .reset = rms_reset,
    .forward = rms_forward,
    .repr = rms_repr,
};
