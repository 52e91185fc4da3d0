/* SPDX-License-Identifier: MIT
 *
 * What a thread takes from the random number generator while it runs a function, so that the
 * function can run once more with the same numbers. */
#ifndef TN_CORE_TENSOR_RANDOM_STATE_H
#define TN_CORE_TENSOR_RANDOM_STATE_H

#include "core/tensor/internal.h"

typedef struct tn__random_record {
    struct tn__random_record *outer;
    uint64_t (*taken)[2]; /* seed and first block of each call; freed by the owner */
    int64_t count, capacity;
    int64_t next; /* index in `taken` of the next call, while `replays` */
    bool replays;
} tn__random_record;

/* The innermost record of this thread, NULL without one. While it replays, calls of this thread
 * return the recorded numbers, and neither read nor change the generator of the process. */
extern _Thread_local tn__random_record *tn__random_here TN__TLS_NEAR;

static inline void tn__random_begin(tn__random_record *record, bool replays)
{
    record->outer = tn__random_here;
    record->next = 0;
    record->replays = replays;
    tn__random_here = record;
}

static inline void tn__random_end(tn__random_record *record)
{
    tn__random_here = record->outer;
}

#endif
