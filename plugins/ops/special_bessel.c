/* SPDX-License-Identifier: MIT
 *
 * Modified Bessel functions of the first kind: i0, i1. */
#include "formula.h"

/* Up to MIDDLE the power series is used, in which no terms cancel, and above MIDDLE the asymptotic
 * series, whose smallest term is e^(-2 MIDDLE). */
#define MIDDLE 20.0
enum { POWER_TERMS = 48, ASYMPTOTIC_TERMS = 24 };

/* sum over k of q^k / (k! (k + order)!) with q = (x / 2)^2 */
static tn_tensor *power_series(tn_tensor *q, int order)
{
    tn_tensor *sum = number(q, 1.0);

    for (int k = POWER_TERMS; k >= 1; k--)
        sum = add_number(times(tn_mul(q, sum), 1.0 / (k * (k + order))), 1.0);
    return sum;
}

/* e^x / sqrt(2 pi x) times the sum over k of the products of ((2i - 1)^2 - 4 order^2) / (8 i x), i
 * from 1 to k. Multiplies by e^(x / 2) twice, because e^x overflows before the result does. */
static tn_tensor *asymptotic_series(tn_tensor *x, int order)
{
    tn_tensor *inverse = tn_reciprocal(x), *half = tn_exp(times(x, 0.5)), *sum = number(x, 1.0);

    for (int k = ASYMPTOTIC_TERMS; k >= 1; k--) {
        double factor = ((2.0 * k - 1) * (2.0 * k - 1) - 4.0 * order * order) / (8.0 * k);

        sum = add_number(times(tn_mul(inverse, sum), factor), 1.0);
    }
    sum = tn_mul(sum, tn_rsqrt(times(x, 6.28318530717958647693)));
    return tn_mul(tn_mul(sum, half), half);
}

/* i0(x) = i0(-x), i1(x) = -i1(-x) */
static tn_tensor *bessel(tn_tensor *x, int order)
{
    tn_tensor *size = tn_abs(x), *large = is_above(size, MIDDLE);
    tn_tensor *low = tn_where(large, number(size, MIDDLE), size);
    tn_tensor *y = power_series(times(tn_mul(low, low), 0.25), order);

    if (order == 1)
        y = tn_mul(y, times(low, 0.5));
    y = tn_where(large, asymptotic_series(tn_where(large, size, number(size, MIDDLE)), order), y);
    y = tn_where(tn_isinf(size), size, y);
    return order == 1 ? tn_copysign(y, x) : y;
}

/* Like bessel(), computed in float32 if x is float16 or bfloat16. */
static tn_tensor *in_float32(tn_tensor *x, int order)
{
    if (x == NULL || !tn__common_narrow(x))
        return bessel(x, order);
    return tn_cast(bessel(tn_cast(x, TN_F32), order), tn_tensor_dtype(x));
}

/* The derivative of i1: i0(x) - i1(x) / x, and 1/2 for x = 0. */
static tn_tensor *slope_of_i1(tn_tensor *x, tn_tensor *y)
{
    tn_tensor *origin = tn_eq(x, number(x, 0.0)), *one = number(x, 1.0);

    return tn_where(origin, number(x, 0.5), minus(tn_i0(x), divide(y, tn_where(origin, one, x))));
}

UNARY(i0, in_float32(x, 0), tn_mul(gy, tn_i1(x)));
UNARY(i1, in_float32(x, 1), tn_mul(gy, slope_of_i1(x, y)));
