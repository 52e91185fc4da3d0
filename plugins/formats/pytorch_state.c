/* SPDX-License-Identifier: MIT
 *
 * From what a pickle made to a state: dictionaries are taken apart, their keys joined with dots; so
 * are lists that hold tensors or dictionaries, by number. What remains are tensors and values. */
#include "pytorch.h"

#include <string.h>

#define NAME_MAX_SIZE 65536

struct path {
    char *at;
    size_t size, room;
};

/* "a" becomes "a.key"; the size before is what to go back to. */
static tn_status enter(struct pytorch_file *file, struct path *path, const char *key, size_t size,
                       size_t *before)
{
    *before = path->size;
    if (memchr(key, '\0', size) != NULL)
        return tn_fail(TN_ERR_FORMAT, "%s: key below %q: contains a NUL", file->source->path,
                       path->at != NULL ? path->at : "");
    if (path->size + size > NAME_MAX_SIZE)
        return tn_fail(TN_ERR_FORMAT, "%s: name: too long; expected at most %d bytes",
                       file->source->path, NAME_MAX_SIZE);
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

/* state_dict keeps {"path of a module": {"version": 2}, ...} as the attribute _metadata of its
 * dictionary. What is not of this form says nothing about versions and is no reason to refuse the
 * tensors. */
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

/* Keys of state_dicts are texts, those of optimizers numbers. */
static tn_status enter_key(struct pytorch_file *file, struct path *path,
                           const struct pickle_value *key, size_t *before)
{
    char number[24];
    if (key->kind == PK_TEXT)
        return enter(file, path, key->as.text.at, key->as.text.size, before);
    if (key->kind != PK_INT)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: key below %q: wrong type; expected a string or an integer",
                       file->source->path, path->at != NULL ? path->at : "");
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

/* Whether a list must be taken apart. True also if a visit fails: `add` fails in the same
 * way. */
static bool has_parts(struct pickle *pk, const struct pickle_value *list, int depth)
{
    for (uint32_t i = 0; i < list->as.list.count; i++) {
        const struct pickle_value *item = list->as.list.at[i];
        if (item->kind == PK_TENSOR || item->kind == PK_DICT || pickle_visit(pk, depth) != TN_OK)
            return true;
        if ((item->kind == PK_LIST || item->kind == PK_TUPLE || item->kind == PK_SET) &&
            has_parts(pk, item, depth + 1))
            return true;
    }
    return false;
}

static tn_status add(struct pytorch_file *file, struct pickle *pk, struct path *path,
                     const struct pickle_value *value, int depth)
{
    tn_status status = pickle_visit(pk, depth);
    if (status != TN_OK)
        return status;
    /* What the file holds may be one tensor, without a name. */
    const char *name = path->size > 0 ? path->at : "tensor";
    if (value->kind == PK_TENSOR)
        return add_tensor(file, name, value);
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
