/* SPDX-License-Identifier: MIT
 *
 * QuantizedLinear: Linear with a weight of integers. */
#include "modules.h"

struct linear {
    int64_t in_features;
    int64_t out_features;
    bool bias;
    const char *weight;
    int64_t group;
    const char *activation;
    const quant_format *format; /* set by build, like the next one */
    uint32_t how;
};

static const tn_option options[] = {
    TN_OPTION_ROW(struct linear, in_features, NULL, "size of each input sample", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct linear, out_features, NULL, "size of each output sample",
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct linear, bias, "True", "whether a bias is added", TN_OPTION_KIND_BOOL,
                  TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct linear, weight, "'int8'",
                  "how the weight is stored: int8, int4, q8_0 or q4_0", TN_OPTION_KIND_STRING,
                  TN_OPTION_KEYWORD | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct linear, group, "0",
                  "numbers of a row of the weight that share a scale; 0: all of the row",
                  TN_OPTION_KIND_INT, TN_OPTION_KEYWORD | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct linear, activation, "'row'",
                  "the scales of the input: row, tensor or static (only with int8 and group 0), "
                  "block, or none for a product of floats",
                  TN_OPTION_KIND_STRING, TN_OPTION_KEYWORD | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END
};

static tn_status build(tn_module *self)
{
    struct linear *s = tn_module_data(self);
    const char *type = tn_module_type(self);
    tn_ints scales = TN_SHAPE(s->out_features, 0);
    int64_t both[2];
    tn_status status;

    if (s->in_features < 1 || s->out_features < 0)
        return tn_fail(TN_ERR_VALUE,
                       "%s: in_features or out_features: out of range, got %lld and %lld; expected "
                       "at least 1 and 0",
                       type, (long long)s->in_features, (long long)s->out_features);
    s->format = quant_format_find(type, s->weight);
    if (s->format == NULL || quant_format_check(s->format, type, s->group, s->in_features) != TN_OK)
        return tn_error_last_code();
    s->how = quant_activation(self, s->activation,
                              s->format->per_byte == 1 && s->group == 0
                                  ? QUANT_ROW | QUANT_TENSOR | QUANT_STATIC | QUANT_BLOCK |
                                        QUANT_NONE
                                  : QUANT_BLOCK | QUANT_NONE);
    if (s->how == 0)
        return tn_error_last_code();
    both[0] = s->out_features;
    both[1] = s->group > 0 ? s->in_features / s->group : 0;
    scales = (tn_ints){ both, !s->format->scales ? 0 : s->group > 0 ? 2 : 1 };
    status = quant_add_buffer(
        self, "weight", s->format->per_byte == 1 ? TN_I8 : TN_U8,
        TN_SHAPE(s->out_features, quant_format_row(s->format, s->in_features)), 0, true);
    return status == TN_OK ? quant_add_scales(self, s->bias, s->out_features, scales, s->how)
                           : status;
}

static tn_status load_state(tn_module *self, tn_loading *loading)
{
    const struct linear *s = tn_module_data(self);

    return quant_load(self, loading, s->format, s->group);
}

static tn_tensor *forward(tn_module *self, tn_tensor *x)
{
    const struct linear *s = tn_module_data(self);
    tn_tensor *weight = tn_module_get(self, "weight"), *y;
    tn_tensor *scale = s->format->scales ? tn_module_get(self, "weight_scale") : TN_NONE;
    quant_input in;

    if (s->how == QUANT_NONE || s->how == QUANT_BLOCK)
        return tn_linear_packed(x, weight, scale, TN_NONE, quant_bias(self, tn_tensor_dtype(x)),
                                s->format->name, s->how == QUANT_BLOCK);
    if (quant_without_gradient(self, x) != TN_OK ||
        quant_take_input(self, x, s->how, NULL, &in) != TN_OK)
        return NULL;
    y = tn_linear_int8(in.integers, in.scale, weight, scale, in.zero_point, TN_NONE,
                       quant_bias(self, TN_F32));
    return tn_cast(y, tn_tensor_dtype(x));
}

const tn_layer_def layer_quantized_linear = {
    TN_HEAD(tn_layer_def),
    .name = "QuantizedLinear",
    .help = "Linear with a weight of integers; takes and gives floats",
    .options = options,
    .data_size = sizeof(struct linear),
    .version = 1,
    .build = build,
    .forward = forward,
    .load_state = load_state,
    .flags = TN_LAYER_READS_INPUT,
};
