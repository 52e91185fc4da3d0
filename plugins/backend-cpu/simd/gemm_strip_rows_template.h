/* SPDX-License-Identifier: MIT
 *
 * The strip functions for VECTORS vectors and 1 to MOST_ROWS rows, and a function that calls the
 * one for a given number of rows. */
#define ROWS 1
#include "simd/gemm_strip_template.h"
#define ROWS 2
#include "simd/gemm_strip_template.h"
#define ROWS 3
#include "simd/gemm_strip_template.h"
#define ROWS 4
#include "simd/gemm_strip_template.h"
#if MOST_ROWS >= 6
#define ROWS 5
#include "simd/gemm_strip_template.h"
#define ROWS 6
#include "simd/gemm_strip_template.h"
#endif
#if MOST_ROWS >= 12
#define ROWS 7
#include "simd/gemm_strip_template.h"
#define ROWS 8
#include "simd/gemm_strip_template.h"
#define ROWS 9
#include "simd/gemm_strip_template.h"
#define ROWS 10
#include "simd/gemm_strip_template.h"
#define ROWS 11
#include "simd/gemm_strip_template.h"
#define ROWS 12
#include "simd/gemm_strip_template.h"
#endif

#define CASE(rows_)                                                                                \
    case rows_:                                                                                    \
        STRIP(STRIP_KIND, VECTORS, rows_)                                                          \
        (kc, a, step, b, pace, c, ldc, bias, rounds, jump, b_jump, last, limits);                  \
        break;
static void STRIP_OF(STRIP_KIND, VECTORS)(int64_t rows, int64_t kc, const void *a, int64_t step,
                                          const void *b, int64_t pace, void *c, int64_t ldc,
                                          const void *bias, int64_t rounds, int64_t jump,
                                          int64_t b_jump, int64_t last,
                                          const struct tn__limits *limits)
{
    switch (rows) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
#if MOST_ROWS >= 6
        CASE(5)
        CASE(6)
#endif
#if MOST_ROWS >= 12
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
#endif
    }
}
#undef CASE
#undef VECTORS
#undef MOST_ROWS
