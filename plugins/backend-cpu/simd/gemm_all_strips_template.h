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
#include "simd/gemm_strip_widths_template.h"

#define STRIP_KIND strip_columns
#define A_AT(i) a[i]
#define A_PACE step
#include "simd/gemm_strip_widths_template.h"

#undef STRIP_PASTE
#undef STRIP
#undef STRIP_OF_PASTE
#undef STRIP_OF
