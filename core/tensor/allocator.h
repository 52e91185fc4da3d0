/* SPDX-License-Identifier: MIT
 *
 * Internals of the caching allocator. It has three levels:
 *
 *   thread    lists of free small blocks by size class; no lock              allocator.c
 *   device    bins of free blocks: best fit, split and joined; with a lock   allocator_segment.c
 *   backend   segments, from which blocks are cut
 *
 * With TENON_CHECK=1 a plain allocator with guard zones (guard.c) replaces all of them. */
#ifndef TN_CORE_TENSOR_ALLOCATOR_H
#define TN_CORE_TENSOR_ALLOCATOR_H

#include "core/tensor/device.h"
#include "core/tensor/thread.h"

#define TN__BINS 256
#define TN__BLOCK_USERS 4
/* Blocks up to this size have size classes and share segments. */
#define TN__SMALL_BLOCK ((uint64_t)64 << 10)

enum { TN__BLOCK_FREE, TN__BLOCK_TAKEN, TN__BLOCK_PENDING };

typedef struct tn__segment tn__segment;

/* A piece of a segment. The block contains its storage object, so that one allocation serves both.
 * Of a free block, storage.stream is the stream that used it last; NULL: any stream may use it. */
typedef struct tn__block {
    tn__storage storage; /* first */
    tn__segment *segment;
    uint64_t size;
    struct tn__block *before, *after; /* neighbours in the segment */
    /* In a bin, in the pending list, or in the list of spare objects. */
    struct tn__block *previous, *next;
    _Atomic uint64_t live; /* bytes of the tensor in the block, 0 while it is free; for reports */
    int32_t state;         /* TN__BLOCK_* */
    int32_t n_users;       /* number of other streams that used the block since it was taken */
    tn_stream *users[TN__BLOCK_USERS];
    /* One event for each user, recorded once the block is pending; NULL until then. */
    void *events[TN__BLOCK_USERS];
} tn__block;

struct tn__segment {
    void *memory;
    uint64_t size;
    tn__block *first;
    tn__segment *next;
    int32_t pool;
};

/* Free blocks by size: each bin is a list. A bit is set for each bin that is not empty. */
typedef struct tn__pool {
    tn__block *bins[TN__BINS];
    uint64_t bits[TN__BINS / 64];
} tn__pool;

typedef struct tn__guarded tn__guarded;

struct tn__allocator {
    tn_device *device;
    uint64_t quantum; /* a power of two; block sizes and offsets are multiples of it */
    int shift;        /* log2 of quantum: divides by shifting */
    bool guarded;
    /* Incremented when all threads are asked to give back the blocks that they cache. */
    _Atomic uint32_t epoch;
    /* Sums that threads have added (settle() in allocator.c); live and peak count bytes. */
    _Atomic int64_t live, peak, blocks, requests;
    _Atomic int64_t reserved, device_allocs, trims;
    _Atomic int64_t prepared; /* bytes that kernels prepared, in memory of their own */

    pthread_mutex_t lock; /* protects all members below */
    tn__pool pools[2];    /* for small blocks, for large blocks */
    tn__segment *segments;
    tn__block *pending, *spare;
    tn__cache *caches;
    tn__guarded *guards;
    struct tn__allocator *next; /* in the list of all allocators, which fork needs */
};

/* ---- allocator_segment.c: under the lock ---- */

/* Returns the size class of a block that holds `bytes` bytes, TN__SIZE_CLASSES if there is none. */
static inline int tn__allocator_block_class(const struct tn__allocator *allocator, uint64_t bytes)
{
    uint64_t last = (bytes - 1) >> allocator->shift;
    int shift;

    if (bytes > TN__SMALL_BLOCK || last >= 1024)
        return TN__SIZE_CLASSES;
    if (last < 8)
        return (int)last;
    shift = 61 - __builtin_clzll(last);
    return 8 + (shift - 1) * 4 + (int)(last >> shift) - 4;
}
/* Returns the size of a block that holds `bytes` bytes, and sets its size class. */
uint64_t tn__allocator_block_size(const struct tn__allocator *allocator, uint64_t bytes,
                                  int *size_class);
/* Takes a free block of exactly `size` bytes (large blocks may be a little larger). Returns NULL
 * without an error if there is none and the device must be asked for memory. */
tn__block *tn__allocator_block_take(struct tn__allocator *allocator, tn_stream *stream,
                                    uint64_t size);
/* Allocates a segment from the backend. */
tn_status tn__allocator_segment_add(struct tn__allocator *allocator, uint64_t size);
/* Takes a block back: puts it into its bin, or into the pending list while other streams use it. */
void tn__allocator_block_give(struct tn__allocator *allocator, tn__block *block);
/* Makes the free blocks that a stream used last usable by all streams, and joins them with their
 * neighbours. The work of the stream must be done. NULL: all streams. */
void tn__allocator_blocks_release(struct tn__allocator *allocator, const tn_stream *stream);
/* Moves pending blocks that no stream uses any more to their bins. */
void tn__allocator_blocks_poll(struct tn__allocator *allocator);
/* Frees the segments that consist of one free block which any stream may use. */
void tn__allocator_segments_trim(struct tn__allocator *allocator);
void tn__allocator_free_spare(struct tn__allocator *allocator);

/* ---- guard.c ---- */

tn__storage *tn__guard_get(struct tn__allocator *allocator, tn_stream *stream, uint64_t bytes);
void tn__guard_put(struct tn__allocator *allocator, tn__storage *storage);
tn_status tn__guard_check(struct tn__allocator *allocator);
/* Calls `visit` with the bytes of each live tensor. The caller holds the lock. */
void tn__guard_each(struct tn__allocator *allocator, void (*visit)(void *user, uint64_t bytes),
                    void *user);

/* Returns whether the backend may be called at all: false in a forked child if the backend does not
 * survive fork. */
static inline bool tn__device_survived(const tn_device *device)
{
    return (device->flags & TN_BACKEND_AFTER_FORK) != 0 || !tn__fork_is_child();
}

/* ---- storage.c ---- */

/* Returns a storage object without memory, from the list of the thread if there is one. Returns
 * NULL and sets the error on failure. */
tn__storage *tn__storage_object(void);
void tn__storage_object_free(tn__storage *storage);

/* ---- allocator.c ---- */

/* Counts bytes that one tensor allocates (> 0) or frees (< 0). `cache` may be NULL. */
void tn__allocator_count(struct tn__allocator *allocator, tn__cache *cache, int64_t bytes);

/* Read and write a counter. The counters are independent, so relaxed order is enough. */
static inline int64_t tn__allocator_counter(const _Atomic int64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static inline void tn__allocator_set_counter(_Atomic int64_t *counter, int64_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* ---- allocator_stats.c ---- */

/* Appends a size such as "1.50 MiB" to a text. */
void tn__allocator_text_bytes(tn__text *text, uint64_t bytes);

#endif
