/* SPDX-License-Identifier: MIT
 *
 * Recorded work of the strict device. A graph holds the items that a stream received while it
 * recorded; each launch queues copies of them. */
#include "queue.h"

tn_status strict_capture_begin(void *handle, const tn_capture_args *args)
{
    struct device *device = handle;
    struct stream *stream = args->stream;
    struct graph *graph = tn_calloc(1, sizeof *graph);
    if (!graph)
        return TN_ERR_MEMORY;
    pthread_mutex_lock(&device->lock);
    stream->record = graph;
    pthread_mutex_unlock(&device->lock);
    return TN_OK;
}

tn_status strict_capture_end(void *handle, tn_capture_args *args)
{
    struct device *device = handle;
    struct stream *stream = args->stream;
    pthread_mutex_lock(&device->lock);
    args->graph = stream->record;
    stream->record = NULL;
    pthread_mutex_unlock(&device->lock);
    return TN_OK;
}

tn_status strict_capture_launch(void *device, const tn_capture_args *args)
{
    const struct graph *graph = args->graph;
    (void)device;
    for (const struct item *item = graph->first; item; item = item->next) {
        struct item *copy = tn_malloc(sizeof *copy);
        if (!copy)
            return TN_ERR_MEMORY;
        *copy = *item;
        tn_status status = strict_push(args->stream, copy);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

void strict_capture_drop(void *handle, const tn_capture_args *args)
{
    struct device *device = handle;
    struct graph *graph = args->graph;
    pthread_mutex_lock(&device->lock);
    for (struct item *item = graph->first, *next; item; item = next) {
        next = item->next;
        strict_drop_item(item);
    }
    pthread_mutex_unlock(&device->lock);
    tn_free(graph);
}
