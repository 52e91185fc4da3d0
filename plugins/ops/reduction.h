/* SPDX-License-Identifier: MIT
 *
 * Helpers for all reductions. */
#ifndef TN_OPS_REDUCTION_H
#define TN_OPS_REDUCTION_H

#include "formula.h"

static inline tn_status tn__reduce_infer(tn_infer *infer, tn_ints dims, bool keepdim,
                                         tn_dtype dtype)
{
    bool reduced[TN_MAX_DIMS];
    tn_status status = tn__common_dims(dims, infer->in[0]->ndim, reduced);

    if (status != TN_OK)
        return status;
    infer->out[0].dtype = dtype;
    tn__common_reduced(infer->in[0], reduced, keepdim, &infer->out[0]);
    return TN_OK;
}

/* Returns the number of elements that are reduced to one result. */
static inline double members(tn_ints shape, tn_ints dims)
{
    bool reduced[TN_MAX_DIMS];
    double n = 1;

    if (tn__common_dims(dims, (int32_t)shape.count, reduced) != TN_OK)
        return 0;
    for (int64_t d = 0; d < shape.count; d++)
        n *= reduced[d] ? (double)shape.at[d] : 1;
    return n;
}

static inline tn_tensor *sum_of(tn_tensor *x, tn_ints dims, bool keepdim)
{
    return tn_sum(x, dims, keepdim);
}

static inline tn_tensor *mean_of(tn_tensor *x, tn_ints dims, bool keepdim)
{
    return tn_mean(x, dims, keepdim);
}

static inline tn_tensor *or_zero(tn_tensor *unless, tn_tensor *x)
{
    return tn_where(unless, tn__scalar_number(x, 0.0), x);
}

static inline tn_tensor *like(tn_tensor *x, tn_tensor *other)
{
    return x == NULL || other == NULL ? NULL : tn_cast(x, tn_tensor_dtype(other));
}

#endif
