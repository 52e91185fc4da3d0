/* SPDX-License-Identifier: MIT
 *
 * Conversion between float32 and floats of 8 and 16 bits. The functions have no branches, so that
 * compilers can use vector instructions. */
#ifndef TN_COMM_LOCAL_NARROW_H
#define TN_COMM_LOCAL_NARROW_H

#include <stdbool.h>
#include <stdint.h>

/* A format: the bits of the mantissa and of the exponent, and whether the largest exponent is that
 * of inf and NaN. Without it, only the largest number is NaN, and there is no inf. */
struct narrow {
    int mantissa, exponent;
    bool infinite;
};

static const struct narrow narrow_f16 = { 10, 5, true }, narrow_bf16 = { 7, 8, true };
static const struct narrow narrow_e4m3 = { 3, 4, false }, narrow_e5m2 = { 2, 5, true };

static inline float narrow_float_of(uint32_t bits)
{
    union {
        uint32_t bits;
        float number;
    } as = { bits };

    return as.number;
}

static inline uint32_t narrow_bits_of(float number)
{
    union {
        float number;
        uint32_t bits;
    } as = { number };

    return as.bits;
}

/* Returns the first magnitude that is not a finite number. */
static inline uint32_t narrow_end(struct narrow f)
{
    return f.infinite ? ((1u << f.exponent) - 1) << f.mantissa
                      : (1u << (f.exponent + f.mantissa)) - 1;
}

static inline float narrow_load(struct narrow f, uint32_t bits)
{
    const uint32_t sign = bits >> (f.exponent + f.mantissa) << 31;
    const uint32_t magnitude = bits & ((1u << (f.exponent + f.mantissa)) - 1);
    /* the exponent of 1.0 in float32 minus that in this format */
    const int bias = 127 - ((1 << (f.exponent - 1)) - 1);
    const float scale = narrow_float_of((uint32_t)(127 + bias) << 23);
    const uint32_t wide = magnitude << (23 - f.mantissa);
    const uint32_t finite = f.exponent == 8 ? wide : narrow_bits_of(narrow_float_of(wide) * scale);
    const uint32_t special = f.infinite ? 0x7f800000u | wide : 0x7fc00000u;

    return narrow_float_of(sign | (magnitude >= narrow_end(f) ? special : finite));
}

/* Rounds to the nearest number, to the even one of two. Numbers that are too large become inf, or
 * NaN in the format without inf. */
static inline uint32_t narrow_store(struct narrow f, float number)
{
    const int cut = 23 - f.mantissa, bias = 127 - ((1 << (f.exponent - 1)) - 1);
    const uint32_t bits = narrow_bits_of(number), sign = bits >> 31 << (f.exponent + f.mantissa);
    const uint32_t magnitude = bits & 0x7fffffffu, end = narrow_end(f);
    const uint32_t nan = f.infinite ? end | 1u << (f.mantissa - 1) : end;
    const uint32_t rounded = (magnitude + (1u << (cut - 1)) - 1 + (magnitude >> cut & 1)) >> cut;
    const uint32_t normal = rounded - ((uint32_t)bias << f.mantissa);
    /* A sum with this number rounds to multiples of the least number of the format. */
    const uint32_t magic = (uint32_t)(bias + 1 + cut) << 23;
    const uint32_t small = narrow_bits_of(narrow_float_of(magnitude) + narrow_float_of(magic)) -
                           magic;
    const uint32_t least = (uint32_t)(bias + 1) << 23; /* the least normal number */
    const uint32_t finite = f.exponent == 8 ? rounded : magnitude < least ? small : normal;
    const uint32_t capped = finite < end ? finite : end;

    return sign | (magnitude > 0x7f800000u ? nan : capped);
}

#endif
