/* SPDX-License-Identifier: MIT
 *
 * IDX, the file format of MNIST: two zeros, a byte for the type, a byte for the number of
 * dimensions, the sizes as big-endian 32-bit integers, and the values, big-endian and row-major.
 * A dataset is a pair of files, for the images and for the classes. */
#include "data.h"

#include <string.h>

/* ---- one file -------------------------------------------------------------------------------- */

static const struct {
    uint8_t code;
    tn_dtype dtype;
} types[] = { { 0x08, TN_U8 },  { 0x09, TN_I8 },  { 0x0B, TN_I16 },
              { 0x0C, TN_I32 }, { 0x0D, TN_F32 }, { 0x0E, TN_F64 } };
enum { TYPES = sizeof types / sizeof *types };

struct idx {
    tn_dtype dtype;
    int32_t ndim;
    int64_t shape[TN_MAX_DIMS];
    void *values;
};

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void swap_bytes(unsigned char *at, size_t item, uint64_t bytes)
{
    for (uint64_t i = 0; item > 1 && i < bytes; i += item)
        for (size_t k = 0; k < item / 2; k++) {
            unsigned char first = at[i + k];

            at[i + k] = at[i + item - 1 - k];
            at[i + item - 1 - k] = first;
        }
}

static tn_status read_header(struct data_file *file, struct idx *idx)
{
    const char *path = data_file_path(file);
    uint8_t magic[4], sizes[4 * TN_MAX_DIMS];
    tn_status status = data_file_read(file, magic, sizeof magic, "header");
    int type = 0;

    if (status != TN_OK)
        return status;
    while (type < TYPES && types[type].code != magic[2])
        type++;
    if (magic[0] != 0 || magic[1] != 0 || type == TYPES)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: no IDX file, it begins with %d %d %d %d; expected 0 0, a type "
                       "(8, 9 or 11 to 14) and a number of dimensions",
                       path, magic[0], magic[1], magic[2], magic[3]);
    if (magic[3] < 1 || magic[3] > TN_MAX_DIMS)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: header: wrong number of dimensions, got %d; expected 1 to %d", path,
                       magic[3], TN_MAX_DIMS);
    idx->dtype = types[type].dtype;
    idx->ndim = magic[3];
    status = data_file_read(file, sizes, 4 * (uint64_t)idx->ndim, "header");
    for (int32_t i = 0; i < idx->ndim && status == TN_OK; i++)
        idx->shape[i] = big_endian(sizes + 4 * i);
    return status;
}

static tn_status read_idx(const char *path, struct idx *idx)
{
    struct data_file *file = data_file_open(path);
    tn_status status = file != NULL ? read_header(file, idx) : tn_error_last_code();
    int64_t count = 0, bytes = 0, item = 0;

    if (status == TN_OK) {
        item = (int64_t)tn_dtype_size(idx->dtype);
        count = data_elements(idx->shape, idx->ndim);
        if (count < 0 || __builtin_mul_overflow(count, item, &bytes))
            status = tn_fail(
                TN_ERR_FORMAT,
                "%s: header: the sizes are too large; expected less than 2^63 bytes in all", path);
    }
    if (status == TN_OK) {
        idx->values = data_file_take(file, (uint64_t)bytes, "values");
        status = idx->values != NULL ? data_file_end(file) : tn_error_last_code();
    }
    if (status == TN_OK)
        swap_bytes(idx->values, (size_t)item, (uint64_t)bytes);
    data_file_close(file);
    return status;
}

/* ---- images and classes ---------------------------------------------------------------------- */

static tn_status take_images(struct data_memory *memory, struct idx *images, bool add_channel)
{
    memory->count = images->shape[0];
    memory->dtype = images->dtype;
    if (add_channel)
        memory->shape[memory->ndim++] = 1;
    for (int32_t i = 1; i < images->ndim && memory->ndim < TN_MAX_DIMS; i++)
        memory->shape[memory->ndim++] = images->shape[i];
    memory->values = images->values;
    images->values = NULL;
    return TN_OK;
}

static tn_status take_labels(struct data_memory *memory, const struct idx *labels, int64_t classes,
                             const char *path)
{
    const uint8_t *bytes = labels->values;

    if (labels->ndim != 1 || labels->dtype != TN_U8)
        return tn_fail(
            TN_ERR_FORMAT,
            "%s: labels: wrong data, got %d dimensions of %s; expected 1 dimension of uint8", path,
            (int)labels->ndim, tn_dtype_name(labels->dtype));
    if (labels->shape[0] != memory->count)
        return tn_fail(TN_ERR_FORMAT,
                       "%s: wrong number of labels, got %lld; expected %lld, one "
                       "for each image",
                       path, (long long)labels->shape[0], (long long)memory->count);
    for (int64_t i = 0; classes == 0 && i < memory->count; i++)
        memory->classes = bytes[i] >= memory->classes ? bytes[i] + 1 : memory->classes;
    return data_memory_labels(memory, bytes, classes > 0 ? classes : memory->classes, path);
}

/* Reads the images and, unless labels_path is NULL, the classes. `classes` 0: the largest class
 * plus 1. Images with two dimensions get a channel: [28, 28] becomes [1, 28, 28]. */
static tn_status open_pair(tn_dataset_open *args, const char *images_path, const char *labels_path,
                           int64_t classes, const char *const *names)
{
    struct data_memory *memory = tn_calloc(1, sizeof *memory);
    struct idx images = { 0 }, labels = { 0 };
    tn_status status = memory != NULL ? read_idx(images_path, &images) : TN_ERR_MEMORY;

    if (status == TN_OK)
        status = take_images(memory, &images, images.ndim == 3);
    if (status == TN_OK && labels_path != NULL)
        status = read_idx(labels_path, &labels);
    if (status == TN_OK && labels_path != NULL)
        status = take_labels(memory, &labels, classes, labels_path);
    if (status == TN_OK && names != NULL)
        status = data_memory_names(memory, names, classes);
    tn_free(images.values);
    tn_free(labels.values);
    if (status != TN_OK) {
        data_memory_free(memory);
        return status;
    }
    data_memory_give(memory, args);
    return TN_OK;
}

/* ---- IDX(images, labels) --------------------------------------------------------------------- */

struct idx_options {
    const char *images, *labels;
};
static const tn_option idx_options[] = {
    TN_OPTION_ROW(struct idx_options, images, NULL, "file of the images, plain or .gz",
                  TN_OPTION_KIND_STRING, TN_OPTION_REQUIRED),
    TN_OPTION_ROW(struct idx_options, labels, "None", "file of the classes; None: no classes",
                  TN_OPTION_KIND_STRING, TN_OPTION_OPTIONAL),
    TN_OPTION_END
};

static tn_status idx_open(tn_dataset_open *args)
{
    const struct idx_options *o = args->options;

    return open_pair(args, o->images, o->labels, 0, NULL);
}

/* ---- MNIST(root, train) ---------------------------------------------------------------------- */

struct mnist_options {
    const char *root;
    bool train;
};
static const tn_option mnist_options[] = {
    TN_OPTION_ROW(struct mnist_options, root, NULL,
                  "folder with train-images-idx3-ubyte and the other files, plain or .gz",
                  TN_OPTION_KIND_STRING, TN_OPTION_REQUIRED),
    TN_OPTION_BOOL(struct mnist_options, train, "True",
                   "the 60,000 images for training; False: "
                   "the 10,000 for tests"),
    TN_OPTION_END
};

static tn_status open_mnist(tn_dataset_open *args, const char *const *names)
{
    const struct mnist_options *o = args->options;
    char *images = data_path(o->root,
                             o->train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte");
    char *labels = data_path(o->root,
                             o->train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte");
    tn_status status = images != NULL && labels != NULL ? open_pair(args, images, labels, 10, names)
                                                        : TN_ERR_MEMORY;

    tn_free(images);
    tn_free(labels);
    return status;
}

static tn_status mnist_open(tn_dataset_open *args)
{
    static const char *const names[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" };

    return open_mnist(args, names);
}

static tn_status fashion_open(tn_dataset_open *args)
{
    static const char *const names[] = {
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
        "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"
    };

    return open_mnist(args, names);
}

/* ---- tables ---------------------------------------------------------------------------------- */

const tn_dataset_def data_idx = {
    TN_HEAD(tn_dataset_def),
    .name = "IDX",
    .help = "images and classes in two IDX files; [H, W] images get a channel",
    .options = idx_options,
    .data_size = sizeof(struct idx_options),
    .open = idx_open,
    .get = data_memory_get,
    .close = data_memory_free,
};
const tn_dataset_def data_mnist = {
    TN_HEAD(tn_dataset_def),
    .name = "MNIST",
    .help = "handwritten digits: (uint8 [1, 28, 28], class)",
    .options = mnist_options,
    .data_size = sizeof(struct mnist_options),
    .open = mnist_open,
    .get = data_memory_get,
    .close = data_memory_free,
};
const tn_dataset_def data_fashion_mnist = {
    TN_HEAD(tn_dataset_def),
    .name = "FashionMNIST",
    .help = "pictures of clothes, in the files of MNIST: (uint8 [1, 28, 28], class)",
    .options = mnist_options,
    .data_size = sizeof(struct mnist_options),
    .open = fashion_open,
    .get = data_memory_get,
    .close = data_memory_free,
};
