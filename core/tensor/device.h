/* SPDX-License-Identifier: MIT
 *
 * Devices and streams: functions for the files of this folder. */
#ifndef TN_CORE_TENSOR_DEVICE_H
#define TN_CORE_TENSOR_DEVICE_H

#include "core/tensor/internal.h"

/* Opens a device, unless it is open. */
tn_status tn__device_open(tn_device *device);
/* Create the default stream of a device that is being opened; free all streams of a device that is
 * being closed. */
tn_status tn__streams_open(tn_device *device);
void tn__streams_close(tn_device *device);
/* Waits for all streams of a device. Returns the first failure. */
tn_status tn__streams_sync(const tn_device *device);
/* Returns the list of all streams of a device but the default one. New entries are added only at
 * the front, so the list can be walked without a lock. */
tn_stream *tn__streams_first(const tn_device *device);
/* Waits for a stream; a failure is not returned but kept for the next tn_stream_sync. Returns false
 * if another thread kept the stream busy, or if the stream records. */
bool tn__stream_drain(tn_stream *stream);
/* Asks the backend to describe a device, and checks the answer. What the backend leaves out gets
 * default values. */
tn_status tn__device_info(const tn_device *device, tn_device_info *out);
/* Allocates memory from the backend. Makes sure that a failure has a message and that a success has
 * memory. */
tn_status tn__device_alloc(const tn_device *device, tn_memory *memory);
/* Returns memory of kind TN_MEMORY_DEVICE to the backend. */
void tn__device_free(const tn_device *device, void *handle, uint64_t bytes);
/* Creates an event of the backend. NULL args: without flags. */
tn_status tn__device_event(const tn_device *device, const tn_event_args *args, void **event);
/* Returns the name of a kind of memory; NULL if there is none with this number. */
const char *tn__memory_kind_name(tn_memory_kind kind);
/* Returns the address for the host of managed memory; NULL for other memory. */
void *tn__memory_host(const tn__storage *storage);
/* Returns whether no tensor uses memory of the allocator. */
bool tn__allocator_idle(struct tn__allocator *allocator);
/* Forgets the default device of the process; the next use chooses it again. */
void tn__default_device_forget(void);

static inline const tn_backend_def *tn__backend(const tn_device *device)
{
    return &device->type->backend;
}
/* Returns the backend's handle of a stream; NULL for NULL. */
static inline void *tn__stream_handle(const tn_stream *stream)
{
    return stream != NULL ? stream->handle : NULL;
}

#endif
