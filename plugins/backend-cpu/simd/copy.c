/* SPDX-License-Identifier: MIT
 *
 * Loops that copy elements unchanged (fill, reverse, gather), signs, and bitwise operations on
 * bytes. */
#include <string.h>

#include "simd/simd.h"

/* A vector of 64 bytes, unaligned. The compiler divides it for narrower instruction sets. */
typedef uint64_t wide __attribute__((vector_size(64), aligned(1), may_alias));

/* ---- fill, reverse, gather, signs ------------------------------------------------------------ */

#define TEMPLATE "simd/copy_template.h"
#include "base/for_sizes.h"

/* The last vector of a row overlaps the one before. memcpy() of the C library takes longer to
 * choose how it copies a row than to copy it. */
static void rows(int64_t rows, int64_t bytes, char *y, int64_t sy, const char *x, int64_t sx)
{
    const int64_t size = (int64_t)sizeof(wide), last = bytes - size;
    for (int64_t r = 0; r < rows; r++) {
        char *to = y + r * sy;
        const char *from = x + r * sx;
        for (int64_t i = 0; i < last; i += size)
            *(wide *)(void *)(to + i) = *(const wide *)(const void *)(from + i);
        *(wide *)(void *)(to + last) = *(const wide *)(const void *)(from + last);
    }
}

/* ---- bits ------------------------------------------------------------------------------------ */

/* Formulas for a vector and for a byte. They take pointers, because not every instruction set can
 * pass such a vector by value. */
typedef void wide_formula(const wide *a, const wide *b, wide *y);
typedef void byte_formula(const uint8_t *a, const uint8_t *b, uint8_t *y);
TN__INTO_LOOPS void bits_loop(int64_t n, char *y, const char *a, const char *b, wide_formula *of,
                              byte_formula *of_byte)
{
    int64_t i = 0;
    for (; i + (int64_t)sizeof(wide) <= n; i += (int64_t)sizeof(wide))
        of((const wide *)(const void *)(a + i), (const wide *)(const void *)(b + i),
           (wide *)(void *)(y + i));
    for (; i < n; i++)
        of_byte((const uint8_t *)a + i, (const uint8_t *)b + i, (uint8_t *)y + i);
}

#define FORMULA(name, T, expr)                                                                     \
    TN__INTO_LOOPS void name(const T *pa, const T *pb, T *y)                                       \
    {                                                                                              \
        const T a = *pa, b = *pb;                                                                  \
        (void)b;                                                                                   \
        *y = (T)(expr);                                                                            \
    }
#define BITS(name, wide_expr, expr)                                                                \
    FORMULA(name##_of_wide, wide, wide_expr)                                                       \
    FORMULA(name##_of_byte, uint8_t, expr)                                                         \
    static void name(int64_t n, char *y, const char *a, const char *b)                             \
    {                                                                                              \
        bits_loop(n, y, a, b, name##_of_wide, name##_of_byte);                                     \
    }
#define SEVEN 0x7f7f7f7f7f7f7f7fu
#define ONES 0x0101010101010101u
/* clang-format off */
BITS(bits_and, a & b, a & b)
BITS(bits_or, a | b, a | b)
BITS(bits_xor, a ^ b, a ^ b)
BITS(bits_not, ~a, ~a)
/* clang-format on */
/* The logical not of booleans, of which any byte but 0 is true. After ((a & 127) + 127) | a, whose
 * sum cannot carry into the next byte, the highest bit of a byte is set if the byte was not 0. */
BITS(bits_flip, ((((a & SEVEN) + SEVEN) | a) >> 7 & ONES) ^ ONES, a == 0)

const struct tn__simd_copy TN__SIMD_TABLE(copy) = {
    .fill = { fill_1, fill_2, fill_4, fill_8 },
    .reverse = { reverse_1, reverse_2, reverse_4, reverse_8 },
    .signs = { signs_1, signs_2, signs_4, signs_8 },
    .rows = rows,
    .gather = { gather_1, gather_2, gather_4, gather_8 },
    .bits = { bits_and, bits_or, bits_xor, bits_not, bits_flip },
};
