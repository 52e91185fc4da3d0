/* SPDX-License-Identifier: MIT
 *
 * Elementwise operations on integers of type T, which wrap around, and extremes. */
#include "simd/loop_template.h"

/* clang-format off */
BINARY(add, U(a) + U(b))
BINARY(sub, U(a) - U(b))
BINARY(add_alpha, U(a) + U(p) * U(b))
BINARY(mul, U(a) * U(b))
BINARY(maximum, a > b ? a : b)
BINARY(minimum, a < b ? a : b)
UNARY(add_scalar, U(a) + U(p))
UNARY(mul_scalar, U(a) * U(p))
UNARY(neg, 0 - U(a))
UNARY(square, U(a) * U(a))
COMPARISONS
/* clang-format on */

TN__INTO_LOOPS int64_t NAME(extreme)(int64_t n, const T *x, bool up)
{
    T best = x[0];
    for (int64_t i = 1; i < n; i++)
        best = (up ? x[i] > best : x[i] < best) ? x[i] : best;
    return best;
}

static int64_t NAME(max)(int64_t n, const void *x)
{
    return NAME(extreme)(n, x, true);
}

static int64_t NAME(min)(int64_t n, const void *x)
{
    return NAME(extreme)(n, x, false);
}
