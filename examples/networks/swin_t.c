/* SPDX-License-Identifier: MIT
 *
 * Swin-T of torchvision, for images of 224 x 224, whose windows need no padding. */
#include "network.h"

enum { W = 7 }; /* the side of a window */

static int64_t shift_of_windows = 3; /* in every second block */

/* [B, H, V, C] as [B, windows, positions in a window, C] */
static tn_tensor *windows(tn_tensor *x)
{
    int64_t b = tn_tensor_size(x, 0), h = tn_tensor_size(x, 1) / W, v = tn_tensor_size(x, 2) / W;

    x = tn_permute(tn_reshape(x, TN_SHAPE(b, h, W, v, W, -1)), TN_SHAPE(0, 1, 3, 2, 4, 5));
    return tn_reshape(x, TN_SHAPE(b, h * v, W * W, -1));
}

/* The mask of attention, [windows, 1, positions, positions]: -100 for two positions that are in one
 * window only because of the cyclic shift, else 0. */
static tn_tensor *mask(int64_t side)
{
    float region[56 * 56];
    tn_tensor *x;

    for (int64_t i = 0; i < side * side; i++)
        region[i] = (float)(3 * ((i / side >= side - W) + (i / side >= side - W / 2)) +
                            (i % side >= side - W) + (i % side >= side - W / 2));
    x = windows(tn_tensor_from(region, TN_F32, TN_SHAPE(1, side, side, 1)));
    x = tn_sub(x, tn_transpose(x, 2, 3));
    return tn_transpose(tn_mul_scalar(tn_abs(tn_sign(x)), -100), 0, 1);
}

static tn_tensor *roll(tn_tensor *x, int64_t shift)
{
    return shift == 0 ? x : tn_roll(x, TN_INTS(shift, shift), TN_INTS(1, 2));
}

static tn_tensor *attention(tn_module *self, tn_tensor *x)
{
    int64_t b = tn_tensor_size(x, 0), side = tn_tensor_size(x, 1), c = tn_tensor_size(x, 3);
    int64_t n = side / W, *user = tn_module_user(self), shift = user != NULL && n > 1 ? *user : 0;
    tn_tensor *qkv = windows(tn_module_call_child(self, "qkv", roll(x, -shift)));
    tn_tensor *bias = tn_index_select(tn_module_get(self, "relative_position_bias_table"),
                                      tn_module_get(self, "relative_position_index"), 0);

    bias = tn_permute(tn_reshape(bias, TN_SHAPE(W * W, W * W, -1)), TN_SHAPE(2, 0, 1));
    bias = shift == 0 ? bias : tn_add(mask(side), bias);
    qkv = tn_permute(tn_reshape(qkv, TN_SHAPE(b, n * n, W * W, 3, -1, 32)),
                     TN_SHAPE(3, 0, 1, 4, 2, 5));
    x = tn_scaled_dot_product_attention(tn_select(qkv, 0, 0), tn_select(qkv, 0, 1),
                                        tn_select(qkv, 0, 2), bias);
    x = tn_reshape(tn_transpose(x, 2, 3), TN_SHAPE(b, n, n, W, W, c));
    x = tn_reshape(tn_permute(x, TN_SHAPE(0, 1, 3, 2, 4, 5)), TN_SHAPE(b, side, side, c));
    return roll(tn_module_call_child(self, "proj", x), shift);
}

static tn_tensor *block(tn_module *self, tn_tensor *x)
{
    x = tn_add(x, tn_module_call_chain(self, "norm1 attn stochastic_depth", x));
    return tn_add(x, tn_module_call_chain(self, "norm2 mlp stochastic_depth", x));
}

static tn_tensor *merging(tn_module *self, tn_tensor *x)
{
    int64_t b = tn_tensor_size(x, 0), half = tn_tensor_size(x, 1) / 2;

    x = tn_permute(tn_reshape(x, TN_SHAPE(b, half, 2, half, 2, -1)), TN_SHAPE(0, 1, 3, 4, 2, 5));
    x = tn_reshape(x, TN_SHAPE(b, half, half, -1));
    return tn_module_call_chain(self, "norm reduction", x);
}

/* The text shows no dimensions of the two Permute modules. */
static tn_tensor *swin(tn_module *self, tn_tensor *x)
{
    x = tn_permute(tn_module_call_chain(self, "features.0.0", x), TN_SHAPE(0, 2, 3, 1));
    x = tn_module_call_chain(self, "features.0.2 features.1 features.2 features.3 features.4", x);
    x = tn_module_call_chain(self, "features.5 features.6 features.7 norm", x);
    return tn_module_call_chain(self, "avgpool flatten head", tn_permute(x, TN_SHAPE(0, 3, 1, 2)));
}

void network_forwards(tn_module *net)
{
    static const char *const shifted[] = { "1.1", "3.1", "5.1", "5.3", "5.5", "7.1" };

    tn_module_set_forwards(net, "ShiftedWindowAttention", attention);
    tn_module_set_forwards(net, "MLP", tn_module_call_children);
    tn_module_set_forwards(net, "SwinTransformerBlock", block);
    tn_module_set_forwards(net, "PatchMerging", merging);
    tn_module_set_forwards(net, "SwinTransformer", swin);
    for (int i = 0; i < 6; i++) {
        char path[32];

        tn_snprint(path, sizeof path, "features.%s.attn", shifted[i]);
        tn_module_set_forward(tn_module_find(net, path), attention, &shift_of_windows, NULL);
    }
}
