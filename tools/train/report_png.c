/* SPDX-License-Identifier: MIT
 *
 * PNG files and base64. Rows are filtered, compressed by repetitions (LZ77) with the fixed codes of
 * deflate, or stored where that is shorter. */
#include "report_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- deflate --------------------------------------------------------------------------------- */

enum { WINDOW = 32768, HASHES = 1 << 13, SHORTEST = 3, LONGEST = 258, TRIES = 32 };

/* Bits that are being written. They fill each byte from its lowest bit on. */
typedef struct bits {
    report_text *out;
    uint32_t held;
    int count;
} bits;

static void put_bits(bits *b, uint32_t value, int count)
{
    b->held |= value << b->count;
    for (b->count += count; b->count >= 8; b->count -= 8) {
        unsigned char byte = (unsigned char)b->held;
        report_text_bytes(b->out, &byte, 1);
        b->held >>= 8;
    }
}

/* Codes begin with their highest bit. */
static void put_code(bits *b, uint32_t code, int count)
{
    uint32_t turned = 0;
    for (int i = 0; i < count; i++)
        turned |= (code >> i & 1) << (count - 1 - i);
    put_bits(b, turned, count);
}

/* Writes the fixed code of a byte, of the end (256) or of a length. */
static void put_symbol(bits *b, int symbol)
{
    if (symbol < 144)
        put_code(b, 0x30 + (uint32_t)symbol, 8);
    else if (symbol < 256)
        put_code(b, 0x190 + (uint32_t)symbol - 144, 9);
    else if (symbol < 280)
        put_code(b, (uint32_t)symbol - 256, 7);
    else
        put_code(b, 0xc0 + (uint32_t)symbol - 280, 8);
}

/* Lengths and distances are in classes; a class of n extra bits has 2^n of them. */
static void put_match(bits *b, int length, int distance)
{
    int code = 257, first = SHORTEST, extra = 0;
    if (length == LONGEST) {
        code = 285;
        first = LONGEST;
    } else {
        while (length >= first + (1 << extra)) {
            first += 1 << extra;
            code++;
            extra = code < 265 ? 0 : (code - 261) / 4;
        }
    }
    put_symbol(b, code);
    put_bits(b, (uint32_t)(length - first), extra);
    code = 0;
    first = 1;
    extra = 0;
    while (distance >= first + (1 << extra)) {
        first += 1 << extra;
        code++;
        extra = code < 4 ? 0 : code / 2 - 1;
    }
    put_code(b, (uint32_t)code, 5);
    put_bits(b, (uint32_t)(distance - first), extra);
}

static uint32_t hash(const unsigned char *at)
{
    return ((uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2]) * 2654435761u >> 19;
}

/* Finds the longest repetition of what is at `at`. Returns its length, 0 if there is none. */
static int find_match(const unsigned char *bytes, int size, int at, const int *last,
                      const int *before, int *distance)
{
    int best = 0, limit = size - at < LONGEST ? size - at : LONGEST;
    if (limit < SHORTEST)
        return 0;
    int from = last[hash(bytes + at)];
    for (int tries = 0; from >= 0 && at - from <= WINDOW && tries < TRIES; tries++) {
        int length = 0;
        while (length < limit && bytes[from + length] == bytes[at + length])
            length++;
        if (length > best) {
            best = length;
            *distance = at - from;
        }
        from = before[from];
    }
    return best >= SHORTEST ? best : 0;
}

static tn_status compress(report_text *out, const unsigned char *bytes, int size)
{
    int *last = tn_malloc((HASHES + (size_t)size) * sizeof *last), *before = last + HASHES;
    bits b = { .out = out };
    if (last == NULL)
        return tn_error_last_code();
    for (int i = 0; i < HASHES; i++)
        last[i] = -1;
    put_bits(&b, 1, 1); /* the last block */
    put_bits(&b, 1, 2); /* of fixed codes */
    for (int at = 0; at < size;) {
        int distance = 0, length = find_match(bytes, size, at, last, before, &distance);
        if (length > 0)
            put_match(&b, length, distance);
        else
            put_symbol(&b, bytes[at]);
        for (int end = at + (length > 0 ? length : 1); at < end; at++)
            if (size - at >= SHORTEST) {
                before[at] = last[hash(bytes + at)];
                last[hash(bytes + at)] = at;
            }
    }
    put_symbol(&b, 256);
    put_bits(&b, 0, 7);
    tn_free(last);
    return out->status;
}

static void store(report_text *out, const unsigned char *bytes, int size)
{
    for (int at = 0; at < size;) {
        int part = size - at < 65535 ? size - at : 65535;
        unsigned char head[5] = { at + part == size, (unsigned char)part,
                                  (unsigned char)(part >> 8), (unsigned char)~part,
                                  (unsigned char)(~part >> 8) };
        report_text_bytes(out, head, sizeof head);
        report_text_bytes(out, bytes + at, (size_t)part);
        at += part;
    }
}

/* ---- PNG ------------------------------------------------------------------------------------- */

static uint32_t crc32(const unsigned char *bytes, size_t size)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0xedb88320 & (0 - (crc & 1)));
    }
    return ~crc;
}

static void put_big(report_text *t, uint32_t number)
{
    unsigned char bytes[4] = { (unsigned char)(number >> 24), (unsigned char)(number >> 16),
                               (unsigned char)(number >> 8), (unsigned char)number };
    report_text_bytes(t, bytes, 4);
}

static void put_chunk(report_text *out, const char *name, const void *bytes, size_t size)
{
    put_big(out, (uint32_t)size);
    size_t from = out->size;
    report_text_bytes(out, name, 4);
    report_text_bytes(out, bytes, size);
    if (out->status == TN_OK)
        put_big(out, crc32((const unsigned char *)out->bytes + from, size + 4));
}

/* The predictor of the filter Paeth: the neighbour that is nearest to left + above - corner. */
static int paeth(int left, int above, int corner)
{
    int guess = left + above - corner;
    int a = abs(guess - left), b = abs(guess - above), c = abs(guess - corner);
    return a <= b && a <= c ? left : b <= c ? above : corner;
}

/* Filters a row. Returns the sum of the differences, as numbers from -128 to 127. */
static int64_t filter_row(int filter, const unsigned char *row, const unsigned char *previous,
                          int bytes, int step, unsigned char *out)
{
    int64_t sum = 0;
    for (int i = 0; i < bytes; i++) {
        int left = i >= step ? row[i - step] : 0, above = previous != NULL ? previous[i] : 0;
        int corner = i >= step && previous != NULL ? previous[i - step] : 0;
        int guess = filter == 1 ? left : filter == 2 ? above : paeth(left, above, corner);
        out[i] = (unsigned char)(row[i] - (filter == 0 ? 0 : guess));
        sum += abs((signed char)out[i]);
    }
    return sum;
}

/* Returns the filtered rows, each after the number of its filter: the one of the smallest sum. */
static unsigned char *filter_rows(const report_picture *picture, int size)
{
    static const int filters[] = { 0, 1, 2, 4 };
    int bytes = picture->width * picture->channels;
    unsigned char *rows = tn_malloc((size_t)size);
    for (int y = 0; rows != NULL && y < picture->height; y++) {
        const unsigned char *row = picture->pixels + (size_t)y * (size_t)bytes;
        const unsigned char *previous = y > 0 ? row - bytes : NULL;
        unsigned char *out = rows + (size_t)y * (size_t)(bytes + 1);
        int best = 0;
        int64_t least = INT64_MAX;
        for (int i = 0; i < 4; i++) {
            int64_t sum = filter_row(filters[i], row, previous, bytes, picture->channels, out + 1);
            if (sum < least) {
                least = sum;
                best = filters[i];
            }
        }
        out[0] = (unsigned char)best;
        filter_row(best, row, previous, bytes, picture->channels, out + 1);
    }
    return rows;
}

static uint32_t adler32(const unsigned char *bytes, int size)
{
    uint32_t a = 1, b = 0;
    for (int i = 0; i < size; i++) {
        a = (a + bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

tn_status report_png(report_text *out, const report_picture *picture)
{
    static const unsigned char signature[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
    static const unsigned char colors[5] = { 0, 0, 0, 2, 6 };
    int size = picture->height * (picture->width * picture->channels + 1);
    report_text head = { .status = TN_OK }, data = { .status = TN_OK };
    unsigned char *rows = filter_rows(picture, size);
    tn_status status = rows != NULL ? TN_OK : tn_error_last_code();

    put_big(&head, (uint32_t)picture->width);
    put_big(&head, (uint32_t)picture->height);
    const unsigned char kind[5] = { 8, colors[picture->channels], 0, 0, 0 };
    report_text_bytes(&head, kind, sizeof kind);
    report_text_bytes(&data, "\x78\x01", 2);
    if (status == TN_OK)
        status = compress(&data, rows, size);
    if (status == TN_OK && data.size > (size_t)size + 7) {
        data.size = 2;
        store(&data, rows, size);
    }
    if (status == TN_OK)
        put_big(&data, adler32(rows, size));
    status = status != TN_OK ? status : head.status != TN_OK ? head.status : data.status;
    if (status == TN_OK) {
        report_text_bytes(out, signature, sizeof signature);
        put_chunk(out, "IHDR", head.bytes, head.size);
        put_chunk(out, "IDAT", data.bytes, data.size);
        put_chunk(out, "IEND", "", 0);
        status = out->status;
    }
    tn_free(rows);
    report_text_drop(&head);
    report_text_drop(&data);
    return status;
}

void report_base64(report_text *out, const void *bytes, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = bytes;
    for (size_t i = 0; i < size; i += 3) {
        uint32_t three = (uint32_t)in[i] << 16;
        three |= i + 1 < size ? (uint32_t)in[i + 1] << 8 : 0;
        three |= i + 2 < size ? in[i + 2] : 0;
        char four[4] = { digits[three >> 18], digits[three >> 12 & 63],
                         i + 1 < size ? digits[three >> 6 & 63] : '=',
                         i + 2 < size ? digits[three & 63] : '=' };
        report_text_bytes(out, four, 4);
    }
}
