/* SPDX-License-Identifier: MIT
 *
 * Events: of Tenon's streams, and of the program. If a device has finished its work when a call
 * returns, its events are done from the start. */
#include "core/tensor/capture.h"
#include "core/tensor/device.h"
#include "core/tensor/thread.h"

#include <math.h>
#include <time.h>

struct tn_event {
    const tn_device *device;
    tn_stream *stream; /* the stream on which the event was recorded */
    void *handle;      /* the backend's event; NULL: done from the start */
    bool timing;
    struct timespec at; /* time of recording, for timing without a handle */
};

/* ---- making ---- */

static tn_status check_flags(const tn_device *device, bool queued, uint32_t flags,
                             const char *function)
{
    if (flags & ~(uint32_t)TN_EVENT_TIMING)
        return tn_fail(TN_ERR_VALUE, "%s: flags: unknown, got 0x%x; expected bits of 0x%x",
                       function, flags, TN_EVENT_TIMING);
    if (flags & TN_EVENT_TIMING && queued && tn__backend(device)->event_elapsed == NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: device %s does not time its events; expected no TN_EVENT_TIMING",
                       function, device->name);
    return TN_OK;
}

static tn_event *event_object(const tn_device *device, tn_stream *stream, uint32_t flags)
{
    tn_event *event = tn_calloc(1, sizeof *event);

    if (event == NULL)
        return NULL;
    event->device = device;
    event->stream = stream;
    event->timing = (flags & TN_EVENT_TIMING) != 0;
    atomic_fetch_add((_Atomic int32_t *)(uintptr_t)&device->handles, 1);
    return event;
}

/* Copies the program's arguments, whose struct may be an older and shorter version. */
static tn_status event_args(const tn_event_args *asked, tn_event_args *args)
{
    static const tn_event_args usual = { TN_HEAD(tn_event_args) };

    if (!tn__given(asked != NULL, "tn_event_new: args"))
        return TN_ERR_VALUE;
    if (asked->head.kind != TN_KIND_tn_event_args || asked->head.size < sizeof asked->head ||
        asked->head.size % _Alignof(tn_event_args) != 0) /* no struct ends inside a member */
        return tn_fail(TN_ERR_VALUE,
                       "tn_event_new: args.head: wrong kind or size, got kind %u of %u bytes; "
                       "expected TN_HEAD(tn_event_args)",
                       asked->head.kind, asked->head.size);
    *args = usual;
    memcpy(args, asked, asked->head.size < sizeof *args ? asked->head.size : sizeof *args);
    args->head = usual.head;
    if (args->reserved != 0)
        return tn_fail(TN_ERR_VERSION,
                       "tn_event_new: args.reserved: reserved in Tenon %s, got %u; expected 0",
                       tn_version(), args->reserved);
    return args->external != NULL
               ? TN_OK
               : tn_fail(TN_ERR_VALUE, "tn_event_new: external: it is NULL; expected an "
                                       "event that was recorded");
}

tn_event *tn_event_new(const tn_device *device, const tn_event_args *wanted)
{
    tn_event_args args;
    tn_event *event;

    if (tn__device_usable(device) != TN_OK || event_args(wanted, &args) != TN_OK ||
        check_flags(device, true, args.flags, "tn_event_new") != TN_OK)
        return NULL;
    if (tn__backend(device)->native_event == NULL) {
        tn_fail(TN_ERR_NOT_IMPLEMENTED,
                "tn_event_new: external: device %s does not accept events of the program",
                device->name);
        return NULL;
    }
    event = event_object(device, device->stream, args.flags);
    if (event != NULL && tn__device_event(device, &args, &event->handle) != TN_OK) {
        event->handle = NULL;
        tn_event_drop(event);
        return NULL;
    }
    return event;
}

void *tn_event_native(tn_event *event)
{
    const tn_backend_def *b;

    if (event == NULL) {
        tn_fail(TN_ERR_VALUE, "tn_event_native: event: it is NULL; expected an event");
        return NULL;
    }
    b = tn__backend(event->device);
    if (event->handle == NULL || b->native_event == NULL ||
        tn__device_usable(event->device) != TN_OK)
        return NULL;
    return b->native_event(event->device->handle, event->handle);
}

tn_event *tn_event_record(const tn_device *device, tn_stream *stream, uint32_t flags)
{
    const tn_event_args args = { TN_HEAD(tn_event_args), .flags = flags };
    const tn_backend_def *b;
    tn_event *event;
    tn_status status;

    if (tn__device_usable(device) != TN_OK)
        return NULL;
    if (stream == NULL)
        stream = tn__stream_current(device);
    if (stream->device != device) {
        tn_fail(TN_ERR_VALUE, "tn_event_record: stream: wrong device, got %s; expected %s",
                stream->device->name, device->name);
        return NULL;
    }
    b = tn__backend(device);
    if (check_flags(device, stream->handle != NULL, flags, "tn_event_record") != TN_OK)
        return NULL;
    if (tn__capture_refuse(stream, "tn_event_record", "an event in a graph cannot be waited for") !=
        TN_OK)
        return NULL;
    event = event_object(device, stream, flags);
    if (event == NULL)
        return NULL;
    if (stream->handle == NULL) {
        clock_gettime(CLOCK_MONOTONIC, &event->at);
        return event;
    }
    status = tn__device_event(device, &args, &event->handle);
    if (status == TN_OK) {
        tn__stream_lock(stream);
        status = tn__device_result(
            device, b->event_record(device->handle, event->handle, stream->handle), "event_record");
        tn__stream_unlock(stream);
        if (status == TN_OK)
            return event;
        b->event_drop(device->handle, event->handle);
        event->handle = NULL;
    }
    tn_event_drop(event);
    return NULL;
}

/* ---- waiting ---- */

/* Returns whether the streams of `device` can wait for events of `other`. They can within one
 * backend that copies between its devices (TN_BACKEND_PEER). */
static bool knows_events_of(const tn_device *device, const tn_device *other)
{
    return device == other || (device->type == other->type && device->flags & TN_BACKEND_PEER);
}

tn_status tn_event_wait(tn_event *event, tn_stream *stream)
{
    tn_status status;

    if (event == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_event_wait: event: it is NULL; expected an event");
    if (event->handle == NULL)
        return TN_OK;
    if (stream == NULL)
        stream = tn__stream_current(event->device);
    status = tn__capture_refuse(stream, "tn_event_wait",
                                "a graph records the work of one stream only");
    if (status != TN_OK)
        return status;
    if (stream->handle == NULL || !knows_events_of(stream->device, event->device))
        return tn_event_sync(event); /* the stream cannot wait: the host does */
    status = tn__device_usable(event->device);
    if (status == TN_OK)
        status = tn__device_usable(stream->device);
    if (status != TN_OK)
        return status;
    tn__stream_lock(stream);
    status = tn__backend(stream->device)
                 ->event_wait(stream->device->handle, event->handle, stream->handle);
    tn__stream_unlock(stream);
    return tn__device_result(stream->device, status, "event_wait");
}

bool tn_event_done(tn_event *event)
{
    bool done = false;
    const tn_device *device;

    if (event == NULL) {
        tn_fail(TN_ERR_VALUE, "tn_event_done: event: it is NULL; expected an event");
        return false;
    }
    device = event->device;
    if (event->handle == NULL)
        return true;
    if (tn__capture_refuse(event->stream, "tn_event_done", "it queries the device") != TN_OK ||
        tn__device_usable(device) != TN_OK ||
        tn__device_result(device,
                          tn__backend(device)->event_query(device->handle, event->handle, &done),
                          "event_query") != TN_OK)
        return false;
    return done;
}

tn_status tn_event_sync(tn_event *event)
{
    tn_status status;

    if (event == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_event_sync: event: it is NULL; expected an event");
    if (event->handle == NULL)
        return TN_OK;
    status = tn__capture_refuse(event->stream, "tn_event_sync", "it waits for the device");
    if (status == TN_OK)
        status = tn__device_usable(event->device);
    if (status != TN_OK)
        return status;
    return tn__device_result(
        event->device, tn__backend(event->device)->event_sync(event->device->handle, event->handle),
        "event_sync");
}

static tn_status elapsed(tn_event *from, tn_event *to, double *milliseconds)
{
    const tn_device *device;
    tn_status status;

    if (from == NULL || to == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_event_elapsed: %s: it is NULL; expected an event",
                       from == NULL ? "from" : "to");
    if (!from->timing || !to->timing)
        return tn_fail(
            TN_ERR_VALUE,
            "tn_event_elapsed: %s: recorded without TN_EVENT_TIMING; expected an event recorded "
            "with it",
            from->timing ? "to" : "from");
    device = from->device;
    if (to->device != device)
        return tn_fail(TN_ERR_VALUE, "tn_event_elapsed: to: wrong device, got %s; expected %s",
                       to->device->name, device->name);
    if (from->handle == NULL || to->handle == NULL) {
        *milliseconds = (double)(to->at.tv_sec - from->at.tv_sec) * 1e3 +
                        (double)(to->at.tv_nsec - from->at.tv_nsec) / 1e6;
        return TN_OK;
    }
    status = tn_event_sync(from);
    if (status == TN_OK)
        status = tn_event_sync(to);
    if (status != TN_OK)
        return status;
    return tn__device_result(
        device,
        tn__backend(device)->event_elapsed(device->handle, from->handle, to->handle, milliseconds),
        "event_elapsed");
}

double tn_event_elapsed(tn_event *from, tn_event *to)
{
    double milliseconds = 0;

    return elapsed(from, to, &milliseconds) == TN_OK ? milliseconds : (double)NAN;
}

void tn_event_drop(tn_event *event)
{
    if (event == NULL)
        return;
    if (event->handle != NULL)
        tn__backend(event->device)->event_drop(event->device->handle, event->handle);
    atomic_fetch_sub((_Atomic int32_t *)(uintptr_t)&event->device->handles, 1);
    tn_free(event);
}
