/* SPDX-License-Identifier: MIT
 *
 * Names in order, each found at once: what a state keeps its entries, versions and texts under.
 * What belongs to a name is in an array of the owner, at the name's place. */
#ifndef TN_CORE_MODULE_NAME_TABLE_H
#define TN_CORE_MODULE_NAME_TABLE_H

#include "core/base/index.h"

typedef struct tn__name_table {
    char **names;
    int64_t count, capacity;
    tn__index index;
} tn__name_table;

/* Its place, -1 if it is not there. The name is `length` bytes long. */
int64_t tn__name_table_find(const tn__name_table *table, const char *name, size_t length);
/* Adds a name that is not there yet at the end; -1 and an error when memory ran out: nothing has
 * changed then. */
int64_t tn__name_table_add(tn__name_table *table, const char *name);
/* Takes a name out; those behind it move up. */
void tn__name_table_remove(tn__name_table *table, int64_t place);
/* Gives a place another name, which is not there yet. */
tn_status tn__name_table_rename(tn__name_table *table, int64_t place, const char *name);
void tn__name_table_free(tn__name_table *table);

#endif
