/* SPDX-License-Identifier: MIT
 *
 * Events: markers in a queue, or events of the program. */
#include "opencl.h"

#include <unistd.h>

struct opencl_event {
    cl_event event; /* NULL: the event was never recorded and counts as done */
};

tn_status opencl_event_new(void *handle, const tn_event_args *args, void **out)
{
    struct opencl_device *device = handle;
    struct opencl_event *event = tn_calloc(1, sizeof *event);
    cl_int error = CL_SUCCESS;

    if (!event)
        return TN_ERR_MEMORY;
    event->event = args->external;
    if (event->event)
        error = cl.clRetainEvent(event->event);
    if (error != CL_SUCCESS) {
        tn_free(event);
        return cl_api_fail(error, "using an event of the program", device->name);
    }
    *out = event;
    return TN_OK;
}

void opencl_event_drop(void *handle, void *event_)
{
    struct opencl_device *device = handle;
    struct opencl_event *event = event_;

    if (event && event->event && device->pid == (int64_t)getpid())
        cl.clReleaseEvent(event->event);
    tn_free(event);
}

tn_status opencl_event_record(void *handle, void *event_, void *stream_)
{
    struct opencl_device *device = handle;
    struct opencl_event *event = event_;
    struct opencl_stream *stream = stream_;
    cl_event marker = NULL;
    cl_int error = cl.clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &marker);

    /* The queue is flushed so that the marker is reached even if nobody waits for this queue:
     * another queue may wait for the marker, or the host may query it. */
    if (error == CL_SUCCESS)
        error = cl.clFlush(stream->queue);
    if (error != CL_SUCCESS || !marker) {
        if (marker)
            cl.clReleaseEvent(marker);
        return cl_api_fail(error, "recording an event", device->name);
    }
    stream->since_flush = 0;
    if (event->event)
        cl.clReleaseEvent(event->event);
    event->event = marker;
    return TN_OK;
}

tn_status opencl_event_wait(void *handle, void *event_, void *stream_)
{
    struct opencl_device *device = handle;
    struct opencl_event *event = event_;
    struct opencl_stream *stream = stream_;
    cl_int error = CL_SUCCESS;

    if (event->event)
        error = cl.clEnqueueBarrierWithWaitList(stream->queue, 1, &event->event, NULL);
    return error == CL_SUCCESS ? TN_OK : cl_api_fail(error, "waiting for an event", device->name);
}

tn_status opencl_event_sync(void *handle, void *event_)
{
    struct opencl_device *device = handle;
    struct opencl_event *event = event_;
    cl_int error = CL_SUCCESS;

    if (event->event)
        error = cl.clWaitForEvents(1, &event->event);
    return error == CL_SUCCESS ? TN_OK : cl_api_fail(error, "waiting for an event", device->name);
}

tn_status opencl_event_query(void *handle, void *event_, bool *done)
{
    struct opencl_device *device = handle;
    struct opencl_event *event = event_;
    cl_int state = CL_COMPLETE, error = CL_SUCCESS;

    if (event->event)
        error = cl.clGetEventInfo(event->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
                                  &state, NULL);
    if (error == CL_SUCCESS && state < 0)
        error = state;
    if (error != CL_SUCCESS)
        return cl_api_fail(error, "querying an event", device->name);
    *done = state == CL_COMPLETE;
    return TN_OK;
}

void *opencl_event_native(void *handle, void *event)
{
    (void)handle;
    return ((struct opencl_event *)event)->event;
}
