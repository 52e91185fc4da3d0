/* SPDX-License-Identifier: MIT
 *
 * Operators as the other folders of the core see them. */
#ifndef TN_CORE_OP_INTERNAL_H
#define TN_CORE_OP_INTERNAL_H

#include "core/op/needed.h"
#include "core/plugin/internal.h"
#include "core/tensor/internal.h"
#include "core/tensor/mode.h"

struct tn__kernel_list;

struct tn_op {
    tn_op_def def; /* the host's zero-filled copy; stays for good */
    tn__plugin *plugin;
    const char *id; /* of the plugin; "": the program's own */
    _Atomic(struct tn__kernel_list *)
        kernels[TN__MAX_DEVICE_TYPES]; /* immutable snapshots, best first */
    int32_t ordinal;
    uint64_t flags;                /* of def, and the TN__OP_* below */
    uint32_t needs_options;        /* an option has no default: options NULL is an error */
    const tn_option *dtype_option; /* the option that is an element type, NULL without one */
};
enum {
    TN__OP_UPDATES = 1 << 28, /* inputs (TN_OPERAND_UPDATED) */
    TN__OP_LIST = 1 << 29,    /* the last input may be repeated */
    TN__OP_WRITES = 1 << 30   /* into inputs (TN_OPERAND_WRITTEN) */
};

/* Called by core/plugin for contributions. */
tn_status tn__op_add(const tn_op_def *def, tn__plugin *plugin);
tn_status tn__op_kernel_add(const tn_kernel_def *kernel, tn__plugin *plugin);
/* Tells of every kernel of a plugin that no operator of that revision, or no device type, is there
 * for, with words. Under the lock of the registry. */
void tn__op_kernels_unused(void (*tell)(tn__plugin *plugin, const char *words));

/* Runs without recording: infer, allocate, dispatch. Results are owned by the caller (not in a
 * scope). */
tn_status tn__op_run(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                     tn_tensor **out, int64_t n_out, tn_tensor *into);
/* Whether the operator would take a call: its checks and inference alone, one output at most. */
tn_status tn__op_takes(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options);
/* What the operator would make of inputs of these types and shapes, strides included (NULL: an
 * absent one): the checks of a call, without memory. `out` has n_outputs elements, with strides;
 * ndim -1 where only a kernel can tell. */
tn_status tn__op_infer(const tn_op *op, const tn_meta *const *in, int64_t n_in, const void *options,
                       tn_meta *out);
/* Fills in the strides of a meta that is row-major. */
void tn__op_meta_strides(tn_meta *meta);
/* Runs the kernel of an operator into existing tensors, nothing inferred; TN_ERR_NOT_IMPLEMENTED
 * when there is none. For copies and fills. */
tn_status tn__op_run_kernel(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                            const void *options, tn_tensor *const *out, int64_t n_out);

/* tn_op_call and _into without observers. */
tn_status tn__call_plain(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                         tn_tensor **out, int64_t n_out, tn_tensor *into);
tn_status tn__inplace_call(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                           tn_tensor *into);
/* cast, with gradient; the result is the caller's. */
tn_tensor *tn__call_cast(tn_tensor *tensor, tn_dtype dtype);
static inline const tn_operand *tn__operand(const tn_op *op, int64_t index)
{
    return &op->def.inputs[index < op->def.n_inputs ? index : op->def.n_inputs - 1];
}

/* Observers: called around tn_op_call when there are any. core/plugin calls tn__observers_changed
 * after it has added one to its registry. */
extern _Atomic int32_t tn__observers_on;
/* Those that listen, at most TN__OBSERVERS; their plugins are activated for it. */
int64_t tn__observers(const tn_observer_def **out);
void tn__observers_changed(void);
void tn__observers_shutdown(void);

/* ---- calls to the folders above -------------------------------------------------------------- */

/* Recording for gradients, which core/grad does. core/library/upward_calls.c fills the table. */
typedef struct tn__op_calls {
    /* Whether a tensor that is not marked so requires grad since its base was changed in place. */
    bool (*grad_stale)(tn_tensor *tensor);
    /* Hangs a node on the outputs, after the run. `in` are the inputs as the operator saw them
     * (after promotion). */
    tn_status (*grad_record)(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                             const void *options, tn_tensor *const *out, int64_t n_out);
    /* Before an in-place run into `into`: refuses leaves that require grad and what PyTorch
     * refuses, and keeps a copy of it in *original (owned by the caller) where the derivative needs
     * what it was. After it: rebases history. */
    tn_status (*grad_before_inplace)(const tn_op *op, tn_tensor *into, tn_tensor *const *in,
                                     int64_t n_in, tn_tensor **original);
    tn_status (*grad_after_inplace)(const tn_op *op, tn_tensor *into, tn_tensor *const *in,
                                    int64_t n_in, const void *options, tn_tensor *original);
    /* What the tensor is a view of is forgotten: it has no other reference. */
    void (*grad_alone)(tn_tensor *tensor);
    /* Remembers that `view` is a view of `base`: in-place changes have to know. */
    tn_status (*grad_view)(tn_tensor *view, tn_tensor *base);
    /* The innermost module that this thread is calling, or NULL. */
    tn_module *(*module_now)(void);
} tn__op_calls;
extern TN_HIDDEN const tn__op_calls tn__op_up;

static inline bool tn__requires_grad(tn_tensor *tensor)
{
    return tensor->requires_grad ||
           (tn__unlikely(tensor->autograd != NULL) && tn__op_up.grad_stale(tensor));
}

#endif
