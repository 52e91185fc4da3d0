/* SPDX-License-Identifier: MIT
 *
 * Conversion of one float16 or bfloat16 number to float32 and back, rounded to nearest, ties to
 * even. */
#ifndef TN_BACKEND_CPU_MATH_FLOAT16_H
#define TN_BACKEND_CPU_MATH_FLOAT16_H

#include <stdint.h>
#include <string.h>

static inline uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

static inline float bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

/* NaN is converted as the processors' instructions do it: the result is quiet and keeps the
 * payload's upper bits. */
static inline float f16_to_float(uint16_t half)
{
    uint32_t bits = (uint32_t)(half & 0x7fff) << 13, exponent = bits & 0x0f800000u;
    uint32_t normal = bits + (112u << 23);
    uint32_t special = (normal + (112u << 23)) | (bits & 0x007fffffu ? 0x00400000u : 0);
    uint32_t small = float_bits(bits_float(bits + (113u << 23)) - bits_float(113u << 23));
    uint32_t value = exponent == 0x0f800000u ? special : exponent == 0 ? small : normal;
    return bits_float(value | (uint32_t)(half & 0x8000) << 16);
}

static inline uint16_t float_to_f16(float x)
{
    uint32_t bits = float_bits(x), sign = bits & 0x80000000u;
    bits ^= sign;
    uint32_t special = bits > 0x7f800000u ? 0x7e00u | (bits >> 13 & 0x3ffu) : 0x7c00u;
    uint32_t small = float_bits(bits_float(bits & 0x3fffffffu) + 0.5f) - 0x3f000000u;
    uint32_t normal = (bits + 0xc8000fffu + (bits >> 13 & 1)) >> 13;
    uint32_t value = bits >= 0x47800000u ? special : bits < 0x38800000u ? small : normal;
    return (uint16_t)(value | sign >> 16);
}

static inline float bf16_to_float(uint16_t brain)
{
    return bits_float((uint32_t)brain << 16);
}

static inline uint16_t float_to_bf16(float x)
{
    uint32_t bits = float_bits(x);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 & 0x8000u) | 0x7fc0u
                                                         : rounded);
}

#endif
