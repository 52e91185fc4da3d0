/* SPDX-License-Identifier: MIT
 *
 * nll_loss and its derivative. */
#include "dialect.cuh"

#define TN_TEXT "../backend-opencl/loss.cl"
#define TN_TYPES 0x3c0
#include "each.cuh"
