/* SPDX-License-Identifier: MIT
 *
 * Rules for functions of each element of a tensor. */
#include "onnx/onnx_rules.h"

#include <math.h>

/* max(0, min(1, alpha x + beta)) */
static tn_status hard_sigmoid(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X");
    double alpha = rule_float(call, "alpha"), beta = rule_float(call, "beta");

    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, tn_clamp(tn_add_scalar(tn_mul_scalar(x, tn_scalar_float(alpha)),
                                                  tn_scalar_float(beta)),
                                    tn_scalar_float(0.0), tn_scalar_float(1.0)));
}

static tn_status selu(tn_rule_call *call)
{
    double alpha = rule_float(call, "alpha"), gamma = rule_float(call, "gamma");

    return rule_give(call,
                     tn_mul_scalar(tn_elu(rule_tensor(call, "X"), alpha), tn_scalar_float(gamma)));
}

/* x + bias where x < -lambd, x - bias where x > lambd, else 0 */
static tn_status shrink(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *zero, *y;
    double lambd = rule_float(call, "lambd"), bias = rule_float(call, "bias");
    tn_dtype dtype;

    if (call->status != TN_OK)
        return call->status;
    dtype = tn_tensor_dtype(x);
    zero = tn_mul_scalar(x, tn_scalar_int(0));
    y = tn_where(tn_gt(x, onnx_number(lambd, x)), tn_add_scalar(x, tn_scalar_float(-bias)), zero);
    y = tn_where(tn_lt(x, onnx_number(-lambd, x)), tn_add_scalar(x, tn_scalar_float(bias)), y);
    return rule_give(call, rule_cast(y, dtype));
}

static tn_status is_inf(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X");
    bool negative = rule_bool(call, "detect_negative"),
         positive = rule_bool(call, "detect_positive");

    if (call->status != TN_OK)
        return call->status;
    if (negative && positive)
        return rule_give(call, tn_isinf(x));
    if (!negative && !positive)
        return rule_give(call, tn_full(x, tn_tensor_shape(x), tn_scalar_bool(false), TN_BOOL));
    return rule_give(call, tn_eq(x, onnx_number(positive ? INFINITY : -INFINITY, x)));
}

static tn_status prelu_of(tn_rule_call *call, bool channels)
{
    tn_tensor *x = rule_tensor(call, "X"), *slope = rule_tensor(call, "slope");
    tn_tensor *zero;
    int64_t shape[TN_MAX_DIMS] = { 0 }, n;

    if (call->status != TN_OK)
        return call->status;
    n = tn_tensor_ndim(x);
    if (tn_tensor_ndim(slope) == 1 && n > 1 && tn_tensor_size(slope, 0) == tn_tensor_size(x, 1) &&
        (channels || tn_tensor_size(slope, 0) != tn_tensor_size(x, n - 1))) {
        for (int64_t i = 0; i < n; i++)
            shape[i] = 1;
        shape[1] = tn_tensor_size(x, 1);
        slope = tn_reshape(slope, (tn_ints){ shape, n });
    }
    zero = onnx_number(0, x);
    return rule_give(call, tn_where(tn_lt(x, zero), tn_mul(x, slope), x));
}

static tn_status prelu(tn_rule_call *call)
{
    return prelu_of(call, false);
}

/* Before version 7 a list of slopes is for the channels. */
static tn_status prelu_channels(tn_rule_call *call)
{
    return prelu_of(call, true);
}

static tn_status thresholded(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X");
    double alpha = rule_float(call, "alpha");

    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, tn_threshold(x, tn_scalar_float(alpha), tn_scalar_float(0.0)));
}

/* The bounds are tensors without dimensions, or attributes in old files. */
static tn_status clip(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input"), *bound;
    static const char *const names[] = { "min", "max" };
    tn_dtype dtype;

    if (call->status != TN_OK)
        return call->status;
    dtype = tn_tensor_dtype(x);
    for (int i = 0; i < 2; i++) {
        if (!rule_has(call, names[i]))
            continue;
        if (rule_value(call, names[i])->kind == TN_VALUE_FLOAT)
            bound = onnx_number(rule_float(call, names[i]), x);
        else
            bound = rule_cast(rule_tensor(call, names[i]), dtype);
        if (call->status != TN_OK || bound == NULL)
            return rule_give(call, NULL);
        x = i == 0 ? tn_maximum(x, bound) : tn_minimum(x, bound);
    }
    return rule_give(call, x);
}

static tn_status swish(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X");
    double alpha = rule_float(call, "alpha");

    if (call->status != TN_OK)
        return call->status;
    if (alpha == 1.0)
        return rule_give(call, tn_silu(x));
    return rule_give(call, tn_mul(x, tn_sigmoid(tn_mul_scalar(x, tn_scalar_float(alpha)))));
}

static tn_status softmax_of(tn_rule_call *call, bool logarithm, bool flat)
{
    tn_tensor *x = rule_tensor(call, "input"), *y;
    int64_t dim = rule_dim(call, "axis", x), rows = 1, columns = 1;
    tn_ints shape;

    if (call->status != TN_OK)
        return call->status;
    if (!flat)
        return rule_give(call, logarithm ? tn_log_softmax(x, dim) : tn_softmax(x, dim));
    /* Before version 13 the dimensions from the axis on are one. */
    shape = tn_tensor_shape(x);
    for (int64_t i = 0; i < shape.count; i++)
        *(i < dim ? &rows : &columns) *= shape.at[i];
    y = tn_reshape(x, TN_SHAPE(rows, columns));
    y = logarithm ? tn_log_softmax(y, 1) : tn_softmax(y, 1);
    return rule_give(call, tn_reshape(y, shape));
}

static tn_status softmax(tn_rule_call *call)
{
    return softmax_of(call, false, false);
}

static tn_status softmax_flat(tn_rule_call *call)
{
    return softmax_of(call, false, true);
}

static tn_status log_softmax(tn_rule_call *call)
{
    return softmax_of(call, true, false);
}

static tn_status log_softmax_flat(tn_rule_call *call)
{
    return softmax_of(call, true, true);
}

/* 1 at the first largest element, else 0. */
static tn_tensor *hardmax_along(tn_tensor *x, int64_t dim)
{
    tn_tensor *index = tn_argmax(x, dim, true);
    tn_dtype dtype = tn_tensor_dtype(x);

    if (index == NULL)
        return NULL;
    return tn_scatter(tn_full(x, tn_tensor_shape(x), tn_scalar_int(0), dtype), index,
                      tn_full(x, tn_tensor_shape(index), tn_scalar_int(1), dtype), dim);
}

static tn_status hardmax(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input");
    int64_t dim = rule_dim(call, "axis", x);

    return call->status == TN_OK ? rule_give(call, hardmax_along(x, dim)) : call->status;
}

/* Before version 13 the dimensions from the axis on are one. */
static tn_status hardmax_flat(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input"), *y;
    int64_t dim = rule_dim(call, "axis", x), rows = 1, columns = 1;
    tn_ints shape;

    if (call->status != TN_OK)
        return call->status;
    shape = tn_tensor_shape(x);
    for (int64_t i = 0; i < shape.count; i++)
        *(i < dim ? &rows : &columns) *= shape.at[i];
    y = tn_reshape(x, TN_SHAPE(rows, columns));
    return rule_give(call, y != NULL ? tn_reshape(hardmax_along(y, 1), shape) : NULL);
}

static tn_status bit_shift(tn_rule_call *call)
{
    bool left = onnx_is(call, "direction", "LEFT");

    return rule_give(call, onnx_binary(call, left ? "bitwise_left_shift" : "bitwise_right_shift",
                                       rule_tensor(call, "X"), rule_tensor(call, "Y")));
}

static tn_status bitwise_not(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X");

    if (!onnx_is_unsigned(x))
        return rule_give(call, tn_bitwise_not(x));
    return rule_give(call, tn_cast(tn_bitwise_not(tn_cast(x, TN_I64)), tn_tensor_dtype(x)));
}

const tn_rule_def onnx_rules_elements[] = {
    { "Abs(X)", .text = "abs(X)" },
    { "Acos(X)", .text = "acos(X)" },
    { "Acosh(X)", .text = "acosh(X)" },
    { "Asin(X)", .text = "asin(X)" },
    { "Asinh(X)", .text = "asinh(X)" },
    { "Atan(X)", .text = "atan(X)" },
    { "Atanh(X)", .text = "atanh(X)" },
    { "BitwiseNot(X)", .call = bitwise_not },
    { "Ceil(X)", .text = "ceil(X)" },
    { "Celu(X, alpha=1.0)", .text = "celu(X, alpha=alpha)" },
    { "Clip(input, min=None, max=None)", .call = clip },
    { "Cos(X)", .text = "cos(X)" },
    { "Cosh(X)", .text = "cosh(X)" },
    { "Elu(X, alpha=1.0)", .text = "elu(X, alpha=alpha)" },
    { "Erf(X)", .text = "erf(X)" },
    { "Exp(X)", .text = "exp(X)" },
    { "Floor(X)", .text = "floor(X)" },
    { "Gelu(X, approximate='none')", .text = "gelu(X, approximate=approximate)" },
    { "HardSigmoid(X, alpha=0.2, beta=0.5)", .call = hard_sigmoid },
    { "HardSwish(X)", .text = "hardswish(X)" },
    { "IsInf(X, detect_negative=1, detect_positive=1)", .call = is_inf },
    { "IsNaN(X)", .text = "isnan(X)" },
    { "LeakyRelu(X, alpha=0.01)", .text = "leaky_relu(X, negative_slope=alpha)" },
    { "Log(X)", .text = "log(X)" },
    { "Mish(X)", .text = "mish(X)" },
    { "Neg(X)", .text = "neg(X)" },
    { "Not(X)", .text = "logical_not(X)" },
    { "PRelu(X, slope)", .call = prelu_channels, .since = 1 },
    { "PRelu(X, slope)", .call = prelu, .since = 7 },
    { "Reciprocal(X)", .text = "reciprocal(X)" },
    { "Relu(X)", .text = "relu(X)" },
    { "Round(X)", .text = "round(X)" },
    { "Selu(X, alpha=1.6732, gamma=1.0507)", .call = selu, .since = 1 },
    { "Selu(X, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875)", .call = selu,
      .since = 6 },
    { "Shrink(X, lambd=0.5, bias=0.0)", .call = shrink },
    { "Sigmoid(X)", .text = "sigmoid(X)" },
    { "Sign(X)", .text = "sign(X)" },
    { "Sin(X)", .text = "sin(X)" },
    { "Sinh(X)", .text = "sinh(X)" },
    { "Softplus(X)", .text = "softplus(X)" },
    { "Softsign(X)", .text = "softsign(X)" },
    { "Sqrt(X)", .text = "sqrt(X)" },
    { "Swish(X, alpha=1.0)", .call = swish },
    { "Tan(X)", .text = "tan(X)" },
    { "Tanh(X)", .text = "tanh(X)" },
    { "ThresholdedRelu(X, alpha=1.0)", .call = thresholded },
    { "Softmax(input, axis=1)", .call = softmax_flat, .since = 1 },
    { "Softmax(input, axis=-1)", .call = softmax, .since = 13 },
    { "LogSoftmax(input, axis=1)", .call = log_softmax_flat, .since = 1 },
    { "LogSoftmax(input, axis=-1)", .call = log_softmax, .since = 13 },
    { "Hardmax(input, axis=1)", .call = hardmax_flat, .since = 1 },
    { "Hardmax(input, axis=-1)", .call = hardmax, .since = 13 },
    { "BitShift(X, Y, direction)", .call = bit_shift },
    { .function = NULL },
};
