/* SPDX-License-Identifier: MIT
 *
 * Numbers as kernels take them and as the device stores them. */
#include "gpu.h"

#include <math.h>
#include <string.h>

gpu_arg gpu_scalar_arg(gpu_scalar *scalar, tn_dtype dtype, double value)
{
    gpu_arg arg = { scalar, sizeof(int32_t) };

    switch (dtype) {
    case TN_F64:
        scalar->d = value;
        arg.size = sizeof scalar->d;
        break;
    case TN_F16:
    case TN_BF16:
    case TN_F32: scalar->f = (float)value; break;
    case TN_I64:
        scalar->l = (int64_t)value;
        arg.size = sizeof scalar->l;
        break;
    default:
        /* through 64 bits: narrower integers wrap */
        scalar->i = (int32_t)(uint32_t)(uint64_t)(int64_t)value;
        break;
    }
    return arg;
}

/* float to float16, rounded to nearest even. */
static uint16_t float16_bits(float value)
{
    uint32_t bits, sign, rest, mantissa;
    int32_t exponent, shift;

    memcpy(&bits, &value, sizeof bits);
    sign = bits >> 16 & 0x8000u;
    rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (rest >= 0x477ff000u) /* rounds to 65536 or more */
        return (uint16_t)(sign | 0x7c00u);
    exponent = (int32_t)(rest >> 23) - 112;
    mantissa = (rest & 0x7fffffu) | 0x800000u;
    if (exponent <= 0) {
        if (exponent < -10)
            return (uint16_t)sign;
        shift = 14 - exponent;
        rest = mantissa >> shift;
        mantissa &= (1u << shift) - 1;
        if (mantissa > 1u << (shift - 1) || (mantissa == 1u << (shift - 1) && (rest & 1)))
            rest++;
        return (uint16_t)(sign | rest);
    }
    rest = (uint32_t)exponent << 10 | (mantissa >> 13 & 0x3ffu);
    mantissa &= 0x1fffu;
    if (mantissa > 0x1000u || (mantissa == 0x1000u && (rest & 1)))
        rest++;
    return (uint16_t)(sign | rest);
}

static uint16_t bfloat16_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* A double as a 64-bit integer; defined where C's conversion is not. */
static int64_t to_int64(double value)
{
    if (isnan(value))
        return 0;
    if (value >= 9223372036854775808.0)
        return INT64_MAX;
    if (value <= -9223372036854775808.0)
        return INT64_MIN;
    return (int64_t)value;
}

void gpu_bits(tn_dtype dtype, double value, uint64_t bits[2])
{
    float narrow = (float)value;

    bits[0] = 0;
    bits[1] = 0;
    switch (dtype) {
    case TN_BOOL: bits[0] = value != 0; break;
    case TN_F16: bits[0] = float16_bits(narrow); break;
    case TN_BF16: bits[0] = bfloat16_bits(narrow); break;
    case TN_F32:
    case TN_C64: memcpy(bits, &narrow, sizeof narrow); break;
    case TN_F64:
    case TN_C128: memcpy(bits, &value, sizeof value); break;
    case TN_U64:
        bits[0] = value >= 9223372036854775808.0 && value < 18446744073709551616.0
                      ? (uint64_t)value
                      : (uint64_t)to_int64(value);
        break;
    default: bits[0] = (uint64_t)to_int64(value); break;
    }
}
