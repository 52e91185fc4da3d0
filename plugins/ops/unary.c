/* SPDX-License-Identifier: MIT
 *
 * Elementwise functions of one input: inference, derivatives and decompositions. */
#include "formula.h"

static tn_status exp_derive(tn_derive *d)
{
    d->gin[0] = tn_mul(d->gout[0], tn__common_conj(d->out[0]));
    return TN_OK;
}

static tn_status log_derive(tn_derive *d)
{
    d->gin[0] = tn_div(d->gout[0], tn__common_conj(d->in[0]));
    return TN_OK;
}

static tn_status sqrt_derive(tn_derive *d)
{
    d->gin[0] = tn_div(d->gout[0], tn__common_conj(tn_mul_scalar(d->out[0], 2.0)));
    return TN_OK;
}
TN__OP(exp, .infer = tn__common_unary, .derive = exp_derive, TN__PARTS(exp));
TN__OP(log, .infer = tn__common_unary, .derive = log_derive, TN__PARTS(log));
TN__OP(sqrt, .infer = tn__common_unary, .derive = sqrt_derive, TN__PARTS(sqrt));

/* one_minus_square() returns 1 - x^2, one_plus_square() returns 1 + x^2. */
static tn_tensor *one_minus_square(tn_tensor *x)
{
    return add_number(tn_neg(tn_mul(x, x)), 1.0);
}

static tn_tensor *one_plus_square(tn_tensor *x)
{
    return add_number(tn_mul(x, x), 1.0);
}

/* Returns the sign of x; for complex x, x / |x|, or 0 if x is 0. */
static tn_tensor *direction(tn_tensor *x)
{
    tn_tensor *size, *none;

    if (x == NULL || !tn__is_complex(tn_tensor_dtype(x)))
        return tn_sign(x);
    size = tn_abs(x);
    none = tn_eq(size, tn__scalar_number(size, 0.0));
    /* divides by 1 there, because the derivative of 0 / 0 is NaN, also if it is not selected */
    size = tn_where(none, tn__scalar_number(size, 1.0), size);
    return tn_where(none, tn__scalar_number(x, 0.0), divide(x, size));
}
static tn_status abs_infer(tn_infer *infer)
{
    tn__common_like(infer, 0, 0, tn__common_part(tn_view_dtype(infer->in[0])));
    return TN_OK;
}
DERIVE(abs, tn_mul(gy, direction(x)))
TN__OP(abs, .infer = abs_infer, .derive = abs_derive, TN__PARTS(abs));
/* step functions have the gradient 0 */
DERIVE(sign, tn_fill(gy, 0.0))
/* The sign of a bool is the bool. */
DECOMPOSE(sign, tn_copy(x))
TN__OP(sign, .infer = tn__common_unary, .derive = sign_derive, .decompose = sign_decompose,
       .decompose_dtypes = TN_BIT(TN_BOOL));
DERIVE(floor, tn_fill(gy, 0.0))
TN__OP(floor, .infer = tn__common_unary, .derive = floor_derive);
DERIVE(ceil, tn_fill(gy, 0.0))
TN__OP(ceil, .infer = tn__common_unary, .derive = ceil_derive);
DERIVE(trunc, tn_fill(gy, 0.0))
TN__OP(trunc, .infer = tn__common_unary, .derive = trunc_derive);
DERIVE(round, tn_fill(gy, 0.0))
TN__OP(round, .infer = tn__common_unary, .derive = round_derive);

DERIVE(frac, gy)
DECOMPOSE(frac, tn_sub(x, tn_trunc(x)))
TN__OP(frac, .infer = tn__common_unary, .derive = frac_derive, .decompose = frac_decompose);
DERIVE(square, tn__common_chain(gy, times(x, 2.0)))
DECOMPOSE(square, tn_mul(x, x))
static tn_status square_infer(tn_infer *infer)
{
    if (tn_view_dtype(infer->in[0]) == TN_BOOL)
        infer->dtype = TN_I64;
    return tn__common_unary(infer);
}
TN__OP(square, .infer = square_infer, .derive = square_derive, .decompose = square_decompose);
DERIVE(reciprocal, tn_neg(tn__common_chain(gy, tn_mul(y, y))))
DECOMPOSE(reciprocal, divide(tn__scalar_number(x, 1.0), x))
TN__OP(reciprocal, .infer = tn__common_unary, .derive = reciprocal_derive,
       .decompose = reciprocal_decompose);
DERIVE(rsqrt, times(tn__common_chain(gy, tn_mul(y, tn_mul(y, y))), -0.5))
DECOMPOSE(rsqrt, divide(tn__scalar_number(x, 1.0), tn_sqrt(x)))
TN__OP(rsqrt, .infer = tn__common_unary, .derive = rsqrt_derive, .decompose = rsqrt_decompose);

DERIVE(expm1, tn__common_chain(gy, add_number(y, 1.0)))
TN__OP(expm1, .infer = tn__common_unary, .derive = expm1_derive, TN__PARTS(expm1));
DERIVE(log1p, divide(gy, tn__common_conj(add_number(x, 1.0))))
TN__OP(log1p, .infer = tn__common_unary, .derive = log1p_derive, TN__PARTS(log1p));
DERIVE(log2, divide(gy, tn__common_conj(times(x, 0.69314718055994530942))))
TN__OP(log2, .infer = tn__common_unary, .derive = log2_derive, TN__PARTS(log2));
DERIVE(log10, divide(gy, tn__common_conj(times(x, 2.30258509299404568402))))
TN__OP(log10, .infer = tn__common_unary, .derive = log10_derive, TN__PARTS(log10));

DERIVE(sin, tn__common_chain(gy, tn_cos(x)))
TN__OP(sin, .infer = tn__common_unary, .derive = sin_derive, TN__PARTS(sin));
DERIVE(cos, tn_neg(tn__common_chain(gy, tn_sin(x))))
TN__OP(cos, .infer = tn__common_unary, .derive = cos_derive, TN__PARTS(cos));
DERIVE(tan, tn__common_chain(gy, one_plus_square(y)))
TN__OP(tan, .infer = tn__common_unary, .derive = tan_derive, TN__PARTS(tan));
DERIVE(asin, tn__common_chain(gy, tn_rsqrt(one_minus_square(x))))
TN__OP(asin, .infer = tn__common_unary, .derive = asin_derive, TN__PARTS(asin));
DERIVE(acos, tn_neg(tn__common_chain(gy, tn_rsqrt(one_minus_square(x)))))
TN__OP(acos, .infer = tn__common_unary, .derive = acos_derive, TN__PARTS(acos));
DERIVE(atan, divide(gy, tn__common_conj(one_plus_square(x))))
TN__OP(atan, .infer = tn__common_unary, .derive = atan_derive, TN__PARTS(atan));
DERIVE(sinh, tn__common_chain(gy, tn_cosh(x)))
TN__OP(sinh, .infer = tn__common_unary, .derive = sinh_derive, TN__PARTS(sinh));
DERIVE(cosh, tn__common_chain(gy, tn_sinh(x)))
TN__OP(cosh, .infer = tn__common_unary, .derive = cosh_derive, TN__PARTS(cosh));
DERIVE(tanh, tn__is_complex(d->in_meta[0].dtype) ? tn__common_chain(gy, one_minus_square(y))
                                                 : tn_tanh_grad(gy, y))
TN__OP(tanh, .infer = tn__common_unary, .derive = tanh_derive, TN__PARTS(tanh));

/* The slope of erf is 2 / sqrt(pi) e^-x^2; the slope of erfinv is 1 over that of erf at y. */
#define TWO_OVER_ROOT_PI 1.12837916709551257390
DERIVE(erf, tn_mul(gy, times(tn_exp(tn_neg(tn_mul(x, x))), TWO_OVER_ROOT_PI)))
TN__OP(erf, .infer = tn__common_unary, .derive = erf_derive);
DERIVE(erfc, tn_mul(gy, times(tn_exp(tn_neg(tn_mul(x, x))), -TWO_OVER_ROOT_PI)))
TN__OP(erfc, .infer = tn__common_unary, .derive = erfc_derive);
DERIVE(erfinv, tn_mul(gy, times(tn_exp(tn_mul(y, y)), 1.0 / TWO_OVER_ROOT_PI)))
TN__OP(erfinv, .infer = tn__common_unary, .derive = erfinv_derive);

/* ---- inverse hyperbolic functions, powers of 2 ---- */

/* From this size on asinh x and acosh x are ln 2x within the precision of float64; below it x^2 is
 * finite in float32. */
#define LARGE 1e9
#define LN_2 0.69314718055994530942

/* Returns formula(x), computed in float32 if x is float16 or bfloat16. */
static tn_tensor *in_float32(tn_tensor *x, tn_tensor *(*formula)(tn_tensor *))
{
    if (x == NULL || !tn__common_narrow(x))
        return formula(x);
    return tn_cast(formula(tn_cast(x, TN_F32)), tn_tensor_dtype(x));
}

/* i z and -i z, by exchanging the parts: a product with i would make NaN of 0 * infinity. */
static tn_tensor *turned_left(tn_tensor *z)
{
    return tn_complex(tn_neg(tn_imag(z)), tn_real(z));
}

static tn_tensor *turned_right(tn_tensor *z)
{
    return tn_complex(tn_imag(z), tn_neg(tn_real(z)));
}

/* Computes from |x|, with the sign of x afterwards, so that nothing cancels and -0 stays -0. */
static tn_tensor *asinh_real(tn_tensor *x)
{
    tn_tensor *size = tn_abs(x), *square = tn_mul(size, size);
    tn_tensor *more = divide(square, add_number(tn_sqrt(add_number(square, 1.0)), 1.0));
    tn_tensor *y = tn_where(is_above(size, LARGE), add_number(tn_ln(size), LN_2),
                            tn_log1p(plus(size, more)));

    return tn_copysign(y, x);
}

/* With t = x - 1, which is exact around x = 1: ln(1 + t + sqrt(t (t + 2))). */
static tn_tensor *acosh_real(tn_tensor *x)
{
    tn_tensor *t = add_number(tn_where(is_at_least(x, 1.0), x, number(x, NAN)), -1.0);
    tn_tensor *root = tn_sqrt(tn_mul(t, add_number(t, 2.0)));

    return tn_where(is_above(x, LARGE), add_number(tn_ln(x), LN_2), tn_log1p(plus(t, root)));
}

static tn_tensor *atanh_real(tn_tensor *x)
{
    tn_tensor *size = tn_abs(x), *ratio = divide(times(size, 2.0), one_minus(size));

    return tn_copysign(times(tn_log1p(ratio), 0.5), x);
}

/* The real part of acosh z is not negative, and the imaginary part has the sign of z's. */
static tn_tensor *acosh_complex(tn_tensor *z)
{
    tn_tensor *w = tn_acos(z);

    return tn_complex(tn_abs(tn_imag(w)), tn_copysign(tn_real(w), tn_imag(z)));
}

static tn_tensor *power_of_2(tn_tensor *x)
{
    return tn_pow(number(x, 2.0), x);
}

static bool is_complex(const tn_tensor *x)
{
    return x != NULL && tn__is_complex(tn_tensor_dtype(x));
}

UNARY(asinh, is_complex(x) ? turned_right(tn_asin(turned_left(x))) : in_float32(x, asinh_real),
      tn__common_chain(gy, tn_rsqrt(one_plus_square(x))));
/* For complex x the root of the product can differ in sign from the product of the roots. */
UNARY(acosh, is_complex(x) ? acosh_complex(x) : in_float32(x, acosh_real),
      tn__common_chain(gy, is_complex(x)
                               ? tn_mul(tn_rsqrt(add_number(x, 1.0)), tn_rsqrt(add_number(x, -1.0)))
                               : tn_rsqrt(add_number(tn_mul(x, x), -1.0))));
UNARY(atanh, is_complex(x) ? turned_right(tn_atan(turned_left(x))) : in_float32(x, atanh_real),
      divide(gy, tn__common_conj(one_minus_square(x))));
UNARY(exp2, in_float32(x, power_of_2), times(tn__common_chain(gy, y), LN_2));
