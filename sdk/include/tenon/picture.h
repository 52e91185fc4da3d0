/* SPDX-License-Identifier: MIT
 *
 * Pictures as PNG files, like save_image of torchvision. These functions are compiled into the
 * program that includes this header, which <tenon/tenon.h> does not do; they need no library. The
 * pixels are stored without compression. */
#ifndef TENON_PICTURE_H
#define TENON_PICTURE_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <tenon/grad.h>
#include <tenon/ops.h>

TN_BEGIN_DECLS

/* Writes a number, highest byte first; returns the address after it. */
TN_ATTR(unused) static inline unsigned char *tn_picture_number(unsigned char *at, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(number >> (24 - 8 * i));
    return at + 4;
}

/* Writes the size and the name of a chunk. */
TN_ATTR(unused)
static inline unsigned char *tn_picture_begin(unsigned char *at, const char *name, size_t size)
{
    at = tn_picture_number(at, (uint32_t)size);
    memcpy(at, name, 4);
    return at + 4;
}

/* Writes the sum (CRC-32) of the `size` bytes of a chunk before `at`, and of its name. */
TN_ATTR(unused) static inline unsigned char *tn_picture_end(unsigned char *at, size_t size)
{
    uint32_t crc = 0xffffffffu;

    for (const unsigned char *from = at - size - 4; from < at; from++) {
        crc ^= *from;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return tn_picture_number(at, ~crc);
}

/* Returns the bytes of a file, which the caller frees by tn_free: `rows` are `height` rows of a
 * zero byte and width * channels bytes each. */
TN_ATTR(unused)
static inline unsigned char *tn_picture_encode(const unsigned char *rows, size_t width,
                                               size_t height, size_t channels, size_t *bytes)
{
    const unsigned char signature[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
    const size_t size = height * (1 + width * channels), most = 65535;
    const size_t data = 2 + size + 5 * ((size + most - 1) / most) + 4;
    unsigned char *file = (unsigned char *)tn_malloc(8 + 12 + 13 + 12 + data + 12), *at = file;
    uint32_t low = 1, high = 0; /* the sums of Adler-32 */

    if (file == NULL)
        return NULL;
    memcpy(at, signature, 8);
    at = tn_picture_begin(at + 8, "IHDR", 13);
    at = tn_picture_number(tn_picture_number(at, (uint32_t)width), (uint32_t)height);
    memset(at, 0, 5);
    at[0] = 8; /* bits */
    at[1] = channels == 3 ? 2 : 0;
    at = tn_picture_end(at + 5, 13);
    at = tn_picture_begin(at, "IDAT", data);
    *at++ = 0x78; /* zlib, without compression */
    *at++ = 1;
    for (size_t from = 0; from < size; from += most) {
        const size_t count = size - from < most ? size - from : most;
        *at++ = from + count == size;
        *at++ = (unsigned char)count;
        *at++ = (unsigned char)(count >> 8);
        *at++ = (unsigned char)~count;
        *at++ = (unsigned char)(~count >> 8);
        memcpy(at, rows + from, count);
        at += count;
    }
    for (size_t i = 0; i < size; i++) {
        low = (low + rows[i]) % 65521;
        high = (high + low) % 65521;
    }
    at = tn_picture_end(tn_picture_number(at, high << 16 | low), data);
    at = tn_picture_end(tn_picture_begin(at, "IEND", 0), 0);
    *bytes = (size_t)(at - file);
    return file;
}

/* Writes bytes to a file. */
TN_ATTR(unused)
static inline tn_status tn_picture_write(const char *path, const unsigned char *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    bool good = file != NULL && fwrite(bytes, 1, count, file) == count;

    if (file != NULL)
        good = fclose(file) == 0 && good;
    return good ? TN_OK
                : tn_fail_native(TN_ERR_IO, errno, "%s: cannot write: %s", path, strerror(errno));
}

/* Returns `x` as [N, C, H, W] bytes on the host in row-major order, which the caller frees by
 * tn_free, with the sizes in `shape`. */
TN_ATTR(unused)
static inline unsigned char *tn_picture_pixels(tn_tensor *x, int64_t shape[4])
{
    const int32_t ndim = tn_tensor_ndim(x);
    const tn_dtype dtype = tn_tensor_dtype(x);
    unsigned char *pixels;
    size_t bytes;

    for (int i = 0; i < 4; i++)
        shape[i] = i < 4 - ndim ? 1 : ndim > 4 ? 0 : tn_tensor_size(x, i - (4 - ndim));
    bytes = (size_t)tn_tensor_numel(x);
    if (ndim < 2 || ndim > 4 || (shape[1] != 1 && shape[1] != 3) || bytes == 0 ||
        bytes > 1u << 30) {
        tn_fail(TN_ERR_VALUE,
                "tn_picture_save: x: wrong shape, got %d dimensions and %lld elements; expected "
                "[H, W], [C, H, W] or [N, C, H, W] with 1 or 3 channels",
                (int)ndim, (long long)tn_tensor_numel(x));
        return NULL;
    }
    if (dtype != TN_U8) {
        x = tn_add_scalar(tn_mul_scalar(tn_cast(x, TN_F32), TN_SCALAR(255)), TN_SCALAR(0.5));
        x = tn_cast(tn_clamp(x, 0, 255), TN_U8);
    }
    pixels = x != NULL ? (unsigned char *)tn_malloc(bytes) : NULL;
    if (pixels != NULL && tn_tensor_copy_out(x, pixels, bytes) != TN_OK) {
        tn_free(pixels);
        pixels = NULL;
    }
    return pixels;
}

/* Writes pictures to a PNG file. `x` is [H, W], [C, H, W] or [N, C, H, W] with 1 or 3 channels:
 * uint8, or numbers from 0 to 1; others are limited to this range. N pictures become one, with
 * `columns` of them in each row, and 2 black pixels between them and around all; one picture has no
 * border. `x` has at most 2^30 elements. */
TN_ATTR(unused)
static inline tn_status tn_picture_save(tn_tensor *x, const char *path, int64_t columns)
{
    const uint64_t scope = tn_scope_begin();
    unsigned char *pixels = NULL, *rows = NULL, *file = NULL;
    int64_t shape[4];
    tn_status status = tn_grad_begin(false);

    if (status == TN_OK && columns < 1)
        status = tn_fail(TN_ERR_VALUE,
                         "tn_picture_save: columns: wrong, got %lld; expected 1 or more",
                         (long long)columns);
    if (status == TN_OK && x == NULL)
        status = tn_error_last_code();
    else if (status == TN_OK && x == TN_NONE)
        status = tn_fail(TN_ERR_VALUE, "tn_picture_save: x: it is TN_NONE; expected a tensor");
    if (status == TN_OK && (pixels = tn_picture_pixels(x, shape)) == NULL)
        status = tn_error_last_code();
    if (status == TN_OK) {
        const int64_t count = shape[0], channels = shape[1], h = shape[2], w = shape[3];
        const int64_t border = count > 1 ? 2 : 0, across = count < columns ? count : columns;
        const int64_t down = (count + across - 1) / across;
        const int64_t width = across * (w + border) + border, row = 1 + width * channels;
        const int64_t height = down * (h + border) + border;

        rows = (unsigned char *)tn_calloc((size_t)height, (size_t)row);
        if (rows == NULL)
            status = TN_ERR_MEMORY;
        for (int64_t i = 0; rows != NULL && i < count * channels * h * w; i++) {
            const int64_t n = i / w / h / channels, top = n / across * (h + border) + border;
            const int64_t left = n % across * (w + border) + border;
            rows[(top + i / w % h) * row + 1 + (left + i % w) * channels + i / w / h % channels] =
                pixels[i];
        }
        if (rows != NULL) {
            size_t bytes = 0;
            file = tn_picture_encode(rows, (size_t)width, (size_t)height, (size_t)channels, &bytes);
            status = file != NULL ? tn_picture_write(path, file, bytes) : TN_ERR_MEMORY;
        }
    }
    tn_free(file);
    tn_free(rows);
    tn_free(pixels);
    tn_grad_end();
    tn_scope_end(scope);
    return status;
}

TN_END_DECLS
#endif
