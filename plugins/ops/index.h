/* SPDX-License-Identifier: MIT
 *
 * Helpers of the operators that select elements by index. */
#ifndef TN_OPS_INDEX_H
#define TN_OPS_INDEX_H

#include "formula.h"

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

/* Adds `size` to negative indices, which count from the end. */
static inline tn_tensor *index_from_end(tn_tensor *index, int64_t size)
{
    return tn_where(tn_lt(index, number(index, 0)), add_number(index, size), index);
}

#endif
