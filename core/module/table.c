/* SPDX-License-Identifier: MIT
 *
 * Names in order with an index over them: open addressing, the hash beside every name. */
#include "core/module/table.h"

static uint32_t hash_of(const char *name, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(hash ^ (hash >> 32));
}

/* Where a name is in the index, or where it would go. */
static int64_t place_of(const tn__table *table, const char *name, size_t length, uint32_t hash)
{
    int64_t mask = table->index_size - 1, at = (int64_t)hash & mask;
    for (; table->index[at] != 0; at = (at + 1) & mask) {
        int64_t i = (int64_t)table->index[at] - 1;
        if (table->hashes[i] == hash && strncmp(table->names[i], name, length) == 0 &&
            table->names[i][length] == '\0')
            break;
    }
    return at;
}

/* Where place `i` stands in the index. */
static int64_t index_of(const tn__table *table, int64_t i)
{
    int64_t mask = table->index_size - 1, at = (int64_t)table->hashes[i] & mask;
    while ((int64_t)table->index[at] != i + 1)
        at = (at + 1) & mask;
    return at;
}

static void index_add(uint32_t *index, int64_t size, uint32_t hash, int64_t i)
{
    int64_t at = (int64_t)hash & (size - 1);
    while (index[at] != 0)
        at = (at + 1) & (size - 1);
    index[at] = (uint32_t)(i + 1);
}

/* Empties a place of the index; what stood behind it only because it was taken moves up. */
static void index_remove(tn__table *table, int64_t at)
{
    int64_t mask = table->index_size - 1;
    for (int64_t next = (at + 1) & mask; table->index[next] != 0; next = (next + 1) & mask) {
        int64_t home = (int64_t)table->hashes[table->index[next] - 1] & mask;
        if (((next - home) & mask) < ((next - at) & mask))
            continue;
        table->index[at] = table->index[next];
        at = next;
    }
    table->index[at] = 0;
}

static tn_status make_room(tn__table *table)
{
    if (table->count == UINT32_MAX - 1)
        return tn_fail(TN_ERR_VALUE, "a state has at most %u entries", UINT32_MAX - 1);
    if (table->count == table->capacity) {
        int64_t capacity = table->capacity > 0 ? table->capacity * 2 : 16;
        char **names = tn_realloc(table->names, (size_t)capacity * sizeof *names);
        if (names == NULL)
            return TN_ERR_MEMORY;
        table->names = names;
        uint32_t *hashes = tn_realloc(table->hashes, (size_t)capacity * sizeof *hashes);
        if (hashes == NULL)
            return TN_ERR_MEMORY;
        table->hashes = hashes;
        table->capacity = capacity;
    }
    if ((table->count + 1) * 2 > table->index_size) {
        int64_t size = table->index_size > 0 ? table->index_size * 2 : 32;
        uint32_t *index = tn_calloc((size_t)size, sizeof *index);
        if (index == NULL)
            return TN_ERR_MEMORY;
        for (int64_t i = 0; i < table->count; i++)
            index_add(index, size, table->hashes[i], i);
        tn_free(table->index);
        table->index = index;
        table->index_size = size;
    }
    return TN_OK;
}

int64_t tn__table_find(const tn__table *table, const char *name, size_t length)
{
    if (table->index_size == 0)
        return -1;
    return (int64_t)table->index[place_of(table, name, length, hash_of(name, length))] - 1;
}

int64_t tn__table_add(tn__table *table, const char *name)
{
    if (make_room(table) != TN_OK)
        return -1;
    char *copy = tn_strdup(name);
    if (copy == NULL)
        return -1;
    uint32_t hash = hash_of(name, strlen(name));
    table->names[table->count] = copy;
    table->hashes[table->count] = hash;
    index_add(table->index, table->index_size, hash, table->count);
    return table->count++;
}

void tn__table_remove(tn__table *table, int64_t place)
{
    index_remove(table, index_of(table, place));
    tn_free(table->names[place]);
    size_t behind = (size_t)(table->count - place - 1);
    memmove(table->names + place, table->names + place + 1, behind * sizeof *table->names);
    memmove(table->hashes + place, table->hashes + place + 1, behind * sizeof *table->hashes);
    table->count--;
    for (int64_t at = 0; at < table->index_size && behind > 0; at++)
        table->index[at] -= (int64_t)table->index[at] > place + 1;
}

tn_status tn__table_rename(tn__table *table, int64_t place, const char *name)
{
    char *copy = tn_strdup(name);
    if (copy == NULL)
        return TN_ERR_MEMORY;
    index_remove(table, index_of(table, place));
    tn_free(table->names[place]);
    table->names[place] = copy;
    table->hashes[place] = hash_of(name, strlen(name));
    index_add(table->index, table->index_size, table->hashes[place], place);
    return TN_OK;
}

void tn__table_free(tn__table *table)
{
    for (int64_t i = 0; i < table->count; i++)
        tn_free(table->names[i]);
    tn_free(table->names);
    tn_free(table->hashes);
    tn_free(table->index);
    *table = (tn__table){ 0 };
}

void *tn__table_room(const tn__table *table, void *array, int64_t *capacity, size_t size)
{
    if (table->count < *capacity)
        return array;
    int64_t grown = *capacity > 0 ? *capacity * 2 : 16;
    void *fresh = tn_realloc(array, (size_t)grown * size);
    if (fresh != NULL)
        *capacity = grown;
    return fresh;
}
