/* SPDX-License-Identifier: MIT
 *
 * Texts that grow, with the escapes of HTML and JSON. */
#include "report_private.h"

#include "sdk/conform/conform.h"

#include <math.h>
#include <string.h>

/* Makes room for `size` more bytes and the NUL. */
static bool reserve(report_text *t, size_t size)
{
    if (t->status != TN_OK)
        return false;
    if (t->room - t->size > size)
        return true;
    size_t room = t->room > 0 ? t->room : 256;
    while (room - t->size <= size) {
        if (room > SIZE_MAX / 2) {
            t->status = tn_fail(TN_ERR_MEMORY, "report: a text of %zu bytes is too long", size);
            return false;
        }
        room *= 2;
    }
    char *bytes = tn_realloc(t->bytes, room);
    if (bytes == NULL) {
        t->status = tn_error_last_code();
        return false;
    }
    t->bytes = bytes;
    t->room = room;
    return true;
}

void report_text_bytes(report_text *t, const void *bytes, size_t size)
{
    if (!reserve(t, size))
        return;
    if (size > 0)
        memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
    t->bytes[t->size] = '\0';
}

void report_text_put(report_text *t, const char *string)
{
    report_text_bytes(t, string, strlen(string));
}

void report_text_add(report_text *t, const char *format, ...)
{
    va_list args, again;

    if (!reserve(t, 0))
        return;
    va_start(args, format);
    va_copy(again, args);
    int64_t length = tn_snprintv(t->bytes + t->size, t->room - t->size, format, args);
    va_end(args);
    if (length < 0) {
        t->status = tn_fail(TN_ERR_ASSERT, "report: a format is wrong, got %q", format);
    } else if (reserve(t, (size_t)length)) {
        tn_snprintv(t->bytes + t->size, t->room - t->size, format, again);
        t->size += (size_t)length;
    }
    va_end(again);
}

/* Returns the number of bytes of the character that `text` begins with, 0 if it is not one of
 * UTF-8 that can be shown. */
static int character(const char *text)
{
    unsigned char first = (unsigned char)*text;
    if (first < 0x20 || first == 0x7f)
        return first == '\n' || first == '\t';
    int bytes = conform_utf8((const unsigned char *)text);
    /* U+0080 to U+009F are control characters, too. */
    return bytes == 2 && first == 0xc2 && (unsigned char)text[1] < 0xa0 ? 0 : bytes;
}

static const char *html_escape(char c)
{
    switch (c) {
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

void report_text_html(report_text *t, const char *string)
{
    while (*string != '\0') {
        int bytes = character(string);
        const char *escape = html_escape(*string);
        if (escape != NULL)
            report_text_put(t, escape);
        else if (bytes == 0)
            report_text_put(t, "\xef\xbf\xbd");
        else
            report_text_bytes(t, string, (size_t)bytes);
        string += bytes > 0 ? bytes : 1;
    }
}

void report_text_short(report_text *t, const char *string, int most)
{
    char start[1024];
    size_t size = 0;
    int characters = 0;
    for (; string[size] != '\0' && characters <= most && size < sizeof start - 1; size++)
        characters += ((unsigned char)string[size + 1] & 0xc0) != 0x80;
    if (string[size] == '\0') {
        report_text_html(t, string);
        return;
    }
    for (size--; size > 0 && ((unsigned char)string[size] & 0xc0) == 0x80;)
        size--;
    memcpy(start, string, size);
    start[size] = '\0';
    report_text_html(t, start);
    report_text_put(t, "\xe2\x80\xa6");
}

void report_text_number(report_text *t, double number)
{
    if ((number == floor(number) && fabs(number) < 1e7) ||
        (fabs(number) >= 1e4 && fabs(number) < 1e9))
        report_text_whole(t, floor(number + 0.5));
    else if (isfinite(number))
        report_text_add(t, "%.4g", number);
    else
        report_text_put(t, isnan(number) ? "NaN"
                           : number > 0  ? "\xe2\x88\x9e"
                                         : "\xe2\x88\x92\xe2\x88\x9e");
}

void report_text_whole(report_text *t, double number)
{
    char digits[32];
    if (!(fabs(number) < 1e15)) {
        report_text_add(t, "%.4g", number);
        return;
    }
    tn_snprint(digits, sizeof digits, "%.0f", fabs(number));
    report_text_put(t, number < 0 ? "\xe2\x88\x92" : "");
    for (size_t i = 0, length = strlen(digits); i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            report_text_put(t, ",");
        report_text_bytes(t, &digits[i], 1);
    }
}

void report_text_duration(report_text *t, double seconds)
{
    if (!(seconds >= 0 && seconds < 1e15))
        report_text_put(t, "\xe2\x80\x93");
    else if (seconds < 1)
        report_text_add(t, "%.0f ms", seconds * 1e3);
    else if (seconds < 60)
        report_text_add(t, "%.1f s", seconds);
    else if (seconds < 3600)
        report_text_add(t, "%.0f min %02.0f s", floor(seconds / 60), floor(fmod(seconds, 60)));
    else
        report_text_add(t, "%.0f h %02.0f min", floor(seconds / 3600),
                        floor(fmod(seconds, 3600) / 60));
}

void report_text_json(report_text *t, const char *string)
{
    report_text_put(t, "\"");
    while (*string != '\0') {
        int bytes = character(string);
        char c = *string;
        if (bytes == 0)
            report_text_put(t, "\xef\xbf\xbd");
        else if (c == '<' || c == '>' || c == '&' || c == '\n' || c == '\t')
            report_text_add(t, "\\u%04x", (unsigned)c);
        else if (c == '"' || c == '\\')
            report_text_add(t, "\\%c", c);
        else
            report_text_bytes(t, string, (size_t)bytes);
        string += bytes > 0 ? bytes : 1;
    }
    report_text_put(t, "\"");
}

void report_text_drop(report_text *t)
{
    tn_free(t->bytes);
    *t = (report_text){ .status = TN_OK };
}
