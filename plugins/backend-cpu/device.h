/* SPDX-License-Identifier: MIT
 *
 * The device type "cpu". */
#ifndef TN_BACKEND_CPU_DEVICE_H
#define TN_BACKEND_CPU_DEVICE_H

#include <tenon/plugin.h>

extern const tn_backend_def tn__backend_cpu;

/* Memory of kind TN_MEMORY_SHARED. The functions without `device` are parts of `alloc` and `free`
 * of the backend; the others are its memory_share and memory_open. */
tn_status tn__shared_alloc(tn_memory *memory);
void tn__shared_free(const tn_memory *memory);
tn_status tn__shared_share(void *device, const tn_memory *memory, tn_share_args *args);
tn_status tn__shared_open(void *device, const tn_share_args *args, tn_memory *memory);

#endif
