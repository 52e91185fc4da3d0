/* SPDX-License-Identifier: MIT
 *
 * The arithmetic of reductions. */
#ifndef TN_COMM_LOCAL_REDUCE_H
#define TN_COMM_LOCAL_REDUCE_H

#include <tenon/plugin.h>

enum {
    REDUCE_RANKS = 256 /* the most sources, and so the most ranks of a group */
};

/* The dtypes that reduce_tree accepts. */
#define REDUCE_DTYPES TN_MASK_ALL

/* Combines `count` elements at each of the `sources` and stores the result at `out`, which may be
 * one of the sources. The order is that of a binary tree: the first half of the sources, which is
 * the largest power of two below their number, is combined, then the second half, then both. So the
 * bits of the result depend only on the sources and their order. Floats of 8 and 16 bits are
 * combined in float32 and rounded once, at the end. Sums and products of integers wrap around; of
 * bool, they are `or` and `and`. NaN is the least and the largest number. */
void reduce_tree(tn_dtype dtype, tn_reduction reduction, const char *const *sources, int32_t n,
                 int64_t count, char *out);

#endif
