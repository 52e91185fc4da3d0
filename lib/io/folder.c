/* SPDX-License-Identifier: MIT
 *
 * Loading by the name of a folder: finds the file of weights in it, as in the folders that Hugging
 * Face publishes. Files of other kinds are ignored. */
#include "lib/io/private.h"

#include <dirent.h>
#include <errno.h>

/* The order in which files are preferred: the weights of a run that are best on validation data,
 * then the two names that Hugging Face's libraries look for, in their order. A single file is
 * preferred to an index. */
static const char *const stems[] = { "best", "model", "pytorch_model" };
enum { OTHER_INDEX = 2 * (int)(sizeof stems / sizeof *stems), OTHER_FILE, NO_FILE };

struct choice {
    char *name; /* of the best file so far, NULL: none */
    int rank;
    tn__text rivals; /* names of the other files of the same rank, for the error */
};

static int rank_of(const char *name)
{
    const tn__entry *entry = tn__file_format(name);
    const tn_format_def *format = entry != NULL ? (const tn_format_def *)entry->contribution : NULL;
    if (format == NULL || format->load == NULL)
        return NO_FILE;
    bool index = (format->flags & TN_FORMAT_INDEX) != 0;
    for (int i = 0; i < tn__countof(stems); i++) {
        size_t length = strlen(stems[i]);
        if (strncmp(name, stems[i], length) == 0 && name[length] == '.')
            return 2 * i + index;
    }
    return index ? OTHER_INDEX : OTHER_FILE;
}

static tn_status consider(struct choice *choice, int folder, const char *name)
{
    struct stat info;
    int rank = name[0] != '.' ? rank_of(name) : NO_FILE;
    if (rank > choice->rank || rank == NO_FILE || fstatat(folder, name, &info, 0) != 0 ||
        !S_ISREG(info.st_mode))
        return TN_OK;
    if (rank == choice->rank) {
        tn__text_add(&choice->rivals, ", %s", name);
        return choice->rivals.failed ? TN_ERR_MEMORY : TN_OK;
    }
    char *copy = tn_strdup(name);
    if (copy == NULL)
        return TN_ERR_MEMORY;
    tn_free(choice->name);
    choice->name = copy;
    choice->rank = rank;
    tn__text_free(&choice->rivals);
    choice->rivals = (tn__text){ 0 };
    return TN_OK;
}

/* Returns PATH/NAME. */
static char *join(const char *path, const char *name)
{
    size_t length = strlen(path), size = length + strlen(name) + 2;
    char *joined = tn_malloc(size);
    if (joined != NULL)
        tn_snprint(joined, size, "%s%s%s", path, length > 0 && path[length - 1] == '/' ? "" : "/",
                   name);
    return joined;
}

static tn_status choose(struct choice *choice, DIR *folder, const char *path)
{
    tn_status status = TN_OK;
    const struct dirent *entry = NULL;
    do {
        errno = 0;
        entry = readdir(folder);
        if (entry == NULL && errno != 0)
            status = tn__io_fail(path, "cannot list the folder", errno);
        else if (entry != NULL)
            status = consider(choice, dirfd(folder), entry->d_name);
    } while (entry != NULL && status == TN_OK);
    if (status == TN_OK && choice->name == NULL)
        status = tn_fail(
            TN_ERR_IO,
            "%s: this folder has no file of tensors; expected a file whose extension is "
            "that of a format",
            path);
    else if (status == TN_OK && choice->rivals.length > 0)
        status = tn_fail(TN_ERR_IO,
                         "%s: this folder has several files of tensors: %s%s; expected the path of "
                         "one of these files",
                         path, choice->name, choice->rivals.at);
    return status;
}

tn_status tn__folder_find(const char *path, char **file)
{
    struct choice choice = { .rank = NO_FILE };
    struct stat info;
    *file = NULL;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return TN_OK;
    DIR *folder = opendir(path);
    if (folder == NULL)
        return tn__io_fail(path, "cannot list the folder", errno);
    tn_status status = choose(&choice, folder, path);
    closedir(folder);
    if (status == TN_OK && (*file = join(path, choice.name)) == NULL)
        status = TN_ERR_MEMORY;
    tn_free(choice.name);
    tn__text_free(&choice.rivals);
    return status;
}
