/* SPDX-License-Identifier: MIT
 *
 * Convolutions, pooling and resampling as nodes of ONNX (onnx.h). */
#include "export/onnx.h"

#include <stdlib.h>
#include <string.h>

typedef const struct onnx_value value;

/* The options of a window along each of `n` dimensions. */
struct window {
    int64_t n;
    int64_t kernel[3], stride[3], padding[3], dilation[3];
};

static void fill(int64_t *out, int64_t n, const tn_ints *given, int64_t otherwise)
{
    for (int64_t i = 0; i < n && i < 3; i++)
        out[i] = given == NULL || given->count <= 0 ? otherwise
                 : given->count == 1                ? given->at[0]
                                                    : given->at[i];
}

static struct window window_of(const struct onnx_call *call, int64_t n)
{
    struct window w = { .n = n < 3 ? n : 3 };
    const tn_ints *stride = export_option(call->node, "stride");

    fill(w.kernel, n, export_option(call->node, "kernel"), 1);
    fill(w.stride, n, stride, 1);
    if (export_option(call->node, "kernel") != NULL && (stride == NULL || stride->count <= 0))
        memcpy(w.stride, w.kernel, sizeof w.stride);
    fill(w.padding, n, export_option(call->node, "padding"), 0);
    fill(w.dilation, n, export_option(call->node, "dilation"), 1);
    return w;
}

/* x with a dimension for the images in front, if it has none. */
static value *with_images(struct onnx_call *call, int64_t ndim, int64_t n)
{
    value *x = onnx_make_in(call, "x");
    int64_t first = 0;

    return ndim == n + 1 ? onnx_make_2(call, "Unsqueeze", x, onnx_make_list(call, &first, 1)) : x;
}

static void give(struct onnx_call *call, value *y, int64_t ndim, int64_t n)
{
    int64_t first = 0;

    if (ndim == n + 1)
        y = onnx_make_2(call, "Squeeze", y, onnx_make_list(call, &first, 1));
    onnx_make_give(call, 0, y);
}

/* ---- convolutions ---------------------------------------------------------------------------- */

static void put_pads(struct onnx_call *call, const int64_t *before, const int64_t *after, int64_t n)
{
    int64_t pads[6];

    for (int64_t i = 0; i < n; i++) {
        pads[i] = before[i];
        pads[n + i] = after[i];
    }
    onnx_make_ints(call, "pads", pads, 2 * n);
}

static void conv(struct onnx_call *call)
{
    tn_meta weight = onnx_make_meta(call, "weight"), meta = onnx_make_meta(call, "x");
    int64_t n = weight.ndim - 2, after[3];
    const char *const *same = export_option(call->node, "auto_padding");
    struct window w = window_of(call, n);
    value *x = with_images(call, meta.ndim, n), *k = onnx_make_in(call, "weight");
    value *bias = onnx_make_in(call, "bias");

    for (int64_t i = 0; i < n; i++) {
        w.kernel[i] = weight.shape[2 + i];
        after[i] = w.padding[i];
        if (same != NULL && *same != NULL) {
            int64_t all = strcmp(*same, "same") == 0 ? w.dilation[i] * (w.kernel[i] - 1) : 0;

            w.padding[i] = all / 2;
            after[i] = all - all / 2;
        }
    }
    onnx_make_begin(call, "Conv", 1);
    onnx_make_add(call, x);
    onnx_make_add(call, k);
    onnx_make_add(call, bias);
    onnx_make_ints(call, "kernel_shape", w.kernel, n);
    onnx_make_ints(call, "strides", w.stride, n);
    onnx_make_ints(call, "dilations", w.dilation, n);
    onnx_make_int(call, "group", *(const int64_t *)export_option(call->node, "groups"));
    put_pads(call, w.padding, after, n);
    give(call, onnx_make_end(call), meta.ndim, n);
}

static void conv_transpose(struct onnx_call *call)
{
    tn_meta weight = onnx_make_meta(call, "weight"), meta = onnx_make_meta(call, "x");
    int64_t n = weight.ndim - 2, more[3];
    struct window w = window_of(call, n);
    value *x = with_images(call, meta.ndim, n), *k = onnx_make_in(call, "weight");
    value *bias = onnx_make_in(call, "bias");

    fill(more, n, export_option(call->node, "output_padding"), 0);
    for (int64_t i = 0; i < n; i++)
        w.kernel[i] = weight.shape[2 + i];
    onnx_make_begin(call, "ConvTranspose", 1);
    onnx_make_add(call, x);
    onnx_make_add(call, k);
    onnx_make_add(call, bias);
    onnx_make_ints(call, "kernel_shape", w.kernel, n);
    onnx_make_ints(call, "strides", w.stride, n);
    onnx_make_ints(call, "dilations", w.dilation, n);
    onnx_make_ints(call, "output_padding", more, n);
    onnx_make_int(call, "group", *(const int64_t *)export_option(call->node, "groups"));
    put_pads(call, w.padding, w.padding, n);
    give(call, onnx_make_end(call), meta.ndim, n);
}

/* ---- pooling --------------------------------------------------------------------------------- */

static int64_t dims_in_name(const char *name)
{
    const char *digit = strpbrk(name, "123");

    return digit != NULL ? *digit - '0' : 0;
}

/* Versions of ONNX differ in whether the last window may begin in the padding, so where the sizes
 * are known the padding at the end is what makes the size of the result. */
static void pool_ends(const struct onnx_call *call, const struct window *w, const tn_meta *x,
                      int64_t *after)
{
    for (int64_t i = 0; i < w->n; i++) {
        int64_t in = x->shape[x->ndim - w->n + i],
                out = call->meta.shape[call->meta.ndim - w->n + i];
        int64_t need = (out - 1) * w->stride[i] + w->dilation[i] * (w->kernel[i] - 1) + 1 - in -
                       w->padding[i];

        after[i] = need > w->padding[i] ? need : w->padding[i];
    }
}

static void max_pool(struct onnx_call *call)
{
    tn_meta meta = onnx_make_meta(call, "x");
    int64_t n = dims_in_name(call->def->name), after[3];
    struct window w = window_of(call, n != 0 ? n : meta.ndim - 2);
    bool ceil = *(const bool *)export_option(call->node, "ceil_mode");
    bool varies = call->model->graph.n_symbols > 0;
    value *x = with_images(call, meta.ndim, w.n);

    memcpy(after, w.padding, sizeof after);
    if (ceil && !varies)
        pool_ends(call, &w, &meta, after);
    onnx_make_begin(call, "MaxPool", 1);
    onnx_make_add(call, x);
    onnx_make_ints(call, "kernel_shape", w.kernel, w.n);
    onnx_make_ints(call, "strides", w.stride, w.n);
    onnx_make_ints(call, "dilations", w.dilation, w.n);
    if (ceil && varies)
        onnx_make_int(call, "ceil_mode", 1);
    put_pads(call, w.padding, after, w.n);
    give(call, onnx_make_end(call), meta.ndim, w.n);
}

/* The indices of ONNX count over all images. */
static bool no_indices(const tn_node *node)
{
    return tn_node_item_count(node) < 2 || tn_node_user_count(tn_node_item(node, 1)) == 0;
}

static void avg_pool(struct onnx_call *call)
{
    tn_meta meta = onnx_make_meta(call, "x");
    int64_t n = dims_in_name(call->def->name);
    int64_t divisor = *(const int64_t *)export_option(call->node, "divisor_override"), all = 1;
    struct window w = window_of(call, n != 0 ? n : meta.ndim - 2);
    bool ceil = *(const bool *)export_option(call->node, "ceil_mode");
    bool counts = *(const bool *)export_option(call->node, "count_include_pad");
    value *x = with_images(call, meta.ndim, w.n), *y;

    onnx_make_begin(call, "AveragePool", 1);
    onnx_make_add(call, x);
    onnx_make_ints(call, "kernel_shape", w.kernel, w.n);
    onnx_make_ints(call, "strides", w.stride, w.n);
    onnx_make_int(call, "ceil_mode", ceil);
    onnx_make_int(call, "count_include_pad", counts || divisor != INT64_MIN);
    put_pads(call, w.padding, w.padding, w.n);
    y = onnx_make_end(call);
    for (int64_t i = 0; i < w.n; i++)
        all *= w.kernel[i];
    if (divisor != INT64_MIN)
        y = onnx_make_2(call, "Mul", y,
                        onnx_make_number(call, (double)all / (double)divisor, call->meta.dtype));
    give(call, y, meta.ndim, w.n);
}

/* Windows that do not divide x evenly: a product with the weights of each window, along each
 * dimension. */
static value *adaptive_mean(struct onnx_call *call, value *x, const tn_meta *meta, int64_t dim,
                            int64_t ndim)
{
    int64_t in = meta->shape[dim], out = call->meta.shape[dim], dims[2] = { in, out };
    int64_t order[TN_MAX_DIMS];
    double *table = tn_calloc((size_t)(in * out) + 1, sizeof *table);
    value *matrix;

    for (int64_t o = 0; o < out && table != NULL; o++) {
        int64_t first = o * in / out, end = ((o + 1) * in + out - 1) / out;

        for (int64_t i = first; i < end; i++)
            table[i * out + o] = 1.0 / (double)(end - first);
    }
    if (table == NULL) {
        onnx_make_fail(call, "out of memory");
        return NULL;
    }
    matrix = onnx_make_table(call, table, dims, 2, call->meta.dtype);
    tn_free(table);
    for (int64_t i = 0; i < ndim; i++)
        order[i] = i;
    order[dim] = ndim - 1;
    order[ndim - 1] = dim;
    for (int i = 0; i < 3; i++) { /* the dimension becomes the last one, and goes back */
        if (i == 1) {
            x = onnx_make_2(call, "MatMul", x, matrix);
        } else if (dim != ndim - 1) {
            onnx_make_begin(call, "Transpose", 1);
            onnx_make_add(call, x);
            onnx_make_ints(call, "perm", order, ndim);
            x = onnx_make_end(call);
        }
    }
    return x;
}

static void adaptive_pool(struct onnx_call *call)
{
    bool largest = strncmp(call->def->name, "adaptive_max", 12) == 0;
    tn_meta meta = onnx_make_meta(call, "x");
    int64_t n = dims_in_name(call->def->name), kernel[3];
    bool one = true, even = true;
    value *x;

    for (int64_t i = 0; i < n; i++) {
        int64_t in = meta.shape[meta.ndim - n + i], out = call->meta.shape[meta.ndim - n + i];

        one &= out == 1;
        even &= out > 0 && in % out == 0;
        kernel[i] = out > 0 ? in / out : 1;
    }
    if (!one && !even) {
        x = onnx_make_in(call, "x");
        for (int64_t i = meta.ndim - n; i < meta.ndim; i++)
            if (meta.shape[i] != call->meta.shape[i])
                x = adaptive_mean(call, x, &meta, i, meta.ndim);
        onnx_make_give(call, 0, x);
        return;
    }
    x = with_images(call, meta.ndim, n);
    if (one) {
        x = onnx_make_1(call, largest ? "GlobalMaxPool" : "GlobalAveragePool", x);
    } else {
        onnx_make_begin(call, largest ? "MaxPool" : "AveragePool", 1);
        onnx_make_add(call, x);
        onnx_make_ints(call, "kernel_shape", kernel, n);
        onnx_make_ints(call, "strides", kernel, n);
        x = onnx_make_end(call);
    }
    give(call, x, meta.ndim, n);
}

/* The largest elements of uneven windows have no node. */
static bool is_even(const tn_node *node)
{
    tn_meta x, y;
    int64_t n = dims_in_name(tn_node_target(node));

    if (tn_node_meta(tn_node_input(node, 0), &x) != TN_OK || tn_node_meta(node, &y) != TN_OK)
        return false;
    for (int64_t i = x.ndim - n; i < x.ndim; i++)
        if (y.shape[i] == 0 || x.shape[i] % y.shape[i] != 0)
            return false;
    return true;
}

/* ---- resampling ------------------------------------------------------------------------------ */

static void put_mode(struct onnx_call *call, const tn_interpolate_options *o)
{
    bool nearest = strcmp(o->mode, "nearest") == 0, exact = strcmp(o->mode, "nearest-exact") == 0;
    bool cubic = strcmp(o->mode, "bicubic") == 0;

    onnx_make_word(call, "mode", nearest || exact ? "nearest" : cubic ? "cubic" : "linear");
    onnx_make_word(call, "coordinate_transformation_mode",
                   nearest            ? "asymmetric"
                   : o->align_corners ? "align_corners"
                                      : "half_pixel");
    if (nearest || exact)
        onnx_make_word(call, "nearest_mode", nearest ? "floor" : "round_prefer_ceil");
    if (cubic)
        onnx_make_float(call, "cubic_coeff_a", -0.75);
}

static void interpolate(struct onnx_call *call)
{
    const tn_interpolate_options *o = call->options;
    bool scaled = o->scale_factor.count > 0 && !o->recompute_scale_factor;
    double scales[TN_MAX_DIMS];
    int64_t ndim = call->meta.ndim, n = ndim - 2;
    value *x = onnx_make_in(call, "x"), *factors = NULL, *sizes = NULL;

    for (int64_t i = 0; i < ndim; i++)
        scales[i] = i < 2 || !scaled ? 1
                                     : o->scale_factor.at[o->scale_factor.count == n ? i - 2 : 0];
    if (scaled)
        factors = onnx_make_table(call, scales, &ndim, 1, TN_F32);
    else
        sizes = onnx_make_shape(call);
    onnx_make_begin(call, "Resize", 1);
    onnx_make_add(call, x);
    onnx_make_add(call, NULL);
    onnx_make_add(call, factors);
    if (sizes != NULL)
        onnx_make_add(call, sizes);
    put_mode(call, o);
    onnx_make_give(call, 0, onnx_make_end(call));
}

static bool is_resize(const tn_node *node)
{
    const char *const *mode = export_option(node, "mode");

    return mode != NULL && strcmp(*mode, "area") != 0;
}

static void grid_sample(struct onnx_call *call)
{
    const tn_grid_sample_options *o = call->options;
    value *x = onnx_make_in(call, "x"), *grid = onnx_make_in(call, "grid");
    bool newer = call->model->opset >= 20;

    onnx_make_begin(call, "GridSample", 1);
    onnx_make_add(call, x);
    onnx_make_add(call, grid);
    onnx_make_word(call, "mode",
                   newer && strcmp(o->mode, "bilinear") == 0  ? "linear"
                   : newer && strcmp(o->mode, "bicubic") == 0 ? "cubic"
                                                              : o->mode);
    onnx_make_word(call, "padding_mode", o->padding_mode);
    onnx_make_int(call, "align_corners", o->align_corners);
    onnx_make_give(call, 0, onnx_make_end(call));
}

static bool is_image(const tn_node *node)
{
    tn_meta meta;

    return tn_node_meta(node, &meta) == TN_OK && meta.ndim == 4;
}

const struct onnx_rule onnx_write_windows[] = {
    { "convolution", .call = conv },
    { "conv1d", .call = conv },
    { "conv2d", .call = conv },
    { "conv3d", .call = conv },
    { "conv_transpose1d", .call = conv_transpose },
    { "conv_transpose2d", .call = conv_transpose },
    { "conv_transpose3d", .call = conv_transpose },
    { "max_pool", .call = max_pool, .fits = no_indices },
    { "max_pool1d", .call = max_pool },
    { "max_pool2d", .call = max_pool },
    { "max_pool3d", .call = max_pool },
    { "avg_pool", .call = avg_pool },
    { "avg_pool1d", .call = avg_pool },
    { "avg_pool2d", .call = avg_pool },
    { "avg_pool3d", .call = avg_pool },
    { "adaptive_avg_pool1d", .call = adaptive_pool },
    { "adaptive_avg_pool2d", .call = adaptive_pool },
    { "adaptive_avg_pool3d", .call = adaptive_pool },
    { "adaptive_max_pool1d", .call = adaptive_pool, .fits = is_even },
    { "adaptive_max_pool2d", .call = adaptive_pool, .fits = is_even },
    { "adaptive_max_pool3d", .call = adaptive_pool, .fits = is_even },
    { "interpolate", .call = interpolate, .fits = is_resize },
    { "grid_sample", .call = grid_sample, .fits = is_image },
    { .op = NULL },
};
