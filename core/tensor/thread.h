/* SPDX-License-Identifier: MIT
 *
 * What a thread keeps for tensors: its scopes, free objects, cached blocks, and the devices and
 * streams that it is using. Thread-local storage holds one pointer to it. It is created when first
 * needed, and freed when the thread ends; tn_shutdown frees that of its caller. */
#ifndef TN_CORE_TENSOR_THREAD_H
#define TN_CORE_TENSOR_THREAD_H

#include "core/base/vector.h"
#include "core/tensor/internal.h"

/* With AddressSanitizer, an access to an object that waits to be used again is an error. */
#if TN_BUILD_ASAN
#include <sanitizer/asan_interface.h>
#define TN__POISON(at, size) __asan_poison_memory_region(at, size)
#define TN__UNPOISON(at, size) __asan_unpoison_memory_region(at, size)
#else
#define TN__POISON(at, size) ((void)(at), (void)(size))
#define TN__UNPOISON(at, size) ((void)(at), (void)(size))
#endif

#define TN__MAX_CACHED_DEVICES 32 /* threads keep no caches for devices with a higher ordinal */
#define TN__SIZE_CLASSES 36       /* number of block sizes that threads cache, 64 bytes to 64 KiB */
/* A thread keeps at most this many tensor objects, and as many storage objects. */
#define TN__FREE_OBJECTS 256
/* Number of sizes of the small pieces of host memory that a thread keeps: 64, 128 ... bytes. */
#define TN__PIECE_SIZES 8
#define TN__PIECE_UNIT ((size_t)64)
#define TN__FREE_PIECES 128 /* pieces of each size that a thread keeps at most */

/* Free blocks of one device that a thread caches, by size class. Only the owner touches the lists;
 * the counters are written by the owner and read by all threads. */
typedef struct tn__cache {
    tn_stream *stream; /* the stream on which all the blocks were last used */
    struct tn__allocator *allocator;
    /* The epoch of the allocator that the cache has seen. If the allocator's is newer, the cache
     * must give all blocks back. */
    uint32_t epoch;
    uint32_t bytes_kept;
    tn__storage *free[TN__SIZE_CLASSES]; /* linked through user[0] */
    uint16_t kept[TN__SIZE_CLASSES];
    uint16_t batch[TN__SIZE_CLASSES]; /* blocks to fetch when the list is empty */
    /* Bytes since these counts were last added to the allocator's (settle() in allocator.c), and
     * their maximum. */
    _Atomic int64_t live, high;
    _Atomic int64_t blocks, requests;
    struct tn__cache *next; /* in the allocator's list of caches */
} tn__cache;

typedef struct tn__scope_mark {
    uint64_t number;
    int64_t start;
} tn__scope_mark;

typedef struct tn__thread {
    tn__cache *caches[TN__MAX_CACHED_DEVICES];
    tn_tensor *free_tensors;    /* linked through view.data */
    tn__storage *free_storages; /* linked through user[0] */
    int32_t n_free_tensors, n_free_storages;
    void *pieces[TN__PIECE_SIZES]; /* linked through their first pointer */
    int32_t n_pieces[TN__PIECE_SIZES];

    tn_tensor **owned; /* tensors that the scopes own; those of the innermost scope are last */
    int64_t n_owned, owned_capacity;
    tn__scope_mark *marks;
    int64_t n_marks, marks_capacity;
    uint64_t next_scope; /* number of the newest scope; the upper bits identify the thread */
    bool warned;         /* the warning about tensors in the root scope was given */

    /* Where core/grad counts the nodes of graphs that this thread makes and drops; NULL: in
     * tn__nodes_elsewhere. */
    _Atomic int64_t *nodes;

    const tn_device **devices; /* the stack of tn_device_begin */
    int64_t n_devices, devices_capacity;
    tn_stream **streams; /* the stack of tn_stream_begin */
    int64_t n_streams, streams_capacity;
    struct tn__autocast *autocast; /* NULL until the first tn_autocast_begin */
} tn__thread;

extern __thread tn__thread *tn__thread_here __attribute__((tls_model("initial-exec")));

/* Creates the state of this thread. Returns NULL and sets the error on failure. */
tn__thread *tn__thread_make(void);
static inline tn__thread *tn__thread_get(void)
{
    tn__thread *thread = tn__thread_here;
    return tn__likely(thread != NULL) ? thread : tn__thread_make();
}
/* Counts nodes of live graphs. A thread has a counter of its own that no other thread writes, so
 * threads do not wait for each other. Threads beyond the 64th share tn__nodes_elsewhere. */
extern _Atomic int64_t tn__nodes_elsewhere;
static inline void tn__nodes_count(int64_t by)
{
    _Atomic int64_t *at = tn__thread_here != NULL ? tn__thread_here->nodes : NULL;

    if (tn__likely(at != NULL))
        atomic_store_explicit(at, atomic_load_explicit(at, memory_order_relaxed) + by,
                              memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&tn__nodes_elsewhere, by, memory_order_relaxed);
}
/* Returns the number of all nodes that live. */
int64_t tn__thread_nodes_alive(void);

/* Small pieces of host memory for objects that every recorded call makes and drops. Like tn_malloc
 * and tn_free, but the caller passes the size when it gives a piece back. tn__piece_take() returns
 * NULL and sets the error on failure. */
static inline void *tn__piece_take(size_t size)
{
    tn__thread *thread = tn__thread_here;
    size_t at = (size - 1) / TN__PIECE_UNIT;
    void *piece;

    if (tn__unlikely(at >= TN__PIECE_SIZES))
        return tn_malloc(size);
    if (tn__unlikely(thread == NULL || thread->pieces[at] == NULL ||
                     atomic_load_explicit(&tn__memory_watched, memory_order_relaxed)))
        return tn_malloc((at + 1) * TN__PIECE_UNIT);
    piece = thread->pieces[at];
    TN__UNPOISON(piece, (at + 1) * TN__PIECE_UNIT);
    memcpy(&thread->pieces[at], piece, sizeof piece);
    thread->n_pieces[at]--;
    return piece;
}
static inline void tn__piece_give(void *piece, size_t size)
{
    tn__thread *thread = tn__thread_here;
    size_t at = (size - 1) / TN__PIECE_UNIT;

    /* While a test makes allocations fail, no piece is kept for reuse, so that each leak is seen.
     */
    if (tn__unlikely(at >= TN__PIECE_SIZES || thread == NULL ||
                     thread->n_pieces[at] >= TN__FREE_PIECES ||
                     atomic_load_explicit(&tn__memory_watched, memory_order_relaxed))) {
        tn_free(piece);
        return;
    }
    memcpy(piece, &thread->pieces[at], sizeof piece);
    thread->pieces[at] = piece;
    thread->n_pieces[at]++;
    /* The link to the next piece stays readable, because LeakSanitizer follows it. */
    TN__POISON((char *)piece + sizeof piece, (at + 1) * TN__PIECE_UNIT - sizeof piece);
}

/* Returns the stream that this thread uses for a device: that of the innermost tn_stream_begin, or
 * the default stream. */
tn_stream *tn__stream_begun(const tn_device *device);
static inline tn_stream *tn__stream_current(const tn_device *device)
{
    const tn__thread *thread = tn__thread_here;

    return tn__likely(thread == NULL || thread->n_streams == 0) ? device->stream
                                                                : tn__stream_begun(device);
}
/* Ends the scopes of this thread and frees all that it keeps. Also runs when a thread ends. */
void tn__thread_free(void);

/* The parts of tn__thread_free() in scope.c, autocast.c, allocator.c, storage.c and tensor.c. */
void tn__scope_end_all(tn__thread *thread);
void tn__autocast_free(tn__thread *thread);
void tn__allocator_free_cache(tn__cache *cache);
void tn__storage_free_objects(tn__thread *thread);
void tn__tensor_free_objects(tn__thread *thread);

#endif
