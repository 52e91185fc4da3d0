/* SPDX-License-Identifier: MIT
 *
 * Optimizers: what other folders of the core use. */
#ifndef TN_LIB_TRAIN_INTERNAL_H
#define TN_LIB_TRAIN_INTERNAL_H

#include "core/module/internal.h"

#include <tenon/optimizer.h>
#include <tenon/train.h>

/* Adds a reference, which tn_optimizer_drop() drops. */
tn_optimizer *tn__optimizer_keep(tn_optimizer *optimizer);

/* The parts of a step for a plan of whole steps, which has the gradients in memory of its own. */

/* Fails if the gradients cannot be given to the rule directly: it evaluates the loss itself, or
 * hooks look at the gradients before a step. */
tn_status tn__step_takes_gradients(const tn_optimizer *optimizer);
/* Whether each element is updated independently of the others, so that the rule may be called for
 * some parameters first and for others later. */
bool tn__step_is_elementwise(const tn_optimizer *optimizer);
/* Returns the number of the parameter whose update may write into the storage, as the parameter
 * itself or as a state; -1: no update does. */
int64_t tn__step_writer(tn_optimizer *optimizer, const tn__storage *storage);
/* Updates `count` parameters, whose numbers in the optimizer are in ascending order, with these
 * gradients; their .grad is not read. */
tn_status tn__step_update(tn_optimizer *optimizer, const int64_t *index,
                          tn_tensor *const *gradients, int64_t count);
/* Runs the hooks that follow a step. */
tn_status tn__step_hooks_after(tn_optimizer *optimizer);

#endif
