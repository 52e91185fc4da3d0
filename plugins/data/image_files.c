/* SPDX-License-Identifier: MIT
 *
 * Pictures without classes: single files, and all pictures of folders. */
#include "image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct image_files_options {
    tn_value paths;
};
static const tn_option options[] = {
    TN_OPTION_ROW(
        struct image_files_options, paths, NULL,
        "a PNG or JPEG file, or a folder with such files at any depth; or a list of these",
        TN_OPTION_KIND_VALUE, TN_OPTION_REQUIRED),
    TN_OPTION_END
};

static void image_files_close(void *handle)
{
    struct image_names *files = handle;

    if (files == NULL)
        return;
    image_names_free(files);
    tn_free(files);
}

/* Fails unless the first bytes are those of a picture. The rest is read by `get`. */
static tn_status check_file(const char *path)
{
    unsigned char start[8] = { 0 };
    FILE *file = fopen(path, "rb");
    size_t size = 0;

    if (file == NULL)
        return tn_fail(TN_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    size = fread(start, 1, sizeof start, file);
    if (ferror(file)) {
        (void)fclose(file);
        return tn_fail(TN_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    }
    (void)fclose(file);
    return image_kind(start, size) != IMAGE_UNKNOWN
               ? TN_OK
               : tn_fail(TN_ERR_FORMAT, "%s: neither a PNG nor a JPEG file", path);
}

static tn_status add_path(struct image_names *files, const tn_value *path)
{
    struct stat found;
    int64_t before = files->count;
    tn_status status;

    if (path->kind != TN_VALUE_STRING)
        return tn_fail(TN_ERR_TYPE, "paths: wrong type; expected a string, or a list of strings");
    if (stat(path->as.s, &found) != 0)
        return tn_fail(TN_ERR_IO, "%s: cannot be opened: %s", path->as.s, strerror(errno));
    if (S_ISDIR(found.st_mode)) {
        status = image_names_walk(path->as.s, files);
        return status == TN_OK && files->count == before
                   ? tn_fail(TN_ERR_FORMAT,
                             "%s: no pictures in the folder; expected .png, .jpg or .jpeg files",
                             path->as.s)
                   : status;
    }
    if (!S_ISREG(found.st_mode))
        return tn_fail(TN_ERR_IO, "%s: not a regular file", path->as.s);
    status = check_file(path->as.s);
    return status == TN_OK ? image_names_add(files, tn_strdup(path->as.s)) : status;
}

static tn_status image_files_open(tn_dataset_open *args)
{
    const tn_value *paths = &((const struct image_files_options *)args->options)->paths;
    bool many = paths->kind == TN_VALUE_LIST || paths->kind == TN_VALUE_TUPLE;
    struct image_names *files = tn_calloc(1, sizeof *files);
    tn_status status = files != NULL ? TN_OK : TN_ERR_MEMORY;

    if (status == TN_OK && !many)
        status = add_path(files, paths);
    for (uint32_t i = 0; many && i < paths->count && status == TN_OK; i++)
        status = add_path(files, &paths->as.list[i]);
    if (status != TN_OK) {
        image_files_close(files);
        return status;
    }
    args->handle = files;
    args->count = files->count;
    return TN_OK;
}

static tn_status image_files_get(const tn_sample_args *args)
{
    const struct image_names *files = args->handle;
    const char *path = files->at[args->index];
    struct image_rgb image = { 0 };
    tn_status status = image_read(path, &image);
    tn_tensor *x = status == TN_OK ? image_planes(&image) : NULL;

    tn_free(image.pixels);
    if (x == NULL)
        return tn_error_last_code();
    status = tn_pack_add(args->out, NULL, tn_value_tensor(x));
    return status == TN_OK ? tn_pack_add(args->out, NULL, tn_value_string(path)) : status;
}

const tn_dataset_def data_image_files = {
    TN_HEAD(tn_dataset_def),
    .name = "ImageFiles",
    .help = "PNG and JPEG files, without classes: (uint8 [3, H, W], path)",
    .options = options,
    .data_size = sizeof(struct image_files_options),
    .open = image_files_open,
    .get = image_files_get,
    .close = image_files_close,
};
