/* SPDX-License-Identifier: MIT
 *
 * Automatic differentiation: declarations for other folders of the core. */
#ifndef TN_CORE_GRAD_INTERNAL_H
#define TN_CORE_GRAD_INTERNAL_H

#include "core/op/internal.h"

#include <tenon/grad.h>

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
/* Whether the backward that this thread runs retains the graph. */
extern _Thread_local bool tn__walk_retains TN__TLS_NEAR;
/* The run of a function of tn_recompute_call() in which this thread is; NULL: none. */
extern _Thread_local struct tn__recompute_run *tn__recompute_here TN__TLS_NEAR;
/* Sets the error of a second backward through a graph that was not retained. */
tn_status tn__node_freed(const char *name);
/* The number of the last node that this thread has made; nodes that it makes later have larger
 * ones. */
uint64_t tn__node_last(void);
/* Makes a tensor a leaf again, as it was before it got a history. */
void tn__grad_cut(tn_tensor *tensor, bool requires_grad);
/* ---- history.c ---- */
/* Calls `tell` for each storage that the histories of tensors have saved, with whether it has
 * changed since. `tell` may be called several times for one storage. NULL: instead makes those that
 * have memory count as not changed since. */
tn_status tn__history_saved(tn_tensor *const *tensors, int64_t count,
                            tn_status (*tell)(void *user, tn__storage *storage, bool changed),
                            void *user);
/* Whether a tensor holds another one, of which it is a view. */
bool tn__history_has_base(const tn_tensor *tensor);
/* tn_grad() through a history that is retained, for tensors that were leaves and required gradients
 * when it was recorded. A tensor without a path has the gradient TN_NONE. */
tn_status tn__grad_history(tn_tensor *const *outputs, tn_tensor *const *cotangents,
                           int64_t n_outputs, tn_tensor *const *inputs, tn_tensor **gradients,
                           int64_t n_inputs);
/* Adds a gradient to that of a leaf, as backward does. */
tn_status tn__grad_add_to_leaf(tn_tensor *leaf, tn_tensor *gradient);
/* Whether hooks are registered for the gradient of a leaf. */
bool tn__grad_has_hooks(const tn_tensor *leaf);
/* Returns a tensor like `like`, filled with ones: the gradient that backward begins with. [owned]
 */
tn_tensor *tn__grad_ones(const tn_tensor *like);
/* Returns a dense copy of a gradient, owned by the caller. */
tn_tensor *tn__grad_copy(tn_tensor *gradient);
/* core/tensor calls this function when the last reference to a tensor is dropped. */
void tn__grad_free(struct tn__autograd *autograd);

#endif
