/* SPDX-License-Identifier: MIT
 *
 * Pinned memory, for the copies of this folder. */
#ifndef TN_CORE_TENSOR_PINNED_H
#define TN_CORE_TENSOR_PINNED_H

#include "core/tensor/device.h"

typedef struct tn__pinned tn__pinned;

/* Whether the tensor's memory is pinned, for devices of that type. */
bool tn__pinned_serves(const tn_tensor *tensor, const tn_device *device);
/* Around a copy on the device's current stream, which uses the memory from then on. After a begin
 * that succeeded there is an end, which gets the status of the copy and returns it, or one of its
 * own. */
tn_status tn__pinned_begin(const tn_tensor *tensor, const tn_device *device);
tn_status tn__pinned_end(const tn_tensor *tensor, const tn_device *device, tn_status copied);
/* Waits for the copies that use it; nothing for other memory. */
tn_status tn__pinned_wait(const tn__storage *storage);

#endif
