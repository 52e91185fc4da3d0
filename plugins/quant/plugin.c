/* SPDX-License-Identifier: MIT
 *
 * The plugin of quantized computation: operators on integers with scales, whose kernels are in the
 * plugins of the devices; quantized layers and schemes; the functions of <tenon/quantize.h>. */
#include "quant.h"

#include "flow.h"

#define LAYER_ROW(name) TN_HIDDEN extern const tn_layer_def layer_##name;
#include "module_list.h"
#undef LAYER_ROW

#define ROW(name) &tn__op_##name,
#define LAYER_ROW(name) &layer_##name,
static const void *const contributions[] = { TN_SCHEMA_OPS_QUANT(ROW)
#include "module_list.h"
};

static const tn_quantize_api api = { flow_quantize, flow_prepare, flow_convert, fuse_list_apply };

static const tn_interface_row interfaces[] = {
    { "tenon.quant.api", 0, sizeof api, &api, NULL },
    { NULL, 0, 0, NULL, NULL },
};

static const tn_plugin quant = {
    TN_HEAD(tn_plugin),
    .id = "tenon.quant",
    .version = "0.1.0",
    .license = "MIT",
    .help = "quantized computation: operators on integers with scales, layers, schemes",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof contributions[0]),
    .interfaces = interfaces,
};

TN_PLUGIN_EXPORT(quant);
