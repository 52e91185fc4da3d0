/* SPDX-License-Identifier: MIT
 *
 * Copies of bytes between the host and a device, for copy.c and fill.c. */
#ifndef TN_CORE_TENSOR_COPY_H
#define TN_CORE_TENSOR_COPY_H

#include "core/base/dtype.h"
#include "core/tensor/internal.h"

/* The most bytes that are staged in memory of the host at a time. */
#define TN__COPY_CHUNK ((uint64_t)4 << 20)

/* Returns the number of bytes of a tensor's elements. */
static inline uint64_t tn__copy_size(const tn_tensor *tensor)
{
    return (uint64_t)tensor->numel * tn_dtype_size((tn_dtype)tensor->dtype);
}

/* Checks that the device is usable, and records that its current stream uses the memory of the
 * tensor from now on, and writes to it if `written` is true. A graph that the stream is recording
 * holds the memory. */
tn_status tn__copy_use(const tn_tensor *tensor, bool written);
/* Copies from memory of the host on the current stream of the device. The tensor is contiguous;
 * `offset` counts bytes from its first element. `flags` are TN_COPY_*. */
tn_status tn__copy_bytes_in(const tn_tensor *to, uint64_t offset, const void *from, uint64_t bytes,
                            uint32_t flags);

#endif
