/* SPDX-License-Identifier: MIT
 *
 * The hash index: open addressing with linear probing. */
#include "core/base/index.h"

enum { INDEX_LEAST = 16 };

uint32_t tn__index_hash_name(const char *name, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(hash ^ (hash >> 32));
}

void tn__index_begin(tn__index *index, tn__index_cell *cells, int64_t size)
{
    *index = (tn__index){ .cells = cells, .size = size, .first = cells };
}

static void put(tn__index_cell *cells, int64_t size, tn__index_cell cell)
{
    int64_t at = (int64_t)cell.hash & (size - 1);

    while (cells[at].place != 0)
        at = (at + 1) & (size - 1);
    cells[at] = cell;
}

static bool grow(tn__index *index)
{
    int64_t size = index->size > 0 ? 2 * index->size : INDEX_LEAST;
    tn__index_cell *cells = tn_calloc((size_t)size, sizeof *cells);

    if (cells == NULL)
        return false;
    for (int64_t i = 0; i < index->size; i++)
        if (index->cells[i].place != 0)
            put(cells, size, index->cells[i]);
    if (index->cells != index->first)
        tn_free(index->cells);
    index->cells = cells;
    index->size = size;
    return true;
}

bool tn__index_add(tn__index *index, uint32_t hash, int64_t place)
{
    if (place >= UINT32_MAX) {
        tn_fail(TN_ERR_VALUE, "table: too many entries; expected at most %u", UINT32_MAX);
        return false;
    }
    if (2 * (index->count + 1) > index->size && !grow(index))
        return false;
    put(index->cells, index->size, (tn__index_cell){ hash, (uint32_t)(place + 1) });
    index->count++;
    return true;
}

static int64_t cell_of(const tn__index *index, uint32_t hash, int64_t place)
{
    int64_t mask = index->size - 1, at = (int64_t)hash & mask;

    while ((int64_t)index->cells[at].place != place + 1)
        at = (at + 1) & mask;
    return at;
}

void tn__index_move(tn__index *index, uint32_t hash, int64_t from, int64_t to)
{
    index->cells[cell_of(index, hash, from)].place = (uint32_t)(to + 1);
}

void tn__index_remove(tn__index *index, uint32_t hash, int64_t place)
{
    int64_t mask = index->size - 1, at = cell_of(index, hash, place);

    /* Fills the hole: each following cell that linear probing had moved past the hole moves into it
     * and leaves a new hole. */
    for (int64_t next = (at + 1) & mask; index->cells[next].place != 0; next = (next + 1) & mask) {
        int64_t home = (int64_t)index->cells[next].hash & mask;

        if (((next - home) & mask) < ((next - at) & mask))
            continue;
        index->cells[at] = index->cells[next];
        at = next;
    }
    index->cells[at].place = 0;
    index->count--;
}

void tn__index_close_up(tn__index *index, int64_t place)
{
    for (int64_t i = 0; i < index->size; i++)
        index->cells[i].place -= (int64_t)index->cells[i].place > place + 1;
}

void tn__index_free(tn__index *index)
{
    if (index->cells != index->first)
        tn_free(index->cells);
    *index = (tn__index){ .cells = NULL };
}
