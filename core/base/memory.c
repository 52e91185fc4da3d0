/* SPDX-License-Identifier: MIT
 *
 * Host memory: the allocator that the whole library uses, and that a program can replace. With the
 * default allocator, a block is exactly what malloc returned, so that memory checkers recognize it.
 * With the program's own allocator, tn_malloc stores the size in front of the block, because that
 * allocator must be given the size again when the block is freed. */
#include "core/base/internal.h"

#include <stdlib.h>

#define ALIGNMENT _Alignof(max_align_t)
#define HEADER 16 /* bytes in front of a block for its size; a multiple of ALIGNMENT */

_Static_assert(HEADER >= sizeof(size_t) && HEADER % ALIGNMENT == 0,
               "the block after the header must be aligned");

static tn_allocator custom; /* .alloc is NULL: the C library's allocator is used */
/* 0: nothing was allocated yet; 1: tn_set_allocator is replacing the allocator; 2: memory was
 * allocated, so the allocator cannot change any more. */
static _Atomic int stage;

_Atomic bool tn__memory_watched;
static _Atomic uint64_t made, fail_at;
static _Atomic uint64_t failures;

uint64_t tn__memory_failures(void)
{
    return atomic_load(&failures);
}

static void *failed(void)
{
    atomic_fetch_add(&failures, 1);
    return NULL;
}

static tn_status out_of_memory(size_t size)
{
    return tn_fail(TN_ERR_MEMORY, "out of host memory: cannot allocate %zu bytes", size);
}

/* Called before each allocation. The first call fixes the choice of the allocator. Returns true if
 * fault injection (tn__memory_fail) makes this allocation fail. */
static bool refused(void)
{
    if (tn__unlikely(atomic_load_explicit(&stage, memory_order_acquire) != 2)) {
        int before = 0;
        while (!atomic_compare_exchange_weak(&stage, &before, 2) && before != 2)
            before = 0; /* another thread is in tn_set_allocator, for a few instructions only */
    }
    if (tn__likely(!atomic_load_explicit(&tn__memory_watched, memory_order_relaxed)))
        return false;
    uint64_t number = atomic_fetch_add(&made, 1) + 1;
    return number == atomic_load(&fail_at);
}

uint64_t tn__memory_fail(uint64_t nth)
{
    uint64_t before = atomic_exchange(&made, 0);

    atomic_store(&fail_at, nth);
    atomic_store(&tn__memory_watched, true);
    return before;
}

tn_status tn_set_allocator(const tn_allocator *allocator)
{
    int unused = 0;

    if (!tn__given(allocator != NULL, "tn_set_allocator: allocator"))
        return TN_ERR_VALUE;
    if (!tn__given(allocator->alloc != NULL, "tn_set_allocator: alloc") ||
        !tn__given(allocator->resize != NULL, "tn_set_allocator: resize") ||
        !tn__given(allocator->free != NULL, "tn_set_allocator: free"))
        return TN_ERR_VALUE;
    if (!atomic_compare_exchange_strong(&stage, &unused, 1))
        return tn_fail(TN_ERR_RUNTIME,
                       "tn_set_allocator: memory is in use already; call it before anything else");
    custom = *allocator;
    atomic_store_explicit(&stage, 0, memory_order_release);
    return TN_OK;
}

/* ---- blocks that know their size ------------------------------------------------------------- */

void *tn__memory_malloc_quiet(size_t size)
{
    if (refused())
        return failed();
    if (!custom.alloc) {
        void *plain = malloc(size ? size : 1);
        return tn__likely(plain) ? plain : failed();
    }
    if (size > SIZE_MAX - HEADER)
        return failed();
    char *block = custom.alloc(custom.user, size + HEADER, ALIGNMENT);
    if (!block)
        return failed();
    memcpy(block, &size, sizeof size);
    return block + HEADER;
}

void *tn__memory_realloc_quiet(void *block, size_t size)
{
    if (!block)
        return tn__memory_malloc_quiet(size);
    if (refused())
        return failed();
    if (!custom.alloc) {
        void *plain = realloc(block, size ? size : 1);
        return tn__likely(plain) ? plain : failed();
    }
    if (size > SIZE_MAX - HEADER)
        return failed();
    char *whole = (char *)block - HEADER;
    size_t old;
    memcpy(&old, whole, sizeof old);
    whole = custom.resize(custom.user, whole, old + HEADER, size + HEADER, ALIGNMENT);
    if (!whole)
        return failed();
    memcpy(whole, &size, sizeof size);
    return whole + HEADER;
}

void *tn_malloc(size_t size)
{
    void *block = tn__memory_malloc_quiet(size);

    if (tn__unlikely(!block))
        out_of_memory(size);
    return block;
}

void *tn_calloc(size_t count, size_t size)
{
    size_t bytes;

    if (tn__mul_overflow(count, size, &bytes)) {
        tn_fail(TN_ERR_MEMORY, "out of host memory: cannot allocate %zu times %zu bytes", count,
                size);
        return NULL;
    }
    if (!custom.alloc && !refused()) {
        void *block = calloc(bytes ? bytes : 1, 1);
        if (tn__unlikely(!block)) {
            failed();
            out_of_memory(bytes);
        }
        return block;
    }
    if (!custom.alloc) {
        out_of_memory(bytes);
        return failed();
    }
    void *block = tn_malloc(bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

void *tn_realloc(void *block, size_t size)
{
    void *moved = tn__memory_realloc_quiet(block, size);

    if (tn__unlikely(!moved))
        out_of_memory(size);
    return moved;
}

void tn_free(void *block)
{
    size_t size;

    if (!block)
        return;
    if (!custom.alloc) {
        free(block);
        return;
    }
    char *whole = (char *)block - HEADER;
    memcpy(&size, whole, sizeof size);
    custom.free(custom.user, whole, size + HEADER, ALIGNMENT);
}

char *tn_strdup(const char *text)
{
    if (!tn__given(text != NULL, "tn_strdup: text"))
        return NULL;
    size_t size = strlen(text) + 1;
    char *copy = tn_malloc(size);

    return copy ? memcpy(copy, text, size) : NULL;
}

/* ---- blocks whose owner knows the size ------------------------------------------------------- */

void *tn__memory_alloc_aligned(size_t size, size_t alignment)
{
    void *block = NULL;

    if (alignment < sizeof(void *))
        alignment = sizeof(void *);
    if (!refused()) {
        if (custom.alloc)
            block = custom.alloc(custom.user, size ? size : 1, alignment);
        else if (posix_memalign(&block, alignment, size ? size : 1) != 0)
            block = NULL;
    }
    if (!block) {
        failed();
        tn_fail(TN_ERR_MEMORY, "out of host memory: cannot allocate %zu bytes aligned to %zu", size,
                alignment);
    }
    return block;
}

void tn__memory_free_aligned(void *block, size_t size, size_t alignment)
{
    if (!block)
        return;
    if (!custom.alloc)
        free(block);
    else
        custom.free(custom.user, block, size ? size : 1,
                    alignment < sizeof(void *) ? sizeof(void *) : alignment);
}
