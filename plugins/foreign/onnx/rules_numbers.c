/* SPDX-License-Identifier: MIT
 *
 * Rules for arithmetic and comparisons of tensors, and of integers of the host. */
#include "onnx/onnx_rules.h"

#include <string.h>

/* ---- integers of the host -------------------------------------------------------------------- */

enum host { HOST_NONE, HOST_ADD, HOST_SUB, HOST_MUL, HOST_DIV, HOST_MOD, HOST_EQUAL };

static tn_status host_number(tn_rule_call *call, enum host what, int64_t a, int64_t b, int64_t *out)
{
    bool fits = true;

    if ((what == HOST_DIV || what == HOST_MOD) && (b == 0 || (a == INT64_MIN && b == -1)))
        return rule_fail(call, TN_ERR_VALUE, "B: wrong divisor, got %lld; expected another one",
                         (long long)b);
    switch (what) {
    case HOST_ADD: fits = !__builtin_add_overflow(a, b, out); break;
    case HOST_SUB: fits = !__builtin_sub_overflow(a, b, out); break;
    case HOST_MUL: fits = !__builtin_mul_overflow(a, b, out); break;
    case HOST_DIV: *out = a / b; break;
    case HOST_MOD: *out = a % b != 0 && (a % b < 0) != (b < 0) ? a % b + b : a % b; break;
    default: *out = a == b; break;
    }
    return fits ? TN_OK : rule_fail(call, TN_ERR_VALUE, "the result has more than 64 bits");
}

/* Truths, a list or with count -1 one. */
static tn_status give_truths(tn_rule_call *call, const int64_t *numbers, int64_t count)
{
    tn_value *items = rule_memory(call, count < 0 ? 1 : count, sizeof *items);

    for (int64_t i = 0; i < (count < 0 ? 1 : count) && items != NULL; i++)
        items[i] = tn_value_bool(numbers[i] != 0);
    if (items == NULL)
        return call->status;
    return rule_give_value(call, count < 0 ? items[0] : tn_value_list(items, (uint32_t)count));
}

static tn_status give_host(tn_rule_call *call, enum host what)
{
    tn_ints a = rule_ints(call, "A"), b = rule_ints(call, "B");
    bool list = rule_value(call, "A")->kind == TN_VALUE_LIST ||
                rule_value(call, "B")->kind == TN_VALUE_LIST;
    int64_t count = a.count == 1 ? b.count : a.count, *numbers;

    if (call->status == TN_OK && a.count != b.count && a.count != 1 && b.count != 1)
        return rule_fail(call, TN_ERR_VALUE, "B: %lld numbers; expected %lld, or 1",
                         (long long)b.count, (long long)a.count);
    numbers = rule_memory(call, count, sizeof *numbers);
    for (int64_t i = 0; i < count && call->status == TN_OK; i++)
        host_number(call, what, a.at[a.count == 1 ? 0 : i], b.at[b.count == 1 ? 0 : i],
                    &numbers[i]);
    if (what == HOST_EQUAL && call->status == TN_OK)
        return give_truths(call, numbers, list ? count : -1);
    return call->status == TN_OK ? onnx_give_host(call, numbers, list ? count : -1) : call->status;
}

/* ---- two tensors ----------------------------------------------------------------------------- */

/* Before version 7 B is placed at `axis` of A, by default at the end. */
static tn_tensor *placed(tn_rule_call *call, tn_tensor *a, tn_tensor *b)
{
    int64_t shape[TN_MAX_DIMS], n, axis, own;

    if (call->status != TN_OK || !rule_has(call, "axis") || rule_int(call, "broadcast") == 0)
        return b;
    n = tn_tensor_ndim(a);
    own = tn_tensor_ndim(b);
    axis = rule_int(call, "axis");
    axis += axis < 0 ? n : 0;
    if (axis < 0 || axis > n - own) {
        rule_fail(call, TN_ERR_VALUE, "axis: out of range, got %lld; expected 0 to %lld",
                  (long long)axis, (long long)(n - own));
        return NULL;
    }
    for (int64_t i = 0; i < n - axis; i++)
        shape[i] = i < own ? tn_tensor_size(b, i) : 1;
    return tn_reshape(b, (tn_ints){ shape, n - axis });
}

static const struct {
    const char *function, *op;
    enum host host;
} binaries[] = {
    { "Add", "add", HOST_ADD },
    { "Sub", "sub", HOST_SUB },
    { "Mul", "mul", HOST_MUL },
    { "And", "logical_and", HOST_NONE },
    { "Or", "logical_or", HOST_NONE },
    { "Xor", "logical_xor", HOST_NONE },
    { "Equal", "eq", HOST_EQUAL },
    { "Greater", "gt", HOST_NONE },
    { "GreaterOrEqual", "ge", HOST_NONE },
    { "Less", "lt", HOST_NONE },
    { "LessOrEqual", "le", HOST_NONE },
    { "BitwiseAnd", "bitwise_and", HOST_NONE },
    { "BitwiseOr", "bitwise_or", HOST_NONE },
    { "BitwiseXor", "bitwise_xor", HOST_NONE },
};

enum { BINARIES = sizeof binaries / sizeof *binaries };

static tn_status binary(tn_rule_call *call)
{
    tn_tensor *in[2];
    int row = 0;

    while (row < BINARIES - 1 && strcmp(binaries[row].function, call->name) != 0)
        row++;
    if (binaries[row].host != HOST_NONE && onnx_is_host(call, "A") && onnx_is_host(call, "B"))
        return give_host(call, binaries[row].host);
    in[0] = rule_tensor(call, "A");
    in[1] = placed(call, in[0], rule_tensor(call, "B"));
    return rule_give(call, onnx_binary(call, binaries[row].op, in[0], in[1]));
}

/* Integers are rounded towards zero. */
static tn_status divide(tn_rule_call *call)
{
    tn_tensor *a, *b;
    bool whole;

    if (onnx_is_host(call, "A") && onnx_is_host(call, "B"))
        return give_host(call, HOST_DIV);
    a = rule_tensor(call, "A");
    b = placed(call, a, rule_tensor(call, "B"));
    if (call->status != TN_OK || b == NULL)
        return rule_give(call, NULL);
    if (onnx_is_unsigned(a))
        return rule_give(call, onnx_unsigned(call, "div", a, b));
    whole = (TN_BIT(tn_tensor_dtype(a)) & TN_MASK_INT) != 0;
    return rule_give(call, whole ? tn_div(a, b, "trunc") : tn_div(a, b));
}

/* The result has the dtype of the base. */
static tn_status power(tn_rule_call *call)
{
    tn_tensor *a = rule_tensor(call, "A"), *b = placed(call, a, rule_tensor(call, "B"));
    tn_dtype dtype;

    if (call->status != TN_OK || b == NULL)
        return rule_give(call, NULL);
    dtype = tn_tensor_dtype(a);
    b = onnx_is_unsigned(b) ? tn_cast(b, TN_I64) : b;
    a = onnx_is_unsigned(a) ? tn_cast(a, TN_I64) : a;
    if (a == NULL || b == NULL)
        return rule_give(call, NULL);
    if ((TN_BIT(tn_tensor_dtype(a)) & TN_MASK_INT) != 0 &&
        (TN_BIT(tn_tensor_dtype(b)) & TN_MASK_FLOAT) != 0)
        a = tn_cast(a, TN_F64);
    return rule_give(call, rule_cast(tn_pow(a, b), dtype));
}

static tn_status modulo(tn_rule_call *call)
{
    bool fmod = rule_int(call, "fmod") != 0;
    tn_tensor *a, *b;

    if (!fmod && onnx_is_host(call, "A") && onnx_is_host(call, "B"))
        return give_host(call, HOST_MOD);
    a = rule_tensor(call, "A");
    b = rule_tensor(call, "B");
    if (onnx_is_unsigned(a))
        return rule_give(call, onnx_unsigned(call, "remainder", a, b));
    return rule_give(call, fmod ? tn_fmod(a, b) : tn_remainder(a, b));
}

/* ---- any number of tensors ------------------------------------------------------------------- */

static tn_status many(tn_rule_call *call, const char *op, bool mean)
{
    int64_t count;
    tn_tensor **in = rule_tensors(call, "data", &count), *y;

    if (call->status != TN_OK || count == 0)
        return rule_fail(call, TN_ERR_VALUE, "data: no tensors; expected at least one");
    y = in[0];
    for (int64_t i = 1; i < count; i++)
        y = onnx_binary(call, op, y, in[i]);
    if (mean && count > 1 && call->status == TN_OK)
        y = tn_mul_scalar(y, tn_scalar_float(1.0 / (double)count));
    return rule_give(call, y);
}

static tn_status sum(tn_rule_call *call)
{
    return many(call, "add", false);
}

static tn_status mean(tn_rule_call *call)
{
    return many(call, "add", true);
}

static tn_status largest(tn_rule_call *call)
{
    return many(call, "maximum", false);
}

static tn_status smallest(tn_rule_call *call)
{
    return many(call, "minimum", false);
}

/* ---- choices --------------------------------------------------------------------------------- */

/* Integers of the host chosen by truths of the host. */
static tn_status where_host(tn_rule_call *call, const tn_value *condition)
{
    tn_ints a = rule_ints(call, "X"), b = rule_ints(call, "Y");
    int64_t n = condition->count, most = a.count > b.count ? a.count : b.count;
    int64_t count = n == 1 && most != 0 ? most : n;
    int64_t *out = rule_memory(call, count, sizeof *out);

    if (call->status == TN_OK &&
        ((a.count != 1 && a.count != count) || (b.count != 1 && b.count != count)))
        return rule_fail(call, TN_ERR_VALUE, "X, Y: %lld and %lld numbers; expected %lld",
                         (long long)a.count, (long long)b.count, (long long)count);
    for (int64_t i = 0; i < count && out != NULL; i++)
        out[i] = condition->as.list[n == 1 ? 0 : i].as.i != 0 ? a.at[a.count == 1 ? 0 : i]
                                                              : b.at[b.count == 1 ? 0 : i];
    return out != NULL ? onnx_give_host(call, out, count) : call->status;
}

static tn_status where(tn_rule_call *call)
{
    const tn_value *condition = rule_value(call, "condition");
    tn_tensor *a, *b;

    if (condition->kind == TN_VALUE_LIST && condition->count > 0 && onnx_is_host(call, "X") &&
        onnx_is_host(call, "Y"))
        return where_host(call, condition);
    a = rule_tensor(call, "X");
    b = rule_tensor(call, "Y");
    return rule_give(call, tn_where(rule_tensor(call, "condition"), a, b));
}

#define TWO "(A, B, axis=None, broadcast=0)"

const tn_rule_def onnx_rules_numbers[] = {
    { "Add" TWO, .call = binary, .host = TN_RULE_HOST_KEEPS },
    { "Sub" TWO, .call = binary, .host = TN_RULE_HOST_KEEPS },
    { "Mul" TWO, .call = binary, .host = TN_RULE_HOST_KEEPS },
    { "Div" TWO, .call = divide, .host = TN_RULE_HOST_KEEPS },
    { "Pow" TWO, .call = power },
    { "And" TWO, .call = binary },
    { "Or" TWO, .call = binary },
    { "Xor" TWO, .call = binary },
    { "Equal" TWO, .call = binary, .host = TN_RULE_HOST_KEEPS },
    { "Greater" TWO, .call = binary },
    { "GreaterOrEqual" TWO, .call = binary },
    { "Less" TWO, .call = binary },
    { "LessOrEqual" TWO, .call = binary },
    { "BitwiseAnd" TWO, .call = binary },
    { "BitwiseOr" TWO, .call = binary },
    { "BitwiseXor" TWO, .call = binary },
    { "Mod(A, B, fmod=0)", .call = modulo, .host = TN_RULE_HOST_KEEPS },
    { "Sum(*data)", .call = sum },
    { "Mean(*data)", .call = mean },
    { "Max(*data)", .call = largest },
    { "Min(*data)", .call = smallest },
    { "Where(condition, X, Y)", .call = where, .host = TN_RULE_HOST_KEEPS },
    { .function = NULL },
};
