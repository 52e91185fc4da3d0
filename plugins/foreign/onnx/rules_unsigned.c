/* SPDX-License-Identifier: MIT
 *
 * Arithmetic of unsigned integers of 16, 32 and 64 bits, for which Tenon's operators have no
 * kernels: computed in int64, whose results modulo 2^n are those of n bits. What depends on the
 * order is different in 64 bits, where numbers from 2^63 on are negative in int64. */
#include "onnx/onnx_rules.h"

#include <string.h>

enum kind {
    WRAPS,    /* the same bits as of signed numbers */
    COMPARES, /* depends on the order; gives truths */
    CHOOSES,  /* depends on the order; gives one of the numbers */
    DIVIDES,
    REMAINS,
    SHIFTS
};

static const struct {
    const char *op;
    enum kind kind;
    bool truths;
} kinds[] = {
    { "add", WRAPS, false },         { "sub", WRAPS, false },
    { "mul", WRAPS, false },         { "pow", WRAPS, false },
    { "bitwise_and", WRAPS, false }, { "bitwise_or", WRAPS, false },
    { "bitwise_xor", WRAPS, false }, { "bitwise_left_shift", WRAPS, false },
    { "eq", WRAPS, true },           { "gt", COMPARES, true },
    { "ge", COMPARES, true },        { "lt", COMPARES, true },
    { "le", COMPARES, true },        { "maximum", CHOOSES, false },
    { "minimum", CHOOSES, false },   { "div", DIVIDES, false },
    { "remainder", REMAINS, false }, { "bitwise_right_shift", SHIFTS, false },
};

bool onnx_is_unsigned(const tn_tensor *tensor)
{
    static const uint64_t all = TN_BIT(TN_U16) | TN_BIT(TN_U32) | TN_BIT(TN_U64);

    return tensor != NULL && (TN_BIT(tn_tensor_dtype(tensor)) & all) != 0;
}

static tn_tensor *constant(tn_tensor *like, int64_t value)
{
    return tn_full(like, TN_SCALAR_SHAPE, tn_scalar_int(value), TN_I64);
}

/* Signed numbers in the order of the unsigned ones, and back. */
static tn_tensor *ordered(tn_tensor *x)
{
    return tn_bitwise_xor(x, constant(x, INT64_MIN));
}

/* a / 2, unsigned */
static tn_tensor *halved(tn_tensor *a)
{
    return tn_bitwise_and(tn_bitwise_right_shift(a, constant(a, 1)), constant(a, INT64_MAX));
}

/* Half of a divides as a signed number does; twice the result is at most one too small. */
static tn_tensor *quotient(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *q = tn_mul(tn_div(halved(a), b, "trunc"), constant(a, 2));
    tn_tensor *rest = tn_sub(a, tn_mul(q, b));

    q = tn_add(q, tn_cast(tn_ge(ordered(rest), ordered(b)), TN_I64));
    return tn_where(tn_lt(b, constant(b, 0)), tn_cast(tn_ge(ordered(a), ordered(b)), TN_I64), q);
}

static tn_tensor *shifted(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *y = tn_bitwise_right_shift(halved(a), tn_sub(b, constant(b, 1)));

    return tn_where(tn_eq(b, constant(b, 0)), a, y);
}

/* Of 64 bits; fewer bits are never negative. */
static tn_tensor *compute(tn_rule_call *call, int row, tn_tensor **in, bool long_numbers)
{
    enum kind kind = kinds[row].kind;
    bool order = long_numbers && (kind == COMPARES || kind == CHOOSES);
    tn_tensor *y;

    if (kind == DIVIDES)
        return long_numbers ? quotient(in[0], in[1]) : tn_div(in[0], in[1], "trunc");
    if (long_numbers && kind == REMAINS)
        return tn_sub(in[0], tn_mul(quotient(in[0], in[1]), in[1]));
    if (long_numbers && kind == SHIFTS)
        return shifted(in[0], in[1]);
    if (order) {
        in[0] = ordered(in[0]);
        in[1] = ordered(in[1]);
    }
    y = rule_op(call, kinds[row].op, in, 2);
    return order && kind == CHOOSES ? ordered(y) : y;
}

tn_tensor *onnx_unsigned(tn_rule_call *call, const char *op, tn_tensor *a, tn_tensor *b)
{
    tn_tensor *in[2] = { rule_cast(a, TN_I64), rule_cast(b, TN_I64) }, *y;
    int row = 0, last = (int)(sizeof kinds / sizeof *kinds) - 1;

    if (call->status != TN_OK || in[0] == NULL || in[1] == NULL)
        return NULL;
    while (row < last && strcmp(kinds[row].op, op) != 0)
        row++;
    y = compute(call, row, in, tn_tensor_dtype(a) == TN_U64);
    return kinds[row].truths ? y : rule_cast(y, tn_tensor_dtype(a));
}

tn_tensor *onnx_binary(tn_rule_call *call, const char *op, tn_tensor *a, tn_tensor *b)
{
    tn_tensor *in[2] = { a, b };

    return onnx_is_unsigned(a) ? onnx_unsigned(call, op, a, b) : rule_op(call, op, in, 2);
}

tn_tensor *onnx_unsigned_order(tn_tensor *tensor)
{
    tn_tensor *x = tn_cast(tensor, TN_I64);

    return tn_tensor_dtype(tensor) == TN_U64 ? ordered(x) : x;
}
