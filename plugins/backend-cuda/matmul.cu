/* SPDX-License-Identifier: MIT
 *
 * Batched products of matrices where cuBLASLt does not do it: integers, unusual strides, no library. */
#include "dialect.cuh"

#define TN_TEXT "../backend-opencl/matmul.cl"
#define TN_TYPES 0x3fe
#include "each.cuh"
