/* SPDX-License-Identifier: MIT
 *
 * Decodes the first picture of a TIFF with libtiff, which is opened at run time. Gray, palettes and
 * other colors become RGB, transparency is ignored, 16 bits become 8. */
#include "image.h"

#ifdef TN_WITH_LIBTIFF
#include "library.h"

#include <stdio.h>
#include <string.h>

#include <tiffio.h>

static struct {
    __typeof__(TIFFOpenOptionsAlloc) *options_new;
    __typeof__(TIFFOpenOptionsFree) *options_drop;
    __typeof__(TIFFOpenOptionsSetMaxSingleMemAlloc) *options_most;
    __typeof__(TIFFOpenOptionsSetErrorHandlerExtR) *options_error;
    __typeof__(TIFFOpenOptionsSetWarningHandlerExtR) *options_warning;
    __typeof__(TIFFClientOpenExt) *open;
    __typeof__(TIFFGetField) *get;
    __typeof__(TIFFGetFieldDefaulted) *get_defaulted;
    __typeof__(TIFFSetField) *set;
    __typeof__(TIFFIsTiled) *is_tiled;
    __typeof__(TIFFTileSize64) *tile_size;
    __typeof__(TIFFStripSize64) *strip_size;
    __typeof__(TIFFRGBAImageOK) *can_read;
    __typeof__(TIFFReadRGBAImageOriented) *read;
    __typeof__(TIFFClose) *close;
} tiff;
static const char *const names[] = { "libtiff.so.6", NULL };
static const char *const symbols[] = { "TIFFOpenOptionsAlloc",
                                       "TIFFOpenOptionsFree",
                                       "TIFFOpenOptionsSetMaxSingleMemAlloc",
                                       "TIFFOpenOptionsSetErrorHandlerExtR",
                                       "TIFFOpenOptionsSetWarningHandlerExtR",
                                       "TIFFClientOpenExt",
                                       "TIFFGetField",
                                       "TIFFGetFieldDefaulted",
                                       "TIFFSetField",
                                       "TIFFIsTiled",
                                       "TIFFTileSize64",
                                       "TIFFStripSize64",
                                       "TIFFRGBAImageOK",
                                       "TIFFReadRGBAImageOriented",
                                       "TIFFClose",
                                       NULL };
static struct data_library library = { .names = names, .symbols = symbols, .functions = &tiff };

struct image_tiff {
    TIFF *tiff;
    uint64_t at;
    uint32_t *raster;
    unsigned char *row;
    char words[128]; /* the first message of libtiff */
};

const char *image_tiff_lack(void)
{
    return data_library_open(&library) ? NULL : "libtiff.so.6 is missing (Debian: libtiff6)";
}

/* ---- the file, which is in memory ------------------------------------------------------------ */

static tmsize_t read_bytes(thandle_t handle, void *out, tmsize_t count)
{
    struct image_file *file = handle;
    uint64_t at = file->tiff->at, left = file->size > at ? file->size - at : 0;
    uint64_t some = (uint64_t)count < left ? (uint64_t)count : left;

    memcpy(out, (const unsigned char *)file->bytes + (some > 0 ? at : 0), (size_t)some);
    file->tiff->at += some;
    return (tmsize_t)some;
}

static tmsize_t write_bytes(thandle_t handle, void *bytes, tmsize_t count)
{
    (void)handle;
    (void)bytes;
    (void)count;
    return -1;
}

static toff_t seek(thandle_t handle, toff_t to, int from)
{
    struct image_file *file = handle;

    file->tiff->at = from == SEEK_CUR   ? file->tiff->at + to
                     : from == SEEK_END ? file->size + to
                                        : to;
    return file->tiff->at;
}

static int close_file(thandle_t handle)
{
    (void)handle;
    return 0;
}

static toff_t size_of_file(thandle_t handle)
{
    return ((const struct image_file *)handle)->size;
}

/* ---- messages -------------------------------------------------------------------------------- */

static int on_error(TIFF *is, void *user, const char *module, const char *format, va_list values)
{
    struct image_tiff *work = user;

    (void)is;
    (void)module;
    if (work->words[0] == '\0')
        (void)vsnprintf(work->words, sizeof work->words, format, values);
    return 1;
}

static int on_warning(TIFF *is, void *user, const char *module, const char *format, va_list values)
{
    (void)is;
    (void)user;
    (void)module;
    (void)format;
    (void)values;
    return 1;
}

static tn_status damaged(const struct image_file *file)
{
    return tn_fail(TN_ERR_FORMAT, "%s: damaged TIFF file: %s", file->path,
                   file->tiff->words[0] != '\0' ? file->tiff->words : "it is not whole");
}

/* ---- the header ------------------------------------------------------------------------------ */

static tn_status open_file(struct image_file *file)
{
    struct image_tiff *work = file->tiff;
    TIFFOpenOptions *options = tiff.options_new();

    if (options == NULL)
        return tn_fail(TN_ERR_MEMORY, "%s: libtiff cannot be started: out of memory", file->path);
    tiff.options_most(options, (tmsize_t)data_most(file->size));
    tiff.options_error(options, on_error, work);
    tiff.options_warning(options, on_warning, work);
    /* h: only the first picture is read; m: the file is not mapped */
    work->tiff = tiff.open("", "rm", file, read_bytes, write_bytes, seek, close_file, size_of_file,
                           NULL, NULL, options);
    tiff.options_drop(options);
    return work->tiff != NULL ? TN_OK : damaged(file);
}

/* Makes libtiff give rows as they are in the file, and colors that are not multiplied by the
 * transparency. */
static void set_conversions(struct image_file *file)
{
    uint16_t orientation = 1, count = 0, *kinds = NULL;
    TIFF *is = file->tiff->tiff;

    tiff.get_defaulted(is, TIFFTAG_ORIENTATION, &orientation);
    file->orientation = orientation >= 1 && orientation <= 8 ? orientation : 1;
    tiff.set(is, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
    if (tiff.get(is, TIFFTAG_EXTRASAMPLES, &count, &kinds) == 1 && count == 1) {
        uint16_t kind = EXTRASAMPLE_ASSOCALPHA;

        tiff.set(is, TIFFTAG_EXTRASAMPLES, 1, &kind);
    }
}

tn_status image_tiff_open(struct image_file *file)
{
    uint32_t height = 0, width = 0;
    uint64_t block;
    char why[1024] = "";
    TIFF *is;
    tn_status status;

    file->tiff = tn_calloc(1, sizeof *file->tiff);
    status = file->tiff != NULL ? open_file(file) : TN_ERR_MEMORY;
    if (status != TN_OK)
        return status;
    is = file->tiff->tiff;
    if (tiff.get(is, TIFFTAG_IMAGEWIDTH, &width) != 1 ||
        tiff.get(is, TIFFTAG_IMAGELENGTH, &height) != 1)
        return damaged(file);
    status = image_file_size(file, height, width);
    if (status != TN_OK)
        return status;
    if (tiff.can_read(is, why) != 1)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: a TIFF file of a kind that is not read: %s; convert it to PNG",
                       file->path, why);
    /* a strip may be larger than the picture, or have thousands of values in each pixel */
    block = tiff.is_tiled(is) ? tiff.tile_size(is) : tiff.strip_size(is);
    set_conversions(file);
    return block > 0 ? data_limit(file->path, file->size, block) : damaged(file);
}

/* ---- the pixels ------------------------------------------------------------------------------ */

tn_status image_tiff_read(struct image_file *file, const struct image_part *part, image_row *take,
                          void *user)
{
    struct image_tiff *work = file->tiff;

    work->raster = tn_malloc((size_t)(file->height * file->width) * sizeof *work->raster);
    work->row = tn_calloc(1, 3 * (size_t)part->width + IMAGE_SLACK);
    if (work->raster == NULL || work->row == NULL)
        return TN_ERR_MEMORY;
    if (tiff.read(work->tiff, (uint32_t)file->width, (uint32_t)file->height, work->raster,
                  ORIENTATION_TOPLEFT, 1) != 1)
        return damaged(file);
    for (int64_t y = part->top; y < part->top + part->height; y++) {
        const uint32_t *from = work->raster + y * file->width + part->left;

        for (int64_t x = 0; x < part->width; x++) {
            work->row[3 * x] = (unsigned char)TIFFGetR(from[x]);
            work->row[3 * x + 1] = (unsigned char)TIFFGetG(from[x]);
            work->row[3 * x + 2] = (unsigned char)TIFFGetB(from[x]);
        }
        take(user, y, work->row);
    }
    return TN_OK;
}

void image_tiff_close(struct image_file *file)
{
    if (file->tiff->tiff != NULL)
        tiff.close(file->tiff->tiff);
    tn_free(file->tiff->raster);
    tn_free(file->tiff->row);
    tn_free(file->tiff);
    file->tiff = NULL;
}
#else
const char *image_tiff_lack(void)
{
    return "this plugin was built without libtiff (configure --with-libtiff; Debian: libtiff-dev)";
}
#endif
