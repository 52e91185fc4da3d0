/* SPDX-License-Identifier: MIT
 *
 * Tracing: while a thread traces a module (lib/graph/trace.c), its operators get tensors without
 * memory, and kernels do not run. This header has functions that the core calls then instead of its
 * usual ones. Without a trace they cost nothing, because they are behind checks that exist anyway:
 * whether there are observers, whether the thread is in a mode in which new tensors are marked,
 * flags of a storage. */
#ifndef TN_CORE_TENSOR_TRACE_H
#define TN_CORE_TENSOR_TRACE_H

#include "core/tensor/internal.h"

struct tn_op;
struct tn_module;
struct tn__kernel_step;
struct tn__control;

/* The trace of a thread. */
typedef struct tn__tracer {
    /* > 0: the calls of this thread are inside of an operator or module that was recorded as one
     * node. They run for shapes and views only. */
    int32_t silent;
    /* Returns whether a recorded call writes into a tensor that has memory, so that its values are
     * not those that a run would see. */
    bool (*stale)(struct tn__tracer *self, const tn_tensor *tensor);
    /* Fails because the values of a tensor were asked for. */
    tn_status (*refuse)(struct tn__tracer *self, const tn_tensor *tensor, const char *function);
    /* Record what is not an operator: a tensor of one value, a tensor without history. */
    tn_tensor *(*full)(struct tn__tracer *self, tn_ints shape, tn_scalar value, tn_dtype dtype,
                       const tn_device *device);
    tn_tensor *(*detach)(struct tn__tracer *self, tn_tensor *tensor);
    /* Like tn__call_plain(), but records the call. */
    tn_status (*op)(struct tn__tracer *self, const struct tn_op *op, tn_tensor *const *in,
                    int64_t n_in, const void *options, tn_tensor **out, int64_t n_out,
                    tn_tensor *into);
    /* Decides what a call of a module becomes. Returns true if `module` is one node: `silent` is
     * then increased until `module_end` records the results. Otherwise, or if *status is a failure,
     * `module_end` is not called. The inputs are one tensor or a pack. */
    bool (*module_begin)(struct tn__tracer *self, struct tn_module *module, tn_tensor *input,
                         const tn_pack *pack, tn_status *status);
    tn_status (*module_end)(struct tn__tracer *self, struct tn_module *module, tn_tensor *input,
                            const tn_pack *pack, tn_tensor **output, tn_pack *out,
                            tn_status status);
    /* Records a call of tn_cond or tn_loop. A trace gets no such call while `silent` > 0; a plan
     * gets all of them. */
    tn_status (*control)(struct tn__tracer *self, const struct tn__control *control);
    /* Code has asked whether a module is in training mode. */
    void (*training)(struct tn__tracer *self);
    /* Like `training`, but gets the module. NULL: the tracer does not need it. */
    void (*asked)(struct tn__tracer *self, const struct tn_module *module);
    /* NULL for a trace. A plan (lib/plan/record.c), which is silent throughout, records with
     * it each kernel that would run. */
    tn_status (*kernel)(struct tn__tracer *self, const struct tn__kernel_step *step);
    /* For a plan of training: takes blocks of random numbers, which each run replaces by its own.
     * NULL: a draw in a silent part of a trace returns zeros, any other draw is refused. */
    tn_status (*take)(struct tn__tracer *self, uint64_t blocks, uint64_t out[2]);
    bool fuses;       /* modules may be computed together, as without a tracer */
    bool derives;     /* the plan itself computes gradients */
    bool keeps_casts; /* autocast that begins during the recording keeps casts, as without a tracer
                       */
} tn__tracer;
extern _Thread_local tn__tracer *tn__tracer_here TN__TLS_NEAR;

/* Refuses what a plan of training cannot repeat, such as hooks that forward registers. */
static inline tn_status tn__trace_plan_refuse(const char *function)
{
    return tn__likely(tn__tracer_here == NULL) || tn__tracer_here->kernel == NULL ||
                   tn__tracer_here->derives
               ? TN_OK
               : tn__tracer_here->refuse(tn__tracer_here, NULL, function);
}

/* Makes a storage without memory. */
tn__storage *tn__trace_storage(const tn_device *device, uint64_t bytes);
/* Before the memory of a tensor is used: refuses if its values come from an operator that did not
 * run. Allocates the memory if nothing was computed yet. */
tn_status tn__trace_need_slow(tn_tensor *tensor, const char *function);
static inline tn_status tn__trace_need(const tn_tensor *tensor, const char *function)
{
    return tn__likely((tensor->storage->flags & TN__STORAGE_TRACED) == 0 && tn__making.any == 0)
               ? TN_OK
               : tn__trace_need_slow((tn_tensor *)(uintptr_t)tensor, function);
}
/* Before values are copied between tensors. *done: the copy is not made, because a trace or a plan
 * records it. */
tn_status tn__trace_need_copy(tn_tensor *to, const tn_tensor *from, bool *done);
/* Returns whether a kernel with this output must not run; NULL: an operator without outputs. */
static inline bool tn__trace_skips(const tn_tensor *out)
{
    return tn__tracer_here != NULL &&
           (tn__tracer_here->silent > 0 ||
            (out != NULL && (out->storage->flags & TN__STORAGE_TRACED) != 0));
}

#endif
