/* SPDX-License-Identifier: MIT
 *
 * Memory of a device: ordinary, pinned, managed, and shared with other processes. */
#include "cuda.h"

#include <string.h>

/* The driver divides blocks of this size among small allocations. Another process that opens one of
 * them gets the whole block, so shared memory has blocks of its own. */
#define SHARED_BLOCK ((size_t)2 << 20)

_Static_assert(sizeof(CUipcMemHandle) == sizeof((tn_share_args *)0)->handle,
               "a handle of CUDA has 64 bytes");

static bool shares(void)
{
    return cu.cuIpcGetMemHandle && cu.cuIpcOpenMemHandle && cu.cuIpcCloseMemHandle &&
           cu.cuMemGetAddressRange;
}

uint64_t cuda_memory_kinds(struct cuda_device *device)
{
    int managed = 0;

    cu.cuDeviceGetAttribute(&managed, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, device->id);
    return TN_MEMORY_BIT(TN_MEMORY_DEVICE) | TN_MEMORY_BIT(TN_MEMORY_PINNED) |
           (managed ? TN_MEMORY_BIT(TN_MEMORY_MANAGED) : 0) |
           (shares() ? TN_MEMORY_BIT(TN_MEMORY_SHARED) : 0);
}

static CUresult allocate(tn_memory *memory, CUdeviceptr *at)
{
    size_t bytes = (size_t)memory->bytes;
    CUresult error;

    switch (memory->kind) {
    case TN_MEMORY_PINNED:
        error = cu.cuMemHostAlloc(&memory->host, bytes, CU_MEMHOSTALLOC_PORTABLE);
        *at = (CUdeviceptr)(uintptr_t)memory->host;
        return error;
    case TN_MEMORY_MANAGED:
        error = cu.cuMemAllocManaged(at, bytes, CU_MEM_ATTACH_GLOBAL);
        memory->host = (void *)(uintptr_t)*at;
        return error;
    case TN_MEMORY_SHARED:
        if (bytes > SIZE_MAX - SHARED_BLOCK)
            return CUDA_ERROR_OUT_OF_MEMORY;
        return cu.cuMemAlloc(at, (bytes + SHARED_BLOCK - 1) / SHARED_BLOCK * SHARED_BLOCK);
    default: return cu.cuMemAlloc(at, bytes);
    }
}

tn_status cuda_alloc(void *handle, tn_memory *memory)
{
    struct cuda_device *device = handle;
    CUdeviceptr at = 0;
    CUresult error;
    tn_status status;

    if (memory->kind > TN_MEMORY_SHARED || (memory->kind == TN_MEMORY_SHARED && !shares()))
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: memory: unsupported kind, got %u; expected device, pinned%s memory",
                       device->name, memory->kind,
                       shares() ? ", managed or shared" : " or managed");
    status = cuda_enter(device);
    if (status)
        return status;
    error = allocate(memory, &at);
    cuda_leave();
    if (error != CUDA_SUCCESS) {
        char what[64];

        memory->host = NULL;
        tn_snprint(what, sizeof what, "allocating %llu bytes", (unsigned long long)memory->bytes);
        return cuda_fail(device, error, what);
    }
    memory->handle = (void *)(uintptr_t)at;
    return TN_OK;
}

void cuda_free(void *handle, const tn_memory *memory)
{
    struct cuda_device *device = handle;
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)memory->handle;

    if (!at || !cuda_enter_to_free(device))
        return;
    if (memory->kind == TN_MEMORY_PINNED)
        cu.cuMemFreeHost(memory->handle);
    else if (memory->flags & TN_MEMORY_FLAG_OPENED)
        cu.cuIpcCloseMemHandle(at);
    else
        cu.cuMemFree(at);
    cuda_leave();
}

/* ---- between processes ----------------------------------------------------------------------- */

tn_status cuda_memory_share(void *handle, const tn_memory *memory, tn_share_args *args)
{
    struct cuda_device *device = handle;
    CUipcMemHandle name;
    CUresult error;
    tn_status status = cuda_enter(device);

    if (status)
        return status;
    error = cu.cuIpcGetMemHandle(&name, (CUdeviceptr)(uintptr_t)memory->handle);
    cuda_leave();
    if (error != CUDA_SUCCESS)
        return cuda_fail(device, error, "sharing memory");
    memcpy(args->handle, &name, sizeof name);
    return TN_OK;
}

/* Returns the bytes from `at` to the end of its allocation. */
static CUresult bytes_from(CUdeviceptr at, uint64_t *bytes)
{
    CUdeviceptr base = 0;
    size_t size = 0;
    CUresult error = cu.cuMemGetAddressRange(&base, &size, at);

    *bytes = at >= base && at - base <= size ? size - (at - base) : 0;
    return error;
}

tn_status cuda_memory_open(void *handle, const tn_share_args *args, tn_memory *memory)
{
    struct cuda_device *device = handle;
    CUipcMemHandle name;
    CUdeviceptr at = 0;
    uint64_t bytes = 0;
    CUresult error;
    tn_status status = cuda_enter(device);

    if (status)
        return status;
    memcpy(&name, args->handle, sizeof name);
    error = cu.cuIpcOpenMemHandle(&at, name, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (error == CUDA_SUCCESS) {
        error = bytes_from(at, &bytes);
        if (error != CUDA_SUCCESS || memory->bytes > bytes)
            cu.cuIpcCloseMemHandle(at);
    }
    cuda_leave();
    if (error == CUDA_ERROR_INVALID_VALUE || error == CUDA_ERROR_INVALID_CONTEXT ||
        error == CUDA_ERROR_INVALID_HANDLE)
        return tn_fail_native(TN_ERR_VALUE, error,
                              "%s: shared memory: not there any more, or of this process: %s (%d)",
                              device->name, cu_api_error_name(error), (int)error);
    if (error != CUDA_SUCCESS)
        return cuda_fail(device, error, "opening shared memory");
    if (memory->bytes > bytes)
        return tn_fail(TN_ERR_VALUE,
                       "%s: shared memory: too small, got %llu bytes; expected at least %llu",
                       device->name, (unsigned long long)bytes, (unsigned long long)memory->bytes);
    memory->handle = (void *)(uintptr_t)at;
    return TN_OK;
}
