/* SPDX-License-Identifier: MIT
 *
 * Linear and Identity. */
#include "layers.h"

#include <math.h>

/* ---- Linear: y = x . weight^T + bias ----------------------------------------------------------- */

struct linear {
    int64_t in_features;
    int64_t out_features;
    bool bias;
};

static const tn_option linear_options[] = {
    TN_OPTION_ROW(struct linear, in_features, NULL, "size of each input sample", TN_OPTION_KIND_INT,
                  TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct linear, out_features, NULL, "size of each output sample",
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct linear, bias, "True", "whether a bias is learned and added",
                  TN_OPTION_KIND_BOOL, TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END
};

/* PyTorch's: weight and bias are uniform within 1/sqrt(in_features). */
static tn_status linear_reset(tn_tensor *weight, tn_tensor *bias, int64_t in_features)
{
    tn_status status = tn_init(weight, "kaiming_uniform(a=%g)", sqrt(5.0));
    if (status == TN_OK && bias != NULL) {
        double bound = in_features > 0 ? 1.0 / sqrt((double)in_features) : 0.0;
        status = tn_init(bias, "uniform(a=%g, b=%g)", -bound, bound);
    }
    return status;
}

static tn_status linear_build(tn_module *self)
{
    const struct linear *s = tn_module_data(self);
    if (s->in_features < 0 || s->out_features < 0)
        return tn_fail(TN_ERR_VALUE,
                       "Linear: in_features and out_features are sizes, got %lld and %lld",
                       (long long)s->in_features, (long long)s->out_features);
    tn_tensor *weight = tn_tensor_empty(TN_SHAPE(s->out_features, s->in_features), TN_DTYPE_AUTO,
                                        NULL);
    tn_tensor *bias = s->bias ? tn_tensor_empty(TN_SHAPE(s->out_features), TN_DTYPE_AUTO, NULL)
                              : TN_NONE;
    if (weight == NULL || bias == NULL)
        return tn_error_last()->code;
    tn_status status = linear_reset(weight, s->bias ? bias : NULL, s->in_features);
    if (status == TN_OK)
        status = tn_module_add_parameter(self, "weight", tn_parameter(weight, true));
    if (status == TN_OK)
        status = tn_module_add_parameter(self, "bias", tn_parameter(bias, true));
    return status;
}

static tn_tensor *linear_forward(tn_module *self, tn_tensor *input)
{
    return tn_linear(input, tn_module_get(self, "weight"), tn_module_get(self, "bias"));
}

const tn_layer layer_linear = {
    TN_HEAD(tn_layer),
    .name = "Linear",
    .help = "y = x . weight^T + bias over the last dimension; weight [out, in], bias [out]",
    .options = linear_options,
    .data_size = sizeof(struct linear),
    .version = 1,
    .build = linear_build,
    .forward = linear_forward,
};

/* The same under the name that PyTorch has for the last projection of MultiheadAttention. */
const tn_layer layer_plain_linear = {
    TN_HEAD(tn_layer),
    .name = "NonDynamicallyQuantizableLinear",
    .help = "Linear, as MultiheadAttention names it",
    .options = linear_options,
    .data_size = sizeof(struct linear),
    .version = 1,
    .build = linear_build,
    .forward = linear_forward,
};

/* ---- Bilinear: y = x1 . weight . x2 + bias ------------------------------------------------------ */

struct bilinear {
    int64_t in1_features;
    int64_t in2_features;
    int64_t out_features;
    bool bias;
};

static const tn_option bilinear_options[] = {
    TN_OPTION_ROW(struct bilinear, in1_features, NULL, "size of each first sample",
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct bilinear, in2_features, NULL, "size of each second sample",
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct bilinear, out_features, NULL, "size of each output sample",
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct bilinear, bias, "True", "whether a bias is learned and added",
                  TN_OPTION_KIND_BOOL, TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END
};

static tn_status bilinear_build(tn_module *self)
{
    const struct bilinear *s = tn_module_data(self);
    double bound;
    tn_tensor *weight, *bias;
    tn_status status;
    if (s->in1_features < 1 || s->in2_features < 1 || s->out_features < 1)
        return tn_fail(TN_ERR_VALUE,
                       "Bilinear: in1_features, in2_features and out_features are positive, got "
                       "%lld, %lld and %lld",
                       (long long)s->in1_features, (long long)s->in2_features,
                       (long long)s->out_features);
    bound = 1 / sqrt((double)s->in1_features);
    weight = tn_tensor_empty(TN_SHAPE(s->out_features, s->in1_features, s->in2_features),
                             TN_DTYPE_AUTO, NULL);
    bias = s->bias ? tn_tensor_empty(TN_SHAPE(s->out_features), TN_DTYPE_AUTO, NULL) : TN_NONE;
    if (weight == NULL || bias == NULL)
        return tn_error_last()->code;
    status = tn_init(weight, "uniform(a=%g, b=%g)", -bound, bound);
    if (status == TN_OK && s->bias)
        status = tn_init(bias, "uniform(a=%g, b=%g)", -bound, bound);
    if (status == TN_OK)
        status = tn_module_add_parameter(self, "weight", tn_parameter(weight, true));
    return status == TN_OK ? tn_module_add_parameter(self, "bias", tn_parameter(bias, true))
                           : status;
}

static tn_status bilinear_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_tensor *in[2], *y;
    if (tn_pack_count(input) != 2)
        return tn_fail(TN_ERR_TYPE, "Bilinear takes input1 and input2, got %lld values",
                       (long long)tn_pack_count(input));
    for (int64_t i = 0; i < 2; i++) {
        in[i] = tn_pack_tensor(input, i);
        if (in[i] == NULL)
            return tn_error_last()->code;
    }
    y = tn_bilinear(in[0], in[1], tn_module_get(self, "weight"), tn_module_get(self, "bias"));
    return y == NULL ? tn_error_last()->code : tn_pack_add(output, NULL, tn_value_tensor(y));
}

const tn_layer layer_bilinear = {
    TN_HEAD(tn_layer),
    .name = "Bilinear",
    .help = "y = x1 . weight . x2 + bias; weight [out, in1, in2], bias [out]",
    .options = bilinear_options,
    .data_size = sizeof(struct bilinear),
    .version = 1,
    .build = bilinear_build,
    .call = bilinear_call,
};

/* ---- Identity: y = x; arguments of any kind are accepted and not used, as in PyTorch ----------- */

struct identity {
    tn_values unused;
};

static const tn_option identity_options[] = { TN_OPTION_ROW(struct identity, unused, NULL,
                                                            "accepted and not used",
                                                            TN_OPTION_KIND_VALUE, TN_OPTION_MANY),
                                              TN_OPTION_END };

static tn_tensor *identity_forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    return input;
}

const tn_layer layer_identity = {
    TN_HEAD(tn_layer),
    .name = "Identity",
    .help = "y = x; takes any arguments, so that it can stand where another layer stood",
    .options = identity_options,
    .data_size = sizeof(struct identity),
    .version = 1,
    .forward = identity_forward,
};
