/* SPDX-License-Identifier: MIT
 *
 * Arithmetic of three operands: clamp, lerp, addcmul, addcdiv. */
#include "formula.h"
/* ---- clamp ---- */

/* For integer x: a bound that cannot change any x, such as a huge max, may be out of the dtype's
 * range. A bound that every x violates must be in range, because it becomes the result. */
static tn_status clamp_whole(tn_infer *infer, const tn_clamp_options *o, tn_dtype dtype)
{
    tn_status status = TN_OK;

    if (tn__scalar_given(o->min) && tn_scalar_as_float(o->min) > 0)
        status = tn__scalar_fits(dtype, o->min, "min");
    if (status == TN_OK && tn__scalar_given(o->max) && tn_scalar_as_float(o->max) < 0)
        status = tn__scalar_fits(dtype, o->max, "max");
    return status == TN_OK ? tn__common_unary(infer) : status;
}

static tn_status bound_check(tn_scalar bound, const char *name)
{
    char text[TN__SCALAR_TEXT];

    if (bound.kind == TN_SCALAR_NONE)
        return TN_OK;
    if (tn__scalar_imaginary(bound))
        return tn_fail(TN_ERR_RUNTIME, "%s: not real, got %s; expected a real number", name,
                       tn__scalar_text(text, bound));
    return tn__scalar_check(bound, name);
}

/* The dtype of x and a bound: that of x and a number, but a bound is always real. */
static tn_dtype bound_result(tn_dtype dtype, tn_scalar bound)
{
    return tn__scalar_given(bound) && bound.kind != TN_SCALAR_COMPLEX
               ? tn__scalar_result(dtype, bound)
               : dtype;
}

static tn_status clamp_infer(tn_infer *infer)
{
    const tn_clamp_options *o = infer->options;
    tn_dtype dtype = tn_view_dtype(infer->in[0]), result;
    bool min = tn__scalar_given(o->min), max = tn__scalar_given(o->max);

    if (!min && !max)
        return tn_fail(TN_ERR_VALUE, "min or max: both are missing; expected at least one");
    if (bound_check(o->min, "min") != TN_OK || bound_check(o->max, "max") != TN_OK)
        return tn_error_last_code();
    result = bound_result(bound_result(dtype, o->min), o->max);
    if (result == TN_BOOL)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "x, min and max: wrong dtype, got bool for all; expected a number for one");
    if (result != dtype)
        infer->dtype = result;
    return tn__is_int(result) ? clamp_whole(infer, o, result) : tn__common_unary(infer);
}

/* The gradient is gy where x is strictly between the bounds, 0 elsewhere. */
static tn_status clamp_derive(tn_derive *d)
{
    const tn_clamp_options *o = d->options;
    tn_tensor *gy = d->gout[0], *x = d->in[0], *within = NULL;

    if (tn__scalar_given(o->min))
        within = tn_gt(x, tn__scalar_number(x, o->min));
    if (tn__scalar_given(o->max)) {
        tn_tensor *below = tn_lt(x, tn__scalar_number(x, o->max));

        within = tn__scalar_given(o->min) ? tn_bitwise_and(within, below) : below;
    }
    d->gin[0] = tn_where(within, gy, number(gy, 0.0));
    return TN_OK;
}

static tn_status clamp_tensor_infer(tn_infer *infer)
{
    if (infer->in[1] == NULL && infer->in[2] == NULL)
        return tn_fail(TN_ERR_VALUE, "min or max: both are missing; expected at least one");
    if (infer->dtype == TN_DTYPE_AUTO)
        infer->dtype = tn_view_dtype(infer->in[0]);
    if (tn__common_promoted(infer, TN_MASK_INT | TN_MASK_FLOAT, "an integer or float dtype") !=
        TN_OK)
        return tn_error_last_code();
    return tn__broadcast_all(infer);
}

static tn_status clamp_tensor_decompose(const tn_decompose *call)
{
    tn_tensor *y = call->in[0];
    if (call->in[1] != TN_NONE)
        y = tn_maximum(y, call->in[1]);
    if (call->in[2] != TN_NONE)
        y = tn_minimum(y, call->in[2]);
    return tn__common_given(call->out, y);
}

/* With only one bound, the derivative is that of maximum or minimum: x and the bound share gy where
 * they are equal. */
static tn_status one_bound_derive(tn_derive *d, int which)
{
    tn_tensor *gy = d->gout[0], *x = d->in[0], *bound = d->in[which];
    tn_tensor *shared = tn_where(tn_eq(x, bound), times(gy, 0.5), gy);
    tn_tensor *below = tn_lt(x, bound), *above = tn_gt(x, bound);

    if (tn__needs(d, 0))
        d->gin[0] = tn_where(which == 1 ? below : above, number(gy, 0.0), shared);
    if (tn__needs(d, which))
        d->gin[which] = tn_where(which == 1 ? above : below, number(gy, 0.0), shared);
    return TN_OK;
}

/* The gradient goes to the operand that was selected. Where x equals one bound, each of them gets
 * half; where min equals max, too, x gets all. */
static tn_status clamp_tensor_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0], *x = d->in[0], *min = d->in[1], *max = d->in[2], *half, *at_min,
              *at_max;

    if (d->in_meta[1].ndim < 0 || d->in_meta[2].ndim < 0)
        return one_bound_derive(d, d->in_meta[1].ndim < 0 ? 2 : 1);
    half = times(gy, 0.5);
    at_min = tn_eq(x, min);
    at_max = tn_eq(x, max);
    if (tn__needs(d, 0))
        d->gin[0] = tn_where(tn_bitwise_or(tn_lt(x, min), tn_gt(x, max)), number(gy, 0.0),
                             tn_where(tn_bitwise_xor(at_min, at_max), half, gy));
    if (tn__needs(d, 1))
        d->gin[1] = tn_where(
            tn_bitwise_and(tn_lt(x, min), tn_le(min, max)), gy,
            tn_where(tn_bitwise_and(at_min, tn_lt(min, max)), half, number(gy, 0.0)));
    if (tn__needs(d, 2))
        d->gin[2] = tn_where(
            tn_bitwise_or(tn_gt(x, max), tn_gt(min, max)), gy,
            tn_where(tn_bitwise_and(at_max, tn_lt(min, max)), half, number(gy, 0.0)));
    return TN_OK;
}

/* ---- lerp, addcmul, addcdiv ---- */

static tn_status addition_infer(tn_infer *infer)
{
    if (infer->dtype == TN_DTYPE_AUTO)
        infer->dtype = tn_view_dtype(infer->in[0]);
    return tn__broadcast_all(infer);
}

static tn_status lerp_decompose(const tn_decompose *call)
{
    return tn__common_given(
        call->out, tn_add(call->in[0], tn_mul(call->in[2], tn_sub(call->in[1], call->in[0]))));
}

static tn_status lerp_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0], *weight = d->in[2];

    if (tn__needs(d, 0))
        d->gin[0] = tn__common_chain(gy, tn_add_scalar(tn_neg(weight), 1.0));
    if (tn__needs(d, 1))
        d->gin[1] = tn__common_chain(gy, weight);
    if (tn__needs(d, 2))
        d->gin[2] = tn__common_chain(gy, tn_sub(d->in[1], d->in[0]));
    return TN_OK;
}

static tn_status lerp_scalar_infer(tn_infer *infer)
{
    tn_scalar weight = ((const tn_lerp_scalar_options *)infer->options)->weight;
    tn_dtype dtype = infer->dtype != TN_DTYPE_AUTO ? infer->dtype : tn_view_dtype(infer->in[0]);
    tn_status status = tn__scalar_factor(dtype, weight, "weight");

    return status == TN_OK ? addition_infer(infer) : status;
}

static tn_status lerp_scalar_decompose(const tn_decompose *call)
{
    tn_scalar weight = ((const tn_lerp_scalar_options *)call->options)->weight;
    return tn__common_given(call->out,
                            plus_times(call->in[0], weight, tn_sub(call->in[1], call->in[0])));
}

static tn_status lerp_scalar_derive(tn_derive *d)
{
    tn_scalar weight = tn__scalar_conj(((const tn_lerp_scalar_options *)d->options)->weight);

    if (tn__needs(d, 0))
        d->gin[0] = times(d->gout[0], tn__scalar_minus(tn_scalar_float(1.0), weight));
    if (tn__needs(d, 1))
        d->gin[1] = times(d->gout[0], weight);
    return TN_OK;
}

static tn_status addcmul_infer(tn_infer *infer)
{
    tn_scalar value = ((const tn_addcmul_options *)infer->options)->value;

    if (infer->dtype == TN_DTYPE_AUTO)
        infer->dtype = tn_view_dtype(infer->in[0]);
    if (tn__common_promoted(infer, TN_MASK_ARITH, "another dtype") != TN_OK)
        return tn_error_last_code();
    if (tn__is_int(infer->dtype) && value.kind == TN_SCALAR_FLOAT && !tn__scalar_whole(value))
        return tn_fail(
            TN_ERR_VALUE,
            "value: not an integer, got %g for %s tensors; expected an integer, or a tensor of a "
            "float dtype",
            value.as.f, tn_dtype_name(infer->dtype));
    if (tn__scalar_factor(infer->dtype, value, "value") != TN_OK)
        return tn_error_last_code();
    return tn__broadcast_all(infer);
}

static tn_status addcmul_decompose(const tn_decompose *call)
{
    return tn__common_given(
        call->out, plus_times(call->in[0],
                              tn__scalar_in(tn_tensor_dtype(call->in[0]),
                                            ((const tn_addcmul_options *)call->options)->value),
                              tn_mul(call->in[1], call->in[2])));
}

static tn_status addcmul_derive(tn_derive *d)
{
    tn_scalar value = ((const tn_addcmul_options *)d->options)->value;

    if (tn__needs(d, 0))
        d->gin[0] = d->gout[0];
    if (tn__needs(d, 1))
        d->gin[1] = tn__common_chain(d->gout[0], times(d->in[2], value));
    if (tn__needs(d, 2))
        d->gin[2] = tn__common_chain(d->gout[0], times(d->in[1], value));
    return TN_OK;
}

static tn_status addcdiv_infer(tn_infer *infer)
{
    tn_scalar value = ((const tn_addcdiv_options *)infer->options)->value;
    tn_dtype dtype = infer->dtype != TN_DTYPE_AUTO ? infer->dtype : tn_view_dtype(infer->in[0]);
    tn_status status = tn__common_promoted(infer, TN_MASK_FLOAT | TN_MASK_COMPLEX,
                                           "a float or complex dtype");

    if (status == TN_OK)
        status = tn__scalar_factor(dtype, value, "value");
    return status == TN_OK ? addition_infer(infer) : status;
}

static tn_status addcdiv_decompose(const tn_decompose *call)
{
    tn_scalar value = ((const tn_addcdiv_options *)call->options)->value;
    return tn__common_given(call->out,
                            plus_times(call->in[0], value, tn_div(call->in[1], call->in[2])));
}

/* Returns the gradient of the denominator b. Computed in float32 for float16 and bfloat16, because
 * the terms may cancel when they are summed over broadcast dimensions. */
static tn_tensor *addcdiv_grad(tn_tensor *gy, tn_tensor *a, tn_tensor *b, tn_scalar value)
{
    tn_dtype dtype = tn_tensor_dtype(b);
    bool narrow = dtype == TN_F16 || dtype == TN_BF16;
    tn_tensor *g;

    if (narrow) {
        gy = tn_cast(gy, TN_F32);
        a = tn_cast(a, TN_F32);
        b = tn_cast(b, TN_F32);
    }
    g = tn__common_chain(times(gy, tn__scalar_neg(value)), tn_div(tn_div(a, b), b));
    return narrow ? tn_cast(g, dtype) : g;
}

static tn_status addcdiv_derive(tn_derive *d)
{
    tn_scalar value = tn__scalar_conj(((const tn_addcdiv_options *)d->options)->value);
    tn_tensor *a = d->in[1], *b = d->in[2];

    if (tn__needs(d, 0))
        d->gin[0] = d->gout[0];
    if (tn__needs(d, 1))
        d->gin[1] = tn_div(times(d->gout[0], value), tn__common_conj(b));
    if (tn__needs(d, 2))
        d->gin[2] = addcdiv_grad(d->gout[0], a, b, value);
    return TN_OK;
}
TN__OP(clamp, .infer = clamp_infer, .derive = clamp_derive);
TN__OP(clamp_tensor, .infer = clamp_tensor_infer, .derive = clamp_tensor_derive,
       .decompose = clamp_tensor_decompose);
TN__OP(lerp, .infer = addition_infer, .derive = lerp_derive, .decompose = lerp_decompose);
TN__OP(lerp_scalar, .infer = lerp_scalar_infer, .derive = lerp_scalar_derive,
       .decompose = lerp_scalar_decompose);
TN__OP(addcmul, .infer = addcmul_infer, .derive = addcmul_derive, .decompose = addcmul_decompose);
TN__OP(addcdiv, .infer = addcdiv_infer, .derive = addcdiv_derive, .decompose = addcdiv_decompose);
