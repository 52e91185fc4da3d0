/* SPDX-License-Identifier: MIT
 *
 * The plugin tenon.parallel: layers for training on several ranks, and the functions of
 * <tenon/parallel.h>. */
#include "parallel.h"

static const tn_parallel_api api = { group_set,   group_default, ddp_wrap, ddp_no_sync,
                                     ddp_weight,  ddp_skip,      ddp_join, ddp_set_hook,
                                     ddp_buffers, sync_norms };

static const void *const contributions[] = { &layer_ddp, &layer_sync_batch_norm };

static const tn_interface_row interfaces[] = {
    { "tenon.parallel.api", 0, sizeof api, &api, NULL },
    { NULL, 0, 0, NULL, NULL },
};

static const tn_plugin plugin = {
    TN_HEAD(tn_plugin),
    .id = "tenon.parallel",
    .version = "0.1.0",
    .help = "training on several ranks: DistributedDataParallel, SyncBatchNorm",
    .license = "MIT",
    .contributions = contributions,
    .n_contributions = (int64_t)(sizeof contributions / sizeof *contributions),
    .interfaces = interfaces,
};
TN_PLUGIN_EXPORT(plugin);
