/* SPDX-License-Identifier: MIT
 *
 * Texts that grow, and memory that is freed all at once. */
#include "core/base/internal.h"

/* ---- texts ----------------------------------------------------------------------------------- */

/* Room for `more` bytes and a NUL. */
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
    char *moved = tn__realloc_quiet(text->at, capacity);
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
    int64_t length = tn__format_quoted(NULL, 0, mark, string);

    if (!reserve(text, (size_t)length))
        return;
    tn__format_quoted(text->at + text->length, (size_t)length, mark, string);
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
        tn_fail(TN_ERR_MEMORY, "out of host memory for a text of more than %zu bytes",
                text->length);
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
        tn_fail(TN_ERR_MEMORY, "out of host memory for a text of more than %zu bytes",
                text->length);
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

char *tn__format_take(const char *format, va_list args)
{
    va_list again;
    char *text = NULL;

    va_copy(again, args);
    int64_t length = tn_snprintv(NULL, 0, format, args);
    if (length < 0)
        tn_fail(
            TN_ERR_VALUE,
            "format %q has a conversion other than %%d %%i %%u %%x %%c %%s %%p %%f %%e %%g %%q %%b "
            "%%%%; for text that is not a format, call the function that ends in _parse",
            format);
    else
        text = tn_malloc((size_t)length + 1);
    if (text)
        tn_snprintv(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

/* ---- arenas ---------------------------------------------------------------------------------- */

#define ARENA_ALIGNMENT 16
/* AddressSanitizer sees the end of a block only where each block has memory of its own. */
#if defined __SANITIZE_ADDRESS__
#define ARENA_SEPARATE 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define ARENA_SEPARATE 1
#endif
#endif
#ifdef ARENA_SEPARATE
#define ARENA_SHARED 0
#define ARENA_CHUNK 0
#define ARENA_ROUND 1
#else
#define ARENA_SHARED 1
#define ARENA_CHUNK 2048
#define ARENA_ROUND ARENA_ALIGNMENT
#endif

struct chunk {
    struct chunk *next;
    size_t size, used; /* of the bytes behind this head */
};

struct tn__arena {
    struct chunk *chunks;
};

#define CHUNK_HEAD                                                                                 \
    ((sizeof(struct chunk) + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT)

tn__arena *tn__arena_new(void)
{
    return tn_calloc(1, sizeof(tn__arena));
}

void *tn__arena_alloc(tn__arena *arena, size_t size)
{
    struct chunk *chunk = arena->chunks;
    size_t rounded, whole;

    if (tn__add_overflow(size, CHUNK_HEAD + ARENA_ALIGNMENT - 1, &whole)) {
        tn_fail(TN_ERR_MEMORY, "out of host memory: cannot allocate %zu bytes", size);
        return NULL;
    }
    rounded = (size + ARENA_ROUND - 1) / ARENA_ROUND * ARENA_ROUND;
    if (!ARENA_SHARED || !chunk || chunk->size - chunk->used < rounded) {
        size_t room = rounded > ARENA_CHUNK ? rounded : ARENA_CHUNK;
        whole = room + CHUNK_HEAD;
        chunk = tn_malloc(whole);
        if (!chunk)
            return NULL;
        chunk->size = room;
        chunk->used = 0;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
    }
    char *at = (char *)chunk + CHUNK_HEAD + chunk->used;
    chunk->used += rounded;
    return at;
}

char *tn__arena_text(tn__arena *arena, const char *bytes, size_t length)
{
    char *text = tn__arena_alloc(arena, length + 1);

    if (!text)
        return NULL;
    memcpy(text, bytes, length);
    text[length] = 0;
    return text;
}

void tn__arena_free(tn__arena *arena)
{
    if (!arena)
        return;
    while (arena->chunks) {
        struct chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        tn_free(chunk);
    }
    tn_free(arena);
}
