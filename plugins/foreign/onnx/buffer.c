/* SPDX-License-Identifier: MIT
 *
 * Bytes that grow (buffer.h). */
#include "onnx/buffer.h"
#include "onnx/wire.h"

#include <string.h>

void buffer_put(struct buffer *b, const void *from, size_t count)
{
    unsigned char *more;
    size_t capacity;

    if (b->status != TN_OK || count == 0)
        return;
    if (count > b->capacity - b->count) {
        if (count > SIZE_MAX / 4 || b->capacity > SIZE_MAX / 4) {
            b->status = tn_fail(TN_ERR_MEMORY, "a message of %zu bytes; expected less", count);
            return;
        }
        capacity = 2 * (b->capacity + count);
        more = tn_realloc(b->at, capacity);
        if (more == NULL) {
            b->status = TN_ERR_MEMORY;
            return;
        }
        b->at = more;
        b->capacity = capacity;
    }
    memcpy(b->at + b->count, from, count);
    b->count += count;
}

void buffer_number(struct buffer *b, uint64_t n)
{
    unsigned char bytes[10];
    size_t count = 0;

    for (; n > 127; n >>= 7)
        bytes[count++] = (unsigned char)(n | 128);
    bytes[count++] = (unsigned char)n;
    buffer_put(b, bytes, count);
}

void buffer_int(struct buffer *b, uint32_t field, uint64_t n)
{
    buffer_number(b, (uint64_t)field << 3 | WIRE_VARINT);
    buffer_number(b, n);
}

void buffer_bytes(struct buffer *b, uint32_t field, const void *from, size_t count)
{
    buffer_number(b, (uint64_t)field << 3 | WIRE_BYTES);
    buffer_number(b, count);
    buffer_put(b, from, count);
}

void buffer_text(struct buffer *b, uint32_t field, const char *text)
{
    buffer_bytes(b, field, text, strlen(text));
}

void buffer_float(struct buffer *b, uint32_t field, float number)
{
    unsigned char bytes[4];
    uint32_t bits;

    memcpy(&bits, &number, sizeof bits);
    for (int i = 0; i < 4; i++) /* the smallest byte is first, on every host */
        bytes[i] = (unsigned char)(bits >> 8 * i);
    buffer_number(b, (uint64_t)field << 3 | WIRE_FIXED32);
    buffer_put(b, bytes, sizeof bytes);
}

void buffer_message(struct buffer *b, uint32_t field, struct buffer *message)
{
    if (b->status == TN_OK)
        b->status = message->status;
    buffer_bytes(b, field, message->at, message->count);
    message->count = 0;
}

void buffer_free(struct buffer *b)
{
    tn_free(b->at);
    *b = (struct buffer){ .status = TN_OK };
}
