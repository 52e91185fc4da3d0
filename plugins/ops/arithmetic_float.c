/* SPDX-License-Identifier: MIT
 *
 * Functions of floats as in the C library: hypot, copysign, signbit, fmax, fmin, ldexp;
 * and heaviside. */
#include "formula.h"

/* ---- hypot ---- */

/* Returns m sqrt(1 + (s / m)^2) with the larger operand m and the smaller one s, so that no square
 * overflows. */
static tn_tensor *length(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *p = tn_abs(a), *q = tn_abs(b), *most = tn_maximum(p, q);
    tn_tensor *ratio = divide(tn_minimum(p, q), most);
    tn_tensor *y = tn_mul(most, tn_sqrt(add_number(tn_square(ratio), 1.0)));
    tn_tensor *infinite = tn_bitwise_or(tn_isinf(a), tn_isinf(b));

    y = tn_where(tn_eq(most, number(most, 0.0)), most, y);
    return tn_where(infinite, number(y, INFINITY), y);
}

static tn_tensor *length_in_float32(tn_tensor *a, tn_tensor *b)
{
    if (a == NULL || !tn__common_narrow(a))
        return length(a, b);
    return tn_cast(length(tn_cast(a, TN_F32), tn_cast(b, TN_F32)), tn_tensor_dtype(a));
}

DECOMPOSE(hypot, length_in_float32(in[0], in[1]))

/* ga = gy a / y, gb = gy b / y */
static tn_status hypot_derive(tn_derive *d)
{
    for (int i = 0; i < 2; i++)
        if (tn__needs(d, i))
            d->gin[i] = tn_mul(d->gout[0], divide(d->in[i], d->out[0]));
    return TN_OK;
}

/* ---- signs ---- */

static tn_status signbit_infer(tn_infer *infer)
{
    tn__common_like(infer, 0, 0, TN_BOOL);
    return TN_OK;
}

/* -0 is equal to 0, but its reciprocal is less than 0. */
static tn_tensor *is_negative(tn_tensor *x)
{
    tn_tensor *zero = number(x, 0.0);

    if (x == NULL || tn_tensor_dtype(x) == TN_BOOL)
        return tn_bitwise_xor(x, x);
    if (tn__is_int(tn_tensor_dtype(x)))
        return tn_lt(x, zero);
    return tn_bitwise_or(tn_lt(x, zero),
                         tn_bitwise_and(tn_eq(x, zero), tn_lt(tn_reciprocal(x), zero)));
}

static tn_tensor *with_sign(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *size = tn_abs(a);

    return tn_where(tn_signbit(b), tn_neg(size), size);
}

DECOMPOSE(signbit, is_negative(x))
DECOMPOSE(copysign, with_sign(in[0], in[1]))

/* ga = gy where the sign of a stays, -gy where it changes, 0 where a is 0. */
static tn_status copysign_derive(tn_derive *d)
{
    if (tn__needs(d, 0))
        d->gin[0] = tn_mul(d->gout[0], tn_mul(tn_sign(d->in[0]), tn_sign(d->out[0])));
    if (tn__needs(d, 1))
        d->gin[1] = tn_fill(d->gout[0], 0.0);
    return TN_OK;
}

/* ---- maximum and minimum of numbers that are not NaN ---- */

static tn_tensor *is_nan(tn_tensor *x)
{
    return tn_ne(x, x);
}

/* Replaces `y`, the maximum or minimum of a and b, by the other operand where one is NaN. */
static tn_tensor *without_nan(tn_tensor *a, tn_tensor *b, tn_tensor *y)
{
    if (y == NULL || (TN_MASK_FLOAT & TN_BIT(tn_tensor_dtype(y))) == 0)
        return y;
    return tn_where(is_nan(b), a, tn_where(is_nan(a), b, y));
}

DECOMPOSE(fmax, without_nan(in[0], in[1], tn_maximum(in[0], in[1])))
DECOMPOSE(fmin, without_nan(in[0], in[1], tn_minimum(in[0], in[1])))

/* gy goes to a where `first` is true or b is NaN, half to each where both are equal, else to b. */
static tn_status chosen_derive(tn_derive *d, tn_tensor *first)
{
    tn_tensor *gy = d->gout[0], *zero = number(gy, 0.0);
    tn_tensor *shared = tn_where(tn_eq(d->in[0], d->in[1]), times(gy, 0.5), zero);
    tn_tensor *mask = tn_bitwise_or(first, is_nan(d->in[1]));

    if (tn__needs(d, 0))
        d->gin[0] = tn_where(mask, gy, shared);
    if (tn__needs(d, 1))
        d->gin[1] = tn_where(mask, zero, minus(gy, shared));
    return TN_OK;
}

static tn_status fmax_derive(tn_derive *d)
{
    return chosen_derive(d, tn_gt(d->in[0], d->in[1]));
}

static tn_status fmin_derive(tn_derive *d)
{
    return chosen_derive(d, tn_lt(d->in[0], d->in[1]));
}

/* ---- steps and powers of 2 ---- */

static tn_status heaviside_infer(tn_infer *infer)
{
    tn_status status = tn__common_same_dtype(infer->in[0], "x", infer->in[1], "values");

    return status != TN_OK ? status : tn__broadcast_two(infer);
}

static tn_tensor *step(tn_tensor *x, tn_tensor *values)
{
    tn_tensor *zero = number(x, 0);
    tn_tensor *above = x != NULL ? tn_cast(tn_gt(x, zero), tn_tensor_dtype(x)) : NULL;

    return tn_where(tn_eq(x, zero), values, above);
}

DECOMPOSE(heaviside, step(in[0], in[1]))

/* Returns x 2^exponent. Multiplies by two powers of 2 with half of the exponent each, so that a
 * power that is out of range does not make the product 0 or infinite. The halves are whole if the
 * exponent is. The first half is clamped, so that an infinite exponent leaves an infinite second
 * half. 0 and infinite x stay with every finite exponent, also where a half of the power is
 * infinite or 0. */
static tn_tensor *scaled(tn_tensor *x, tn_tensor *exponent)
{
    tn_tensor *half, *y, *same;

    if (exponent == NULL || tn__is_complex(tn_tensor_dtype(exponent)))
        return tn_mul(x, tn_exp2(exponent));
    half = tn_clamp(tn_floor(times(exponent, 0.5)), -1100, 1100);
    y = tn_mul(tn_mul(x, tn_exp2(half)), tn_exp2(minus(exponent, half)));
    same = tn_logical_and(tn_logical_or(tn_eq(x, number(x, 0)), tn_isinf(x)),
                          tn_isfinite(exponent));
    return tn_where(same, x, y);
}

DECOMPOSE(ldexp, scaled(in[0], in[1]))

/* gx = gy 2^exponent, gexponent = gy y ln 2 */
static tn_status ldexp_derive(tn_derive *d)
{
    if (tn__needs(d, 0))
        d->gin[0] = tn_ldexp(d->gout[0], tn__common_conj(d->in[1]));
    if (tn__needs(d, 1))
        d->gin[1] = times(tn__common_chain(d->gout[0], d->out[0]), 0.69314718055994530942);
    return TN_OK;
}

/* ---- definitions ---- */

TN__OP(hypot, .infer = tn__broadcast_two_float, .derive = hypot_derive,
       .decompose = hypot_decompose);
TN__OP(copysign, .infer = tn__broadcast_two, .derive = copysign_derive,
       .decompose = copysign_decompose);
TN__OP(signbit, .infer = signbit_infer, .decompose = signbit_decompose);
TN__OP(fmax, .infer = tn__broadcast_two, .derive = fmax_derive, .decompose = fmax_decompose);
TN__OP(fmin, .infer = tn__broadcast_two, .derive = fmin_derive, .decompose = fmin_decompose);
TN__OP(heaviside, .infer = heaviside_infer, .decompose = heaviside_decompose);
TN__OP(ldexp, .infer = tn__broadcast_two, .derive = ldexp_derive, .decompose = ldexp_decompose);
