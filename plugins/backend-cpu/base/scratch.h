/* SPDX-License-Identifier: MIT
 *
 * Scratch memory for the work of one call. */
#ifndef TN_BACKEND_CPU_BASE_SCRATCH_H
#define TN_BACKEND_CPU_BASE_SCRATCH_H

#include <tenon/plugin.h>

/* Memory for one call, kept for the next one instead of being returned to the system (whose fresh
 * pages cost more than the work on them). It begins on a cache line. NULL and an error when there
 * is none. */
void *tn__scratch_take(size_t bytes);
void tn__scratch_give(void *memory);
/* Frees the memory that is kept. */
void tn__scratch_drop(void);

#endif
