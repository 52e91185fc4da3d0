/* SPDX-License-Identifier: MIT
 *
 * Streams and events. If a device has finished its work when a call returns, it needs no streams of
 * the backend, and its events are done from the start. A stream's struct is not freed before its
 * device closes, because memory that was last used on the stream may point to it. */
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

static const tn_stream_args usual_stream = { TN_HEAD(tn_stream_args) };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the lists of streams */
static _Atomic uint64_t next_id = 1;

/* ---- making ---- */

static tn_status open_stream(tn_device *device, tn_stream *stream, const tn_stream_args *args)
{
    const tn_backend_def *b = tn__backend(device);
    /* Recursive, because a kernel that makes its output may have to wait for its own stream. */
    pthread_mutexattr_t recursive;
    void *handle = NULL;
    tn_status status = TN_OK;

    if (stream->device == NULL) /* a struct that is used again stays with its device */
        stream->device = device;
    if (b->stream_new != NULL) {
        if (stream->lock == NULL) {
            stream->lock = tn_malloc(sizeof *stream->lock);
            if (stream->lock == NULL)
                return TN_ERR_MEMORY;
            pthread_mutexattr_init(&recursive);
            pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
            pthread_mutex_init(stream->lock, &recursive);
            pthread_mutexattr_destroy(&recursive);
        }
        status = tn__device_result(device, b->stream_new(device->handle, args, &handle),
                                   "stream_new");
    }
    if (status == TN_OK) {
        atomic_store(&stream->id, atomic_fetch_add(&next_id, 1));
        tn__stream_lock(stream);
        if (handle != NULL)
            stream->handle = handle;
        tn__stream_unlock(stream);
    }
    return status;
}

static void free_stream(tn_stream *stream)
{
    if (stream->lock != NULL) {
        pthread_mutex_destroy(stream->lock);
        tn_free(stream->lock);
    }
    tn_free(stream->deferred_text);
    tn_free(stream);
}

tn_status tn__streams_open(tn_device *device)
{
    tn_stream *stream = tn_calloc(1, sizeof *stream);
    tn_status status;

    if (stream == NULL)
        return TN_ERR_MEMORY;
    status = open_stream(device, stream, &usual_stream);
    if (status != TN_OK) {
        free_stream(stream);
        return status;
    }
    device->stream = stream;
    return TN_OK;
}

void tn__streams_close(tn_device *device)
{
    tn_stream *stream = device->stream, *next;

    if (stream != NULL)
        stream->next = device->streams;
    for (; stream != NULL; stream = next) {
        next = stream->next;
        if (stream->handle != NULL)
            tn__backend(device)->stream_drop(device->handle, stream->handle);
        free_stream(stream);
    }
    device->stream = device->streams = NULL;
}

/* Copies the program's arguments, whose struct may be an older and shorter version, and checks that
 * the device supports them. */
static tn_status stream_args(const tn_device *device, const tn_stream_args *asked,
                             tn_stream_args *args)
{
    tn_device_info info;
    tn_status status;

    *args = usual_stream;
    if (asked == NULL)
        return TN_OK;
    if (asked->head.kind != TN_KIND_tn_stream_args || asked->head.size < sizeof asked->head)
        return tn_fail(TN_ERR_VALUE, "tn_stream_new: args.head: wrong kind or size; "
                                     "expected TN_HEAD(tn_stream_args)");
    memcpy(args, asked, asked->head.size < sizeof *args ? asked->head.size : sizeof *args);
    args->head = usual_stream.head;
    if (args->reserved != 0)
        return tn_fail(TN_ERR_VERSION,
                       "tn_stream_new: args.reserved: reserved in Tenon %s, got %u; expected 0",
                       tn_version(), args->reserved);
    if (args->external != NULL && tn__backend(device)->native_stream == NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "tn_stream_new: external: device %s does not accept streams of the program",
                       device->name);
    status = tn__device_info(device, &info);
    if (status == TN_OK &&
        (args->priority < info.priority_highest || args->priority > info.priority_lowest))
        return tn_fail(TN_ERR_VALUE,
                       "tn_stream_new: priority: out of range, got %d; expected %d to %d on %s",
                       (int)args->priority, (int)info.priority_highest, (int)info.priority_lowest,
                       device->name);
    return status;
}

tn_stream *tn_stream_new(const tn_device *asked, const tn_stream_args *wanted)
{
    tn_device *device = (tn_device *)(uintptr_t)asked;
    tn_stream_args args;
    tn_stream *stream;
    bool again = false;

    if (tn__device_usable(device) != TN_OK || stream_args(device, wanted, &args) != TN_OK)
        return NULL;
    pthread_mutex_lock(&lock);
    for (stream = device->streams; stream != NULL && !stream->ended; stream = stream->next)
        ;
    if (stream != NULL) {
        stream->ended = false; /* no other thread takes this struct now */
        again = true;
    }
    pthread_mutex_unlock(&lock);
    if (stream == NULL && (stream = tn_calloc(1, sizeof *stream)) == NULL)
        return NULL;
    if (open_stream(device, stream, &args) != TN_OK) {
        if (again) {
            pthread_mutex_lock(&lock);
            stream->ended = true;
            pthread_mutex_unlock(&lock);
        } else {
            free_stream(stream);
        }
        return NULL;
    }
    if (!again) {
        pthread_mutex_lock(&lock);
        stream->next = device->streams;
        device->streams = stream;
        pthread_mutex_unlock(&lock);
    }
    atomic_fetch_add(&device->handles, 1);
    return stream;
}

void tn_stream_drop(tn_stream *stream)
{
    const tn_device *device;

    if (stream == NULL)
        return;
    device = stream->device;
    tn__capture_abandon(stream);
    tn__stream_lock(stream);
    if (stream->handle != NULL) {
        /* In the backend, a stream of a lost device or of the parent process is left alone. */
        if (tn__device_usable(device) == TN_OK) {
            tn_stream_sync(stream);
            tn__backend(device)->stream_drop(device->handle, stream->handle);
        }
        stream->handle = NULL;
    }
    tn__stream_unlock(stream);
    pthread_mutex_lock(&lock);
    stream->ended = true;
    pthread_mutex_unlock(&lock);
    atomic_fetch_sub((_Atomic int32_t *)(uintptr_t)&device->handles, 1);
}

/* ---- the stream of a thread ---- */

/* Number of calls of tn_stream_begin that ran out of memory, or that were made inside such a call.
 * The matching calls of tn_stream_end must not end an outer stream. */
static _Thread_local int64_t missed;

tn_status tn_stream_begin(tn_stream *stream)
{
    uint64_t before = tn__error_count();
    tn__thread *thread = tn__thread_get();

    if (thread == NULL || missed > 0 ||
        !tn__vector_room(&thread->streams, &thread->streams_capacity, thread->n_streams + 1,
                         sizeof *thread->streams)) {
        if (thread != NULL && missed > 0)
            tn_fail(
                TN_ERR_MEMORY,
                "tn_stream_begin: the enclosing call ran out of memory; the previous stream stays "
                "in use");
        missed++;
        if (tn__error_count() == before)
            tn_fail(TN_ERR_MEMORY, "tn_stream_begin: out of memory; the previous stream stays in "
                                   "use");
        return TN_ERR_MEMORY;
    }
    thread->streams[thread->n_streams++] = stream;
    if (stream == NULL)
        return tn_fail(TN_ERR_VALUE,
                       "tn_stream_begin: stream: it is NULL; the previous stream stays in use");
    return TN_OK;
}

void tn_stream_end(void)
{
    tn__thread *thread = tn__thread_here;

    if (missed > 0)
        missed--;
    else if (thread == NULL || thread->n_streams == 0)
        tn_fail(TN_ERR_RUNTIME, "tn_stream_end: no tn_stream_begin in this thread");
    else
        thread->n_streams--;
}

tn_stream *tn__stream_begun(const tn_device *device)
{
    const tn__thread *thread = tn__thread_here;

    for (int64_t i = thread->n_streams - 1; i >= 0; i--)
        if (thread->streams[i] != NULL && thread->streams[i]->device == device)
            return thread->streams[i];
    return device->stream;
}

tn_stream *tn_stream_current(const tn_device *device)
{
    return tn__device_usable(device) == TN_OK ? tn__stream_current(device) : NULL;
}

void *tn_stream_native(tn_stream *stream)
{
    const tn_backend_def *b;

    if (stream == NULL) {
        tn_fail(TN_ERR_VALUE, "tn_stream_native: stream: it is NULL");
        return NULL;
    }
    b = tn__backend(stream->device);
    if (stream->handle == NULL || b->native_stream == NULL ||
        tn__device_usable(stream->device) != TN_OK)
        return NULL;
    return b->native_stream(stream->device->handle, stream->handle);
}

/* ---- waiting ---- */

/* Returns the failure that was found while no call could return it, and clears it. The caller holds
 * the lock of the stream. */
static tn_status take_deferred(tn_stream *stream)
{
    tn_status status = stream->deferred;

    if (status == TN_OK)
        return TN_OK;
    stream->deferred = TN_OK;
    tn_fail(status, "%s",
            stream->deferred_text != NULL ? stream->deferred_text : "work on the stream failed");
    tn_free(stream->deferred_text);
    stream->deferred_text = NULL;
    return status;
}

tn_status tn_stream_sync(tn_stream *stream)
{
    const tn_device *device;
    tn_status status, late;

    if (stream == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_stream_sync: stream: it is NULL");
    device = stream->device;
    status = tn__device_usable(device);
    if (status == TN_OK)
        status = tn__capture_refuse(stream, "tn_stream_sync", "it waits for the device");
    if (status != TN_OK)
        return status;
    tn__stream_lock(stream);
    late = take_deferred(stream);
    status = stream->handle == NULL
                 ? TN_OK
                 : tn__backend(device)->stream_sync(device->handle, stream->handle);
    tn__stream_unlock(stream);
    status = tn__device_result(device, status, "stream_sync");
    return late != TN_OK ? late : status;
}

bool tn__stream_drain(tn_stream *stream)
{
    const tn_device *device = stream->device;
    struct timespec until;
    uint64_t mark;
    tn_status status;

    if (stream->lock == NULL)
        return true;
    if (tn__capture_of(stream) != NULL)
        return false;
    /* Waits 100 ms at most: the caller may be inside a kernel that holds another stream, and the
     * owner of this stream may be waiting for that other stream. */
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100 * 1000 * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_mutex_timedlock(stream->lock, &until) != 0)
        return false;
    if (stream->handle != NULL) {
        mark = tn_error_mark();
        status = tn__device_result(device,
                                   tn__backend(device)->stream_sync(device->handle, stream->handle),
                                   "stream_sync");
        if (status != TN_OK && stream->deferred == TN_OK) {
            stream->deferred = status;
            stream->deferred_text = tn_strdup(tn_error_last()->message);
        }
        tn_error_restore(mark);
    }
    tn__stream_unlock(stream);
    return true;
}

tn_stream *tn__streams_first(const tn_device *device)
{
    tn_stream *stream;

    pthread_mutex_lock(&lock);
    stream = device->streams;
    pthread_mutex_unlock(&lock);
    return stream;
}

void tn__streams_drain(const tn_device *device)
{
    if ((device->flags & TN_BACKEND_ASYNC) == 0 || atomic_load(&device->lost) != 0)
        return;
    tn__stream_drain(device->stream);
    for (tn_stream *stream = tn__streams_first(device); stream != NULL; stream = stream->next)
        tn__stream_drain(stream);
}

tn_status tn__streams_sync(const tn_device *device)
{
    tn_status first = TN_OK, status;
    tn_stream *stream;

    if (tn__backend(device)->stream_new == NULL)
        return TN_OK;
    first = tn_stream_sync(device->stream);
    for (stream = tn__streams_first(device); stream != NULL; stream = stream->next) {
        status = tn_stream_sync(stream);
        if (first == TN_OK)
            first = status;
    }
    return first;
}

tn_status tn_device_sync(const tn_device *device)
{
    tn_status status = tn__device_usable(device);

    return status == TN_OK ? tn__streams_sync(device) : status;
}

/* ---- events ---- */

tn_event *tn_event_record(const tn_device *device, tn_stream *stream, uint32_t flags)
{
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
    if (flags & ~(uint32_t)TN_EVENT_TIMING) {
        tn_fail(TN_ERR_VALUE, "tn_event_record: flags: unknown, got 0x%x; expected bits of 0x%x",
                flags, TN_EVENT_TIMING);
        return NULL;
    }
    if (flags & TN_EVENT_TIMING && stream->handle != NULL && b->event_elapsed == NULL) {
        tn_fail(TN_ERR_NOT_IMPLEMENTED, "tn_event_record: device %s does not time its events",
                device->name);
        return NULL;
    }
    if (tn__capture_refuse(stream, "tn_event_record", "an event in a graph cannot be waited for") !=
        TN_OK)
        return NULL;
    event = tn_calloc(1, sizeof *event);
    if (event == NULL)
        return NULL;
    event->device = device;
    event->stream = stream;
    event->timing = (flags & TN_EVENT_TIMING) != 0;
    atomic_fetch_add((_Atomic int32_t *)(uintptr_t)&device->handles, 1);
    if (stream->handle == NULL) {
        clock_gettime(CLOCK_MONOTONIC, &event->at);
        return event;
    }
    status = tn__device_event(device, flags, &event->handle);
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
        return tn_fail(TN_ERR_VALUE, "tn_event_wait: event: it is NULL");
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
        tn_fail(TN_ERR_VALUE, "tn_event_done: event: it is NULL");
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
        return tn_fail(TN_ERR_VALUE, "tn_event_sync: event: it is NULL");
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
        return tn_fail(TN_ERR_VALUE, "tn_event_elapsed: %s: it is NULL",
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
