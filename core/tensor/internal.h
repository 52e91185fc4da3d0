/* SPDX-License-Identifier: MIT
 *
 * The tensor, its storage and the device as the rooms of the core see them. */
#ifndef TN_CORE_TENSOR_INTERNAL_H
#define TN_CORE_TENSOR_INTERNAL_H

#include "core/base/internal.h"

#define TN__MAX_DEVICE_TYPES 32
#define TN__INLINE_DIMS 6       /* shape and strides up to here live in the tensor object */

struct tn__plugin;
struct tn__allocator;

/* A device type: one backend contribution, copied full-size. */
typedef struct tn__device_type {
    tn_backend backend;         /* the host's zero-filled copy */
    struct tn__plugin *plugin;
    int32_t index;              /* small number: dispatch tables are indexed by it */
    int32_t dlpack;             /* what views say */
    int32_t count;              /* devices; -1: not enumerated yet */
    tn_device **devices;
} tn__device_type;

struct tn_device {
    tn__device_type *type;
    void *handle;               /* the backend's */
    int32_t index;
    int32_t ordinal;            /* over all devices of the process */
    char name[48];
    struct tn__allocator *allocator;
    tn_stream *stream;          /* default stream */
    _Atomic int32_t lost;
};

struct tn_stream {
    const tn_device *device;
    void *handle;               /* the backend's; NULL for devices without streams */
    _Atomic uint64_t id;
    pthread_mutex_t *lock;      /* one caller at a time; NULL where the backend has no streams */
};

/* Memory of a device: a piece (offset, size) of a segment of the caching allocator, or foreign memory. */
typedef struct tn__storage {
    _Atomic int32_t refs;
    uint32_t flags;             /* TN__STORAGE_* */
    const tn_device *device;
    void *memory;               /* the backend's handle */
    uint64_t offset;            /* bytes */
    size_t size;                /* bytes asked for */
    _Atomic uint64_t version;
    void *block;                /* the allocator's */
    tn_stream *stream;          /* on which it was made */
    void (*release)(struct tn__storage *self);  /* foreign memory */
    void *user[2];
} tn__storage;

enum { TN__STORAGE_READ_ONLY = 1, TN__STORAGE_FOREIGN = 2 };

struct tn__autograd;            /* core/grad */

struct tn_tensor {
    tn_view view;               /* first: a tensor is usable as a view */
    _Atomic int32_t refs;
    uint8_t dtype;
    bool requires_grad;         /* of a leaf, or because an operator recorded it */
    bool contiguous;
    bool has_inline_dims;
    tn__storage *storage;
    const tn_device *device;
    int64_t numel;
    struct tn__autograd *autograd; /* NULL: nothing recorded, no gradient, no hooks */
    int64_t dims[2 * TN__INLINE_DIMS];
};

/* ---- tensors ---- */

/* A new tensor with one reference that the caller owns (not in a scope). Shape and strides are those of `meta`; NULL strides (no TN_META_STRIDED): row-major. Checks sizes. */
tn_tensor *tn__tensor_make(const tn_meta *meta, const tn_device *device);
/* Over an existing storage (takes a reference of its own). Bounds are checked. */
tn_tensor *tn__tensor_over(tn__storage *storage, const tn_meta *meta);
/* The meta of a tensor (strided, with offset). */
void tn__tensor_meta(const tn_tensor *tensor, tn_meta *meta);
/* Size and stride checks behind all of these: bytes that the storage needs. */
tn_status tn__meta_bytes(const tn_meta *meta, uint64_t *bytes);
/* Gives the reference to the innermost scope; on failure drops it and returns NULL. */
tn_tensor *tn__scope_push(tn_tensor *tensor);
/* Bumps the storage's version. */
static inline void tn__tensor_written(tn_tensor *tensor)
{
    atomic_fetch_add_explicit(&tensor->storage->version, 1, memory_order_relaxed);
}
/* Whether the memory ranges of two tensors overlap / are exactly the same view. */
bool tn__tensor_overlap(const tn_tensor *a, const tn_tensor *b);
bool tn__tensor_same_view(const tn_tensor *a, const tn_tensor *b);
/* "[2, 3]" and "float32[2, 3] on cpu:0", for error texts. */
void tn__text_ints(tn__text *text, tn_ints ints);
void tn__text_tensor(tn__text *text, const tn_tensor *tensor);
/* Called when the last reference goes (core/grad frees iteratively). */
void tn__autograd_free(struct tn__autograd *autograd);

static inline bool tn__is_none(const tn_tensor *tensor)
{
    return tensor == TN_NONE;
}
static inline tn_ints tn__shape(const tn_tensor *tensor)
{
    return (tn_ints){ tensor->view.shape, tensor->view.ndim };
}

/* ---- copies ---- */

/* The one way to copy values between any two tensors of equal shape: layouts, types, devices (staged through the host where the backends differ). No gradient. */
tn_status tn__copy(tn_tensor *to, const tn_tensor *from);

/* ---- storage ---- */
tn__storage *tn__storage_new(const tn_device *device, uint64_t bytes);
tn__storage *tn__storage_keep(tn__storage *storage);
void tn__storage_drop(tn__storage *storage);

/* ---- allocator ---- */
/* The plain one with guard zones (TENON_CHECK=1) has the same entry points. */
struct tn__allocator *tn__allocator_new(tn_device *device);
void tn__allocator_free(struct tn__allocator *allocator);
tn_status tn__allocator_get(struct tn__allocator *allocator, tn_stream *stream, uint64_t bytes, tn__storage *into);
void tn__allocator_put(struct tn__allocator *allocator, tn__storage *storage);
/* Writes what holds the memory of a device to a text, for out-of-memory errors. */
void tn__allocator_explain(struct tn__allocator *allocator, tn__text *text);
/* Guard zones intact? Names the tensor's size and where it was broken. */
tn_status tn__allocator_check(struct tn__allocator *allocator);

/* ---- devices ---- */
/* Called by core/plugin for a backend contribution; keeps name order, refuses a taken type. */
tn_status tn__backend_add(const tn_backend *backend, struct tn__plugin *plugin);
/* Device type by name, without opening anything; NULL without an error if unknown. */
tn__device_type *tn__device_type_find(const char *type);
tn__device_type *tn__device_type_at(int32_t index);
int32_t tn__device_type_count(void);
/* The stream of this thread for a device. */
tn_stream *tn__stream_current(const tn_device *device);
void tn__devices_shutdown(void);

/* A TN_ERR_LOST guard at the start of whatever asks a device for work; fork is caught here, too. */
tn_status tn__device_usable(const tn_device *device);

#endif
