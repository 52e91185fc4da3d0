/* SPDX-License-Identifier: MIT
 *
 * Other files that a file names, for the readers of formats. The contents of a file are not
 * trusted: a name must lead to a regular file below the folder of the file, without links.
 * Folders are opened one by one, so that no other process can replace a folder by a link after
 * the check. */
#include "lib/io/private.h"

#include "core/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* A range of bytes in a sibling. */
struct range {
    struct range *next;
    tn_source source;
    tn__reader *reader;
    uint64_t base;
};

/* A sibling, which is opened once. */
struct tn__sibling_read {
    tn__sibling_read *next;
    char *name, *path;
    tn__reader reader;
    struct range *ranges;
};

static tn_status read_range(void *user, uint64_t offset, void *to, size_t bytes)
{
    const struct range *range = user;
    uint64_t end;

    if (tn__add_overflow(offset, (uint64_t)bytes, &end) || end > range->source.size)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: %zu bytes at offset %llu: beyond the end of the range (%llu bytes)",
                       range->source.path, bytes, (unsigned long long)offset,
                       (unsigned long long)range->source.size);
    const tn_source *whole = &range->reader->source;
    return whole->read(whole->user, range->base + offset, to, bytes);
}

tn__reader *tn__sibling_reader(const tn_source *source, uint64_t *base)
{
    const struct range *range = source->read == read_range ? source->user : NULL;

    if (range == NULL)
        return NULL;
    *base = range->base;
    return range->reader;
}

void tn__sibling_read_close(tn__sibling_read *siblings)
{
    while (siblings != NULL) {
        tn__sibling_read *next = siblings->next;
        while (siblings->ranges != NULL) {
            struct range *range = siblings->ranges;
            siblings->ranges = range->next;
            tn_free(range);
        }
        tn__reader_close(&siblings->reader);
        tn_free(siblings->name);
        tn_free(siblings->path);
        tn_free(siblings);
        siblings = next;
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns what is wrong with a name, NULL if nothing is wrong. */
static const char *wrong_in(const char *name)
{
    if (name[0] == '\0')
        return "it is empty";
    if (name[0] == '/')
        return "it is absolute";
    if (strchr(name, '\\') != NULL)
        return "it has a `\\`";
    for (const char *at = name;; at++) {
        size_t length = strcspn(at, "/");
        if (length == 0)
            return "a part of it is empty";
        if (at[0] == '.' && (length == 1 || (length == 2 && at[1] == '.')))
            return length == 1 ? "a part of it is `.`" : "a part of it is `..`";
        at += length;
        if (*at == '\0')
            return NULL;
    }
}

/* Opens the folder named by the first `length` bytes of `name`, in the folder `from`, and closes
 * `from`. Returns a descriptor, or -1 and sets errno. */
static int enter(int from, const char *name, size_t length)
{
    char part[256]; /* no file system has longer names */
    int to = -1;

    errno = ENAMETOOLONG;
    if (length < sizeof part) {
        memcpy(part, name, length);
        part[length] = '\0';
        to = tn__fd_open(from, part, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    }
    int number = errno;
    close(from);
    errno = number;
    return to;
}

/* Opens a file below a folder. Returns a descriptor, or -1 and sets errno. */
static int open_below(const char *folder, const char *name)
{
    int at = tn__fd_open(AT_FDCWD, folder, O_PATH | O_DIRECTORY, 0);

    for (size_t length; at >= 0 && name[length = strcspn(name, "/")] != '\0'; name += length + 1)
        at = enter(at, name, length);
    if (at < 0)
        return -1;
    /* O_NONBLOCK, because otherwise opening a pipe would wait for a writer. */
    int file = tn__fd_open(at, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
    int number = errno;
    close(at);
    errno = number;
    return file;
}

/* ---- opening --------------------------------------------------------------------------------- */

static tn_status open_file(tn__sibling_read *made, const tn__reader *main, const char *name)
{
    char *folder = tn__file_set_path(main->source.path, ".");
    made->name = tn_strdup(name);
    made->path = tn__file_set_path(main->source.path, name);
    if (folder == NULL || made->name == NULL || made->path == NULL) {
        tn_free(folder);
        return TN_ERR_MEMORY;
    }
    int file = open_below(folder, name), number = errno;
    tn_free(folder);
    if (file < 0)
        return tn_fail_native(
            TN_ERR_IO, number, "%s: names the file %q: cannot open it%s: %s", main->source.path,
            name, number == ELOOP || number == ENOTDIR ? ", links are not followed" : "",
            strerror(number));
    uint32_t flags = main->mapping != NULL ? TN_FILE_MAP : 0;
    flags |= main->read_only ? TN_FILE_READ_ONLY : 0;
    if (tn__reader_begin(&made->reader, file, made->path, flags) != TN_OK)
        return tn_error_prefix("%s: names the file %q: ", main->source.path, name);
    return TN_OK;
}

/* Returns the sibling of that name. Opens it when it is asked for the first time. */
static tn__sibling_read *sibling_of(tn__reader *main, const char *name)
{
    for (tn__sibling_read *known = main->siblings; known != NULL; known = known->next)
        if (strcmp(known->name, name) == 0)
            return known;
    tn__sibling_read *made = tn_calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    if (open_file(made, main, name) != TN_OK) {
        tn_free(made->name);
        tn_free(made->path);
        tn_free(made);
        return NULL;
    }
    made->next = main->siblings;
    main->siblings = made;
    return made;
}

const tn_source *tn_source_sibling(const tn_source *source, const char *name, uint64_t offset,
                                   uint64_t bytes)
{
    uint64_t base, end;

    if (!tn__given(source != NULL, "tn_source_sibling: source") ||
        !tn__given(name != NULL, "tn_source_sibling: name"))
        return NULL;
    tn__reader *main = tn__reader_of(source, &base);
    const char *wrong = wrong_in(name);
    if (main == NULL || tn__sibling_reader(source, &base) != NULL) {
        tn_fail(TN_ERR_VALUE,
                "tn_source_sibling: source: wrong source; expected the one that the format's "
                "function was called with");
        return NULL;
    }
    if (wrong != NULL) {
        tn_fail(TN_ERR_FORMAT,
                "%s: names the file %q: %s; expected a relative path below the folder of the file",
                source->path, name, wrong);
        return NULL;
    }
    tn__sibling_read *sibling = sibling_of(main, name);
    if (sibling == NULL)
        return NULL;
    uint64_t size = sibling->reader.source.size;
    if (bytes == UINT64_MAX && offset <= size)
        bytes = size - offset;
    if (tn__add_overflow(offset, bytes, &end) || end > size) {
        tn_fail(TN_ERR_FORMAT,
                "%s: names %llu bytes at offset %llu of %s: beyond the end of that file (%llu "
                "bytes)",
                source->path, (unsigned long long)bytes, (unsigned long long)offset, sibling->path,
                (unsigned long long)size);
        return NULL;
    }
    struct range *range = tn_malloc(sizeof *range);
    if (range == NULL)
        return NULL;
    *range = (struct range){ .next = sibling->ranges,
                             .source = { range, bytes, sibling->path, read_range },
                             .reader = &sibling->reader,
                             .base = offset };
    sibling->ranges = range;
    return &range->source;
}
