/* SPDX-License-Identifier: MIT
 *
 * Functions of one and of two numbers, comparisons, bounds, for bool, the integers and the floating types. */
#include "dialect.cuh"

#define TN_TEXT "../backend-opencl/functions.cl"
#define TN_TYPES 0x3ff
#include "each.cuh"
