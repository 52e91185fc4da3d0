/* SPDX-License-Identifier: MIT
 *
 * The plugin tenon.models: networks by name, such as resnet18(num_classes=10). */
#include "models.h"

#define MODEL_ROW(id) TN_HIDDEN extern const tn_layer_def model_##id;
#include "model_list.h"
#undef MODEL_ROW

#define MODEL_ROW(id) &model_##id,
static const void *const contributions[] = {
#include "model_list.h"
};

static const tn_plugin models = {
    TN_HEAD(tn_plugin),
    .id = "tenon.models",
    .version = "0.1.0",
    .help = "networks by name",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof *contributions),
};

TN_PLUGIN_EXPORT(models);
