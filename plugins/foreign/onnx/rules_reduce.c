/* SPDX-License-Identifier: MIT
 *
 * Rules for sums, largest elements, orders and running sums. */
#include "onnx/onnx_rules.h"

#include <string.h>

/* ---- reductions ------------------------------------------------------------------------------ */

enum kind { SUM, MEAN, LARGEST, SMALLEST, PRODUCT, L1, L2, LOG_SUM, LOG_SUM_EXP, SUM_SQUARE };

static const char *const functions[] = { "ReduceSum",      "ReduceMean",   "ReduceMax",
                                         "ReduceMin",      "ReduceProd",   "ReduceL1",
                                         "ReduceL2",       "ReduceLogSum", "ReduceLogSumExp",
                                         "ReduceSumSquare" };

/* The least or greatest number of a dtype. */
static tn_scalar bound(tn_dtype dtype, bool least)
{
    switch (dtype) {
    case TN_BOOL: return tn_scalar_bool(!least);
    case TN_U8: return tn_scalar_int(least ? 0 : UINT8_MAX);
    case TN_I8: return tn_scalar_int(least ? INT8_MIN : INT8_MAX);
    case TN_I16: return tn_scalar_int(least ? INT16_MIN : INT16_MAX);
    case TN_I32: return tn_scalar_int(least ? INT32_MIN : INT32_MAX);
    case TN_I64: return tn_scalar_int(least ? INT64_MIN : INT64_MAX);
    default: return tn_scalar_float(least ? -__builtin_inf() : __builtin_inf());
    }
}

/* The largest or smallest element; of no elements the least or greatest number. */
static tn_tensor *extreme(tn_tensor *x, tn_ints dims, bool keep, bool largest)
{
    tn_dtype dtype = tn_tensor_dtype(x);
    tn_tensor *y = dtype == TN_BOOL ? tn_cast(x, TN_U8) : x;

    if (tn_tensor_numel(x) == 0) { /* the sums have the shape */
        y = tn_sum(x, dims, keep);
        return y != NULL ? tn_full(x, tn_tensor_shape(y), bound(dtype, largest), dtype) : NULL;
    }
    y = largest ? tn_amax(y, dims, keep) : tn_amin(y, dims, keep);
    return rule_cast(y, dtype);
}

static tn_tensor *reduced(enum kind kind, tn_tensor *x, tn_ints dims, bool keep)
{
    tn_dtype dtype = tn_tensor_dtype(x);
    bool whole = (TN_BIT(dtype) & TN_MASK_INT) != 0;

    switch (kind) {
    case SUM: return tn_sum(x, dims, keep, dtype);
    case MEAN:
        return whole ? rule_cast(tn_mean(tn_cast(x, TN_F64), dims, keep), dtype)
                     : tn_mean(x, dims, keep);
    case LARGEST: return extreme(x, dims, keep, true);
    case SMALLEST: return extreme(x, dims, keep, false);
    case PRODUCT: return tn_prod(x, dims, keep, dtype);
    case L1: return tn_sum(tn_abs(x), dims, keep, dtype);
    case L2:
        return whole ? rule_cast(tn_sqrt(tn_sum(tn_square(tn_cast(x, TN_F64)), dims, keep)), dtype)
                     : tn_sqrt(tn_sum(tn_square(x), dims, keep));
    case LOG_SUM: return rule_cast(tn_ln(tn_sum(x, dims, keep)), dtype);
    case LOG_SUM_EXP: return rule_cast(tn_logsumexp(x, dims, keep), dtype);
    default: return tn_sum(tn_square(x), dims, keep, dtype);
    }
}

static tn_status reduce(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "data");
    bool keep = rule_int(call, "keepdims") != 0;
    int64_t all[TN_MAX_DIMS], n = x != NULL ? tn_tensor_ndim(x) : 0;
    tn_ints dims = onnx_rule_dims(call, "axes", n);
    int kind = 0;

    while (strcmp(functions[kind], call->name) != 0)
        kind++;
    if (call->status != TN_OK)
        return call->status;
    if (dims.count <= 0) {
        if (rule_int(call, "noop_with_empty_axes") != 0) {
            /* Each element for itself. */
            int64_t shape[TN_MAX_DIMS + 1];

            if (kind <= PRODUCT || n == TN_MAX_DIMS)
                return rule_give(call, x);
            memcpy(shape, tn_tensor_shape(x).at, (size_t)n * sizeof *shape);
            shape[n] = 1;
            return rule_give(call,
                             reduced((enum kind)kind, tn_reshape(x, (tn_ints){ shape, n + 1 }),
                                     TN_INTS(n), false));
        }
        for (int64_t i = 0; i < n; i++)
            all[i] = i;
        dims = (tn_ints){ all, n };
    }
    return rule_give(call, reduced((enum kind)kind, x, dims, keep));
}

/* ---- indices of elements --------------------------------------------------------------------- */

static tn_status arg_extreme(tn_rule_call *call, bool largest)
{
    tn_tensor *x = rule_tensor(call, "data"), *y;
    int64_t dim = rule_axis(call, "axis", x), n;
    bool keep = rule_int(call, "keepdims") != 0, last = rule_int(call, "select_last_index") != 0;

    if (call->status != TN_OK)
        return call->status;
    n = tn_tensor_size(x, dim);
    if (last)
        x = tn_flip(x, TN_INTS(dim));
    y = largest ? tn_argmax(x, dim, keep) : tn_argmin(x, dim, keep);
    if (last)
        y = tn_add_scalar(tn_neg(y), tn_scalar_int(n - 1));
    return rule_give(call, y);
}

static tn_status arg_max(tn_rule_call *call)
{
    return arg_extreme(call, true);
}

static tn_status arg_min(tn_rule_call *call)
{
    return arg_extreme(call, false);
}

static tn_status top_k(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *order, *values = NULL, *indices = NULL;
    tn_ints k = rule_ints(call, "K");
    int64_t dim = rule_axis(call, "axis", x);
    bool largest = rule_int(call, "largest") != 0;

    if (call->status == TN_OK && k.count != 1)
        return rule_fail(call, TN_ERR_VALUE, "K: %lld numbers; expected one", (long long)k.count);
    if (call->status != TN_OK)
        return call->status;
    order = onnx_is_unsigned(x) ? onnx_unsigned_order(x) : x;
    if (tn_topk(order, k.at[0], &values, &indices, dim, largest) != TN_OK)
        return rule_give(call, NULL);
    rule_give(call, order == x ? values : tn_gather(x, indices, dim));
    return rule_give(call, indices);
}

/* ---- running sums ---------------------------------------------------------------------------- */

static tn_status running(tn_rule_call *call, bool product)
{
    tn_tensor *x = rule_tensor(call, "x"), *y;
    int64_t axis = rule_int(call, "axis"), n;
    bool exclusive = rule_int(call, "exclusive") != 0, reverse = rule_int(call, "reverse") != 0;

    if (call->status != TN_OK)
        return call->status;
    axis += axis < 0 ? tn_tensor_ndim(x) : 0;
    if (axis < 0 || axis >= tn_tensor_ndim(x))
        return rule_fail(call, TN_ERR_INDEX, "axis: out of range, got %lld; expected 0 to %lld",
                         (long long)axis, (long long)tn_tensor_ndim(x) - 1);
    if (reverse)
        x = tn_flip(x, TN_INTS(axis));
    n = tn_tensor_size(x, axis);
    if (exclusive && n > 0) {
        /* The sums before each element: one more at the front, and not the last. */
        tn_tensor *first = tn_narrow(x, axis, 0, 1), *pair[2];

        if (first == NULL)
            return rule_give(call, NULL);
        pair[0] = tn_full(x, tn_tensor_shape(first), tn_scalar_int(product), tn_tensor_dtype(x));
        pair[1] = tn_narrow(x, axis, 0, n - 1);
        x = tn_cat(pair, 2, axis);
    }
    if (x == NULL)
        return rule_give(call, NULL);
    y = product ? tn_cumprod(x, axis, tn_tensor_dtype(x))
                : tn_cumsum(x, axis, false, tn_tensor_dtype(x));
    return rule_give(call, reverse ? tn_flip(y, TN_INTS(axis)) : y);
}

static tn_status cum_sum(tn_rule_call *call)
{
    return running(call, false);
}

static tn_status cum_prod(tn_rule_call *call)
{
    return running(call, true);
}

#define REDUCE "(data, axes=None, keepdims=1, noop_with_empty_axes=0)"
#define ARG "(data, axis=0, keepdims=1, select_last_index=0)"

const tn_rule_def onnx_rules_reduce[] = {
    { "ReduceSum" REDUCE, .call = reduce },
    { "ReduceMean" REDUCE, .call = reduce },
    { "ReduceMax" REDUCE, .call = reduce },
    { "ReduceMin" REDUCE, .call = reduce },
    { "ReduceProd" REDUCE, .call = reduce },
    { "ReduceL1" REDUCE, .call = reduce },
    { "ReduceL2" REDUCE, .call = reduce },
    { "ReduceLogSum" REDUCE, .call = reduce },
    { "ReduceLogSumExp" REDUCE, .call = reduce },
    { "ReduceSumSquare" REDUCE, .call = reduce },
    { "ArgMax" ARG, .call = arg_max },
    { "ArgMin" ARG, .call = arg_min },
    { "TopK(X, K, axis=-1, largest=1, sorted=*)", .call = top_k },
    { "CumSum(x, axis, exclusive=0, reverse=0)", .call = cum_sum },
    { "CumProd(x, axis, exclusive=0, reverse=0)", .call = cum_prod },
    { .function = NULL },
};
