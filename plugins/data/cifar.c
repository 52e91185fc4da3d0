/* SPDX-License-Identifier: MIT
 *
 * CIFAR-10 and CIFAR-100 in their binary form: records of the class (CIFAR-100: a coarse and a fine
 * one) and the 3 * 32 * 32 bytes of the image. */
#include "data.h"

#include <string.h>

#define PIXELS (3 * 32 * 32)

struct cifar_options {
    const char *root;
    bool train;
};
static const tn_option cifar10_options[] = { TN_OPTION_ROW(struct cifar_options, root, NULL,
                                                           "folder with data_batch_1.bin to "
                                                           "data_batch_5.bin and test_batch.bin",
                                                           TN_OPTION_KIND_STRING,
                                                           TN_OPTION_REQUIRED),
                                             TN_OPTION_BOOL(struct cifar_options, train, "True",
                                                            "the five batches for training; False: "
                                                            "the batch for tests"),
                                             TN_OPTION_END };
static const tn_option cifar100_options[] = {
    TN_OPTION_ROW(struct cifar_options, root, NULL, "folder with train.bin and test.bin",
                  TN_OPTION_KIND_STRING, TN_OPTION_REQUIRED),
    TN_OPTION_BOOL(struct cifar_options, train, "True",
                   "the images for training; False: the "
                   "images for tests"),
    TN_OPTION_END
};

/* What differs between the two. */
struct variant {
    int64_t classes, labels; /* labels: bytes before the pixels, the last of which is the class */
    const char *train[6], *test[2], *names;
};
static const struct variant cifar10 = { 10,
                                        1,
                                        { "data_batch_1.bin", "data_batch_2.bin",
                                          "data_batch_3.bin", "data_batch_4.bin",
                                          "data_batch_5.bin", NULL },
                                        { "test_batch.bin", NULL },
                                        "batches.meta.txt" };
static const struct variant cifar100 = {
    100, 2, { "train.bin", NULL }, { "test.bin", NULL }, "fine_label_names.txt"
};

/* Makes room for `count` more samples. */
static tn_status grow(struct data_memory *memory, int64_t count)
{
    size_t total = (size_t)(memory->count + count);
    void *values = tn_realloc(memory->values, total * PIXELS + 1);
    int64_t *labels;

    if (values == NULL)
        return TN_ERR_MEMORY;
    memory->values = values;
    labels = tn_realloc(memory->labels, (total + 1) * sizeof *labels);
    if (labels == NULL)
        return TN_ERR_MEMORY;
    memory->labels = labels;
    return TN_OK;
}

static tn_status take_records(struct data_memory *memory, const struct variant *variant,
                              const char *path, const uint8_t *bytes, int64_t count)
{
    int64_t record = variant->labels + PIXELS;

    for (int64_t i = 0; i < count; i++, bytes += record) {
        int64_t label = bytes[variant->labels - 1];

        if (label >= variant->classes)
            return tn_fail(TN_ERR_FORMAT,
                           "%s: record %lld: class: out of range, got %lld; expected 0 to %lld",
                           path, (long long)i, (long long)label, (long long)variant->classes - 1);
        memory->labels[memory->count] = label;
        memcpy((uint8_t *)memory->values + memory->count * PIXELS, bytes + variant->labels, PIXELS);
        memory->count++;
    }
    return TN_OK;
}

static tn_status read_records(struct data_memory *memory, const struct variant *variant,
                              const char *path)
{
    struct data_file *file = data_file_open(path);
    uint64_t size = 0, record = (uint64_t)(variant->labels + PIXELS);
    char *bytes = file != NULL ? data_file_rest(file, &size) : NULL;
    tn_status status = bytes != NULL ? TN_OK : tn_error_last_code();

    if (status == TN_OK && (size == 0 || size % record != 0))
        status = tn_fail(TN_ERR_FORMAT,
                         "%s: wrong size, got %llu bytes; expected a multiple of %llu, the size of "
                         "a record",
                         path, (unsigned long long)size, (unsigned long long)record);
    if (status == TN_OK)
        status = grow(memory, (int64_t)(size / record));
    if (status == TN_OK)
        status = take_records(memory, variant, path, (const uint8_t *)bytes,
                              (int64_t)(size / record));
    tn_free(bytes);
    data_file_close(file);
    return status;
}

/* Reads the names of the classes, one in a line, if their file is there and has enough lines. */
static tn_status read_names(struct data_memory *memory, const char *root, const char *name)
{
    char *path = data_path(root, name), *text, *at;
    const char *names[100] = { NULL };
    uint64_t size = 0, mark = tn_error_mark();
    struct data_file *file = path != NULL ? data_file_open(path) : NULL;
    int64_t count = 0;
    tn_status status = TN_OK;

    tn_free(path);
    if (file == NULL) {
        tn_error_restore(mark);
        return TN_OK;
    }
    text = data_file_rest(file, &size);
    data_file_close(file);
    if (text == NULL)
        return tn_error_last_code();
    at = text;
    while (*at != '\0' && count < memory->classes) {
        char *end = at + strcspn(at, "\r\n"), *next = end + strspn(end, "\r\n");

        *end = '\0';
        if (*at != '\0')
            names[count++] = at;
        at = next;
    }
    if (count == memory->classes)
        status = data_memory_names(memory, names, count);
    tn_free(text);
    return status;
}

static tn_status open_variant(tn_dataset_open *args, const struct variant *variant)
{
    const struct cifar_options *o = args->options;
    const char *const *files = o->train ? variant->train : variant->test;
    struct data_memory *memory = tn_calloc(1, sizeof *memory);
    tn_status status = memory != NULL ? TN_OK : TN_ERR_MEMORY;

    for (int i = 0; status == TN_OK && files[i] != NULL; i++) {
        char *path = data_path(o->root, files[i]);

        status = path != NULL ? read_records(memory, variant, path) : TN_ERR_MEMORY;
        tn_free(path);
    }
    if (status == TN_OK) {
        static const int64_t shape[3] = { 3, 32, 32 };

        memory->dtype = TN_U8;
        memory->ndim = 3;
        memcpy(memory->shape, shape, sizeof shape);
        memory->classes = variant->classes;
        status = read_names(memory, o->root, variant->names);
    }
    if (status != TN_OK) {
        data_memory_free(memory);
        return status;
    }
    data_memory_give(memory, args);
    return TN_OK;
}

static tn_status cifar10_open(tn_dataset_open *args)
{
    return open_variant(args, &cifar10);
}

static tn_status cifar100_open(tn_dataset_open *args)
{
    return open_variant(args, &cifar100);
}

const tn_dataset_def data_cifar10 = {
    TN_HEAD(tn_dataset_def),
    .name = "CIFAR10",
    .help = "color images of 10 classes, binary version: (uint8 [3, 32, 32], class)",
    .options = cifar10_options,
    .data_size = sizeof(struct cifar_options),
    .open = cifar10_open,
    .get = data_memory_get,
    .close = data_memory_free,
};
const tn_dataset_def data_cifar100 = {
    TN_HEAD(tn_dataset_def),
    .name = "CIFAR100",
    .help = "color images of 100 classes, binary version: (uint8 [3, 32, 32], class)",
    .options = cifar100_options,
    .data_size = sizeof(struct cifar_options),
    .open = cifar100_open,
    .get = data_memory_get,
    .close = data_memory_free,
};
