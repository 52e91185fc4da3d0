/* SPDX-License-Identifier: MIT
 *
 * Weights in several files with an index. A save gives its files names that no file has yet, and
 * replaces the index last: if the process is killed, either the old set or the new set remains. */
#include "core/base/vector.h"
#include "lib/io/private.h"

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns whether the name is that of a file in the folder of the index. */
static bool is_plain(const char *name)
{
    return name[0] != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

/* ---- loading --------------------------------------------------------------------------------- */

struct opened {
    tn_state *names; /* names of the files; files[i] belongs to entry i */
    tn_state **files;
    int64_t capacity;
};

/* Returns the state of a file that the index names. Reads the file when it is asked for the first
 * time. */
static tn_state *open_part(struct opened *o, const char *path, const char *name, uint32_t flags)
{
    int64_t found = tn_state_find(o->names, name);
    if (found >= 0)
        return o->files[found];
    if (!is_plain(name)) {
        tn_fail(TN_ERR_FORMAT,
                "%s: wrong file name, got %q; expected the name of a file in the same folder", path,
                name);
        return NULL;
    }
    int64_t count = tn_state_count(o->names);
    if (!tn__vector_room(&o->files, &o->capacity, count + 1, sizeof *o->files))
        return NULL;
    char *file = tn__file_set_path(path, name);
    bool index = false;
    tn_state *state = file != NULL ? tn__file_load(file, flags, &index) : NULL;
    tn_free(file);
    if (state != NULL && tn_state_set_value(o->names, name, tn_value_bool(true)) != TN_OK) {
        tn_state_drop(state);
        state = NULL;
    }
    if (state != NULL)
        o->files[count] = state;
    return state;
}

static tn_status take_entry(struct opened *o, const tn_state *index, int64_t i, const char *path,
                            uint32_t flags, tn_state *out)
{
    const char *name = tn_state_name(index, i);
    tn_value file = tn_state_value(index, i);
    if (file.kind != TN_VALUE_STRING)
        return tn_fail(TN_ERR_FORMAT, "%s: tensor %q: no file name; expected a string", path, name);
    tn_state *part = open_part(o, path, file.as.s, flags);
    if (part == NULL)
        return tn_error_last_code();
    int64_t found = tn_state_find(part, name);
    if (found < 0)
        return tn_fail(TN_ERR_FORMAT, "%s: tensor %q: missing in %s", path, name, file.as.s);
    return tn_state_set_value(out, name, tn_state_value(part, found));
}

/* Refuses a file with a tensor that the index does not name, because this tensor would be lost
 * silently. */
static tn_status check_rest(const struct opened *o, const tn_state *index, const char *path)
{
    for (int64_t f = 0; f < tn_state_count(o->names); f++)
        for (int64_t i = 0; i < tn_state_count(o->files[f]); i++)
            if (tn_state_find(index, tn_state_name(o->files[f], i)) < 0)
                return tn_fail(TN_ERR_FORMAT,
                               "%s: %s: tensor %q: not in the index; expected an "
                               "index that names all tensors of its files",
                               path, tn_state_name(o->names, f), tn_state_name(o->files[f], i));
    return TN_OK;
}

tn_state *tn__shards_load(tn_state *index, const char *path, uint32_t flags)
{
    struct opened o = { .names = tn_state_new() };
    tn_state *out = tn_state_new();
    tn_status status = o.names != NULL && out != NULL ? TN_OK : TN_ERR_MEMORY;
    for (int64_t i = 0; i < tn_state_count(index) && status == TN_OK; i++)
        status = take_entry(&o, index, i, path, flags, out);
    if (status == TN_OK)
        status = check_rest(&o, index, path);
    for (int64_t i = 0; i < tn_state_meta_count(index) && status == TN_OK; i++) {
        const char *key = tn_state_meta_key(index, i);
        if (strcmp(key, "total_size") != 0)
            status = tn_state_set_meta(out, key, tn_state_meta(index, key));
    }
    for (int64_t f = 0; f < tn_state_count(o.names); f++)
        tn_state_drop(o.files[f]);
    tn_free(o.files);
    tn_state_drop(o.names);
    tn_state_drop(index);
    if (status == TN_OK)
        return out;
    tn_state_drop(out);
    return NULL;
}

/* ---- saving ---------------------------------------------------------------------------------- */

struct saving {
    const tn_state *state;
    const char *path;        /* path of the index */
    const tn__entry *index;  /* format of the index */
    const tn__entry *format; /* format of the parts */
    tn__file_set set;
    int64_t parts;
    int64_t *first; /* first[p]: the first entry of part p; first[parts]: number of entries */
};

static uint64_t bytes_of(const tn_state *state, int64_t i)
{
    const tn_tensor *tensor = tn_state_tensor(state, i);
    return (uint64_t)tn_tensor_numel(tensor) * tn_dtype_size(tn_tensor_dtype(tensor));
}

/* Divides the entries, in order, among as few files as possible. */
static tn_status divide(struct saving *s, uint64_t most)
{
    int64_t count = tn_state_count(s->state);
    uint64_t held = 0;
    s->first = tn_malloc(((size_t)count + 2) * sizeof *s->first);
    if (s->first == NULL)
        return TN_ERR_MEMORY;
    s->first[0] = 0;
    s->parts = count > 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t bytes = bytes_of(s->state, i);
        if (i > s->first[s->parts - 1] && (bytes > most || held > most - bytes)) {
            s->first[s->parts++] = i;
            held = 0;
        }
        held += bytes;
    }
    s->first[s->parts] = count;
    return TN_OK;
}

static tn_status save_part(struct saving *s, int64_t part, tn_state *index)
{
    char *name = tn__file_set_name(&s->set.scheme, s->set.version, part + 1, s->parts);
    char *file = name != NULL ? tn__file_set_path(s->path, name) : NULL;
    tn_state *piece = tn_state_new();
    tn_status status = file != NULL && piece != NULL ? TN_OK : TN_ERR_MEMORY;
    for (int64_t i = s->first[part]; i < s->first[part + 1] && status == TN_OK; i++) {
        const char *entry = tn_state_name(s->state, i);
        status = tn_state_set(piece, entry, tn_state_tensor(s->state, i));
        if (status == TN_OK)
            status = tn_state_set_value(index, entry, tn_value_string(name));
    }
    if (status == TN_OK)
        status = tn__file_save(s->format, file, piece, &s->set);
    tn_state_drop(piece);
    tn_free(name);
    tn_free(file);
    return status;
}

static tn_status save_index(const struct saving *s, tn_state *index)
{
    uint64_t total = 0;
    char text[32];
    tn_status status = TN_OK;
    for (int64_t i = 0; i < tn_state_count(s->state); i++)
        total += bytes_of(s->state, i);
    tn_snprint(text, sizeof text, "%llu", (unsigned long long)total);
    status = tn_state_set_meta(index, "total_size", text);
    for (int64_t i = 0; i < tn_state_meta_count(s->state) && status == TN_OK; i++) {
        const char *key = tn_state_meta_key(s->state, i);
        if (strcmp(key, "total_size") != 0)
            status = tn_state_set_meta(index, key, tn_state_meta(s->state, key));
    }
    return status == TN_OK ? tn__file_save(s->index, s->path, index, NULL) : status;
}

/* Records the files that the existing index names. If it cannot be read, its files are not
 * known. */
static tn_status note_old(struct saving *s)
{
    tn_state *before = NULL;
    tn_status status = tn__file_load_index(s->path, &before);
    if (status == TN_ERR_MEMORY)
        return tn_fail(TN_ERR_MEMORY, "%s: out of memory for the existing index", s->path);
    status = tn__file_set_note_old(&s->set, before);
    tn_state_drop(before);
    return status;
}

static tn_status save_all(struct saving *s, uint64_t most)
{
    tn_state *index = tn_state_new();
    tn_status status = index != NULL ? divide(s, most) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = tn__file_set_open(&s->set, s->path);
    bool open = status == TN_OK;
    for (int64_t part = 0; part < s->parts && status == TN_OK; part++)
        status = save_part(s, part, index);
    if (status == TN_OK)
        status = note_old(s);
    if (status == TN_OK)
        status = save_index(s, index);
    if (open)
        tn__file_set_close(&s->set);
    tn_state_drop(index);
    tn_free(s->first);
    return status;
}

static bool is_index(const tn__entry *entry)
{
    return entry != NULL &&
           (((const tn_format_def *)entry->contribution)->flags & TN_FORMAT_INDEX) != 0;
}

/* Finds the formats of the index and of the files next to it, by their extensions. */
static tn_status find_formats(struct saving *s)
{
    tn__scheme scheme;
    s->index = tn__file_format(s->path);
    if (!tn__file_set_scheme(s->path + tn__target_folder_length(s->path), &scheme))
        return tn_fail(TN_ERR_VALUE,
                       "%s: not the name of an index; expected .EXTENSION.index.json at the end",
                       s->path);
    if (!is_index(s->index))
        return tn_fail(TN_ERR_VALUE,
                       "%s: no loaded plugin has a format for an index of this name; `tenon "
                       "plugins` prints which plugins were loaded, and why others were not",
                       s->path);
    char *name = tn__file_set_name(&scheme, 1, 1, 1);
    if (name == NULL)
        return TN_ERR_MEMORY;
    s->format = tn__file_format(name);
    tn_free(name);
    if (s->format == NULL)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: no format has the extension before .index.json; "
                       "expected a name such as net.EXTENSION.index.json",
                       s->path);
    return TN_OK;
}

tn_status tn_state_save_parts(const tn_state *state, const char *path, uint64_t most)
{
    if (state == NULL || path == NULL)
        return tn__error_null_of("tn_state_save_parts", "state, path", state, path);
    if (most == 0)
        return tn_fail(TN_ERR_VALUE, "%s: size of a file: it is 0; expected at least 1 byte", path);
    struct saving s = { .path = path };
    tn_status status = tn__io_load_formats();
    if (status == TN_OK)
        status = find_formats(&s);
    if (status != TN_OK)
        return status;
    tn_state *plain = tn__metadata_from_state(state, path);
    if (plain == NULL)
        return tn_error_last_code();
    s.state = plain;
    status = save_all(&s, most);
    tn_state_drop(plain);
    return status;
}
