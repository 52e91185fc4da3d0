/* SPDX-License-Identifier: MIT
 *
 * Reads a file at any offset, or maps it, and makes tensors of its contents. */
#include "lib/io/private.h"

#include "core/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW ((size_t)1 << 18)      /* bytes that are read ahead for small pieces */
#define SMALL_PIECE ((size_t)1 << 15) /* larger pieces are read directly to their destination */

struct tn__mapping {
    _Atomic int32_t refs; /* of the reader, and of every storage over the mapping */
    unsigned char *at;
    size_t size;
};

tn_status tn__io_fail(const char *path, const char *what, int number)
{
    return tn_fail_native(TN_ERR_IO, number, "%s: %s: %s", path, what, strerror(number));
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static tn_status read_from_file(const tn__reader *reader, uint64_t offset, char *at, size_t bytes)
{
    while (bytes > 0) {
        ssize_t got = pread(reader->file, at, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tn__io_fail(reader->source.path, "cannot read", errno);
        if (got == 0)
            return tn_fail(TN_ERR_IO, "%s: truncated while it was read", reader->source.path);
        at += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return TN_OK;
}

static bool in_window(const tn__reader *reader, uint64_t offset, size_t bytes)
{
    return offset >= reader->window_at && offset - reader->window_at <= reader->window_size &&
           bytes <= reader->window_size - (size_t)(offset - reader->window_at);
}

static tn_status read_at(void *user, uint64_t offset, void *to, size_t bytes)
{
    tn__reader *reader = user;
    uint64_t end;
    if (tn__add_overflow(offset, (uint64_t)bytes, &end) || end > reader->source.size)
        return tn_fail(
            TN_ERR_FORMAT,
            "%s: beyond the end of the file, got %zu bytes at offset %llu; expected at most "
            "%llu bytes in all",
            reader->source.path, bytes, (unsigned long long)offset,
            (unsigned long long)reader->source.size);
    if (bytes == 0)
        return TN_OK;
    if (bytes > SMALL_PIECE)
        return read_from_file(reader, offset, to, bytes);
    if (!in_window(reader, offset, bytes)) {
        uint64_t rest = reader->source.size - offset;
        reader->window_size = 0;
        tn_status status = read_from_file(reader, offset, (char *)reader->window,
                                          rest < WINDOW ? (size_t)rest : WINDOW);
        if (status != TN_OK)
            return status;
        reader->window_at = offset;
        reader->window_size = rest < WINDOW ? (size_t)rest : WINDOW;
    }
    memcpy(to, reader->window + (offset - reader->window_at), bytes);
    return TN_OK;
}

/* ---- mapping --------------------------------------------------------------------------------- */

static void mapping_drop(tn__mapping *mapping)
{
    if (mapping == NULL || atomic_fetch_sub_explicit(&mapping->refs, 1, memory_order_acq_rel) != 1)
        return;
    munmap(mapping->at, mapping->size);
    tn_free(mapping);
}

static tn_status map(tn__reader *reader)
{
    if (reader->source.size == 0)
        return TN_OK; /* nothing to map */
    if (reader->source.size > SIZE_MAX)
        return tn_fail(TN_ERR_MEMORY, "%s: too large to be mapped", reader->source.path);
    tn__mapping *mapping = tn_malloc(sizeof *mapping);
    if (mapping == NULL)
        return TN_ERR_MEMORY;
    mapping->size = (size_t)reader->source.size;
    mapping->at = mmap(NULL, mapping->size, reader->read_only ? PROT_READ : PROT_READ | PROT_WRITE,
                       MAP_PRIVATE, reader->file, 0);
    if (mapping->at == MAP_FAILED) {
        int number = errno;
        tn_free(mapping);
        return tn__io_fail(reader->source.path, "cannot map the file", number);
    }
    atomic_init(&mapping->refs, 1);
    reader->mapping = mapping;
    return TN_OK;
}

static void release_mapped(tn__storage *storage)
{
    mapping_drop(storage->user[0]);
}

/* Returns a tensor over mapped bytes, which the scope owns. */
static tn_tensor *mapped(const tn__reader *reader, uint64_t offset, size_t bytes,
                         const tn_device *device, const tn_meta *meta)
{
    tn__storage *storage = tn__storage_foreign(device, reader->mapping->at, offset, bytes, NULL,
                                               reader->mapping, NULL);
    if (storage == NULL)
        return NULL;
    if (reader->read_only)
        storage->flags |= TN__STORAGE_READ_ONLY;
    tn_tensor *tensor = tn__tensor_over(storage, meta);
    if (tensor != NULL) {
        atomic_fetch_add_explicit(&reader->mapping->refs, 1, memory_order_relaxed);
        storage->release = release_mapped;
    }
    tn__storage_drop(storage);
    return tensor != NULL ? tn_tensor_to_scope(tensor) : NULL;
}

tn__reader *tn__reader_of(const tn_source *source, uint64_t *base)
{
    *base = 0;
    return source->read == read_at ? source->user : tn__sibling_reader(source, base);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Makes each byte 0 or 1, because any other value is not a valid bool in C. */
static void make_bools(unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = bytes[i] != 0;
}

static tn_tensor *read_tensor(const tn_source *source, uint64_t offset, size_t bytes,
                              const tn_device *device, const tn_meta *meta)
{
    tn_tensor *tensor = tn_tensor_empty((tn_ints){ meta->shape, meta->ndim }, meta->dtype, device);
    if (tensor == NULL || bytes == 0 || !tn_device_has_memory(device))
        return tensor;
    bool direct = tn_device_is_host(device);
    void *to = direct ? tn_tensor_data(tensor) : tn_malloc(bytes);
    tn_status status = to != NULL ? source->read(source->user, offset, to, bytes)
                                  : tn_error_last_code();
    if (status == TN_OK && meta->dtype == TN_BOOL)
        make_bools(to, bytes);
    if (status == TN_OK && !direct)
        status = tn_tensor_copy_in(tensor, to, bytes);
    if (!direct)
        tn_free(to);
    else
        tn__tensor_pointed(tensor, false);
    return status == TN_OK ? tensor : NULL;
}

tn_tensor *tn_source_tensor(const tn_source *source, uint64_t offset, tn_dtype dtype, tn_ints shape)
{
    if (!tn__given(source != NULL, "tn_source_tensor: source") ||
        !tn__given(shape.at != NULL || shape.count <= 0, "tn_source_tensor: shape"))
        return NULL;
    const tn_device *device = tn_default_device();
    tn_meta meta = { .dtype = dtype };
    uint64_t bytes = 0, end;
    if (device == NULL || shape.count < 0 || shape.count > TN_MAX_DIMS) {
        if (device != NULL)
            tn_fail(TN_ERR_VALUE,
                    "%s: shape: wrong number of dimensions, got %lld; expected 0 to %d",
                    source->path, (long long)shape.count, TN_MAX_DIMS);
        return NULL;
    }
    meta.ndim = (int32_t)shape.count;
    for (int64_t i = 0; i < shape.count; i++)
        meta.shape[i] = shape.at[i];
    if (tn__tensor_meta_bytes(&meta, &bytes) != TN_OK)
        return NULL;
    if (tn__add_overflow(offset, bytes, &end) || end > source->size || bytes > SIZE_MAX) {
        tn_fail(
            TN_ERR_FORMAT,
            "%s: beyond the end of the file, got %llu bytes at offset %llu; expected at most %llu "
            "bytes in all",
            source->path, (unsigned long long)bytes, (unsigned long long)offset,
            (unsigned long long)source->size);
        return NULL;
    }
    uint64_t base = 0;
    const tn__reader *reader = tn__reader_of(source, &base);
    if (reader != NULL && bytes > 0 && dtype != TN_BOOL && tn_device_is_host(device)) {
        size_t size = tn_dtype_size(dtype), alignment = size < 8 ? size : 8;
        if (reader->mapping != NULL && (base + offset) % alignment == 0)
            return mapped(reader, base + offset, (size_t)bytes, device, &meta);
    }
    return read_tensor(source, offset, (size_t)bytes, device, &meta);
}

bool tn_source_is_mapped(const tn_source *source)
{
    uint64_t base;
    const tn__reader *reader = tn__given(source != NULL, "tn_source_is_mapped: source")
                                   ? tn__reader_of(source, &base)
                                   : NULL;
    return reader != NULL && reader->mapping != NULL;
}

/* ---- opening --------------------------------------------------------------------------------- */

tn_status tn__reader_open(tn__reader *reader, const char *path, uint32_t flags)
{
    /* O_NONBLOCK, because otherwise opening a pipe would wait for a writer. */
    int file = tn__fd_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
    return file >= 0 ? tn__reader_begin(reader, file, path, flags)
                     : tn__io_fail(path, "cannot open", errno);
}

tn_status tn__reader_begin(tn__reader *reader, int file, const char *path, uint32_t flags)
{
    struct stat info;
    tn_status status = TN_OK;
    if (fstat(file, &info) != 0)
        status = tn__io_fail(path, "cannot get the status of the file", errno);
    else if (S_ISDIR(info.st_mode))
        status = tn__io_fail(path, "cannot read", EISDIR);
    else if (!S_ISREG(info.st_mode))
        status = tn_fail(TN_ERR_IO, "%s: not a regular file", path);
    *reader = (tn__reader){ .file = file, .read_only = (flags & TN_FILE_READ_ONLY) != 0 };
    if (status == TN_OK) {
        reader->source = (tn_source){ reader, (uint64_t)info.st_size, path, read_at };
        reader->window = tn_malloc(WINDOW);
        status = reader->window == NULL       ? TN_ERR_MEMORY
                 : (flags & TN_FILE_MAP) != 0 ? map(reader)
                                              : TN_OK;
    }
    if (status != TN_OK)
        tn__reader_close(reader);
    return status;
}

void tn__reader_close(tn__reader *reader)
{
    tn__sibling_read_close(reader->siblings);
    mapping_drop(reader->mapping);
    tn_free(reader->window);
    close(reader->file);
}
