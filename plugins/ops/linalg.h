/* SPDX-License-Identifier: MIT
 *
 * Short names for steps on the last two dimensions of tensors, and checks, for the operators of
 * linear algebra. If an argument is NULL, because an earlier step failed, each of them returns NULL
 * without a new error. */
#ifndef TN_OPS_LINALG_H
#define TN_OPS_LINALG_H

#include "formula.h"

/* x^H: transposed, and conjugated if x is complex */
static inline tn_tensor *adjoint(tn_tensor *x)
{
    return x == NULL ? NULL : tn_transpose(tn__common_conj(x), -2, -1);
}

/* The diagonals of the matrices, as the last dimension */
static inline tn_tensor *diagonal_of(tn_tensor *x)
{
    return tn_diagonal(x, 0, -2, -1);
}

/* x with its n x n matrices' elements off the diagonal replaced by 0 */
static inline tn_tensor *only_diagonal(tn_tensor *x)
{
    return tn_tril(tn_triu(x));
}

/* x without the elements on and above the diagonal */
static inline tn_tensor *below_diagonal(tn_tensor *x)
{
    return tn_tril(x, -1);
}

/* x without the elements on and below the diagonal */
static inline tn_tensor *above_diagonal(tn_tensor *x)
{
    return tn_triu(x, 1);
}

/* The n x n identity with the dtype and device of `like` */
static inline tn_tensor *identity(tn_tensor *like, int64_t n)
{
    if (like == NULL)
        return NULL;
    return tn_eye(like, n, INT64_MIN, tn_tensor_dtype(like));
}

/* The sum of two gradients, each of which may be TN_NONE; TN_NONE if both are. */
static inline tn_tensor *sum_if(tn_tensor *a, tn_tensor *b)
{
    return a == TN_NONE ? b : b == TN_NONE ? a : plus(a, b);
}

/* Fails unless x has at least two dimensions. */
static inline tn_status is_matrix(const tn_view *x, const char *name)
{
    char text[TN__TEXT];

    if (x->ndim >= 2)
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME,
                   "%s: wrong shape, got %s; expected at least 2 dimensions: [..., m, n]", name,
                   tn__common_text(text, tn__common_shape(x)));
}

/* Fails unless the last two sizes of x are equal. */
static inline tn_status is_square(const tn_view *x, const char *name)
{
    char text[TN__TEXT];

    if (x->ndim >= 2 && x->shape[x->ndim - 1] == x->shape[x->ndim - 2])
        return TN_OK;
    return tn_fail(TN_ERR_RUNTIME, "%s: wrong shape, got %s; expected square matrices: [..., n, n]",
                   name, tn__common_text(text, tn__common_shape(x)));
}

/* Inference of operators on square matrices x whose only result has the shape and dtype of x. */
static inline tn_status infer_square(tn_infer *infer)
{
    const tn_view *x = infer->in[0];

    tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(x));
    return is_square(x, "x");
}

#endif
