/* SPDX-License-Identifier: MIT
 *
 * Rules for numbers of the host: sizes of tensors, and what Python computes with them. Integers are
 * those of Python as long as they fit into 64 bits; a larger result is an error. */
#include "rules.h"

#include <math.h>
#include <string.h>

/* ---- arithmetic ------------------------------------------------------------------------------ */

static bool is_whole(const tn_value *value)
{
    return value->kind == TN_VALUE_INT || value->kind == TN_VALUE_BOOL;
}

/* The function's name without its module: "floordiv". */
static const char *last_name(const tn_rule_call *call)
{
    const char *dot = strrchr(call->name, '.');

    return dot != NULL ? dot + 1 : call->name;
}

static tn_status too_large(tn_rule_call *call)
{
    return rule_fail(call, TN_ERR_VALUE,
                     "the result does not fit into an integer; expected -2^63 to 2^63 - 1");
}

static tn_status give_int(tn_rule_call *call, int64_t number)
{
    return rule_give_value(call, tn_value_int(number));
}

static tn_status give_float(tn_rule_call *call, double number)
{
    return rule_give_value(call, tn_value_float(number));
}

static tn_status give_bool(tn_rule_call *call, bool flag)
{
    return rule_give_value(call, tn_value_bool(flag));
}

static tn_status divided_by_zero(tn_rule_call *call)
{
    return rule_fail(call, TN_ERR_VALUE, "b: is zero; expected another number");
}

/* Python rounds down, and the remainder has the sign of b. */
static tn_status divide(tn_rule_call *call, int64_t a, int64_t b, bool remainder)
{
    if (b == 0)
        return divided_by_zero(call);
    if (b == -1) /* the only division that can overflow */
        return remainder        ? give_int(call, 0)
               : a == INT64_MIN ? too_large(call)
                                : give_int(call, -a);
    if (remainder)
        return give_int(call, a % b + ((a % b != 0 && (a % b < 0) != (b < 0)) ? b : 0));
    return give_int(call, a / b - (a % b != 0 && (a % b < 0) != (b < 0)));
}

static tn_status power(tn_rule_call *call, int64_t a, int64_t b)
{
    int64_t result = 1;

    if (b < 0)
        return a == 0 ? divided_by_zero(call) : give_float(call, pow((double)a, (double)b));
    if (a == 1 || a == 0)
        return give_int(call, b == 0 ? 1 : a);
    if (a == -1)
        return give_int(call, b % 2 == 0 ? 1 : -1);
    for (int64_t i = 0; i < b; i++) /* overflows after at most 63 steps */
        if (__builtin_mul_overflow(result, a, &result))
            return too_large(call);
    return give_int(call, result);
}

static tn_status integers(tn_rule_call *call, const char *name, int64_t a, int64_t b)
{
    int64_t result;
    bool over;

    if (strcmp(name, "floordiv") == 0 || strcmp(name, "mod") == 0)
        return divide(call, a, b, name[0] == 'm');
    if (strcmp(name, "pow") == 0)
        return power(call, a, b);
    if (strcmp(name, "truediv") == 0)
        return b == 0 ? divided_by_zero(call) : give_float(call, (double)a / (double)b);
    over = strcmp(name, "add") == 0   ? __builtin_add_overflow(a, b, &result)
           : strcmp(name, "sub") == 0 ? __builtin_sub_overflow(a, b, &result)
                                      : __builtin_mul_overflow(a, b, &result);
    return over ? too_large(call) : give_int(call, result);
}

/* The remainder has the sign of b, and is exact. */
static double remainder_of(double a, double b)
{
    double rest = fmod(a, b);

    return rest == 0 ? copysign(0.0, b) : (rest < 0) != (b < 0) ? rest + b : rest;
}

/* The whole number (a - remainder) / b: 1 // 0.1 is 9, because 0.1 is a little more than a tenth.
 */
static double floor_of(double a, double b)
{
    double rest = fmod(a, b), quotient = (a - rest) / b, whole;

    quotient -= rest != 0 && (rest < 0) != (b < 0);
    whole = floor(quotient);
    return quotient == 0 ? copysign(0.0, a / b) : quotient - whole > 0.5 ? whole + 1 : whole;
}

static tn_status floats(tn_rule_call *call, const char *name, double a, double b)
{
    if (b == 0 &&
        (strcmp(name, "truediv") == 0 || strcmp(name, "floordiv") == 0 || strcmp(name, "mod") == 0))
        return divided_by_zero(call);
    return give_float(call, strcmp(name, "mod") == 0        ? remainder_of(a, b)
                            : strcmp(name, "floordiv") == 0 ? floor_of(a, b)
                            : strcmp(name, "truediv") == 0  ? a / b
                            : strcmp(name, "pow") == 0      ? pow(a, b)
                            : strcmp(name, "add") == 0      ? a + b
                            : strcmp(name, "sub") == 0      ? a - b
                                                            : a * b);
}

static tn_status arithmetic(tn_rule_call *call)
{
    const tn_value *a = rule_value(call, "a"), *b = rule_value(call, "b");
    double x, y;

    if (is_whole(a) && is_whole(b))
        return integers(call, last_name(call), a->as.i, b->as.i);
    x = rule_float(call, "a");
    y = rule_float(call, "b");
    return call->status == TN_OK ? floats(call, last_name(call), x, y) : call->status;
}

static tn_status negate(tn_rule_call *call)
{
    const tn_value *a = rule_value(call, "a");

    if (!is_whole(a))
        return give_float(call, -rule_float(call, "a"));
    return a->as.i == INT64_MIN ? too_large(call) : give_int(call, -a->as.i);
}

static tn_status absolute(tn_rule_call *call)
{
    const tn_value *a = rule_value(call, "a");

    if (!is_whole(a))
        return give_float(call, fabs(rule_float(call, "a")));
    return a->as.i == INT64_MIN ? too_large(call)
                                : give_int(call, a->as.i < 0 ? -a->as.i : a->as.i);
}

static tn_status itself(tn_rule_call *call)
{
    return rule_give_value(call, *rule_value(call, "a"));
}

/* ---- comparison, logic ----------------------------------------------------------------------- */

/* -1, 0 or 1; 2 if one of them is not a number. */
static int compare(tn_rule_call *call)
{
    const tn_value *a = rule_value(call, "a"), *b = rule_value(call, "b");
    double x, y;

    if (is_whole(a) && is_whole(b))
        return (a->as.i > b->as.i) - (a->as.i < b->as.i);
    x = rule_float(call, "a");
    y = rule_float(call, "b");
    return isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
}

static tn_status comparison(tn_rule_call *call)
{
    const char *name = last_name(call);
    int order = compare(call);

    return give_bool(call, strcmp(name, "eq") == 0   ? order == 0
                           : strcmp(name, "ne") == 0 ? order != 0
                           : strcmp(name, "lt") == 0 ? order == -1
                           : strcmp(name, "gt") == 0 ? order == 1
                           : strcmp(name, "le") == 0 ? order == -1 || order == 0
                                                     : order == 1 || order == 0);
}

static tn_status larger(tn_rule_call *call)
{
    int order = compare(call);
    bool first = (strcmp(last_name(call), "sym_max") == 0) == (order == 1);

    return rule_give_value(call, *rule_value(call, order == 0 || first ? "a" : "b"));
}

static tn_status logic(tn_rule_call *call)
{
    const tn_value *a = rule_value(call, "a"), *b = rule_value(call, "b");
    const char *name = last_name(call);
    int64_t x, y, result;

    x = rule_int(call, "a");
    y = rule_int(call, "b");
    result = name[0] == 'a' ? (x & y) : name[0] == 'o' ? (x | y) : (x ^ y);
    return a->kind == TN_VALUE_BOOL && b->kind == TN_VALUE_BOOL ? give_bool(call, result != 0)
                                                                : give_int(call, result);
}

static tn_status negation(tn_rule_call *call)
{
    return give_bool(call, rule_float(call, "a") == 0.0);
}

static tn_status choice(tn_rule_call *call)
{
    return rule_give_value(call, *rule_value(call, rule_bool(call, "a") ? "b" : "c"));
}

/* ---- rounding -------------------------------------------------------------------------------- */

static tn_status to_float(tn_rule_call *call)
{
    return give_float(call, rule_float(call, "a"));
}

static tn_status to_int(tn_rule_call *call)
{
    const char *name = last_name(call);
    double x = rule_float(call, "a");

    if (is_whole(rule_value(call, "a")))
        return give_int(call, rule_value(call, "a")->as.i);
    x = strcmp(name, "floor") == 0   ? floor(x)
        : strcmp(name, "ceil") == 0  ? ceil(x)
        : strcmp(name, "round") == 0 ? nearbyint(x)
                                     : trunc(x);
    return x >= -0x1p63 && x < 0x1p63 ? give_int(call, (int64_t)x) : too_large(call);
}

static tn_status root(tn_rule_call *call)
{
    double x = rule_float(call, "a");

    return x >= 0 ? give_float(call, sqrt(x))
                  : rule_fail(call, TN_ERR_VALUE, "a: negative; expected a number from 0");
}

/* ---- sizes, values, checks ------------------------------------------------------------------- */

static tn_status size(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    int64_t dim = rule_axis(call, "dim", self);

    return call->status == TN_OK ? give_int(call, tn_tensor_size(self, dim)) : call->status;
}

static tn_status stride(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    int64_t dim = rule_axis(call, "dim", self);

    return call->status == TN_OK ? give_int(call, tn_tensor_strides(self).at[dim]) : call->status;
}

static tn_status count_elements(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");

    return call->status == TN_OK ? give_int(call, tn_tensor_numel(self)) : call->status;
}

/* Reads the value of a tensor with one element: a trace refuses it. */
static tn_status item(tn_rule_call *call)
{
    tn_tensor *self = rule_tensor(call, "self");
    tn_scalar value;

    if (call->status != TN_OK)
        return call->status;
    if (tn_tensor_scalar(self, &value) != TN_OK)
        return tn_error_last_code();
    switch (value.kind) {
    case TN_SCALAR_BOOL: return give_bool(call, value.as.i != 0);
    case TN_SCALAR_INT: return give_int(call, value.as.i);
    case TN_SCALAR_FLOAT: return give_float(call, value.as.f);
    default:
        return rule_fail(call, TN_ERR_NOT_IMPLEMENTED,
                         "self: a complex or too large number; expected a bool, integer or float");
    }
}

static tn_status check(tn_rule_call *call)
{
    const tn_value *self = rule_value(call, "self"), *text = rule_value(call, "assert_msg");

    if (!is_whole(self) || self->as.i != 0)
        return rule_give_none(call);
    return rule_fail(call, TN_ERR_VALUE, "a check of the program failed: %s",
                     text->kind == TN_VALUE_STRING ? text->as.s : "no message");
}

/* What a compiler of PyTorch checks about metadata: shapes and dtypes are checked by operators. */
static tn_status nothing(tn_rule_call *call)
{
    return rule_give_none(call);
}

const tn_rule_def rules_numbers[] = {
    { "_operator.add(a, b)", .call = arithmetic },
    { "_operator.sub(a, b)", .call = arithmetic },
    { "_operator.mul(a, b)", .call = arithmetic },
    { "_operator.floordiv(a, b)", .call = arithmetic },
    { "_operator.mod(a, b)", .call = arithmetic },
    { "_operator.truediv(a, b)", .call = arithmetic },
    { "_operator.pow(a, b)", .call = arithmetic },
    { "math.pow(a, b)", .call = arithmetic },
    { "_operator.neg(a)", .call = negate },
    { "_operator.abs(a)", .call = absolute },
    { "_operator.pos(a)", .call = itself },
    { "_operator.eq(a, b)", .call = comparison },
    { "_operator.ne(a, b)", .call = comparison },
    { "_operator.lt(a, b)", .call = comparison },
    { "_operator.gt(a, b)", .call = comparison },
    { "_operator.le(a, b)", .call = comparison },
    { "_operator.ge(a, b)", .call = comparison },
    { "_operator.and_(a, b)", .call = logic },
    { "_operator.or_(a, b)", .call = logic },
    { "_operator.xor(a, b)", .call = logic },
    { "_operator.not_(a)", .call = negation },
    { "torch.sym_not(a)", .call = negation },
    { "torch.sym_max(a, b)", .call = larger },
    { "torch.sym_min(a, b)", .call = larger },
    { "torch.sym_ite(a, b, c)", .call = choice },
    { "torch.sym_float(a)", .call = to_float },
    { "torch.sym_int(a)", .call = to_int },
    { "torch._sym_sqrt(a)", .call = root },
    { "math.sqrt(a)", .call = root },
    { "math.floor(a)", .call = to_int },
    { "math.ceil(a)", .call = to_int },
    { "math.trunc(a)", .call = to_int },
    { "builtins.round(a)", .call = to_int },
    { "builtins.int(a)", .call = to_int },
    { "aten.sym_size.int(self, dim)", .call = size },
    { "aten.sym_stride.int(self, dim)", .call = stride },
    { "aten.sym_numel(self)", .call = count_elements },
    { "aten.item(self)", .call = item },
    { "aten._local_scalar_dense(self)", .call = item },
    { "aten._assert_scalar(self, assert_msg)", .call = check },
    { "aten._functional_assert_scalar(self, assert_msg, dep_token)", .call = check },
    { "aten._assert_tensor_metadata(a, size=None, stride=None, dtype=None)", .call = nothing },
    { "aten._assert_async.msg(self, assert_msg)", .call = nothing },
    { "aten._functional_assert_async.msg(self, assert_msg, dep_token)", .call = nothing },
    { "aten.sym_constrain_range(size, min=None, max=None)", .call = nothing },
    { "aten.sym_constrain_range_for_size(size, min=None, max=None)", .call = nothing },
    { .function = NULL },
};
