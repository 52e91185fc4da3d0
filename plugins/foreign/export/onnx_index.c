/* SPDX-License-Identifier: MIT
 *
 * Operators that find elements by their indices or order them, as nodes of ONNX (onnx.h). */
#include "export/onnx.h"

#include <string.h>

typedef const struct onnx_value value;

static int64_t dim_of(int64_t dim, int64_t ndim)
{
    return dim < 0 ? dim + ndim : dim;
}

static void picked(struct onnx_call *call, const char *op, value *x, value *index, int64_t axis)
{
    onnx_make_begin(call, op, 1);
    onnx_make_add(call, x);
    onnx_make_add(call, index);
    onnx_make_int(call, "axis", axis);
    onnx_make_give(call, 0, onnx_make_end(call));
}

static void embedding(struct onnx_call *call)
{
    value *weight = onnx_make_input(call, 0);

    picked(call, "Gather", weight, onnx_make_input(call, 1), 0);
}

static void index_select(struct onnx_call *call)
{
    int64_t dim = ((const tn_index_select_options *)call->options)->dim;
    tn_meta x = onnx_make_meta(call, "x");

    picked(call, "Gather", onnx_make_input(call, 0), onnx_make_input(call, 1), dim_of(dim, x.ndim));
}

static void gather(struct onnx_call *call)
{
    int64_t dim = ((const tn_gather_options *)call->options)->dim;

    picked(call, "GatherElements", onnx_make_input(call, 0), onnx_make_input(call, 1),
           dim_of(dim, call->meta.ndim));
}

/* GatherElements and ScatterElements need as many dimensions as x has, at least one. */
static bool has_dims(const tn_node *node)
{
    tn_meta x, index;

    return tn_node_meta(tn_node_input(node, 0), &x) == TN_OK &&
           tn_node_meta(tn_node_input(node, 1), &index) == TN_OK && x.ndim > 0 &&
           index.ndim == x.ndim;
}

static bool sources_fit(const tn_node *node)
{
    tn_meta index, src;

    if (!has_dims(node) || tn_node_meta(tn_node_input(node, 1), &index) != TN_OK ||
        tn_node_meta(tn_node_input(node, 2), &src) != TN_OK || src.ndim != index.ndim)
        return false;
    for (int32_t i = 0; i < src.ndim; i++)
        if (src.shape[i] != index.shape[i])
            return false;
    return true;
}

static void scatter(struct onnx_call *call)
{
    bool adds = strcmp(call->def->name, "scatter_add") == 0;
    int64_t dim = adds ? ((const tn_scatter_add_options *)call->options)->dim
                       : ((const tn_scatter_options *)call->options)->dim;
    value *x = onnx_make_input(call, 0), *index = onnx_make_input(call, 1);
    value *src = onnx_make_in(call, "src");

    onnx_make_begin(call, "ScatterElements", 1);
    onnx_make_add(call, x);
    onnx_make_add(call, index);
    onnx_make_add(call, src);
    onnx_make_int(call, "axis", dim_of(dim, call->meta.ndim));
    if (adds)
        onnx_make_word(call, "reduction", "add");
    onnx_make_give(call, 0, onnx_make_end(call));
}

/* ---- index ----------------------------------------------------------------------------------- */

static int64_t first_dim(const tn_node *node)
{
    const tn_ints *dims = export_option(node, "dims");

    return dims != NULL && dims->count > 0 ? dims->at[0] : 0;
}

static bool is_neighbours(const tn_ints *dims)
{
    for (int64_t i = 1; dims != NULL && i < dims->count; i++)
        if (dims->at[i] != dims->at[i - 1] + 1)
            return false;
    return true;
}

/* Indices, and not masks, of neighbouring dimensions. */
static bool indices_fit(const tn_node *node)
{
    int64_t count = tn_node_input_count(node);
    const tn_ints *dims = export_option(node, "dims");
    bool fits = count >= 2 && is_neighbours(dims) && (count == 2 || first_dim(node) == 0);
    tn_meta meta;

    for (int64_t i = 1; i < count && fits; i++)
        fits = tn_node_meta(tn_node_input(node, i), &meta) == TN_OK && meta.dtype != TN_BOOL;
    return fits;
}

/* The indices side by side in a new last dimension: their shapes broadcast to `shape`. */
static value *index_rows(struct onnx_call *call, int64_t ndim)
{
    const struct export_graph *g = &call->model->graph;
    struct export_size at[TN_MAX_DIMS], shape[TN_MAX_DIMS];
    int64_t count = tn_node_input_count(call->node), last = -1;
    value *list, *parts[TN_MAX_DIMS], *axis = onnx_make_list(call, &last, 1);

    for (int64_t i = 0; i < ndim; i++)
        shape[i] = export_sizes_number(1);
    for (int64_t k = 1; k < count; k++) {
        int32_t n = export_sizes_of(g, tn_node_input(call->node, k), at);

        for (int32_t i = 0; i < n; i++)
            if (at[i].a >= 0 || at[i].number != 1)
                shape[ndim - n + i] = at[i];
    }
    list = onnx_make_sizes(call, shape, ndim);
    for (int64_t k = 1; k < count && k <= TN_MAX_DIMS; k++) {
        tn_meta meta;
        value *x = onnx_make_input(call, k);

        if (tn_node_meta(tn_node_input(call->node, k), &meta) == TN_OK && meta.dtype != TN_I64)
            x = onnx_make_cast(call, x, TN_I64);
        if (ndim > 0)
            x = onnx_make_2(call, "Expand", x, list);
        parts[k - 1] = onnx_make_2(call, "Unsqueeze", x, axis);
    }
    onnx_make_begin(call, "Concat", 1);
    for (int64_t k = 1; k < count; k++)
        onnx_make_add(call, parts[k - 1]);
    onnx_make_int(call, "axis", -1);
    return onnx_make_end(call);
}

static void index_of(struct onnx_call *call)
{
    int64_t count = tn_node_input_count(call->node) - 1;
    tn_meta x = onnx_make_meta(call, "x");
    value *from = onnx_make_input(call, 0);

    if (count == 1)
        picked(call, "Gather", from, onnx_make_input(call, 1), first_dim(call->node));
    else
        onnx_make_give(call, 0,
                       onnx_make_2(call, "GatherND", from,
                                   index_rows(call, call->meta.ndim - (x.ndim - count))));
}

/* ---- order ----------------------------------------------------------------------------------- */

static void ordered(struct onnx_call *call, value *count, int64_t dim, bool largest)
{
    value *x = onnx_make_input(call, 0), *y;

    onnx_make_begin(call, "TopK", 2);
    onnx_make_add(call, x);
    onnx_make_add(call, count);
    onnx_make_int(call, "axis", dim);
    onnx_make_int(call, "largest", largest);
    y = onnx_make_end(call);
    onnx_make_give(call, 0, y);
    onnx_make_give(call, 1, onnx_make_output(call, 1));
}

static void topk(struct onnx_call *call)
{
    const tn_topk_options *o = call->options;

    ordered(call, onnx_make_list(call, &o->k, 1), o->dim, o->largest);
}

static void sort(struct onnx_call *call)
{
    const tn_sort_options *o = call->options;
    struct export_size at[TN_MAX_DIMS];
    int64_t ndim = onnx_make_shape_of(call, "x", at), dim = dim_of(o->dim, ndim);

    if (dim < ndim)
        ordered(call, onnx_make_sizes(call, &at[dim], 1), o->dim, o->descending);
}

static bool not_scalar(const tn_node *node)
{
    tn_meta meta;

    return tn_node_meta(tn_node_input(node, 0), &meta) == TN_OK && meta.ndim > 0 &&
           meta.dtype != TN_BOOL;
}

static void argument(struct onnx_call *call)
{
    bool largest = strcmp(call->def->name, "argmax") == 0;
    int64_t dim = largest ? ((const tn_argmax_options *)call->options)->dim
                          : ((const tn_argmin_options *)call->options)->dim;
    bool keep = largest ? ((const tn_argmax_options *)call->options)->keepdim
                        : ((const tn_argmin_options *)call->options)->keepdim;
    bool flat = dim == INT64_MIN;
    value *x = onnx_make_input(call, 0), *y;

    if (flat)
        x = onnx_make_2(call, "Reshape", x, onnx_make_list(call, (int64_t[]){ -1 }, 1));
    onnx_make_begin(call, largest ? "ArgMax" : "ArgMin", 1);
    onnx_make_add(call, x);
    onnx_make_int(call, "axis", flat ? 0 : dim);
    onnx_make_int(call, "keepdims", keep && !flat);
    y = onnx_make_end(call);
    if (flat && keep)
        y = onnx_make_2(call, "Reshape", y, onnx_make_shape(call));
    onnx_make_give(call, 0, y);
}

static void extreme(struct onnx_call *call)
{
    bool largest = strcmp(call->def->name, "max_dim") == 0;
    int64_t dim = largest ? ((const tn_max_dim_options *)call->options)->dim
                          : ((const tn_min_dim_options *)call->options)->dim;
    bool keep = largest ? ((const tn_max_dim_options *)call->options)->keepdim
                        : ((const tn_min_dim_options *)call->options)->keepdim;
    value *x = onnx_make_input(call, 0), *at;
    int64_t axis = dim;

    onnx_make_begin(call, largest ? "ArgMax" : "ArgMin", 1);
    onnx_make_add(call, x);
    onnx_make_int(call, "axis", axis);
    onnx_make_int(call, "keepdims", 1);
    at = onnx_make_end(call);
    onnx_make_begin(call, "GatherElements", 1);
    onnx_make_add(call, x);
    onnx_make_add(call, at);
    onnx_make_int(call, "axis", axis);
    x = onnx_make_end(call);
    if (!keep) {
        x = onnx_make_2(call, "Squeeze", x, onnx_make_list(call, &axis, 1));
        at = onnx_make_2(call, "Squeeze", at, onnx_make_list(call, &axis, 1));
    }
    onnx_make_give(call, 0, x);
    onnx_make_give(call, 1, at);
}

const struct onnx_rule onnx_write_index[] = {
    { "embedding", .call = embedding },
    { "index_select", .call = index_select },
    { "gather", .call = gather, .fits = has_dims },
    { "scatter", .call = scatter, .fits = sources_fit },
    { "scatter_add", .call = scatter, .fits = sources_fit },
    { "index", .call = index_of, .fits = indices_fit },
    { "topk", .call = topk, .fits = not_scalar },
    { "sort", .call = sort, .fits = not_scalar },
    { "argmax", .call = argument, .fits = not_scalar },
    { "argmin", .call = argument, .fits = not_scalar },
    { "max_dim", .call = extreme, .fits = not_scalar },
    { "min_dim", .call = extreme, .fits = not_scalar },
    { .op = NULL },
};
