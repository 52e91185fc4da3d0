/* SPDX-License-Identifier: MIT
 *
 * Shared by tenon eval, tenon predict and tenon bench: options, the device, data, calls of a
 * model, names of classes. */
#ifndef TN_TOOLS_TRAIN_WORK_H
#define TN_TOOLS_TRAIN_WORK_H

#include <math.h>

#include "model.h"

/* ---- options --------------------------------------------------------------------------------- */

typedef struct work_options {
    const char *weights, *device, *transform, *data;
    uint32_t flags; /* MODEL_* */
    bool skip_damaged;
    int64_t batch, workers, datasets; /* how often --data is given */
} work_options;
extern work_options work_given;

bool work_take_weights(const char *value);
bool work_take_loose(const char *value);
bool work_take_device(const char *value);
bool work_take_transform(const char *value);
bool work_take_data(const char *value);
bool work_take_batch(const char *value);
bool work_take_workers(const char *value);
bool work_take_skip(const char *value);

/* Rows of a tool_option table, for a model and for data. */
#define WORK_MODEL_OPTIONS                                                                         \
    { "--weights", "FILE", "weights for the model, from a file of any format; all names must fit", \
      work_take_weights },                                                                         \
    {                                                                                              \
        "--loose", NULL,                                                                           \
            "names that only the model or only the file has are listed, and are no errors",        \
            work_take_loose                                                                        \
    }
#define WORK_DEVICE_OPTION                                                                         \
    {                                                                                              \
        "--device", "NAME", "the device; default: TENON_DEVICE, else cpu", work_take_device        \
    }
#define WORK_DATA_OPTIONS                                                                          \
    { "--transform", "SPEC",                                                                       \
      "a transform of each sample, or a list: '[Resize(224), ToFloat()]'; default: the one in "    \
      "the file of the model, if there is one; '[]': none",                                        \
      work_take_transform },                                                                       \
        { "--workers", "N", "threads that read ahead; default: 0", work_take_workers },            \
    {                                                                                              \
        "--skip-damaged", NULL, "leaves out samples that cannot be read, and counts them",         \
            work_take_skip                                                                         \
    }

/* Reads a number from `least` to `most`. */
bool work_read_number(const char *value, int64_t least, int64_t most, int64_t *out);

/* ---- the device and the model ---------------------------------------------------------------- */

/* Finds the device with this name and makes it the default; NULL: the default device. On failure
 * the message lists the devices that are present. */
const tn_device *work_device(const char *name);
/* Opens the model `text` on the default device, in evaluation mode, with the options given. */
tn_module *work_model(const char *text, model_notes *notes);
/* Returns the dtype of the first floating parameter, else buffer; TN_DTYPE_AUTO if there is
 * none. */
tn_dtype work_dtype(tn_module *module);

/* ---- data and calls -------------------------------------------------------------------------- */

/* Opens the dataset of a spec. A path in place of a spec is an error that says what to write. */
tn_dataset *work_dataset(const char *text);
/* Returns whether this dataset may read files for this transform (fit.c): rows of tables are for
 * the transform that takes them, and for no other. */
bool work_reads(const char *dataset, const char *transform);
/* Returns a dataset of the names of the files from which the samples of `dataset`, which has no
 * transform yet, are read; NULL without a failure if it cannot be made. The caller drops it. */
tn_dataset *work_names(tn_dataset *dataset);
/* Writes the name of the file of a sample. Returns false without a failure if there is none. */
bool work_name(tn_dataset *names, int64_t index, char *out, size_t size);
/* Applies the transform of --transform, if there is one. Takes `dataset` over, also on failure.
 * [null-through] */
tn_dataset *work_transformed(tn_dataset *dataset);
/* Fails if a loss is not for classes, but gets results [N, C] with classes [N]: MSELoss() would
 * broadcast them where N is 1 or C. Calls the loss with another number of samples. */
tn_status work_check_loss(tn_module *loss, const tn_tensor *output, const tn_tensor *target);
/* Records a failure of a loader again, with what the user can do about it. */
tn_status work_data_failed(const tn_error *error);
/* Makes a loader in the order of the dataset, with batches of `batch` samples on the default
 * device. */
tn_loader *work_loader(tn_dataset *dataset, int64_t batch);

/* Calls the module with the first `inputs` entries of a batch. Floating ones are converted to
 * `dtype`, unless that is TN_DTYPE_AUTO. Returns the first tensor of the results. */
tn_tensor *work_call(tn_module *module, const tn_pack *batch, int64_t inputs, tn_dtype dtype);
/* Returns the results [N, L, C] of a model of texts, whose targets are integers [N, L], as [N, C,
 * L], the order that losses expect. Returns all other results unchanged, also results that are [N,
 * C, L] already. [scoped] [null-through] */
tn_tensor *work_scores(tn_tensor *output, const tn_tensor *target);
/* Returns a target as losses expect it: integers and booleans as int64, floats in `dtype` unless
 * that is TN_DTYPE_AUTO. [scoped] [null-through] */
tn_tensor *work_target(tn_tensor *target, tn_dtype dtype);
/* Returns the cross entropy of the scores of a sample with its class. */
double work_entropy(const double *scores, int64_t count, int64_t truth);
/* Returns whether a number is larger than another one. NaN is larger than all others. */
static inline bool work_is_larger(double a, double b)
{
    return a > b || (isnan(a) && !isnan(b));
}
/* Writes a text such as "float32 [64, 10]". Returns `out`. */
const char *work_shape(const tn_tensor *tensor, char *out, size_t size);
/* Returns the elements as numbers, row-major; the caller frees them with tn_free. */
double *work_numbers(tn_tensor *tensor);
/* Seconds since some moment. */
double work_clock(void);

/* ---- names of classes (classes.c) ------------------------------------------------------------ */

typedef struct class_names {
    char **at;
    int64_t count;
} class_names;

/* Reads a JSON list of strings. `from` says in messages where the text comes from. */
tn_status classes_parse(const char *json, const char *from, class_names *out);
/* Reads a file with a JSON list, or with a name in each line. */
tn_status classes_read(const char *path, class_names *out);
tn_status classes_of_dataset(const tn_dataset *dataset, class_names *out);
/* Reads the names in the file of a model, if there are any. */
tn_status classes_of_model(const model_notes *notes, class_names *out);
void classes_free(class_names *names);
/* Returns the name of a class, or writes its number to `out` and returns that. */
const char *classes_name(const class_names *names, int64_t index, char *out, size_t size);

/* The numbers that the classes of a dataset have in a model. */
typedef struct class_map {
    int64_t *to; /* NULL: the same numbers */
    int64_t count;
} class_map;

/* Finds the classes of a dataset in a model by their names. Without names of both, the numbers are
 * the same. Fails if the model lacks a name. */
tn_status classes_match(const class_names *data, const class_names *model, class_map *out);
/* Returns a target with the numbers of the model. [scoped] [null-through] */
tn_tensor *classes_renumber(const class_map *map, tn_tensor *target);
void classes_map_free(class_map *map);

#endif
