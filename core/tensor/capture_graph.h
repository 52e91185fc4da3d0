/* SPDX-License-Identifier: MIT
 *
 * The record of a stream, for capture.c and capture_graph.c. */
#ifndef TN_CORE_TENSOR_CAPTURE_GRAPH_H
#define TN_CORE_TENSOR_CAPTURE_GRAPH_H

#include "core/base/map.h"
#include "core/base/vector.h"
#include "core/tensor/device.h"
#include "core/tensor/thread.h"

/* What the map of storages says about each: the work writes it; it was allocated for the work. */
enum { TN__CAPTURE_WRITTEN = 1, TN__CAPTURE_MADE = 2 };

struct tn_device_graph {
    const tn_device *device;
    tn_stream *stream; /* that recorded it */
    void *handle;      /* the backend's; NULL while it is recorded, and when there is no work */
    tn__map storages;  /* that the work uses, each kept; values: TN__CAPTURE_* */
    struct {
        void *object;
        void (*drop)(void *object);
    } * objects; /* what else it uses */
    int64_t n_objects, objects_capacity;

    /* While it is recorded. */
    bool active;            /* the backend records */
    _Atomic bool abandoned; /* another thread dropped the stream */
    bool failed_before;     /* the thread had a failure when it began */
    tn_status failed;
    char *failed_text;

    pthread_mutex_t lock; /* of all below */
    struct launch {
        tn_stream *stream;
        void *event; /* behind the newest launch on that stream */
    } * launches;
    int64_t n_launches, launches_capacity;
    int64_t newest; /* of the launches; -1: none */
};

/* NULL and an error. */
tn_device_graph *tn__capture_graph_new(tn_stream *stream);
/* Waits for its launches, and gives everything back. */
void tn__capture_graph_free(tn_device_graph *graph);

#endif
