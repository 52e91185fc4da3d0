/* SPDX-License-Identifier: MIT
 *
 * Growing arrays. The owner has three members: a pointer to the elements, how many are in use, and
 * how many there is memory for. */
#ifndef TN_CORE_BASE_VECTOR_H
#define TN_CORE_BASE_VECTOR_H

#include "core/base/internal.h"

/* The slow part of the two below. */
bool tn__vector_extend(void *array, const void *first, int64_t *capacity, int64_t count,
                       size_t size);

/* Memory for at least `count` elements of `size` bytes. `array` is the address of the pointer,
 * which is NULL at first. False and an error when there is no memory: nothing has changed then. */
static inline bool tn__vector_room(void *array, int64_t *capacity, int64_t count, size_t size)
{
    return tn__likely(count <= *capacity) || tn__vector_extend(array, NULL, capacity, count, size);
}

/* The same for an array whose first elements are in memory that is not from tn_malloc (a member of
 * the owner): it is copied from and never freed. */
static inline bool tn__vector_room_after(void *array, const void *first, int64_t *capacity,
                                         int64_t count, size_t size)
{
    return tn__likely(count <= *capacity) || tn__vector_extend(array, first, capacity, count, size);
}

#endif
