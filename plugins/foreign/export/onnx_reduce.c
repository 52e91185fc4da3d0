/* SPDX-License-Identifier: MIT
 *
 * Reductions, scans and functions along a dimension as nodes of ONNX (onnx.h). */
#include "export/onnx.h"

#include <math.h>
#include <string.h>

typedef const struct onnx_value value;

/* A reduction along dimensions, all without `dims`. Sums take them as an input; others, before
 * version 18, as an attribute. */
static value *reduced(struct onnx_call *call, const char *op, value *x, tn_ints dims, bool keep)
{
    bool as_input = strcmp(op, "ReduceSum") == 0 || call->model->opset >= 18;
    value *axes = as_input && dims.count > 0 ? onnx_make_list(call, dims.at, dims.count) : NULL;

    onnx_make_begin(call, op, 1);
    onnx_make_add(call, x);
    if (axes != NULL)
        onnx_make_add(call, axes);
    else if (dims.count > 0)
        onnx_make_ints(call, "axes", dims.at, dims.count);
    onnx_make_int(call, "keepdims", keep);
    return onnx_make_end(call);
}

static bool is_whole(tn_dtype dtype)
{
    return (TN_BIT(dtype) & (TN_MASK_FLOAT | TN_MASK_COMPLEX)) == 0;
}

static tn_ints dims_of(const struct onnx_call *call)
{
    const tn_ints *dims = export_option(call->node, "dims");

    return dims != NULL && dims->count > 0 ? *dims : tn_no_ints();
}

static bool keeps(const struct onnx_call *call)
{
    const bool *keep = export_option(call->node, "keepdim");

    return keep != NULL && *keep;
}

static value *in_result_dtype(struct onnx_call *call)
{
    tn_meta x = onnx_make_meta(call, "x");

    return x.dtype == call->meta.dtype
               ? onnx_make_input(call, 0)
               : onnx_make_cast(call, onnx_make_input(call, 0), call->meta.dtype);
}

static void reduce(struct onnx_call *call)
{
    static const char *const names[][2] = {
        { "sum", "ReduceSum" },  { "mean", "ReduceMean" }, { "prod", "ReduceProd" },
        { "amax", "ReduceMax" }, { "amin", "ReduceMin" },  { "logsumexp", "ReduceLogSumExp" },
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(call->def->name, names[i][0]) == 0)
            onnx_make_give(
                call, 0,
                reduced(call, names[i][1], in_result_dtype(call), dims_of(call), keeps(call)));
}

/* any and all of booleans: the largest or smallest of 0 and 1. */
static void truth(struct onnx_call *call)
{
    tn_meta meta = onnx_make_meta(call, "x");
    value *x = onnx_make_input(call, 0);

    if (meta.dtype != TN_BOOL)
        x = onnx_make_cast(call, x, TN_BOOL);
    x = onnx_make_cast(call, x, TN_I32);
    x = reduced(call, strcmp(call->def->name, "any") == 0 ? "ReduceMax" : "ReduceMin", x,
                dims_of(call), keeps(call));
    onnx_make_give(call, 0, onnx_make_cast(call, x, TN_BOOL));
}

/* Elements in the reduced dimensions; 0: known only in a run. */
static int64_t elements(const struct onnx_call *call, const tn_meta *x, tn_ints dims)
{
    struct export_size at[TN_MAX_DIMS];
    int32_t ndim = export_sizes_of(&call->model->graph, tn_node_input(call->node, 0), at);
    int64_t count = 1;

    for (int32_t d = 0; d < ndim; d++) {
        bool used = dims.count == 0;

        for (int64_t i = 0; i < dims.count; i++)
            used |= (dims.at[i] < 0 ? dims.at[i] + ndim : dims.at[i]) == d;
        if (used && at[d].a >= 0)
            return 0;
        count *= used ? x->shape[d] : 1;
    }
    return count;
}

/* sum (x - mean)^2 / (n - correction), and its root */
static void variance(struct onnx_call *call)
{
    bool root = strcmp(call->def->name, "std") == 0;
    double correction = *(const double *)export_option(call->node, "correction");
    tn_ints dims = dims_of(call);
    tn_meta meta = onnx_make_meta(call, "x");
    int64_t count = elements(call, &meta, dims);
    value *x = onnx_make_input(call, 0), *y;

    if (count == 0 && correction != 0) {
        onnx_make_fail(call, "the number of elements varies; expected a fixed number, or "
                             "correction 0");
        return;
    }
    y = onnx_make_2(call, "Sub", x, reduced(call, "ReduceMean", x, dims, true));
    y = reduced(call, "ReduceMean", onnx_make_2(call, "Mul", y, y), dims, keeps(call));
    if (correction != 0)
        y = onnx_make_2(
            call, "Mul", y,
            onnx_make_number(call, (double)count / ((double)count - correction), call->meta.dtype));
    onnx_make_give(call, 0, root ? onnx_make_1(call, "Sqrt", y) : y);
}

/* Norms with p = 1 and 2, and the largest and smallest absolute value. */
static void norm(struct onnx_call *call)
{
    const double *p = export_option(call->node, "p");
    tn_ints dims = dims_of(call);
    value *x = in_result_dtype(call), *y;

    if (p == NULL)
        p = export_option(call->node, "ord");
    if (isinf(*p))
        y = reduced(call, *p > 0 ? "ReduceMax" : "ReduceMin", onnx_make_1(call, "Abs", x), dims,
                    keeps(call));
    else
        y = reduced(call, *p == 1 ? "ReduceL1" : "ReduceL2", x, dims, keeps(call));
    onnx_make_give(call, 0, y);
}

static bool norm_fits(const tn_node *node)
{
    const double *p = export_option(node, "p");
    tn_meta meta;

    if (p == NULL)
        p = export_option(node, "ord");
    return p != NULL && (*p == 1 || *p == 2 || isinf(*p)) &&
           tn_node_meta(tn_node_input(node, 0), &meta) == TN_OK &&
           (TN_BIT(meta.dtype) & TN_MASK_FLOAT) != 0;
}

/* Reductions of nothing have other values. */
static bool is_reducible(const tn_node *node)
{
    const tn_ints *dims = export_option(node, "dims");
    tn_meta meta;

    if (tn_node_meta(tn_node_input(node, 0), &meta) != TN_OK || meta.ndim < 0 ||
        (TN_BIT(meta.dtype) & TN_MASK_COMPLEX) != 0)
        return false;
    return dims == NULL || dims->count != 0 || meta.ndim > 0;
}

static void sum_to(struct onnx_call *call)
{
    tn_meta x = onnx_make_meta(call, "x");
    int64_t dims[TN_MAX_DIMS], count = 0, more = x.ndim - call->meta.ndim;
    value *y = onnx_make_input(call, 0);

    for (int64_t d = 0; d < x.ndim; d++)
        if (d < more || x.shape[d] != call->meta.shape[d - more])
            dims[count++] = d;
    if (count > 0)
        y = reduced(call, "ReduceSum", y, (tn_ints){ dims, count }, true);
    if (more > 0)
        y = onnx_make_2(call, "Reshape", y, onnx_make_shape(call));
    onnx_make_give(call, 0, y);
}

/* ---- along a dimension ----------------------------------------------------------------------- */

static void cumsum(struct onnx_call *call)
{
    const tn_cumsum_options *o = call->options;
    value *x = in_result_dtype(call), *axis = onnx_make_index(call, o->dim);

    onnx_make_begin(call, "CumSum", 1);
    onnx_make_add(call, x);
    onnx_make_add(call, axis);
    onnx_make_int(call, "reverse", o->reverse);
    onnx_make_give(call, 0, onnx_make_end(call));
}

static bool has_dims(const tn_node *node)
{
    tn_meta meta;

    return tn_node_meta(tn_node_input(node, 0), &meta) == TN_OK && meta.ndim > 0;
}

static bool cumsum_fits(const tn_node *node)
{
    tn_meta meta;

    return has_dims(node) && tn_node_meta(node, &meta) == TN_OK &&
           (!is_whole(meta.dtype) || meta.dtype == TN_I64 || meta.dtype == TN_I32);
}

const struct onnx_rule onnx_write_reduce[] = {
    { "sum", .call = reduce, .fits = is_reducible },
    { "mean", .call = reduce, .fits = is_reducible },
    { "prod", .call = reduce, .fits = is_reducible },
    { "amax", .call = reduce, .fits = is_reducible },
    { "amin", .call = reduce, .fits = is_reducible },
    { "logsumexp", .call = reduce, .fits = is_reducible },
    { "any", .call = truth },
    { "all", .call = truth },
    { "var", .call = variance, .fits = is_reducible },
    { "std", .call = variance, .fits = is_reducible },
    { "norm", .call = norm, .fits = norm_fits },
    { "linalg_vector_norm", .call = norm, .fits = norm_fits },
    { "sum_to", .call = sum_to },
    { "softmax", .text = "Softmax(x, axis=dim)", .fits = has_dims },
    { "softmin", .text = "Softmax(Neg(x), axis=dim)", .fits = has_dims },
    { "log_softmax", .text = "LogSoftmax(x, axis=dim)", .fits = has_dims },
    { "cumsum", .call = cumsum, .fits = cumsum_fits },
    { .op = NULL },
};
