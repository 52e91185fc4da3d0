/* SPDX-License-Identifier: MIT
 *
 * Declarations shared by the files of this folder. A convolution multiplies a matrix whose rows are
 * the windows of the images. A row has the elements of one window in the order [tap][channel]; a
 * tap is one position in the convolution's kernel. */
#ifndef TN_BACKEND_CPU_CONV_CONV_H
#define TN_BACKEND_CPU_CONV_CONV_H

#include "base/dtype.h"
#include "conv/images.h"

struct tn__windows {
    enum tn__ct ct;
    int64_t item;
    int64_t images, groups;
    int64_t channels, outputs; /* input and output channels of a group */
    /* the sizes of an image, of the kernel, and of the result of an image */
    int64_t size[TN__DIMS], kernel[TN__DIMS], count[TN__DIMS];
    int64_t stride[TN__DIMS], padding[TN__DIMS], dilation[TN__DIMS];
    int64_t taps;
    int64_t places; /* windows of an image */
    /* What is applied to the result of a convolution (epilogue.h); NULL: nothing */
    const struct tn__epilogue *after;
};

/* Returns the product of TN__DIMS sizes (of an image, a kernel or a result), INT64_MAX on overflow:
 * a tensor with 0 images or 0 channels has no elements, so its other sizes may be that large. */
static inline int64_t tn__windows_product(const int64_t *size)
{
    int64_t all = 1;

    for (int32_t i = 0; i < TN__DIMS; i++)
        if (__builtin_mul_overflow(all, size[i], &all))
            return INT64_MAX;
    return all;
}

/* Fills `w` from shapes and options. Of x and y only dtype and shape are used: x may be the
 * gradient to compute, and y the incoming gradient. */
void tn__im2col_windows(struct tn__windows *w, const tn_view *x, const tn_view *y,
                        const tn_view *weight, tn_ints stride, tn_ints padding, tn_ints dilation,
                        int64_t groups);

/* Copies windows [first, first + n), counted over all images, to the rows of to[n][pitch]: of each
 * window taps [tap, tap + taps) with the channels of group `group`. */
void tn__im2col_rows(const struct tn__windows *w, const struct tn__images *x, int64_t group,
                     int64_t first, int64_t n, int64_t tap, int64_t taps, void *to, int64_t pitch);
/* Returns whether the windows are single pixels, so that x can be used as the matrix without a
 * copy; *step is then the distance of its rows in elements. */
bool tn__im2col_plain(const struct tn__windows *w, const struct tn__images *x, int64_t *step);

/* direct.c: convolutions of few channels, without copying windows. Returns whether direct.c
 * computes this convolution. */
bool tn__direct_takes(const struct tn__windows *w);
/* Computes y from x, the weight packed as [panel][tap][channel][width], and the bias, whose length
 * is rounded up to whole panels. */
tn_status tn__direct_forward(const struct tn__windows *w, const struct tn__images *x,
                             const struct tn__images *y, const char *panels, int64_t width,
                             const char *bias);
/* Computes the weight's gradient from lines [first, first + count) of the results, counted over all
 * images, into sums[output][tap][channel]. */
tn_status tn__direct_weight(const struct tn__windows *w, const struct tn__images *x,
                            const struct tn__images *gy, int64_t first, int64_t count, char *sums);

/* depthwise.c: convolutions in which each group has one input and one output channel. The functions
 * write all elements of y, gx or gw; gw is row-major. */
bool tn__depthwise_takes(const struct tn__windows *w);
tn_status tn__depthwise_forward(const struct tn__windows *w, const struct tn__images *x,
                                const struct tn__images *y, const tn_view *weight,
                                const tn_view *bias);
tn_status tn__depthwise_back(const struct tn__windows *w, const struct tn__images *gy,
                             const struct tn__images *gx, const tn_view *weight);
tn_status tn__depthwise_weight(const struct tn__windows *w, const struct tn__images *x,
                               const struct tn__images *gy, void *gw);

/* planes.c: convolutions of images with the channels first, without a copy. Returns whether
 * planes.c computes this convolution. */
bool tn__planes_takes(const struct tn__windows *w, const tn_view *x, const tn_view *y);
/* Computes y. The weight is [output][channel][tap]. */
tn_status tn__planes_forward(const struct tn__windows *w, const tn_view *x, const tn_view *y,
                             const char *weight, const tn_view *bias);

/* grad_input_few_channels.c: the gradient of the input for few channels. Returns whether
 * grad_input_few_channels.c computes it. */
bool tn__conv_few_channels_takes(const struct tn__windows *w);
/* Computes gx from gy and the weight. The weight is a matrix [output][tap * channel], packed in
 * panels of `width` columns as [panel][output][width]. */
tn_status tn__conv_few_channels_back(const struct tn__windows *w, const struct tn__images *gy,
                                     const struct tn__images *gx, const char *panels);

/* Rounds n up to a multiple of `step`. */
static inline int64_t tn__up(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

#endif
