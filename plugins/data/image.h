/* SPDX-License-Identifier: MIT
 *
 * Pictures in files: their size, and the pixels of a part of them. */
#ifndef TN_DATA_IMAGE_H
#define TN_DATA_IMAGE_H

#include "data.h"

/* Rows and columns of a picture. */
struct image_part {
    int64_t top, left, height, width;
};

/* Bytes after the pixels of a row that may be read. */
#define IMAGE_SLACK 16

/* Takes the pixels of a part, row by row: RGB of `row`, which counts from the top of the picture.
 */
typedef void image_row(void *user, int64_t row, const unsigned char *rgb);

struct image_bmp;
struct image_gif;
struct image_jpeg;
struct image_png;
struct image_tiff;
struct image_webp;
struct image_format;

/* A picture whose file is in memory. */
struct image_file {
    const char *path; /* for messages */
    const void *bytes;
    uint64_t size;
    uint64_t most; /* pixels; a larger picture is refused */
    bool turn;     /* the picture is shown as its orientation says */
    int64_t height, width;
    int orientation; /* of EXIF, 1 to 8; 1: the rows are as in the file */
    const struct image_format *format;
    struct image_bmp *bmp;
    struct image_gif *gif;
    struct image_jpeg *jpeg;
    struct image_png *png;
    struct image_tiff *tiff;
    struct image_webp *webp;
};

/* Whether a file that begins with these bytes, at least eight, is a picture. */
bool image_known(const void *bytes, uint64_t size);
/* Reads the header, and sets height and width. The caller has set the first five members.
 * image_file_close() must follow, also after a failure. */
tn_status image_file_open(struct image_file *file);
/* Decodes a part and gives its rows, from the top, to `take`. May be called once. */
tn_status image_file_read(struct image_file *file, const struct image_part *part, image_row *take,
                          void *user);
/* Decodes a part: uint8 [3, height, width]. May be called once. Returns NULL on failure. */
tn_tensor *image_file_tensor(struct image_file *file, const struct image_part *part);
void image_file_close(struct image_file *file);
/* Checks the size that the header of a file gives, and sets file->height and file->width. */
tn_status image_file_size(struct image_file *file, uint64_t height, uint64_t width);

/* Gives the rows of a part of a picture that is decoded: RGB, and IMAGE_SLACK bytes after it. */
void image_file_rows(const struct image_file *file, const struct image_part *part,
                     const unsigned char *pixels, image_row *take, void *user);

/* ---- formats (image_format.c) ---------------------------------------------------------------- */

/* Like the functions image_file_* above, for one format, without a turn. */
struct image_format {
    const char *name;
    bool (*known)(const void *bytes, uint64_t size);
    /* returns what is missing to read such files, with its package, or NULL; NULL: nothing */
    const char *(*lack)(void);
    tn_status (*open)(struct image_file *file);
    tn_status (*read)(struct image_file *file, const struct image_part *part, image_row *take,
                      void *user);
    void (*close)(struct image_file *file);
};
/* Returns the format of a file that begins with these bytes, NULL if it is not known. */
const struct image_format *image_format_of(const void *bytes, uint64_t size);
/* Fails, and names the format of a file that is not read if it is one of a few others. */
tn_status image_format_refuse(const struct image_file *file);

/* Finds the orientation of a picture (image_exif.c); 1 if it has none. */
int image_exif_orientation(const void *bytes, uint64_t size);

/* Returns the content of a part of a WebP file, NULL if it has none with this name. */
const unsigned char *image_webp_chunk(const void *bytes, uint64_t size, const char *name,
                                      uint64_t *length);

tn_status image_bmp_open(struct image_file *file);
tn_status image_bmp_read(struct image_file *file, const struct image_part *part, image_row *take,
                         void *user);
void image_bmp_close(struct image_file *file);
tn_status image_jpeg_open(struct image_file *file);
tn_status image_jpeg_read(struct image_file *file, const struct image_part *part, image_row *take,
                          void *user);
void image_jpeg_close(struct image_file *file);
tn_status image_png_open(struct image_file *file);
tn_status image_png_read(struct image_file *file, const struct image_part *part, image_row *take,
                         void *user);
void image_png_close(struct image_file *file);
const char *image_gif_lack(void);
tn_status image_gif_open(struct image_file *file);
tn_status image_gif_read(struct image_file *file, const struct image_part *part, image_row *take,
                         void *user);
void image_gif_close(struct image_file *file);
const char *image_tiff_lack(void);
/* Also sets the orientation. */
tn_status image_tiff_open(struct image_file *file);
tn_status image_tiff_read(struct image_file *file, const struct image_part *part, image_row *take,
                          void *user);
void image_tiff_close(struct image_file *file);
const char *image_webp_lack(void);
tn_status image_webp_open(struct image_file *file);
tn_status image_webp_read(struct image_file *file, const struct image_part *part, image_row *take,
                          void *user);
void image_webp_close(struct image_file *file);

/* What the datasets of pictures share: which files they read, and the options max_pixels and
 * orientation. */
extern const char *const image_extensions[];
#define IMAGE_ENDINGS ".png, .jpg, .jpeg, .bmp, .webp, .tiff, .tif or .gif"
#define IMAGE_FORMATS "PNG, JPEG, BMP, WebP, TIFF or GIF"
/* Returns what is missing to read files with this ending, in small letters; NULL: nothing. */
const char *image_lack(const char *ending);
struct image_options {
    int64_t max_pixels;
    bool orientation;
};
tn_status image_check_options(const struct image_options *options);

/* Appends the picture of a file to a sample: a tensor, or the file if the caller decodes it. */
tn_status image_add(const tn_sample_args *args, const char *path,
                    const struct image_options *options);

/* ---- the image of a sample ------------------------------------------------------------------- */

/* Entry 0 of a sample: a tensor, or an encoded image that the dataset gave (TN_SAMPLE_ENCODED). */
struct image_entry {
    bool encoded;
    struct data_image image; /* encoded: has no values until image_entry_load() */
    struct image_file file;
};

/* Gets the entry, and the size of the image. image_entry_close() must follow, also after a
 * failure. */
tn_status image_entry_open(const tn_transform_args *args, struct image_entry *entry);
/* Decodes a part of an encoded image, which then is the image. The part of a tensor is the whole
 * tensor: *part becomes the place of the part in entry->image. */
tn_status image_entry_load(struct image_entry *entry, struct image_part *part);
void image_entry_close(struct image_entry *entry);

#endif
