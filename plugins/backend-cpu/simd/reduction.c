/* SPDX-License-Identifier: MIT
 *
 * Sums, largest and smallest elements and products, of contiguous elements and of columns. Products
 * of floats are computed in float64. */
#include "simd/simd.h"

#define TEMPLATE "simd/sum_template.h"
#include "base/for_floats.h"

/* WIDE: columns that are reduced together. BLOCK: rows whose sums are accumulated in T. PART:
 * partial products of contiguous elements at the end. PARTS: at first. STEPS: factors after which
 * these are flushed. */
enum { WIDE = 256, BLOCK = 32, PART = 16, PARTS = 32, STEPS = 16 };

static int64_t sum_i64(int64_t n, const int64_t *x)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (uint64_t)x[i];
    return (int64_t)sum;
}

/* Replaces a partial product of float32 by 0 if it is far below the range of float32: it would soon
 * be subnormal in float64, and subnormal numbers make instructions up to a hundred times slower. */
static inline double flush_f32(double x, double *lifted)
{
    (void)lifted;
    return __builtin_fabs(x) < 0x1p-600 ? x * 0 : x;
}
static inline uint64_t flush_i64(uint64_t x, double *lifted)
{
    (void)lifted;
    return x;
}
/* In float64 such a product is multiplied by a power of 2 as often as *lifted counts, which goes
 * down again if the product grows. */
static inline double flush_f64(double x, double *lifted)
{
    const double size = __builtin_fabs(x);
    const int low = size < 0x1p-900;
    const int high = (size > 0x1p-600) & (size < __builtin_inf()) & (*lifted > 0);
    *lifted += low ? 1 : high ? -1 : 0;
    return x * (low ? 0x1p300 : high ? 0x1p-300 : 1);
}
/* Takes the powers of 2 from `parts` products. Returns whether all are numbers: if not, a product
 * with the power may have been infinite, where one without is not. */
static inline bool lowered_f64(int parts, double *part, const double *lifted)
{
    bool numbers = true, any = false;
    for (int j = 0; j < parts; j++)
        any |= lifted[j] != 0;
    for (int j = 0; any && j < parts; j++) {
        numbers &= __builtin_fabs(part[j]) < __builtin_inf();
        for (int k = 0; k < 8 && k < lifted[j]; k++)
            part[j] *= 0x1p-300;
    }
    return numbers;
}
static inline bool lowered_f32(int parts, const double *part, const double *lifted)
{
    return (void)parts, (void)part, (void)lifted, true;
}
static inline bool lowered_i64(int parts, const uint64_t *part, const double *lifted)
{
    return (void)parts, (void)part, (void)lifted, true;
}

#define T float
#define NAME(x) x##_f32
#define RESULT double
#define ACCUMULATOR T
#include "simd/reduction_rows_combine_template.h"
#define PRODUCT double
#define MEMBER f
#define LANES 32
#define INDEX int32_t
#define IS_NAN(v, w) __builtin_isunordered(v, w)
#define NOT_A_NUMBER __builtin_nan("")
#include "simd/reduction_template.h"
#undef T
#undef NAME

#define T double
#define NAME(x) x##_f64
#define RESULT double
#define ACCUMULATOR T
#include "simd/reduction_rows_combine_template.h"
#define PRODUCT double
#define MEMBER f
#define LANES 16
#define INDEX int64_t
#define IS_NAN(v, w) __builtin_isunordered(v, w)
#define NOT_A_NUMBER __builtin_nan("")
#include "simd/reduction_template.h"
#undef T
#undef NAME

#define T int64_t
#define NAME(x) x##_i64
#define RESULT int64_t
#define ACCUMULATOR T
#include "simd/reduction_rows_combine_template.h"
#define PRODUCT uint64_t
#define MEMBER i
#define LANES 16
#define INDEX int64_t
#define IS_NAN(v, w) 0
#define NOT_A_NUMBER 0
#include "simd/reduction_template.h"
#undef T
#undef NAME

/* ---- sums and products of columns ------------------------------------------------------------ */

#define TEMPLATE "simd/reduction_rows_sum_template.h"
#include "base/for_floats.h"
#define RESULT ACCUMULATOR
#define T float
#define NAME(x) x##_prod_f32
#define ACCUMULATOR double
#include "simd/reduction_rows_combine_template.h"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_prod_f64
#define ACCUMULATOR double
#include "simd/reduction_rows_combine_template.h"
#undef T
#undef NAME
#define T uint64_t
#define NAME(x) x##_u64
#define ACCUMULATOR uint64_t
#include "simd/reduction_rows_combine_template.h"
#undef T
#undef NAME
#undef RESULT

static inline double product_f64(double v, double b)
{
    return v * b;
}

static inline uint64_t product_u64(uint64_t v, uint64_t b)
{
    return v * b;
}

static inline uint64_t sum_u64(uint64_t v, uint64_t b)
{
    return v + b;
}

static void rows_prod_f32(int64_t rows, int64_t n, const char *x, int64_t stride, void *to)
{
    rows_choice_prod_f32(rows, n, x, stride, to, product_f64);
}

static void rows_prod_f64(int64_t rows, int64_t n, const char *x, int64_t stride, void *to)
{
    rows_choice_prod_f64(rows, n, x, stride, to, product_f64);
}

static void rows_prod_i64(int64_t rows, int64_t n, const char *x, int64_t stride, void *to)
{
    rows_choice_u64(rows, n, x, stride, to, product_u64);
}

static void rows_sum_i64(int64_t rows, int64_t n, const char *x, int64_t stride, void *to)
{
    rows_choice_u64(rows, n, x, stride, to, sum_u64);
}

/* ---- the table ------------------------------------------------------------------------------- */

#define EACH_TYPE(name)                                                                            \
    {                                                                                              \
        [TN__F32] = name##_f32, [TN__F64] = name##_f64, [TN__I64] = name##_i64                     \
    }

enum { SCAN_BLOCK = 16 };
#define TEMPLATE "simd/extremes_template.h"
#include "base/for_floats.h"

const struct tn__simd_reduction TN__SIMD_TABLE(reduction) = {
    .sum_f32 = sum_f32,
    .sum_f64 = sum_f64,
    .sum_i64 = sum_i64,
    .nansum_f32 = nansum_f32,
    .nansum_f64 = nansum_f64,
    .add_rows = { add_rows_f32, add_rows_f64 },
    .extremes_f32 = extremes_f32,
    .extremes_f64 = extremes_f64,
    .max = EACH_TYPE(max),
    .min = EACH_TYPE(min),
    .prod = EACH_TYPE(prod),
    .find = EACH_TYPE(find),
    .rows_sum = EACH_TYPE(rows_sum),
    .rows_max = EACH_TYPE(rows_max),
    .rows_min = EACH_TYPE(rows_min),
    .rows_prod = EACH_TYPE(rows_prod),
    .rows_argmax = EACH_TYPE(rows_argmax),
    .rows_argmin = EACH_TYPE(rows_argmin),
};
