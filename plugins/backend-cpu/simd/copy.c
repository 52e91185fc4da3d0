/* SPDX-License-Identifier: MIT
 *
 * Elements that move as they are: one value everywhere, rows from their end, elements by their index, bits of packed
 * bytes. Compiled once per instruction set. */
#include <string.h>

#include "simd/simd.h"

/* Vectors of the compiler: as wide as the machine has them, at any address. */
typedef uint64_t wide __attribute__((vector_size(64), aligned(1), may_alias));

/* ---- one value, and backwards ---------------------------------------------------------------- */

#define MOVES(T)                                                                                   \
    static void set_##T(int64_t n, char *to, const void *value)                                    \
    {                                                                                              \
        T x, *y = (T *)(void *)to;                                                                 \
        memcpy(&x, value, sizeof x);                                                               \
        TN__IVDEP for (int64_t i = 0; i < n; i++) y[i] = x;                                        \
    }                                                                                              \
    /* `from` is the last one, which comes first. */                                               \
    static void back_##T(int64_t n, char *to, const char *from)                                    \
    {                                                                                              \
        T *y = (T *)(void *)to;                                                                    \
        const T *x = (const T *)(const void *)from;                                                \
        TN__IVDEP for (int64_t i = 0; i < n; i++) y[i] = x[-i];                                    \
    }                                                                                              \
    static void pick_##T(int64_t n, char *to, const char *from, const int64_t *at)                 \
    {                                                                                              \
        T *y = (T *)(void *)to;                                                                    \
        const T *x = (const T *)(const void *)from;                                                \
        TN__IVDEP for (int64_t i = 0; i < n; i++) y[i] = x[at[i]];                                 \
    }
MOVES(uint8_t)
MOVES(uint16_t)
MOVES(uint32_t)
MOVES(uint64_t)

/* ---- bits ------------------------------------------------------------------------------------ */

#define BITS(name, wide_expr, expr)                                                                \
    static void name(int64_t n, char *y, const char *ap, const char *bp)                           \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + (int64_t)sizeof(wide) <= n; i += (int64_t)sizeof(wide)) {                       \
            wide a = *(const wide *)(const void *)(ap + i),                                        \
                 b = *(const wide *)(const void *)(bp + i);                                        \
            (void)b;                                                                               \
            *(wide *)(void *)(y + i) = (wide)(wide_expr);                                          \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            uint8_t a = (uint8_t)ap[i], b = (uint8_t)bp[i];                                        \
            (void)b;                                                                               \
            y[i] = (char)(uint8_t)(expr);                                                          \
        }                                                                                          \
    }
#define SEVEN 0x7f7f7f7f7f7f7f7fu
#define ONES 0x0101010101010101u
BITS(bits_and, a &b, a &b)
BITS(bits_or, a | b, a | b)
BITS(bits_xor, a ^ b, a ^ b)
BITS(bits_not, ~a, ~a)
/* A truth value: what is not 0 is true. The highest bit of a byte says whether it is more than 0: no carry leaves it. */
BITS(bits_flip, ((((a & SEVEN) + SEVEN) | a) >> 7 & ONES) ^ ONES, a == 0)

const struct tn__simd_copy TN__SIMD_TABLE(copy) = {
    .fill = { set_uint8_t, set_uint16_t, set_uint32_t, set_uint64_t },
    .reverse = { back_uint8_t, back_uint16_t, back_uint32_t, back_uint64_t },
    .gather = { pick_uint8_t, pick_uint16_t, pick_uint32_t, pick_uint64_t },
    .bits = { bits_and, bits_or, bits_xor, bits_not, bits_flip },
};
