/* SPDX-License-Identifier: MIT
 *
 * The caching allocator: caches of threads, counters, and what happens when memory runs out. */
#include "core/tensor/allocator.h"
#include "core/tensor/capture.h"
#include "core/plugin/internal.h"

#define THREAD_BYTES ((uint32_t)1 << 20) /* most bytes of one device that a thread caches */
#define CLASS_BYTES ((uint64_t)64 << 10) /* most bytes of one size class that a thread caches */
#define KEPT_LEAST 4                     /* blocks of a size class that a thread may always cache */
#define KEPT_MOST 256
#define SETTLE ((int64_t)1 << 16) /* bytes that a thread counts before it calls settle() */

const tn__memory_hooks *_Atomic tn__memory_hook;

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tn__allocator *all;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* ---- counting ---- */

static void raise_peak(struct tn__allocator *allocator, int64_t value)
{
    int64_t peak = tn__allocator_counter(&allocator->peak);

    while (value > peak && !atomic_compare_exchange_weak(&allocator->peak, &peak, value))
        ;
}

/* Adds the counts of a thread to those of the allocator, and sets them to 0. */
static void settle(struct tn__allocator *allocator, tn__cache *cache)
{
    int64_t live = tn__allocator_counter(&cache->live), high = tn__allocator_counter(&cache->high);
    int64_t before = atomic_fetch_add_explicit(&allocator->live, live, memory_order_relaxed);

    raise_peak(allocator, before + high);
    atomic_fetch_add_explicit(&allocator->blocks, tn__allocator_counter(&cache->blocks),
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&allocator->requests, tn__allocator_counter(&cache->requests),
                              memory_order_relaxed);
    tn__allocator_set_counter(&cache->live, 0);
    tn__allocator_set_counter(&cache->high, 0);
    tn__allocator_set_counter(&cache->blocks, 0);
    tn__allocator_set_counter(&cache->requests, 0);
}

/* Only the owner of the cache writes its counters: no atomic read-modify-write is needed. */
static inline void count_here(tn__cache *cache, int64_t bytes)
{
    int64_t live = tn__allocator_counter(&cache->live) + bytes;

    tn__allocator_set_counter(&cache->live, live);
    if (bytes > 0) {
        if (live > tn__allocator_counter(&cache->high))
            tn__allocator_set_counter(&cache->high, live);
        tn__allocator_set_counter(&cache->blocks, tn__allocator_counter(&cache->blocks) + 1);
        tn__allocator_set_counter(&cache->requests, tn__allocator_counter(&cache->requests) + 1);
    } else {
        tn__allocator_set_counter(&cache->blocks, tn__allocator_counter(&cache->blocks) - 1);
    }
    if (tn__unlikely(live > SETTLE || live < -SETTLE))
        settle(cache->allocator, cache);
}

void tn__allocator_count(struct tn__allocator *allocator, tn__cache *cache, int64_t bytes)
{
    const tn__memory_hooks *hooks = atomic_load_explicit(&tn__memory_hook, memory_order_acquire);

    if (hooks != NULL)
        hooks->bytes(allocator->device, bytes);
    if (cache != NULL && cache->allocator == allocator) {
        count_here(cache, bytes);
        return;
    }
    raise_peak(allocator, atomic_fetch_add(&allocator->live, bytes) + bytes);
    atomic_fetch_add(&allocator->blocks, bytes > 0 ? 1 : -1);
    if (bytes > 0)
        atomic_fetch_add(&allocator->requests, 1);
}

/* ---- what a thread keeps ---- */

static uint16_t kept_most(uint64_t block_size)
{
    uint64_t most = CLASS_BYTES / block_size;

    return (uint16_t)(most < KEPT_LEAST ? KEPT_LEAST : most > KEPT_MOST ? KEPT_MOST : most);
}

/* The result of kept < kept_most(block_size), without a division. */
static inline bool room_for_more(uint64_t kept, uint64_t block_size)
{
    return kept < KEPT_LEAST || (kept < KEPT_MOST && (kept + 1) * block_size <= CLASS_BYTES);
}

/* Returns cached blocks of one size class to their bin until `rest` are left. The caller holds the
 * lock of the allocator. */
static void return_blocks(tn__cache *cache, int size_class, int rest)
{
    while (cache->kept[size_class] > rest) {
        tn__storage *storage = cache->free[size_class];
        tn__block *block = storage->block;

        cache->free[size_class] = storage->user[0];
        cache->kept[size_class]--;
        cache->bytes_kept -= (uint32_t)block->size;
        tn__allocator_block_give(cache->allocator, block);
    }
}

static void return_all(tn__cache *cache)
{
    for (int i = 0; i < TN__SIZE_CLASSES; i++)
        return_blocks(cache, i, 0);
}

static void flush(tn__cache *cache)
{
    struct tn__allocator *allocator = cache->allocator;

    if (allocator == NULL)
        return;
    pthread_mutex_lock(&allocator->lock);
    cache->epoch = atomic_load(&allocator->epoch);
    return_all(cache);
    pthread_mutex_unlock(&allocator->lock);
}

static tn__cache *cache_of(const tn_device *device, const tn__thread *thread)
{
    return thread != NULL && device->ordinal < TN__MAX_CACHED_DEVICES
               ? thread->caches[device->ordinal]
               : NULL;
}

/* Returns the thread's cache, created and attached to the allocator if necessary. A cache that was
 * used for another stream or in an older epoch is emptied first. Returns NULL without an error if
 * there is no cache. */
static tn__cache *cache_ready(struct tn__allocator *allocator, tn_stream *stream)
{
    tn__thread *thread;
    tn__cache *cache;
    uint64_t mark;

    if (allocator->guarded || allocator->device->ordinal >= TN__MAX_CACHED_DEVICES)
        return NULL;
    mark = tn_error_mark();
    thread = tn__thread_get();
    cache = thread != NULL ? thread->caches[allocator->device->ordinal] : NULL;
    if (thread != NULL && cache == NULL)
        cache = thread->caches[allocator->device->ordinal] = tn_calloc(1, sizeof *cache);
    tn_error_restore(mark);
    if (cache == NULL)
        return NULL;
    if (cache->allocator != allocator) {
        pthread_mutex_lock(&allocator->lock);
        cache->allocator = allocator;
        cache->stream = stream;
        cache->epoch = atomic_load(&allocator->epoch);
        cache->next = allocator->caches;
        allocator->caches = cache;
        pthread_mutex_unlock(&allocator->lock);
    } else if (cache->stream != stream || cache->epoch != atomic_load(&allocator->epoch)) {
        flush(cache);
        cache->stream = stream;
    }
    return cache;
}

void tn__allocator_free_cache(tn__cache *cache)
{
    struct tn__allocator *allocator = cache->allocator;

    if (allocator != NULL) {
        pthread_mutex_lock(&allocator->lock);
        return_all(cache);
        for (tn__cache **at = &allocator->caches; *at != NULL; at = &(*at)->next)
            if (*at == cache) {
                *at = cache->next;
                break;
            }
        settle(allocator, cache);
        pthread_mutex_unlock(&allocator->lock);
    }
    tn_free(cache);
}

/* On a device without streams, all memory belongs to the default stream. */
static inline tn_stream *stream_for(const tn_device *device, tn_stream *stream)
{
    return stream->lock == NULL ? device->stream : stream;
}

/* ---- getting ---- */

static inline void storage_begin(tn__storage *storage, uint64_t bytes)
{
    tn__block *block = storage->block;

    atomic_store_explicit(&block->live, bytes, memory_order_relaxed);
    atomic_store_explicit(&storage->refs, 1, memory_order_relaxed);
    atomic_store_explicit(&storage->version, 0, memory_order_relaxed);
    atomic_store_explicit(&storage->pointed, false, memory_order_relaxed);
    storage->flags = 0;
    storage->size = bytes;
    if (storage->device->flags & TN_BACKEND_HOST_MEMORY)
        TN__UNPOISON((char *)storage->memory + storage->offset, bytes);
}

/* Waits for all streams except those that another thread is using, and gives all unused memory back
 * to the device. Holds no lock while it waits. */
static void reclaim(struct tn__allocator *allocator)
{
    tn_device *device = allocator->device;
    tn__cache *own = cache_of(device, tn__thread_here);

    atomic_fetch_add(&allocator->epoch, 1); /* other threads empty their caches at the next call */
    if (own != NULL && own->allocator == allocator)
        flush(own);
    if (atomic_load(&device->lost) == 0 && device->stream->lock != NULL)
        for (tn_stream *next, *stream = device->stream; stream != NULL; stream = next) {
            next = stream == device->stream ? tn__streams_first(device) : stream->next;
            if (!tn__stream_drain(stream))
                continue;
            pthread_mutex_lock(&allocator->lock);
            tn__allocator_blocks_release(allocator, stream);
            pthread_mutex_unlock(&allocator->lock);
        }
    pthread_mutex_lock(&allocator->lock);
    tn__allocator_segments_trim(allocator);
    tn__allocator_free_spare(allocator);
    pthread_mutex_unlock(&allocator->lock);
}

/* Takes up to `count` blocks of a size. Returns the first; the others go into the cache. */
static tn__block *take(struct tn__allocator *allocator, tn__cache *cache, tn_stream *stream,
                       uint64_t size, int size_class, int count)
{
    tn__block *first = tn__allocator_block_take(allocator, stream, size);

    for (; first != NULL && cache != NULL && count > 1; count--) {
        tn__block *block = tn__allocator_block_take(allocator, stream, size);
        if (block == NULL)
            break;
        if (block->size != size || block->n_users != 0) {
            tn__allocator_block_give(allocator, block);
            break;
        }
        block->storage.size_class = (uint16_t)size_class;
        block->storage.user[0] = cache->free[size_class];
        cache->free[size_class] = &block->storage;
        cache->kept[size_class]++;
        cache->bytes_kept += (uint32_t)size;
    }
    return first;
}

/* Takes a block from the bins, or from the device if none fits. `cache` may be NULL. */
static tn__block *get_block(struct tn__allocator *allocator, tn__cache *cache, tn_stream *stream,
                            uint64_t size, int size_class, tn_status *status)
{
    uint64_t mark = tn_error_mark();
    tn__block *block;
    int batch = 1;

    *status = TN_OK;
    if (cache != NULL && size_class < TN__SIZE_CLASSES) {
        batch = cache->batch[size_class] > 1 ? cache->batch[size_class] : 1;
        cache->batch[size_class] = (uint16_t)(batch * 2 < kept_most(size) / 2
                                                  ? batch * 2
                                                  : kept_most(size) / 2);
        if (cache->bytes_kept >= THREAD_BYTES / 2)
            batch = 1;
    }
    pthread_mutex_lock(&allocator->lock);
    block = take(allocator, cache, stream, size, size_class, batch);
    if (block == NULL) {
        *status = tn__allocator_segment_add(allocator, size);
        if (*status == TN_ERR_MEMORY) {
            pthread_mutex_unlock(&allocator->lock);
            atomic_fetch_add_explicit(&allocator->trims, 1, memory_order_relaxed);
            reclaim(allocator);
            tn_error_restore(mark);
            pthread_mutex_lock(&allocator->lock);
            /* Joined free blocks may be large enough now; if not, asks the device again. */
            block = tn__allocator_block_take(allocator, stream, size);
            *status = block != NULL ? TN_OK : tn__allocator_segment_add(allocator, size);
        }
        if (*status == TN_OK && block == NULL)
            block = take(allocator, cache, stream, size, size_class, batch);
    }
    if (block != NULL) {
        block->n_users = 0;
        block->storage.stream = stream;
        block->storage.size_class = (uint16_t)(block->size == size ? size_class : TN__SIZE_CLASSES);
    }
    pthread_mutex_unlock(&allocator->lock);
    return block;
}

tn__storage *tn__allocator_get(struct tn__allocator *allocator, tn_stream *stream, uint64_t bytes)
{
    tn__cache *cache;
    tn__storage *again;
    tn__block *block;
    uint64_t size, mark;
    int size_class;
    tn_status status = TN_OK;

    stream = stream_for(allocator->device, stream);
    if (allocator->guarded)
        return tn__capture_made(stream, tn__guard_get(allocator, stream, bytes));
    mark = tn_error_mark();
    if (bytes > (uint64_t)INT64_MAX / 2) {
        tn_fail(TN_ERR_MEMORY, "no device has that much memory");
        tn__allocator_out_of_memory(allocator, bytes, mark);
        return NULL;
    }
    size = tn__allocator_block_size(allocator, bytes, &size_class);
    if (tn__unlikely(tn__capture_of(stream) != NULL)) {
        again = tn__capture_reuse(stream, size, bytes);
        if (again != NULL)
            return again;
        cache = NULL;
    } else {
        cache = cache_ready(allocator, stream);
    }
    block = get_block(allocator, cache, stream, size, size_class, &status);
    if (block == NULL) {
        if (status == TN_ERR_MEMORY || status == TN_OK)
            tn__allocator_out_of_memory(allocator, bytes, mark);
        return NULL;
    }
    storage_begin(&block->storage, bytes);
    tn__allocator_count(allocator, cache, (int64_t)bytes);
    return tn__capture_made(stream, &block->storage);
}

void tn__allocator_forget_here(const tn_device *device)
{
    tn__cache *cache = cache_of(device, tn__thread_here);

    if (cache == NULL || cache->allocator != device->allocator)
        return;
    flush(cache);
    cache->stream = NULL;
}

tn__storage *tn__allocator_storage(const tn_device *device, uint64_t bytes)
{
    tn__thread *thread = tn__thread_here;
    struct tn__allocator *allocator = device->allocator;
    tn__cache *cache = cache_of(device, thread);
    tn__storage *storage;
    tn_stream *stream;
    int size_class;
    tn_status status;

    if (tn__likely(cache != NULL && bytes - 1 < TN__SMALL_BLOCK && cache->allocator == allocator &&
                   allocator != NULL)) {
        size_class = tn__allocator_block_class(allocator, bytes);
        stream = thread->n_streams == 0 ? device->stream
                                        : stream_for(device, tn__stream_current(device));
        if (tn__likely(size_class < TN__SIZE_CLASSES &&
                       (storage = cache->free[size_class]) != NULL && cache->stream == stream &&
                       cache->epoch ==
                           atomic_load_explicit(&allocator->epoch, memory_order_relaxed) &&
                       atomic_load_explicit(&device->lost, memory_order_relaxed) == 0)) {
            cache->free[size_class] = storage->user[0];
            cache->kept[size_class]--;
            cache->bytes_kept -= (uint32_t)((tn__block *)storage->block)->size;
            storage_begin(storage, bytes);
            if (tn__unlikely(atomic_load_explicit(&tn__memory_hook, memory_order_relaxed) != NULL))
                tn__allocator_count(allocator, cache, (int64_t)bytes);
            else
                count_here(cache, (int64_t)bytes);
            return storage;
        }
    }
    status = tn__device_usable(device);
    if (status != TN_OK)
        return NULL;
    if (bytes == 0 || device->flags & TN_BACKEND_NO_MEMORY) {
        storage = tn__storage_object();
        if (storage == NULL)
            return NULL;
        storage->device = device;
        storage->size = (size_t)bytes;
        storage->stream = device->stream;
        return storage;
    }
    return tn__allocator_get(device->allocator, tn__stream_current(device), bytes);
}

/* ---- putting back ---- */

void tn__allocator_put(struct tn__allocator *allocator, tn__storage *storage)
{
    tn__block *block = storage->block;
    tn__cache *cache;
    int size_class = storage->size_class;

    if (allocator->guarded) {
        tn__guard_put(allocator, storage);
        return;
    }
    cache = cache_of(allocator->device, tn__thread_here);
    atomic_store_explicit(&block->live, 0, memory_order_relaxed);
    if (storage->device->flags & TN_BACKEND_HOST_MEMORY)
        TN__POISON((char *)storage->memory + storage->offset, block->size);
    if (tn__unlikely(atomic_load_explicit(&tn__memory_hook, memory_order_relaxed) != NULL ||
                     cache == NULL || cache->allocator != allocator))
        tn__allocator_count(allocator, cache, -(int64_t)storage->size);
    else
        count_here(cache, -(int64_t)storage->size);
    if (tn__likely(cache != NULL && size_class < TN__SIZE_CLASSES &&
                   cache->allocator == allocator && cache->stream == storage->stream &&
                   block->n_users == 0 &&
                   cache->epoch == atomic_load_explicit(&allocator->epoch, memory_order_relaxed))) {
        storage->user[0] = cache->free[size_class];
        cache->free[size_class] = storage;
        cache->bytes_kept += (uint32_t)block->size;
        cache->kept[size_class]++;
        if (tn__likely(room_for_more(cache->kept[size_class], block->size) &&
                       cache->bytes_kept <= THREAD_BYTES))
            return;
        pthread_mutex_lock(&allocator->lock);
        return_blocks(cache, size_class,
                      cache->bytes_kept > THREAD_BYTES ? 0 : cache->kept[size_class] / 2);
        pthread_mutex_unlock(&allocator->lock);
        return;
    }
    pthread_mutex_lock(&allocator->lock);
    tn__allocator_block_give(allocator, block);
    pthread_mutex_unlock(&allocator->lock);
    if (cache != NULL && cache->allocator == allocator &&
        cache->epoch != atomic_load_explicit(&allocator->epoch, memory_order_relaxed))
        flush(cache);
}

tn_status tn__allocator_use_storage(tn__storage *storage, tn_stream *stream)
{
    struct tn__allocator *allocator = storage->device->allocator;
    tn__block *block = storage->block;
    tn_stream *wait = NULL;
    int i;

    /* A device without streams has finished its work when a call returns. Before foreign or guarded
     * memory is freed, all streams are waited for. */
    if (stream->lock == NULL || block == NULL || allocator->guarded)
        return TN_OK;
    pthread_mutex_lock(&allocator->lock);
    for (i = 0; i < block->n_users && block->users[i] != stream; i++)
        ;
    if (i == block->n_users) {
        if (i == TN__BLOCK_USERS)
            wait = block->users[--i];
        else
            block->n_users++;
        block->users[i] = stream;
        block->events[i] = NULL;
    }
    pthread_mutex_unlock(&allocator->lock);
    /* All slots were taken by other streams: waits for the stream whose slot was reused. */
    return wait != NULL ? tn_stream_sync(wait) : TN_OK;
}

/* ---- giving back ---- */

tn_status tn_device_trim(const tn_device *device)
{
    tn_status status = tn__device_usable(device);

    if (status == TN_OK && device->allocator != NULL && !device->allocator->guarded)
        reclaim(device->allocator);
    return status;
}

tn_status tn__allocator_check(struct tn__allocator *allocator)
{
    return allocator->guarded ? tn__guard_check(allocator) : TN_OK;
}

/* ---- making, the end, fork ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&all_lock);
    for (struct tn__allocator *a = all; a != NULL; a = a->next)
        pthread_mutex_lock(&a->lock);
}

static void after_fork(bool child)
{
    for (struct tn__allocator *a = all; a != NULL; a = a->next) {
        /* Cached blocks of a device that does not survive fork must not be used. */
        if (child && (a->device->flags & TN_BACKEND_AFTER_FORK) == 0)
            atomic_fetch_add(&a->epoch, 1);
        pthread_mutex_unlock(&a->lock);
    }
    pthread_mutex_unlock(&all_lock);
}

static void in_parent(void)
{
    after_fork(false);
}

static void in_child(void)
{
    after_fork(true);
}

static void watch_fork(void)
{
    (void)pthread_atfork(before_fork, in_parent, in_child);
}

struct tn__allocator *tn__allocator_new(tn_device *device)
{
    struct tn__allocator *allocator = tn_calloc(1, sizeof *allocator);
    tn_device_info info;

    if (allocator == NULL)
        return NULL;
    if (tn__device_info(device, &info) != TN_OK) {
        tn_free(allocator);
        return NULL;
    }
    pthread_once(&fork_once, watch_fork);
    allocator->device = device;
    allocator->quantum = info.alignment > 64 ? (uint64_t)info.alignment : 64;
    allocator->shift = __builtin_ctzll(allocator->quantum);
    allocator->guarded = tn__boundary_on();
    pthread_mutex_init(&allocator->lock, NULL);
    pthread_mutex_lock(&all_lock);
    allocator->next = all;
    all = allocator;
    pthread_mutex_unlock(&all_lock);
    return allocator;
}

bool tn__allocator_idle(struct tn__allocator *allocator)
{
    tn_memory_stats stats;

    tn_device_memory(allocator->device, &stats);
    return stats.live_blocks == 0;
}

void tn__allocator_free(struct tn__allocator *allocator)
{
    if (allocator == NULL)
        return;
    pthread_mutex_lock(&all_lock);
    for (struct tn__allocator **at = &all; *at != NULL; at = &(*at)->next)
        if (*at == allocator) {
            *at = allocator->next;
            break;
        }
    pthread_mutex_unlock(&all_lock);
    /* No other thread is in the library any more, so the caches of all threads can be emptied
     * here. */
    pthread_mutex_lock(&allocator->lock);
    for (tn__cache *cache = allocator->caches, *next; cache != NULL; cache = next) {
        next = cache->next;
        return_all(cache);
        cache->allocator = NULL;
    }
    tn__allocator_blocks_release(allocator, NULL);
    tn__allocator_segments_trim(allocator);
    tn__allocator_free_spare(allocator);
    pthread_mutex_unlock(&allocator->lock);
    pthread_mutex_destroy(&allocator->lock);
    tn_free(allocator);
}
