/* SPDX-License-Identifier: MIT
 *
 * The index of weights that are stored in several files, model.safetensors.index.json, or
 * pytorch_model.bin.index.json for files of PyTorch:
 * {"metadata": {"total_size": 24},
 *  "weight_map": {"name": "model-00001-of-00002.safetensors", ...}}
 * The state that is read from an index has, for the name of each tensor, the name of its file as a
 * text. lib/io opens these files. */
#include "formats.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_LIMIT UINT64_C(100000000)

/* ---- reading --------------------------------------------------------------------------------- */

static tn_status parse(const tn_source *source, json_t **root)
{
    json_error_t error;
    *root = NULL;
    if (source->size > SIZE_LIMIT)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: index: too large, got %llu bytes; expected at most 100000000",
                       source->path, (unsigned long long)source->size);
    char *text = tn_malloc((size_t)source->size + 1);
    if (text == NULL)
        return TN_ERR_MEMORY;
    tn_status status = source->read(source->user, 0, text, (size_t)source->size);
    if (status == TN_OK) {
        *root = json_loadb(text, (size_t)source->size, JSON_REJECT_DUPLICATES, &error);
        if (*root == NULL)
            status = tn_fail(TN_ERR_FORMAT, "%s: index, byte %d: %s", source->path, error.position,
                             error.text);
    }
    tn_free(text);
    return status;
}

static bool recognize(const tn_format_def *self, const tn_source *source)
{
    (void)self;
    char start;
    json_t *root = NULL;
    if (source->size < 2 || source->read(source->user, 0, &start, 1) != TN_OK || start != '{')
        return false;
    bool known = parse(source, &root) == TN_OK &&
                 json_is_object(json_object_get(root, "weight_map"));
    json_decref(root);
    return known;
}

/* Adds the metadata to the state as strings; integers are printed. Other types are refused. */
static tn_status read_metadata(const tn_source *source, const json_t *metadata, tn_state *state)
{
    const char *key;
    json_t *value;
    if (metadata != NULL && !json_is_object(metadata))
        return tn_fail(TN_ERR_FORMAT, "%s: index: metadata: wrong type, got %s; expected an object",
                       source->path, json_type_name(metadata));
    json_object_foreach((json_t *)metadata, key, value)
    {
        char number[32];
        const char *text = json_string_value(value);
        if (json_is_integer(value)) {
            tn_snprint(number, sizeof number, "%lld", (long long)json_integer_value(value));
            text = number;
        } else if (text == NULL) {
            return tn_fail(
                TN_ERR_FORMAT,
                "%s: index: metadata %q: wrong type, got %s; expected a string or an integer",
                source->path, key, json_type_name(value));
        }
        tn_status status = tn_state_set_meta(state, key, text);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status load(const tn_format_def *self, const tn_source *source, tn_state *state)
{
    (void)self;
    json_t *root, *value;
    const char *name;
    tn_status status = parse(source, &root);
    const json_t *map = json_object_get(root, "weight_map");
    if (status == TN_OK && !json_is_object(map))
        status = tn_fail(TN_ERR_FORMAT,
                         "%s: index: weight_map: wrong type, got %s; expected an object",
                         source->path, json_type_name(map));
    if (status == TN_OK)
        status = read_metadata(source, json_object_get(root, "metadata"), state);
    if (status == TN_OK) {
        json_object_foreach((json_t *)map, name, value)
        {
            const char *file = json_string_value(value);
            status = file != NULL
                         ? tn_state_set_value(state, name, tn_value_string(file))
                         : tn_fail(
                               TN_ERR_FORMAT,
                               "%s: index: file name of %q: wrong type, got %s; expected a string",
                               source->path, name, json_type_name(value));
            if (status != TN_OK)
                break;
        }
    }
    json_decref(root);
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

static tn_status put(const char *path, json_t *object, const char *name, json_t *value)
{
    json_t *key = json_string(name);
    bool valid = key != NULL;
    json_decref(key);
    if (valid && value != NULL && json_object_set_new(object, name, value) == 0)
        return TN_OK;
    if (valid && value == NULL)
        return tn_fail(TN_ERR_VALUE, "%s: index: metadata of %q: wrong encoding; expected UTF-8",
                       path, name);
    if (!valid) {
        json_decref(value);
        return tn_fail(TN_ERR_VALUE, "%s: index: name: wrong encoding, got %q; expected UTF-8",
                       path, name);
    }
    return tn_fail(TN_ERR_MEMORY, "%s: index: out of memory", path);
}

static tn_status fill(const tn_state *state, const char *path, json_t *metadata, json_t *map)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < tn_state_meta_count(state) && status == TN_OK; i++) {
        const char *key = tn_state_meta_key(state, i), *text = tn_state_meta(state, key);
        int64_t number;
        bool size = strcmp(key, "total_size") == 0 && tn_read_int(text, &number);
        status = put(path, metadata, key, size ? json_integer(number) : json_string(text));
    }
    for (int64_t i = 0; i < tn_state_count(state) && status == TN_OK; i++) {
        tn_value value = tn_state_value(state, i);
        if (value.kind != TN_VALUE_STRING)
            return tn_fail(TN_ERR_TYPE,
                           "%s: index: file name of %q: wrong type, got %s; expected a string",
                           path, tn_state_name(state, i), tn_value_kind_name(value.kind));
        status = put(path, map, tn_state_name(state, i), json_string(value.as.s));
    }
    return status;
}

static tn_status save(const tn_format_def *self, const tn_sink *sink, const tn_state *state)
{
    (void)self;
    json_t *metadata = json_object(), *map = json_object();
    json_t *root = json_pack("{s:O, s:O}", "metadata", metadata, "weight_map", map);
    tn_status status = root != NULL
                           ? fill(state, sink->path, metadata, map)
                           : tn_fail(TN_ERR_MEMORY, "%s: index: out of memory", sink->path);
    if (status == TN_OK) {
        size_t length = json_dumpb(root, NULL, 0, JSON_INDENT(2));
        char *text = tn_malloc(length + 1);
        if (text == NULL) {
            status = TN_ERR_MEMORY;
        } else if (length == 0 || json_dumpb(root, text, length, JSON_INDENT(2)) != length) {
            status = tn_fail(TN_ERR_MEMORY, "%s: index: out of memory", sink->path);
        } else {
            text[length] = '\n';
            status = sink->write(sink->user, text, length + 1);
        }
        tn_free(text);
    }
    json_decref(metadata);
    json_decref(map);
    json_decref(root);
    return status;
}

const tn_format_def format_safetensors_index = {
    TN_HEAD(tn_format_def),
    .name = "safetensors-index",
    .help = "index of a set of files: which file contains each tensor",
    .extensions = ".safetensors.index.json .bin.index.json",
    .recognize = recognize,
    .load = load,
    .save = save,
    .flags = TN_FORMAT_INDEX | TN_FORMAT_TEXTS,
};
