/* SPDX-License-Identifier: MIT
 *
 * What the files of core/op share among themselves: one call under way, and the kernels of an
 * operator. */
#ifndef TN_CORE_OP_PRIVATE_H
#define TN_CORE_OP_PRIVATE_H

#include "core/op/internal.h"

typedef struct tn__kernel_entry {
    tn_kernel_def kernel; /* the host's zero-filled copy; its name is never NULL */
    tn__plugin *plugin;
    const char *id; /* of the plugin; "": the program's own */
    bool refused;   /* lost against another one (rule 22) */
    bool asks;      /* more decides whether it takes a call than `dtypes` */
} tn__kernel_entry;

/* The kernels of one operator on one device type, highest priority first. Immutable; kept for good.
 * */
struct tn__kernel_list {
    struct tn__kernel_list *older;
    int32_t count;
    tn__kernel_entry *at[];
};

/* NULL and an error when memory runs out. */
struct tn__kernel_list *tn__op_kernels_build(const tn_op *op, const tn__device_type *type);

static inline struct tn__kernel_list *tn__kernels_of(const tn_op *op, const tn__device_type *type)
{
    struct tn__kernel_list *list = atomic_load_explicit(
        &((tn_op *)(uintptr_t)op)->kernels[type->index], memory_order_acquire);

    return tn__likely(list != NULL) ? list : tn__op_kernels_build(op, type);
}

/* tn_op_lookup, of what was found before without a call. */
static inline const tn_op *tn__op_of(tn_op_ref *ref)
{
    const tn_op *op = __atomic_load_n(&ref->op, __ATOMIC_ACQUIRE);

    return tn__likely(op != NULL) ? op : tn_op_lookup(ref);
}

enum { TN__FEW = 8 }; /* inputs that need no allocation */

/* A call under way. What is an operator's own (outputs, temporaries) is owned here until the end.
 * */
typedef struct tn__work {
    const tn_op *op;
    tn_tensor *const *in; /* as given, or `cast` */
    int64_t n_in;
    const void *options; /* complete */
    const tn_device *device;
    tn_dtype dtype;  /* of promotion; TN_DTYPE_AUTO without */
    bool wants_grad; /* an input that can have a gradient requires one, and grad mode is on */
    bool promoted;   /* `cast` holds references of its own */
    int32_t n_out;
    int64_t group; /* of a written list, as inference has set them: tn_infer */
    uint64_t only_read;
    tn_meta *meta;         /* n_out of them */
    const tn_view **views; /* n_in of them */
    tn_tensor **cast;      /* n_in of them, when promotion changed something */
    tn_tensor **out;
    tn_tensor *into;
    void *heap; /* arrays that did not fit */
    void *option_heap;
    const tn_view *few_views[TN__FEW];
    tn_tensor *few_cast[TN__FEW];
    uint64_t option_space[16];
} tn__work;

/* Checks, promotion, options, inference. On failure everything is released; on success tn__call_end
 * is owed. */
tn_status tn__call_begin(tn__work *work, const tn_op *op, tn_tensor *const *in, int64_t n_in,
                         const void *options, tn_meta *meta, tn_tensor *into);
void tn__call_end(tn__work *work);
/* Kernel, decomposition or fallback; out[i] owned by the caller. `record`: let the decomposition
 * record itself. */
tn_status tn__run_work(tn__work *work, tn_tensor **out, bool record);

/* Its decomposition: new results, or into work->into, computed in memory of its own and copied. */
tn_status tn__decompose(tn__work *work, tn_tensor **out, bool record);
tn_status tn__decompose_into(tn__work *work, tn_tensor **out);

/* Runs the kernel of a prepared call, whose inputs were checked and whose outputs were made. `call`
 * lacks stream, host and make_output. */
tn_status tn__run_prepared(tn__work *work, const tn__kernel_entry *entry, tn_call *call,
                           size_t workspace);

/* Stand-ins for tensors (infer.c) have this storage; a cast changes one and keeps it. */
extern TN_HIDDEN tn__storage tn__infer_storage;
tn_tensor *tn__infer_cast(tn_tensor *tensor, tn_dtype dtype);

/* Promotion among the inputs that take part. */
tn_status tn__promote(const tn_op *op, tn_tensor *const *in, int64_t n_in, tn_dtype *out);
/* PyTorch's casting rule for what is written into an existing tensor. */
bool tn__promote_can_cast(tn_dtype from, tn_dtype to);

/* Whether an operator has a decomposition for the dtype that would choose its kernel. */
static inline bool tn__is_decomposed(const tn_op *op, tn_dtype dtype)
{
    return op->def.decompose != NULL &&
           (op->def.decompose_dtypes == 0 || (op->def.decompose_dtypes & TN_BIT(dtype)) != 0);
}

enum { TN__REASONS = 400 }; /* bytes of text about the kernels that did not take a call */

static TN__INLINE bool tn__kernel_is_active(const tn__kernel_entry *entry)
{
    return entry->plugin == NULL ||
           atomic_load_explicit(&entry->plugin->active, memory_order_acquire) == 1;
}
/* Whether the plugin of a kernel could be started; a pack that does not start is none. *status is a
 * failure where the call cannot go on without it: after tn_shutdown, or without memory. */
bool tn__kernel_starts(const tn__kernel_entry *entry, char *reasons, tn_status *status);
/* Whether a kernel takes the call, by its operand_dtypes and its `supports`; else the reasons say
 * why not. To be asked where entry->asks is set. */
bool tn__kernel_takes(const tn_op *op, const tn__kernel_entry *entry, const tn_call *call,
                      char *reasons);
/* What there is instead, for TN_ERR_NOT_IMPLEMENTED. */
tn_status tn__op_missing(const tn__work *work, tn_dtype dtype, const char *reasons);
/* TN_OK and *done when the fallback policy let it run elsewhere. */
tn_status tn__fallback(tn__work *work, tn_tensor **out, bool *done);

/* Every operator, sorted, and whether any observer listens. */
/* Remembers for the event of the operator which kernel runs. */
void tn__observer_kernel(const tn_op *op, const tn_call *call);
/* A call that observers see: begin before it, end after it. */
typedef struct tn__observed {
    const tn_observer_def *observers[TN__OBSERVERS];
    uint64_t tokens[TN__OBSERVERS];
    int64_t count;
    tn_op_event event, *outer;
} tn__observed;
void tn__observer_begin(tn__observed *seen, const tn_op *op, tn_tensor *const *in, int64_t n_in,
                        const void *options, const tn_device *device);
tn_status tn__observer_end(tn__observed *seen, tn_tensor *const *out, int64_t n_out,
                           tn_status status);
tn_status tn__observer_call(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                            const void *options, tn_tensor **out, int64_t n_out, tn_tensor *into);
/* Runs an operator that writes into inputs (TN_OPERAND_WRITTEN, TN_OPERAND_UPDATED). */
tn_status tn__write_call(tn__work *work, tn_tensor **out);
/* Its parts: what is checked before, and the versions of what was written after. */
tn_status tn__write_check(const tn__work *work);
void tn__write_done(tn__work *work);
/* Whether this call writes input i. */
bool tn__write_into(const tn__work *work, int64_t i);
/* Runs a call of which gradients are wanted, and records it. */
tn_status tn__call_recorded(tn__work *work, tn_tensor **out);

/* Whether an operator takes that many inputs; the failure when it does not. */
static inline bool tn__call_fits(const tn_op *op, int64_t n_in)
{
    return n_in == op->def.n_inputs || ((op->flags & TN__OP_LIST) && n_in > op->def.n_inputs);
}
tn_status tn__call_wrong_count(const tn_op *op, int64_t n_in);
/* An operand is NULL: the failure before says why. */
tn_status tn__call_null(const tn_op *op, const char *operand);

#endif
