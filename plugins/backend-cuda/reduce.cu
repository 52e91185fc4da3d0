/* SPDX-License-Identifier: MIT
 *
 * Reductions of bool, the integers and the floating types. */
#include "dialect.cuh"

#define TN_TEXT "../backend-opencl/reduce.cl"
#define TN_TYPES 0x3ff
#include "each.cuh"
