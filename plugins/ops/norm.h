/* SPDX-License-Identifier: MIT
 *
 * Helpers for normalization over the last dimensions and by channels. */
#ifndef TN_OPS_NORM_H
#define TN_OPS_NORM_H

#include "formula.h"

/* Returns the dtype in which mean and variance are computed: at least float32. */
static inline tn_dtype tn__normal_wide(tn_dtype dtype)
{
    return tn_dtype_size(dtype) < 4 ? TN_F32 : dtype;
}

static inline tn_tensor *tn__normal_as_wide(tn_tensor *x)
{
    return x == NULL || x == TN_NONE ? x : tn_cast(x, tn__normal_wide(tn_tensor_dtype(x)));
}

/* Casts a mean or variance to the wider of its own dtype (at least float32) and x's dtype. */
static inline tn_tensor *tn__normal_moment(tn_tensor *moment, tn_tensor *x)
{
    if (moment == NULL || moment == TN_NONE || x == NULL)
        return moment;
    return tn_cast(moment,
                   tn_dtype_promote(tn__normal_wide(tn_tensor_dtype(moment)), tn_tensor_dtype(x)));
}

/* 1 / sqrt(var + eps) */
static inline tn_tensor *tn__normal_spread(tn_tensor *var, double eps)
{
    return tn_rsqrt(tn_add_scalar(var, eps));
}

/* Returns relu of x, or with a given `max` numbers from 0 to max. NULL if x is NULL. */
static inline tn_tensor *tn__normal_relu(tn_tensor *x, double max)
{
    if (x == NULL)
        return NULL;
    return tn__given_number(max) ? tn_hardtanh(x, 0.0, max) : tn_relu(x);
}

/* Fails if `max`, a largest result of relu, is given and is not positive, or if dtype might round
 * it: the gradient compares results with it. */
static inline tn_status tn__normal_check_max(double max, tn_dtype dtype)
{
    if (!tn__given_number(max))
        return TN_OK;
    if (max <= 0.0)
        return tn_fail(TN_ERR_VALUE, "max: out of range, got %g; expected a number greater than 0",
                       max);
    return tn_dtype_size(dtype) >= 4 || is_exact(max)
               ? TN_OK
               : tn_fail(TN_ERR_VALUE,
                         "max: rounded by %s, got %g; expected a number with at most 8 significant "
                         "bits",
                         tn_dtype_name(dtype), max);
}

#endif
