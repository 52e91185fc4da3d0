/* SPDX-License-Identifier: MIT
 *
 * Windows that slide over the last one to three dimensions of [N, C, ...], for convolutions and
 * pooling. */
#ifndef TN_OPS_WINDOW_H
#define TN_OPS_WINDOW_H

#include "formula.h"

enum { TN__WINDOW_DIMS = 3 };

typedef struct tn__window {
    int32_t dims; /* number of dimensions after N and C */
    int64_t size[TN__WINDOW_DIMS];
    int64_t kernel[TN__WINDOW_DIMS], stride[TN__WINDOW_DIMS], padding[TN__WINDOW_DIMS],
        dilation[TN__WINDOW_DIMS];
    int64_t count[TN__WINDOW_DIMS]; /* number of windows */
} tn__window;

/* Fills `out` with one number for each dimension. `given` has one number for all dimensions, one
 * for each, or none; then `otherwise` is used. Fails if a number is less than `least`. */
tn_status tn__window_row(tn_ints given, int32_t dims, int64_t otherwise, int64_t least,
                         const char *name, int64_t *out);
/* Checks and stores stride, padding and dilation, and computes the number of windows. dims, size
 * and kernel must be set. With `up` (ceil_mode) the last window may extend beyond the image. */
tn_status tn__window_lay(tn__window *s, tn_ints stride, tn_ints padding, tn_ints dilation, bool up);

/* Returns the windows of x [N, C, ...] as a view [N, C, count..., kernel...]. Padding has the value
 * `value`; with `replicate` it repeats the edge. Padding copies x. */
tn_tensor *tn__window_windows(tn_tensor *x, const tn__window *s, double value, bool replicate);
/* Returns the index of each element of each window within its image, int64 [1, 1, count...,
 * kernel...], on the device of `like`. Elements in the padding have the nearest index. */
tn_tensor *tn__window_places(tn_tensor *like, const tn__window *s);

/* Returns the product of `dims` numbers from 0 on, INT64_MAX on overflow. */
static inline int64_t tn__window_product(const int64_t *row, int32_t dims)
{
    int64_t all = 1;

    for (int32_t i = 0; i < dims; i++)
        all = tn__common_times(all, row[i]);
    return all;
}

/* tn__window_batched() inserts N in front of x if x has no N; tn__window_unbatched() removes N from
 * the result y if x had none. */
tn_tensor *tn__window_batched(tn_tensor *x, int32_t dims);
tn_tensor *tn__window_unbatched(tn_tensor *y, int32_t dims, const tn_tensor *x);
/* Fails unless x is [N, C, ...] or [C, ...]. */
tn_status tn__window_check(const tn_view *x, int32_t dims);
/* Sets a row-major output [n, c, rest...]. */
void tn__window_meta(tn_meta *meta, tn_dtype dtype, int64_t n, int64_t c, const int64_t *rest,
                     int32_t dims);

/* If x is channels-last, makes the output channels-last, too. */
void tn__window_keep_order(tn_meta *meta, const tn_view *x);
/* For an output of a convolution: channels-last where the device works so, or if in[0] is. */
void tn__window_choose_order(tn_meta *meta, const tn_infer *infer);

/* [C] to [1, C, 1, ...] with `dims` dimensions after C. */
tn_tensor *tn__window_per_channel(tn_tensor *bias, int32_t dims);

#endif
