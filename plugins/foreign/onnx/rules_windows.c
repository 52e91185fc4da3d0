/* SPDX-License-Identifier: MIT
 *
 * Rules for convolutions and pooling: windows over the dimensions after N and C, with padding that
 * may differ at the two ends. */
#include "onnx/onnx_rules.h"

#include <string.h>

enum { SPATIAL = TN_MAX_DIMS };

/* The windows along each dimension. */
struct windows {
    int64_t n; /* dimensions */
    int64_t in[SPATIAL], kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL];
    int64_t begin[SPATIAL], end[SPATIAL]; /* padding, so that the windows fit exactly */
    int64_t pad_end[SPATIAL];             /* padding of the file */
    int64_t out[SPATIAL];
    bool same; /* padding is the same at both ends, and `out` follows from it */
};

static tn_status read_sizes(tn_rule_call *call, const char *name, int64_t n, int64_t other,
                            int64_t *out)
{
    tn_ints given = rule_ints(call, name);

    if (call->status != TN_OK)
        return call->status;
    if (given.count >= 0 && given.count != n)
        return rule_fail(call, TN_ERR_VALUE, "%s: %lld numbers; expected %lld", name,
                         (long long)given.count, (long long)n);
    for (int64_t i = 0; i < n; i++) {
        out[i] = given.count >= 0 ? given.at[i] : other;
        if (out[i] < 1 || out[i] > INT32_MAX)
            return rule_fail(call, TN_ERR_VALUE, "%s: out of range, got %lld; expected 1 to %d",
                             name, (long long)out[i], INT32_MAX);
    }
    return TN_OK;
}

static tn_status read_pads(tn_rule_call *call, struct windows *w)
{
    tn_ints pads = rule_ints(call, "pads");

    if (call->status == TN_OK && pads.count >= 0 && pads.count != 2 * w->n)
        return rule_fail(call, TN_ERR_VALUE, "pads: %lld numbers; expected %lld",
                         (long long)pads.count, (long long)(2 * w->n));
    for (int64_t i = 0; i < w->n && call->status == TN_OK; i++) {
        w->begin[i] = pads.count >= 0 ? pads.at[i] : 0;
        w->pad_end[i] = pads.count >= 0 ? pads.at[w->n + i] : 0;
        if (w->begin[i] < -INT32_MAX || w->begin[i] > INT32_MAX || w->pad_end[i] < -INT32_MAX ||
            w->pad_end[i] > INT32_MAX)
            return rule_fail(call, TN_ERR_VALUE,
                             "pads: out of range, got %lld and %lld; expected less than 2^31",
                             (long long)w->begin[i], (long long)w->pad_end[i]);
    }
    return call->status;
}

/* Reads kernel, strides, dilations and padding. */
static tn_status read_windows(tn_rule_call *call, tn_tensor *x, tn_ints kernel, bool ceil_mode,
                              struct windows *w)
{
    bool upper = onnx_is(call, "auto_pad", "SAME_UPPER");
    bool same = upper || onnx_is(call, "auto_pad", "SAME_LOWER");

    if (call->status != TN_OK)
        return call->status;
    w->n = tn_tensor_ndim(x) - 2;
    if (w->n < 1 || kernel.count != w->n)
        return rule_fail(call, TN_ERR_VALUE,
                         "input: %d dimensions, kernel: %lld; expected N, C "
                         "and those of the kernel",
                         (int)tn_tensor_ndim(x), (long long)kernel.count);
    if (read_sizes(call, "strides", w->n, 1, w->stride) != TN_OK ||
        read_sizes(call, "dilations", w->n, 1, w->dilation) != TN_OK || read_pads(call, w) != TN_OK)
        return call->status;
    w->same = true;
    for (int64_t i = 0; i < w->n; i++) {
        int64_t window, space;

        w->in[i] = tn_tensor_size(x, i + 2);
        w->kernel[i] = kernel.at[i];
        if (kernel.at[i] < 1 || kernel.at[i] > INT32_MAX)
            return rule_fail(call, TN_ERR_VALUE, "kernel: out of range, got %lld; expected 1 to %d",
                             (long long)kernel.at[i], INT32_MAX);
        window = (w->kernel[i] - 1) * w->dilation[i] + 1;
        if (same) {
            w->out[i] = (w->in[i] + w->stride[i] - 1) / w->stride[i];
            space = (w->out[i] - 1) * w->stride[i] + window - w->in[i];
            space = space < 0 ? 0 : space;
            w->begin[i] = upper ? space / 2 : (space + 1) / 2;
            w->pad_end[i] = space - w->begin[i];
        }
        space = w->in[i] + w->begin[i] + w->pad_end[i] - window;
        if (space < 0)
            return rule_fail(call, TN_ERR_VALUE,
                             "input: size %lld; expected at least a window of "
                             "%lld",
                             (long long)w->in[i], (long long)window);
        w->out[i] = space / w->stride[i] + 1;
        if (ceil_mode && space % w->stride[i] != 0 &&
            w->out[i] * w->stride[i] < w->in[i] + w->begin[i])
            w->out[i]++;
        w->end[i] = (w->out[i] - 1) * w->stride[i] + window - w->in[i] - w->begin[i];
        w->same = w->same && w->begin[i] >= 0 &&
                  (w->in[i] + 2 * w->begin[i] - window) / w->stride[i] + 1 == w->out[i] &&
                  w->in[i] + 2 * w->begin[i] >= window;
    }
    return TN_OK;
}

static tn_ints list(const int64_t *at, int64_t n)
{
    return (tn_ints){ at, n };
}

/* x with the padding of the windows; `end` NULL: that which makes them fit. */
static tn_tensor *padded(tn_tensor *x, const struct windows *w, const int64_t *end, double value)
{
    int64_t sizes[2 * SPATIAL];
    bool any = false;

    end = end != NULL ? end : w->end;
    for (int64_t i = 0; i < w->n; i++) {
        sizes[2 * (w->n - 1 - i)] = w->begin[i];
        sizes[2 * (w->n - 1 - i) + 1] = end[i];
        any = any || w->begin[i] != 0 || end[i] != 0;
    }
    return any ? tn_pad(x, list(sizes, 2 * w->n), "constant", tn_scalar_float(value)) : x;
}

/* ---- convolutions ---------------------------------------------------------------------------- */

tn_status onnx_conv(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *weight = rule_tensor(call, "W");
    tn_tensor *bias = rule_optional(call, "B");
    int64_t groups = rule_int(call, "group");
    struct windows w;
    tn_ints shape;

    if (call->status != TN_OK)
        return call->status;
    shape = tn_tensor_shape(weight);
    if (shape.count < 3)
        return rule_fail(call, TN_ERR_VALUE, "W: %lld dimensions; expected at least 3",
                         (long long)shape.count);
    if (read_windows(call, x, list(shape.at + 2, shape.count - 2), false, &w) != TN_OK)
        return call->status;
    if (w.same)
        return rule_give(call, tn_convolution(x, weight, bias, list(w.stride, w.n),
                                              list(w.begin, w.n), list(w.dilation, w.n), groups));
    return rule_give(call, tn_convolution(padded(x, &w, NULL, 0), weight, bias, list(w.stride, w.n),
                                          tn_no_ints(), list(w.dilation, w.n), groups));
}

static tn_tensor *transposed(tn_tensor *x, tn_tensor *weight, tn_tensor *bias,
                             const struct windows *w, tn_ints padding, tn_ints more, int64_t groups)
{
    tn_ints stride = list(w->stride, w->n), dilation = list(w->dilation, w->n);

    switch (w->n) {
    case 1: return tn_conv_transpose1d(x, weight, bias, stride, padding, more, groups, dilation);
    case 2: return tn_conv_transpose2d(x, weight, bias, stride, padding, more, groups, dilation);
    default: return tn_conv_transpose3d(x, weight, bias, stride, padding, more, groups, dilation);
    }
}

/* Padding from the wanted sizes of the result. */
static void pads_for(struct windows *w, tn_ints wanted, const int64_t *more, bool upper)
{
    for (int64_t i = 0; i < w->n; i++) {
        int64_t size = wanted.count == w->n       ? wanted.at[i]
                       : wanted.count == w->n + 2 ? wanted.at[i + 2]
                                                  : w->in[i] * w->stride[i];
        int64_t space = (w->in[i] - 1) * w->stride[i] + more[i] +
                        (w->kernel[i] - 1) * w->dilation[i] + 1 - size;

        /* Rounded down, also if the result has to grow. */
        w->begin[i] = upper ? space >> 1 : space - (space >> 1);
        w->pad_end[i] = space - w->begin[i];
    }
}

static tn_status conv_transpose(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *weight = rule_tensor(call, "W"), *y;
    tn_tensor *bias = rule_optional(call, "B");
    int64_t groups = rule_int(call, "group"), more[SPATIAL] = { 0 }, crop[2 * SPATIAL];
    tn_ints wanted = rule_ints(call, "output_shape"), given = rule_ints(call, "output_padding");
    bool upper = onnx_is(call, "auto_pad", "SAME_UPPER"), even = true;
    bool lower = onnx_is(call, "auto_pad", "SAME_LOWER");
    struct windows w = { .n = x != NULL ? tn_tensor_ndim(x) - 2 : 0 };

    if (call->status != TN_OK)
        return call->status;
    if (w.n < 1 || w.n > 3 || tn_tensor_ndim(weight) != w.n + 2)
        return rule_fail(call, TN_ERR_VALUE, "X: %d dimensions, W: %d; expected the same, 3 to 5",
                         (int)tn_tensor_ndim(x), (int)tn_tensor_ndim(weight));
    if (read_sizes(call, "strides", w.n, 1, w.stride) != TN_OK ||
        read_sizes(call, "dilations", w.n, 1, w.dilation) != TN_OK || read_pads(call, &w) != TN_OK)
        return call->status;
    for (int64_t i = 0; i < w.n; i++) {
        w.in[i] = tn_tensor_size(x, i + 2);
        w.kernel[i] = tn_tensor_size(weight, i + 2);
        more[i] = i < given.count ? given.at[i] : 0;
        if (more[i] < 0 || more[i] > INT32_MAX)
            return rule_fail(call, TN_ERR_VALUE,
                             "output_padding: out of range, got %lld; expected 0 to %d",
                             (long long)more[i], INT32_MAX);
    }
    for (int64_t i = 0; i < wanted.count; i++)
        if (wanted.at[i] < 1 || wanted.at[i] > INT32_MAX)
            return rule_fail(call, TN_ERR_VALUE,
                             "output_shape: out of range, got %lld; expected 1 to %d",
                             (long long)wanted.at[i], INT32_MAX);
    if (wanted.count > 0 || upper || lower)
        pads_for(&w, wanted, more, upper);
    for (int64_t i = 0; i < w.n; i++) {
        even = even && w.begin[i] == w.pad_end[i] && w.begin[i] >= 0 && more[i] >= 0 &&
               (more[i] < w.stride[i] || more[i] < w.dilation[i]);
        crop[2 * (w.n - 1 - i)] = -w.begin[i];
        crop[2 * (w.n - 1 - i) + 1] = more[i] - w.pad_end[i];
    }
    if (even)
        return rule_give(
            call, transposed(x, weight, bias, &w, list(w.begin, w.n), list(more, w.n), groups));
    y = transposed(x, weight, TN_NONE, &w, tn_no_ints(), tn_no_ints(), groups);
    y = tn_pad(y, list(crop, 2 * w.n));
    if (bias != TN_NONE) {
        int64_t shape[TN_MAX_DIMS];

        for (int64_t i = 0; i <= w.n; i++)
            shape[i] = i == 0 ? -1 : 1;
        y = tn_add(y, tn_reshape(bias, list(shape, w.n + 1)));
    }
    return rule_give(call, y);
}

/* ---- pooling --------------------------------------------------------------------------------- */

/* The number of the element in the whole tensor, in row-major order, or with the last two
 * dimensions exchanged. */
static tn_tensor *whole_indices(tn_rule_call *call, tn_tensor *x, tn_tensor *index,
                                const struct windows *w)
{
    int64_t image = 1, rows, shape[2] = { tn_tensor_size(x, 0), tn_tensor_size(x, 1) };
    int64_t first[TN_MAX_DIMS];

    for (int64_t i = 0; i < w->n; i++)
        image *= w->in[i];
    if (rule_int(call, "storage_order") != 0 && w->n == 2) {
        tn_tensor *row = tn_div(index, tn_full(index, TN_SCALAR_SHAPE, tn_scalar_int(w->in[1])),
                                "floor");
        tn_tensor *column = tn_sub(index, tn_mul_scalar(row, tn_scalar_int(w->in[1])));

        index = tn_add(tn_mul_scalar(column, tn_scalar_int(w->in[0])), row);
    }
    rows = shape[0] * shape[1];
    for (int64_t i = 0; i < w->n + 2; i++)
        first[i] = i < 2 ? shape[i] : 1;
    return tn_add(index, tn_reshape(tn_arange(index, tn_scalar_int(0), tn_scalar_int(rows * image),
                                              tn_scalar_int(image > 0 ? image : 1), TN_I64),
                                    list(first, w->n + 2)));
}

static tn_status max_pool(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *y = NULL, *index = NULL, *in;
    tn_ints kernel = rule_ints(call, "kernel_shape");
    struct windows w;
    tn_dtype dtype;
    bool half = true;

    if (read_windows(call, x, kernel, rule_int(call, "ceil_mode") != 0, &w) != TN_OK)
        return call->status;
    dtype = tn_tensor_dtype(x);
    in = (TN_BIT(dtype) & TN_MASK_INT) != 0 ? tn_cast(x, TN_F64) : x;
    for (int64_t i = 0; i < w.n; i++)
        half = half && 2 * w.begin[i] <= w.kernel[i];
    if (!(w.same && half) && call->wanted > 1)
        return rule_fail(call, TN_ERR_NOT_IMPLEMENTED,
                         "pads: indices with padding that differs at the ends");
    if (tn_max_pool(w.same && half ? in : padded(in, &w, NULL, -__builtin_inf()), kernel, &y,
                    &index, list(w.stride, w.n), w.same && half ? list(w.begin, w.n) : tn_no_ints(),
                    list(w.dilation, w.n)) != TN_OK)
        return rule_give(call, NULL);
    rule_give(call, rule_cast(y, dtype));
    return call->wanted > 1 ? rule_give(call, whole_indices(call, x, index, &w)) : call->status;
}

/* The sum of each window of a padded tensor, by a convolution with ones. */
static tn_tensor *window_sums(tn_tensor *x, const struct windows *w)
{
    int64_t shape[TN_MAX_DIMS], n = tn_tensor_size(x, 0), c = tn_tensor_size(x, 1);
    tn_tensor *y;

    shape[0] = n * c;
    shape[1] = 1;
    for (int64_t i = 0; i < w->n; i++)
        shape[i + 2] = tn_tensor_size(x, i + 2);
    y = tn_reshape(x, list(shape, w->n + 2));
    shape[0] = 1;
    memcpy(shape + 2, w->kernel, (size_t)w->n * sizeof *shape);
    y = tn_convolution(y, tn_full(x, list(shape, w->n + 2), tn_scalar_int(1), tn_tensor_dtype(x)),
                       TN_NONE, list(w->stride, w->n), tn_no_ints(), list(w->dilation, w->n));
    shape[0] = n;
    shape[1] = c;
    memcpy(shape + 2, w->out, (size_t)w->n * sizeof *shape);
    return tn_reshape(y, list(shape, w->n + 2));
}

static tn_status average_pool(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *ones;
    tn_ints kernel = rule_ints(call, "kernel_shape");
    bool include = rule_int(call, "count_include_pad") != 0, plain = true;
    int64_t shape[TN_MAX_DIMS], rest[SPATIAL];
    struct windows w, extra;

    if (read_windows(call, x, kernel, rule_int(call, "ceil_mode") != 0, &w) != TN_OK)
        return call->status;
    for (int64_t i = 0; i < w.n; i++)
        plain = plain && w.dilation[i] == 1 && 2 * w.begin[i] <= w.kernel[i] &&
                w.begin[i] == w.pad_end[i];
    if (plain && w.same && w.n <= 3)
        return rule_give(
            call, tn_avg_pool(x, kernel, list(w.stride, w.n), list(w.begin, w.n), false, include));
    /* Counts the elements that each window has. Padding may count, what ceil_mode adds does not. */
    shape[0] = shape[1] = 1;
    memcpy(shape + 2, w.in, (size_t)w.n * sizeof *shape);
    ones = tn_full(x, list(shape, w.n + 2), tn_scalar_int(1), tn_tensor_dtype(x));
    if (include) {
        extra = w;
        for (int64_t i = 0; i < w.n; i++) {
            int64_t all = w.in[i] + w.begin[i] + w.pad_end[i],
                    size = w.in[i] + w.begin[i] + w.end[i];

            shape[i + 2] = all < size ? all : size;
            rest[i] = size - shape[i + 2];
            extra.begin[i] = 0;
        }
        ones = tn_full(x, list(shape, w.n + 2), tn_scalar_int(1), tn_tensor_dtype(x));
        ones = padded(ones, &extra, rest, 0);
    } else {
        ones = padded(ones, &w, NULL, 0);
    }
    return rule_give(call, tn_div(window_sums(padded(x, &w, NULL, 0), &w), window_sums(ones, &w)));
}

static tn_status lp_pool(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *y;
    tn_ints kernel = rule_ints(call, "kernel_shape");
    double p = rule_float(call, "p");
    struct windows w;

    if (read_windows(call, x, kernel, rule_int(call, "ceil_mode") != 0, &w) != TN_OK)
        return call->status;
    y = tn_pow_scalar(tn_abs(padded(x, &w, NULL, 0)), tn_scalar_float(p));
    return rule_give(call, tn_pow_scalar(window_sums(y, &w), tn_scalar_float(1 / p)));
}

/* ---- over whole images ----------------------------------------------------------------------- */

static tn_ints image_dims(tn_tensor *x, int64_t *dims)
{
    int64_t n = 0;

    for (int64_t i = 2; x != NULL && i < tn_tensor_ndim(x); i++)
        dims[n++] = i;
    return list(dims, n);
}

static tn_status global_average(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X");
    int64_t dims[TN_MAX_DIMS];

    return rule_give(call, tn_mean(x, image_dims(x, dims), true));
}

static tn_status global_max(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X");
    int64_t dims[TN_MAX_DIMS];

    return rule_give(call, tn_amax(x, image_dims(x, dims), true));
}

static tn_status global_lp(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X");
    int64_t dims[TN_MAX_DIMS];

    return rule_give(call, tn_norm(x, rule_float(call, "p"), image_dims(x, dims), true));
}

#define WINDOWS "auto_pad='NOTSET', dilations=None, pads=None, strides=None, kernel_shape=None, "

const tn_rule_def onnx_rules_windows[] = {
    { "Conv(X, W, B=None, " WINDOWS "group=1)", .call = onnx_conv },
    { "ConvTranspose(X, W, B=None, " WINDOWS "group=1, output_padding=None, output_shape=None)",
      .call = conv_transpose },
    { "MaxPool(X, " WINDOWS "ceil_mode=0, storage_order=0)", .call = max_pool },
    { "AveragePool(X, " WINDOWS "ceil_mode=0, count_include_pad=0)", .call = average_pool },
    { "LpPool(X, " WINDOWS "ceil_mode=0, p=2)", .call = lp_pool },
    { "GlobalAveragePool(X)", .call = global_average },
    { "GlobalMaxPool(X)", .call = global_max },
    { "GlobalLpPool(X, p=2)", .call = global_lp },
    { .function = NULL },
};
