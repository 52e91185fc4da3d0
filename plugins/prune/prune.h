/* SPDX-License-Identifier: MIT
 *
 * Pruning methods: what the files of this plugin share. */
#ifndef TN_PRUNE_PRUNE_H
#define TN_PRUNE_PRUNE_H

#include <tenon/plugin.h>

/* Fails if an amount is neither a number of units nor a fraction. `who` is the method. */
TN_HIDDEN tn_status prune_amount_check(const char *who, tn_scalar amount);
/* Returns how many of `size` units an amount is; -1 and sets the error if it is more than
 * `size`. */
TN_HIDDEN int64_t prune_amount_of(const char *who, tn_scalar amount, int64_t size);

TN_HIDDEN extern const tn_prune_def prune_identity, prune_random_unstructured,
    prune_l1_unstructured, prune_random_structured, prune_ln_structured, prune_n_of_m,
    prune_channel_groups;

#endif
