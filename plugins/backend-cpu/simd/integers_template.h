/* SPDX-License-Identifier: MIT
 *
 * Elementwise operations on integers of type T, which wrap around. */
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
