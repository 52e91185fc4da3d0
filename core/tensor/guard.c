/* SPDX-License-Identifier: MIT
 *
 * The plain allocator of TENON_CHECK=1. Each tensor has its own memory, between two guard zones.
 * Fresh and freed memory is filled with patterns. Slow, and no memory is reused. */
#include "core/tensor/allocator.h"

#define GUARD_BYTE 0xFB
#define FRESH_BYTE 0xCB /* as float32 or bfloat16: about -2.7e7, which is easy to recognize */
#define FREED_BYTE 0xDB
#define PIECE 16384 /* bytes of one copy from or to a device */

struct tn__guarded {
    tn__storage storage; /* first */
    uint64_t guard;      /* size of each guard zone */
    /* Size of the tensor with both guard zones. */
    uint64_t whole;
    tn__guarded *previous, *next;
};

/* Copies on the default stream of the device. */
static tn_status copy(const tn_device *device, tn_copy_end to, tn_copy_end from, uint64_t bytes)
{
    const tn_copy_args args = { TN_HEAD(tn_copy_args), .to = to, .from = from, .bytes = bytes,
                                .stream = tn__stream_handle(device->stream) };
    tn_status status;

    tn__stream_lock(device->stream);
    status = tn__device_result(device, tn__backend(device)->copy(device->handle, &args), "copy");
    tn__stream_unlock(device->stream);
    return status;
}

static tn_status write_to(const tn__guarded *g, uint64_t offset, const void *from, uint64_t size)
{
    return copy(g->storage.device,
                (tn_copy_end){ g->storage.device->handle, g->storage.memory, offset },
                (tn_copy_end){ NULL, (void *)(uintptr_t)from, 0 }, size);
}

static tn_status read_from(const tn__guarded *g, uint64_t offset, void *to, uint64_t size)
{
    const tn_device *device = g->storage.device;

    if (device->flags & TN_BACKEND_HOST_MEMORY) {
        memcpy(to, (char *)g->storage.memory + offset, size);
        return TN_OK;
    }
    return copy(device, (tn_copy_end){ NULL, to, 0 },
                (tn_copy_end){ device->handle, g->storage.memory, offset }, size);
}

static tn_status write_byte(const tn__guarded *g, uint64_t offset, uint64_t size, int byte)
{
    unsigned char piece[PIECE];
    tn_status status = TN_OK;

    if (g->storage.device->flags & TN_BACKEND_HOST_MEMORY) {
        memset((char *)g->storage.memory + offset, byte, size);
        return TN_OK;
    }
    memset(piece, byte, sizeof piece);
    while (size > 0 && status == TN_OK) {
        uint64_t part = size < PIECE ? size : PIECE;
        status = write_to(g, offset, piece, part);
        offset += part;
        size -= part;
    }
    return status;
}

/* Fills the guard zones and the fresh memory between them. Small memory is filled by one copy,
 * because each copy waits for the device. */
static tn_status write_pattern(const tn__guarded *g)
{
    uint64_t size = g->storage.size;
    unsigned char piece[PIECE];
    tn_status status;

    if (g->whole <= PIECE && (g->storage.device->flags & TN_BACKEND_HOST_MEMORY) == 0) {
        memset(piece, GUARD_BYTE, g->whole);
        memset(piece + g->guard, FRESH_BYTE, size);
        return write_to(g, 0, piece, g->whole);
    }
    status = write_byte(g, 0, g->guard, GUARD_BYTE);
    if (status == TN_OK)
        status = write_byte(g, g->guard, size, FRESH_BYTE);
    if (status == TN_OK)
        status = write_byte(g, g->guard + size, g->guard, GUARD_BYTE);
    return status;
}

/* Returns the place of the first byte of a zone that was overwritten; -1 if there is none. */
static int64_t broken_in(const unsigned char *zone, uint64_t size)
{
    /* A zone is whole nearly always: then each byte is equal to the next. */
    if (size > 0 && zone[0] == GUARD_BYTE && memcmp(zone, zone + 1, (size_t)size - 1) == 0)
        return -1;
    for (uint64_t i = 0; i < size; i++)
        if (zone[i] != GUARD_BYTE)
            return (int64_t)i;
    return -1;
}

/* Searches a zone for the first byte that was overwritten; *broken is its place, -1 if there is
 * none. */
static tn_status look(const tn__guarded *g, uint64_t offset, int64_t *broken)
{
    unsigned char piece[PIECE];
    uint64_t done = 0, part;

    *broken = -1;
    while (done < g->guard && *broken < 0) {
        part = g->guard - done < PIECE ? g->guard - done : PIECE;
        tn_status status = read_from(g, offset + done, piece, part);
        if (status != TN_OK)
            return status;
        *broken = broken_in(piece, part);
        if (*broken >= 0)
            *broken += (int64_t)done;
        done += part;
    }
    return TN_OK;
}

/* Searches both zones. If the whole memory is small, one copy gets both. */
static tn_status look_at_both(const tn__guarded *g, int64_t *before, int64_t *behind)
{
    uint64_t size = g->storage.size;
    unsigned char piece[PIECE];
    tn_status status;

    if (g->whole <= PIECE && (g->storage.device->flags & TN_BACKEND_HOST_MEMORY) == 0) {
        status = read_from(g, 0, piece, g->whole);
        if (status == TN_OK) {
            *before = broken_in(piece, g->guard);
            *behind = broken_in(piece + g->guard + size, g->guard);
        }
        return status;
    }
    status = look(g, 0, before);
    if (status == TN_OK)
        status = look(g, g->guard + size, behind);
    return status;
}

static tn_status check(const tn__guarded *g)
{
    uint64_t size = g->storage.size;
    int64_t before = -1, behind = -1;
    tn_status status = look_at_both(g, &before, &behind);

    if (status == TN_OK && before >= 0)
        return tn_fail(
            TN_ERR_ASSERT,
            "tensor of %llu bytes on %s: out-of-bounds write, %lld bytes before its start",
            (unsigned long long)size, g->storage.device->name,
            (long long)((int64_t)g->guard - before));
    if (status == TN_OK && behind >= 0)
        return tn_fail(TN_ERR_ASSERT,
                       "tensor of %llu bytes on %s: out-of-bounds write, %lld bytes after its end",
                       (unsigned long long)size, g->storage.device->name, (long long)behind);
    return status;
}

/* ---- getting and putting back ---- */

static tn_status ask(tn__guarded *g)
{
    tn_memory memory = { TN_HEAD(tn_memory), .bytes = g->whole };
    tn_status status = tn__device_alloc(g->storage.device, &memory);

    g->storage.memory = memory.handle;
    return status;
}

tn__storage *tn__guard_get(struct tn__allocator *allocator, tn_stream *stream, uint64_t bytes)
{
    tn__guarded *g = tn_calloc(1, sizeof *g);
    uint64_t mark = tn_error_mark();
    tn_status status;

    if (g == NULL)
        return NULL;
    /* The size of the zone is a multiple of every element size, so the tensor begins at a whole
     * number of elements. */
    g->guard = allocator->quantum;
    g->storage.device = allocator->device;
    g->storage.offset = g->guard;
    g->storage.size = (size_t)bytes;
    g->storage.block = g;
    g->storage.stream = stream;
    g->storage.size_class = TN__SIZE_CLASSES;
    atomic_store_explicit(&g->storage.refs, 1, memory_order_relaxed);
    if (tn__add_overflow(bytes, 2 * g->guard, &g->whole) || g->whole > (uint64_t)INT64_MAX / 2)
        status = tn_fail(TN_ERR_MEMORY, "size: too large, got %llu bytes; expected less than 2^62",
                         (unsigned long long)bytes);
    else
        status = ask(g);
    if (status != TN_OK) {
        if (status == TN_ERR_MEMORY)
            tn__allocator_out_of_memory(allocator, bytes, mark);
        tn_free(g);
        return NULL;
    }
    if (write_pattern(g) != TN_OK) {
        tn__streams_drain(allocator->device);
        tn__device_free(allocator->device, g->storage.memory, g->whole);
        tn_free(g);
        return NULL;
    }
    /* The pattern is written on the default stream: before another stream uses the memory, waits.
     */
    if (stream != allocator->device->stream)
        tn__streams_drain(allocator->device);
    pthread_mutex_lock(&allocator->lock);
    g->next = allocator->guards;
    if (g->next != NULL)
        g->next->previous = g;
    allocator->guards = g;
    pthread_mutex_unlock(&allocator->lock);
    atomic_fetch_add(&allocator->reserved, (int64_t)bytes);
    atomic_fetch_add(&allocator->device_allocs, 1);
    tn__allocator_count(allocator, NULL, (int64_t)bytes);
    return &g->storage;
}

void tn__guard_put(struct tn__allocator *allocator, tn__storage *storage)
{
    tn__guarded *g = storage->block;
    tn_device *device = allocator->device;

    pthread_mutex_lock(&allocator->lock);
    if (g->next != NULL)
        g->next->previous = g->previous;
    if (g->previous != NULL)
        g->previous->next = g->next;
    else
        allocator->guards = g->next;
    pthread_mutex_unlock(&allocator->lock);
    tn__allocator_count(allocator, NULL, -(int64_t)storage->size);
    atomic_fetch_sub(&allocator->reserved, (int64_t)storage->size);
    if (!tn__device_survived(device)) {
        tn_free(g);
        return;
    }
    if (atomic_load(&device->lost) == 0) {
        tn__streams_drain(device);
        /* Dropping a tensor returns no status: a broken zone is set as the error of the thread, and
         * logged. */
        if (check(g) == TN_ERR_ASSERT)
            tn_log(TN_LOG_ERROR, "%s", tn_error_last()->message);
        /* Later reads through an old pointer to host memory find the pattern. Memory of other
         * devices goes back to the driver; writing to it would make the host wait once more. */
        if (device->flags & TN_BACKEND_HOST_MEMORY) {
            (void)write_byte(g, 0, g->whole, FREED_BYTE);
        }
    }
    tn__device_free(device, storage->memory, g->whole);
    tn_free(g);
}

tn_status tn__guard_check(struct tn__allocator *allocator)
{
    tn_status first = TN_OK, status;

    tn__streams_drain(allocator->device);
    /* The stream is always locked first, because a kernel allocates while it holds its stream. */
    tn__stream_lock(allocator->device->stream);
    pthread_mutex_lock(&allocator->lock);
    for (const tn__guarded *g = allocator->guards; g != NULL; g = g->next) {
        status = check(g);
        if (first == TN_OK)
            first = status;
    }
    pthread_mutex_unlock(&allocator->lock);
    tn__stream_unlock(allocator->device->stream);
    return first;
}

void tn__guard_each(struct tn__allocator *allocator, void (*visit)(void *user, uint64_t bytes),
                    void *user)
{
    for (const tn__guarded *g = allocator->guards; g != NULL; g = g->next)
        visit(user, g->storage.size);
}
