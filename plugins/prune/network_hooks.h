/* SPDX-License-Identifier: MIT
 *
 * The hooks that watch the calls of a network's modules. */
#ifndef TN_PRUNE_NETWORK_HOOKS_H
#define TN_PRUNE_NETWORK_HOOKS_H

#include "network.h"

/* A module of a network: the `user` of its hooks. */
typedef struct network_at {
    network *n;
    int64_t leaf;
} network_at;

/* How the results of a module are spoiled. */
enum {
    NETWORK_CLEAN = 0,
    NETWORK_WHOLE = 1, /* all of them are NaN */
    NETWORK_CHOSEN = 2 /* NaN in the channels that `chosen` marks */
};

/* A call in which some results are NaN: from[leaf] is NETWORK_*, chosen[element] marks channels.
 * The hooks set hit[element] for each channel that a module read with NaN, and read[leaf] for each
 * module that read any: 2, if it was in a place that is no channel. The modules get the clean
 * arguments instead, so NaN goes no further than to those that read it first. */
typedef struct network_probe {
    const uint8_t *from, *chosen;
    uint8_t *hit, *read;
} network_probe;

TN_HIDDEN tn_status network_before(void *user, tn_module *module, const tn_pack *input,
                                   tn_pack *replacement, tn_hook_outcome *outcome);
TN_HIDDEN tn_status network_after(void *user, tn_module *module, const tn_pack *input,
                                  const tn_pack *output, tn_pack *replacement,
                                  tn_hook_outcome *outcome);

#endif
