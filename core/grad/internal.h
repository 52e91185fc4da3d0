/* SPDX-License-Identifier: MIT
 *
 * What core/op asks of core/grad. */
#ifndef TN_CORE_GRAD_INTERNAL_H
#define TN_CORE_GRAD_INTERNAL_H

#include "core/op/internal.h"

/* Whether a call with these inputs has to be recorded: grad mode is on, the op has a derivative, an input requires grad. */
bool tn__grad_wanted(const tn_op *op, tn_tensor *const *in, int64_t n_in);
/* Hangs a node on the outputs. `in` are the inputs as the operator saw them (after promotion); called after the run. */
tn_status tn__grad_record(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                          tn_tensor *const *out, int64_t n_out);
/* Before an in-place run into `into`: refuses leaves that require grad and what PyTorch refuses. After it: rebases history. */
tn_status tn__grad_before_inplace(const tn_op *op, tn_tensor *into, tn_tensor *const *in, int64_t n_in);
tn_status tn__grad_after_inplace(const tn_op *op, tn_tensor *into, tn_tensor *const *in, int64_t n_in,
                                 const void *options);

#endif
