/* SPDX-License-Identifier: MIT
 *
 * Inside of the caching allocator: segments of the device, blocks of segments, bins of free blocks.
 *
 *   thread    lists of small blocks by size class; no lock            allocator.c
 *   device    bins of free blocks, best fit, split and joined; a lock  segment.c
 *   backend   segments
 *
 * With TENON_CHECK=1 a plain allocator with guard zones takes the place of all that: guard.c. */
#ifndef TN_CORE_TENSOR_ALLOCATOR_H
#define TN_CORE_TENSOR_ALLOCATOR_H

#include "core/tensor/device.h"
#include "core/tensor/thread.h"

#define TN__BINS 256
#define TN__BLOCK_USERS 4
#define TN__SMALL_BLOCK                                                                            \
    ((uint64_t)64 << 10) /* up to here blocks have size classes and share segments */

enum { TN__BLOCK_FREE, TN__BLOCK_TAKEN, TN__BLOCK_PENDING };

typedef struct tn__segment tn__segment;

/* A piece of a segment. It carries its storage object, so that one thing is made and kept, not two.
 * storage.stream of a free block: where it was last used; NULL: it may be used anywhere. */
typedef struct tn__block {
    tn__storage storage; /* first */
    tn__segment *segment;
    uint64_t size;
    struct tn__block *before, *after;  /* in the segment */
    struct tn__block *previous, *next; /* in a bin, in the pending list, among the spare */
    _Atomic uint64_t live;             /* bytes of the tensor in it, 0 when cached; for reports */
    int32_t state;                     /* TN__BLOCK_* */
    int32_t n_users;                   /* other streams that used it since it was taken */
    tn_stream *users[TN__BLOCK_USERS];
    void *events[TN__BLOCK_USERS]; /* once pending: NULL until recorded */
} tn__block;

struct tn__segment {
    void *memory;
    uint64_t size;
    tn__block *first;
    tn__segment *next;
    int32_t pool;
};

/* Free blocks by size: in each bin a list. */
typedef struct tn__pool {
    tn__block *bins[TN__BINS];
    uint64_t bits[TN__BINS / 64];
} tn__pool;

typedef struct tn__guarded tn__guarded;

struct tn__allocator {
    tn_device *device;
    uint64_t quantum; /* sizes and offsets are multiples; a power of two */
    int shift;        /* divides by it */
    bool guarded;
    _Atomic uint32_t
        epoch; /* counts the times that threads were asked to give back what they keep */
    /* What threads have settled. Bytes. */
    _Atomic int64_t live, peak, blocks, requests;
    _Atomic int64_t reserved, device_allocs, trims;
    _Atomic int64_t prepared; /* by kernels, in memory of their own */

    pthread_mutex_t lock; /* of all below */
    tn__pool pools[2];    /* small, large */
    tn__segment *segments;
    tn__block *pending, *spare;
    tn__cache *caches;
    tn__guarded *guards;
    struct tn__allocator *next; /* of all, for fork */
};

/* ---- segment.c: under the lock ---- */

/* The class of a block for so many bytes, TN__SIZE_CLASSES where there is none. */
static inline int tn__segment_block_class(const struct tn__allocator *allocator, uint64_t bytes)
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
/* Bytes that it has, and its class. */
uint64_t tn__segment_block_size(const struct tn__allocator *allocator, uint64_t bytes,
                                int *size_class);
/* A block of exactly `size` (a little more for large ones); NULL without an error when the
 * device must be asked. */
tn__block *tn__segment_block_take(struct tn__allocator *allocator, tn_stream *stream,
                                  uint64_t size);
/* Asks the device, for that stream. */
tn_status tn__segment_add(struct tn__allocator *allocator, tn_stream *stream, uint64_t size);
/* Takes a block back: to its bin, or to the pending list while other streams use it. */
void tn__segment_block_give(struct tn__allocator *allocator, tn__block *block);
/* Blocks that a stream is done with may be used by all; joined with their neighbours. NULL: all
 * streams. */
void tn__segment_blocks_release(struct tn__allocator *allocator, const tn_stream *stream);
void tn__segment_blocks_poll(struct tn__allocator *allocator);
/* Gives segments without a taken block back to the device, those whose blocks may be used by
 * all. */
void tn__segments_trim(struct tn__allocator *allocator);
void tn__segment_free_spare(struct tn__allocator *allocator);

/* ---- guard.c ---- */

tn__storage *tn__guard_get(struct tn__allocator *allocator, tn_stream *stream, uint64_t bytes);
void tn__guard_put(struct tn__allocator *allocator, tn__storage *storage);
tn_status tn__guard_check(struct tn__allocator *allocator);
/* Calls `visit` for each live tensor's bytes. Under the lock. */
void tn__guard_each(struct tn__allocator *allocator, void (*visit)(void *user, uint64_t bytes),
                    void *user);

/* Whether the device may be called at all: not in the child of a fork that it does not survive. */
static inline bool tn__device_survived(const tn_device *device)
{
    return (device->flags & TN_BACKEND_AFTER_FORK) != 0 || !tn__fork_is_child();
}

/* ---- storage.c ---- */

/* A storage object without memory, as the thread keeps them; NULL and an error. */
tn__storage *tn__storage_object(void);
void tn__storage_object_free(tn__storage *storage);

/* ---- allocator.c ---- */

/* Counts bytes taken (> 0) or given back (< 0) by one tensor. `cache` may be NULL. */
void tn__allocator_count(struct tn__allocator *allocator, tn__cache *cache, int64_t bytes);

/* Its counters: each is read and written on its own. */
static inline int64_t tn__allocator_counter(const _Atomic int64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static inline void tn__allocator_set_counter(_Atomic int64_t *counter, int64_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* ---- allocator_stats.c ---- */

/* "1.50 MiB". */
void tn__allocator_text_bytes(tn__text *text, uint64_t bytes);

#endif
