/* SPDX-License-Identifier: MIT
 *
 * Reading a file by place. */
#include "core/io/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

tn_status tn__io_fail(const char *path, const char *what, int number)
{
    return tn_fail_native(TN_ERR_IO, number, "%s: %s: %s", path, what, strerror(number));
}

static tn_status read_at(void *user, uint64_t offset, void *to, size_t bytes)
{
    tn__reader *reader = user;
    uint64_t end;
    if (tn__add_overflow(offset, (uint64_t)bytes, &end) || end > reader->source.size)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: %zu bytes at offset %llu lie beyond its end (%llu bytes)",
                       reader->source.path, bytes, (unsigned long long)offset,
                       (unsigned long long)reader->source.size);
    char *at = to;
    while (bytes > 0) {
        ssize_t got = pread(reader->file, at, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tn__io_fail(reader->source.path, "cannot read", errno);
        if (got == 0)
            return tn_fail(TN_ERR_IO, "%s: it became shorter while it was read",
                           reader->source.path);
        at += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return TN_OK;
}

tn_status tn__reader_open(tn__reader *reader, const char *path)
{
    struct stat info;
    /* Not blocking: opening a pipe must not wait for a writer. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return tn__io_fail(path, "cannot open", errno);
    tn_status status = TN_OK;
    if (fstat(file, &info) != 0)
        status = tn__io_fail(path, "cannot look at it", errno);
    else if (S_ISDIR(info.st_mode))
        status = tn__io_fail(path, "cannot read", EISDIR);
    else if (!S_ISREG(info.st_mode))
        status = tn_fail(TN_ERR_IO, "%s: not a regular file", path);
    if (status != TN_OK) {
        close(file);
        return status;
    }
    reader->file = file;
    reader->source = (tn_source){ reader, (uint64_t)info.st_size, path, read_at };
    return TN_OK;
}

void tn__reader_close(tn__reader *reader)
{
    close(reader->file);
}
