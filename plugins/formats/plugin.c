/* SPDX-License-Identifier: MIT
 *
 * Files of tensors: the table. */
#include "formats.h"

static const void *const contributions[] = { &format_safetensors, &format_npy };

static const tn_plugin formats = {
    TN_HEAD(tn_plugin),
    .id = "tenon.formats",
    .version = "0.1.0",
    .help = "files of tensors: safetensors, npy",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof *contributions),
};

TN_PLUGIN_EXPORT(formats);
