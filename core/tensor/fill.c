/* SPDX-License-Identifier: MIT
 *
 * Tensors with one value everywhere: by the operator `fill`, by the function of the backend, or by
 * copies from the host. */
#include "core/tensor/trace.h"
#include "core/tensor/capture.h"
#include "core/tensor/convert.h"
#include "core/tensor/copy.h"
#include "core/tensor/device.h"
#include "core/tensor/thread.h"

#include <tenon/op.h>

/* Fills with the backend's `fill` function, if the device has no kernel for the operator `fill`. */
static tn_status fill_by_backend(tn_tensor *tensor, tn_scalar value)
{
    tn_stream *stream = tn__stream_current(tensor->device);
    tn_fill_args args = { TN_HEAD(tn_fill_args), .memory = tensor->view.data,
                          .offset = tensor->view.byte_offset, .bytes = tn__copy_size(tensor),
                          .pattern_bytes = (uint32_t)tn_dtype_size((tn_dtype)tensor->dtype) };
    tn_status status = tn__copy_use(tensor, true);

    if (status != TN_OK)
        return status;
    tn__convert_write((char *)args.pattern, (tn_dtype)tensor->dtype, value);
    tn__stream_lock(stream);
    args.stream = tn__stream_handle(stream);
    status = tn__backend(tensor->device)->fill(tensor->device->handle, &args);
    tn__stream_unlock(stream);
    return tn__capture_result(stream, tn__device_result(tensor->device, status, "fill"));
}

/* Fills by copies from the host, if the device has neither a kernel nor a backend function. */
static tn_status fill_from_host(tn_tensor *tensor, tn_scalar value)
{
    size_t item = tn_dtype_size((tn_dtype)tensor->dtype);
    uint64_t bytes = tn__copy_size(tensor), size = bytes < TN__COPY_CHUNK ? bytes : TN__COPY_CHUNK;
    tn_status status = TN_OK;
    char *piece = tn__memory_alloc_aligned((size_t)size, 64);

    if (piece == NULL)
        return TN_ERR_MEMORY;
    for (uint64_t at = 0; at < size; at += item)
        tn__convert_write(piece + at, (tn_dtype)tensor->dtype, value);
    for (uint64_t done = 0; done < bytes && status == TN_OK; done += size)
        status = tn__copy_bytes_in(tensor, done, piece, bytes - done < size ? bytes - done : size,
                                   0);
    tn__memory_free_aligned(piece, (size_t)size, 64);
    return status;
}

tn_tensor *(tn_tensor_full)(tn_ints shape, tn_scalar value, tn_dtype dtype, const tn_device *device)
{
    tn_tensor *tensor = tn_tensor_empty(shape, dtype, device); /* owned by the scope */
    uint64_t mark = tn_error_mark();
    tn_status status;

    if (tensor == NULL)
        return NULL;
    if (tn__unlikely(tn__making.is.traced) && tn__tracer_here->silent == 0)
        return tn__tracer_here->full(tn__tracer_here, shape, value, dtype, device);
    if (tensor->numel == 0 || !tn_device_has_memory(tensor->device))
        return tensor;
    status = tn__tensor_up.fill(tensor, value);
    if (status == TN_ERR_NOT_IMPLEMENTED && tn__unlikely(tn__making.is.traced)) {
        if (tn__tracer_here->kernel != NULL)
            return NULL; /* a plan has only kernels */
        tn_error_restore(mark);
        tensor->storage->flags |= TN__STORAGE_PENDING;
        return tensor;
    }
    if (status == TN_ERR_NOT_IMPLEMENTED) {
        tn_error_restore(mark);
        status = tn__backend(tensor->device)->fill != NULL ? fill_by_backend(tensor, value)
                                                           : fill_from_host(tensor, value);
    }
    return status == TN_OK ? tensor : NULL;
}
