/* SPDX-License-Identifier: MIT
 *
 * Scratch memory: a few blocks that wait for the next piece of work. No lock: a block belongs to
 * whoever exchanges it out of its slot. */
#include <stdatomic.h>

#include "cpu.h"

enum { SLOTS = 32, LARGEST = 8 << 20 };

struct block {
    size_t bytes;
    char padding[64 - sizeof(size_t)]; /* what follows is aligned as the block is */
};

static _Atomic(struct block *) slots[SLOTS];

void *tn__scratch_take(size_t bytes)
{
    size_t size = 65536;
    for (int i = 0; i < SLOTS; i++) {
        struct block *block = atomic_load_explicit(&slots[i], memory_order_relaxed);
        if (!block)
            continue;
        block = atomic_exchange_explicit(&slots[i], NULL, memory_order_acquire);
        if (block && block->bytes >= bytes)
            return block + 1;
        tn_free(block); /* too small: a larger one takes its place */
        break;
    }
    while (size < bytes && size < LARGEST)
        size *= 2;
    struct block *block = tn_malloc(sizeof *block + (size < bytes ? bytes : size));
    if (!block)
        return NULL;
    block->bytes = size < bytes ? bytes : size;
    return block + 1;
}

void tn__scratch_give(void *memory)
{
    struct block *block = (struct block *)memory - 1;
    for (int i = 0; i < SLOTS && block->bytes <= LARGEST; i++) {
        struct block *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&slots[i], &none, block, memory_order_release,
                                                    memory_order_relaxed))
            return;
    }
    tn_free(block);
}

void tn__scratch_drop(void)
{
    for (int i = 0; i < SLOTS; i++)
        tn_free(atomic_exchange_explicit(&slots[i], NULL, memory_order_acquire));
}
