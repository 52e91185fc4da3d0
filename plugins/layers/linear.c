/* SPDX-License-Identifier: MIT
 *
 * Linear, LazyLinear, Bilinear and Identity. */
#include "helpers.h"

#include <math.h>

/* ---- Linear: y = x . weight^T + bias --------------------------------------------------------- */

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

/* As in PyTorch: weight and bias are uniform in [-b, b] with b = 1/sqrt(in_features). */
static tn_status linear_reset(tn_module *self)
{
    const struct linear *s = tn_module_data(self);
    double bound = s->in_features > 0 ? 1.0 / sqrt((double)s->in_features) : 0.0;
    tn_status status = tn_init(tn_module_get(self, "weight"), "kaiming_uniform(a=%g)", sqrt(5.0));
    return status == TN_OK ? layers_spread(self, "bias", bound) : status;
}

static tn_status linear_build(tn_module *self)
{
    const struct linear *s = tn_module_data(self);
    if (s->in_features < 0 || s->out_features < 0)
        return tn_fail(TN_ERR_VALUE,
                       "Linear: in_features or out_features: negative, got %lld and %lld; expected "
                       "0 or more",
                       (long long)s->in_features, (long long)s->out_features);
    tn_status status = layers_add(self, "weight", true, TN_SHAPE(s->out_features, s->in_features));
    return status == TN_OK ? layers_add(self, "bias", s->bias, TN_SHAPE(s->out_features)) : status;
}

static tn_tensor *linear_forward(tn_module *self, tn_tensor *input)
{
    return tn_linear(input, tn_module_get(self, "weight"), tn_module_get(self, "bias"));
}

static tn_status linear_channels(tn_module *self, tn_channels *out)
{
    static const tn_channel_row rows[] = {
        { "weight", "out_features", 0, TN_CHANNELS_OUT },
        { "bias", NULL, 0, TN_CHANNELS_OUT },
        { "weight", "in_features", 1, TN_CHANNELS_IN },
    };

    (void)self;
    out->rows = rows;
    out->n_rows = (int64_t)(sizeof rows / sizeof *rows);
    out->in_axis = out->out_axis = -1;
    return TN_OK;
}

/* Linear, then an activation, a sum, or both in this order. */
static tn_tensor *linear_fuse(tn_module *self, tn_tensor *input, const tn_follower *followers,
                              int64_t count, int64_t *done)
{
    static const char *const known[] = { "relu", "gelu", "gelu_tanh", "silu" };
    tn_tensor *weight, *more = TN_NONE, *y, *before;
    const char *activation = "none";
    int64_t n = layers_skip(followers, count, 0), used = 0;

    *done = 0;
    if (tn_tensor_ndim(input) < 1)
        return NULL;
    weight = layers_plain_weight(self, input, TN_SHAPE(-1, tn_tensor_size(input, -1)));
    if (weight == NULL)
        return NULL;
    for (size_t i = 0; n < count && i < sizeof known / sizeof *known; i++)
        if (followers[n].pointwise != NULL && strcmp(followers[n].pointwise, known[i]) == 0) {
            activation = known[i];
            used = n = layers_skip(followers, count, n + 1);
            break;
        }
    if (n < count && followers[n].add != NULL &&
        layers_has_shape(followers[n].add, input, tn_tensor_size(weight, 0))) {
        more = followers[n].add;
        used = n + 1;
    }
    if (used == 0 || tn_linear_activation(input, weight, tn_module_get(self, "bias"), more,
                                          activation, &y, &before) != TN_OK)
        return NULL;
    *done = used;
    return y;
}

const tn_layer_def layer_linear = {
    TN_HEAD(tn_layer_def),
    .name = "Linear",
    .help = "y = x . weight^T + bias over the last dimension; weight [out, in], bias [out]",
    .options = linear_options,
    .data_size = sizeof(struct linear),
    .version = 1,
    .build = linear_build,
    .reset = linear_reset,
    .forward = linear_forward,
    .channels = linear_channels,
    .fuse = linear_fuse,
    .flags = TN_LAYER_READS_INPUT,
};

/* Linear under the name that PyTorch gives to the output projection of MultiheadAttention. */
const tn_layer_def layer_plain_linear = {
    TN_HEAD(tn_layer_def),
    .name = "NonDynamicallyQuantizableLinear",
    .help = "Linear, as MultiheadAttention names it",
    .options = linear_options,
    .data_size = sizeof(struct linear),
    .version = 1,
    .build = linear_build,
    .reset = linear_reset,
    .forward = linear_forward,
    .channels = linear_channels,
    .fuse = linear_fuse,
    .flags = TN_LAYER_READS_INPUT,
};

/* ---- LazyLinear: the first input determines in_features -------------------------------------- */

static const tn_option lazy_options[] = {
    TN_OPTION_ROW(struct linear, out_features, NULL, "size of each output sample",
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct linear, bias, "True", "whether a bias is learned and added",
                  TN_OPTION_KIND_BOOL, TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct linear, in_features, "0",
                  "must be 0, because the first input determines it", TN_OPTION_KIND_INT,
                  TN_OPTION_KEYWORD),
    TN_OPTION_END
};

static tn_status lazy_build(tn_module *self)
{
    const struct linear *s = tn_module_data(self);
    tn_status status;
    if (s->in_features != 0)
        return tn_fail(TN_ERR_VALUE,
                       "LazyLinear: in_features: it is given, got %lld; expected 0, because the "
                       "first input determines it",
                       (long long)s->in_features);
    if (s->out_features < 0)
        return tn_fail(TN_ERR_VALUE,
                       "LazyLinear: out_features: out of range, got %lld; expected 0 or more",
                       (long long)s->out_features);
    status = tn_module_add_lazy(self, TN_SLOT_PARAMETER, "weight");
    if (status == TN_OK)
        status = s->bias ? tn_module_add_lazy(self, TN_SLOT_PARAMETER, "bias")
                         : tn_module_add_parameter(self, "bias", TN_NONE);
    return status;
}

static tn_status lazy_infer(tn_module *self, const tn_pack *input)
{
    struct linear *s = tn_module_data(self);
    tn_tensor *x = tn_pack_tensor(input, 0);
    tn_status status;
    if (x == NULL)
        return tn_error_last_code();
    if (tn_tensor_ndim(x) < 1)
        return tn_fail(TN_ERR_VALUE, "LazyLinear: input: no dimensions; expected at least 1");
    s->in_features = tn_tensor_size(x, -1);
    status = tn_module_materialize(self, "weight", TN_SHAPE(s->out_features, s->in_features));
    if (status == TN_OK && s->bias)
        status = tn_module_materialize(self, "bias", TN_SHAPE(s->out_features));
    return status;
}

static int64_t lazy_repr(tn_module *self, char *out, size_t size)
{
    const struct linear *s = tn_module_data(self);
    return tn_snprint(out, size, "in_features=%lld, out_features=%lld, bias=%s",
                      (long long)s->in_features, (long long)s->out_features,
                      s->bias ? "True" : "False");
}

const tn_layer_def layer_lazy_linear = {
    TN_HEAD(tn_layer_def),
    .name = "LazyLinear",
    .help = "a Linear that takes in_features from its first input",
    .options = lazy_options,
    .data_size = sizeof(struct linear),
    .version = 1,
    .build = lazy_build,
    .forward = linear_forward,
    .repr = lazy_repr,
    .infer = lazy_infer,
    .becomes = "Linear",
};

/* ---- Bilinear: y = x1 . weight . x2 + bias --------------------------------------------------- */

struct bilinear {
    int64_t in1_features;
    int64_t in2_features;
    int64_t out_features;
    bool bias;
};

static const tn_option bilinear_options[] = {
    TN_OPTION_ROW(struct bilinear, in1_features, NULL, "size of each sample of the first input",
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct bilinear, in2_features, NULL, "size of each sample of the second input",
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct bilinear, out_features, NULL, "size of each output sample",
                  TN_OPTION_KIND_INT, TN_OPTION_REQUIRED | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct bilinear, bias, "True", "whether a bias is learned and added",
                  TN_OPTION_KIND_BOOL, TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END
};

static tn_status bilinear_reset(tn_module *self)
{
    const struct bilinear *s = tn_module_data(self);
    double bound = 1 / sqrt((double)s->in1_features);
    tn_status status = layers_spread(self, "weight", bound);
    return status == TN_OK ? layers_spread(self, "bias", bound) : status;
}

static tn_status bilinear_build(tn_module *self)
{
    const struct bilinear *s = tn_module_data(self);
    tn_status status;
    if (s->in1_features < 1 || s->in2_features < 1 || s->out_features < 0)
        return tn_fail(
            TN_ERR_VALUE,
            "Bilinear: in1_features, in2_features or out_features: out of range, got %lld, %lld "
            "and %lld; expected at least 1, 1 and 0",
            (long long)s->in1_features, (long long)s->in2_features, (long long)s->out_features);
    status = layers_add(self, "weight", true,
                        TN_SHAPE(s->out_features, s->in1_features, s->in2_features));
    return status == TN_OK ? layers_add(self, "bias", s->bias, TN_SHAPE(s->out_features)) : status;
}

static tn_status bilinear_call(tn_module *self, const tn_pack *input, tn_pack *output)
{
    tn_tensor *in[2], *y;
    if (tn_pack_count(input) != 2)
        return tn_fail(TN_ERR_TYPE, "Bilinear: inputs: wrong number, got %lld; expected 2",
                       (long long)tn_pack_count(input));
    for (int64_t i = 0; i < 2; i++) {
        in[i] = tn_pack_tensor(input, i);
        if (in[i] == NULL)
            return tn_error_last_code();
    }
    y = tn_bilinear(in[0], in[1], tn_module_get(self, "weight"), tn_module_get(self, "bias"));
    return y == NULL ? tn_error_last_code() : tn_pack_add(output, NULL, tn_value_tensor(y));
}

const tn_layer_def layer_bilinear = {
    TN_HEAD(tn_layer_def),
    .name = "Bilinear",
    .help = "y = x1 . weight . x2 + bias; weight [out, in1, in2], bias [out]",
    .options = bilinear_options,
    .data_size = sizeof(struct bilinear),
    .version = 1,
    .build = bilinear_build,
    .reset = bilinear_reset,
    .call = bilinear_call,
};

/* ---- Identity: y = x; arguments of any kind are accepted and not used, as in PyTorch --------- */

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

static const char *identity_pointwise(tn_module *self)
{
    (void)self;
    return "";
}

const tn_layer_def layer_identity = {
    TN_HEAD(tn_layer_def),
    .name = "Identity",
    .help = "y = x; takes any arguments, so that it can replace another layer",
    .options = identity_options,
    .data_size = sizeof(struct identity),
    .version = 1,
    .forward = identity_forward,
    .pointwise = identity_pointwise,
    .flags = TN_LAYER_READS_INPUT,
};
