/* SPDX-License-Identifier: MIT
 *
 * The strips of one kind, of all widths. STRIP_KIND: its name; A_AT, A_PACE: where the matrix a has
 * row i, and how far apart its depth is. */
#define VECTORS 1
#define MOST_ROWS TILE_MR
#include "simd/gemm_strip_rows_template.h"
#define VECTORS 2
#define MOST_ROWS TILE_MR
#include "simd/gemm_strip_rows_template.h"
#if STRIP_VECTORS == 4
#define VECTORS 3
#define MOST_ROWS 6
#include "simd/gemm_strip_rows_template.h"
#define VECTORS 4
#define MOST_ROWS 6
#include "simd/gemm_strip_rows_template.h"
#endif

#undef STRIP_KIND
#undef A_AT
#undef A_PACE
