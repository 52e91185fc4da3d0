/* SPDX-License-Identifier: MIT
 *
 * Changes of elements before a reduction combines them. */
#ifndef TN_BACKEND_CPU_OP_REDUCTION_PREPARE_H
#define TN_BACKEND_CPU_OP_REDUCTION_PREPARE_H

#include "base/dtype.h"
#include "op/reduction.h"

/* Applies r->before to n contiguous numbers at x. Returns x if nothing is to be done; otherwise
 * writes the numbers to `to`, which may be x, and returns `to`. `from` is one number (step 0) or
 * n numbers. */
const void *tn__reduction_prepare(const struct tn__reduction *r, enum tn__ct ct, int64_t n,
                                  const void *x, const void *from, int64_t step, void *to);

#endif
