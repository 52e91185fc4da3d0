/* SPDX-License-Identifier: MIT
 *
 * The order of memory of images [N, C, ...]: results have their channels last if the input has. */
#ifndef TN_OPS_CHANNELS_H
#define TN_OPS_CHANNELS_H

#include "common.h"

/* Returns whether x [N, C, ...] is packed with its channels last. Where the sizes leave it open, as
 * with one channel, it is also row-major. */
bool tn__channels_are_last(const tn_view *x);
/* Gives a result [N, C, ...] channels-last strides. */
void tn__channels_set_last(tn_meta *meta);

/* For images of four or five dimensions, as PyTorch keeps them. Returns whether the channels of x
 * are last in memory; false if the same strides are also row-major. */
bool tn__channels_image(const tn_view *x);
/* If tn__channels_image(x), gives a result with as many dimensions as x channels-last strides. */
void tn__channels_keep(tn_meta *meta, const tn_view *x);
/* The view [N, ..., C] of x [N, C, ...], and back. */
tn_tensor *tn__channels_moved(tn_tensor *x);
tn_tensor *tn__channels_back(tn_tensor *y);
/* Returns the dimension of the moved view that is dimension d of x. */
static inline int64_t tn__channels_place(int64_t d, int64_t ndim)
{
    return d == 0 ? 0 : d == 1 ? ndim - 1 : d - 1;
}
/* Returns a tensor of the dtype and on the device of `like`, with undefined elements: channels-last
 * if `last`, else row-major. */
tn_tensor *tn__channels_empty(tn_tensor *like, tn_ints shape, bool last);
/* Returns y with channels-last strides, copied unless it has them. */
tn_tensor *tn__channels_copied(tn_tensor *y);

#endif
