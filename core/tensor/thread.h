/* SPDX-License-Identifier: MIT
 *
 * What a thread keeps for tensors: its scopes, free objects, cached blocks, and the devices and
 * streams that it is using. One pointer in thread-local storage; made at the first need, given
 * back when the thread ends and by tn_shutdown. */
#ifndef TN_CORE_TENSOR_THREAD_H
#define TN_CORE_TENSOR_THREAD_H

#include "core/base/vector.h"
#include "core/tensor/internal.h"

#if defined(__SANITIZE_ADDRESS__)
#define TN__ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TN__ASAN 1
#endif
#endif

/* Objects that wait to be used again cannot be touched by mistake under AddressSanitizer. */
#ifdef TN__ASAN
#include <sanitizer/asan_interface.h>
#define TN__POISON(at, size) __asan_poison_memory_region(at, size)
#define TN__UNPOISON(at, size) __asan_unpoison_memory_region(at, size)
#else
#define TN__POISON(at, size) ((void)(at), (void)(size))
#define TN__UNPOISON(at, size) ((void)(at), (void)(size))
#endif

#define TN__MAX_CACHED_DEVICES 32 /* devices with a higher ordinal do without caches of threads */
#define TN__SIZE_CLASSES 36       /* block sizes that threads cache: 64 bytes to 64 KiB */
#define TN__FREE_OBJECTS 256      /* tensor and storage objects that a thread keeps, each */
#define TN__PIECE_SIZES 8 /* small pieces of host memory that a thread keeps: 64, 128 ... bytes */
#define TN__PIECE_UNIT ((size_t)64)
#define TN__FREE_PIECES 128 /* of each size */

/* Blocks of one device that a thread caches, by size class. The owner alone touches the lists;
 * counters are written by the owner and read by all. */
typedef struct tn__cache {
    tn_stream *stream; /* on which all the blocks were last used */
    struct tn__allocator *allocator;
    uint32_t epoch; /* the allocator's, when it last asked for everything back */
    uint32_t bytes_kept;
    tn__storage *free[TN__SIZE_CLASSES]; /* linked through user[0] */
    uint16_t kept[TN__SIZE_CLASSES];
    uint16_t batch[TN__SIZE_CLASSES]; /* blocks to fetch at the next miss */
    _Atomic int64_t live,
        high; /* bytes since the last settlement with the allocator, and their maximum */
    _Atomic int64_t blocks, requests;
    struct tn__cache *next; /* of the allocator's */
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

    tn_tensor **owned; /* what the scopes own, the innermost one's last */
    int64_t n_owned, owned_capacity;
    tn__scope_mark *marks;
    int64_t n_marks, marks_capacity;
    uint64_t next_scope; /* numbers have the thread's in the upper bits */
    bool warned;         /* of the root scope */

    _Atomic int64_t *nodes; /* where core/grad counts those that this thread makes and drops; NULL:
                               with all others */

    const tn_device **devices; /* tn_device_begin */
    int64_t n_devices, devices_capacity;
    tn_stream **streams; /* tn_stream_begin */
    int64_t n_streams, streams_capacity;
} tn__thread;

extern __thread tn__thread *tn__thread_here __attribute__((tls_model("initial-exec")));

/* This thread's; NULL and an error when there is no memory for it. */
tn__thread *tn__thread_make(void);
static inline tn__thread *tn__thread_get(void)
{
    tn__thread *thread = tn__thread_here;
    return tn__likely(thread != NULL) ? thread : tn__thread_make();
}
/* Nodes of live graphs: each thread counts in a place of its own, which only it writes, without
 * waiting for others. */
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
int64_t tn__thread_nodes_alive(void);

/* Small pieces of host memory for what is made and dropped with every call that is recorded: as
 * tn_malloc and tn_free, but the caller passes the size when it gives one back. NULL and an
 * error. */
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

    /* While allocations are made to fail none is kept: a ledger shall see what is lost. */
    if (tn__unlikely(at >= TN__PIECE_SIZES || thread == NULL ||
                     thread->n_pieces[at] >= TN__FREE_PIECES ||
                     atomic_load_explicit(&tn__memory_watched, memory_order_relaxed))) {
        tn_free(piece);
        return;
    }
    memcpy(piece, &thread->pieces[at], sizeof piece);
    thread->pieces[at] = piece;
    thread->n_pieces[at]++;
    /* The link stays readable: LeakSanitizer follows it. */
    TN__POISON((char *)piece + sizeof piece, (at + 1) * TN__PIECE_UNIT - sizeof piece);
}

/* The stream of this thread for a device. */
tn_stream *tn__stream_begun(const tn_device *device);
static inline tn_stream *tn__stream_current(const tn_device *device)
{
    const tn__thread *thread = tn__thread_here;

    return tn__likely(thread == NULL || thread->n_streams == 0) ? device->stream
                                                                : tn__stream_begun(device);
}
/* Ends the scopes and gives everything back; also run when a thread ends. */
void tn__thread_free(void);

/* scope.c, allocator.c, storage.c: their parts of the end of a thread. */
void tn__scope_end_all(tn__thread *thread);
void tn__allocator_free_cache(tn__cache *cache);
void tn__storage_free_objects(tn__thread *thread);
void tn__tensor_free_objects(tn__thread *thread);

#endif
