/* SPDX-License-Identifier: MIT
 *
 * Copies that convert, to every type but float8. */
#include "dialect.cuh"

#define TN_TEXT "../backend-opencl/copy.cl"
#define TN_TYPES 0x7fff
#include "each.cuh"
