/* SPDX-License-Identifier: MIT
 *
 * A device that has memory and no kernel, as a new one begins. */
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

static tn_status alloc(void *device, size_t bytes, void **memory)
{
    (void)device;
    *memory = bytes < (size_t)1 << 40 ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
    return *memory != NULL ? TN_OK : tn_fail(TN_ERR_MEMORY, "bare: no %zu bytes", bytes);
}

static void free_memory(void *device, void *memory, size_t bytes)
{
    (void)device, (void)bytes;
    free(memory);
}

static tn_status copy_in(void *device, void *stream, void *memory, uint64_t offset,
                         const void *from, size_t bytes)
{
    (void)device, (void)stream;
    memcpy((char *)memory + offset, from, bytes);
    return TN_OK;
}

static tn_status copy_out(void *device, void *stream, void *to, void *memory, uint64_t offset,
                          size_t bytes)
{
    (void)device, (void)stream;
    memcpy(to, (char *)memory + offset, bytes);
    return TN_OK;
}

static tn_status copy(void *device, void *stream, void *to, uint64_t to_offset, void *from,
                      uint64_t from_offset, size_t bytes)
{
    (void)device, (void)stream;
    memcpy((char *)to + to_offset, (char *)from + from_offset, bytes);
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
                                        .copy_in = copy_in,
                                        .copy_out = copy_out,
                                        .copy = copy };
TN_PLUGIN("org.example.bare", "1.0.0", &backend);
