/* SPDX-License-Identifier: MIT
 *
 * The arithmetic of reductions: a table of loops by dtype, and the tree in which they are
 * called. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* vector instructions for the loops; clang uses them anyway */
#endif

#include "reduce.h"

#include <complex.h>
#include <string.h>

#include "narrow.h"

enum {
    BLOCK = 512,                      /* elements that go through the whole tree at a time */
    WIDEST = 16,                      /* bytes of the largest element */
    REDUCTIONS = TN_REDUCTION_AVERAGE /* an average is a sum that is divided */
};

/* Combines n elements: a[i] = a[i] op b[i]. */
typedef void combine(void *a, const void *b, size_t n);
/* Converts n elements to the type that is computed in, or back. */
typedef void convert(const void *from, void *to, size_t n);
/* Divides n elements by a number. */
typedef void divide(void *a, size_t n, int32_t by);

/* ---- loops ----------------------------------------------------------------------------------- */

#define REDUCE_TYPE uint8_t
#define REDUCE_NAME(x) u8_##x
#define REDUCE_WIDE uint32_t
#define REDUCE_NAN(x) false
#include "reduce_template.h"
#define REDUCE_TYPE uint16_t
#define REDUCE_NAME(x) u16_##x
#define REDUCE_WIDE uint32_t
#define REDUCE_NAN(x) false
#include "reduce_template.h"
#define REDUCE_TYPE uint32_t
#define REDUCE_NAME(x) u32_##x
#define REDUCE_WIDE uint32_t
#define REDUCE_NAN(x) false
#include "reduce_template.h"
#define REDUCE_TYPE uint64_t
#define REDUCE_NAME(x) u64_##x
#define REDUCE_WIDE uint64_t
#define REDUCE_NAN(x) false
#include "reduce_template.h"
/* sums and products of signed integers are those of unsigned ones, which wrap around */
#define REDUCE_TYPE int8_t
#define REDUCE_NAME(x) i8_##x
#define REDUCE_NAN(x) false
#include "reduce_template.h"
#define REDUCE_TYPE int16_t
#define REDUCE_NAME(x) i16_##x
#define REDUCE_NAN(x) false
#include "reduce_template.h"
#define REDUCE_TYPE int32_t
#define REDUCE_NAME(x) i32_##x
#define REDUCE_NAN(x) false
#include "reduce_template.h"
#define REDUCE_TYPE int64_t
#define REDUCE_NAME(x) i64_##x
#define REDUCE_NAN(x) false
#include "reduce_template.h"
#define REDUCE_TYPE float
#define REDUCE_NAME(x) f32_##x
#define REDUCE_WIDE float
#define REDUCE_NAN(x) ((x) != (x))
#include "reduce_template.h"
#define REDUCE_TYPE double
#define REDUCE_NAME(x) f64_##x
#define REDUCE_WIDE double
#define REDUCE_NAN(x) ((x) != (x))
#include "reduce_template.h"
#define REDUCE_TYPE float _Complex
#define REDUCE_NAME(x) c64_##x
#define REDUCE_WIDE float _Complex
#include "reduce_template.h"
#define REDUCE_TYPE double _Complex
#define REDUCE_NAME(x) c128_##x
#define REDUCE_WIDE double _Complex
#include "reduce_template.h"

static void f32_divide(void *a, size_t n, int32_t by)
{
    float *at = a;

    for (size_t i = 0; i < n; i++)
        at[i] /= (float)by;
}

static void f64_divide(void *a, size_t n, int32_t by)
{
    double *at = a;

    for (size_t i = 0; i < n; i++)
        at[i] /= (double)by;
}

static void c64_divide(void *a, size_t n, int32_t by)
{
    f32_divide(a, 2 * n, by);
}

static void c128_divide(void *a, size_t n, int32_t by)
{
    f64_divide(a, 2 * n, by);
}

/* Defines the conversions of one format of 8 or 16 bits. */
#define NARROW(name, type)                                                                         \
    static void name##_load(const void *from, void *to, size_t n)                                  \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            ((float *)to)[i] = narrow_load(narrow_##name, ((const type *)from)[i]);                \
    }                                                                                              \
    static void name##_store(const void *from, void *to, size_t n)                                 \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            ((type *)to)[i] = (type)narrow_store(narrow_##name, ((const float *)from)[i]);         \
    }

NARROW(f16, uint16_t)
NARROW(bf16, uint16_t)
NARROW(e4m3, uint8_t)
NARROW(e5m2, uint8_t)

/* ---- the table ------------------------------------------------------------------------------- */

static const struct arithmetic {
    combine *combine[REDUCTIONS];
    divide *divide;
    convert *load, *store; /* NULL: the elements are computed in their own type */
} table[TN_DTYPE_COUNT] = {
    [TN_BOOL] = { { u8_max, u8_min, u8_min, u8_max }, NULL, NULL, NULL },
    [TN_U8] = { { u8_sum, u8_product, u8_min, u8_max }, NULL, NULL, NULL },
    [TN_I8] = { { u8_sum, u8_product, i8_min, i8_max }, NULL, NULL, NULL },
    [TN_I16] = { { u16_sum, u16_product, i16_min, i16_max }, NULL, NULL, NULL },
    [TN_I32] = { { u32_sum, u32_product, i32_min, i32_max }, NULL, NULL, NULL },
    [TN_I64] = { { u64_sum, u64_product, i64_min, i64_max }, NULL, NULL, NULL },
    [TN_F16] = { { f32_sum, f32_product, f32_min, f32_max }, f32_divide, f16_load, f16_store },
    [TN_BF16] = { { f32_sum, f32_product, f32_min, f32_max }, f32_divide, bf16_load, bf16_store },
    [TN_F32] = { { f32_sum, f32_product, f32_min, f32_max }, f32_divide, NULL, NULL },
    [TN_F64] = { { f64_sum, f64_product, f64_min, f64_max }, f64_divide, NULL, NULL },
    [TN_C64] = { { c64_sum, c64_product, NULL, NULL }, c64_divide, NULL, NULL },
    [TN_C128] = { { c128_sum, c128_product, NULL, NULL }, c128_divide, NULL, NULL },
    [TN_U16] = { { u16_sum, u16_product, u16_min, u16_max }, NULL, NULL, NULL },
    [TN_U32] = { { u32_sum, u32_product, u32_min, u32_max }, NULL, NULL, NULL },
    [TN_U64] = { { u64_sum, u64_product, u64_min, u64_max }, NULL, NULL, NULL },
    [TN_F8_E4M3] = { { f32_sum, f32_product, f32_min, f32_max },
                     f32_divide,
                     e4m3_load,
                     e4m3_store },
    [TN_F8_E5M2] = { { f32_sum, f32_product, f32_min, f32_max },
                     f32_divide,
                     e5m2_load,
                     e5m2_store },
};

/* ---- the tree -------------------------------------------------------------------------------- */

/* What one block of elements needs on its way through the tree. */
struct block {
    const struct arithmetic *arithmetic;
    combine *combine;
    const char *const *sources; /* the first element of each source */
    size_t offset, n;           /* the block: bytes from the first element, elements */
    size_t element;             /* bytes of an element */
};

/* Combines the sources from `first` on into `to`. */
static void tree(const struct block *block, int32_t first, int32_t count, char *to)
{
    const char *source = block->sources[first] + block->offset;
    char part[BLOCK * WIDEST];
    int32_t half = 1;

    if (count == 1 && block->arithmetic->load != NULL) {
        block->arithmetic->load(source, to, block->n);
        return;
    }
    if (count == 1) {
        memcpy(to, source, block->n * block->element);
        return;
    }
    while (2 * half < count)
        half *= 2;
    tree(block, first, half, to);
    if (count - half == 1 && block->arithmetic->load == NULL) {
        block->combine(to, block->sources[first + half] + block->offset, block->n);
        return;
    }
    tree(block, first + half, count - half, part);
    block->combine(to, part, block->n);
}

void reduce_tree(tn_dtype dtype, tn_reduction reduction, const char *const *sources, int32_t n,
                 int64_t count, char *out)
{
    const struct arithmetic *arithmetic = &table[dtype];
    const bool average = reduction == TN_REDUCTION_AVERAGE;
    struct block block = { arithmetic, arithmetic->combine[average ? TN_REDUCTION_SUM : reduction],
                           sources,    0,
                           0,          tn_dtype_size(dtype) };
    char result[BLOCK * WIDEST];

    for (int64_t i = 0; i < count; i += BLOCK) {
        block.n = (size_t)(count - i < BLOCK ? count - i : BLOCK);
        block.offset = (size_t)i * block.element;
        tree(&block, 0, n, result);
        if (average)
            arithmetic->divide(result, block.n, n);
        if (arithmetic->store != NULL)
            arithmetic->store(result, out + block.offset, block.n);
        else
            memcpy(out + block.offset, result, block.n * block.element);
    }
}
