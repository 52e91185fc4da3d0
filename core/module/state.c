/* SPDX-License-Identifier: MIT
 *
 * A state: values by name and in order, versions of the modules to which they belong, and texts. */
#include "core/base/vector.h"
#include "core/module/loading.h"
#include "core/module/name_table.h"

struct entry {
    tn_value value;
    void *block; /* memory of the value's strings and lists */
    bool read;   /* the entry was read while the state was watched */
};

struct tn_state {
    tn__name_table names, paths, keys;
    struct entry *entries;
    int64_t entries_capacity;
    int64_t *versions; /* versions[i] belongs to the path paths.names[i] */
    int64_t versions_capacity;
    char **texts; /* texts[i] belongs to the key keys.names[i] */
    int64_t texts_capacity;
    bool watched;
};

tn_state *tn_state_new(void)
{
    return tn_calloc(1, sizeof(tn_state));
}

void tn_state_drop(tn_state *state)
{
    if (state == NULL)
        return;
    for (int64_t i = 0; i < state->names.count; i++)
        tn__value_free(&state->entries[i].value, state->entries[i].block);
    for (int64_t i = 0; i < state->keys.count; i++)
        tn_free(state->texts[i]);
    tn__name_table_free(&state->names);
    tn__name_table_free(&state->paths);
    tn__name_table_free(&state->keys);
    tn_free(state->entries);
    tn_free(state->versions);
    tn_free(state->texts);
    tn_free(state);
}

static bool in_range(const char *what, int64_t index, int64_t count)
{
    if (index >= 0 && index < count)
        return true;
    tn__error_index(index, count, "state: index of %s: ", what);
    return false;
}

/* ---- entries --------------------------------------------------------------------------------- */

int64_t tn_state_find(const tn_state *state, const char *name)
{
    return tn__not_null(state, "tn_state_find: state") &&
                   tn__given(name != NULL, "tn_state_find: name")
               ? tn__name_table_find(&state->names, name, strlen(name))
               : -1;
}

/* Adds or replaces an entry and takes over its value. On failure the value stays the caller's. */
static tn_status put(tn_state *state, const char *name, struct entry entry)
{
    int64_t found = tn_state_find(state, name);
    if (found >= 0) {
        struct entry before = state->entries[found];
        state->entries[found] = entry;
        tn__value_free(&before.value, before.block);
        return TN_OK;
    }
    if (!tn__vector_room(&state->entries, &state->entries_capacity, state->names.count + 1,
                         sizeof *state->entries))
        return TN_ERR_MEMORY;
    int64_t place = tn__name_table_add(&state->names, name);
    if (place < 0)
        return tn_error_last_code();
    state->entries[place] = entry;
    return TN_OK;
}

tn_status tn_state_set(tn_state *state, const char *name, tn_tensor *tensor)
{
    if (state == NULL || name == NULL || tensor == NULL)
        return tn__error_null_of("tn_state_set", "state, name, tensor", state, name, tensor);
    if (tn__is_none(tensor))
        return tn_fail(TN_ERR_TYPE, "state entry \"%s\": it is TN_NONE; expected a tensor", name);
    struct entry entry = { .value = tn_value_tensor(tensor) };
    tn_tensor_keep(tensor); /* before put(), which may drop the last reference to this tensor */
    tn_status status = put(state, name, entry);
    if (status != TN_OK)
        tn_tensor_drop(tensor);
    return status;
}

tn_status tn_state_set_value(tn_state *state, const char *name, tn_value value)
{
    if (state == NULL || name == NULL)
        return tn__error_null_of("tn_state_set_value", "state, name", state, name);
    if (value.kind == TN_VALUE_TENSOR)
        return tn_state_set(state, name, value.as.tensor);
    if (value.kind == TN_VALUE_OPAQUE)
        return tn_fail(TN_ERR_TYPE,
                       "state entry \"%s\": cannot be saved, got an opaque value; expected another "
                       "kind, such as bytes (tn_value_bytes)",
                       name);
    struct entry entry = { 0 };
    tn_status status = tn__value_copy(&value, &entry.value, &entry.block);
    if (status != TN_OK)
        return status;
    status = put(state, name, entry);
    if (status != TN_OK)
        tn__value_free(&entry.value, entry.block);
    return status;
}

int64_t tn_state_count(const tn_state *state)
{
    return tn__not_null(state, "tn_state_count: state") ? state->names.count : 0;
}

const char *tn_state_name(const tn_state *state, int64_t index)
{
    return in_range("entry", index, tn_state_count(state)) ? state->names.names[index] : NULL;
}

/* Returns an entry, and marks it as read if the state is watched. Only the copy that one module's
 * load_state gets is watched, and only the thread that loads uses this copy. */
static const struct entry *read_entry(const tn_state *state, int64_t index)
{
    struct entry *entry = &state->entries[index];
    if (state->watched)
        entry->read = true;
    return entry;
}

void tn__state_watch(tn_state *state, bool on)
{
    state->watched = on;
}

bool tn__state_was_read(const tn_state *state, int64_t index)
{
    return state->entries[index].read;
}

void tn__state_mark_read(tn_state *state, int64_t index)
{
    state->entries[index].read = true;
}

tn_value tn_state_value(const tn_state *state, int64_t index)
{
    if (in_range("entry", index, tn_state_count(state)))
        return read_entry(state, index)->value;
    return (tn_value){ .kind = TN_VALUE_NONE };
}

tn_tensor *tn_state_tensor(const tn_state *state, int64_t index)
{
    if (!in_range("entry", index, tn_state_count(state)))
        return NULL;
    const tn_value *value = &read_entry(state, index)->value;
    if (value->kind == TN_VALUE_TENSOR)
        return value->as.tensor;
    tn_fail(TN_ERR_TYPE,
            "state entry \"%s\": wrong kind, got %s; expected a tensor (tn_state_value returns "
            "values of any kind)",
            state->names.names[index], tn__value_kind_name(value->kind));
    return NULL;
}

static tn_status no_entry(const tn_state *state, const char *name)
{
    const char *near = tn__name_nearest(name, (const char *const *)state->names.names,
                                        state->names.count);

    if (near != NULL)
        return tn_fail(TN_ERR_KEY, "state: no entry \"%s\"; did you mean \"%s\"?", name, near);
    return tn_fail(TN_ERR_KEY, "state: no entry \"%s\"; it has %lld entries%s%s%s", name,
                   (long long)state->names.count, state->names.count > 0 ? ", the first \"" : "",
                   state->names.count > 0 ? state->names.names[0] : "",
                   state->names.count > 0 ? "\"" : "");
}

tn_tensor *tn_state_get(const tn_state *state, const char *name)
{
    int64_t found;

    if (state == NULL || name == NULL) {
        tn__error_null_of("tn_state_get", "state, name", state, name);
        return NULL;
    }
    found = tn_state_find(state, name);
    if (found >= 0)
        return tn_state_tensor(state, found);
    no_entry(state, name);
    return NULL;
}

tn_status tn_state_remove(tn_state *state, const char *name)
{
    if (state == NULL || name == NULL)
        return tn__error_null_of("tn_state_remove", "state, name", state, name);
    int64_t found = tn_state_find(state, name);
    if (found < 0)
        return no_entry(state, name);
    struct entry gone = state->entries[found];
    memmove(state->entries + found, state->entries + found + 1,
            (size_t)(state->names.count - found - 1) * sizeof *state->entries);
    tn__name_table_remove(&state->names, found);
    tn__value_free(&gone.value, gone.block);
    return TN_OK;
}

tn_status tn_state_rename(tn_state *state, const char *name, const char *to)
{
    if (state == NULL || name == NULL || to == NULL)
        return tn__error_null_of("tn_state_rename", "state, name, to", state, name, to);
    int64_t found = tn_state_find(state, name);
    if (found < 0)
        return no_entry(state, name);
    if (strcmp(name, to) == 0)
        return TN_OK;
    if (tn_state_find(state, to) >= 0)
        return tn_fail(TN_ERR_KEY,
                       "state: entry \"%s\": exists already; \"%s\" cannot be renamed to it", to,
                       name);
    return tn__name_table_rename(&state->names, found, to);
}

/* ---- versions of modules --------------------------------------------------------------------- */

int64_t tn_state_version(const tn_state *state, const char *path)
{
    int64_t found = tn__not_null(state, "tn_state_version: state") &&
                            tn__given(path != NULL, "tn_state_version: path")
                        ? tn__name_table_find(&state->paths, path, strlen(path))
                        : -1;
    return found >= 0 ? state->versions[found] : -1;
}

tn_status tn_state_set_version(tn_state *state, const char *path, int64_t version)
{
    if (state == NULL || path == NULL)
        return tn__error_null_of("tn_state_set_version", "state, path", state, path);
    if (version < -1)
        return tn_fail(TN_ERR_VALUE,
                       "version: negative, got %lld for \"%s\"; expected 0 or more, or -1 to "
                       "remove it",
                       (long long)version, path);
    int64_t found = tn__name_table_find(&state->paths, path, strlen(path));
    if (found >= 0 && version >= 0) {
        state->versions[found] = version;
    } else if (found >= 0) {
        memmove(state->versions + found, state->versions + found + 1,
                (size_t)(state->paths.count - found - 1) * sizeof *state->versions);
        tn__name_table_remove(&state->paths, found);
    } else if (version >= 0) {
        if (!tn__vector_room(&state->versions, &state->versions_capacity, state->paths.count + 1,
                             sizeof *state->versions))
            return TN_ERR_MEMORY;
        int64_t place = tn__name_table_add(&state->paths, path);
        if (place < 0)
            return tn_error_last_code();
        state->versions[place] = version;
    }
    return TN_OK;
}

static const char *stripped(const char *name, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 ? name + length : NULL;
}

/* Like stripped(), for the path of a module. The prefix without its dot becomes "", the path of the
 * root. */
static const char *stripped_path(const char *path, const char *prefix)
{
    const char *rest = stripped(path, prefix);
    size_t length = strlen(prefix);

    if (rest == NULL && length > 0 && prefix[length - 1] == '.' && strlen(path) == length - 1 &&
        memcmp(path, prefix, length - 1) == 0)
        rest = "";
    return rest;
}

static tn_status strip_paths(tn_state *state, const char *prefix)
{
    int64_t place = 0;

    for (int64_t left = state->paths.count; left > 0; left--) {
        const char *path = tn_state_version_path(state, place);
        const char *rest = stripped_path(path, prefix);
        int64_t version = tn_state_version(state, path);

        if (rest == NULL) {
            place++;
            continue;
        }
        char *to = tn_strdup(rest);
        tn_status status = to == NULL ? TN_ERR_MEMORY : tn_state_set_version(state, to, version);
        if (status == TN_OK)
            status = tn_state_set_version(state, tn_state_version_path(state, place), -1);
        tn_free(to);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

tn_status tn_state_strip_prefix(tn_state *state, const char *prefix)
{
    tn_status status = TN_OK;

    if (state == NULL || prefix == NULL)
        return tn__error_null_of("tn_state_strip_prefix", "state, prefix", state, prefix);
    if (prefix[0] == '\0')
        return TN_OK;
    for (int64_t i = 0; i < tn_state_count(state); i++) {
        const char *name = tn_state_name(state, i), *rest = stripped(name, prefix);
        if (rest != NULL && tn_state_find(state, rest) >= 0)
            return tn_fail(TN_ERR_KEY,
                           "state: prefix \"%s\": without it, entry \"%s\" would have the name of "
                           "another entry; nothing was changed",
                           prefix, name);
    }
    for (int64_t i = 0; i < tn_state_count(state) && status == TN_OK; i++) {
        const char *rest = stripped(tn_state_name(state, i), prefix);
        char *to = rest != NULL ? tn_strdup(rest) : NULL;
        if (rest != NULL)
            status = to != NULL ? tn__name_table_rename(&state->names, i, to) : TN_ERR_MEMORY;
        tn_free(to);
    }
    return status == TN_OK ? strip_paths(state, prefix) : status;
}

int64_t tn_state_version_count(const tn_state *state)
{
    return tn__not_null(state, "tn_state_version_count: state") ? state->paths.count : 0;
}

const char *tn_state_version_path(const tn_state *state, int64_t index)
{
    return in_range("version", index, tn_state_version_count(state)) ? state->paths.names[index]
                                                                     : NULL;
}

/* ---- text ------------------------------------------------------------------------------------ */

const char *tn_state_meta(const tn_state *state, const char *key)
{
    int64_t found = tn__not_null(state, "tn_state_meta: state") &&
                            tn__given(key != NULL, "tn_state_meta: key")
                        ? tn__name_table_find(&state->keys, key, strlen(key))
                        : -1;
    return found >= 0 ? state->texts[found] : NULL;
}

tn_status tn_state_set_meta(tn_state *state, const char *key, const char *value)
{
    if (state == NULL || key == NULL || value == NULL)
        return tn__error_null_of("tn_state_set_meta", "state, key, value", state, key, value);
    char *text = tn_strdup(value);
    if (text == NULL)
        return TN_ERR_MEMORY;
    int64_t place = tn__name_table_find(&state->keys, key, strlen(key));
    if (place >= 0) {
        tn_free(state->texts[place]);
        state->texts[place] = text;
        return TN_OK;
    }
    if (tn__vector_room(&state->texts, &state->texts_capacity, state->keys.count + 1,
                        sizeof *state->texts))
        place = tn__name_table_add(&state->keys, key);
    if (place < 0) {
        tn_free(text);
        return tn_error_last_code();
    }
    state->texts[place] = text;
    return TN_OK;
}

tn_status tn_state_remove_meta(tn_state *state, const char *key)
{
    if (state == NULL || key == NULL)
        return tn__error_null_of("tn_state_remove_meta", "state, key", state, key);
    int64_t found = tn__name_table_find(&state->keys, key, strlen(key));
    if (found < 0)
        return tn_fail(TN_ERR_KEY, "state: no metadata \"%s\"", key);
    tn_free(state->texts[found]);
    memmove(state->texts + found, state->texts + found + 1,
            (size_t)(state->keys.count - found - 1) * sizeof *state->texts);
    tn__name_table_remove(&state->keys, found);
    return TN_OK;
}

int64_t tn_state_meta_count(const tn_state *state)
{
    return tn__not_null(state, "tn_state_meta_count: state") ? state->keys.count : 0;
}

const char *tn_state_meta_key(const tn_state *state, int64_t index)
{
    return in_range("text", index, tn_state_meta_count(state)) ? state->keys.names[index] : NULL;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Returns a new state with the entries, versions and texts whose names begin with `prefix`, without
 * the prefix. */
static tn_state *copy_part(const tn_state *state, const char *prefix)
{
    tn_state *part = tn_state_new();
    tn_status status = part != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int64_t i = 0; i < state->names.count && status == TN_OK; i++) {
        const char *rest = stripped(state->names.names[i], prefix);
        if (rest != NULL)
            status = tn_state_set_value(part, rest, read_entry(state, i)->value);
    }
    for (int64_t i = 0; i < state->paths.count && status == TN_OK; i++) {
        const char *rest = stripped_path(state->paths.names[i], prefix);
        if (rest != NULL)
            status = tn_state_set_version(part, rest, state->versions[i]);
    }
    for (int64_t i = 0; i < state->keys.count && status == TN_OK; i++) {
        const char *rest = stripped(state->keys.names[i], prefix);
        if (rest != NULL)
            status = tn_state_set_meta(part, rest, state->texts[i]);
    }
    if (status == TN_OK)
        return part;
    tn_state_drop(part);
    return NULL;
}

tn_state *tn_state_part(const tn_state *state, const char *prefix)
{
    if (state == NULL || prefix == NULL) {
        tn__error_null_of("tn_state_part", "state, prefix", state, prefix);
        return NULL;
    }
    for (int64_t i = 0; i < state->names.count; i++)
        if (stripped(state->names.names[i], prefix) != NULL)
            return copy_part(state, prefix);
    tn_fail(TN_ERR_KEY,
            "state: prefix \"%s\": no entry begins with it; the state has %lld entries%s%s%s",
            prefix, (long long)state->names.count, state->names.count > 0 ? ", the first \"" : "",
            state->names.count > 0 ? state->names.names[0] : "",
            state->names.count > 0 ? "\"" : "");
    return NULL;
}
