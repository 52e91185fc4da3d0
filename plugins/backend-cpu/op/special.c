/* SPDX-License-Identifier: MIT
 *
 * Special functions, element by element. The loops are in elementwise_scalar.c and
 * simd/elementwise.c. */
#include "op/elementwise.h"

static const tn_kernel_def kernels[] = {
    TN__BINARY_KERNEL(xlogy, TN__FLOATS, TN__EW_xlogy),
    TN__BINARY_KERNEL(logaddexp, TN__FLOATS, TN__EW_logaddexp),
    TN__BINARY_KERNEL(logaddexp2, TN__FLOATS, TN__EW_logaddexp2),
    TN__UNARY_KERNEL(lgamma, TN__FLOATS, TN__EW_lgamma),
};
TN__KERNEL_TABLE(special);
