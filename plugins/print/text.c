/* SPDX-License-Identifier: MIT
 *
 * Texts that grow. */
#include "print.h"

#include <stdarg.h>
#include <string.h>

static bool reserve(output *text, size_t more)
{
    size_t room = text->room > 0 ? text->room : 256;
    char *at;

    if (text->failed || text->length + more < text->room)
        return !text->failed;
    while (room <= text->length + more)
        room *= 2;
    at = tn_realloc(text->at, room);
    text->failed = at == NULL;
    if (at == NULL)
        return false;
    text->at = at;
    text->room = room;
    return true;
}

void text_put(output *text, const char *bytes, size_t count)
{
    if (!reserve(text, count))
        return;
    memcpy(text->at + text->length, bytes, count);
    text->length += count;
    text->at[text->length] = '\0';
}

void text_add(output *text, const char *format, ...)
{
    va_list args;
    int64_t length;

    va_start(args, format);
    length = tn_snprintv(NULL, 0, format, args);
    va_end(args);
    if (!reserve(text, (size_t)length))
        return;
    va_start(args, format);
    tn_snprintv(text->at + text->length, (size_t)length + 1, format, args);
    va_end(args);
    text->length += (size_t)length;
}

int64_t text_give(output *text, char *out, size_t size)
{
    int64_t length = text->failed ? -1
                                  : tn_snprint(out, size, "%s", text->at != NULL ? text->at : "");

    text_free(text);
    return length;
}

void text_free(output *text)
{
    tn_free(text->at);
    *text = (output){ 0 };
}
