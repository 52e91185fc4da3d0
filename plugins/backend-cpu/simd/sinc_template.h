/* SPDX-License-Identifier: MIT
 *
 * sinc, its gradient and that of logit, for the float type T. NAME(half_turns) returns the sine of
 * pi x, and sets its cosine. */

/* sin(pi x) / (pi x), and 1 for 0 */
TN__INTO_LOOPS T NAME(sinc_of)(T x)
{
    T cosine, y = NAME(half_turns)(x, &cosine) / (x * (T)PI);
    return x == 0 ? 1 : y;
}

/* (cos(pi x) - sinc(x)) / x. Near 0, where the difference cancels, its power series: pi times the
 * sum over k of (-1)^k 2k t^(2k - 1) / (2k + 1)! with t = pi x. */
TN__INTO_LOOPS T NAME(sinc_slope)(T x)
{
    const T t = x * (T)PI, z = t * t, size = x < 0 ? -x : x;
    T cosine, sine = NAME(half_turns)(x, &cosine), y = (cosine - sine / t) / x;
    T series = z * (T)(1 / 22230464256000.0) - (T)(1 / 93405312000.0);
    series = series * z + (T)(1 / 518918400.0);
    series = series * z - (T)(1 / 3991680.0);
    series = series * z + (T)(1 / 45360.0);
    series = series * z - (T)(1 / 840.0);
    series = series * z + (T)(1 / 30.0);
    series = series * z - (T)(1 / 3.0);
    return size < (T)0.25 ? series * t * (T)PI : y;
}

/* gy / (x (1 - x)): NaN where x (1 - x) < 0, and 0 outside of the limits p and q, of which a NaN
 * has no effect */
TN__INTO_LOOPS T NAME(logit_slope)(T gy, T x, T p, T q)
{
    const T both = x * (1 - x), slope = gy / both;
    const T y = both < 0 ? (T)__builtin_nanf("") : slope;
    return ((x < p) | (x > q)) ? 0 : y;
}

/* clang-format off */
UNARY(sinc, NAME(sinc_of)(a))
BINARY(sinc_grad, a * NAME(sinc_slope)(b))
BINARY(logit_grad, NAME(logit_slope)(a, b, p, q))
/* clang-format on */
