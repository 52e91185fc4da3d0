/* SPDX-License-Identifier: MIT
 *
 * Arrays that grow. The owner has three members: a pointer to the elements, the number of elements
 * in use, and the number of elements that the memory has space for. */
#ifndef TN_CORE_BASE_VECTOR_H
#define TN_CORE_BASE_VECTOR_H

#include "core/base/internal.h"

/* The slow path of the two functions below: allocates more memory. */
bool tn__vector_extend(void *array, const void *first, int64_t *capacity, int64_t count,
                       size_t size);

/* Ensures that there is memory for at least `count` elements of `size` bytes. `array` is the
 * address of the pointer to the elements, which is NULL at first. Returns false, sets the error and
 * changes nothing if memory runs out. */
static inline bool tn__vector_room(void *array, int64_t *capacity, int64_t count, size_t size)
{
    return tn__likely(count <= *capacity) || tn__vector_extend(array, NULL, capacity, count, size);
}

/* Like tn__vector_room(), for an array whose first elements are at `first`, in memory that is not
 * from tn_malloc (a member of the owner). If the array must grow, they are copied; `first` is never
 * freed. */
static inline bool tn__vector_room_after(void *array, const void *first, int64_t *capacity,
                                         int64_t count, size_t size)
{
    return tn__likely(count <= *capacity) || tn__vector_extend(array, first, capacity, count, size);
}

#endif
