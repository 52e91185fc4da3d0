/* SPDX-License-Identifier: MIT
 *
 * The allocator for host memory in the processes of tenon check. It lets allocations fail when a
 * test asks for that, and counts allocations and frees. */
#include "conform.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic int64_t taken, left = INT64_MAX, failures, blocks;
static _Atomic bool all_behind;

/* Counts an allocation. Returns true if it must fail. */
static bool fails(void)
{
    int64_t rest = atomic_fetch_sub(&left, 1);

    atomic_fetch_add(&taken, 1);
    if (rest > 0 || (rest < 0 && !atomic_load(&all_behind)))
        return false;
    atomic_fetch_add(&failures, 1);
    return true;
}

static void *scarce_alloc(void *user, size_t size, size_t alignment)
{
    void *block = NULL;

    (void)user;
    if (fails() || posix_memalign(&block, alignment < sizeof(void *) ? sizeof(void *) : alignment,
                                  size > 0 ? size : 1) != 0)
        return NULL;
    atomic_fetch_add(&blocks, 1);
    return block;
}

static void scarce_free(void *user, void *block, size_t size, size_t alignment)
{
    (void)user;
    (void)size;
    (void)alignment;
    if (block != NULL)
        atomic_fetch_sub(&blocks, 1);
    free(block);
}

static void *scarce_resize(void *user, void *block, size_t old_size, size_t size, size_t alignment)
{
    void *more = scarce_alloc(user, size, alignment);

    if (more == NULL)
        return NULL;
    if (block != NULL) {
        memcpy(more, block, old_size < size ? old_size : size);
        scarce_free(user, block, old_size, alignment);
    }
    return more;
}

void conform_scarce_memory(void)
{
    static const tn_allocator scarce = { .alloc = scarce_alloc,
                                         .resize = scarce_resize,
                                         .free = scarce_free };

    if (tn_set_allocator(&scarce) != TN_OK)
        tn_error_clear();
}

void conform_memory_fails(int64_t after, bool all)
{
    atomic_store(&failures, 0);
    atomic_store(&taken, 0);
    atomic_store(&all_behind, all);
    atomic_store(&left, after);
}

int64_t conform_memory_is_back(void)
{
    atomic_store(&left, INT64_MAX);
    return atomic_load(&failures);
}

int64_t conform_memory_taken(void)
{
    return atomic_load(&taken);
}

int64_t conform_memory_blocks(void)
{
    return atomic_load(&blocks);
}
