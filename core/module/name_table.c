/* SPDX-License-Identifier: MIT
 *
 * A list of names with a hash index. */
#include "core/base/vector.h"
#include "core/module/name_table.h"

int64_t tn__name_table_find(const tn__name_table *table, const char *name, size_t length)
{
    uint32_t hash = tn__index_hash_name(name, length);
    int64_t at = -1, place;

    while ((place = tn__index_next(&table->index, hash, &at)) >= 0)
        if (strncmp(table->names[place], name, length) == 0 && table->names[place][length] == '\0')
            break;
    return place;
}

static uint32_t hash_of(const char *name)
{
    return tn__index_hash_name(name, strlen(name));
}

int64_t tn__name_table_add(tn__name_table *table, const char *name)
{
    if (!tn__vector_room(&table->names, &table->capacity, table->count + 1, sizeof *table->names))
        return -1;
    char *copy = tn_strdup(name);
    if (copy == NULL || !tn__index_add(&table->index, hash_of(name), table->count)) {
        tn_free(copy);
        return -1;
    }
    table->names[table->count] = copy;
    return table->count++;
}

void tn__name_table_remove(tn__name_table *table, int64_t place)
{
    tn__index_remove(&table->index, hash_of(table->names[place]), place);
    tn_free(table->names[place]);
    size_t behind = (size_t)(table->count - place - 1);
    memmove(table->names + place, table->names + place + 1, behind * sizeof *table->names);
    table->count--;
    if (behind > 0)
        tn__index_close_up(&table->index, place);
}

tn_status tn__name_table_rename(tn__name_table *table, int64_t place, const char *name)
{
    char *copy = tn_strdup(name);
    if (copy == NULL || !tn__index_add(&table->index, hash_of(name), place)) {
        tn_free(copy);
        return tn_error_last_code();
    }
    tn__index_remove(&table->index, hash_of(table->names[place]), place);
    tn_free(table->names[place]);
    table->names[place] = copy;
    return TN_OK;
}

void tn__name_table_free(tn__name_table *table)
{
    for (int64_t i = 0; i < table->count; i++)
        tn_free(table->names[i]);
    tn_free(table->names);
    tn__index_free(&table->index);
    *table = (tn__name_table){ 0 };
}
