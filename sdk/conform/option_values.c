/* SPDX-License-Identifier: MIT
 *
 * Changes one option in a spec, for the checks that look for options without effect. */
#include "conform.h"

#include <string.h>

/* Writes another value than `value` to `out`, as text. On entry `out` contains the default of the
 * option, or "" if there is none. A text and an integer become the default, because other values
 * may not be valid; an integer without default becomes its successor. Returns false if no other
 * value is known. */
static bool other_value(const tn_option *option, const char *value, char *out, size_t size)
{
    bool number = option->kind == TN_OPTION_KIND_FLOAT || option->kind == TN_OPTION_KIND_FLOATS;
    int64_t whole;
    double was;

    if (option->kind == TN_OPTION_KIND_INT || option->kind == TN_OPTION_KIND_STRING) {
        if (out[0] == '\0' && option->kind == TN_OPTION_KIND_INT && tn_read_int(value, &whole) &&
            whole < INT64_MAX)
            snprintf(out, size, "%lld", (long long)whole + 1);
        return out[0] != '\0';
    }
    if (option->kind == TN_OPTION_KIND_BOOL && strcmp(value, "True") == 0)
        snprintf(out, size, "False");
    else if (option->kind == TN_OPTION_KIND_BOOL && strcmp(value, "False") == 0)
        snprintf(out, size, "True");
    else if (number && tn_read_float(value, &was))
        snprintf(out, size, "%.6f", was < 0.6 ? was + 0.35 : was * 0.5);
    else
        return false;
    return true;
}

/* Returns true if two texts are the same value. Texts have quotes of either kind. */
static bool same_text(const char *a, const char *b)
{
    size_t n = strlen(a);
    double x, y;

    if (n >= 2 && n == strlen(b) && strchr("'\"", a[0]) != NULL && strchr("'\"", b[0]) != NULL)
        return strncmp(a + 1, b + 1, n - 2) == 0;
    return strcmp(a, b) == 0 || (tn_read_float(a, &x) && tn_read_float(b, &y) && x == y);
}

/* Finds the value of option `which` in a spec, by its name or its position. Returns NULL if the
 * spec does not contain it. */
static const char *find_value(const char *spec, const tn_option *options, int which, size_t *length)
{
    const char *at = strchr(spec, '('), *end;
    size_t name = strlen(options[which].name);

    for (int i = 0; at != NULL && *at != '\0' && *at != ')'; i++, at = end) {
        int depth = 0;
        char quote = '\0'; /* within a text: the quote that ends it */

        at += 1 + strspn(at + 1, " ");
        for (end = at; *end != '\0' && (quote != '\0' || depth > 0 || strchr(",)", *end) == NULL);
             end++)
            if (quote != '\0' || strchr("'\"", *end) != NULL)
                quote = quote == '\0' ? *end : quote == *end ? '\0' : quote;
            else
                depth += strchr("([", *end) != NULL ? 1 : strchr(")]", *end) != NULL ? -1 : 0;
        *length = (size_t)(end - at);
        if (strncmp(at, options[which].name, name) == 0 && at[name] == '=') {
            *length -= name + 1;
            return at + name + 1;
        }
        if (i == which && memchr(at, '=', *length) == NULL)
            return at;
    }
    return NULL;
}

/* Finds an element of a list of numbers, which ends before `end`. A number that is not in a list is
 * element 0. Returns NULL if there is no such element. */
static const char *find_element(const char *at, const char *end, int element, size_t *length)
{
    at += strspn(at, "([ ");
    for (; element > 0; element--) {
        at = memchr(at, ',', (size_t)(end - at));
        if (at == NULL)
            return NULL;
        at += 1 + strspn(at + 1, " ");
    }
    *length = strcspn(at, ",)] ");
    return end > at && *length != 0 ? at : NULL;
}

bool conform_other_spec(const char *spec, const tn_option *options, int which, int element,
                        conform_other_value *value, char *out, size_t size)
{
    const tn_option *option = &options[which];
    size_t length = 0, n = 0;
    const char *at = find_value(spec, options, which, &length), *def = option->def;

    if (at != NULL && option->kind == TN_OPTION_KIND_FLOATS) {
        at = find_element(at, at + length, element, &length);
        if (def != NULL)
            def = find_element(def, def + strlen(def), element, &n);
    } else if (def != NULL) {
        n = strlen(def);
    }
    if (at == NULL || length >= sizeof value->from || n >= sizeof value->to)
        return false;
    snprintf(value->from, sizeof value->from, "%.*s", (int)length, at);
    snprintf(value->to, sizeof value->to, "%.*s", (int)n, def != NULL ? def : "");
    if ((def != NULL && same_text(value->from, value->to)) ||
        !other_value(option, value->from, value->to, sizeof value->to))
        return false;
    return snprintf(out, size, "%.*s%s%s", (int)(at - spec), spec, value->to, at + length) <
           (int)size;
}
