/* SPDX-License-Identifier: MIT
 *
 * Copies and fills as bits, for elements of 1, 2, 4, 8 and 16 bytes (u8, u16, u32, u64, c128). */
#include "dialect.cuh"

#define TN_TEXT "../backend-opencl/move.cl"
#define TN_TYPES (1 << 1 | 7 << 12 | 1 << 11)
#include "each.cuh"
