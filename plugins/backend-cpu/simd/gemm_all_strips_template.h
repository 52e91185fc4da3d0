/* SPDX-License-Identifier: MIT
 *
 * All strips for one type. The matrix a is not packed: its rows are `step` elements apart and its
 * depth is contiguous (rows), or its rows are contiguous and its depth is `step` apart (columns).
 * With three and four vectors a strip has half as many rows: more do not fit in registers. */
#define STRIP_PASTE(kind, vectors, rows) NAME(kind##_##vectors##_##rows)
#define STRIP(kind, vectors, rows) STRIP_PASTE(kind, vectors, rows)
#define STRIP_OF_PASTE(kind, vectors) NAME(kind##_##vectors)
#define STRIP_OF(kind, vectors) STRIP_OF_PASTE(kind, vectors)

#define STRIP_KIND strip_rows
#define A_AT(i) a[i * step]
#define A_PACE 1
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

#define STRIP_KIND strip_columns
#define A_AT(i) a[i]
#define A_PACE step
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

#undef STRIP_PASTE
#undef STRIP
#undef STRIP_OF_PASTE
#undef STRIP_OF
