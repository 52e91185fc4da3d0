/* SPDX-License-Identifier: MIT
 *
 * The fake driver's devices, contexts, and modules whose kernels are the functions of kernels.c.
 * Calls that are undefined on a real driver are counted as misuse. */
#include "tests/fake-cuda/driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

EXPORT struct fake_cuda fake_cuda = { .devices = 2, .version = 13000, .memory = (size_t)1 << 30 };

struct CUmod_st {
    int dummy;
};

static pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct CUctx_st contexts[FAKE_DEVICES];
static bool initialized;
_Thread_local struct CUctx_st *fake_stack[FAKE_CONTEXTS];
_Thread_local int fake_depth;

static void lock_make(void)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attributes);
}

void fake_enter(void)
{
    pthread_once(&once, lock_make);
    pthread_mutex_lock(&lock);
}

CUresult fake_leave(CUresult result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult fake_misuse(const char *text, CUresult result)
{
    fake_cuda.misuse++;
    snprintf(fake_cuda.misuse_text, sizeof fake_cuda.misuse_text, "%s", text);
    return result;
}

CUresult fake_begin(const char *function, bool needs_context)
{
    fake_enter();
    fake_cuda.calls++;
    if (fake_cuda.fail_after > 0 && strcmp(function, fake_cuda.fail_function) == 0 &&
        --fake_cuda.fail_after == 0) {
        int code = fake_cuda.fail_code;
        bool sticky = code == 700 || code == 702 || code == 709 || code == 710 ||
                      (code >= 714 && code < 720);

        if (sticky && fake_depth > 0)
            fake_stack[fake_depth - 1]->sticky = fake_cuda.fail_code;
        return fake_cuda.fail_code;
    }
    if (strcmp(function, "cuInit") != 0 && !initialized)
        return fake_misuse(function, NOT_INITIALIZED);
    if (!needs_context)
        return CUDA_SUCCESS;
    if (fake_depth == 0 || fake_stack[fake_depth - 1]->retained == 0)
        return fake_misuse(function, INVALID_CONTEXT);
    return fake_stack[fake_depth - 1]->sticky;
}

/* ---- the functions --------------------------------------------------------------------------- */

CUresult fake_cuInit(unsigned flags)
{
    (void)flags;
    BEGIN("cuInit", false)
    fake_cuda.inits++;
    if (fake_cuda.init_result)
        return fake_leave(fake_cuda.init_result);
    initialized = true;
    return fake_leave(fake_cuda.devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE);
}

CUresult fake_cuDriverGetVersion(int *version)
{
    fake_enter();
    *version = fake_cuda.version;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuGetErrorName(CUresult error, const char **name)
{
    static const struct {
        CUresult number;
        const char *name;
    } names[] = { { 1, "CUDA_ERROR_INVALID_VALUE" },
                  { 2, "CUDA_ERROR_OUT_OF_MEMORY" },
                  { 3, "CUDA_ERROR_NOT_INITIALIZED" },
                  { 100, "CUDA_ERROR_NO_DEVICE" },
                  { 201, "CUDA_ERROR_INVALID_CONTEXT" },
                  { 209, "CUDA_ERROR_NO_BINARY_FOR_GPU" },
                  { 222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION" },
                  { 500, "CUDA_ERROR_NOT_FOUND" },
                  { 700, "CUDA_ERROR_ILLEGAL_ADDRESS" },
                  { 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" },
                  { 719, "CUDA_ERROR_LAUNCH_FAILED" } };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].number == error) {
            *name = names[i].name;
            return CUDA_SUCCESS;
        }
    return INVALID_VALUE;
}

CUresult fake_cuDeviceGetCount(int *count)
{
    BEGIN("cuDeviceGetCount", false)
    *count = fake_cuda.devices;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuDeviceGet(CUdevice *device, int index)
{
    BEGIN("cuDeviceGet", false)
    if (index < 0 || index >= fake_cuda.devices || index >= FAKE_DEVICES)
        return fake_leave(INVALID_DEVICE);
    *device = index;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuDeviceGetName(char *name, int size, CUdevice device)
{
    BEGIN("cuDeviceGetName", false)
    snprintf(name, (size_t)size, "Fake GPU %d", (int)device);
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    BEGIN("cuDeviceGetUuid", false)
    for (int i = 0; i < 16; i++)
        uuid->bytes[i] = (unsigned char)(16 * device + i);
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
    BEGIN("cuDeviceGetPCIBusId", false)
    snprintf(id, (size_t)size, "0000:F%d:00.0", (int)device);
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuCtxGetStreamPriorityRange(int *lowest, int *highest)
{
    BEGIN("cuCtxGetStreamPriorityRange", true)
    *lowest = 0;
    *highest = -5;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    (void)device;
    BEGIN("cuDeviceTotalMem", false)
    *bytes = fake_cuda.memory;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    (void)device;
    BEGIN("cuDeviceGetAttribute", false)
    *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT       ? 4
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 8
             : attribute == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY           ? fake_cuda.managed
             : attribute == CU_DEVICE_ATTRIBUTE_CLOCK_RATE               ? 1980000
                                                                         : 6;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    BEGIN("cuDevicePrimaryCtxRetain", false)
    contexts[device].device = device;
    contexts[device].retained++;
    fake_cuda.retained++;
    *context = &contexts[device];
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuDevicePrimaryCtxRelease(CUdevice device)
{
    BEGIN("cuDevicePrimaryCtxRelease", false)
    contexts[device].retained--;
    fake_cuda.retained--;
    return fake_leave(contexts[device].retained < 0
                          ? fake_misuse("a context released twice", INVALID_CONTEXT)
                          : CUDA_SUCCESS);
}

CUresult fake_cuCtxPushCurrent(CUcontext context)
{
    BEGIN("cuCtxPushCurrent", false)
    if (fake_depth == FAKE_CONTEXTS)
        return fake_leave(fake_misuse("contexts are pushed and not popped", INVALID_VALUE));
    fake_stack[fake_depth++] = context;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuCtxPopCurrent(CUcontext *context)
{
    BEGIN("cuCtxPopCurrent", false)
    if (fake_depth == 0)
        return fake_leave(fake_misuse("no context to pop", INVALID_CONTEXT));
    *context = fake_stack[--fake_depth];
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    BEGIN("cuDeviceCanAccessPeer", false)
    *can = device != peer && !fake_cuda.no_peers;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    unsigned char *enabled;

    BEGIN("cuCtxEnablePeerAccess", true)
    enabled = &fake_cuda.peers[fake_stack[fake_depth - 1]->device][peer->device];
    if (flags || peer == fake_stack[fake_depth - 1] || fake_cuda.no_peers)
        return fake_leave(fake_misuse("peer access that cannot be enabled", INVALID_VALUE));
    if (*enabled)
        return fake_leave(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    *enabled = 1;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuModuleLoadData(CUmodule *module, const void *image)
{
    BEGIN("cuModuleLoadData", true)
    if (!image)
        return fake_leave(fake_misuse("a module without an image", INVALID_VALUE));
    if (fake_cuda.module_result)
        return fake_leave(fake_cuda.module_result);
    *module = calloc(1, sizeof **module);
    fake_cuda.live_modules++;
    return fake_leave(*module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult fake_cuModuleUnload(CUmodule module)
{
    BEGIN("cuModuleUnload", true)
    free(module);
    fake_cuda.live_modules--;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    BEGIN("cuModuleGetFunction", true)
    for (size_t i = 0; i < fake_kernel_count; i++)
        if (strcmp(fake_kernels[i].name, name) == 0) {
            *function = (CUfunction)(uintptr_t)&fake_kernels[i];
            return fake_leave(CUDA_SUCCESS);
        }
    return fake_leave(NOT_FOUND);
}

/* A launch in a queue: the kernel, its size, and a copy of its arguments. */
struct start {
    const struct fake_kernel *kernel;
    int64_t x, z;
    char arguments[];
};

static int start_run(void *data)
{
    struct start *start = data;
    void *params[16];
    size_t at = 0;

    for (int i = 0; i < start->kernel->params; i++) {
        params[i] = start->arguments + at;
        at += (start->kernel->sizes[i] + 15) / 16 * 16;
    }
    return start->kernel->run(params, start->x, start->z);
}

CUresult fake_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                             CUstream stream, void **params, void **extra)
{
    const struct fake_kernel *kernel = (const struct fake_kernel *)(const void *)function;
    struct start *start;
    size_t size = sizeof *start, at = 0;
    CUresult result;

    (void)shared;
    (void)extra;
    BEGIN("cuLaunchKernel", true)
    if (grid_x == 0 || grid_y != 1 || grid_z == 0 || grid_z > 65535 || block_z != 1 ||
        block_x * block_y != 256 || (kernel->kind == 2) != (block_x == 16))
        return fake_leave(fake_misuse("a grid that does not fit the kernel", INVALID_VALUE));
    for (int i = 0; i < kernel->params; i++)
        size += (kernel->sizes[i] + 15) / 16 * 16;
    start = calloc(1, size);
    if (!start)
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    start->kernel = kernel;
    start->x = kernel->kind == 0 ? (int64_t)grid_x * 256 : grid_x;
    start->z = grid_z;
    for (int i = 0; i < kernel->params; i++) {
        memcpy(start->arguments + at, params[i], kernel->sizes[i]);
        at += (kernel->sizes[i] + 15) / 16 * 16;
    }
    result = fake_queue(stream, start_run, start, size);
    free(start);
    fake_cuda.launches++;
    fake_cuda.items += (long)grid_x * grid_y * grid_z * block_x * block_y * block_z;
    snprintf(fake_cuda.kernel, sizeof fake_cuda.kernel, "%s", kernel->name);
    fake_cuda.grid[0] = grid_x;
    fake_cuda.grid[1] = grid_y;
    fake_cuda.grid[2] = grid_z;
    fake_cuda.block[0] = block_x;
    fake_cuda.block[1] = block_y;
    fake_cuda.block[2] = block_z;
    return fake_leave(result);
}
