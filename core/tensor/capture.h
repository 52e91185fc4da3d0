/* SPDX-License-Identifier: MIT
 *
 * Streams that record their work instead of running it: what the other files of the core need to
 * know about a capture in progress. */
#ifndef TN_CORE_TENSOR_CAPTURE_H
#define TN_CORE_TENSOR_CAPTURE_H

#include "core/tensor/internal.h"

/* Returns the graph that a stream records into, NULL if the stream does not record. */
static inline tn_device_graph *tn__capture_of(const tn_stream *stream)
{
    return atomic_load_explicit(&stream->capture, memory_order_relaxed);
}

/* Returns TN_OK if the stream does not record. Otherwise fails, because `what` cannot be recorded,
 * for the reason `why` ("it waits for the device"). Then the whole capture has failed. */
tn_status tn__capture_refuse_slow(tn_stream *stream, const char *what, const char *why);
static inline tn_status tn__capture_refuse(tn_stream *stream, const char *what, const char *why)
{
    return tn__likely(tn__capture_of(stream) == NULL) ? TN_OK
                                                      : tn__capture_refuse_slow(stream, what, why);
}
/* Like tn__capture_refuse(), for the stream that this thread uses on the device. */
tn_status tn__capture_refuse_on(const tn_device *device, const char *what, const char *why);
/* Like tn__capture_refuse(), for the stream that this thread records, whichever device it is on. */
tn_status tn__capture_refuse_here(const char *what, const char *why);

/* Returns TN_OK if the stream does not record, or if this thread may record work in the stream now;
 * otherwise fails. */
tn_status tn__capture_work(tn_stream *stream, const char *what);
/* Holds memory that recorded work uses until the graph is dropped. Does nothing if the stream does
 * not record. With `written`, each launch of the graph increments the version of the storage. */
tn_status tn__capture_hold_slow(tn_stream *stream, tn__storage *storage, bool written);
static inline tn_status tn__capture_hold(tn_stream *stream, tn__storage *storage, bool written)
{
    return tn__likely(tn__capture_of(stream) == NULL)
               ? TN_OK
               : tn__capture_hold_slow(stream, storage, written);
}
/* Gives the graph a reference to another object that recorded work uses; the graph calls `drop` at
 * its end. If the stream does not record or this call fails, `drop` is called at once. */
tn_status tn__capture_hold_object(tn_stream *stream, void *object, void (*drop)(void *object));
/* Returns `status`, the result of recorded work. A failure makes the capture fail. */
tn_status tn__capture_result(tn_stream *stream, tn_status status);
/* Returns memory of a tensor of this capture that was freed, for the recording thread to use again;
 * NULL if there is none of that size. */
tn__storage *tn__capture_reuse(tn_stream *stream, uint64_t size, uint64_t bytes);
/* Returns `storage`, which was allocated on a stream. If the stream records, the graph holds the
 * memory; if that fails, drops the memory, returns NULL and sets the error. `storage` may be
 * NULL. */
tn__storage *tn__capture_made_slow(tn_stream *stream, tn__storage *storage);
static inline tn__storage *tn__capture_made(tn_stream *stream, tn__storage *storage)
{
    return tn__likely(storage == NULL || tn__capture_of(stream) == NULL)
               ? storage
               : tn__capture_made_slow(stream, storage);
}
/* Ends the capture of a stream that is being dropped; no graph results. */
void tn__capture_abandon(tn_stream *stream);

#endif
