/* SPDX-License-Identifier: MIT
 *
 * Scratch memory for the work of one call. */
#ifndef TN_BACKEND_CPU_BASE_SCRATCH_H
#define TN_BACKEND_CPU_BASE_SCRATCH_H

#include <tenon/plugin.h>

/* Returns memory for one call, aligned to a cache line, with any content. Returns NULL and sets the
 * error when memory runs out. */
void *tn__scratch_take(size_t bytes);
/* Gives memory of tn__scratch_take() back; NULL is allowed. The memory is kept for later calls if a
 * place is free and it is not too large, because fresh pages from the system can cost more than the
 * work on them. */
void tn__scratch_give(void *memory);
/* tn__scratch_own returns memory of exactly this size for longer use, aligned and failing as
 * tn__scratch_take does; tn__scratch_free frees it, NULL is allowed. */
void *tn__scratch_own(size_t bytes);
void tn__scratch_free(void *memory);
/* Frees all memory that is kept for later calls. */
void tn__scratch_drop(void);

#endif
