/* SPDX-License-Identifier: MIT
 *
 * Automatic differentiation as the other folders of the core see it. */
#ifndef TN_CORE_GRAD_INTERNAL_H
#define TN_CORE_GRAD_INTERNAL_H

#include "core/op/internal.h"

/* Writes where the thread is, "Sequential, module \"0\" (Linear)"; nothing outside of modules.
 * core/module sets it. */
typedef void tn__where_writer(tn__text *text);
extern tn__where_writer *_Atomic tn__anomaly_where;

/* What core/op calls through tn__op_up (core/op/internal.h). */
bool tn__grad_stale(tn_tensor *tensor);
tn_status tn__grad_record(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                          tn_tensor *const *out, int64_t n_out);
tn_status tn__grad_before_inplace(const tn_op *op, tn_tensor *into, tn_tensor *const *in,
                                  int64_t n_in, tn_tensor **original);
tn_status tn__grad_after_inplace(const tn_op *op, tn_tensor *into, tn_tensor *const *in,
                                 int64_t n_in, const void *options, tn_tensor *original);
void tn__grad_alone(tn_tensor *tensor);
tn_status tn__grad_view(tn_tensor *view, tn_tensor *base);
/* What core/tensor calls when the last reference to a tensor goes. */
void tn__grad_free(struct tn__autograd *autograd);

#endif
