/* SPDX-License-Identifier: MIT
 *
 * Softmax, LogSoftmax, Softmin and Softmax2d. */
#include "helpers.h"

/* ---- Softmax, LogSoftmax --------------------------------------------------------------------- */

struct softmax {
    int64_t dim; /* INT64_MIN (None): depends on the number of dimensions */
};

static const tn_option softmax_options[] = {
    TN_OPTION_ROW(struct softmax, dim, "None",
                  "dimension along which y sums to 1; None: 0 for 0, 1 or 3 dimensions, else 1",
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

const tn_layer_def layer_softmax = {
    TN_HEAD(tn_layer_def),
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

const tn_layer_def layer_log_softmax = {
    TN_HEAD(tn_layer_def),
    .name = "LogSoftmax",
    .help = "y = x - ln(sum of e^x) along dim",
    .options = softmax_options,
    .data_size = sizeof(struct softmax),
    .version = 1,
    .forward = log_softmax_forward,
};

/* ---- Softmin, Softmax2d ---------------------------------------------------------------------- */

static const tn_option softmin_options[] = {
    TN_OPTION_ROW(struct softmax, dim, "None", "the dimension", TN_OPTION_KIND_INT,
                  TN_OPTION_OPTIONAL | TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END
};

static tn_tensor *softmin_forward(tn_module *self, tn_tensor *input)
{
    return tn_softmin(input, softmax_dim(self, input));
}

const tn_layer_def layer_softmin = {
    TN_HEAD(tn_layer_def),
    .name = "Softmin",
    .help = "softmax of -x along dim",
    .options = softmin_options,
    .data_size = sizeof(struct softmax),
    .version = 1,
    .forward = softmin_forward,
};

static tn_tensor *softmax2d_forward(tn_module *self, tn_tensor *input)
{
    int32_t ndim = tn_tensor_ndim(input);

    (void)self;
    if (ndim != 3 && ndim != 4) {
        tn_fail(TN_ERR_VALUE, "Softmax2d: expected input to be 3D or 4D, got %dD", (int)ndim);
        return NULL;
    }
    return tn_softmax(input, -3);
}

const tn_layer_def layer_softmax2d = {
    TN_HEAD(tn_layer_def),
    .name = "Softmax2d",
    .help = "softmax over the channels of [N, C, H, W]",
    .version = 1,
    .forward = softmax2d_forward,
};
