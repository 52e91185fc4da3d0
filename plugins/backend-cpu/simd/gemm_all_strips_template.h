/* SPDX-License-Identifier: MIT
 *
 * All strip functions for one type. They read the matrix a in place. In `strip_rows` the elements
 * of a row of a are contiguous and rows are `step` elements apart; in `strip_columns` the elements
 * of a column are contiguous and columns are `step` elements apart. Strips with three and four
 * vectors have half as many rows, because more do not fit in the registers. */
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
