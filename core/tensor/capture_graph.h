/* SPDX-License-Identifier: MIT
 *
 * The graph that a stream records, for capture.c and capture_graph.c. */
#ifndef TN_CORE_TENSOR_CAPTURE_GRAPH_H
#define TN_CORE_TENSOR_CAPTURE_GRAPH_H

#include "core/base/map.h"
#include "core/base/vector.h"
#include "core/tensor/device.h"
#include "core/tensor/thread.h"

/* Flags in the values of tn_device_graph.storages: the work writes the storage; the storage was
 * allocated during the capture. */
enum { TN__CAPTURE_WRITTEN = 1, TN__CAPTURE_MADE = 2 };

struct tn_device_graph {
    const tn_device *device;
    tn_stream *stream; /* the stream that recorded the graph */
    void *handle;      /* the backend's graph; NULL during the capture, and without work */
    /* Storages that the work uses, with a reference to each; the values are TN__CAPTURE_*. */
    tn__map storages;
    struct {
        void *object;
        void (*drop)(void *object);
    } * objects; /* other objects that the work uses */
    int64_t n_objects, objects_capacity;

    /* Used during the capture. */
    bool active;            /* the backend records */
    _Atomic bool abandoned; /* another thread dropped the stream */
    bool failed_before;     /* the thread had an uncleared failure when the capture began */
    tn_status failed;
    char *failed_text;

    pthread_mutex_t lock; /* protects all members below */
    struct launch {
        tn_stream *stream;
        void *event; /* recorded after the newest launch on that stream */
    } * launches;
    int64_t n_launches, launches_capacity;
    int64_t newest; /* index of the newest launch; -1: none */
};

/* Returns NULL and sets the error on failure. */
tn_device_graph *tn__capture_graph_new(tn_stream *stream);
/* Waits for the launches of the graph, then frees the graph and what it holds. */
void tn__capture_graph_free(tn_device_graph *graph);

#endif
