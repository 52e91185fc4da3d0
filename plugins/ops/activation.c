/* SPDX-License-Identifier: MIT
 *
 * Activations. Most are decomposed into other operators on devices without a kernel; each has its
 * own derivative. Where a function has a kink, the derivative has PyTorch's value. */
#include "channels.h"
#include "formula.h"

static tn_status relu_derive(tn_derive *d)
{
    d->gin[0] = tn_relu_grad(d->gout[0], d->out[0]);
    return TN_OK;
}

/* relu_grad is linear in gy, so the gradient passes through the same mask. */
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

static tn_status sigmoid_grad_decompose(const tn_decompose *call)
{
    tn_tensor *gy = call->in[0], *y = call->in[1];
    return tn__common_given(call->out, tn_mul(gy, tn_mul(y, tn_add_scalar(tn_neg(y), 1.0))));
}

static tn_status tanh_grad_decompose(const tn_decompose *call)
{
    tn_tensor *gy = call->in[0], *y = call->in[1];
    return tn__common_given(call->out, tn_mul(gy, tn_add_scalar(tn_neg(tn_mul(y, y)), 1.0)));
}

TN__OP(relu, .infer = tn__common_unary, .derive = relu_derive);
TN__OP(relu_grad, .infer = tn__common_pair, .derive = relu_grad_derive);
TN__OP(sigmoid, .infer = tn__common_unary, .derive = sigmoid_derive, TN__PARTS(sigmoid));
TN__OP(sigmoid_grad, .infer = tn__common_pair, .decompose = sigmoid_grad_decompose);
TN__OP(tanh_grad, .infer = tn__common_pair, .decompose = tanh_grad_decompose);

/* Returns gy where x is strictly between the bounds or NaN, 0 elsewhere */
static tn_tensor *inside(tn_tensor *gy, tn_tensor *x, double min, double max)
{
    return zero_where(tn_bitwise_or(is_at_most(x, min), is_at_least(x, max)), gy);
}

/* ---- piecewise linear or quadratic functions ---- */

static bool always(const tn_op *op, const void *options, tn_dtype dtype)
{
    (void)op, (void)options, (void)dtype;
    return true;
}

static bool slope_keeps_order(const tn_op *op, const void *options, tn_dtype dtype)
{
    (void)op, (void)dtype;
    return ((const tn_leaky_relu_options *)options)->negative_slope >= 0;
}

DECOMPOSE(relu6, clamped(x, 0.0, 6.0))
DERIVE(relu6, tn_hardtanh_grad(gy, x, 0.0, 6.0))
UNARY(relu_squared, tn_square(tn_relu(x)), times(tn_mul(gy, tn_relu(x)), 2.0));
DECOMPOSE(hardtanh, clamped(x, o->min_val, o->max_val))
DERIVE(hardtanh, tn_hardtanh_grad(gy, x, o->min_val, o->max_val))
DECOMPOSE_GRAD(hardtanh_grad, inside(gy, x, o->min_val, o->max_val))
DECOMPOSE(leaky_relu, tn_where(is_above(x, 0.0), x, times(x, o->negative_slope)))
/* The gradient only compares x with 0. y compares as x does, so an in-place call saves y. */
DERIVE(leaky_relu, tn_leaky_relu_grad(gy, x != NULL ? x : y, o->negative_slope))
DECOMPOSE_GRAD(leaky_relu_grad, tn_where(is_above(x, 0.0), gy, times(gy, o->negative_slope)))
DECOMPOSE(threshold, tn_where(is_at_most(x, o->threshold), number(x, o->value), x))
DERIVE(threshold, tn_threshold_grad(gy, x, tn_scalar_as_float(o->threshold)))
DECOMPOSE_GRAD(threshold_grad, zero_where(is_at_most(x, o->threshold), gy))
UNARY(hardsigmoid, times(clamped(add_number(x, 3.0), 0.0, 6.0), 1.0 / 6.0),
      tn_hardsigmoid_grad(gy, x));
DECOMPOSE_GRAD(hardsigmoid_grad,
               tn_where(tn_bitwise_and(is_above(x, -3.0), tn_lt(x, number(x, 3.0))),
                        times(gy, 1.0 / 6.0), number(gy, 0.0)))
UNARY(hardswish, times(tn_mul(x, clamped(add_number(x, 3.0), 0.0, 6.0)), 1.0 / 6.0),
      tn_hardswish_grad(gy, x));
DECOMPOSE_GRAD(hardswish_grad,
               zero_where(is_at_most(x, -3.0),
                          tn_where(is_at_least(x, 3.0), gy,
                                   tn_mul(gy, add_number(times(x, 1.0 / 3.0), 0.5)))))
DECOMPOSE(softshrink, tn_where(is_above(x, o->lambd), add_number(x, -o->lambd),
                               tn_where(tn_lt(x, number(x, -o->lambd)), add_number(x, o->lambd),
                                        times(x, 0.0))))
DERIVE(softshrink, tn_hardshrink_grad(gy, x, o->lambd))
UNARY(hardshrink, zero_where(tn_bitwise_and(is_at_least(x, -o->lambd), is_at_most(x, o->lambd)), x),
      tn_hardshrink_grad(gy, x, o->lambd));
DECOMPOSE_GRAD(hardshrink_grad,
               zero_where(tn_bitwise_and(is_at_least(x, -o->lambd), is_at_most(x, o->lambd)), gy))

/* ---- exponential below zero: x > 0 ? positive x : negative (e^(inner x) - 1) ---- */

#define SELU_ALPHA 1.6732632423543772848170429916717
#define SELU_SCALE 1.0507009873554804934193349852946

static tn_tensor *exponential(tn_tensor *x, double positive, double negative, double inner)
{
    return tn_where(is_at_most(x, 0.0), times(tn_expm1(times(x, inner)), negative),
                    times(x, positive));
}

static tn_tensor *exponential_grad(tn_tensor *gy, tn_tensor *x, double positive, double negative,
                                   double inner)
{
    tn_tensor *below = times(tn_exp(times(clamped(x, NAN, 0.0), inner)), negative * inner);

    return tn_mul(gy, tn_where(is_at_most(x, 0.0), below, number(x, positive)));
}

/* Returns the gradient, computed from x or, after an in-place call, from the result y, as in
 * PyTorch. From y it includes the rounding error of y: near the limit -negative, y + negative is no
 * longer exact. */
static tn_tensor *elu_gradient(tn_tensor *gy, tn_tensor *x, tn_tensor *y, double positive,
                               double negative, double inner)
{
    return x != NULL ? tn_elu_grad(gy, x, positive, negative, inner)
                     : tn_elu_result_grad(gy, y, positive, negative, inner);
}

/* Returns whether the gradient can be computed from y. It cannot if alpha is negative, because y
 * does not have the sign of x then, and if alpha is infinite, because y is -infinity for every
 * negative x. */
static bool is_sign_kept(double alpha)
{
    return alpha >= 0 && isfinite(alpha);
}

static bool elu_keeps_sign(const tn_op *op, const void *options, tn_dtype dtype)
{
    (void)op, (void)dtype;
    return is_sign_kept(((const tn_elu_options *)options)->alpha);
}

static bool celu_keeps_sign(const tn_op *op, const void *options, tn_dtype dtype)
{
    (void)op, (void)dtype;
    return is_sign_kept(((const tn_celu_options *)options)->alpha);
}

DECOMPOSE(elu, exponential(x, 1.0, o->alpha, 1.0))
DERIVE(elu, elu_gradient(gy, x, y, 1.0, o->alpha, 1.0))
DECOMPOSE_GRAD(elu_result_grad,
               tn_mul(gy, tn_where(is_at_most(x, 0.0), times(add_number(x, o->negative), o->inner),
                                   number(x, o->positive))))
DECOMPOSE_GRAD(elu_grad, exponential_grad(gy, x, o->positive, o->negative, o->inner))
DECOMPOSE(selu, exponential(x, SELU_SCALE, SELU_SCALE *SELU_ALPHA, 1.0))
DERIVE(selu, elu_gradient(gy, x, y, SELU_SCALE, SELU_SCALE *SELU_ALPHA, 1.0))
DECOMPOSE(celu, exponential(x, 1.0, o->alpha, 1.0 / o->alpha))
DERIVE(celu, elu_gradient(gy, x, y, 1.0, o->alpha, 1.0 / o->alpha))

/* ---- smooth functions ---- */

/* ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|) */
static tn_tensor *smooth(tn_tensor *x)
{
    return plus(clamped(x, 0.0, NAN), tn_log1p(tn_exp(tn_neg(tn_abs(x)))));
}
UNARY(logsigmoid, tn_neg(smooth(tn_neg(x))), tn_softplus_grad(gy, x, -1.0, INFINITY));
UNARY(softplus,
      tn_where(is_above(times(x, o->beta), o->threshold), x,
               times(smooth(times(x, o->beta)), 1.0 / o->beta)),
      tn_softplus_grad(gy, x, o->beta, o->threshold));
DECOMPOSE_GRAD(softplus_grad, tn_where(is_above(times(x, o->beta), o->threshold), gy,
                                       tn_mul(gy, tn_sigmoid(times(x, o->beta)))))
/* Returns the slope of silu: s + x s (1 - s) with s = sigmoid(x) */
static tn_tensor *silu_slope(tn_tensor *x)
{
    tn_tensor *s = tn_sigmoid(x);

    return tn_mul(s, add_number(tn_mul(x, one_minus(s)), 1.0));
}
UNARY(silu, tn_mul(x, tn_sigmoid(x)),
      tn__is_complex(d->in_meta[0].dtype) ? tn__common_chain(gy, silu_slope(x))
                                          : tn_silu_grad(gy, x));
DECOMPOSE_GRAD(silu_grad, tn_mul(gy, silu_slope(x)))
/* Returns the slope of mish: t + x (1 - t^2) sigmoid(x) with t = tanh(s), s = ln(1 + e^x). 1 - t^2
 * is computed as 4 w / (1 + w)^2 with w = e^(-2 s), which does not cancel for large x. s is
 * computed by logsigmoid, which has a smooth derivative at 0; the operators in smooth() do not. */
static tn_tensor *mish_slope(tn_tensor *x)
{
    tn_tensor *s = tn_neg(tn_logsigmoid(tn_neg(x)));
    tn_tensor *w = tn_exp(times(s, -2.0));
    tn_tensor *rest = times(divide(w, tn_square(add_number(w, 1.0))), 4.0);

    return plus(tn_tanh(s), tn_mul(tn_mul(x, tn_sigmoid(x)), rest));
}
UNARY(mish, tn_mul(x, tn_tanh(smooth(x))), tn_mish_grad(gy, x));
DECOMPOSE_GRAD(mish_grad, tn_mul(gy, mish_slope(x)))
UNARY(tanhshrink, tn_sub(x, tn_tanh(x)), tn__common_chain(gy, tn_square(tn_tanh(x))));
/* Returns the gradient of softsign for complex x: with r = 1 / (1 + |x|), it is gy r - r^2 x / |x|
 * Re(gy conj x). */
static tn_tensor *softsign_complex(tn_tensor *gy, tn_tensor *x)
{
    tn_tensor *r = tn_reciprocal(add_number(tn_abs(x), 1.0));
    tn_tensor *along = tn_mul(tn_square(r), tn_real(tn_mul(gy, tn_conj(x))));

    return tn_sub(tn_mul(gy, r), tn_mul(tn_sgn(x), along));
}
UNARY(softsign, divide(x, add_number(tn_abs(x), 1.0)),
      tn__is_complex(d->in_meta[0].dtype) ? softsign_complex(gy, x)
                                          : divide(gy, tn_square(add_number(tn_abs(x), 1.0))));

static bool is_tanh(const char *approximate)
{
    return strcmp(approximate, "tanh") == 0;
}

#define ROOT_HALF 0.70710678118654752440
#define ROOT_TWO_OVER_PI 0.79788456080286535588
#define ONE_OVER_ROOT_TWO_PI 0.39894228040143267794
#define CUBIC 0.044715

/* (1 + tanh(u)) / 2 with PyTorch's u, computed as sigmoid(2 u): this goes to 0 without the
 * cancellation in 1 - 1. */
static tn_tensor *gelu_tanh(tn_tensor *x)
{
    return tn_sigmoid(
        times(tn_mul(x, add_number(times(tn_square(x), CUBIC), 1.0)), 2.0 * ROOT_TWO_OVER_PI));
}

/* Returns the probability that a standard normal number is at most x */
static tn_tensor *gelu_part(tn_tensor *x)
{
    return times(tn_erfc(times(x, -ROOT_HALF)), 0.5);
}

static tn_tensor *gelu_slope(tn_tensor *x, bool approximate)
{
    tn_tensor *t, *inner;

    if (!approximate)
        return plus(gelu_part(x),
                    times(tn_mul(x, tn_exp(times(tn_square(x), -0.5))), ONE_OVER_ROOT_TWO_PI));
    t = gelu_tanh(x);
    inner = times(add_number(times(tn_square(x), 3.0 * CUBIC), 1.0), 2.0 * ROOT_TWO_OVER_PI);
    return tn_mul(t, add_number(tn_mul(tn_mul(x, inner), one_minus(t)), 1.0));
}
DECOMPOSE(gelu, tn_mul(x, is_tanh(o->approximate) ? gelu_tanh(x) : gelu_part(x)))
DERIVE(gelu, tn_gelu_grad(gy, x, o->approximate))
DECOMPOSE_GRAD(gelu_grad, tn_mul(gy, gelu_slope(x, is_tanh(o->approximate))))

static tn_status check_form(const char *form)
{
    if (form == NULL || (strcmp(form, "none") != 0 && strcmp(form, "tanh") != 0))
        return tn_fail(TN_ERR_VALUE, "approximate: unknown, got %q; expected none or tanh", form);
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
        return tn_fail(TN_ERR_VALUE, "alpha: out of range, got 0; expected any other number");
    return tn__common_unary(infer);
}

static tn_status softshrink_infer(tn_infer *infer)
{
    double lambd = ((const tn_softshrink_options *)infer->options)->lambd;

    if (!(lambd >= 0.0) || isinf(lambd))
        return tn_fail(TN_ERR_VALUE, "lambd: out of range, got %g; expected 0 or more, and finite",
                       lambd);
    return tn__common_unary(infer);
}

static tn_status hardtanh_infer(tn_infer *infer)
{
    const tn_hardtanh_options *o = infer->options;

    if (o->min_val > o->max_val)
        return tn_fail(
            TN_ERR_VALUE,
            "min_val or max_val: out of range, got %g and %g; expected min_val <= max_val",
            o->min_val, o->max_val);
    return tn__common_unary(infer);
}

static tn_status threshold_infer(tn_infer *infer)
{
    const tn_threshold_options *o = infer->options;
    tn_dtype dtype = tn_view_dtype(infer->in[0]);
    tn_status status = tn__scalar_fits(dtype, o->value, "value");

    if (status == TN_OK)
        status = tn__is_int(dtype) ? tn__scalar_fits(dtype, o->threshold, "threshold")
                                   : tn__scalar_factor(dtype, o->threshold, "threshold");
    return status == TN_OK ? tn__common_unary(infer) : status;
}

/* ---- rrelu: slopes that are drawn ---- */

static tn_status slopes_infer(tn_infer *infer, double lower, double upper)
{
    if (!(isfinite(lower) && isfinite(upper) && lower <= upper))
        return tn_fail(TN_ERR_VALUE,
                       "lower or upper: out of range, got %g and %g; expected finite numbers with "
                       "lower <= upper",
                       lower, upper);
    return tn__common_open(infer);
}

static tn_tensor *drawn_slopes(tn_tensor *x, const tn_rrelu_options *o)
{
    return o->training ? tn_where(is_above(x, 0.0), x, tn_mul(x, tn_uniform(x, o->lower, o->upper)))
                       : tn_where(is_above(x, 0.0), x, times(x, (o->lower + o->upper) / 2));
}

INFER(rrelu, slopes_infer(infer, o->lower, o->upper))
DECOMPOSE(rrelu, drawn_slopes(x, o))
TN__OP(rrelu, .infer = rrelu_infer, .decompose = rrelu_decompose);

/* ---- prelu: one weight for each channel ---- */

static tn_status prelu_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0], *weight = infer->in[1];
    int64_t count = weight->ndim == 1 ? weight->shape[0] : 1,
            channels = x->ndim > 1 ? x->shape[1] : 1;
    char text[TN__TEXT];

    if (weight->ndim > 1)
        return tn_fail(TN_ERR_RUNTIME,
                       "weight: wrong shape, got %s; expected a vector or a single number",
                       tn__common_text(text, tn__common_shape(weight)));
    if (count != 1 && count != channels)
        return tn_fail(
            TN_ERR_RUNTIME,
            "Mismatch of parameter numbers and input channel size: %lld weights and %lld channels "
            "(x has shape %s); "
            "expected 1 or %lld weights",
            (long long)count, (long long)channels, tn__common_text(text, tn__common_shape(x)),
            (long long)channels);
    if (tn_view_dtype(x) != tn_view_dtype(weight))
        return tn_fail(TN_ERR_TYPE, "x or weight: wrong dtype, got %s and %s; expected one dtype",
                       tn_dtype_name(tn_view_dtype(x)), tn_dtype_name(tn_view_dtype(weight)));
    return tn__common_unary(infer);
}

/* Returns the weight with a shape that broadcasts to x: [C, 1, 1 ...]. */
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

static tn_status prelu_decompose(const tn_decompose *call)
{
    tn_tensor *x = call->in[0];
    return tn__common_given(call->out,
                            tn_where(is_above(x, 0.0), x, tn_mul(x, prelu_weight(x, call->in[1]))));
}

static tn_status prelu_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0], *x = d->in[0];

    if (tn__needs(d, 0))
        d->gin[0] = tn_where(is_above(x, 0.0), gy, tn_mul(gy, prelu_weight(x, d->in[1])));
    if (tn__needs(d, 1)) {
        tn_tensor *weight = d->in[1], *all = zero_where(is_above(x, 0.0), tn_mul(gy, x)),
                  *shaped = prelu_weight(x, weight);

        if (shaped == NULL)
            return tn_error_last_code();
        d->gin[1] = tn_reshape(tn_sum_to(all, tn_tensor_shape(shaped)), tn_tensor_shape(weight));
    }
    return TN_OK;
}

/* ---- glu ---- */

/* Sets shape[] to the shape of half of x along a dimension. */
static tn_status halved(const tn_view *x, int64_t dim_given, int64_t *shape)
{
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
                       /* PyTorch's wording */
                       "Halving dimension must be even, but dimension %d is size %lld (shape %s)",
                       (int)dim, (long long)x->shape[dim],
                       tn__common_text(text, tn__common_shape(x)));
    memcpy(shape, x->shape, sizeof *shape * (size_t)x->ndim);
    shape[dim] /= 2;
    return TN_OK;
}

static tn_status glu_infer(tn_infer *infer)
{
    const tn_view *x = infer->in[0];
    int64_t shape[TN_MAX_DIMS];
    tn_status status = halved(x, ((const tn_glu_options *)infer->options)->dim, shape);

    if (status != TN_OK)
        return status;
    tn__common_plain(&infer->out[0], tn_view_dtype(x), (tn_ints){ shape, x->ndim });
    tn__channels_keep(&infer->out[0], x);
    return TN_OK;
}

static tn_status glu_decompose(const tn_decompose *call)
{
    int64_t dim = ((const tn_glu_options *)call->options)->dim,
            half = tn_tensor_size(call->in[0], dim) / 2;
    tn_tensor *y = tn_mul(tn_narrow(call->in[0], dim, 0, half),
                          tn_sigmoid(tn_narrow(call->in[0], dim, half, half)));

    if (tn__channels_image(tn_tensor_view(call->in[0])))
        y = tn__channels_copied(y);
    return tn__common_given(call->out, y);
}

DERIVE(glu, tn_glu_grad(gy, x, o->dim))

static tn_status glu_grad_infer(tn_infer *infer)
{
    const tn_view *gy = infer->in[0], *x = infer->in[1];
    int64_t shape[TN_MAX_DIMS];
    char text[TN__TEXT], expected[TN__TEXT];
    tn_status status = halved(x, ((const tn_glu_grad_options *)infer->options)->dim, shape);

    if (status != TN_OK)
        return status;
    if (tn_view_dtype(gy) != tn_view_dtype(x) || gy->ndim != x->ndim ||
        memcmp(gy->shape, shape, sizeof *shape * (size_t)x->ndim) != 0)
        return tn_fail(TN_ERR_RUNTIME, "gy: wrong shape or dtype, got %s%s; expected %s%s",
                       tn_dtype_name(tn_view_dtype(gy)),
                       tn__common_text(text, tn__common_shape(gy)), tn_dtype_name(tn_view_dtype(x)),
                       tn__common_text(expected, (tn_ints){ shape, x->ndim }));
    tn__common_plain(&infer->out[0], tn_view_dtype(x), tn__common_shape(x));
    tn__channels_keep(&infer->out[0], x);
    return TN_OK;
}

/* Computes the gradients of the two halves and concatenates them. */
static tn_tensor *glu_slopes(tn_tensor *gy, tn_tensor *x, int64_t dim)
{
    int64_t half = tn_tensor_size(x, dim) / 2;
    tn_tensor *share = tn_sigmoid(tn_narrow(x, dim, half, half)), *halves[2], *all;

    halves[0] = tn_mul(gy, share);
    /* gy s (1 - s) first: it is at most gy / 4, so that gy * a does not overflow */
    halves[1] = tn_mul(tn_sigmoid_grad(gy, share), tn_narrow(x, dim, 0, half));
    all = halves[1] == NULL ? NULL : tn_cat(halves, 2, dim);
    return tn__channels_image(tn_tensor_view(x)) ? tn__channels_copied(all) : all;
}
DECOMPOSE_GRAD(glu_grad, glu_slopes(gy, x, o->dim))

/* ---- definitions ---- */

TN__OP(prelu, .infer = prelu_infer, .derive = prelu_derive, .decompose = prelu_decompose);
TN__OP(elu, .infer = tn__common_unary, .derive = elu_derive, .decompose = elu_decompose,
       .result_suffices = elu_keeps_sign);
TN__OP(selu, .infer = tn__common_unary, .derive = selu_derive, .decompose = selu_decompose,
       .result_suffices = always);
TN__OP(celu, .infer = celu_infer, .derive = celu_derive, .decompose = celu_decompose,
       .result_suffices = celu_keeps_sign);
TN__OP(gelu, .infer = gelu_infer, .derive = gelu_derive, .decompose = gelu_decompose);
TN__OP(hardtanh, .infer = hardtanh_infer, .derive = hardtanh_derive,
       .decompose = hardtanh_decompose);
TN__OP(relu6, .infer = tn__common_unary, .derive = relu6_derive, .decompose = relu6_decompose);
TN__OP(leaky_relu, .infer = tn__common_unary, .derive = leaky_relu_derive,
       .decompose = leaky_relu_decompose, .result_suffices = slope_keeps_order);
TN__OP(softshrink, .infer = softshrink_infer, .derive = softshrink_derive,
       .decompose = softshrink_decompose);
TN__OP(threshold, .infer = threshold_infer, .derive = threshold_derive,
       .decompose = threshold_decompose);
TN__OP(glu, .infer = glu_infer, .derive = glu_derive, .decompose = glu_decompose);

/* These operators have no derivative of their own: a second derivative comes from the operators
 * of their decompositions, which are recorded. */
TN__OP(glu_grad, .infer = glu_grad_infer, .decompose = glu_grad_decompose);
TN__OP(hardtanh_grad, .infer = tn__common_pair, .decompose = hardtanh_grad_decompose);
TN__OP(leaky_relu_grad, .infer = tn__common_pair, .decompose = leaky_relu_grad_decompose);
TN__OP(threshold_grad, .infer = tn__common_pair, .decompose = threshold_grad_decompose);
TN__OP(hardsigmoid_grad, .infer = tn__common_pair, .decompose = hardsigmoid_grad_decompose);
TN__OP(hardswish_grad, .infer = tn__common_pair, .decompose = hardswish_grad_decompose);
TN__OP(hardshrink_grad, .infer = tn__common_pair, .decompose = hardshrink_grad_decompose);
TN__OP(elu_grad, .infer = tn__common_pair, .decompose = elu_grad_decompose);
TN__OP(elu_result_grad, .infer = tn__common_pair, .decompose = elu_result_grad_decompose);
TN__OP(softplus_grad, .infer = tn__common_pair, .decompose = softplus_grad_decompose);
TN__OP(silu_grad, .infer = tn__common_pair, .decompose = silu_grad_decompose);
TN__OP(mish_grad, .infer = tn__common_pair, .decompose = mish_grad_decompose);
TN__OP(gelu_grad, .infer = gelu_grad_infer, .decompose = gelu_grad_decompose);
