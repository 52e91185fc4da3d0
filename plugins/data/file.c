/* SPDX-License-Identifier: MIT
 *
 * Files that are read from start to end, plain or compressed by gzip. */
#include "data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef TN_WITH_ZLIB
#include <zlib.h>
#endif

#define CHUNK ((uint64_t)1 << 20)

struct data_file {
    char *path;
    uint64_t size;  /* of the file as it is */
    uint64_t given; /* bytes that were read, unpacked */
#ifdef TN_WITH_ZLIB
    gzFile stream;
#else
    FILE *stream;
#endif
};

/* ---- opening --------------------------------------------------------------------------------- */

static tn_status check_regular(const char *path, uint64_t *size)
{
    struct stat found;

    if (stat(path, &found) != 0)
        return tn_fail(TN_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    if (!S_ISREG(found.st_mode))
        return tn_fail(TN_ERR_IO, "%s: not a regular file", path);
    *size = (uint64_t)found.st_size;
    return TN_OK;
}

#ifdef TN_WITH_ZLIB
static tn_status open_stream(struct data_file *file)
{
    file->stream = gzopen(file->path, "rb");
    if (file->stream == NULL)
        return tn_fail(TN_ERR_IO, "%s: cannot be opened: %s", file->path,
                       errno != 0 ? strerror(errno) : "out of memory");
    (void)gzbuffer(file->stream, 1 << 17);
    return TN_OK;
}
#else
static tn_status open_stream(struct data_file *file)
{
    unsigned char magic[2] = { 0, 0 };
    size_t got;

    file->stream = fopen(file->path, "rb");
    if (file->stream == NULL)
        return tn_fail(TN_ERR_IO, "%s: cannot be opened: %s", file->path, strerror(errno));
    got = fread(magic, 1, 2, file->stream);
    rewind(file->stream);
    if (got == 2 && magic[0] == 0x1f && magic[1] == 0x8b)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: compressed by gzip, but this plugin was built without zlib; unpack it "
                       "with gunzip",
                       file->path);
    return TN_OK;
}
#endif

struct data_file *data_file_open(const char *path)
{
    struct data_file *file;
    uint64_t size = 0;

    if (check_regular(path, &size) != TN_OK)
        return NULL;
    file = tn_calloc(1, sizeof *file);
    if (file == NULL)
        return NULL;
    file->size = size;
    file->path = tn_strdup(path);
    errno = 0;
    if (file->path != NULL && open_stream(file) == TN_OK)
        return file;
    data_file_close(file);
    return NULL;
}

void data_file_close(struct data_file *file)
{
    if (file == NULL)
        return;
#ifdef TN_WITH_ZLIB
    if (file->stream != NULL)
        (void)gzclose(file->stream);
#else
    if (file->stream != NULL)
        (void)fclose(file->stream);
#endif
    tn_free(file->path);
    tn_free(file);
}

const char *data_file_path(const struct data_file *file)
{
    return file->path;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads at most `size` bytes, without the limit. */
static int64_t read_some(struct data_file *file, void *out, uint64_t size)
{
    uint64_t done = 0;

#ifdef TN_WITH_ZLIB
    while (done < size) {
        uint64_t rest = size - done;
        int got = gzread(file->stream, (char *)out + done, (unsigned)(rest < CHUNK ? rest : CHUNK));
        int code = Z_OK;

        if (got < 0 || (got == 0 && (gzerror(file->stream, &code), code == Z_BUF_ERROR))) {
            const char *text = gzerror(file->stream, &code);

            tn_fail(TN_ERR_FORMAT, "%s: damaged: %s", file->path,
                    code == Z_ERRNO       ? strerror(errno)
                    : code == Z_BUF_ERROR ? "the compressed data end too early"
                                          : text);
            return -1;
        }
        if (got == 0)
            break;
        done += (uint64_t)got;
    }
#else
    done = fread(out, 1, size, file->stream);
    if (done < size && ferror(file->stream)) {
        tn_fail(TN_ERR_IO, "%s: cannot be read: %s", file->path, strerror(errno));
        return -1;
    }
#endif
    return (int64_t)done;
}

/* The bytes that may still be read. A file of /proc has the size 0, and may have no end. */
static uint64_t left_of(const struct data_file *file)
{
    uint64_t most = data_most(file->size);

    return most > file->given ? most - file->given : 0;
}

int64_t data_file_some(struct data_file *file, void *out, uint64_t size)
{
    uint64_t left = left_of(file);
    int64_t got = read_some(file, out, size <= left ? size : left + 1);

    if (got > 0 && (uint64_t)got > left) {
        (void)data_limit(file->path, file->size, UINT64_MAX);
        return -1;
    }
    file->given += got > 0 ? (uint64_t)got : 0;
    return got;
}

static tn_status too_short(const struct data_file *file, const char *what, int64_t got,
                           uint64_t expected)
{
    if (got < 0)
        return tn_error_last_code();
    return tn_fail(TN_ERR_FORMAT, "%s: %s: the file is too short, got %lld bytes; expected %llu",
                   file->path, what, (long long)got, (unsigned long long)expected);
}

tn_status data_file_read(struct data_file *file, void *out, uint64_t size, const char *what)
{
    int64_t got = data_file_some(file, out, size);

    return got == (int64_t)size ? TN_OK : too_short(file, what, got, size);
}

/* Appends up to `size` bytes to the memory at *bytes, which has `done` bytes and is replaced when
 * it grows. Returns the number of bytes that were read, or -1. */
static int64_t append(struct data_file *file, char **bytes, uint64_t done, uint64_t size)
{
    char *grown = tn_realloc(*bytes, done + size + 1);

    if (grown == NULL)
        return -1;
    *bytes = grown;
    return data_file_some(file, grown + done, size);
}

void *data_file_take(struct data_file *file, uint64_t size, const char *what)
{
    char *bytes = NULL;
    uint64_t done = 0;

    do {
        uint64_t step = done < CHUNK ? CHUNK : done; /* doubles the buffer */
        int64_t got;

        if (step > size - done)
            step = size - done;
        got = append(file, &bytes, done, step);
        if (got != (int64_t)step) {
            (void)too_short(file, what, got < 0 ? got : (int64_t)done + got, size);
            tn_free(bytes);
            return NULL;
        }
        done += step;
    } while (done < size);
    return bytes;
}

char *data_file_rest(struct data_file *file, uint64_t *size)
{
    char *bytes = NULL;
    uint64_t done = 0, step;
    int64_t got;

    do {
        uint64_t left = left_of(file);

        step = done < CHUNK ? CHUNK : done;
        if (step > left)
            step = left + 1; /* no memory for what may not be read */
        got = append(file, &bytes, done, step);
        if (got < 0) {
            tn_free(bytes);
            return NULL;
        }
        done += (uint64_t)got;
    } while ((uint64_t)got == step);
    bytes[done] = '\0';
    *size = done;
    return bytes;
}

tn_status data_file_end(struct data_file *file)
{
    char more;
    int64_t got = data_file_some(file, &more, 1);

    if (got == 0)
        return TN_OK;
    if (got < 0)
        return tn_error_last_code();
    return tn_fail(TN_ERR_FORMAT, "%s: the file has more data than its header says", file->path);
}

/* ---- whole files ----------------------------------------------------------------------------- */

/* Reads `size` bytes from the start. Fails if the file has become shorter, or has no size. */
static tn_status load_bytes(int file, const char *path, char *out, uint64_t size)
{
    uint64_t done = 0;

    while (done < size) {
        ssize_t got = read(file, out + done, size - done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tn_fail(TN_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
        if (got == 0)
            return tn_fail(TN_ERR_IO,
                           "%s: became shorter while it was read, got %llu bytes; expected %llu",
                           path, (unsigned long long)done, (unsigned long long)size);
        done += (uint64_t)got;
    }
    if (size == 0 && read(file, &(char){ 0 }, 1) > 0)
        return tn_fail(TN_ERR_IO, "%s: a file without a size, as those of /proc; expected a copy",
                       path);
    return TN_OK;
}

void *data_load(const char *path, uint64_t *size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block */
    struct stat found;
    char *bytes = NULL;

    if (file < 0 || fstat(file, &found) != 0)
        tn_fail(TN_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    else if (!S_ISREG(found.st_mode))
        tn_fail(TN_ERR_IO, "%s: not a regular file", path);
    else if (found.st_size > INT32_MAX)
        tn_fail(TN_ERR_FORMAT, "%s: too large, got %lld bytes; expected at most %d", path,
                (long long)found.st_size, INT32_MAX);
    else
        bytes = tn_malloc((size_t)found.st_size + 1);
    if (bytes != NULL && load_bytes(file, path, bytes, (uint64_t)found.st_size) != TN_OK) {
        tn_free(bytes);
        bytes = NULL;
    }
    if (file >= 0)
        (void)close(file);
    *size = bytes != NULL ? (uint64_t)found.st_size : 0;
    return bytes;
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_there(const char *path)
{
    struct stat found;

    return stat(path, &found) == 0;
}

char *data_path(const char *root, const char *name)
{
    size_t size = strlen(root) + strlen(name) + sizeof "/.gz";
    char *path = tn_malloc(size);

    if (path == NULL)
        return NULL;
    snprintf(path, size, "%s/%s", root, name);
    if (is_there(path))
        return path;
    strcat(path, ".gz");
    if (!is_there(path))
        path[strlen(path) - 3] = '\0'; /* the message names the plain file */
    return path;
}
