/* SPDX-License-Identifier: MIT
 *
 * Prepared calls (tn_op_prepare), and the data that a kernel prepared for them. The data has a
 * reference count, because calls in progress and captured graphs hold it. */
#ifndef TN_CORE_OP_PREPARED_H
#define TN_CORE_OP_PREPARED_H

#include "core/op/private.h"

typedef struct tn__prepared_data {
    _Atomic int32_t refs;
    const tn__kernel_entry *entry;
    const tn_device *device;
    void *data; /* the kernel's data; NULL: the kernel had nothing to prepare */
    uint64_t bytes;
    /* The version of each input's storage when the data was made; 0: the input is not constant. */
    uint64_t versions[];
} tn__prepared_data;

/* Sets the prepared data of a call that no program prepared, if the core keeps some for its weights
 * (tn_kernel_def.prepare_key). Returns it with a reference for the caller, or NULL. Prepares data
 * when the weights were the same in earlier calls; a failure to do so is no failure of the call. */
tn__prepared_data *tn__weight_cache_hold(const tn__work *work, const tn__kernel_entry *entry,
                                         tn_call *call);

/* What an input of each run must match. */
typedef struct tn__prepared_input {
    tn__storage *storage; /* of a constant input, with a reference; NULL for other inputs */
    uint64_t byte_offset; /* of a constant input */
    const int64_t *shape, *strides;
    uint8_t dtype;
    int8_t ndim; /* -1: the input is absent */
} tn__prepared_input;

struct tn_prepared {
    const tn_op *op;
    const tn__kernel_entry *entry;
    const tn_device *device;
    const void *options;
    tn__prepared_input *in;
    tn_meta *meta;         /* of the outputs */
    const tn_view **views; /* of the inputs, then of the outputs, as `prepare` gets them */
    int64_t n_in;
    int64_t n_known; /* the inputs that the kernel knows */
    int32_t n_out;
    tn_dtype dtype; /* the dtype that chose the kernel */
    uint64_t constant;
    size_t workspace;
    int64_t group; /* group and only_read: as inference set them (tn_infer) */
    uint64_t only_read;
    tn__arena *arena; /* all memory of the members above */
    pthread_mutex_t lock;
    tn__prepared_data *data; /* protected by the lock; NULL: the kernel has no `prepare` */
};

/* Fills in the call as `prepare` gets it. */
void tn__prepared_call(const tn_prepared *p, tn_call *call);
/* Returns the prepared data in *out, with a reference for the caller. Prepares it again if a
 * constant input was written. *out is NULL if the kernel has no `prepare`. */
tn_status tn__prepared_hold(tn_prepared *p, tn__prepared_data **out);

#endif
