/* SPDX-License-Identifier: MIT
 *
 * Pictures in folders: each folder below the root is a class, in the order of their names, and has
 * PNG and JPEG files at any depth, as in torchvision's ImageFolder. */
#include "image.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* ---- lists of names -------------------------------------------------------------------------- */

struct names {
    char **at;
    int64_t count, capacity;
};

static void names_free(struct names *names)
{
    for (int64_t i = 0; i < names->count; i++)
        tn_free(names->at[i]);
    tn_free(names->at);
}

/* Appends a name, which then belongs to the list; frees it on failure. */
static tn_status names_add(struct names *names, char *name)
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

/* Appends the names in a folder, sorted by their bytes, without those that begin with a dot if
 * they are folders' own. */
static tn_status list_folder(const char *path, struct names *names)
{
    DIR *folder = opendir(path);
    tn_status status = TN_OK;

    if (folder == NULL)
        return tn_fail(TN_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    while (status == TN_OK) {
        const struct dirent *entry = readdir(folder);

        if (entry == NULL)
            break;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
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

/* ---- the dataset ----------------------------------------------------------------------------- */

struct image_folder {
    struct names classes, files;
    int64_t *labels;
    int64_t labels_capacity;
    uint64_t most; /* pixels */
};

struct image_folder_options {
    const char *root;
    int64_t max_pixels;
};
static const tn_option options[] = {
    TN_OPTION_ROW(struct image_folder_options, root, NULL,
                  "folder that has a folder with .png, .jpg and .jpeg files for each class",
                  TN_OPTION_KIND_STRING, TN_OPTION_REQUIRED),
    TN_OPTION_INT(struct image_folder_options, max_pixels, "178956970",
                  "pixels of the largest picture that is decoded"),
    TN_OPTION_END
};

static bool is_picture(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL && (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 ||
                           strcasecmp(dot, ".jpeg") == 0);
}

static tn_status add_file(struct image_folder *f, char *path, int64_t label)
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

enum { DEPTH = 32 }; /* a link to a folder above would never end */

/* Adds the pictures of a folder: first its own files, then the folders in it. */
static tn_status add_folder(struct image_folder *f, const char *path, int64_t label, int depth)
{
    struct names names = { 0 };
    tn_status status = list_folder(path, &names);

    if (depth > DEPTH)
        status = tn_fail(TN_ERR_IO, "%s: more than %d folders deep", path, DEPTH);
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < names.count && status == TN_OK; i++) {
            char *entry = joined(path, names.at[i]);
            struct stat found;

            if (entry == NULL) {
                status = TN_ERR_MEMORY;
            } else if (stat(entry, &found) != 0 || S_ISDIR(found.st_mode) != pass) {
                tn_free(entry);
            } else if (pass == 1) {
                status = add_folder(f, entry, label, depth + 1);
                tn_free(entry);
            } else if (S_ISREG(found.st_mode) && is_picture(names.at[i])) {
                status = add_file(f, entry, label);
            } else {
                tn_free(entry);
            }
        }
    names_free(&names);
    return status;
}

static tn_status add_classes(struct image_folder *f, const char *root)
{
    struct names names = { 0 };
    tn_status status = list_folder(root, &names);

    for (int64_t i = 0; i < names.count && status == TN_OK; i++) {
        char *path = joined(root, names.at[i]);
        int64_t before = f->files.count;
        struct stat found;

        if (path == NULL) {
            status = TN_ERR_MEMORY;
        } else if (stat(path, &found) == 0 && S_ISDIR(found.st_mode)) {
            status = names_add(&f->classes, tn_strdup(names.at[i]));
            if (status == TN_OK)
                status = add_folder(f, path, f->classes.count - 1, 0);
            if (status == TN_OK && f->files.count == before)
                status = tn_fail(TN_ERR_VALUE,
                                 "%s: no pictures of class %q; expected .png, .jpg or .jpeg files",
                                 path, names.at[i]);
        }
        tn_free(path);
    }
    names_free(&names);
    if (status == TN_OK && f->classes.count == 0)
        status = tn_fail(TN_ERR_VALUE, "%s: no folders; expected one with pictures for each class",
                         root);
    return status;
}

static void image_folder_close(void *handle)
{
    struct image_folder *f = handle;

    if (f == NULL)
        return;
    names_free(&f->classes);
    names_free(&f->files);
    tn_free(f->labels);
    tn_free(f);
}

static tn_status image_folder_open(tn_dataset_open *args)
{
    const struct image_folder_options *o = args->options;
    struct image_folder *f = tn_calloc(1, sizeof *f);
    tn_status status = f != NULL ? TN_OK : TN_ERR_MEMORY;

    if (status == TN_OK && o->max_pixels < 1)
        status = tn_fail(TN_ERR_VALUE, "max_pixels: out of range, got %lld; expected 1 or more",
                         (long long)o->max_pixels);
    if (status == TN_OK)
        status = add_classes(f, o->root);

    if (status != TN_OK) {
        image_folder_close(f);
        return status;
    }
    f->most = (uint64_t)o->max_pixels;
    args->handle = f;
    args->count = f->files.count;
    args->classes = f->classes.count;
    args->class_names = (const char *const *)f->classes.at;
    return TN_OK;
}

/* ---- one picture ----------------------------------------------------------------------------- */

/* The tensor of a file that is in memory. */
static tn_status add_decoded(const tn_sample_args *args, struct image_file *file)
{
    tn_status status = image_file_open(file);
    const struct image_part all = { 0, 0, file->height, file->width };
    tn_tensor *x = status == TN_OK ? image_file_tensor(file, &all) : NULL;

    status = x != NULL ? tn_pack_add(args->out, NULL, tn_value_tensor(x)) : tn_error_last_code();
    image_file_close(file);
    return status;
}

/* The file itself, which the transform decodes. */
static tn_status add_encoded(const tn_sample_args *args, const struct image_file *file)
{
    const tn_value items[] = { tn_value_string(file->path),
                               tn_value_bytes(file->bytes, (uint32_t)file->size),
                               tn_value_int((int64_t)file->most) };

    return tn_pack_add(args->out, NULL, tn_value_tuple(items, 3));
}

static tn_status image_folder_get(const tn_sample_args *args)
{
    const struct image_folder *f = args->handle;
    struct image_file file = { .path = f->files.at[args->index], .most = f->most };
    void *bytes = data_load(file.path, &file.size);
    tn_status status;

    if (bytes == NULL)
        return tn_error_last_code();
    file.bytes = bytes;
    status = args->flags & TN_SAMPLE_ENCODED ? add_encoded(args, &file) : add_decoded(args, &file);
    tn_free(bytes);
    return status == TN_OK ? tn_pack_add(args->out, NULL, tn_value_int(f->labels[args->index]))
                           : status;
}

const tn_dataset_def data_image_folder = {
    TN_HEAD(tn_dataset_def),
    .name = "ImageFolder",
    .help = "PNG and JPEG files in a folder for each class: (uint8 [3, H, W], class)",
    .options = options,
    .data_size = sizeof(struct image_folder_options),
    .open = image_folder_open,
    .get = image_folder_get,
    .close = image_folder_close,
};
