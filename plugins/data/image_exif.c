/* SPDX-License-Identifier: MIT
 *
 * The orientation of a picture (EXIF, tag 274), which cameras write in place of turning the pixels:
 * in a part of a JPEG, PNG or WebP file. A file whose part is damaged has no orientation. */
#include "image.h"

#include <string.h>

static uint32_t number_at(const unsigned char *at, int bytes, bool big)
{
    uint32_t number = 0;

    for (int i = 0; i < bytes; i++)
        number = number << 8 | at[big ? i : bytes - 1 - i];
    return number;
}

/* Finds the tag in the first directory of the TIFF that EXIF is. */
static int in_tiff(const unsigned char *at, uint64_t size)
{
    bool big;
    uint64_t directory;
    uint32_t count;

    if (size < 8 || (memcmp(at, "II*\0", 4) != 0 && memcmp(at, "MM\0*", 4) != 0))
        return 1;
    big = at[0] == 'M';
    directory = number_at(at + 4, 4, big);
    if (directory > size || size - directory < 2)
        return 1;
    count = number_at(at + directory, 2, big);
    at += directory + 2;
    size -= directory + 2;
    for (uint32_t i = 0; i < count && size >= 12; i++, at += 12, size -= 12) {
        uint32_t value = number_at(at + 8, 2, big);

        /* one number of 16 bits */
        if (number_at(at, 2, big) == 274)
            return number_at(at + 2, 2, big) == 3 && value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

/* The parts of a JPEG file before its pixels: FF, a code, a length with its two bytes. */
static int in_jpeg(const unsigned char *at, uint64_t size)
{
    uint64_t place = 2;

    while (size - place >= 4 && at[place] == 0xFF) {
        int code = at[place + 1];
        uint64_t length = number_at(at + place + 2, 2, true);

        if (code == 0xFF) { /* a byte that fills */
            place++;
            continue;
        }
        if (code == 0xDA || length < 2 || length > size - place - 2)
            return 1;
        if (code == 0xE1 && length >= 8 && memcmp(at + place + 4, "Exif\0\0", 6) == 0)
            return in_tiff(at + place + 10, length - 8);
        place += 2 + length;
    }
    return 1;
}

/* The chunks of a PNG file: a length, a name, as many bytes, a checksum. */
static int in_png(const unsigned char *at, uint64_t size)
{
    uint64_t place = 8;

    while (size - place >= 12) {
        uint64_t length = number_at(at + place, 4, true);

        if (length > size - place - 12)
            return 1;
        if (memcmp(at + place + 4, "eXIf", 4) == 0)
            return in_tiff(at + place + 8, length);
        place += 12 + length;
    }
    return 1;
}

static int in_webp(const unsigned char *at, uint64_t size)
{
    uint64_t length;
    const unsigned char *exif = image_webp_chunk(at, size, "EXIF", &length);

    if (exif != NULL && length >= 6 && memcmp(exif, "Exif\0\0", 6) == 0)
        return in_tiff(exif + 6, length - 6); /* as in a JPEG file, which some programs copy */
    return exif != NULL ? in_tiff(exif, length) : 1;
}

int image_exif_orientation(const void *bytes, uint64_t size)
{
    const unsigned char *at = bytes;

    if (size >= 8 && at[0] == 0x89)
        return in_png(at, size);
    if (size >= 12 && at[0] == 'R')
        return in_webp(at, size);
    return size >= 4 && at[0] == 0xFF ? in_jpeg(at, size) : 1;
}
