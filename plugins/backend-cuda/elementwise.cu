/* SPDX-License-Identifier: MIT
 *
 * Arithmetic and activations for bool, the integers and the floating types. */
#include "dialect.cuh"

#define TN_TEXT "../backend-opencl/elementwise.cl"
#define TN_TYPES 0x3ff
#include "each.cuh"
