/* SPDX-License-Identifier: MIT
 *
 * The fields of protobuf messages (wire.h). */
#include "onnx/wire.h"

#include <string.h>

tn_status wire_varint(struct wire *from, uint64_t *out)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 70; shift += 7) {
        unsigned char byte;

        if (from->at == from->end)
            return tn_fail(TN_ERR_FORMAT, "protobuf: a number beyond the end of its message");
        byte = *from->at++;
        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return TN_OK;
        }
    }
    return tn_fail(TN_ERR_FORMAT, "protobuf: a number with more than 64 bits");
}

static tn_status read_fixed(struct wire *message, size_t size, uint64_t *out)
{
    if ((size_t)(message->end - message->at) < size)
        return tn_fail(TN_ERR_FORMAT, "protobuf: a number beyond the end of its message");
    *out = 0;
    for (size_t i = 0; i < size; i++)
        *out |= (uint64_t)message->at[i] << 8 * i;
    message->at += size;
    return TN_OK;
}

static tn_status read_bytes(struct wire *message, struct wire *out)
{
    uint64_t length;
    tn_status status = wire_varint(message, &length);

    if (status != TN_OK)
        return status;
    if (length > (uint64_t)(message->end - message->at))
        return tn_fail(TN_ERR_FORMAT, "protobuf: %llu bytes, of which only %llu are in the message",
                       (unsigned long long)length,
                       (unsigned long long)(message->end - message->at));
    *out = (struct wire){ message->at, message->at + length };
    message->at += length;
    return TN_OK;
}

bool wire_next(struct wire *message, struct wire_field *field, tn_status *status)
{
    uint64_t key;

    if (*status != TN_OK || message->at == message->end)
        return false;
    *status = wire_varint(message, &key);
    if (*status != TN_OK)
        return false;
    *field = (struct wire_field){ .number = (uint32_t)(key >> 3), .type = (uint32_t)(key & 7) };
    if (key >> 3 == 0 || key >> 3 > UINT32_MAX) {
        *status = tn_fail(TN_ERR_FORMAT, "protobuf: a field with the number %llu",
                          (unsigned long long)(key >> 3));
        return false;
    }
    switch (field->type) {
    case WIRE_VARINT: *status = wire_varint(message, &field->value); break;
    case WIRE_FIXED64: *status = read_fixed(message, 8, &field->value); break;
    case WIRE_FIXED32: *status = read_fixed(message, 4, &field->value); break;
    case WIRE_BYTES: *status = read_bytes(message, &field->bytes); break;
    default:
        *status = tn_fail(TN_ERR_FORMAT, "protobuf: a field of type %u; expected 0, 1, 2 or 5",
                          field->type);
    }
    return *status == TN_OK;
}

bool wire_is_message(struct wire message, uint32_t most)
{
    struct wire_field field;
    tn_status status = TN_OK;
    uint64_t mark = tn_error_mark();
    bool numbers = true;

    while (wire_next(&message, &field, &status))
        numbers = numbers && field.number <= most;
    if (status != TN_OK)
        tn_error_restore(mark);
    return status == TN_OK && numbers;
}

tn_status wire_need(const struct wire_field *field, uint32_t type, const char *what)
{
    if (field->type == type)
        return TN_OK;
    return tn_fail(TN_ERR_FORMAT, "%s: protobuf type %u; expected %u", what, field->type, type);
}

double wire_float(const struct wire_field *field)
{
    uint32_t bits = (uint32_t)field->value;
    float single;
    double number;

    if (field->type == WIRE_FIXED64) {
        memcpy(&number, &field->value, sizeof number);
        return number;
    }
    memcpy(&single, &bits, sizeof single);
    return single;
}
