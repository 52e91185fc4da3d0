/* SPDX-License-Identifier: MIT
 *
 * Data for training: datasets, transforms of their samples, and loaders, which collect samples in
 * batches. Plugins provide datasets and transforms.
 * tenon-interface: tenon.data 0
 *
 * A sample is a value pack, such as an image and its class: (tensor, integer). Samples are on the
 * host. A batch is a value pack with the same entries, each of them for all samples of the batch.
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_DATA_H
#define TENON_DATA_H

#include <tenon/tensor.h>

TN_BEGIN_DECLS

typedef struct tn_dataset tn_dataset;
typedef struct tn_loader tn_loader;

/* ---- datasets -------------------------------------------------------------------------------- */

/* Opens a dataset from a spec such as "MNIST(%q, train=True)". The format is that of tn_snprint.
 * [owned] */
TN_API tn_dataset *tn_dataset_newv(const char *format, va_list args);
TN_API tn_dataset *tn_dataset_new(const char *format, ...);
/* Like tn_dataset_new, but `text` is the spec itself and not a format. [owned] */
TN_API tn_dataset *tn_dataset_parse(const char *text);
/* Creates a dataset of tensors that have the same size in dimension 0. Sample i has element i of
 * each tensor, without gradients, in the memory of the tensor. Adds references to the tensors,
 * which must be on the host. [owned]
 * [array: tensors count] */
TN_API tn_dataset *tn_dataset_of_tensors(tn_tensor *const *tensors, int64_t count);
/* Creates a dataset with the samples of `dataset` whose indices are given. A negative index counts
 * from the end. [owned]
 * [null-through] */
TN_API tn_dataset *tn_dataset_subset(tn_dataset *dataset, tn_ints indices);
/* Creates a dataset with the samples of `dataset`, to which the transform is applied when a sample
 * is read. `text` is the spec of a transform, or a list of specs: "[RandomCrop(32, padding=4),
 * RandomHorizontalFlip()]". [owned] [null-through] */
TN_API tn_dataset *tn_dataset_transform(tn_dataset *dataset, const char *text);
/* Adds a reference. [owned] [null-through] */
TN_API tn_dataset *tn_dataset_keep(tn_dataset *dataset);
/* Drops a reference; the last one closes the dataset. [null-ok: dataset] */
TN_API void tn_dataset_drop(tn_dataset *dataset);

/* Returns the number of samples; -1 if `dataset` is NULL. */
TN_API int64_t tn_dataset_count(const tn_dataset *dataset);
/* Appends the entries of a sample to `out`; on failure, `out` is unchanged. A negative index counts
 * from the end. `epoch` and the seed select the random numbers of transforms: the same seed, epoch
 * and index give the same sample. [null-through] */
TN_API tn_status tn_dataset_get(tn_dataset *dataset, int64_t index, uint64_t seed, int64_t epoch,
                                tn_pack *out);
/* Returns the number of classes that the dataset has, or 0 if it has none; -1 if `dataset` is
 * NULL. */
TN_API int64_t tn_dataset_classes(const tn_dataset *dataset);
/* Returns the name of a class, NULL without an error if it has none. [borrowed] */
TN_API const char *tn_dataset_class_name(const tn_dataset *dataset, int64_t index);

/* ---- loaders --------------------------------------------------------------------------------- */

/* Creates a loader, which collects the samples of a dataset in batches. The text has options:
 * "batch_size=64, shuffle=True, workers=2". The format is that of tn_snprint.
 *
 *   batch_size=1     samples in a batch; the last batch of an epoch may be smaller
 *   shuffle=False    takes the samples in a random order, another one in each epoch
 *   drop_last=False  leaves out the last batch if it is smaller; with several ranks, also the
 *                    samples that remain when the others are divided evenly
 *   seed=None        seed of the order and of transforms; None: taken from tn_random_take
 *   workers=0        threads that read batches ahead; 0: tn_loader_next reads
 *   prefetch=2       batches that each of these threads reads ahead
 *   rank=0, ranks=1  the samples of this process, of `ranks` processes: in the order of the
 *                    epoch, every one whose place is `rank` modulo `ranks`. All processes get
 *                    equally many: unless drop_last, the first samples of the order are repeated
 *                    at its end. The processes need the same seed
 *   device=None      device of the tensors of a batch; None: the default device
 *   skip_damaged=False  leaves out samples that fail with TN_ERR_FORMAT, _IO, _VALUE, _REFUSED
 *                    or _NOT_IMPLEMENTED, counts and logs them. The other batches stay the same; a
 *                    batch without samples is left out
 *   batch_transform=None  the spec of a transform of batches, such as MixUp(), or a list of specs;
 *                    it is applied by the thread that reads the batch
 *
 * The batches do not depend on `workers` or `prefetch`. The loader keeps a reference to the
 * dataset. A child process cannot use a loader whose threads its parent has started. [owned]
 * [null-through] */
TN_API tn_loader *tn_loader_newv(tn_dataset *dataset, const char *format, va_list args);
TN_API tn_loader *tn_loader_new(tn_dataset *dataset, const char *format, ...);
/* Like tn_loader_new, but `text` has the options themselves. [owned] [null-through] */
TN_API tn_loader *tn_loader_parse(tn_dataset *dataset, const char *text);
/* Stops the threads of the loader and frees it. [null-ok: loader] */
TN_API void tn_loader_drop(tn_loader *loader);

/* Returns the next batch of the epoch, or NULL at the end of the epoch and on errors (tn_failed).
 * After the end, the next call begins the next epoch. The entries of the batch are those of the
 * samples: tensors are stacked along a new dimension 0; integers, floats and booleans become a
 * tensor of int64, float64 or bool; strings become a list of strings; lists, tuples and
 * dictionaries are collected entry by entry; bytes become a list of bytes. All samples need the
 * same entries, with tensors of equal shapes and dtypes. Gradients do not flow to the samples.
 * After a failure, the batches before it have been returned, and the next call reads the same batch
 * again. The batch belongs to the loader, and is valid until the next call. [borrowed]
 * [null-through] */
TN_API tn_pack *tn_loader_next(tn_loader *loader);
/* Returns the number of batches of an epoch; -1 if `loader` is NULL. */
TN_API int64_t tn_loader_count(const tn_loader *loader);
/* tn_loader_epoch returns the number of the current epoch, from 0 on; tn_loader_position the number
 * of batches of this epoch that tn_loader_next has returned. Both return -1 if `loader` is NULL. */
TN_API int64_t tn_loader_epoch(const tn_loader *loader);
TN_API int64_t tn_loader_position(const tn_loader *loader);
/* Returns the number of samples that were left out because of skip_damaged; -1 if `loader` is
 * NULL. */
TN_API int64_t tn_loader_skipped(const tn_loader *loader);
/* Makes the order of the samples a random one in which sample i is drawn with a probability
 * proportional to weights[i], `draws` samples in an epoch. With `replacement`, a sample can be
 * drawn more than once in an epoch, and is then the same each time. Must be called at the start of
 * an epoch, and before tn_loader_set_state. [array: weights count]
 * [null-through] */
TN_API tn_status tn_loader_set_weights(tn_loader *loader, const double *weights, int64_t count,
                                       int64_t draws, bool replacement);
/* tn_loader_state_text writes seed, epoch and position, and what has to be the same in a loader
 * that continues, as text: at most `size` bytes including the final NUL; it returns the length of
 * the complete text, -1 on error. tn_loader_set_state continues from such a text: the next batch is
 * the one that would have been next then. It fails if the text is that of a loader with another
 * number of samples, batch_size, shuffle, drop_last or ranks; rank, workers, prefetch and device
 * may differ. [null-ok: out] */
TN_API int64_t tn_loader_state_text(const tn_loader *loader, char *out, size_t size);
TN_API tn_status tn_loader_set_state(tn_loader *loader, const char *text);

/* ---- for plugins ----------------------------------------------------------------------------- */

/* A key of random numbers, for transforms. The layout never changes. */
typedef struct tn_random_key {
    uint64_t seed;
    uint64_t counter;
} tn_random_key;

/* Returns 64 random bits and advances the key. The numbers depend on the key alone. */
TN_ATTR(unused) static inline uint64_t tn_random_bits(tn_random_key *key)
{
    uint64_t x = key->seed + 0x9E3779B97F4A7C15u * ++key->counter;

    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}
/* Returns a random number in [low, high). */
TN_ATTR(unused)
static inline double tn_random_between(tn_random_key *key, double low, double high)
{
    return low + (high - low) * ((double)(tn_random_bits(key) >> 11) / 9007199254740992.0);
}
/* Returns a random integer in [0, count). */
TN_ATTR(unused) static inline int64_t tn_random_below(tn_random_key *key, int64_t count)
{
    uint64_t most = (uint64_t)count, bits, limit = UINT64_MAX - UINT64_MAX % (most > 0 ? most : 1);

    if (most == 0)
        return 0;
    do
        bits = tn_random_bits(key);
    while (bits >= limit);
    return (int64_t)(bits % most);
}

/* The result of `open` of a dataset. */
typedef struct tn_dataset_open {
    tn_head head;
    const struct tn_dataset_def *def;
    const void *options;
    void *handle;                   /* for the plugin: passed to `get` and `close` */
    int64_t count;                  /* number of samples */
    int64_t classes;                /* number of classes; 0: none */
    const char *const *class_names; /* `classes` names that are valid until `close`; NULL: none */
} tn_dataset_open;

/* The arguments of `get` of a dataset. */
typedef struct tn_sample_args {
    tn_head head;
    const struct tn_dataset_def *def;
    void *handle;
    int64_t index; /* 0 to count - 1 */
    uint64_t seed; /* for a dataset that reads another one with tn_dataset_get */
    int64_t epoch;
    tn_pack *out;
    uint64_t flags; /* TN_SAMPLE_* */
} tn_sample_args;

/* Bits of tn_sample_args.flags. */
enum {
    /* The first transform takes an image or a sound as it is in its file (TN_TRANSFORM_ENCODED).
     * Then `get` may add a tuple of two values instead of the tensor: a name for messages, such as
     * the path, and the bytes of the file. */
    TN_SAMPLE_ENCODED = 1
};

/* A source of samples. `open` checks the files and sets the members of *args that follow
 * `options`; if it fails, the core does not call `close`. The options live until `close`. `get`
 * appends the entries of a sample to args->out; any thread may call it at any time, also several
 * threads at the same time. It runs in a scope of its own, and tensors are created on the host. */
typedef struct tn_dataset_def {
    tn_head head;
    const char *name;
    const char *help;
    void *user; /* for the plugin; the core does not read it */
    const tn_option *options;
    uint64_t data_size; /* size of the struct that the option table describes */
    uint64_t flags;     /* 0 */
    tn_status (*open)(tn_dataset_open *args);
    tn_status (*get)(const tn_sample_args *args);
    void (*close)(void *handle); /* may be NULL */
} tn_dataset_def;

/* The arguments of `apply` of a transform. */
typedef struct tn_transform_args {
    tn_head head;
    const struct tn_transform_def *def;
    const void *options;
    /* The sample. Its tensors must not be changed, because they may belong to the dataset. */
    const tn_pack *in;
    tn_pack *out; /* empty; gets the transformed sample */
    /* For random numbers. Differs for every seed, epoch, index of a sample and place in a list of
     * transforms. */
    tn_random_key random;
    int64_t classes; /* number of classes of the dataset; 0: none */
} tn_transform_args;

/* Bits of tn_transform_def.flags. */
enum {
    /* `in` and `out` are batches, as tn_loader_next returns them, but on the host. args->random
     * differs for every seed, epoch, rank, batch and place in a list. */
    TN_TRANSFORM_BATCH = 1,
    /* If the transform is the first one after the dataset, it may get an image or a sound as it is
     * in its file: see TN_SAMPLE_ENCODED. So it can decode no more than it needs. */
    TN_TRANSFORM_ENCODED = 2
};

/* A transform of samples, or of batches. Any thread may call its functions, also several threads at
 * the same time. `apply` runs in a scope of its own, and tensors are created on the host. */
typedef struct tn_transform_def {
    tn_head head;
    const char *name;
    const char *help;
    void *user; /* for the plugin; the core does not read it */
    const tn_option *options;
    uint64_t data_size; /* size of the struct that the option table describes */
    uint64_t flags;     /* TN_TRANSFORM_* */
    /* Checks the options; may be NULL. */
    tn_status (*check)(const struct tn_transform_def *self, const void *options);
    tn_status (*apply)(tn_transform_args *args);
} tn_transform_def;

TN_END_DECLS
#endif
