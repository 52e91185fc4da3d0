/* SPDX-License-Identifier: MIT
 *
 * Readers of the files of a report that share no code with it: checksums bit by bit, protocol
 * buffers and PNG by their specifications. */
#ifndef TN_TESTS_TOOLS_READERS_H
#define TN_TESTS_TOOLS_READERS_H

#include "tests/base/suite.h"

#include <string.h>

typedef struct bytes {
    unsigned char *at;
    size_t size;
} bytes;

static inline bytes read_whole(const char *path)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    bytes b = { malloc(8 << 20), 0 };
    b.size = fread(b.at, 1, (8 << 20) - 1, file);
    b.at[b.size] = '\0';
    fclose(file);
    return b;
}

static inline uint64_t number_at(const unsigned char *at, int count)
{
    uint64_t number = 0;
    while (count-- > 0)
        number = number << 8 | at[count];
    return number;
}

/* The remainder of bytes by a polynomial whose bits are reversed. */
static inline uint32_t remainder_of(const unsigned char *at, size_t size, uint32_t polynomial)
{
    uint32_t sum = 0xffffffff;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        uint32_t low = (sum ^ (at[bit / 8] >> (bit % 8))) & 1;
        sum = (sum >> 1) ^ (low ? polynomial : 0);
    }
    return sum ^ 0xffffffff;
}

static inline uint32_t masked(const unsigned char *at, size_t size)
{
    uint32_t sum = remainder_of(at, size, 0x82f63b78);
    return (sum << 17 | sum >> 15) + 0xa282ead8u;
}

/* Finds the nth field with the number `wanted` in a message; returns the address of its content
 * (after key and size) and stores the size of the content in `size`; for a varint, stores the
 * number in `size`. NULL if there is none. */
static inline const unsigned char *field(const unsigned char *at, size_t length, uint64_t wanted,
                                         int nth, size_t *size)
{
    const unsigned char *end = at + length;
    *size = 0;
    while (at < end) {
        uint64_t parts[2] = { 0, 0 };
        int count = 1;
        for (int i = 0; i < count; i++) {
            int shift = 0;
            do
                parts[i] |= (uint64_t)(*at & 127) << (7 * shift++);
            while (*at++ & 128);
            if (i == 0 && ((parts[0] & 7) == 0 || (parts[0] & 7) == 2))
                count = 2;
        }
        *size = (parts[0] & 7) == 1 ? 8 : (parts[0] & 7) == 5 ? 4 : (size_t)parts[1];
        if (parts[0] >> 3 == wanted && nth-- == 0)
            return at;
        at += (parts[0] & 7) == 0 ? 0 : *size;
        ck_assert(at <= end);
    }
    return NULL;
}

static inline double real_at(const unsigned char *at)
{
    uint64_t bits = number_at(at, 8);
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

static inline float float_at(const unsigned char *at)
{
    uint32_t bits = (uint32_t)number_at(at, 4);
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

/* The nth event of a file, whose checksums are right. Returns false at the end of the file. */
static inline bool event_at(const bytes *file, int nth, bytes *event)
{
    size_t at = 0;
    for (; at < file->size; nth--) {
        size_t size = number_at(file->at + at, 8);
        ck_assert_uint_le(at + size + 16, file->size);
        ck_assert_uint_eq(number_at(file->at + at + 8, 4), masked(file->at + at, 8));
        ck_assert_uint_eq(number_at(file->at + at + 12 + size, 4),
                          masked(file->at + at + 12, size));
        *event = (bytes){ file->at + at + 12, size };
        if (nth == 0)
            return true;
        at += size + 16;
    }
    return false;
}

/* Finds the value of a tag at a step: how many there are, and the last. */
static inline int find_value(const bytes *file, const char *tag, uint64_t step, bytes *out)
{
    bytes event;
    int found = 0;
    for (int i = 0; event_at(file, i, &event); i++) {
        size_t number = 0, size, length, name;
        field(event.at, event.size, 2, 0, &number);
        const unsigned char *summary = field(event.at, event.size, 5, 0, &size), *value;
        for (int k = 0; summary != NULL && number == step &&
                        (value = field(summary, size, 1, k, &length)) != NULL;
             k++) {
            const unsigned char *text = field(value, length, 1, 0, &name);
            if (text == NULL || name != strlen(tag) || memcmp(text, tag, name) != 0)
                continue;
            *out = (bytes){ (unsigned char *)(uintptr_t)value, length };
            found++;
        }
    }
    return found;
}

/* ---- PNG ------------------------------------------------------------------------------------- */

typedef struct bit_reader {
    const unsigned char *at;
    size_t bit;
} bit_reader;

static inline unsigned take(bit_reader *r, int count)
{
    unsigned value = 0;
    for (int i = 0; i < count; i++, r->bit++)
        value |= (unsigned)(r->at[r->bit / 8] >> (r->bit % 8) & 1) << i;
    return value;
}

static inline unsigned take_code(bit_reader *r, int count)
{
    unsigned value = 0;
    for (int i = 0; i < count; i++)
        value = value << 1 | take(r, 1);
    return value;
}

/* A symbol of the fixed codes of RFC 1951, 3.2.6. */
static inline unsigned take_symbol(bit_reader *r)
{
    unsigned code = take_code(r, 7);
    if (code < 24)
        return 256 + code;
    code = code << 1 | take(r, 1);
    if (code < 192)
        return code - 48;
    if (code < 200)
        return 280 + code - 192;
    return 144 + ((code << 1 | take(r, 1)) - 400);
}

static inline size_t unpack(const unsigned char *at, unsigned char *out)
{
    static const int lengths[] = { 3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                   31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258 };
    static const int distances[] = {
        1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
        193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577
    };
    bit_reader r = { at, 0 };
    size_t size = 0;
    for (unsigned last = 0; !last;) {
        last = take(&r, 1);
        if (take(&r, 2) == 0) {
            r.bit = (r.bit + 7) / 8 * 8;
            unsigned count = take(&r, 16);
            ck_assert_uint_eq(take(&r, 16), count ^ 0xffff);
            for (; count > 0; count--)
                out[size++] = (unsigned char)take(&r, 8);
            continue;
        }
        for (unsigned symbol; (symbol = take_symbol(&r)) != 256;) {
            if (symbol < 256) {
                out[size++] = (unsigned char)symbol;
                continue;
            }
            int code = (int)symbol - 257, bits = code < 8 || code == 28 ? 0 : code / 4 - 1;
            int length = lengths[code] + (int)take(&r, bits);
            code = (int)take_code(&r, 5);
            int distance = distances[code] + (int)take(&r, code < 4 ? 0 : code / 2 - 1);
            for (; length > 0; length--, size++)
                out[size] = out[size - (size_t)distance];
        }
    }
    return size;
}

static inline unsigned big_at(const unsigned char *at)
{
    return (unsigned)at[0] << 24 | (unsigned)at[1] << 16 | (unsigned)at[2] << 8 | at[3];
}

/* Reads a PNG file of three chunks into pixels; returns the channels. */
static inline int read_png(const unsigned char *at, unsigned char *pixels, unsigned *width,
                           unsigned *height)
{
    static unsigned char rows[1 << 20];
    ck_assert_mem_eq(at, "\x89PNG\r\n\x1a\n", 8);
    const unsigned char *head = at + 8, *data = head + 25;
    unsigned size = big_at(data);
    ck_assert_mem_eq(head + 4, "IHDR", 4);
    ck_assert_mem_eq(data + 4, "IDAT", 4);
    ck_assert_mem_eq(data + 12 + size, "\0\0\0\0IEND\xae\x42\x60\x82", 12);
    ck_assert_uint_eq(big_at(head + 21), remainder_of(head + 4, 17, 0xedb88320));
    ck_assert_uint_eq(big_at(data + 8 + size), remainder_of(data + 4, size + 4, 0xedb88320));
    *width = big_at(head + 8);
    *height = big_at(head + 12);
    int channels = head[17] == 0 ? 1 : head[17] == 2 ? 3 : 4;
    int row = (int)*width * channels;
    ck_assert_uint_eq(unpack(data + 10, rows), *height * (unsigned)(row + 1));
    for (int y = 0; y < (int)*height; y++)
        for (int i = 0; i < row; i++) {
            unsigned char *to = pixels + y * row + i;
            int a = i >= channels ? to[-channels] : 0, b = y > 0 ? to[-row] : 0;
            int c = i >= channels && y > 0 ? to[-row - channels] : 0;
            int pa = abs(b - c), pb = abs(a - c), pc = abs(a + b - 2 * c);
            int paeth = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
            int guess[] = { 0, a, b, (a + b) / 2, paeth };
            *to = (unsigned char)(rows[y * (row + 1) + 1 + i] + guess[rows[y * (row + 1)]]);
        }
    return channels;
}

#endif
