/* SPDX-License-Identifier: MIT
 *
 * All kinds of contributions, in the order of their numbers. A new kind has a row in the folder
 * that uses it, and a line here. */
#include "core/plugin/kind.h"

extern TN_HIDDEN const tn__kind tn__kind_backend, tn__kind_op, tn__kind_kernel, tn__kind_layer,
    tn__kind_optimizer, tn__kind_scheduler, tn__kind_init, tn__kind_format, tn__kind_observer,
    tn__kind_pass, tn__kind_compiler, tn__kind_comm, tn__kind_dataset, tn__kind_transform,
    tn__kind_prune;

const tn__kind *const tn__kinds[] = {
    &tn__kind_backend,   &tn__kind_op,        &tn__kind_kernel,   &tn__kind_layer,
    &tn__kind_optimizer, &tn__kind_scheduler, &tn__kind_init,     &tn__kind_format,
    &tn__kind_observer,  &tn__kind_pass,      &tn__kind_compiler, &tn__kind_comm,
    &tn__kind_dataset,   &tn__kind_transform, &tn__kind_prune,    NULL,
};
