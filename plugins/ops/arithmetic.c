/* SPDX-License-Identifier: MIT
 *
 * Element by element, with broadcasting. Gradients of broadcast operands are summed to their shape
 * by the core. */
#include "common.h"

static tn_tensor *scaled(tn_tensor *x, double factor)
{
    return factor == 1.0 ? x : tn_mul_scalar(x, factor);
}

/* Nothing of alpha is lost without a word. */
static tn_status scaled_infer(tn_infer *infer, double alpha)
{
    tn_status status = tn__common_binary(infer);

    if (alpha != 1.0 && status == TN_OK && alpha != floor(alpha) &&
        ((TN_MASK_INT | TN_BIT(TN_BOOL)) & TN_BIT(infer->out[0].dtype)))
        return tn_fail(TN_ERR_RUNTIME,
                       "For integral input tensors, argument alpha must not be a floating point "
                       "number (it is %g)",
                       alpha);
    return status == TN_OK ? tn__common_factor(infer->out[0].dtype, alpha, "alpha") : status;
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
        d->gin[1] = scaled(d->gout[0], o->alpha);
    return TN_OK;
}

static tn_status sub_derive(tn_derive *d)
{
    const tn_sub_options *o = d->options;

    if (tn__needs(d, 0))
        d->gin[0] = d->gout[0];
    if (tn__needs(d, 1))
        d->gin[1] = o->alpha == 1.0 ? tn_neg(d->gout[0]) : tn_mul_scalar(d->gout[0], -o->alpha);
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

/* Without rounding whole numbers become floats. */
static tn_status div_infer(tn_infer *infer)
{
    const char *mode = ((const tn_div_options *)infer->options)->rounding_mode;
    tn_dtype dtype = infer->dtype;

    if (mode == NULL) {
        if (((TN_MASK_INT | TN_BIT(TN_BOOL)) & TN_BIT(dtype)) != 0)
            infer->dtype = tn_default_dtype();
        return tn__common_binary(infer);
    }
    if (strcmp(mode, "trunc") != 0 && strcmp(mode, "floor") != 0)
        return tn_fail(TN_ERR_VALUE, "rounding_mode is %q; expected None, trunc or floor", mode);
    if (((TN_MASK_INT | TN_MASK_FLOAT) & TN_BIT(dtype)) == 0)
        return tn_fail(TN_ERR_TYPE,
                       "rounding_mode %s of %s tensors; integers and floats can be rounded", mode,
                       tn_dtype_name(dtype));
    return tn__common_binary(infer);
}

/* ga = gy / b, gb = -gy * (a / b) / b; from the inputs, as in PyTorch: the result may be changed in
 * place. A rounded quotient is flat. */
static tn_status div_derive(tn_derive *d)
{
    if (((const tn_div_options *)d->options)->rounding_mode != NULL) {
        for (int i = 0; i < 2; i++)
            if (tn__needs(d, i))
                d->gin[i] = tn_fill(d->gout[0], 0.0);
        return TN_OK;
    }
    if (tn__needs(d, 0))
        d->gin[0] = tn_div(d->gout[0], tn__common_conj(d->in[1]), NULL);
    if (tn__needs(d, 1)) {
        tn_tensor *slope = tn_div(tn_div(d->in[0], d->in[1], NULL), d->in[1], NULL);

        d->gin[1] = tn_neg(tn_mul(d->gout[0], tn__common_conj(slope)));
    }
    return TN_OK;
}

/* gy where a is the larger one, half of it where both are; one that is NaN: gy to both */
static tn_status maximum_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0], *a = d->in[0], *b = d->in[1], *none = tn__common_number(gy, 0.0);
    tn_tensor *shared = tn_where(tn_eq(a, b), tn_mul_scalar(gy, 0.5), gy);

    if (tn__needs(d, 0))
        d->gin[0] = tn_where(tn_lt(a, b), none, shared);
    if (tn__needs(d, 1))
        d->gin[1] = tn_where(tn_gt(a, b), none, shared);
    return TN_OK;
}

/* Whole numbers stay whole numbers; what is none makes the result the default float type. */
static tn_status scalar_infer(tn_infer *infer, double value)
{
    tn_dtype dtype = tn_view_dtype(infer->in[0]);

    if ((TN_MASK_INT & TN_BIT(dtype)) && !(value == floor(value) && fabs(value) < 0x1p63))
        infer->dtype = tn_default_dtype();
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
    d->gin[0] = tn_mul_scalar(d->gout[0], ((const tn_mul_scalar_options *)d->options)->value);
    return TN_OK;
}

static tn_status neg_derive(tn_derive *d)
{
    d->gin[0] = tn_neg(d->gout[0]);
    return TN_OK;
}

static tn_status exp_derive(tn_derive *d)
{
    d->gin[0] = tn_mul(d->gout[0], tn__common_conj(d->out[0]));
    return TN_OK;
}

static tn_status log_derive(tn_derive *d)
{
    d->gin[0] = tn_div(d->gout[0], tn__common_conj(d->in[0]), NULL);
    return TN_OK;
}

static tn_status sqrt_derive(tn_derive *d)
{
    d->gin[0] = tn_div(d->gout[0], tn__common_conj(tn_mul_scalar(d->out[0], 2.0)), NULL);
    return TN_OK;
}

const tn_op_def tn__op_add = { TN_HEAD(tn_op_def), TN_SCHEMA_ADD, .infer = add_infer,
                               .derive = add_derive, TN__PARTS(add) };
const tn_op_def tn__op_sub = { TN_HEAD(tn_op_def), TN_SCHEMA_SUB, .infer = sub_infer,
                               .derive = sub_derive, TN__PARTS(sub) };
const tn_op_def tn__op_mul = { TN_HEAD(tn_op_def), TN_SCHEMA_MUL, .infer = tn__common_binary,
                               .derive = mul_derive, TN__PARTS(mul) };
const tn_op_def tn__op_div = { TN_HEAD(tn_op_def), TN_SCHEMA_DIV, .infer = div_infer,
                               .derive = div_derive, TN__PARTS(div) };
const tn_op_def tn__op_maximum = { TN_HEAD(tn_op_def), TN_SCHEMA_MAXIMUM,
                                   .infer = tn__common_binary, .derive = maximum_derive };
const tn_op_def tn__op_add_scalar = { TN_HEAD(tn_op_def), TN_SCHEMA_ADD_SCALAR,
                                      .infer = add_scalar_infer, .derive = add_scalar_derive,
                                      TN__PARTS(add_scalar) };
const tn_op_def tn__op_mul_scalar = { TN_HEAD(tn_op_def), TN_SCHEMA_MUL_SCALAR,
                                      .infer = mul_scalar_infer, .derive = mul_scalar_derive,
                                      TN__PARTS(mul_scalar) };
const tn_op_def tn__op_neg = { TN_HEAD(tn_op_def), TN_SCHEMA_NEG, .infer = tn__common_unary,
                               .derive = neg_derive, TN__PARTS(neg) };
const tn_op_def tn__op_exp = { TN_HEAD(tn_op_def), TN_SCHEMA_EXP, .infer = tn__common_unary,
                               .derive = exp_derive, TN__PARTS(exp) };
const tn_op_def tn__op_log = { TN_HEAD(tn_op_def), TN_SCHEMA_LOG, .infer = tn__common_unary,
                               .derive = log_derive, TN__PARTS(log) };
const tn_op_def tn__op_sqrt = { TN_HEAD(tn_op_def), TN_SCHEMA_SQRT, .infer = tn__common_unary,
                                .derive = sqrt_derive, TN__PARTS(sqrt) };
