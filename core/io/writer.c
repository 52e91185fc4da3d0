/* SPDX-License-Identifier: MIT
 *
 * Atomic writing: a new file in the same folder, on the disk before it takes the old one's name. Whatever goes wrong,
 * the old file is as it was and the new one is gone. */
#include "core/io/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_SIZE ((size_t)65536)
#define NAME_TRIES 100

static tn_status write_all(tn__writer *writer, const void *from, size_t bytes)
{
    const char *at = from;
    while (bytes > 0) {
        ssize_t done = write(writer->file, at, bytes < ((size_t)1 << 30) ? bytes : (size_t)1 << 30);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return tn__io_fail(writer->sink.path, "cannot write", errno);
        at += done;
        bytes -= (size_t)done;
        writer->written += (uint64_t)done;
    }
    return tn_progress_report("writing bytes", writer->written, writer->total);
}

static tn_status flush(tn__writer *writer)
{
    size_t held = writer->held;
    writer->held = 0;
    return held > 0 ? write_all(writer, writer->buffer, held) : TN_OK;
}

static tn_status take(void *user, const void *from, size_t bytes)
{
    tn__writer *writer = user;
    if (bytes > BUFFER_SIZE - writer->held) {
        tn_status status = flush(writer);
        if (status != TN_OK)
            return status;
    }
    if (bytes > BUFFER_SIZE)
        return write_all(writer, from, bytes);
    if (bytes > 0)
        memcpy(writer->buffer + writer->held, from, bytes);
    writer->held += bytes;
    return TN_OK;
}

/* The file that `path` stands for: links are followed, so that a link stays one. */
static tn_status find_target(tn__writer *writer, const char *path, struct stat *old, bool *exists)
{
    char resolved[PATH_MAX];
    *exists = stat(path, old) == 0;
    if (!*exists && errno != ENOENT)
        return tn__io_fail(path, "cannot look at it", errno);
    if (*exists && S_ISDIR(old->st_mode))
        return tn__io_fail(path, "cannot write", EISDIR);
    if (*exists && !S_ISREG(old->st_mode))
        return tn_fail(TN_ERR_IO, "%s: not a regular file: replacing it would do harm", path);
    if (*exists && realpath(path, resolved) == NULL)
        return tn__io_fail(path, "cannot find its real name", errno);
    writer->target = tn_strdup(*exists ? resolved : path);
    return writer->target != NULL ? TN_OK : TN_ERR_MEMORY;
}

static tn_status open_temporary(tn__writer *writer)
{
    static _Atomic uint32_t serial;
    size_t room = strlen(writer->target) + 48;
    writer->temporary = tn_malloc(room);
    if (writer->temporary == NULL)
        return TN_ERR_MEMORY;
    for (int i = 0; i < NAME_TRIES; i++) {
        struct timespec now = { 0, 0 };
        clock_gettime(CLOCK_REALTIME, &now);
        tn_snprint(writer->temporary, room, "%s.%x%x%x.tmp", writer->target, (unsigned)getpid(),
                   (unsigned)now.tv_nsec, (unsigned)atomic_fetch_add(&serial, 1));
        writer->file = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                            0666);
        if (writer->file >= 0)
            return TN_OK;
        if (errno != EEXIST)
            break;
    }
    int number = errno;
    tn_free(writer->temporary);
    writer->temporary = NULL;
    return tn__io_fail(writer->sink.path, "cannot make a new file beside it", number);
}

tn_status tn__writer_open(tn__writer *writer, const char *path, uint64_t total)
{
    struct stat old;
    bool exists = false;
    *writer = (tn__writer){ .sink = { writer, path, take }, .file = -1, .total = total };
    writer->buffer = tn_malloc(BUFFER_SIZE);
    tn_status status = writer->buffer != NULL ? find_target(writer, path, &old, &exists)
                                              : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = open_temporary(writer);
    if (status == TN_OK && exists && fchmod(writer->file, old.st_mode & 07777) != 0)
        status = tn__io_fail(path, "cannot give the new file the old one's mode", errno);
    if (status != TN_OK)
        tn__writer_abort(writer);
    return status;
}

/* Makes the new name itself durable. Some file systems cannot sync a folder; that is no failure. */
static tn_status sync_folder(const tn__writer *writer)
{
    const char *slash = strrchr(writer->target, '/');
    char folder[PATH_MAX];
    if (slash == NULL)
        tn_snprint(folder, sizeof folder, ".");
    else
        tn_snprint(folder, sizeof folder, "%.*s",
                   slash == writer->target ? 1 : (int)(slash - writer->target), writer->target);
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0)
        return TN_OK;
    tn_status status = TN_OK;
    if (fsync(file) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS)
        status = tn__io_fail(writer->sink.path, "written, but its folder cannot be synced", errno);
    close(file);
    return status;
}

tn_status tn__writer_commit(tn__writer *writer)
{
    tn_status status = flush(writer);
    if (status == TN_OK && fsync(writer->file) != 0)
        status = tn__io_fail(writer->sink.path, "cannot bring it to the disk", errno);
    if (status == TN_OK) {
        int file = writer->file;
        writer->file = -1;
        if (close(file) != 0)
            status = tn__io_fail(writer->sink.path, "cannot close it", errno);
    }
    if (status == TN_OK && rename(writer->temporary, writer->target) != 0)
        status = tn__io_fail(writer->sink.path, "cannot put the new file in its place", errno);
    if (status == TN_OK) {
        tn_free(writer->temporary);
        writer->temporary = NULL;
        status = sync_folder(writer);
    }
    tn__writer_abort(writer);
    return status;
}

void tn__writer_abort(tn__writer *writer)
{
    if (writer->file >= 0)
        close(writer->file);
    writer->file = -1;
    if (writer->temporary != NULL)
        unlink(writer->temporary);
    tn_free(writer->temporary);
    tn_free(writer->target);
    tn_free(writer->buffer);
    writer->temporary = NULL;
    writer->target = NULL;
    writer->buffer = NULL;
}
