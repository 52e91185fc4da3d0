/* SPDX-License-Identifier: MIT
 *
 * Operators that make tensors or change their shapes, as nodes of ONNX (onnx.h). */
#include "export/onnx.h"

#include <string.h>

typedef const struct onnx_value value;

static int64_t dim_of(int64_t dim, int64_t ndim)
{
    return dim < 0 ? dim + ndim : dim;
}

/* The result has the elements of x in the same order. */
static void reshape(struct onnx_call *call)
{
    value *x = onnx_make_input(call, 0), *shape = onnx_make_shape(call);

    onnx_make_begin(call, "Reshape", 1);
    onnx_make_add(call, x);
    onnx_make_add(call, shape);
    for (int32_t i = 0; i < call->meta.ndim; i++)
        if (call->meta.shape[i] == 0) {
            onnx_make_int(call, "allowzero", 1);
            break;
        }
    onnx_make_give(call, 0, onnx_make_end(call));
}

static void expand(struct onnx_call *call)
{
    onnx_make_give(call, 0,
                   onnx_make_2(call, "Expand", onnx_make_input(call, 0), onnx_make_shape(call)));
}

static void transposed(struct onnx_call *call, const int64_t *order, int64_t ndim)
{
    value *x = onnx_make_input(call, 0);

    onnx_make_begin(call, "Transpose", 1);
    onnx_make_add(call, x);
    onnx_make_ints(call, "perm", order, ndim);
    onnx_make_give(call, 0, onnx_make_end(call));
}

static void permute(struct onnx_call *call)
{
    tn_ints dims = ((const tn_permute_options *)call->options)->dims;
    int64_t order[TN_MAX_DIMS];

    if (dims.count == 0) {
        onnx_make_give(call, 0, onnx_make_input(call, 0));
        return;
    }
    for (int64_t i = 0; i < dims.count; i++)
        order[i] = dim_of(dims.at[i], dims.count);
    transposed(call, order, dims.count);
}

static void transpose(struct onnx_call *call)
{
    const tn_transpose_options *o = call->options;
    int64_t order[TN_MAX_DIMS], ndim = call->meta.ndim;

    for (int64_t i = 0; i < ndim; i++)
        order[i] = i;
    if (ndim == 0) {
        onnx_make_give(call, 0, onnx_make_input(call, 0));
        return;
    }
    order[dim_of(o->dim0, ndim)] = dim_of(o->dim1, ndim);
    order[dim_of(o->dim1, ndim)] = dim_of(o->dim0, ndim);
    transposed(call, order, ndim);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static value *sliced(struct onnx_call *call, value *x, value *start, value *end, int64_t dim,
                     int64_t step)
{
    value *axes = onnx_make_list(call, &dim, 1), *steps = NULL;

    if (step != 1)
        steps = onnx_make_list(call, &step, 1);
    onnx_make_begin(call, "Slice", 1);
    onnx_make_add(call, x);
    onnx_make_add(call, start);
    onnx_make_add(call, end);
    onnx_make_add(call, axes);
    if (steps != NULL)
        onnx_make_add(call, steps);
    return onnx_make_end(call);
}

static value *size_of(struct onnx_call *call, struct export_size size)
{
    return onnx_make_sizes(call, &size, 1);
}

/* a + b, where at most one of them has symbols, or both the same. */
static bool sum_of(struct export_size a, struct export_size b, struct export_size *out)
{
    *out = a.a >= 0 ? a : b;
    if (a.a >= 0 && b.a >= 0) {
        if (a.a != b.a || a.b != b.b)
            return false;
        out->times += b.times;
        out->plus += b.plus;
    } else if (out->a >= 0) {
        out->plus += a.a >= 0 ? b.number : a.number;
    }
    out->number = a.number + b.number;
    return true;
}

static void narrow(struct onnx_call *call)
{
    const tn_narrow_options *o = call->options;
    const struct export_graph *g = &call->model->graph;
    int64_t dim = dim_of(o->dim, call->meta.ndim);
    struct export_size start = export_sizes_option(g, call->node, "start", 0, o->start);
    struct export_size length = export_sizes_option(g, call->node, "length", 0, o->length), end;
    value *x = onnx_make_input(call, 0), *from = size_of(call, start), *to;

    if (start.a < 0 && start.number < 0 && start.number + length.number == 0)
        end = export_sizes_number(INT64_MAX);
    else if (!sum_of(start, length, &end))
        end = export_sizes_number(0);
    if (start.a >= 0 && length.a >= 0 && end.a < 0)
        to = onnx_make_2(call, "Add", from, size_of(call, length));
    else
        to = size_of(call, end);
    onnx_make_give(call, 0, sliced(call, x, from, to, dim, 1));
}

static void slice(struct onnx_call *call)
{
    const tn_slice_options *o = call->options;
    const struct export_graph *g = &call->model->graph;
    int64_t dim = dim_of(o->dim, call->meta.ndim);
    struct export_size start = export_sizes_number(0), end = export_sizes_number(INT64_MAX);
    value *x = onnx_make_input(call, 0);

    if (o->start != INT64_MIN)
        start = export_sizes_option(g, call->node, "start", 0, o->start);
    if (o->end != INT64_MIN)
        end = export_sizes_option(g, call->node, "end", 0, o->end);
    onnx_make_give(call, 0,
                   sliced(call, x, size_of(call, start), size_of(call, end), dim, o->step));
}

static void select_of(struct onnx_call *call)
{
    const tn_select_options *o = call->options;
    struct export_size index = export_sizes_option(&call->model->graph, call->node, "index", 0,
                                                   o->index);
    int64_t dim = dim_of(o->dim, call->meta.ndim + 1);
    value *x = onnx_make_input(call, 0), *at;

    if (index.a < 0)
        at = onnx_make_index(call, index.number);
    else
        at = onnx_make_2(call, "Reshape", size_of(call, index), onnx_make_list(call, NULL, 0));
    onnx_make_begin(call, "Gather", 1);
    onnx_make_add(call, x);
    onnx_make_add(call, at);
    onnx_make_int(call, "axis", dim);
    onnx_make_give(call, 0, onnx_make_end(call));
}

static void flip(struct onnx_call *call)
{
    tn_ints dims = ((const tn_flip_options *)call->options)->dims;
    int64_t starts[TN_MAX_DIMS], ends[TN_MAX_DIMS], axes[TN_MAX_DIMS];
    value *x = onnx_make_input(call, 0), *a, *b, *c, *d;

    for (int64_t i = 0; i < dims.count; i++) {
        starts[i] = -1;
        ends[i] = INT64_MIN + 1;
        axes[i] = dim_of(dims.at[i], call->meta.ndim);
    }
    a = onnx_make_list(call, starts, dims.count);
    b = onnx_make_list(call, ends, dims.count);
    c = onnx_make_list(call, axes, dims.count);
    d = onnx_make_list(call, starts, dims.count);
    onnx_make_begin(call, "Slice", 1);
    onnx_make_add(call, x);
    onnx_make_add(call, a);
    onnx_make_add(call, b);
    onnx_make_add(call, c);
    onnx_make_add(call, d);
    onnx_make_give(call, 0, onnx_make_end(call));
}

/* Windows along a dimension: their elements, found by indices, become the last dimension. */
static void unfold(struct onnx_call *call)
{
    const tn_unfold_options *o = call->options;
    struct export_size at[TN_MAX_DIMS];
    int64_t ndim = onnx_make_shape_of(call, "x", at), dim = dim_of(o->dim, ndim), dims[2];
    int64_t order[TN_MAX_DIMS + 1], *indices, count;
    value *x = onnx_make_input(call, 0), *table;

    if (ndim == 0 || at[dim].a >= 0 || ndim == TN_MAX_DIMS) {
        onnx_make_fail(call, "windows of a size that varies; expected a fixed size");
        return;
    }
    dims[0] = (at[dim].number - o->window) / o->step + 1;
    dims[1] = o->window;
    count = dims[0] * dims[1];
    indices = arena_new(&call->model->arena, (uint64_t)count + 1, sizeof *indices);
    for (int64_t i = 0; i < count && indices != NULL; i++)
        indices[i] = i / dims[1] * o->step + i % dims[1];
    if (indices == NULL) {
        onnx_make_fail(call, "out of memory");
        return;
    }
    table = onnx_make_constant(call, ONNX_INDICES, dims, 2, indices,
                               (size_t)count * sizeof *indices);
    onnx_make_begin(call, "Gather", 1);
    onnx_make_add(call, x);
    onnx_make_add(call, table);
    onnx_make_int(call, "axis", dim);
    x = onnx_make_end(call);
    for (int64_t i = 0; i <= ndim; i++)
        order[i] = i <= dim ? i : i + 1;
    order[ndim] = dim + 1;
    onnx_make_begin(call, "Transpose", 1);
    onnx_make_add(call, x);
    onnx_make_ints(call, "perm", order, ndim + 1);
    onnx_make_give(call, 0, onnx_make_end(call));
}

static value *joined(struct onnx_call *call, value *const *parts, int64_t count, int64_t dim)
{
    onnx_make_begin(call, "Concat", 1);
    for (int64_t i = 0; i < count; i++)
        onnx_make_add(call, parts[i]);
    onnx_make_int(call, "axis", dim);
    return onnx_make_end(call);
}

/* The last `shift` elements come first. */
static void roll(struct onnx_call *call)
{
    const tn_roll_options *o = call->options;
    value *x = onnx_make_input(call, 0), *parts[2];

    for (int64_t i = 0; i < o->shifts.count; i++) {
        int64_t dim = dim_of(o->dims.at[i], call->meta.ndim), size = call->meta.shape[dim];
        int64_t shift = size > 0 ? (o->shifts.at[i] % size + size) % size : 0;
        value *cut;

        if (shift == 0)
            continue;
        cut = onnx_make_list(call, (int64_t[]){ size - shift }, 1);
        parts[0] = sliced(call, x, cut, onnx_make_list(call, (int64_t[]){ INT64_MAX }, 1), dim, 1);
        parts[1] = sliced(call, x, onnx_make_list(call, (int64_t[]){ 0 }, 1), cut, dim, 1);
        x = joined(call, parts, 2, dim);
    }
    onnx_make_give(call, 0, x);
}

static bool rolls_known(const tn_node *node)
{
    const tn_ints *dims = export_option(node, "dims");

    return dims != NULL && dims->count > 0;
}

/* Fills `parts` with the inputs in the dtype of the result; those of shape [0] are left out of
 * cat. */
static value **inputs_of(struct onnx_call *call, int64_t *count)
{
    int64_t n = tn_node_input_count(call->node);
    value **parts = arena_new(&call->model->arena, (uint64_t)n + 1, sizeof(*parts));

    *count = 0;
    for (int64_t i = 0; i < n && parts != NULL; i++) {
        value *x = onnx_make_input(call, i);
        tn_meta meta;

        if (tn_node_meta(tn_node_input(call->node, i), &meta) != TN_OK)
            continue;
        if (meta.ndim == 1 && meta.shape[0] == 0 && call->meta.ndim != 1)
            continue;
        parts[(*count)++] = meta.dtype == call->meta.dtype
                                ? x
                                : onnx_make_cast(call, x, call->meta.dtype);
    }
    if (parts == NULL && call->model->status == TN_OK)
        call->model->status = TN_ERR_MEMORY;
    return parts;
}

static void cat(struct onnx_call *call)
{
    int64_t dim = dim_of(((const tn_cat_options *)call->options)->dim, call->meta.ndim), count;
    value **parts = inputs_of(call, &count);

    onnx_make_give(call, 0, joined(call, parts, count, dim));
}

static void stack(struct onnx_call *call)
{
    int64_t dim = dim_of(((const tn_stack_options *)call->options)->dim, call->meta.ndim), count;
    value **parts = inputs_of(call, &count), *axis = onnx_make_list(call, &dim, 1);

    for (int64_t i = 0; i < count; i++)
        parts[i] = onnx_make_2(call, "Unsqueeze", parts[i], axis);
    onnx_make_give(call, 0, joined(call, parts, count, dim));
}

static void repeat(struct onnx_call *call)
{
    tn_ints times = ((const tn_repeat_options *)call->options)->times;
    tn_meta x = onnx_make_meta(call, "x");
    struct export_size at[TN_MAX_DIMS];
    int64_t axes[TN_MAX_DIMS], more = times.count - x.ndim;
    value *y = onnx_make_input(call, 0), *list;

    for (int64_t i = 0; i < times.count; i++) {
        axes[i] = i;
        at[i] = export_sizes_option(&call->model->graph, call->node, "times", i, times.at[i]);
    }
    if (more > 0)
        y = onnx_make_2(call, "Unsqueeze", y, onnx_make_list(call, axes, more));
    list = onnx_make_sizes(call, at, times.count);
    onnx_make_give(call, 0, times.count > 0 ? onnx_make_2(call, "Tile", y, list) : y);
}

static void triangle(struct onnx_call *call)
{
    int64_t upper = strcmp(call->def->name, "triu") == 0;
    int64_t diagonal = upper ? ((const tn_triu_options *)call->options)->diagonal
                             : ((const tn_tril_options *)call->options)->diagonal;
    value *x = onnx_make_input(call, 0), *k = onnx_make_index(call, diagonal);

    onnx_make_begin(call, "Trilu", 1);
    onnx_make_add(call, x);
    onnx_make_add(call, k);
    onnx_make_int(call, "upper", upper);
    onnx_make_give(call, 0, onnx_make_end(call));
}

/* ---- padding --------------------------------------------------------------------------------- */

static void pad(struct onnx_call *call)
{
    static const char *const modes[][2] = { { "constant", "constant" },
                                            { "reflect", "reflect" },
                                            { "replicate", "edge" },
                                            { "circular", "wrap" } };
    const tn_pad_options *o = call->options;
    int64_t sizes[2 * TN_MAX_DIMS] = { 0 }, ndim = call->meta.ndim;
    value *x = onnx_make_input(call, 0), *list, *number = NULL;

    for (int64_t i = 0; i < o->sizes.count / 2; i++) {
        sizes[ndim - 1 - i] = o->sizes.at[2 * i];
        sizes[2 * ndim - 1 - i] = o->sizes.at[2 * i + 1];
    }
    list = onnx_make_list(call, sizes, 2 * ndim);
    if (strcmp(o->mode, "constant") == 0)
        number = onnx_make_scalar(call, o->value, call->meta.dtype);
    else if (strcmp(o->mode, "circular") == 0)
        onnx_make_opset(call, 19);
    onnx_make_begin(call, "Pad", 1);
    onnx_make_add(call, x);
    onnx_make_add(call, list);
    onnx_make_add(call, number);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i][0], o->mode) == 0)
            onnx_make_word(call, "mode", modes[i][1]);
    onnx_make_give(call, 0, onnx_make_end(call));
}

/* ---- new tensors ----------------------------------------------------------------------------- */

static void full(struct onnx_call *call)
{
    tn_scalar number = strcmp(call->def->name, "fill") == 0
                           ? ((const tn_fill_options *)call->options)->value
                           : ((const tn_full_options *)call->options)->value;
    value *one = onnx_make_scalar(call, number, call->meta.dtype), *shape;

    if (call->meta.ndim == 0) {
        onnx_make_give(call, 0, one);
        return;
    }
    shape = onnx_make_shape(call);
    onnx_make_give(call, 0, onnx_make_2(call, "Expand", one, shape));
}

static value *bound(struct onnx_call *call, const char *name, tn_scalar number)
{
    struct export_size size = export_sizes_option(&call->model->graph, call->node, name, 0,
                                                  number.as.i);
    value *list;

    if (size.a < 0)
        return onnx_make_scalar(call, number, call->meta.dtype);
    list = onnx_make_2(call, "Reshape", size_of(call, size), onnx_make_list(call, NULL, 0));
    return call->meta.dtype == TN_I64 ? list : onnx_make_cast(call, list, call->meta.dtype);
}

static void arange(struct onnx_call *call)
{
    const tn_arange_options *o = call->options;
    value *start = bound(call, "start", o->start), *end = bound(call, "end", o->end);

    onnx_make_give(call, 0,
                   onnx_make_node(call, "Range", start, end, bound(call, "step", o->step)));
}

/* Classes are compared with the indices. */
static void one_hot(struct onnx_call *call)
{
    int64_t classes = ((const tn_one_hot_options *)call->options)->classes, last = -1;
    value *x = onnx_make_input(call, 0), *y, *all;

    x = onnx_make_2(call, "Unsqueeze", x, onnx_make_list(call, &last, 1));
    all = onnx_make_node(call, "Range", onnx_make_index(call, 0), onnx_make_index(call, classes),
                         onnx_make_index(call, 1));
    y = onnx_make_2(call, "Equal", x, all);
    onnx_make_give(call, 0, onnx_make_cast(call, y, call->meta.dtype));
}

static bool has_classes(const tn_node *node)
{
    const int64_t *classes = export_option(node, "classes");
    tn_meta meta;

    return classes != NULL && *classes > 0 &&
           tn_node_meta(tn_node_input(node, 0), &meta) == TN_OK && meta.dtype == TN_I64;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static void pixel_shuffle(struct onnx_call *call)
{
    int64_t factor = ((const tn_pixel_shuffle_options *)call->options)->upscale_factor;
    value *x = onnx_make_input(call, 0);

    onnx_make_begin(call, "DepthToSpace", 1);
    onnx_make_add(call, x);
    onnx_make_int(call, "blocksize", factor);
    onnx_make_word(call, "mode", "CRD");
    onnx_make_give(call, 0, onnx_make_end(call));
}

static bool is_image(const tn_node *node)
{
    tn_meta meta;

    return tn_node_meta(node, &meta) == TN_OK && meta.ndim == 4;
}

const struct onnx_rule onnx_write_shapes[] = {
    { "reshape", .call = reshape },
    { "view", .call = reshape },
    { "flatten", .call = reshape },
    { "unsqueeze", .call = reshape },
    { "squeeze", .call = reshape },
    { "expand", .call = expand },
    { "permute", .call = permute },
    { "transpose", .call = transpose },
    { "narrow", .call = narrow },
    { "slice", .call = slice },
    { "select", .call = select_of },
    { "flip", .call = flip },
    { "roll", .call = roll, .fits = rolls_known },
    { "unfold", .call = unfold },
    { "cat", .call = cat },
    { "stack", .call = stack },
    { "repeat", .call = repeat },
    { "tril", .call = triangle },
    { "triu", .call = triangle },
    { "pad", .call = pad },
    { "full", .call = full },
    { "fill", .call = full },
    { "arange", .call = arange },
    { "one_hot", .call = one_hot, .fits = has_classes },
    { "pixel_shuffle", .call = pixel_shuffle, .fits = is_image },
    { .op = NULL },
};
