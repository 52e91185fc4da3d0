/* SPDX-License-Identifier: MIT
 *
 * Initializations, with the names and parameters of torch.nn.init. */
#include "helpers.h"

#include <math.h>
#include <string.h>

/* ---- constants ------------------------------------------------------------------------------- */

static tn_status zeros(const tn_init_def *self, const void *data, tn_tensor *tensor)
{
    (void)self;
    (void)data;
    return status_of(tn_fill_(tensor, 0.0));
}

static tn_status ones(const tn_init_def *self, const void *data, tn_tensor *tensor)
{
    (void)self;
    (void)data;
    return status_of(tn_fill_(tensor, 1.0));
}

struct constant {
    double val;
};

static const tn_option constant_options[] = { TN_OPTION_ROW(struct constant, val, NULL, "the value",
                                                            TN_OPTION_KIND_FLOAT,
                                                            TN_OPTION_REQUIRED),
                                              TN_OPTION_END };

static tn_status constant(const tn_init_def *self, const void *data, tn_tensor *tensor)
{
    (void)self;
    const struct constant *s = data;
    return status_of(tn_fill_(tensor, s->val));
}

/* ---- random numbers -------------------------------------------------------------------------- */

static bool is_complex(const tn_tensor *tensor)
{
    return (TN_BIT(tn_tensor_dtype(tensor)) & TN_MASK_COMPLEX) != 0;
}

/* For complex tensors, draws the real and the imaginary part. */
static tn_status draw_uniform(tn_tensor *tensor, double low, double high)
{
    tensor = is_complex(tensor) ? tn_view_as_real(tensor) : tensor;
    return status_of(tn_uniform_(tensor, low, high));
}

/* For complex tensors, each part has half of the variance; the mean is added to the real part. */
static tn_status draw_normal(tn_tensor *tensor, double mean, double std)
{
    bool parts = is_complex(tensor);
    tn_tensor *drawn = parts ? tn_view_as_real(tensor) : tensor;
    drawn = tn_normal_(drawn, parts ? 0.0 : mean, parts ? std / sqrt(2.0) : std);
    return status_of(parts && mean != 0.0 ? tn_add_scalar_(tensor, mean) : drawn);
}

struct uniform {
    double a;
    double b;
};

static const tn_option uniform_options[] = {
    TN_OPTION_FLOAT(struct uniform, a, "0.0", "lower bound"),
    TN_OPTION_FLOAT(struct uniform, b, "1.0", "upper bound, not reached"), TN_OPTION_END
};

static tn_status uniform(const tn_init_def *self, const void *data, tn_tensor *tensor)
{
    (void)self;
    const struct uniform *s = data;
    if (!(s->a <= s->b))
        return tn_fail(TN_ERR_VALUE,
                       "uniform: a or b: out of range, got %g and %g; expected a <= b", s->a, s->b);
    return draw_uniform(tensor, s->a, s->b);
}

struct normal {
    double mean;
    double std;
};

static const tn_option normal_options[] = {
    TN_OPTION_FLOAT(struct normal, mean, "0.0", "mean"),
    TN_OPTION_FLOAT(struct normal, std, "1.0", "standard deviation"), TN_OPTION_END
};

static tn_status normal(const tn_init_def *self, const void *data, tn_tensor *tensor)
{
    (void)self;
    const struct normal *s = data;
    if (!(s->std >= 0.0))
        return tn_fail(TN_ERR_VALUE, "normal: std: out of range, got %g; expected 0 or more",
                       s->std);
    return draw_normal(tensor, s->mean, s->std);
}

/* ---- random numbers scaled by the number of inputs and outputs ------------------------------- */

/* fan_in = size(1) * r, fan_out = size(0) * r, with r the product of the other sizes */
static tn_status fans(const tn_tensor *tensor, double *fan_in, double *fan_out)
{
    tn_ints shape = tn_tensor_shape(tensor);
    if (shape.count < 2)
        return tn_fail(
            TN_ERR_VALUE,
            /* PyTorch's wording */
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions; it "
            "has %lld",
            (long long)shape.count);
    double field = 1.0;
    for (int64_t i = 2; i < shape.count; i++)
        field *= (double)shape.at[i];
    *fan_in = (double)shape.at[1] * field;
    *fan_out = (double)shape.at[0] * field;
    return TN_OK;
}

static tn_status gain_of(const char *nonlinearity, double a, double *gain)
{
    static const char *const one[] = { "linear",  "conv1d",           "conv2d",
                                       "conv3d",  "conv_transpose1d", "conv_transpose2d",
                                       "sigmoid", "conv_transpose3d" };
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
        if (strcmp(nonlinearity, one[i]) == 0) {
            *gain = 1.0;
            return TN_OK;
        }
    }
    if (strcmp(nonlinearity, "tanh") == 0)
        *gain = 5.0 / 3.0;
    else if (strcmp(nonlinearity, "relu") == 0)
        *gain = sqrt(2.0);
    else if (strcmp(nonlinearity, "leaky_relu") == 0)
        *gain = sqrt(2.0 / (1.0 + a * a));
    else if (strcmp(nonlinearity, "selu") == 0)
        *gain = 3.0 / 4.0;
    else
        return tn_fail(
            TN_ERR_VALUE,
            /* PyTorch's wording */
            "Unsupported nonlinearity %s; expected linear, conv1d to conv3d, conv_transpose1d to "
            "conv_transpose3d, sigmoid, tanh, relu, leaky_relu or selu",
            nonlinearity);
    return TN_OK;
}

tn_status layers_gain(const tn_value *value, double *gain)
{
    const tn_value *name = value;
    double slope = 0.01;
    if (value->kind == TN_VALUE_INT || value->kind == TN_VALUE_FLOAT) {
        *gain = value->kind == TN_VALUE_INT ? (double)value->as.i : value->as.f;
        return TN_OK;
    }
    if ((value->kind == TN_VALUE_TUPLE || value->kind == TN_VALUE_LIST) && value->count == 2) {
        const tn_value *number = &value->as.list[1];
        name = value->as.list;
        if (number->kind != TN_VALUE_INT && number->kind != TN_VALUE_FLOAT)
            return tn_fail(TN_ERR_VALUE,
                           /* PyTorch's wording */ "the negative_slope of %s is not a valid number",
                           name->kind == TN_VALUE_STRING ? name->as.s : "the nonlinearity");
        slope = number->kind == TN_VALUE_INT ? (double)number->as.i : number->as.f;
    }
    if (name->kind != TN_VALUE_STRING)
        return tn_fail(
            TN_ERR_TYPE,
            "gain: wrong type, got %s; expected a number, a nonlinearity, or one with its "
            "parameter: ('leaky_relu', 0.2)",
            tn_value_kind_name(value->kind));
    return gain_of(name->as.s, slope, gain);
}

struct kaiming {
    double a;
    const char *mode;
    const char *nonlinearity;
};

static const tn_option kaiming_options[] = {
    TN_OPTION_FLOAT(struct kaiming, a, "0.0", "negative slope of leaky_relu"),
    TN_OPTION_STRING(struct kaiming, mode, "'fan_in'",
                     "fan_in keeps the variance going forward, fan_out going backward"),
    TN_OPTION_STRING(struct kaiming, nonlinearity, "'leaky_relu'", "the nonlinearity that follows"),
    TN_OPTION_END
};

/* std = gain / sqrt(fan). Sets *empty if the tensor has no elements to fill. */
static tn_status kaiming_std(const struct kaiming *s, const tn_tensor *tensor, double *std,
                             bool *empty)
{
    double fan_in = 0, fan_out = 0, gain = 0;
    *empty = tn_tensor_numel(tensor) == 0;
    if (*empty) {
        tn_log(TN_LOG_WARNING, "Initializing zero-element tensors is a no-op");
        return TN_OK;
    }
    bool by_in = strcmp(s->mode, "fan_in") == 0;
    if (!by_in && strcmp(s->mode, "fan_out") != 0)
        return tn_fail(
            TN_ERR_VALUE,
            /* PyTorch's wording */ "Mode %s not supported, please use one of fan_in, fan_out",
            s->mode);
    tn_status status = fans(tensor, &fan_in, &fan_out);
    if (status == TN_OK)
        status = gain_of(s->nonlinearity, s->a, &gain);
    *std = gain / sqrt(by_in ? fan_in : fan_out);
    return status;
}

static tn_status kaiming_uniform(const tn_init_def *self, const void *data, tn_tensor *tensor)
{
    (void)self;
    double std = 0;
    bool empty = false;
    tn_status status = kaiming_std(data, tensor, &std, &empty);
    if (status != TN_OK || empty)
        return status;
    double bound = sqrt(3.0) * std;
    return draw_uniform(tensor, -bound, bound);
}

static tn_status kaiming_normal(const tn_init_def *self, const void *data, tn_tensor *tensor)
{
    (void)self;
    double std = 0;
    bool empty = false;
    tn_status status = kaiming_std(data, tensor, &std, &empty);
    return status != TN_OK || empty ? status : draw_normal(tensor, 0.0, std);
}

struct xavier {
    tn_value gain;
};

static const tn_option xavier_options[] = {
    TN_OPTION_ROW(struct xavier, gain, "1.0", LAYERS_GAIN_HELP, TN_OPTION_KIND_VALUE, 0),
    TN_OPTION_END
};

/* std = gain * sqrt(2 / (fan_in + fan_out)) */
static tn_status xavier_std(const struct xavier *s, const tn_tensor *tensor, double *std)
{
    double fan_in = 0, fan_out = 0, gain = 0;
    tn_status status = fans(tensor, &fan_in, &fan_out);
    if (status == TN_OK)
        status = layers_gain(&s->gain, &gain);
    double sum = fan_in + fan_out;
    *std = sum > 0 ? gain * sqrt(2.0 / sum) : 0.0;
    return status;
}

static tn_status xavier_uniform(const tn_init_def *self, const void *data, tn_tensor *tensor)
{
    (void)self;
    double std = 0;
    tn_status status = xavier_std(data, tensor, &std);
    if (status != TN_OK)
        return status;
    double bound = sqrt(3.0) * std;
    return draw_uniform(tensor, -bound, bound);
}

static tn_status xavier_normal(const tn_init_def *self, const void *data, tn_tensor *tensor)
{
    (void)self;
    double std = 0;
    tn_status status = xavier_std(data, tensor, &std);
    return status == TN_OK ? draw_normal(tensor, 0.0, std) : status;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define INIT(name_, help_, options_, size_, fill_)                                                 \
    {                                                                                              \
        TN_HEAD(tn_init_def), .name = name_, .help = help_, .options = options_,                   \
                              .data_size = size_, .fill = fill_                                    \
    }

const tn_init_def init_zeros = INIT("zeros", "0 everywhere", NULL, 0, zeros);
const tn_init_def init_ones = INIT("ones", "1 everywhere", NULL, 0, ones);
const tn_init_def init_constant = INIT("constant", "one value everywhere", constant_options,
                                       sizeof(struct constant), constant);
const tn_init_def init_uniform = INIT("uniform", "U[a, b)", uniform_options, sizeof(struct uniform),
                                      uniform);
const tn_init_def init_normal = INIT("normal", "N(mean, std)", normal_options,
                                     sizeof(struct normal), normal);
const tn_init_def init_kaiming_uniform = INIT("kaiming_uniform",
                                              "U[-b, b), b = gain * sqrt(3 / fan)", kaiming_options,
                                              sizeof(struct kaiming), kaiming_uniform);
const tn_init_def init_kaiming_normal = INIT("kaiming_normal", "N(0, gain / sqrt(fan))",
                                             kaiming_options, sizeof(struct kaiming),
                                             kaiming_normal);
const tn_init_def init_xavier_uniform = INIT("xavier_uniform",
                                             "U[-b, b), b = gain * sqrt(6 / (fan_in + fan_out))",
                                             xavier_options, sizeof(struct xavier), xavier_uniform);
const tn_init_def init_xavier_normal = INIT("xavier_normal",
                                            "N(0, gain * sqrt(2 / (fan_in + fan_out)))",
                                            xavier_options, sizeof(struct xavier), xavier_normal);
