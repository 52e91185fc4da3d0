/* SPDX-License-Identifier: MIT
 *
 * The fake driver's memory: blocks with bounds, of a device, pinned or managed, and copies between
 * them. Device addresses have DEVICE_BIT; those of managed memory are the host's. */
#include "tests/fake-cuda/driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct fake_block *fake_blocks;

struct fake_block *fake_block_find(uint64_t at, size_t bytes)
{
    char *host = (char *)(uintptr_t)(at & ~DEVICE_BIT);

    for (struct fake_block *b = fake_blocks; b; b = b->next)
        if (b->managed == !(at & DEVICE_BIT) && host >= b->at && host + bytes <= b->at + b->size)
            return b;
    return NULL;
}

void *fake_memory(uint64_t at, size_t bytes)
{
    if (fake_block_find(at, bytes))
        return (char *)(uintptr_t)(at & ~DEVICE_BIT);
    fake_misuse("device memory out of bounds", 0);
    return NULL;
}

/* Memory of a device is mapped, because ipc.c may have to replace its pages. */
static struct fake_block *block_new(size_t size, bool pinned)
{
    struct fake_block *block = calloc(1, sizeof *block);
    void *at = MAP_FAILED;

    if (block && pinned && posix_memalign(&at, 256, size ? size : 1) != 0)
        at = MAP_FAILED;
    if (block && !pinned)
        at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        free(block);
        return NULL;
    }
    block->at = at;
    memset(block->at, 0xcd, size);
    block->size = size;
    block->pinned = pinned;
    block->file = -1;
    block->context = fake_stack[fake_depth - 1];
    block->next = fake_blocks;
    fake_blocks = block;
    return block;
}

static bool block_free(const char *at, bool pinned)
{
    for (struct fake_block **b = &fake_blocks; *b; b = &(*b)->next)
        if ((*b)->at == at && (*b)->pinned == pinned && !(*b)->opened) {
            struct fake_block *gone = *b;

            *b = gone->next;
            if (!pinned)
                fake_cuda.used[gone->context->device] -= gone->size;
            if (pinned)
                free(gone->at);
            else
                munmap(gone->at, gone->size);
            if (gone->file >= 0)
                close(gone->file);
            free(gone);
            return true;
        }
    return false;
}

CUresult fake_cuMemGetInfo(size_t *available, size_t *total)
{
    BEGIN("cuMemGetInfo", true)
    *total = fake_cuda.memory;
    *available = fake_cuda.memory - fake_cuda.used[fake_stack[fake_depth - 1]->device];
    return fake_leave(CUDA_SUCCESS);
}

static CUresult block_take(CUdeviceptr *at, size_t bytes, bool managed)
{
    struct fake_block *block;
    int device;

    device = fake_stack[fake_depth - 1]->device;
    if (bytes == 0)
        return fake_misuse("an allocation of nothing", INVALID_VALUE);
    if (bytes > fake_cuda.memory - fake_cuda.used[device] || !(block = block_new(bytes, false)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake_cuda.used[device] += bytes;
    fake_cuda.live++;
    block->managed = managed;
    *at = (uint64_t)(uintptr_t)block->at | (managed ? 0 : DEVICE_BIT);
    return CUDA_SUCCESS;
}

CUresult fake_cuMemAlloc(CUdeviceptr *at, size_t bytes)
{
    BEGIN("cuMemAlloc", true)
    return fake_leave(block_take(at, bytes, false));
}

CUresult fake_cuMemFree(CUdeviceptr at)
{
    BEGIN("cuMemFree", true)
    /* as the real one does: it waits for the device */
    fake_streams_run();
    if (!block_free((char *)(uintptr_t)(at & ~DEVICE_BIT), false))
        return fake_leave(fake_misuse("memory freed that is not there", INVALID_VALUE));
    fake_cuda.live--;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
    struct fake_block *block;

    (void)flags;
    BEGIN("cuMemHostAlloc", true)
    block = block_new(bytes, true);
    if (!block)
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    fake_cuda.live_pinned++;
    *at = block->at;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuMemFreeHost(void *at)
{
    BEGIN("cuMemFreeHost", true)
    if (!block_free(at, true))
        return fake_leave(fake_misuse("pinned memory freed that is not there", INVALID_VALUE));
    fake_cuda.live_pinned--;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuMemHostGetDevicePointer(CUdeviceptr *to, void *at, unsigned flags)
{
    (void)flags;
    BEGIN("cuMemHostGetDevicePointer", true)
    *to = (uint64_t)(uintptr_t)at | DEVICE_BIT;
    return fake_leave(fake_block_find(*to, 1) ? CUDA_SUCCESS
                                              : fake_misuse("not pinned memory", INVALID_VALUE));
}

CUresult fake_cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned flags)
{
    BEGIN("cuMemAllocManaged", true)
    if (!fake_cuda.managed || flags != CU_MEM_ATTACH_GLOBAL)
        return fake_leave(fake_misuse("managed memory, which there is none of", INVALID_VALUE));
    return fake_leave(block_take(at, bytes, true));
}

struct fill {
    uint64_t at;
    uint32_t value;
    size_t count, item;
};

static int fill_run(void *data)
{
    struct fill f;
    char *at;

    memcpy(&f, data, sizeof f);
    at = fake_memory(f.at, f.count * f.item);
    for (size_t i = 0; at && i < f.count; i++)
        memcpy(at + i * f.item, &f.value, f.item);
    return at ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static CUresult fill(CUdeviceptr at, uint32_t value, size_t count, size_t item, CUstream stream)
{
    const struct fill f = { at, value, count, item };

    if (at % item != 0)
        return fake_misuse("memory to fill that is not aligned", INVALID_VALUE);
    return fake_queue(stream, fill_run, &f, sizeof f);
}

CUresult fake_cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t count, CUstream stream)
{
    BEGIN("cuMemsetD8Async", true)
    return fake_leave(fill(at, value, count, 1, stream));
}

CUresult fake_cuMemsetD16Async(CUdeviceptr at, unsigned short value, size_t count, CUstream stream)
{
    BEGIN("cuMemsetD16Async", true)
    return fake_leave(fill(at, value, count, 2, stream));
}

CUresult fake_cuMemsetD32Async(CUdeviceptr at, unsigned value, size_t count, CUstream stream)
{
    BEGIN("cuMemsetD32Async", true)
    return fake_leave(fill(at, value, count, 4, stream));
}

struct transfer {
    uint64_t to, from;
    size_t bytes;
    bool to_device, from_device;
};

static int transfer_run(void *data)
{
    struct transfer t;
    void *to, *from;

    memcpy(&t, data, sizeof t);
    to = t.to_device ? fake_memory(t.to, t.bytes) : (void *)(uintptr_t)t.to;
    from = t.from_device ? fake_memory(t.from, t.bytes) : (void *)(uintptr_t)t.from;
    if (!to || !from)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    memcpy(to, from, t.bytes);
    return CUDA_SUCCESS;
}

/* Copies of host memory are asynchronous only when it is pinned. */
static CUresult transfer(CUstream stream, struct transfer t)
{
    if (!t.to_device && !fake_block_find(t.to | DEVICE_BIT, t.bytes))
        fake_misuse("a copy to memory that is not pinned", 0);
    if (!t.from_device && !fake_block_find(t.from | DEVICE_BIT, t.bytes))
        fake_misuse("a copy from memory that is not pinned", 0);
    return fake_queue(stream, transfer_run, &t, sizeof t);
}

CUresult fake_cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    BEGIN("cuMemcpyHtoDAsync", true)
    return fake_leave(
        transfer(stream, (struct transfer){ to, (uint64_t)(uintptr_t)from, bytes, true, false }));
}

CUresult fake_cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    BEGIN("cuMemcpyDtoHAsync", true)
    return fake_leave(
        transfer(stream, (struct transfer){ (uint64_t)(uintptr_t)to, from, bytes, false, true }));
}

CUresult fake_cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    BEGIN("cuMemcpyDtoDAsync", true)
    if (to < from + bytes && from < to + bytes)
        return fake_leave(fake_misuse("a copy between ranges that overlap", INVALID_VALUE));
    return fake_leave(transfer(stream, (struct transfer){ to, from, bytes, true, true }));
}

CUresult fake_cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                CUcontext from_context, size_t bytes, CUstream stream)
{
    struct fake_block *target, *source;

    BEGIN("cuMemcpyPeerAsync", true)
    target = fake_block_find(to, bytes);
    source = fake_block_find(from, bytes);
    if (!target || !source || target->context != to_context || source->context != from_context)
        return fake_leave(fake_misuse("a peer copy between the wrong devices", INVALID_VALUE));
    if (fake_cuda.peers[from_context->device][to_context->device])
        fake_cuda.direct++;
    else
        fake_cuda.staged++;
    return fake_leave(transfer(stream, (struct transfer){ to, from, bytes, true, true }));
}
