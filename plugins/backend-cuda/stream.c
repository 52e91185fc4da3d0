/* SPDX-License-Identifier: MIT
 *
 * Streams and events. */
#include "cuda.h"

#include <string.h>

void *cuda_stream_native(void *stream)
{
    return ((struct cuda_stream *)stream)->stream;
}

void cuda_stream_drop(void *handle, void *stream_)
{
    struct cuda_device *device = handle;
    struct cuda_stream *stream = stream_;

    if (!stream)
        return;
    if (cuda_enter_to_free(device)) {
        if (stream->stream) {
            cu.cuStreamSynchronize(stream->stream);
            if (!stream->external)
                cu.cuStreamDestroy(stream->stream);
        }
        for (int i = 0; i < CUDA_STAGES; i++) {
            if (stream->stages[i].done)
                cu.cuEventDestroy(stream->stages[i].done);
            if (stream->stages[i].at)
                cu.cuMemFreeHost(stream->stages[i].at);
        }
        if (stream->error)
            cu.cuMemFreeHost(stream->error);
        cuda_leave();
    }
    tn_free(stream);
}

tn_status cuda_stream_new(void *handle, const tn_stream_args *args, void **out)
{
    struct cuda_device *device = handle;
    struct cuda_stream *stream;
    void *record = NULL;
    CUresult error = CUDA_SUCCESS;
    tn_status status = cuda_enter(device);

    if (status)
        return status;
    stream = tn_calloc(1, sizeof *stream);
    if (!stream) {
        cuda_leave();
        return TN_ERR_MEMORY;
    }
    stream->device = device;
    stream->external = args->external != NULL;
    if (stream->external)
        stream->stream = args->external;
    else
        error = cu.cuStreamCreateWithPriority(&stream->stream, CU_STREAM_NON_BLOCKING,
                                              args->priority);
    if (error == CUDA_SUCCESS)
        error = cu.cuMemHostAlloc(&record, sizeof *stream->error,
                                  CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (error == CUDA_SUCCESS) {
        stream->error = record;
        memset(record, 0, sizeof *stream->error);
        error = cu.cuMemHostGetDevicePointer(&stream->error_at, record, 0);
    }
    cuda_leave();
    if (error != CUDA_SUCCESS) {
        status = cuda_fail(device, error, "making a stream");
        cuda_stream_drop(device, stream);
        return status;
    }
    *out = stream;
    return TN_OK;
}

tn_status cuda_stream_wait(struct cuda_stream *stream)
{
    CUresult error = cu.cuStreamSynchronize(stream->stream);
    gpu_error record;

    for (int i = 0; i < CUDA_STAGES; i++)
        stream->stages[i].busy = false;
    if (error != CUDA_SUCCESS)
        return cuda_fail(stream->device, error, "waiting for the work of a stream");
    if (!stream->may_fail)
        return TN_OK;
    stream->may_fail = false;
    record = *stream->error;
    if (!record.taken)
        return TN_OK;
    memset(stream->error, 0, sizeof *stream->error);
    return gpu_error_fail(&record, stream->device->name);
}

tn_status cuda_stream_sync(void *handle, void *stream)
{
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    status = cuda_stream_wait(stream);
    cuda_leave();
    return status;
}

/* ---- events ---------------------------------------------------------------------------------- */

tn_status cuda_event_new(void *handle, const tn_event_args *args, void **out)
{
    struct cuda_event *event;
    CUresult error = CUDA_SUCCESS;
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    event = tn_calloc(1, sizeof *event);
    if (!event) {
        cuda_leave();
        return TN_ERR_MEMORY;
    }
    event->external = args->external != NULL;
    if (event->external)
        event->event = args->external;
    else
        error = cu.cuEventCreate(&event->event,
                                 args->flags & TN_EVENT_TIMING ? 0 : CU_EVENT_DISABLE_TIMING);
    cuda_leave();
    if (error != CUDA_SUCCESS) {
        tn_free(event);
        return cuda_fail(handle, error, "creating an event");
    }
    *out = event;
    return TN_OK;
}

void cuda_event_drop(void *handle, void *event_)
{
    struct cuda_event *event = event_;

    if (event && !event->external && cuda_enter_to_free(handle)) {
        cu.cuEventDestroy(event->event);
        cuda_leave();
    }
    tn_free(event);
}

void *cuda_event_native(void *handle, void *event)
{
    (void)handle;
    return ((struct cuda_event *)event)->event;
}

tn_status cuda_event_record(void *handle, void *event, void *stream)
{
    CUresult error;
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    error = cu.cuEventRecord(cuda_event_native(handle, event), cuda_stream_native(stream));
    cuda_leave();
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(handle, error, "recording an event");
}

tn_status cuda_event_wait(void *handle, void *event, void *stream)
{
    CUresult error;
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    error = cu.cuStreamWaitEvent(cuda_stream_native(stream), cuda_event_native(handle, event), 0);
    cuda_leave();
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(handle, error, "waiting for an event");
}

tn_status cuda_event_sync(void *handle, void *event)
{
    CUresult error;
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    error = cu.cuEventSynchronize(cuda_event_native(handle, event));
    cuda_leave();
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(handle, error, "waiting for an event");
}

tn_status cuda_event_query(void *handle, void *event, bool *done)
{
    CUresult error;
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    error = cu.cuEventQuery(cuda_event_native(handle, event));
    cuda_leave();
    if (error != CUDA_SUCCESS && error != CUDA_ERROR_NOT_READY)
        return cuda_fail(handle, error, "querying an event");
    *done = error == CUDA_SUCCESS;
    return TN_OK;
}

tn_status cuda_event_elapsed(void *handle, void *from, void *to, double *milliseconds)
{
    float time = 0;
    CUresult error;
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    error = cu.cuEventElapsedTime(&time, cuda_event_native(handle, from),
                                  cuda_event_native(handle, to));
    cuda_leave();
    *milliseconds = time;
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(handle, error, "timing events");
}
