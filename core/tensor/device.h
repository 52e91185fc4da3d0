/* SPDX-License-Identifier: MIT
 *
 * Devices, for the files of this folder. */
#ifndef TN_CORE_TENSOR_DEVICE_H
#define TN_CORE_TENSOR_DEVICE_H

#include "core/tensor/internal.h"

/* Opens it if that was not done. */
tn_status tn__device_open(tn_device *device);
/* The streams of a device that is being opened / closed. */
tn_status tn__streams_open(tn_device *device);
void tn__streams_close(tn_device *device);
/* Waits for all streams; the first failure. */
tn_status tn__streams_sync(const tn_device *device);
/* All streams but the default one: entries are only added, at the front, so the list can be
 * walked without a lock. */
tn_stream *tn__streams_first(const tn_device *device);
/* Waits for the stream without telling: a failure is kept for the next tn_stream_sync. False
 * when the stream stayed busy in another thread. */
bool tn__stream_drain(tn_stream *stream);
/* What the device says of itself, checked, with the defaults for what it does not say. */
tn_status tn__device_info(const tn_device *device, tn_device_info *out);
/* Memory from the backend: a failure has a message, and a success has memory. */
tn_status tn__device_alloc(const tn_device *device, tn_memory *memory);
/* Memory of kind DEVICE back to it. */
void tn__device_free(const tn_device *device, void *handle, uint64_t bytes);
/* An event of the backend. */
tn_status tn__device_event(const tn_device *device, uint32_t flags, void **event);
/* Gives back what can be given back before the device closes; whether nothing of it is in use. */
bool tn__allocator_idle(struct tn__allocator *allocator);
/* The preference list in force, and what has been resolved from it, are forgotten. */
void tn__default_device_forget(void);

static inline const tn_backend_def *tn__backend(const tn_device *device)
{
    return &device->type->backend;
}
/* The backend's handle of a stream. */
static inline void *tn__stream_handle(const tn_stream *stream)
{
    return stream != NULL ? stream->handle : NULL;
}

#endif
