/* SPDX-License-Identifier: MIT
 *
 * Files of a report: those that only grow, and those that are replaced. */
#include "report_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tn_status failed(const char *path, const char *what)
{
    int number = errno;
    return tn_fail_native(TN_ERR_IO, number, "report: %q: %s, got %s", path, what,
                          strerror(number));
}

tn_status report_file_folder(const char *folder)
{
    struct stat is;
    char *path = tn_strdup(folder);

    if (path == NULL)
        return tn_error_last_code();
    tn_status status = TN_OK;
    for (char *end = path + 1; status == TN_OK; end++) {
        if (*end != '/' && *end != '\0')
            continue;
        char was = *end;
        *end = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            status = failed(path, "the folder cannot be made");
        *end = was;
        if (was == '\0')
            break;
    }
    if (status == TN_OK && (stat(path, &is) != 0 || !S_ISDIR(is.st_mode))) {
        errno = ENOTDIR;
        status = failed(path, "the folder cannot be made");
    }
    tn_free(path);
    return status;
}

char *report_file_path(const char *folder, const char *name)
{
    report_text path = { .status = TN_OK };
    report_text_add(&path, "%s/%s", folder, name);
    if (path.status != TN_OK)
        report_text_drop(&path);
    return path.bytes;
}

static tn_status cannot_open(const char *path, const char *what)
{
    if (errno == ESPIPE)
        return tn_fail(TN_ERR_IO, "report: %q: it is a pipe; expected a regular file", path);
    return failed(path, what);
}

/* Opens a file; a pipe, whose reader or writer could let the process wait for ever, fails with
 * ESPIPE. If a standard stream is closed, the file must not get its descriptor, because
 * output to that stream would end up in the file. */
static int open_above(const char *path, int flags)
{
    struct stat is;
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    /* ENXIO: a pipe that nobody reads, or a socket. */
    if (fd < 0 && errno == ENXIO)
        errno = ESPIPE;
    if (fd >= 0 && fstat(fd, &is) == 0 && (S_ISFIFO(is.st_mode) || S_ISSOCK(is.st_mode))) {
        close(fd);
        fd = -1;
        errno = ESPIPE;
    }
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), number = errno;
    close(fd);
    errno = number;
    return above;
}

tn_status report_file_open(report_file *f, char *path)
{
    struct stat is;

    *f = (report_file){ .fd = -1 };
    if (path == NULL)
        return tn_error_last_code();
    int fd = open_above(path, O_RDWR | O_CREAT);
    tn_status status = fd < 0 ? cannot_open(path, "it cannot be opened for writing") : TN_OK;
    if (status == TN_OK && fstat(fd, &is) != 0)
        status = failed(path, "its size cannot be read");
    if (status != TN_OK) {
        if (fd >= 0)
            close(fd);
        tn_free(path);
        return status;
    }
    *f = (report_file){ .fd = fd, .size = is.st_size, .path = path };
    return TN_OK;
}

/* Writes all bytes at an offset; returns false and sets errno on failure. */
static bool write_all(int fd, const char *bytes, size_t size, int64_t offset)
{
    while (size > 0) {
        /* On some systems pwrite() fails for devices such as /dev/full, so seek and write. What has
         * no position (ESPIPE) is written without a seek. */
        if (lseek(fd, offset, SEEK_SET) < 0 && errno != ESPIPE)
            return false;
        ssize_t done = write(fd, bytes, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            errno = done == 0 ? ENOSPC : errno;
            return false;
        }
        bytes += done;
        size -= (size_t)done;
        offset += done;
    }
    return true;
}

tn_status report_file_cut(report_file *f, int64_t size)
{
    if (ftruncate(f->fd, size) != 0)
        return failed(f->path, "it cannot be shortened");
    f->size = size;
    return TN_OK;
}

tn_status report_file_end(report_file *f, int64_t offset, const void *bytes, size_t size)
{
    int64_t end = offset + (int64_t)size;

    if (!write_all(f->fd, bytes, size, offset)) {
        tn_status status = failed(f->path, "it cannot be written");
        /* If this fails, too, the next write begins at the same place. */
        if (ftruncate(f->fd, f->size) != 0)
            return status;
        return status;
    }
    if (end < f->size)
        return report_file_cut(f, end);
    f->size = end;
    return TN_OK;
}

tn_status report_file_append(report_file *f, const void *bytes, size_t size)
{
    return report_file_end(f, f->size, bytes, size);
}

tn_status report_file_sync(report_file *f)
{
    if (f->fd >= 0 && fsync(f->fd) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS)
        return failed(f->path, "it cannot be written to the disk");
    return TN_OK;
}

tn_status report_file_close(report_file *f)
{
    tn_status status = TN_OK;
    if (f->fd >= 0 && close(f->fd) != 0)
        status = failed(f->path, "it cannot be written");
    tn_free(f->path);
    *f = (report_file){ .fd = -1 };
    return status;
}

tn_status report_file_read(const char *path, report_text *out)
{
    char part[16384];
    int fd = open_above(path, O_RDONLY);
    if (fd < 0)
        return errno == ENOENT ? TN_OK : cannot_open(path, "it cannot be opened");
    struct stat is;
    if (fstat(fd, &is) == 0 && !S_ISREG(is.st_mode)) {
        close(fd); /* a device may be endless */
        return tn_fail(TN_ERR_IO, "report: %q: it cannot be read, got no regular file", path);
    }
    ssize_t count;
    while ((count = read(fd, part, sizeof part)) > 0 && out->status == TN_OK)
        report_text_bytes(out, part, (size_t)count);
    tn_status status = count < 0 ? failed(path, "it cannot be read") : out->status;
    close(fd);
    return status;
}

tn_status report_file_replace(const char *path, const void *bytes, size_t size)
{
    report_text part = { .status = TN_OK };
    report_text_add(&part, "%s.part", path);
    if (part.status != TN_OK)
        return part.status;
    tn_status status = TN_OK;
    int fd = open_above(part.bytes, O_WRONLY | O_CREAT | O_TRUNC);
    if (fd < 0) {
        status = cannot_open(part.bytes, "it cannot be opened for writing");
    } else {
        if (!write_all(fd, bytes, size, 0))
            status = failed(part.bytes, "it cannot be written");
        else if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP)
            status = failed(part.bytes, "it cannot be written to the disk");
        if (close(fd) != 0 && status == TN_OK)
            status = failed(part.bytes, "it cannot be written");
        if (status == TN_OK && rename(part.bytes, path) != 0)
            status = failed(path, "it cannot be replaced");
        if (status != TN_OK)
            unlink(part.bytes);
    }
    report_text_drop(&part);
    return status;
}
