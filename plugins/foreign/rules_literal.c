/* SPDX-License-Identifier: MIT
 *
 * Values in the texts of rules: None, True, False, numbers, 'words', [lists]. */
#include "rules_bound.h"

#include <string.h>

enum { LIST_MOST = 16 };

static tn_status malformed(const char *at)
{
    return tn_fail(TN_ERR_RUNTIME,
                   "value: malformed at %q; expected None, True, False, a number, "
                   "a word in quotes, or a list of these",
                   at);
}

static bool take(const char **at, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(*at, word, length) != 0 || strchr(",)]} |", (*at)[length]) == NULL)
        return false;
    *at += length;
    return true;
}

static tn_status read_number(const char **at, tn_value *out)
{
    char text[64];
    size_t length = strcspn(*at, ",)]} |");
    int64_t whole;
    double number;

    if (length == 0 || length >= sizeof text)
        return malformed(*at);
    memcpy(text, *at, length);
    text[length] = '\0';
    if (tn_read_int(text, &whole))
        *out = tn_value_int(whole);
    else if (tn_read_float(text, &number))
        *out = tn_value_float(number);
    else
        return malformed(*at);
    *at += length;
    return TN_OK;
}

static tn_status read_list(const char **at, struct arena *arena, tn_value *out)
{
    tn_value *items = arena_new(arena, LIST_MOST, sizeof *items);
    uint32_t count = 0;

    if (items == NULL)
        return TN_ERR_MEMORY;
    for (++*at; **at != ']';) {
        tn_status status = count < LIST_MOST ? rules_literal_read(at, arena, &items[count++])
                                             : malformed(*at);

        if (status != TN_OK)
            return status;
        if (**at == ',')
            *at += 1 + strspn(*at + 1, " ");
        else if (**at != ']')
            return malformed(*at);
    }
    ++*at;
    *out = tn_value_list(items, count);
    return TN_OK;
}

tn_status rules_literal_read(const char **at, struct arena *arena, tn_value *out)
{
    if (**at == '\'') {
        const char *end = strchr(*at + 1, '\'');
        char *word = end != NULL ? arena_text(arena, *at + 1, (size_t)(end - *at) - 1) : NULL;

        if (end == NULL)
            return malformed(*at);
        if (word == NULL)
            return TN_ERR_MEMORY;
        *out = tn_value_string(word);
        *at = end + 1;
        return TN_OK;
    }
    if (**at == '[')
        return read_list(at, arena, out);
    if (take(at, "None"))
        *out = tn_value_none();
    else if (take(at, "True") || take(at, "true"))
        *out = tn_value_bool(true);
    else if (take(at, "False") || take(at, "false"))
        *out = tn_value_bool(false);
    else
        return read_number(at, out);
    return TN_OK;
}

static bool number_of(const tn_value *value, double *out)
{
    switch (value->kind) {
    case TN_VALUE_BOOL:
    case TN_VALUE_INT: *out = (double)value->as.i; return true;
    case TN_VALUE_FLOAT: *out = value->as.f; return true;
    default: return false;
    }
}

bool rules_literal_equal(const tn_value *a, const tn_value *b)
{
    double x, y;

    if (number_of(a, &x) && number_of(b, &y))
        return a->kind == TN_VALUE_INT && b->kind == TN_VALUE_INT ? a->as.i == b->as.i : x == y;
    if (a->kind != b->kind)
        return false;
    if (a->kind == TN_VALUE_NONE)
        return true;
    if (a->kind == TN_VALUE_STRING)
        return strcmp(a->as.s, b->as.s) == 0;
    if (a->kind != TN_VALUE_LIST || a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!rules_literal_equal(&a->as.list[i], &b->as.list[i]))
            return false;
    return true;
}
