/* SPDX-License-Identifier: MIT
 *
 * Activations. Most are decomposed into other operators where a device has no kernel; each has a
 * derivative of its own. At a kink the derivative is PyTorch's choice. */
#include "common.h"

static tn_status relu_derive(tn_derive *d)
{
    d->gin[0] = tn_relu_grad(d->gout[0], d->out[0]);
    return TN_OK;
}

/* Linear in gy: the gradient goes through the same mask. */
static tn_status relu_grad_derive(tn_derive *d)
{
    d->gin[0] = tn_relu_grad(d->gout[0], d->in[1]);
    return TN_OK;
}

static tn_status sigmoid_derive(tn_derive *d)
{
    tn_tensor *y = d->out[0];

    if (tn__is_complex(d->in_meta[0].dtype))
        d->gin[0] = tn__common_chain(d->gout[0], tn_mul(y, tn_add_scalar(tn_neg(y), 1.0)));
    else
        d->gin[0] = tn_sigmoid_grad(d->gout[0], y);
    return TN_OK;
}

static tn_status sigmoid_grad_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                        tn_tensor **out)
{
    tn_tensor *gy = in[0], *y = in[1];

    (void)n_in, (void)options;
    return tn__common_given(out, tn_mul(gy, tn_mul(y, tn_add_scalar(tn_neg(y), 1.0))));
}

static tn_status tanh_grad_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                     tn_tensor **out)
{
    tn_tensor *gy = in[0], *y = in[1];

    (void)n_in, (void)options;
    return tn__common_given(out, tn_mul(gy, tn_add_scalar(tn_neg(tn_mul(y, y)), 1.0)));
}

const tn_op_def tn__op_relu = { TN_HEAD(tn_op_def), TN_SCHEMA_RELU, .infer = tn__common_unary,
                                .derive = relu_derive };
const tn_op_def tn__op_relu_grad = { TN_HEAD(tn_op_def), TN_SCHEMA_RELU_GRAD,
                                     .infer = tn__common_pair, .derive = relu_grad_derive };
const tn_op_def tn__op_sigmoid = { TN_HEAD(tn_op_def), TN_SCHEMA_SIGMOID, .infer = tn__common_unary,
                                   .derive = sigmoid_derive, TN__PARTS(sigmoid) };
const tn_op_def tn__op_sigmoid_grad = { TN_HEAD(tn_op_def), TN_SCHEMA_SIGMOID_GRAD,
                                        .infer = tn__common_pair,
                                        .decompose = sigmoid_grad_decompose };
const tn_op_def tn__op_tanh_grad = { TN_HEAD(tn_op_def), TN_SCHEMA_TANH_GRAD,
                                     .infer = tn__common_pair, .decompose = tanh_grad_decompose };

/* ---- words that read as the formulas do ---- */

static tn_tensor *number(tn_tensor *like, double value)
{
    return tn__common_number(like, value);
}

static tn_tensor *times(tn_tensor *x, double factor)
{
    return factor == 1.0 ? x : tn_mul_scalar(x, factor);
}

static tn_tensor *plus(tn_tensor *x, double value)
{
    return tn_add_scalar(x, value);
}

static tn_tensor *sum(tn_tensor *a, tn_tensor *b)
{
    return tn_add(a, b, NULL);
}

static tn_tensor *over(tn_tensor *a, tn_tensor *b)
{
    return tn_div(a, b, NULL);
}

static tn_tensor *one_minus(tn_tensor *x)
{
    return plus(tn_neg(x), 1.0);
}

static tn_tensor *above(tn_tensor *x, double value)
{
    return tn_gt(x, number(x, value));
}

static tn_tensor *at_most(tn_tensor *x, double value)
{
    return tn_le(x, number(x, value));
}

static tn_tensor *at_least(tn_tensor *x, double value)
{
    return tn_ge(x, number(x, value));
}

/* 0 where the mask is, else x */
static tn_tensor *none_where(tn_tensor *mask, tn_tensor *x)
{
    return tn_masked_fill(x, mask, 0.0);
}

static tn_tensor *bounded(tn_tensor *x, double min, double max)
{
    tn_clamp_options o = TN_CLAMP_OPTIONS;

    o.min = min;
    o.max = max;
    return tn_clamp(x, &o);
}

/* gy strictly between the bounds; NaN stays */
static tn_tensor *inside(tn_tensor *gy, tn_tensor *x, double min, double max)
{
    return none_where(tn_bitwise_or(at_most(x, min), at_least(x, max)), gy);
}

#define DECOMPOSE(name, result)                                                                    \
    static tn_status name##_decompose(tn_tensor *const *in, int64_t n_in, const void *options,     \
                                      tn_tensor **out)                                             \
    {                                                                                              \
        const tn_##name##_options *o = options;                                                    \
        tn_tensor *x = in[0];                                                                      \
                                                                                                   \
        (void)n_in, (void)o;                                                                       \
        return tn__common_given(out, result);                                                      \
    }
#define DERIVE(name, gradient)                                                                     \
    static tn_status name##_derive(tn_derive *d)                                                   \
    {                                                                                              \
        const tn_##name##_options *o = d->options;                                                 \
        tn_tensor *gy = d->gout[0], *x = d->in[0];                                                 \
                                                                                                   \
        (void)o;                                                                                   \
        d->gin[0] = gradient;                                                                      \
        return TN_OK;                                                                              \
    }
/* A derivative as an operator: of the gradient gy and the input x. */
#define SLOPE(name, result)                                                                        \
    static tn_status name##_decompose(tn_tensor *const *in, int64_t n_in, const void *options,     \
                                      tn_tensor **out)                                             \
    {                                                                                              \
        const tn_##name##_options *o = options;                                                    \
        tn_tensor *gy = in[0], *x = in[1];                                                         \
                                                                                                   \
        (void)n_in, (void)o, (void)x;                                                              \
        return tn__common_given(out, result);                                                      \
    }
/* Operators without options have no struct. */
typedef void tn_hardsigmoid_grad_options, tn_hardswish_grad_options, tn_silu_grad_options,
    tn_mish_grad_options;
typedef void tn_relu6_options, tn_selu_options, tn_silu_options, tn_mish_options,
    tn_hardswish_options, tn_hardsigmoid_options, tn_logsigmoid_options, tn_tanhshrink_options,
    tn_softsign_options;

/* ---- pieces of lines ---- */

DECOMPOSE(relu6, bounded(x, 0.0, 6.0))
DERIVE(relu6, tn_hardtanh_grad(gy, x, 0.0, 6.0))
DECOMPOSE(hardtanh, bounded(x, o->min_val, o->max_val))
DERIVE(hardtanh, tn_hardtanh_grad(gy, x, o->min_val, o->max_val))
SLOPE(hardtanh_grad, inside(gy, x, o->min_val, o->max_val))
DECOMPOSE(leaky_relu, tn_where(above(x, 0.0), x, times(x, o->negative_slope)))
DERIVE(leaky_relu, tn_leaky_relu_grad(gy, x, o->negative_slope))
SLOPE(leaky_relu_grad, tn_where(above(x, 0.0), gy, times(gy, o->negative_slope)))
DECOMPOSE(threshold, tn_where(at_most(x, o->threshold), number(x, o->value), x))
DERIVE(threshold, tn_threshold_grad(gy, x, o->threshold))
SLOPE(threshold_grad, none_where(at_most(x, o->threshold), gy))
DECOMPOSE(hardsigmoid, times(bounded(plus(x, 3.0), 0.0, 6.0), 1.0 / 6.0))
DERIVE(hardsigmoid, tn_hardsigmoid_grad(gy, x))
SLOPE(hardsigmoid_grad, tn_where(tn_bitwise_and(above(x, -3.0), tn_lt(x, number(x, 3.0))),
                                 times(gy, 1.0 / 6.0), number(gy, 0.0)))
DECOMPOSE(hardswish, times(tn_mul(x, bounded(plus(x, 3.0), 0.0, 6.0)), 1.0 / 6.0))
DERIVE(hardswish, tn_hardswish_grad(gy, x))
SLOPE(hardswish_grad,
      none_where(at_most(x, -3.0),
                 tn_where(at_least(x, 3.0), gy, tn_mul(gy, plus(times(x, 1.0 / 3.0), 0.5)))))
DECOMPOSE(softshrink,
          tn_where(above(x, o->lambd), plus(x, -o->lambd),
                   tn_where(tn_lt(x, number(x, -o->lambd)), plus(x, o->lambd), times(x, 0.0))))
DERIVE(softshrink, tn_hardshrink_grad(gy, x, o->lambd))
DECOMPOSE(hardshrink, none_where(tn_bitwise_and(at_least(x, -o->lambd), at_most(x, o->lambd)), x))
DERIVE(hardshrink, tn_hardshrink_grad(gy, x, o->lambd))
SLOPE(hardshrink_grad, none_where(tn_bitwise_and(at_least(x, -o->lambd), at_most(x, o->lambd)), gy))

/* ---- exponential below zero: x > 0 ? positive x : negative (e^(inner x) - 1) ---- */

#define SELU_ALPHA 1.6732632423543772848170429916717
#define SELU_SCALE 1.0507009873554804934193349852946

static tn_tensor *exponential(tn_tensor *x, double positive, double negative, double inner)
{
    return tn_where(at_most(x, 0.0), times(tn_expm1(times(x, inner)), negative),
                    times(x, positive));
}

static tn_tensor *exponential_grad(tn_tensor *gy, tn_tensor *x, double positive, double negative,
                                   double inner)
{
    tn_tensor *below = times(tn_exp(times(bounded(x, NAN, 0.0), inner)), negative * inner);

    return tn_mul(gy, tn_where(at_most(x, 0.0), below, number(x, positive)));
}
DECOMPOSE(elu, exponential(x, 1.0, o->alpha, 1.0))
DERIVE(elu, tn_elu_grad(gy, x, 1.0, o->alpha, 1.0))
SLOPE(elu_grad, exponential_grad(gy, x, o->positive, o->negative, o->inner))
DECOMPOSE(selu, exponential(x, SELU_SCALE, SELU_SCALE *SELU_ALPHA, 1.0))
DERIVE(selu, tn_elu_grad(gy, x, SELU_SCALE, SELU_SCALE *SELU_ALPHA, 1.0))
DECOMPOSE(celu, exponential(x, 1.0, o->alpha, 1.0 / o->alpha))
DERIVE(celu, tn_elu_grad(gy, x, 1.0, o->alpha, 1.0 / o->alpha))

/* ---- curves ---- */

/* ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|) */
static tn_tensor *smooth(tn_tensor *x)
{
    return sum(bounded(x, 0.0, NAN), tn_log1p(tn_exp(tn_neg(tn_abs(x)))));
}
DECOMPOSE(logsigmoid, tn_neg(smooth(tn_neg(x))))
DERIVE(logsigmoid, tn_softplus_grad(gy, x, -1.0, INFINITY))
DECOMPOSE(softplus, tn_where(above(times(x, o->beta), o->threshold), x,
                             times(smooth(times(x, o->beta)), 1.0 / o->beta)))
DERIVE(softplus, tn_softplus_grad(gy, x, o->beta, o->threshold))
SLOPE(softplus_grad, tn_where(above(times(x, o->beta), o->threshold), gy,
                              tn_mul(gy, tn_sigmoid(times(x, o->beta)))))
DECOMPOSE(silu, tn_mul(x, tn_sigmoid(x)))
/* s + x s (1 - s) */
static tn_tensor *silu_slope(tn_tensor *x)
{
    tn_tensor *s = tn_sigmoid(x);

    return tn_mul(s, plus(tn_mul(x, one_minus(s)), 1.0));
}
DERIVE(silu, tn__is_complex(d->in_meta[0].dtype) ? tn__common_chain(gy, silu_slope(x))
                                                 : tn_silu_grad(gy, x))
SLOPE(silu_grad, tn_mul(gy, silu_slope(x)))
DECOMPOSE(mish, tn_mul(x, tn_tanh(smooth(x))))
/* t + x (1 - t^2) sigmoid(x), t = tanh(s), s = ln(1 + e^x); 1 - t^2 = 4 w / (1 + w)^2, w = e^(-2 s), does not cancel for large x.
 * s as an operator with a derivative of its own: smooth's pieces have a corner at 0. */
static tn_tensor *mish_slope(tn_tensor *x)
{
    tn_tensor *s = tn_neg(tn_logsigmoid(tn_neg(x)));
    tn_tensor *w = tn_exp(times(s, -2.0));
    tn_tensor *rest = times(over(w, tn_square(plus(w, 1.0))), 4.0);

    return sum(tn_tanh(s), tn_mul(tn_mul(x, tn_sigmoid(x)), rest));
}
DERIVE(mish, tn_mish_grad(gy, x))
SLOPE(mish_grad, tn_mul(gy, mish_slope(x)))
DECOMPOSE(tanhshrink, tn_sub(x, tn_tanh(x), NULL))
DERIVE(tanhshrink, tn__common_chain(gy, tn_square(tn_tanh(x))))
DECOMPOSE(softsign, over(x, plus(tn_abs(x), 1.0)))
/* Of complex numbers with r = 1 / (1 + |x|): gy r - r^2 x / |x| Re(gy conj x). */
static tn_tensor *softsign_complex(tn_tensor *gy, tn_tensor *x)
{
    tn_tensor *r = tn_reciprocal(plus(tn_abs(x), 1.0));
    tn_tensor *along = tn_mul(tn_square(r), tn_real(tn_mul(gy, tn_conj(x))));

    return tn_sub(tn_mul(gy, r), tn_mul(tn_sgn(x), along), NULL);
}
DERIVE(softsign, tn__is_complex(d->in_meta[0].dtype) ? softsign_complex(gy, x)
                                                     : over(gy, tn_square(plus(tn_abs(x), 1.0))))

static bool is_tanh(const char *approximate)
{
    return strcmp(approximate, "tanh") == 0;
}

#define ROOT_HALF 0.70710678118654752440
#define ROOT_TWO_OVER_PI 0.79788456080286535588
#define ONE_OVER_ROOT_TWO_PI 0.39894228040143267794
#define CUBIC 0.044715

/* (1 + tanh(u)) / 2 with PyTorch's u, as a sigmoid: which goes to 0 without 1 - 1. */
static tn_tensor *gelu_tanh(tn_tensor *x)
{
    return tn_sigmoid(
        times(tn_mul(x, plus(times(tn_square(x), CUBIC), 1.0)), 2.0 * ROOT_TWO_OVER_PI));
}

/* P(N(0, 1) <= x) */
static tn_tensor *gelu_part(tn_tensor *x)
{
    return times(tn_erfc(times(x, -ROOT_HALF)), 0.5);
}

static tn_tensor *gelu_slope(tn_tensor *x, bool approximate)
{
    tn_tensor *t, *inner;

    if (!approximate)
        return sum(gelu_part(x),
                   times(tn_mul(x, tn_exp(times(tn_square(x), -0.5))), ONE_OVER_ROOT_TWO_PI));
    t = gelu_tanh(x);
    inner = times(plus(times(tn_square(x), 3.0 * CUBIC), 1.0), 2.0 * ROOT_TWO_OVER_PI);
    return tn_mul(t, plus(tn_mul(tn_mul(x, inner), one_minus(t)), 1.0));
}
DECOMPOSE(gelu, tn_mul(x, is_tanh(o->approximate) ? gelu_tanh(x) : gelu_part(x)))
DERIVE(gelu, tn_gelu_grad(gy, x, o->approximate))
SLOPE(gelu_grad, tn_mul(gy, gelu_slope(x, is_tanh(o->approximate))))

static tn_status check_form(const char *form)
{
    if (form == NULL || (strcmp(form, "none") != 0 && strcmp(form, "tanh") != 0))
        return tn_fail(TN_ERR_VALUE, "approximate is %q; expected none or tanh",
                       form != NULL ? form : "None");
    return TN_OK;
}

static tn_status gelu_infer(tn_infer *infer)
{
    tn_status status = check_form(((const tn_gelu_options *)infer->options)->approximate);

    return status == TN_OK ? tn__common_unary(infer) : status;
}

static tn_status gelu_grad_infer(tn_infer *infer)
{
    tn_status status = check_form(((const tn_gelu_grad_options *)infer->options)->approximate);

    return status == TN_OK ? tn__common_pair(infer) : status;
}

static tn_status celu_infer(tn_infer *infer)
{
    if (((const tn_celu_options *)infer->options)->alpha == 0.0)
        return tn_fail(TN_ERR_VALUE, "alpha is 0; expected any other number");
    return tn__common_unary(infer);
}

static tn_status softshrink_infer(tn_infer *infer)
{
    double lambd = ((const tn_softshrink_options *)infer->options)->lambd;

    if (!(lambd >= 0.0) || isinf(lambd))
        return tn_fail(TN_ERR_VALUE, "lambd is %g; expected 0 or more, and finite", lambd);
    return tn__common_unary(infer);
}

static tn_status hardtanh_infer(tn_infer *infer)
{
    const tn_hardtanh_options *o = infer->options;

    if (o->min_val > o->max_val)
        return tn_fail(TN_ERR_VALUE, "min_val is %g and max_val %g; expected min_val <= max_val",
                       o->min_val, o->max_val);
    return tn__common_unary(infer);
}

static tn_status threshold_infer(tn_infer *infer)
{
    const tn_threshold_options *o = infer->options;
    tn_dtype dtype = tn_view_dtype(infer->in[0]);
    tn_status status = tn__common_fits(dtype, o->value, "value");

    if (status == TN_OK && (TN_MASK_INT & TN_BIT(dtype)))
        status = tn__common_fits(dtype, o->threshold, "threshold");
    return status == TN_OK ? tn__common_unary(infer) : status;
}

/* ---- a weight a channel ---- */

static tn_status prelu_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0], *weight = infer->in[1];
    int64_t count = weight->ndim == 1 ? weight->shape[0] : 1,
            channels = x->ndim > 1 ? x->shape[1] : 1;
    char text[TN__TEXT];

    if (weight->ndim > 1)
        return tn_fail(TN_ERR_RUNTIME, "weight has shape %s; expected a vector or a single number",
                       tn__common_text(text, tn__common_shape(weight)));
    if (count != 1 && count != channels)
        return tn_fail(
            TN_ERR_RUNTIME,
            "Mismatch of parameter numbers and input channel size: %lld weights and %lld channels (x has shape %s); "
            "expected 1 or %lld weights",
            (long long)count, (long long)channels, tn__common_text(text, tn__common_shape(x)),
            (long long)channels);
    if (tn_view_dtype(x) != tn_view_dtype(weight))
        return tn_fail(TN_ERR_TYPE, "x is %s and weight %s; expected one dtype",
                       tn_dtype_name(tn_view_dtype(x)), tn_dtype_name(tn_view_dtype(weight)));
    return tn__common_unary(infer);
}

/* The weight as it broadcasts to x: [C, 1, 1 ...]. */
static tn_tensor *prelu_weight(tn_tensor *x, tn_tensor *weight)
{
    int64_t shape[TN_MAX_DIMS];
    int32_t ndim;

    if (x == NULL || weight == NULL)
        return NULL;
    ndim = tn_tensor_ndim(x);
    if (tn_tensor_numel(weight) == 1 && tn_tensor_ndim(weight) <= ndim)
        return weight;
    for (int32_t i = 0; i < ndim - 1; i++)
        shape[i] = 1;
    if (ndim > 1)
        shape[0] = tn_tensor_numel(weight);
    return tn_reshape(weight, (tn_ints){ shape, ndim > 1 ? ndim - 1 : 0 });
}

static tn_status prelu_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                                 tn_tensor **out)
{
    tn_tensor *x = in[0];

    (void)n_in, (void)options;
    return tn__common_given(out, tn_where(above(x, 0.0), x, tn_mul(x, prelu_weight(x, in[1]))));
}

static tn_status prelu_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0], *x = d->in[0];

    if (tn__needs(d, 0))
        d->gin[0] = tn_where(above(x, 0.0), gy, tn_mul(gy, prelu_weight(x, d->in[1])));
    if (tn__needs(d, 1)) {
        tn_tensor *weight = d->in[1], *all = none_where(above(x, 0.0), tn_mul(gy, x)),
                  *shaped = prelu_weight(x, weight);

        if (shaped == NULL)
            return tn_error_last()->code;
        d->gin[1] = tn_reshape(tn_sum_to(all, tn_tensor_shape(shaped)), tn_tensor_shape(weight));
    }
    return TN_OK;
}

/* ---- along a dimension ---- */

static tn_status glu_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];
    int64_t dim_given = ((const tn_glu_options *)infer->options)->dim, shape[TN_MAX_DIMS];
    int32_t dim;
    char text[TN__TEXT];
    tn_status status;

    if (x->ndim == 0)
        return tn_fail(TN_ERR_RUNTIME,
                       "glu does not support 0-dimensional tensors; expected at least 1 dimension");
    status = tn__common_dim(dim_given, x->ndim, &dim);
    if (status != TN_OK)
        return status;
    if (x->shape[dim] % 2 != 0)
        return tn_fail(TN_ERR_RUNTIME,
                       "Halving dimension must be even, but dimension %d is size %lld (shape %s)",
                       (int)dim, (long long)x->shape[dim],
                       tn__common_text(text, tn__common_shape(x)));
    memcpy(shape, x->shape, sizeof *shape * (size_t)x->ndim);
    shape[dim] /= 2;
    tn__common_plain(&infer->out[0], tn_view_dtype(x), (tn_ints){ shape, x->ndim });
    return TN_OK;
}

static tn_status glu_decompose(tn_tensor *const *in, int64_t n_in, const void *options,
                               tn_tensor **out)
{
    int64_t dim = ((const tn_glu_options *)options)->dim, half = tn_tensor_size(in[0], dim) / 2;

    (void)n_in;
    return tn__common_given(
        out, tn_mul(tn_narrow(in[0], dim, 0, half), tn_sigmoid(tn_narrow(in[0], dim, half, half))));
}

/* Both halves are put together once. */
static tn_status glu_derive(tn_derive *d)
{
    int64_t dim = ((const tn_glu_options *)d->options)->dim,
            half = tn_tensor_size(d->in[0], dim) / 2;
    tn_tensor *share = tn_sigmoid(tn_narrow(d->in[0], dim, half, half)), *halves[2], *first;

    halves[0] = tn_mul(d->gout[0], share);
    first = tn_mul(d->gout[0], tn_narrow(d->in[0], dim, 0, half));
    /* a gy s (1 - s), not a gy s - a gy s^2: that of an infinite a is infinite */
    halves[1] = tn_sigmoid_grad(first, share);
    d->gin[0] = halves[1] == NULL ? NULL : tn_cat(halves, 2, dim);
    return TN_OK;
}

/* ---- definitions ---- */

#define COMPOSED(name, NAME, infer_)                                                               \
    const tn_op_def tn__op_##name = { TN_HEAD(tn_op_def), TN_SCHEMA_##NAME, .infer = infer_,       \
                                      .derive = name##_derive, .decompose = name##_decompose };
COMPOSED(relu6, RELU6, tn__common_unary)
COMPOSED(leaky_relu, LEAKY_RELU, tn__common_unary)
COMPOSED(prelu, PRELU, prelu_infer)
COMPOSED(elu, ELU, tn__common_unary)
COMPOSED(selu, SELU, tn__common_unary)
COMPOSED(celu, CELU, celu_infer)
COMPOSED(gelu, GELU, gelu_infer)
COMPOSED(silu, SILU, tn__common_unary)
COMPOSED(mish, MISH, tn__common_unary)
COMPOSED(hardtanh, HARDTANH, hardtanh_infer)
COMPOSED(hardswish, HARDSWISH, tn__common_unary)
COMPOSED(hardsigmoid, HARDSIGMOID, tn__common_unary)
COMPOSED(logsigmoid, LOGSIGMOID, tn__common_unary)
COMPOSED(tanhshrink, TANHSHRINK, tn__common_unary)
COMPOSED(softshrink, SOFTSHRINK, softshrink_infer)
COMPOSED(hardshrink, HARDSHRINK, tn__common_unary)
COMPOSED(softplus, SOFTPLUS, tn__common_unary)
COMPOSED(softsign, SOFTSIGN, tn__common_unary)
COMPOSED(threshold, THRESHOLD, threshold_infer)
COMPOSED(glu, GLU, glu_infer)

#define GRADIENT(name, NAME, infer_)                                                               \
    const tn_op_def tn__op_##name = { TN_HEAD(tn_op_def), TN_SCHEMA_##NAME, .infer = infer_,       \
                                      .decompose = name##_decompose };
GRADIENT(hardtanh_grad, HARDTANH_GRAD, tn__common_pair)
GRADIENT(leaky_relu_grad, LEAKY_RELU_GRAD, tn__common_pair)
GRADIENT(threshold_grad, THRESHOLD_GRAD, tn__common_pair)
GRADIENT(hardsigmoid_grad, HARDSIGMOID_GRAD, tn__common_pair)
GRADIENT(hardswish_grad, HARDSWISH_GRAD, tn__common_pair)
GRADIENT(hardshrink_grad, HARDSHRINK_GRAD, tn__common_pair)
GRADIENT(elu_grad, ELU_GRAD, tn__common_pair)
GRADIENT(softplus_grad, SOFTPLUS_GRAD, tn__common_pair)
GRADIENT(silu_grad, SILU_GRAD, tn__common_pair)
GRADIENT(mish_grad, MISH_GRAD, tn__common_pair)
GRADIENT(gelu_grad, GELU_GRAD, gelu_grad_infer)
