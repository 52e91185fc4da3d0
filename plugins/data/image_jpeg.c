/* SPDX-License-Identifier: MIT
 *
 * Decodes JPEG with libjpeg. Gray and CMYK become RGB. With libjpeg-turbo only what a part of the
 * picture needs is decoded; its pixels are those of the whole picture. */
#include "image.h"

#ifdef TN_WITH_LIBJPEG
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

/* All that must survive a longjmp. */
struct image_jpeg {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    unsigned char *memory, *row; /* memory for one decoded row, and where the row begins in it */
    size_t bytes;                /* of a pixel: 3, of CMYK 4 */
    char words[JMSG_LENGTH_MAX];
};

static void leave(j_common_ptr jpeg)
{
    struct image_jpeg *work = jpeg->client_data;

    (*jpeg->err->format_message)(jpeg, work->words);
    longjmp(work->back, 1);
}

/* libjpeg replaces what is missing in a damaged file by gray, and only warns. A file that is cut or
 * whose code is wrong is an error here; harmless warnings, such as extra bytes, are ignored. */
static void on_message(j_common_ptr jpeg, int level)
{
    int code = jpeg->err->msg_code;

    if (level < 0 &&
        (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE))
        leave(jpeg);
}

/* Scans of a progressive file. Each passes over all pixels, and takes only a few bytes of the file,
 * so a small file could take hours. Programs write about ten. */
enum { SCANS_MOST = 500 };

static void on_progress(j_common_ptr jpeg)
{
    struct image_jpeg *work = jpeg->client_data;

    if (work->jpeg.input_scan_number <= SCANS_MOST)
        return;
    tn_snprint(work->words, sizeof work->words, "more than %d scans", SCANS_MOST);
    longjmp(work->back, 1);
}

static void no_output(j_common_ptr jpeg)
{
    (void)jpeg;
}

static tn_status damaged(const struct image_file *file)
{
    return tn_fail(TN_ERR_FORMAT, "%s: damaged JPEG file: %s", file->path, file->jpeg->words);
}

/* ---- the header ------------------------------------------------------------------------------ */

static tn_status read_header(struct image_file *file)
{
    struct jpeg_decompress_struct *jpeg = &file->jpeg->jpeg;

    if (setjmp(file->jpeg->back))
        return damaged(file);
    jpeg_create_decompress(jpeg);
    file->jpeg->progress.progress_monitor = on_progress;
    jpeg->progress = &file->jpeg->progress;
    jpeg_mem_src(jpeg, file->bytes, (unsigned long)file->size);
    (void)jpeg_read_header(jpeg, TRUE);
    if (jpeg->num_components != 1 && jpeg->num_components != 3 && jpeg->num_components != 4)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: a JPEG file with %d color components; expected 1, 3 or 4, convert it "
                       "to RGB",
                       file->path, jpeg->num_components);
    file->jpeg->bytes = jpeg->num_components == 4 ? 4 : 3;
    jpeg->out_color_space = jpeg->num_components == 4 ? JCS_CMYK : JCS_RGB; /* also of YCCK */
    return image_file_size(file, jpeg->image_height, jpeg->image_width);
}

tn_status image_jpeg_open(struct image_file *file)
{
    struct image_jpeg *work = tn_calloc(1, sizeof *work);

    if (work == NULL)
        return TN_ERR_MEMORY;
    file->jpeg = work;
    work->jpeg.err = jpeg_std_error(&work->errors);
    work->jpeg.client_data = work;
    work->errors.error_exit = leave;
    work->errors.emit_message = on_message;
    work->errors.output_message = no_output;
    return read_header(file);
}

/* ---- the pixels ------------------------------------------------------------------------------ */

/* Pixels beside a part that are decoded as well: at the border of what is decoded, libjpeg computes
 * colors without the neighbours that they have in the whole picture. */
enum { MARGIN = 16 };

/* Restricts decoding to the columns of the part. Returns the first column that is decoded. */
static int64_t choose_columns(struct image_file *file, const struct image_part *part)
{
#ifdef LIBJPEG_TURBO_VERSION
    int64_t left = part->left > MARGIN ? part->left - MARGIN : 0;
    int64_t right = part->left + part->width + MARGIN;
    JDIMENSION first = (JDIMENSION)left, count;

    right = right < file->width ? right : file->width;
    count = (JDIMENSION)(right - left);
    if (left == 0 && right == file->width)
        return 0;
    jpeg_crop_scanline(&file->jpeg->jpeg, &first, &count);
    return first;
#else
    (void)file;
    (void)part;
    return 0;
#endif
}

/* Passes over the rows above the part. */
static void skip_rows(struct image_jpeg *work, int64_t count)
{
#ifdef LIBJPEG_TURBO_VERSION
    if (count > 0)
        (void)jpeg_skip_scanlines(&work->jpeg, (JDIMENSION)count);
#else
    while (work->jpeg.output_scanline < (JDIMENSION)count)
        (void)jpeg_read_scanlines(&work->jpeg, &work->row, 1);
#endif
}

/* What of the light `black`, 0 to 255, an ink leaves: `clear` is 255 without ink. */
static unsigned char left_by(unsigned clear, unsigned black)
{
    unsigned taken = (255 - clear) * black + 128;

    return (unsigned char)(black - ((taken + (taken >> 8)) >> 8));
}

/* From CMYK to RGB, in place. Programs write the colors inverted, 255 for no ink, as Adobe's did
 * first. */
static void mix_inks(unsigned char *row, size_t count)
{
    unsigned char *to = row;

    for (size_t i = 0; i < count; i++, row += 4, to += 3) {
        unsigned char cyan = row[0], magenta = row[1], yellow = row[2], black = row[3];

        to[0] = left_by(cyan, black);
        to[1] = left_by(magenta, black);
        to[2] = left_by(yellow, black);
    }
}

static tn_status decode(struct image_file *file, const struct image_part *part, image_row *take,
                        void *user)
{
    struct image_jpeg *work = file->jpeg;
    struct jpeg_decompress_struct *jpeg = &work->jpeg;
    int64_t first;

    if (setjmp(work->back))
        return damaged(file);
    (void)jpeg_start_decompress(jpeg);
    first = choose_columns(file, part);
    skip_rows(work, part->top);
    while (jpeg->output_scanline < (JDIMENSION)(part->top + part->height)) {
        int64_t row = jpeg->output_scanline;

        (void)jpeg_read_scanlines(jpeg, &work->row, 1);
        if (work->bytes == 4)
            mix_inks(work->row, jpeg->output_width);
        take(user, row, work->row + 3 * (part->left - first));
    }
    if (jpeg->output_scanline == jpeg->output_height)
        (void)jpeg_finish_decompress(jpeg);
    return TN_OK;
}

tn_status image_jpeg_read(struct image_file *file, const struct image_part *part, image_row *take,
                          void *user)
{
    struct image_jpeg *work = file->jpeg;

    /* The row is not aligned: libjpeg-turbo would write an aligned row around the cache, although
     * `take` reads it at once. */
    work->memory = tn_calloc(1, work->bytes * (size_t)file->width + 1 + IMAGE_SLACK);
    if (work->memory == NULL)
        return TN_ERR_MEMORY;
    work->row = work->memory + 1;
    return decode(file, part, take, user);
}

void image_jpeg_close(struct image_file *file)
{
    jpeg_destroy_decompress(&file->jpeg->jpeg);
    tn_free(file->jpeg->memory);
    tn_free(file->jpeg);
    file->jpeg = NULL;
}
#else
tn_status image_jpeg_open(struct image_file *file)
{
    return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                   "%s: a JPEG file, but this plugin was built without libjpeg (configure "
                   "--with-libjpeg)",
                   file->path);
}

tn_status image_jpeg_read(struct image_file *file, const struct image_part *part, image_row *take,
                          void *user)
{
    (void)part;
    (void)take;
    (void)user;
    return image_jpeg_open(file);
}

void image_jpeg_close(struct image_file *file)
{
    (void)file;
}
#endif
