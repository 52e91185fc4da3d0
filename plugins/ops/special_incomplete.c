/* SPDX-License-Identifier: MIT
 *
 * The regularized incomplete gamma functions: igamma (P) and igammac (Q = 1 - P). Up to MOST_SERIES
 * they are a series below the maximum of the integrand and a continued fraction above it; beyond,
 * the integral from x to where the integrand has vanished, by Gauss and Legendre. */
#include "formula.h"

#define ONE_BY_ROOT 0.39894228040143267794 /* 1 / sqrt(2 pi) */
enum { TERMS = 64, MOST_SERIES = 20, NODES = 12 };

/* Nodes and weights of the rule of 24 points between -1 and 1; those of -x are the same. */
static const double nodes[NODES][2] = {
    { 0.064056892862605630, 0.127938195346752021 }, { 0.191118867473616311, 0.125837456346828247 },
    { 0.315042679696163397, 0.121670472927803294 }, { 0.433793507626045127, 0.115505668053725516 },
    { 0.545421471388839563, 0.107444270115965565 }, { 0.648093651936975546, 0.097618652104113926 },
    { 0.740124191578554358, 0.086190161531953205 }, { 0.820001985973902947, 0.073346481411080161 },
    { 0.886415527004401071, 0.059298584915436360 }, { 0.938274552002732798, 0.044277438817419412 },
    { 0.974728555971309474, 0.028531388628933559 }, { 0.995187219997021311, 0.012341229799988690 }
};

/* Ends a scope whose only result is y. */
static tn_tensor *kept(uint64_t scope, tn_tensor *y)
{
    tn_scope_end_with(scope, &y, y != NULL ? 1 : 0);
    return y;
}

/* ---- small a --------------------------------------------------------------------------------- */

/* x^a e^-x / gamma(a) */
static tn_tensor *scale_of(tn_tensor *a, tn_tensor *x)
{
    return tn_exp(minus(minus(tn_mul(a, tn_ln(x)), x), tn_lgamma(a)));
}

/* P = scale (1 / a + x / (a (a + 1)) + x^2 / (a (a + 1) (a + 2)) + ...) */
static tn_tensor *series(tn_tensor *a, tn_tensor *x)
{
    tn_tensor *term = tn_reciprocal(a), *sum = term;

    for (int k = 1; k < TERMS; k++) {
        uint64_t scope = tn_scope_begin();
        tn_tensor *next[2];

        next[0] = divide(tn_mul(term, x), add_number(a, k));
        next[1] = plus(sum, next[0]);
        term = next[0];
        sum = next[1];
        tn_scope_end_with(scope, next, sum != NULL ? 2 : 0);
    }
    return tn_mul(sum, scale_of(a, x));
}

/* Q = scale / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))) */
static tn_tensor *fraction(tn_tensor *a, tn_tensor *x)
{
    tn_tensor *gap = minus(x, a), *y = add_number(gap, 2 * TERMS + 1);

    for (int n = TERMS; n > 0; n--) {
        uint64_t scope = tn_scope_begin();
        tn_tensor *part = divide(times(add_number(tn_neg(a), n), (double)n), y);

        y = kept(scope, minus(add_number(gap, 2 * n - 1), part));
    }
    return divide(scale_of(a, x), y);
}

/* ---- large a --------------------------------------------------------------------------------- */

/* The end of the integral, where the integrand is smaller than any result: m is its maximum, and
 * `above` says on which side x is. */
static tn_tensor *far_end(tn_tensor *m, tn_tensor *x, tn_tensor *above)
{
    tn_tensor *root = tn_sqrt(m);
    tn_tensor *right = tn_maximum(plus_times(m, 11.5, root), plus_times(x, 6.0, root));
    tn_tensor *left = tn_minimum(plus_times(m, -7.5, root), plus_times(x, -5.0, root));

    return tn_where(above, right, at_least(left, 0.0));
}

/* The integrand at x + share (end - x), relative to its maximum at m: e^(-m (v - ln(1 + v))) with
 * v = (t - m) / m. */
static tn_tensor *integrand(tn_tensor *m, tn_tensor *from, tn_tensor *width, double share)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *v = divide(plus_times(from, share, width), m);

    return kept(scope, tn_exp(tn_mul(m, minus(tn_log1p(v), v))));
}

/* ln gamma(m + 1) - (m ln m - m + ln(2 pi m) / 2) */
static tn_tensor *stirling_rest(tn_tensor *m)
{
    static const double terms[] = { -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12 };
    tn_tensor *inverse = tn_reciprocal(m), *square = tn_square(inverse);
    tn_tensor *y = number(m, terms[0]);

    for (int i = 1; i < 4; i++)
        y = add_number(tn_mul(y, square), terms[i]);
    return tn_mul(y, inverse);
}

/* The integral from x to its far end: Q if x is above the maximum, else -P. */
static tn_tensor *integral(tn_tensor *a, tn_tensor *x, tn_tensor *above)
{
    tn_tensor *m = add_number(a, -1.0), *from = minus(x, m);
    tn_tensor *width = minus(far_end(m, x, above), x), *sum = number(m, 0.0);

    for (int i = 0; i < NODES; i++) {
        uint64_t scope = tn_scope_begin();
        tn_tensor *pair = plus(integrand(m, from, width, 0.5 - 0.5 * nodes[i][0]),
                               integrand(m, from, width, 0.5 + 0.5 * nodes[i][0]));

        sum = kept(scope, plus_times(sum, 0.5 * nodes[i][1], pair));
    }
    return tn_mul(divide(tn_mul(sum, times(width, ONE_BY_ROOT)), tn_sqrt(m)),
                  tn_exp(tn_neg(stirling_rest(m))));
}

/* ---- all ---------------------------------------------------------------------------------------
 */

/* P or, with `upper`, Q for finite a and x above 0. Each formula gets only arguments that suit it:
 * those of other elements are replaced first, and the results for these are not used. */
static tn_tensor *inside(tn_tensor *a, tn_tensor *x, bool upper)
{
    tn_tensor *large = is_above(a, (double)MOST_SERIES), *above = tn_gt(x, add_number(a, 1.0));
    tn_tensor *one = number(a, 1.0), *small_a = tn_where(large, one, a);
    tn_tensor *small_x = tn_where(large, one, x), *p, *q, *part, *beyond;

    p = series(small_a, tn_minimum(small_x, add_number(small_a, 1.0)));
    q = fraction(small_a, tn_maximum(small_x, add_number(small_a, 1.0)));
    part = upper ? tn_where(above, q, one_minus(p)) : tn_where(above, one_minus(q), p);
    above = tn_gt(x, add_number(a, -1.0));
    beyond = tn_where(large, a, number(a, 2.0 * MOST_SERIES));
    beyond = integral(beyond, tn_where(large, x, number(a, 2.0 * MOST_SERIES)),
                      tn_bitwise_or(above, tn_bitwise_not(large)));
    if (upper)
        beyond = tn_where(above, beyond, add_number(beyond, 1.0));
    else
        beyond = tn_where(above, one_minus(beyond), tn_neg(beyond));
    return tn_where(large, beyond, part);
}

static tn_tensor *everywhere(tn_tensor *a, tn_tensor *x, bool upper)
{
    tn_tensor *zero = number(a, 0.0), *none = number(a, upper ? 1.0 : 0.0);
    tn_tensor *whole = number(a, upper ? 0.0 : 1.0), *no_a = tn_eq(a, zero), *no_x = tn_eq(x, zero);
    tn_tensor *all_a = tn_isinf(a), *all_x = tn_isinf(x);
    tn_tensor *edge = tn_bitwise_or(tn_bitwise_or(no_a, no_x), tn_bitwise_or(all_a, all_x)), *wrong;
    tn_tensor *one = number(a, 1.0), *y;

    wrong = tn_bitwise_or(tn_bitwise_and(no_a, no_x), tn_bitwise_and(all_a, all_x));
    wrong = tn_bitwise_or(wrong, tn_bitwise_or(tn_lt(a, zero), tn_lt(x, zero)));
    wrong = tn_bitwise_or(wrong, tn_bitwise_or(tn_ne(a, a), tn_ne(x, x)));
    edge = tn_bitwise_or(edge, wrong);
    y = inside(tn_where(edge, one, a), tn_where(edge, one, x), upper);
    y = tn_where(tn_bitwise_or(no_x, all_a), none, y);
    y = tn_where(tn_bitwise_or(no_a, all_x), whole, y);
    return tn_where(wrong, number(a, NAN), y);
}

/* Returns P or, with `upper`, Q, computed in float32 if the dtype is shorter. */
static tn_tensor *incomplete(tn_tensor *a, tn_tensor *x, bool upper)
{
    bool narrow = a != NULL && tn__common_narrow(a);
    uint64_t scope = tn_scope_begin();
    tn_tensor *y;

    if (narrow)
        y = everywhere(tn_cast(a, TN_F32), tn_cast(x, TN_F32), upper);
    else
        y = everywhere(a, x, upper);
    return kept(scope, narrow ? tn_cast(y, tn_tensor_dtype(a)) : y);
}

/* x^(a - 1) e^-x / gamma(a). For a large a it is computed relative to its maximum, because the
 * terms of its logarithm would cancel each other. */
static tn_tensor *density(tn_tensor *a, tn_tensor *x)
{
    tn_tensor *large = is_above(a, (double)MOST_SERIES), *m = add_number(a, -1.0), *one, *near;

    m = tn_where(large, m, number(a, (double)MOST_SERIES));
    near = integrand(m, minus(x, m), number(x, 0.0), 0.0);
    near = divide(times(near, ONE_BY_ROOT), tn_sqrt(m));
    near = tn_mul(near, tn_exp(tn_neg(stirling_rest(m))));
    one = tn_where(large, number(a, 1.0), a);
    return tn_where(
        large, near,
        tn_exp(minus(minus(tn_mul(add_number(one, -1.0), tn_ln(x)), x), tn_lgamma(one))));
}

/* gx = gy times the density, with the other sign for igammac */
static tn_status incomplete_derive(tn_derive *d, bool upper)
{
    tn_tensor *gy = d->gout[0], *slope;
    tn_dtype dtype = tn__common_narrow(gy) ? TN_F32 : tn_tensor_dtype(gy);

    if (tn__needs(d, 0))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "a: there is no derivative with respect to it; expected a tensor that does "
                       "not require gradients");
    slope = density(tn_cast(d->in[0], dtype), tn_cast(d->in[1], dtype));
    if (slope != NULL)
        slope = tn_cast(slope, tn_tensor_dtype(gy));
    d->gin[1] = tn_mul(gy, upper ? tn_neg(slope) : slope);
    return TN_OK;
}

static tn_status igamma_derive(tn_derive *d)
{
    return incomplete_derive(d, false);
}

static tn_status igammac_derive(tn_derive *d)
{
    return incomplete_derive(d, true);
}

DECOMPOSE(igamma, incomplete(in[0], in[1], false))
DECOMPOSE(igammac, incomplete(in[0], in[1], true))

TN__OP(igamma, .infer = tn__broadcast_two, .derive = igamma_derive, .decompose = igamma_decompose);
TN__OP(igammac, .infer = tn__broadcast_two, .derive = igammac_derive,
       .decompose = igammac_decompose);
