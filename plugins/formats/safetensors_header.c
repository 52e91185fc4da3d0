/* SPDX-License-Identifier: MIT
 *
 * The header of a safetensors file: its length in eight bytes, then JSON:
 * {"__metadata__": {"key": "text"},
 *  "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 * The data follow the header; each byte of them belongs to exactly one tensor. The file is not
 * trusted, so everything is checked before it is used. */
#include "formats.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH_SIZE 8
#define HEADER_MAX UINT64_C(100000000) /* the same limit as in the reference library */

/* ---- dtypes ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    tn_dtype dtype;
} dtypes[] = {
    { "BOOL", TN_BOOL }, { "U8", TN_U8 },   { "I8", TN_I8 },           { "I16", TN_I16 },
    { "U16", TN_U16 },   { "I32", TN_I32 }, { "U32", TN_U32 },         { "I64", TN_I64 },
    { "U64", TN_U64 },   { "F16", TN_F16 }, { "BF16", TN_BF16 },       { "F32", TN_F32 },
    { "F64", TN_F64 },   { "C64", TN_C64 }, { "F8_E4M3", TN_F8_E4M3 }, { "F8_E5M2", TN_F8_E5M2 },
};

static bool dtype_of(const char *name, tn_dtype *dtype)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            *dtype = dtypes[i].dtype;
            return true;
        }
    }
    return false;
}

static const char *name_of(tn_dtype dtype)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].name;
    return NULL;
}

/* ---- reading: one entry ---------------------------------------------------------------------- */

/* Fails because a value has the wrong type; `got` is NULL if the value is missing. */
static tn_status wrong_type(const tn_source *source, const char *name, const char *what,
                            const json_t *got, const char *expected)
{
    return tn_fail(TN_ERR_FORMAT,
                   "%s: safetensors header, tensor %q: %s: wrong type, got %s; expected %s",
                   source->path, name, what, json_type_name(got), expected);
}

static tn_status bad(const tn_source *source, const char *name, const char *what)
{
    return tn_fail(TN_ERR_FORMAT, "%s: safetensors header, tensor %q: %s", source->path, name,
                   what);
}

static bool read_number(const json_t *value, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static tn_status read_shape(const tn_source *source, const json_t *shape,
                            struct safetensors_tensor *tensor, uint64_t *bytes)
{
    if (!json_is_array(shape))
        return wrong_type(source, tensor->name, "shape", shape, "a list");
    size_t ndim = json_array_size(shape);
    if (ndim > TN_MAX_DIMS)
        return tn_fail(
            TN_ERR_FORMAT,
            "%s: safetensors header, tensor %q: shape: too many dimensions, got %zu; expected at "
            "most %d",
            source->path, tensor->name, ndim, TN_MAX_DIMS);
    uint64_t product = tn_dtype_size(tensor->dtype);
    bool empty = false, overflow = false;
    for (size_t i = 0; i < ndim; i++) {
        uint64_t size = 0;
        if (!read_number(json_array_get(shape, i), &size))
            return bad(source, tensor->name, "shape: a size is not an integer >= 0");
        tensor->shape[i] = (int64_t)size;
        empty = empty || size == 0;
        overflow = overflow || __builtin_mul_overflow(product, size, &product);
    }
    /* An overflow is refused even if a later size is 0, as in the reference library. */
    if (overflow)
        return bad(source, tensor->name,
                   "shape: too large, its product overflows; expected less than 2^64 elements");
    tensor->ndim = (int32_t)ndim;
    *bytes = empty ? 0 : product;
    return TN_OK;
}

static tn_status read_offsets(const tn_source *source, const json_t *offsets,
                              struct safetensors_tensor *tensor, uint64_t bytes, uint64_t data_size)
{
    if (!json_is_array(offsets))
        return wrong_type(source, tensor->name, "data_offsets", offsets, "a list");
    if (json_array_size(offsets) != 2 || !read_number(json_array_get(offsets, 0), &tensor->begin) ||
        !read_number(json_array_get(offsets, 1), &tensor->end))
        return bad(source, tensor->name,
                   "data_offsets: wrong elements; expected two integers >= 0");
    if (tensor->begin > tensor->end || tensor->end > data_size)
        return tn_fail(
            TN_ERR_FORMAT,
            "%s: safetensors header, tensor %q: data_offsets: out of range, got [%llu, %llu]; "
            "expected [begin, end] with begin <= end, within the %llu bytes of data",
            source->path, tensor->name, (unsigned long long)tensor->begin,
            (unsigned long long)tensor->end, (unsigned long long)data_size);
    if (tensor->end - tensor->begin != bytes)
        return tn_fail(
            TN_ERR_FORMAT,
            "%s: safetensors header, tensor %q: data_offsets: wrong size, got %llu bytes; "
            "expected %llu for its dtype and shape",
            source->path, tensor->name, (unsigned long long)(tensor->end - tensor->begin),
            (unsigned long long)bytes);
    return TN_OK;
}

static tn_status read_tensor(const tn_source *source, const char *name, const json_t *entry,
                             struct safetensors_tensor *tensor, uint64_t data_size)
{
    tensor->name = tn_strdup(name);
    if (tensor->name == NULL)
        return TN_ERR_MEMORY;
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!json_is_object(entry))
        return wrong_type(source, name, "entry", entry, "an object");
    if (dtype == NULL)
        return wrong_type(source, name, "dtype", json_object_get(entry, "dtype"), "a string");
    if (!dtype_of(dtype, &tensor->dtype))
        return tn_fail(TN_ERR_FORMAT,
                       "%s: safetensors header, tensor %q: dtype: unknown, got %q; expected one "
                       "such as F32, BF16 or I64",
                       source->path, name, dtype);
    uint64_t bytes = 0;
    tn_status status = read_shape(source, json_object_get(entry, "shape"), tensor, &bytes);
    return status == TN_OK ? read_offsets(source, json_object_get(entry, "data_offsets"), tensor,
                                          bytes, data_size)
                           : status;
}

static tn_status read_meta(const tn_source *source, const json_t *meta, tn_state *state)
{
    if (!json_is_object(meta))
        return tn_fail(
            TN_ERR_FORMAT,
            "%s: safetensors header: __metadata__: wrong type, got %s; expected an object",
            source->path, json_type_name(meta));
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)meta, key, value)
    {
        if (!json_is_string(value))
            return tn_fail(
                TN_ERR_FORMAT,
                "%s: safetensors header: __metadata__ %q: wrong type, got %s; expected a string",
                source->path, key, json_type_name(value));
        tn_status status = tn_state_set_meta(state, key, json_string_value(value));
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* ---- reading: the whole ---------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const struct safetensors_tensor *x = *(const struct safetensors_tensor *const *)a;
    const struct safetensors_tensor *y = *(const struct safetensors_tensor *const *)b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Checks that each byte of the data belongs to exactly one tensor: no gaps, no overlaps, nothing
 * after the last tensor. */
static tn_status check_cover(const tn_source *source, const struct safetensors_header *header,
                             uint64_t data_size)
{
    const struct safetensors_tensor **sorted = tn_calloc((size_t)header->count + 1, sizeof *sorted);
    if (sorted == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < header->count; i++)
        sorted[i] = &header->at[i];
    qsort(sorted, (size_t)header->count, sizeof *sorted, by_place);
    uint64_t at = 0;
    tn_status status = TN_OK;
    for (int64_t i = 0; i < header->count && status == TN_OK; i++) {
        if (sorted[i]->begin != at)
            status = bad(source, sorted[i]->name,
                         sorted[i]->begin < at ? "data: overlap the data of another tensor"
                                               : "data: gap before the data; expected none");
        at = sorted[i]->end;
    }
    if (status == TN_OK && at != data_size)
        status = tn_fail(
            TN_ERR_FORMAT,
            "%s: safetensors: tensors: wrong size, got %llu bytes; expected all %llu bytes of data",
            source->path, (unsigned long long)at, (unsigned long long)data_size);
    tn_free(sorted);
    return status;
}

static tn_status read_entries(const tn_source *source, const json_t *root,
                              struct safetensors_header *header, tn_state *state)
{
    uint64_t data_size = source->size - header->data;
    header->at = tn_calloc(json_object_size(root) + 1, sizeof *header->at);
    if (header->at == NULL)
        return TN_ERR_MEMORY;
    const char *name;
    json_t *entry;
    json_object_foreach((json_t *)root, name, entry)
    {
        tn_status status = TN_OK;
        if (strcmp(name, "__metadata__") == 0)
            status = read_meta(source, entry, state);
        else
            status = read_tensor(source, name, entry, &header->at[header->count++], data_size);
        if (status != TN_OK)
            return status;
    }
    return check_cover(source, header, data_size);
}

static tn_status read_length(const tn_source *source, uint64_t *length)
{
    unsigned char bytes[LENGTH_SIZE];
    if (source->size < LENGTH_SIZE + 2)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: too short for a safetensors file, got %llu bytes; expected at least 10",
                       source->path, (unsigned long long)source->size);
    tn_status status = source->read(source->user, 0, bytes, sizeof bytes);
    *length = 0;
    for (int i = LENGTH_SIZE - 1; i >= 0 && status == TN_OK; i--)
        *length = *length << 8 | bytes[i];
    if (status == TN_OK && *length > HEADER_MAX)
        status = tn_fail(
            TN_ERR_FORMAT,
            "%s: safetensors header: too large, got %llu bytes; expected at most 100000000",
            source->path, (unsigned long long)*length);
    if (status == TN_OK && *length > source->size - LENGTH_SIZE)
        status = tn_fail(
            TN_ERR_FORMAT,
            "%s: safetensors: truncated, got %llu bytes after the first %d; expected a header of "
            "%llu bytes",
            source->path, (unsigned long long)(source->size - LENGTH_SIZE), LENGTH_SIZE,
            (unsigned long long)*length);
    return status;
}

tn_status safetensors_header_read(const tn_source *source, struct safetensors_header *header,
                                  tn_state *state)
{
    uint64_t length = 0;
    *header = (struct safetensors_header){ NULL, 0, 0 };
    tn_status status = read_length(source, &length);
    if (status != TN_OK)
        return status;
    header->data = LENGTH_SIZE + length;
    char *text = tn_malloc((size_t)length + 1);
    if (text == NULL)
        return TN_ERR_MEMORY;
    status = source->read(source->user, LENGTH_SIZE, text, (size_t)length);
    json_t *root = NULL;
    if (status == TN_OK) {
        json_error_t error;
        root = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
        if (root == NULL)
            status = tn_fail(TN_ERR_FORMAT, "%s: safetensors header, byte %d: %s", source->path,
                             error.position, error.text);
        else if (json_is_object(root) && text[0] != '{')
            status = tn_fail(TN_ERR_FORMAT,
                             "%s: safetensors header: wrong first byte, got %02x; expected {",
                             source->path, (unsigned)(unsigned char)text[0]);
        else if (!json_is_object(root))
            status = tn_fail(TN_ERR_FORMAT,
                             "%s: safetensors header: wrong type, got %s; expected an object",
                             source->path, json_type_name(root));
    }
    tn_free(text);
    if (status == TN_OK)
        status = read_entries(source, root, header, state);
    json_decref(root);
    if (status != TN_OK)
        safetensors_header_free(header);
    return status;
}

void safetensors_header_free(struct safetensors_header *header)
{
    for (int64_t i = 0; i < header->count; i++)
        tn_free(header->at[i].name);
    tn_free(header->at);
    *header = (struct safetensors_header){ NULL, 0, 0 };
}

/* ---- writing --------------------------------------------------------------------------------- */

static uint64_t bytes_of(const tn_tensor *tensor)
{
    return (uint64_t)tn_tensor_numel(tensor) * tn_dtype_size(tn_tensor_dtype(tensor));
}

static json_t *entry_of(const tn_tensor *tensor, uint64_t begin)
{
    tn_ints shape = tn_tensor_shape(tensor);
    json_t *sizes = json_array();
    for (int64_t i = 0; i < shape.count; i++)
        if (json_array_append_new(sizes, json_integer((json_int_t)shape.at[i])) != 0)
            break;
    if (sizes == NULL || (int64_t)json_array_size(sizes) != shape.count) {
        json_decref(sizes);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", name_of(tn_tensor_dtype(tensor)), "shape",
                     sizes, "data_offsets", (json_int_t)begin,
                     (json_int_t)(begin + bytes_of(tensor)));
}

/* Decides the order of the data: tensors with larger elements first, so that each tensor is aligned
 * to its element size. The header keeps the order of the state. */
static void lay_out(const tn_state *state, int64_t *order, uint64_t *begin)
{
    int64_t count = tn_state_count(state), placed = 0;
    uint64_t at = 0;
    for (size_t size = 16; size > 0; size /= 2) {
        for (int64_t i = 0; i < count; i++) {
            const tn_tensor *tensor = tn_state_tensor(state, i);
            if (tn_dtype_size(tn_tensor_dtype(tensor)) != size)
                continue;
            order[placed++] = i;
            begin[i] = at;
            at += bytes_of(tensor);
        }
    }
}

static tn_status check_entry(const tn_state *state, int64_t i, const char *path)
{
    const char *name = tn_state_name(state, i);
    tn_dtype dtype = tn_tensor_dtype(tn_state_tensor(state, i));
    if (strcmp(name, "__metadata__") == 0)
        return tn_fail(TN_ERR_VALUE,
                       "%s: tensor: name %q: reserved by safetensors; expected another name", path,
                       name);
    if (name_of(dtype) == NULL)
        return tn_fail(
            TN_ERR_TYPE,
            "%s: tensor %q: wrong dtype, got %s; expected one that safetensors can store: a real "
            "dtype or complex64",
            path, name, tn_dtype_name(dtype));
    if (!tn_device_has_memory(tn_tensor_device(tn_state_tensor(state, i))))
        return tn_fail(
            TN_ERR_VALUE,
            "%s: tensor %q: no values to save, got a tensor on %s; expected a device with memory",
            path, name, tn_device_name(tn_tensor_device(tn_state_tensor(state, i))));
    return TN_OK;
}

static tn_status put(json_t *object, const char *name, json_t *value, const char *path)
{
    json_t *text = json_string(name);
    bool valid = text != NULL;
    json_decref(text);
    if (valid && value != NULL && json_object_set_new(object, name, value) == 0)
        return TN_OK;
    if (!valid) {
        json_decref(value);
        return tn_fail(TN_ERR_VALUE, "%s: name: not UTF-8, got %q; safetensors requires UTF-8",
                       path, name);
    }
    return tn_fail(TN_ERR_MEMORY, "%s: safetensors header: out of memory", path);
}

static tn_status fill_header(const tn_state *state, const char *path, const uint64_t *begin,
                             json_t *root)
{
    int64_t texts = tn_state_meta_count(state);
    if (texts > 0) {
        json_t *meta = json_object();
        tn_status status = put(root, "__metadata__", meta, path);
        for (int64_t i = 0; i < texts && status == TN_OK; i++) {
            const char *key = tn_state_meta_key(state, i);
            json_t *text = json_string(tn_state_meta(state, key));
            status = text != NULL
                         ? put(meta, key, text, path)
                         : tn_fail(TN_ERR_VALUE, "%s: metadata of %q: not UTF-8; expected UTF-8",
                                   path, key);
        }
        if (status != TN_OK)
            return status;
    }
    for (int64_t i = 0; i < tn_state_count(state); i++) {
        tn_status status = check_entry(state, i, path);
        if (status == TN_OK)
            status = put(root, tn_state_name(state, i),
                         entry_of(tn_state_tensor(state, i), begin[i]), path);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* Makes the bytes of the header: the length, the JSON text, and spaces after it so that the data
 * begin at a multiple of eight. */
static tn_status dump(const json_t *root, const char *path, char **bytes, size_t *size)
{
    size_t length = json_dumpb(root, NULL, 0, JSON_COMPACT);
    size_t padded = (length + 7) / 8 * 8;
    if (length == 0)
        return tn_fail(TN_ERR_MEMORY, "%s: safetensors header: out of memory", path);
    if (padded > HEADER_MAX)
        return tn_fail(
            TN_ERR_VALUE,
            "%s: safetensors header: too large, got %zu bytes; expected at most 100000000", path,
            padded);
    char *out = tn_malloc(LENGTH_SIZE + padded);
    if (out == NULL)
        return TN_ERR_MEMORY;
    for (int i = 0; i < LENGTH_SIZE; i++)
        out[i] = (char)(unsigned char)(padded >> (8 * i));
    memset(out + LENGTH_SIZE, ' ', padded);
    if (json_dumpb(root, out + LENGTH_SIZE, padded, JSON_COMPACT) != length) {
        tn_free(out);
        return tn_fail(TN_ERR_MEMORY, "%s: safetensors header: out of memory", path);
    }
    *bytes = out;
    *size = LENGTH_SIZE + padded;
    return TN_OK;
}

tn_status safetensors_header_write(const tn_state *state, const char *path, int64_t *order,
                                   char **bytes, size_t *size)
{
    uint64_t *begin = tn_calloc((size_t)tn_state_count(state) + 1, sizeof *begin);
    json_t *root = json_object();
    tn_status status = begin != NULL && root != NULL
                           ? TN_OK
                           : tn_fail(TN_ERR_MEMORY, "%s: safetensors header: out of memory", path);
    if (status == TN_OK) {
        lay_out(state, order, begin);
        status = fill_header(state, path, begin, root);
    }
    if (status == TN_OK)
        status = dump(root, path, bytes, size);
    json_decref(root);
    tn_free(begin);
    return status;
}
