/* SPDX-License-Identifier: MIT
 *
 * Where a new file goes: its folder, which is opened once, and its name in the folder. Links are
 * followed one by one, so that a link is kept even if its target does not exist yet. */
#include "lib/io/private.h"

#include "core/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#define LINKS_MAX 40

size_t tn__target_folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

/* Opens the folder of `path`, relative to the folder `from`. A folder that cannot be listed is
 * opened with O_PATH, because files can still be created in it. */
static int open_folder(int from, const char *path, size_t length)
{
    const char *name = length > 0 ? path : ".";
    char *copy = length > 0 ? tn_malloc(length + 1) : NULL;
    if (length > 0 && copy == NULL) {
        errno = ENOMEM;
        return -1;
    }
    if (copy != NULL) {
        memcpy(copy, path, length);
        copy[length] = '\0';
        name = copy;
    }
    int folder = tn__fd_open(from, name, O_RDONLY | O_DIRECTORY, 0);
    if (folder < 0 && errno == EACCES)
        folder = tn__fd_open(from, name, O_PATH | O_DIRECTORY, 0);
    tn_free(copy);
    return folder;
}

/* Sets the error for a folder that cannot be opened. `asked` is the path that the caller asked for.
 * `path` is the same path, or the target of a link. */
static tn_status no_folder(const tn__target *place, const char *path, const char *asked, int number)
{
    if (number == ENOMEM)
        return TN_ERR_MEMORY;
    if (place->folder < 0)
        return tn__io_fail(asked, "cannot create a file in its folder", number);
    return tn_fail_native(TN_ERR_IO, number, "%s: a link to %q, whose folder cannot be opened: %s",
                          asked, path, strerror(number));
}

/* Opens the folder of `path` and stores the name. */
static tn_status enter(tn__target *place, const char *path, const char *asked)
{
    size_t length = tn__target_folder_length(path);
    int folder = open_folder(place->folder >= 0 ? place->folder : AT_FDCWD, path, length);
    int number = errno;
    if (folder < 0)
        return no_folder(place, path, asked, number);
    if (place->folder >= 0)
        close(place->folder);
    place->folder = folder;
    char *name = tn_strdup(path + length);
    if (name == NULL)
        return TN_ERR_MEMORY;
    tn_free(place->name);
    place->name = name;
    return name[0] != '\0' ? TN_OK : tn__io_fail(asked, "cannot write", EISDIR);
}

/* Returns whether another user put this link into a world-writable folder. Following it
 * would let that user choose which file is replaced. The system protects open() in the
 * same way. */
static bool is_trap(const tn__target *place, const struct stat *link)
{
    const mode_t shared = S_ISVTX | S_IWOTH;
    struct stat folder;
    return fstat(place->folder, &folder) == 0 && (folder.st_mode & shared) == shared &&
           link->st_uid != geteuid() && link->st_uid != folder.st_uid;
}

static tn_status follow(tn__target *place, const struct stat *link, const char *asked)
{
    if (is_trap(place, link))
        return tn_fail_native(TN_ERR_IO, EACCES,
                              "%s: it is a link of another user in a world-writable folder; it is "
                              "not followed",
                              asked);
    char *to = tn_malloc(PATH_MAX);
    if (to == NULL)
        return TN_ERR_MEMORY;
    ssize_t length = readlinkat(place->folder, place->name, to, PATH_MAX - 1);
    tn_status status = TN_OK;
    if (length < 0) {
        status = tn__io_fail(asked, "cannot read the link", errno);
    } else {
        to[length] = '\0';
        status = enter(place, to, asked);
    }
    tn_free(to);
    return status;
}

tn_status tn__target_find(tn__target *place, const char *path, bool fresh)
{
    *place = (tn__target){ .folder = -1 };
    tn_status status = enter(place, path, path);
    for (int links = 0; status == TN_OK && !fresh; links++) {
        place->exists = fstatat(place->folder, place->name, &place->old, AT_SYMLINK_NOFOLLOW) == 0;
        if (!place->exists && errno == ENOENT)
            return TN_OK;
        if (!place->exists)
            status = tn__io_fail(path, "cannot get the status of the file", errno);
        else if (S_ISREG(place->old.st_mode))
            return TN_OK;
        else if (S_ISDIR(place->old.st_mode))
            status = tn__io_fail(path, "cannot write", EISDIR);
        else if (!S_ISLNK(place->old.st_mode))
            status = tn_fail(TN_ERR_IO,
                             "%s: not a regular file; only a regular file can be replaced", path);
        else if (links == LINKS_MAX)
            status = tn__io_fail(path, "cannot follow the links", ELOOP);
        else
            status = follow(place, &place->old, path);
    }
    if (status != TN_OK)
        tn__target_free(place);
    return status;
}

void tn__target_free(tn__target *place)
{
    if (place->folder >= 0)
        close(place->folder);
    place->folder = -1;
    tn_free(place->name);
    place->name = NULL;
}
