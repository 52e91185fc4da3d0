/* SPDX-License-Identifier: MIT
 *
 * Pictures in folders: files in a folder for each class, as in torchvision's ImageFolder. */
#include "image.h"

struct image_folder {
    struct data_folder folder;
    struct image_options options;
};

struct image_folder_options {
    const char *root;
    int64_t max_pixels;
    bool orientation;
};
static const tn_option options[] = {
    TN_OPTION_ROW(struct image_folder_options, root, NULL,
                  "folder that has a folder with files " IMAGE_ENDINGS " for each class",
                  TN_OPTION_KIND_STRING, TN_OPTION_REQUIRED),
    TN_OPTION_INT(struct image_folder_options, max_pixels, "178956970",
                  "pixels of the largest picture that is decoded"),
    TN_OPTION_BOOL(struct image_folder_options, orientation, "True",
                   "pictures are turned as EXIF says, in which cameras write how they were held"),
    TN_OPTION_END
};

static void image_folder_close(void *handle)
{
    struct image_folder *f = handle;

    if (f == NULL)
        return;
    data_folder_free(&f->folder);
    tn_free(f);
}

static tn_status image_folder_open(tn_dataset_open *args)
{
    const struct image_folder_options *o = args->options;
    const struct image_options image = { o->max_pixels, o->orientation };
    struct image_folder *f = tn_calloc(1, sizeof *f);
    tn_status status = f != NULL ? TN_OK : TN_ERR_MEMORY;

    if (status == TN_OK)
        status = image_check_options(&image);
    if (status == TN_OK) {
        f->folder = (struct data_folder){ .extensions = image_extensions,
                                          .endings = IMAGE_ENDINGS,
                                          .lack = image_lack,
                                          .what = "pictures" };
        status = data_folder_read(&f->folder, o->root);
    }

    if (status != TN_OK) {
        image_folder_close(f);
        return status;
    }
    f->options = image;
    args->handle = f;
    args->count = f->folder.files.count;
    args->classes = f->folder.classes.count;
    args->class_names = (const char *const *)f->folder.classes.at;
    return TN_OK;
}

static tn_status image_folder_get(const tn_sample_args *args)
{
    const struct image_folder *f = args->handle;
    tn_status status = image_add(args, f->folder.files.at[args->index], &f->options);

    return status == TN_OK
               ? tn_pack_add(args->out, NULL, tn_value_int(f->folder.labels[args->index]))
               : status;
}

const tn_dataset_def data_image_folder = {
    TN_HEAD(tn_dataset_def),
    .name = "ImageFolder",
    .help = IMAGE_FORMATS " files in a folder for each class: (uint8 [3, H, W], class)",
    .options = options,
    .data_size = sizeof(struct image_folder_options),
    .open = image_folder_open,
    .get = image_folder_get,
    .close = image_folder_close,
};
