/* SPDX-License-Identifier: MIT
 *
 * Named tensors in order, with text beside them: what state_dict gives and what files hold. */
#include "core/module/internal.h"

struct entry {
    char *name;
    tn_tensor *tensor;
};

struct meta {
    char *key;
    char *value;
};

struct tn_state {
    struct entry *at;
    int64_t count, capacity;
    int64_t *index; /* by hash of the name: place + 1, 0 is empty; a power of two long */
    int64_t index_size;
    struct meta *meta;
    int64_t meta_count, meta_capacity;
};

tn_state *tn_state_new(void)
{
    return tn_calloc(1, sizeof(tn_state));
}

void tn_state_drop(tn_state *state)
{
    if (state == NULL)
        return;
    for (int64_t i = 0; i < state->count; i++) {
        tn_free(state->at[i].name);
        tn_tensor_drop(state->at[i].tensor);
    }
    for (int64_t i = 0; i < state->meta_count; i++) {
        tn_free(state->meta[i].key);
        tn_free(state->meta[i].value);
    }
    tn_free(state->at);
    tn_free(state->index);
    tn_free(state->meta);
    tn_free(state);
}

/* ---- names ----------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return hash ^ (hash >> 29);
}

/* Where `name` is in the index, or where it would go. */
static int64_t *index_place(const tn_state *state, int64_t *index, int64_t size, const char *name)
{
    int64_t place = (int64_t)(hash_of(name) & (uint64_t)(size - 1));
    while (index[place] != 0 && strcmp(state->at[index[place] - 1].name, name) != 0)
        place = (place + 1) & (size - 1);
    return &index[place];
}

/* Room for one more entry, so that adding it cannot fail half-way. */
static bool make_room(tn_state *state)
{
    if (state->count == state->capacity) {
        int64_t capacity = state->capacity > 0 ? state->capacity * 2 : 16;
        struct entry *grown = tn_realloc(state->at, (size_t)capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        state->at = grown;
        state->capacity = capacity;
    }
    if ((state->count + 1) * 2 > state->index_size) {
        int64_t size = state->index_size > 0 ? state->index_size * 2 : 32;
        int64_t *index = tn_calloc((size_t)size, sizeof *index);
        if (index == NULL)
            return false;
        for (int64_t i = 0; i < state->count; i++)
            *index_place(state, index, size, state->at[i].name) = i + 1;
        tn_free(state->index);
        state->index = index;
        state->index_size = size;
    }
    return true;
}

int64_t tn_state_find(const tn_state *state, const char *name)
{
    if (state == NULL || name == NULL || state->index_size == 0)
        return -1;
    return *index_place(state, state->index, state->index_size, name) - 1;
}

tn_status tn_state_set(tn_state *state, const char *name, tn_tensor *tensor)
{
    if (state == NULL || name == NULL || tensor == NULL)
        return tn__null_input("an argument of tn_state_set");
    if (tn__is_none(tensor))
        return tn_fail(TN_ERR_TYPE, "state entry \"%s\": TN_NONE is not a tensor", name);
    int64_t found = tn_state_find(state, name);
    if (found >= 0) {
        tn_tensor *before = state->at[found].tensor;
        state->at[found].tensor = tn_tensor_keep(tensor);
        tn_tensor_drop(before);
        return TN_OK;
    }
    char *copy = tn_strdup(name);
    if (copy == NULL || !make_room(state)) {
        tn_free(copy);
        return TN_ERR_MEMORY;
    }
    *index_place(state, state->index, state->index_size, name) = state->count + 1;
    state->at[state->count++] = (struct entry){ copy, tn_tensor_keep(tensor) };
    return TN_OK;
}

int64_t tn_state_count(const tn_state *state)
{
    return state != NULL ? state->count : 0;
}

static bool in_range(int64_t index, int64_t count)
{
    if (index >= 0 && index < count)
        return true;
    tn_fail(TN_ERR_INDEX, "state entry %lld is out of range: there are %lld", (long long)index,
            (long long)count);
    return false;
}

const char *tn_state_name(const tn_state *state, int64_t index)
{
    return in_range(index, tn_state_count(state)) ? state->at[index].name : NULL;
}

tn_tensor *tn_state_tensor(const tn_state *state, int64_t index)
{
    return in_range(index, tn_state_count(state)) ? state->at[index].tensor : NULL;
}

/* ---- text beside the tensors ----------------------------------------------------------------- */

static struct meta *meta_find(const tn_state *state, const char *key)
{
    for (int64_t i = 0; i < state->meta_count; i++)
        if (strcmp(state->meta[i].key, key) == 0)
            return &state->meta[i];
    return NULL;
}

const char *tn_state_meta(const tn_state *state, const char *key)
{
    const struct meta *meta = state != NULL && key != NULL ? meta_find(state, key) : NULL;
    return meta != NULL ? meta->value : NULL;
}

tn_status tn_state_set_meta(tn_state *state, const char *key, const char *value)
{
    if (state == NULL || key == NULL || value == NULL)
        return tn__null_input("an argument of tn_state_set_meta");
    char *text = tn_strdup(value);
    if (text == NULL)
        return TN_ERR_MEMORY;
    struct meta *meta = meta_find(state, key);
    if (meta != NULL) {
        tn_free(meta->value);
        meta->value = text;
        return TN_OK;
    }
    char *name = tn_strdup(key);
    if (name != NULL && state->meta_count == state->meta_capacity) {
        int64_t capacity = state->meta_capacity > 0 ? state->meta_capacity * 2 : 4;
        struct meta *grown = tn_realloc(state->meta, (size_t)capacity * sizeof *grown);
        if (grown != NULL) {
            state->meta = grown;
            state->meta_capacity = capacity;
        }
    }
    if (name == NULL || state->meta_count == state->meta_capacity) {
        tn_free(name);
        tn_free(text);
        return TN_ERR_MEMORY;
    }
    state->meta[state->meta_count++] = (struct meta){ name, text };
    return TN_OK;
}

int64_t tn_state_meta_count(const tn_state *state)
{
    return state != NULL ? state->meta_count : 0;
}

const char *tn_state_meta_key(const tn_state *state, int64_t index)
{
    return in_range(index, tn_state_meta_count(state)) ? state->meta[index].key : NULL;
}
