/* SPDX-License-Identifier: MIT
 *
 * Decoded pictures. */
#ifndef TN_DATA_IMAGE_H
#define TN_DATA_IMAGE_H

#include "data.h"

/* A larger picture is refused: its file may be a few bytes, its pixels would fill the memory. */
#define IMAGE_MOST_PIXELS ((uint64_t)1 << 28)

/* A picture as RGB, row by row. */
struct image_rgb {
    int64_t height, width;
    unsigned char *pixels; /* 3 * height * width bytes; freed with tn_free */
};

/* Sets the size and allocates the pixels. `path` is for messages. */
tn_status image_allocate(struct image_rgb *image, const char *path, uint64_t height,
                         uint64_t width);
/* Decode a file in memory (image_png.c, image_jpeg.c). On failure `pixels` is NULL. */
tn_status image_read_png(const char *path, const void *bytes, uint64_t size,
                         struct image_rgb *image);
tn_status image_read_jpeg(const char *path, const void *bytes, uint64_t size,
                          struct image_rgb *image);

#endif
