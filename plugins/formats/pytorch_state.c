/* SPDX-License-Identifier: MIT
 *
 * Converts the result of a pickle to a state. Dictionaries are taken apart: each entry is added
 * under a name made of the keys on the path to it, joined with dots. Lists that contain tensors or
 * dictionaries are taken apart too, with the index as key. Everything else becomes one value. */
#include "pytorch.h"

#include <string.h>

#define NAME_MAX_SIZE 65536

struct path {
    char *at;
    size_t size, room;
};

/* Appends a key to the path: "a" becomes "a.key". *before gets the previous size, for leave(). */
static tn_status enter(struct pytorch_file *file, struct path *path, const char *key, size_t size,
                       size_t *before)
{
    *before = path->size;
    if (memchr(key, '\0', size) != NULL)
        return tn_fail(TN_ERR_FORMAT, "%s: key below %q: contains a NUL", file->source->path,
                       path->at != NULL ? path->at : "");
    if (path->size + size > NAME_MAX_SIZE)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: key below %q: too long, got a name of %zu bytes; expected at most %d",
                       file->source->path, path->at != NULL ? path->at : "", path->size + size,
                       NAME_MAX_SIZE);
    if (path->size + size + 2 > path->room) {
        size_t room = (path->size + size + 2) * 2;
        char *grown = tn_realloc(path->at, room);
        if (grown == NULL)
            return TN_ERR_MEMORY;
        path->at = grown;
        path->room = room;
    }
    if (*before > 0)
        path->at[path->size++] = '.';
    memcpy(path->at + path->size, key, size);
    path->size += size;
    path->at[path->size] = '\0';
    return TN_OK;
}

static void leave(struct path *path, size_t before)
{
    path->size = before;
    if (path->at != NULL)
        path->at[before] = '\0';
}

static tn_status add(struct pytorch_file *file, struct pickle *pk, struct path *path,
                     const struct pickle_value *value, int depth);

/* ---- leaves ---------------------------------------------------------------------------------- */

static tn_status twice(const struct pytorch_file *file, const char *name)
{
    return tn_fail(TN_ERR_FORMAT, "%s: name %q: occurs twice; expected once", file->source->path,
                   name);
}

static tn_status add_tensor(struct pytorch_file *file, const char *name,
                            const struct pickle_value *value)
{
    if (tn_state_find(file->state, name) >= 0)
        return twice(file, name);
    tn_tensor *tensor = pytorch_tensor_of(file, value, name);
    return tensor != NULL ? tn_state_set(file->state, name, tensor) : tn_error_last_code();
}

static tn_status add_value(struct pytorch_file *file, struct pickle *pk, const char *name,
                           const struct pickle_value *value)
{
    if (tn_state_find(file->state, name) >= 0 || tn_state_meta(file->state, name) != NULL)
        return twice(file, name);
    return pytorch_add_value(file, pk, name, value);
}

/* ---- versions -------------------------------------------------------------------------------- */

/* Adds the versions of modules. state_dict() stores {"path of a module": {"version": 2}, ...} as
 * the attribute _metadata of its dictionary. Anything of another form is ignored, because the
 * tensors are useful without versions. */
static tn_status add_versions(struct pytorch_file *file, struct pickle *pk, struct path *path,
                              const struct pickle_value *dict, int depth)
{
    const struct pickle_value *all = dict->as.list.attributes != NULL
                                         ? pickle_get(dict->as.list.attributes, "_metadata")
                                         : NULL;
    tn_status status = TN_OK;

    if (all == NULL || all->kind != PK_DICT)
        return TN_OK;
    for (uint32_t i = 0; i < all->as.list.count && status == TN_OK; i += 2) {
        const struct pickle_value *key = all->as.list.at[i];
        const struct pickle_value *version = pickle_get(all->as.list.at[i + 1], "version");
        size_t before = path->size;

        status = pickle_visit(pk, depth);
        if (status != TN_OK || key->kind != PK_TEXT || version == NULL || version->kind != PK_INT ||
            version->as.i < 0)
            continue;
        if (key->as.text.size > 0)
            status = enter(file, path, key->as.text.at, key->as.text.size, &before);
        if (status == TN_OK)
            status = tn_state_set_version(file->state, path->size > 0 ? path->at : "",
                                          version->as.i);
        leave(path, before);
    }
    return status;
}

/* ---- dictionaries and lists ------------------------------------------------------------------ */

/* Appends a key of a dictionary to the path. Keys in the state_dict of a module are strings; in
 * that of an optimizer some are integers. */
static tn_status enter_key(struct pytorch_file *file, struct path *path,
                           const struct pickle_value *key, size_t *before)
{
    char number[24];
    if (key->kind == PK_TEXT)
        return enter(file, path, key->as.text.at, key->as.text.size, before);
    if (key->kind != PK_INT)
        return tn_fail(
            TN_ERR_FORMAT, "%s: key below %q: wrong type, got %s; expected a string or an integer",
            file->source->path, path->at != NULL ? path->at : "", pickle_kind_name(key->kind));
    tn_snprint(number, sizeof number, "%lld", (long long)key->as.i);
    return enter(file, path, number, strlen(number), before);
}

static tn_status add_dict(struct pytorch_file *file, struct pickle *pk, struct path *path,
                          const struct pickle_value *dict, int depth)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < dict->as.list.count && status == TN_OK; i += 2) {
        size_t before = path->size;
        status = enter_key(file, path, dict->as.list.at[i], &before);
        if (status == TN_OK)
            status = add(file, pk, path, dict->as.list.at[i + 1], depth + 1);
        leave(path, before);
    }
    return status == TN_OK ? add_versions(file, pk, path, dict, depth) : status;
}

static tn_status add_list(struct pytorch_file *file, struct pickle *pk, struct path *path,
                          const struct pickle_value *list, int depth)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < list->as.list.count && status == TN_OK; i++) {
        char number[16];
        size_t before = path->size;
        tn_snprint(number, sizeof number, "%u", (unsigned)i);
        status = enter(file, path, number, strlen(number), &before);
        if (status == TN_OK)
            status = add(file, pk, path, list->as.list.at[i], depth + 1);
        leave(path, before);
    }
    return status;
}

/* Returns whether a list must be taken apart because it contains a tensor, a dictionary or an
 * object at any depth. Also returns true if pickle_visit() fails; add() then fails for the same
 * reason. */
static bool has_parts(struct pickle *pk, const struct pickle_value *list, int depth)
{
    for (uint32_t i = 0; i < list->as.list.count; i++) {
        const struct pickle_value *item = list->as.list.at[i];
        if (item->kind == PK_TENSOR || item->kind == PK_DICT || item->kind == PK_OBJECT ||
            pickle_visit(pk, depth) != TN_OK)
            return true;
        if ((item->kind == PK_LIST || item->kind == PK_TUPLE || item->kind == PK_SET) &&
            has_parts(pk, item, depth + 1))
            return true;
    }
    return false;
}

/* ---- objects of TorchScript ------------------------------------------------------------------ */

/* Returns whether a value is or contains a tensor or an object. Also returns true if pickle_visit()
 * fails; add() then fails for the same reason. */
static bool has_tensors(struct pickle *pk, const struct pickle_value *value, int depth)
{
    if (pickle_visit(pk, depth) != TN_OK || value->kind == PK_TENSOR || value->kind == PK_OBJECT)
        return true;
    if (value->kind != PK_LIST && value->kind != PK_TUPLE && value->kind != PK_SET &&
        value->kind != PK_DICT)
        return false;
    for (uint32_t i = 0; i < value->as.list.count; i++)
        if (has_tensors(pk, value->as.list.at[i], depth + 1))
            return true;
    return false;
}

/* Adds an attribute without tensors as text metadata: as a value of the state it would not be
 * expected by any module. */
static tn_status add_text(struct pytorch_file *file, struct pickle *pk, const char *name,
                          const struct pickle_value *value)
{
    char *text = NULL;
    if (tn_state_meta(file->state, name) != NULL)
        return twice(file, name);
    tn_status status = pickle_print(pk, value, &text);
    if (status == TN_OK)
        status = pytorch_count_values(file, strlen(text));
    if (status == TN_OK)
        status = tn_state_set_meta(file->state, name, text);
    tn_free(text);
    return status;
}

/* Adds the attributes of an object. Leaves out those that say nothing about its tensors: two flags
 * that every module has (`training`, `_is_full_backward_hook`), and attributes that are None. */
static tn_status add_object(struct pytorch_file *file, struct pickle *pk, struct path *path,
                            const struct pickle_value *object, int depth)
{
    const struct pickle_value *all = object->as.list.attributes;
    tn_status status = TN_OK;
    for (uint32_t i = 0; all != NULL && i < all->as.list.count && status == TN_OK; i += 2) {
        const struct pickle_value *key = all->as.list.at[i], *value = all->as.list.at[i + 1];
        size_t before = path->size;
        if (value->kind == PK_NONE ||
            (value->kind == PK_BOOL &&
             (pickle_is_text(key, "training") || pickle_is_text(key, "_is_full_backward_hook"))))
            continue;
        status = enter_key(file, path, key, &before);
        if (status == TN_OK)
            status = has_tensors(pk, value, depth + 1) ? add(file, pk, path, value, depth + 1)
                                                       : add_text(file, pk, path->at, value);
        leave(path, before);
    }
    return status;
}

tn_status pytorch_fill_constants(struct pytorch_file *file, struct pickle *pk)
{
    const struct pickle_value *all = pk->result;
    tn_status status = TN_OK;
    if (all->kind != PK_TUPLE && all->kind != PK_LIST)
        return pickle_bad_type(pk, "constants", all, "a tuple of tensors");
    for (uint32_t i = 0; i < all->as.list.count && status == TN_OK; i++) {
        char name[32];
        tn_snprint(name, sizeof name, "CONSTANTS.c%u", (unsigned)i);
        status = pickle_visit(pk, 0);
        if (status == TN_OK && all->as.list.at[i]->kind == PK_TENSOR)
            status = add_tensor(file, name, all->as.list.at[i]);
        else if (status == TN_OK && has_tensors(pk, all->as.list.at[i], 0))
            status = pickle_bad_type(pk, "constants", all->as.list.at[i], "tensors");
        else if (status == TN_OK)
            status = add_text(file, pk, name, all->as.list.at[i]);
    }
    return status;
}

/* ---- any value ------------------------------------------------------------------------------- */

static tn_status add(struct pytorch_file *file, struct pickle *pk, struct path *path,
                     const struct pickle_value *value, int depth)
{
    tn_status status = pickle_visit(pk, depth);
    if (status != TN_OK)
        return status;
    /* If the file contains a single tensor instead of a dictionary, the tensor has no name. */
    const char *name = path->size > 0 ? path->at : "tensor";
    if (value->kind == PK_TENSOR)
        return add_tensor(file, name, value);
    if (value->kind == PK_OBJECT)
        return add_object(file, pk, path, value, depth);
    if (value->kind == PK_DICT && (value->as.list.count > 0 || depth == 0))
        return add_dict(file, pk, path, value, depth);
    if ((value->kind == PK_LIST || value->kind == PK_TUPLE) &&
        (depth == 0 || has_parts(pk, value, depth)))
        return add_list(file, pk, path, value, depth);
    return add_value(file, pk, path->size > 0 ? path->at : "value", value);
}

tn_status pytorch_fill_state(struct pytorch_file *file, struct pickle *pk)
{
    struct path path = { NULL, 0, 0 };
    tn_status status = add(file, pk, &path, pk->result, 0);
    tn_free(path.at);
    return status;
}
