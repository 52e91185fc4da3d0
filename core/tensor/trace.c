/* SPDX-License-Identifier: MIT
 *
 * Tensors without memory, which a trace gives to operators. */
#include "core/tensor/allocator.h"
#include "core/tensor/trace.h"

_Thread_local tn__tracer *tn__tracer_here TN__TLS_NEAR;

/* Each storage without memory has a range of offsets of its own, so that checks for shared memory
 * work as they do for others. */
static _Atomic uint64_t next_offset = 1 << 20;

tn__storage *tn__trace_storage(const tn_device *device, uint64_t bytes)
{
    tn__storage *storage = tn__device_usable(device) == TN_OK ? tn__storage_object() : NULL;

    if (storage == NULL)
        return NULL;
    storage->flags = TN__STORAGE_TRACED;
    storage->device = device;
    storage->size = (size_t)bytes;
    storage->offset = atomic_fetch_add_explicit(&next_offset, bytes + 64, memory_order_relaxed);
    storage->stream = tn__stream_current(device);
    return storage;
}

tn_status tn__trace_need_slow(tn_tensor *tensor, const char *function)
{
    tn__storage *storage = tensor->storage, *real;
    bool making = tn__making.is.traced;

    if ((storage->flags & TN__STORAGE_TRACED) == 0 &&
        (tn__tracer_here == NULL || !tn__tracer_here->stale(tn__tracer_here, tensor)))
        return TN_OK;
    if ((storage->flags & TN__STORAGE_TRACED) == 0 || (storage->flags & TN__STORAGE_PENDING) != 0) {
        if (tn__tracer_here != NULL)
            return tn__tracer_here->refuse(tn__tracer_here, tensor, function);
        return tn_fail(TN_ERR_RUNTIME,
                       "%s: the tensor has no values, because it was made while a module was "
                       "traced; expected a tensor that was computed outside of the trace",
                       function);
    }
    tn__making.is.traced = false;
    real = tn__allocator_storage(tensor->device, storage->size);
    tn__making.is.traced = making;
    if (real == NULL)
        return tn_error_last_code();
    if (atomic_load_explicit(&storage->refs, memory_order_relaxed) > 1) {
        tn__storage_drop(real);
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: a new tensor without values has views already, which cannot be traced; "
                       "write its values first",
                       function);
    }
    tensor->view.byte_offset += real->offset - storage->offset;
    tensor->view.data = real->memory;
    tensor->storage = real;
    tn__storage_drop(storage);
    return TN_OK;
}

/* Lets a plan record the kernel that copies. */
static tn_status plan_copy(tn_tensor *to, const tn_tensor *from)
{
    if (tn__tensor_same_view(to, from))
        return TN_OK;
    if (to->device != from->device || tn__tensor_overlap(to, from))
        return tn__tracer_here->refuse(tn__tracer_here, from,
                                       to->device != from->device ? "copy between devices"
                                                                  : "copy within one memory");
    return tn__tensor_up.copy(to, (tn_tensor *)(uintptr_t)from);
}

tn_status tn__trace_need_copy(tn_tensor *to, const tn_tensor *from, bool *done)
{
    tn_status status;

    if (tn__unlikely(tn__tracer_here != NULL && tn__tracer_here->kernel != NULL)) {
        *done = true;
        return plan_copy(to, from);
    }

    if (tn__unlikely(tn__tracer_here != NULL && tn__tracer_here->silent > 0)) {
        if ((to->storage->flags & TN__STORAGE_TRACED) != 0)
            to->storage->flags |= TN__STORAGE_PENDING;
        *done = true;
        return TN_OK;
    }
    status = tn__trace_need(from, "copy");
    return status == TN_OK ? tn__trace_need(to, "copy") : status;
}
