/* SPDX-License-Identifier: MIT
 *
 * Texts that grow, with the escapes of JSON and HTML, and numbers with units. */
#include "profile.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

static bool reserve(output *t, size_t more)
{
    size_t wanted = t->room > 0 ? t->room : 4096;
    char *at;

    if (t->failed)
        return false;
    while (wanted < t->size + more + 1)
        wanted *= 2;
    if (wanted == t->room)
        return true;
    at = tn_realloc(t->at, wanted);
    if (at == NULL) {
        t->failed = true;
        return false;
    }
    t->at = at;
    t->room = wanted;
    return true;
}

static void put(output *t, const char *bytes, size_t size)
{
    if (!reserve(t, size))
        return;
    memcpy(t->at + t->size, bytes, size);
    t->size += size;
    t->at[t->size] = '\0';
}

void text_put(output *t, const char *bytes)
{
    put(t, bytes, strlen(bytes));
}

void text_add(output *t, const char *format, ...)
{
    char few[512];
    va_list list;

    va_start(list, format);
    int64_t size = tn_snprintv(few, sizeof few, format, list);
    va_end(list);
    if (size < (int64_t)sizeof few) {
        put(t, few, (size_t)size);
    } else if (reserve(t, (size_t)size)) {
        va_start(list, format);
        tn_snprintv(t->at + t->size, (size_t)size + 1, format, list);
        va_end(list);
        t->size += (size_t)size;
    }
}

/* Returns the number of bytes of the UTF-8 sequence at `b`, 0 if it is not valid. */
static size_t sequence(const unsigned char *b)
{
    static const struct {
        unsigned char first, last, low, high; /* of the first byte; of the second */
        unsigned char size;
    } forms[] = {
        { 0x01, 0x7f, 0, 0, 1 },       { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
        { 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
        { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (b[0] < forms[i].first || b[0] > forms[i].last)
            continue;
        if (forms[i].size > 1 && (b[1] < forms[i].low || b[1] > forms[i].high))
            return 0;
        for (size_t k = 2; k < forms[i].size; k++)
            if ((b[k] & 0xc0) != 0x80)
                return 0;
        return forms[i].size;
    }
    return 0;
}

/* Adds a text whose special characters `escape` replaces; `escape` returns NULL for others. */
static void put_escaped(output *t, const char *value, const char *(*escape)(char c, char *room))
{
    char room[8];

    for (const char *at = value; *at != '\0';) {
        size_t size = sequence((const unsigned char *)at);
        const char *instead = size == 1 ? escape(*at, room) : NULL;
        if (size == 0)
            text_put(t, "\xef\xbf\xbd");
        else if (instead != NULL)
            text_put(t, instead);
        else
            put(t, at, size);
        at += size > 0 ? size : 1;
    }
}

static const char *escape_json(char c, char *room)
{
    if (c == '"' || c == '\\') {
        tn_snprint(room, 8, "\\%c", c);
        return room;
    }
    if ((unsigned char)c >= 0x20 && c != 0x7f)
        return NULL;
    tn_snprint(room, 8, "\\u%04x", (unsigned)(unsigned char)c);
    return room;
}

static const char *escape_html(char c, char *room)
{
    (void)room;
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    default: return (unsigned char)c < 0x20 ? " " : NULL;
    }
}

void text_json(output *t, const char *value)
{
    text_put(t, "\"");
    put_escaped(t, value, escape_json);
    text_put(t, "\"");
}

void text_html(output *t, const char *value)
{
    put_escaped(t, value, escape_html);
}

struct unit {
    double from;
    const char *name;
};

static void with_unit(output *t, double value, const struct unit *units, int count)
{
    int i = 0;

    while (i < count - 1 && fabs(value) < units[i].from)
        i++;
    value /= units[i].from;
    text_add(t, "%.*f %s",
             fabs(value) >= 99.95   ? 0
             : fabs(value) >= 9.995 ? 1
                                    : 2,
             value, units[i].name);
}

void text_time(output *t, double nanoseconds)
{
    static const struct unit units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" } };

    if (nanoseconds == 0)
        text_put(t, "0");
    else
        with_unit(t, nanoseconds, units, 3);
}

void text_bytes(output *t, double bytes)
{
    static const struct unit units[] = { { 1073741824.0, "GiB" },
                                         { 1048576.0, "MiB" },
                                         { 1024.0, "KiB" } };

    if (fabs(bytes) < 1024)
        text_add(t, "%.0f B", bytes);
    else
        with_unit(t, bytes, units, 3);
}

void text_rate(output *t, double flops, double nanoseconds)
{
    static const struct unit units[] = { { 1e12, "TFLOP/s" },
                                         { 1e9, "GFLOP/s" },
                                         { 1e6, "MFLOP/s" } };

    with_unit(t, nanoseconds > 0 ? flops / nanoseconds * 1e9 : 0, units, 3);
}

void text_free(output *t)
{
    tn_free(t->at);
    *t = (output){ .at = NULL };
}
