/* SPDX-License-Identifier: MIT
 *
 * Rules for detectors and images: boxes, regions, moved windows, windows put together. */
#include "onnx/onnx_rules.h"

#include "../vision/vision.h"

#include <math.h>
#include <string.h>

/* ---- boxes ----------------------------------------------------------------------------------- */

/* Boxes of each class of each image. */
struct boxes {
    double *boxes, *scores;
    int64_t images, classes, n;
    int64_t *kept, *out; /* out: image, class, box */
    int64_t count;
};

static tn_status suppress_all(tn_rule_call *call, struct boxes *b,
                              const struct vision_suppression *how)
{
    int64_t most = how->most < b->n ? how->most : b->n;

    b->kept = rule_memory(call, b->n + 1, sizeof *b->kept);
    b->out = rule_memory(call, 3 * b->images * b->classes * most + 1, sizeof *b->out);
    for (int64_t i = 0; i < b->images * b->classes && call->status == TN_OK; i++) {
        int64_t image = i / b->classes;
        int64_t found = vision_suppress(b->boxes + 4 * b->n * image, b->scores + b->n * i, b->n,
                                        how, b->kept);

        if (found < 0)
            return rule_give(call, NULL);
        for (int64_t k = 0; k < found; k++, b->count++) {
            b->out[3 * b->count] = image;
            b->out[3 * b->count + 1] = i % b->classes;
            b->out[3 * b->count + 2] = b->kept[k];
        }
    }
    return call->status;
}

static double first_of(tn_rule_call *call, const char *name, double other)
{
    tn_floats numbers = rule_has(call, name) ? rule_floats(call, name) : tn_no_floats();

    return numbers.count > 0 ? numbers.at[0] : other;
}

static tn_status non_max_suppression(tn_rule_call *call)
{
    tn_tensor *boxes = rule_tensor(call, "boxes"), *scores = rule_tensor(call, "scores");
    double most = first_of(call, "max_output_boxes_per_class", 0);
    struct vision_suppression how = { first_of(call, "iou_threshold", 0),
                                      first_of(call, "score_threshold", -INFINITY),
                                      most > 0 ? (int64_t)fmin(most, 1e15) : 0,
                                      rule_int(call, "center_point_box") != 0 };
    struct boxes b = { .count = 0 };

    if (call->status != TN_OK)
        return call->status;
    if (tn_tensor_ndim(boxes) != 3 || tn_tensor_ndim(scores) != 3 ||
        tn_tensor_size(boxes, 2) != 4 || tn_tensor_size(boxes, 0) != tn_tensor_size(scores, 0) ||
        tn_tensor_size(boxes, 1) != tn_tensor_size(scores, 2))
        return rule_fail(call, TN_ERR_VALUE,
                         "boxes, scores: wrong shapes; expected [images, n, 4] and [images, "
                         "classes, n]");
    b.images = tn_tensor_size(scores, 0);
    b.classes = tn_tensor_size(scores, 1);
    b.n = tn_tensor_size(scores, 2);
    b.boxes = vision_numbers(boxes);
    b.scores = vision_numbers(scores);
    if (b.boxes == NULL || b.scores == NULL)
        rule_give(call, NULL);
    else
        suppress_all(call, &b, &how);
    tn_free(b.boxes);
    tn_free(b.scores);
    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, tn_tensor_from(b.out, TN_I64, TN_SHAPE(b.count, 3)));
}

/* ---- regions --------------------------------------------------------------------------------- */

/* Five numbers for each region: the image, and its corners. */
static double *regions_of(tn_rule_call *call, int64_t *n)
{
    tn_tensor *rois = rule_tensor(call, "rois"), *images = rule_tensor(call, "batch_indices");
    double *corners, *index, *all = NULL;

    if (call->status != TN_OK)
        return NULL;
    *n = tn_tensor_numel(images);
    if (tn_tensor_ndim(rois) != 2 || tn_tensor_size(rois, 1) != 4 ||
        tn_tensor_size(rois, 0) != *n) {
        rule_fail(call, TN_ERR_VALUE, "rois: wrong shape; expected [%lld, 4]", (long long)*n);
        return NULL;
    }
    corners = vision_numbers(rois);
    index = vision_numbers(images);
    if (corners != NULL && index != NULL)
        all = rule_memory(call, 5 * *n + 1, sizeof *all);
    else
        rule_give(call, NULL);
    for (int64_t i = 0; i < *n && all != NULL; i++) {
        all[5 * i] = index[i];
        memcpy(all + 5 * i + 1, corners + 4 * i, 4 * sizeof *all);
    }
    tn_free(corners);
    tn_free(index);
    return all;
}

static tn_status roi_align_of(tn_rule_call *call, bool aligned)
{
    tn_tensor *x = rule_tensor(call, "X");
    int64_t n = 0;
    double *regions = regions_of(call, &n);
    struct vision_regions how = { rule_float(call, "spatial_scale"),
                                  rule_int(call, "output_height"),
                                  rule_int(call, "output_width"),
                                  rule_int(call, "sampling_ratio"),
                                  aligned,
                                  onnx_is(call, "mode", "max") };

    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, vision_regions(x, regions, n, &how));
}

static tn_status roi_align(tn_rule_call *call)
{
    return roi_align_of(call, onnx_is(call, "coordinate_transformation_mode", "half_pixel"));
}

/* Before version 16. */
static tn_status roi_align_edges(tn_rule_call *call)
{
    return roi_align_of(call, false);
}

/* ---- moved windows --------------------------------------------------------------------------- */

/* Two numbers of a list, or of beginnings and ends, which must be equal. */
static void two(tn_rule_call *call, const char *name, int64_t other, int64_t out[2])
{
    tn_ints given = rule_has(call, name) ? rule_ints(call, name) : tn_none_ints();

    out[0] = out[1] = other;
    if (call->status != TN_OK || given.count < 0)
        return;
    if (given.count < 2) {
        rule_fail(call, TN_ERR_VALUE, "%s: %lld numbers; expected 2 for each end", name,
                  (long long)given.count);
        return;
    }
    memcpy(out, given.at, 2 * sizeof *out);
}

static tn_status deform_conv(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *weight = rule_tensor(call, "W");
    tn_tensor *offset = rule_tensor(call, "offset"), *bias = rule_optional(call, "B");
    tn_tensor *mask = rule_optional(call, "mask");
    struct vision_moved how = { .groups = rule_int(call, "group"),
                                .offset_groups = rule_int(call, "offset_group") };

    two(call, "strides", 1, how.stride);
    two(call, "pads", 0, how.padding);
    two(call, "dilations", 1, how.dilation);
    if (call->status != TN_OK)
        return call->status;
    return rule_give(call, vision_deform(x, offset, weight, bias, mask, &how));
}

/* ---- windows put together -------------------------------------------------------------------- */

enum { SPATIAL = 8 }; /* dimensions of an image, at most */

struct columns {
    int64_t n; /* dimensions */
    int64_t image[SPATIAL], kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL], begin[SPATIAL];
    int64_t windows[SPATIAL];       /* in each dimension */
    int64_t elements, count, numel; /* of a window; windows; of the image */
};

static tn_status read_list(tn_rule_call *call, const char *name, int64_t n, int64_t other,
                           int64_t least, int64_t *out)
{
    tn_ints given = rule_ints(call, name);

    if (call->status == TN_OK && given.count >= 0 && given.count < n)
        return rule_fail(call, TN_ERR_VALUE, "%s: %lld numbers; expected %lld", name,
                         (long long)given.count, (long long)n);
    for (int64_t i = 0; i < n && call->status == TN_OK; i++) {
        out[i] = given.count >= 0 ? given.at[i] : other;
        if (out[i] < least || out[i] > (1 << 24))
            return rule_fail(call, TN_ERR_VALUE, "%s: out of range, got %lld; expected %lld to %d",
                             name, (long long)out[i], (long long)least, 1 << 24);
    }
    return call->status;
}

static tn_status read_columns(tn_rule_call *call, struct columns *c)
{
    int64_t ends[2 * SPATIAL] = { 0 };

    c->n = rule_ints(call, "image_shape").count;
    if (call->status == TN_OK && (c->n < 1 || c->n > SPATIAL))
        return rule_fail(call, TN_ERR_VALUE, "image_shape: %lld sizes; expected 1 to %d",
                         (long long)c->n, SPATIAL);
    read_list(call, "image_shape", c->n, 0, 1, c->image);
    read_list(call, "block_shape", c->n, 0, 1, c->kernel);
    read_list(call, "strides", c->n, 1, 1, c->stride);
    read_list(call, "dilations", c->n, 1, 1, c->dilation);
    read_list(call, "pads", 2 * c->n, 0, 0, ends);
    c->elements = c->count = c->numel = 1;
    for (int64_t i = 0; i < c->n && call->status == TN_OK; i++) {
        int64_t room = c->image[i] + ends[i] + ends[c->n + i];

        c->begin[i] = ends[i];
        room -= c->dilation[i] * (c->kernel[i] - 1) + 1;
        c->windows[i] = room < 0 ? 0 : room / c->stride[i] + 1;
        if (__builtin_mul_overflow(c->elements, c->kernel[i], &c->elements) ||
            __builtin_mul_overflow(c->count, c->windows[i], &c->count) ||
            __builtin_mul_overflow(c->numel, c->image[i], &c->numel) || c->numel > 1 << 30)
            return rule_fail(call, TN_ERR_REFUSED,
                             "image_shape: more than 2^30 elements; expected a smaller image");
    }
    return call->status;
}

/* Which element of the image each element of a window is; beyond it, one more than it has. */
static int64_t place_of(const struct columns *c, int64_t element, int64_t window)
{
    int64_t place = 0, factor = 1;

    for (int64_t i = c->n - 1; i >= 0; i--) {
        int64_t at = window % c->windows[i] * c->stride[i] +
                     element % c->kernel[i] * c->dilation[i] - c->begin[i];

        if (at < 0 || at >= c->image[i])
            return c->numel;
        place += at * factor;
        factor *= c->image[i];
        window /= c->windows[i];
        element /= c->kernel[i];
    }
    return place;
}

static tn_status col2im(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input"), *y;
    int64_t shape[SPATIAL + 2], *places, rows, total;
    struct columns c = { .n = 0 };

    if (read_columns(call, &c) != TN_OK)
        return call->status;
    if (tn_tensor_ndim(x) != 3 || tn_tensor_size(x, 1) % c.elements != 0 ||
        tn_tensor_size(x, 2) != c.count)
        return rule_fail(call, TN_ERR_VALUE,
                         "input: wrong shape; expected [N, a multiple of %lld, %lld]",
                         (long long)c.elements, (long long)c.count);
    shape[0] = tn_tensor_size(x, 0);
    shape[1] = tn_tensor_size(x, 1) / c.elements;
    memcpy(shape + 2, c.image, (size_t)c.n * sizeof *shape);
    rows = shape[0] * shape[1];
    total = c.elements * c.count;
    places = rule_memory(call, total + 1, sizeof *places);
    for (int64_t i = 0; i < total && places != NULL; i++)
        places[i] = place_of(&c, i / c.count, i % c.count);
    if (places == NULL || !onnx_check_size(call, (tn_ints){ shape, c.n + 2 }))
        return call->status;
    y = tn_full(x, TN_SHAPE(rows, c.numel + 1), tn_scalar_int(0), tn_tensor_dtype(x));
    y = tn_index_add(y, tn_tensor_from(places, TN_I64, TN_SHAPE(total)),
                     tn_reshape(x, TN_SHAPE(rows, total)), 1);
    return rule_give(call, tn_reshape(tn_narrow(y, 1, 0, c.numel), (tn_ints){ shape, c.n + 2 }));
}

/* Each element goes to the place, in the whole result, from which a pool has taken it. */
static tn_status max_unpool(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "X"), *index = rule_tensor(call, "I"), *y;
    int64_t n = x != NULL ? tn_tensor_ndim(x) - 2 : 0, shape[TN_MAX_DIMS], pads[2 * TN_MAX_DIMS];
    int64_t kernel[TN_MAX_DIMS], stride[TN_MAX_DIMS], ends[2 * TN_MAX_DIMS], numel = 1;
    tn_ints wanted = rule_ints(call, "output_shape"), all;

    if (call->status == TN_OK && n < 1)
        return rule_fail(call, TN_ERR_VALUE, "X: %lld dimensions; expected at least 3",
                         (long long)n + 2);
    read_list(call, "kernel_shape", n, 0, 1, kernel);
    read_list(call, "strides", n, 1, 1, stride);
    if (read_list(call, "pads", 2 * n, 0, 0, ends) != TN_OK)
        return call->status;
    for (int64_t i = 0; i < n + 2; i++) {
        shape[i] = tn_tensor_size(x, i);
        if (i >= 2)
            shape[i] = (shape[i] - 1) * stride[i - 2] - ends[i - 2] - ends[n + i - 2] +
                       kernel[i - 2];
    }
    if (!onnx_check_size(call, (tn_ints){ shape, n + 2 }))
        return call->status;
    for (int64_t i = 0; i < n + 2; i++)
        numel *= shape[i];
    y = tn_full(x, TN_SHAPE(numel), tn_scalar_int(0), tn_tensor_dtype(x));
    y = tn_scatter(y, tn_reshape(tn_cast(index, TN_I64), TN_SHAPE(-1)), tn_reshape(x, TN_SHAPE(-1)),
                   0);
    y = tn_reshape(y, (tn_ints){ shape, n + 2 });
    if (wanted.count < 0)
        return rule_give(call, y);
    if (wanted.count != n + 2 || !onnx_check_size(call, wanted))
        return rule_fail(call, TN_ERR_VALUE, "output_shape: %lld sizes; expected %lld",
                         (long long)wanted.count, (long long)n + 2);
    for (int64_t i = 0; i < n + 2; i++) {
        pads[2 * (n + 1 - i)] = 0;
        pads[2 * (n + 1 - i) + 1] = wanted.at[i] - shape[i];
    }
    all = (tn_ints){ pads, 2 * (n + 2) };
    return rule_give(call, tn_pad(y, all, "constant"));
}

/* Sizes of some dimensions, taken from the middle or with zeros on both sides. */
static tn_status center_crop_pad(tn_rule_call *call)
{
    tn_tensor *x = rule_tensor(call, "input_data");
    int64_t n = x != NULL ? tn_tensor_ndim(x) : 0, pads[2 * TN_MAX_DIMS] = { 0 };
    tn_ints wanted = rule_ints(call, "shape"), axes = onnx_rule_dims(call, "axes", n), all;

    if (call->status != TN_OK)
        return call->status;
    if (wanted.count != (axes.count >= 0 ? axes.count : n))
        return rule_fail(call, TN_ERR_VALUE, "shape: %lld sizes; expected %lld",
                         (long long)wanted.count, (long long)(axes.count >= 0 ? axes.count : n));
    if (!onnx_check_size(call, wanted))
        return call->status;
    for (int64_t i = 0; i < wanted.count && x != NULL; i++) {
        int64_t dim = axes.count >= 0 ? axes.at[i] : i,
                more = wanted.at[i] - tn_tensor_size(x, dim);

        if (more <= 0) {
            x = tn_narrow(x, dim, -more / 2, wanted.at[i]);
            continue;
        }
        pads[2 * (n - 1 - dim)] = more / 2;
        pads[2 * (n - 1 - dim) + 1] = more - more / 2;
    }
    all = (tn_ints){ pads, 2 * n };
    return rule_give(call, tn_pad(x, all, "constant"));
}

#define REGION "(X, rois, batch_indices, "
#define REGION_SIZE                                                                                \
    "mode='avg', output_height=1, output_width=1, sampling_ratio=0, spatial_scale=1.0)"

const tn_rule_def onnx_rules_vision[] = {
    { "NonMaxSuppression(boxes, scores, max_output_boxes_per_class=None, iou_threshold=None, "
      "score_threshold=None, center_point_box=0)",
      .call = non_max_suppression },
    { "RoiAlign" REGION REGION_SIZE, .call = roi_align_edges, .since = 10 },
    { "RoiAlign" REGION "coordinate_transformation_mode='half_pixel', " REGION_SIZE,
      .call = roi_align, .since = 16 },
    { "DeformConv(X, W, offset, B=None, mask=None, dilations=None, group=1, kernel_shape=*, "
      "offset_group=1, pads=None, strides=None)",
      .call = deform_conv },
    { "Col2Im(input, image_shape, block_shape, dilations=None, pads=None, strides=None)",
      .call = col2im },
    { "MaxUnpool(X, I, output_shape=None, kernel_shape, pads=None, strides=None)",
      .call = max_unpool },
    { "CenterCropPad(input_data, shape, axes=None)", .call = center_crop_pad },
    { .function = NULL },
};
