/* SPDX-License-Identifier: MIT
 *
 * Decodes PNG with libpng. Gray becomes RGB, transparency is ignored, 16 bits become 8. */
#include "image.h"

#ifdef TN_WITH_LIBPNG
#include <png.h>
#include <setjmp.h>
#include <string.h>

/* All that must survive a longjmp of libpng. */
struct image_png {
    const unsigned char *bytes;
    uint64_t size, at;
    png_structp png;
    png_infop info;
    png_bytep *rows;
    unsigned char *pixels;
    char words[128]; /* the message of libpng */
};

static void read_bytes(png_structp png, png_bytep out, size_t count)
{
    struct image_png *work = png_get_io_ptr(png);

    if (count > work->size - work->at)
        png_error(png, "the file is too short");
    memcpy(out, work->bytes + work->at, count);
    work->at += count;
}

static void on_error(png_structp png, png_const_charp words)
{
    struct image_png *work = png_get_error_ptr(png);

    tn_snprint(work->words, sizeof work->words, "%s", words);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp words)
{
    (void)png;
    (void)words;
}

/* Asks libpng for RGB of 8 bits. */
static void set_conversions(struct image_png *work)
{
    png_set_expand(work->png);
    png_set_strip_16(work->png);
    png_set_gray_to_rgb(work->png);
    png_set_strip_alpha(work->png);
    (void)png_set_interlace_handling(work->png);
    png_read_update_info(work->png, work->info);
}

static tn_status damaged(const struct image_file *file)
{
    return tn_fail(TN_ERR_FORMAT, "%s: damaged PNG file: %s", file->path, file->png->words);
}

static tn_status read_header(struct image_file *file)
{
    struct image_png *work = file->png;
    tn_status status;

    if (setjmp(png_jmpbuf(work->png)))
        return damaged(file);
    /* image_file_size() limits the number of pixels; libpng still limits the memory for texts */
    png_set_user_limits(work->png, 0x7fffffff, 0x7fffffff);
    png_set_read_fn(work->png, work, read_bytes);
    png_read_info(work->png, work->info);
    status = image_file_size(file, png_get_image_height(work->png, work->info),
                             png_get_image_width(work->png, work->info));
    if (status != TN_OK)
        return status;
    set_conversions(work);
    if (png_get_rowbytes(work->png, work->info) != 3 * (size_t)file->width)
        png_error(work->png, "a kind of pixels that is not known");
    return TN_OK;
}

tn_status image_png_open(struct image_file *file)
{
    struct image_png *work = tn_calloc(1, sizeof *work);

    if (work == NULL)
        return TN_ERR_MEMORY;
    file->png = work;
    work->bytes = file->bytes;
    work->size = file->size;
    work->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, work, on_error, on_warning);
    work->info = work->png != NULL ? png_create_info_struct(work->png) : NULL;
    if (work->info == NULL)
        return tn_fail(TN_ERR_MEMORY, "%s: libpng cannot be started: out of memory", file->path);
    return read_header(file);
}

static tn_status decode(struct image_file *file)
{
    struct image_png *work = file->png;

    if (setjmp(png_jmpbuf(work->png)))
        return damaged(file);
    png_read_image(work->png, work->rows);
    png_read_end(work->png, NULL);
    return TN_OK;
}

/* Rows of an interlaced file come in several passes, so the whole picture is decoded. */
tn_status image_png_read(struct image_file *file, const struct image_part *part, image_row *take,
                         void *user)
{
    struct image_png *work = file->png;
    size_t line = 3 * (size_t)file->width;
    tn_status status;

    work->rows = tn_malloc((size_t)file->height * sizeof *work->rows);
    work->pixels = tn_malloc(line * (size_t)file->height + IMAGE_SLACK);
    if (work->rows == NULL || work->pixels == NULL)
        return TN_ERR_MEMORY;
    for (int64_t i = 0; i < file->height; i++)
        work->rows[i] = work->pixels + (size_t)i * line;
    memset(work->pixels + line * (size_t)file->height, 0, IMAGE_SLACK);
    status = decode(file);
    for (int64_t i = part->top; i < part->top + part->height && status == TN_OK; i++)
        take(user, i, work->rows[i] + 3 * part->left);
    return status;
}

void image_png_close(struct image_file *file)
{
    struct image_png *work = file->png;

    png_destroy_read_struct(&work->png, &work->info, NULL);
    tn_free(work->rows);
    tn_free(work->pixels);
    tn_free(work);
    file->png = NULL;
}
#else
tn_status image_png_open(struct image_file *file)
{
    return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                   "%s: a PNG file, but this plugin was built without libpng (configure "
                   "--with-libpng)",
                   file->path);
}

tn_status image_png_read(struct image_file *file, const struct image_part *part, image_row *take,
                         void *user)
{
    (void)part;
    (void)take;
    (void)user;
    return image_png_open(file);
}

void image_png_close(struct image_file *file)
{
    (void)file;
}
#endif
