/* SPDX-License-Identifier: MIT
 *
 * Copies between layouts and dtypes, for other kernels. */
#ifndef TN_BACKEND_CPU_OP_COPY_H
#define TN_BACKEND_CPU_OP_COPY_H

#include "base/kernel.h"

/* y[j][i] = x[i][j] of elements of 4 or 8 bytes; rows of y are sy bytes apart, those of x sx. */
void tn__copy_transpose_4(int64_t rows, int64_t columns, char *y, int64_t sy, const char *x,
                          int64_t sx);
void tn__copy_transpose_8(int64_t rows, int64_t columns, char *y, int64_t sy, const char *x,
                          int64_t sx);
/* Fills a tensor with one value. */
tn_status tn__copy_value(const tn_view *to, tn_scalar value);
tn_status tn__copy_zero(const tn_view *to);
/* Copies `from`, which may broadcast, and converts it to the dtype of `to`. */
tn_status tn__copy_views(const tn_view *to, const tn_view *from);

#endif
