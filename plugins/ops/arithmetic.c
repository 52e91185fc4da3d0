/* SPDX-License-Identifier: MIT
 *
 * Arithmetic of two operands, with broadcasting: add, sub, mul, div, pow, maximum and so on. The
 * core sums the gradients of broadcast operands to the operands' shapes. unary.c has the operators
 * of one operand, arithmetic_ternary.c those of three. */
#include "formula.h"

/* Fails if the result's dtype cannot represent alpha, instead of rounding alpha silently. */
static tn_status scaled_infer(tn_infer *infer, tn_scalar alpha)
{
    tn_status status = tn__broadcast_two(infer);
    tn_dtype dtype = infer->out[0].dtype;

    if (status != TN_OK || (alpha.kind == TN_SCALAR_INT && alpha.as.i == 1 && !alpha.reserved))
        return status;
    if (alpha.kind == TN_SCALAR_FLOAT && (tn__is_int(dtype) || dtype == TN_BOOL))
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */
                       "For integral input tensors, argument alpha must not be a floating point "
                       "number (it is %g)",
                       alpha.as.f);
    if (alpha.kind == TN_SCALAR_COMPLEX && !tn__is_complex(dtype))
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */
                       "For non-complex input tensors, argument alpha must not be a complex number "
                       "(it is %g and %gj)",
                       alpha.as.c[0], alpha.as.c[1]);
    if (alpha.kind == TN_SCALAR_BOOL && dtype != TN_BOOL)
        return tn_fail(TN_ERR_RUNTIME,
                       /* PyTorch's wording */
                       "Boolean alpha only supported for Boolean results, not for %s",
                       tn_dtype_name(dtype));
    return tn__scalar_factor(dtype, alpha, "alpha");
}

static tn_status add_infer(tn_infer *infer)
{
    return scaled_infer(infer, ((const tn_add_options *)infer->options)->alpha);
}

static tn_status sub_infer(tn_infer *infer)
{
    return scaled_infer(infer, ((const tn_sub_options *)infer->options)->alpha);
}

static tn_status add_derive(tn_derive *d)
{
    const tn_add_options *o = d->options;

    if (tn__needs(d, 0))
        d->gin[0] = d->gout[0];
    if (tn__needs(d, 1))
        d->gin[1] = times(d->gout[0], tn__scalar_conj(o->alpha));
    return TN_OK;
}

static tn_status sub_derive(tn_derive *d)
{
    const tn_sub_options *o = d->options;

    if (tn__needs(d, 0))
        d->gin[0] = d->gout[0];
    if (tn__needs(d, 1))
        d->gin[1] = tn__scalar_is(o->alpha, 1)
                        ? tn_neg(d->gout[0])
                        : tn_mul_scalar(d->gout[0], tn__scalar_neg(tn__scalar_conj(o->alpha)));
    return TN_OK;
}

static tn_status mul_derive(tn_derive *d)
{
    if (tn__needs(d, 0))
        d->gin[0] = tn_mul(d->gout[0], tn__common_conj(d->in[1]));
    if (tn__needs(d, 1))
        d->gin[1] = tn_mul(d->gout[0], tn__common_conj(d->in[0]));
    return TN_OK;
}

/* Without rounding_mode, integers and bool are converted to the default float dtype. */
static tn_status div_infer(tn_infer *infer)
{
    const char *mode = ((const tn_div_options *)infer->options)->rounding_mode;
    tn_dtype dtype = infer->dtype;

    if (mode == NULL) {
        if (((TN_MASK_INT | TN_BIT(TN_BOOL)) & TN_BIT(dtype)) != 0)
            infer->dtype = tn_default_dtype();
        return tn__broadcast_two(infer);
    }
    if (strcmp(mode, "trunc") != 0 && strcmp(mode, "floor") != 0)
        return tn_fail(TN_ERR_VALUE,
                       "rounding_mode: unknown, got %q; expected None, trunc or floor", mode);
    if (((TN_MASK_INT | TN_MASK_FLOAT) & TN_BIT(dtype)) == 0)
        return tn_fail(TN_ERR_TYPE,
                       "rounding_mode %s: wrong dtype, got %s; expected integers or floats", mode,
                       tn_dtype_name(dtype));
    return tn__broadcast_two(infer);
}

/* ga = gy / b, gb = -gy * (a / b) / b. Computed from the inputs, as in PyTorch, because the result
 * may be changed in place. A rounded quotient has the gradient 0. */
static tn_status div_derive(tn_derive *d)
{
    if (((const tn_div_options *)d->options)->rounding_mode != NULL) {
        for (int i = 0; i < 2; i++)
            if (tn__needs(d, i))
                d->gin[i] = tn_fill(d->gout[0], 0.0);
        return TN_OK;
    }
    if (tn__needs(d, 0))
        d->gin[0] = tn_div(d->gout[0], tn__common_conj(d->in[1]));
    if (tn__needs(d, 1)) {
        tn_tensor *slope = tn_div(tn_div(d->in[0], d->in[1]), d->in[1]);

        d->gin[1] = tn_neg(tn_mul(d->gout[0], tn__common_conj(slope)));
    }
    return TN_OK;
}

/* ga is gy where a is larger and half of gy where a = b. If either is NaN, both gradients are
 * gy. */
static tn_status maximum_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0], *a = d->in[0], *b = d->in[1], *none = tn__scalar_number(gy, 0.0);
    tn_tensor *shared = tn_where(tn_eq(a, b), tn_mul_scalar(gy, 0.5), gy);

    if (tn__needs(d, 0))
        d->gin[0] = tn_where(tn_lt(a, b), none, shared);
    if (tn__needs(d, 1))
        d->gin[1] = tn_where(tn_gt(a, b), none, shared);
    return TN_OK;
}

static tn_status scalar_infer(tn_infer *infer, tn_scalar value)
{
    tn_dtype dtype = tn_view_dtype(infer->in[0]), result;
    tn_status status = tn__scalar_check(value, "value");

    if (status != TN_OK)
        return status;
    result = tn__scalar_result(dtype, value);
    if (result != dtype)
        infer->dtype = result;
    return tn__common_unary(infer);
}

static tn_status add_scalar_infer(tn_infer *infer)
{
    return scalar_infer(infer, ((const tn_add_scalar_options *)infer->options)->value);
}

static tn_status mul_scalar_infer(tn_infer *infer)
{
    return scalar_infer(infer, ((const tn_mul_scalar_options *)infer->options)->value);
}

static tn_status add_scalar_derive(tn_derive *d)
{
    d->gin[0] = d->gout[0];
    return TN_OK;
}

static tn_status mul_scalar_derive(tn_derive *d)
{
    const tn_mul_scalar_options *o = d->options;

    d->gin[0] = tn_mul_scalar(d->gout[0], tn__scalar_conj(o->value));
    return TN_OK;
}

static tn_status neg_derive(tn_derive *d)
{
    d->gin[0] = tn_neg(d->gout[0]);
    return TN_OK;
}

/* ---- minimum, remainders ---- */

/* ga is gy where a is smaller and half of gy where a = b. If either is NaN, both gradients are
 * gy. */
static tn_status minimum_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0], *a = d->in[0], *b = d->in[1];
    tn_tensor *shared = tn_where(tn_eq(a, b), times(gy, 0.5), gy);

    if (tn__needs(d, 0))
        d->gin[0] = tn_where(tn_gt(a, b), number(gy, 0.0), shared);
    if (tn__needs(d, 1))
        d->gin[1] = tn_where(tn_lt(a, b), number(gy, 0.0), shared);
    return TN_OK;
}

/* For remainder and fmod: y = a - b * rounded(a / b) */
static tn_status rest_derive(tn_derive *d, const char *mode)
{
    if (tn__needs(d, 0))
        d->gin[0] = d->gout[0];
    if (tn__needs(d, 1))
        d->gin[1] = tn_neg(tn_mul(d->gout[0], tn_div(d->in[0], d->in[1], mode)));
    return TN_OK;
}

/* bool can be combined with another dtype only. */
static tn_status rest_infer(tn_infer *infer)
{
    if (infer->dtype == TN_BOOL ||
        (infer->dtype == TN_DTYPE_AUTO && tn_view_dtype(infer->in[0]) == TN_BOOL))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "a or b: wrong dtype, got bool for both; expected an integer or float");
    return tn__broadcast_two(infer);
}

static tn_status remainder_derive(tn_derive *d)
{
    return rest_derive(d, "floor");
}

static tn_status fmod_derive(tn_derive *d)
{
    return rest_derive(d, "trunc");
}

/* ---- powers ---- */

static tn_status pow_infer(tn_infer *infer)
{
    if (infer->dtype == TN_BOOL ||
        (infer->dtype == TN_DTYPE_AUTO && tn_view_dtype(infer->in[0]) == TN_BOOL))
        return tn_fail(
            TN_ERR_NOT_IMPLEMENTED,
            "a or b: wrong dtype, got bool for both; expected another dtype: tn_cast one "
            "of them");
    return tn__broadcast_two(infer);
}

/* Gradients of y = a^b: ga = gy b a^(b - 1), 0 for b = 0; gb = gy y ln a, 0 for a = 0 and b >= 0 */
static tn_status pow_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0], *a = d->in[0], *b = d->in[1], *y = d->out[0];

    if (tn__needs(d, 0)) {
        tn_tensor *slope = tn__common_chain(gy, tn_mul(b, tn_pow(a, tn_add_scalar(b, -1))));

        d->gin[0] = tn_where(tn_eq(b, number(b, 0.0)), number(gy, 0.0), slope);
    }
    if (tn__needs(d, 1)) {
        tn_tensor *re = tn_real(b),
                  *flat = tn_bitwise_and(tn_eq(a, number(a, 0.0)), tn_ge(re, number(re, 0.0)));

        if (b != NULL && tn__is_complex(tn_tensor_dtype(b)))
            flat = tn_bitwise_and(flat, tn_eq(tn_imag(b), number(re, 0.0)));
        d->gin[1] = tn__common_chain(gy, tn_where(flat, number(y, 0.0), tn_mul(y, tn_ln(a))));
    }
    return TN_OK;
}

static tn_status pow_scalar_infer(tn_infer *infer)
{
    tn_scalar exponent = ((const tn_pow_scalar_options *)infer->options)->exponent;
    tn_dtype dtype = tn_view_dtype(infer->in[0]), result;
    bool whole = exponent.kind != TN_SCALAR_FLOAT && exponent.kind != TN_SCALAR_COMPLEX;
    char text[TN__SCALAR_TEXT];
    tn_status status = tn__scalar_check(exponent, "exponent");

    if (status != TN_OK)
        return status;
    if ((tn__is_int(dtype) || dtype == TN_BOOL) && whole && tn_scalar_as_float(exponent) < 0)
        return tn_fail(TN_ERR_RUNTIME,
                       "exponent: Integers to negative integer powers are not allowed, got %s for "
                       "elements of %s; cast to a float type first",
                       tn__scalar_text(text, exponent), tn_dtype_name(dtype));
    if (tn__is_int(dtype) && whole && tn__scalar_fits(dtype, exponent, "exponent") != TN_OK)
        return tn_error_last_code();
    result = tn__scalar_result(dtype, exponent);
    if (result != dtype)
        infer->dtype = result;
    return tn__common_unary(infer);
}

static tn_status pow_scalar_decompose(const tn_decompose *call)
{
    tn_scalar exponent = ((const tn_pow_scalar_options *)call->options)->exponent;
    tn_tensor *x = call->in[0];
    double half = tn__scalar_imaginary(exponent) ? 0.0 : tn_scalar_as_float(exponent);

    if (tn__scalar_is(exponent, 1))
        return tn__common_given(call->out, tn_copy(x));
    if (tn__scalar_is(exponent, 0) && x != NULL && tn_tensor_dtype(x) == TN_BOOL)
        return tn__common_given(call->out, tn_fill(x, 1));
    if (tn__scalar_is(exponent, 2))
        return tn__common_given(call->out, tn_square(x));
    if (tn__scalar_is(exponent, 3))
        return tn__common_given(call->out, tn_mul(tn_mul(x, x), x));
    if (half == 0.5)
        return tn__common_given(call->out, tn_sqrt(x));
    if (half == -0.5)
        return tn__common_given(call->out, tn_rsqrt(x));
    if (tn__scalar_is(exponent, -1))
        return tn__common_given(call->out, tn_reciprocal(x));
    return tn__common_given(call->out, tn_pow(x, tn__scalar_number(x, exponent)));
}

static tn_status pow_scalar_derive(tn_derive *d)
{
    tn_scalar exponent = ((const tn_pow_scalar_options *)d->options)->exponent;
    tn_scalar less = tn__scalar_minus(exponent, tn_scalar_int(1));

    if (tn__scalar_is(exponent, 0))
        d->gin[0] = tn_fill(d->gout[0], 0.0);
    else
        d->gin[0] = tn__common_chain(d->gout[0], times(tn_pow_scalar(d->in[0], less), exponent));
    return TN_OK;
}

/* y is the angle of the point (b, a). ga = gy b / (a^2 + b^2), gb = -gy a / (a^2 + b^2); both are 0
 * at the origin. */
static tn_status atan2_derive(tn_derive *d)
{
    tn_tensor *a = d->in[0], *b = d->in[1];
    tn_tensor *square = tn_add(tn_mul(a, a), tn_mul(b, b));
    tn_tensor *origin = tn_logical_not(square);
    tn_tensor *scaled = tn_div(d->gout[0], tn_masked_fill(square, origin, 1.0));

    if (tn__needs(d, 0))
        d->gin[0] = tn_mul(scaled, b);
    if (tn__needs(d, 1))
        d->gin[1] = tn_neg(tn_mul(scaled, a));
    return TN_OK;
}
/* ---- definitions ---- */

TN__OP(add, .infer = add_infer, .derive = add_derive, TN__PARTS(add));
TN__OP(sub, .infer = sub_infer, .derive = sub_derive, TN__PARTS(sub));
TN__OP(mul, .infer = tn__broadcast_two, .derive = mul_derive, TN__PARTS(mul));
TN__OP(div, .infer = div_infer, .derive = div_derive, TN__PARTS(div));
TN__OP(maximum, .infer = tn__broadcast_two, .derive = maximum_derive);
/* bool is decomposed, too, because kernels support only numbers. */
TN__OP(add_scalar, .infer = add_scalar_infer, .derive = add_scalar_derive,
       .decompose = tn__complex_parts_add_scalar,
       .decompose_dtypes = TN_MASK_COMPLEX | TN_BIT(TN_BOOL));
TN__OP(mul_scalar, .infer = mul_scalar_infer, .derive = mul_scalar_derive,
       .decompose = tn__complex_parts_mul_scalar,
       .decompose_dtypes = TN_MASK_COMPLEX | TN_BIT(TN_BOOL));
TN__OP(neg, .infer = tn__common_unary, .derive = neg_derive, TN__PARTS(neg));

TN__OP(minimum, .infer = tn__broadcast_two, .derive = minimum_derive);
TN__OP(remainder, .infer = rest_infer, .derive = remainder_derive);
TN__OP(fmod, .infer = rest_infer, .derive = fmod_derive);
TN__OP(pow, .infer = pow_infer, .derive = pow_derive, TN__PARTS(pow));
TN__OP(atan2, .infer = tn__broadcast_two, .derive = atan2_derive);
TN__OP(pow_scalar, .infer = pow_scalar_infer, .derive = pow_scalar_derive,
       .decompose = pow_scalar_decompose);
