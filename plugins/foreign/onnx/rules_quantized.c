/* SPDX-License-Identifier: MIT
 *
 * Rules for quantized numbers: y = round(x / scale) + zero point, in the range of its dtype. */
#include "onnx/onnx_rules.h"

#include "rules_bound.h"

/* A scale or a zero point beside x: one number, one for each place of an axis, or for blocks. */
static tn_tensor *beside(tn_rule_call *call, tn_tensor *x, tn_tensor *scale, int64_t axis,
                         int64_t block)
{
    int64_t shape[TN_MAX_DIMS], n;

    if (call->status != TN_OK || x == NULL || scale == NULL)
        return NULL;
    n = tn_tensor_ndim(x);
    if (tn_tensor_numel(scale) == 1)
        return tn_reshape(scale, TN_SCALAR_SHAPE);
    axis += axis < 0 ? n : 0;
    if (axis < 0 || axis >= n) {
        rule_fail(call, TN_ERR_INDEX, "axis: out of range, got %lld; expected 0 to %lld",
                  (long long)axis, (long long)n - 1);
        return NULL;
    }
    if (tn_tensor_ndim(scale) == n && block > 0)
        return tn_narrow(tn_repeat_interleave_scalar(scale, block, axis), axis, 0,
                         tn_tensor_size(x, axis));
    for (int64_t i = 0; i < n; i++)
        shape[i] = i == axis ? -1 : 1;
    return tn_reshape(scale, (tn_ints){ shape, n });
}

/* The least and the greatest number of an integer dtype. */
static bool limits(tn_dtype dtype, double *low, double *high)
{
    switch (dtype) {
    case TN_U8: *low = 0, *high = 255; return true;
    case TN_I8: *low = -128, *high = 127; return true;
    case TN_U16: *low = 0, *high = 65535; return true;
    case TN_I16: *low = -32768, *high = 32767; return true;
    case TN_I32: *low = -2147483648.0, *high = 2147483647; return true;
    default: return false;
    }
}

/* x, scale and zero as floats or int32 beside each other. */
static tn_tensor *quantized(tn_rule_call *call, tn_tensor *x, tn_tensor *scale, tn_tensor *zero,
                            tn_dtype dtype)
{
    double low, high, most = dtype == TN_F8_E4M3 ? 448 : 57344;
    tn_tensor *y;

    if (call->status != TN_OK || x == NULL || scale == NULL || zero == NULL)
        return NULL;
    if (!limits(dtype, &low, &high)) {
        if (dtype == TN_F8_E4M3 || dtype == TN_F8_E5M2)
            return tn_cast(
                tn_clamp(tn_div(x, scale), tn_scalar_float(-most), tn_scalar_float(most)), dtype);
        rule_fail(call, TN_ERR_NOT_IMPLEMENTED,
                  "y_zero_point: wrong dtype, got %s; expected an integer dtype",
                  tn_dtype_name(dtype));
        return NULL;
    }
    y = tn_round(tn_div(x, scale));
    if (zero != TN_NONE)
        y = tn_add(y, tn_cast(zero, tn_tensor_dtype(y)));
    return tn_cast(tn_clamp(y, tn_scalar_float(low), tn_scalar_float(high)), dtype);
}

/* (x - zero) * scale */
static tn_tensor *real(tn_tensor *x, tn_tensor *scale, tn_tensor *zero)
{
    tn_dtype dtype;

    if (x == NULL || scale == NULL || zero == NULL)
        return NULL;
    dtype = tn_tensor_dtype(scale);
    if (zero == TN_NONE || tn_tensor_dtype(x) == TN_F8_E4M3 || tn_tensor_dtype(x) == TN_F8_E5M2)
        return tn_mul(tn_cast(x, dtype), scale);
    return tn_mul(tn_cast(tn_sub(tn_cast(x, TN_I32), tn_cast(zero, TN_I32)), dtype), scale);
}

static tn_status quantize(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "x"), *scale = rule_tensor(call, "y_scale");
    tn_tensor *zero = rule_optional(call, "y_zero_point");
    int64_t axis = rule_int(call, "axis"), block = rule_int(call, "block_size");
    tn_dtype dtype = rule_int(call, "output_dtype") != 0 ? onnx_rule_dtype(call, "output_dtype")
                                                         : TN_U8;

    if (call->status != TN_OK)
        return call->status;
    if (zero != TN_NONE)
        dtype = tn_tensor_dtype(zero);
    scale = beside(call, x, scale, axis, block);
    if (zero != TN_NONE)
        zero = beside(call, x, zero, axis, block);
    if ((TN_BIT(tn_tensor_dtype(x)) & TN_MASK_INT) != 0 && scale != NULL)
        x = tn_cast(x, tn_tensor_dtype(scale));
    return rule_give(call, quantized(call, x, scale, zero, dtype));
}

static tn_status dequantize(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "x"), *scale = rule_tensor(call, "x_scale");
    tn_tensor *zero = rule_optional(call, "x_zero_point");
    int64_t axis = rule_int(call, "axis"), block = rule_int(call, "block_size");
    tn_dtype dtype = rule_int(call, "output_dtype") != 0 ? onnx_rule_dtype(call, "output_dtype")
                                                         : TN_DTYPE_AUTO;

    if (call->status != TN_OK)
        return call->status;
    scale = beside(call, x, scale, axis, block);
    if (zero != TN_NONE)
        zero = beside(call, x, zero, axis, block);
    x = real(x, scale, zero);
    return rule_give(call, dtype != TN_DTYPE_AUTO && x != NULL ? tn_cast(x, dtype) : x);
}

static tn_status dynamic(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "x"), *zero, *low, *high, *scale, *point;

    if (call->status != TN_OK)
        return call->status;
    zero = onnx_number(0, x);
    low = tn_minimum(tn_amin(x), zero);
    high = tn_maximum(tn_amax(x), zero);
    scale = tn_div(tn_sub(high, low), onnx_number(255, x));
    scale = tn_where(tn_eq(high, low), onnx_number(1, x), scale); /* all are zeros */
    point = tn_round(
        tn_clamp(tn_div(tn_neg(low), scale), tn_scalar_float(0.0), tn_scalar_float(255.0)));
    rule_give(call, quantized(call, x, scale, point, TN_U8));
    rule_give(call, scale);
    return rule_give(call, tn_cast(point, TN_U8));
}

/* ---- products -------------------------------------------------------------------------------- */

/* Integers less their zero point, as float64, in which their products are exact. A list of zero
 * points is for the rows (dim -2) or the columns (dim -1). */
static tn_tensor *shifted(tn_rule_call *call, const char *name, const char *zero_name, int64_t dim)
{
    tn_tensor *x = rule_tensor(call, name), *zero = rule_optional(call, zero_name);

    if (call->status != TN_OK)
        return NULL;
    x = tn_cast(x, TN_F64);
    if (zero == TN_NONE)
        return x;
    zero = tn_cast(zero, TN_F64);
    if (zero != NULL && tn_tensor_numel(zero) == 1)
        zero = tn_reshape(zero, TN_SCALAR_SHAPE);
    else if (zero != NULL && tn_tensor_ndim(zero) == 1 && dim == -2)
        zero = tn_unsqueeze(zero, 1);
    else if (zero != NULL && dim == 0)
        zero = beside(call, x, zero, 0, 0);
    return tn_sub(x, zero);
}

static tn_status matmul_integer(tn_rule_call *call)
{
    tn_tensor *a = shifted(call, "A", "a_zero_point", -2);
    tn_tensor *b = shifted(call, "B", "b_zero_point", -1);

    return rule_give(call, tn_cast(tn_matmul(a, b), TN_I32));
}

static tn_tensor *scale_of(tn_rule_call *call, const char *name)
{
    tn_tensor *scale = rule_tensor(call, name);

    return scale != NULL && tn_tensor_numel(scale) == 1 ? tn_reshape(scale, TN_SCALAR_SHAPE)
                                                        : scale;
}

static tn_status qlinear_matmul(tn_rule_call *call)
{
    tn_tensor *a = shifted(call, "a", "a_zero_point", -2);
    tn_tensor *b = shifted(call, "b", "b_zero_point", -1);
    tn_tensor *a_scale = scale_of(call, "a_scale"), *b_scale = scale_of(call, "b_scale");
    tn_tensor *y_scale = scale_of(call, "y_scale"), *zero = rule_tensor(call, "y_zero_point");
    tn_tensor *scale;

    if (call->status != TN_OK)
        return call->status;
    if (tn_tensor_ndim(a_scale) == 1)
        a_scale = tn_unsqueeze(a_scale, 1);
    scale = tn_div(tn_mul(tn_cast(a_scale, TN_F64), tn_cast(b_scale, TN_F64)),
                   tn_cast(y_scale, TN_F64));
    if (tn_tensor_numel(zero) == 1)
        zero = tn_reshape(zero, TN_SCALAR_SHAPE);
    return rule_give(call, quantized(call, tn_mul(tn_matmul(a, b), scale), onnx_number(1, a), zero,
                                     tn_tensor_dtype(zero)));
}

/* The convolution of integers, in float64, by the rule of Conv. */
static tn_tensor *convolved(tn_rule_call *call, const char *x, const char *x_zero, const char *w,
                            const char *w_zero)
{
    static const char *const names[] = { "X",         "W",    "B",       "auto_pad",
                                         "dilations", "pads", "strides", "kernel_shape",
                                         "group" };
    tn_value values[9];
    tn_rule_call inner = {
        .name = "Conv", .names = names, .values = values, .count = 9, .host = true
    };
    tn_tensor *in = shifted(call, x, x_zero, 1), *weight = shifted(call, w, w_zero, 0);
    tn_tensor *y = NULL;

    if (in == NULL || weight == NULL || call->status != TN_OK)
        return NULL;
    values[0] = tn_value_tensor(in);
    values[1] = tn_value_tensor(weight);
    values[2] = tn_value_none();
    for (int i = 3; i < 9; i++)
        values[i] = *rule_value(call, names[i]);
    call->status = onnx_conv(&inner);
    if (call->status == TN_OK)
        y = inner.results[0].as.tensor;
    rules_call_end(&inner);
    return y;
}

static tn_status conv_integer(tn_rule_call *call)
{
    tn_tensor *y = convolved(call, "x", "x_zero_point", "w", "w_zero_point");

    return rule_give(call, y != NULL ? tn_cast(y, TN_I32) : NULL);
}

static tn_status qlinear_conv(tn_rule_call *call)
{
    tn_tensor *y = convolved(call, "x", "x_zero_point", "w", "w_zero_point"), *bias, *w_scale;
    tn_tensor *zero = rule_tensor(call, "y_zero_point"), *scale;
    int64_t shape[TN_MAX_DIMS];

    if (y == NULL || call->status != TN_OK)
        return rule_give(call, NULL);
    for (int64_t i = 0; i < tn_tensor_ndim(y); i++)
        shape[i] = i == 1 ? -1 : 1;
    bias = rule_optional(call, "B");
    if (bias != TN_NONE)
        y = tn_add(y, tn_reshape(tn_cast(bias, TN_F64), (tn_ints){ shape, tn_tensor_ndim(y) }));
    w_scale = tn_cast(scale_of(call, "w_scale"), TN_F64);
    if (w_scale != NULL && tn_tensor_ndim(w_scale) == 1 && y != NULL)
        w_scale = tn_reshape(w_scale, (tn_ints){ shape, tn_tensor_ndim(y) });
    scale = tn_div(tn_mul(tn_cast(scale_of(call, "x_scale"), TN_F64), w_scale),
                   tn_cast(scale_of(call, "y_scale"), TN_F64));
    return rule_give(call, quantized(call, tn_mul(y, scale), y != NULL ? onnx_number(1, y) : NULL,
                                     tn_reshape(zero, TN_SCALAR_SHAPE), tn_tensor_dtype(zero)));
}

#define CONV                                                                                       \
    "auto_pad='NOTSET', dilations=None, pads=None, strides=None, kernel_shape=None, group=1)"

const tn_rule_def onnx_rules_quantized[] = {
    { "QuantizeLinear(x, y_scale, y_zero_point=None, axis=1, block_size=0, output_dtype=0, "
      "saturate=*, precision=*)",
      .call = quantize },
    { "DequantizeLinear(x, x_scale, x_zero_point=None, axis=1, block_size=0, output_dtype=0)",
      .call = dequantize },
    { "DynamicQuantizeLinear(x)", .call = dynamic },
    { "MatMulInteger(A, B, a_zero_point=None, b_zero_point=None)", .call = matmul_integer },
    { "QLinearMatMul(a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point)",
      .call = qlinear_matmul },
    { "ConvInteger(x, w, x_zero_point=None, w_zero_point=None, " CONV, .call = conv_integer },
    { "QLinearConv(x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, "
      "B=None, " CONV,
      .call = qlinear_conv },
    { .function = NULL },
};
