/* SPDX-License-Identifier: MIT
 *
 * The memory of the devices of the tests. */
#include "tests/tensor/fixture.h"

#define MAGIC 0x7e0a11aau

typedef struct lump {
    unsigned magic;
    size_t size;
    char *bytes;
    int64_t shared;    /* the number that other processes would know it by; 0: not shared */
    bool opened;       /* `bytes` are those of another lump */
    struct lump *next; /* in the list of shared ones */
} lump;

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static lump *shared;

static tn_status take(size_t bytes)
{
    int64_t limit = atomic_load(&room.limit);

    if (atomic_load(&room.fail_alloc) > 0 && atomic_fetch_sub(&room.fail_alloc, 1) == 1)
        return tn_fail(TN_ERR_MEMORY, "made to fail");
    if (limit > 0 && atomic_load(&room.bytes) + (int64_t)bytes > limit)
        return tn_fail(TN_ERR_MEMORY, "the limit of the test");
    atomic_fetch_add(&room.allocs, 1);
    atomic_fetch_add(&room.bytes, (int64_t)bytes);
    return TN_OK;
}

static void give(size_t bytes)
{
    atomic_fetch_add(&room.frees, 1);
    atomic_fetch_sub(&room.bytes, (int64_t)bytes);
}

tn_status host_alloc(void *dev, tn_memory *memory)
{
    size_t bytes = (size_t)memory->bytes;

    (void)dev;
    if (atomic_load(&room.give_nothing))
        return TN_OK;
    if (take(bytes) != TN_OK)
        return TN_ERR_MEMORY;
    memory->handle = aligned_alloc(64, (bytes + 63) / 64 * 64);
    ck_assert_ptr_nonnull(memory->handle);
    return TN_OK;
}

void host_free(void *dev, const tn_memory *memory)
{
    (void)dev;
    give((size_t)memory->bytes);
    free(memory->handle);
}

tn_status lump_alloc(void *dev, tn_memory *memory)
{
    size_t bytes = (size_t)memory->bytes;
    lump *l;

    (void)dev;
    if (take(bytes) != TN_OK)
        return TN_ERR_MEMORY;
    l = calloc(1, sizeof *l);
    l->magic = MAGIC;
    l->size = bytes;
    l->bytes = malloc(bytes);
    memory->handle = l;
    return TN_OK;
}

static void put_shared(lump *l)
{
    static _Atomic int64_t number;

    l->shared = atomic_fetch_add(&number, 1) + 1;
    pthread_mutex_lock(&shared_lock);
    l->next = shared;
    shared = l;
    pthread_mutex_unlock(&shared_lock);
}

static lump *find_shared(int64_t number)
{
    lump *l;

    pthread_mutex_lock(&shared_lock);
    for (l = shared; l != NULL && l->shared != number; l = l->next)
        ;
    pthread_mutex_unlock(&shared_lock);
    return l;
}

static void drop_shared(const lump *l)
{
    pthread_mutex_lock(&shared_lock);
    for (lump **at = &shared; *at != NULL; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
    pthread_mutex_unlock(&shared_lock);
}

/* The alloc function of vault, which has memory of all kinds. Its new memory may first be used only
 * on the stream for which it was allocated. */
tn_status vault_alloc(void *dev, tn_memory *memory)
{
    tn_status status = lump_alloc(dev, memory);

    if (status != TN_OK)
        return status;
    if (memory->kind == TN_MEMORY_PINNED) {
        memory->host = ((lump *)memory->handle)->bytes;
        atomic_fetch_add(&room.pinned, 1);
        return TN_OK;
    }
    if (memory->kind == TN_MEMORY_MANAGED && !atomic_load(&room.hide_host))
        memory->host = ((lump *)memory->handle)->bytes;
    if (memory->kind == TN_MEMORY_SHARED)
        put_shared(memory->handle);
    return TN_OK;
}

tn_status vault_share(void *dev, const tn_memory *memory, tn_share_args *args)
{
    const lump *l = memory->handle;

    (void)dev;
    ck_assert_int_eq(args->head.kind, TN_KIND_tn_share_args);
    ck_assert_int_eq(args->fd, -1);
    ck_assert_int_gt(l->shared, 0);
    memcpy(args->handle, &l->shared, sizeof l->shared);
    return TN_OK;
}

tn_status vault_open_shared(void *dev, const tn_share_args *args, tn_memory *memory)
{
    int64_t number;
    lump *from, *l;

    (void)dev;
    ck_assert_int_eq(memory->kind, TN_MEMORY_SHARED);
    ck_assert_int_eq(memory->flags, TN_MEMORY_FLAG_OPENED);
    memcpy(&number, args->handle, sizeof number);
    from = find_shared(number);
    if (from == NULL)
        return tn_fail(TN_ERR_VALUE, "vault: no memory %lld", (long long)number);
    if (memory->bytes > from->size)
        return tn_fail(TN_ERR_VALUE, "vault: only %zu bytes", from->size);
    l = calloc(1, sizeof *l);
    l->magic = MAGIC;
    l->size = from->size;
    l->bytes = from->bytes;
    l->opened = true;
    memory->handle = l;
    atomic_fetch_add(&room.shared_open, 1);
    return TN_OK;
}

void lump_free(void *dev, const tn_memory *memory)
{
    lump *l = memory->handle;

    (void)dev;
    ck_assert_uint_eq(l->magic, MAGIC);
    ck_assert_int_eq(l->opened, (memory->flags & TN_MEMORY_FLAG_OPENED) != 0);
    l->magic = 0;
    if (l->opened) {
        atomic_fetch_sub(&room.shared_open, 1);
        free(l);
        return;
    }
    ck_assert_uint_eq(l->size, memory->bytes);
    if (memory->kind == TN_MEMORY_PINNED)
        atomic_fetch_sub(&room.pinned, 1);
    if (l->shared != 0)
        drop_shared(l);
    give(l->size);
    free(l->bytes);
    free(l);
}

char *room_bytes(void *memory, uint64_t offset, size_t bytes)
{
    lump *l = memory;

    ck_assert_uint_eq(l->magic, MAGIC);
    ck_assert_uint_le(offset + bytes, l->size);
    return l->bytes + offset;
}
