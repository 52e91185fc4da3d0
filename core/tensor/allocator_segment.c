/* SPDX-License-Identifier: MIT
 *
 * The level of the allocator that all threads share: segments are split into blocks, free blocks
 * are kept in bins by size, and requests get the best fit. The caller of every function holds the
 * allocator's lock. No function here waits for a stream, and the locks of streams are only tried,
 * because the thread that holds a stream may be waiting for the allocator's lock. */
#include "core/tensor/allocator.h"
#include "core/tensor/capture.h"

#define SMALL_SEGMENT ((uint64_t)1 << 20)
#define LARGE_SEGMENT ((uint64_t)8 << 20)
#define LARGE_ROUNDING ((uint64_t)1 << 20)
#define PAGE ((uint64_t)4096)

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* ---- sizes ---- */

/* Up to eight quanta, sizes are multiples of the quantum; above, there are four sizes for each
 * power of two. */
uint64_t tn__allocator_block_size(const struct tn__allocator *allocator, uint64_t bytes,
                                  int *size_class)
{
    uint64_t last = (bytes - 1) >> allocator->shift;
    int shift;

    *size_class = tn__allocator_block_class(allocator, bytes);
    if (*size_class == TN__SIZE_CLASSES)
        return round_up(bytes, allocator->quantum > PAGE ? allocator->quantum : PAGE);
    if (last < 8)
        return (last + 1) << allocator->shift;
    shift = 61 - __builtin_clzll(last);
    return ((last >> shift) + 1) << shift << allocator->shift;
}

static int bin_of(const struct tn__allocator *allocator, uint64_t size)
{
    uint64_t units = size >> allocator->shift;
    int e;

    if (units < 8)
        return (int)units;
    e = 63 - __builtin_clzll(units);
    return 8 + (e - 3) * 4 + (int)((units >> (e - 2)) & 3);
}

static int pool_of(uint64_t size)
{
    return size > TN__SMALL_BLOCK;
}

/* ---- bins ---- */

static void bin_add(struct tn__allocator *allocator, tn__block *block)
{
    tn__pool *pool = &allocator->pools[block->segment->pool];
    int bin = bin_of(allocator, block->size);

    block->state = TN__BLOCK_FREE;
    block->previous = NULL;
    block->next = pool->bins[bin];
    if (block->next != NULL)
        block->next->previous = block;
    pool->bins[bin] = block;
    pool->bits[bin / 64] |= (uint64_t)1 << (bin % 64);
}

static void bin_remove(struct tn__allocator *allocator, tn__block *block)
{
    tn__pool *pool = &allocator->pools[block->segment->pool];
    int bin = bin_of(allocator, block->size);

    if (block->next != NULL)
        block->next->previous = block->previous;
    if (block->previous != NULL)
        block->previous->next = block->next;
    else
        pool->bins[bin] = block->next;
    if (pool->bins[bin] == NULL)
        pool->bits[bin / 64] &= ~((uint64_t)1 << (bin % 64));
}

static int next_bin(const tn__pool *pool, int bin)
{
    while (bin < TN__BINS) {
        uint64_t bits = pool->bits[bin / 64] >> (bin % 64);
        if (bits != 0)
            return bin + __builtin_ctzll(bits);
        bin = (bin / 64 + 1) * 64;
    }
    return TN__BINS;
}

static bool stream_fits(const tn__block *block, const tn_stream *stream, bool others)
{
    const tn_stream *last = block->storage.stream;

    return others ? last != NULL && last != stream : last == NULL || last == stream;
}

/* Returns the smallest free block that is large enough, or NULL: among the blocks that `stream` may
 * use without waiting, or with `others` among the blocks that another stream used last. */
static tn__block *best_fit(struct tn__allocator *allocator, const tn_stream *stream, uint64_t size,
                           bool others)
{
    const tn__pool *pool = &allocator->pools[pool_of(size)];
    tn__block *best = NULL;

    for (int bin = next_bin(pool, bin_of(allocator, size)); bin < TN__BINS && best == NULL;
         bin = next_bin(pool, bin + 1))
        for (tn__block *block = pool->bins[bin]; block != NULL; block = block->next) {
            if (block->size < size || !stream_fits(block, stream, others))
                continue;
            if (best == NULL || block->size < best->size)
                best = block;
            if (best->size == size)
                break;
        }
    return best;
}

/* ---- block objects ---- */

static tn__block *block_object(struct tn__allocator *allocator)
{
    tn__block *block = allocator->spare;

    if (block == NULL)
        return tn_calloc(1, sizeof *block);
    allocator->spare = block->next;
    memset(block, 0, sizeof *block);
    return block;
}

static void block_object_free(struct tn__allocator *allocator, tn__block *block)
{
    block->next = allocator->spare;
    allocator->spare = block;
}

void tn__allocator_free_spare(struct tn__allocator *allocator)
{
    tn__block *block, *next;

    for (block = allocator->spare; block != NULL; block = next) {
        next = block->next;
        tn_free(block);
    }
    allocator->spare = NULL;
}

static void block_place(struct tn__allocator *allocator, tn__block *block, tn__segment *segment,
                        uint64_t offset, uint64_t size)
{
    block->segment = segment;
    block->size = size;
    block->storage.device = allocator->device;
    block->storage.memory = segment->memory;
    block->storage.offset = offset;
    block->storage.block = block;
}

/* Cuts a block that is in no bin to `size`, and puts the rest into a bin. The block keeps its size
 * if the rest would be too small, or if there is no memory for the second block object. */
static void split(struct tn__allocator *allocator, tn__block *block, uint64_t size)
{
    uint64_t rest = block->size - size;
    uint64_t least = block->segment->pool == 0 ? allocator->quantum : TN__SMALL_BLOCK + 1;
    tn__block *other;
    uint64_t mark;

    if (rest < least)
        return;
    mark = tn_error_mark();
    other = block_object(allocator);
    if (other == NULL) {
        tn_error_restore(mark);
        return;
    }
    block_place(allocator, other, block->segment, block->storage.offset + size, rest);
    other->storage.stream = block->storage.stream;
    other->before = block;
    other->after = block->after;
    if (other->after != NULL)
        other->after->before = other;
    block->after = other;
    block->size = size;
    bin_add(allocator, other);
}

/* Returns whether a free block and its neighbour may be joined: the neighbour is free, and the same
 * stream used both last, or any stream may use one of them (the joined block then belongs to the
 * stream of the other). */
static bool joins(const tn__block *block, const tn__block *other)
{
    const tn_stream *a = block->storage.stream;

    return other != NULL && other->state == TN__BLOCK_FREE &&
           (a == NULL || other->storage.stream == NULL || other->storage.stream == a);
}

/* Joins a free block that is in no bin with its free neighbours. Returns the joined block, which is
 * in no bin. */
static tn__block *join(struct tn__allocator *allocator, tn__block *block)
{
    tn__block *other = block->after;

    if (joins(block, other)) {
        bin_remove(allocator, other);
        if (block->storage.stream == NULL)
            block->storage.stream = other->storage.stream;
        block->size += other->size;
        block->after = other->after;
        if (block->after != NULL)
            block->after->before = block;
        block_object_free(allocator, other);
    }
    other = block->before;
    if (joins(block, other)) {
        bin_remove(allocator, other);
        if (other->storage.stream == NULL)
            other->storage.stream = block->storage.stream;
        other->size += block->size;
        other->after = block->after;
        if (other->after != NULL)
            other->after->before = other;
        block_object_free(allocator, block);
        block = other;
    }
    return block;
}

/* ---- streams ---- */

/* Returns whether all work on a stream is known to be done. Does not wait; false if that is not
 * known. */
static bool is_idle(struct tn__allocator *allocator, tn_stream *stream)
{
    const tn_backend_def *b = tn__backend(allocator->device);
    void *device = allocator->device->handle, *event = NULL;
    bool done = false;
    uint64_t mark;

    if (stream->lock == NULL)
        return true;
    if (tn__capture_of(stream) != NULL || pthread_mutex_trylock(stream->lock) != 0)
        return false;
    mark = tn_error_mark();
    if (stream->handle == NULL) {
        done = true; /* tn_stream_drop waited for the work */
    } else if (tn__device_event(allocator->device, NULL, &event) == TN_OK) {
        if (b->event_record(device, event, stream->handle) != TN_OK ||
            b->event_query(device, event, &done) != TN_OK)
            done = false;
        b->event_drop(device, event);
    }
    tn_error_restore(mark);
    pthread_mutex_unlock(stream->lock);
    return done;
}

/* Returns whether a stream is done with a pending block. If the event of this user could not be
 * recorded earlier, it is recorded now; an event that is later than necessary is still correct. */
static bool user_done(struct tn__allocator *allocator, tn__block *block, int user)
{
    const tn_backend_def *b = tn__backend(allocator->device);
    void *device = allocator->device->handle;
    tn_stream *stream = block->users[user];
    bool done = false;
    uint64_t mark;

    if (stream->lock == NULL)
        return true;
    mark = tn_error_mark();
    if (block->events[user] == NULL) {
        if (tn__capture_of(stream) != NULL || pthread_mutex_trylock(stream->lock) != 0)
            return false;
        if (stream->handle == NULL) {
            done = true;
        } else if (tn__device_event(allocator->device, NULL, &block->events[user]) == TN_OK &&
                   b->event_record(device, block->events[user], stream->handle) != TN_OK) {
            b->event_drop(device, block->events[user]);
            block->events[user] = NULL;
        }
        pthread_mutex_unlock(stream->lock);
    }
    if (!done && block->events[user] != NULL &&
        b->event_query(device, block->events[user], &done) != TN_OK)
        done = false;
    tn_error_restore(mark);
    return done || atomic_load(&allocator->device->lost) != 0;
}

static void forget_user(struct tn__allocator *allocator, tn__block *block, int user)
{
    if (block->events[user] != NULL)
        tn__backend(allocator->device)->event_drop(allocator->device->handle, block->events[user]);
    block->n_users--;
    block->users[user] = block->users[block->n_users];
    block->events[user] = block->events[block->n_users];
    block->events[block->n_users] = NULL;
}

void tn__allocator_blocks_poll(struct tn__allocator *allocator)
{
    tn__block **at = &allocator->pending, *block;

    if (*at == NULL || !tn__device_survived(allocator->device))
        return;
    while ((block = *at) != NULL) {
        for (int user = block->n_users - 1; user >= 0; user--)
            if (user_done(allocator, block, user))
                forget_user(allocator, block, user);
        if (block->n_users == 0) {
            *at = block->next;
            bin_add(allocator, join(allocator, block));
        } else {
            at = &block->next;
        }
    }
}

void tn__allocator_blocks_release(struct tn__allocator *allocator, const tn_stream *stream)
{
    for (tn__block *block = allocator->pending; block != NULL; block = block->next)
        for (int user = block->n_users - 1; user >= 0; user--)
            if (stream == NULL || block->users[user] == stream)
                forget_user(allocator, block, user);
    for (tn__segment *segment = allocator->segments; segment != NULL; segment = segment->next)
        for (tn__block *block = segment->first; block != NULL; block = block->after)
            if (block->state != TN__BLOCK_TAKEN &&
                (stream == NULL || block->storage.stream == stream))
                block->storage.stream = NULL;
    for (tn__segment *segment = allocator->segments; segment != NULL; segment = segment->next)
        for (tn__block *block = segment->first; block != NULL; block = block->after)
            if (block->state == TN__BLOCK_FREE) {
                bin_remove(allocator, block);
                block->state = TN__BLOCK_TAKEN;
                block = join(allocator, block);
                bin_add(allocator, block);
            }
    tn__allocator_blocks_poll(allocator);
}

/* ---- blocks ---- */

tn__block *tn__allocator_block_take(struct tn__allocator *allocator, tn_stream *stream,
                                    uint64_t size)
{
    tn__block *block;

    if (allocator->pending != NULL)
        tn__allocator_blocks_poll(allocator);
    block = best_fit(allocator, stream, size, false);
    if (block == NULL) {
        block = best_fit(allocator, stream, size, true);
        if (block == NULL || !is_idle(allocator, block->storage.stream))
            return NULL;
    }
    bin_remove(allocator, block);
    block->state = TN__BLOCK_TAKEN;
    split(allocator, block, size);
    block->storage.stream = stream;
    return block;
}

void tn__allocator_block_give(struct tn__allocator *allocator, tn__block *block)
{
    atomic_store_explicit(&block->live, 0, memory_order_relaxed);
    if (block->storage.stream != NULL && block->storage.stream->lock == NULL)
        block->storage.stream = NULL; /* without streams, any call may use a free block */
    if (block->n_users > 0) {
        block->state = TN__BLOCK_PENDING;
        memset(block->events, 0, sizeof block->events);
        block->next = allocator->pending;
        allocator->pending = block;
        tn__allocator_blocks_poll(allocator);
        return;
    }
    bin_add(allocator, join(allocator, block));
}

/* ---- segments ---- */

static void poison(const struct tn__allocator *allocator, const tn__segment *segment, bool on)
{
    if ((allocator->device->flags & TN_BACKEND_HOST_MEMORY) == 0)
        return;
    if (on)
        TN__POISON(segment->memory, segment->size);
    else
        TN__UNPOISON(segment->memory, segment->size);
}

static tn_status segment_try(struct tn__allocator *allocator, uint64_t size, int pool)
{
    tn_memory memory = { TN_HEAD(tn_memory), .bytes = size };
    tn__segment *segment = tn_calloc(1, sizeof *segment);
    tn__block *block = segment != NULL ? block_object(allocator) : NULL;
    tn_status status = TN_ERR_MEMORY;

    if (block == NULL)
        goto failed;
    status = tn__device_alloc(allocator->device, &memory);
    if (status != TN_OK)
        goto failed;
    segment->memory = memory.handle;
    segment->size = size;
    segment->pool = pool;
    segment->first = block;
    segment->next = allocator->segments;
    allocator->segments = segment;
    block_place(allocator, block, segment, 0, size);
    bin_add(allocator, block);
    poison(allocator, segment, true);
    atomic_fetch_add_explicit(&allocator->reserved, (int64_t)size, memory_order_relaxed);
    atomic_fetch_add_explicit(&allocator->device_allocs, 1, memory_order_relaxed);
    return TN_OK;
failed:
    if (block != NULL)
        block_object_free(allocator, block);
    tn_free(segment);
    return status;
}

tn_status tn__allocator_segment_add(struct tn__allocator *allocator, uint64_t size)
{
    int pool = pool_of(size);
    uint64_t whole = pool == 0                  ? SMALL_SEGMENT
                     : size < LARGE_SEGMENT / 2 ? LARGE_SEGMENT
                                                : round_up(size, LARGE_ROUNDING);
    uint64_t mark = tn_error_mark();
    tn_status status;

    whole = round_up(whole, allocator->quantum);
    status = segment_try(allocator, whole, pool);
    if (status == TN_ERR_MEMORY && whole > size) {
        /* A device that is nearly full may still have space for a smaller segment. */
        tn_error_restore(mark);
        status = segment_try(allocator, size, pool);
    }
    return status;
}

void tn__allocator_segments_trim(struct tn__allocator *allocator)
{
    tn__segment **at = &allocator->segments, *segment;

    if (!tn__device_survived(allocator->device))
        return;
    while ((segment = *at) != NULL) {
        tn__block *block = segment->first;
        if (block->state != TN__BLOCK_FREE || block->after != NULL ||
            block->storage.stream != NULL) {
            at = &segment->next;
            continue;
        }
        *at = segment->next;
        bin_remove(allocator, block);
        block_object_free(allocator, block);
        poison(allocator, segment, false);
        atomic_fetch_sub_explicit(&allocator->reserved, (int64_t)segment->size,
                                  memory_order_relaxed);
        tn__device_free(allocator->device, segment->memory, segment->size);
        tn_free(segment);
    }
}
