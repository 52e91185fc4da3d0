/* SPDX-License-Identifier: MIT
 *
 * Memory of a program (arena.h). */
#include "arena.h"

#include <string.h>

enum { BLOCK = 1 << 16, UNIT = 16 };

struct arena_block {
    struct arena_block *before;
    size_t unused; /* keeps the bytes that follow aligned to UNIT */
    unsigned char bytes[];
};

static bool add_block(struct arena *arena, size_t size)
{
    struct arena_block *block = tn_malloc(sizeof *block + size);

    if (block == NULL)
        return false;
    block->before = arena->last;
    arena->last = block;
    arena->used = 0;
    arena->size = size;
    return true;
}

void *arena_new(struct arena *arena, uint64_t count, size_t size)
{
    uint64_t bytes;
    void *at;

    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2) {
        tn_fail(TN_ERR_MEMORY,
                "a program needs %llu pieces of memory of %zu bytes, which is too much",
                (unsigned long long)count, size);
        return NULL;
    }
    bytes = (bytes + UNIT - 1) / UNIT * UNIT;
    if ((arena->last == NULL || arena->size - arena->used < bytes) &&
        !add_block(arena, bytes > BLOCK ? (size_t)bytes : BLOCK))
        return NULL;
    at = arena->last->bytes + arena->used;
    arena->used += (size_t)bytes;
    memset(at, 0, (size_t)bytes);
    return at;
}

char *arena_text(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_new(arena, length + 1, 1);

    if (copy != NULL)
        memcpy(copy, text, length);
    return copy;
}

void arena_free(struct arena *arena)
{
    while (arena->last != NULL) {
        struct arena_block *before = arena->last->before;

        tn_free(arena->last);
        arena->last = before;
    }
    *arena = (struct arena){ 0 };
}
