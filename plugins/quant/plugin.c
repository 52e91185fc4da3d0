/* SPDX-License-Identifier: MIT
 *
 * The plugin of quantized computation: operators on integers with scales. Their kernels are in the
 * plugins of the devices. */
#include "quant.h"

#define ROW(name) &tn__op_##name,
static const void *const contributions[] = { TN_SCHEMA_OPS_QUANT(ROW) };

static const tn_plugin quant = { TN_HEAD(tn_plugin),
                                 .id = "tenon.quant",
                                 .version = "0.1.0",
                                 .license = "MIT",
                                 .help = "Quantized computation: operators on integers with scales",
                                 .contributions = contributions,
                                 .n_contributions = (int64_t)(sizeof contributions /
                                                              sizeof contributions[0]) };

TN_PLUGIN_EXPORT(quant);
