/* SPDX-License-Identifier: MIT
 *
 * Elementwise operations of one or a few instructions, for the float type T. */

/* Returns x limited to [low, high]. A NaN bound has no effect; if low > high, the result is high.
 */
TN__INTO_LOOPS T NAME(bounded)(T x, T low, T high)
{
    T y = x < low ? low : x;
    return y > high ? high : y;
}

/* clang-format off */
COMPARISONS
/* clang-format on */

/* clang-format off */
BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(add_alpha, a + p * b)
BINARY(mul, a * b)
BINARY(div, a / b)
BINARY(div_trunc, NAME(trunc_of)(a / b))
BINARY(maximum, ((a != a) | (a > b)) ? a : b)
BINARY(minimum, ((a != a) | (a < b)) ? a : b)
BINARY(fmax, ((b != b) | (a > b)) ? a : b)
BINARY(fmin, ((b != b) | (a < b)) ? a : b)
BINARY(copysign, NAME(copysign_of)(a, b))
UNARY(add_scalar, a + p)
UNARY(mul_scalar, a * p)
UNARY(neg, -a)
UNARY(abs, NAME(fabs_of)(a))
UNARY(sign, (T)(a > 0) - (T)(a < 0))
UNARY(floor, NAME(floor_of)(a))
UNARY(ceil, NAME(ceil_of)(a))
UNARY(trunc, NAME(trunc_of)(a))
UNARY(round, NAME(rint_of)(a))
UNARY(frac, a - NAME(trunc_of)(a))
UNARY(square, a * a)
UNARY(cube, a * a * a)
UNARY(reciprocal, 1 / a)
UNARY(clamp, NAME(bounded)(a, p, q))
/* clang-format on */

#define LOOPS_CHEAP(inputs, name, formula) inputs(name, formula)
#define LOOPS_COSTLY(inputs, name, formula)
#define ACTIVATION(name, inputs, cost, formula) LOOPS_##cost(inputs, name, formula)
#include "base/activation_list.h"
#undef LOOPS_CHEAP
#undef LOOPS_COSTLY

/* ---- three operands -------------------------------------------------------------------------- */

/* Returns min(max(a, b), c); NaN if a, b or c is NaN. Whether a or b is NaN is tested separately at
 * the end, because compilers turn a chain of choices into branches and do not vectorize it. */
TN__INTO_LOOPS T NAME(within)(T a, T b, T c)
{
    T high = a > b ? a : b, y = high < c ? high : c;
    y = b != b ? b : y;
    return a != a ? a : y;
}

/* clang-format off */
TERNARY(lerp, a + c * (b - a))
TERNARY(lerp_scalar, a + p * (b - a))
TERNARY(addcmul, a + p * (b * c))
TERNARY(addcdiv, a + p * (b / c))
TERNARY(clamp_tensor, NAME(within)(a, b, c))
/* clang-format on */
