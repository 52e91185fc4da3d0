/* SPDX-License-Identifier: MIT
 *
 * Images with the channels last, for convolution and pooling. */
#ifndef TN_BACKEND_CPU_CONV_IMAGES_H
#define TN_BACKEND_CPU_CONV_IMAGES_H

#include <tenon/plugin.h>

enum { TN__DIMS = 3 }; /* of an image; images with fewer get dimensions of size 1 in front */

/* Images as [image][size...][groups * channels], the channels of a pixel contiguous. Steps are in
 * elements. */
struct tn__images {
    char *at;
    int64_t image, step[TN__DIMS];
    void *owned; /* scratch memory with a copy, if the tensor has another layout; otherwise NULL */
    /* Whether all pixels of all images are step[TN__DIMS - 1] apart. Always true after
     * tn__images_take. */
    bool even;
};

/* Fills `images` from `view`, with a copy in scratch memory if the layout requires it. `write`: the
 * images are a result, so their old content is not copied. */
tn_status tn__images_take(struct tn__images *images, const tn_view *view, bool write);
/* Frees the copy that `images` owns, if any. `write`: first copies it to `view`. */
tn_status tn__images_done(struct tn__images *images, const tn_view *view, bool write);

#endif
