/* SPDX-License-Identifier: MIT
 *
 * A device that has memory but no kernels, like a new device. */
#include <stdlib.h>
#include <string.h>

#include <tenon/plugin.h>

static tn_status enumerate(const tn_backend_def *self, int32_t *count)
{
    (void)self;
    *count = 1;
    return TN_OK;
}

static tn_status open_device(const tn_backend_def *self, int32_t index, void **device)
{
    (void)self;
    static char the_device;

    (void)index;
    *device = &the_device;
    return TN_OK;
}

static void close_device(void *device)
{
    (void)device;
}

static tn_status info(void *device, tn_device_info *out)
{
    (void)device;
    tn_snprint(out->name, sizeof out->name, "bare memory");
    tn_snprint(out->driver, sizeof out->driver, "none");
    out->memory_free = -1;
    out->alignment = 64;
    out->dtypes = TN_MASK_ALL;
    return TN_OK;
}

static tn_status alloc(void *device, tn_memory *memory)
{
    uint64_t bytes = memory->bytes;

    (void)device;
    memory->handle = bytes < (uint64_t)1 << 40 ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
    return memory->handle != NULL
               ? TN_OK
               : tn_fail(TN_ERR_MEMORY, "bare: no %llu bytes", (unsigned long long)bytes);
}

static void free_memory(void *device, const tn_memory *memory)
{
    (void)device;
    free(memory->handle);
}

static tn_status copy(void *device, const tn_copy_args *args)
{
    (void)device;
    memcpy((char *)args->to.memory + args->to.offset, (char *)args->from.memory + args->from.offset,
           args->bytes);
    return TN_OK;
}

static const tn_backend_def backend = { TN_HEAD(tn_backend_def),
                                        .type = "bare",
                                        .help = "memory without kernels",
                                        .flags = TN_BACKEND_HOST_MEMORY,
                                        .enumerate = enumerate,
                                        .open = open_device,
                                        .close = close_device,
                                        .info = info,
                                        .alloc = alloc,
                                        .free = free_memory,
                                        .copy = copy };
TN_PLUGIN("org.example.bare", "1.0.0", &backend);
