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
                         "%s: dropout probability has to be between 0 and 1, but got %g",
                         tn_module_type(self), s->p);
}

static tn_tensor *given(tn_module *self, tn_tensor *x, tn_tensor *y)
{
    const struct dropout *s = tn_module_data(self);

    return s->inplace && y != NULL && y != x ? tn_copy_(x, y) : y;
}

#define DROPOUT(id, Name, op, OP, help_)                                                           \
    static tn_tensor *id##_forward(tn_module *self, tn_tensor *x)                                  \
    {                                                                                              \
        const struct dropout *s = tn_module_data(self);                                            \
        tn_##op##_options o = TN_##OP##_OPTIONS;                                                   \
        if (!tn_module_is_training(self))                                                          \
            return x;                                                                              \
        o.p = s->p;                                                                                \
        o.training = true;                                                                         \
        return given(self, x, tn_##op(x, &o));                                                     \
    }                                                                                              \
    const tn_layer layer_##id = {                                                                  \
        TN_HEAD(tn_layer),                                                                         \
        .name = #Name,                                                                             \
        .help = help_,                                                                             \
        .options = options,                                                                        \
        .data_size = sizeof(struct dropout),                                                       \
        .version = 1,                                                                              \
        .build = check,                                                                            \
        .forward = id##_forward,                                                                   \
    };
DROPOUT(dropout, Dropout, dropout, DROPOUT, "elements become 0 with probability p; the others grow")
DROPOUT(dropout1d, Dropout1d, feature_dropout, FEATURE_DROPOUT,
        "whole channels of [N, C, L] become 0")
DROPOUT(dropout2d, Dropout2d, feature_dropout, FEATURE_DROPOUT,
        "whole channels of [N, C, H, W] become 0")
DROPOUT(dropout3d, Dropout3d, feature_dropout, FEATURE_DROPOUT,
        "whole channels of [N, C, D, H, W] become 0")
DROPOUT(alpha_dropout, AlphaDropout, alpha_dropout, ALPHA_DROPOUT,
        "dropout that keeps mean and variance")
DROPOUT(feature_alpha_dropout, FeatureAlphaDropout, feature_alpha_dropout, FEATURE_ALPHA_DROPOUT,
        "alpha dropout of whole channels")
