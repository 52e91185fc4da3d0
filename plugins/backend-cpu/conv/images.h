/* SPDX-License-Identifier: MIT
 *
 * Images with the channels last, for convolution and pooling. */
#ifndef TN_BACKEND_CPU_CONV_IMAGES_H
#define TN_BACKEND_CPU_CONV_IMAGES_H

#include <tenon/plugin.h>

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

/* The images of `view`, all pixels one step apart; with `write` they are results, which
 * tn__images_done copies to the view. */
tn_status tn__images_take(struct tn__images *images, const tn_view *view, bool write);
tn_status tn__images_done(struct tn__images *images, const tn_view *view, bool write);

#endif
