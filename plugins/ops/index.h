/* SPDX-License-Identifier: MIT
 *
 * Helpers of the operators that select elements by index. */
#ifndef TN_OPS_INDEX_H
#define TN_OPS_INDEX_H

#include "formula.h"

/* Fails with an error that names both inputs if `other` has another dtype than x. */
tn_status index_same_dtype(const tn_view *x, const tn_view *other, const char *name);
/* Inference of scatter and its kin: checks dtype and shape of x = in[0], index = in[1] and
 * src = in[2]. The result has the shape and dtype of x. */
tn_status index_into_infer(tn_infer *infer, int64_t dim);
/* The gradient of src, of which only the first corner was used: pads with zeros to src's shape. */
tn_tensor *index_corner(tn_tensor *gradient, tn_ints shape);
/* Fails if `index` has more than one dimension. */
tn_status index_row(const tn_view *index);
/* Inference of index_add, index_copy and similar operators: like index_into_infer(), but the index
 * is a vector that selects slices of x along dim, and src has one slice for each index. */
tn_status index_slices_infer(tn_infer *infer, int64_t dim);

/* A tensor of 0 dimensions as a vector with one element; other tensors unchanged. */
static inline tn_tensor *index_vector(tn_tensor *x)
{
    return x != NULL && tn_tensor_ndim(x) == 0 ? tn_reshape(x, TN_SHAPE(1)) : x;
}

/* All elements as a vector. */
static inline tn_tensor *index_flat(tn_tensor *x)
{
    return x != NULL ? tn_reshape(x, TN_SHAPE(tn_tensor_numel(x))) : NULL;
}

/* Adds `size` to negative indices, which count from the end. Others out of range stay as they are,
 * so that an error names the index of the caller. */
static inline tn_tensor *index_from_end(tn_tensor *index, int64_t size)
{
    tn_tensor *at = add_number(index, size);
    tn_tensor *inside = tn_clamp(at, tn_scalar_int(0), tn_scalar_int(size - 1));

    return tn_where(tn_eq(at, inside), at, index);
}

#endif
