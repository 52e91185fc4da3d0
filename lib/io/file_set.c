/* SPDX-License-Identifier: MIT
 *
 * The files of a set, which an index names: their names, and which of them may be removed. A save
 * records each file in a journal in the same folder before the file gets its name. At the end of
 * the save, or in the next save if the process was killed, the recorded files that no index names
 * are removed. Other files are never removed. */
#include "lib/io/private.h"

#include "core/base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NAME_SIZE_MAX 255
#define NUMBERS_SIZE 48 /* space for "-v2-00001-of-00003" with larger numbers */
#define NODE_SIZE 40    /* size of a key from node_key() */
#define JOURNAL_MAX ((off_t)64 << 20)

static const char ending[] = ".set", index_ending[] = ".index.json";

/* ---- names ----------------------------------------------------------------------------------- */

char *tn__file_set_path(const char *path, const char *name)
{
    tn__text text = { 0 };
    tn__text_put(&text, path, tn__target_folder_length(path));
    tn__text_put(&text, name, strlen(name));
    return tn__text_take(&text);
}

/* Splits the name of an index, such as "model.x.index.json", into the stem "model" and the
 * extension ".x". If the stem is too long for the numbers after it, it is cut, but never within a
 * UTF-8 character. Returns false if the name is not that of an index, or if the extension is too
 * long for the numbers. */
bool tn__file_set_scheme(const char *name, tn__scheme *scheme)
{
    size_t length = strlen(name), end = sizeof index_ending - 1;
    if (length <= end || strcmp(name + length - end, index_ending) != 0)
        return false;
    const char *dot = name + length - end;
    while (dot > name && dot[-1] != '.')
        dot--;
    if (dot - name <= 1)
        return false;
    dot--;
    *scheme = (tn__scheme){ name, (size_t)(dot - name), dot, (size_t)(name + length - end - dot) };
    if (scheme->extension_length + NUMBERS_SIZE >= NAME_SIZE_MAX)
        return false;
    size_t room = NAME_SIZE_MAX - NUMBERS_SIZE - scheme->extension_length;
    if (scheme->stem_length > room) {
        while (room > 0 && ((unsigned char)name[room] & 0xc0) == 0x80)
            room--;
        scheme->stem_length = room;
    }
    return true;
}

char *tn__file_set_name(const tn__scheme *scheme, int64_t version, int64_t part, int64_t parts)
{
    tn__text text = { 0 };
    tn__text_put(&text, scheme->stem, scheme->stem_length);
    if (version > 1)
        tn__text_add(&text, "-v%lld", (long long)version);
    tn__text_add(&text, "-%05lld-of-%05lld", (long long)part, (long long)parts);
    tn__text_put(&text, scheme->extension, scheme->extension_length);
    return tn__text_take(&text);
}

static bool take_text(const char **at, const char *text)
{
    size_t length = strlen(text);
    if (strncmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

static bool take_digits(const char **at, size_t least, int64_t *number)
{
    size_t count = strspn(*at, "0123456789");
    if (count < least || count > 12)
        return false;
    *number = strtoll(*at, NULL, 10);
    *at += count;
    return true;
}

/* Returns whether the scheme makes such a name. Sets *version to the version in the name. */
static bool is_part(const tn__scheme *scheme, const char *name, int64_t *version)
{
    int64_t part, parts;
    if (strncmp(name, scheme->stem, scheme->stem_length) != 0)
        return false;
    const char *at = name + scheme->stem_length;
    *version = 1;
    if (take_text(&at, "-v") && !take_digits(&at, 1, version))
        return false;
    return take_text(&at, "-") && take_digits(&at, 5, &part) && take_text(&at, "-of-") &&
           take_digits(&at, 5, &parts) && strlen(at) == scheme->extension_length &&
           memcmp(at, scheme->extension, scheme->extension_length) == 0;
}

/* ---- what indexes name ----------------------------------------------------------------------- */

struct named {
    tn_state *files;  /* name and node_key() of each file that an index of the folder names */
    bool unsure;      /* an index cannot be read: the files that it names are not known */
    int folder;       /* file descriptor of the folder */
    const char *path; /* path of a file in the folder */
    const char *own;  /* name of the index of the set */
};

/* Writes a key that identifies the file itself: its device and inode numbers. The key begins with a
 * slash, so it is never the name of a file. Returns whether it is a regular file. */
static bool node_key(const struct stat *info, char key[NODE_SIZE])
{
    tn_snprint(key, NODE_SIZE, "/%llx/%llx", (unsigned long long)info->st_dev,
               (unsigned long long)info->st_ino);
    return S_ISREG(info->st_mode);
}

static bool is_named(const struct named *named, const char *name, const struct stat *info)
{
    char key[NODE_SIZE];
    return tn_state_find(named->files, name) >= 0 ||
           (node_key(info, key) && tn_state_find(named->files, key) >= 0);
}

/* Adds a file by its name and by its node_key(), because an index may name the file by another path
 * ("./model") or by a link. */
static tn_status add_named(const struct named *named, const char *file)
{
    char key[NODE_SIZE];
    struct stat info;
    tn_status status = tn_state_set_value(named->files, file, tn_value_bool(true));
    if (status == TN_OK && fstatat(named->folder, file, &info, 0) == 0 && node_key(&info, key))
        status = tn_state_set_value(named->files, key, tn_value_bool(true));
    return status;
}

static tn_status add_index(struct named *named, const char *name)
{
    tn_state *index = NULL;
    char *path = tn__file_set_path(named->path, name);
    tn_status status = path != NULL ? tn__file_load_index(path, &index) : TN_ERR_MEMORY;
    tn_free(path);
    if (status == TN_ERR_MEMORY ||
        (status != TN_OK && status != TN_ERR_FORMAT && strcmp(name, named->own) == 0))
        return status;
    if (status != TN_OK && strstr(name, ".index.") != NULL)
        named->unsure = true;
    status = TN_OK;
    for (int64_t i = 0; index != NULL && i < tn_state_count(index) && status == TN_OK; i++) {
        tn_value file = tn_state_value(index, i);
        if (file.kind == TN_VALUE_STRING)
            status = add_named(named, file.as.s);
    }
    tn_state_drop(index);
    return status;
}

static tn_status find_named(struct named *named)
{
    int again = tn__fd_open(named->folder, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *list = again >= 0 ? fdopendir(again) : NULL;
    if (list == NULL) {
        if (again >= 0)
            close(again);
        return TN_ERR_IO;
    }
    tn_status status = TN_OK;
    for (struct dirent *entry; status == TN_OK && (entry = readdir(list)) != NULL;) {
        size_t length = strlen(entry->d_name);
        if (length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0)
            status = add_index(named, entry->d_name);
    }
    closedir(list);
    return status;
}

/* ---- the journal ----------------------------------------------------------------------------- */

/* A record: its kind ('n' new, 'o' old), the inode number and the time of the file, and the name of
 * the file. A zero byte ends it. */
#define RECORD "%c %" PRIx64 " %" PRIx64 " %" PRIx64 " %n"

static bool same_file(const struct stat *info, const uint64_t which[3])
{
    return S_ISREG(info->st_mode) && (uint64_t)info->st_ino == which[0] &&
           (uint64_t)info->st_mtim.tv_sec == which[1] &&
           (uint64_t)info->st_mtim.tv_nsec == which[2];
}

static void remove_file(int folder, const char *name)
{
    if (unlinkat(folder, name, 0) != 0 && errno != ENOENT)
        tn__log(TN_LOG_WARNING, "%s: the file is no longer needed and cannot be removed: %s", name,
                strerror(errno));
}

/* Removes the file of a record unless an index names the file. Returns false if the record must be
 * checked again when every index can be read. */
static bool settle_record(const struct named *named, const tn__scheme *scheme, const char *record)
{
    uint64_t which[3];
    int64_t version;
    char kind;
    int length = 0;
    struct stat info;
    if (sscanf(record, RECORD, &kind, &which[0], &which[1], &which[2], &length) != 4 || length == 0)
        return true;
    const char *name = record + length;
    if (!is_part(scheme, name, &version) ||
        fstatat(named->folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !same_file(&info, which) ||
        is_named(named, name, &info))
        return true;
    if (kind != 'n' && named->unsure) {
        tn__log(TN_LOG_WARNING,
                "%s: the old file is not removed, because an index in its folder cannot be read "
                "and may name it",
                name);
        return false;
    }
    remove_file(named->folder, name);
    return true;
}

/* Returns the contents of the journal with a zero byte after *size bytes, NULL if the journal
 * cannot be read. The caller frees the contents with tn_free(). */
static char *read_journal(int file, size_t *size)
{
    struct stat info;
    if (fstat(file, &info) != 0 || info.st_size > JOURNAL_MAX)
        return NULL;
    uint64_t mark = tn_error_mark();
    char *bytes = tn_malloc((size_t)info.st_size + 1);
    *size = 0;
    if (bytes == NULL)
        tn_error_restore(mark);
    while (bytes != NULL && *size < (size_t)info.st_size) {
        ssize_t got = pread(file, bytes + *size, (size_t)info.st_size - *size, (off_t)*size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        *size += (size_t)got;
    }
    if (bytes != NULL)
        bytes[*size] = '\0';
    return bytes;
}

/* Removes the files that the journal records and no index names. Returns false if that cannot be
 * decided now. */
static bool settle(const tn__file_set *set, int file)
{
    size_t size = 0;
    char *bytes = read_journal(file, &size);
    if (bytes == NULL)
        return false;
    uint64_t mark = tn_error_mark();
    tn__scheme scheme;
    struct named named = { .folder = set->folder, .path = set->path, .own = bytes };
    size_t at = strlen(bytes) + 1;
    /* False if the save was killed before it wrote anything. */
    bool known = tn__file_set_scheme(bytes, &scheme);
    tn_status status = TN_OK;
    bool settled = true;
    if (known && at < size) {
        named.files = tn_state_new();
        status = named.files != NULL ? find_named(&named) : TN_ERR_MEMORY;
    }
    for (; known && status == TN_OK && at < size; at += strlen(bytes + at) + 1)
        if (at + strlen(bytes + at) < size && !settle_record(&named, &scheme, bytes + at))
            settled = false;
    tn_state_drop(named.files);
    tn_free(bytes);
    tn_error_restore(mark);
    return status == TN_OK && settled;
}

static bool settle_stale(void *user, int file)
{
    return settle(user, file);
}

static tn_status write_record(tn__file_set *set, const char *record, size_t length)
{
    size_t done = 0;
    int number = tn__fd_write(set->file, record, length + 1, &done);
    return number == 0 ? TN_OK : tn__io_fail(set->path, "cannot write", number);
}

static tn_status note(tn__file_set *set, char kind, const char *name, const struct stat *info)
{
    tn__text text = { 0 };
    tn__text_add(&text, "%c %llx %llx %llx %s", kind, (unsigned long long)info->st_ino,
                 (unsigned long long)info->st_mtim.tv_sec,
                 (unsigned long long)info->st_mtim.tv_nsec, name);
    tn_status status = text.failed
                           ? tn_fail(TN_ERR_MEMORY, "%s: out of memory for its journal", set->path)
                           : write_record(set, text.at, text.length);
    tn__text_free(&text);
    return status;
}

tn_status tn__file_set_note(tn__file_set *set, const char *name, int file)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return tn__io_fail(set->path, "cannot get the status of the new file", errno);
    return note(set, 'n', name, &info);
}

tn_status tn__file_set_note_old(tn__file_set *set, const tn_state *index)
{
    const char *last = "";
    tn_status status = TN_OK;
    for (int64_t i = 0; index != NULL && i < tn_state_count(index) && status == TN_OK; i++) {
        tn_value file = tn_state_value(index, i);
        int64_t version;
        struct stat info;
        if (file.kind != TN_VALUE_STRING || strcmp(file.as.s, last) == 0 ||
            !is_part(&set->scheme, file.as.s, &version))
            continue;
        last = file.as.s;
        if (fstatat(set->folder, last, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode))
            status = note(set, 'o', last, &info);
    }
    return status;
}

/* ---- a save ---------------------------------------------------------------------------------- */

/* Calls `visit` with the version of each file in the folder whose name the scheme makes. */
static tn_status scan_versions(const tn__file_set *set, void (*visit)(void *user, int64_t version),
                               void *user)
{
    int again = tn__fd_open(set->folder, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *list = again >= 0 ? fdopendir(again) : NULL;
    if (list == NULL) {
        tn_status status = tn__io_fail(set->path, "cannot list its folder", errno);
        if (again >= 0)
            close(again);
        return status;
    }
    int64_t version;
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        if (is_part(&set->scheme, entry->d_name, &version))
            visit(user, version);
    closedir(list);
    return TN_OK;
}

struct used {
    bool *versions;
    int64_t count;
};

static void count_one(void *user, int64_t version)
{
    (void)version;
    ((struct used *)user)->count++;
}

static void mark_one(void *user, int64_t version)
{
    struct used *used = user;
    if (version >= 1 && version <= used->count)
        used->versions[version] = true;
}

/* Chooses the first version of which no file exists, so that the old set stays readable until the
 * index changes. */
static tn_status choose_version(tn__file_set *set)
{
    struct used used = { NULL, 0 };
    tn_status status = scan_versions(set, count_one, &used);
    if (status != TN_OK)
        return status;
    used.count++;
    used.versions = tn_calloc((size_t)used.count + 1, sizeof *used.versions);
    if (used.versions == NULL)
        return TN_ERR_MEMORY;
    status = scan_versions(set, mark_one, &used);
    for (set->version = 1; set->version < used.count && used.versions[set->version];)
        set->version++;
    tn_free(used.versions);
    return status;
}

/* Opens the folder and removes the files of earlier saves that were killed. */
static tn_status enter(tn__file_set *set, const char *path)
{
    char *folder = tn__file_set_path(path, ".");
    *set = (tn__file_set){ .path = path, .folder = -1, .file = -1 };
    if (folder == NULL)
        return TN_ERR_MEMORY;
    set->folder = tn__fd_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, 0);
    int number = errno;
    tn_free(folder);
    if (set->folder < 0)
        return tn__io_fail(path, "cannot create files in its folder", number);
    tn__temporary_sweep(set->folder, ending, settle_stale, set);
    return TN_OK;
}

void tn__file_set_sweep(const char *path)
{
    tn__file_set set;
    uint64_t mark = tn_error_mark();
    if (enter(&set, path) == TN_OK)
        tn__file_set_close(&set);
    tn_error_restore(mark);
}

/* Refuses a link to an index in another folder: the index would be written there, but its files
 * here. */
static tn_status check_folder(const tn__file_set *set)
{
    struct stat here, there;
    tn__target place;
    tn_status status = tn__target_find(&place, set->path, false);
    if (status != TN_OK)
        return status;
    if (fstat(set->folder, &here) != 0 || fstat(place.folder, &there) != 0)
        status = tn__io_fail(set->path, "cannot get the status of its folder", errno);
    else if (here.st_dev != there.st_dev || here.st_ino != there.st_ino)
        status = tn_fail(TN_ERR_VALUE,
                         "%s: a link to a file in another folder; an index must be in the folder "
                         "of its files: save to the target of the link, or remove the link",
                         set->path);
    tn__target_free(&place);
    return status;
}

tn_status tn__file_set_open(tn__file_set *set, const char *path)
{
    const char *name = path + tn__target_folder_length(path);
    tn_status status = enter(set, path);
    if (status != TN_OK)
        return status;
    status = check_folder(set);
    if (status != TN_OK) {
        tn__file_set_close(set);
        return status;
    }
    tn__temporary_sweep(set->folder, ".tmp", NULL, NULL);
    set->exists = fstatat(set->folder, name, &set->old, 0) == 0 && S_ISREG(set->old.st_mode);
    status = tn__file_set_scheme(name, &set->scheme)
                 ? choose_version(set)
                 : tn_fail(TN_ERR_VALUE,
                           "%s: not the name of an index; expected "
                           ".EXTENSION.index.json at the end",
                           path);
    if (status == TN_OK) {
        set->file = tn__temporary_create(set->folder, ending, 0600, set->journal);
        status = set->file >= 0 ? write_record(set, name, strlen(name))
                                : tn__io_fail(path, "cannot create files in its folder", errno);
    }
    if (status != TN_OK)
        tn__file_set_close(set);
    return status;
}

void tn__file_set_close(tn__file_set *set)
{
    /* A journal that cannot be settled now stays for the next save. */
    if (set->file >= 0 && settle(set, set->file))
        unlinkat(set->folder, set->journal, 0);
    if (set->file >= 0)
        close(set->file);
    if (set->folder >= 0)
        close(set->folder);
    set->file = set->folder = -1;
}
