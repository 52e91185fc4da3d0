/* SPDX-License-Identifier: MIT
 *
 * Images with the channels last; a tensor with another layout is copied. */
#include "conv/images.h"
#include "base/scratch.h"
#include "base/span.h"
#include "op/copy.h"

/* Returns a view of `data` with the shape of `view` and contiguous in the order channels last. */
static tn_view as_channels_last(const tn_view *view, int64_t *strides, void *data)
{
    tn_view out = *view;
    int64_t next = view->shape[1];

    strides[1] = 1;
    for (int32_t d = view->ndim; d-- > 2; next *= view->shape[d])
        strides[d] = next;
    strides[0] = next;
    out.strides = strides;
    out.data = data;
    out.byte_offset = 0;
    return out;
}

/* Computes the steps of `images`, and whether all pixels are one step apart (`even`). */
static void steps_of(struct tn__images *images, const tn_view *view)
{
    int64_t pixel = 0, next = 0;
    bool known = false; /* not `pixel != 0`: in an expanded tensor the step is 0 */

    images->image = view->strides[0];
    images->even = true;
    for (int32_t i = TN__DIMS - 1; i >= 0; i--) {
        int32_t own = i - (TN__DIMS - (view->ndim - 2));
        images->step[i] = own < 0 ? 0 : view->strides[2 + own];
        if (own < 0 || view->shape[2 + own] == 1)
            continue;
        if (!known)
            pixel = next = images->step[i];
        known = true;
        images->even = images->even && images->step[i] == next;
        next *= view->shape[2 + own];
    }
    if (!known) /* all images have one pixel: the step is that from image to image */
        pixel = next = images->image;
    images->even = images->even && (view->shape[0] == 1 || images->image == next);
    if (images->even)
        images->step[TN__DIMS - 1] = pixel;
}

tn_status tn__images_take(struct tn__images *images, const tn_view *view, bool write)
{
    int64_t strides[TN_MAX_DIMS], count = tn__span_view_count(view);
    tn_status status = TN_OK;
    tn_view plain;

    images->owned = NULL;
    images->at = tn__view_at(view);
    if (view->strides[1] == 1 || view->shape[1] == 1) {
        steps_of(images, view);
        if (images->even)
            return TN_OK;
    }
    images->owned = tn__scratch_take((size_t)(count * tn__view_item(view)));
    if (!images->owned)
        return TN_ERR_MEMORY;
    plain = as_channels_last(view, strides, images->owned);
    images->at = images->owned;
    steps_of(images, &plain);
    if (!write)
        status = tn__copy_views(&plain, view);
    if (status != TN_OK) {
        tn__scratch_give(images->owned);
        images->owned = NULL;
    }
    return status;
}

tn_status tn__images_done(struct tn__images *images, const tn_view *view, bool write)
{
    int64_t strides[TN_MAX_DIMS];
    tn_status status = TN_OK;

    if (images->owned && write) {
        tn_view plain = as_channels_last(view, strides, images->owned);
        status = tn__copy_views(view, &plain);
    }
    tn__scratch_give(images->owned);
    images->owned = NULL;
    return status;
}
