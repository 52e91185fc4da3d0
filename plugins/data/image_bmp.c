/* SPDX-License-Identifier: MIT
 *
 * Decodes BMP: 1, 4 and 8 bits with a palette, 16, 24 and 32 bits, without compression.
 * Transparency is ignored. */
#include "image.h"

#include <string.h>

enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40 };
enum { PLAIN = 0, FIELDS = 3, FIELDS_ALPHA = 6 };

/* A part of a pixel that is one color. */
struct field {
    uint32_t mask;
    int shift, bits;
};

struct image_bmp {
    uint64_t data, stride; /* where the rows begin, and their bytes */
    int bits;
    bool top_down;
    const unsigned char *palette;
    uint32_t colors; /* of the palette */
    uint32_t entry;  /* bytes of a color: blue, green, red */
    struct field fields[3];
    unsigned char *row; /* of the part: RGB */
};

static uint32_t u16_at(const unsigned char *at)
{
    return (uint32_t)(at[0] | at[1] << 8);
}

static uint32_t u32_at(const unsigned char *at)
{
    return u16_at(at) | u16_at(at + 2) << 16;
}

static tn_status damaged(const struct image_file *file, const char *what)
{
    return tn_fail(TN_ERR_FORMAT, "%s: damaged BMP file: %s", file->path, what);
}

/* ---- the header ------------------------------------------------------------------------------ */

/* Sets a field from its mask, which must be one group of bits. */
static bool set_field(struct field *field, uint32_t mask)
{
    *field = (struct field){ .mask = mask };
    if (mask == 0)
        return false;
    while ((mask >> field->shift & 1) == 0)
        field->shift++;
    while (field->shift + field->bits < 32 && (mask >> (field->shift + field->bits) & 1) != 0)
        field->bits++;
    return (mask >> field->shift) == (field->bits == 32 ? UINT32_MAX : (1u << field->bits) - 1);
}

/* Sets the colors of pixels of 16 and 32 bits, whose masks are at `masks`, or are usual ones. */
static tn_status set_fields(struct image_file *file, const unsigned char *masks)
{
    static const uint32_t usual[2][3] = { { 0x7C00, 0x3E0, 0x1F }, { 0xFF0000, 0xFF00, 0xFF } };
    struct image_bmp *bmp = file->bmp;

    for (int i = 0; i < 3; i++) {
        uint32_t mask = masks != NULL ? u32_at(masks + 4 * i) : usual[bmp->bits == 32][i];

        if (!set_field(&bmp->fields[i], mask) || (bmp->bits == 16 && mask > 0xFFFF))
            return damaged(file, "wrong masks of colors");
    }
    return TN_OK;
}

/* Finds the palette, which follows the header. */
static tn_status set_palette(struct image_file *file, uint64_t header, uint32_t colors)
{
    const unsigned char *bytes = file->bytes;
    struct image_bmp *bmp = file->bmp;
    uint32_t most = 1u << bmp->bits;

    bmp->entry = header == CORE_HEADER ? 3 : 4;
    bmp->colors = colors == 0 ? most : colors;
    if (bmp->colors > most ||
        FILE_HEADER + header + (uint64_t)bmp->colors * bmp->entry > file->size)
        return damaged(file, "the palette is too long");
    bmp->palette = bytes + FILE_HEADER + header;
    return TN_OK;
}

static tn_status check_kind(const struct image_file *file, uint32_t compression)
{
    int bits = file->bmp->bits;
    bool fields = compression == FIELDS || compression == FIELDS_ALPHA;

    if ((compression == PLAIN &&
         (bits == 1 || bits == 4 || bits == 8 || bits == 16 || bits == 24 || bits == 32)) ||
        (fields && (bits == 16 || bits == 32)))
        return TN_OK;
    return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                   "%s: a BMP file of a kind that is not read, got %d bits and compression %u; "
                   "expected no compression, convert it to PNG",
                   file->path, bits, compression);
}

/* Checks that the rows are in the file. */
static tn_status check_rows(const struct image_file *file)
{
    struct image_bmp *bmp = file->bmp;
    uint64_t size;

    bmp->stride = ((uint64_t)file->width * (uint64_t)bmp->bits + 31) / 32 * 4;
    if (__builtin_mul_overflow(bmp->stride, (uint64_t)file->height, &size) ||
        bmp->data > file->size || size > file->size - bmp->data)
        return damaged(file, "the file is too short");
    return TN_OK;
}

static tn_status read_header(struct image_file *file)
{
    const unsigned char *bytes = file->bytes, *info = bytes + FILE_HEADER;
    struct image_bmp *bmp = file->bmp;
    uint64_t header = file->size >= FILE_HEADER + 4 ? u32_at(info) : 0;
    uint32_t compression = PLAIN, colors = 0;
    int64_t height, width;
    tn_status status;

    if ((header != CORE_HEADER && header < INFO_HEADER) || header > file->size - FILE_HEADER)
        return damaged(file, "the header is too short");
    bmp->data = u32_at(bytes + 10);
    if (header == CORE_HEADER) {
        width = u16_at(info + 4);
        height = u16_at(info + 6);
        bmp->bits = (int)u16_at(info + 10);
    } else {
        width = (int32_t)u32_at(info + 4);
        height = (int32_t)u32_at(info + 8);
        bmp->bits = (int)u16_at(info + 14);
        compression = u32_at(info + 16);
        colors = u32_at(info + 32);
    }
    bmp->top_down = height < 0;
    status = check_kind(file, compression);
    if (status == TN_OK)
        status = image_file_size(file, (uint64_t)(height < 0 ? -height : height),
                                 width < 0 ? 0 : (uint64_t)width);
    if (status == TN_OK && bmp->bits <= 8)
        status = set_palette(file, header, colors);
    /* The masks follow a header of 40 bytes, and are at the same place in a longer one. */
    if (status == TN_OK && compression != PLAIN && file->size < FILE_HEADER + INFO_HEADER + 12)
        status = damaged(file, "the header is too short");
    if (status == TN_OK && (bmp->bits == 16 || bmp->bits == 32))
        status = set_fields(file, compression != PLAIN ? info + INFO_HEADER : NULL);
    return status == TN_OK ? check_rows(file) : status;
}

tn_status image_bmp_open(struct image_file *file)
{
    file->bmp = tn_calloc(1, sizeof *file->bmp);
    return file->bmp != NULL ? read_header(file) : TN_ERR_MEMORY;
}

/* ---- the pixels ------------------------------------------------------------------------------ */

/* From `bits` bits to 8. */
static unsigned char color_of(const struct field *field, uint32_t pixel)
{
    uint64_t value = (pixel & field->mask) >> field->shift, most = (UINT64_C(1) << field->bits) - 1;

    return (unsigned char)(value * 255 / most);
}

static tn_status put_pixel(const struct image_file *file, const unsigned char *row, int64_t x,
                           unsigned char *rgb)
{
    const struct image_bmp *bmp = file->bmp;
    const unsigned char *at;
    uint32_t pixel;

    if (bmp->bits <= 8) {
        uint64_t bit = (uint64_t)x * (uint64_t)bmp->bits;

        pixel = (uint32_t)(row[bit / 8] >> (8 - bmp->bits - (int)(bit % 8))) &
                ((1u << bmp->bits) - 1);
        if (pixel >= bmp->colors)
            return damaged(file, "a pixel has no color in the palette");
        at = bmp->palette + (uint64_t)pixel * bmp->entry;
    } else {
        at = row + x * (bmp->bits / 8);
        if (bmp->bits != 24) {
            pixel = bmp->bits == 16 ? u16_at(at) : u32_at(at);
            for (int i = 0; i < 3; i++)
                rgb[i] = color_of(&bmp->fields[i], pixel);
            return TN_OK;
        }
    }
    rgb[0] = at[2];
    rgb[1] = at[1];
    rgb[2] = at[0];
    return TN_OK;
}

tn_status image_bmp_read(struct image_file *file, const struct image_part *part, image_row *take,
                         void *user)
{
    struct image_bmp *bmp = file->bmp;
    const unsigned char *data = (const unsigned char *)file->bytes + bmp->data;
    tn_status status = TN_OK;

    bmp->row = tn_calloc(1, 3 * (size_t)part->width + IMAGE_SLACK);
    if (bmp->row == NULL)
        return TN_ERR_MEMORY;
    for (int64_t y = part->top; y < part->top + part->height && status == TN_OK; y++) {
        uint64_t place = (uint64_t)(bmp->top_down ? y : file->height - 1 - y);
        const unsigned char *row = data + place * bmp->stride;

        for (int64_t x = 0; x < part->width && status == TN_OK; x++)
            status = put_pixel(file, row, part->left + x, bmp->row + 3 * x);
        if (status == TN_OK)
            take(user, y, bmp->row);
    }
    return status;
}

void image_bmp_close(struct image_file *file)
{
    tn_free(file->bmp->row);
    tn_free(file->bmp);
    file->bmp = NULL;
}
