/* SPDX-License-Identifier: MIT
 *
 * Operators of each element as nodes of ONNX (onnx.h). */
#include "export/onnx.h"

#include <math.h>
#include <string.h>

typedef const struct onnx_value value;

static bool is_float(tn_dtype dtype)
{
    return (TN_BIT(dtype) & TN_MASK_FLOAT) != 0;
}

static bool not_complex(const tn_node *node)
{
    tn_meta meta;

    return tn_node_meta(tn_node_input(node, 0), &meta) == TN_OK &&
           (TN_BIT(meta.dtype) & TN_MASK_COMPLEX) == 0;
}

/* ---- activations ----------------------------------------------------------------------------- */

static void gelu(struct onnx_call *call)
{
    const tn_gelu_options *o = call->options;
    tn_dtype dtype = call->meta.dtype;
    value *x = onnx_make_in(call, "x"), *inner, *half = onnx_make_number(call, 0.5, dtype);

    if (call->model->opset >= 20) {
        onnx_make_begin(call, "Gelu", 1);
        onnx_make_add(call, x);
        onnx_make_word(call, "approximate", o->approximate);
        onnx_make_give(call, 0, onnx_make_end(call));
        return;
    }
    if (strcmp(o->approximate, "tanh") == 0) {
        inner = onnx_make_2(call, "Mul", onnx_make_2(call, "Mul", x, x), x);
        inner = onnx_make_2(call, "Mul", inner, onnx_make_number(call, 0.044715, dtype));
        inner = onnx_make_2(call, "Add", x, inner);
        inner = onnx_make_2(call, "Mul", inner,
                            onnx_make_number(call, 0.79788456080286535588, dtype));
        inner = onnx_make_1(call, "Tanh", inner);
    } else {
        inner = onnx_make_2(call, "Mul", x, onnx_make_number(call, 0.70710678118654752440, dtype));
        inner = onnx_make_1(call, "Erf", inner);
    }
    inner = onnx_make_2(call, "Add", inner, onnx_make_number(call, 1, dtype));
    x = onnx_make_2(call, "Mul", x, half);
    onnx_make_give(call, 0, onnx_make_2(call, "Mul", x, inner));
}

static void softplus(struct onnx_call *call)
{
    const tn_softplus_options *o = call->options;
    value *x = onnx_make_in(call, "x"), *beta = NULL;

    if (o->beta != 1) {
        beta = onnx_make_number(call, o->beta, call->meta.dtype);
        x = onnx_make_2(call, "Mul", x, beta);
    }
    x = onnx_make_1(call, "Softplus", x);
    onnx_make_give(call, 0, beta != NULL ? onnx_make_2(call, "Div", x, beta) : x);
}

/* The slopes as a tensor that broadcasts to x. */
static void prelu(struct onnx_call *call)
{
    tn_meta x = onnx_make_meta(call, "x"), weight = onnx_make_meta(call, "weight");
    int64_t shape[TN_MAX_DIMS], count = x.ndim > 2 ? x.ndim - 1 : 1;
    value *slope = onnx_make_in(call, "weight");

    for (int64_t i = 0; i < count; i++)
        shape[i] = 1;
    shape[0] = weight.ndim > 0 ? weight.shape[0] : 1;
    if (shape[0] == 1)
        count = 1;
    if (count != 1 || weight.ndim == 0)
        slope = onnx_make_2(call, "Reshape", slope, onnx_make_list(call, shape, count));
    onnx_make_give(call, 0, onnx_make_2(call, "PRelu", onnx_make_in(call, "x"), slope));
}

static void glu(struct onnx_call *call)
{
    const tn_glu_options *o = call->options;
    value *x = onnx_make_in(call, "x"), *a, *b;

    a = onnx_make_split(call, x, o->dim, 2);
    b = onnx_make_output(call, 1);
    onnx_make_give(call, 0, onnx_make_2(call, "Mul", a, onnx_make_1(call, "Sigmoid", b)));
}

static void clamp(struct onnx_call *call)
{
    const tn_clamp_options *o = call->options;
    value *x = onnx_make_in(call, "x"), *low = NULL, *high = NULL;

    if (o->min.kind != TN_SCALAR_NONE)
        low = onnx_make_scalar(call, o->min, call->meta.dtype);
    if (o->max.kind != TN_SCALAR_NONE)
        high = onnx_make_scalar(call, o->max, call->meta.dtype);
    onnx_make_give(call, 0, onnx_make_node(call, "Clip", x, low, high));
}

static void clamp_tensor(struct onnx_call *call)
{
    value *x = onnx_make_in(call, "x"), *low = onnx_make_in(call, "min");
    value *high = onnx_make_in(call, "max");

    if (low != NULL)
        x = onnx_make_2(call, "Max", x, low);
    onnx_make_give(call, 0, high != NULL ? onnx_make_2(call, "Min", x, high) : x);
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static bool is_one(tn_scalar scalar)
{
    return scalar.kind == TN_SCALAR_FLOAT ? scalar.as.f == 1 : scalar.as.i == 1;
}

static void with_alpha(struct onnx_call *call, const char *op, tn_scalar alpha)
{
    value *a = onnx_make_in(call, "a"), *b = onnx_make_in(call, "b");

    if (!is_one(alpha))
        b = onnx_make_2(call, "Mul", b, onnx_make_scalar(call, alpha, call->compute));
    onnx_make_give(call, 0, onnx_make_2(call, op, a, b));
}

static void add(struct onnx_call *call)
{
    with_alpha(call, call->meta.dtype == TN_BOOL ? "Or" : "Add",
               ((const tn_add_options *)call->options)->alpha);
}

static void sub(struct onnx_call *call)
{
    with_alpha(call, "Sub", ((const tn_sub_options *)call->options)->alpha);
}

static void mul(struct onnx_call *call)
{
    const char *op = call->meta.dtype == TN_BOOL ? "And" : "Mul";

    onnx_make_give(call, 0,
                   onnx_make_2(call, op, onnx_make_in(call, "a"), onnx_make_in(call, "b")));
}

static value *truncated(struct onnx_call *call, value *x)
{
    return onnx_make_2(call, "Mul", onnx_make_1(call, "Sign", x),
                       onnx_make_1(call, "Floor", onnx_make_1(call, "Abs", x)));
}

static void divide(struct onnx_call *call)
{
    const tn_div_options *o = call->options;
    value *a = onnx_make_in(call, "a"), *b = onnx_make_in(call, "b"), *y, *rest;

    if (o->rounding_mode == NULL || !is_float(call->meta.dtype)) {
        y = onnx_make_2(call, "Div", a, b); /* integers: towards zero */
        if (o->rounding_mode != NULL && strcmp(o->rounding_mode, "floor") == 0) {
            rest = onnx_make_2(call, "Mod", a, b);
            y = onnx_make_2(call, "Div", onnx_make_2(call, "Sub", a, rest), b);
        }
    } else {
        y = onnx_make_2(call, "Div", a, b);
        y = strcmp(o->rounding_mode, "floor") == 0 ? onnx_make_1(call, "Floor", y)
                                                   : truncated(call, y);
    }
    onnx_make_give(call, 0, y);
}

static void trunc_of(struct onnx_call *call)
{
    onnx_make_give(call, 0, truncated(call, onnx_make_in(call, "x")));
}

static void frac(struct onnx_call *call)
{
    value *x = onnx_make_in(call, "x");

    onnx_make_give(call, 0, onnx_make_2(call, "Sub", x, truncated(call, x)));
}

/* The rest has the sign of b (remainder), or of a (fmod). */
static void rest_of(struct onnx_call *call, bool sign_of_a)
{
    value *a = onnx_make_in(call, "a"), *b = onnx_make_in(call, "b"), *y;

    if (!sign_of_a && is_float(call->meta.dtype)) {
        y = onnx_make_1(call, "Floor", onnx_make_2(call, "Div", a, b));
        onnx_make_give(call, 0, onnx_make_2(call, "Sub", a, onnx_make_2(call, "Mul", y, b)));
        return;
    }
    onnx_make_begin(call, "Mod", 1);
    onnx_make_add(call, a);
    onnx_make_add(call, b);
    onnx_make_int(call, "fmod", sign_of_a);
    onnx_make_give(call, 0, onnx_make_end(call));
}

static void remainder_of(struct onnx_call *call)
{
    rest_of(call, false);
}

static void fmod_of(struct onnx_call *call)
{
    rest_of(call, true);
}

/* ---- logic ----------------------------------------------------------------------------------- */

static value *as_bool(struct onnx_call *call, const char *name)
{
    tn_meta meta = onnx_make_meta(call, name);
    value *x = onnx_make_of(call->model, onnx_make_source(call, name));

    return meta.dtype == TN_BOOL ? x : onnx_make_cast(call, x, TN_BOOL);
}

static void logical(struct onnx_call *call)
{
    static const char *const names[][2] = { { "logical_and", "And" },
                                            { "logical_or", "Or" },
                                            { "logical_xor", "Xor" } };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(call->def->name, names[i][0]) == 0)
            onnx_make_give(call, 0,
                           onnx_make_2(call, names[i][1], as_bool(call, "a"), as_bool(call, "b")));
}

static void logical_not(struct onnx_call *call)
{
    onnx_make_give(call, 0, onnx_make_1(call, "Not", as_bool(call, "x")));
}

/* On booleans as logic; on integers the operators of version 18. */
static void bitwise(struct onnx_call *call)
{
    static const char *const names[][3] = { { "bitwise_and", "And", "BitwiseAnd" },
                                            { "bitwise_or", "Or", "BitwiseOr" },
                                            { "bitwise_xor", "Xor", "BitwiseXor" },
                                            { "bitwise_not", "Not", "BitwiseNot" } };
    bool boolean = call->meta.dtype == TN_BOOL;

    if (!boolean)
        onnx_make_opset(call, 18);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(call->def->name, names[i][0]) == 0)
            onnx_make_give(
                call, 0,
                i == 3 ? onnx_make_1(call, names[i][boolean ? 1 : 2], onnx_make_in(call, "x"))
                       : onnx_make_2(call, names[i][boolean ? 1 : 2], onnx_make_in(call, "a"),
                                     onnx_make_in(call, "b")));
}

static void cast(struct onnx_call *call)
{
    tn_meta from = onnx_make_meta(call, "x");
    value *x = onnx_make_input(call, 0);

    onnx_make_give(call, 0,
                   from.dtype == call->meta.dtype ? x : onnx_make_cast(call, x, call->meta.dtype));
}

static void same(struct onnx_call *call)
{
    onnx_make_give(call, 0, onnx_make_input(call, 0));
}

static bool does_nothing(const tn_node *node)
{
    const bool *training = export_option(node, "training");
    const double *p = export_option(node, "p");

    return (training != NULL && !*training) || (p != NULL && *p == 0);
}

const struct onnx_rule onnx_write_elements[] = {
    { "relu", .text = "Relu(x)" },
    { "sigmoid", .text = "Sigmoid(x)" },
    { "relu6", .text = "Clip(x, 0, 6)" },
    { "relu_squared", .text = "Mul(Relu(x), Relu(x))" },
    { "leaky_relu", .text = "LeakyRelu(x, alpha=negative_slope)" },
    { "prelu", .call = prelu },
    { "elu", .text = "Elu(x, alpha=alpha)" },
    { "selu", .text = "Selu(x)" },
    { "celu", .text = "Celu(x, alpha=alpha)" },
    { "gelu", .call = gelu },
    { "silu", .text = "Mul(x, Sigmoid(x))" },
    { "mish", .text = "Mul(x, Tanh(Softplus(x)))" },
    { "hardtanh", .text = "Clip(x, min_val, max_val)" },
    { "hardswish", .text = "HardSwish(x)" },
    { "hardsigmoid", .text = "HardSigmoid(x, alpha=0.16666666666666666, beta=0.5)" },
    { "logsigmoid", .text = "Neg(Softplus(Neg(x)))" },
    { "tanhshrink", .text = "Sub(x, Tanh(x))" },
    { "softshrink", .text = "Shrink(x, bias=lambd, lambd=lambd)" },
    { "hardshrink", .text = "Shrink(x, bias=0.0, lambd=lambd)" },
    { "softplus", .call = softplus },
    { "softsign", .text = "Softsign(x)" },
    { "threshold", .text = "Where(Greater(x, threshold), x, value)" },
    { "glu", .call = glu },
    { "add", .call = add },
    { "sub", .call = sub },
    { "mul", .call = mul },
    { "div", .call = divide },
    { "maximum", .text = "Max(a, b)" },
    { "minimum", .text = "Min(a, b)" },
    { "remainder", .call = remainder_of },
    { "fmod", .call = fmod_of },
    { "pow", .text = "Pow(a, b)" },
    { "add_scalar", .text = "Add(x, value)" },
    { "mul_scalar", .text = "Mul(x, value)" },
    { "pow_scalar", .text = "Pow(x, exponent)" },
    { "neg", .text = "Neg(x)" },
    { "clamp", .call = clamp },
    { "clamp_tensor", .call = clamp_tensor },
    { "lerp", .text = "Add(a, Mul(weight, Sub(b, a)))" },
    { "lerp_scalar", .text = "Add(a, Mul(weight, Sub(b, a)))" },
    { "addcmul", .text = "Add(x, Mul(Mul(a, b), value))" },
    { "addcdiv", .text = "Add(x, Mul(Div(a, b), value))" },
    { "eq", .text = "Equal(a, b)" },
    { "ne", .text = "Not(Equal(a, b))" },
    { "lt", .text = "Less(a, b)" },
    { "le", .text = "LessOrEqual(a, b)" },
    { "gt", .text = "Greater(a, b)" },
    { "ge", .text = "GreaterOrEqual(a, b)" },
    { "bitwise_and", .call = bitwise },
    { "bitwise_or", .call = bitwise },
    { "bitwise_xor", .call = bitwise },
    { "bitwise_not", .call = bitwise },
    { "logical_and", .call = logical },
    { "logical_or", .call = logical },
    { "logical_xor", .call = logical },
    { "logical_not", .call = logical_not },
    { "where", .text = "Where(condition, a, b)" },
    { "masked_fill", .text = "Where(mask, value, x)" },
    { "masked_fill_tensor", .text = "Where(mask, value, x)" },
    { "isnan", .text = "IsNaN(x)" },
    { "isinf", .text = "IsInf(x)" },
    { "isfinite", .text = "Not(Or(IsNaN(x), IsInf(x)))" },
    { "cast", .call = cast },
    { "copy", .call = same },
    { "clone", .call = same },
    { "dropout", .call = same, .fits = does_nothing },
    { "feature_dropout", .call = same, .fits = does_nothing },
    { "alpha_dropout", .call = same, .fits = does_nothing },
    { "feature_alpha_dropout", .call = same, .fits = does_nothing },
    { "exp", .text = "Exp(x)" },
    { "log", .text = "Log(x)" },
    { "sqrt", .text = "Sqrt(x)" },
    { "abs", .text = "Abs(x)", .fits = not_complex },
    { "sign", .text = "Sign(x)" },
    { "floor", .text = "Floor(x)" },
    { "ceil", .text = "Ceil(x)" },
    { "trunc", .call = trunc_of },
    { "round", .text = "Round(x)" },
    { "frac", .call = frac },
    { "square", .text = "Mul(x, x)" },
    { "reciprocal", .text = "Reciprocal(x)" },
    { "rsqrt", .text = "Reciprocal(Sqrt(x))" },
    { "expm1", .text = "Sub(Exp(x), 1)" },
    { "log1p", .text = "Log(Add(x, 1))" },
    { "log2", .text = "Mul(Log(x), 1.4426950408889634)" },
    { "log10", .text = "Mul(Log(x), 0.4342944819032518)" },
    { "sin", .text = "Sin(x)" },
    { "cos", .text = "Cos(x)" },
    { "tan", .text = "Tan(x)" },
    { "asin", .text = "Asin(x)" },
    { "acos", .text = "Acos(x)" },
    { "atan", .text = "Atan(x)" },
    { "sinh", .text = "Sinh(x)" },
    { "cosh", .text = "Cosh(x)" },
    { "tanh", .text = "Tanh(x)" },
    { "asinh", .text = "Asinh(x)" },
    { "acosh", .text = "Acosh(x)" },
    { "atanh", .text = "Atanh(x)" },
    { "erf", .text = "Erf(x)" },
    { "erfc", .text = "Sub(1, Erf(x))" },
    { "exp2", .text = "Pow(2, x)" },
    { .op = NULL },
};
