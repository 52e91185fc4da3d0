/* SPDX-License-Identifier: MIT
 *
 * Converts numbers to kernel arguments, and to the bits of elements in device memory. */
#include "gpu.h"

#include <math.h>
#include <string.h>

/* Converts an integer directly to float32: a conversion through double would round twice. */
static float to_float(tn_scalar value)
{
    return value.kind == TN_SCALAR_INT ? (float)value.as.i : (float)tn_scalar_as_float(value);
}

gpu_arg gpu_scalar_arg(gpu_scalar *scalar, tn_dtype dtype, tn_scalar value)
{
    gpu_arg arg = { scalar, sizeof(int32_t) };

    switch (dtype) {
    case TN_F64:
        scalar->d = tn_scalar_as_float(value);
        arg.size = sizeof scalar->d;
        break;
    case TN_F16:
    case TN_BF16:
    case TN_F32: scalar->f = to_float(value); break;
    case TN_I64:
        scalar->l = tn_scalar_as_int(value);
        arg.size = sizeof scalar->l;
        break;
    default:
        /* A value out of range wraps, because it is converted to 64 bits first. */
        scalar->i = (int32_t)(uint32_t)(uint64_t)tn_scalar_as_int(value);
        break;
    }
    return arg;
}

/* Converts float32 to float16; rounds to nearest, ties to even. */
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

/* Converts a number to uint64. Every value has a defined result, also those for which C's
 * conversion is undefined. */
static uint64_t to_uint64(tn_scalar value)
{
    if (value.kind == TN_SCALAR_FLOAT && value.as.f >= 9223372036854775808.0 &&
        value.as.f < 18446744073709551616.0)
        return (uint64_t)value.as.f;
    return (uint64_t)tn_scalar_as_int(value);
}

void gpu_bits(tn_dtype dtype, tn_scalar value, uint64_t bits[2])
{
    double wide[2] = { tn_scalar_as_float(value), tn_scalar_imag(value) };
    float narrow[2] = { to_float(value), (float)wide[1] };

    bits[0] = 0;
    bits[1] = 0;
    switch (dtype) {
    case TN_BOOL: bits[0] = wide[0] != 0 || wide[1] != 0; break;
    case TN_F16: bits[0] = float16_bits(narrow[0]); break;
    case TN_BF16: bits[0] = bfloat16_bits(narrow[0]); break;
    case TN_F32: memcpy(bits, narrow, sizeof narrow[0]); break;
    case TN_C64: memcpy(bits, narrow, sizeof narrow); break;
    case TN_F64:
    case TN_C128: memcpy(bits, wide, sizeof wide); break;
    case TN_U64: bits[0] = to_uint64(value); break;
    default: bits[0] = (uint64_t)tn_scalar_as_int(value); break;
    }
}
