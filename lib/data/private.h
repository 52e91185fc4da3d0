/* SPDX-License-Identifier: MIT
 *
 * Datasets, transforms and batches: what the files of this folder share. */
#ifndef TN_LIB_DATA_PRIVATE_H
#define TN_LIB_DATA_PRIVATE_H

#include "core/grad/internal.h"
#include "core/tensor/boundary.h"
#include "core/tensor/thread.h"

#include <tenon/data.h>

/* ---- datasets -------------------------------------------------------------------------------- */

/* The sample to read: its index, from 0, and what selects the random numbers. */
typedef struct tn__sample {
    int64_t index;
    uint64_t seed;
    int64_t epoch;
    bool encoded; /* images are needed as they are in their files, not decoded */
} tn__sample;

/* What differs between the kinds of datasets. */
typedef struct tn__dataset_kind {
    /* Appends the entries of a sample to `out`, which is empty. */
    tn_status (*get)(tn_dataset *dataset, const tn__sample *sample, tn_pack *out);
    /* Frees what the dataset has, not the dataset itself. */
    void (*close)(tn_dataset *dataset);
} tn__dataset_kind;

/* The first member of the struct of each kind. */
struct tn_dataset {
    _Atomic int32_t refs;
    const tn__dataset_kind *kind;
    int64_t count;
    /* the dataset whose samples this one has, a reference; NULL: it has its own */
    tn_dataset *source;
    /* without a source: the name for messages, and the classes */
    const char *name;
    int64_t classes;
    const char *const *class_names;
    /* the index in `source` of each sample; NULL: the same index */
    const int64_t *indices;
    /* number of transforms that are applied to a sample, including those of `source` */
    int64_t transforms;
};

/* Allocates a dataset of a kind, whose struct has `size` bytes. Returns NULL and sets the error if
 * memory runs out. */
tn_dataset *tn__dataset_make(const tn__dataset_kind *kind, size_t size);
/* Inserts "dataset MNIST: sample 17: " before the message of the last failure. The name and the
 * index are those of the dataset that has the samples. Returns the code of the failure. */
tn_status tn__dataset_prefix(const tn_dataset *dataset, int64_t index);
/* Removes "NAME: " from the message of the last failure, which plugins put there as well. */
void tn__data_cut(const char *name);
/* Begin and end the modes of the thread in which datasets and transforms run: new tensors are on
 * the host, and gradients are off. tn__dataset_end() must follow, also after a failure. */
tn_status tn__dataset_begin(void);
void tn__dataset_end(void);
/* Reads a sample between tn__dataset_begin() and tn__dataset_end(). `out` is empty; after a failure
 * its contents are undefined. */
static inline tn_status tn__dataset_read(tn_dataset *dataset, const tn__sample *sample,
                                         tn_pack *out)
{
    return dataset->kind->get(dataset, sample, out);
}

/* Returns the id of a plugin, "" for the program. */
static inline const char *tn__data_plugin(const tn__plugin *plugin)
{
    return plugin->id != NULL ? plugin->id : "";
}

/* Reads the options of a dataset or transform, whose kind and name are in `what`, to a new struct
 * of `size` bytes. The caller frees it and *keep. Returns NULL and sets the error on failure. */
void *tn__data_options(const tn_option *table, uint64_t size, const char *what,
                       const tn__spec *spec, tn__option_block **block);

/* ---- transforms ------------------------------------------------------------------------------ */

/* A transform with its options. */
typedef struct tn__step {
    const tn_transform_def *def;
    tn__plugin *plugin;
    void *options;
    tn__option_block *option_block;
} tn__step;

/* Transforms that are applied one after the other. All zero: none. */
typedef struct tn__steps {
    tn__step *at;
    int64_t count;
} tn__steps;

/* What a transform is applied to: the first three select its random numbers. */
typedef struct tn__work {
    uint64_t seed;
    int64_t epoch, index;
    int64_t classes; /* of the dataset, 0: none */
} tn__work;

/* Opens the transforms of a spec or of a list of specs: those of batches if `batches` is set, of
 * samples otherwise. tn__transform_list_free() must follow, also after a failure. */
tn_status tn__transform_list_open(tn__steps *steps, const char *text, bool batches);
/* Like tn__transform_list_open(), from a value: a spec, a text, or a list of them. */
tn_status tn__transform_list_open_value(tn__steps *steps, const tn_value *value, bool batches);
void tn__transform_list_free(tn__steps *steps);
/* Applies one transform between tn__dataset_begin() and tn__dataset_end(). `place` is its place in
 * the list. */
tn_status tn__transform_list_apply(const tn__step *step, const tn__work *work, int64_t place,
                                   const tn_pack *in, tn_pack *out);

/* ---- random numbers -------------------------------------------------------------------------- */

/* Returns a key that depends on all four numbers. */
static inline tn_random_key tn__data_key(uint64_t seed, int64_t epoch, int64_t index, int64_t place)
{
    const uint64_t parts[] = { (uint64_t)epoch, (uint64_t)index, (uint64_t)place };
    tn_random_key key = { seed, 0 };

    for (int64_t i = 0; i < tn__countof(parts); i++) {
        uint64_t mixed = tn_random_bits(&key);

        key.seed = mixed ^ (parts[i] * 0xD6E8FEB86659FD93u);
        key.counter = (uint64_t)i + 1;
    }
    key.seed = tn_random_bits(&key);
    key.counter = 0;
    return key;
}

#endif
