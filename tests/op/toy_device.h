/* SPDX-License-Identifier: MIT
 *
 * A host device for tests of dispatch: malloc, memcpy, and the kernels that a test gives it. */
#ifndef TN_TESTS_OP_TOY_DEVICE_H
#define TN_TESTS_OP_TOY_DEVICE_H

#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

static tn_status toy_enumerate(const tn_backend_def *self, int32_t *count)
{
    (void)self;
    *count = 1;
    return TN_OK;
}

static tn_status toy_open(const tn_backend_def *self, int32_t index, void **device)
{
    (void)self;
    static int one;

    (void)index;
    *device = &one;
    return TN_OK;
}

static void toy_close(void *device)
{
    (void)device;
}

static tn_status toy_info(void *device, tn_device_info *out)
{
    (void)device;
    out->alignment = 64;
    out->memory_free = -1;
    out->dtypes = TN_MASK_ARITH | TN_BIT(TN_BOOL);
    return TN_OK;
}

static tn_status toy_alloc(void *device, size_t bytes, void **memory)
{
    (void)device;
    *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    return *memory != NULL ? TN_OK : tn_fail(TN_ERR_MEMORY, "toy: no memory");
}

static void toy_free(void *device, void *memory, size_t bytes)
{
    (void)device;
    (void)bytes;
    free(memory);
}

static tn_status toy_in(void *device, void *stream, void *memory, uint64_t offset, const void *from,
                        size_t bytes)
{
    (void)device;
    (void)stream;
    memcpy((char *)memory + offset, from, bytes);
    return TN_OK;
}

static tn_status toy_out(void *device, void *stream, void *to, void *memory, uint64_t offset,
                         size_t bytes)
{
    (void)device;
    (void)stream;
    memcpy(to, (char *)memory + offset, bytes);
    return TN_OK;
}

static tn_status toy_copy(void *device, void *stream, void *to, uint64_t to_offset, void *from,
                          uint64_t from_offset, size_t bytes)
{
    (void)device;
    (void)stream;
    memcpy((char *)to + to_offset, (char *)from + from_offset, bytes);
    return TN_OK;
}

static const tn_backend_def toy = { TN_HEAD(tn_backend_def),
                                    .type = "toy",
                                    .help = "a device of the tests",
                                    .flags = TN_BACKEND_HOST_MEMORY,
                                    .enumerate = toy_enumerate,
                                    .open = toy_open,
                                    .close = toy_close,
                                    .info = toy_info,
                                    .alloc = toy_alloc,
                                    .free = toy_free,
                                    .copy_in = toy_in,
                                    .copy_out = toy_out,
                                    .copy = toy_copy };

/* First element of a contiguous float32 view. */
TN_ATTR(unused) static inline float *toy_floats(const tn_view *view)
{
    return (float *)(void *)((char *)view->data + view->byte_offset);
}

TN_ATTR(unused) static inline int64_t toy_count(const tn_view *view)
{
    int64_t count = 1;

    for (int32_t d = 0; d < view->ndim; d++)
        count *= view->shape[d];
    return count;
}

#endif
