/* SPDX-License-Identifier: MIT
 *
 * What detectors compute beyond layers: boxes that do not overlap, parts of images in one size,
 * convolutions with moved windows. The plugin here has the rules for torchvision's functions; the
 * plugin foreign uses the same functions for operators of ONNX. Tensors belong to the innermost
 * scope; NULL: an error is set. */
#ifndef TN_VISION_VISION_H
#define TN_VISION_VISION_H

#include <tenon/plugin.h>

/* How boxes are chosen. */
struct vision_suppression {
    double overlap;    /* boxes that overlap a better one by more than this are left out */
    double least;      /* scores must be above it; -INFINITY: all are */
    int64_t most;      /* boxes of a class */
    bool from_centres; /* boxes are centre and size, [x, y, w, h], not two corners */
};

/* Indices of the boxes that are kept, the best first; of equal scores the first one. boxes has four
 * numbers for each of the n scores. kept has place for n. Returns how many there are; -1 and sets
 * the error without memory. */
TN_HIDDEN int64_t vision_suppress(const double *boxes, const double *scores, int64_t n,
                                  const struct vision_suppression *how, int64_t *kept);

/* Numbers of a tensor on the host, to be freed with tn_free. */
TN_HIDDEN double *vision_numbers(tn_tensor *tensor);

/* Parts of images [N, C, H, W] in one size. */
struct vision_regions {
    double scale;                   /* of coordinates of the regions to those of x */
    int64_t height, width, samples; /* samples: for each element, in each direction; 0: as many as
                                     * the region has elements there */
    bool aligned; /* coordinates are of edges, half an element before the centres */
    bool largest; /* the largest product of a sample's weights, as ONNX has it; else the mean */
};

/* regions: five numbers each, the image, then x and y of two corners. The result is [n, C, height,
 * width]; gradients reach x. */
TN_HIDDEN tn_tensor *vision_regions(tn_tensor *x, const double *regions, int64_t n,
                                    const struct vision_regions *how);

/* A convolution whose window elements are where offset [N, 2 groups kH kW, oH, oW] moves them,
 * times mask [N, groups kH kW, oH, oW]. bias and mask can be TN_NONE. Two numbers each. */
struct vision_moved {
    int64_t stride[2], padding[2], dilation[2]; /* padding: before the first element */
    int64_t groups, offset_groups;
};

TN_HIDDEN tn_tensor *vision_deform(tn_tensor *x, tn_tensor *offset, tn_tensor *weight,
                                   tn_tensor *bias, tn_tensor *mask,
                                   const struct vision_moved *how);

#endif
