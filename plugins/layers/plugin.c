/* SPDX-License-Identifier: MIT
 *
 * The standard layers and initializations: the table. */
#include "layers.h"

#define LAYER_ROW(name) &layer_##name,
#define INIT_ROW(name) &init_##name,
static const void *const contributions[] = { LAYERS_ALL(LAYER_ROW) INITS_ALL(INIT_ROW) };

static const tn_plugin layers = {
    TN_HEAD(tn_plugin),
    .id = "tenon.layers",
    .version = "0.1.0",
    .help = "standard layers and initializations",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof *contributions),
};

TN_PLUGIN_EXPORT(layers);
