/* SPDX-License-Identifier: MIT
 *
 * Another size of an image: resamples along the width first, then along the height. The filters are
 * those of torchvision: a triangle (bilinear) or a cubic (bicubic), as wide as the distance of the
 * samples if the image becomes smaller and antialias is set. */
#ifndef TN_DATA_RESAMPLE_H
#define TN_DATA_RESAMPLE_H

#include "image.h"

enum resample_filter { RESAMPLE_NEAREST, RESAMPLE_BILINEAR, RESAMPLE_BICUBIC };

/* Returns the filter with that name; -1 and records a failure if there is none. `who` names the
 * transform. */
int resample_filter_of(const char *who, const char *name);

/* One direction. For each output position: the first input position, the number of inputs, and
 * their weights, of which there are at most `taps`, an even number; those after the last are 0. */
struct resample_plan {
    int64_t out, taps;
    int64_t *first, *count;
    float *weights; /* for float32 */
    int16_t *fixed; /* for uint8: weights times 2^bits */
    int bits;
    int64_t most; /* largest of the numbers of inputs */
    bool even;    /* every output may read `most` inputs and one more, with weights of 0 */
};

/* Makes the plan for a part [start, start + size) of a line. resample_plan_free() must follow, also
 * after a failure. */
tn_status resample_plan_make(struct resample_plan *plan, int64_t start, int64_t size, int64_t out,
                             enum resample_filter filter, bool antialias);
void resample_plan_free(struct resample_plan *plan);

/* Both directions, of a part of an image. */
struct resample {
    struct image_part part;
    struct resample_plan across, down;
};

/* resample_bytes_*: uint8, with the numbers of torchvision: weights are rounded to 16 bits, and
 * results are rounded after each direction. `rows` has the rows of the part after the first
 * direction: for each row and channel, across.out bytes and RESAMPLE_SLACK more. */
#define RESAMPLE_SLACK 16
/* From one channel. `line` has RESAMPLE_SLACK more bytes than the plan needs. */
void resample_bytes_across(const struct resample_plan *plan, const unsigned char *line,
                           unsigned char *to);
/* From RGBRGB, which begins at input position `start`; `stride` is the distance of the results of
 * the three channels. */
void resample_bytes_across_rgb(const struct resample_plan *plan, int64_t start,
                               const unsigned char *rgb, unsigned char *to, int64_t stride);
/* One row of the result: `count` values, whose inputs are `stride` bytes apart. */
void resample_bytes_down(const struct resample_plan *plan, int64_t i, const unsigned char *rows,
                         int64_t stride, int64_t count, unsigned char *to);

/* Resamples an entry of a sample. Returns NULL on failure. */
tn_tensor *resample_entry(struct image_entry *entry, const struct image_part *part, int64_t height,
                          int64_t width, enum resample_filter filter, bool antialias);

#endif
