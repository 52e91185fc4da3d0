/* SPDX-License-Identifier: MIT
 *
 * A device with the memory of the host whose calls are complete when they return: with the errors
 * (mutant_choose.h) that functions of a backend can have. Its kernels are in mutant_kernel.h. */
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mutant_kernel.h"

#define MEMORY (INT64_C(4) << 30)
enum { ALIGNMENT = 64 };

static int64_t taken; /* by all allocations so far, of free-falls */

static tn_status enumerate(const tn_backend_def *self, int32_t *count)
{
    static int32_t calls;

    (void)self;
    *count = is("enumerate-changes") ? ++calls : 1;
    return TN_OK;
}

static tn_status open_device(const tn_backend_def *self, int32_t index, void **device)
{
    (void)self, (void)index;
    *device = malloc(64);
    return *device != NULL ? TN_OK : tn_fail(TN_ERR_MEMORY, "mutant: no memory for a device");
}

static void close_device(void *device)
{
    free(device);
    if (is("close-twice"))
        free(device);
}

static tn_status info(void *device, tn_device_info *out)
{
    static int64_t calls;

    (void)device;
    tn_snprint(out->name, sizeof out->name, "a device of the tests");
    tn_snprint(out->driver, sizeof out->driver, "none");
    out->memory_total = is("info-changes") ? MEMORY + ++calls : MEMORY;
    out->memory_free = is("info-free") ? 2 * MEMORY : is("free-falls") ? MEMORY - taken : -1;
    out->compute_units = 1;
    out->alignment = is("alignment-odd") ? 48 : ALIGNMENT;
    out->dtypes = MUTANT_DTYPES;
    if (is("dtypes-many"))
        out->dtypes |= TN_BIT(TN_C64);
    if (is("dtypes-none"))
        out->dtypes = 0;
    out->memory_kinds = TN_MEMORY_BIT(TN_MEMORY_DEVICE) | TN_MEMORY_BIT(TN_MEMORY_PINNED) |
                        TN_MEMORY_BIT(TN_MEMORY_MANAGED) | TN_MEMORY_BIT(TN_MEMORY_SHARED);
    out->priority_lowest = is("priorities-swapped") ? -3 : 0;
    return TN_OK;
}

static void *map(uint64_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return at != MAP_FAILED ? at : NULL;
}

static tn_status alloc(void *device, tn_memory *memory)
{
    static char *one; /* of alloc-same */
    uint64_t bytes = memory->bytes;

    (void)device;
    if (bytes <= MEMORY && taken + (int64_t)bytes < MEMORY)
        taken += (int64_t)bytes;
    if (bytes <= MEMORY && is("alloc-same") && bytes < 4096) {
        one = one != NULL ? one : map(4096);
        memory->handle = one;
    } else if (bytes <= MEMORY) {
        memory->handle = map(bytes + 2 * ALIGNMENT);
    }
    if (memory->handle != NULL && is("alloc-misaligned"))
        memory->handle = (char *)memory->handle + 8;
    if (memory->kind == TN_MEMORY_PINNED && !is("pinned-without-host"))
        memory->host = memory->handle;
    if (memory->kind == TN_MEMORY_MANAGED && !is("managed-without-host"))
        memory->host = is("managed-apart") ? map(bytes) : memory->handle;
    if (memory->handle != NULL || is("alloc-null"))
        return TN_OK;
    if (is("alloc-silent"))
        return TN_ERR_MEMORY;
    return tn_fail(is("alloc-wrong-error") ? TN_ERR_RUNTIME : TN_ERR_MEMORY,
                   "mutant: no memory for %llu bytes", (unsigned long long)bytes);
}

static void free_memory(void *device, const tn_memory *memory)
{
    (void)device;
    if (is("alloc-same") || is("free-nothing") || memory->flags & TN_MEMORY_FLAG_OPENED)
        return;
    if (is("alloc-misaligned"))
        munmap((char *)memory->handle - 8, memory->bytes + 2 * ALIGNMENT);
    else if (is("free-wrong-size"))
        munmap(memory->handle, 4096);
    else
        munmap(memory->handle, memory->bytes + 2 * ALIGNMENT);
}

/* The handle of shared memory. It has an address, so only this process can open it. */
struct name {
    char mark[8];
    void *at;
    uint64_t bytes;
};

static tn_status memory_share(void *device, const tn_memory *memory, tn_share_args *args)
{
    struct name name = { "mutant", memory->handle, memory->bytes };

    (void)device;
    if (is("share-silent"))
        return TN_ERR_DEVICE;
    memcpy(args->handle, &name, sizeof name);
    return TN_OK;
}

static tn_status memory_open(void *device, const tn_share_args *args, tn_memory *memory)
{
    struct name name;

    (void)device;
    memcpy(&name, args->handle, sizeof name);
    if (memcmp(name.mark, "mutant", sizeof "mutant") != 0) {
        memory->handle = is("share-any") ? map(1 << 20) : NULL;
        return memory->handle != NULL ? TN_OK
                                      : tn_fail(TN_ERR_VALUE, "mutant: not a handle of the device");
    }
    if (memory->bytes > name.bytes && !is("share-longer"))
        return tn_fail(TN_ERR_VALUE, "mutant: only %llu bytes", (unsigned long long)name.bytes);
    memory->handle = is("share-copies") ? map(name.bytes) : name.at;
    return TN_OK;
}

static tn_status copy_bytes(void *device, const tn_copy_args *args)
{
    char *to = (char *)args->to.memory +
               (is("copy-to-offset") && args->to.device != NULL ? 0 : args->to.offset);
    const char *from = (const char *)args->from.memory +
                       (is("copy-from-offset") && args->from.device != NULL ? 0
                                                                            : args->from.offset);
    uint64_t bytes = args->bytes;

    (void)device;
    if (is("copy-short") && bytes > 1)
        bytes--;
    if (is("copy-long") && args->to.device != NULL)
        bytes++;
    if (is("copy-words"))
        bytes = bytes / 4 * 4;
    if (is("copy-host-only") && args->from.device != NULL && args->to.device != NULL)
        return TN_OK;
    if (is("copy-swapped") && args->from.device != NULL && args->to.device != NULL)
        memcpy((char *)args->from.memory + args->from.offset, to, bytes);
    else
        memcpy(to, from, bytes);
    if (is("copy-half-4096") && bytes > 4096)
        memset(to + bytes - 1, 0, 1);
    return TN_OK;
}

#ifdef MUTANT_RECORDS
#include "mutant_capture.h"
#endif

static tn_status fill(void *device, const tn_fill_args *args)
{
    char *to = (char *)args->memory + (is("fill-offset") ? 0 : args->offset);
    uint64_t count = args->bytes / args->pattern_bytes;

    (void)device;
    if (is("fill-short"))
        count--;
    if (is("fill-long"))
        count++;
    if (is("fill-byte"))
        memset(to, args->pattern[0], args->bytes);
    for (uint64_t i = 0; i < count && !is("fill-byte"); i++)
        memcpy(to + i * args->pattern_bytes, args->pattern,
               is("fill-4") && args->pattern_bytes > 4 ? 4 : args->pattern_bytes);
    return TN_OK;
}

static tn_status properties(void *device, tn_pack *out)
{
    (void)device;
    return tn_pack_add(out, is("property-name") ? "Bus Width" : "memory_bus_bits",
                       tn_value_int(64));
}

/* ---- what it does to the process ---- */

static void *idle(void *user)
{
    for (;;)
        sleep(1);
    return user;
}

static void handle(int number)
{
    (void)number;
}

__attribute__((constructor)) static void loaded(void)
{
    pthread_t thread;

    mutant_choose();
    if (is("load-thread"))
        pthread_create(&thread, NULL, idle, NULL);
    if (is("load-prints"))
        fprintf(stderr, "mutant: version 1\n");
}

static tn_status activate(const tn_plugin *self)
{
    sigset_t set;

    (void)self;
    if (is("activate-handler"))
        signal(SIGTERM, handle);
    if (is("activate-locale"))
        setlocale(LC_ALL, "C.UTF-8");
    if (is("activate-folder") && chdir("/") != 0)
        return tn_fail(TN_ERR_IO, "mutant: no folder");
    if (is("activate-env"))
        setenv("OMP_NUM_THREADS", "1", 1);
    if (is("activate-unsets"))
        unsetenv("HOME");
    if (is("activate-umask"))
        umask(0);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    if (is("activate-signals"))
        pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (is("activate-fails"))
        return TN_ERR_RUNTIME;
    return TN_OK;
}

static const tn_backend_def backend = {
    TN_HEAD(tn_backend_def),
    .type = MUTANT_TYPE,
    .help = "a device of the tests",
    .flags = TN_BACKEND_HOST_MEMORY | TN_BACKEND_AFTER_FORK,
    .enumerate = enumerate,
    .open = open_device,
    .close = close_device,
    .info = info,
    .alloc = alloc,
    .free = free_memory,
#ifdef MUTANT_RECORDS
    MUTANT_CAPTURE,
#else
    .copy = copy_bytes,
#endif
    .fill = fill,
    .properties = properties,
    .memory_share = memory_share,
    .memory_open = memory_open,
};
static const void *const contributions[] = { &backend };

static const tn_plugin plugin = {
    TN_HEAD(tn_plugin),
    .id = "org.example.mutant",
    .version = "1.0.0",
    .help = "the device " MUTANT_TYPE,
    .contributions = contributions,
    .n_contributions = 1,
    .kernels = kernels,
    .n_kernels = sizeof kernels / sizeof *kernels,
    .kernel_size = sizeof *kernels,
    .activate = activate,
};
TN_PLUGIN_EXPORT(plugin);
