/* SPDX-License-Identifier: MIT
 *
 * Decodes PNG with libpng. Grey becomes RGB, transparency is ignored, 16 bits become 8. */
#include "image.h"

#ifdef TN_WITH_LIBPNG
#include <png.h>
#include <setjmp.h>
#include <string.h>

/* All that must survive a longjmp of libpng. */
struct png_work {
    const char *path;
    const unsigned char *bytes;
    uint64_t size, at;
    png_structp png;
    png_infop info;
    png_bytep *rows;
    struct image_rgb *image;
    char words[128]; /* the message of libpng */
};

static void read_bytes(png_structp png, png_bytep out, size_t count)
{
    struct png_work *work = png_get_io_ptr(png);

    if (count > work->size - work->at)
        png_error(png, "the file is too short");
    memcpy(out, work->bytes + work->at, count);
    work->at += count;
}

static void on_error(png_structp png, png_const_charp words)
{
    struct png_work *work = png_get_error_ptr(png);

    tn_snprint(work->words, sizeof work->words, "%s", words);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp words)
{
    (void)png;
    (void)words;
}

/* Asks libpng for RGB of 8 bits. */
static void set_conversions(struct png_work *work)
{
    png_set_expand(work->png);
    png_set_strip_16(work->png);
    png_set_gray_to_rgb(work->png);
    png_set_strip_alpha(work->png);
    (void)png_set_interlace_handling(work->png);
    png_read_update_info(work->png, work->info);
}

static tn_status read_rows(struct png_work *work)
{
    struct image_rgb *image = work->image;

    work->rows = tn_malloc((size_t)image->height * sizeof *work->rows);
    if (work->rows == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < image->height; i++)
        work->rows[i] = image->pixels + 3 * i * image->width;
    png_read_image(work->png, work->rows);
    png_read_end(work->png, NULL);
    return TN_OK;
}

static tn_status decode(struct png_work *work)
{
    tn_status status;

    if (setjmp(png_jmpbuf(work->png)))
        return tn_fail(TN_ERR_FORMAT, "%s: damaged PNG file: %s", work->path, work->words);
    png_set_read_fn(work->png, work, read_bytes);
    png_read_info(work->png, work->info);
    status = image_allocate(work->image, work->path, png_get_image_height(work->png, work->info),
                            png_get_image_width(work->png, work->info));
    if (status != TN_OK)
        return status;
    set_conversions(work);
    if (png_get_rowbytes(work->png, work->info) != 3 * (size_t)work->image->width)
        png_error(work->png, "a kind of pixels that is not known");
    return read_rows(work);
}

tn_status image_read_png(const char *path, const void *bytes, uint64_t size,
                         struct image_rgb *image)
{
    struct png_work work = { .path = path, .bytes = bytes, .size = size, .image = image };
    tn_status status = TN_ERR_MEMORY;

    work.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &work, on_error, on_warning);
    work.info = work.png != NULL ? png_create_info_struct(work.png) : NULL;
    if (work.info != NULL)
        status = decode(&work);
    else
        status = tn_fail(TN_ERR_MEMORY, "%s: libpng cannot be started: out of memory", path);
    png_destroy_read_struct(&work.png, &work.info, NULL);
    tn_free(work.rows);
    if (status != TN_OK) {
        tn_free(image->pixels);
        image->pixels = NULL;
    }
    return status;
}
#else
tn_status image_read_png(const char *path, const void *bytes, uint64_t size,
                         struct image_rgb *image)
{
    (void)bytes;
    (void)size;
    (void)image;
    return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                   "%s: a PNG file, but this plugin was built without libpng (configure "
                   "--with-libpng)",
                   path);
}
#endif
