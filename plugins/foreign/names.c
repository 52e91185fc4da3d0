/* SPDX-License-Identifier: MIT
 *
 * A table from names to numbers (names.h). */
#include "names.h"

#include <string.h>

/* The address of the table is part of it, so that a file cannot have names that all fall into one
 * place. */
static uint64_t hash_of(const struct names *names, const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t)(uintptr_t)names->at >> 4;

    while (*name != '\0')
        hash = (hash ^ (unsigned char)*name++) * UINT64_C(1099511628211);
    return hash ^ hash >> 32;
}

/* The entry of a name, or the free one where it belongs. */
static struct names_entry *place_of(const struct names *names, const char *name)
{
    uint64_t at = hash_of(names, name) & (names->size - 1);

    while (names->at[at].name != NULL && strcmp(names->at[at].name, name) != 0)
        at = (at + 1) & (names->size - 1);
    return &names->at[at];
}

int64_t names_find(const struct names *names, const char *name)
{
    const struct names_entry *entry = names->size > 0 ? place_of(names, name) : NULL;

    return entry != NULL && entry->name != NULL ? entry->number : -1;
}

static tn_status grow(struct names *names)
{
    struct names larger = { NULL, names->size > 0 ? 2 * names->size : 64, names->count };

    larger.at = tn_calloc(larger.size, sizeof *larger.at);
    if (larger.at == NULL)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < names->size; i++)
        if (names->at[i].name != NULL)
            *place_of(&larger, names->at[i].name) = names->at[i];
    tn_free(names->at);
    *names = larger;
    return TN_OK;
}

tn_status names_add(struct names *names, const char *name, int64_t number)
{
    if (2 * names->count >= names->size) {
        tn_status status = grow(names);

        if (status != TN_OK)
            return status;
    }
    *place_of(names, name) = (struct names_entry){ name, number };
    names->count++;
    return TN_OK;
}

void names_free(struct names *names)
{
    tn_free(names->at);
    *names = (struct names){ 0 };
}
