/* SPDX-License-Identifier: MIT
 *
 * The logarithm of the gamma function and its derivatives: lgamma, digamma, polygamma. All use the
 * asymptotic series for arguments of at least LEAST, to which smaller arguments are shifted by the
 * recurrence of the gamma function, and the reflection formula for arguments below 1/2. */
#include "formula.h"

#define PI 3.14159265358979323846
enum { LEAST = 8, MOST_ORDER = 120, BERNOULLI = 8 };

/* B(2), B(4), ... B(16) */
static const double bernoulli[BERNOULLI] = { 1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                             5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510 };

/* Returns formula(x, n), computed in float32 if x is float16 or bfloat16. */
static tn_tensor *in_float32(tn_tensor *x, int64_t n, tn_tensor *(*formula)(tn_tensor *, int64_t))
{
    if (x == NULL || !tn__common_narrow(x))
        return formula(x, n);
    return tn_cast(formula(tn_cast(x, TN_F32), n), tn_tensor_dtype(x));
}

/* x - round(x): sin(pi x) and tan(pi x) of large x need the fraction. */
static tn_tensor *fraction(tn_tensor *x)
{
    return minus(x, tn_round(x));
}

/* ---- lgamma ---- */

/* (x - 1/2) ln x - x + ln(2 pi) / 2 + the sum of B(2j) / (2j (2j - 1) x^(2j - 1)) */
static tn_tensor *stirling(tn_tensor *x)
{
    tn_tensor *inverse = tn_reciprocal(x), *square = tn_mul(inverse, inverse), *series = NULL;
    tn_tensor *y = minus(tn_mul(add_number(x, -0.5), tn_ln(x)), x);

    for (int j = BERNOULLI; j >= 1; j--) {
        double term = bernoulli[j - 1] / (2.0 * j * (2.0 * j - 1));

        series = j == BERNOULLI ? number(x, term) : add_number(tn_mul(series, square), term);
    }
    return plus(add_number(y, 0.91893853320467274178), tn_mul(series, inverse));
}

/* ln gamma(x) for x >= 1/2: gamma(x) = gamma(x + LEAST) / (x (x + 1) ... (x + LEAST - 1)) */
static tn_tensor *log_gamma_right(tn_tensor *x)
{
    tn_tensor *small = tn_lt(x, number(x, (double)LEAST));
    tn_tensor *base = tn_where(small, x, number(x, 1.0)), *product = base;

    for (int k = 1; k < LEAST; k++)
        product = tn_mul(product, add_number(base, k));
    return minus(stirling(tn_where(small, add_number(x, LEAST), x)),
                 tn_where(small, tn_ln(product), number(x, 0.0)));
}

/* gamma(x) gamma(1 - x) = pi / sin(pi x) */
static tn_tensor *log_gamma(tn_tensor *x, int64_t n)
{
    tn_tensor *left = tn_lt(x, number(x, 0.5)), *y;
    tn_tensor *sine = tn_abs(tn_sin(times(fraction(x), PI)));

    (void)n;
    y = log_gamma_right(tn_where(left, one_minus(x), x));
    y = tn_where(left, minus(add_number(tn_neg(tn_ln(sine)), 1.14472988584940017414), y), y);
    return tn_where(tn_isinf(x), tn_abs(x), y);
}

/* ---- digamma and polygamma ---- */

static double factorial(int64_t n)
{
    double y = 1;

    for (int64_t k = 2; k <= n; k++)
        y *= (double)k;
    return y;
}

/* (-1)^(n + 1) times the derivative of order n of digamma, without its leading term: x^-n times
 * n! / (2 x) + the sum of B(2j) (2j + n - 1)! / (2j)! / x^2j. With n = 0 the leading term is
 * -ln x, otherwise (n - 1)! / x^n. */
static tn_tensor *asymptotic(tn_tensor *x, int64_t n)
{
    tn_tensor *inverse = tn_reciprocal(x), *square = tn_mul(inverse, inverse), *series = NULL;

    for (int j = BERNOULLI; j >= 1; j--) {
        double term = bernoulli[j - 1];

        /* (2j + n - 1)! / (2j)!, as a product that does not overflow before the quotient does */
        for (int64_t k = 2 * j + 1; k <= 2 * j + n - 1; k++)
            term *= (double)k;
        term /= n == 0 ? 2.0 * j : 1.0;
        series = j == BERNOULLI ? number(x, term) : add_number(tn_mul(series, square), term);
    }
    series = plus(tn_mul(series, square), times(inverse, 0.5 * factorial(n)));
    if (n == 0)
        return minus(series, tn_ln(x));
    return tn_mul(add_number(series, factorial(n - 1)), tn_pow_scalar(inverse, n));
}

/* The derivative of order n for x >= 1/2, shifted by the recurrence: the derivative at x is that at
 * x + 1 minus (-1)^n n! / x^(n + 1). */
static tn_tensor *polygamma_right(tn_tensor *x, int64_t n)
{
    int64_t steps = LEAST + 4 + n;
    tn_tensor *sum = asymptotic(add_number(x, (double)steps), n), *powers = NULL;

    for (int64_t k = steps - 1; k >= 0; k--) {
        tn_tensor *power = tn_pow_scalar(tn_reciprocal(add_number(x, (double)k)), n + 1);

        powers = k == steps - 1 ? power : plus(powers, power);
    }
    return times(plus_times(sum, factorial(n), powers), n % 2 == 0 ? -1.0 : 1.0);
}

/* The derivative of order n of cot t, as a polynomial of c = cot t: each derivative of a polynomial
 * p(c) is -(1 + c^2) p'(c). */
static tn_tensor *cotangent(tn_tensor *c, int64_t n)
{
    double p[MOST_ORDER + 2] = { 0, 1 };
    tn_tensor *y;

    for (int64_t k = 0; k < n; k++) {
        double slope[MOST_ORDER + 3] = { 0 };

        for (int64_t i = 1; i <= k + 1; i++)
            slope[i - 1] = (double)i * p[i];
        for (int64_t i = k + 2; i >= 0; i--)
            p[i] = -(slope[i] + (i >= 2 ? slope[i - 2] : 0));
    }
    y = number(c, p[n + 1]);
    for (int64_t i = n; i >= 0; i--)
        y = p[i] == 0 ? tn_mul(y, c) : add_number(tn_mul(y, c), p[i]);
    return y;
}

/* cot(pi x) for |x| <= 1/2. Near 1/2 it is a tangent, so that it is exactly 0 for 1/2. */
static tn_tensor *cotangent_of_pi(tn_tensor *x)
{
    tn_tensor *rest = add_number(tn_neg(tn_abs(x)), 0.5), *size = tn_abs(x);
    tn_tensor *near = tn_copysign(tn_tan(times(rest, PI)), x);

    return tn_where(is_above(size, 0.25), near, tn_reciprocal(tn_tan(times(x, PI))));
}

/* With the derivative f of order n: f(x) = (-1)^n f(1 - x) - pi^(n + 1) times the derivative of
 * order n of cot at pi x. */
static tn_tensor *polygamma_everywhere(tn_tensor *x, int64_t n)
{
    tn_tensor *left = tn_lt(x, number(x, 0.5));
    tn_tensor *y = polygamma_right(tn_where(left, one_minus(x), x), n);
    tn_tensor *c = cotangent_of_pi(tn_where(left, fraction(x), number(x, 0.25)));
    tn_tensor *mirrored = plus_times(times(y, n % 2 == 0 ? 1.0 : -1.0), -pow(PI, (double)n + 1),
                                     cotangent(c, n));

    return tn_where(left, mirrored, y);
}

/* At 0 digamma has a pole, and the sign of the zero tells its side. At the negative integers the
 * side is not known, so the result is NaN. */
static tn_tensor *digamma_everywhere(tn_tensor *x, int64_t n)
{
    tn_tensor *zero = number(x, 0.0), *origin = tn_eq(x, zero), *y = polygamma_everywhere(x, 0);
    tn_tensor *pole = tn_bitwise_and(tn_lt(x, zero), tn_eq(fraction(x), zero));

    (void)n;
    y = tn_where(pole, number(x, NAN), y);
    return tn_where(origin, tn_copysign(number(x, INFINITY), tn_neg(x)), y);
}

static tn_status polygamma_infer(tn_infer *infer)
{
    int64_t n = ((const tn_polygamma_options *)infer->options)->n;

    if (n < 0 || n > MOST_ORDER)
        return tn_fail(TN_ERR_VALUE, "n: out of range, got %lld; expected 0 to %d", (long long)n,
                       MOST_ORDER);
    return tn__common_unary(infer);
}

/* ---- definitions ---- */

UNARY(lgamma, in_float32(x, 0, log_gamma), tn_mul(gy, tn_digamma(x)));
UNARY(digamma, in_float32(x, 0, digamma_everywhere), tn_mul(gy, tn_polygamma(x, 1)));
DECOMPOSE(polygamma, o->n == 0 ? tn_digamma(x) : in_float32(x, o->n, polygamma_everywhere))
DERIVE(polygamma, tn_mul(gy, tn_polygamma(x, o->n + 1)))
TN__OP(polygamma, .infer = polygamma_infer, .derive = polygamma_derive,
       .decompose = polygamma_decompose);
