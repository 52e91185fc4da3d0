/* SPDX-License-Identifier: MIT
 *
 * Values of a pickle: allocating them, freeing all of them at once, and printing them; also the
 * error message for a damaged pickle. */
#include "pickle.h"

#include <string.h>

enum { CHUNK = 512 };

struct pickle_chunk {
    struct pickle_chunk *next;
    struct pickle_value at[CHUNK];
};

tn_status pickle_bad(const struct pickle *pk, const char *what)
{
    return tn_fail(TN_ERR_FORMAT, "%s: pickle, byte %zu: %s", pk->path, pk->op, what);
}

const char *pickle_kind_name(uint8_t kind)
{
    static const char *const names[] = {
        [PK_NONE] = "None",           [PK_BOOL] = "a bool",      [PK_INT] = "an integer",
        [PK_LONG] = "a long integer", [PK_FLOAT] = "a float",    [PK_COMPLEX] = "a complex number",
        [PK_TEXT] = "a string",       [PK_BYTES] = "bytes",      [PK_LIST] = "a list",
        [PK_TUPLE] = "a tuple",       [PK_SET] = "a set",        [PK_DICT] = "a dictionary",
        [PK_NAME] = "a name",         [PK_OBJECT] = "an object", [PK_STORAGE] = "a storage",
        [PK_TENSOR] = "a tensor",
    };

    return names[kind];
}

tn_status pickle_bad_type(const struct pickle *pk, const char *what, const struct pickle_value *got,
                          const char *expected)
{
    return tn_fail(TN_ERR_FORMAT, "%s: pickle, byte %zu: %s: wrong type, got %s; expected %s",
                   pk->path, pk->op, what, pickle_kind_name(got->kind), expected);
}

static bool has_list(const struct pickle_value *value)
{
    return value->kind == PK_LIST || value->kind == PK_TUPLE || value->kind == PK_SET ||
           value->kind == PK_DICT;
}

struct pickle_value *pickle_new(struct pickle *pk, pickle_kind kind)
{
    if (pk->values == PK_VALUES_MAX) {
        pickle_bad(pk, "values: too many; expected at most 16777216");
        return NULL;
    }
    if (pk->chunks == NULL || pk->used == CHUNK) {
        struct pickle_chunk *chunk = tn_malloc(sizeof *chunk);
        if (chunk == NULL)
            return NULL;
        chunk->next = pk->chunks;
        pk->chunks = chunk;
        pk->used = 0;
    }
    struct pickle_value *value = &pk->chunks->at[pk->used++];
    memset(value, 0, sizeof *value);
    value->kind = (uint8_t)kind;
    pk->values++;
    return value;
}

void pickle_free_values(struct pickle *pk)
{
    while (pk->chunks != NULL) {
        struct pickle_chunk *chunk = pk->chunks;
        for (int64_t i = 0; i < pk->used; i++)
            if (has_list(&chunk->at[i]))
                tn_free(chunk->at[i].as.list.at);
        pk->chunks = chunk->next;
        pk->used = CHUNK;
        tn_free(chunk);
    }
}

tn_status pickle_add(struct pickle *pk, struct pickle_value *list, struct pickle_value *item)
{
    (void)pk;
    if (list->as.list.count == list->as.list.capacity) {
        uint32_t capacity = list->as.list.capacity > 0 ? list->as.list.capacity * 2 : 4;
        struct pickle_value **grown = tn_realloc(list->as.list.at, capacity * sizeof *grown);
        if (grown == NULL)
            return TN_ERR_MEMORY;
        list->as.list.at = grown;
        list->as.list.capacity = capacity;
    }
    list->as.list.at[list->as.list.count++] = item;
    return TN_OK;
}

bool pickle_is_text(const struct pickle_value *value, const char *text)
{
    return value->kind == PK_TEXT && value->as.text.size == strlen(text) &&
           memcmp(value->as.text.at, text, value->as.text.size) == 0;
}

struct pickle_value *pickle_get(const struct pickle_value *dict, const char *key)
{
    if (dict->kind != PK_DICT)
        return NULL;
    for (uint32_t i = 0; i < dict->as.list.count; i += 2)
        if (pickle_is_text(dict->as.list.at[i], key))
            return dict->as.list.at[i + 1];
    return NULL;
}

tn_status pickle_visit(struct pickle *pk, int depth)
{
    if (depth > PK_DEPTH_MAX)
        return tn_fail(
            TN_ERR_FORMAT,
            "%s: pickle: values: nested too deep, or recursive; expected at most %d levels",
            pk->path, PK_DEPTH_MAX);
    if (pk->values++ >= PK_VALUES_MAX)
        return tn_fail(TN_ERR_FORMAT, "%s: pickle: values: too many; expected at most %d", pk->path,
                       PK_VALUES_MAX);
    return TN_OK;
}

/* ---- text ------------------------------------------------------------------------------------ */

struct text {
    char *at;
    size_t size, room;
};

static tn_status put(struct text *text, const char *bytes, size_t size)
{
    if (text->room - text->size <= size) {
        size_t room = (text->size + size) * 2 + 32;
        char *grown = tn_realloc(text->at, room);
        if (grown == NULL)
            return TN_ERR_MEMORY;
        text->at = grown;
        text->room = room;
    }
    memcpy(text->at + text->size, bytes, size);
    text->size += size;
    text->at[text->size] = '\0';
    return TN_OK;
}

static tn_status put_float(struct text *text, double number)
{
    char out[40];
    tn_snprint(out, sizeof out, "%g", number);
    return put(text, out, strlen(out));
}

/* Prints a string or bytes in quotes. Control characters, and non-ASCII characters of bytes, are
 * printed as \xNN. */
static tn_status put_quoted(struct text *text, const struct pickle_value *value)
{
    bool bytes = value->kind == PK_BYTES;
    tn_status status = put(text, bytes ? "b'" : "'", bytes ? 2 : 1);
    for (size_t i = 0; i < value->as.text.size && status == TN_OK; i++) {
        unsigned char c = (unsigned char)value->as.text.at[i];
        char out[8];
        if (bytes && value->dtype == 1 && c > 127)
            c = (unsigned char)((c & 3u) << 6 | ((unsigned char)value->as.text.at[++i] & 0x3fu));
        if (c < ' ' || c == 127 || (bytes && c > 127))
            tn_snprint(out, sizeof out, "\\x%02x", c);
        else
            tn_snprint(out, sizeof out, c == '\'' || c == '\\' ? "\\%c" : "%c", c);
        status = put(text, out, strlen(out));
    }
    return status == TN_OK ? put(text, "'", 1) : status;
}

/* Prints an integer of more than 8 bytes in Python's syntax for hexadecimal numbers. */
static tn_status put_long(struct text *text, const struct pickle_value *value)
{
    size_t size = value->as.text.size;
    const unsigned char *bytes = (const unsigned char *)value->as.text.at;
    bool negative = size > 0 && bytes[size - 1] > 127;
    tn_status status = put(text, negative ? "-0x" : "0x", negative ? 3 : 2);
    /* A negative number in two's complement is negated: bytes up to the lowest one that is not 0
     * are subtracted from 256, higher bytes are inverted. */
    size_t lowest = 0;
    while (lowest < size && bytes[lowest] == 0)
        lowest++;
    for (size_t i = size; i-- > 0 && status == TN_OK;) {
        unsigned byte = bytes[i];
        char out[4];
        if (negative && i >= lowest)
            byte = (i == lowest ? 256u - byte : 255u - byte) & 255u;
        tn_snprint(out, sizeof out, "%02x", byte);
        status = put(text, out, 2);
    }
    return status;
}

static tn_status put_value(struct pickle *pk, struct text *text, const struct pickle_value *value,
                           int depth);

static tn_status put_items(struct pickle *pk, struct text *text, const struct pickle_value *value,
                           int depth)
{
    static const char brackets[][2] = { [PK_LIST] = { '[', ']' },
                                        [PK_TUPLE] = { '(', ')' },
                                        [PK_SET] = { '{', '}' },
                                        [PK_DICT] = { '{', '}' } };
    uint32_t count = value->as.list.count;
    tn_status status = put(text, &brackets[value->kind][0], 1);
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        bool after_key = value->kind == PK_DICT && i % 2 == 1;
        if (i > 0)
            status = put(text, after_key ? ": " : ", ", 2);
        if (status == TN_OK)
            status = put_value(pk, text, value->as.list.at[i], depth + 1);
    }
    if (status == TN_OK && value->kind == PK_TUPLE && count == 1)
        status = put(text, ",", 1);
    return status == TN_OK ? put(text, &brackets[value->kind][1], 1) : status;
}

static tn_status put_value(struct pickle *pk, struct text *text, const struct pickle_value *value,
                           int depth)
{
    char out[80];
    tn_status status = pickle_visit(pk, depth);
    if (status != TN_OK)
        return status;
    switch (value->kind) {
    case PK_NONE: return put(text, "None", 4);
    case PK_BOOL: return value->as.i ? put(text, "True", 4) : put(text, "False", 5);
    case PK_INT:
        tn_snprint(out, sizeof out, "%lld", (long long)value->as.i);
        return put(text, out, strlen(out));
    case PK_LONG: return put_long(text, value);
    case PK_FLOAT: return put_float(text, value->as.f[0]);
    case PK_COMPLEX:
        tn_snprint(out, sizeof out, "(%g%+gj)", value->as.f[0], value->as.f[1]);
        return put(text, out, strlen(out));
    case PK_TEXT:
    case PK_BYTES: return put_quoted(text, value);
    case PK_LIST:
    case PK_TUPLE:
    case PK_SET:
    case PK_DICT: return put_items(pk, text, value, depth);
    default: break;
    }
    if (value->kind == PK_NAME && value->dtype != TN_DTYPE_AUTO) {
        const char *dtype = tn_dtype_name((tn_dtype)value->dtype);
        status = put(text, "torch.", 6);
        return status == TN_OK ? put(text, dtype, strlen(dtype)) : status;
    }
    return tn_fail(TN_ERR_FORMAT,
                   "%s: pickle: wrong type, got a storage, a type or a function; expected a value",
                   pk->path);
}

tn_status pickle_print(struct pickle *pk, const struct pickle_value *value, char **out)
{
    struct text text = { NULL, 0, 0 };
    tn_status status = value->kind == PK_TEXT ? put(&text, value->as.text.at, value->as.text.size)
                                              : put_value(pk, &text, value, 0);
    if (status == TN_OK && strlen(text.at) != text.size)
        status = tn_fail(TN_ERR_FORMAT, "%s: pickle: string: contains a NUL; expected none",
                         pk->path);
    if (status == TN_OK)
        *out = text.at;
    else
        tn_free(text.at);
    return status;
}
