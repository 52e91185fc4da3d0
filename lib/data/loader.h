/* SPDX-License-Identifier: MIT
 *
 * The loader: its options, the order of the samples, its threads. */
#ifndef TN_LIB_DATA_LOADER_H
#define TN_LIB_DATA_LOADER_H

#include "lib/data/batch.h"

#include <unistd.h>

typedef struct tn__loader_options {
    int64_t batch_size;
    bool shuffle, drop_last;
    int64_t seed; /* INT64_MIN: None */
    int64_t workers, prefetch, rank, ranks;
    const char *device; /* NULL: the default device */
    bool skip_damaged;
    tn_value batch_transform; /* None: none */
} tn__loader_options;

/* The order of the samples in an epoch. */
typedef struct tn__order {
    int64_t draws; /* number of samples of all ranks, without those that fill up the last batch */
    double *tree;  /* sums of weights (loader_order.c); NULL: no weights */
    int64_t leaves;
    bool replacement;
    int64_t *at; /* the indices of the current epoch; NULL: in the order of the dataset */
    bool ready;  /* `at` is that of the current epoch */
} tn__order;

/* A batch that was read ahead. */
typedef struct tn__slot {
    tn__batch batch;
    bool ready;
} tn__slot;

/* The threads of a loader. `lock` guards the members that are not atomic. */
typedef struct tn__crew {
    pthread_mutex_t lock;
    pthread_cond_t work;  /* there may be a batch to read, or the threads have to end */
    pthread_cond_t ready; /* a batch was read, or abandoned */
    pthread_t *threads;
    _Atomic int64_t count; /* of threads that run */
    _Atomic pid_t process; /* the process that started them; 0: none did */
    bool running;          /* batches of the current epoch may be read */
    bool stop;             /* the threads have to end */
    /* What the threads are reading is not wanted any more: they stop after this sample. */
    _Atomic bool halt;
    int64_t claimed; /* the next batch that a thread takes */
    int64_t given;   /* the next batch that tn_loader_next returns */
    int64_t busy;    /* number of threads that read a batch */
    tn__slot *slots; /* batch n is in slot n % window */
    int64_t window;
    struct tn_loader *next; /* in the list of loaders that have threads */
} tn__crew;

struct tn_loader {
    tn_dataset *dataset;
    tn__loader_options options;
    tn__option_block *option_block;
    tn__steps steps; /* transforms of batches */
    const tn_device *device;
    tn_dtype dtype; /* the default dtype when the loader was made */
    uint64_t seed;
    tn__order order;
    int64_t samples; /* of an epoch, of this rank */
    /* Held during every call of a public function that changes the loader. */
    pthread_mutex_t gate;
    _Atomic int64_t epoch, position, skipped, batches;
    tn__buffers buffers;
    tn_pack *batch; /* what tn_loader_next returned last */
    tn__crew crew;
};

/* ---- loader.c ---- */

/* Reads batch `number` of the current epoch. A failure is in batch->error, and not recorded in the
 * thread. Any thread may call this function. */
void tn__loader_read(tn_loader *loader, int64_t number, tn__batch *batch);
/* Computes how many samples and batches an epoch has. */
void tn__loader_measure(tn_loader *loader);
/* Parses options such as "batch_size=4, shuffle=True" by a table to `data`. `name` is for messages.
 * The caller frees *keep. */
tn_status tn__loader_parse(const tn_option *table, const char *name, const char *text, void *data,
                           tn__option_block **block);

/* ---- loader_transform.c ---- */

/* Applies the transforms of batches to batch `number`, which has samples, on the host. */
tn_status tn__loader_transform(const tn_loader *loader, int64_t number, tn__batch *batch);
/* Returns the finished batch on the device of the loader, NULL on failure. */
tn_pack *tn__loader_pack(const tn_loader *loader, const tn__batch *batch);

/* ---- loader_order.c ---- */

/* Makes the order of the current epoch, unless it is ready. */
tn_status tn__loader_order(tn_loader *loader);
/* Returns the index of sample `number` of this rank. */
int64_t tn__loader_index(const tn_loader *loader, int64_t number);
void tn__loader_order_free(tn__order *order);

/* ---- loader_worker.c ---- */

tn_status tn__loader_crew_init(tn__crew *crew);
/* Moves the batch `number` to *batch, after a thread has read it. Starts the threads if they do not
 * run. The batches of an epoch must be taken in their order. */
tn_status tn__loader_take(tn_loader *loader, int64_t number, tn__batch *batch);
/* Drops what was read ahead. The next batch to take is `number`. */
void tn__loader_rewind(tn_loader *loader, int64_t number);
/* Returns whether the threads of this loader were lost by a fork. */
bool tn__loader_is_lost(const tn_loader *loader);
/* Ends the threads and frees what they have. */
void tn__loader_crew_free(tn_loader *loader);

#endif
