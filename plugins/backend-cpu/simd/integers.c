/* SPDX-License-Identifier: MIT
 *
 * Elementwise operations on integers of 1, 2 and 4 bytes that are not converted to int64, their
 * extremes, and quotients and shifts of int64. */
#include "simd/elementwise.h"

#define U(x) (uint32_t)(x) /* unsigned arithmetic, which wraps around */
#define NUMBER(s, type)                                                                            \
    static inline type number_##s(double p)                                                        \
    {                                                                                              \
        return (type)number_i64(p);                                                                \
    }

NUMBER(u8, uint8_t)
NUMBER(i8, int8_t)
NUMBER(i16, int16_t)
NUMBER(i32, int32_t)

#define T uint8_t
#define NAME(x) x##_u8
#include "simd/integers_template.h"
#undef T
#undef NAME
#define T int8_t
#define NAME(x) x##_i8
#include "simd/integers_template.h"
#undef T
#undef NAME
#define T int16_t
#define NAME(x) x##_i16
#include "simd/integers_template.h"
#undef T
#undef NAME
#define T int32_t
#define NAME(x) x##_i32
#include "simd/integers_template.h"
#undef T
#undef NAME

/* ---- quotients of int64 ---------------------------------------------------------------------- */

/* Divides without undefined behaviour. The kernels fail before these loops run if an element of b
 * is 0; the result for b = 0 only keeps the loop defined. INT64_MIN / -1, which overflows, wraps
 * around to INT64_MIN. */
static inline int64_t any_quotient(int64_t a, int64_t b)
{
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : b == 0 ? 0 : a / b;
}

/* The quotient of integers below 2^52 in size. Rounding does not reach the next integer, because a
 * quotient that is no integer is at least 1 / |b| from it, which is more than the rounding error.
 */
static inline int64_t small_quotient(int64_t a, int64_t b)
{
    return (int64_t)((double)a / (double)b);
}

/* The results from the quotient q, rounded towards zero. */
typedef int64_t from_quotient(int64_t a, int64_t b, int64_t q);

static inline int64_t rest_of(int64_t a, int64_t b, int64_t q)
{
    return (int64_t)((uint64_t)a - (uint64_t)q * (uint64_t)b);
}

TN__INTO_LOOPS int64_t quotient_of(int64_t a, int64_t b, int64_t q)
{
    (void)a, (void)b;
    return q;
}

TN__INTO_LOOPS int64_t floor_of(int64_t a, int64_t b, int64_t q)
{
    int64_t rest = rest_of(a, b, q);
    return q - ((rest != 0) & ((rest < 0) != (b < 0)));
}

TN__INTO_LOOPS int64_t fmod_of(int64_t a, int64_t b, int64_t q)
{
    return b == 0 ? 0 : rest_of(a, b, q);
}

TN__INTO_LOOPS int64_t remainder_of(int64_t a, int64_t b, int64_t q)
{
    int64_t rest = fmod_of(a, b, q);
    return ((rest != 0) & ((rest < 0) != (b < 0))) ? rest + b : rest;
}

enum { GROUP = 64, SMALL = 52 };

/* The hardware divides integers of 64 bits one by one. A group in which all have less than 53 bits
 * is divided in float64, in vectors. */
TN__INTO_LOOPS void divide(int64_t n, char *y, int64_t sy, const char *a, int64_t sa, const char *b,
                           int64_t sb, from_quotient *of)
{
    int64_t v[GROUP], w[GROUP];
    for (int64_t at = 0; at < n; at += GROUP) {
        int64_t count = n - at < GROUP ? n - at : GROUP, size = 0, zeros = 0;
        for (int64_t i = 0; i < count; i++) {
            memcpy(&v[i], a + (at + i) * sa, sizeof *v);
            memcpy(&w[i], b + (at + i) * sb, sizeof *w);
        }
        for (int64_t i = count; i < GROUP; i++)
            v[i] = w[i] = 1;
        for (int64_t i = 0; i < GROUP; i++) {
            size |= (v[i] ^ v[i] >> 63) | (w[i] ^ w[i] >> 63);
            zeros |= w[i] == 0 ? 1 : 0;
        }
        if (size >> SMALL == 0 && zeros == 0) {
            for (int64_t i = 0; i < GROUP; i++)
                v[i] = of(v[i], w[i], small_quotient(v[i], w[i]));
        } else {
            for (int64_t i = 0; i < count; i++)
                v[i] = of(v[i], w[i], any_quotient(v[i], w[i]));
        }
        for (int64_t i = 0; i < count; i++)
            memcpy(y + (at + i) * sy, &v[i], sizeof *v);
    }
}

#define QUOTIENT(name, of)                                                                         \
    static void name##_i64(TN__LOOP_PARAMETERS)                                                    \
    {                                                                                              \
        (void)param;                                                                               \
        divide(n, y, sy, a, sa, b, sb, of);                                                        \
    }
QUOTIENT(div_trunc, quotient_of)
QUOTIENT(div_floor, floor_of)
QUOTIENT(fmod, fmod_of)
QUOTIENT(remainder, remainder_of)

/* ---- shifts of int64 ------------------------------------------------------------------------- */

/* Bits that are shifted out are lost. The result is also right for narrower dtypes: after a shift
 * by their number of bits or more, the bits that are stored are 0 or the sign. */
#define T int64_t
#define NAME(x) x##_i64
/* clang-format off */
BINARY(shift_left, (uint64_t)b > 63 ? 0 : (uint64_t)a << (b & 63))
BINARY(shift_right, a >> ((uint64_t)b > 63 ? 63 : b))
/* clang-format on */
#undef T
#undef NAME

/* ---- the table ------------------------------------------------------------------------------- */

#define NARROW(name) [TN__EW_##name] = { name##_u8, name##_i8, name##_i16, name##_i32, NULL }
#define WHOLE(name) [TN__EW_##name] = { [TN__INTEGERS_I64] = name##_i64 }
const struct tn__simd_integers TN__SIMD_TABLE(integers) = {
    .ew = {
        NARROW(add),
        NARROW(sub),
        NARROW(add_alpha),
        NARROW(mul),
        NARROW(maximum),
        NARROW(minimum),
        NARROW(add_scalar),
        NARROW(mul_scalar),
        NARROW(neg),
        NARROW(square),
        NARROW(eq),
        NARROW(ne),
        NARROW(lt),
        NARROW(le),
        NARROW(gt),
        NARROW(ge),
        WHOLE(div_trunc),
        WHOLE(div_floor),
        WHOLE(fmod),
        WHOLE(remainder),
        WHOLE(shift_left),
        WHOLE(shift_right),
    },
    .max = { max_u8, max_i8, max_i16, max_i32 },
    .min = { min_u8, min_i8, min_i16, min_i32 },
};
