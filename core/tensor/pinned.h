/* SPDX-License-Identifier: MIT
 *
 * Pinned memory, for the other files of this folder. */
#ifndef TN_CORE_TENSOR_PINNED_H
#define TN_CORE_TENSOR_PINNED_H

#include "core/tensor/device.h"

typedef struct tn__pinned tn__pinned;

/* Creates a tensor on the host in pinned memory of the device, or in ordinary memory if the device
 * has none. The innermost scope owns it. */
tn_tensor *tn__pinned_tensor(tn_ints shape, tn_dtype dtype, uint64_t bytes,
                             const tn_device *device);
/* Returns whether the memory of the tensor is pinned for devices of that type. */
bool tn__pinned_serves(const tn_tensor *tensor, const tn_device *device);
/* Enclose a copy between pinned memory and the device, on the current stream of the device; the
 * copy may still be running afterwards. After each successful tn__pinned_begin() there must be a
 * tn__pinned_end(), which gets the status of the copy and returns that status, or a failure of its
 * own. */
tn_status tn__pinned_begin(const tn_tensor *tensor, const tn_device *device);
tn_status tn__pinned_end(const tn_tensor *tensor, const tn_device *device, tn_status copied);
/* Waits for the copies that use the memory. Does nothing for memory that is not pinned. */
tn_status tn__pinned_wait(const tn__storage *storage);

#endif
