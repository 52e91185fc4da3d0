/* SPDX-License-Identifier: MIT
 *
 * The strip functions of one kind, for all widths. STRIP_KIND is the name of the kind; A_AT(i) is
 * the element of row i of the matrix a, A_PACE the distance in `a` from one step of the depth to
 * the next. */
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
