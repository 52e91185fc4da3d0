/* SPDX-License-Identifier: MIT
 *
 * Decodes WebP with libwebp, which is opened at run time. Transparency is ignored. Of a file with
 * several pictures the first is read. */
#include "image.h"

#include <string.h>

static uint32_t number_at(const unsigned char *at, int bytes)
{
    uint32_t number = 0;

    for (int i = bytes - 1; i >= 0; i--)
        number = number << 8 | at[i];
    return number;
}

const unsigned char *image_webp_chunk(const void *bytes, uint64_t size, const char *name,
                                      uint64_t *length)
{
    const unsigned char *at = bytes;
    uint64_t place = 12;

    while (size > place && size - place >= 8) {
        uint64_t count = number_at(at + place + 4, 4);

        if (count > size - place - 8)
            return NULL;
        if (memcmp(at + place, name, 4) == 0) {
            *length = count;
            return at + place + 8;
        }
        place += 8 + count + count % 2;
    }
    return NULL;
}

#ifdef TN_WITH_LIBWEBP
#include "library.h"

#include <webp/decode.h>

static struct {
    __typeof__(WebPGetFeaturesInternal) *features;
    __typeof__(WebPDecodeRGBInto) *decode;
} webp;
static const char *const names[] = { "libwebp.so.7", "libwebp.so.6", NULL };
static const char *const symbols[] = { "WebPGetFeaturesInternal", "WebPDecodeRGBInto", NULL };
static struct data_library library = { .names = names, .symbols = symbols, .functions = &webp };

struct image_webp {
    const unsigned char *frame; /* the first picture */
    size_t size;
    int64_t top, left; /* its place in a file of several */
    int height, width;
    unsigned char *pixels;
};

const char *image_webp_lack(void)
{
    return data_library_open(&library) ? NULL : "libwebp.so.7 is missing (Debian: libwebp7)";
}

static tn_status damaged(const struct image_file *file, const char *what)
{
    return tn_fail(TN_ERR_FORMAT, "%s: damaged WebP file: %s", file->path, what);
}

/* Finds the first picture of several: its place, its size and a time, then chunks as in a file. */
static tn_status find_frame(struct image_file *file)
{
    struct image_webp *work = file->webp;
    uint64_t length;
    const unsigned char *at = image_webp_chunk(file->bytes, file->size, "ANMF", &length);
    WebPBitstreamFeatures is;

    if (at == NULL || length < 16)
        return damaged(file, "there is no picture");
    work->left = 2 * (int64_t)number_at(at, 3);
    work->top = 2 * (int64_t)number_at(at + 3, 3);
    work->width = (int)number_at(at + 6, 3) + 1;
    work->height = (int)number_at(at + 9, 3) + 1;
    work->frame = at + 16;
    work->size = (size_t)(length - 16);
    if (work->left + work->width > file->width || work->top + work->height > file->height ||
        webp.features(work->frame, work->size, &is, WEBP_DECODER_ABI_VERSION) != VP8_STATUS_OK ||
        is.width != work->width || is.height != work->height)
        return damaged(file, "the sizes of its pictures do not agree");
    return TN_OK;
}

tn_status image_webp_open(struct image_file *file)
{
    struct image_webp *work = tn_calloc(1, sizeof *work);
    WebPBitstreamFeatures is;
    tn_status status;

    if (work == NULL)
        return TN_ERR_MEMORY;
    file->webp = work;
    if (webp.features(file->bytes, (size_t)file->size, &is, WEBP_DECODER_ABI_VERSION) !=
        VP8_STATUS_OK)
        return damaged(file, "its header is wrong");
    work->frame = file->bytes;
    work->size = (size_t)file->size;
    work->width = is.width;
    work->height = is.height;
    status = image_file_size(file, (uint64_t)is.height, (uint64_t)is.width);
    return status == TN_OK && is.has_animation ? find_frame(file) : status;
}

tn_status image_webp_read(struct image_file *file, const struct image_part *part, image_row *take,
                          void *user)
{
    struct image_webp *work = file->webp;
    size_t line = 3 * (size_t)file->width, size = line * (size_t)file->height;
    size_t before = (size_t)work->top * line + 3 * (size_t)work->left;

    work->pixels = tn_calloc(1, size + IMAGE_SLACK);
    if (work->pixels == NULL)
        return TN_ERR_MEMORY;
    if (webp.decode(work->frame, work->size, work->pixels + before, size - before, (int)line) ==
        NULL)
        return damaged(file, "its pixels cannot be decoded; is it whole?");
    image_file_rows(file, part, work->pixels, take, user);
    return TN_OK;
}

void image_webp_close(struct image_file *file)
{
    tn_free(file->webp->pixels);
    tn_free(file->webp);
    file->webp = NULL;
}
#else
const char *image_webp_lack(void)
{
    return "this plugin was built without libwebp (configure --with-libwebp; Debian: libwebp-dev)";
}
#endif
