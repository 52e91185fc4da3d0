/* SPDX-License-Identifier: MIT
 *
 * The fields of protobuf messages. A message is a range of the bytes of the file: nothing is
 * copied, and no length reaches beyond the range. */
#ifndef TN_FOREIGN_ONNX_WIRE_H
#define TN_FOREIGN_ONNX_WIRE_H

#include <tenon/plugin.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* A message, or a field with bytes. Reading moves `at` to `end`. */
struct wire {
    const unsigned char *at, *end;
};

struct wire_field {
    uint32_t number, type;
    uint64_t value;    /* of a varint and of fixed numbers */
    struct wire bytes; /* of WIRE_BYTES */
};

/* Reads the next field; false at the end of the message, or after a failure, which *status then
 * is. */
TN_HIDDEN bool wire_next(struct wire *message, struct wire_field *field, tn_status *status);
/* Reads a varint. */
TN_HIDDEN tn_status wire_varint(struct wire *from, uint64_t *out);
/* Whether all of a message can be read as fields with numbers from 1 to `most`. */
TN_HIDDEN bool wire_is_message(struct wire message, uint32_t most);
/* Whether a field has this type; else it is a failure. */
TN_HIDDEN tn_status wire_need(const struct wire_field *field, uint32_t type, const char *what);
/* A double of the bits of a fixed field. */
TN_HIDDEN double wire_float(const struct wire_field *field);

#endif
