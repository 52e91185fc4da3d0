/* SPDX-License-Identifier: MIT
 *
 * The plugin with the standard layers and initializations. */
#include "helpers.h"

#include "from_operators.h"

#define LAYER_ROW(name) TN_HIDDEN extern const tn_layer_def layer_##name;
#define INIT_ROW(name) TN_HIDDEN extern const tn_init_def init_##name;
#include "layer_list.h"
#undef LAYER_ROW
#undef INIT_ROW

#define LAYER_ROW(name) &layer_##name,
#define INIT_ROW(name) &init_##name,
static const void *const contributions[] = {
#include "layer_list.h"
};

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
