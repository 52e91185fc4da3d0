/* SPDX-License-Identifier: MIT
 *
 * Variance, standard deviation and norms over dimensions. */
#include "reduction.h"

/* ---- variance and standard deviation ---- */

static double spread_factor(tn_ints shape, tn_ints dims, double correction)
{
    double n = members(shape, dims) - correction;

    return 1.0 / (n > 0 ? n : 0);
}

/* Returns |x|^2 as a real tensor. */
static tn_tensor *square_size(tn_tensor *x)
{
    tn_tensor *re, *im;

    if (x == NULL || !tn__is_complex(tn_tensor_dtype(x)))
        return tn_mul(x, x);
    re = tn_real(x);
    im = tn_imag(x);
    return tn_add(tn_mul(re, re), tn_mul(im, im));
}

/* Two passes: computes the mean, then the sum of squared differences from the mean. Callers cast
 * float16 and bfloat16 to float32 first. */
static tn_tensor *variance(tn_tensor *x, tn_ints dims, double correction, bool keepdim)
{
    tn_tensor *apart = tn_sub(x, mean_of(x, dims, true));

    if (apart == NULL)
        return NULL;
    return tn_mul_scalar(sum_of(square_size(apart), dims, keepdim),
                         spread_factor(tn_tensor_shape(x), dims, correction));
}

static tn_status var_infer(tn_infer *infer)
{
    const tn_var_options *o = infer->options;

    return tn__reduce_infer(infer, o->dims, o->keepdim,
                            tn__common_part(tn_view_dtype(infer->in[0])));
}

static tn_status var_decompose(const tn_decompose *call)
{
    const tn_var_options *o = call->options;
    bool narrow = tn__common_narrow(call->in[0]);
    tn_tensor *y = variance(narrow ? tn_cast(call->in[0], TN_F32) : call->in[0], o->dims,
                            o->correction, o->keepdim);
    return tn__common_given(call->out, narrow ? like(y, call->in[0]) : y);
}

static tn_status var_derive(tn_derive *d)
{
    const tn_var_options *o = d->options;
    tn_ints shape = tn__common_in_shape(d, 0);
    tn_tensor *gy = tn__common_unreduced(d->gout[0], shape, o->dims, o->keepdim);

    gy = tn_mul_scalar(gy, 2 * spread_factor(shape, o->dims, o->correction));
    d->gin[0] = tn_mul(gy, tn_sub(d->in[0], mean_of(d->in[0], o->dims, true)));
    return TN_OK;
}

static tn_status std_infer(tn_infer *infer)
{
    const tn_std_options *o = infer->options;

    return tn__reduce_infer(infer, o->dims, o->keepdim,
                            tn__common_part(tn_view_dtype(infer->in[0])));
}

static tn_status std_decompose(const tn_decompose *call)
{
    const tn_std_options *o = call->options;
    bool narrow = tn__common_narrow(call->in[0]);
    tn_tensor *y = tn_sqrt(variance(narrow ? tn_cast(call->in[0], TN_F32) : call->in[0], o->dims,
                                    o->correction, o->keepdim));
    return tn__common_given(call->out, narrow ? like(y, call->in[0]) : y);
}

static tn_status std_derive(tn_derive *d)
{
    const tn_std_options *o = d->options;
    tn_ints shape = tn__common_in_shape(d, 0);
    tn_tensor *y = tn__common_unreduced(d->out[0], shape, o->dims, o->keepdim);
    tn_tensor *gy = tn__common_unreduced(d->gout[0], shape, o->dims, o->keepdim);
    tn_tensor *g = or_zero(tn_eq(y, tn__scalar_number(y, 0.0)), divide(gy, y));

    d->gin[0] = tn_mul(tn_mul_scalar(g, spread_factor(shape, o->dims, o->correction)),
                       tn_sub(d->in[0], mean_of(d->in[0], o->dims, true)));
    return TN_OK;
}

/* ---- norms ---- */

static tn_status norm_infer(tn_infer *infer)
{
    const tn_norm_options *o = infer->options;
    tn_dtype dtype = tn__common_part(tn__common_asked(infer, o->dtype));

    if (!(TN_MASK_FLOAT & TN_BIT(dtype)))
        return tn_fail(
            TN_ERR_RUNTIME,
            "x or dtype: wrong dtype, got %s; expected a float or complex dtype, in x or in the "
            "option dtype",
            tn_dtype_name(dtype));
    if (isinf(o->p))
        return tn__common_extreme(infer, o->dims, o->keepdim, dtype);
    return tn__reduce_infer(infer, o->dims, o->keepdim, dtype);
}

static tn_tensor *norm_of(tn_tensor *x, const tn_norm_options *o)
{
    tn_tensor *size;

    if (o->p == 2)
        return tn_sqrt(sum_of(square_size(x), o->dims, o->keepdim));
    if (o->p == 0)
        return sum_of(
            tn_cast(tn_ne(x, tn__scalar_number(x, 0.0)), tn__common_part(tn_tensor_dtype(x))),
            o->dims, o->keepdim);
    size = tn_abs(x);
    if (o->p == 1)
        return sum_of(size, o->dims, o->keepdim);
    if (isinf(o->p))
        return o->p > 0 ? tn_amax(size, o->dims, o->keepdim) : tn_amin(size, o->dims, o->keepdim);
    return tn_pow_scalar(sum_of(tn_pow_scalar(size, o->p), o->dims, o->keepdim), 1.0 / o->p);
}

static tn_status norm_decompose(const tn_decompose *call)
{
    bool narrow = tn__common_narrow(call->in[0]);
    tn_tensor *y = norm_of(narrow ? tn_cast(call->in[0], TN_F32) : call->in[0], call->options);
    return tn__common_given(call->out, narrow ? like(y, call->in[0]) : y);
}

static tn_status norm_derive(tn_derive *d)
{
    const tn_norm_options *o = d->options;
    tn_ints shape = tn__common_in_shape(d, 0);
    tn_tensor *x = d->in[0], *size = tn_abs(x), *zero = tn__scalar_number(size, 0.0), *scaled,
              *scale;
    tn_tensor *y = tn__common_unreduced(d->out[0], shape, o->dims, o->keepdim);
    tn_tensor *gy = tn__common_unreduced(d->gout[0], shape, o->dims, o->keepdim);

    if (o->p == 0) {
        d->gin[0] = tn__common_zeros(x, shape);
    } else if (o->p == 1) {
        d->gin[0] = tn_mul(tn_sgn(x), gy);
    } else if (o->p == 2) {
        /* No division by a norm of 0, because it would make the second derivative NaN. */
        tn_tensor *none = tn_eq(y, zero), *safe = tn_where(none, tn__scalar_number(y, 1.0), y);

        d->gin[0] = tn_mul(x, or_zero(none, divide(gy, safe)));
    } else if (isinf(o->p)) { /* distributed evenly among the elements with this absolute value */
        tn_tensor *mask = like(tn_eq(size, y), gy);

        d->gin[0] = tn_mul(tn_mul(tn_sgn(x), mask), divide(gy, sum_of(mask, o->dims, true)));
    } else {
        scaled = tn_mul(tn_sgn(x), tn_pow_scalar(size, o->p - 1));
        if (o->p < 2)
            scaled = or_zero(tn_eq(size, zero), scaled);
        scale = or_zero(tn_eq(y, zero), divide(gy, tn_pow_scalar(y, o->p - 1)));
        d->gin[0] = tn_mul(scaled, scale);
    }
    return TN_OK;
}
TN__OP(var, .infer = var_infer, .derive = var_derive, .decompose = var_decompose);
TN__OP(std, .infer = std_infer, .derive = std_derive, .decompose = std_decompose);
TN__OP(norm, .infer = norm_infer, .derive = norm_derive, .decompose = norm_decompose);
