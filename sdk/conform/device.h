/* SPDX-License-Identifier: MIT
 *
 * Tensors on the device that is checked, for the level contract. */
#ifndef TN_CONFORM_DEVICE_H
#define TN_CONFORM_DEVICE_H

#include "conform.h"

/* 0, 0.5, 1 ... 499.5, and again; NULL and an error. */
tn_tensor *conform_device_numbers(const tn_device *device, int64_t count);
/* Whether it holds twice these numbers. */
bool conform_device_doubled(tn_tensor *y, int64_t count);

/* Whether the last error says that the plugin broke the contract, not what it refuses. */
bool conform_device_is_blamed(void);

/* Tests of its memory (device_memory.c). */
void conform_device_own_memory(conform *c);
void conform_device_keeps_bytes(conform *c);
void conform_device_copies(conform *c);
void conform_device_fills(conform *c);
void conform_device_too_large(conform *c);
void conform_device_gives_back(conform *c);

/* Of a device that records its work (device_capture.c). */
void conform_device_captures(conform *c);

#endif
