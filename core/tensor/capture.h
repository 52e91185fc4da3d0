/* SPDX-License-Identifier: MIT
 *
 * Streams that record their work: what the files of the core ask of a capture under way. */
#ifndef TN_CORE_TENSOR_CAPTURE_H
#define TN_CORE_TENSOR_CAPTURE_H

#include "core/tensor/internal.h"

/* The graph that a stream records into, NULL for one that does not. */
static inline tn_device_graph *tn__capture_of(const tn_stream *stream)
{
    return atomic_load_explicit(&stream->capture, memory_order_relaxed);
}

/* TN_OK where the stream does not record. Else the failure of `what`, which the recorded work
 * cannot do ("waits for the device"); it ends the capture. */
tn_status tn__capture_refuse_slow(tn_stream *stream, const char *what, const char *why);
static inline tn_status tn__capture_refuse(tn_stream *stream, const char *what, const char *why)
{
    return tn__likely(tn__capture_of(stream) == NULL) ? TN_OK
                                                      : tn__capture_refuse_slow(stream, what, why);
}
/* The same for the stream that this thread uses on the device. */
tn_status tn__capture_refuse_on(const tn_device *device, const char *what, const char *why);
/* The same for whatever stream this thread records. */
tn_status tn__capture_refuse_here(const char *what, const char *why);

/* The stream records: whether the work of this thread may be recorded now. */
tn_status tn__capture_work(tn_stream *stream, const char *what);
/* Holds memory that recorded work uses until the graph is dropped; nothing where the stream does
 * not record. Launches bump the versions of what is `written`. */
tn_status tn__capture_hold_slow(tn_stream *stream, tn__storage *storage, bool written);
static inline tn_status tn__capture_hold(tn_stream *stream, tn__storage *storage, bool written)
{
    return tn__likely(tn__capture_of(stream) == NULL)
               ? TN_OK
               : tn__capture_hold_slow(stream, storage, written);
}
/* Another object that recorded work uses, with a reference that the graph takes over, also when
 * this fails. */
tn_status tn__capture_hold_object(tn_stream *stream, void *object, void (*drop)(void *object));
/* A failure of recorded work ends the capture; returns the status. */
tn_status tn__capture_result(tn_stream *stream, tn_status status);
/* Memory for the recording thread: of an earlier tensor of this capture that is gone, or NULL. */
tn__storage *tn__capture_reuse(tn_stream *stream, uint64_t size, uint64_t bytes);
/* Memory that was allocated on a stream, which the graph holds where it records: NULL and an error
 * when that fails. NULL is accepted. */
tn__storage *tn__capture_made_slow(tn_stream *stream, tn__storage *storage);
static inline tn__storage *tn__capture_made(tn_stream *stream, tn__storage *storage)
{
    return tn__likely(storage == NULL || tn__capture_of(stream) == NULL)
               ? storage
               : tn__capture_made_slow(stream, storage);
}
/* Ends a capture without a graph, when its stream is dropped. */
void tn__capture_abandon(tn_stream *stream);

#endif
