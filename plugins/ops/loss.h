/* SPDX-License-Identifier: MIT
 *
 * The words in which losses are written. */
#ifndef TN_OPS_LOSS_H
#define TN_OPS_LOSS_H

#include "common.h"

/* ---- words ---- */

static inline tn_tensor *number(tn_tensor *like, double value)
{
    return like == NULL ? NULL : tn__common_number(like, value);
}

static inline tn_tensor *less(tn_tensor *a, tn_tensor *b)
{
    return tn_sub(a, b, NULL);
}

static inline tn_tensor *plus(tn_tensor *a, tn_tensor *b)
{
    return tn_add(a, b, NULL);
}

static inline tn_tensor *over(tn_tensor *a, tn_tensor *b)
{
    return tn_div(a, b, NULL);
}

static inline tn_tensor *times(tn_tensor *x, double factor)
{
    return factor == 1.0 ? x : tn_mul_scalar(x, factor);
}

static inline tn_tensor *more(tn_tensor *x, double value)
{
    return tn_add_scalar(x, value);
}

static inline tn_tensor *one_less(tn_tensor *x)
{
    return more(tn_neg(x), 1.0);
}

static inline tn_tensor *at_least(tn_tensor *x, double least)
{
    tn_clamp_options o = TN_CLAMP_OPTIONS;

    o.min = least;
    return tn_clamp(x, &o);
}

static inline tn_tensor *sum_of(tn_tensor *x, int64_t dim)
{
    tn_sum_options o = TN_SUM_OPTIONS;

    o.dims = (tn_ints){ &dim, 1 };
    return tn_sum(x, &o);
}

static inline tn_tensor *weighted(tn_tensor *y, tn_tensor *weight)
{
    return weight == TN_NONE ? y : tn_mul(y, weight);
}

/* ---- what becomes of the elements ---- */

static inline bool is(const char *text, const char *word)
{
    return text != NULL && strcmp(text, word) == 0;
}

static inline tn_tensor *reduced(tn_tensor *y, const char *reduction)
{
    if (is(reduction, "mean"))
        return tn_mean(y, NULL);
    return is(reduction, "sum") ? tn_sum(y, NULL) : y;
}

static inline tn_status check_word(const char *reduction)
{
    if (!is(reduction, "mean") && !is(reduction, "sum") && !is(reduction, "none"))
        return tn_fail(TN_ERR_VALUE,
                       "%s is not a valid value for reduction; none, mean and sum are",
                       reduction != NULL ? reduction : "None");
    return TN_OK;
}

static inline tn_status check(tn_infer *infer, const char *reduction)
{
    tn_status status = check_word(reduction);

    return status == TN_OK ? tn__common_open(infer) : status;
}

/* The inputs broadcast together. */
static inline tn_status check_each(tn_infer *infer, const char *reduction)
{
    tn_status status = check_word(reduction);

    if (status == TN_OK)
        status = tn__common_broadcast(infer);
    if (status == TN_OK && !is(reduction, "none"))
        infer->out[0].ndim = 0;
    return status;
}

#endif
