/* SPDX-License-Identifier: MIT
 *
 * Arenas: many small allocations that are freed together by one call. */
#include "core/base/internal.h"

#define ARENA_ALIGNMENT 16
/* With AddressSanitizer every allocation gets a chunk of its own, because the sanitizer does not
 * detect an access beyond the end of an allocation that stays inside a shared chunk. */
#if TN_BUILD_ASAN
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
    size_t size, used; /* of the bytes after this struct, which hold the allocations */
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
