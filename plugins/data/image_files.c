/* SPDX-License-Identifier: MIT
 *
 * Pictures without classes: single files, and all pictures of folders. */
#include "image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const extensions[] = { ".png", ".jpg", ".jpeg", NULL };

struct image_files {
    struct data_folder folder;
    uint64_t most; /* pixels */
};

struct image_files_options {
    tn_value paths;
    int64_t max_pixels;
};
static const tn_option options[] = {
    TN_OPTION_ROW(
        struct image_files_options, paths, NULL,
        "a PNG or JPEG file, or a folder with such files at any depth; or a list of these",
        TN_OPTION_KIND_VALUE, TN_OPTION_REQUIRED),
    TN_OPTION_INT(struct image_files_options, max_pixels, "178956970",
                  "pixels of the largest picture that is decoded"),
    TN_OPTION_END
};

static void image_files_close(void *handle)
{
    struct image_files *f = handle;

    if (f == NULL)
        return;
    data_folder_free(&f->folder);
    tn_free(f);
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
    return image_known(start, size)
               ? TN_OK
               : tn_fail(TN_ERR_FORMAT, "%s: neither a PNG nor a JPEG file", path);
}

static tn_status add_path(struct data_folder *folder, const tn_value *path)
{
    struct stat found;
    int64_t before = folder->files.count;
    tn_status status = TN_OK;

    if (path->kind != TN_VALUE_STRING)
        return tn_fail(TN_ERR_TYPE, "paths: wrong type; expected a string, or a list of strings");
    if (stat(path->as.s, &found) == 0 && S_ISREG(found.st_mode))
        status = check_file(path->as.s);
    if (status == TN_OK)
        status = data_folder_add(folder, path->as.s, 0);
    if (status == TN_OK && folder->files.count == before)
        status = tn_fail(TN_ERR_FORMAT,
                         "%s: no pictures in the folder; expected .png, .jpg or .jpeg files",
                         path->as.s);
    return status;
}

static tn_status image_files_open(tn_dataset_open *args)
{
    const struct image_files_options *given = args->options;
    const tn_value *paths = &given->paths;
    bool many = paths->kind == TN_VALUE_LIST || paths->kind == TN_VALUE_TUPLE;
    struct image_files *f;
    tn_status status = TN_OK;

    if (given->max_pixels < 1)
        return tn_fail(TN_ERR_VALUE, "max_pixels: out of range, got %lld; expected 1 or more",
                       (long long)given->max_pixels);
    f = tn_calloc(1, sizeof *f);
    if (f == NULL)
        return TN_ERR_MEMORY;
    f->most = (uint64_t)given->max_pixels;
    f->folder.extensions = extensions;
    f->folder.endings = ".png, .jpg or .jpeg";
    f->folder.what = "pictures";
    if (!many)
        status = add_path(&f->folder, paths);
    for (uint32_t i = 0; many && i < paths->count && status == TN_OK; i++)
        status = add_path(&f->folder, &paths->as.list[i]);
    if (status != TN_OK) {
        image_files_close(f);
        return status;
    }
    args->handle = f;
    args->count = f->folder.files.count;
    return TN_OK;
}

static tn_status image_files_get(const tn_sample_args *args)
{
    const struct image_files *f = args->handle;
    const char *path = f->folder.files.at[args->index];
    tn_status status = image_add(args, path, f->most);

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
