/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of core/op: the state of one call, and the kernels of an operator. */
#ifndef TN_CORE_OP_PRIVATE_H
#define TN_CORE_OP_PRIVATE_H

#include "core/op/internal.h"

typedef struct tn__kernel_entry {
    /* A copy; members that the plugin's struct lacks are 0. The name is never NULL. */
    tn_kernel_def kernel;
    tn__plugin *plugin;
    const char *id; /* of the plugin; "program" if the program registered the kernel */
    bool refused;   /* in favour of another kernel (rule 22 of docs/abi.md) */
    /* Whether a call must be accepted by `operand_dtypes` or `supports`, or may use more than the
     * kernel knows. */
    bool asks;
    uint32_t knows; /* the newest version of the operator that the kernel knows */
} tn__kernel_entry;

static inline uint32_t tn__op_later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The kernels of one operator on one device type, highest priority first. Immutable and never
 * freed. */
struct tn__kernel_list {
    struct tn__kernel_list *older;
    int32_t count;
    bool ordered; /* a kernel states the order of strides that it needs */
    tn__kernel_entry *at[];
};

/* Returns an operator that is registered, the newest revision for 0; NULL if there is none. Unlike
 * tn_op_find() it neither fails nor activates the plugin. */
tn_op *tn__op_known(const char *name, uint32_t revision);
/* Returns the name of an operator that is similar, NULL if there is none. */
const char *tn__op_nearest(const char *name);

/* Builds the list. Returns NULL and sets the error if there is no memory for it. */
struct tn__kernel_list *tn__op_kernels_build(const tn_op *op, const tn__device_type *type);

/* Frees all lists, to which no operator refers any more. */
void tn__kernel_lists_free(void);

static inline struct tn__kernel_list *tn__kernels_of(const tn_op *op, const tn__device_type *type)
{
    struct tn__kernel_list *list = atomic_load_explicit(
        &((tn_op *)(uintptr_t)op)->kernels[type->index], memory_order_acquire);

    return tn__likely(list != NULL) ? list : tn__op_kernels_build(op, type);
}

/* Like tn_op_lookup(), but needs no call for an operator that was looked up before. */
static inline const tn_op *tn__op_of(tn_op_ref *ref)
{
    const tn_op *op = __atomic_load_n(&ref->op, __ATOMIC_ACQUIRE);

    return tn__likely(op != NULL) ? op : tn_op_lookup(ref);
}

/* Returns a product of sizes, INT64_MAX on overflow: a tensor without elements may have other sizes
 * of any product. */
static inline int64_t tn__op_times(int64_t a, int64_t b)
{
    int64_t product;

    return tn__mul_overflow(a, b, &product) ? INT64_MAX : product;
}

enum { TN__FEW = 8 }; /* most inputs for which a call allocates no arrays */

/* The state of one call, between tn__call_begin() and tn__call_end(). It owns the inputs that
 * promotion cast and the arrays that it allocated. */
typedef struct tn__work {
    const tn_op *op;
    tn_tensor *const *in; /* the caller's inputs, or `cast` */
    /* The inputs before promotion. Every cast begins with these: a cast to the dtype that promotion
     * gave may lose what the dtype that inference asks for can represent. NULL: a copy or a fill of
     * the folder below, which nothing but a kernel may compute. */
    tn_tensor *const *given;
    int64_t n_in;
    const void *options; /* with defaults for what the caller left out */
    const tn_device *device;
    tn_dtype dtype;  /* the result of promotion; TN_DTYPE_AUTO: no promotion */
    bool wants_grad; /* grad mode is on, and an input that can have a gradient requires one */
    bool promoted;   /* `cast` is used, and holds references */
    int32_t n_out;
    int64_t group; /* group and only_read: as inference set them (tn_infer) */
    uint64_t only_read;
    tn_meta *meta;         /* one for each output */
    const tn_view **views; /* one for each input */
    tn_tensor **cast;      /* the inputs after promotion, if it changed one */
    tn_tensor **out;
    /* The tensor to write, in place of a new output; NULL: none. */
    tn_tensor *into;
    void *heap; /* `views` and `cast`, for more than TN__FEW inputs */
    void *option_heap;
    const tn_view *few_views[TN__FEW];
    tn_tensor *few_cast[TN__FEW];
    tn_tensor *fitted[TN_MAX_OPERANDS]; /* the inputs, if the caller left out optional ones */
    uint64_t option_space[16];
} tn__work;

/* Checks and promotes the inputs, completes the options and infers the outputs. On success the
 * caller must call tn__call_end(); on failure everything has been released. */
tn_status tn__call_begin(tn__work *work, const tn_op *op, tn_tensor *const *in, int64_t n_in,
                         const void *options, tn_meta *meta, tn_tensor *into);
void tn__call_end(tn__work *work);
/* Runs a call by a kernel, a decomposition or the fallback. The caller owns out[i]. With `record`,
 * runs the decomposition, whose inner operators are recorded. */
tn_status tn__run_work(tn__work *work, tn_tensor **out, bool record);

/* Run the decomposition of an operator: tn__decompose() returns new results; tn__decompose_into()
 * copies its one result to work->into. */
tn_status tn__decompose(tn__work *work, tn_tensor **out, bool record);
tn_status tn__decompose_into(tn__work *work, tn_tensor **out);

/* Runs the kernel of a prepared call. The inputs have been checked, and the outputs have been made.
 * Fills in `stream`, `host` and `make_output` of the call. */
tn_status tn__run_prepared(tn__work *work, const tn__kernel_entry *entry, tn_call *call,
                           size_t workspace);

/* The storage of all placeholder tensors (infer.c). tn__infer_cast() changes the dtype of a
 * placeholder and adds a reference to it. */
extern TN_HIDDEN tn__storage tn__infer_storage;
tn_tensor *tn__infer_cast(tn_tensor *tensor, tn_dtype dtype);

/* Fails because a required option is missing: the first one at or after byte `size` of the options.
 * Returns TN_OK if there is none. */
tn_status tn__call_options_missing(const tn_op_def *def, uint32_t size);
/* Fails if a call sets options of an operator that has none. */
tn_status tn__call_options_none(const tn_op_def *def, const void *options);
/* For a caller's struct of another size than the operator's: makes a copy of the operator's size
 * the options of the call (tn__call_options_whole()). */
tn_status tn__call_options_other(tn__work *work, const void *options);
/* Checks the dtype option before inference, because inference uses its value as a number of bits to
 * shift. */
tn_status tn__call_options_dtype(const tn__work *work);

/* Checks the definition of an operator. The error names the member that is wrong. */
tn_status tn__definition_check(const tn_op_def *def);

/* In a region of autocast: casts the inputs of the call as the flags of the operator say, and makes
 * the results the inputs. `options` are those of the caller. Leaves wrong inputs to the checks that
 * follow. */
tn_status tn__autocast_inputs(tn__work *work, const void *options);

/* Finds the dtype to which the inputs that take part in promotion are cast. */
tn_status tn__promote(const tn_op *op, tn_tensor *const *in, int64_t n_in, tn_dtype *out);
/* Returns whether a result of dtype `from` may be written into an existing tensor of dtype `to`:
 * PyTorch's rule. */
bool tn__promote_can_cast(tn_dtype from, tn_dtype to);

/* Returns whether an operator has a decomposition for `dtype`, the dtype that its kernels are
 * chosen by. */
static inline bool tn__is_decomposed(const tn_op *op, tn_dtype dtype)
{
    return op->def.decompose != NULL &&
           (op->def.decompose_dtypes == 0 || (op->def.decompose_dtypes & TN_BIT(dtype)) != 0);
}
/* Returns whether a kernel is asked for calls of this dtype. */
static inline bool tn__kernel_counts(const tn_op *op, const tn__kernel_entry *entry, tn_dtype dtype)
{
    return (entry->kernel.dtypes & TN_BIT(dtype)) != 0 &&
           ((entry->kernel.flags & TN_KERNEL_DECOMPOSE) == 0 || tn__is_decomposed(op, dtype));
}

enum { TN__REASONS = 400 }; /* size of the text that says why kernels did not take a call */

static TN__INLINE bool tn__kernel_is_active(const tn__kernel_entry *entry)
{
    return entry->plugin == NULL ||
           atomic_load_explicit(&entry->plugin->active, memory_order_acquire) == 1;
}
/* Activates the plugin of a kernel. A kernel whose plugin cannot be activated is passed over:
 * returns false and adds the reason to `reasons`. *status is set if the call must fail: after
 * tn_shutdown, or if memory ran out. */
bool tn__kernel_starts(const tn__kernel_entry *entry, char *reasons, tn_status *status);
#define TN__KERNEL_ORDERS (TN_KERNEL_CHANNELS_LAST | TN_KERNEL_CHANNELS_FIRST)
/* Returns the flags of the device for inference: the first kernel that accepts the dtypes of the
 * inputs decides whether TN_BACKEND_CHANNELS_LAST is set. Needs to be called only if list->ordered
 * is set. */
uint64_t tn__kernel_order(const tn__work *work, const struct tn__kernel_list *list);
/* Returns whether a kernel takes the call, by its `operand_dtypes` and its `supports`. If not, adds
 * the reason to `reasons`. Needs to be called only if entry->asks is set. If it takes a call with
 * more inputs than the kernel knows, call->n_in becomes what it knows. */
bool tn__kernel_takes(const tn_op *op, const tn__kernel_entry *entry, tn_call *call, char *reasons);
/* Fails with TN_ERR_NOT_IMPLEMENTED; the message lists the existing kernels and `reasons`. */
tn_status tn__op_missing(const tn__work *work, tn_dtype dtype, const char *reasons);
/* Runs the call on another device if the fallback policy names one; *done is then true. Returns
 * TN_OK with *done false if the policy names no other device. */
tn_status tn__fallback(tn__work *work, tn_tensor **out, bool *done);

/* Writes the kernel that runs into the event that observers get. */
void tn__observer_kernel(const tn_op *op, const tn_call *call);
/* A call that observers see: tn__observer_begin() comes before it, tn__observer_end() after it. */
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
/* The parts of tn__write_call(): the checks before the run, and new versions for the written inputs
 * after it. */
tn_status tn__write_check(const tn__work *work);
void tn__write_done(tn__work *work);
/* Returns whether this call writes input i. */
bool tn__write_into(const tn__work *work, int64_t i);
/* Runs a call that needs gradients, and records it. */
tn_status tn__call_recorded(tn__work *work, tn_tensor **out);

/* Returns whether an operator has that many inputs. If not, the call must go through
 * tn__call_fit(). */
static inline bool tn__call_fits(const tn_op *op, int64_t n_in)
{
    return n_in == op->def.n_inputs || ((op->flags & TN__OP_LIST) && n_in > op->def.n_inputs);
}
/* For a caller of another version of the operator: adds the optional inputs at the end that are
 * missing, in `space` of TN_MAX_OPERANDS, and removes TN_NONE at the end. Fails if the number of
 * inputs is still wrong. */
tn_status tn__call_fit(const tn_op *op, tn_tensor *const **in, int64_t *n_in, tn_tensor **space);
/* Returns the name of an input for which work->wants_grad is set. */
const char *tn__op_grad_input(const tn__work *work);
/* Fails because an operand is NULL. Returns the code of the earlier failure of this thread, if
 * there was one. */
tn_status tn__call_null(const tn_op *op, const char *operand);

#endif
