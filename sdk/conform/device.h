/* SPDX-License-Identifier: MIT
 *
 * Tensors on the device that is checked, for the level contract. */
#ifndef TN_CONFORM_DEVICE_H
#define TN_CONFORM_DEVICE_H

#include "conform.h"

/* Creates a float32 tensor of 0, 0.5, 1 ... 499.5, repeated up to `count` elements. Returns NULL on
 * failure. */
tn_tensor *conform_device_numbers(const tn_device *device, int64_t count);
/* Returns true if y holds the numbers of conform_device_numbers() times two. */
bool conform_device_doubled(tn_tensor *y, int64_t count);

/* Returns true if the last error came from the core, which found that the plugin broke its
 * contract; false if it is a proper refusal by the plugin. */
bool conform_device_is_blamed(void);

/* Returns the number of threads of this process, -1 if it is unknown (contract.c). */
int conform_threads(void);

/* Tests of the memory of the device (device_memory.c). */
void conform_device_own_memory(conform *c);
void conform_device_keeps_bytes(conform *c);
void conform_device_copies(conform *c);
void conform_device_fills(conform *c);
void conform_device_too_large(conform *c);
void conform_device_gives_back(conform *c);

/* Tests of memory of other kinds (device_kinds.c). */
void conform_device_pinned(conform *c);
void conform_device_managed(conform *c);
void conform_device_shared(conform *c);

/* The test of recorded work (capture) of a device (device_capture.c). */
void conform_device_captures(conform *c);

#endif
