/* SPDX-License-Identifier: MIT
 *
 * Activations with options or parameters. A layer of one operator without options needs no code: a
 * line `layer Name` in the block of the operator in sdk/operators/activation.ops makes it. */
#include "helpers.h"
#include <math.h>

/* ---- ReLU ------------------------------------------------------------------------------------ */

struct relu {
    bool inplace;
};

static const tn_option relu_options[] = {
    TN_OPTION_ROW(struct relu, inplace, "False", "writes the result into the input",
                  TN_OPTION_KIND_BOOL, TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END
};

static tn_tensor *relu_forward(tn_module *self, tn_tensor *input)
{
    const struct relu *s = tn_module_data(self);
    return s->inplace ? tn_relu_(input) : tn_relu(input);
}

static const char *relu_pointwise(tn_module *self)
{
    (void)self;
    return "relu";
}

static int64_t relu_repr(tn_module *self, char *out, size_t size)
{
    const struct relu *s = tn_module_data(self);
    return tn_snprint(out, size, "%s", s->inplace ? "inplace=True" : "");
}

const tn_layer_def layer_relu = {
    TN_HEAD(tn_layer_def),
    .name = "ReLU",
    .help = "y = max(x, 0)",
    .options = relu_options,
    .data_size = sizeof(struct relu),
    .version = 1,
    .forward = relu_forward,
    .repr = relu_repr,
    .pointwise = relu_pointwise,
};

/* ---- layers that use struct activation ------------------------------------------------------- */

/* The options of all these layers. Each layer uses those that its table lists. */
struct activation {
    double a; /* a and b have PyTorch's names in the tables */
    double b;
    int64_t dim;
    const char *approximate;
    bool inplace;
};

#define NUMBER(name, member, def, help, flags)                                                     \
    TN_OPTION_NAMED(name, struct activation, member, def, help, TN_OPTION_KIND_FLOAT, flags)
#define INPLACE                                                                                    \
    TN_OPTION_ROW(struct activation, inplace, "False", "writes the result into the input",         \
                  TN_OPTION_KIND_BOOL, 0)
#define DIM(def, flags)                                                                            \
    TN_OPTION_ROW(struct activation, dim, def, "the dimension", TN_OPTION_KIND_INT,                \
                  TN_OPTION_REPR_KEYWORD | (flags))

/* Prints one or two numbers of a layer, and `inplace` if it is true. */
static int64_t numbers_repr(tn_module *self, char *out, size_t size, const char *first,
                            const char *second)
{
    const struct activation *s = tn_module_data(self);
    layers_text text = { out, size, 0 };

    if (first != NULL)
        layers_put(&text, "%s=", first);
    layers_put(&text, "%g", s->a);
    if (second != NULL)
        layers_put(&text, ", %s=%g", second, s->b);
    if (s->inplace)
        layers_put(&text, ", inplace=True");
    return text.used;
}

/* Defines ID_repr. A first name that is NULL is not printed. */
#define REPR(id, first, second)                                                                    \
    static int64_t id##_repr(tn_module *self, char *out, size_t size)                              \
    {                                                                                              \
        return numbers_repr(self, out, size, first, second);                                       \
    }
/* Defines ID_forward, which calls the operator with these options, in its order. */
#define FORWARD(op, ...)                                                                           \
    static tn_tensor *op##_forward(tn_module *self, tn_tensor *x)                                  \
    {                                                                                              \
        const struct activation *s = tn_module_data(self);                                         \
        return tn_##op(x, __VA_ARGS__);                                                            \
    }
#define FORWARD_INPLACE(op, ...)                                                                   \
    static tn_tensor *op##_forward(tn_module *self, tn_tensor *x)                                  \
    {                                                                                              \
        const struct activation *s = tn_module_data(self);                                         \
        return s->inplace ? tn_##op##_(x, __VA_ARGS__) : tn_##op(x, __VA_ARGS__);                  \
    }
#define ACTIVATION(id, name_, help_)                                                               \
    LAYER(id, name_, .help = help_, .options = id##_table, .data_size = sizeof(struct activation), \
          .forward = id##_forward, .repr = id##_repr)

static const tn_option leaky_relu_table[] = {
    NUMBER("negative_slope", a, "0.01", "slope for negative inputs", 0), INPLACE, TN_OPTION_END
};
FORWARD_INPLACE(leaky_relu, s->a)
REPR(leaky_relu, "negative_slope", NULL)
ACTIVATION(leaky_relu, "LeakyReLU", "y = x > 0 ? x : negative_slope x");

static const tn_option elu_table[] = {
    NUMBER("alpha", a, "1.0", "y approaches -alpha for negative x", 0), INPLACE, TN_OPTION_END
};
FORWARD_INPLACE(elu, s->a)
REPR(elu, "alpha", NULL)
ACTIVATION(elu, "ELU", "y = x > 0 ? x : alpha (e^x - 1)");

static const tn_option celu_table[] = {
    NUMBER("alpha", a, "1.0", "y approaches -alpha for negative x", 0), INPLACE, TN_OPTION_END
};
FORWARD_INPLACE(celu, s->a)
REPR(celu, "alpha", NULL)
ACTIVATION(celu, "CELU", "y = max(x, 0) + min(0, alpha (e^(x / alpha) - 1))");

static const tn_option softshrink_table[] = { NUMBER("lambd", a, "0.5", "threshold", 0),
                                              TN_OPTION_END };
FORWARD(softshrink, s->a)
REPR(softshrink, NULL, NULL)
ACTIVATION(softshrink, "Softshrink", "y = x shrunk towards 0 by lambd");

static const tn_option hardshrink_table[] = {
    NUMBER("lambd", a, "0.5", "threshold; smaller inputs become 0", 0), TN_OPTION_END
};
FORWARD(hardshrink, s->a)
REPR(hardshrink, NULL, NULL)
ACTIVATION(hardshrink, "Hardshrink", "y = |x| > lambd ? x : 0");

static const tn_option softplus_table[] = {
    NUMBER("beta", a, "1.0", "sharpness of the bend", 0),
    NUMBER("threshold", b, "20.0", "above this, the function is linear", 0), TN_OPTION_END
};
FORWARD(softplus, s->a, s->b)
REPR(softplus, "beta", "threshold")
ACTIVATION(softplus, "Softplus", "y = log(1 + e^(beta x)) / beta");

static const tn_option hardtanh_table[] = { NUMBER("min_val", a, "-1.0", "the smallest value", 0),
                                            NUMBER("max_val", b, "1.0", "the largest value", 0),
                                            INPLACE, TN_OPTION_END };
FORWARD_INPLACE(hardtanh, s->a, s->b)
REPR(hardtanh, "min_val", "max_val")
ACTIVATION(hardtanh, "Hardtanh", "y = min(max(x, min_val), max_val)");

static const tn_option threshold_table[] = {
    NUMBER("threshold", a, NULL, "threshold", TN_OPTION_REQUIRED),
    NUMBER("value", b, NULL, "output for inputs up to the threshold", TN_OPTION_REQUIRED), INPLACE,
    TN_OPTION_END
};

static tn_tensor *threshold_forward(tn_module *self, tn_tensor *x)
{
    const struct activation *s = tn_module_data(self);

    return s->inplace ? tn_threshold_(x, s->a, s->b) : tn_threshold(x, s->a, s->b);
}
REPR(threshold, "threshold", "value")
ACTIVATION(threshold, "Threshold", "y = x > threshold ? x : value");

/* ---- GLU ------------------------------------------------------------------------------------- */

static const tn_option glu_table[] = { DIM("-1", 0), TN_OPTION_END };

static tn_tensor *glu_forward(tn_module *self, tn_tensor *x)
{
    const struct activation *s = tn_module_data(self);

    return tn_glu(x, s->dim);
}

LAYER(glu, "GLU", .help = "y = a * sigmoid(b), where a and b are the halves of x along dim",
      .options = glu_table, .data_size = sizeof(struct activation), .forward = glu_forward);

/* ---- GELU, PReLU ----------------------------------------------------------------------------- */

static const tn_option gelu_table[] = { TN_OPTION_ROW(struct activation, approximate, "'none'",
                                                      "none or tanh", TN_OPTION_KIND_STRING,
                                                      TN_OPTION_REPR_KEYWORD),
                                        TN_OPTION_END };

static tn_tensor *gelu_forward(tn_module *self, tn_tensor *x)
{
    const struct activation *s = tn_module_data(self);

    return tn_gelu(x, s->approximate);
}

static const char *gelu_pointwise(tn_module *self)
{
    const struct activation *s = tn_module_data(self);

    return strcmp(s->approximate, "none") == 0   ? "gelu"
           : strcmp(s->approximate, "tanh") == 0 ? "gelu_tanh"
                                                 : NULL;
}

LAYER(gelu, "GELU", .help = "y = x times the probability that a standard normal number is below x",
      .options = gelu_table, .data_size = sizeof(struct activation), .forward = gelu_forward,
      .pointwise = gelu_pointwise);

struct prelu {
    int64_t num_parameters;
    double init;
};

static const tn_option prelu_table[] = {
    TN_OPTION_ROW(struct prelu, num_parameters, "1",
                  "number of weights: 1, or the number of channels", TN_OPTION_KIND_INT, 0),
    TN_OPTION_ROW(struct prelu, init, "0.25", "initial slope", TN_OPTION_KIND_FLOAT, 0),
    TN_OPTION_END
};

static tn_status prelu_build(tn_module *self)
{
    const struct prelu *s = tn_module_data(self);

    if (s->num_parameters < 1)
        return tn_fail(TN_ERR_VALUE,
                       "PReLU: num_parameters: out of range, got %lld; expected 1 or "
                       "more",
                       (long long)s->num_parameters);
    return layers_add(self, "weight", true, TN_SHAPE(s->num_parameters));
}

static tn_status prelu_reset(tn_module *self)
{
    const struct prelu *s = tn_module_data(self);

    return layers_fill(self, "weight", s->init);
}

static tn_tensor *prelu_forward(tn_module *self, tn_tensor *x)
{
    return tn_prelu(x, tn_module_get(self, "weight"));
}

static int64_t prelu_repr(tn_module *self, char *out, size_t size)
{
    const struct prelu *s = tn_module_data(self);

    return tn_snprint(out, size, "num_parameters=%lld", (long long)s->num_parameters);
}

const tn_layer_def layer_prelu = {
    TN_HEAD(tn_layer_def),
    .name = "PReLU",
    .help = "y = x > 0 ? x : weight x; weight is learned",
    .options = prelu_table,
    .data_size = sizeof(struct prelu),
    .version = 1,
    .build = prelu_build,
    .reset = prelu_reset,
    .forward = prelu_forward,
    .repr = prelu_repr,
};

/* ---- RReLU ----------------------------------------------------------------------------------- */

struct rrelu {
    double lower;
    double upper;
    bool inplace;
};

static const tn_option rrelu_table[] = {
    TN_OPTION_ROW(struct rrelu, lower, "0.125", "lower bound of the slopes", TN_OPTION_KIND_FLOAT,
                  0),
    TN_OPTION_ROW(struct rrelu, upper, "0.3333333333333333", "upper bound of the slopes",
                  TN_OPTION_KIND_FLOAT, 0),
    TN_OPTION_ROW(struct rrelu, inplace, "False", "writes the result into the input",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_END
};

static tn_status rrelu_build(tn_module *self)
{
    const struct rrelu *s = tn_module_data(self);

    return isfinite(s->lower) && isfinite(s->upper) && s->lower <= s->upper
               ? TN_OK
               : tn_fail(TN_ERR_VALUE,
                         "RReLU: lower or upper: out of range, got %g and %g; expected finite "
                         "numbers with lower <= upper",
                         s->lower, s->upper);
}

static tn_tensor *rrelu_forward(tn_module *self, tn_tensor *x)
{
    const struct rrelu *s = tn_module_data(self);
    tn_leaky_relu_options o = TN_LEAKY_RELU_OPTIONS;
    tn_tensor *y;

    if (!tn_module_is_training(self)) {
        o.negative_slope = (s->lower + s->upper) / 2;
        return s->inplace ? tn_leaky_relu_(x, o.negative_slope)
                          : tn_leaky_relu(x, o.negative_slope);
    }
    y = tn_rrelu(x, s->lower, s->upper, true);
    return s->inplace && y != NULL ? tn_copy_(x, y) : y;
}

static int64_t rrelu_repr(tn_module *self, char *out, size_t size)
{
    const struct rrelu *s = tn_module_data(self);

    return tn_snprint(out, size, "lower=%g, upper=%g%s", s->lower, s->upper,
                      s->inplace ? ", inplace=True" : "");
}

const tn_layer_def layer_rrelu = {
    TN_HEAD(tn_layer_def),
    .name = "RReLU",
    .help = "y = x > 0 ? x : slope x; in training, each slope is drawn between lower and upper",
    .options = rrelu_table,
    .data_size = sizeof(struct rrelu),
    .version = 1,
    .build = rrelu_build,
    .forward = rrelu_forward,
    .repr = rrelu_repr,
};
