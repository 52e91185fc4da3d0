/* SPDX-License-Identifier: MIT
 *
 * One ordered map of names to slots. Few names are compared one by one; beyond FEW there is an index
 * over them (open addressing), kept by what changes the map, so that looking up writes nothing and
 * may happen in several threads. */
#include "core/module/internal.h"

enum { FEW = 16 };

_Thread_local uint64_t tn__slot_steps;

/* ---- the index ------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return hash ^ (hash >> 32);
}

/* Where a name is in the index, or the free place where it would go. */
static int64_t place_of(const tn__slots *slots, const char *name)
{
    int64_t mask = slots->index_size - 1, at = (int64_t)(hash_of(name) & (uint64_t)mask);
    for (; slots->index[at] != 0; at = (at + 1) & mask) {
        const char *own = slots->at[slots->index[at] - 1].name;
        tn__slot_steps++;
        if (own == name || strcmp(own, name) == 0)
            break;
    }
    return at;
}

static void index_drop(tn__slots *slots)
{
    tn_free(slots->index);
    slots->index = NULL;
    slots->index_size = 0;
}

void tn__slots_reindex(tn__slots *slots)
{
    int64_t size = 4 * FEW;
    uint64_t mark = tn_error_mark();

    index_drop(slots);
    if (slots->count <= FEW || slots->count >= UINT32_MAX)
        return;
    while (size < 4 * slots->count)
        size *= 2;
    slots->index = tn_calloc((size_t)size, sizeof *slots->index);
    if (slots->index == NULL) { /* then all names are compared, as with few */
        tn_error_restore(mark);
        return;
    }
    slots->index_size = size;
    for (int64_t i = 0; i < slots->count; i++)
        slots->index[place_of(slots, slots->at[i].name)] = (uint32_t)(i + 1);
    tn__slot_steps += (uint64_t)slots->count;
}

/* The last slot is new. */
static void index_last(tn__slots *slots)
{
    if (slots->count <= FEW)
        return;
    if (slots->index == NULL || 2 * slots->count > slots->index_size)
        tn__slots_reindex(slots);
    else
        slots->index[place_of(slots, slots->at[slots->count - 1].name)] = (uint32_t)slots->count;
}

/* The last slot goes: its place is emptied, and what follows only because it was taken moves up. */
static void unindex_last(tn__slots *slots)
{
    if (slots->index == NULL)
        return;
    int64_t mask = slots->index_size - 1, at = place_of(slots, slots->at[slots->count - 1].name);
    for (int64_t next = (at + 1) & mask; slots->index[next] != 0; next = (next + 1) & mask) {
        const char *name = slots->at[slots->index[next] - 1].name;
        int64_t home = (int64_t)(hash_of(name) & (uint64_t)mask);
        if (((next - home) & mask) < ((next - at) & mask))
            continue;
        slots->index[at] = slots->index[next];
        at = next;
    }
    slots->index[at] = 0;
}

/* ---- the map --------------------------------------------------------------------------------- */

tn__slot *tn__slots_find(const tn__slots *slots, const char *name)
{
    if (slots->index != NULL) {
        uint32_t place = slots->index[place_of(slots, name)];
        return place != 0 ? &slots->at[place - 1] : NULL;
    }
    /* Names are few and differ early; only our own copy of a name is known by its address. */
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
    tn_free(slots->index);
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
    if (tn__build_count(name) != TN_OK)
        return NULL;
    if (slots->count == slots->capacity) {
        int64_t capacity = slots->capacity > 0 ? slots->capacity * 2 : 4;
        tn__slot *grown = tn_realloc(slots->at, (size_t)capacity * sizeof *grown);
        if (grown == NULL)
            return NULL;
        slots->at = grown;
        slots->capacity = capacity;
    }
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

    if (last)
        unindex_last(slots);
    memmove(slot, slot + 1, (size_t)(slots->count - index - 1) * sizeof *slot);
    slots->count--;
    if (!last)
        tn__slots_reindex(slots);
    slot_release(&gone);
}
