/* SPDX-License-Identifier: MIT
 *
 * The standard operators: shapes, derivatives and decompositions. Kernels are in the plugins of the
 * devices. */
#include "common.h"

#define ROW(name) &tn__op_##name,
static const void *const contributions[] = { TN_SCHEMA_OPS(ROW) };

static const tn_plugin ops = {
    TN_HEAD(tn_plugin),
    .id = "tenon.ops",
    .version = "0.1.0",
    .license = "MIT",
    .help = "The standard operators: inference, derivatives, decompositions",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof contributions[0])
};

TN_PLUGIN_EXPORT(ops);
