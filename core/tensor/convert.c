/* SPDX-License-Identifier: MIT
 *
 * Single elements in memory of the host. The small floating-point dtypes are described by the
 * widths of their parts, so that one pair of functions serves all of them. */
#include "core/tensor/convert.h"

#include <math.h>

/* A binary floating-point format with `exponent` and `mantissa` bits. `finite`: the format has no
 * infinity; the highest exponent is used for numbers, and only a mantissa of all ones is NaN
 * (E4M3). */
typedef struct small_float {
    int exponent, mantissa;
    bool finite;
} small_float;

static const small_float f16 = { 5, 10, false };
static const small_float bf16 = { 8, 7, false };
static const small_float e4m3 = { 4, 3, true };
static const small_float e5m2 = { 5, 2, false };

static double small_value(small_float type, uint32_t bits)
{
    int bias = (1 << (type.exponent - 1)) - 1;
    uint32_t mantissa = bits & ((1u << type.mantissa) - 1u);
    int exponent = (int)(bits >> type.mantissa) & ((1 << type.exponent) - 1);
    int top = (1 << type.exponent) - 1;
    double value;

    if (exponent == top && !type.finite)
        value = mantissa != 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == top && mantissa == (1u << type.mantissa) - 1u)
        value = (double)NAN;
    else if (exponent == 0)
        value = ldexp((double)mantissa, 1 - bias - type.mantissa);
    else
        value = ldexp((double)(mantissa | (1u << type.mantissa)), exponent - bias - type.mantissa);
    return (bits >> (type.exponent + type.mantissa)) & 1u ? -value : value;
}

/* Rounds twice, to float32 first, as PyTorch and the kernels of the devices do. */
static uint32_t small_bits(small_float type, double given)
{
    double value = (double)(float)given;
    int bias = (1 << (type.exponent - 1)) - 1;
    uint32_t sign = signbit(value) ? 1u << (type.exponent + type.mantissa) : 0;
    uint32_t infinity = ((1u << type.exponent) - 1u) << type.mantissa;
    uint32_t nan = type.finite ? infinity | ((1u << type.mantissa) - 1u)
                               : infinity | (1u << (type.mantissa - 1));
    uint32_t largest = type.finite ? nan - 1u : infinity - 1u;
    double magnitude = fabs(value), scaled, whole;
    int exponent;
    uint32_t bits;

    if (isnan(value))
        return sign | nan;
    if (isinf(value))
        return sign | (type.finite ? largest : infinity);
    if (magnitude == 0)
        return sign;
    (void)frexp(magnitude, &exponent);
    exponent -= 1; /* now magnitude = 1.xxx * 2^exponent */
    if (exponent < 1 - bias)
        exponent = 1 - bias;
    /* Scales the number to units in the last place, which is exact, and rounds to even. */
    scaled = ldexp(magnitude, type.mantissa - exponent);
    whole = floor(scaled);
    scaled -= whole;
    bits = whole < 4294967295.0 ? (uint32_t)whole : 0;
    if (scaled > 0.5 || (scaled == 0.5 && (bits & 1u) != 0))
        bits++;
    /* The hidden bit of a normal number adds 1 to the exponent field; rounding up may also carry
     * into it. */
    if (exponent - (1 - bias) > (1 << type.exponent))
        bits = largest + 1u;
    else
        bits += (uint32_t)(exponent - (1 - bias)) << type.mantissa;
    if (bits > largest)
        bits = type.finite ? largest : infinity;
    return sign | bits;
}

double tn__convert_f16_value(uint16_t bits)
{
    return small_value(f16, bits);
}

double tn__convert_bf16_value(uint16_t bits)
{
    return small_value(bf16, bits);
}

double tn__convert_f8_e4m3_value(uint8_t bits)
{
    return small_value(e4m3, bits);
}

double tn__convert_f8_e5m2_value(uint8_t bits)
{
    return small_value(e5m2, bits);
}

uint16_t tn__convert_f16_bits(double value)
{
    return (uint16_t)small_bits(f16, value);
}

uint16_t tn__convert_bf16_bits(double value)
{
    return (uint16_t)small_bits(bf16, value);
}

uint8_t tn__convert_f8_e4m3_bits(double value)
{
    return (uint8_t)small_bits(e4m3, value);
}

uint8_t tn__convert_f8_e5m2_bits(double value)
{
    return (uint8_t)small_bits(e5m2, value);
}

#define READ(type, name)                                                                           \
    type name;                                                                                     \
    memcpy(&name, at, sizeof name)

tn__number tn__convert_read(const void *at, tn_dtype dtype)
{
    tn__number number = { TN__NUMBER_INT, 0, 0, 0, 0 };

    switch (dtype) {
    case TN_BOOL:
    case TN_U8: {
        READ(uint8_t, x);
        number.i = dtype == TN_BOOL ? x != 0 : x;
        break;
    }
    case TN_I8: {
        READ(int8_t, x);
        number.i = x;
        break;
    }
    case TN_I16: {
        READ(int16_t, x);
        number.i = x;
        break;
    }
    case TN_U16: {
        READ(uint16_t, x);
        number.i = x;
        break;
    }
    case TN_I32: {
        READ(int32_t, x);
        number.i = x;
        break;
    }
    case TN_U32: {
        READ(uint32_t, x);
        number.i = x;
        break;
    }
    case TN_I64: {
        READ(int64_t, x);
        number.i = x;
        break;
    }
    case TN_U64: {
        READ(uint64_t, x);
        number.kind = TN__NUMBER_UINT;
        number.u = x;
        break;
    }
    case TN_F16:
    case TN_BF16: {
        READ(uint16_t, x);
        number.kind = TN__NUMBER_FLOAT;
        number.re = dtype == TN_F16 ? tn__convert_f16_value(x) : tn__convert_bf16_value(x);
        break;
    }
    case TN_F8_E4M3:
    case TN_F8_E5M2: {
        READ(uint8_t, x);
        number.kind = TN__NUMBER_FLOAT;
        number.re = dtype == TN_F8_E4M3 ? tn__convert_f8_e4m3_value(x)
                                        : tn__convert_f8_e5m2_value(x);
        break;
    }
    case TN_F32: {
        READ(float, x);
        number.kind = TN__NUMBER_FLOAT;
        number.re = (double)x;
        break;
    }
    case TN_F64: {
        READ(double, x);
        number.kind = TN__NUMBER_FLOAT;
        number.re = x;
        break;
    }
    case TN_C64: {
        float x[2];
        memcpy(x, at, sizeof x);
        number.kind = TN__NUMBER_COMPLEX;
        number.re = (double)x[0];
        number.im = (double)x[1];
        break;
    }
    case TN_C128: {
        double x[2];
        memcpy(x, at, sizeof x);
        number.kind = TN__NUMBER_COMPLEX;
        number.re = x[0];
        number.im = x[1];
        break;
    }
    default: break;
    }
    return number;
}

double tn__convert_number(const tn__number *number)
{
    switch (number->kind) {
    case TN__NUMBER_INT: return (double)number->i;
    case TN__NUMBER_UINT: return (double)number->u;
    default: return number->re;
    }
}

tn_scalar tn__convert_scalar(const void *at, tn_dtype dtype)
{
    tn__number number = tn__convert_read(at, dtype);

    switch (number.kind) {
    case TN__NUMBER_INT:
        return dtype == TN_BOOL ? tn_scalar_bool(number.i != 0) : tn_scalar_int(number.i);
    case TN__NUMBER_UINT: return tn_scalar_uint(number.u);
    case TN__NUMBER_COMPLEX: return tn_scalar_complex(number.re, number.im);
    default: return tn_scalar_float(number.re);
    }
}

/* Converts to uint64. Unlike tn_scalar_as_int(), also converts floating-point numbers of 2^63 and
 * more. */
static uint64_t to_uint(tn_scalar value)
{
    bool beyond = value.kind == TN_SCALAR_FLOAT && value.as.f >= 9223372036854775808.0;

    if (!beyond)
        return (uint64_t)tn_scalar_as_int(value);
    return value.as.f >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)value.as.f;
}

/* An integer is converted to float32 directly, so that it is rounded only once. */
static float to_float(tn_scalar value)
{
    switch (value.kind) {
    case TN_SCALAR_INT: return (float)value.as.i;
    case TN_SCALAR_UINT: return (float)value.as.u;
    default: return (float)tn_scalar_as_float(value);
    }
}

static bool to_bool(tn_scalar value)
{
    return value.kind == TN_SCALAR_FLOAT || value.kind == TN_SCALAR_COMPLEX
               ? value.as.f != 0 || tn_scalar_imag(value) != 0
               : value.as.i != 0;
}

void tn__convert_write(void *at, tn_dtype dtype, tn_scalar value)
{
    int64_t whole = tn_scalar_as_int(value);
    double real = tn_scalar_as_float(value);
    union {
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        float f[2];
        double d[2];
    } x = { 0 };

    switch (dtype) {
    case TN_BOOL: x.u8 = to_bool(value); break;
    case TN_U8:
    case TN_I8: x.u8 = (uint8_t)whole; break;
    case TN_I16:
    case TN_U16: x.u16 = (uint16_t)whole; break;
    case TN_I32:
    case TN_U32: x.u32 = (uint32_t)whole; break;
    case TN_I64: x.u64 = (uint64_t)whole; break;
    case TN_U64: x.u64 = to_uint(value); break;
    case TN_F16: x.u16 = tn__convert_f16_bits(real); break;
    case TN_BF16: x.u16 = tn__convert_bf16_bits(real); break;
    case TN_F8_E4M3: x.u8 = tn__convert_f8_e4m3_bits(real); break;
    case TN_F8_E5M2: x.u8 = tn__convert_f8_e5m2_bits(real); break;
    case TN_F32:
    case TN_C64:
        x.f[0] = to_float(value);
        x.f[1] = (float)tn_scalar_imag(value);
        break;
    case TN_F64:
    case TN_C128:
        x.d[0] = real;
        x.d[1] = tn_scalar_imag(value);
        break;
    default: return;
    }
    memcpy(at, &x, tn_dtype_size(dtype));
}

/* Copies between dense and strided elements, in row-major order. The innermost dimension has a loop
 * of its own. */
static void walk(char *dense, char *strided, size_t item, tn_ints shape, const int64_t *strides,
                 bool gather)
{
    int64_t index[TN_MAX_DIMS] = { 0 };
    int64_t last = shape.count - 1;
    int64_t inner = last >= 0 ? shape.at[last] : 1;
    int64_t step = last >= 0 ? strides[last] * (int64_t)item : 0;
    int64_t dim;

    for (int64_t i = 0; i < shape.count; i++)
        if (shape.at[i] == 0)
            return;
    for (;;) {
        if (step == (int64_t)item) {
            memcpy(gather ? dense : strided, gather ? strided : dense, (size_t)inner * item);
        } else {
            for (int64_t i = 0; i < inner; i++)
                memcpy(gather ? dense + (size_t)i * item : strided + i * step,
                       gather ? strided + i * step : dense + (size_t)i * item, item);
        }
        dense += (size_t)inner * item;
        for (dim = last - 1; dim >= 0; dim--) {
            strided += strides[dim] * (int64_t)item;
            if (++index[dim] < shape.at[dim])
                break;
            strided -= shape.at[dim] * strides[dim] * (int64_t)item;
            index[dim] = 0;
        }
        if (dim < 0)
            return;
    }
}

void tn__convert_gather(void *to, const void *from, size_t item, tn_ints shape,
                        const int64_t *strides)
{
    walk(to, (char *)(uintptr_t)from, item, shape, strides, true);
}

void tn__convert_scatter(void *to, const void *from, size_t item, tn_ints shape,
                         const int64_t *strides)
{
    walk((char *)(uintptr_t)from, to, item, shape, strides, false);
}
