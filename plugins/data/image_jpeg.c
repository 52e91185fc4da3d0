/* SPDX-License-Identifier: MIT
 *
 * Decodes JPEG with libjpeg. Grey becomes RGB. */
#include "image.h"

#ifdef TN_WITH_LIBJPEG
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

/* All that must survive a longjmp. The first two members are what libjpeg knows of it. */
struct jpeg_work {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf back;
    const char *path;
    struct image_rgb *image;
    char words[JMSG_LENGTH_MAX];
};

static void leave(j_common_ptr jpeg)
{
    struct jpeg_work *work = jpeg->client_data;

    (*jpeg->err->format_message)(jpeg, work->words);
    longjmp(work->back, 1);
}

/* libjpeg replaces what is missing in a damaged file by grey, and only warns. A file that is cut or
 * whose code is wrong is an error here; harmless warnings, such as extra bytes, are ignored. */
static void on_message(j_common_ptr jpeg, int level)
{
    int code = jpeg->err->msg_code;

    if (level < 0 &&
        (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE))
        leave(jpeg);
}

static void no_output(j_common_ptr jpeg)
{
    (void)jpeg;
}

static tn_status decode(struct jpeg_work *work, const void *bytes, uint64_t size)
{
    struct jpeg_decompress_struct *jpeg = &work->jpeg;
    struct image_rgb *image = work->image;
    tn_status status;

    if (setjmp(work->back))
        return tn_fail(TN_ERR_FORMAT, "%s: damaged JPEG file: %s", work->path, work->words);
    jpeg_create_decompress(jpeg);
    jpeg_mem_src(jpeg, bytes, (unsigned long)size);
    (void)jpeg_read_header(jpeg, TRUE);
    if (jpeg->num_components != 1 && jpeg->num_components != 3)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: a JPEG file with %d color components; expected 1 or 3, convert it to "
                       "RGB",
                       work->path, jpeg->num_components);
    jpeg->out_color_space = JCS_RGB;
    status = image_allocate(image, work->path, jpeg->image_height, jpeg->image_width);
    if (status != TN_OK)
        return status;
    (void)jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = image->pixels + 3 * (size_t)jpeg->output_scanline * (size_t)image->width;

        (void)jpeg_read_scanlines(jpeg, &row, 1);
    }
    (void)jpeg_finish_decompress(jpeg);
    return TN_OK;
}

tn_status image_read_jpeg(const char *path, const void *bytes, uint64_t size,
                          struct image_rgb *image)
{
    struct jpeg_work *work = tn_calloc(1, sizeof *work);
    tn_status status;

    if (work == NULL)
        return TN_ERR_MEMORY;
    work->path = path;
    work->image = image;
    work->jpeg.err = jpeg_std_error(&work->errors);
    work->jpeg.client_data = work;
    work->errors.error_exit = leave;
    work->errors.emit_message = on_message;
    work->errors.output_message = no_output;
    status = decode(work, bytes, size);
    jpeg_destroy_decompress(&work->jpeg);
    tn_free(work);
    if (status != TN_OK) {
        tn_free(image->pixels);
        image->pixels = NULL;
    }
    return status;
}
#else
tn_status image_read_jpeg(const char *path, const void *bytes, uint64_t size,
                          struct image_rgb *image)
{
    (void)bytes;
    (void)size;
    (void)image;
    return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                   "%s: a JPEG file, but this plugin was built without libjpeg (configure "
                   "--with-libjpeg)",
                   path);
}
#endif
