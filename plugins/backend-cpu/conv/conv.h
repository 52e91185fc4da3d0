/* SPDX-License-Identifier: MIT
 *
 * Types and functions that the convolutions share: images with the channels last, and their windows
 * as rows of a matrix. A row holds the elements of a window in the order (tap, channel); a tap is
 * one position in the kernel. */
#ifndef TN_BACKEND_CPU_WINDOWS_H
#define TN_BACKEND_CPU_WINDOWS_H

#include "base/dtype.h"

enum { TN__DIMS = 3 }; /* fewer are filled up with 1 in front */

/* [images][size...][groups * channels], channels last; steps in elements. */
struct tn__images {
    char *at;
    int64_t image, step[TN__DIMS];
    void *owned; /* scratch memory, when the tensor has another layout */
    /* All pixels of all images are one step apart, step[TN__DIMS - 1]: always true after
     * tn__images_take. */
    bool even;
};

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
void tn__windows_make(struct tn__windows *w, const tn_view *x, const tn_view *y,
                      const tn_view *weight, tn_ints stride, tn_ints padding, tn_ints dilation,
                      int64_t groups);
/* The images of `view`, all pixels one step apart; with `write` they are results, which
 * tn__images_done copies to the view. */
tn_status tn__images_take(struct tn__images *images, const tn_view *view, bool write);
tn_status tn__images_done(struct tn__images *images, const tn_view *view, bool write);

/* Rows of windows [first, first + n) of all images, for taps [tap, tap + taps) and the channels of
 * a group, into to[n][pitch]. */
void tn__windows_rows(const struct tn__windows *w, const struct tn__images *x, int64_t group,
                      int64_t first, int64_t n, int64_t tap, int64_t taps, void *to, int64_t pitch);
/* Whether x itself contains the rows, `step` elements apart. */
bool tn__windows_plain(const struct tn__windows *w, const struct tn__images *x, int64_t *step);

/* direct.c: few channels, whose windows are not copied. */
bool tn__direct_takes(const struct tn__windows *w);
/* y = x by panels of the weight, [panel][tap][channel][width], + bias [outputs filled up]. */
tn_status tn__direct_forth(const struct tn__windows *w, const struct tn__images *x,
                           const struct tn__images *y, const char *panels, int64_t width,
                           const char *bias);
/* Lines of results [first, first + count) of all images, into sums [output][tap][channel]. */
tn_status tn__direct_weight(const struct tn__windows *w, const struct tn__images *x,
                            const struct tn__images *gy, int64_t first, int64_t count, char *sums);

/* depthwise.c: one window per channel. Writes all of y, gx or gw; gw is row-major. */
bool tn__depthwise_takes(const struct tn__windows *w);
tn_status tn__depthwise_forth(const struct tn__windows *w, const struct tn__images *x,
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
