/* SPDX-License-Identifier: MIT
 *
 * The device "cpu:0", which is the whole processor. Its memory comes from the host's
 * allocator. There are no streams: when a call returns, its work is done. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "base/pages.h"
#include "device.h"
#include "matmul/bfloat16.h"
#include "matmul/blas.h"
#include "simd/simd.h"

enum { ALIGNMENT = 64, MOVED = 98304 /* minimum number of bytes for one thread to copy */ };

static tn_status enumerate(const tn_backend_def *self, int32_t *count)
{
    (void)self;
    *count = 1;
    return TN_OK;
}

static tn_status device_open(const tn_backend_def *self, int32_t index, void **device)
{
    (void)self;
    static char the_device;
    (void)index;
    *device = &the_device;
    return TN_OK;
}

static void device_close(void *device)
{
    (void)device;
}

/* Writes the "model name" of /proc/cpuinfo, or the architecture if that file has no such line. */
static void processor_name(char *out, size_t size)
{
    static const char key[] = "model name";
    char line[256];
#if defined(__x86_64__)
    tn_snprint(out, size, "x86-64");
#elif defined(__aarch64__)
    tn_snprint(out, size, "aarch64");
#else
    tn_snprint(out, size, "processor");
#endif
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file)
        return;
    while (fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, key, sizeof key - 1) != 0 || !colon)
            continue;
        line[strcspn(line, "\n")] = 0;
        tn_snprint(out, size, "%s", colon + 1 + (colon[1] == ' '));
        break;
    }
    fclose(file);
}

static tn_status info(void *device, tn_device_info *out)
{
    struct sysinfo memory;
    (void)device;
    processor_name(out->name, sizeof out->name);
    tn_snprint(out->driver, sizeof out->driver, "%s loops, %s%s%s", tn__simd.name,
               tn__bfloat16_name() ? tn__bfloat16_name() : "",
               tn__bfloat16_name() ? " products, " : "",
               tn__blas.sgemm ? "OpenBLAS" : "own matrix code");
    out->memory_free = -1;
    if (sysinfo(&memory) == 0) {
        out->memory_total = (int64_t)memory.totalram * (int64_t)memory.mem_unit;
        out->memory_free = (int64_t)(memory.freeram + memory.bufferram) * (int64_t)memory.mem_unit;
    }
    out->compute_units = tn_num_threads();
    out->alignment = ALIGNMENT;
    out->memory_kinds |= TN_MEMORY_BIT(TN_MEMORY_MANAGED) | TN_MEMORY_BIT(TN_MEMORY_SHARED);
    out->dtypes = TN_MASK_ARITH | TN_BIT(TN_BOOL);
    return TN_OK;
}

/* tn_malloc aligns less than ALIGNMENT, so device_alloc returns an address inside the block of
 * tn_malloc and stores the block's address just before it. That stored pointer is all that
 * device_free needs, but leak checkers search for pointers to the beginning of a block, so this
 * table holds those of up to 512 blocks. When the table is full, further blocks are not entered.
 * Atomic exchanges instead of a lock: a lock that another thread held at a fork would stay locked
 * in the child. */
static _Atomic(void *) starts[512];

/* Replaces one entry `from` of the table by `to`; NULL is a free entry. */
static void note_start(void *from, void *to)
{
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        void *expected = from;
        if (atomic_load_explicit(&starts[i], memory_order_relaxed) == from &&
            atomic_compare_exchange_strong(&starts[i], &expected, to))
            return;
    }
}

static tn_status device_alloc(void *device, tn_memory *memory)
{
    (void)device;
    if (memory->kind == TN_MEMORY_SHARED)
        return tn__shared_alloc(memory);
    if (memory->kind != TN_MEMORY_DEVICE && memory->kind != TN_MEMORY_MANAGED)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "cpu: memory: unsupported kind, got %u; expected device, managed or shared "
                       "memory",
                       memory->kind);
    size_t alignment = tn__pages_alignment((size_t)memory->bytes, ALIGNMENT);
    if (memory->bytes > SIZE_MAX - 2 * alignment)
        return tn_fail(TN_ERR_MEMORY, "cpu: size: too large, got %llu bytes; expected fewer",
                       (unsigned long long)memory->bytes);
    char *block = tn_malloc((size_t)memory->bytes + alignment + sizeof(void *));
    if (!block)
        return TN_ERR_MEMORY;
    uintptr_t start = (uintptr_t)block + sizeof(void *) + alignment - 1;
    char *at = block + ((start & ~(uintptr_t)(alignment - 1)) - (uintptr_t)block);
    tn__pages_advise(at, (size_t)memory->bytes);
    memcpy(at - sizeof(void *), &block, sizeof block);
    note_start(NULL, block);
    memory->handle = at;
    if (memory->kind == TN_MEMORY_MANAGED)
        memory->host = at;
    return TN_OK;
}

static void device_free(void *device, const tn_memory *memory)
{
    char *block;
    (void)device;
    if (!memory->handle)
        return;
    if (memory->kind == TN_MEMORY_SHARED) {
        tn__shared_free(memory);
        return;
    }
    memcpy(&block, (char *)memory->handle - sizeof(void *), sizeof block);
    note_start(block, NULL);
    tn_free(block);
}

struct move {
    char *to;
    const char *from;
    size_t bytes;
};

static tn_status move_part(void *user, int64_t begin, int64_t end)
{
    const struct move *move = user;
    size_t first = (size_t)begin * ALIGNMENT, last = (size_t)end * ALIGNMENT;
    memcpy(move->to + first, move->from + first, (last < move->bytes ? last : move->bytes) - first);
    return TN_OK;
}

static tn_status copy(void *device, const tn_copy_args *args)
{
    struct move move = { (char *)args->to.memory + args->to.offset,
                         (char *)args->from.memory + args->from.offset, (size_t)args->bytes };
    (void)device;
    return tn_parallel_for((int64_t)(move.bytes / ALIGNMENT + (move.bytes % ALIGNMENT != 0)),
                           MOVED / ALIGNMENT, move_part, &move);
}

const tn_backend_def tn__backend_cpu = {
    TN_HEAD(tn_backend_def),
    .type = "cpu",
    .help = "the processor, with the host's memory",
    .flags = TN_BACKEND_HOST_MEMORY | TN_BACKEND_AFTER_FORK | TN_BACKEND_CHANNELS_LAST,
    .dlpack_type = 1,
    .enumerate = enumerate,
    .open = device_open,
    .close = device_close,
    .info = info,
    .alloc = device_alloc,
    .free = device_free,
    .copy = copy,
    .memory_share = tn__shared_share,
    .memory_open = tn__shared_open,
};
