/* SPDX-License-Identifier: MIT
 *
 * Helpers for all losses. */
#ifndef TN_OPS_LOSS_H
#define TN_OPS_LOSS_H

#include "formula.h"

static inline tn_tensor *sum_dim(tn_tensor *x, int64_t dim)
{
    return tn_sum(x, TN_INTS(dim));
}

static inline tn_tensor *weighted(tn_tensor *y, tn_tensor *weight)
{
    return weight == TN_NONE ? y : tn_mul(y, weight);
}

/* ---- reduction ---- */

static inline tn_tensor *reduced(tn_tensor *y, const char *reduction)
{
    if (is(reduction, "mean"))
        return tn_mean(y);
    return is(reduction, "sum") ? tn_sum(y) : y;
}

static inline tn_status check_reduction(const char *reduction)
{
    if (!is(reduction, "mean") && !is(reduction, "sum") && !is(reduction, "none"))
        return tn_fail(TN_ERR_VALUE, "reduction: unknown, got %q; expected none, mean or sum",
                       reduction);
    return TN_OK;
}

static inline tn_status check(tn_infer *infer, const char *reduction)
{
    tn_status status = check_reduction(reduction);

    if (status == TN_OK)
        status = tn__common_promoted(infer, TN_MASK_FLOAT, "a float dtype");
    return status == TN_OK ? tn__common_open(infer) : status;
}

/* Like check(), for losses whose inputs broadcast together. */
static inline tn_status check_each(tn_infer *infer, const char *reduction)
{
    tn_status status = check_reduction(reduction);

    if (status == TN_OK)
        status = tn__common_promoted(infer, TN_MASK_FLOAT, "a float dtype");
    if (status == TN_OK)
        status = tn__broadcast_all(infer);
    if (status == TN_OK && !is(reduction, "none"))
        infer->out[0].ndim = 0;
    return status;
}

/* ---- definitions ---- */

#define LOSS_INFER(name, check_, check_more)                                                       \
    static tn_status name##_infer(tn_infer *infer)                                                 \
    {                                                                                              \
        const tn_##name##_options *o = infer->options;                                             \
        tn_status status = check_(infer, o->reduction);                                            \
        return status == TN_OK ? check_more : status;                                              \
    }
/* Defines a loss whose elements are `expression`, in terms of the inputs in[] and the options o. */
#define LOSS(name, check_more, expression)                                                         \
    LOSS_INFER(name, check, check_more)                                                            \
    DECOMPOSE(name, reduced(expression, o->reduction))                                             \
    TN__OP(name, .infer = name##_infer, .decompose = name##_decompose)
/* Like LOSS, for losses whose inputs broadcast together. Devices may have kernels for these losses.
 * A kernel runs if no gradient is recorded or if the loss has a derivative. */
#define EACH(name, check_more, expression, derive_)                                                \
    LOSS_INFER(name, check_each, check_more)                                                       \
    DECOMPOSE(name, reduced(expression, o->reduction))                                             \
    TN__OP(name, .infer = name##_infer, .derive = derive_, .decompose = name##_decompose)

#endif
