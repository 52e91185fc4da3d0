/* SPDX-License-Identifier: MIT
 *
 * Rules for elementwise functions that need code: sums and differences with a factor, numbers that
 * are no operand of an operator, functions that are composed. */
#include "rules.h"

#include <math.h>

/* A tensor without dimensions on the device of `like`. */
static tn_tensor *number(tn_tensor *like, double value, tn_dtype dtype)
{
    return tn_full(like, TN_SCALAR_SHAPE, tn_scalar_float(value), dtype);
}

/* ---- self + alpha * other -------------------------------------------------------------------- */

static bool real_number(tn_scalar number, double *out)
{
    *out = number.kind == TN_SCALAR_FLOAT ? number.as.f : (double)number.as.i;
    return number.kind == TN_SCALAR_FLOAT || number.kind == TN_SCALAR_INT;
}

/* a * b in the kind that Python gives the product; false: not a number that add_scalar takes. */
static bool product(tn_scalar a, tn_scalar b, tn_scalar *out)
{
    double x, y;

    if (!real_number(a, &x) || !real_number(b, &y))
        return false;
    *out = a.kind == TN_SCALAR_INT && b.kind == TN_SCALAR_INT
               ? tn_scalar_int((int64_t)((uint64_t)a.as.i * (uint64_t)b.as.i))
               : tn_scalar_float(x * y);
    return true;
}

static tn_scalar negative(tn_scalar a)
{
    if (a.kind == TN_SCALAR_INT || a.kind == TN_SCALAR_BOOL)
        return tn_scalar_int((int64_t)(0 - (uint64_t)a.as.i));
    if (a.kind == TN_SCALAR_FLOAT)
        return tn_scalar_float(-a.as.f);
    a.as.c[0] = -a.as.c[0];
    a.as.c[1] = -a.as.c[1];
    return a;
}

static bool is_one(tn_scalar a)
{
    return (a.kind == TN_SCALAR_INT && a.as.i == 1) || (a.kind == TN_SCALAR_FLOAT && a.as.f == 1);
}

static tn_tensor *add_number(tn_rule_call *call, tn_tensor *self, tn_scalar value)
{
    return call->into != NULL ? tn_add_scalar_(self, value) : tn_add_scalar(self, value);
}

/* `self`, or the number in its place: decomposed programs have 1 - x as sub(1, x). */
static tn_tensor *first_operand(tn_rule_call *call)
{
    return rule_operand(call, "self",
                        rule_is_tensor(call, "other") ? rule_tensor(call, "other") : NULL);
}

static tn_status add(tn_rule_call *call)
{
    tn_tensor *self = first_operand(call), *other;
    tn_scalar alpha = rule_scalar(call, "alpha"), value;

    if (!rule_is_tensor(call, "other")) {
        value = rule_scalar(call, "other");
        if (is_one(alpha) || product(value, alpha, &value))
            return rule_give(call, add_number(call, self, value));
    }
    other = rule_operand(call, "other", self);
    return rule_give(call,
                     call->into != NULL ? tn_add_(self, other, alpha) : tn_add(self, other, alpha));
}

static tn_status sub(tn_rule_call *call)
{
    tn_tensor *self = first_operand(call), *other;
    tn_scalar alpha = rule_scalar(call, "alpha"), value;

    if (!rule_is_tensor(call, "other")) {
        value = rule_scalar(call, "other");
        if (value.kind != TN_SCALAR_UINT && (is_one(alpha) || product(value, alpha, &value)))
            return rule_give(call, add_number(call, self, negative(value)));
    }
    other = rule_operand(call, "other", self);
    return rule_give(call,
                     call->into != NULL ? tn_sub_(self, other, alpha) : tn_sub(self, other, alpha));
}

/* other - alpha * self */
static tn_status rsub(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    tn_scalar alpha = rule_scalar(call, "alpha");

    if (rule_is_tensor(call, "other"))
        return rule_give(call, tn_sub(rule_tensor(call, "other"), self, alpha));
    self = is_one(alpha) ? tn_neg(self) : tn_mul_scalar(self, negative(alpha));
    return rule_give(call, tn_add_scalar(self, rule_scalar(call, "other")));
}

/* ---- quotients ------------------------------------------------------------------------------- */

/* The divisor. Integers are divided as floats unless the quotient is rounded: a number need not fit
 * into the dtype of `self`. */
static tn_tensor *divisor(tn_rule_call *call, tn_tensor *self, const char *mode)
{
    const tn_value *other = rule_value(call, "other");

    if (self == NULL || call->status != TN_OK)
        return NULL;
    if (mode != NULL || other->kind != TN_VALUE_INT ||
        (TN_BIT(tn_tensor_dtype(self)) & (TN_MASK_FLOAT | TN_MASK_COMPLEX)) != 0)
        return rule_operand(call, "other", self);
    return number(self, (double)other->as.i, tn_default_dtype());
}

static tn_tensor *quotient(tn_rule_call *call, tn_tensor *self, const char *mode)
{
    tn_tensor *other = divisor(call, self, mode);

    if (other == NULL || call->status != TN_OK)
        return NULL;
    return call->into != NULL ? tn_div_(self, other, mode) : tn_div(self, other, mode);
}

static const char *rounding(tn_rule_call *call)
{
    return rule_has(call, "rounding_mode") ? rule_text(call, "rounding_mode") : NULL;
}

static tn_status divide(tn_rule_call *call)
{
    return rule_give(call, quotient(call, first_operand(call), rounding(call)));
}

static tn_status true_divide(tn_rule_call *call)
{
    return rule_give(call, quotient(call, first_operand(call), NULL));
}

static tn_status div_out(tn_rule_call *call)
{
    tn_tensor *y = quotient(call, rule_tensor(call, "self"), rounding(call));

    return rule_give(call, y != NULL ? tn_copy_(rule_tensor(call, "out"), y) : NULL);
}

/* ---- conditions ------------------------------------------------------------------------------ */

static tn_dtype dtype_of(tn_scalar value)
{
    switch (value.kind) {
    case TN_SCALAR_BOOL: return TN_BOOL;
    case TN_SCALAR_FLOAT: return tn_default_dtype();
    case TN_SCALAR_COMPLEX: return tn_default_dtype() == TN_F64 ? TN_C128 : TN_C64;
    default: return TN_I64;
    }
}

/* A number for integers loses its fraction, as in PyTorch, and must fit. */
static tn_status masked_fill(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *mask = rule_tensor(call, "mask");
    tn_scalar value;

    if (rule_is_tensor(call, "value")) {
        tn_tensor *filling = rule_tensor(call, "value");

        return rule_give(call, call->into != NULL ? tn_masked_fill_tensor_(self, mask, filling)
                                                  : tn_masked_fill_tensor(self, mask, filling));
    }
    value = rule_scalar(call, "value");
    if (call->status != TN_OK)
        return call->status;
    if (value.kind == TN_SCALAR_FLOAT && fabs(value.as.f) < 0x1p63 &&
        (TN_BIT(tn_tensor_dtype(self)) & (TN_MASK_FLOAT | TN_MASK_COMPLEX)) == 0 &&
        tn_tensor_dtype(self) != TN_BOOL)
        value = tn_scalar_int((int64_t)value.as.f);
    return rule_give(call, call->into != NULL ? tn_masked_fill_(self, mask, value)
                                              : tn_masked_fill(self, mask, value));
}

/* Both values are numbers. */
static tn_status where_numbers(tn_rule_call *call)
{
    tn_tensor *condition = rule_tensor(call, "condition");
    tn_scalar a = rule_scalar(call, "self"), b = rule_scalar(call, "other");

    return rule_give(call, tn_where(condition, tn_full(condition, TN_SCALAR_SHAPE, a, dtype_of(a)),
                                    tn_full(condition, TN_SCALAR_SHAPE, b, dtype_of(b))));
}

/* The indices of what is not 0, one tensor for each dimension. */
static tn_status nonzero_list(tn_rule_call *call, tn_tensor *self)
{
    tn_tensor *rows = tn_nonzero(self);
    int64_t n = rows != NULL ? tn_tensor_size(rows, 1) : 0;
    tn_tensor **columns = rule_memory(call, n, sizeof(tn_tensor *));

    if (rows == NULL)
        return rule_give(call, NULL);
    for (int64_t i = 0; i < n && columns != NULL; i++)
        columns[i] = tn_select(rows, 1, i);
    return rule_give_list(call, columns, n);
}

static tn_status where_indices(tn_rule_call *call)
{
    return nonzero_list(call, rule_tensor(call, "condition"));
}

static tn_status nonzero_numpy(tn_rule_call *call)
{
    return nonzero_list(call, rule_tensor(call, "self"));
}

static tn_status is_infinity(tn_rule_call *call, double infinity)
{
    tn_tensor *self = rule_tensor(call, "self");

    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, tn_eq(self, number(self, infinity,
                                              tn_tensor_dtype(self) == TN_F64 ? TN_F64 : TN_F32)));
}

static tn_status isposinf(tn_rule_call *call)
{
    return is_infinity(call, INFINITY);
}

static tn_status isneginf(tn_rule_call *call)
{
    return is_infinity(call, -INFINITY);
}

/* ---- composed functions ---------------------------------------------------------------------- */

static bool is_complex(tn_dtype dtype)
{
    return dtype == TN_C64 || dtype == TN_C128;
}

/* Powers in float64, whatever the inputs are. */
static tn_status float_power(tn_rule_call *call)
{
    bool tensors = rule_is_tensor(call, "self") && rule_is_tensor(call, "exponent");
    tn_tensor *self, *exponent = NULL;
    tn_dtype dtype = TN_F64;

    if (!rule_is_tensor(call, "self")) {
        exponent = rule_tensor(call, "exponent");
        if (call->status != TN_OK)
            return call->status;
        dtype = is_complex(tn_tensor_dtype(exponent)) ? TN_C128 : TN_F64;
        exponent = rule_cast(exponent, dtype);
        return rule_give(call, tn_pow(rule_operand(call, "self", exponent), exponent));
    }
    self = rule_tensor(call, "self");
    if (tensors)
        exponent = rule_tensor(call, "exponent");
    if (call->status != TN_OK)
        return call->status;
    if (is_complex(tn_tensor_dtype(self)) || (tensors && is_complex(tn_tensor_dtype(exponent))))
        dtype = TN_C128;
    self = rule_cast(self, dtype);
    return rule_give(call,
                     tensors ? tn_pow(self, rule_cast(exponent, dtype))
                             : tn_pow_scalar(self, tn_scalar_float(rule_float(call, "exponent"))));
}

static tn_status round_decimals(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self"), *factor, *y;
    int64_t decimals = rule_int(call, "decimals");

    if (call->status != TN_OK)
        return call->status;
    if (decimals == 0)
        return rule_give(call, tn_round(self));
    /* A division by ten is exact where a product with 0.1 is not. */
    factor = number(self, pow(10, fabs((double)decimals)), tn_tensor_dtype(self));
    y = tn_round(decimals > 0 ? tn_mul(self, factor) : tn_div(self, factor));
    return rule_give(call, decimals > 0 ? tn_div(y, factor) : tn_mul(y, factor));
}

/* scale * x above 0, else scale * alpha * (e^(input_scale x) - 1). */
static tn_tensor *scaled_elu(tn_tensor *x, double alpha, double scale, double input_scale)
{
    tn_tensor *zero = number(x, 0, TN_DTYPE_AUTO), *above = tn_gt(x, zero);
    /* Only numbers up to 0 reach the exponential: the gradient of a large one would be infinite. At
     * 0 the gradient is that of the exponential. */
    tn_tensor *below = tn_where(above, zero, x);

    below = tn_mul_scalar(tn_expm1(tn_mul_scalar(below, tn_scalar_float(input_scale))),
                          tn_scalar_float(scale * alpha));
    return tn_where(above, tn_mul_scalar(x, tn_scalar_float(scale)), below);
}

static tn_status elu(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    double alpha = rule_float(call, "alpha"), scale = rule_float(call, "scale");
    double input_scale = rule_float(call, "input_scale");

    if (call->status != TN_OK)
        return call->status;
    if (scale == 1 && input_scale == 1)
        return rule_give(call, call->into != NULL ? tn_elu_(self, alpha) : tn_elu(self, alpha));
    if (scale == 1.0507009873554805 && alpha == 1.6732632423543772 && input_scale == 1)
        return rule_give(call, call->into != NULL ? tn_selu_(self) : tn_selu(self));
    return rule_give(call, scaled_elu(self, alpha, scale, input_scale));
}

/* Inside PyTorch the weight of prelu has the dimensions of `self`. */
static tn_status prelu_kernel(tn_rule_call *call)
{
    return rule_give(call, tn_prelu(rule_tensor(call, "self"),
                                    tn_reshape(rule_tensor(call, "weight"), TN_INTS(-1))));
}

static tn_status polar(tn_rule_call *call)
{
    tn_tensor *length = rule_tensor(call, "abs"), *angle = rule_tensor(call, "angle");

    return rule_give(call,
                     tn_complex(tn_mul(length, tn_cos(angle)), tn_mul(length, tn_sin(angle))));
}

/* Other dtypes than the input's, before a function of floats. */
static tn_tensor *in_dtype(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");

    return call->status == TN_OK ? rule_cast(self, rule_dtype(call, "dtype")) : NULL;
}

static tn_status softmax(tn_rule_call *call)
{
    return rule_give(call, tn_softmax(in_dtype(call), rule_int(call, "dim")));
}

static tn_status log_softmax(tn_rule_call *call)
{
    return rule_give(call, tn_log_softmax(in_dtype(call), rule_int(call, "dim")));
}

/* Rows without a finite number are 0 instead of NaN. */
static tn_status safe_softmax(tn_rule_call *call)
{
    tn_tensor *self = in_dtype(call), *none;
    int64_t dim = rule_int(call, "dim");

    if (self == NULL || call->status != TN_OK)
        return rule_give(call, NULL);
    none = tn_all(tn_eq(self, number(self, -INFINITY, TN_DTYPE_AUTO)), TN_INTS(dim), true);
    return rule_give(call, tn_masked_fill(tn_softmax(self, dim), none, tn_scalar_float(0)));
}

/* float16 in, float32 out. */
static tn_tensor *half_to_float(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");

    return rule_bool(call, "half_to_float") ? rule_cast(self, TN_F32) : self;
}

static tn_status softmax_inside(tn_rule_call *call)
{
    return rule_give(call, tn_softmax(half_to_float(call), rule_int(call, "dim")));
}

static tn_status log_softmax_inside(tn_rule_call *call)
{
    return rule_give(call, tn_log_softmax(half_to_float(call), rule_int(call, "dim")));
}

const tn_rule_def rules_arithmetic[] = {
    { "aten.add(self, other, alpha=1)", .call = add },
    { "aten.sub(self, other, alpha=1)", .call = sub },
    { "aten.subtract(self, other, alpha=1)", .call = sub },
    { "aten.rsub(self, other, alpha=1)", .call = rsub },
    { "aten.div(self, other, rounding_mode=None)", .call = divide },
    { "aten.divide(self, other, rounding_mode=None)", .call = divide },
    { "aten.true_divide(self, other)", .call = true_divide },
    { "aten.div.out(self, other, out, rounding_mode=None)", .call = div_out },
    { "aten.masked_fill(self, mask, value)", .call = masked_fill },
    { "aten.where.Scalar(condition, self, other)", .call = where_numbers },
    { "aten.where.default(condition)", .call = where_indices },
    { "aten.nonzero_numpy(self)", .call = nonzero_numpy },
    { "aten.isposinf(self)", .call = isposinf },
    { "aten.isneginf(self)", .call = isneginf },
    { "aten.float_power(self, exponent)", .call = float_power },
    { "aten.round.decimals(self, decimals)", .call = round_decimals },
    { "aten.elu(self, alpha=1, scale=1, input_scale=1)", .call = elu },
    { "aten._prelu_kernel(self, weight)", .call = prelu_kernel },
    { "aten.polar(abs, angle)", .call = polar },
    { "aten.softmax(self, dim, dtype=None)", .call = softmax },
    { "aten.special_softmax(self, dim, dtype=None)", .call = softmax },
    { "aten._softmax(self, dim, half_to_float)", .call = softmax_inside },
    { "aten.log_softmax(self, dim, dtype=None)", .call = log_softmax },
    { "aten.special_log_softmax(self, dim, dtype=None)", .call = log_softmax },
    { "aten._log_softmax(self, dim, half_to_float)", .call = log_softmax_inside },
    { "aten._safe_softmax(self, dim, dtype=None)", .call = safe_softmax },
    { .function = NULL },
};
