/* SPDX-License-Identifier: MIT
 *
 * The list of all models and their parts, ordered by file. plugin.c includes it twice, with
 * MODEL_ROW(id) defined as a declaration and as an element of the table. */
/* clang-format off */
/* gpt2.c */
MODEL_ROW(gpt2_conv1d) MODEL_ROW(gpt2_gelu) MODEL_ROW(gpt2_attention) MODEL_ROW(gpt2_mlp)
MODEL_ROW(gpt2_block) MODEL_ROW(gpt2_model) MODEL_ROW(gpt2_small)
/* lstm_lm.c */
MODEL_ROW(lstm_lm)
/* mlp.c */
MODEL_ROW(mlp) MODEL_ROW(lenet5)
/* mobilenet.c */
MODEL_ROW(mobilenet_conv) MODEL_ROW(mobilenet_block) MODEL_ROW(mobilenet_v2)
/* resnet.c */
MODEL_ROW(resnet_basic) MODEL_ROW(resnet_bottleneck) MODEL_ROW(resnet18) MODEL_ROW(resnet34)
MODEL_ROW(resnet50)
/* unet.c */
MODEL_ROW(unet_double) MODEL_ROW(unet_down) MODEL_ROW(unet_up) MODEL_ROW(unet_out) MODEL_ROW(unet)
/* vit.c */
MODEL_ROW(vit_mlp) MODEL_ROW(vit_block) MODEL_ROW(vit_encoder) MODEL_ROW(vit_tiny)
MODEL_ROW(vit_base)
