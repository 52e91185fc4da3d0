/* SPDX-License-Identifier: MIT
 *
 * The format "checkpoint", Tenon's own file for whole states: tensors with their strides and with
 * the storages that they share, values of any kind, versions, metadata. docs/guides/formats.md
 * describes every byte of it. Here checkpoints are written; checkpoint_read.c reads them. */
#include "formats.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64
#define DEPTH_MAX 64

static const char magic[8] = { 'T', 'N', 'C', 'K', 'P', 'T', '\r', '\n' };

/* ---- storages -------------------------------------------------------------------------------- */

/* A storage, represented by the first tensor of the state that uses it. */
struct storage {
    tn_tensor *tensor;
    uintptr_t memory; /* the tensor's memory; with `start` the key of the hash table */
    uint64_t start;   /* offset of the storage in that memory, in bytes */
    uint64_t size;    /* in bytes */
    uint64_t place;   /* offset from the start of the data of the file */
};

struct writing {
    const char *path;
    char *header;
    size_t length, capacity;
    struct storage *storages;
    int64_t count, room;
    int64_t
        *index; /* hash table of storages: index in `storages` + 1, or 0; size is a power of 2 */
    int64_t index_size;
    uint64_t data; /* bytes of all storages so far, with padding */
};

static tn_status put(struct writing *w, const void *bytes, size_t count)
{
    if (count > w->capacity - w->length) {
        size_t capacity = w->capacity > 0 ? w->capacity * 2 : 4096;
        while (capacity - w->length < count)
            capacity *= 2;
        char *grown = tn_realloc(w->header, capacity);
        if (grown == NULL)
            return TN_ERR_MEMORY;
        w->header = grown;
        w->capacity = capacity;
    }
    if (count > 0)
        memcpy(w->header + w->length, bytes, count);
    w->length += count;
    return TN_OK;
}

static tn_status put_number(struct writing *w, uint64_t number)
{
    return put(w, &number, sizeof number);
}

static tn_status put_text(struct writing *w, const char *text, size_t length)
{
    tn_status status = put_number(w, length);
    return status == TN_OK ? put(w, text, length) : status;
}

static int64_t home_of(const struct writing *w, uintptr_t memory, uint64_t start)
{
    uint64_t hash = ((uint64_t)memory + start) * UINT64_C(0x9E3779B185EBCA87);
    return (int64_t)(hash >> 32) & (w->index_size - 1);
}

static tn_status grow_storages(struct writing *w)
{
    int64_t room = w->room > 0 ? w->room * 2 : 64;
    struct storage *grown = tn_realloc(w->storages, (size_t)room * sizeof *grown);
    if (grown == NULL)
        return TN_ERR_MEMORY;
    w->storages = grown;
    int64_t *index = tn_calloc((size_t)room * 2, sizeof *index);
    if (index == NULL)
        return TN_ERR_MEMORY;
    tn_free(w->index);
    w->index = index;
    w->index_size = room * 2;
    w->room = room;
    for (int64_t i = 0; i < w->count; i++) {
        int64_t at = home_of(w, grown[i].memory, grown[i].start);
        while (index[at] != 0)
            at = (at + 1) & (w->index_size - 1);
        index[at] = i + 1;
    }
    return TN_OK;
}

/* Sets *number to the number of the tensor's storage; adds the storage if it is new. */
static tn_status storage_of(struct writing *w, tn_tensor *tensor, uint64_t *number)
{
    const tn_view *view = tn_tensor_view(tensor);
    uint64_t offset = (uint64_t)tn_tensor_offset(tensor) * tn_dtype_size(tn_tensor_dtype(tensor));
    struct storage fresh = { tensor, (uintptr_t)view->data, view->byte_offset - offset,
                             tn_tensor_storage_size(tensor), w->data };
    if (w->count == w->room && grow_storages(w) != TN_OK)
        return TN_ERR_MEMORY;
    int64_t at = home_of(w, fresh.memory, fresh.start);
    for (; w->index[at] != 0; at = (at + 1) & (w->index_size - 1)) {
        *number = (uint64_t)w->index[at] - 1;
        if (tn_tensor_shares_storage(w->storages[*number].tensor, tensor))
            return TN_OK;
    }
    *number = (uint64_t)w->count;
    w->index[at] = w->count + 1;
    w->storages[w->count++] = fresh;
    w->data += (fresh.size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return TN_OK;
}

/* Returns the bytes of a storage. If they are not in host memory, they are copied, and *copied is
 * the copy, which the caller frees with tn_free; else *copied is NULL. Returns NULL on failure. */
static const void *storage_bytes(const struct storage *storage, void **copied)
{
    *copied = NULL;
    int64_t size = (int64_t)storage->size;
    tn_tensor *all = tn_tensor_over(storage->tensor, TN_U8, (tn_ints){ &size, 1 }, NULL, 0);
    if (all == NULL)
        return NULL;
    if (tn_device_is_host(tn_tensor_device(all)))
        return tn_tensor_data(all);
    *copied = tn_malloc(storage->size);
    if (*copied != NULL && tn_tensor_copy_out(all, *copied, storage->size) == TN_OK)
        return *copied;
    tn_free(*copied);
    *copied = NULL;
    return NULL;
}

/* ---- the header ------------------------------------------------------------------------------ */

/* Fails if a bool has a byte other than 0 or 1, because the reader would refuse the file. */
static tn_status check_bools(const struct writing *w, const char *name, tn_tensor *tensor,
                             const struct storage *storage)
{
    void *copied = NULL;
    uint64_t visits, scope = tn_scope_begin();
    const void *bytes = storage->size > 0 ? storage_bytes(storage, &copied) : "";
    tn_status status = bytes != NULL ? TN_OK : tn_error_last_code();
    if (status == TN_OK && storage->size > 0 &&
        !formats_are_bools(bytes, storage->size, tn_tensor_shape(tensor), tn_tensor_strides(tensor),
                           tn_tensor_offset(tensor), &visits))
        status = tn_fail(
            TN_ERR_VALUE,
            "%s: tensor %q: wrong byte in a bool; expected 0 or 1, as the result of a comparison "
            "such as tn_ne has",
            w->path, name);
    tn_free(copied);
    tn_scope_end(scope);
    return status;
}

static tn_status put_tensor(struct writing *w, const char *name, tn_tensor *tensor)
{
    tn_ints shape = tn_tensor_shape(tensor), strides = tn_tensor_strides(tensor);
    uint64_t storage = 0;
    if (!tn_device_has_memory(tn_tensor_device(tensor)))
        return tn_fail(
            TN_ERR_VALUE,
            "%s: tensor %q: no values to save, got a tensor on %s; expected a device with memory",
            w->path, name, tn_device_name(tn_tensor_device(tensor)));
    tn_status status = storage_of(w, tensor, &storage);
    if (status == TN_OK && tn_tensor_dtype(tensor) == TN_BOOL)
        status = check_bools(w, name, tensor, &w->storages[storage]);
    if (status == TN_OK)
        status = put_number(w, tn_tensor_dtype(tensor));
    if (status == TN_OK)
        status = put_number(w, storage);
    if (status == TN_OK)
        status = put_number(w, (uint64_t)tn_tensor_offset(tensor));
    if (status == TN_OK)
        status = put_number(w, (uint64_t)shape.count);
    if (status == TN_OK)
        status = put(w, shape.at, (size_t)shape.count * sizeof *shape.at);
    return status == TN_OK ? put(w, strides.at, (size_t)shape.count * sizeof *strides.at) : status;
}

static tn_status put_value(struct writing *w, const char *name, const tn_value *value, int depth)
{
    uint64_t bits = 0;
    if (depth > DEPTH_MAX)
        return tn_fail(TN_ERR_VALUE,
                       "%s: entry %q: lists nested too deep; expected at most %d levels", w->path,
                       name, DEPTH_MAX);
    if (value->kind == TN_VALUE_MODULE || value->kind > TN_VALUE_UINT ||
        value->kind == TN_VALUE_OPAQUE)
        return tn_fail(TN_ERR_TYPE,
                       "%s: entry %q: cannot be stored in a file, got a %s; expected data", w->path,
                       name, value->kind == TN_VALUE_MODULE ? "module" : "value of unknown kind");
    tn_status status = put_number(w, value->kind);
    if (status != TN_OK || value->kind == TN_VALUE_NONE)
        return status;
    switch (value->kind) {
    case TN_VALUE_BOOL:
    case TN_VALUE_INT: return put_number(w, (uint64_t)value->as.i);
    case TN_VALUE_UINT: return put_number(w, value->as.u);
    case TN_VALUE_FLOAT: memcpy(&bits, &value->as.f, sizeof bits); return put_number(w, bits);
    case TN_VALUE_STRING:
    case TN_VALUE_SPEC: return put_text(w, value->as.s, strlen(value->as.s));
    case TN_VALUE_BYTES: return put_text(w, value->as.s, value->count);
    case TN_VALUE_TENSOR: return put_tensor(w, name, value->as.tensor);
    default: break;
    }
    status = put_number(w, value->count);
    for (uint32_t i = 0; i < value->count && status == TN_OK; i++)
        status = put_value(w, name, &value->as.list[i], depth + 1);
    return status;
}

static tn_status put_entries(struct writing *w, const tn_state *state)
{
    tn_status status = put_number(w, (uint64_t)tn_state_count(state));
    for (int64_t i = 0; i < tn_state_count(state) && status == TN_OK; i++) {
        const char *name = tn_state_name(state, i);
        tn_value value = tn_state_value(state, i);
        status = put_text(w, name, strlen(name));
        if (status == TN_OK)
            status = put_value(w, name, &value, 0);
    }
    return status;
}

static tn_status put_beside(struct writing *w, const tn_state *state)
{
    tn_status status = put_number(w, (uint64_t)tn_state_version_count(state));
    for (int64_t i = 0; i < tn_state_version_count(state) && status == TN_OK; i++) {
        const char *path = tn_state_version_path(state, i);
        status = put_text(w, path, strlen(path));
        if (status == TN_OK)
            status = put_number(w, (uint64_t)tn_state_version(state, path));
    }
    if (status == TN_OK)
        status = put_number(w, (uint64_t)tn_state_meta_count(state));
    for (int64_t i = 0; i < tn_state_meta_count(state) && status == TN_OK; i++) {
        const char *key = tn_state_meta_key(state, i), *text = tn_state_meta(state, key);
        status = put_text(w, key, strlen(key));
        if (status == TN_OK)
            status = put_text(w, text, strlen(text));
    }
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Writes a row for each storage to the header: place, size and checksum. The values are read here
 * for the checksums and again for writing, because all checksums come before the data. */
static tn_status put_storages(struct writing *w)
{
    tn_status status = put_number(w, (uint64_t)w->count);
    for (int64_t i = 0; i < w->count && status == TN_OK; i++) {
        void *copied = NULL;
        uint64_t scope = tn_scope_begin(), sum = checkpoint_sum("", 0);
        if (w->storages[i].size > 0) {
            const void *bytes = storage_bytes(&w->storages[i], &copied);
            if (bytes != NULL)
                sum = checkpoint_sum(bytes, (size_t)w->storages[i].size);
            else
                status = tn_error_last_code();
        }
        tn_free(copied);
        tn_scope_end(scope);
        if (status == TN_OK)
            status = put_number(w, w->storages[i].place);
        if (status == TN_OK)
            status = put_number(w, w->storages[i].size);
        if (status == TN_OK)
            status = put_number(w, sum);
    }
    return status;
}

static tn_status write_storages(const struct writing *w, const tn_sink *sink)
{
    static const char blanks[ALIGNMENT];
    tn_status status = TN_OK;
    for (int64_t i = 0; i < w->count && status == TN_OK; i++) {
        size_t size = (size_t)w->storages[i].size,
               padding = (ALIGNMENT - size % ALIGNMENT) % ALIGNMENT;
        void *copied = NULL;
        uint64_t scope = tn_scope_begin();
        if (size > 0) {
            const void *bytes = storage_bytes(&w->storages[i], &copied);
            status = bytes != NULL ? sink->write(sink->user, bytes, size) : tn_error_last_code();
        }
        tn_free(copied);
        tn_scope_end(scope);
        if (status == TN_OK)
            status = sink->write(sink->user, blanks, padding);
    }
    return status;
}

static tn_status write_start(const struct writing *w, const tn_sink *sink)
{
    struct {
        char magic[8];
        uint32_t version, order;
        uint64_t length, sum;
    } start = { .version = 1, .order = 0x01020304, .length = w->length };
    memcpy(start.magic, magic, sizeof magic);
    start.sum = checkpoint_sum(w->header, w->length);
    tn_status status = sink->write(sink->user, &start, sizeof start);
    return status == TN_OK ? sink->write(sink->user, w->header, w->length) : status;
}

static tn_status save(const tn_format_def *self, const tn_sink *sink, const tn_state *state)
{
    (void)self;
    struct writing w = { .path = sink->path };
    static const char blanks[ALIGNMENT];
    tn_status status = put_number(&w, 0); /* offset of the storages' rows, set below */
    if (status == TN_OK)
        status = put_entries(&w, state);
    if (status == TN_OK)
        status = put_beside(&w, state);
    if (status == TN_OK) {
        uint64_t rows = w.length;
        memcpy(w.header, &rows, sizeof rows);
        status = put_storages(&w);
    }
    /* The header is padded so that the data begin at a multiple of the alignment. */
    if (status == TN_OK)
        status = put(&w, blanks, (ALIGNMENT - (32 + w.length) % ALIGNMENT) % ALIGNMENT);
    if (status == TN_OK)
        status = write_start(&w, sink);
    if (status == TN_OK)
        status = write_storages(&w, sink);
    tn_free(w.header);
    tn_free(w.storages);
    tn_free(w.index);
    return status;
}

static bool recognize(const tn_format_def *self, const tn_source *source)
{
    (void)self;
    char start[sizeof magic];
    return source->size >= 32 && source->read(source->user, 0, start, sizeof start) == TN_OK &&
           memcmp(start, magic, sizeof magic) == 0;
}

const tn_format_def format_checkpoint = {
    TN_HEAD(tn_format_def),
    .name = "checkpoint",
    .help = "whole states: strides and shared storages, values of any kind, versions",
    .extensions = ".checkpoint",
    .recognize = recognize,
    .load = checkpoint_load,
    .save = save,
    .flags = TN_FORMAT_TEXTS | TN_FORMAT_VALUES,
};
