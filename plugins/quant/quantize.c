/* SPDX-License-Identifier: MIT
 *
 * quantize and dequantize: floats to integers with a scale, and back. */
#include "quant.h"

tn_tensor *quantize_without_nan(tn_tensor *x)
{
    return x != NULL ? tn_masked_fill(x, tn_isnan(x), 0.0) : NULL;
}

/* Sums up to 2^24 are exact in float32, and what is larger is out of the range of 16 bits. int32
 * needs int64, in which no sum overflows. */
tn_tensor *quantize_to(tn_tensor *x, tn_tensor *scale, tn_tensor *zero_point,
                       struct scale_range range, tn_dtype dtype)
{
    tn_dtype sums = dtype == TN_I32 ? TN_I64 : TN_F32;
    tn_tensor *q = quantize_without_nan(tn_round(divide(x, tn_cast(scale, TN_F32))));

    q = tn_cast(clamped(q, -0x1p40, 0x1p40), sums);
    if (zero_point != TN_NONE)
        q = plus(q, tn_cast(zero_point, sums));
    return tn_cast(clamped(q, (double)range.min, (double)range.max), dtype);
}

/* The dtype that the options of quantize ask for. */
static tn_dtype quantized_dtype(const tn_quantize_options *o, tn_dtype zero_point)
{
    if (o->dtype != TN_DTYPE_AUTO)
        return o->dtype;
    return zero_point != TN_DTYPE_AUTO ? zero_point : TN_U8;
}

static tn_status quantize_infer(tn_infer *infer)
{
    const tn_quantize_options *o = infer->options;
    const tn_view *zero = infer->in[2];
    tn_dtype given = zero != NULL ? tn_view_dtype(zero) : TN_DTYPE_AUTO;
    tn_dtype dtype = quantized_dtype(o, given);
    tn_status status = scale_dtype(dtype, QUANT_INTS, "int8, uint8, int16 or int32");

    if (status == TN_OK && zero != NULL && given != dtype)
        status = tn_fail(TN_ERR_VALUE,
                         "zero_point: wrong dtype, got %s; expected %s, the dtype of "
                         "the result",
                         tn_dtype_name(given), tn_dtype_name(dtype));
    if (status == TN_OK)
        status = scale_range_check(dtype, o->qmin, o->qmax);
    if (status == TN_OK)
        status = scale_fits(infer->in[0], infer->in[1], zero, o->dim, o->block);
    if (status == TN_OK)
        tn__common_like(infer, 0, 0, dtype);
    return status;
}

static tn_status quantize_decompose(const tn_decompose *call)
{
    const tn_quantize_options *o = call->options;
    tn_tensor *x = tn_cast(call->in[0], TN_F32), *zero = call->in[2];
    tn_dtype dtype = quantized_dtype(o, zero != TN_NONE ? tn_tensor_dtype(zero) : TN_DTYPE_AUTO);

    return tn__common_given(
        call->out, quantize_to(x, scale_spread(call->in[1], x, o->dim, o->block),
                               zero != TN_NONE ? scale_spread(zero, x, o->dim, o->block) : TN_NONE,
                               scale_range_of(dtype, o->qmin, o->qmax), dtype));
}

TN__OP(quantize, .infer = quantize_infer, .decompose = quantize_decompose);

/* ---- dequantize ---- */

static tn_status dequantize_infer(tn_infer *infer)
{
    const tn_dequantize_options *o = infer->options;
    tn_status status = scale_dtype(o->dtype, TN_MASK_FLOAT,
                                   "float16, bfloat16, float32 or float64");

    if (status == TN_OK)
        status = scale_zero_point(infer->in[0], "q", NULL, infer->in[2], "zero_point");
    if (status == TN_OK)
        status = scale_fits(infer->in[0], infer->in[1], infer->in[2], o->dim, o->block);
    if (status == TN_OK)
        tn__common_like(infer, 0, 0, o->dtype);
    return status;
}

static tn_status dequantize_decompose(const tn_decompose *call)
{
    const tn_dequantize_options *o = call->options;
    tn_tensor *q = call->in[0], *zero = call->in[2], *value, *scale;
    bool wide = tn_tensor_dtype(q) == TN_I32;

    value = tn_cast(q, wide ? TN_I64 : TN_I32);
    if (zero != TN_NONE)
        value = minus(value,
                      tn_cast(scale_spread(zero, q, o->dim, o->block), wide ? TN_I64 : TN_I32));
    scale = tn_cast(scale_spread(call->in[1], q, o->dim, o->block), TN_F32);
    return tn__common_given(call->out, tn_cast(tn_mul(tn_cast(value, TN_F32), scale), o->dtype));
}

TN__OP(dequantize, .infer = dequantize_infer, .decompose = dequantize_decompose);
