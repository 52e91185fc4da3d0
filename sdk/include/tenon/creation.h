/* SPDX-License-Identifier: MIT
 *
 * New tensors of the default dtype on the default device, by shape: tn_zeros(TN_SHAPE(2, 3)). For
 * another dtype or device there is tn_tensor_full; for a tensor like another one, tn_fill(x, 0),
 * tn_uniform(x), tn_normal(x).
 *
 * Tags in brackets: see base.h. */
#ifndef TENON_CREATION_H
#define TENON_CREATION_H

#include <tenon/ops.h>

TN_BEGIN_DECLS

/* Filled with 0. [scoped] */
TN_ATTR(unused) static inline tn_tensor *tn_zeros(tn_ints shape)
{
    return tn_tensor_full(shape, 0.0, TN_DTYPE_AUTO, NULL);
}

/* Filled with 1. [scoped] */
TN_ATTR(unused) static inline tn_tensor *tn_ones(tn_ints shape)
{
    return tn_tensor_full(shape, 1.0, TN_DTYPE_AUTO, NULL);
}

/* Random numbers, uniform in [0, 1). [scoped] */
TN_ATTR(unused) static inline tn_tensor *tn_rand(tn_ints shape)
{
    return tn_uniform(tn_tensor_empty(shape, TN_DTYPE_AUTO, NULL));
}

/* Random numbers of the normal distribution with mean 0 and standard deviation 1. [scoped] */
TN_ATTR(unused) static inline tn_tensor *tn_randn(tn_ints shape)
{
    return tn_normal(tn_tensor_empty(shape, TN_DTYPE_AUTO, NULL));
}

TN_END_DECLS
#endif
