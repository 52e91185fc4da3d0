/* SPDX-License-Identifier: MIT
 *
 * DLPack: tensors from and to other libraries without a copy, in the unversioned and in the
 * versioned form. */
#include "core/tensor/device.h"
#include "core/base/dtype.h"
#include "core/tensor/thread.h"
#include "core/tensor/trace.h"

#define FLAG_READ_ONLY ((uint64_t)1)
#define MAJOR 1
#define MINOR 0

/* The layouts of DLPack 1.0 on 64-bit machines; tests/tensor checks them, too. */
_Static_assert(sizeof(tn_view) == 48, "DLTensor");
_Static_assert(offsetof(tn_view, device) == 8, "DLTensor.device");
_Static_assert(offsetof(tn_view, ndim) == 16, "DLTensor.ndim");
_Static_assert(offsetof(tn_view, dtype) == 20, "DLTensor.dtype");
_Static_assert(offsetof(tn_view, shape) == 24, "DLTensor.shape");
_Static_assert(offsetof(tn_view, strides) == 32, "DLTensor.strides");
_Static_assert(offsetof(tn_view, byte_offset) == 40, "DLTensor.byte_offset");
_Static_assert(sizeof(tn_dlpack) == 64, "DLManagedTensor");
_Static_assert(offsetof(tn_dlpack, manager_ctx) == 48, "DLManagedTensor.manager_ctx");
_Static_assert(offsetof(tn_dlpack, deleter) == 56, "DLManagedTensor.deleter");
_Static_assert(sizeof(tn_dlpack_versioned) == 80, "DLManagedTensorVersioned");
_Static_assert(offsetof(tn_dlpack_versioned, manager_ctx) == 8,
               "DLManagedTensorVersioned.manager_ctx");
_Static_assert(offsetof(tn_dlpack_versioned, deleter) == 16, "DLManagedTensorVersioned.deleter");
_Static_assert(offsetof(tn_dlpack_versioned, flags) == 24, "DLManagedTensorVersioned.flags");
_Static_assert(offsetof(tn_dlpack_versioned, tensor) == 32, "DLManagedTensorVersioned.dl_tensor");

/* ---- out ---- */

/* What is exported: the struct of DLPack, followed by copies of shape and strides. The view of the
 * tensor cannot be exported itself, because tn_tensor_swap may change it while the consumer reads
 * it. */
struct exported {
    union {
        tn_dlpack plain;
        tn_dlpack_versioned versioned;
    } as;
    tn__storage *storage;
    int64_t dims[];
};

static void release(struct exported *out)
{
    tn__storage_drop(out->storage);
    tn_free(out);
}

static void delete_plain(tn_dlpack *self)
{
    if (self != NULL)
        release(self->manager_ctx);
}

static void delete_versioned(tn_dlpack_versioned *self)
{
    if (self != NULL)
        release(self->manager_ctx);
}

/* Makes sure that later work of the consumer comes after the work that this library was given. */
static tn_status hand_over(const tn_tensor *tensor, void *consumer)
{
    const tn_device *device = tensor->device;
    tn_stream *stream;

    if ((device->flags & TN_BACKEND_ASYNC) == 0)
        return tn__device_usable(device);
    stream = tn__stream_current(device);
    /* Work of the consumer on the same stream comes later anyway. If the consumer uses another
     * stream, the host waits: to make that stream wait for an event, the backend would need its own
     * handle of it. */
    if (consumer != NULL && tn__backend(device)->native_stream != NULL &&
        tn__backend(device)->native_stream(device->handle, stream->handle) == consumer &&
        tensor->storage->stream == stream)
        return TN_OK;
    return tn_device_sync(device);
}

static struct exported *export(tn_tensor *tensor, void *stream)
{
    struct exported *out;
    tn_view *view;
    size_t ndim;

    if (!tn__tensor_ok(tensor)) {
        tn__tensor_bad(tensor, "tn_tensor_to_dlpack");
        return NULL;
    }
    if (tn__trace_need(tensor, "tn_tensor_to_dlpack") != TN_OK)
        return NULL;
    if (!tn_device_has_memory(tensor->device)) {
        tn_fail(TN_ERR_NOT_IMPLEMENTED,
                "DLPack: tensor: it is on %s, whose tensors have no values; expected a tensor of a "
                "device with memory",
                tensor->device->name);
        return NULL;
    }
    if (tensor->view.device.type >= TN_DEVICE_TYPE_FIRST) {
        tn_fail(
            TN_ERR_NOT_IMPLEMENTED,
            "DLPack: device type %q: it has no number in DLPack; copy the tensor to a device of "
            "the host first",
            tn_device_type(tensor->device));
        return NULL;
    }
    if (hand_over(tensor, stream) != TN_OK)
        return NULL;
    ndim = (size_t)tensor->view.ndim;
    out = tn_calloc(1, sizeof *out + 2 * ndim * sizeof(int64_t));
    if (out == NULL)
        return NULL;
    view = &out->as.plain.tensor;
    *view = tensor->view;
    view->shape = out->dims;
    view->strides = out->dims + ndim;
    memcpy(view->shape, tensor->view.shape, ndim * sizeof(int64_t));
    memcpy(view->strides, tensor->view.strides, ndim * sizeof(int64_t));
    out->storage = tn__storage_keep(tensor->storage);
    tn__tensor_pointed(tensor, true);
    return out;
}

tn_dlpack *tn_tensor_to_dlpack(tn_tensor *tensor, void *stream)
{
    struct exported *out;

    if (tn__tensor_ok(tensor) && tensor->storage->flags & TN__STORAGE_READ_ONLY) {
        tn_fail(
            TN_ERR_REFUSED,
            "DLPack: tensor: it is read-only; use tn_tensor_to_dlpack_versioned, which has a flag "
            "for this");
        return NULL;
    }
    out = export(tensor, stream);
    if (out == NULL)
        return NULL;
    out->as.plain.manager_ctx = out;
    out->as.plain.deleter = delete_plain;
    return &out->as.plain;
}

tn_dlpack_versioned *tn_tensor_to_dlpack_versioned(tn_tensor *tensor, void *stream)
{
    struct exported *out = export(tensor, stream);
    tn_view view;

    if (out == NULL)
        return NULL;
    view = out->as.plain.tensor;
    memset(&out->as, 0, sizeof out->as);
    out->as.versioned.version.major = MAJOR;
    out->as.versioned.version.minor = MINOR;
    out->as.versioned.manager_ctx = out;
    out->as.versioned.deleter = delete_versioned;
    out->as.versioned.flags = tensor->storage->flags & TN__STORAGE_READ_ONLY ? FLAG_READ_ONLY : 0;
    out->as.versioned.tensor = view;
    return &out->as.versioned;
}

/* ---- in ---- */

static void release_plain(tn__storage *storage)
{
    tn_dlpack *managed = storage->user[0];

    if (managed->deleter != NULL)
        managed->deleter(managed);
}

static void release_versioned(tn__storage *storage)
{
    tn_dlpack_versioned *managed = storage->user[0];

    if (managed->deleter != NULL)
        managed->deleter(managed);
}

/* Checks the view of another library and writes its contents to `meta`. */
static tn_status read_view(const tn_view *view, tn_meta *meta)
{
    meta->dtype = tn__dtype_of_code(view->dtype.code, view->dtype.bits);
    if (meta->dtype == TN_DTYPE_AUTO || view->dtype.lanes != 1)
        return tn_fail(TN_ERR_TYPE,
                       "DLPack tensor: unknown type, got code %d, %d bits, %d lanes; expected "
                       "the code and bits of a tn_dtype, and 1 lane",
                       (int)view->dtype.code, (int)view->dtype.bits, (int)view->dtype.lanes);
    if (view->ndim > 0 && view->ndim <= TN_MAX_DIMS && view->shape == NULL)
        return tn_fail(TN_ERR_VALUE, "DLPack tensor: shape: it is NULL; expected %d sizes",
                       (int)view->ndim);
    if (view->ndim < 0 || view->ndim > TN_MAX_DIMS)
        return tn_fail(TN_ERR_VALUE,
                       "DLPack tensor: wrong number of dimensions, got %d; expected "
                       "0 to %d",
                       (int)view->ndim, TN_MAX_DIMS);
    meta->ndim = view->ndim;
    meta->flags = view->strides != NULL ? TN_META_STRIDED
                                        : 0; /* before DLPack 1.2, NULL was allowed for row-major */
    meta->offset = 0;
    for (int32_t i = 0; i < view->ndim; i++) {
        meta->shape[i] = view->shape[i];
        /* In a dimension of size 0 or 1, the stride has no meaning and may be negative. */
        if (view->strides != NULL)
            meta->strides[i] = view->shape[i] > 1     ? view->strides[i]
                               : view->strides[i] < 0 ? 0
                                                      : view->strides[i];
    }
    return TN_OK;
}

static tn_tensor *import(const tn_view *view, void *managed, void (*release_it)(tn__storage *),
                         bool read_only)
{
    const tn_device *device;
    tn__storage *storage;
    tn_tensor *tensor;
    tn_meta meta;
    uint64_t bytes;
    size_t unit;

    if (read_view(view, &meta) != TN_OK || tn__tensor_meta_bytes(&meta, &bytes) != TN_OK)
        return NULL;
    device = tn__device_of_number(view->device.type, view->device.id);
    if (device == NULL)
        return NULL;
    unit = TN_BIT(meta.dtype) & TN_MASK_COMPLEX ? tn_dtype_size(meta.dtype) / 2
                                                : tn_dtype_size(meta.dtype);
    if (bytes > 0 && view->data == NULL) {
        tn_fail(TN_ERR_VALUE, "DLPack tensor: data: it is NULL; expected %llu bytes",
                (unsigned long long)bytes);
        return NULL;
    }
    if (bytes > 0 && (view->byte_offset % unit != 0 ||
                      (tn_device_is_host(device) && (uintptr_t)view->data % unit != 0))) {
        tn_fail(TN_ERR_VALUE,
                "DLPack tensor: data: not aligned for %s, got %p and offset %llu; expected "
                "multiples of %zu",
                tn_dtype_name(meta.dtype), view->data, (unsigned long long)view->byte_offset, unit);
        return NULL;
    }
    storage = tn__storage_foreign(device, view->data, view->byte_offset, (size_t)bytes, NULL,
                                  managed, NULL);
    if (storage == NULL)
        return NULL;
    if (read_only)
        storage->flags |= TN__STORAGE_READ_ONLY;
    tensor = tn__tensor_over(storage, &meta);
    if (tensor != NULL && (tensor = tn__scope_push(tensor)) != NULL)
        /* From now on the storage owns the memory; after a failure, the caller does. */
        storage->release = release_it;
    tn__storage_drop(storage);
    return tensor;
}

tn_tensor *tn_tensor_from_dlpack(tn_dlpack *managed)
{
    if (managed == NULL) {
        tn_fail(TN_ERR_VALUE,
                "tn_tensor_from_dlpack: tensor: it is NULL; expected a DLPack tensor");
        return NULL;
    }
    return import(&managed->tensor, managed, release_plain, false);
}

tn_tensor *tn_tensor_from_dlpack_versioned(tn_dlpack_versioned *managed)
{
    if (managed == NULL) {
        tn_fail(TN_ERR_VALUE, "tn_tensor_from_dlpack_versioned: tensor: it is NULL; "
                              "expected a DLPack tensor");
        return NULL;
    }
    if (managed->version.major != MAJOR) {
        tn_fail(TN_ERR_VERSION, "DLPack tensor: wrong version, got %u.%u; expected %d.x",
                (unsigned)managed->version.major, (unsigned)managed->version.minor, MAJOR);
        return NULL;
    }
    return import(&managed->tensor, managed, release_versioned,
                  (managed->flags & FLAG_READ_ONLY) != 0);
}
