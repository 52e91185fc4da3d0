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

static tn_status toy_alloc(void *device, tn_memory *memory)
{
    (void)device;
    memory->handle = aligned_alloc(64, (memory->bytes + 63) / 64 * 64);
    return memory->handle != NULL ? TN_OK : tn_fail(TN_ERR_MEMORY, "toy: no memory");
}

static void toy_free(void *device, const tn_memory *memory)
{
    (void)device;
    free(memory->handle);
}

static tn_status toy_copy(void *device, const tn_copy_args *args)
{
    (void)device;
    memcpy((char *)args->to.memory + args->to.offset, (char *)args->from.memory + args->from.offset,
           args->bytes);
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
