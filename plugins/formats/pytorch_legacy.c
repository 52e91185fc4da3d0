/* SPDX-License-Identifier: MIT
 *
 * The file format of PyTorch before 1.6, which torch.save() still writes with
 * _use_new_zipfile_serialization=False. A file consists of five pickles (a magic number, a version,
 * properties of the machine, the saved object, the keys of the storages), and then for each key
 * the number of elements and the bytes of the storage. */
#include "pytorch.h"

#include <string.h>

#define WINDOW 65536 /* bytes at the start of the file that are tried first */

enum { PROTOCOL = 1001 };

/* Returns the size of the pickle of the magic number, with which a file begins; 0 if another thing
 * is there. Each protocol of pickle writes the number in another way: 0 and 1 as text, 4 and later
 * in a frame. */
static size_t magic_size(const tn_source *source)
{
    static const char text[] = "L119547037146038801333356L\n.", frame[] = "\x95\x0d\0\0\0\0\0\0\0",
                      number[] = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
    enum { TEXT = sizeof text - 1, FRAME = sizeof frame - 1, NUMBER = sizeof number - 1 };
    char start[TEXT] = "";
    size_t size = source->size < TEXT ? (size_t)source->size : TEXT, at = 2;
    if (source->read(source->user, 0, start, size) != TN_OK)
        return 0;
    if (memcmp(start, text, TEXT) == 0)
        return TEXT;
    if (start[0] != '\x80' || start[1] < 2 || start[1] > 5)
        return 0;
    if (memcmp(start + at, frame, FRAME) == 0)
        at += FRAME;
    return memcmp(start + at, number, NUMBER) == 0 ? at + NUMBER : 0;
}

bool pytorch_legacy_recognize(const tn_source *source)
{
    return magic_size(source) > 0;
}

struct pickles {
    struct pickle version, machine, saved, keys;
    size_t size; /* bytes of the file that the pickles read so far take */
    bool cut;    /* a pickle does not fit into the bytes that were read */
};

static tn_status read_one(const tn_source *source, const char *bytes, size_t size,
                          struct pickles *all, struct pickle *pk)
{
    tn_status status = pickle_read(pk, source->path, bytes + all->size, size - all->size, false);
    all->cut = all->cut || pk->cut;
    all->size += pk->at;
    return status;
}

static tn_status read_pickles(const tn_source *source, const char *bytes, size_t size, size_t begin,
                              struct pickles *all)
{
    memset(all, 0, sizeof *all);
    all->size = begin;
    tn_status status = read_one(source, bytes, size, all, &all->version);
    if (status == TN_OK && all->version.result->kind != PK_INT)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: PyTorch file: protocol: wrong type, got %s; expected an integer",
                       source->path, pickle_kind_name(all->version.result->kind));
    if (status == TN_OK && all->version.result->as.i != PROTOCOL)
        return tn_fail(TN_ERR_FORMAT, "%s: PyTorch file: unknown protocol, got %lld; expected %d",
                       source->path, (long long)all->version.result->as.i, PROTOCOL);
    if (status == TN_OK)
        status = read_one(source, bytes, size, all, &all->machine);
    const struct pickle_value *little = status == TN_OK
                                            ? pickle_get(all->machine.result, "little_endian")
                                            : NULL;
    if (little != NULL && (little->kind != PK_BOOL || !little->as.i))
        return tn_fail(TN_ERR_FORMAT,
                       "%s: wrong byte order, got big-endian; expected little-endian; save the "
                       "file again on a little-endian machine",
                       source->path);
    if (status == TN_OK)
        status = read_one(source, bytes, size, all, &all->saved);
    return status == TN_OK ? read_one(source, bytes, size, all, &all->keys) : status;
}

static void free_pickles(struct pickles *all)
{
    pickle_free(&all->version);
    pickle_free(&all->machine);
    pickle_free(&all->saved);
    pickle_free(&all->keys);
}

/* Reads the pickles at the start of the file. Their size is known only after they have been read,
 * so the part of the file that is read grows until they fit into it. */
static tn_status read_start(const tn_source *source, char **bytes, struct pickles *all)
{
    const size_t begin = magic_size(source);
    for (uint64_t window = WINDOW;; window *= 4) {
        uint64_t most = source->size < PK_SIZE_MAX ? source->size : PK_SIZE_MAX;
        size_t size = (size_t)(window < most ? window : most);
        uint64_t mark = tn_error_mark();
        *bytes = tn_malloc(size);
        tn_status status = *bytes != NULL ? source->read(source->user, 0, *bytes, size)
                                          : TN_ERR_MEMORY;
        bool again = false;
        if (status == TN_OK) {
            status = read_pickles(source, *bytes, size, begin, all);
            again = status != TN_OK && all->cut && size < most;
            if (status != TN_OK)
                free_pickles(all);
        }
        if (status == TN_OK)
            return TN_OK;
        tn_free(*bytes);
        *bytes = NULL;
        if (!again)
            return status;
        tn_error_restore(mark);
    }
}

/* ---- the storages ---------------------------------------------------------------------------- */

/* Adds an entry for every storage that the pickle names, with the storage's own dtype. */
static tn_status list_storages(struct pytorch_file *file, const struct pickle *saved)
{
    const struct pickle_value *all = saved->storages;
    for (uint32_t i = 0; all != NULL && i < all->as.list.count; i++)
        if (pytorch_storage_of(file, all->as.list.at[i], (tn_dtype)all->as.list.at[i]->dtype) ==
            NULL)
            return tn_error_last_code();
    return TN_OK;
}

/* Reads the number of elements at *at, sets the place of the storage with this key, and moves *at
 * to the byte after it. The key must be listed with exactly one dtype. */
static tn_status place_storage(struct pytorch_file *file, const struct pickle_value *key,
                               uint64_t *at)
{
    unsigned char count[8];
    uint64_t size = 0, bytes = UINT64_MAX;
    tn_status status = file->source->read(file->source->user, *at, count, sizeof count);
    if (status != TN_OK)
        return status;
    for (int i = 8; i-- > 0;)
        size = size << 8 | count[i];
    for (int dtype = 0; dtype < TN_DTYPE_COUNT; dtype++) {
        struct pytorch_storage *storage = pytorch_storage_find(file, key, (tn_dtype)dtype);
        if (storage == NULL)
            continue;
        if (storage->place != 0)
            return tn_fail(TN_ERR_FORMAT, "%s: storage %.*s: occurs twice; expected once",
                           file->source->path, (int)key->as.text.size, key->as.text.at);
        if (bytes != UINT64_MAX)
            return tn_fail(
                TN_ERR_FORMAT,
                "%s: storage %.*s: inconsistent type, its tensors have several; expected one",
                file->source->path, (int)key->as.text.size, key->as.text.at);
        if ((uint64_t)storage->size != size)
            return tn_fail(
                TN_ERR_FORMAT,
                "%s: storage %.*s: inconsistent size, got %llu elements; expected %lld for its "
                "tensors",
                file->source->path, (int)key->as.text.size, key->as.text.at,
                (unsigned long long)size, (long long)storage->size);
        bytes = size * tn_dtype_size((tn_dtype)dtype);
        storage->place = *at + sizeof count;
    }
    if (bytes == UINT64_MAX)
        return tn_fail(TN_ERR_FORMAT, "%s: storage %.*s: unused; expected a tensor with it",
                       file->source->path, (int)key->as.text.size, key->as.text.at);
    if (bytes > file->source->size - *at - sizeof count)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: storage %.*s: truncated, got %llu bytes in the file; expected %llu",
                       file->source->path, (int)key->as.text.size, key->as.text.at,
                       (unsigned long long)(file->source->size - *at - sizeof count),
                       (unsigned long long)bytes);
    *at += sizeof count + bytes;
    return TN_OK;
}

static tn_status place_storages(struct pytorch_file *file, const struct pickles *all)
{
    const struct pickle_value *keys = all->keys.result;
    uint64_t at = all->size;
    if (keys->kind != PK_LIST)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: keys of the storages: wrong type, got %s; expected a list",
                       file->source->path, pickle_kind_name(keys->kind));
    tn_status status = list_storages(file, &all->saved);
    for (uint32_t i = 0; i < keys->as.list.count && status == TN_OK; i++)
        status = keys->as.list.at[i]->kind == PK_TEXT
                     ? place_storage(file, keys->as.list.at[i], &at)
                     : tn_fail(TN_ERR_FORMAT,
                               "%s: key of a storage: wrong type, got %s; expected a string",
                               file->source->path, pickle_kind_name(keys->as.list.at[i]->kind));
    for (int64_t i = 0; i < file->count && status == TN_OK; i++)
        if (file->at[i].place == 0)
            status = tn_fail(TN_ERR_FORMAT, "%s: storage %.*s: its bytes are missing",
                             file->source->path, (int)file->at[i].key->as.text.size,
                             file->at[i].key->as.text.at);
    if (status == TN_OK && at != file->source->size)
        status = tn_fail(
            TN_ERR_FORMAT,
            "%s: storages: wrong size, they end at byte %llu; expected the end of the file, %llu",
            file->source->path, (unsigned long long)at, (unsigned long long)file->source->size);
    return status;
}

tn_status pytorch_legacy_load(const tn_source *source, tn_state *state)
{
    struct pytorch_file file = { .source = source, .state = state };
    struct pickles all;
    char *bytes = NULL;
    tn_status status = read_start(source, &bytes, &all);
    if (status != TN_OK)
        return status;
    status = place_storages(&file, &all);
    if (status == TN_OK)
        status = pytorch_fill_state(&file, &all.saved);
    pytorch_storages_free(&file);
    free_pickles(&all);
    tn_free(bytes);
    return status;
}
