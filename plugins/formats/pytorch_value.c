/* SPDX-License-Identifier: MIT
 *
 * Converts a value of a pickle to a value of a state: None, bools, integers and floats of 64 bits,
 * strings, bytes, and lists and tuples of these. Any other value (a set, a complex number ...) is
 * printed and added to the state as text metadata. */
#include "pytorch.h"

#include <string.h>

#define VALUES_SIZE_MAX (256 << 20) /* bytes that all values of a file may take */

/* A list of memory blocks for a converted value; they are freed when the state has copied the
 * value. Their total size is limited, because a small pickle can refer to the same long string a
 * million times, and each reference becomes a copy. */
struct piece {
    struct piece *next;
    max_align_t bytes[];
};
struct pieces {
    struct piece *first;
    struct pytorch_file *file;
};

tn_status pytorch_count_values(struct pytorch_file *file, size_t size)
{
    file->values_size += size;
    if (file->values_size > VALUES_SIZE_MAX)
        return tn_fail(TN_ERR_FORMAT, "%s: pickle: values: too large; expected at most %d bytes",
                       file->source->path, VALUES_SIZE_MAX);
    return TN_OK;
}

static void *piece_of(struct pieces *pieces, size_t size)
{
    struct piece *piece;

    if (pytorch_count_values(pieces->file, size) != TN_OK)
        return NULL;
    piece = tn_malloc(sizeof *piece + size);
    if (piece == NULL)
        return NULL;
    piece->next = pieces->first;
    pieces->first = piece;
    return piece->bytes;
}

static void pieces_free(struct pieces *pieces)
{
    while (pieces->first != NULL) {
        struct piece *next = pieces->first->next;
        tn_free(pieces->first);
        pieces->first = next;
    }
}

static bool has_kind(struct pickle *pk, const struct pickle_value *value, int depth)
{
    switch (value->kind) {
    case PK_NONE:
    case PK_BOOL:
    case PK_INT:
    case PK_FLOAT:
    case PK_TEXT:
    case PK_BYTES: return true;
    case PK_LIST:
    case PK_TUPLE: break;
    default: return false;
    }
    /* If pickle_visit() fails, true is returned; value_of() then fails for the same reason. */
    if (pickle_visit(pk, depth) != TN_OK)
        return true;
    for (uint32_t i = 0; i < value->as.list.count; i++)
        if (!has_kind(pk, value->as.list.at[i], depth + 1))
            return false;
    return true;
}

static tn_status text_of(struct pickle *pk, const struct pickle_value *value, struct pieces *pieces,
                         tn_value *out)
{
    size_t size = value->as.text.size;
    char *text = piece_of(pieces, size + 1);

    if (text == NULL)
        return tn_error_last_code();
    if (memchr(value->as.text.at, '\0', size) != NULL)
        return tn_fail(TN_ERR_FORMAT, "%s: pickle: string: contains a NUL; expected none",
                       pk->path);
    memcpy(text, value->as.text.at, size);
    text[size] = '\0';
    *out = tn_value_string(text);
    return TN_OK;
}

/* Converts bytes. Protocols before 3 write bytes as a text with the characters 0 to 255; such a
 * value has dtype 1, and its UTF-8 characters are converted to single bytes. */
static tn_status bytes_of(const struct pickle_value *value, struct pieces *pieces, tn_value *out)
{
    size_t size = value->as.text.size, count = 0;
    unsigned char *bytes = piece_of(pieces, size + 1);

    if (bytes == NULL)
        return tn_error_last_code();
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)value->as.text.at[i];
        if (value->dtype == 1 && c > 127 && i + 1 < size)
            c = (unsigned char)((c & 3u) << 6 | ((unsigned char)value->as.text.at[++i] & 0x3fu));
        bytes[count++] = c;
    }
    *out = tn_value_bytes(bytes, (uint32_t)count);
    return TN_OK;
}

static tn_status value_of(struct pickle *pk, const struct pickle_value *value, int depth,
                          struct pieces *pieces, tn_value *out)
{
    tn_value *items;
    tn_status status = pickle_visit(pk, depth);

    if (status != TN_OK)
        return status;
    memset(out, 0, sizeof *out);
    switch (value->kind) {
    case PK_NONE: out->kind = TN_VALUE_NONE; return TN_OK;
    case PK_BOOL: *out = tn_value_bool(value->as.i != 0); return TN_OK;
    case PK_INT: *out = tn_value_int(value->as.i); return TN_OK;
    case PK_FLOAT: *out = tn_value_float(value->as.f[0]); return TN_OK;
    case PK_TEXT: return text_of(pk, value, pieces, out);
    case PK_BYTES: return bytes_of(value, pieces, out);
    default: break;
    }
    items = piece_of(pieces, (value->as.list.count + (size_t)1) * sizeof *items);
    if (items == NULL)
        return tn_error_last_code();
    for (uint32_t i = 0; i < value->as.list.count && status == TN_OK; i++)
        status = value_of(pk, value->as.list.at[i], depth + 1, pieces, &items[i]);
    out->kind = value->kind == PK_LIST ? TN_VALUE_LIST : TN_VALUE_TUPLE;
    out->count = value->as.list.count;
    out->as.list = items;
    return status;
}

tn_status pytorch_add_value(struct pytorch_file *file, struct pickle *pk, const char *name,
                            const struct pickle_value *value)
{
    struct pieces pieces = { NULL, file };
    tn_value made;
    char *text = NULL;
    tn_status status;

    if (has_kind(pk, value, 0)) {
        status = value_of(pk, value, 0, &pieces, &made);
        if (status == TN_OK)
            status = tn_state_set_value(file->state, name, made);
        pieces_free(&pieces);
        return status;
    }
    status = pickle_print(pk, value, &text);
    if (status == TN_OK)
        status = pytorch_count_values(file, strlen(text));
    if (status == TN_OK)
        status = tn_state_set_meta(file->state, name, text);
    tn_free(text);
    return status;
}
