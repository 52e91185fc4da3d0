/* SPDX-License-Identifier: MIT
 *
 * Tensors, storages and devices: the structs and functions that other folders of the core use. */
#ifndef TN_CORE_TENSOR_INTERNAL_H
#define TN_CORE_TENSOR_INTERNAL_H

#include "core/base/internal.h"

#include <tenon/backend.h>
#include <tenon/tensor.h>

#define TN__MAX_DEVICE_TYPES 32
/* A tensor with at most this many dimensions stores its shape and strides in the object itself. */
#define TN__INLINE_DIMS 6

struct tn__plugin;
struct tn__allocator;

/* The device type that is used if the program chooses none: if TENON_DEVICE is not set, or if a
 * call wraps memory of the program without naming a device. */
#define TN__HOST_DEVICE_TYPE "cpu"

/* A device type, made from one backend contribution of a plugin. */
typedef struct tn__device_type {
    tn_backend_def backend; /* a copy; members that the plugin's struct lacks are 0 */
    struct tn__plugin *plugin;
    int32_t index;  /* small number; dispatch tables are indexed by it */
    int32_t dlpack; /* the type number that DLPack and tn_view.device use */
    int32_t count;  /* number of devices; -1: not enumerated yet */
    tn_device **devices;
    /* 1: enumerated, so that `count` and `devices` are final; 0: not yet; -1: enumeration
     * failed. */
    _Atomic int32_t ready;
    tn_status failure_code;
    char *failure; /* why the type has no devices */
} tn__device_type;

struct tn_device {
    tn__device_type *type;
    void *handle; /* the backend's handle of the device */
    int32_t index;
    int32_t ordinal; /* index among all devices of the process */
    char name[48];
    struct tn__allocator *allocator;
    tn_stream *stream; /* the default stream */
    _Atomic int32_t lost;
    _Atomic int32_t open; /* 0: not yet, 1: yes, -1: opening failed, and is not tried again */
    uint32_t flags;       /* TN_BACKEND_*, copied from the type */
    /* All streams except the default one. Dropped streams stay in the list; tn_stream_new reuses
     * them. */
    tn_stream *streams;
    /* Number of streams, events, recorded graphs, prepared calls, plans and memory of other kinds
     * that still exist. The device is closed only if this number is 0. */
    _Atomic int32_t handles;
    char *failure; /* why the device cannot be opened */
    tn_status failure_code;
};

struct tn_stream {
    const tn_device *device;
    void *handle; /* the backend's handle; NULL if the backend has no streams */
    _Atomic uint64_t id;
    /* Held by the one thread that uses the stream; recursive. NULL if the backend has no
     * streams. */
    pthread_mutex_t *lock;
    tn_stream *next; /* in tn_device.streams */
    /* The program has dropped the stream. The struct waits for the next tn_stream_new; it is not
     * freed, because memory that was used on the stream may still point to it. */
    bool ended;
    /* A failure that was found while no call could return it (tn__stream_drain). The next
     * tn_stream_sync returns it. */
    tn_status deferred;
    char *deferred_text;
    /* The graph that the stream records into; NULL: none. */
    _Atomic(struct tn_device_graph *) capture;
};

/* What kernels keep for a storage (core/op/weight_cache.c); the storage drops it when it is freed.
 */
typedef struct tn__weight_cache {
    void (*drop)(struct tn__weight_cache *self);
} tn__weight_cache;

/* Memory of a device: a block (offset, size) of a segment of the caching allocator, or foreign
 * memory. */
typedef struct tn__storage {
    _Atomic int32_t refs;
    uint16_t flags; /* TN__STORAGE_* */
    /* Size class of the block in the caches of threads; TN__SIZE_CLASSES: it is not cached. */
    uint16_t size_class;
    const tn_device *device;
    void *memory;    /* the backend's handle of the memory */
    uint64_t offset; /* bytes */
    size_t size;     /* bytes requested */
    _Atomic uint64_t version;
    void *block;       /* the allocator's block; NULL: foreign memory, or no memory */
    tn_stream *stream; /* the stream on which the memory was allocated */
    void (*release)(struct tn__storage *self); /* for foreign memory */
    _Atomic(tn__weight_cache *) weights;       /* NULL: nothing */
    /* The program has a pointer to the memory, through which it may write at any time. */
    _Atomic bool pointed;
    void *user[2];
} tn__storage;

enum {
    TN__STORAGE_READ_ONLY = 1,
    TN__STORAGE_FOREIGN = 2,
    TN__STORAGE_INFERENCE = 4, /* made in inference mode: its tensors never take part in a graph */
    TN__STORAGE_SHARED = 8,    /* in memory shared with forked processes */
    TN__STORAGE_PINNED = 16,   /* pinned memory (pinned.c) */
    /* Made without values, by tn_module_parse_skip_init or for a slot that a load adds (lazy.c):
     * with TN_LOAD_TAKE, loading may exchange the storage instead of copying into it. */
    TN__STORAGE_UNSET = 32,
    TN__STORAGE_TRACED = 64,   /* without memory, made while a module is traced (trace.h) */
    TN__STORAGE_PENDING = 128, /* traced; its values would come from a kernel that did not run */
    TN__STORAGE_KIND = 256     /* memory of a kind that the program chose (memory.c) */
};
/* What is special about the tensors that this thread makes. */
typedef union tn__making_now {
    struct {
        bool inference; /* the thread is in inference mode (mode.c) */
        bool traced;    /* the thread traces a module (trace.h) */
    } is;
    uint16_t any; /* 0: nothing */
} tn__making_now;
extern __thread tn__making_now tn__making __attribute__((tls_model("initial-exec")));

struct tn__autograd; /* core/grad */

struct tn_tensor {
    tn_view view; /* first: a tensor is usable as a view */
    _Atomic int32_t refs;
    uint8_t dtype;
    bool requires_grad; /* set on a leaf by the program, or by the operator that made the tensor */
    bool contiguous;
    bool has_inline_dims : 1;
    /* Made as a view while gradients were off, of a tensor that did not require gradients. Such a
     * view cannot be changed in place with gradients. */
    bool blind : 1;
    bool parameter : 1; /* made by tn_parameter; tn_tensor_swap does not exchange this flag */
    tn__storage *storage;
    const tn_device *device;
    int64_t numel;
    struct tn__autograd *autograd; /* NULL: nothing recorded, no gradient, no hooks */
    int64_t dims[2 * TN__INLINE_DIMS];
};

/* ---- tensors ---- */

/* Creates a tensor with one reference, which the caller owns (no scope does). Shape and strides are
 * those of `meta`; without TN_META_STRIDED the strides are row-major. Checks the sizes. Returns
 * NULL and sets the error on failure. */
tn_tensor *tn__tensor_make(const tn_meta *meta, const tn_device *device);
/* Creates a tensor over an existing storage and adds a reference to the storage. Checks that the
 * tensor is within the storage. */
tn_tensor *tn__tensor_over(tn__storage *storage, const tn_meta *meta);
/* Creates another tensor with the storage, shape and strides of `tensor`, without gradient history.
 * Returns NULL and sets the error on failure. */
tn_tensor *tn__tensor_alias(const tn_tensor *tensor);
/* Fills in `meta` with dtype, shape, strides and offset of a tensor. */
void tn__tensor_meta(const tn_tensor *tensor, tn_meta *meta);
/* Fills in `meta` for a row-major tensor. TN_DTYPE_AUTO stands for the default dtype. */
tn_status tn__tensor_meta_of(tn_meta *meta, tn_ints shape, tn_dtype dtype);
/* Checks sizes and strides of `meta`, and computes the bytes that its storage needs. The functions
 * above call it. */
tn_status tn__tensor_meta_bytes(const tn_meta *meta, uint64_t *bytes);
/* Gives the caller's reference to the innermost scope and returns the tensor. On failure drops the
 * reference, returns NULL and sets the error. */
tn_tensor *tn__scope_push(tn_tensor *tensor);
/* Returns whether the elements of a tensor fill a range of memory: contiguous in some order of the
 * dimensions, without gaps and without overlap. */
bool tn__tensor_is_dense(const tn_tensor *tensor);
/* Returns TN_OK if the memory of the tensor may be written, and fails with TN_ERR_REFUSED if it was
 * imported as read-only (DLPack). For callers that run kernels in place. */
tn_status tn__tensor_writable(const tn_tensor *tensor);
/* Fails because `tensor`, an argument of the function `what`, is not a tensor. NULL: returns the
 * code of the earlier failure of this thread, or sets TN_ERR_RUNTIME if there was none. TN_NONE:
 * sets TN_ERR_TYPE. tn__tensor_bad_at() is for element i of an argument that is an array. */
tn_status tn__tensor_bad_at(const tn_tensor *tensor, const char *what, int64_t i);
static inline tn_status tn__tensor_bad(const tn_tensor *tensor, const char *what)
{
    return tn__tensor_bad_at(tensor, what, -1);
}
static inline bool tn__tensor_ok(const tn_tensor *tensor)
{
    return tn__likely((uintptr_t)tensor > (uintptr_t)TN_NONE);
}
/* For functions that query a tensor: whether they can read it. NULL sets the error. TN_NONE does
 * not, because these functions return a default value for TN_NONE. */
static inline bool tn__tensor_asked(const tn_tensor *tensor, const char *what)
{
    return tn__tensor_ok(tensor) || (tensor == NULL && tn__tensor_bad(tensor, what) == TN_OK);
}
/* Increments the version of the storage, after a write. */
static inline void tn__tensor_written(tn_tensor *tensor)
{
    atomic_fetch_add_explicit(&tensor->storage->version, 1, memory_order_relaxed);
}
/* Records that the program gets a pointer to the memory (true), or promises to report what it
 * writes through such a pointer (false). */
static inline void tn__tensor_pointed(tn_tensor *tensor, bool pointed)
{
    atomic_store_explicit(&tensor->storage->pointed, pointed, memory_order_relaxed);
}
/* Returns whether the memory ranges of two tensors overlap. */
bool tn__tensor_overlap(const tn_tensor *a, const tn_tensor *b);
/* Returns whether two tensors are the same view: same memory, dtype, shape and strides. */
bool tn__tensor_same_view(const tn_tensor *a, const tn_tensor *b);
/* Exchanges the contents of two tensors: the part of tn_tensor_swap (core/grad) that runs once
 * gradients allow the exchange. */
tn_status tn__tensor_exchange(tn_tensor *a, tn_tensor *b);
/* Returns whether sizes and strides alone show that no two elements share a memory location: each
 * stride is larger than the extent of the dimensions with smaller strides. Dimensions whose bit is
 * set in `without` are ignored. */
bool tn__view_strides_nest(const int64_t *shape, const int64_t *strides, int32_t ndim,
                           uint32_t without);
/* Returns whether two elements of a tensor share a memory location, as in an expanded tensor. Also
 * returns true if the search would take too long. */
bool tn__tensor_repeats(const tn_tensor *tensor);
/* Append a text such as "[2, 3]", and such as "float32[2, 3] on cpu:0", for error messages. */
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
/* Functions of core/op and core/grad that this folder calls: copies and fills run operators, and a
 * tensor owns gradient data of core/grad. lib/library/upward_calls.c fills the table. */
typedef struct tn__tensor_calls {
    /* Called when the last reference to the tensor is dropped. Frees long graphs without
     * recursion. */
    void (*autograd_free)(struct tn__autograd *autograd);
    bool (*requires_grad)(const tn_tensor *tensor);
    /* Run the operators `copy` and `fill` on the device of the tensor that they write. Fail with
     * TN_ERR_NOT_IMPLEMENTED if no kernel takes the call. */
    tn_status (*copy)(tn_tensor *to, tn_tensor *from);
    tn_status (*fill)(tn_tensor *tensor, tn_scalar value);
} tn__tensor_calls;
extern TN_HIDDEN const tn__tensor_calls tn__tensor_up;

/* ---- copies ---- */

/* Copies values between any two tensors of equal shape. Layouts, dtypes and devices may differ; if
 * neither device can access the memory of the other, the values pass through memory of the host.
 * Records no gradient. Increments the version of `to`. */
tn_status tn__copy(tn_tensor *to, const tn_tensor *from);

/* ---- storage ---- */
/* Allocates memory on the current stream of the device. Returns NULL and sets the error on
 * failure. */
tn__storage *tn__allocator_storage(const tn_device *device, uint64_t bytes);
static inline tn__storage *tn__storage_keep(tn__storage *storage)
{
    atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
    return storage;
}
/* Frees a storage whose last reference is gone. */
void tn__storage_free(tn__storage *storage);
static inline void tn__storage_drop(tn__storage *storage)
{
    /* With one reference, no other thread can see or change the count: no atomic subtraction is
     * needed. */
    if (atomic_load_explicit(&storage->refs, memory_order_acquire) == 1 ||
        atomic_fetch_sub_explicit(&storage->refs, 1, memory_order_acq_rel) == 1)
        tn__storage_free(storage);
}
/* Creates a storage over memory that has another owner. `release` is called once, when the storage
 * is freed, and must not free the storage itself. */
tn__storage *tn__storage_foreign(const tn_device *device, void *memory, uint64_t offset,
                                 size_t size, void (*release)(tn__storage *self), void *user0,
                                 void *user1);
/* Copies a storage of the host to memory that forked processes share. Returns NULL and sets the
 * error on failure. */
tn__storage *tn__shared_storage(const tn__storage *from);
/* Records that work on `stream` uses the memory, so that freed memory is reused only after that
 * work. Must be called for inputs and outputs of work on a stream other than the one on which the
 * memory was allocated; returns at once if the stream is the same. */
tn_status tn__allocator_use_storage(tn__storage *storage, tn_stream *stream);
static inline tn_status tn__storage_use(tn__storage *storage, tn_stream *stream)
{
    return tn__likely(storage->stream == stream) ? TN_OK
                                                 : tn__allocator_use_storage(storage, stream);
}

/* ---- allocator ---- */
/* With TENON_CHECK=1 these functions pass every request on to the plain allocator with guard zones
 * (guard.c). */
struct tn__allocator *tn__allocator_new(tn_device *device);
void tn__allocator_free(struct tn__allocator *allocator);
tn__storage *tn__allocator_get(struct tn__allocator *allocator, tn_stream *stream, uint64_t bytes);
void tn__allocator_put(struct tn__allocator *allocator, tn__storage *storage);
/* Adds to the statistics the bytes that kernels prepared on a device (> 0) or released (< 0). */
void tn__allocator_count_prepared(const tn_device *device, int64_t bytes);
/* Returns the blocks of a device that this thread caches to the bins of the device. */
void tn__allocator_forget_here(const tn_device *device);
/* Appends to a text what holds the memory of a device, for out-of-memory errors. */
void tn__allocator_explain(struct tn__allocator *allocator, tn__text *text);
/* Fails with TN_ERR_MEMORY. The message says what holds the memory, and includes the text of the
 * last failure since `mark`, which the device reported. The new failure replaces that one. */
tn_status tn__allocator_out_of_memory(struct tn__allocator *allocator, uint64_t bytes,
                                      uint64_t mark);
/* Checks the guard zones of all tensors. The message of a failure has the size of the tensor and
 * the place of the wrong write. */
tn_status tn__allocator_check(struct tn__allocator *allocator);
/* What observers want to know of memory. core/op sets the pointer while there are observers. */
typedef struct tn__memory_hooks {
    /* Gets the bytes that tensors allocate (> 0) and free (< 0). */
    void (*bytes)(const tn_device *device, int64_t bytes);
    /* Calls `run`, which copies bytes. */
    tn_status (*copy)(const tn_device *device, const char *name, uint64_t bytes,
                      tn_status (*run)(void *user), void *user);
} tn__memory_hooks;
extern const tn__memory_hooks *_Atomic tn__memory_hook;

/* Ends the threads of tn_parallel_for. */
void tn__thread_pool_shutdown(void);

/* ---- devices ---- */
/* Registers a backend contribution as a device type; core/plugin calls it. Refuses a type name that
 * is taken. */
tn_status tn__device_add_backend(const tn_backend_def *backend, struct tn__plugin *plugin);
/* Finds a device type by name, without opening a device. Returns NULL without an error if there is
 * none. */
tn__device_type *tn__device_type_find(const char *type);
tn__device_type *tn__device_type_at(int32_t index);
int32_t tn__device_type_count(void);
void tn__devices_shutdown(void);

/* Lock and unlock a stream, which only one thread may use at a time. Do nothing if the backend has
 * no streams. */
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
/* Waits for all streams of a device whose work may continue after a call (TN_BACKEND_ASYNC). A
 * failure is kept for the next tn_stream_sync. */
void tn__streams_drain(const tn_device *device);
/* Handles the status that a backend or a kernel returned, and returns it: TN_ERR_LOST marks the
 * device as lost, and a failure without a message gets one. */
tn_status tn__device_result(const tn_device *device, tn_status status, const char *what);
/* Checks whether a device can be given work: fails if it is lost, or if this is a forked child that
 * cannot use it. Opens the device if it is not open. */
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
/* Finds and opens the device with a type number (of DLPack, or assigned by the core) and an index.
 * Returns NULL and sets the error on failure. */
const tn_device *tn__device_of_number(int32_t type, int32_t id);

#endif
