/* SPDX-License-Identifier: MIT
 *
 * What core/op asks of core/grad. */
#ifndef TN_CORE_GRAD_INTERNAL_H
#define TN_CORE_GRAD_INTERNAL_H

#include "core/op/internal.h"

/* A mode of the thread that nests: what it was before, a bit for each level. What it is now stands apart, near. */
typedef struct tn__grad_mode {
    int32_t depth;
    uint64_t before[16];
} tn__grad_mode;
/* Grad mode of the thread: the innermost tn_grad_begin. */
extern _Thread_local bool tn__grad_off_here TN__TLS_NEAR;

static inline bool tn__grad_on(void)
{
    return !tn__grad_off_here; /* also in inference mode, whatever was asked for */
}
/* `here` is what the mode is now; `who` stands in what is said of a begin without end. */
tn_status tn__mode_begin(tn__grad_mode *mode, bool *here, bool now, const char *who);
void tn__mode_end(tn__grad_mode *mode, bool *here, const char *who);

/* Gradient, inference and anomaly mode, in this order: how deep they are nested, and what they are. Setting puts back what
 * was asked for before, however many have begun or ended since. */
void tn__modes_get(int32_t depth[3], bool now[3]);
void tn__modes_set(const int32_t depth[3], const bool now[3]);
/* The part of core/grad/anomaly.c in it. */
extern _Thread_local tn__grad_mode tn__anomaly_mode;

/* Anomaly mode of the thread. */
extern _Thread_local bool tn__anomaly_here TN__TLS_NEAR;
static inline bool tn__anomaly_on(void)
{
    return tn__anomaly_here;
}
/* Writes where the thread is, "Sequential, module \"0\" (Linear)"; nothing outside of modules. Whoever calls modules
 * says how. */
typedef void tn__where_writer(tn__text *text);
extern tn__where_writer *_Atomic tn__anomaly_where;

/* Whether a tensor that is not marked so requires grad since its base was changed in place. */
bool tn__grad_stale(tn_tensor *tensor);
static inline bool tn__requires_grad(tn_tensor *tensor)
{
    return tensor->requires_grad ||
           (tn__unlikely(tensor->autograd != NULL) && tn__grad_stale(tensor));
}

/* Whether a call with these inputs has to be recorded: grad mode is on and an input that can have a
 * gradient requires it. */
bool tn__grad_wanted(const tn_op *op, tn_tensor *const *in, int64_t n_in);
/* Hangs a node on the outputs. `in` are the inputs as the operator saw them (after promotion);
 * called after the run. */
tn_status tn__grad_record(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                          tn_tensor *const *out, int64_t n_out);
/* Before an in-place run into `into`: refuses leaves that require grad and what PyTorch refuses,
 * and keeps a copy of it in *original (owned by the caller) where the derivative needs what it was.
 * After it: rebases history. */
tn_status tn__grad_before_inplace(const tn_op *op, tn_tensor *into, tn_tensor *const *in,
                                  int64_t n_in, tn_tensor **original);
tn_status tn__grad_after_inplace(const tn_op *op, tn_tensor *into, tn_tensor *const *in,
                                 int64_t n_in, const void *options, tn_tensor *original);
/* What the tensor is a view of is forgotten: nobody else has it. */
void tn__grad_alone(tn_tensor *tensor);
/* Remembers that `view` looks at (what) `base` (looks at): in-place changes have to know. */
tn_status tn__grad_view(tn_tensor *view, tn_tensor *base);

#endif
