/* SPDX-License-Identifier: MIT
 *
 * Streams. If a device has finished its work when a call returns, it needs no streams of the
 * backend. A stream's struct is not freed before its device closes, because memory that was last
 * used on the stream may point to it. */
#include "core/tensor/capture.h"
#include "core/tensor/device.h"
#include "core/tensor/thread.h"

#include <time.h>

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
    if (asked->head.kind != TN_KIND_tn_stream_args || asked->head.size < sizeof asked->head ||
        asked->head.size % _Alignof(tn_stream_args) != 0) /* no struct ends inside a member */
        return tn_fail(TN_ERR_VALUE,
                       "tn_stream_new: args.head: wrong kind or size, got kind %u of %u bytes; "
                       "expected TN_HEAD(tn_stream_args)",
                       asked->head.kind, asked->head.size);
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
        tn_fail(TN_ERR_VALUE, "tn_stream_native: stream: it is NULL; expected a stream");
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
        return tn_fail(TN_ERR_VALUE, "tn_stream_sync: stream: it is NULL; expected a stream");
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
