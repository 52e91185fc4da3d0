/* SPDX-License-Identifier: MIT
 *
 * Pictures without classes: single files, and all pictures of folders. */
#include "image.h"

struct image_files {
    struct data_folder folder;
    struct image_options options;
};

struct image_files_options {
    tn_value paths;
    int64_t max_pixels;
    bool orientation;
};
static const tn_option options[] = {
    TN_OPTION_ROW(struct image_files_options, paths, NULL,
                  "a " IMAGE_FORMATS
                  " file, or a folder with such files at any depth; or a list of these",
                  TN_OPTION_KIND_VALUE, TN_OPTION_REQUIRED),
    TN_OPTION_INT(struct image_files_options, max_pixels, "178956970",
                  "pixels of the largest picture that is decoded"),
    TN_OPTION_BOOL(struct image_files_options, orientation, "True",
                   "pictures are turned as EXIF says, in which cameras write how they were held"),
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

static tn_status image_files_open(tn_dataset_open *args)
{
    const struct image_files_options *given = args->options;
    const struct image_options image = { given->max_pixels, given->orientation };
    struct image_files *f;
    tn_status status;

    if (image_check_options(&image) != TN_OK)
        return tn_error_last_code();
    f = tn_calloc(1, sizeof *f);
    if (f == NULL)
        return TN_ERR_MEMORY;
    f->options = image;
    f->folder = (struct data_folder){ .extensions = image_extensions,
                                      .endings = IMAGE_ENDINGS,
                                      .lack = image_lack,
                                      .what = "pictures",
                                      .known = image_known,
                                      .unknown = "no " IMAGE_FORMATS " file" };
    status = data_folder_paths(&f->folder, &given->paths);
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
    tn_status status = image_add(args, path, &f->options);

    return status == TN_OK ? tn_pack_add(args->out, NULL, tn_value_string(path)) : status;
}

const tn_dataset_def data_image_files = {
    TN_HEAD(tn_dataset_def),
    .name = "ImageFiles",
    .help = IMAGE_FORMATS " files, without classes: (uint8 [3, H, W], path)",
    .options = options,
    .data_size = sizeof(struct image_files_options),
    .open = image_files_open,
    .get = image_files_get,
    .close = image_files_close,
};
