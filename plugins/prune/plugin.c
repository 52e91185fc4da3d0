/* SPDX-License-Identifier: MIT
 *
 * The plugin with pruning methods: those of torch.nn.utils.prune, patterns, and the removal of
 * channels from networks. */
#include "prune.h"

static const void *const contributions[] = {
    &prune_identity,          &prune_random_unstructured, &prune_l1_unstructured,
    &prune_random_structured, &prune_ln_structured,       &prune_n_of_m,
    &prune_channel_groups,
};

static const tn_plugin prune = {
    TN_HEAD(tn_plugin),
    .id = "tenon.prune",
    .version = "0.1.0",
    .help = "pruning methods, and the removal of channels from networks",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof *contributions),
};

TN_PLUGIN_EXPORT(prune);
