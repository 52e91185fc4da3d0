/* SPDX-License-Identifier: MIT
 *
 * nextafter by the bits of two numbers. U is the unsigned type of the bits and S the signed type of
 * that size; INFINITE and QUIET are the bits of infinity and of NaN. */

/* The number next to a in the direction of b; NaN if either is NaN. */
TN__INTO_LOOPS U NAME(next)(U a, U b)
{
    const U sign = (U)((U)1 << (8 * sizeof(U) - 1)), p = a & (U)~sign, q = b & (U)~sign;
    const S v = (S)(a & sign ? 0 - p : p), w = (S)(b & sign ? 0 - q : q);
    const U outwards = (v < w) == ((a & sign) == 0);
    U y = p == 0 ? (U)((b & sign) | 1) : (U)(outwards ? a + 1 : a - 1);
    y = v == w ? b : y;
    return ((p > INFINITE) | (q > INFINITE)) ? QUIET : y;
}
#undef U
#undef S
#undef INFINITE
#undef QUIET
