/* SPDX-License-Identifier: MIT
 *
 * Checks and error messages for the operands of matrix products. */
#ifndef TN_OPS_MATMUL_H
#define TN_OPS_MATMUL_H

#include "common.h"

static inline tn_status tn__matmul_same_dtype(const tn_view *a, const tn_view *b)
{
    if (tn_view_dtype(a) == tn_view_dtype(b))
        return TN_OK;
    return tn_fail(
        TN_ERR_RUNTIME,
        "expected m1 and m2 to have the same dtype, but got: %s != %s; tn_cast one of them",
        tn_dtype_name(tn_view_dtype(a)), tn_dtype_name(tn_view_dtype(b)));
}

static inline tn_status tn__matmul_shapes(const tn_view *a, const tn_view *b, const char *rule)
{
    char text_a[TN__TEXT], text_b[TN__TEXT];

    return tn_fail(TN_ERR_RUNTIME, "inputs: wrong shape, got %s and %s; expected %s",
                   tn__common_text(text_a, tn__common_shape(a)),
                   tn__common_text(text_b, tn__common_shape(b)), rule);
}

static inline tn_status tn__matmul_all_same_dtype(const tn_infer *infer)
{
    for (int64_t i = 1; i < infer->n_in; i++)
        if (infer->in[i] != NULL && tn_view_dtype(infer->in[i]) != tn_view_dtype(infer->in[0]))
            return tn_fail(
                TN_ERR_RUNTIME,
                "inputs 0 and %lld: different dtypes, got %s and %s; expected the same: tn_cast "
                "one of them",
                (long long)i, tn_dtype_name(tn_view_dtype(infer->in[0])),
                tn_dtype_name(tn_view_dtype(infer->in[i])));
    return TN_OK;
}

/* Returns the product of two matrices, or of two batches, in the order of strides of `like`, whose
 * shape the result has: its columns are contiguous if those of `like` are. A gradient then has the
 * strides of its parameter even if the parameter was used transposed, and the optimizer copies
 * nothing. `like` may be NULL or TN_NONE, as for a factor that is not saved. */
tn_tensor *tn__matmul_like(tn_tensor *like, tn_tensor *a, tn_tensor *b);

#endif
