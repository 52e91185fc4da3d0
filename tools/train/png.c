/* SPDX-License-Identifier: MIT
 *
 * Writes PNG files. The pixels are stored, not compressed, so no other library is needed. */
#include <errno.h>
#include <string.h>

#include "predict.h"

enum { STORED_MOST = 65535 };

struct png {
    FILE *file;
    uint32_t crc;          /* of the chunk, inverted */
    uint32_t sum_a, sum_b; /* the two halves of Adler's checksum */
    uint32_t table[256];
};

static void make_table(struct png *p)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = (value & 1) != 0 ? 0xEDB88320u ^ value >> 1 : value >> 1;
        p->table[i] = value;
    }
}

static void put(struct png *p, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++)
        p->crc = p->table[(p->crc ^ at[i]) & 0xff] ^ p->crc >> 8;
    fwrite(bytes, 1, count, p->file);
}

static void put_number(struct png *p, uint32_t number)
{
    unsigned char bytes[4] = { (unsigned char)(number >> 24), (unsigned char)(number >> 16),
                               (unsigned char)(number >> 8), (unsigned char)number };
    put(p, bytes, 4);
}

static void begin_chunk(struct png *p, const char *type, uint64_t length)
{
    put_number(p, (uint32_t)length);
    p->crc = 0xffffffffu;
    put(p, type, 4);
}

static void end_chunk(struct png *p)
{
    put_number(p, p->crc ^ 0xffffffffu);
}

/* Writes one row as a stored block of its own, or as several if it is longer than a block may be.
 */
static void put_row(struct png *p, const unsigned char *row, uint64_t length, bool last)
{
    static const unsigned char no_filter = 0;
    for (uint64_t at = 0; at < length + 1;) { /* byte 0 is the filter */
        uint64_t left = length + 1 - at, size = left < STORED_MOST ? left : STORED_MOST;
        unsigned char head[5] = { last && size == left, (unsigned char)size,
                                  (unsigned char)(size >> 8), (unsigned char)~size,
                                  (unsigned char)(~size >> 8) };
        put(p, head, sizeof head);
        if (at == 0)
            put(p, &no_filter, 1);
        put(p, row + at - (at > 0), size - (at == 0));
        at += size;
    }
    p->sum_b = (p->sum_b + p->sum_a) % 65521; /* of the filter, which is 0 */
    for (uint64_t i = 0; i < length; i++) {
        p->sum_a = (p->sum_a + row[i]) % 65521;
        p->sum_b = (p->sum_b + p->sum_a) % 65521;
    }
}

static void put_file(struct png *p, const unsigned char *pixels, int64_t width, int64_t height,
                     int channels)
{
    static const unsigned char magic[] = "\x89PNG\r\n\x1a\n", zlib[] = { 0x78, 0x01 };
    unsigned char kind[5] = { 8, channels == 3 ? 2 : 0, 0, 0, 0 };
    uint64_t row = (uint64_t)(width * channels), blocks = (row + 1 + STORED_MOST - 1) / STORED_MOST;

    put(p, magic, 8);
    begin_chunk(p, "IHDR", 13);
    put_number(p, (uint32_t)width);
    put_number(p, (uint32_t)height);
    put(p, kind, sizeof kind);
    end_chunk(p);
    begin_chunk(p, "IDAT", 2 + (uint64_t)height * (row + 1 + 5 * blocks) + 4);
    put(p, zlib, 2);
    for (int64_t y = 0; y < height; y++)
        put_row(p, pixels + (uint64_t)y * row, row, y + 1 == height);
    put_number(p, p->sum_b << 16 | p->sum_a);
    end_chunk(p);
    begin_chunk(p, "IEND", 0);
    end_chunk(p);
}

tn_status png_write(const char *path, const unsigned char *pixels, int64_t width, int64_t height,
                    int channels)
{
    struct png p = { .sum_a = 1 };

    if (width < 1 || height < 1 || width > INT32_MAX / channels ||
        height > INT32_MAX / (width * channels + 16))
        return tn_fail(TN_ERR_VALUE, "%s: wrong size, got %lld x %lld pixels; expected 1 to 2 GiB",
                       path, (long long)width, (long long)height);
    p.file = fopen(path, "wb");
    if (p.file == NULL)
        return tn_fail_native(TN_ERR_IO, errno, "%s: cannot be written: %s", path, strerror(errno));
    make_table(&p);
    put_file(&p, pixels, width, height, channels);
    bool failed = ferror(p.file) != 0;
    if (fclose(p.file) == 0 && !failed)
        return TN_OK;
    int code = errno;
    remove(path);
    return tn_fail_native(TN_ERR_IO, code, "%s: cannot be written: %s", path, strerror(code));
}
