/* SPDX-License-Identifier: MIT
 *
 * Windows that slide over the last one to three dimensions of [N, C, ...]: what convolutions and
 * pooling share. */
#ifndef TN_OPS_WINDOW_H
#define TN_OPS_WINDOW_H

#include "formula.h"

enum { TN__WINDOW_DIMS = 3 };

typedef struct tn__window {
    int32_t dims; /* after N and C */
    int64_t size[TN__WINDOW_DIMS];
    int64_t kernel[TN__WINDOW_DIMS], stride[TN__WINDOW_DIMS], padding[TN__WINDOW_DIMS],
        dilation[TN__WINDOW_DIMS];
    int64_t count[TN__WINDOW_DIMS]; /* of windows */
} tn__window;

/* One number for all dimensions or one for each; none: `otherwise`. */
tn_status tn__window_row(tn_ints given, int32_t dims, int64_t otherwise, int64_t least,
                         const char *name, int64_t *out);
/* Checks and stores stride, padding and dilation, and counts the windows; dims, size and kernel are
 * already set. `up`, ceil_mode: the last window may extend beyond the image. */
tn_status tn__window_lay(tn__window *s, tn_ints stride, tn_ints padding, tn_ints dilation, bool up);

/* [N, C, ...] to a view of its windows, [N, C, count..., kernel...]. Padding has the value `value`,
 * or repeats the edge. */
tn_tensor *tn__window_windows(tn_tensor *x, const tn__window *s, double value, bool replicate);
/* The index in [...] of each element of each window, int64 [1, 1, count..., kernel...]; in the
 * padding the nearest index. On the device of `like`. */
tn_tensor *tn__window_places(tn_tensor *like, const tn__window *s);

/* The product of `dims` numbers. */
static inline int64_t tn__window_product(const int64_t *row, int32_t dims)
{
    int64_t all = 1;

    for (int32_t i = 0; i < dims; i++)
        all *= row[i];
    return all;
}

/* x with N in front if it had none; the inverse for the result. */
tn_tensor *tn__window_batched(tn_tensor *x, int32_t dims);
tn_tensor *tn__window_unbatched(tn_tensor *y, int32_t dims, const tn_tensor *x);
/* Whether x is [N, C, ...] or [C, ...]. */
tn_status tn__window_check(const tn_view *x, int32_t dims);
/* Row-major, [n, c, rest...]. */
void tn__window_meta(tn_meta *meta, tn_dtype dtype, int64_t n, int64_t c, const int64_t *rest,
                     int32_t dims);

/* The result keeps the stride order of x, such as channels-last. */
void tn__window_keep_order(tn_meta *meta, const tn_view *x);

/* [C] as [1, C, 1, ...] with `dims` dimensions after C. */
tn_tensor *tn__window_per_channel(tn_tensor *bias, int32_t dims);

#endif
