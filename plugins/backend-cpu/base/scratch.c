/* SPDX-License-Identifier: MIT
 *
 * Scratch memory. Blocks that are given back are kept in slots, a few for each size, until a later
 * call takes them. There is no lock: a thread takes a block by atomically exchanging the slot's
 * pointer for NULL, and then owns the block. */
#include <stdatomic.h>

#include "base/pages.h"
#include "base/scratch.h"

/* Class i has blocks of SMALLEST << i bytes, so the largest block that is kept has 64 MiB. */
enum { SLOTS = 8, CLASSES = 11, SMALLEST = 65536, ALIGNMENT = 64 };

/* The header before the memory that the caller gets. Header and memory begin on a cache line. */
struct block {
    void *whole;   /* the pointer that tn_malloc returned */
    int32_t class; /* CLASSES: too large to be kept */
    char padding[ALIGNMENT - sizeof(void *) - sizeof(int32_t)];
};

static _Atomic(struct block *) slots[CLASSES][SLOTS];

static void *block_new(size_t bytes, int32_t class)
{
    const size_t alignment = tn__pages_alignment(bytes, ALIGNMENT);
    const size_t size = bytes + ALIGNMENT + alignment;
    char *whole;
    struct block *block;
    size_t past;

    if (size < bytes) {
        tn_fail(TN_ERR_MEMORY, "cpu: temporary memory: too large, got %zu bytes; expected fewer",
                bytes);
        return NULL;
    }
    whole = tn_malloc(size);
    if (!whole)
        return NULL;
    past = ((uintptr_t)whole + ALIGNMENT) % alignment;
    block = (struct block *)(void *)(whole + (past ? alignment - past : 0));
    tn__pages_advise(block + 1, bytes);
    block->whole = whole;
    block->class = class;
    return block + 1;
}

void *tn__scratch_take(size_t bytes)
{
    int32_t class = 0;
    size_t size = SMALLEST;

    while (class < CLASSES && size < bytes) {
        size *= 2;
        class ++;
    }
    for (int i = 0; class < CLASSES && i < SLOTS; i++) {
        struct block *block = atomic_exchange_explicit(&slots[class][i], NULL,
                                                       memory_order_acquire);
        if (block)
            return block + 1;
    }
    return block_new(class < CLASSES ? size : bytes, class);
}

void *tn__scratch_own(size_t bytes)
{
    return block_new(bytes, CLASSES);
}

void tn__scratch_free(void *memory)
{
    if (memory)
        tn_free(((struct block *)memory - 1)->whole);
}

void tn__scratch_give(void *memory)
{
    struct block *block = memory;

    if (!memory)
        return;
    block--;
    for (int i = 0; block->class < CLASSES && i < SLOTS; i++) {
        struct block *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&slots[block->class][i], &none, block,
                                                    memory_order_release, memory_order_relaxed))
            return;
    }
    tn_free(block->whole);
}

void tn__scratch_drop(void)
{
    for (int class = 0; class < CLASSES; class ++)
        for (int i = 0; i < SLOTS; i++) {
            struct block *block = atomic_exchange_explicit(&slots[class][i], NULL,
                                                           memory_order_acquire);
            if (block)
                tn_free(block->whole);
        }
}
