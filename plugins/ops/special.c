/* SPDX-License-Identifier: MIT
 *
 * Special functions: logarithms of products and sums, logit, sinc. */
#include "formula.h"

#define LN_2 0.69314718055994530942

/* Returns formula(a, b), computed in float32 if the inputs are float16 or bfloat16. */
static tn_tensor *in_float32(tn_tensor *a, tn_tensor *b,
                             tn_tensor *(*formula)(tn_tensor *, tn_tensor *))
{
    if (a == NULL || !tn__common_narrow(a))
        return formula(a, b);
    return tn_cast(formula(tn_cast(a, TN_F32), tn_cast(b, TN_F32)), tn_tensor_dtype(a));
}

/* ---- xlogy ---- */

static tn_tensor *product_with_log(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *zero = number(a, 0.0), *flat = tn_bitwise_and(tn_eq(a, zero), tn_eq(b, b));

    return tn_where(flat, zero, tn_mul(a, tn_ln(b)));
}

DECOMPOSE(xlogy, in_float32(in[0], in[1], product_with_log))

/* ga = gy ln b, 0 where a = 0 and b <= 0; gb = gy a / b */
static tn_status xlogy_derive(tn_derive *d)
{
    tn_tensor *gy = d->gout[0], *a = d->in[0], *b = d->in[1];

    if (tn__needs(d, 0)) {
        tn_tensor *flat = tn_bitwise_and(tn_eq(a, number(a, 0.0)), is_at_most(b, 0.0));

        d->gin[0] = zero_where(flat, tn_xlogy(gy, b));
    }
    if (tn__needs(d, 1))
        d->gin[1] = divide(tn_mul(gy, a), b);
    return TN_OK;
}

/* ---- logarithms of sums of powers ---- */

/* Returns a - b, and 0 where both are the same infinity. */
static tn_tensor *difference(tn_tensor *a, tn_tensor *b)
{
    /* not wherever a equals b: that has the value 0, too, but no derivative */
    return zero_where(tn_bitwise_and(tn_eq(a, b), tn_isinf(a)), minus(a, b));
}

/* max(a, b) + ln(1 + e^-|a - b|): the exponent is never positive. */
static tn_tensor *log_sum(tn_tensor *a, tn_tensor *b)
{
    return plus(tn_maximum(a, b), tn_log1p(tn_exp(tn_neg(tn_abs(difference(a, b))))));
}

static tn_tensor *log2_sum(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *power = tn_exp2(tn_neg(tn_abs(difference(a, b))));

    return plus_times(tn_maximum(a, b), 1.0 / LN_2, tn_log1p(power));
}

DECOMPOSE(logaddexp, in_float32(in[0], in[1], log_sum))
DECOMPOSE(logaddexp2, in_float32(in[0], in[1], log2_sum))

/* ga = gy sigmoid(scale (a - b)), gb = gy sigmoid(scale (b - a)) */
static tn_status log_sum_derive(tn_derive *d, double scale)
{
    tn_tensor *apart = times(difference(d->in[0], d->in[1]), scale);

    if (tn__needs(d, 0))
        d->gin[0] = tn_mul(d->gout[0], tn_sigmoid(apart));
    if (tn__needs(d, 1))
        d->gin[1] = tn_mul(d->gout[0], tn_sigmoid(tn_neg(apart)));
    return TN_OK;
}

static tn_status logaddexp_derive(tn_derive *d)
{
    return log_sum_derive(d, 1.0);
}

static tn_status logaddexp2_derive(tn_derive *d)
{
    return log_sum_derive(d, LN_2);
}

/* ---- logit ---- */

static tn_tensor *log_odds(tn_tensor *x, tn_tensor *unused)
{
    (void)unused;
    return tn_ln(divide(x, one_minus(x)));
}

/* Without eps, or with a negative eps as in PyTorch, x has no limits. */
static bool has_limits(double eps)
{
    return tn__given_number(eps) && eps >= 0;
}

/* If eps > 1/2, the lower limit eps is above the upper limit 1 - eps. As in PyTorch, numbers below
 * the lower limit then become the lower limit, and all others the upper limit. */
static tn_tensor *limited(tn_tensor *x, double eps)
{
    if (!has_limits(eps))
        return x;
    if (eps <= 0.5)
        return clamped(x, eps, 1 - eps);
    return tn_where(tn_lt(x, number(x, eps)), number(x, eps), clamped(x, -INFINITY, 1 - eps));
}

DECOMPOSE(logit, in_float32(limited(x, o->eps), x, log_odds))

/* gy / (x (1 - x)). Outside of the limits it is 0. Without limits it is NaN where x (1 - x) < 0. */
static tn_tensor *logit_slope(tn_tensor *gy, tn_tensor *x, double eps)
{
    bool limits = has_limits(eps);
    tn_tensor *both = tn_mul(x, tn_sub(number(x, 1.0), x)), *slope = divide(gy, both), *outside;

    if (!limits)
        return tn_where(tn_lt(both, number(both, 0.0)), number(slope, NAN), slope);
    outside = tn_bitwise_or(tn_lt(x, number(x, eps)), tn_gt(x, number(x, 1 - eps)));
    return tn_where(outside, number(slope, 0.0), slope);
}

DERIVE(logit, tn_logit_grad(gy, x, o->eps))
DECOMPOSE_GRAD(logit_grad, logit_slope(gy, x, o->eps))

/* ---- sinc ---- */

#define PI 3.14159265358979323846

/* sin(pi x). Real x is first reduced to [-1, 1] by subtracting a multiple of 2, because pi x is
 * rounded. */
static tn_tensor *sine(tn_tensor *x)
{
    if (x == NULL || tn__is_complex(tn_tensor_dtype(x)))
        return tn_sin(times(x, PI));
    return tn_sin(times(minus(x, times(tn_round(times(x, 0.5)), 2.0)), PI));
}

static tn_tensor *sine_quotient(tn_tensor *x, tn_tensor *unused)
{
    tn_tensor *origin = tn_eq(x, number(x, 0.0)), *one = number(x, 1.0);

    (void)unused;
    return tn_where(origin, one, divide(sine(x), times(tn_where(origin, one, x), PI)));
}

DECOMPOSE(sinc, in_float32(x, x, sine_quotient))

/* The derivative (cos(pi x) - sinc(x)) / x. Near 0, where the difference cancels, its power series:
 * pi times the sum over k of (-1)^k 2k t^(2k - 1) / (2k + 1)! with t = pi x. */
static tn_tensor *slope_of_sinc(tn_tensor *x)
{
    tn_tensor *size = x != NULL ? tn_abs(x) : NULL, *near = tn_lt(size, number(size, 0.25));
    tn_tensor *other = tn_where(near, number(x, 1.0), x), *t, *square, *series = NULL;
    double term[9] = { 0 }, factorial = 1;

    for (int k = 1; k < 9; k++) {
        factorial *= 2.0 * k * (2 * k + 1);
        term[k] = (k % 2 == 0 ? 2.0 : -2.0) * k / factorial;
    }
    t = times(tn_where(near, x, number(x, 0.0)), PI);
    square = tn_mul(t, t);
    series = number(x, term[8]);
    for (int k = 7; k >= 1; k--)
        series = add_number(tn_mul(series, square), term[k]);
    return tn_where(near, times(tn_mul(series, t), PI),
                    divide(minus(tn_cos(times(other, PI)), tn_sinc(other)), other));
}

DERIVE(sinc, tn__is_complex(d->in_meta[0].dtype) ? tn__common_chain(gy, slope_of_sinc(x))
                                                 : tn_sinc_grad(gy, x))
DECOMPOSE_GRAD(sinc_grad, tn_mul(gy, slope_of_sinc(x)))

/* ---- definitions ---- */

TN__OP(xlogy, .infer = tn__broadcast_two, .derive = xlogy_derive, .decompose = xlogy_decompose);
TN__OP(logaddexp, .infer = tn__broadcast_two_float, .derive = logaddexp_derive,
       .decompose = logaddexp_decompose);
TN__OP(logaddexp2, .infer = tn__broadcast_two_float, .derive = logaddexp2_derive,
       .decompose = logaddexp2_decompose);
TN__OP(logit, .infer = tn__common_unary, .derive = logit_derive, .decompose = logit_decompose);
TN__OP(sinc, .infer = tn__common_unary, .derive = sinc_derive, .decompose = sinc_decompose);

/* These have no derivative of their own: a second derivative comes from the operators of their
 * decompositions, which are recorded. */
TN__OP(logit_grad, .infer = tn__common_pair, .decompose = logit_grad_decompose);
TN__OP(sinc_grad, .infer = tn__common_pair, .decompose = sinc_grad_decompose);
