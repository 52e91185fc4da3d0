/* SPDX-License-Identifier: MIT
 *
 * Dropout layers and StochasticDepth. They change their input only in training mode. */
#include "helpers.h"

struct dropout {
    double p;
    bool inplace;
};

static const tn_option options[] = {
    TN_OPTION_ROW(struct dropout, p, "0.5", "probability of dropping", TN_OPTION_KIND_FLOAT,
                  TN_OPTION_REPR_KEYWORD),
    TN_OPTION_ROW(struct dropout, inplace, "False", "writes the result into the input",
                  TN_OPTION_KIND_BOOL, TN_OPTION_REPR_KEYWORD),
    TN_OPTION_END
};

static tn_status check(tn_module *self)
{
    const struct dropout *s = tn_module_data(self);

    return s->p >= 0 && s->p <= 1
               ? TN_OK
               : tn_fail(TN_ERR_VALUE,
                         /* PyTorch's wording */
                         "%s: dropout probability has to be between 0 and 1, but got %g",
                         tn_module_type(self), s->p);
}

static tn_tensor *given(tn_module *self, tn_tensor *x, tn_tensor *y)
{
    const struct dropout *s = tn_module_data(self);

    return s->inplace && y != NULL && y != x ? tn_copy_(x, y) : y;
}

#define DROPOUT(op)                                                                                \
    static tn_tensor *op##_forward(tn_module *self, tn_tensor *x)                                  \
    {                                                                                              \
        const struct dropout *s = tn_module_data(self);                                            \
        return tn_module_is_training(self) ? given(self, x, tn_##op(x, s->p, true)) : x;           \
    }
DROPOUT(dropout)
DROPOUT(feature_dropout)
DROPOUT(alpha_dropout)
DROPOUT(feature_alpha_dropout)

/* In evaluation the result is the input. */
static const char *pointwise(tn_module *self)
{
    return tn_module_is_training(self) ? NULL : "";
}

#define DROPOUT_LAYER(forward_, help_)                                                             \
    .help = help_, .options = options, .data_size = sizeof(struct dropout), .build = check,        \
    .forward = forward_, .pointwise = pointwise
LAYER(dropout, "Dropout",
      DROPOUT_LAYER(dropout_forward, "zeroes elements with probability p and scales the others"));
LAYER(dropout1d, "Dropout1d",
      DROPOUT_LAYER(feature_dropout_forward, "zeroes whole channels of [N, C, L]"));
LAYER(dropout2d, "Dropout2d",
      DROPOUT_LAYER(feature_dropout_forward, "zeroes whole channels of [N, C, H, W]"));
LAYER(dropout3d, "Dropout3d",
      DROPOUT_LAYER(feature_dropout_forward, "zeroes whole channels of [N, C, D, H, W]"));
LAYER(alpha_dropout, "AlphaDropout",
      DROPOUT_LAYER(alpha_dropout_forward, "dropout that keeps mean and variance"));
LAYER(feature_alpha_dropout, "FeatureAlphaDropout",
      DROPOUT_LAYER(feature_alpha_dropout_forward, "alpha dropout of whole channels"));

/* ---- StochasticDepth, as in torchvision ---- */

struct depth {
    double p;
    const char *mode;
};

static const tn_option depth_options[] = {
    TN_OPTION_ROW(struct depth, p, NULL, "probability of dropping", TN_OPTION_KIND_FLOAT,
                  TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct depth, mode, NULL,
                  "row: each sample is dropped or kept; batch: all of them together",
                  TN_OPTION_KIND_STRING, TN_OPTION_REQUIRED),
    TN_OPTION_END
};

static tn_status depth_check(tn_module *self)
{
    const struct depth *s = tn_module_data(self);

    if (!(s->p >= 0 && s->p <= 1))
        return tn_fail(TN_ERR_VALUE,
                       /* torchvision's wording */
                       "StochasticDepth: drop probability has to be between 0 and 1, but got %g",
                       s->p);
    if (strcmp(s->mode, "row") == 0 || strcmp(s->mode, "batch") == 0)
        return TN_OK;
    return tn_fail(TN_ERR_VALUE, "StochasticDepth: mode: unknown, got %q; expected batch or row",
                   s->mode);
}

/* Multiplies the input by 0, or by 1 / (1 - p), which is the dropout of ones. */
static tn_tensor *depth_forward(tn_module *self, tn_tensor *x)
{
    const struct depth *s = tn_module_data(self);
    int64_t sizes[TN_MAX_DIMS];
    int32_t ndim = tn_tensor_ndim(x);
    tn_tensor *ones;

    if (!tn_module_is_training(self) || s->p == 0)
        return x;
    for (int32_t d = 0; d < ndim; d++)
        sizes[d] = d == 0 && strcmp(s->mode, "row") == 0 ? tn_tensor_size(x, 0) : 1;
    ones = tn_tensor_full((tn_ints){ sizes, ndim }, 1, tn_tensor_dtype(x), tn_tensor_device(x));
    return tn_mul(x, tn_dropout(ones, s->p, true));
}

static int64_t depth_repr(tn_module *self, char *out, size_t size)
{
    const struct depth *s = tn_module_data(self);

    return tn_snprint(out, size, "p=%g, mode=%s", s->p, s->mode);
}

LAYER(stochastic_depth, "StochasticDepth",
      .help = "zeroes whole samples with probability p and scales the others",
      .options = depth_options, .data_size = sizeof(struct depth), .build = depth_check,
      .forward = depth_forward, .repr = depth_repr);
