/* SPDX-License-Identifier: MIT
 *
 * Texts that are built piece by piece in a growing buffer. */
#include "core/base/internal.h"

/* Ensures that there is space for `more` bytes and a NUL; otherwise sets text->failed. */
static bool reserve(tn__text *text, size_t more)
{
    size_t need, capacity = text->capacity ? text->capacity : 64;

    if (text->failed)
        return false;
    if (tn__add_overflow(text->length, more, &need) || tn__add_overflow(need, 1, &need)) {
        text->failed = true;
        return false;
    }
    if (need <= text->capacity)
        return true;
    while (capacity < need)
        capacity = capacity > SIZE_MAX / 2 ? need : 2 * capacity;
    char *moved = tn__memory_realloc_quiet(text->at, capacity);
    if (!moved) {
        text->failed = true;
        return false;
    }
    text->at = moved;
    text->capacity = capacity;
    return true;
}

void tn__text_put(tn__text *text, const char *bytes, size_t count)
{
    if (!reserve(text, count))
        return;
    if (count)
        memcpy(text->at + text->length, bytes, count);
    text->length += count;
    text->at[text->length] = 0;
}

void tn__text_addv(tn__text *text, const char *format, va_list args)
{
    char small[256];
    va_list again;
    int64_t length;

    va_copy(again, args);
    length = tn_snprintv(small, sizeof small, format, args);
    if (length < 0) {
        tn__text_put(text, format, strlen(format));
    } else if ((size_t)length < sizeof small) {
        tn__text_put(text, small, (size_t)length);
    } else if (reserve(text, (size_t)length)) {
        tn_snprintv(text->at + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void tn__text_add(tn__text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    tn__text_addv(text, format, args);
    va_end(args);
}

void tn__text_quote(tn__text *text, char mark, const char *string)
{
    int64_t length = tn__print_quoted(NULL, 0, mark, string);

    if (!reserve(text, (size_t)length))
        return;
    tn__print_quoted(text->at + text->length, (size_t)length, mark, string);
    text->length += (size_t)length;
    text->at[text->length] = 0;
}

void tn__text_free(tn__text *text)
{
    tn_free(text->at);
    *text = (tn__text){ 0 };
}

char *tn__text_take(tn__text *text)
{
    char *at = text->at;

    if (text->failed || !reserve(text, 0)) {
        tn_fail(TN_ERR_MEMORY, "out of host memory: a text of more than %zu bytes", text->length);
        tn__text_free(text);
        return NULL;
    }
    at = text->at;
    at[text->length] = 0;
    *text = (tn__text){ 0 };
    return at;
}

int64_t tn__text_give(tn__text *text, char *out, size_t size)
{
    int64_t length = (int64_t)text->length;

    if (text->failed) {
        tn_fail(TN_ERR_MEMORY, "out of host memory: a text of more than %zu bytes", text->length);
        length = -1;
        if (out && size)
            *out = 0;
    } else if (out && size) {
        size_t count = text->length < size ? text->length : size - 1;
        if (count)
            memcpy(out, text->at, count);
        out[count] = 0;
    }
    tn__text_free(text);
    return length;
}

char *tn__text_from_format(const char *format, va_list args)
{
    va_list again;
    char *text = NULL;

    va_copy(again, args);
    int64_t length = tn_snprintv(NULL, 0, format, args);
    if (length < 0)
        tn_fail(
            TN_ERR_VALUE,
            "format %q: unknown conversion; expected %%d %%i %%u %%x %%c %%s %%p %%f %%e %%g %%q "
            "%%b %%%%; for text that is not a format, call the function whose name ends in _parse",
            format);
    else
        text = tn_malloc((size_t)length + 1);
    if (text)
        tn_snprintv(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}
