/* SPDX-License-Identifier: MIT
 *
 * Steps of optimizers for all parameters of a group: what the files with these kernels use. */
#ifndef TN_BACKEND_CPU_NN_OPTIMIZER_H
#define TN_BACKEND_CPU_NN_OPTIMIZER_H

#include <tenon/plugin.h>

#include "simd/simd.h"

/* Returns whether every tensor in the list, inputs [first, n_in), has no gaps and has the strides
 * of its parameter. If not, writes the reason. */
bool tn__optimizer_takes(const tn_call *call, int64_t first, int64_t group, char *reason,
                         size_t size);
/* Returns the element of the 0-d `tensor`, or `option` if the tensor is NULL. */
double tn__optimizer_number(const tn_view *tensor, double option);
/* Steps the parameters in the list, inputs [first, n_in), `group` tensors each, by the functions
 * `step` with these numbers. */
tn_status tn__optimizer_run(const tn_call *call, int64_t first, int64_t group,
                            tn__step_run *const *step, const void *numbers);

#endif
