/* SPDX-License-Identifier: MIT
 *
 * Functions of two integers: greatest common divisor, least common multiple, shifts. */
#include "formula.h"

/* Returns the number of bits of an integer dtype. */
static int bits_of(const tn_tensor *x)
{
    return (int)tn_dtype_size(tn_tensor_dtype(x)) * 8;
}

/* Euclid's algorithm on all elements at once. The number of steps is enough for the worst case, two
 * consecutive Fibonacci numbers: 1.4405 steps for each bit. An element with b = 0 is finished; its
 * divisor is replaced by 1, because a division by 0 is an error. */
static tn_tensor *divisor(tn_tensor *a, tn_tensor *b)
{
    int steps = a != NULL ? bits_of(a) * 1441 / 1000 + 2 : 0;

    for (int i = 0; i < steps && a != NULL && b != NULL; i++) {
        tn_tensor *zero = number(b, 0), *ready = tn_eq(b, zero);
        tn_tensor *rest = tn_fmod(a, tn_where(ready, number(b, 1), b));

        a = tn_where(ready, a, b);
        b = tn_where(ready, zero, rest);
    }
    return a != NULL && b != NULL ? tn_abs(a) : NULL;
}

/* Integers of 8 and 16 bits are computed in int32, as PyTorch does; the result wraps around. */
static tn_tensor *multiple(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *common = tn_gcd(a, b), *zero;
    tn_dtype dtype = common != NULL ? tn_tensor_dtype(common) : TN_I64;

    if (tn_dtype_size(dtype) < 4) {
        a = tn_cast(a, TN_I32);
        b = tn_cast(b, TN_I32);
        common = tn_cast(common, TN_I32);
    }
    zero = number(common, 0);
    common = tn_where(tn_eq(common, zero), number(common, 1), common);
    a = tn_abs(tn_mul(tn_div(a, common, "trunc"), b));
    return tn_dtype_size(dtype) < 4 ? tn_cast(a, dtype) : a;
}

/* Returns 2^b. Powers out of range wrap around to 0; those with a negative exponent are 0. */
static tn_tensor *power_of_2(tn_tensor *b)
{
    return tn_pow(number(b, 2), b);
}

/* Divides by 2^b, rounding down. If b is so large that 2^b is negative or 0, only the sign
 * remains. */
static tn_tensor *shifted_right(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *zero = number(a, 0), *power = power_of_2(b);
    tn_tensor *far = tn_le(power, zero), *sign = zero;

    if (a != NULL && tn_tensor_dtype(a) != TN_U8)
        sign = tn_neg(tn_cast(tn_lt(a, zero), tn_tensor_dtype(a)));
    return tn_where(far, sign, tn_div(a, tn_where(far, number(a, 1), power), "floor"));
}

/* bool can be combined with an integer only. */
static tn_status integers_infer(tn_infer *infer)
{
    tn_status status = tn__common_promoted(infer, TN_MASK_INT, "an integer dtype");

    return status == TN_OK ? tn__broadcast_two(infer) : status;
}

DECOMPOSE(gcd, divisor(in[0], in[1]))
DECOMPOSE(lcm, multiple(in[0], in[1]))
DECOMPOSE(bitwise_left_shift, tn_mul(in[0], power_of_2(in[1])))
DECOMPOSE(bitwise_right_shift, shifted_right(in[0], in[1]))
TN__OP(gcd, .infer = integers_infer, .decompose = gcd_decompose);
TN__OP(lcm, .infer = integers_infer, .decompose = lcm_decompose);
TN__OP(bitwise_left_shift, .infer = integers_infer, .decompose = bitwise_left_shift_decompose);
TN__OP(bitwise_right_shift, .infer = integers_infer, .decompose = bitwise_right_shift_decompose);
