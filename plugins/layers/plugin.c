/* SPDX-License-Identifier: MIT
 *
 * The standard layers and initialisations: the table. */
#include "layers.h"

#define ROW(name) &layer_##name,

static const void *const contributions[] = {
    &layer_linear,
    &layer_identity,
    &layer_relu,
    &layer_sigmoid,
    &layer_softmax,
    &layer_log_softmax,
    &layer_flatten,
    &layer_unflatten,
    &layer_sequential,
    &layer_cross_entropy_loss,
    &layer_nll_loss,
    /* clang-format off */
    LAYERS_MORE(ROW)
        /* clang-format on */
        & init_zeros,
    &init_ones,
    &init_constant,
    &init_uniform,
    &init_normal,
    &init_kaiming_uniform,
    &init_kaiming_normal,
    &init_xavier_uniform,
    &init_xavier_normal,
    &init_trunc_normal,
    &init_eye,
    &init_dirac,
    &init_orthogonal,
    &init_sparse,
};

static const tn_plugin layers = {
    TN_HEAD(tn_plugin),
    .id = "tenon.layers",
    .version = "0.1.0",
    .help = "standard layers and initialisations",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof *contributions),
};

TN_PLUGIN_EXPORT(layers);
