/* SPDX-License-Identifier: MIT
 *
 * Products of matrices and attention as nodes of ONNX (onnx.h). */
#include "export/onnx.h"

#include <math.h>
#include <string.h>

typedef const struct onnx_value value;

static void linear(struct onnx_call *call)
{
    tn_meta meta = onnx_make_meta(call, "x");
    value *x = onnx_make_in(call, "x"), *weight = onnx_make_in(call, "weight");
    value *bias = onnx_make_in(call, "bias");
    int64_t order[2] = { 1, 0 };

    if (meta.ndim == 2) {
        onnx_make_begin(call, "Gemm", 1);
        onnx_make_add(call, x);
        onnx_make_add(call, weight);
        onnx_make_add(call, bias);
        onnx_make_int(call, "transB", 1);
        onnx_make_give(call, 0, onnx_make_end(call));
        return;
    }
    onnx_make_begin(call, "Transpose", 1);
    onnx_make_add(call, weight);
    onnx_make_ints(call, "perm", order, 2);
    x = onnx_make_2(call, "MatMul", x, onnx_make_end(call));
    onnx_make_give(call, 0, bias != NULL ? onnx_make_2(call, "Add", x, bias) : x);
}

static double number(tn_scalar scalar)
{
    return scalar.kind == TN_SCALAR_FLOAT ? scalar.as.f : (double)scalar.as.i;
}

static value *times(struct onnx_call *call, value *x, double factor)
{
    return factor == 1
               ? x
               : onnx_make_2(call, "Mul", x, onnx_make_number(call, factor, call->meta.dtype));
}

/* beta x + alpha a b */
static void added_product(struct onnx_call *call)
{
    const tn_addmm_options *o = call->options; /* those of baddbmm are the same */
    value *x = onnx_make_in(call, "x"), *y;

    y = onnx_make_2(call, "MatMul", onnx_make_in(call, "a"), onnx_make_in(call, "b"));
    y = times(call, y, number(o->alpha));
    if (number(o->beta) != 0)
        y = onnx_make_2(call, "Add", times(call, x, number(o->beta)), y);
    onnx_make_give(call, 0, y);
}

static void einsum(struct onnx_call *call)
{
    int64_t count = tn_node_input_count(call->node);

    onnx_make_begin(call, "Einsum", 1);
    for (int64_t i = 0; i < count; i++)
        onnx_make_add(call, onnx_make_input(call, i));
    onnx_make_word(call, "equation", ((const tn_einsum_options *)call->options)->equation);
    onnx_make_give(call, 0, onnx_make_end(call));
}

/* ---- attention ------------------------------------------------------------------------------- */

/* Which scores a query keeps: those of keys up to its own place. */
static value *causal(struct onnx_call *call, const struct export_size *rows,
                     const struct export_size *columns)
{
    struct export_size shape[2] = { *rows, *columns };
    value *ones = onnx_make_number(call, 1, TN_F32), *y;
    value *list = onnx_make_sizes(call, shape, 2);

    ones = onnx_make_2(call, "Expand", ones, list);
    onnx_make_begin(call, "Trilu", 1);
    onnx_make_add(call, ones);
    onnx_make_int(call, "upper", 0);
    y = onnx_make_end(call);
    return onnx_make_cast(call, y, TN_BOOL);
}

/* Keys or values of heads that several heads of queries share. */
static value *for_all_heads(struct onnx_call *call, value *x, const char *name, int64_t heads)
{
    struct export_size at[TN_MAX_DIMS], more[TN_MAX_DIMS];
    int64_t ndim = onnx_make_shape_of(call, name, at), axis = ndim - 2, groups;

    if (ndim < 3 || at[ndim - 3].number == heads || at[ndim - 3].number == 0)
        return x;
    groups = heads / at[ndim - 3].number;
    for (int64_t i = 0; i < ndim; i++)
        more[i < axis ? i : i + 1] = at[i];
    more[axis] = export_sizes_number(groups);
    x = onnx_make_2(call, "Unsqueeze", x, onnx_make_list(call, &axis, 1));
    x = onnx_make_2(call, "Expand", x, onnx_make_sizes(call, more, ndim + 1));
    at[ndim - 3] = export_sizes_number(heads);
    return onnx_make_2(call, "Reshape", x, onnx_make_sizes(call, at, ndim));
}

static value *scores_of(struct onnx_call *call, value *k, double scale)
{
    tn_meta meta = onnx_make_meta(call, "k");
    int64_t order[TN_MAX_DIMS];
    value *q = onnx_make_in(call, "q");

    for (int64_t i = 0; i < meta.ndim; i++)
        order[i] = i < meta.ndim - 2 ? i : 2 * meta.ndim - 3 - i;
    onnx_make_begin(call, "Transpose", 1);
    onnx_make_add(call, k);
    onnx_make_ints(call, "perm", order, meta.ndim);
    k = onnx_make_end(call);
    return onnx_make_2(call, "MatMul", times(call, q, scale), k);
}

/* softmax(scale q k^T + mask) v; rows without a score that is kept are zeros. */
static void attention(struct onnx_call *call, double scale, bool is_causal)
{
    struct export_size rows[TN_MAX_DIMS], columns[TN_MAX_DIMS];
    int64_t nq = onnx_make_shape_of(call, "q", rows), nk = onnx_make_shape_of(call, "k", columns);
    tn_dtype dtype = call->meta.dtype;
    int64_t heads = nq >= 3 ? rows[nq - 3].number : 1;
    bool boolean = onnx_make_source(call, "mask") != NULL &&
                   onnx_make_meta(call, "mask").dtype == TN_BOOL;
    value *mask = onnx_make_in(call, "mask"), *none = onnx_make_number(call, -INFINITY, dtype), *p;
    value *k, *v;

    if (nq < 2 || nk < 2) {
        onnx_make_fail(call, "an input has less than 2 dimensions");
        return;
    }
    k = for_all_heads(call, onnx_make_in(call, "k"), "k", heads);
    v = for_all_heads(call, onnx_make_in(call, "v"), "v", heads);
    p = scores_of(call, k, scale);
    if (is_causal)
        p = onnx_make_node(call, "Where", causal(call, &rows[nq - 2], &columns[nk - 2]), p, none);
    if (boolean) {
        p = onnx_make_node(call, "Where", mask, p, none);
    } else if (mask != NULL) {
        if (onnx_make_meta(call, "mask").dtype != dtype)
            mask = onnx_make_cast(call, mask, dtype);
        p = onnx_make_2(call, "Add", p, mask);
    }
    onnx_make_begin(call, "Softmax", 1);
    onnx_make_add(call, p);
    onnx_make_int(call, "axis", -1);
    p = onnx_make_end(call);
    if (boolean)
        p = onnx_make_node(call, "Where", onnx_make_1(call, "IsNaN", p),
                           onnx_make_number(call, 0, dtype), p);
    onnx_make_give(call, 0, onnx_make_2(call, "MatMul", p, v));
}

static void scaled_dot_product_attention(struct onnx_call *call)
{
    const tn_scaled_dot_product_attention_options *o = call->options;
    tn_meta q = onnx_make_meta(call, "q");
    bool given = o->scale == o->scale; /* None is NaN */
    double size = q.ndim > 0 ? (double)q.shape[q.ndim - 1] : 1;

    attention(call, given ? o->scale : 1 / sqrt(size), o->is_causal);
}

static void attend(struct onnx_call *call)
{
    const tn_attend_options *o = call->options;

    attention(call, o->scale, o->is_causal);
}

static bool no_dropout(const tn_node *node)
{
    const double *p = export_option(node, "dropout_p");

    return *p == 0 &&
           (tn_node_item_count(node) < 2 || tn_node_user_count(tn_node_item(node, 1)) == 0);
}

const struct onnx_rule onnx_write_products[] = {
    { "linear", .call = linear },
    { "matmul", .text = "MatMul(a, b)" },
    { "bmm", .text = "MatMul(a, b)" },
    { "mv", .text = "MatMul(a, x)" },
    { "dot", .text = "MatMul(a, b)" },
    { "addmm", .call = added_product },
    { "baddbmm", .call = added_product },
    { "einsum", .call = einsum },
    { "scaled_dot_product_attention", .call = scaled_dot_product_attention, .fits = no_dropout },
    { "attend", .call = attend, .fits = no_dropout },
    { .op = NULL },
};
