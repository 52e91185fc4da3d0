/* SPDX-License-Identifier: MIT
 *
 * Atomic writing: a new file in the same folder, which is on the disk before it gets the name of
 * the old file. If anything fails before that, the old file is unchanged and the new file is
 * removed. If the file system allows it, the new file has no name while it is written, so that a
 * killed process leaves no file. */
#include "lib/io/private.h"

#include "core/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BUFFER_SIZE ((size_t)65536)

static const char ending[] = ".tmp";

/* ---- the sink -------------------------------------------------------------------------------- */

static tn_status write_all(tn__writer *writer, const void *from, size_t bytes)
{
    size_t done = 0;
    int number = tn__fd_write(writer->file, from, bytes, &done);
    writer->written += (uint64_t)done;
    if (number != 0)
        return tn__io_fail(writer->sink.path, "cannot write", number);
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

/* ---- opening --------------------------------------------------------------------------------- */

/* Returns the file whose owner and mode the new file gets: the file that is replaced or, for a part
 * of a set, the old index, so that the parts of a private model stay private. Returns NULL if there
 * is none. */
static const struct stat *model_of(const tn__writer *writer)
{
    if (writer->place.exists)
        return &writer->place.old;
    return writer->set != NULL && writer->set->exists ? &writer->set->old : NULL;
}

/* Creates the new file. If it will get the mode of another file, only its owner may read it until
 * then. */
static tn_status open_new(tn__writer *writer, bool named)
{
    mode_t mode = model_of(writer) != NULL ? 0600 : 0666;
    if (!named)
        writer->file = tn__fd_open(writer->place.folder, ".", O_TMPFILE | O_RDWR, mode);
    if (writer->file >= 0) {
        flock(writer->file, LOCK_EX | LOCK_NB); /* locked before it gets a name: see temporary.c */
        return TN_OK;
    }
    writer->file = tn__temporary_create(writer->place.folder, ending, mode, writer->temporary);
    return writer->file >= 0
               ? TN_OK
               : tn__io_fail(writer->sink.path, "cannot create a file in its folder", errno);
}

static tn_status begin(tn__writer *writer, const char *path, uint64_t total, bool named,
                       tn__file_set *set)
{
    *writer = (tn__writer){ .sink = { writer, path, take },
                            .file = -1,
                            .place = { .folder = -1 },
                            .total = total,
                            .named = named,
                            .set = set };
    writer->buffer = tn_malloc(BUFFER_SIZE);
    return writer->buffer != NULL ? TN_OK : TN_ERR_MEMORY;
}

tn_status tn__writer_open(tn__writer *writer, const char *path, uint64_t total, bool named,
                          tn__file_set *set)
{
    tn_status status = begin(writer, path, total, named, set);
    if (status == TN_OK)
        status = tn__target_find(&writer->place, path, set != NULL);
    if (status == TN_OK && set == NULL)
        tn__temporary_sweep(writer->place.folder, ending, NULL, NULL);
    if (status == TN_OK)
        status = open_new(writer, named);
    if (status != TN_OK)
        tn__writer_abort(writer);
    return status;
}

/* Looks for a file that has the name, which must be a regular file. Links are not followed. */
static tn_status look_at_old(tn__writer *writer)
{
    tn__target *place = &writer->place;
    place->exists = fstatat(place->folder, place->name, &place->old, AT_SYMLINK_NOFOLLOW) == 0;
    if (!place->exists && errno != ENOENT)
        return tn__io_fail(writer->sink.path, "cannot get the status of the file", errno);
    if (!place->exists || S_ISREG(place->old.st_mode))
        return TN_OK;
    return tn_fail(TN_ERR_IO, "%s: %s; only a regular file can be replaced", writer->sink.path,
                   S_ISLNK(place->old.st_mode)   ? "a link"
                   : S_ISDIR(place->old.st_mode) ? "a folder"
                                                 : "not a regular file");
}

tn_status tn__writer_open_sibling(tn__writer *sibling, const tn__writer *writer, const char *path)
{
    tn_status status = begin(sibling, path, 0, writer->named, NULL);
    if (status == TN_OK)
        status = tn__target_find(&sibling->place, path, true);
    if (status == TN_OK)
        status = look_at_old(sibling);
    if (status == TN_OK)
        status = open_new(sibling, writer->named);
    if (status != TN_OK)
        tn__writer_abort(sibling);
    return status;
}

tn__writer *tn__writer_of(const tn_sink *sink)
{
    return sink->write == take ? sink->user : NULL;
}

/* ---- giving the file its name ---------------------------------------------------------------- */

/* Gives the new file the owner, the group and the permissions of the old one, but never its set-uid
 * and set-gid bits. If the group cannot be kept, the new group gets only the permissions of all
 * other users. */
static tn_status keep_owner(const tn__writer *writer)
{
    const struct stat *old = model_of(writer);
    struct stat now;
    if (old == NULL)
        return TN_OK;
    mode_t mode = old->st_mode & 0777;
    if (fstat(writer->file, &now) != 0)
        return tn__io_fail(writer->sink.path, "cannot get the status of the new file", errno);
    bool owner = now.st_uid == old->st_uid, group = now.st_gid == old->st_gid;
    if (!(owner && group) && fchown(writer->file, old->st_uid, old->st_gid) != 0) {
        tn__log(TN_LOG_INFO, "%s: the owner of the old file cannot be kept: %s", writer->sink.path,
                strerror(errno));
        if (!group && fchown(writer->file, (uid_t)-1, old->st_gid) != 0)
            mode = (mode & 0707) | (mode & 07) << 3;
    }
    if (fchmod(writer->file, mode) != 0)
        return tn__io_fail(writer->sink.path, "cannot set the mode of the new file", errno);
    return TN_OK;
}

/* Gives a file without a name its final name or, if that would replace a file, a temporary name.
 * *placed says whether it is the final name. Returns 0 or an errno value. */
static int link_new(tn__writer *writer, bool *placed)
{
    int number = EEXIST;
    *placed = false;
    if (!writer->place.exists) {
        number = tn__temporary_link_as(writer->place.folder, writer->file, writer->place.name);
        *placed = number == 0;
    }
    if (number == EEXIST && writer->set == NULL)
        number = tn__temporary_link(writer->place.folder, writer->file, ending, writer->temporary);
    /* Some file systems support files without names but cannot give them a name later. */
    writer->unlinkable = number != 0 && number != EEXIST && number != ENOSPC && number != EDQUOT &&
                         number != EIO && number != EROFS;
    return number;
}

/* RENAME_NOREPLACE. musl before 1.2.6 has no renameat2. */
enum { NO_REPLACE = 1 };

static int rename_new(const tn__writer *writer)
{
    int folder = writer->place.folder;
    const char *from = writer->temporary, *to = writer->place.name;
    if (writer->set != NULL) {
        if (syscall(SYS_renameat2, folder, from, folder, to, NO_REPLACE) == 0)
            return 0;
        if (errno != EINVAL && errno != ENOSYS)
            return errno;
    }
    return renameat(folder, from, folder, to) == 0 ? 0 : errno;
}

static tn_status put_in_place(tn__writer *writer)
{
    bool placed = false;
    int number = writer->temporary[0] == '\0' ? link_new(writer, &placed) : 0;
    if (number == 0 && !placed)
        number = rename_new(writer);
    if (number != 0)
        return tn__io_fail(writer->sink.path, "cannot rename the new file", number);
    writer->temporary[0] = '\0';
    return TN_OK;
}

/* Makes the new name durable. Some file systems cannot sync a folder, which is not a failure. */
static tn_status sync_folder(const tn__writer *writer)
{
    if (fsync(writer->place.folder) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS &&
        errno != EBADF)
        return tn__io_fail(writer->sink.path, "written, but its folder cannot be synced", errno);
    return TN_OK;
}

tn_status tn__writer_commit(tn__writer *writer)
{
    tn_status status = flush(writer);
    if (status == TN_OK)
        status = tn__sibling_write_commit(writer);
    if (status == TN_OK)
        status = keep_owner(writer);
    if (status == TN_OK && fsync(writer->file) != 0)
        status = tn__io_fail(writer->sink.path, "cannot sync the file", errno);
    if (status == TN_OK && writer->set != NULL)
        status = tn__file_set_note(writer->set, writer->place.name, writer->file);
    if (status == TN_OK)
        status = put_in_place(writer);
    if (status == TN_OK)
        status = sync_folder(writer);
    tn__writer_abort(writer);
    return status;
}

void tn__writer_abort(tn__writer *writer)
{
    tn__sibling_write_abort(writer);
    if (writer->temporary[0] != '\0')
        unlinkat(writer->place.folder, writer->temporary, 0);
    writer->temporary[0] = '\0';
    if (writer->file >= 0)
        close(writer->file);
    writer->file = -1;
    tn__target_free(&writer->place);
    tn_free(writer->buffer);
    writer->buffer = NULL;
}
