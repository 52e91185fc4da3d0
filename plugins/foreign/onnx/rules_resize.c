/* SPDX-License-Identifier: MIT
 *
 * Rules for resampling. Along each dimension an element of the result is a sum of elements of x,
 * times weights that the host computes: a product with a matrix; with one weight an index. What
 * PyTorch has, too, is done by its operator, which is faster. */
#include "onnx/onnx_rules.h"

#include <math.h>
#include <string.h>

enum {
    MOST = 1 << 28,    /* elements of a matrix of weights */
    ROI_MOST = 1 << 20 /* beyond the image, times its size; so that places fit into integers */
};

/* Resampling along one dimension. */
struct axis {
    tn_rule_call *call;
    int64_t in, out;
    double scale, begin, end; /* begin, end: the region that tf_crop_and_resize takes */
};

/* ---- coordinates ----------------------------------------------------------------------------- */

/* Where element i of the result is in x. */
static double place_of(const struct axis *a, int64_t i)
{
    const char *mode = rule_text(a->call, "coordinate_transformation_mode");
    double size = (double)a->out, before = (double)a->in, exact = a->scale * before;

    if (mode == NULL || strcmp(mode, "asymmetric") == 0)
        return (double)i / a->scale;
    if (strcmp(mode, "align_corners") == 0)
        return a->out == 1 ? 0 : (double)i * (before - 1) / (exact - 1);
    if (strcmp(mode, "pytorch_half_pixel") == 0)
        return a->out > 1 ? ((double)i + 0.5) / a->scale - 0.5 : 0;
    if (strcmp(mode, "tf_half_pixel_for_nn") == 0)
        return ((double)i + 0.5) / a->scale;
    if (strcmp(mode, "half_pixel_symmetric") == 0)
        return before / 2 * (1 - size / exact) + ((double)i + 0.5) / a->scale - 0.5;
    if (strcmp(mode, "tf_crop_and_resize") == 0)
        return a->out > 1 ? a->begin * (before - 1) +
                                (double)i * (a->end - a->begin) * (before - 1) / (size - 1)
                          : 0.5 * (a->begin + a->end) * (before - 1);
    return ((double)i + 0.5) / a->scale - 0.5;
}

static int64_t inside(const struct axis *a, int64_t i)
{
    return i < 0 ? 0 : i >= a->in ? a->in - 1 : i;
}

static int64_t nearest(const struct axis *a, double x)
{
    const char *mode = rule_text(a->call, "nearest_mode");

    if (mode != NULL && strcmp(mode, "simple") == 0) /* before version 11 */
        return inside(a, (int64_t)(a->scale < 1 ? ceil(x) : floor(x)));
    if (mode != NULL && strcmp(mode, "floor") == 0)
        return inside(a, (int64_t)floor(x));
    if (mode != NULL && strcmp(mode, "ceil") == 0)
        return inside(a, (int64_t)ceil(x));
    if (mode != NULL && strcmp(mode, "round_prefer_ceil") == 0)
        return inside(a, (int64_t)floor(x + 0.5));
    return inside(a, (int64_t)ceil(x - 0.5));
}

/* ---- weights --------------------------------------------------------------------------------- */

static double linear_weight(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static double cubic_weight(double x, double a)
{
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

/* Row i of the matrix. With antialias the filter is as wide as the distance of the results. */
static void fill_row(const struct axis *a, bool cubic, int64_t i, double *row)
{
    double x = place_of(a, i), c = rule_float(a->call, "cubic_coeff_a"), sum = 0;
    bool wide = rule_int(a->call, "antialias") != 0 && a->scale < 1;
    bool exclude = rule_int(a->call, "exclude_outside") != 0;
    double stretch = wide ? a->scale : 1, reach = (cubic ? 2 : 1) / stretch;

    for (int64_t k = (int64_t)floor(x - reach); k <= (int64_t)ceil(x + reach); k++) {
        double distance = ((double)k - x) * stretch;
        double weight = cubic ? cubic_weight(distance, c) : linear_weight(distance);

        if (exclude && (k < 0 || k >= a->in))
            continue;
        row[inside(a, k)] += weight;
        sum += weight;
    }
    for (int64_t k = 0; sum != 0 && k < a->in; k++)
        row[k] /= sum;
}

static bool crops(tn_rule_call *call)
{
    return onnx_is(call, "coordinate_transformation_mode", "tf_crop_and_resize");
}

/* Elements beyond x have one value, where the region is larger. */
static tn_tensor *extrapolated(const struct axis *a, tn_tensor *y, int64_t dim)
{
    double value = rule_float(a->call, "extrapolation_value");
    unsigned char *out = rule_memory(a->call, a->out, 1);
    int64_t shape[TN_MAX_DIMS];
    tn_tensor *mask;

    if (out == NULL || y == NULL)
        return NULL;
    for (int64_t i = 0; i < a->out; i++) {
        double x = place_of(a, i);

        out[i] = x < 0 || x > (double)(a->in - 1);
    }
    for (int64_t i = 0; i < tn_tensor_ndim(y); i++)
        shape[i] = i == dim ? a->out : 1;
    mask = tn_tensor_from(out, TN_BOOL, (tn_ints){ shape, tn_tensor_ndim(y) });
    return tn_where(mask, onnx_number(value, y), y);
}

static tn_tensor *by_index(const struct axis *a, tn_tensor *x, int64_t dim)
{
    int64_t *index = rule_memory(a->call, a->out, sizeof *index);

    for (int64_t i = 0; i < a->out && index != NULL; i++)
        index[i] = nearest(a, place_of(a, i));
    return index != NULL
               ? tn_index_select(x, tn_tensor_from(index, TN_I64, (tn_ints){ &a->out, 1 }), dim)
               : NULL;
}

static tn_tensor *by_matrix(const struct axis *a, tn_tensor *x, int64_t dim, bool cubic)
{
    double *rows;
    tn_tensor *matrix;

    if (a->in <= 0 || a->out > MOST / a->in) {
        rule_fail(a->call, TN_ERR_REFUSED, "sizes: a matrix of %lld x %lld is too large",
                  (long long)a->out, (long long)a->in);
        return NULL;
    }
    rows = rule_memory(a->call, a->out * a->in, sizeof *rows);
    for (int64_t i = 0; i < a->out && rows != NULL; i++)
        fill_row(a, cubic, i, rows + i * a->in);
    if (rows == NULL)
        return NULL;
    matrix = tn_cast(tn_tensor_from(rows, TN_F64, TN_SHAPE(a->out, a->in)), tn_tensor_dtype(x));
    return tn_transpose(tn_linear(tn_transpose(x, dim, -1), matrix), dim, -1);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

struct sizes {
    int64_t out[TN_MAX_DIMS];
    double scale[TN_MAX_DIMS];
};

/* One scale for all axes, so that the result fits into the sizes, or covers them. */
static void keep_aspect(tn_rule_call *call, const tn_tensor *x, tn_ints axes, struct sizes *s)
{
    bool larger = onnx_is(call, "keep_aspect_ratio_policy", "not_smaller");
    double scale = larger ? 0 : INFINITY, out;

    if (!larger && !onnx_is(call, "keep_aspect_ratio_policy", "not_larger"))
        return;
    for (int64_t i = 0; i < axes.count; i++) {
        double own = s->scale[axes.at[i]];

        scale = larger ? fmax(scale, own) : fmin(scale, own);
    }
    for (int64_t i = 0; i < axes.count; i++) {
        s->scale[axes.at[i]] = scale;
        out = floor(scale * (double)tn_tensor_size(x, axes.at[i]) + 0.5);
        if (!(out <= 1e9)) {
            rule_fail(call, TN_ERR_VALUE, "sizes: got a size of %g; expected at most 1e9", out);
            return;
        }
        s->out[axes.at[i]] = (int64_t)out;
    }
}

static tn_status read_sizes(tn_rule_call *call, const tn_tensor *x, tn_ints axes, struct sizes *s)
{
    bool by_size = rule_has(call, "sizes");
    tn_ints sizes = by_size ? rule_ints(call, "sizes") : tn_no_ints();
    tn_floats scales = by_size ? tn_no_floats() : rule_floats(call, "scales");

    if (call->status != TN_OK)
        return call->status;
    for (int64_t i = 0; i < tn_tensor_ndim(x); i++) {
        s->out[i] = tn_tensor_size(x, i);
        s->scale[i] = 1;
    }
    if ((by_size ? sizes.count : scales.count) != axes.count)
        return rule_fail(call, TN_ERR_VALUE, "scales or sizes: wrong count; expected %lld",
                         (long long)axes.count);
    for (int64_t i = 0; i < axes.count; i++) {
        int64_t dim = axes.at[i];
        double in = (double)s->out[dim],
               out = by_size ? (double)sizes.at[i] : floor(in * scales.at[i]);

        if (!(out >= 1 && out <= 1e9) || in < 1)
            return rule_fail(call, TN_ERR_VALUE,
                             "scales or sizes: got a size of %g; expected 1 to "
                             "1e9",
                             out);
        s->out[dim] = (int64_t)out;
        s->scale[dim] = by_size ? out / in : scales.at[i];
    }
    if (by_size)
        keep_aspect(call, x, axes, s);
    if (call->status != TN_OK)
        return call->status;
    return onnx_check_size(call, (tn_ints){ s->out, tn_tensor_ndim(x) }) ? TN_OK : call->status;
}

/* Linear and cubic images as PyTorch has them. */
static tn_tensor *as_pytorch(tn_rule_call *call, tn_tensor *x, const struct sizes *s, bool cubic)
{
    bool corners = onnx_is(call, "coordinate_transformation_mode", "align_corners");
    bool half = onnx_is(call, "coordinate_transformation_mode", "half_pixel") ||
                onnx_is(call, "coordinate_transformation_mode", "pytorch_half_pixel");
    tn_ints wanted;

    if (tn_tensor_ndim(x) != 4 || (!corners && !half) || rule_int(call, "antialias") != 0 ||
        rule_int(call, "exclude_outside") != 0 || rule_float(call, "cubic_coeff_a") != -0.75)
        return NULL;
    for (int64_t i = 0; i < 4; i++) {
        double exact = (double)s->out[i] / (double)tn_tensor_size(x, i);

        if (fabs(exact - s->scale[i]) > 1e-6 * exact || (i < 2 && exact != 1) ||
            (i >= 2 && s->out[i] < 2))
            return NULL;
    }
    wanted = (tn_ints){ s->out + 2, 2 };
    return tn_interpolate(x, wanted, cubic ? "bicubic" : "bilinear", corners);
}

static tn_status resize(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *y;
    int64_t all[TN_MAX_DIMS], n = x != NULL ? tn_tensor_ndim(x) : 0;
    tn_ints axes = onnx_rule_dims(call, "axes", n);
    bool linear = onnx_is(call, "mode", "linear"), cubic = onnx_is(call, "mode", "cubic");
    tn_floats roi = tn_no_floats();
    tn_dtype dtype;
    struct sizes s;

    for (int64_t i = 0; i < n; i++)
        all[i] = i;
    if (axes.count < 0)
        axes = (tn_ints){ all, n };
    if (call->status != TN_OK || read_sizes(call, x, axes, &s) != TN_OK)
        return call->status;
    if (crops(call)) {
        roi = rule_floats(call, "roi");
        if (call->status == TN_OK && roi.count != 2 * axes.count)
            return rule_fail(call, TN_ERR_VALUE, "roi: wrong count; expected %lld",
                             (long long)(2 * axes.count));
        for (int64_t i = 0; i < roi.count; i++)
            if (!(fabs(roi.at[i]) <= ROI_MOST))
                return rule_fail(call, TN_ERR_VALUE,
                                 "roi: out of range, got %g; expected at most %d", roi.at[i],
                                 ROI_MOST);
    }
    dtype = tn_tensor_dtype(x);
    y = (linear || cubic) && (TN_BIT(dtype) & TN_MASK_FLOAT) != 0 ? as_pytorch(call, x, &s, cubic)
                                                                  : NULL;
    if (y != NULL)
        return rule_give(call, y);
    y = (linear || cubic) && (TN_BIT(dtype) & TN_MASK_FLOAT) == 0 ? tn_cast(x, TN_F32) : x;
    for (int64_t i = 0; i < axes.count && call->status == TN_OK && y != NULL; i++) {
        int64_t dim = axes.at[i];
        struct axis a = { call, tn_tensor_size(x, dim), s.out[dim], s.scale[dim], 0, 1 };

        if (roi.count > 0) {
            a.begin = roi.at[i];
            a.end = roi.at[axes.count + i];
        } else if (a.in == a.out && a.scale == 1) {
            continue;
        }
        y = linear || cubic ? by_matrix(&a, y, dim, cubic) : by_index(&a, y, dim);
        if (roi.count > 0)
            y = extrapolated(&a, y, dim);
    }
    if (y != NULL && tn_tensor_dtype(y) != dtype)
        y = tn_cast(tn_round(y), dtype);
    return rule_give(call, y);
}

static tn_status grid_sample(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *grid = rule_tensor(call, "grid");
    const char *mode = rule_text(call, "mode"), *padding = rule_text(call, "padding_mode");
    bool corners = rule_int(call, "align_corners") != 0;

    if (call->status != TN_OK)
        return call->status;
    if (strcmp(mode, "linear") == 0)
        mode = "bilinear";
    else if (strcmp(mode, "cubic") == 0)
        mode = "bicubic";
    return rule_give(call, tn_grid_sample(x, grid, mode, padding, corners));
}

#define LATER                                                                                      \
    "exclude_outside=0, extrapolation_value=0.0, cubic_coeff_a=-0.75, antialias=0, axes=None, "    \
    "keep_aspect_ratio_policy='stretch')"
#define EARLY                                                                                      \
    "mode='nearest', roi=None, sizes=None, coordinate_transformation_mode='asymmetric', "          \
    "nearest_mode='simple', " LATER

const tn_rule_def onnx_rules_resize[] = {
    { "Resize(X, scales, " EARLY, .call = resize, .since = 10 },
    { "Resize(X, roi=None, scales=None, sizes=None, mode='nearest', "
      "coordinate_transformation_mode='half_pixel', nearest_mode='round_prefer_floor', " LATER,
      .call = resize, .since = 11 },
    { "Upsample(X, scales, " EARLY, .call = resize, .since = 7 },
    { "GridSample(X, grid, mode='linear', padding_mode='zeros', align_corners=0)",
      .call = grid_sample, .since = 16 },
    { "AffineGrid(theta, size, align_corners=0)",
      .text = "affine_grid(theta, output_size=size, align_corners=align_corners)" },
    { .function = NULL },
};
