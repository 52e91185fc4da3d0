/* SPDX-License-Identifier: MIT
 *
 * Bytes that grow, and the fields of protobuf messages at their end. */
#ifndef TN_FOREIGN_ONNX_BUFFER_H
#define TN_FOREIGN_ONNX_BUFFER_H

#include <tenon/plugin.h>

struct buffer {
    unsigned char *at;
    size_t count, capacity;
    tn_status status; /* the first failure, after which nothing is added */
};

TN_HIDDEN void buffer_put(struct buffer *b, const void *from, size_t count);
/* A number as a varint, without a field. */
TN_HIDDEN void buffer_number(struct buffer *b, uint64_t n);
/* Fields: an integer, bytes, a text, a number of 32 bits, and a message, whose failure it takes
 * over and which it empties. */
TN_HIDDEN void buffer_int(struct buffer *b, uint32_t field, uint64_t n);
TN_HIDDEN void buffer_bytes(struct buffer *b, uint32_t field, const void *from, size_t count);
TN_HIDDEN void buffer_text(struct buffer *b, uint32_t field, const char *text);
TN_HIDDEN void buffer_float(struct buffer *b, uint32_t field, float number);
TN_HIDDEN void buffer_message(struct buffer *b, uint32_t field, struct buffer *message);
TN_HIDDEN void buffer_free(struct buffer *b);

#endif
