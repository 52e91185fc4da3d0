/* SPDX-License-Identifier: MIT
 *
 * The data that kernels prepare: made by `prepare`, counted in the statistics of the device, and
 * released when no work uses it any more. */
#include "core/op/prepared.h"
#include "core/tensor/thread.h"

static tn_status too_many_bytes(const tn__kernel_entry *entry, uint64_t bytes)
{
    return tn_fail(
        TN_ERR_ASSERT,
        "kernel %s: prepare: wrong bytes, got %llu; expected the size of what it allocated on the "
        "device",
        entry->kernel.name, (unsigned long long)bytes);
}

tn__prepared_data *tn__prepared_data_new(const tn__kernel_entry *entry, const tn_device *device,
                                         const tn_call *call)
{
    tn__prepared_data *made = tn_calloc(1, sizeof *made + (size_t)call->n_in * sizeof(uint64_t));
    tn_stream *stream = tn__stream_current(device);
    tn_prepared_data out = { TN_HEAD(tn_prepared_data) };
    tn_call own = *call;
    const char *before;
    tn_status status;

    if (made == NULL || stream == NULL) {
        tn_free(made);
        return NULL;
    }
    own.stream = stream->handle;
    before = tn__error_plugin(entry->id);
    tn__stream_lock(stream);
    status = entry->kernel.prepare(&own, &out);
    tn__stream_unlock(stream);
    status = tn__device_result(device, status, entry->kernel.name);
    tn__error_plugin(before);
    if (status == TN_OK && (device->flags & TN_BACKEND_ASYNC) != 0)
        status = tn_stream_sync(stream); /* other streams will use the data, too */
    if (status == TN_OK && out.bytes > INT64_MAX)
        status = too_many_bytes(entry, out.bytes);
    if (status != TN_OK) {
        tn_error_prefix("%s: prepare of kernel %s: ", call->op, entry->kernel.name);
        tn__streams_drain(device);
        if (out.data != NULL && entry->kernel.release != NULL)
            entry->kernel.release(&entry->kernel, out.data);
        tn_free(made);
        return NULL;
    }
    atomic_store(&made->refs, 1);
    made->entry = entry;
    made->device = device;
    made->data = out.data;
    made->bytes = out.data != NULL ? out.bytes : 0;
    tn__allocator_count_prepared(device, (int64_t)made->bytes);
    return made;
}

void tn__prepared_data_drop(void *held)
{
    tn__prepared_data *data = held;
    const tn_kernel_def *kernel;

    if (data == NULL || atomic_fetch_sub_explicit(&data->refs, 1, memory_order_acq_rel) != 1)
        return;
    kernel = &data->entry->kernel;
    if (data->data != NULL && kernel->release != NULL) {
        uint64_t mark = tn_error_mark();
        const char *before;

        /* Any stream may have used the data last: waits for all. */
        tn__streams_drain(data->device);
        before = tn__error_plugin(data->entry->id);
        kernel->release(kernel, data->data);
        tn__error_plugin(before);
        tn_error_restore(mark);
    }
    tn__allocator_count_prepared(data->device, -(int64_t)data->bytes);
    tn_free(data);
}

void *tn__prepared_data_of(const tn__prepared_data *data, uint64_t *bytes)
{
    *bytes += data->bytes;
    return data->data;
}
