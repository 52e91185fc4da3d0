/* SPDX-License-Identifier: MIT
 *
 * Launches of recorded graphs. The launches of one graph run one after another, even on different
 * streams, because they use the same memory. */
#include "core/tensor/capture_graph.h"
#include "core/tensor/capture.h"

tn_device_graph *tn__capture_graph_new(tn_stream *stream)
{
    tn_device_graph *graph = tn_calloc(1, sizeof *graph);

    if (graph == NULL)
        return NULL;
    graph->device = stream->device;
    graph->stream = stream;
    graph->newest = -1;
    pthread_mutex_init(&graph->lock, NULL);
    atomic_fetch_add((_Atomic int32_t *)(uintptr_t)&graph->device->handles, 1);
    return graph;
}

void tn__capture_graph_free(tn_device_graph *graph)
{
    const tn_backend_def *b = tn__backend(graph->device);
    const tn_capture_args args = { TN_HEAD(tn_capture_args), .graph = graph->handle };
    uint64_t mark = tn_error_mark();
    void *device = graph->device->handle;

    for (int64_t i = 0; i < graph->n_launches; i++) {
        if (graph->launches[i].event == NULL)
            continue;
        if (tn__device_usable(graph->device) == TN_OK)
            (void)b->event_sync(device, graph->launches[i].event);
        b->event_drop(device, graph->launches[i].event);
    }
    if (graph->handle != NULL)
        b->capture_drop(device, &args);
    for (int64_t i = 0; i < graph->n_objects; i++)
        graph->objects[i].drop(graph->objects[i].object);
    for (int64_t i = 0; i < graph->storages.count; i++)
        tn__storage_drop((tn__storage *)(uintptr_t)graph->storages.at[i].key);
    atomic_fetch_sub((_Atomic int32_t *)(uintptr_t)&graph->device->handles, 1);
    tn__map_free(&graph->storages);
    tn_free(graph->objects);
    tn_free(graph->launches);
    tn_free(graph->failed_text);
    pthread_mutex_destroy(&graph->lock);
    tn_free(graph);
    tn_error_restore(mark);
}

void tn_device_graph_drop(tn_device_graph *graph)
{
    if (graph != NULL)
        tn__capture_graph_free(graph);
}

/* Returns the index of a stream among the launches, after adding the stream and its event if
 * necessary. Returns -1 and sets the error on failure. The caller holds the graph's lock. */
static int64_t launch_of(tn_device_graph *graph, tn_stream *stream)
{
    struct launch *launch;
    int64_t i = 0;

    while (i < graph->n_launches && graph->launches[i].stream != stream)
        i++;
    if (i < graph->n_launches)
        return i;
    if (!tn__vector_room(&graph->launches, &graph->launches_capacity, i + 1,
                         sizeof *graph->launches))
        return -1;
    launch = &graph->launches[i];
    *launch = (struct launch){ .stream = stream };
    if (tn__device_event(graph->device, NULL, &launch->event) != TN_OK)
        return -1;
    graph->n_launches++;
    return i;
}

/* The caller holds the locks of the graph and of the stream. */
static tn_status launch(tn_device_graph *graph, tn_stream *stream, int64_t at)
{
    const tn_backend_def *b = tn__backend(graph->device);
    const tn_capture_args args = { TN_HEAD(tn_capture_args), .stream = stream->handle,
                                   .graph = graph->handle };
    void *device = graph->device->handle;
    tn_status status = TN_OK;

    if (graph->newest >= 0 && graph->newest != at)
        status = tn__device_result(
            graph->device,
            b->event_wait(device, graph->launches[graph->newest].event, stream->handle),
            "event_wait");
    if (status == TN_OK)
        status = tn__device_result(graph->device, b->capture_launch(device, &args),
                                   "capture_launch");
    if (status == TN_OK)
        status = tn__device_result(
            graph->device, b->event_record(device, graph->launches[at].event, stream->handle),
            "event_record");
    graph->newest = at;
    return status;
}

tn_status tn_device_graph_launch(tn_device_graph *graph, tn_stream *stream)
{
    tn_status status;
    int64_t at;

    if (graph == NULL)
        return tn_fail(TN_ERR_VALUE, "tn_device_graph_launch: graph: it is NULL; expected a graph");
    status = tn__device_usable(graph->device);
    if (status != TN_OK)
        return status;
    if (stream == NULL)
        stream = tn__stream_current(graph->device);
    if (stream->device != graph->device)
        return tn_fail(TN_ERR_VALUE,
                       "tn_device_graph_launch: stream: wrong device, got %s; expected %s",
                       stream->device->name, graph->device->name);
    status = tn__capture_refuse(
        stream, "tn_device_graph_launch",
        "a graph cannot contain another graph; launch the graph after the capture");
    if (status != TN_OK || graph->handle == NULL)
        return status;
    pthread_mutex_lock(&graph->lock);
    at = launch_of(graph, stream);
    if (at >= 0) {
        tn__stream_lock(stream);
        status = launch(graph, stream, at);
        tn__stream_unlock(stream);
    } else {
        status = tn_error_last_code();
    }
    pthread_mutex_unlock(&graph->lock);
    for (int64_t i = 0; i < graph->storages.count && status == TN_OK; i++)
        if ((uintptr_t)graph->storages.at[i].value & TN__CAPTURE_WRITTEN)
            atomic_fetch_add_explicit(
                &((tn__storage *)(uintptr_t)graph->storages.at[i].key)->version, 1,
                memory_order_relaxed);
    return status;
}
