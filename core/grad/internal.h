/* SPDX-License-Identifier: MIT
 *
 * Automatic differentiation: declarations for other folders of the core. */
#ifndef TN_CORE_GRAD_INTERNAL_H
#define TN_CORE_GRAD_INTERNAL_H

#include "core/op/internal.h"

/* Writes which module the thread is calling, such as "Sequential, module \"0\" (Linear)". Writes
 * nothing outside of a module. core/module sets this function. */
typedef void tn__where_writer(tn__text *text);
extern tn__where_writer *_Atomic tn__anomaly_where;

/* Functions that core/op calls through tn__op_up (core/op/internal.h). */
bool tn__grad_stale(tn_tensor *tensor);
tn_status tn__grad_record(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                          tn_tensor *const *out, int64_t n_out);
tn_status tn__grad_before_inplace(const tn_op *op, tn_tensor *into, tn_tensor *const *in,
                                  int64_t n_in, const void *options, tn_tensor **original);
tn_status tn__grad_after_inplace(const tn_op *op, tn_tensor *into, tn_tensor *const *in,
                                 int64_t n_in, const void *options, tn_tensor *original);
void tn__grad_alone(tn_tensor *tensor);
tn_status tn__grad_view(tn_tensor *view, tn_tensor *base);
uint64_t tn__grad_sequence(const tn_tensor *tensor);
/* core/tensor calls this function when the last reference to a tensor is dropped. */
void tn__grad_free(struct tn__autograd *autograd);

#endif
