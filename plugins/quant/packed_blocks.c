/* SPDX-License-Identifier: MIT
 *
 * Formats of packed weights, and blocks of 32 numbers with a scale in float16 as in GGUF files:
 * q8_0 has the bytes d d q0 ... q31, q4_0 the bytes d d and then 16, of which byte i has number i
 * in its low bits and number 16 + i in its high bits. No operator gives the bits of a float16, so
 * they are computed from its parts. */
#include "quant.h"

enum { BLOCK = 32 };

static const struct packed_format formats[] = {
    { "int8", 0, 0, TN_BIT(TN_I8), TN_BIT(TN_I8), 1 },
    { "int4", 0, 0, TN_BIT(TN_U8), TN_BIT(TN_I8), 2 },
    { "uint4", 0, 0, TN_BIT(TN_U8), TN_BIT(TN_U8), 2 },
    { "q8_0", BLOCK, 34, TN_BIT(TN_U8), 0, 1 },
    { "q4_0", BLOCK, 18, TN_BIT(TN_U8), 0, 2 },
};

const struct packed_format *packed_format_of(const char *name, bool blocks_only)
{
    for (size_t i = 0; name != NULL && i < sizeof formats / sizeof *formats; i++)
        if (strcmp(name, formats[i].name) == 0 && (formats[i].bytes > 0 || !blocks_only))
            return &formats[i];
    tn_fail(TN_ERR_VALUE, "format: unknown, got %q; expected %sq8_0 or q4_0", name,
            blocks_only ? "" : "int8, int4, uint4, ");
    return NULL;
}

/* Returns [..., blocks, bytes]. */
static tn_tensor *in_blocks(tn_tensor *x, int64_t size)
{
    int64_t shape[TN_MAX_DIMS + 1];
    int32_t ndim;

    if (x == NULL)
        return NULL;
    ndim = tn_tensor_ndim(x);
    for (int32_t d = 0; d < ndim; d++)
        shape[d] = tn_tensor_size(x, d);
    shape[ndim - 1] /= size;
    shape[ndim] = size;
    return tn_reshape(x, (tn_ints){ shape, ndim + 1 });
}

/* ---- float16 as bytes ---- */

/* 2^k for k = -25 ... 6, and the values of exponents in a float16. */
static tn_tensor *powers(tn_tensor *like)
{
    float values[32];

    for (int i = 0; i < 32; i++)
        values[i] = (float)ldexp(1, (i > 0 ? i : 1) - 25);
    return tn__common_placed(values, 32, TN_F32, like);
}

/* bits: int32, 0 to 65535 */
static tn_tensor *half_of(tn_tensor *bits)
{
    tn_tensor *exponent, *fraction, *power, *value, *shape;

    if (bits == NULL)
        return NULL;
    exponent = tn_bitwise_and(tn_bitwise_right_shift(bits, number(bits, 10)), number(bits, 31));
    fraction = tn_bitwise_and(bits, number(bits, 1023));
    shape = tn_flatten(tn_cast(exponent, TN_I64));
    power = tn_index_select(powers(bits), shape, 0);
    if (power == NULL)
        return NULL;
    power = tn_reshape(power, tn_tensor_shape(bits));
    value = plus(fraction, tn_cast(tn_mul_scalar(tn_clamp(exponent, 0, 1), 1024), TN_I32));
    value = tn_mul(tn_cast(value, TN_F32), power);
    /* Exponent 31: infinity, or NaN if the fraction is not 0. */
    shape = tn_masked_fill(tn_full(value, tn_tensor_shape(bits), (double)INFINITY),
                           tn_gt(fraction, number(fraction, 0)), (double)NAN);
    value = tn_where(tn_eq(exponent, number(exponent, 31)), shape, value);
    return tn_where(tn_gt(bits, number(bits, 32767)), tn_neg(value), value);
}

/* Returns the two bytes of each number of x, which is float16: [..., 2] in int32. */
static tn_tensor *half_bytes(tn_tensor *x)
{
    tn_tensor *value = tn_cast(x, TN_F32), *size = tn_abs(value), *bits[2], *small, *parts[2];
    tn_tensor *exponent, *negative;

    if (size == NULL || tn_frexp(size, &parts[0], &parts[1]) != TN_OK)
        return NULL;
    exponent = tn_cast(tn_add_scalar(parts[1], 14), TN_F32);
    bits[0] = plus(times(exponent, 1024.0), add_number(times(parts[0], 2048.0), -1024.0));
    small = times(size, 0x1p24);
    bits[0] = tn_where(tn_lt(size, number(size, 0x1p-14)), small, bits[0]);
    bits[0] = tn_where(tn_eq(size, number(size, (double)INFINITY)), number(size, 31744.0), bits[0]);
    bits[0] = tn_cast(quantize_without_nan(bits[0]), TN_I32);
    negative = tn_cast(tn_signbit(value), TN_I32);
    bits[0] = plus(bits[0], tn_mul_scalar(negative, 32768));
    bits[1] = tn_bitwise_right_shift(bits[0], number(bits[0], 8));
    bits[0] = tn_bitwise_and(bits[0], number(bits[0], 255));
    return bits[0] != NULL && bits[1] != NULL ? tn_stack(bits, 2, -1) : NULL;
}

/* ---- reading ---- */

tn_tensor *packed_blocks_scales(const struct packed_format *f, tn_tensor *blocks)
{
    tn_tensor *bytes = tn_cast(tn_narrow(in_blocks(blocks, f->bytes), -1, 0, 2), TN_I32);
    tn_tensor *high = tn_select(bytes, -1, 1);

    return half_of(plus(tn_select(bytes, -1, 0), tn_mul_scalar(high, 256)));
}

tn_tensor *packed_blocks_integers(const struct packed_format *f, tn_tensor *blocks)
{
    tn_tensor *q = tn_narrow(in_blocks(blocks, f->bytes), -1, 2, f->bytes - 2);
    tn_tensor *halves[2];

    q = tn_cast(q, TN_I32);
    if (q == NULL)
        return NULL;
    if (f->in_byte == 1) /* two's complement */
        return tn_add_scalar(tn_bitwise_xor(q, number(q, 128)), -128);
    halves[0] = tn_bitwise_and(q, number(q, 15));
    halves[1] = tn_bitwise_right_shift(q, number(q, 4));
    return halves[0] != NULL && halves[1] != NULL ? tn_add_scalar(tn_cat(halves, 2, -1), -8) : NULL;
}

tn_tensor *packed_blocks_numbers(const struct packed_format *f, tn_tensor *blocks)
{
    tn_tensor *y = tn_mul(tn_cast(packed_blocks_integers(f, blocks), TN_F32),
                          tn_unsqueeze(packed_blocks_scales(f, blocks), -1));

    return y != NULL ? tn_flatten(y, -2, -1) : NULL;
}

/* ---- writing ---- */

static tn_status quantize_packed_infer(tn_infer *infer)
{
    const tn_quantize_packed_options *o = infer->options;
    const struct packed_format *f = packed_format_of(o->format, true);
    const tn_view *x = infer->in[0];
    char text[TN__TEXT];

    if (f == NULL)
        return tn_error_last_code();
    if (x->ndim < 1 || x->shape[x->ndim - 1] % BLOCK != 0)
        return tn_fail(TN_ERR_VALUE, "x: wrong last size, got %s; expected a multiple of 32",
                       tn__common_text(text, tn__common_shape(x)));
    tn__common_plain(&infer->out[0], TN_U8, tn__common_shape(x));
    infer->out[0].shape[x->ndim - 1] = tn__common_times(x->shape[x->ndim - 1] / BLOCK, f->bytes);
    return TN_OK;
}

/* x / scale, as x times the reciprocal; 0 if the scale is 0. */
static tn_tensor *quotients(tn_tensor *x, tn_tensor *scale)
{
    tn_tensor *none = scale != NULL ? tn_eq(scale, number(scale, 0.0)) : NULL;

    return quantize_without_nan(tn_mul(x, tn_masked_fill(tn_reciprocal(scale), none, 0.0)));
}

/* x >= 0 to the nearest integer, halves up. x + 0.5 would be rounded: 1 for the number before 0.5.
 */
static tn_tensor *rounded_away(tn_tensor *x)
{
    tn_tensor *whole = tn_floor(x), *rest = minus(x, whole);

    return plus(whole, rest != NULL ? tn_cast(is_at_least(rest, 0.5), TN_F32) : NULL);
}

/* Blocks of q8_0: the scale makes the largest magnitude 127. Halves are rounded away from 0. */
static tn_tensor *eights(tn_tensor *x, tn_tensor **scale)
{
    int64_t last = -1;
    tn_tensor *most = tn_amax(tn_abs(x), (tn_ints){ &last, 1 }, true), *q;

    *scale = divide(most, number(most, 127.0));
    q = quotients(x, *scale);
    q = tn_mul(rounded_away(tn_abs(q)), tn_sign(q));
    q = tn_cast(clamped(q, -127, 127), TN_I32);
    return tn_bitwise_and(q, number(q, 255));
}

/* Blocks of q4_0: the scale makes the first number of largest magnitude -8. */
static tn_tensor *fours(tn_tensor *x, tn_tensor **scale)
{
    tn_tensor *most = tn_gather(x, tn_argmax(tn_abs(x), -1, true), -1), *q;

    *scale = divide(most, number(most, -8.0));
    q = add_number(quotients(x, *scale), 8.5);
    q = tn_cast(clamped(tn_floor(q), 0, 15), TN_I32);
    return plus(tn_narrow(q, -1, 0, BLOCK / 2),
                tn_mul_scalar(tn_narrow(q, -1, BLOCK / 2, BLOCK / 2), 16));
}

static tn_status quantize_packed_decompose(const tn_decompose *call)
{
    const tn_quantize_packed_options *o = call->options;
    const struct packed_format *f = packed_format_of(o->format, true);
    tn_tensor *x = quantize_without_nan(in_blocks(tn_cast(call->in[0], TN_F32), BLOCK));
    tn_tensor *parts[2], *scale = NULL, *y;

    if (f == NULL || x == NULL)
        return tn_error_last_code();
    if (tn_tensor_numel(x) == 0) {
        y = tn_full(x, TN_SHAPE(0), 0, TN_U8);
    } else {
        parts[1] = f->in_byte == 1 ? eights(x, &scale) : fours(x, &scale);
        parts[0] = half_bytes(scale != NULL ? tn_squeeze(tn_cast(scale, TN_F16), TN_INTS(-1))
                                            : NULL);
        y = parts[0] != NULL && parts[1] != NULL ? tn_cast(tn_cat(parts, 2, -1), TN_U8) : NULL;
    }
    if (y != NULL && tn_tensor_ndim(y) > 1)
        y = tn_flatten(y, -2, -1);
    return tn__common_given(call->out, y);
}

TN__OP(quantize_packed, .infer = quantize_packed_infer, .decompose = quantize_packed_decompose);
