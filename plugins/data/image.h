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

/* ---- files of pictures (image_folder.c) ------------------------------------------------------ */

enum image_kind { IMAGE_UNKNOWN, IMAGE_PNG, IMAGE_JPEG };
/* The kind of a file, by its first bytes; eight suffice. */
enum image_kind image_kind(const void *bytes, uint64_t size);
/* Reads and decodes a picture, by its content. */
tn_status image_read(const char *path, struct image_rgb *image);
/* The picture as [3, H, W]: from RGBRGB to one plane for each color. NULL on failure. */
tn_tensor *image_planes(const struct image_rgb *image);

/* A list of names, each of which is freed with tn_free. */
struct image_names {
    char **at;
    int64_t count, capacity;
};
void image_names_free(struct image_names *names);
/* Appends a name, which then belongs to the list; frees it on failure. NULL is a failure. */
tn_status image_names_add(struct image_names *names, char *name);
/* Appends the paths of the pictures in a folder, at any depth: those of the folder itself, then
 * those of the folders in it, each sorted by the bytes of the names. */
tn_status image_names_walk(const char *path, struct image_names *files);

#endif
