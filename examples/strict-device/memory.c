/* SPDX-License-Identifier: MIT
 *
 * The memory of the strict device. A handle is a number that is not a valid address on any machine.
 * The memory behind a handle is a mapping without access rights; the device's thread makes it
 * accessible only while a piece of work uses it. A host that uses a handle as a pointer, or
 * accesses device memory directly, therefore crashes at once. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "strict.h"

enum { MAX_REGIONS = 4096 };

/* The top bits of a handle: no canonical address of x86-64 or aarch64 has these. */
#define HANDLE_MARK ((uint64_t)0x57A1 << 48)

struct region {
    char *at;       /* NULL: this entry is free */
    uint64_t bytes; /* the requested size */
    uint64_t mapped;
    uint32_t serial; /* differs from those of earlier regions in this entry */
    int32_t uses;    /* pieces of queued work that use the region */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct region regions[MAX_REGIONS];
static uint32_t last_serial;
static uint64_t violations, allocated;

/* Returns the region of a handle, NULL if the handle is not valid. The caller holds the lock. */
static struct region *find(uint64_t handle)
{
    uint64_t index = handle & 0xffff, serial = handle >> 16 & 0xffffffffu;
    if ((handle & ~(uint64_t)0xffffffffffff) != HANDLE_MARK || index >= MAX_REGIONS)
        return NULL;
    struct region *region = &regions[index];
    return region->at && region->serial == (uint32_t)serial ? region : NULL;
}

tn_status strict_alloc(size_t bytes, uint64_t *handle)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), mapped = (bytes + page) & ~(page - 1);
    uint64_t index = 0;
    pthread_mutex_lock(&lock);
    bool refused = strict_inject_alloc(bytes, allocated);
    while (index < MAX_REGIONS && regions[index].at)
        index++;
    void *at = MAP_FAILED;
    if (!refused && index < MAX_REGIONS)
        at = mmap(NULL, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) {
        regions[index] = (struct region){ at, bytes, mapped, ++last_serial, 0 };
        allocated += bytes;
        *handle = HANDLE_MARK | (uint64_t)last_serial << 16 | index;
    }
    pthread_mutex_unlock(&lock);
    if (at == MAP_FAILED)
        return tn_fail(TN_ERR_MEMORY, "strict: no memory for %zu bytes%s", bytes,
                       refused ? " (injected)" : "");
    return TN_OK;
}

void strict_free(uint64_t handle)
{
    pthread_mutex_lock(&lock);
    struct region *region = find(handle);
    if (!region || region->uses > 0) {
        violations++;
        tn_log(TN_LOG_ERROR,
               region ? "strict: memory %p is freed while queued work uses it"
                      : "strict: %p is freed but is not memory of this device",
               (void *)(uintptr_t)handle);
    }
    if (region) {
        munmap(region->at, region->mapped);
        allocated -= region->bytes;
        region->at = NULL;
    }
    pthread_mutex_unlock(&lock);
}

bool strict_region(uint64_t handle, uint64_t *bytes)
{
    pthread_mutex_lock(&lock);
    struct region *region = find(handle);
    if (region)
        *bytes = region->bytes;
    else
        violations++;
    pthread_mutex_unlock(&lock);
    return region != NULL;
}

static void protect(uint64_t handle, int rights)
{
    pthread_mutex_lock(&lock);
    struct region *region = find(handle);
    if (region)
        mprotect(region->at, region->mapped, rights);
    pthread_mutex_unlock(&lock);
}

void strict_region_open(uint64_t handle)
{
    protect(handle, PROT_READ | PROT_WRITE);
}

void strict_region_close(uint64_t handle)
{
    protect(handle, PROT_NONE);
}

void strict_region_use(uint64_t handle, int32_t more)
{
    pthread_mutex_lock(&lock);
    struct region *region = find(handle);
    if (region)
        region->uses += more;
    pthread_mutex_unlock(&lock);
}

void *strict_bytes(uint64_t handle, uint64_t offset, uint64_t size)
{
    pthread_mutex_lock(&lock);
    struct region *region = find(handle);
    void *at = region && offset <= region->bytes && size <= region->bytes - offset
                   ? region->at + offset
                   : NULL;
    if (!at)
        violations++;
    pthread_mutex_unlock(&lock);
    return at;
}

uint64_t strict_violations(void)
{
    pthread_mutex_lock(&lock);
    uint64_t count = violations;
    pthread_mutex_unlock(&lock);
    return count;
}

uint64_t strict_allocated(void)
{
    pthread_mutex_lock(&lock);
    uint64_t count = allocated;
    pthread_mutex_unlock(&lock);
    return count;
}

/* ---- single elements ------------------------------------------------------------------------- */

/* Returns the address of element `at` of a view. If the element is outside of its memory, returns
 * NULL and stores the failure in work->status. */
static void *element(struct strict_work *work, const struct strict_view *view, int64_t at)
{
    uint64_t size = tn_dtype_size(view->dtype), offset = view->offset + (uint64_t)at * size;
    void *bytes = at < 0 ? NULL : strict_bytes(view->memory, offset, size);
    if (!bytes && work->status == TN_OK)
        work->status = tn_fail(TN_ERR_DEVICE, "strict: %s: element %lld: outside of its memory",
                               work->op, (long long)at);
    return bytes;
}

#define EACH_TYPE(X)                                                                               \
    X(TN_U8, uint8_t)                                                                              \
    X(TN_I8, int8_t)                                                                               \
    X(TN_I16, int16_t)                                                                             \
    X(TN_I32, int32_t)                                                                             \
    X(TN_I64, int64_t)                                                                             \
    X(TN_F32, float)                                                                               \
    X(TN_F64, double)

#define GET_CASE(type, T)                                                                          \
    case type: {                                                                                   \
        T x;                                                                                       \
        memcpy(&x, bytes, sizeof x);                                                               \
        return (RESULT)x;                                                                          \
    }
#define SET_CASE(type, T)                                                                          \
    case type: {                                                                                   \
        T x = (T)value;                                                                            \
        memcpy(bytes, &x, sizeof x);                                                               \
        return;                                                                                    \
    }

double strict_get(struct strict_work *work, const struct strict_view *view, int64_t at)
{
    const void *bytes = element(work, view, at);
    if (!bytes)
        return 0;
    switch ((int)view->dtype) {
#define RESULT double
        EACH_TYPE(GET_CASE)
#undef RESULT
    default: return *(const uint8_t *)bytes != 0;
    }
}

int64_t strict_get_int(struct strict_work *work, const struct strict_view *view, int64_t at)
{
    const void *bytes = element(work, view, at);
    if (!bytes)
        return 0;
    switch ((int)view->dtype) {
#define RESULT int64_t
        EACH_TYPE(GET_CASE)
#undef RESULT
    default: return *(const uint8_t *)bytes != 0;
    }
}

void strict_set_int(struct strict_work *work, const struct strict_view *view, int64_t at,
                    int64_t value)
{
    void *bytes = element(work, view, at);
    if (!bytes)
        return;
    switch ((int)view->dtype) {
        EACH_TYPE(SET_CASE)
    default: *(uint8_t *)bytes = value != 0;
    }
}

void strict_set(struct strict_work *work, const struct strict_view *view, int64_t at, double value)
{
    void *bytes = element(work, view, at);
    if (!bytes)
        return;
    switch ((int)view->dtype) {
        SET_CASE(TN_F32, float)
        SET_CASE(TN_F64, double)
    case TN_BOOL: *(uint8_t *)bytes = value != 0; return;
    default:
        strict_set_int(work, view, at,
                       value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : INT64_MIN);
    }
}

void strict_copy_element(struct strict_work *work, const struct strict_view *to, int64_t to_at,
                         const struct strict_view *from, int64_t from_at)
{
    void *a = element(work, to, to_at);
    const void *b = element(work, from, from_at);
    if (a && b)
        memcpy(a, b, tn_dtype_size(to->dtype));
}
