/* SPDX-License-Identifier: MIT
 *
 * Files in folders: each folder below the root is a class, in the order of their names, and has
 * files at any depth, as in torchvision's DatasetFolder. */
#include "data.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* ---- lists of names -------------------------------------------------------------------------- */

static void names_free(struct data_names *names)
{
    for (int64_t i = 0; i < names->count; i++)
        tn_free(names->at[i]);
    tn_free(names->at);
}

/* Appends a name, which then belongs to the list; frees it on failure. */
static tn_status names_add(struct data_names *names, char *name)
{
    if (name != NULL && names->count == names->capacity) {
        int64_t capacity = names->capacity > 0 ? 2 * names->capacity : 64;
        char **grown = tn_realloc(names->at, (size_t)capacity * sizeof *grown);

        if (grown == NULL) {
            tn_free(name);
            return TN_ERR_MEMORY;
        }
        names->at = grown;
        names->capacity = capacity;
    }
    if (name == NULL)
        return TN_ERR_MEMORY;
    names->at[names->count++] = name;
    return TN_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends the names in a folder, sorted by their bytes. Hidden ones are left out: programs write
 * such files and folders for themselves (.DS_Store, ._1.jpg, .ipynb_checkpoints). */
static tn_status list_folder(const char *path, struct data_names *names)
{
    DIR *folder = opendir(path);
    tn_status status = TN_OK;

    if (folder == NULL)
        return tn_fail(TN_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    while (status == TN_OK) {
        const struct dirent *entry = readdir(folder);

        if (entry == NULL)
            break;
        if (entry->d_name[0] != '.')
            status = names_add(names, tn_strdup(entry->d_name));
    }
    (void)closedir(folder);
    if (names->count > 1)
        qsort(names->at, (size_t)names->count, sizeof *names->at, by_name);
    return status;
}

static char *joined(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = tn_malloc(size);

    if (path != NULL)
        tn_snprint(path, size, "%s/%s", folder, name);
    return path;
}

/* ---- classes --------------------------------------------------------------------------------- */

/* What is missing to read files with an ending; NULL: nothing, or they are none of the dataset. */
static const char *lack_of(const struct data_folder *f, const char *ending)
{
    return f->lack != NULL ? f->lack(ending) : NULL;
}

static bool is_wanted(const struct data_folder *f, const char *name)
{
    const char *dot = strrchr(name, '.');

    for (int i = 0; dot != NULL && f->extensions[i] != NULL; i++)
        if (strcasecmp(dot, f->extensions[i]) == 0)
            return lack_of(f, f->extensions[i]) == NULL;
    return false;
}

/* Counts a file that is left out. */
static void count_other(struct data_folder *f, const char *name)
{
    const char *dot = strrchr(name, '.');
    int64_t most = (int64_t)(sizeof f->kinds / sizeof *f->kinds), i = 0;

    f->others++;
    if (dot == NULL || strlen(dot) >= sizeof f->kinds->ending)
        return;
    while (i < most && f->kinds[i].count > 0 && strcasecmp(f->kinds[i].ending, dot) != 0)
        i++;
    if (i == most)
        return;
    for (size_t k = 0; k <= strlen(dot); k++)
        f->kinds[i].ending[k] = (char)(dot[k] >= 'A' && dot[k] <= 'Z' ? dot[k] + 32 : dot[k]);
    f->kinds[i].count++;
}

static void tell_others(const struct data_folder *f, const char *root)
{
    char list[160] = "";
    int64_t used = 0, others = f->others;

    for (size_t i = 0; i < sizeof f->kinds / sizeof *f->kinds && f->kinds[i].count > 0; i++) {
        long long count = f->kinds[i].count;
        const char *lack = lack_of(f, f->kinds[i].ending);

        if (lack == NULL) {
            used += tn_snprint(list + used, sizeof list - (size_t)used, "%s%lld %s",
                               used > 0 ? ", " : "", count, f->kinds[i].ending);
            continue;
        }
        others -= count;
        tn_log(TN_LOG_WARNING, "%s: %lld %s file%s left out: %s", root, count, f->kinds[i].ending,
               count == 1 ? "" : "s", lack);
    }
    if (others > 0)
        tn_log(TN_LOG_WARNING, "%s: %lld file%s left out: no %s by %s ending%s%s%s; expected %s",
               root, (long long)others, others == 1 ? "" : "s", f->what,
               others == 1 ? "its" : "their", used > 0 ? " (" : "", list, used > 0 ? ")" : "",
               f->endings);
}

static tn_status add_file(struct data_folder *f, char *path, int64_t label)
{
    tn_status status = names_add(&f->files, path);

    if (status == TN_OK && f->files.count > f->labels_capacity) {
        int64_t *grown = tn_realloc(f->labels, (size_t)f->files.capacity * sizeof *grown);

        if (grown == NULL)
            return TN_ERR_MEMORY;
        f->labels = grown;
        f->labels_capacity = f->files.capacity;
    }
    if (status == TN_OK)
        f->labels[f->files.count - 1] = label;
    return status;
}

/* A folder that is being listed, and those above it. */
struct level {
    const struct level *above;
    dev_t device;
    ino_t inode;
    int depth;
};

enum { DEPTH = 64 };

/* Fails if a link leads back to a folder above, or there are too many folders. */
static tn_status check_level(const struct level *level, const char *path)
{
    for (const struct level *at = level->above; at != NULL; at = at->above)
        if (at->device == level->device && at->inode == level->inode)
            return tn_fail(TN_ERR_IO, "%s: a link to a folder that contains the link", path);
    if (level->depth > DEPTH)
        return tn_fail(TN_ERR_IO, "%s: more than %d folders deep", path, DEPTH);
    return TN_OK;
}

/* Adds the files of a folder: first its own, then those of the folders in it. What has the name of
 * a file but is none, such as a link that leads nowhere, is a sample that cannot be read. */
static tn_status add_folder(struct data_folder *f, const char *path, int64_t label,
                            const struct level *level)
{
    struct data_names names = { 0 };
    tn_status status = check_level(level, path);

    if (status == TN_OK)
        status = list_folder(path, &names);
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < names.count && status == TN_OK; i++) {
            char *entry = joined(path, names.at[i]);
            struct stat found = { .st_mode = 0 };

            if (entry == NULL) {
                status = TN_ERR_MEMORY;
            } else if ((stat(entry, &found) == 0 && S_ISDIR(found.st_mode)) != pass) {
                tn_free(entry);
            } else if (pass == 1) {
                const struct level inner = { level, found.st_dev, found.st_ino, level->depth + 1 };

                status = add_folder(f, entry, label, &inner);
                tn_free(entry);
            } else if (is_wanted(f, names.at[i])) {
                status = add_file(f, entry, label);
            } else {
                count_other(f, names.at[i]);
                tn_free(entry);
            }
        }
    names_free(&names);
    return status;
}

static tn_status add_class(struct data_folder *f, const char *path, const char *name,
                           const struct level *level)
{
    int64_t before = f->files.count;
    tn_status status = names_add(&f->classes, tn_strdup(name));

    if (status == TN_OK)
        status = add_folder(f, path, f->classes.count - 1, level);
    if (status == TN_OK && f->files.count == before)
        status = tn_fail(TN_ERR_VALUE,
                         "%s: no %s of class %q; expected %s files, or no such folder", path,
                         f->what, name, f->endings);
    return status;
}

tn_status data_folder_read(struct data_folder *f, const char *root)
{
    struct data_names names = { 0 };
    tn_status status = list_folder(root, &names);
    struct stat top, found;

    if (status == TN_OK && stat(root, &top) != 0)
        status = tn_fail(TN_ERR_IO, "%s: cannot be opened: %s", root, strerror(errno));
    for (int64_t i = 0; i < names.count && status == TN_OK; i++) {
        const struct level first = { NULL, top.st_dev, top.st_ino, 0 };
        char *path = joined(root, names.at[i]);

        if (path == NULL) {
            status = TN_ERR_MEMORY;
        } else if (stat(path, &found) == 0 && S_ISDIR(found.st_mode)) {
            const struct level level = { &first, found.st_dev, found.st_ino, 1 };

            status = add_class(f, path, names.at[i], &level);
        }
        tn_free(path);
    }
    names_free(&names);
    if (status == TN_OK)
        tell_others(f, root);
    if (status == TN_OK && f->classes.count == 0)
        status = tn_fail(TN_ERR_VALUE, "%s: no folders; expected one with %s for each class", root,
                         f->what);
    return status;
}

tn_status data_folder_add(struct data_folder *f, const char *path, int64_t label)
{
    struct stat found;

    if (stat(path, &found) != 0)
        return tn_fail(TN_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    if (S_ISDIR(found.st_mode)) {
        const struct level level = { NULL, found.st_dev, found.st_ino, 0 };

        return add_folder(f, path, label, &level);
    }
    if (!S_ISREG(found.st_mode))
        return tn_fail(TN_ERR_IO, "%s: not a regular file", path);
    return add_file(f, tn_strdup(path), label);
}

/* Fails unless the first bytes are those of a file that the dataset reads. */
static tn_status check_file(const struct data_folder *f, const char *path)
{
    unsigned char start[16] = { 0 };
    FILE *file = fopen(path, "rb");
    size_t size = 0;

    if (file == NULL)
        return tn_fail(TN_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    size = fread(start, 1, sizeof start, file);
    if (ferror(file)) {
        int error = errno;

        (void)fclose(file);
        return tn_fail(TN_ERR_IO, "%s: cannot be read: %s", path, strerror(error));
    }
    (void)fclose(file);
    return f->known(start, size) ? TN_OK : tn_fail(TN_ERR_FORMAT, "%s: %s", path, f->unknown);
}

static tn_status add_path(struct data_folder *f, const tn_value *path)
{
    struct stat found;
    int64_t before = f->files.count;
    tn_status status = TN_OK;

    if (path->kind != TN_VALUE_STRING)
        return tn_fail(TN_ERR_TYPE,
                       "paths: wrong type, got %s; expected a string, or a list of strings",
                       tn_value_kind_name(path->kind));
    if (stat(path->as.s, &found) == 0 && S_ISREG(found.st_mode))
        status = check_file(f, path->as.s);
    if (status == TN_OK)
        status = data_folder_add(f, path->as.s, 0);
    if (status == TN_OK && f->files.count == before)
        status = tn_fail(TN_ERR_FORMAT, "%s: no %s in the folder; expected %s files", path->as.s,
                         f->what, f->endings);
    return status;
}

tn_status data_folder_paths(struct data_folder *f, const tn_value *paths)
{
    tn_status status = TN_OK;

    if (paths->kind != TN_VALUE_LIST && paths->kind != TN_VALUE_TUPLE)
        return add_path(f, paths);
    for (uint32_t i = 0; i < paths->count && status == TN_OK; i++)
        status = add_path(f, &paths->as.list[i]);
    return status;
}

void data_folder_free(struct data_folder *f)
{
    names_free(&f->classes);
    names_free(&f->files);
    tn_free(f->labels);
}
