/* SPDX-License-Identifier: MIT
 *
 * An ordered map from names to slots. Up to FEW names are compared one by one. A larger map has an
 * index, which is updated when the map changes: lookups write nothing, so that several threads may
 * look up names at the same time. */
#include "core/base/vector.h"
#include "core/module/internal.h"

enum { FEW = 16 };

_Thread_local uint64_t tn__slot_steps;

/* ---- the index ------------------------------------------------------------------------------- */

static uint32_t hash_of(const char *name)
{
    return tn__index_hash_name(name, strlen(name));
}

void tn__slots_reindex(tn__slots *slots)
{
    uint64_t mark = tn_error_mark();

    tn__index_free(&slots->index);
    if (slots->count <= FEW)
        return;
    for (int64_t i = 0; i < slots->count; i++)
        if (!tn__index_add(&slots->index, hash_of(slots->at[i].name), i)) {
            tn_error_restore(mark); /* without the index, all names are compared one by one */
            tn__index_free(&slots->index);
            return;
        }
    tn__slot_steps += (uint64_t)slots->count;
}

/* Adds the last slot, which is new, to the index. */
static void index_last(tn__slots *slots)
{
    uint64_t mark = tn_error_mark();
    int64_t last = slots->count - 1;

    if (slots->count <= FEW)
        return;
    if (slots->index.size == 0) {
        tn__slots_reindex(slots);
    } else if (!tn__index_add(&slots->index, hash_of(slots->at[last].name), last)) {
        tn_error_restore(mark);
        tn__index_free(&slots->index);
    }
}

/* ---- the map --------------------------------------------------------------------------------- */

tn__slot *tn__slots_find(const tn__slots *slots, const char *name)
{
    if (slots->index.size > 0) {
        uint32_t hash = hash_of(name);
        int64_t at = -1, place;
        tn__slot_steps++;
        while ((place = tn__index_next(&slots->index, hash, &at)) >= 0) {
            tn__slot_steps++;
            if (strcmp(slots->at[place].name, name) == 0)
                return &slots->at[place];
        }
        return NULL;
    }
    /* There are few names, and most differ in the first character. Equal addresses are found first:
     * then the caller got the name from the slot itself. */
    for (int64_t i = 0; i < slots->count; i++) {
        const char *own = slots->at[i].name;
        if (own == name || (own[0] == name[0] && strcmp(own, name) == 0)) {
            tn__slot_steps += (uint64_t)i;
            return &slots->at[i];
        }
    }
    tn__slot_steps += (uint64_t)slots->count;
    return NULL;
}

void tn__slot_hold(tn_module *module, tn__slot *slot, tn_module *child)
{
    tn_module *before = slot->child;

    slot->child = child;
    if (child != NULL) {
        atomic_fetch_add(&child->holders, 1);
        if (module->height <= child->height)
            module->height = child->height + 1;
    }
    if (before != NULL)
        atomic_fetch_sub(&before->holders, 1);
    tn_module_drop(before);
}

static void slot_release(tn__slot *slot)
{
    tn_free(slot->name);
    if (slot->tensor != NULL && !tn__is_none(slot->tensor))
        tn_tensor_drop(slot->tensor);
    if (slot->child != NULL)
        atomic_fetch_sub(&slot->child->holders, 1);
    tn_module_drop(slot->child);
    tn__computed_free(slot->computed);
}

void tn__slots_clear(tn__slots *slots)
{
    for (int64_t i = 0; i < slots->count; i++)
        slot_release(&slots->at[i]);
    tn_free(slots->at);
    tn__index_free(&slots->index);
    *slots = (tn__slots){ 0 };
}

void tn__slots_list(const tn__slots *slots, tn__text *text)
{
    for (int64_t i = 0; i < slots->count; i++)
        tn__text_add(text, "%s%s", i > 0 ? ", " : "", slots->at[i].name);
}

tn__slot *tn__slots_make(tn__slots *slots, const char *name)
{
    tn__slot *slot = tn__slots_find(slots, name);
    if (slot != NULL)
        return slot;
    if (tn__build_limit_count(name) != TN_OK)
        return NULL;
    if (!tn__vector_room(&slots->at, &slots->capacity, slots->count + 1, sizeof *slots->at))
        return NULL;
    char *copy = tn_strdup(name);
    if (copy == NULL)
        return NULL;
    slot = &slots->at[slots->count++];
    *slot = (tn__slot){ .name = copy };
    index_last(slots);
    return slot;
}

void tn__slots_remove(tn__slots *slots, tn__slot *slot)
{
    int64_t index = slot - slots->at;
    tn__slot gone = *slot;
    bool last = index == slots->count - 1;

    if (last && slots->index.size > 0)
        tn__index_remove(&slots->index, hash_of(slot->name), index);
    memmove(slot, slot + 1, (size_t)(slots->count - index - 1) * sizeof *slot);
    slots->count--;
    if (!last)
        tn__slots_reindex(slots);
    slot_release(&gone);
}
