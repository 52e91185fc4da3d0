/* SPDX-License-Identifier: MIT
 *
 * The formats of pictures: how a file of each begins, and which functions read it. */
#include "image.h"

#include <string.h>

/* ---- how files begin ------------------------------------------------------------------------- */

static bool is_png(const void *bytes, uint64_t size)
{
    return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static bool is_jpeg(const void *bytes, uint64_t size)
{
    return size >= 3 && memcmp(bytes, "\xFF\xD8\xFF", 3) == 0;
}

static bool is_bmp(const void *bytes, uint64_t size)
{
    return size >= 2 && memcmp(bytes, "BM", 2) == 0;
}

static bool is_webp(const void *bytes, uint64_t size)
{
    return size >= 12 && memcmp(bytes, "RIFF", 4) == 0 &&
           memcmp((const char *)bytes + 8, "WEBP", 4) == 0;
}

static bool is_tiff(const void *bytes, uint64_t size)
{
    return size >= 4 && (memcmp(bytes, "II*\0", 4) == 0 || memcmp(bytes, "MM\0*", 4) == 0 ||
                         memcmp(bytes, "II+\0", 4) == 0 || memcmp(bytes, "MM\0+", 4) == 0);
}

static bool is_gif(const void *bytes, uint64_t size)
{
    return size >= 6 && (memcmp(bytes, "GIF87a", 6) == 0 || memcmp(bytes, "GIF89a", 6) == 0);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct image_format formats[] = {
    { "PNG", is_png, NULL, image_png_open, image_png_read, image_png_close },
    { "JPEG", is_jpeg, NULL, image_jpeg_open, image_jpeg_read, image_jpeg_close },
    { "BMP", is_bmp, NULL, image_bmp_open, image_bmp_read, image_bmp_close },
    { "WebP", is_webp, image_webp_lack,
#ifdef TN_WITH_LIBWEBP
      image_webp_open, image_webp_read, image_webp_close
#else
      NULL, NULL, NULL
#endif
    },
    { "TIFF", is_tiff, image_tiff_lack,
#ifdef TN_WITH_LIBTIFF
      image_tiff_open, image_tiff_read, image_tiff_close
#else
      NULL, NULL, NULL
#endif
    },
    { "GIF", is_gif, image_gif_lack,
#ifdef TN_WITH_GIFLIB
      image_gif_open, image_gif_read, image_gif_close
#else
      NULL, NULL, NULL
#endif
    },
};

const struct image_format *image_format_of(const void *bytes, uint64_t size)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].known(bytes, size))
            return &formats[i];
    return NULL;
}

bool image_known(const void *bytes, uint64_t size)
{
    return image_format_of(bytes, size) != NULL;
}

tn_status image_format_refuse(const struct image_file *file)
{
    static const struct {
        const char *bytes;
        unsigned place, length;
        const char *name;
    } others[] = { { "ftypheic", 4, 8, "a HEIC" },
                   { "ftypavif", 4, 8, "an AVIF" },
                   { "\0\0\0\fjP", 0, 6, "a JPEG 2000" },
                   { "\xFF\n", 0, 2, "a JPEG XL" } };

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (file->size >= others[i].place + others[i].length &&
            memcmp((const char *)file->bytes + others[i].place, others[i].bytes,
                   others[i].length) == 0)
            return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                           "%s: %s file; expected " IMAGE_FORMATS ", convert it to PNG", file->path,
                           others[i].name);
    return tn_fail(TN_ERR_FORMAT, "%s: no " IMAGE_FORMATS " file", file->path);
}

/* ---- their endings --------------------------------------------------------------------------- */

const char *const image_extensions[] = { ".png",  ".jpg", ".jpeg", ".bmp", ".webp",
                                         ".tiff", ".tif", ".gif",  NULL };

const char *image_lack(const char *ending)
{
    return strcmp(ending, ".webp") == 0                                  ? image_webp_lack()
           : strcmp(ending, ".tif") == 0 || strcmp(ending, ".tiff") == 0 ? image_tiff_lack()
           : strcmp(ending, ".gif") == 0                                 ? image_gif_lack()
                                                                         : NULL;
}
