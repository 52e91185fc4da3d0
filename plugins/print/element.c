/* SPDX-License-Identifier: MIT
 *
 * Elements of tensors as numbers of C. */
#include "print.h"

#include <math.h>
#include <string.h>

/* ---- whole numbers --------------------------------------------------------------------------- */

uint64_t element_whole(const void *at, tn_dtype dtype)
{
    const bool is_signed = dtype == TN_I8 || dtype == TN_I16 || dtype == TN_I32;
    const int bits = 8 * (int)tn_dtype_size(dtype);
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t whole;

    switch (bits) {
    case 8: memcpy(&u8, at, 1), whole = u8; break;
    case 16: memcpy(&u16, at, 2), whole = u16; break;
    case 32: memcpy(&u32, at, 4), whole = u32; break;
    default: memcpy(&whole, at, 8); break;
    }
    if (is_signed && (whole >> (bits - 1) & 1) != 0)
        whole |= ~(uint64_t)0 << bits;
    return whole;
}

/* ---- floating-point numbers ------------------------------------------------------------------ */

/* Returns a number of a sign, an exponent and a mantissa of so many bits. A dtype that is `finite`
 * has no infinity, and only one NaN of each sign. */
static double small(uint32_t bits, int exponent_bits, int mantissa_bits, bool finite)
{
    const uint32_t highest = (1u << exponent_bits) - 1, ones = (1u << mantissa_bits) - 1;
    const uint32_t exponent = bits >> mantissa_bits & highest, mantissa = bits & ones;
    const int least = 2 - (1 << (exponent_bits - 1)) - mantissa_bits;
    double value;

    if (exponent == highest && (!finite || mantissa == ones))
        value = mantissa != 0 ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, least);
    else
        value = ldexp(mantissa + ones + 1, least + (int)exponent - 1);
    return (bits >> (exponent_bits + mantissa_bits) & 1) != 0 ? -value : value;
}

double element_real(const void *at, tn_dtype dtype, bool imaginary)
{
    uint16_t u16;
    uint8_t u8;
    float f[2];
    double d[2];

    switch (dtype) {
    case TN_F16: memcpy(&u16, at, 2); return small(u16, 5, 10, false);
    case TN_BF16: memcpy(&u16, at, 2); return small(u16, 8, 7, false);
    case TN_F8_E4M3: memcpy(&u8, at, 1); return small(u8, 4, 3, true);
    case TN_F8_E5M2: memcpy(&u8, at, 1); return small(u8, 5, 2, false);
    case TN_F32: memcpy(f, at, 4); return f[0];
    case TN_C64: memcpy(f, at, 8); return f[imaginary];
    case TN_C128: memcpy(d, at, 16); return d[imaginary];
    default: memcpy(d, at, 8); return d[0];
    }
}

double element_rounded(double value, int bits, int least)
{
    int exponent;

    if (value == 0)
        return value;
    (void)frexp(value, &exponent);
    exponent = exponent - bits > least ? exponent - bits : least;
    return ldexp(rint(ldexp(value, -exponent)), exponent);
}

double element_as_f16(double value)
{
    double rounded = isfinite(value) ? element_rounded((float)value, 11, -24) : value;

    return fabs(rounded) > 65504 ? copysign(INFINITY, rounded) : rounded;
}
