/* SPDX-License-Identifier: MIT
 *
 * Philox. */
#include "dialect.cuh"

#define TN_TEXT "../backend-opencl/random.cl"
#define TN_TYPES 0x3c0
#include "each.cuh"
