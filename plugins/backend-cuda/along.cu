/* SPDX-License-Identifier: MIT
 *
 * Running sums, order and sums by index, for bool, the integers and the floating types. */
#include "dialect.cuh"

#define TN_TEXT "../backend-opencl/along.cl"
#define TN_TYPES 0x3ff
#include "each.cuh"
