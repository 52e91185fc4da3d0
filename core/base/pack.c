/* SPDX-License-Identifier: MIT
 *
 * Value packs: positional values and named values, which the pack owns. */
#include "core/base/vector.h"

/* Entries inside the struct. Calls rarely need more, so that they need no further allocation. */
#define INLINE_ENTRIES 4

struct entry {
    tn_value value;
    void *block; /* memory of the value's strings and lists; NULL: none */
    char *name;  /* NULL: positional */
};

struct tn_pack {
    int64_t count, positional, capacity;
    struct entry *at;
    struct entry first[INLINE_ENTRIES];
};

tn_pack *tn_pack_new(void)
{
    tn_pack *pack = tn_malloc(sizeof *pack);

    if (!pack)
        return NULL;
    pack->count = pack->positional = 0;
    pack->capacity = INLINE_ENTRIES;
    pack->at = pack->first;
    return pack;
}

void tn_pack_drop(tn_pack *pack)
{
    if (!pack)
        return;
    for (int64_t i = 0; i < pack->count; i++) {
        tn__value_free(&pack->at[i].value, pack->at[i].block);
        tn_free(pack->at[i].name);
    }
    if (pack->at != pack->first)
        tn_free(pack->at);
    tn_free(pack);
}

void tn__pack_shorten(tn_pack *pack, int64_t count)
{
    while (pack->count > count) {
        struct entry *entry = &pack->at[--pack->count];

        pack->positional -= entry->name == NULL;
        tn__value_free(&entry->value, entry->block);
        tn_free(entry->name);
    }
}

tn_status tn_pack_add(tn_pack *pack, const char *name, tn_value value)
{
    struct entry entry = { .name = NULL };
    tn_status status;

    if (!pack)
        return tn_error_null("tn_pack_add: pack");
    if (!name && pack->positional < pack->count)
        return tn_fail(TN_ERR_VALUE,
                       "tn_pack_add: name: it is NULL after the named value %q; expected a name",
                       pack->at[pack->count - 1].name);
    if (name && !*name)
        return tn_fail(TN_ERR_VALUE,
                       "tn_pack_add: name: it is empty; expected a name, or NULL for a positional "
                       "value");
    if (name && tn_pack_find(pack, name) >= 0)
        return tn_fail(TN_ERR_KEY,
                       "tn_pack_add: name: in the pack already, got %q; expected another name",
                       name);
    if (!tn__vector_room_after(&pack->at, pack->first, &pack->capacity, pack->count + 1,
                               sizeof *pack->at))
        return TN_ERR_MEMORY;
    if (name) {
        entry.name = tn_strdup(name);
        if (!entry.name)
            return TN_ERR_MEMORY;
    }
    status = tn__value_copy(&value, &entry.value, &entry.block);
    if (status != TN_OK) {
        tn_free(entry.name);
        return status;
    }
    pack->at[pack->count++] = entry;
    pack->positional += name == NULL;
    return TN_OK;
}

/* Returns an entry, or NULL and sets the error if the pack is NULL or the index is out of range. */
static struct entry *entry_at(const tn_pack *pack, int64_t index)
{
    if (!pack) {
        tn_error_null("pack");
        return NULL;
    }
    if (index < 0 || index >= pack->count) {
        tn__error_index(index, pack->count, "pack: index: ");
        return NULL;
    }
    return &pack->at[index];
}

tn_status tn_pack_set(tn_pack *pack, int64_t index, tn_value value)
{
    struct entry *entry = entry_at(pack, index);
    struct entry fresh;
    tn_status status;

    if (!entry)
        return pack ? TN_ERR_INDEX : tn_error_code();
    status = tn__value_copy(&value, &fresh.value, &fresh.block);
    if (status != TN_OK)
        return status;
    tn__value_free(&entry->value, entry->block);
    entry->value = fresh.value;
    entry->block = fresh.block;
    return TN_OK;
}

int64_t tn_pack_count(const tn_pack *pack)
{
    return tn__given(pack != NULL, "tn_pack_count: pack") ? pack->count : 0;
}

int64_t tn_pack_positional(const tn_pack *pack)
{
    return tn__given(pack != NULL, "tn_pack_positional: pack") ? pack->positional : 0;
}

tn_value tn_pack_at(const tn_pack *pack, int64_t index)
{
    const struct entry *entry = entry_at(pack, index);

    return entry ? entry->value : (tn_value){ .kind = TN_VALUE_NONE };
}

const char *tn_pack_name(const tn_pack *pack, int64_t index)
{
    const struct entry *entry = entry_at(pack, index);

    return entry ? entry->name : NULL;
}

int64_t tn_pack_find(const tn_pack *pack, const char *name)
{
    if (!tn__given(pack != NULL, "tn_pack_find: pack") ||
        !tn__given(name != NULL, "tn_pack_find: name"))
        return -1;
    for (int64_t i = pack->positional; i < pack->count; i++)
        if (strcmp(pack->at[i].name, name) == 0)
            return i;
    return -1;
}

tn_tensor *tn_pack_tensor(const tn_pack *pack, int64_t index)
{
    const struct entry *entry = entry_at(pack, index);

    if (!entry)
        return NULL;
    if (entry->value.kind != TN_VALUE_TENSOR) {
        tn_fail(TN_ERR_TYPE, "pack: value %lld: wrong kind, got %s; expected a tensor",
                (long long)index, tn__value_kind_name(entry->value.kind));
        return NULL;
    }
    return entry->value.as.tensor;
}
