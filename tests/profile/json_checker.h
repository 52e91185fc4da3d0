/* SPDX-License-Identifier: MIT
 *
 * A strict reader of JSON (RFC 8259), which says whether a text is valid and counts what follows a
 * given piece of text. */
#ifndef TN_TESTS_PROFILE_JSON_CHECKER_H
#define TN_TESTS_PROFILE_JSON_CHECKER_H

#include <stdbool.h>
#include <string.h>

typedef struct json_text {
    const unsigned char *at;
    int depth;
} json_text;

static bool json_value(json_text *t);

static void json_space(json_text *t)
{
    while (*t->at == ' ' || *t->at == '\n' || *t->at == '\r' || *t->at == '\t')
        t->at++;
}

static bool json_take(json_text *t, char c)
{
    if (*t->at != (unsigned char)c)
        return false;
    t->at++;
    return true;
}

/* The bytes of one character of UTF-8 that is not escaped, 0 if it is wrong. */
static int json_character(const unsigned char *b)
{
    int size = b[0] < 0x80 ? 1 : b[0] < 0xc2 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;

    if (b[0] < 0x20 || b[0] > 0xf4)
        return 0;
    for (int i = 1; i < size; i++)
        if ((b[i] & 0xc0) != 0x80)
            return 0;
    return size;
}

static bool json_string(json_text *t)
{
    if (!json_take(t, '"'))
        return false;
    while (*t->at != '"') {
        if (*t->at == '\\') {
            t->at++;
            if (*t->at == 'u') {
                for (int i = 1; i <= 4; i++)
                    if (t->at[i] == '\0' || !strchr("0123456789abcdefABCDEF", t->at[i]))
                        return false;
                t->at += 5;
            } else if (*t->at != '\0' && strchr("\"\\/bfnrt", *t->at)) {
                t->at++;
            } else {
                return false;
            }
            continue;
        }
        int size = json_character(t->at);
        if (size == 0)
            return false;
        t->at += size;
    }
    t->at++;
    return true;
}

static bool json_digits(json_text *t)
{
    const unsigned char *begin = t->at;

    while (*t->at >= '0' && *t->at <= '9')
        t->at++;
    return t->at > begin;
}

static bool json_number(json_text *t)
{
    json_take(t, '-');
    if (*t->at == '0')
        t->at++;
    else if (!json_digits(t))
        return false;
    if (json_take(t, '.') && !json_digits(t))
        return false;
    if (*t->at == 'e' || *t->at == 'E') {
        t->at++;
        if (*t->at == '+' || *t->at == '-')
            t->at++;
        return json_digits(t);
    }
    return true;
}

/* The members of an object, or the values of a list, after the opening bracket. */
static bool json_members(json_text *t, bool object)
{
    const char end = object ? '}' : ']';

    json_space(t);
    if (json_take(t, end))
        return true;
    do {
        json_space(t);
        if (object) {
            if (!json_string(t))
                return false;
            json_space(t);
            if (!json_take(t, ':'))
                return false;
        }
        if (!json_value(t))
            return false;
        json_space(t);
    } while (json_take(t, ','));
    return json_take(t, end);
}

static bool json_value(json_text *t)
{
    static const char *const words[] = { "true", "false", "null" };
    bool valid = false;

    json_space(t);
    if (t->depth > 64)
        return false;
    t->depth++;
    if (json_take(t, '{'))
        valid = json_members(t, true);
    else if (json_take(t, '['))
        valid = json_members(t, false);
    else if (*t->at == '"')
        valid = json_string(t);
    else if (*t->at == '-' || (*t->at >= '0' && *t->at <= '9'))
        valid = json_number(t);
    for (int i = 0; i < 3 && !valid; i++) {
        size_t length = strlen(words[i]);
        valid = strncmp((const char *)t->at, words[i], length) == 0;
        t->at += valid ? length : 0;
    }
    t->depth--;
    return valid;
}

static bool json_is_valid(const char *text)
{
    json_text t = { (const unsigned char *)text, 0 };
    bool valid = json_value(&t);

    json_space(&t);
    return valid && *t.at == '\0';
}

#endif
