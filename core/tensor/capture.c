/* SPDX-License-Identifier: MIT
 *
 * Captures of streams: begin and end, what is refused in between, and what the recorded graph
 * holds. The thread that begins a capture ends it; other threads may not use the stream. Recorded
 * work refers to memory by its address, so the graph holds every storage that its work uses. Memory
 * that was allocated and freed during the capture is reused only for later work of the same
 * capture. */
#include "core/tensor/capture.h"
#include "core/tensor/allocator.h"
#include "core/tensor/capture_graph.h"

/* The capture of this thread, until tn_stream_capture_end. */
static _Thread_local tn_device_graph *recording;

/* Returns the capture of this thread; NULL if there is none, or if another thread has dropped the
 * stream that was recorded. */
static tn_device_graph *recording_here(void)
{
    if (tn__unlikely(recording != NULL) && atomic_load(&recording->abandoned)) {
        tn__capture_graph_free(recording);
        recording = NULL;
    }
    return recording;
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Ends the backend's capture, and drops what it recorded. */
static void end_backend(tn_device_graph *graph)
{
    const tn_backend_def *b = tn__backend(graph->device);
    tn_capture_args args = { TN_HEAD(tn_capture_args) };
    uint64_t mark = tn_error_mark();

    if (!graph->active)
        return;
    graph->active = false;
    tn__stream_lock(graph->stream);
    args.stream = graph->stream->handle;
    (void)tn__device_result(graph->device, b->capture_end(graph->device->handle, &args),
                            "capture_end");
    if (args.graph != NULL)
        b->capture_drop(graph->device->handle, &args);
    tn__stream_unlock(graph->stream);
    tn_error_restore(mark);
}

/* Makes the capture fail. The first failure is kept until tn_stream_capture_end. */
static tn_status fail_capture(tn_device_graph *graph, tn_status status)
{
    if (graph->failed != TN_OK)
        return status;
    graph->failed = status;
    graph->failed_text = tn_strdup(tn_error_last()->message);
    end_backend(graph);
    return status;
}

tn_status tn__capture_result(tn_stream *stream, tn_status status)
{
    tn_device_graph *graph = tn__capture_of(stream);

    return tn__likely(status == TN_OK || graph == NULL || graph != recording)
               ? status
               : fail_capture(graph, status);
}

tn_status tn__capture_work(tn_stream *stream, const char *what)
{
    tn_device_graph *graph = tn__capture_of(stream);

    if (graph == NULL)
        return TN_OK;
    if (graph != recording)
        return tn_fail(
            TN_ERR_RUNTIME,
            "%s: the stream of %s records the work of another thread; use another stream "
            "until tn_stream_capture_end",
            what, graph->device->name);
    if (graph->failed != TN_OK)
        return tn_fail(graph->failed,
                       "%s: the capture has failed: %s; call tn_stream_capture_end to end it", what,
                       graph->failed_text != NULL ? graph->failed_text : "out of memory");
    return TN_OK;
}

tn_status tn__capture_refuse_slow(tn_stream *stream, const char *what, const char *why)
{
    tn_device_graph *graph = tn__capture_of(stream);
    tn_status status = tn__capture_work(stream, what);

    if (status != TN_OK || graph == NULL)
        return status;
    return fail_capture(graph, tn_fail(TN_ERR_RUNTIME,
                                       "%s: refused while a stream of %s records "
                                       "(tn_stream_capture_begin): %s",
                                       what, graph->device->name, why));
}

tn_status tn__capture_refuse_on(const tn_device *device, const char *what, const char *why)
{
    if (tn__likely(recording_here() == NULL))
        return TN_OK;
    return tn__capture_refuse(tn__stream_current(device), what, why);
}

tn_status tn__capture_refuse_here(const char *what, const char *why)
{
    return tn__likely(recording == NULL) ? TN_OK : tn__capture_refuse(recording->stream, what, why);
}

/* ---- what the graph holds -------------------------------------------------------------------- */

/* Adds a storage to those that the graph holds. `what` has TN__CAPTURE_* flags. */
static tn_status hold(tn_device_graph *graph, tn__storage *storage, uintptr_t what)
{
    int added = tn__map_add(&graph->storages, storage);
    void **value = tn__map_value(&graph->storages, storage);

    if (added < 0)
        return fail_capture(graph, TN_ERR_MEMORY);
    if (added > 0)
        tn__storage_keep(storage);
    *value = (void *)((uintptr_t)*value | what);
    return TN_OK;
}

tn_status tn__capture_hold_slow(tn_stream *stream, tn__storage *storage, bool written)
{
    tn_status status = tn__capture_work(stream, "recorded work");

    return status == TN_OK ? hold(recording, storage, written ? TN__CAPTURE_WRITTEN : 0) : status;
}

tn_status tn__capture_hold_object(tn_stream *stream, void *object, void (*drop)(void *object))
{
    tn_device_graph *graph = tn__capture_of(stream);

    if (graph == NULL || graph != recording ||
        !tn__vector_room(&graph->objects, &graph->objects_capacity, graph->n_objects + 1,
                         sizeof *graph->objects)) {
        drop(object);
        return graph == NULL ? TN_OK : tn__capture_result(stream, TN_ERR_MEMORY);
    }
    graph->objects[graph->n_objects].object = object;
    graph->objects[graph->n_objects++].drop = drop;
    return TN_OK;
}

tn__storage *tn__capture_made_slow(tn_stream *stream, tn__storage *storage)
{
    tn_status status = tn__capture_work(stream, "memory");

    if (status == TN_OK && hold(recording, storage, TN__CAPTURE_MADE) == TN_OK)
        return storage;
    tn__storage_drop(storage);
    return NULL;
}

tn__storage *tn__capture_reuse(tn_stream *stream, uint64_t size, uint64_t bytes)
{
    tn_device_graph *graph = tn__capture_of(stream);

    for (int64_t i = 0; graph == recording && i < graph->storages.count; i++) {
        tn__storage *storage = (tn__storage *)(uintptr_t)graph->storages.at[i].key;
        tn__block *block = storage->block;

        /* Only the graph holds this storage, and recorded work runs in order: later work may use
         * the memory. */
        if (((uintptr_t)graph->storages.at[i].value & TN__CAPTURE_MADE) == 0 ||
            block->size != size || block->n_users > 0 ||
            atomic_load_explicit(&storage->refs, memory_order_acquire) != 1)
            continue;
        tn__allocator_count(storage->device->allocator, NULL, -(int64_t)storage->size);
        tn__allocator_count(storage->device->allocator, NULL, (int64_t)bytes);
        atomic_store_explicit(&block->live, bytes, memory_order_relaxed);
        atomic_store_explicit(&storage->refs, 2, memory_order_relaxed);
        /* Launches of the graph write here, too. */
        atomic_store_explicit(&storage->pointed, true, memory_order_relaxed);
        storage->flags = 0;
        storage->size = bytes;
        return storage;
    }
    return NULL;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static tn_status can_begin(tn_stream *stream)
{
    const tn_device *device;

    if (stream == NULL)
        return tn_fail(TN_ERR_VALUE,
                       "tn_stream_capture_begin: stream: it is NULL; expected a stream");
    device = stream->device;
    if (tn__backend(device)->capture_begin == NULL || stream->handle == NULL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "tn_stream_capture_begin: device %s cannot record work (%s); run the work "
                       "directly",
                       device->name,
                       tn__backend(device)->capture_begin == NULL
                           ? "its backend has no capture_begin"
                           : "this stream does its work at once");
    if (stream == device->stream)
        return tn_fail(TN_ERR_VALUE,
                       "tn_stream_capture_begin: the default stream of %s cannot record, because "
                       "other work uses it; expected a stream of tn_stream_new",
                       device->name);
    if (recording_here() != NULL || tn__capture_of(stream) != NULL)
        return tn_fail(TN_ERR_RUNTIME,
                       "tn_stream_capture_begin: %s; call tn_stream_capture_end first",
                       recording != NULL ? "this thread records already"
                                         : "the stream records already, in another thread");
    return TN_OK;
}

tn_status tn_stream_capture_begin(tn_stream *stream)
{
    tn_capture_args args = { TN_HEAD(tn_capture_args) };
    tn_status status = can_begin(stream);
    tn_device_graph *graph;

    if (status == TN_OK)
        status = tn_stream_sync(stream);
    if (status != TN_OK)
        return status;
    graph = tn__capture_graph_new(stream);
    if (graph == NULL)
        return TN_ERR_MEMORY;
    graph->failed_before = tn_failed();
    tn__allocator_forget_here(graph->device);
    tn__stream_lock(stream);
    args.stream = stream->handle;
    status = tn__device_result(
        graph->device, tn__backend(graph->device)->capture_begin(graph->device->handle, &args),
        "capture_begin");
    if (status == TN_OK) {
        graph->active = true;
        recording = graph;
        atomic_store(&stream->capture, graph);
    }
    tn__stream_unlock(stream);
    if (status != TN_OK)
        tn__capture_graph_free(graph);
    return status;
}

/* Takes the recorded graph from the backend. */
static tn_status finish(tn_device_graph *graph)
{
    const tn_backend_def *b = tn__backend(graph->device);
    tn_capture_args args = { TN_HEAD(tn_capture_args) };
    tn_status status;

    if (graph->failed != TN_OK)
        return tn_fail(graph->failed, "%s",
                       graph->failed_text != NULL ? graph->failed_text : "out of memory");
    if (!graph->failed_before && tn_failed()) /* a call that belongs to the record failed */
        return tn_error_code();
    tn__stream_lock(graph->stream);
    args.stream = graph->stream->handle;
    graph->active = false;
    status = tn__device_result(graph->device, b->capture_end(graph->device->handle, &args),
                               "capture_end");
    tn__stream_unlock(graph->stream);
    if (status != TN_OK && args.graph != NULL)
        b->capture_drop(graph->device->handle, &args);
    else
        graph->handle = args.graph;
    return status;
}

tn_device_graph *tn_stream_capture_end(tn_stream *stream)
{
    tn_device_graph *graph = stream != NULL ? tn__capture_of(stream) : NULL;
    tn_status status;

    if (graph == NULL || graph != recording) {
        tn_fail(TN_ERR_RUNTIME, "tn_stream_capture_end: %s",
                stream == NULL  ? "stream: it is NULL; expected a stream"
                : graph == NULL ? "the stream does not record; call tn_stream_capture_begin first"
                                : "another thread began this capture, and must end it");
        return NULL;
    }
    status = finish(graph);
    end_backend(graph);
    recording = NULL;
    atomic_store(&stream->capture, NULL);
    if (status == TN_OK)
        return graph;
    tn__capture_graph_free(graph);
    return NULL;
}

void tn__capture_abandon(tn_stream *stream)
{
    tn_device_graph *graph = tn__capture_of(stream);

    if (graph == NULL)
        return;
    end_backend(graph);
    atomic_store(&stream->capture, NULL);
    if (recording != graph) {
        atomic_store(&graph->abandoned, true); /* the recording thread frees the graph */
        return;
    }
    recording = NULL;
    tn__capture_graph_free(graph);
}
