/* SPDX-License-Identifier: MIT
 *
 * Storages of a PyTorch file and the tensors that use them. Each storage is read once, so tensors
 * that shared a storage when they were saved share it again. */
#include "pytorch.h"

#include <string.h>

static uint64_t hash_of(const struct pickle_value *key, tn_dtype dtype)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)dtype;
    for (size_t i = 0; i < key->as.text.size; i++)
        hash = (hash ^ (unsigned char)key->as.text.at[i]) * UINT64_C(0x100000001b3);
    return hash ^ (hash >> 29);
}

static int64_t *place_of(const struct pytorch_file *file, int64_t *index, int64_t size,
                         const struct pickle_value *key, tn_dtype dtype)
{
    int64_t place = (int64_t)(hash_of(key, dtype) & (uint64_t)(size - 1));
    for (; index[place] != 0; place = (place + 1) & (size - 1)) {
        const struct pytorch_storage *storage = &file->at[index[place] - 1];
        if (storage->dtype == dtype && storage->key->as.text.size == key->as.text.size &&
            memcmp(storage->key->as.text.at, key->as.text.at, key->as.text.size) == 0)
            break;
    }
    return &index[place];
}

/* Makes sure that one more storage fits into the array and its hash index. */
static tn_status make_room(struct pytorch_file *file)
{
    if (file->count == file->capacity) {
        int64_t capacity = file->capacity > 0 ? file->capacity * 2 : 16;
        struct pytorch_storage *grown = tn_realloc(file->at, (size_t)capacity * sizeof *grown);
        if (grown == NULL)
            return TN_ERR_MEMORY;
        file->at = grown;
        file->capacity = capacity;
    }
    if ((file->count + 1) * 2 > file->index_size) {
        int64_t size = file->index_size > 0 ? file->index_size * 2 : 32;
        int64_t *index = tn_calloc((size_t)size, sizeof *index);
        if (index == NULL)
            return TN_ERR_MEMORY;
        for (int64_t i = 0; i < file->count; i++)
            *place_of(file, index, size, file->at[i].key, file->at[i].dtype) = i + 1;
        tn_free(file->index);
        file->index = index;
        file->index_size = size;
    }
    return TN_OK;
}

struct pytorch_storage *pytorch_storage_find(const struct pytorch_file *file,
                                             const struct pickle_value *key, tn_dtype dtype)
{
    int64_t *place = file->index_size > 0
                         ? place_of(file, file->index, file->index_size, key, dtype)
                         : NULL;
    return place != NULL && *place != 0 ? &file->at[*place - 1] : NULL;
}

struct pytorch_storage *pytorch_storage_of(struct pytorch_file *file,
                                           const struct pickle_value *storage, tn_dtype dtype)
{
    const struct pickle_value *key = storage->as.storage.key;
    size_t have = tn_dtype_size((tn_dtype)storage->dtype), wanted = tn_dtype_size(dtype);
    int64_t bytes;
    if (make_room(file) != TN_OK)
        return NULL;
    if (__builtin_mul_overflow(storage->as.storage.size, (int64_t)have, &bytes) ||
        bytes % (int64_t)wanted != 0) {
        tn_fail(
            TN_ERR_FORMAT,
            "%s: storage %.*s: wrong size, got %lld elements of %zu bytes; expected a multiple of "
            "the size of %s",
            file->source->path, (int)key->as.text.size, key->as.text.at,
            (long long)storage->as.storage.size, have, tn_dtype_name(dtype));
        return NULL;
    }
    int64_t *place = place_of(file, file->index, file->index_size, key, dtype);
    if (*place == 0) {
        file->at[file->count++] = (struct pytorch_storage){ .key = key,
                                                            .dtype = dtype,
                                                            .size = bytes / (int64_t)wanted };
        *place = file->count;
    }
    struct pytorch_storage *found = &file->at[*place - 1];
    if (found->size == bytes / (int64_t)wanted)
        return found;
    tn_fail(TN_ERR_FORMAT, "%s: storage %.*s: inconsistent size, got %lld and %lld elements",
            file->source->path, (int)key->as.text.size, key->as.text.at, (long long)found->size,
            (long long)(bytes / (int64_t)wanted));
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Reads a member to a new tensor. A stored member of a mapped file is not read: the tensor refers
 * to the mapping. */
static tn_tensor *read_from(struct pytorch_file *file, const struct zip_member *member,
                            const struct pytorch_storage *storage)
{
    struct zip_reader reader;
    tn_tensor *values = NULL;
    if (zip_reader_open(file->zip, member, &reader) != TN_OK)
        return NULL;
    if (reader.bytes == NULL && tn_source_is_mapped(file->source)) {
        values = tn_source_tensor(file->source, reader.begin, storage->dtype,
                                  TN_SHAPE(storage->size));
        return zip_reader_close(&reader, TN_OK) == TN_OK ? values : NULL;
    }
    values = tn_tensor_empty(TN_SHAPE(storage->size), storage->dtype, NULL);
    tn_status status = values != NULL
                           ? formats_read_values(&reader.source, 0, (size_t)member->size, 0, values)
                           : tn_error_last_code();
    return zip_reader_close(&reader, status) == TN_OK ? values : NULL;
}

static tn_tensor *read_member(struct pytorch_file *file, const struct pytorch_storage *storage,
                              size_t bytes)
{
    size_t room = strlen(file->folder) + strlen(file->members) + storage->key->as.text.size + 2;
    tn_tensor *values = NULL;
    char *name = tn_malloc(room);
    if (name == NULL)
        return NULL;
    tn_snprint(name, room, "%s%s/%.*s", file->folder, file->members,
               (int)storage->key->as.text.size, storage->key->as.text.at);
    const struct zip_member *member = zip_find(file->zip, name);
    if (member == NULL)
        tn_fail(TN_ERR_FORMAT, "%s: storage %q: missing", file->source->path, name);
    else if (member->size != bytes)
        tn_fail(TN_ERR_FORMAT,
                "%s: storage %q: wrong size, got %llu bytes; expected %zu for its tensors",
                file->source->path, name, (unsigned long long)member->size, bytes);
    else
        values = read_from(file, member, storage);
    tn_free(name);
    return values;
}

/* Returns the offset in the file of the storage's bytes; 0 if it is not known. If the storage has
 * no offset of its own, the offset of an entry with the same key and size in bytes, but another
 * dtype, is returned. */
static uint64_t place_of_bytes(const struct pytorch_file *file,
                               const struct pytorch_storage *storage)
{
    uint64_t place = storage->place;
    for (int dtype = 0; dtype < TN_DTYPE_COUNT && place == 0; dtype++) {
        const struct pytorch_storage *other = pytorch_storage_find(file, storage->key,
                                                                   (tn_dtype)dtype);
        if (other != NULL && (uint64_t)other->size * tn_dtype_size(other->dtype) ==
                                 (uint64_t)storage->size * tn_dtype_size(storage->dtype))
            place = other->place;
    }
    return place;
}

static tn_status load_values(struct pytorch_file *file, struct pytorch_storage *storage)
{
    size_t bytes = (size_t)storage->size * tn_dtype_size(storage->dtype);
    /* Checked before memory is allocated, so that a damaged file cannot make Tenon allocate memory
     * for bytes that are not in the file. For archives, formats_unpacked() limits the memory. */
    if (file->zip == NULL && place_of_bytes(file, storage) == 0)
        return tn_fail(TN_ERR_FORMAT, "%s: storage %.*s: its bytes are missing", file->source->path,
                       (int)storage->key->as.text.size, storage->key->as.text.at);
    tn_tensor *values = NULL;
    tn_status status = TN_OK;
    if (file->zip != NULL && bytes > file->source->size)
        status = formats_unpacked(file->source, &file->expanded, bytes - file->source->size);
    if (status == TN_OK && file->zip != NULL) {
        values = read_member(file, storage, bytes);
        status = values != NULL ? TN_OK : tn_error_last_code();
    } else if (status == TN_OK) {
        values = tn_tensor_empty(TN_SHAPE(storage->size), storage->dtype, NULL);
        status = values != NULL ? formats_read_values(file->source, place_of_bytes(file, storage),
                                                      bytes, 0, values)
                                : tn_error_last_code();
    }
    if (status != TN_OK)
        return status;
    storage->values = tn_tensor_keep(values);
    file->done += bytes;
    return tn_progress_report("reading bytes", file->done, file->source->size);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Fails unless all elements are inside the storage. If the tensor has more elements than its
 * storage, the difference counts towards the limit of formats_unpacked(), because a copy of the
 * tensor needs memory for every element. */
static tn_status check_extent(struct pytorch_file *file, const struct pytorch_storage *storage,
                              tn_ints shape, tn_ints strides, int64_t offset, const char *name)
{
    int64_t last = offset, count = 1, step, bytes;
    bool empty = false, overflow = false;
    for (int64_t i = 0; i < shape.count; i++) {
        empty = empty || shape.at[i] == 0;
        overflow = overflow || __builtin_mul_overflow(count, shape.at[i], &count) ||
                   __builtin_mul_overflow(shape.at[i] > 0 ? shape.at[i] - 1 : 0, strides.at[i],
                                          &step) ||
                   __builtin_add_overflow(last, step, &last);
    }
    overflow = overflow ||
               __builtin_mul_overflow(count, (int64_t)tn_dtype_size(storage->dtype), &bytes);
    if (overflow || offset > storage->size || (!empty && last >= storage->size))
        return tn_fail(
            TN_ERR_FORMAT,
            "%s: tensor %q: reaches beyond its storage; expected sizes, strides and offset within "
            "the storage's %lld elements of %s",
            file->source->path, name, (long long)storage->size, tn_dtype_name(storage->dtype));
    return count > storage->size
               ? formats_unpacked(file->source, &file->expanded,
                                  (uint64_t)(count - storage->size) * tn_dtype_size(storage->dtype))
               : TN_OK;
}

tn_tensor *pytorch_tensor_of(struct pytorch_file *file, const struct pickle_value *value,
                             const char *name)
{
    struct pickle_value **at = value->as.tensor.at;
    int64_t sizes[TN_MAX_DIMS], steps[TN_MAX_DIMS];
    tn_ints shape = { sizes, at[2]->as.list.count }, strides = { steps, at[3]->as.list.count };
    for (int64_t i = 0; i < shape.count; i++) {
        sizes[i] = at[2]->as.list.at[i]->as.i;
        steps[i] = at[3]->as.list.at[i]->as.i;
    }
    struct pytorch_storage *storage = pytorch_storage_of(file, at[0], (tn_dtype)value->dtype);
    if (storage == NULL || check_extent(file, storage, shape, strides, at[1]->as.i, name) != TN_OK)
        return NULL;
    if (storage->values == NULL && load_values(file, storage) != TN_OK)
        return NULL;
    return tn_tensor_as_strided(storage->values, shape, strides, at[1]->as.i);
}

void pytorch_storages_free(struct pytorch_file *file)
{
    for (int64_t i = 0; i < file->count; i++)
        tn_tensor_drop(file->at[i].values);
    tn_free(file->at);
    tn_free(file->index);
    file->at = NULL;
    file->index = NULL;
    file->count = 0;
}
