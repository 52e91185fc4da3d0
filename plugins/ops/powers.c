/* SPDX-License-Identifier: MIT
 *
 * Arithmetic of two and three numbers beyond the four rules: remainders, powers, bounds, mixtures. */
#include "common.h"

static bool is_int(tn_dtype dtype)
{
    return (TN_MASK_INT & TN_BIT(dtype)) != 0;
}

static bool is_whole(double value)
{
    return value == floor(value) && fabs(value) < 0x1p63;
}

static tn_tensor *zero(tn_tensor *like)
{
    return tn__common_number(like, 0.0);
}

static tn_tensor *times(tn_tensor *x, double factor)
{
    return factor == 1.0 ? x : tn_mul_scalar(x, factor);
}

static tn_tensor *plus_times(tn_tensor *x, double factor, tn_tensor *y)
{
    tn_add_options o = TN_ADD_OPTIONS;

    o.alpha = factor;
    return tn_add(x, y, &o);
}

static tn_tensor *both(tn_tensor *a, tn_tensor *b)
{
    return tn_bitwise_and(a, b);
}

/* ---- minimum, remainders ---- */

/* gy where a is the smaller one, half of it where both are */
static tn_status minimum_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0], *a = d->in[0], *b = d->in[1];
    tn_tensor *shared = tn_where(tn_eq(a, b), times(gy, 0.5), gy);

    if (tn__needs(d, 0))
        d->gin[0] = tn_where(tn_gt(a, b), zero(gy), shared);
    if (tn__needs(d, 1))
        d->gin[1] = tn_where(tn_lt(a, b), zero(gy), shared);
    return TN_OK;
}

/* y = a - b * rounded(a / b) */
static tn_status rest_derive(tn_derive *d, const char *mode)
{
    tn_div_options o = TN_DIV_OPTIONS;

    o.rounding_mode = mode;
    if (tn__needs(d, 0))
        d->gin[0] = d->gout[0];
    if (tn__needs(d, 1))
        d->gin[1] = tn_neg(tn_mul(d->gout[0], tn_div(d->in[0], d->in[1], &o)));
    return TN_OK;
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
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "a power of bool tensors; tn_cast one of them to an integer or float type");
    return tn__common_binary(infer);
}

/* ga = gy b a^(b - 1), 0 for b = 0; gb = gy y ln a, 0 for a = 0 and b >= 0 */
static tn_status pow_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0], *a = d->in[0], *b = d->in[1], *y = d->out[0];

    if (tn__needs(d, 0)) {
        tn_tensor *slope = tn__common_chain(gy, tn_mul(b, tn_pow(a, tn_add_scalar(b, -1.0))));

        d->gin[0] = tn_where(tn_eq(b, zero(b)), zero(gy), slope);
    }
    if (tn__needs(d, 1)) {
        tn_tensor *re = tn_real(b), *flat = both(tn_eq(a, zero(a)), tn_ge(re, zero(re)));

        if (b != NULL && tn__is_complex(tn_tensor_dtype(b)))
            flat = both(flat, tn_eq(tn_imag(b), zero(re)));
        d->gin[1] = tn__common_chain(gy, tn_where(flat, zero(y), tn_mul(y, tn_ln(a))));
    }
    return TN_OK;
}

static tn_status pow_scalar_infer(tn_infer *infer)
{
    double exponent = ((const tn_pow_scalar_options *)infer->options)->exponent;
    tn_dtype dtype = tn_view_dtype(infer->in[0]);

    if ((is_int(dtype) || dtype == TN_BOOL) && is_whole(exponent) && exponent < 0)
        return tn_fail(TN_ERR_RUNTIME,
                       "exponent: Integers to negative integer powers are not allowed, got %g for "
                       "elements of %s; cast to a float type first",
                       exponent, tn_dtype_name(dtype));
    if (is_int(dtype) && is_whole(exponent) &&
        tn__common_fits(dtype, exponent, "exponent") != TN_OK)
        return tn_error_last()->code;
    if (is_int(dtype) && !is_whole(exponent))
        infer->dtype = tn_default_dtype();
    if (dtype == TN_BOOL)
        infer->dtype = is_whole(exponent) ? TN_I64 : tn_default_dtype();
    return tn__common_unary(infer);
}

static tn_status pow_scalar_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                      tn_tensor **out)
{
    double exponent = ((const tn_pow_scalar_options *)options)->exponent;
    tn_tensor *x = in[0];

    (void)n_in;
    if (exponent == 1.0)
        return tn__common_given(out, tn_copy(x));
    if (exponent == 2.0)
        return tn__common_given(out, tn_square(x));
    if (exponent == 3.0)
        return tn__common_given(out, tn_mul(tn_mul(x, x), x));
    if (exponent == 0.5)
        return tn__common_given(out, tn_sqrt(x));
    if (exponent == -0.5)
        return tn__common_given(out, tn_rsqrt(x));
    if (exponent == -1.0)
        return tn__common_given(out, tn_reciprocal(x));
    return tn__common_given(out, tn_pow(x, tn__common_number(x, exponent)));
}

static tn_status pow_scalar_derive(tn_derive *d)
{
    double exponent = ((const tn_pow_scalar_options *)d->options)->exponent;

    if (exponent == 0.0)
        d->gin[0] = tn_fill(d->gout[0], 0.0);
    else
        d->gin[0] = tn__common_chain(d->gout[0],
                                     times(tn_pow_scalar(d->in[0], exponent - 1.0), exponent));
    return TN_OK;
}

/* y = angle of (b, a): ga = gy b / (a^2 + b^2), gb = -gy a / (a^2 + b^2); both 0 at (0, 0) */
static tn_status atan2_derive(tn_derive *d)
{
    tn_tensor *a = d->in[0], *b = d->in[1];
    tn_tensor *square = tn_add(tn_mul(a, a), tn_mul(b, b), NULL);
    tn_tensor *origin = tn_logical_not(square);
    tn_tensor *scaled = tn_div(d->gout[0], tn_masked_fill(square, origin, 1.0), NULL);

    if (tn__needs(d, 0))
        d->gin[0] = tn_mul(scaled, b);
    if (tn__needs(d, 1))
        d->gin[1] = tn_neg(tn_mul(scaled, a));
    return TN_OK;
}

/* ---- bounds ---- */

/* A bound of integers that all of them meet may be out of range, and one that none can meet not. */
static tn_status clamp_whole(tn_infer *infer, const tn_clamp_options *o)
{
    tn_dtype dtype = tn_view_dtype(infer->in[0]);
    tn_status status = TN_OK;

    if (tn__given_number(o->min) && o->min > 0)
        status = tn__common_fits(dtype, o->min, "min");
    if (status == TN_OK && tn__given_number(o->max) && o->max < 0)
        status = tn__common_fits(dtype, o->max, "max");
    return status == TN_OK ? tn__common_unary(infer) : status;
}

static tn_status clamp_infer(tn_infer *infer)
{
    const tn_clamp_options *o = infer->options;
    tn_dtype dtype = tn_view_dtype(infer->in[0]);

    if (!tn__given_number(o->min) && !tn__given_number(o->max))
        return tn_fail(TN_ERR_VALUE, "at least one of min and max has to be given");
    if (is_int(dtype) && ((tn__given_number(o->min) && !is_whole(o->min)) ||
                          (tn__given_number(o->max) && !is_whole(o->max))))
        infer->dtype = tn_default_dtype();
    else if (is_int(dtype))
        return clamp_whole(infer, o);
    return tn__common_unary(infer);
}

/* gy between the bounds, which do not belong to it */
static tn_status clamp_derive(tn_derive *d)
{
    const tn_clamp_options *o = d->options;
    tn_tensor *gy = d->gout[0], *x = d->in[0], *within = NULL;

    if (tn__given_number(o->min))
        within = tn_gt(x, tn__common_number(x, o->min));
    if (tn__given_number(o->max)) {
        tn_tensor *below = tn_lt(x, tn__common_number(x, o->max));

        within = tn__given_number(o->min) ? both(within, below) : below;
    }
    d->gin[0] = tn_where(within, gy, zero(gy));
    return TN_OK;
}

static tn_status clamp_tensor_infer(tn_infer *infer)
{
    if (infer->in[1] == NULL && infer->in[2] == NULL)
        return tn_fail(TN_ERR_VALUE, "at least one of min and max has to be given");
    if (infer->dtype == TN_DTYPE_AUTO)
        infer->dtype = tn_view_dtype(infer->in[0]);
    return tn__common_broadcast(infer);
}

static tn_status clamp_tensor_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                        tn_tensor **out)
{
    tn_tensor *y = in[0];

    (void)n_in, (void)options;
    if (in[1] != TN_NONE)
        y = tn_maximum(y, in[1]);
    if (in[2] != TN_NONE)
        y = tn_minimum(y, in[2]);
    return tn__common_given(out, y);
}

/* One bound: as of the maximum or minimum, equals share. */
static tn_status one_bound_derive(tn_derive *d, int which)
{
    tn_tensor *gy = d->gout[0], *x = d->in[0], *bound = d->in[which];
    tn_tensor *shared = tn_where(tn_eq(x, bound), times(gy, 0.5), gy);
    tn_tensor *below = tn_lt(x, bound), *above = tn_gt(x, bound);

    if (tn__needs(d, 0))
        d->gin[0] = tn_where(which == 1 ? below : above, zero(gy), shared);
    if (tn__needs(d, which))
        d->gin[which] = tn_where(which == 1 ? above : below, zero(gy), shared);
    return TN_OK;
}

/* Two bounds: who is taken gets it all, a bound that is met gets half when it is not the other one too. */
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
        d->gin[0] = tn_where(tn_bitwise_or(tn_lt(x, min), tn_gt(x, max)), zero(gy),
                             tn_where(tn_bitwise_xor(at_min, at_max), half, gy));
    if (tn__needs(d, 1))
        d->gin[1] = tn_where(both(tn_lt(x, min), tn_le(min, max)), gy,
                             tn_where(both(at_min, tn_lt(min, max)), half, zero(gy)));
    if (tn__needs(d, 2))
        d->gin[2] = tn_where(tn_bitwise_or(tn_gt(x, max), tn_gt(min, max)), gy,
                             tn_where(both(at_max, tn_lt(min, max)), half, zero(gy)));
    return TN_OK;
}

/* ---- mixtures ---- */

static tn_status addition_infer(tn_infer *infer)
{
    if (infer->dtype == TN_DTYPE_AUTO)
        infer->dtype = tn_view_dtype(infer->in[0]);
    return tn__common_broadcast(infer);
}

static tn_status lerp_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                tn_tensor **out)
{
    (void)n_in, (void)options;
    return tn__common_given(out, tn_add(in[0], tn_mul(in[2], tn_sub(in[1], in[0], NULL)), NULL));
}

static tn_status lerp_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0], *weight = d->in[2];

    if (tn__needs(d, 0))
        d->gin[0] = tn__common_chain(gy, tn_add_scalar(tn_neg(weight), 1.0));
    if (tn__needs(d, 1))
        d->gin[1] = tn__common_chain(gy, weight);
    if (tn__needs(d, 2))
        d->gin[2] = tn__common_chain(gy, tn_sub(d->in[1], d->in[0], NULL));
    return TN_OK;
}

static tn_status lerp_scalar_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                       tn_tensor **out)
{
    double weight = ((const tn_lerp_scalar_options *)options)->weight;

    (void)n_in;
    return tn__common_given(out, plus_times(in[0], weight, tn_sub(in[1], in[0], NULL)));
}

static tn_status lerp_scalar_derive(tn_derive *d)
{
    double weight = ((const tn_lerp_scalar_options *)d->options)->weight;

    if (tn__needs(d, 0))
        d->gin[0] = times(d->gout[0], 1.0 - weight);
    if (tn__needs(d, 1))
        d->gin[1] = times(d->gout[0], weight);
    return TN_OK;
}

static tn_status addcmul_infer(tn_infer *infer)
{
    double value = ((const tn_addcmul_options *)infer->options)->value;

    if (infer->dtype == TN_DTYPE_AUTO)
        infer->dtype = tn_view_dtype(infer->in[0]);
    if (is_int(infer->dtype) && !is_whole(value))
        return tn_fail(
            TN_ERR_VALUE,
            "value %g of %s tensors; it has to be a whole number, or a tensor of a float type",
            value, tn_dtype_name(infer->dtype));
    if (tn__common_factor(infer->dtype, value, "value") != TN_OK)
        return tn_error_last()->code;
    return tn__common_broadcast(infer);
}

static tn_status addcmul_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                   tn_tensor **out)
{
    (void)n_in;
    return tn__common_given(
        out, plus_times(in[0], ((const tn_addcmul_options *)options)->value, tn_mul(in[1], in[2])));
}

static tn_status addcmul_derive(tn_derive *d)
{
    double value = ((const tn_addcmul_options *)d->options)->value;

    if (tn__needs(d, 0))
        d->gin[0] = d->gout[0];
    if (tn__needs(d, 1))
        d->gin[1] = tn__common_chain(d->gout[0], times(d->in[2], value));
    if (tn__needs(d, 2))
        d->gin[2] = tn__common_chain(d->gout[0], times(d->in[1], value));
    return TN_OK;
}

static tn_status addcdiv_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                   tn_tensor **out)
{
    double value = ((const tn_addcdiv_options *)options)->value;

    (void)n_in;
    return tn__common_given(out, plus_times(in[0], value, tn_div(in[1], in[2], NULL)));
}

/* In float32 for the halves: broadcast inputs add up many of these, and cancel. */
static tn_tensor *addcdiv_grad(tn_tensor *gy, tn_tensor *a, tn_tensor *b, double value)
{
    tn_dtype dtype = tn_tensor_dtype(b);
    bool narrow = dtype == TN_F16 || dtype == TN_BF16;
    tn_tensor *g;

    if (narrow) {
        gy = tn_cast(gy, TN_F32);
        a = tn_cast(a, TN_F32);
        b = tn_cast(b, TN_F32);
    }
    g = tn__common_chain(times(gy, -value), tn_div(tn_div(a, b, NULL), b, NULL));
    return narrow ? tn_cast(g, dtype) : g;
}

static tn_status addcdiv_derive(tn_derive *d)
{
    double value = ((const tn_addcdiv_options *)d->options)->value;
    tn_tensor *a = d->in[1], *b = d->in[2];

    if (tn__needs(d, 0))
        d->gin[0] = d->gout[0];
    if (tn__needs(d, 1))
        d->gin[1] = tn_div(times(d->gout[0], value), tn__common_conj(b), NULL);
    if (tn__needs(d, 2))
        d->gin[2] = addcdiv_grad(d->gout[0], a, b, value);
    return TN_OK;
}

#define PRIMITIVE(name, NAME)                                                                      \
    const tn_op_def tn__op_##name = { TN_HEAD(tn_op_def), TN_SCHEMA_##NAME,                        \
                                      .infer = tn__common_binary, .derive = name##_derive };
#define COMPOSED(name, NAME, infer_)                                                               \
    const tn_op_def tn__op_##name = { TN_HEAD(tn_op_def), TN_SCHEMA_##NAME, .infer = infer_,       \
                                      .derive = name##_derive, .decompose = name##_decompose };
PRIMITIVE(minimum, MINIMUM)
PRIMITIVE(remainder, REMAINDER)
PRIMITIVE(fmod, FMOD)
const tn_op_def tn__op_pow = { TN_HEAD(tn_op_def), TN_SCHEMA_POW, .infer = pow_infer,
                               .derive = pow_derive, TN__PARTS(pow) };
PRIMITIVE(atan2, ATAN2)
COMPOSED(pow_scalar, POW_SCALAR, pow_scalar_infer)
const tn_op_def tn__op_clamp = { TN_HEAD(tn_op_def), TN_SCHEMA_CLAMP, .infer = clamp_infer,
                                 .derive = clamp_derive };
COMPOSED(clamp_tensor, CLAMP_TENSOR, clamp_tensor_infer)
COMPOSED(lerp, LERP, addition_infer)
COMPOSED(lerp_scalar, LERP_SCALAR, addition_infer)
COMPOSED(addcmul, ADDCMUL, addcmul_infer)
COMPOSED(addcdiv, ADDCDIV, addition_infer)
