/* SPDX-License-Identifier: MIT
 *
 * Kept calls, and what a kernel prepared for them, which is counted, because runs and captured
 * graphs hold it. */
#ifndef TN_CORE_OP_PREPARED_H
#define TN_CORE_OP_PREPARED_H

#include "core/op/private.h"

typedef struct tn__prepared_data {
    _Atomic int32_t refs;
    const tn__kernel_entry *entry;
    const tn_device *device;
    void *data; /* the kernel's; NULL: it had nothing to prepare */
    uint64_t bytes;
    uint64_t versions[]; /* of each input's storage; 0 for those that are not constant */
} tn__prepared_data;

/* Calls the kernel's `prepare` on the current stream; NULL and an error. `data` of the views that
 * are not constant is NULL. */
tn__prepared_data *tn__prepared_data_new(const tn__kernel_entry *entry, const tn_device *device,
                                         const tn_call *call);
void tn__prepared_data_drop(void *data);

/* What an input must be. */
typedef struct tn__prepared_input {
    tn__storage *storage; /* of a constant input, kept; else NULL */
    uint64_t byte_offset; /* of a constant input */
    const int64_t *shape, *strides;
    uint8_t dtype;
    int8_t ndim; /* -1: absent */
} tn__prepared_input;

struct tn_prepared {
    const tn_op *op;
    const tn__kernel_entry *entry;
    const tn_device *device;
    const void *options;
    tn__prepared_input *in;
    tn_meta *meta;         /* of the outputs */
    const tn_view **views; /* of inputs, then outputs, as prepare sees them */
    int64_t n_in;
    int32_t n_out;
    tn_dtype dtype; /* that chose the kernel */
    uint64_t constant;
    size_t workspace;
    int64_t group; /* tn_infer */
    uint64_t only_read;
    tn__arena *arena; /* of all of this */
    pthread_mutex_t lock;
    tn__prepared_data *data; /* under the lock; NULL where the kernel does not prepare */
};

/* The call as `prepare` sees it. */
void tn__prepared_call(const tn_prepared *p, tn_call *call);
/* The prepared data, held for the caller, made again where a constant input was written; NULL where
 * the kernel does not prepare. */
tn_status tn__prepared_hold(tn_prepared *p, tn__prepared_data **out);

#endif
