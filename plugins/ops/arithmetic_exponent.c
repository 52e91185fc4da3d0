/* SPDX-License-Identifier: MIT
 *
 * Mantissas and exponents of floats: frexp, nextafter. All steps are products with powers of 2 and
 * sums that are exact, so the results are the same on every device. */
#include "formula.h"

#include <math.h>

/* What a dtype can represent: the bits of its mantissa, the exponent of its smallest positive
 * number, and its largest number. */
struct range {
    int digits, least;
    double most;
};

static struct range range_of(tn_dtype dtype)
{
    switch (dtype) {
    case TN_F64: return (struct range){ 53, -1074, 1.7976931348623157e308 };
    case TN_F32: return (struct range){ 24, -149, 3.4028234663852886e38 };
    case TN_F16: return (struct range){ 11, -24, 65504 };
    default: return (struct range){ 8, -133, 3.3895313892515355e38 };
    }
}

/* ---- the parts of a number ------------------------------------------------------------------- */

struct parts {
    tn_tensor *mantissa, *exponent; /* both of the dtype of the number */
};

/* Multiplies the mantissa by 2^by where the mask is true. */
static struct parts shifted(struct parts p, tn_tensor *mask, int by)
{
    uint64_t scope = tn_scope_begin();
    struct parts next = { tn_where(mask, times(p.mantissa, ldexp(1, by)), p.mantissa),
                          tn_where(mask, add_number(p.exponent, -by), p.exponent) };
    tn_tensor *keep[2] = { next.mantissa, next.exponent };

    tn_scope_end_with(scope, keep, 2);
    return next;
}

/* Returns the parts of |x|, with 1/2 <= mantissa < 1. For 0, infinity and NaN the mantissa is 1/2
 * and the exponent 0. */
static struct parts split(tn_tensor *x)
{
    int most = x != NULL && tn_tensor_dtype(x) == TN_F64 ? 512 : 64;
    tn_tensor *size = tn_abs(x), *half = number(x, 0.5);
    tn_tensor *odd = tn_bitwise_or(tn_eq(size, number(x, 0.0)),
                                   tn_bitwise_or(tn_isinf(x), tn_ne(x, x)));
    struct parts p = { tn_where(odd, half, size), tn_mul_scalar(tn_cast(odd, TN_F32), 0.0) };

    p.exponent = p.mantissa != NULL ? tn_cast(p.exponent, tn_tensor_dtype(p.mantissa)) : NULL;
    /* The largest step comes twice, because all steps together multiply only by 2^(2 most - 1),
     * which is not enough for the smallest numbers. */
    p = shifted(p, tn_lt(p.mantissa, number(x, ldexp(1, -most))), most);
    for (int by = most; by > 0; by /= 2)
        p = shifted(p, tn_lt(p.mantissa, number(x, ldexp(1, -by))), by);
    for (int by = most; by > 0; by /= 2)
        p = shifted(p, is_at_least(p.mantissa, ldexp(1, by)), -by);
    return shifted(p, is_at_least(p.mantissa, 1.0), -1);
}

static tn_tensor *in_wide(tn_tensor *x)
{
    return x != NULL && tn__common_narrow(x) ? tn_cast(x, TN_F32) : x;
}

/* ---- frexp ----------------------------------------------------------------------------------- */

static tn_status frexp_infer(tn_infer *infer)
{
    tn__common_like(infer, 0, 0, tn_view_dtype(infer->in[0]));
    tn__common_like(infer, 1, 0, TN_I32);
    return TN_OK;
}

static tn_status frexp_decompose(const tn_decompose *call)
{
    tn_tensor *x = call->in[0], *wide = in_wide(x), *special;
    struct parts p = split(wide);
    tn_tensor *mantissa = tn_copysign(p.mantissa, wide);

    special = tn_bitwise_or(tn_eq(wide, number(wide, 0.0)),
                            tn_bitwise_or(tn_isinf(wide), tn_ne(wide, wide)));
    mantissa = tn_where(special, wide, mantissa);
    call->out[0] = mantissa != NULL ? tn_cast(mantissa, tn_tensor_dtype(x)) : NULL;
    call->out[1] = p.exponent != NULL ? tn_cast(p.exponent, TN_I32) : NULL;
    return call->out[0] != NULL && call->out[1] != NULL ? TN_OK : tn_error_last_code();
}

/* gx = the gradient of the mantissa, times 2^-exponent */
static tn_status frexp_derive(tn_derive *d)
{
    if (d->gout[0] != NULL)
        d->gin[0] = tn_ldexp(d->gout[0], tn_neg(d->out[1]));
    return TN_OK;
}

/* ---- nextafter ------------------------------------------------------------------------------- */

/* The distance between |a| and the next number, towards 0 where `inwards` is true. */
static tn_tensor *distance(tn_tensor *a, tn_tensor *inwards, struct range range)
{
    struct parts p = split(a);
    /* 2^(exponent - 1), which is a number where 2^exponent is not */
    tn_tensor *power = divide(times(tn_abs(a), 0.5), p.mantissa);
    tn_tensor *edge = tn_bitwise_and(inwards, tn_eq(p.mantissa, number(a, 0.5)));

    power = times(tn_where(edge, times(power, 0.5), power), ldexp(1, 1 - range.digits));
    return tn_maximum(power, number(a, ldexp(1, range.least)));
}

static tn_tensor *next(tn_tensor *a, tn_tensor *b, struct range range)
{
    tn_tensor *zero = number(a, 0.0), *up = tn_gt(b, a), *positive = tn_gt(a, zero);
    tn_tensor *inwards = tn_bitwise_and(tn_ne(a, zero), tn_bitwise_xor(up, positive));
    tn_tensor *step = distance(tn_where(tn_isinf(a), zero, a), inwards, range), *y;

    y = plus(a, tn_where(up, step, tn_neg(step)));
    y = tn_where(tn_eq(y, zero), tn_copysign(y, a), y);
    y = tn_where(tn_isinf(a), tn_copysign(number(a, range.most), a), y);
    y = tn_where(tn_eq(a, b), b, y);
    return tn_where(tn_bitwise_or(tn_ne(a, a), tn_ne(b, b)), number(a, NAN), y);
}

static tn_tensor *next_of(tn_tensor *a, tn_tensor *b)
{
    tn_dtype dtype = a != NULL ? tn_tensor_dtype(a) : TN_DTYPE_AUTO;
    tn_tensor *y = next(in_wide(a), in_wide(b), range_of(dtype));

    return y != NULL ? tn_cast(y, dtype) : NULL;
}

DECOMPOSE(nextafter, next_of(in[0], in[1]))

/* As in PyTorch: ga = gy where a != b, which includes NaN, else 0; gb = 0. */
static tn_status nextafter_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0];

    if (tn__needs(d, 0))
        d->gin[0] = tn_where(tn_ne(d->in[0], d->in[1]), gy, number(gy, 0.0));
    if (tn__needs(d, 1))
        d->gin[1] = tn_fill(gy, 0.0);
    return TN_OK;
}

TN__OP(frexp, .infer = frexp_infer, .derive = frexp_derive, .decompose = frexp_decompose);
TN__OP(nextafter, .infer = tn__broadcast_two_float, .derive = nextafter_derive,
       .decompose = nextafter_decompose);
