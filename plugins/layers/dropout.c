/* SPDX-License-Identifier: MIT
 *
 * Dropout: in training only. */
#include "layers.h"

struct dropout {
    double p;
    bool inplace;
};

static const tn_option options[] = { TN_OPTION_ROW(struct dropout, p, "0.5", "probability",
                                                   TN_OPTION_KIND_FLOAT, TN_OPTION_REPR_KEYWORD),
                                     TN_OPTION_ROW(struct dropout, inplace, "False",
                                                   "writes the result into the input",
                                                   TN_OPTION_KIND_BOOL, TN_OPTION_REPR_KEYWORD),
                                     TN_OPTION_END };

static tn_status check(tn_module *self)
{
    const struct dropout *s = tn_module_data(self);

    return s->p >= 0 && s->p <= 1
               ? TN_OK
               : tn_fail(TN_ERR_VALUE,
                         /* PyTorch's words */
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
        tn_##op##_options o = { .size = sizeof o, .p = s->p, .training = true };                   \
        return tn_module_is_training(self) ? given(self, x, tn_##op(x, &o)) : x;                   \
    }
DROPOUT(dropout)
DROPOUT(feature_dropout)
DROPOUT(alpha_dropout)
DROPOUT(feature_alpha_dropout)

#define DROPOUT_LAYER(forward_, help_)                                                             \
    .help = help_, .options = options, .data_size = sizeof(struct dropout), .build = check,        \
    .forward = forward_
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
