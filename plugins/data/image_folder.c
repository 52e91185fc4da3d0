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

void image_names_free(struct image_names *names)
{
    for (int64_t i = 0; i < names->count; i++)
        tn_free(names->at[i]);
    tn_free(names->at);
}

tn_status image_names_add(struct image_names *names, char *name)
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
static tn_status list_folder(const char *path, struct image_names *names)
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
            status = image_names_add(names, tn_strdup(entry->d_name));
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

static bool is_picture(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL && (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 ||
                           strcasecmp(dot, ".jpeg") == 0);
}

enum { DEPTH = 32 }; /* a link to a folder above would never end */

/* Adds the pictures of a folder: first its own files, then the folders in it. */
static tn_status add_folder(const char *path, struct image_names *files, int depth)
{
    struct image_names names = { 0 };
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
                status = add_folder(entry, files, depth + 1);
                tn_free(entry);
            } else if (S_ISREG(found.st_mode) && is_picture(names.at[i])) {
                status = image_names_add(files, entry);
            } else {
                tn_free(entry);
            }
        }
    image_names_free(&names);
    return status;
}

tn_status image_names_walk(const char *path, struct image_names *files)
{
    return add_folder(path, files, 0);
}

/* ---- the dataset ----------------------------------------------------------------------------- */

struct image_folder {
    struct image_names classes, files;
    int64_t *labels;
};

struct image_folder_options {
    const char *root;
};
static const tn_option options[] = {
    TN_OPTION_ROW(struct image_folder_options, root, NULL,
                  "folder that has a folder with .png, .jpg and .jpeg files for each class",
                  TN_OPTION_KIND_STRING, TN_OPTION_REQUIRED),
    TN_OPTION_END
};

/* The files from index `before` on are those of the last class. */
static tn_status add_labels(struct image_folder *f, int64_t before)
{
    int64_t *grown;

    if (f->files.count == before)
        return TN_OK;
    grown = tn_realloc(f->labels, (size_t)f->files.count * sizeof *grown);
    if (grown == NULL)
        return TN_ERR_MEMORY;
    f->labels = grown;
    for (int64_t i = before; i < f->files.count; i++)
        grown[i] = f->classes.count - 1;
    return TN_OK;
}

static tn_status add_classes(struct image_folder *f, const char *root)
{
    struct image_names names = { 0 };
    tn_status status = list_folder(root, &names);

    for (int64_t i = 0; i < names.count && status == TN_OK; i++) {
        char *path = joined(root, names.at[i]);
        int64_t before = f->files.count;
        struct stat found;

        if (path == NULL) {
            status = TN_ERR_MEMORY;
        } else if (stat(path, &found) == 0 && S_ISDIR(found.st_mode)) {
            status = image_names_add(&f->classes, tn_strdup(names.at[i]));
            if (status == TN_OK)
                status = image_names_walk(path, &f->files);
            if (status == TN_OK)
                status = add_labels(f, before);
            if (status == TN_OK && f->files.count == before)
                status = tn_fail(TN_ERR_VALUE,
                                 "%s: no pictures of class %q; expected .png, .jpg or .jpeg files",
                                 path, names.at[i]);
        }
        tn_free(path);
    }
    image_names_free(&names);
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
    image_names_free(&f->classes);
    image_names_free(&f->files);
    tn_free(f->labels);
    tn_free(f);
}

static tn_status image_folder_open(tn_dataset_open *args)
{
    const struct image_folder_options *o = args->options;
    struct image_folder *f = tn_calloc(1, sizeof *f);
    tn_status status = f != NULL ? add_classes(f, o->root) : TN_ERR_MEMORY;

    if (status != TN_OK) {
        image_folder_close(f);
        return status;
    }
    args->handle = f;
    args->count = f->files.count;
    args->classes = f->classes.count;
    args->class_names = (const char *const *)f->classes.at;
    return TN_OK;
}

/* ---- one picture ----------------------------------------------------------------------------- */

tn_status image_allocate(struct image_rgb *image, const char *path, uint64_t height, uint64_t width)
{
    if (height == 0 || width == 0 || height > IMAGE_MOST_PIXELS / width)
        return tn_fail(TN_ERR_FORMAT, "%s: wrong size, got %llu x %llu pixels; expected 1 to %llu",
                       path, (unsigned long long)height, (unsigned long long)width,
                       (unsigned long long)IMAGE_MOST_PIXELS);
    image->height = (int64_t)height;
    image->width = (int64_t)width;
    image->pixels = tn_malloc(3 * height * width);
    return image->pixels != NULL ? TN_OK : TN_ERR_MEMORY;
}

enum image_kind image_kind(const void *bytes, uint64_t size)
{
    if (size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0)
        return IMAGE_PNG;
    return size >= 3 && memcmp(bytes, "\xFF\xD8\xFF", 3) == 0 ? IMAGE_JPEG : IMAGE_UNKNOWN;
}

tn_status image_read(const char *path, struct image_rgb *image)
{
    struct data_file *file = data_file_open(path);
    uint64_t size = 0;
    char *bytes = file != NULL ? data_file_rest(file, &size) : NULL;
    tn_status status;

    data_file_close(file);
    if (bytes == NULL)
        return tn_error_last_code();
    switch (image_kind(bytes, size)) {
    case IMAGE_PNG: status = image_read_png(path, bytes, size, image); break;
    case IMAGE_JPEG: status = image_read_jpeg(path, bytes, size, image); break;
    default: status = tn_fail(TN_ERR_FORMAT, "%s: neither a PNG nor a JPEG file", path);
    }
    tn_free(bytes);
    return status;
}

tn_tensor *image_planes(const struct image_rgb *image)
{
    size_t count = (size_t)(image->height * image->width);
    unsigned char *to;
    tn_tensor *x = data_image_new(3, image->height, image->width, TN_U8, &to);

    for (size_t i = 0; x != NULL && i < count; i++) {
        to[i] = image->pixels[3 * i];
        to[count + i] = image->pixels[3 * i + 1];
        to[2 * count + i] = image->pixels[3 * i + 2];
    }
    return x;
}

static tn_status image_folder_get(const tn_sample_args *args)
{
    const struct image_folder *f = args->handle;
    struct image_rgb image = { 0 };
    tn_status status = image_read(f->files.at[args->index], &image);
    tn_tensor *x = status == TN_OK ? image_planes(&image) : NULL;

    tn_free(image.pixels);
    if (x == NULL)
        return tn_error_last_code();
    status = tn_pack_add(args->out, NULL, tn_value_tensor(x));
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
