/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of this plugin: files of bytes, samples in memory, tensors of samples. */
#ifndef TN_DATA_DATA_H
#define TN_DATA_DATA_H

#include <tenon/plugin.h>

/* ---- the plugin's setting (plugin.c) --------------------------------------------------------- */

/* The bytes of memory that a file of `size` bytes may fill: a few bytes may be compressed
 * gigabytes, or have a header that asks for them. */
uint64_t data_most(uint64_t size);
/* Fails with TN_ERR_REFUSED if `bytes` are more than a file of `size` bytes may fill. */
tn_status data_limit(const char *path, uint64_t size, uint64_t bytes);

/* ---- files (file.c) -------------------------------------------------------------------------- */

/* A file that is read from its start to its end. With zlib, files that are compressed by gzip are
 * read as if they were not. */
struct data_file;

/* Opens a file. Returns NULL and records a failure if that is not possible. */
struct data_file *data_file_open(const char *path);
void data_file_close(struct data_file *file);
/* Reads at most `size` bytes. Returns their number, less than `size` only at the end of the file;
 * -1 and records a failure on error. */
int64_t data_file_some(struct data_file *file, void *out, uint64_t size);
/* Reads `size` bytes. Fails if the file ends before, or cannot be read. `what` names the bytes in
 * the message. */
tn_status data_file_read(struct data_file *file, void *out, uint64_t size, const char *what);
/* Reads `size` bytes into new memory, which the caller frees with tn_free. The memory grows as the
 * bytes arrive, so a wrong size in a short file does not allocate much. Returns NULL and records a
 * failure if the file ends before. */
void *data_file_take(struct data_file *file, uint64_t size, const char *what);
/* Reads all bytes that are left into new memory with a NUL after them. */
char *data_file_rest(struct data_file *file, uint64_t *size);
/* Fails if there are more bytes. */
tn_status data_file_end(struct data_file *file);
const char *data_file_path(const struct data_file *file);

/* Returns root/name in new memory. If there is no such file, but one with ".gz" appended, returns
 * the name of that file. */
char *data_path(const char *root, const char *name);

/* Reads a whole file, as it is, into new memory, which the caller frees with tn_free. The file may
 * have at most 2 GiB - 1 bytes. */
void *data_load(const char *path, uint64_t *size);

/* ---- folders (folder.c) ---------------------------------------------------------------------- */

struct data_names {
    char **at;
    int64_t count, capacity;
};

/* Files in folders, one for each class, or files without a class. */
struct data_folder {
    const char *const *extensions; /* of the files, with the dot; ends with NULL */
    const char *endings, *what;    /* the same for messages, and what the files are */
    /* for data_folder_paths: whether the first bytes are those of such a file, and what the message
     * says if they are not */
    bool (*known)(const void *start, uint64_t size);
    const char *unknown;
    /* what is missing to read files with an ending, in small letters, which are then left out;
     * returns NULL if nothing is. NULL: never */
    const char *(*lack)(const char *ending);
    struct data_names classes, files;
    int64_t *labels; /* the class of each file */
    int64_t labels_capacity;
    /* the files that have another ending: their number, and how many have which */
    int64_t others;
    struct {
        char ending[12];
        int64_t count;
    } kinds[8];
};

/* Lists the files in the folders of `root`, in the order of their names; each folder is a class.
 * Writes to the log how many files have another ending. Fails if there is no folder.
 * data_folder_free() must follow, also after a failure. */
tn_status data_folder_read(struct data_folder *folder, const char *root);
/* Adds a file, or the files below a folder, of one class. data_folder_free() must follow, also
 * after a failure. */
tn_status data_folder_add(struct data_folder *folder, const char *path, int64_t label);
/* Adds a path of a file or a folder, or a list of them: the option `paths` of a dataset. Fails with
 * TN_ERR_FORMAT if a file is of another kind, or if a folder has none. data_folder_free() must
 * follow, also after a failure. */
tn_status data_folder_paths(struct data_folder *folder, const tn_value *paths);
void data_folder_free(struct data_folder *folder);

/* ---- numbers in messages (numbers.c) --------------------------------------------------------- */

enum { DATA_NUMBERS = 96 };

/* Write an option as "(0.5, 0.1)", None if it was not given, and return `text`. */
const char *data_numbers_floats(char text[DATA_NUMBERS], tn_floats given);
const char *data_numbers_ints(char text[DATA_NUMBERS], tn_ints given);

/* ---- samples in memory (memory.c) ------------------------------------------------------------ */

/* Samples of one tensor and, if `labels` is set, a class. */
struct data_memory {
    int64_t count;
    tn_dtype dtype;
    int64_t shape[TN_MAX_DIMS]; /* of one sample */
    int32_t ndim;
    void *values;
    int64_t *labels;
    int64_t classes;
    char **names; /* `classes` names; NULL: none */
};

/* Makes *args refer to the samples; the dataset then frees them in `close`. */
void data_memory_give(struct data_memory *memory, tn_dataset_open *args);
void data_memory_free(void *memory);
tn_status data_memory_get(const tn_sample_args *args);
/* Sets labels[i] to byte i; fails if a byte is not less than `classes`. */
tn_status data_memory_labels(struct data_memory *memory, const uint8_t *bytes, int64_t classes,
                             const char *path);
/* Sets the names of the classes from fixed texts. */
tn_status data_memory_names(struct data_memory *memory, const char *const *names, int64_t count);
/* Appends a tensor of the host with these values, row-major, to a sample. */
tn_status data_add_tensor(tn_pack *out, const void *values, tn_dtype dtype, tn_ints shape);
/* The number of elements of a shape; -1 if it does not fit. */
int64_t data_elements(const int64_t *shape, int32_t ndim);

/* ---- samples in a transform (sample.c) ------------------------------------------------------- */

/* Pixels of the largest picture that is decoded, unless an option says otherwise. Its file may be a
 * few bytes, but its pixels fill the memory. */
#define DATA_MOST_PIXELS ((uint64_t)178956970)

/* Entry 0 of a sample: a tensor of numbers, contiguous, on the host. */
struct data_numbers {
    tn_tensor *tensor;
    tn_dtype dtype;
    int64_t count; /* of elements */
    int64_t outer; /* size of dimension 0, 1 if there is none: its parts are the channels */
    const void *values;
};

/* Gets entry 0 of the sample, which must be a tensor of real numbers. Messages name the
 * transform. */
tn_status data_numbers_get(const tn_transform_args *args, struct data_numbers *numbers);
/* Creates a float32 tensor of the same shape; *values is its memory. Returns NULL on failure. */
tn_tensor *data_numbers_new(const struct data_numbers *numbers, float **values);

/* An image of a sample: [C, H, W], contiguous, uint8 or float32, on the host. */
struct data_image {
    int64_t channels, height, width;
    tn_dtype dtype;
    size_t item; /* bytes of an element */
    const unsigned char *values;
};

/* Gets entry 0 of the sample, which must be an image. Messages name the transform. */
tn_status data_image_get(const tn_transform_args *args, struct data_image *image);
/* Creates an image; *values is its memory. Returns NULL on failure. */
tn_tensor *data_image_new(int64_t channels, int64_t height, int64_t width, tn_dtype dtype,
                          unsigned char **values);
/* Appends `image` to the new sample, and all further entries of the old one. [null-through] */
tn_status data_image_put(tn_transform_args *args, tn_tensor *image);
/* Appends the entries of the old sample from `first` on, unchanged. */
tn_status data_rest(tn_transform_args *args, int64_t first);
/* Appends all entries of the old sample unchanged. */
tn_status data_same(tn_transform_args *args);

/* ---- random numbers (noise.c) ---------------------------------------------------------------- */

/* Returns a number of the normal distribution with mean 0 and deviation 1. */
double data_normal(tn_random_key *key);

/* ---- contributions --------------------------------------------------------------------------- */

extern const tn_dataset_def data_cifar10, data_cifar100, data_csv, data_csv_rows, data_digits,
    data_fashion_mnist, data_idx, data_image_files, data_image_folder, data_mnist, data_table,
    data_table_rows, data_tensors, data_text_bpe, data_text_bytes, data_wav_files, data_wav_folder;
extern const tn_transform_def data_center_crop, data_color_jitter, data_columns, data_cut_mix,
    data_file_name, data_amplitude_to_db, data_mel_spectrogram, data_mfcc, data_gaussian_blur,
    data_gaussian_noise, data_grayscale, data_mix_up, data_normalize, data_pad, data_random_affine,
    data_random_crop, data_random_erasing, data_random_grayscale, data_random_horizontal_flip,
    data_random_resized_crop, data_random_rotation, data_random_vertical_flip, data_resize,
    data_to_float;

#endif
