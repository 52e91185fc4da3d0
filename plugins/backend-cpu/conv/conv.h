/* SPDX-License-Identifier: MIT
 *
 * What the convolutions share: windows of images as rows of a matrix. A row holds the elements of a
 * window in the order (tap, channel); a tap is one position in the kernel. */
#ifndef TN_BACKEND_CPU_CONV_H
#define TN_BACKEND_CPU_CONV_H

#include "base/dtype.h"
#include "conv/images.h"

struct tn__windows {
    enum tn__ct ct;
    int64_t item;
    int64_t images, groups;
    int64_t channels, outputs; /* of a group */
    int64_t size[TN__DIMS], kernel[TN__DIMS], count[TN__DIMS];
    int64_t stride[TN__DIMS], padding[TN__DIMS], dilation[TN__DIMS];
    int64_t taps;
    int64_t places; /* windows of an image */
};

/* x and y have the sizes: x may be the gradient to compute, y the incoming gradient. */
void tn__im2col_windows(struct tn__windows *w, const tn_view *x, const tn_view *y,
                        const tn_view *weight, tn_ints stride, tn_ints padding, tn_ints dilation,
                        int64_t groups);

/* Rows of windows [first, first + n) of all images, for taps [tap, tap + taps) and the channels of
 * a group, into to[n][pitch]. */
void tn__im2col_rows(const struct tn__windows *w, const struct tn__images *x, int64_t group,
                     int64_t first, int64_t n, int64_t tap, int64_t taps, void *to, int64_t pitch);
/* Whether x itself contains the rows, `step` elements apart. */
bool tn__im2col_plain(const struct tn__windows *w, const struct tn__images *x, int64_t *step);

/* direct.c: few channels, whose windows are not copied. */
bool tn__direct_takes(const struct tn__windows *w);
/* y = x by panels of the weight, [panel][tap][channel][width], + bias [outputs filled up]. */
tn_status tn__direct_forward(const struct tn__windows *w, const struct tn__images *x,
                             const struct tn__images *y, const char *panels, int64_t width,
                             const char *bias);
/* Lines of results [first, first + count) of all images, into sums [output][tap][channel]. */
tn_status tn__direct_weight(const struct tn__windows *w, const struct tn__images *x,
                            const struct tn__images *gy, int64_t first, int64_t count, char *sums);

/* depthwise.c: one window per channel. Writes all of y, gx or gw; gw is row-major. */
bool tn__depthwise_takes(const struct tn__windows *w);
tn_status tn__depthwise_forward(const struct tn__windows *w, const struct tn__images *x,
                                const struct tn__images *y, const tn_view *weight,
                                const tn_view *bias);
tn_status tn__depthwise_back(const struct tn__windows *w, const struct tn__images *gy,
                             const struct tn__images *gx, const tn_view *weight);
tn_status tn__depthwise_weight(const struct tn__windows *w, const struct tn__images *x,
                               const struct tn__images *gy, void *gw);

static inline int64_t tn__up(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

#endif
