/* SPDX-License-Identifier: MIT
 *
 * Operators: the structs and functions that other folders of the core use. */
#ifndef TN_CORE_OP_INTERNAL_H
#define TN_CORE_OP_INTERNAL_H

#include "core/op/needed.h"
#include "core/plugin/internal.h"
#include "core/tensor/autocast.h"
#include "core/tensor/internal.h"
#include "core/tensor/mode.h"

#include <tenon/kernel.h>
#include <tenon/observer.h>
#include <tenon/op.h>
#include <tenon/operator.h>

/* All flags of operators for autocast. */
enum {
    TN__OP_AUTOCAST = TN_OP_AUTOCAST_LOW | TN_OP_AUTOCAST_F32 | TN_OP_AUTOCAST_WIDEST |
                      TN_OP_AUTOCAST_REFUSED | TN_OP_AUTOCAST_HOST_LOW | TN_OP_AUTOCAST_HOST_F32 |
                      TN_OP_AUTOCAST_HOST_WIDEST | TN_OP_AUTOCAST_HOST_REFUSED
};

struct tn__kernel_list;
struct tn__kernel_entry;
struct tn__prepared_data;
struct tn__region;

struct tn_op {
    tn_op_def def; /* a copy; members that the plugin's struct lacks are 0; never freed */
    tn__plugin *plugin;
    const char *id; /* of the plugin; "program" if the program registered the operator */
    /* For each device type, an immutable list of kernels, best first; NULL: not built yet. */
    _Atomic(struct tn__kernel_list *) kernels[TN__MAX_DEVICE_TYPES];
    int32_t ordinal;
    uint64_t flags;                /* def.flags, and the TN__OP_* below */
    uint32_t needs_options;        /* an option has no default: a call without options fails */
    uint32_t newest;               /* the largest `since` of an option, input or output */
    bool points;                   /* options are texts or lists, so that NULL can be given */
    const tn_option *dtype_option; /* the option that is a dtype; NULL: none */
};
enum {
    TN__OP_UPDATES = 1 << 28, /* an input is updated (TN_OPERAND_UPDATED) */
    TN__OP_LIST = 1 << 29,    /* the last input may be repeated */
    TN__OP_WRITES = 1 << 30   /* an input is written (TN_OPERAND_WRITTEN) */
};

/* Returns the version that added an input or output. */
static inline uint32_t tn__operand_since(const tn_operand *operand)
{
    return (uint32_t)(operand->flags >> 48);
}
/* Returns whether a call uses an option, input or output that was added to its operator after
 * version `knows`, and writes which one. Bit i of `present`: input i is there. `options` NULL:
 * whether there is such an option. */
bool tn__op_uses_newer(const tn_op *op, uint32_t knows, uint32_t present, const void *options,
                       char *reason, size_t size);

/* Checks what the operators do not check themselves: that the pointers of texts and lists are
 * there, and that no list has a negative count, but for None. *none: a list is None of which the
 * operator does not know that; it is then an empty one in what tn__call_options_whole() copies. */
tn_status tn__call_options_pointers(const tn_op_def *def, const void *options, bool *none);
/* Copies a caller's option struct to `whole`, which has def->options_size bytes. The caller's may
 * be of another version of the header: members that it lacks get their defaults. Checks the
 * pointers. */
tn_status tn__call_options_whole(const tn_op_def *def, const void *options, void *whole);

/* Register an operator, and a kernel. core/plugin calls them for contributions. */
tn_status tn__op_add(const tn_op_def *def, tn__plugin *plugin);
tn_status tn__op_kernel_add(const tn_kernel_def *kernel, tn__plugin *plugin);
/* Calls `tell` for every kernel that can never run, because no plugin provides its operator in the
 * revision that it needs, or its device type. `words` names the kernel and what is missing. `tell`
 * is called under the lock of the registry. */
void tn__op_kernels_unused(void (*tell)(tn__plugin *plugin, const char *words));
/* Frees snapshots and lists that were kept for readers in other threads. */
void tn__op_registry_shutdown(void);

/* Runs an operator without recording gradients: infers, allocates, dispatches. The caller owns the
 * results (no scope does). If `into` is not NULL, the result is written there. */
tn_status tn__op_run(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                     tn_tensor **out, int64_t n_out, tn_tensor *into);
/* Checks whether the operator takes these inputs: runs only the checks and the inference of a call.
 * The operator has at most one output. Returns TN_OK, or fails as the call would. */
tn_status tn__op_takes(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options);
/* Computes what the operator would return for inputs of these dtypes, shapes and strides (NULL: an
 * absent input). Makes all checks of a call, without memory. `out` has n_outputs elements and gets
 * strides; ndim is -1 if only a kernel can tell the shape. *writes gets bit i if the call writes
 * into input i (bit 63: an input from 63 on). */
tn_status tn__op_infer(const tn_op *op, const tn_meta *const *in, int64_t n_in, const void *options,
                       tn_meta *out, uint64_t *writes);
/* Fills in row-major strides for a meta that has no strides. */
void tn__op_meta_strides(tn_meta *meta);
/* Functions that core/tensor calls through tn__tensor_up (core/tensor/internal.h). */
tn_status tn__op_copy(tn_tensor *to, tn_tensor *from);
tn_status tn__op_fill(tn_tensor *tensor, tn_scalar value);

/* Calls the decomposition of an operator; gradients are recorded through its inner operators. The
 * caller owns the results. */
tn_status tn__decompose_call(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                             const void *options, tn_tensor **out);
/* Writes the dtype in which autocast passes each input to the operator, for a trace. */
tn_status tn__autocast_dtypes(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                              const void *options, tn_dtype *out);
/* tn_op_call, or tn_op_call_into if `into` is not NULL, without observers. The caller owns the
 * results. */
tn_status tn__call_plain(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                         tn_tensor **out, int64_t n_out, tn_tensor *into);
tn_status tn__inplace_call(const tn_op *op, tn_tensor *const *in, int64_t n_in, const void *options,
                           tn_tensor *into);
/* Calls the operator `cast`, and records the call if gradients are recorded. The caller owns the
 * result. */
tn_tensor *tn__call_cast(tn_tensor *tensor, tn_dtype dtype);
/* Returns the description of input `index`. If the last operand is a list, all inputs from there on
 * belong to the list. */
static inline const tn_operand *tn__operand(const tn_op *op, int64_t index)
{
    return &op->def.inputs[index < op->def.n_inputs ? index : op->def.n_inputs - 1];
}

/* A kernel that would run now, for a plan that records it (tn__tracer.kernel). Valid only during
 * the call. */
typedef struct tn__kernel_step {
    const tn_op *op;
    const struct tn__kernel_entry *entry;
    struct tn__region
        *region;        /* a compiled region, which has neither operator nor kernel; or NULL */
    const char *plugin; /* the id of the kernel's plugin */
    const tn_call *call;
    tn_tensor *const *in; /* call->n_in tensors, whose views are call->in */
    tn_tensor *const *out;
    const tn_device *device;
    uint64_t workspace; /* bytes */
    uint64_t writes;    /* bit i: it writes into input i; bit 63: into an input from 63 on */
} tn__kernel_step;

/* Calls the kernel's `prepare` on the current stream. In the views of inputs that are not constant,
 * `data` is NULL. Returns NULL and sets the error on failure. */
struct tn__prepared_data *tn__prepared_data_new(const struct tn__kernel_entry *entry,
                                                const tn_device *device, const tn_call *call);
void tn__prepared_data_drop(void *data);
/* Returns what `prepare` made; NULL: it had nothing to prepare. Adds the size of the data to
 * *bytes. */
void *tn__prepared_data_of(const struct tn__prepared_data *data, uint64_t *bytes);
/* Returns the data that the core keeps for input `weight` of a call, whose memory is `storage`,
 * with a reference for the caller; prepares it if there is none. NULL, and no error, if none is
 * kept. */
struct tn__prepared_data *tn__weight_cache_share(const struct tn__kernel_entry *entry,
                                                 const tn_device *device, const tn_call *call,
                                                 int64_t weight, tn__storage *storage);

/* Number of registered observers; if it is not 0, tn_op_call calls them. core/plugin calls
 * tn__observers_changed() after it has registered an observer. */
extern _Atomic int32_t tn__observers_on;
/* Writes the observers that listen to `out`, at most TN__OBSERVERS, and returns their number.
 * Activates their plugins. */
int64_t tn__observers(const tn_observer_def **out);
void tn__observers_changed(void);
/* A trace begins (1) or ends (-1): while a trace of any thread is in progress, calls of operators
 * and modules check whether their own thread traces. */
static inline void tn__observers_traces(int32_t change)
{
    atomic_fetch_add_explicit(&tn__observers_on, change, memory_order_release);
}
void tn__observers_shutdown(void);
/* Runs a kernel of a plan between the calls of the observers. The inputs of the call are `in`, its
 * outputs are `out`. */
tn_status tn__observer_run(const tn_op *op, const tn_call *call, const tn_device *device,
                           tn_tensor *const *in, tn_tensor *const *out);

/* A range that observers see. tn__range_begin() and tn__range_end() do nothing without observers;
 * both must be called by one function. */
typedef struct tn__range {
    const tn_observer_def *observers[TN__OBSERVERS];
    uint64_t tokens[TN__OBSERVERS];
    int64_t count;
    tn_range_event event;
} tn__range;
void tn__range_open(tn__range *range);
void tn__range_close(tn__range *range, tn_status status);
static inline void tn__range_begin(tn__range *range, uint32_t kind, const char *name,
                                   uint64_t sequence)
{
    range->count = 0;
    if (tn__likely(atomic_load_explicit(&tn__observers_on, memory_order_relaxed) == 0))
        return;
    range->event = (tn_range_event){ TN_HEAD(tn_range_event), .kind = kind, .name = name,
                                     .sequence = sequence };
    tn__range_open(range);
}
static inline tn_status tn__range_end(tn__range *range, tn_status status)
{
    if (tn__unlikely(range->count > 0))
        tn__range_close(range, status);
    return status;
}
/* A copy of bytes as a range, for tn__memory_hooks; `run` copies. */
tn_status tn__range_copy(const tn_device *device, const char *name, uint64_t bytes,
                         tn_status (*run)(void *user), void *user);

/* A call of a module that is in progress in this thread. core/module makes the frames; they are
 * known here because observers of operators are told which module makes a call. */
typedef struct tn__call_frame {
    tn_module *module;
    struct tn__call_frame *outer;
    int depth;
    bool orphan; /* the module's last reference was dropped during this call */
} tn__call_frame;
/* The innermost call, NULL outside of modules. */
extern _Thread_local tn__call_frame *tn__call_here TN__TLS_NEAR;
/* Returns the innermost module that this thread is calling, or NULL. */
static inline tn_module *tn__call_now(void)
{
    return tn__call_here != NULL ? tn__call_here->module : NULL;
}

/* ---- calls to the folders above -------------------------------------------------------------- */

/* Functions of core/grad, which records gradients. lib/library/upward_calls.c fills the table. */
typedef struct tn__op_calls {
    /* Whether a tensor whose `requires_grad` is not set requires gradients all the same, because
     * its base was changed in place. */
    bool (*grad_stale)(tn_tensor *tensor);
    bool (*is_leaf)(const tn_tensor *tensor);
    /* Attaches a node to the outputs after an operator ran. `in` are the inputs after promotion. */
    tn_status (*grad_record)(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                             const void *options, tn_tensor *const *out, int64_t n_out);
    /* Called before an in-place call on `into`. Refuses leaves that require gradients and whatever
     * else PyTorch refuses. If the derivative needs the old values of `into`, *original becomes a
     * copy of them, owned by the caller. */
    tn_status (*grad_before_inplace)(const tn_op *op, tn_tensor *into, tn_tensor *const *in,
                                     int64_t n_in, const void *options, tn_tensor **original);
    /* Called after the in-place call: makes the call part of the history of `into`, and of the base
     * if `into` is a view. */
    tn_status (*grad_after_inplace)(const tn_op *op, tn_tensor *into, tn_tensor *const *in,
                                    int64_t n_in, const void *options, tn_tensor *original);
    /* Called for a view whose base has no other reference: the view forgets its base. */
    void (*grad_alone)(tn_tensor *tensor);
    /* Records that `view` is a view of `base`, for later in-place changes. */
    tn_status (*grad_view)(tn_tensor *view, tn_tensor *base);
    /* Returns the number of the node that made the tensor, 0 without one. */
    uint64_t (*grad_sequence)(const tn_tensor *tensor);
} tn__op_calls;
extern TN_HIDDEN const tn__op_calls tn__op_up;

static inline bool tn__requires_grad(tn_tensor *tensor)
{
    return tensor->requires_grad ||
           (tn__unlikely(tensor->autograd != NULL) && tn__op_up.grad_stale(tensor));
}

#endif
