/* SPDX-License-Identifier: MIT
 *
 * The plugin with rules for functions of torchvision and transformers in PyTorch's programs
 * (<tenon/foreign.h>). Images and scores must be on the host's default device. */
#include "vision.h"

#include <math.h>
#include <tenon/foreign.h>

/* Fails unless these are dimensions and a last size of a tensor. */
static bool has_rows(tn_rule_call *call, const char *name, const tn_tensor *tensor, int64_t width)
{
    if (call->status != TN_OK)
        return false;
    if (tn_tensor_ndim(tensor) == 2 && tn_tensor_size(tensor, 1) == width)
        return true;
    call->status = tn_fail(TN_ERR_VALUE, "%s: %s: wrong shape; expected [n, %lld]", call->name,
                           name, (long long)width);
    return false;
}

static tn_status nms(tn_rule_call *call)
{
    tn_tensor *boxes = tn_rule_tensor(call, "dets"), *scores = tn_rule_tensor(call, "scores");
    const struct vision_suppression how = { tn_rule_float(call, "iou_threshold"), -INFINITY,
                                            INT64_MAX, false };
    double *corners, *values;
    int64_t n, *kept, count = -1;

    if (!has_rows(call, "dets", boxes, 4))
        return call->status;
    n = tn_tensor_size(boxes, 0);
    if (tn_tensor_ndim(scores) != 1 || tn_tensor_size(scores, 0) != n)
        return call->status = tn_fail(TN_ERR_VALUE, "%s: scores: wrong shape; expected [%lld]",
                                      call->name, (long long)n);
    kept = tn_rule_memory(call, n + 1, sizeof *kept);
    corners = vision_numbers(boxes);
    values = vision_numbers(scores);
    if (kept != NULL && corners != NULL && values != NULL)
        count = vision_suppress(corners, values, n, &how, kept);
    tn_free(corners);
    tn_free(values);
    return tn_rule_give(call, count >= 0 ? tn_tensor_from(kept, TN_I64, TN_SHAPE(count)) : NULL);
}

static tn_status roi_align(tn_rule_call *call)
{
    tn_tensor *x = tn_rule_tensor(call, "input"), *rois = tn_rule_tensor(call, "rois"), *y;
    const struct vision_regions how = {
        tn_rule_float(call, "spatial_scale"), tn_rule_int(call, "pooled_height"),
        tn_rule_int(call, "pooled_width"),    tn_rule_int(call, "sampling_ratio"),
        tn_rule_bool(call, "aligned"),        false
    };
    double *regions;

    if (!has_rows(call, "rois", rois, 5))
        return call->status;
    regions = vision_numbers(rois);
    y = regions != NULL ? vision_regions(x, regions, tn_tensor_size(rois, 0), &how) : NULL;
    tn_free(regions);
    return tn_rule_give(call, y);
}

static tn_status deform_conv2d(tn_rule_call *call)
{
    tn_tensor *x = tn_rule_tensor(call, "input"), *weight = tn_rule_tensor(call, "weight");
    tn_tensor *offset = tn_rule_tensor(call, "offset"), *mask = tn_rule_tensor(call, "mask");
    tn_tensor *bias = tn_rule_tensor(call, "bias");
    const struct vision_moved how = {
        { tn_rule_int(call, "stride_h"), tn_rule_int(call, "stride_w") },
        { tn_rule_int(call, "pad_h"), tn_rule_int(call, "pad_w") },
        { tn_rule_int(call, "dilation_h"), tn_rule_int(call, "dilation_w") },
        tn_rule_int(call, "groups"),
        tn_rule_int(call, "offset_groups"),
    };
    bool masked = tn_rule_bool(call, "use_mask");

    if (call->status != TN_OK)
        return call->status;
    return tn_rule_give(call,
                        vision_deform(x, offset, weight, bias, masked ? mask : TN_NONE, &how));
}

static const tn_rule_def rows[] = {
    { "torchvision.nms.default(dets, scores, iou_threshold)", .call = nms },
    { "torchvision.roi_align.default(input, rois, spatial_scale, pooled_height, pooled_width, "
      "sampling_ratio, aligned)",
      .call = roi_align },
    { "torchvision.deform_conv2d.default(input, weight, offset, mask, bias, stride_h, stride_w, "
      "pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups, use_mask)",
      .call = deform_conv2d },
    { "transformers.grouped_mm_fallback.default(input, weight, offs)",
      .text = "grouped_mm(input, weight, offs)" },
    { .function = NULL },
};

static const tn_rule_list list = { sizeof(tn_rule_def), 0, rows };
static const tn_interface_row interfaces[] = {
    { "tenon.vision.rules.aten", 0, sizeof list, &list, NULL },
    { NULL, 0, 0, NULL, NULL },
};

static const tn_plugin vision = {
    TN_HEAD(tn_plugin), .id = "tenon.vision",
    .version = "0.1.0", .help = "functions of torchvision and transformers in PyTorch's programs",
    .license = "MIT",   .interfaces = interfaces,
};

TN_PLUGIN_EXPORT(vision);
