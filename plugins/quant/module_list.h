/* SPDX-License-Identifier: MIT
 *
 * The layers of this plugin: quantized layers, ranges, schemes. */
LAYER_ROW(quantized_conv1d)
LAYER_ROW(quantized_conv2d)
LAYER_ROW(quantized_conv3d)
LAYER_ROW(quantized_embedding)
LAYER_ROW(quantized_linear)
LAYER_ROW(fake_quantize)
LAYER_ROW(histogram_range)
LAYER_ROW(min_max_range)
LAYER_ROW(moving_average_range)
LAYER_ROW(int4_weight)
LAYER_ROW(int8_dynamic)
LAYER_ROW(int8_qat)
LAYER_ROW(int8_static)
LAYER_ROW(int8_weight)
LAYER_ROW(q4_0_weight)
LAYER_ROW(q8_0_weight)
