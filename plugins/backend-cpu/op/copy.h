/* SPDX-License-Identifier: MIT
 *
 * Copies between layouts and dtypes, for other kernels. */
#ifndef TN_BACKEND_CPU_OP_COPY_H
#define TN_BACKEND_CPU_OP_COPY_H

#include "base/kernel.h"

/* Transposes elements of 4 or 8 bytes: y[j][i] = x[i][j] for j < rows, i < columns. Rows of y are
 * sy bytes apart, rows of x sx bytes. */
void tn__copy_transpose_4(int64_t rows, int64_t columns, char *y, int64_t sy, const char *x,
                          int64_t sx);
void tn__copy_transpose_8(int64_t rows, int64_t columns, char *y, int64_t sy, const char *x,
                          int64_t sx);
/* Fill a tensor with one value, with zeros. */
tn_status tn__copy_value(const tn_view *to, tn_scalar value);
tn_status tn__copy_zero(const tn_view *to);
/* Copies `from`, which may broadcast, and converts it to the dtype of `to`. */
tn_status tn__copy_views(const tn_view *to, const tn_view *from);

#endif
