/* SPDX-License-Identifier: MIT
 *
 * Special functions, element by element. The loops are in elementwise_scalar.c,
 * simd/special.c and other files of simd. */
#include <math.h>

#include "op/elementwise.h"

/* Without eps, or with a negative eps as in PyTorch, x has no limits. */
static void fill_logit(const tn_call *call, double *numbers)
{
    double eps = ((const tn_logit_options *)call->options)->eps;
    numbers[0] = eps >= 0 ? eps : NAN;
    numbers[1] = eps >= 0 ? 1 - eps : NAN;
}

static const tn_kernel_def kernels[] = {
    TN__BINARY_KERNEL(xlogy, TN__FLOATS, TN__EW_xlogy),
    TN__BINARY_KERNEL(logaddexp, TN__FLOATS, TN__EW_logaddexp),
    TN__BINARY_KERNEL(logaddexp2, TN__FLOATS, TN__EW_logaddexp2),
    TN__UNARY_KERNEL_OPTIONS(logit, TN__FLOATS, TN__EW_logit),
    TN__UNARY_KERNEL(i0, TN__FLOATS, TN__EW_i0),
    TN__UNARY_KERNEL(i1, TN__FLOATS, TN__EW_i1),
    TN__UNARY_KERNEL(digamma, TN__FLOATS, TN__EW_digamma),
    TN__UNARY_KERNEL(lgamma, TN__FLOATS, TN__EW_lgamma),
};
TN__KERNEL_TABLE(special);
