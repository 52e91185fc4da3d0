/* SPDX-License-Identifier: MIT
 *
 * A hash index: maps the hash of an element to the element's place in an array that belongs to the
 * owner of the index (open addressing, at most half full). The index stores hashes and places only;
 * the owner compares the elements. */
#ifndef TN_CORE_BASE_INDEX_H
#define TN_CORE_BASE_INDEX_H

#include "core/base/internal.h"

typedef struct tn__index_cell {
    uint32_t hash, place; /* place + 1; 0: the cell is empty */
} tn__index_cell;

/* An index whose bytes are all zero is empty. */
typedef struct tn__index {
    tn__index_cell *cells;
    int64_t size; /* a power of two, or 0 */
    int64_t count;
    tn__index_cell *first; /* cells of the owner, which are never freed; NULL: none */
} tn__index;

uint32_t tn__index_hash_name(const char *name, size_t length);
static inline uint32_t tn__hash_address(const void *address)
{
    return (uint32_t)(((uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* Makes an empty index that first uses the owner's memory `cells`, which must be zeroed; `size` is
 * a power of two. */
void tn__index_begin(tn__index *index, tn__index_cell *cells, int64_t size);
/* Adds a place. Returns false, sets the error and changes nothing if memory runs out. */
bool tn__index_add(tn__index *index, uint32_t hash, int64_t place);
/* Records that the element at place `from`, with that hash, has moved to place `to`. */
void tn__index_move(tn__index *index, uint32_t hash, int64_t from, int64_t to);
void tn__index_remove(tn__index *index, uint32_t hash, int64_t place);
/* Decreases all stored places that are larger than `place` by one. To be called after the owner has
 * closed a gap in its array. */
void tn__index_close_up(tn__index *index, int64_t place);
void tn__index_free(tn__index *index);

/* Returns the next place whose hash is `hash`, -1 after the last one. Set *at to -1 before the
 * first call. */
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
