/* SPDX-License-Identifier: MIT
 *
 * The records of one thread: a list of chunks to which only the thread appends. Readers see a
 * record after it is published, without a lock. Records never move, so they can refer to each
 * other. */
#include "profile.h"

#include <string.h>

enum { CHUNK = 64 << 10, ALIGN = 8 };

typedef struct buffer_chunk {
    _Atomic(struct buffer_chunk *) next;
    _Atomic uint32_t used; /* what readers may see */
    uint32_t filled;       /* what the owner has written */
    _Alignas(ALIGN) char bytes[CHUNK];
} buffer_chunk;

/* In front of each record. */
struct item {
    uint32_t type;
    uint32_t size; /* with this head */
};

static _Atomic uint64_t in_use, limit;

void buffer_limit(uint64_t bytes)
{
    atomic_store(&limit, bytes);
}

bool buffer_reserve(uint64_t bytes)
{
    uint64_t most = atomic_load_explicit(&limit, memory_order_relaxed);
    uint64_t now = atomic_fetch_add_explicit(&in_use, bytes, memory_order_relaxed) + bytes;

    if (now <= most)
        return true;
    atomic_fetch_sub_explicit(&in_use, bytes, memory_order_relaxed);
    return false;
}

static buffer_chunk *chunk_new(void)
{
    buffer_chunk *chunk;

    if (!buffer_reserve(sizeof *chunk))
        return NULL;
    chunk = tn_malloc(sizeof *chunk);
    if (chunk == NULL) {
        atomic_fetch_sub_explicit(&in_use, sizeof *chunk, memory_order_relaxed);
        return NULL;
    }
    atomic_init(&chunk->next, NULL);
    atomic_init(&chunk->used, 0);
    chunk->filled = 0;
    return chunk;
}

void *buffer_add(buffer *b, uint32_t type, size_t size)
{
    size_t whole = (sizeof(struct item) + size + ALIGN - 1) / ALIGN * ALIGN;
    buffer_chunk *chunk = b->last;

    if (whole > CHUNK)
        return NULL;
    if (chunk == NULL || chunk->filled + whole > CHUNK) {
        buffer_chunk *fresh = chunk_new();
        if (fresh == NULL)
            return NULL;
        if (chunk == NULL)
            atomic_store_explicit(&b->first, fresh, memory_order_release);
        else
            atomic_store_explicit(&chunk->next, fresh, memory_order_release);
        b->last = chunk = fresh;
    }
    struct item *item = (struct item *)(void *)(chunk->bytes + chunk->filled);
    item->type = type;
    item->size = (uint32_t)whole;
    chunk->filled += (uint32_t)whole;
    return item + 1;
}

void buffer_publish(buffer *b)
{
    if (b->last != NULL)
        atomic_store_explicit(&b->last->used, b->last->filled, memory_order_release);
}

void buffer_clear(buffer *b)
{
    buffer_chunk *next;

    for (buffer_chunk *at = atomic_load(&b->first); at != NULL; at = next) {
        next = atomic_load(&at->next);
        tn_free(at);
        atomic_fetch_sub_explicit(&in_use, sizeof *at, memory_order_relaxed);
    }
    atomic_store(&b->first, NULL);
    b->last = NULL;
}

buffer_reader buffer_read(buffer *b)
{
    buffer_chunk *first = atomic_load_explicit(&b->first, memory_order_acquire);

    return (buffer_reader){ first, 0,
                            first != NULL ? atomic_load_explicit(&first->used, memory_order_acquire)
                                          : 0 };
}

const void *buffer_next(buffer_reader *reader, uint32_t *type)
{
    while (reader->chunk != NULL && reader->at >= reader->used) {
        reader->chunk = atomic_load_explicit(&reader->chunk->next, memory_order_acquire);
        reader->at = 0;
        reader->used = reader->chunk != NULL
                           ? atomic_load_explicit(&reader->chunk->used, memory_order_acquire)
                           : 0;
    }
    if (reader->chunk == NULL)
        return NULL;
    const struct item *item = (const void *)(reader->chunk->bytes + reader->at);
    reader->at += item->size;
    *type = item->type;
    return item + 1;
}
