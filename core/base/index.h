/* SPDX-License-Identifier: MIT
 *
 * A hash index: finds places in an array of the owner by a hash of what is there (open addressing,
 * at most half full). The owner compares the elements; the index knows hashes and places only. */
#ifndef TN_CORE_BASE_INDEX_H
#define TN_CORE_BASE_INDEX_H

#include "core/base/internal.h"

typedef struct tn__index_cell {
    uint32_t hash, place; /* place + 1; 0: the cell is empty */
} tn__index_cell;

/* Zero-initialized: empty. */
typedef struct tn__index {
    tn__index_cell *cells;
    int64_t size; /* a power of two, or 0 */
    int64_t count;
    tn__index_cell *first; /* cells that are not freed, NULL without */
} tn__index;

uint32_t tn__index_hash_name(const char *name, size_t length);
static inline uint32_t tn__hash_address(const void *address)
{
    return (uint32_t)(((uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* An empty index whose first cells, zeroed, are the owner's; `size` is a power of two. */
void tn__index_begin(tn__index *index, tn__index_cell *cells, int64_t size);
/* False and an error when there is no memory: nothing has changed then. */
bool tn__index_add(tn__index *index, uint32_t hash, int64_t place);
/* What was added takes another place. */
void tn__index_move(tn__index *index, uint32_t hash, int64_t from, int64_t to);
void tn__index_remove(tn__index *index, uint32_t hash, int64_t place);
/* After an element was taken out of the array: the places behind it are smaller by one. */
void tn__index_close_up(tn__index *index, int64_t place);
void tn__index_free(tn__index *index);

/* The next place with that hash, -1 after the last. *at is -1 at first. */
static inline int64_t tn__index_next(const tn__index *index, uint32_t hash, int64_t *at)
{
    int64_t mask = index->size - 1;

    if (index->size == 0)
        return -1;
    for (int64_t i = (*at < 0 ? (int64_t)hash : *at + 1) & mask; index->cells[i].place != 0;
         i = (i + 1) & mask)
        if (index->cells[i].hash == hash) {
            *at = i;
            return (int64_t)index->cells[i].place - 1;
        }
    return -1;
}

#endif
