/* SPDX-License-Identifier: MIT
 *
 * A batch while it is collected: one column for each entry of the samples. */
#ifndef TN_LIB_DATA_BATCH_H
#define TN_LIB_DATA_BATCH_H

#include "lib/data/private.h"

typedef struct tn__column tn__column;

/* Host tensors that batches for another device no longer need, for the next batches: pinned memory
 * takes long to allocate. */
typedef struct tn__buffers {
    pthread_mutex_t lock;
    tn_tensor **at;
    int64_t count, capacity;
    int64_t most; /* to keep */
} tn__buffers;

void tn__batch_buffers_free(tn__buffers *buffers);

/* A batch, or the failure of reading it. All zero: empty. */
typedef struct tn__batch {
    const tn_device *device; /* where the tensors go in the end */
    tn__buffers *buffers;
    int64_t most;    /* number of samples that there is space for */
    int64_t samples; /* number of samples that were added */
    int64_t first;   /* index of the first sample, for messages */
    tn__column *columns;
    int64_t count; /* of columns */
    int64_t skipped;
    char *skipped_words; /* the messages of the failures of these samples, each with its NUL */
    size_t skipped_size; /* bytes of the messages */
    tn_error error;      /* code TN_OK: none */
    tn_pack *made;       /* the result of transforms, on the host; NULL: there are none */
} tn__batch;

/* Adds a sample, whose index is for messages. The first sample decides which entries there are. */
tn_status tn__batch_add(tn__batch *batch, const tn_pack *sample, int64_t index);
/* Returns the finished batch: a pack with tensors on batch->device. Returns NULL and sets the error
 * on failure. */
tn_pack *tn__batch_pack(const tn__batch *batch);
/* Frees what the batch has and sets all its members to zero. */
void tn__batch_clear(tn__batch *batch);

#endif
