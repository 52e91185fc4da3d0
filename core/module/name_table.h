/* SPDX-License-Identifier: MIT
 *
 * A list of names in order, with an index for fast lookup. A state has such a table for its
 * entries, its versions and its texts. The owner of a table keeps the data of each name in an array
 * of its own, at the same index. */
#ifndef TN_CORE_MODULE_NAME_TABLE_H
#define TN_CORE_MODULE_NAME_TABLE_H

#include "core/base/index.h"

typedef struct tn__name_table {
    char **names;
    int64_t count, capacity;
    tn__index index;
} tn__name_table;

/* Returns the index of a name, or -1 if it is not in the table. The name is `length` bytes long. */
int64_t tn__name_table_find(const tn__name_table *table, const char *name, size_t length);
/* Appends a name that must not be in the table yet. Returns its index. Returns -1, sets the error
 * and changes nothing if memory runs out. */
int64_t tn__name_table_add(tn__name_table *table, const char *name);
/* Removes a name. The index of every later name decreases by one. */
void tn__name_table_remove(tn__name_table *table, int64_t place);
/* Replaces the name at an index. The new name must not be in the table yet. */
tn_status tn__name_table_rename(tn__name_table *table, int64_t place, const char *name);
void tn__name_table_free(tn__name_table *table);

#endif
