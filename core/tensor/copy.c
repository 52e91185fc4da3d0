/* SPDX-License-Identifier: MIT
 *
 * Copies: between tensors of any layout, dtype and device, and between tensors and memory of the
 * program. The operator `copy`, on one of the two devices, converts between dtypes and layouts. The
 * host changes layouts only in copies from and to memory of the program. */
#include "core/base/dtype.h"
#include "core/tensor/trace.h"
#include "core/tensor/capture.h"
#include "core/tensor/convert.h"
#include "core/tensor/copy.h"
#include "core/tensor/device.h"
#include "core/tensor/pinned.h"
#include "core/tensor/thread.h"

#include <tenon/op.h>

static void *host_at(const tn_tensor *tensor)
{
    return (char *)tensor->view.data + tensor->view.byte_offset;
}

/* ---- calls of the backend ---- */

static tn_copy_end end_of(const tn_tensor *tensor, uint64_t offset)
{
    return (tn_copy_end){ tensor->device->handle, tensor->view.data,
                          tensor->view.byte_offset + offset };
}

static tn_copy_end host_end(const void *at)
{
    return (tn_copy_end){ NULL, (void *)(uintptr_t)at, 0 };
}

/* Calls `run`, which copies bytes, and tells observers of it if there are some. */
static tn_status observed(const tn_device *device, bool from_host, bool to_host, uint64_t bytes,
                          tn_status (*run)(void *user), void *user)
{
    const char *name = from_host ? "copy from host" : to_host ? "copy to host" : "copy";

    const tn__memory_hooks *hooks = atomic_load_explicit(&tn__memory_hook, memory_order_acquire);

    return tn__likely(hooks == NULL) ? run(user) : hooks->copy(device, name, bytes, run, user);
}

struct backend_copy {
    const tn_device *device;
    tn_copy_args args;
};

static tn_status run_backend_copy(void *user)
{
    struct backend_copy *copy = user;

    return tn__backend(copy->device)->copy(copy->device->handle, &copy->args);
}

/* Copies bytes on the current stream of `device`. */
static tn_status copy_bytes(const tn_device *device, tn_copy_end to, tn_copy_end from,
                            uint64_t bytes, uint32_t flags)
{
    tn_stream *stream = tn__stream_current(device);
    struct backend_copy copy = {
        device, { TN_HEAD(tn_copy_args), .to = to, .from = from, .bytes = bytes, .flags = flags }
    };
    tn_status status;

    if (to.device == NULL || from.device == NULL) {
        status = tn__capture_refuse(stream, "copy", "a graph cannot hold memory of the host");
        if (status != TN_OK)
            return status;
    }
    tn__stream_lock(stream);
    copy.args.stream = tn__stream_handle(stream);
    status = observed(device, from.device == NULL, to.device == NULL, bytes, run_backend_copy,
                      &copy);
    tn__stream_unlock(stream);
    return tn__capture_result(stream, tn__device_result(device, status, "copy"));
}

tn_status tn__copy_use(const tn_tensor *tensor, bool written)
{
    tn_stream *stream = tn__stream_current(tensor->device);
    tn_status status = tn__device_usable(tensor->device);

    if (status == TN_OK)
        status = tn__storage_use(tensor->storage, stream);
    return status == TN_OK ? tn__capture_hold(stream, tensor->storage, written) : status;
}

tn_status tn__copy_bytes_in(const tn_tensor *to, uint64_t offset, const void *from, uint64_t bytes,
                            uint32_t flags)
{
    tn_status status = tn__copy_use(to, true);

    return status == TN_OK
               ? copy_bytes(to->device, end_of(to, offset), host_end(from), bytes, flags)
               : status;
}

/* The counterpart of tn__copy_bytes_in(): copies to host memory. */
static tn_status bytes_out(void *to, const tn_tensor *from, uint64_t offset, uint64_t bytes,
                           uint32_t flags)
{
    tn_status status = tn__copy_use(from, false);

    return status == TN_OK
               ? copy_bytes(from->device, host_end(to), end_of(from, offset), bytes, flags)
               : status;
}

static tn_status bytes_inside(const tn_tensor *to, const tn_tensor *from)
{
    tn_status status = tn__copy_use(from, false);

    if (status == TN_OK)
        status = tn__copy_use(to, true);
    return status == TN_OK
               ? copy_bytes(from->device, end_of(to, 0), end_of(from, 0), tn__copy_size(from), 0)
               : status;
}

/* Makes later work on the current stream of `later` wait for the work that is already in the
 * current stream of `first`. */
static tn_status in_order(const tn_device *first, const tn_device *later)
{
    tn_event *event;
    tn_status status;

    if ((first->flags & TN_BACKEND_ASYNC) == 0)
        return TN_OK;
    event = tn_event_record(first, NULL, 0);
    status = event != NULL ? tn_event_wait(event, tn__stream_current(later)) : tn_error_last_code();
    tn_event_drop(event);
    return status;
}

/* Copies on the stream of `from`. The copy waits for earlier work on the stream of `to`, which may
 * still use the memory. Later work on that stream waits for the copy. */
static tn_status bytes_peer(const tn_tensor *to, const tn_tensor *from)
{
    tn_status status = tn__copy_use(to, true);

    if (status == TN_OK)
        status = in_order(to->device, from->device);
    if (status == TN_OK)
        status = tn__copy_use(from, false);
    if (status == TN_OK)
        status = copy_bytes(from->device, end_of(to, 0), end_of(from, 0), tn__copy_size(from), 0);
    return status == TN_OK ? in_order(from->device, to->device) : status;
}

/* ---- the operator ---- */

static tn_status kernel_copy(tn_tensor *to, const tn_tensor *from)
{
    return tn__tensor_up.copy(to, (tn_tensor *)(uintptr_t)from);
}

/* Returns a new contiguous tensor with the shape of `tensor`. The caller owns it. */
static tn_tensor *dense_like(const tn_tensor *tensor, tn_dtype dtype, const tn_device *device)
{
    tn_meta meta;

    tn__tensor_meta(tensor, &meta);
    meta.dtype = dtype;
    meta.flags = 0;
    meta.offset = 0;
    return tn__tensor_make(&meta, device);
}

static bool same_strides(const tn_tensor *a, const tn_tensor *b)
{
    for (int32_t i = 0; i < a->view.ndim; i++)
        if (a->view.shape[i] > 1 && a->view.strides[i] != b->view.strides[i])
            return false;
    return true;
}

static tn_status copy_inside(tn_tensor *to, const tn_tensor *from)
{
    tn_tensor *between;
    tn_status status;

    if (tn__tensor_same_view(to, from))
        return TN_OK;
    if (tn__tensor_overlap(to, from)) {
        between = dense_like(from, (tn_dtype)from->dtype, from->device);
        status = between == NULL ? tn_error_last_code() : copy_inside(between, from);
        if (status == TN_OK)
            status = copy_inside(to, between);
        tn_tensor_drop(between);
        return status;
    }
    if (to->dtype == from->dtype && ((to->contiguous && from->contiguous) ||
                                     (same_strides(to, from) && tn__tensor_is_dense(from))))
        return bytes_inside(to, from);
    return kernel_copy(to, from);
}

/* ---- between devices ---- */

/* Copies between devices. Both tensors are contiguous and have the same dtype. */
static tn_status move_bytes(tn_tensor *to, const tn_tensor *from)
{
    uint64_t bytes = tn__copy_size(from), size = bytes < TN__COPY_CHUNK ? bytes : TN__COPY_CHUNK;
    tn_status status = TN_OK;
    char *stage;

    if (to->device->type == from->device->type && to->device->flags & TN_BACKEND_PEER)
        return bytes_peer(to, from);
    if (tn_device_is_host(from->device) && (from->device->flags & TN_BACKEND_ASYNC) == 0)
        return tn__copy_bytes_in(to, 0, host_at(from), bytes, 0);
    if (tn_device_is_host(to->device) && (to->device->flags & TN_BACKEND_ASYNC) == 0)
        return bytes_out(host_at(to), from, 0, bytes, 0);
    stage = tn__memory_alloc_aligned((size_t)size, 64);
    if (stage == NULL)
        return TN_ERR_MEMORY;
    for (uint64_t done = 0; done < bytes && status == TN_OK; done += size) {
        uint64_t part = bytes - done < size ? bytes - done : size;
        status = bytes_out(stage, from, done, part, 0);
        if (status == TN_OK)
            status = tn__copy_bytes_in(to, done, stage, part, 0);
    }
    tn__memory_free_aligned(stage, (size_t)size, 64);
    return status;
}

/* Returns a contiguous tensor with the values of `from`, on the device of `from`. Its dtype is
 * `dtype` if the device can convert. This is `from` itself if nothing has to change. The caller
 * owns the tensor. */
static tn_tensor *prepare(const tn_tensor *from, tn_dtype dtype)
{
    uint64_t mark = tn_error_mark();
    tn_tensor *dense;
    tn_status status;

    if (from->contiguous && from->dtype == dtype)
        return tn_tensor_keep((tn_tensor *)(uintptr_t)from);
    for (;;) {
        dense = dense_like(from, dtype, from->device);
        if (dense == NULL)
            return NULL;
        status = kernel_copy(dense, from);
        if (status == TN_OK) {
            tn_error_restore(mark);
            return dense;
        }
        tn_tensor_drop(dense);
        if (status != TN_ERR_NOT_IMPLEMENTED || from->dtype == dtype)
            return NULL;
        /* The other device can convert the dtype, but the layout must be changed here. */
        dtype = (tn_dtype)from->dtype;
        if (from->contiguous) {
            tn_error_restore(mark);
            return tn_tensor_keep((tn_tensor *)(uintptr_t)from);
        }
    }
}

static tn_status copy_between(tn_tensor *to, const tn_tensor *from)
{
    tn_tensor *source = prepare(from, (tn_dtype)to->dtype), *target;
    tn_status status;

    if (source == NULL)
        return tn_error_last_code();
    if (to->contiguous && to->dtype == source->dtype)
        target = tn_tensor_keep(to);
    else
        target = dense_like(to, (tn_dtype)source->dtype, to->device);
    status = target == NULL ? tn_error_last_code() : move_bytes(target, source);
    if (status == TN_OK && target != to)
        status = kernel_copy(to, target);
    tn_tensor_drop(target);
    tn_tensor_drop(source);
    return status;
}

static tn_status no_values(const tn_tensor *from)
{
    return tn_fail(
        TN_ERR_RUNTIME,
        "device %s: no values to copy; its tensors have shapes and dtypes, but no memory",
        from->device->name);
}

/* Returns whether the device can copy between its memory and pinned memory of the host while the
 * host continues. */
static bool copies_alone(const tn_tensor *on_device, const tn_tensor *on_host)
{
    return tn__pinned_serves(on_host, on_device->device) &&
           on_device->device->flags & TN_BACKEND_ASYNC && on_device->contiguous &&
           on_host->contiguous && on_device->dtype == on_host->dtype;
}

static tn_status copy_async(tn_tensor *to, const tn_tensor *from, bool *done)
{
    bool in = copies_alone(to, from);
    const tn_device *device = in ? to->device : from->device;
    const tn_tensor *host = in ? from : to;
    tn_status status;

    *done = in || copies_alone(from, to);
    if (!*done)
        return TN_OK;
    status = tn__pinned_begin(host, device);
    if (status != TN_OK)
        return status;
    status = in ? tn__copy_bytes_in(to, 0, host_at(from), tn__copy_size(from), TN_COPY_ASYNC)
                : bytes_out(host_at(to), from, 0, tn__copy_size(from), TN_COPY_ASYNC);
    return tn__pinned_end(host, device, status);
}

static tn_status copy(tn_tensor *to, const tn_tensor *from, bool async)
{
    bool done = false;
    tn_status status = TN_OK;

    if (!tn__tensor_ok(to) || !tn__tensor_ok(from))
        return tn__tensor_bad(!tn__tensor_ok(to) ? to : from, "copy");
    if (to->view.ndim != from->view.ndim ||
        memcmp(to->view.shape, from->view.shape, (size_t)to->view.ndim * sizeof *to->view.shape) !=
            0) {
        tn__text a = { 0 }, b = { 0 };
        tn__tensor_text(&a, from);
        tn__tensor_text(&b, to);
        status = tn_fail(TN_ERR_VALUE, "copy: shapes differ, got %s; expected %s",
                         a.failed ? "?" : a.at, b.failed ? "?" : b.at);
        tn__text_free(&a);
        tn__text_free(&b);
        return status;
    }
    status = tn__tensor_writable(to);
    if (status != TN_OK)
        return status;
    if (to->numel > 0 && tn_device_has_memory(to->device)) {
        if (!tn_device_has_memory(from->device))
            return no_values(from);
        status = tn__trace_need_copy(to, from, &done);
        if (async && status == TN_OK && !done)
            status = copy_async(to, from, &done);
        if (status == TN_OK && !done)
            status = to->device == from->device ? copy_inside(to, from) : copy_between(to, from);
        if (status != TN_OK)
            return status;
    }
    tn__tensor_written(to);
    return TN_OK;
}

tn_status tn__copy(tn_tensor *to, const tn_tensor *from)
{
    return copy(to, from, false);
}

tn_status tn_tensor_copy_async(tn_tensor *to, const tn_tensor *from)
{
    return copy(to, from, true);
}

/* ---- memory of the program ---- */

static tn_status check_bytes(const tn_tensor *tensor, const void *data, size_t bytes,
                             const char *what)
{
    tn__text text = { 0 };
    tn_status status;

    if (!tn__tensor_ok(tensor))
        return tn__tensor_bad(tensor, what);
    if (bytes == tn__copy_size(tensor) && (bytes == 0 || data != NULL))
        return TN_OK;
    tn__tensor_text(&text, tensor);
    if (data == NULL && bytes == tn__copy_size(tensor))
        status = tn_fail(TN_ERR_VALUE, "%s: memory: it is NULL; expected %llu bytes", what,
                         (unsigned long long)bytes);
    else
        status = tn_fail(TN_ERR_VALUE,
                         "%s: memory: wrong size, got %llu bytes; expected %llu for %s", what,
                         (unsigned long long)bytes, (unsigned long long)tn__copy_size(tensor),
                         text.failed ? "?" : text.at);
    tn__text_free(&text);
    return status;
}

/* Returns the number of bytes from the first element to the end of the last. */
static uint64_t reach_of(const tn_tensor *tensor)
{
    uint64_t last = 0;

    for (int32_t i = 0; i < tensor->view.ndim; i++)
        last += (uint64_t)(tensor->view.shape[i] - 1) * (uint64_t)tensor->view.strides[i];
    return (last + 1) * tn_dtype_size((tn_dtype)tensor->dtype);
}

/* Copies a strided tensor to host memory. If the device can make it contiguous, only the elements
 * are transferred; otherwise all memory from the first to the last element is. */
static tn_status out_strided(const tn_tensor *tensor, void *data)
{
    tn_tensor *dense = dense_like(tensor, (tn_dtype)tensor->dtype, tensor->device);
    uint64_t mark = tn_error_mark(), reach = reach_of(tensor);
    tn_status status;
    char *stage;

    if (dense == NULL)
        return tn_error_last_code();
    status = kernel_copy(dense, tensor);
    if (status == TN_OK)
        status = bytes_out(data, dense, 0, tn__copy_size(dense), 0);
    tn_tensor_drop(dense);
    if (status != TN_ERR_NOT_IMPLEMENTED)
        return status;
    tn_error_restore(mark);
    stage = tn__memory_alloc_aligned((size_t)reach, 64);
    if (stage == NULL)
        return TN_ERR_MEMORY;
    status = bytes_out(stage, tensor, 0, reach, 0);
    if (status == TN_OK)
        tn__convert_gather(data, stage, tn_dtype_size((tn_dtype)tensor->dtype), tn__shape(tensor),
                           tensor->view.strides);
    tn__memory_free_aligned(stage, (size_t)reach, 64);
    return status;
}

static tn_status in_strided(tn_tensor *tensor, const void *data)
{
    tn_tensor *dense = dense_like(tensor, (tn_dtype)tensor->dtype, tensor->device);
    uint64_t mark = tn_error_mark(), reach = reach_of(tensor);
    tn_status status;
    char *stage;

    if (dense == NULL)
        return tn_error_last_code();
    status = tn__copy_bytes_in(dense, 0, data, tn__copy_size(dense), 0);
    if (status == TN_OK)
        status = kernel_copy(tensor, dense);
    tn_tensor_drop(dense);
    if (status != TN_ERR_NOT_IMPLEMENTED)
        return status;
    tn_error_restore(mark);
    stage = tn__memory_alloc_aligned((size_t)reach, 64);
    if (stage == NULL)
        return TN_ERR_MEMORY;
    status = bytes_out(stage, tensor, 0, reach, 0);
    if (status == TN_OK) {
        tn__convert_scatter(stage, data, tn_dtype_size((tn_dtype)tensor->dtype), tn__shape(tensor),
                            tensor->view.strides);
        status = tn__copy_bytes_in(tensor, 0, stage, reach, 0);
    }
    tn__memory_free_aligned(stage, (size_t)reach, 64);
    return status;
}

/* Returns whether the host may access the memory directly, because no work of the device can be
 * running. */
static bool is_quiet_host(const tn_device *device)
{
    return (device->flags & (TN_BACKEND_HOST_MEMORY | TN_BACKEND_ASYNC)) == TN_BACKEND_HOST_MEMORY;
}

/* A copy between memory of the program and a tensor in memory of the host. */
struct host_copy {
    const tn_tensor *tensor;
    void *out;      /* the memory of the program; NULL in a copy to the tensor */
    const void *in; /* the memory of the program; NULL in a copy from the tensor */
    size_t bytes;
};

static tn_status run_host_copy(void *user)
{
    const struct host_copy *copy = user;
    const tn_tensor *tensor = copy->tensor;
    size_t item = tn_dtype_size((tn_dtype)tensor->dtype);

    if (tensor->contiguous)
        memcpy(copy->out != NULL ? copy->out : host_at(tensor),
               copy->out != NULL ? host_at(tensor) : copy->in, copy->bytes);
    else if (copy->out != NULL)
        tn__convert_gather(copy->out, host_at(tensor), item, tn__shape(tensor),
                           tensor->view.strides);
    else
        tn__convert_scatter(host_at(tensor), copy->in, item, tn__shape(tensor),
                            tensor->view.strides);
    return TN_OK;
}

tn_status tn_tensor_copy_out(const tn_tensor *tensor, void *data, size_t bytes)
{
    tn_status status = check_bytes(tensor, data, bytes, "tn_tensor_copy_out");

    if (status == TN_OK)
        status = tn__capture_refuse_on(tensor->device, "tn_tensor_copy_out",
                                       "it reads from the device");
    if (status == TN_OK)
        status = tn__trace_need(tensor, "tn_tensor_copy_out");
    if (status != TN_OK)
        return status;
    if (bytes == 0)
        return tn__device_usable(tensor->device);
    if (!tn_device_has_memory(tensor->device))
        return no_values(tensor);
    if (is_quiet_host(tensor->device)) {
        status = tn__device_usable(tensor->device);
        if (status == TN_OK)
            status = tn__pinned_wait(tensor->storage);
        struct host_copy copy = { tensor, data, NULL, bytes };
        if (status == TN_OK)
            status = observed(tensor->device, false, true, bytes, run_host_copy, &copy);
        return status;
    }
    return tensor->contiguous ? bytes_out(data, tensor, 0, bytes, 0) : out_strided(tensor, data);
}

tn_status tn_tensor_copy_in(tn_tensor *tensor, const void *data, size_t bytes)
{
    tn_status status = check_bytes(tensor, data, bytes, "tn_tensor_copy_in");

    if (status == TN_OK)
        status = tn__tensor_writable(tensor);
    if (status == TN_OK)
        status = tn__device_usable(tensor->device);
    if (status == TN_OK)
        status = tn__capture_refuse_on(tensor->device, "tn_tensor_copy_in",
                                       "a graph cannot hold memory of the host");
    if (status == TN_OK)
        status = tn__trace_need(tensor, "tn_tensor_copy_in");
    if (status == TN_OK)
        status = tn__pinned_wait(tensor->storage);
    if (status != TN_OK)
        return status;
    if (bytes > 0 && tn_device_has_memory(tensor->device)) {
        struct host_copy copy = { tensor, NULL, data, bytes };
        if (is_quiet_host(tensor->device))
            status = observed(tensor->device, true, false, bytes, run_host_copy, &copy);
        else
            status = tensor->contiguous ? tn__copy_bytes_in(tensor, 0, data, bytes, 0)
                                        : in_strided(tensor, data);
        if (status != TN_OK)
            return status;
    }
    tn__tensor_written(tensor);
    return TN_OK;
}
