/* SPDX-License-Identifier: MIT
 *
 * What follows a convolution in the operator convolution_activation: batch_norm with running
 * statistics, a sum, an activation. The algorithms apply it to parts of the result that are in the
 * cache, with the arithmetic of the separate operators. */
#ifndef TN_BACKEND_CPU_CONV_EPILOGUE_H
#define TN_BACKEND_CPU_CONV_EPILOGUE_H

#include "conv/conv.h"
#include "simd/norm.h"

struct tn__epilogue {
    enum tn__ct ct;
    int64_t item;
    struct tn__follow_rows rows; /* scale and shift of all output channels, limits */
    tn__ew_loop *loop;           /* an activation that `rows` does not have, or NULL */
    bool summed;
    /* The residual: as images with the channels last or, with `planar`, as contiguous planes. */
    bool planar;
    struct tn__images residual;
    const tn_view *view; /* of the residual */
    void *owned;         /* scratch memory of scale and shift, or NULL */
    char *y;             /* the result, whose pixels are y_step elements apart (channels last) */
    int64_t y_step;
    int64_t y_image,
        r_image;    /* planar: elements from an image to the next, of y and the residual */
    int64_t places; /* pixels of an image */
};

/* Returns whether the kernel of convolution_activation computes the call with the bits of separate
 * operators; if not, writes a reason. */
bool tn__epilogue_supports(const tn_call *call, char *reason, size_t size);
/* Reads the inputs of a call of convolution_activation. With `planar`, result and residual are
 * planes; otherwise they have the channels last. */
tn_status tn__epilogue_begin(struct tn__epilogue *e, const tn_call *call, bool planar);
/* Sets where the result is. */
void tn__epilogue_into(struct tn__epilogue *e, const struct tn__images *y);
void tn__epilogue_end(struct tn__epilogue *e);

/* Whether more than limits follows the convolution, so that the functions below must be called.
 * NULL: nothing follows. */
bool tn__epilogue_beyond_limits(const struct tn__epilogue *e);
/* The limits that a kernel applies before it stores a result, if nothing else follows; otherwise
 * none. */
const struct tn__limits *tn__epilogue_limits(const struct tn__epilogue *e);

/* Apply the epilogue to a part of the result. tn__epilogue_pixels: channels [channel, channel + n)
 * of pixels [pixel, pixel + pixels), counted over all images. tn__epilogue_plane: pixels [pixel,
 * pixel + n) of one channel of one image. */
void tn__epilogue_pixels(const struct tn__epilogue *e, int64_t pixel, int64_t pixels,
                         int64_t channel, int64_t n);
void tn__epilogue_plane(const struct tn__epilogue *e, int64_t image, int64_t channel, int64_t pixel,
                        int64_t n);

#endif
