/* SPDX-License-Identifier: MIT
 *
 * The tensor, its storage and the device as the other folders of the core see them. */
#ifndef TN_CORE_TENSOR_INTERNAL_H
#define TN_CORE_TENSOR_INTERNAL_H

#include "core/base/internal.h"

#define TN__MAX_DEVICE_TYPES 32
#define TN__INLINE_DIMS 6 /* shape and strides up to here live in the tensor object */

struct tn__plugin;
struct tn__allocator;

/* The device type where none was chosen: TENON_DEVICE unset, memory of the program
 * wrapped. */
#define TN__HOST_DEVICE_TYPE "cpu"

/* A device type: one backend contribution, copied full-size. */
typedef struct tn__device_type {
    tn_backend_def backend; /* the host's zero-filled copy */
    struct tn__plugin *plugin;
    int32_t index;  /* small number: dispatch tables are indexed by it */
    int32_t dlpack; /* what views say */
    int32_t count;  /* devices; -1: not enumerated yet */
    tn_device **devices;
    _Atomic int32_t ready; /* enumerated: count and devices are final; -1: that failed */
    tn_status failure_code;
    char *failure; /* why it has no devices */
} tn__device_type;

struct tn_device {
    tn__device_type *type;
    void *handle; /* the backend's */
    int32_t index;
    int32_t ordinal; /* over all devices of the process */
    char name[48];
    struct tn__allocator *allocator;
    tn_stream *stream; /* default stream */
    _Atomic int32_t lost;
    _Atomic int32_t open; /* 0 not yet, 1 yes, -1 failed for good */
    uint32_t flags;       /* TN_BACKEND_*, as the type has them */
    tn_stream *streams;   /* all but the default one, those that ended too (they are used again) */
    _Atomic int32_t handles; /* streams and events that the program holds */
    char *failure;           /* why it does not open */
    tn_status failure_code;
};

struct tn_stream {
    const tn_device *device;
    void *handle; /* the backend's; NULL for devices without streams */
    _Atomic uint64_t id;
    pthread_mutex_t
        *lock;       /* one caller at a time; NULL where the backend has no streams; recursive */
    tn_stream *next; /* of the device */
    bool ended; /* dropped: its struct waits for the next tn_stream_new, memory that names it stays
                   right */
    tn_status
        deferred; /* a failure that the allocator met when it waited, for the next tn_stream_sync */
    char *deferred_text;
    _Atomic(struct tn_device_graph *) capture; /* into which it records; NULL: it does not */
};

/* Memory of a device: a piece (offset, size) of a segment of the caching allocator, or foreign
 * memory. */
typedef struct tn__storage {
    _Atomic int32_t refs;
    uint16_t flags;      /* TN__STORAGE_* */
    uint16_t size_class; /* the allocator's: of blocks that a thread may cache */
    const tn_device *device;
    void *memory;    /* the backend's handle */
    uint64_t offset; /* bytes */
    size_t size;     /* bytes asked for */
    _Atomic uint64_t version;
    void *block;       /* the allocator's; NULL for foreign memory and for none */
    tn_stream *stream; /* on which it was made */
    void (*release)(struct tn__storage *self); /* foreign memory */
    void *user[2];
} tn__storage;

enum {
    TN__STORAGE_READ_ONLY = 1,
    TN__STORAGE_FOREIGN = 2,
    TN__STORAGE_INFERENCE = 4, /* made in inference mode: never part of a graph */
    TN__STORAGE_SHARED = 8,    /* with forked processes */
    TN__STORAGE_PINNED = 16    /* pinned.c */
};
/* Inference mode of the thread (core/grad sets it). */
extern __thread bool tn__inference_here __attribute__((tls_model("initial-exec")));

struct tn__autograd; /* core/grad */

struct tn_tensor {
    tn_view view; /* first: a tensor is usable as a view */
    _Atomic int32_t refs;
    uint8_t dtype;
    bool requires_grad; /* of a leaf, or because an operator recorded it */
    bool contiguous;
    bool has_inline_dims : 1;
    bool blind : 1;     /* a view made without gradients of a tensor that had none */
    bool parameter : 1; /* made by tn_parameter; stays with the object when tensors are swapped */
    tn__storage *storage;
    const tn_device *device;
    int64_t numel;
    struct tn__autograd *autograd; /* NULL: nothing recorded, no gradient, no hooks */
    int64_t dims[2 * TN__INLINE_DIMS];
};

/* ---- tensors ---- */

/* A new tensor with one reference that the caller owns (not in a scope). Shape and strides are
 * those of `meta`; NULL strides (no TN_META_STRIDED): row-major. Checks sizes. */
tn_tensor *tn__tensor_make(const tn_meta *meta, const tn_device *device);
/* Over an existing storage (takes a reference of its own). Bounds are checked. */
tn_tensor *tn__tensor_over(tn__storage *storage, const tn_meta *meta);
/* A tensor of its own that shows the same, without history; NULL and an error. */
tn_tensor *tn__tensor_alias(const tn_tensor *tensor);
/* The meta of a tensor (strided, with offset). */
void tn__tensor_meta(const tn_tensor *tensor, tn_meta *meta);
/* The row-major meta of a shape; TN_DTYPE_AUTO: the default type. */
tn_status tn__tensor_meta_of(tn_meta *meta, tn_ints shape, tn_dtype dtype);
/* Size and stride checks behind all of these: bytes that the storage needs. */
tn_status tn__tensor_meta_bytes(const tn_meta *meta, uint64_t *bytes);
/* Gives the reference to the innermost scope; on failure drops it and returns NULL. */
tn_tensor *tn__scope_push(tn_tensor *tensor);
/* Gives the memory range that a dense tensor needs as one: contiguous in some order of its
 * dimensions, nothing left out, nothing twice. */
bool tn__tensor_is_dense(const tn_tensor *tensor);
/* TN_OK when it may be written; TN_ERR_REFUSED for memory that came read-only (DLPack). For
 * callers that run kernels in place. */
tn_status tn__tensor_writable(const tn_tensor *tensor);
/* For arguments that are not tensors: NULL gives the code of the error that is held
 * (TN_ERR_RUNTIME, recorded, if none is); TN_NONE is a TN_ERR_TYPE. */
tn_status tn__tensor_bad(const tn_tensor *tensor, const char *what);
static inline bool tn__tensor_ok(const tn_tensor *tensor)
{
    return tn__likely((uintptr_t)tensor > (uintptr_t)TN_NONE);
}
/* For a question about a tensor: NULL leaves a failure on record, TN_NONE has an answer of its
 * own. */
static inline bool tn__tensor_asked(const tn_tensor *tensor, const char *what)
{
    return tn__tensor_ok(tensor) || (tensor == NULL && tn__tensor_bad(tensor, what) == TN_OK);
}
/* Bumps the storage's version. */
static inline void tn__tensor_written(tn_tensor *tensor)
{
    atomic_fetch_add_explicit(&tensor->storage->version, 1, memory_order_relaxed);
}
/* Whether the memory ranges of two tensors overlap / are exactly the same view. */
bool tn__tensor_overlap(const tn_tensor *a, const tn_tensor *b);
bool tn__tensor_same_view(const tn_tensor *a, const tn_tensor *b);
/* What tn_tensor_swap (core/grad) does once gradients allow it. */
tn_status tn__tensor_exchange(tn_tensor *a, tn_tensor *b);
/* Whether sizes and strides alone show that no two elements share a place: each stride is larger
 * than the extent of the dimensions with smaller strides. Dimensions whose bit is set in `without`
 * do not count. */
bool tn__view_strides_nest(const int64_t *shape, const int64_t *strides, int32_t ndim,
                           uint32_t without);
/* Whether two elements of a tensor share a place, as those of an expanded one do. */
bool tn__tensor_repeats(const tn_tensor *tensor);
/* "[2, 3]" and "float32[2, 3] on cpu:0", for error texts. */
void tn__tensor_text_ints(tn__text *text, tn_ints ints);
void tn__tensor_text(tn__text *text, const tn_tensor *tensor);

static inline bool tn__is_none(const tn_tensor *tensor)
{
    return tensor == TN_NONE;
}
static inline tn_ints tn__shape(const tn_tensor *tensor)
{
    return (tn_ints){ tensor->view.shape, tensor->view.ndim };
}

/* ---- calls to the folders above ---- */

struct tn_op;
/* Copies and fills run operators, and a tensor carries what core/grad hangs on it.
 * core/library/upward_calls.c fills the table. */
typedef struct tn__tensor_calls {
    /* Called when the last reference goes (core/grad frees iteratively). */
    void (*autograd_free)(struct tn__autograd *autograd);
    bool (*requires_grad)(const tn_tensor *tensor);
    /* The operators `copy` and `fill`; NULL and an error. */
    const struct tn_op *(*copy_op)(void);
    const struct tn_op *(*fill_op)(void);
    /* core/op/internal.h */
    tn_status (*op_takes)(const struct tn_op *op, tn_tensor *const *in, int64_t n_in,
                          const void *options);
    tn_status (*op_run_kernel)(const struct tn_op *op, tn_tensor *const *in, int64_t n_in,
                               const void *options, tn_tensor *const *out, int64_t n_out);
} tn__tensor_calls;
extern TN_HIDDEN const tn__tensor_calls tn__tensor_up;

/* ---- copies ---- */

/* The one way to copy values between any two tensors of equal shape: layouts, types, devices
 * (staged through the host where the backends differ). No gradient. Bumps the version of what it
 * writes. */
tn_status tn__copy(tn_tensor *to, const tn_tensor *from);

/* ---- storage ---- */
tn__storage *tn__allocator_storage(const tn_device *device, uint64_t bytes);
static inline tn__storage *tn__storage_keep(tn__storage *storage)
{
    atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
    return storage;
}
/* The last reference is gone. */
void tn__storage_free(tn__storage *storage);
static inline void tn__storage_drop(tn__storage *storage)
{
    /* The only reference is ours alone to see: no need for an atomic subtraction. */
    if (atomic_load_explicit(&storage->refs, memory_order_acquire) == 1 ||
        atomic_fetch_sub_explicit(&storage->refs, 1, memory_order_acq_rel) == 1)
        tn__storage_free(storage);
}
/* Over memory with another owner; `release` is called once, and frees nothing of the storage
 * itself. */
tn__storage *tn__storage_foreign(const tn_device *device, void *memory, uint64_t offset,
                                 size_t size, void (*release)(tn__storage *self), void *user0,
                                 void *user1);
/* A copy of a storage of the host in memory that forked processes share; NULL and an error. */
tn__storage *tn__shared_storage(const tn__storage *from);
/* Says that work on `stream` uses the memory: when it is dropped it is used again only after that
 * work. To be called for inputs and outputs of work on another stream than the one it was made on;
 * cheap when it is the same. */
tn_status tn__allocator_use_storage(tn__storage *storage, tn_stream *stream);
static inline tn_status tn__storage_use(tn__storage *storage, tn_stream *stream)
{
    return tn__likely(storage->stream == stream) ? TN_OK
                                                 : tn__allocator_use_storage(storage, stream);
}

/* ---- allocator ---- */
/* The plain one with guard zones (TENON_CHECK=1) has the same entry points. */
struct tn__allocator *tn__allocator_new(tn_device *device);
void tn__allocator_free(struct tn__allocator *allocator);
tn__storage *tn__allocator_get(struct tn__allocator *allocator, tn_stream *stream, uint64_t bytes);
void tn__allocator_put(struct tn__allocator *allocator, tn__storage *storage);
/* Counts what kernels prepared on a device (> 0), or released (< 0). */
void tn__allocator_count_prepared(const tn_device *device, int64_t bytes);
/* What this thread keeps of a device's memory goes back to the device's bins. */
void tn__allocator_forget_here(const tn_device *device);
/* Writes what holds the memory of a device to a text, for out-of-memory errors. */
void tn__allocator_explain(struct tn__allocator *allocator, tn__text *text);
/* The whole of that error; what the device said, the last failure, goes into it and takes its place
 * since `mark`. */
tn_status tn__allocator_out_of_memory(struct tn__allocator *allocator, uint64_t bytes,
                                      uint64_t mark);
/* Guard zones intact? Names the tensor's size and where it was broken. */
tn_status tn__allocator_check(struct tn__allocator *allocator);
/* Called, when it is not NULL, for what tensors take (> 0) and give back (< 0): observers of memory
 * (core/op sets it). */
extern void (*_Atomic tn__memory_hook)(const tn_device *device, int64_t bytes);

/* ---- devices ---- */
/* Called by core/plugin for a backend contribution; keeps name order, refuses a taken type. */
tn_status tn__device_add_backend(const tn_backend_def *backend, struct tn__plugin *plugin);
/* Device type by name, without opening anything; NULL without an error if unknown. */
tn__device_type *tn__device_type_find(const char *type);
tn__device_type *tn__device_type_at(int32_t index);
int32_t tn__device_type_count(void);
void tn__devices_shutdown(void);

/* Takes and gives the right to use a stream, which one thread at a time has; nothing where the
 * backend has no streams. */
static inline void tn__stream_lock(tn_stream *stream)
{
    if (stream->lock != NULL)
        pthread_mutex_lock(stream->lock);
}
static inline void tn__stream_unlock(tn_stream *stream)
{
    if (stream->lock != NULL)
        pthread_mutex_unlock(stream->lock);
}
/* Waits for all streams of a device whose work may go on after a call; a failure is kept for the
 * next tn_stream_sync. */
void tn__streams_drain(const tn_device *device);
/* What every call of a backend or of a kernel passes through: TN_ERR_LOST marks the device, a
 * failure without a message gets one. */
tn_status tn__device_result(const tn_device *device, tn_status status, const char *what);
/* A TN_ERR_LOST guard at the start of whatever asks a device for work; fork is caught here, too. */
tn_status tn__device_usable_slow(const tn_device *device);
static inline tn_status tn__device_usable(const tn_device *device)
{
    if (tn__likely(device != NULL &&
                   atomic_load_explicit(&device->lost, memory_order_relaxed) == 0 &&
                   (device->flags & TN_BACKEND_AFTER_FORK) != 0 &&
                   atomic_load_explicit(&device->open, memory_order_acquire) == 1))
        return TN_OK;
    return tn__device_usable_slow(device);
}
/* The device with a number of DLPack (or one that the core gave) and an index; opened. NULL and an
 * error. */
const tn_device *tn__device_of_number(int32_t type, int32_t id);

#endif
