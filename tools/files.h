/* SPDX-License-Identifier: MIT
 *
 * Shared by tenon inspect and tenon convert. */
#ifndef TN_TOOLS_FILES_H
#define TN_TOOLS_FILES_H

#include "tool.h"

/* Returns the bytes of the elements of a tensor. */
int64_t files_bytes(const tn_tensor *tensor);
/* Adds up the elements and bytes of all tensors of a state. Returns the number of tensors. */
int64_t files_sum(const tn_state *state, int64_t *elements, int64_t *bytes);
/* Writes a text such as "2 tensors, 10 values, 34 elements, 120 B". Values are the entries of the
 * state that are not tensors; elements and bytes are those of the tensors. */
void files_count_text(const tn_state *state, char *out, size_t size);

/* ---- statistics (statistics.c) --------------------------------------------------------------- */

enum { STATISTICS_BINS = 16 };

/* What the values of a tensor are like. NaN is only counted; minimum, maximum and mean are those of
 * the other values, the bins those of the finite ones. */
typedef struct statistics {
    bool known; /* false: no values, complex, or a dtype that cannot be converted to float64 */
    int64_t nan, infinite, numbers; /* counts; `numbers` includes the infinite ones */
    long double sum;                /* whose range is larger than that of the values */
    double least, most, mean;
    double low, high; /* the least and the largest finite value */
    int64_t bins[STATISTICS_BINS];
} statistics;

/* Computes the statistics of a tensor on the host. Returns false and sets the error on failure. */
bool statistics_of(tn_tensor *tensor, statistics *out);
/* Writes the bins as a row of STATISTICS_BINS blocks, each as high as its count; empty bins are
 * blank. `size` is at least 3 * STATISTICS_BINS + 1. */
void statistics_row(const statistics *of, char *out, size_t size);

#endif
