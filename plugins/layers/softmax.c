/* SPDX-License-Identifier: MIT
 *
 * Activations: layers without parameters, element by element or along one dimension. */
#include "layers.h"

/* ---- ReLU -------------------------------------------------------------------------------------- */

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

static int64_t relu_repr(tn_module *self, char *out, size_t size)
{
    const struct relu *s = tn_module_data(self);
    return tn_snprint(out, size, "%s", s->inplace ? "inplace=True" : "");
}

const tn_layer layer_relu = {
    TN_HEAD(tn_layer),
    .name = "ReLU",
    .help = "y = max(x, 0)",
    .options = relu_options,
    .data_size = sizeof(struct relu),
    .version = 1,
    .forward = relu_forward,
    .repr = relu_repr,
};

/* ---- Sigmoid ----------------------------------------------------------------------------------- */

static tn_tensor *sigmoid_forward(tn_module *self, tn_tensor *input)
{
    (void)self;
    return tn_sigmoid(input);
}

const tn_layer layer_sigmoid = {
    TN_HEAD(tn_layer), .name = "Sigmoid",          .help = "y = 1 / (1 + e^-x)",
    .version = 1,      .forward = sigmoid_forward,
};

/* ---- Softmax, LogSoftmax ----------------------------------------------------------------------- */

struct softmax {
    int64_t dim; /* INT64_MIN: by the number of dimensions */
};

static const tn_option softmax_options[] = {
    TN_OPTION_ROW(struct softmax, dim, "None",
                  "the dimension that sums to one; None: 0 for 0, 1 or 3 dimensions, else 1",
                  TN_OPTION_KIND_INT, TN_OPTION_OPTIONAL | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END
};

static int64_t softmax_dim(tn_module *self, const tn_tensor *input)
{
    const struct softmax *s = tn_module_data(self);
    if (s->dim != INT64_MIN || input == NULL)
        return s->dim;
    int32_t ndim = tn_tensor_ndim(input);
    return ndim == 0 || ndim == 1 || ndim == 3 ? 0 : 1;
}

static tn_tensor *softmax_forward(tn_module *self, tn_tensor *input)
{
    return tn_softmax(input, softmax_dim(self, input));
}

const tn_layer layer_softmax = {
    TN_HEAD(tn_layer),
    .name = "Softmax",
    .help = "y = e^x / sum of e^x along dim",
    .options = softmax_options,
    .data_size = sizeof(struct softmax),
    .version = 1,
    .forward = softmax_forward,
};

static tn_tensor *log_softmax_forward(tn_module *self, tn_tensor *input)
{
    return tn_log_softmax(input, softmax_dim(self, input));
}

const tn_layer layer_log_softmax = {
    TN_HEAD(tn_layer),
    .name = "LogSoftmax",
    .help = "y = x - ln(sum of e^x) along dim",
    .options = softmax_options,
    .data_size = sizeof(struct softmax),
    .version = 1,
    .forward = log_softmax_forward,
};
