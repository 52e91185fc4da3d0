/* SPDX-License-Identifier: MIT
 *
 * softmax, log_softmax and its derivative. */
#include "dialect.cuh"

#define TN_TEXT "../backend-opencl/softmax.cl"
#define TN_TYPES 0x3c0
#include "each.cuh"
