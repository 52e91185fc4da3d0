/* SPDX-License-Identifier: MIT
 *
 * Names in order, each found at once: what a state keeps its entries, versions and texts under. What
 * belongs to a name stands in an array of the owner's, at the name's place. */
#ifndef TN_CORE_MODULE_TABLE_H
#define TN_CORE_MODULE_TABLE_H

#include "core/base/internal.h"

typedef struct tn__table {
    char **names;
    uint32_t *hashes;
    int64_t count, capacity;
    uint32_t *index; /* place + 1, 0 is empty; a power of two long */
    int64_t index_size;
} tn__table;

/* Its place, -1 if it is not there. The name is `length` bytes long. */
int64_t tn__table_find(const tn__table *table, const char *name, size_t length);
/* Adds a name that is not there yet at the end; -1 and an error when memory ran out: nothing has
 * changed then. */
int64_t tn__table_add(tn__table *table, const char *name);
/* Takes a name out; those behind it move up. */
void tn__table_remove(tn__table *table, int64_t place);
/* Gives a place another name, which is not there yet. */
tn_status tn__table_rename(tn__table *table, int64_t place, const char *name);
void tn__table_free(tn__table *table);

/* Room for one more element of an owner's array; NULL and an error. */
void *tn__table_room(const tn__table *table, void *array, int64_t *capacity, size_t size);

#endif
