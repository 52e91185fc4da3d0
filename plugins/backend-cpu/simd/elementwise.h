/* SPDX-License-Identifier: MIT
 *
 * Macros that define inner loops by a formula. The line UNARY(relu, a < 0 ? 0 : a) in a template
 * defines the loops relu_f32 and relu_f64. In formulas a and b are the operands, and p, q and r the
 * numbers that are passed with a call. */
#ifndef TN_BACKEND_CPU_SIMD_ELEMENTWISE_H
#define TN_BACKEND_CPU_SIMD_ELEMENTWISE_H

#include <string.h>

#include "simd/simd.h"

#define TN__EACH TN__IVDEP for (int64_t i = 0; i < n; i++)

/* The functions number_* convert p, q or r to the type of the loop. For int64 the double holds the
 * bits of the integer. */
static inline int64_t number_i64(double p)
{
    int64_t bits;

    memcpy(&bits, &p, sizeof bits);
    return bits;
}
static inline float number_f32(double p)
{
    return (float)p;
}
static inline double number_f64(double p)
{
    return p;
}

#define TEMPLATE "simd/loop_template.h"
#include "base/for_floats.h"
#define T int64_t
#define NAME(x) x##_i64
#include "simd/loop_template.h"
#undef T
#undef NAME

#define TN__LOOP_PARAMETERS                                                                        \
    int64_t n, char *y, int64_t sy, const char *a, int64_t sa, const char *b, int64_t sb,          \
        const double *param
#define FORMULA(name, expr)                                                                        \
    TN__INTO_LOOPS T NAME(name##_formula)(T a, T b, T p, T q, T r)                                 \
    {                                                                                              \
        (void)a, (void)b, (void)p, (void)q, (void)r;                                               \
        return (T)(expr);                                                                          \
    }
#define UNARY(name, expr)                                                                          \
    FORMULA(name, expr)                                                                            \
    static void NAME(name)(TN__LOOP_PARAMETERS)                                                    \
    {                                                                                              \
        (void)b, (void)sb;                                                                         \
        NAME(unary_loop)(n, y, sy, a, sa, param, NAME(name##_formula));                            \
    }
#define BINARY(name, expr)                                                                         \
    FORMULA(name, expr)                                                                            \
    static void NAME(name)(TN__LOOP_PARAMETERS)                                                    \
    {                                                                                              \
        NAME(binary_loop)(n, y, sy, a, sa, b, sb, param, NAME(name##_formula));                    \
    }
#define COMPARE(name, expr)                                                                        \
    TN__INTO_LOOPS uint8_t NAME(name##_formula)(T a, T b)                                          \
    {                                                                                              \
        return (uint8_t)(expr);                                                                    \
    }                                                                                              \
    static void NAME(name)(TN__LOOP_PARAMETERS)                                                    \
    {                                                                                              \
        (void)param;                                                                               \
        NAME(compare_loop)(n, y, sy, a, sa, b, sb, NAME(name##_formula));                          \
    }
/* The comparisons of one type; a template has the line COMPARISONS. */
#define COMPARISONS                                                                                \
    COMPARE(eq, a == b)                                                                            \
    COMPARE(ne, a != b)                                                                            \
    COMPARE(lt, a < b)                                                                             \
    COMPARE(le, a <= b)                                                                            \
    COMPARE(gt, a > b)                                                                             \
    COMPARE(ge, a >= b)

#endif
