/* SPDX-License-Identifier: MIT
 *
 * The driver functions of the fake: contexts, memory with bounds, streams that do their work when somebody waits, events, modules
 * whose kernels are the functions of kernels.c. What a real driver would punish is counted as misuse. */
#include "tests/fake-cuda/fake.h"
#include "plugins/backend-cuda/cu_api.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define DEVICE_BIT                                                                                 \
    ((uint64_t)1 << 60) /* no host pointer has it: touching device memory is a crash */
#define INVALID_VALUE 1
#define NOT_INITIALIZED 3
#define INVALID_DEVICE 101
#define INVALID_CONTEXT 201
#define INVALID_HANDLE 400
#define NOT_FOUND 500
#define MAX_DEPTH 16

EXPORT struct fake_cuda fake_cuda = { .devices = 2, .version = 13000, .memory = (size_t)1 << 30 };

struct block {
    struct block *next;
    char *at;
    size_t size;
    struct CUctx_st *context;
    bool pinned;
};

struct CUctx_st {
    int device;
    int retained;
    int sticky; /* CUresult of every call from now on */
};

struct work {
    struct work *next;
    int (*run)(void *data);
    struct CUstream_st *wait_stream; /* instead: until that one has done so much */
    long wait_count;
    char data[];
};

struct CUstream_st {
    struct CUctx_st *context;
    struct work *first, **last;
    long queued, done;
    bool running;
    struct CUstream_st *next; /* all that ever were: events may still point at dropped ones */
};

struct CUevent_st {
    struct CUstream_st *stream; /* NULL: never recorded */
    long count;
    struct CUevent_st *next; /* all that are: a lost device's are never destroyed */
};

struct CUmod_st {
    int dummy;
};

static pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct block *blocks;
static struct CUstream_st *streams;
static struct CUevent_st *events;
static struct CUctx_st contexts[FAKE_DEVICES];
static bool initialised;
static _Thread_local struct CUctx_st *stack[MAX_DEPTH];
static _Thread_local int depth;

static void lock_make(void)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attributes);
}

static void enter(void)
{
    pthread_once(&once, lock_make);
    pthread_mutex_lock(&lock);
}

static CUresult leave(CUresult result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult misuse(const char *text, CUresult result)
{
    fake_cuda.misuse++;
    snprintf(fake_cuda.misuse_text, sizeof fake_cuda.misuse_text, "%s", text);
    return result;
}

/* What every call does first; 0 to go on. */
static CUresult begin(const char *function, bool needs_context)
{
    enter();
    fake_cuda.calls++;
    if (fake_cuda.fail_after > 0 && strcmp(function, fake_cuda.fail_function) == 0 &&
        --fake_cuda.fail_after == 0) {
        bool sticky = fake_cuda.fail_code >= 700 && fake_cuda.fail_code < 720 &&
                      fake_cuda.fail_code != 701;

        if (sticky && depth > 0)
            stack[depth - 1]->sticky = fake_cuda.fail_code;
        return fake_cuda.fail_code;
    }
    if (strcmp(function, "cuInit") != 0 && !initialised)
        return misuse(function, NOT_INITIALIZED);
    if (!needs_context)
        return CUDA_SUCCESS;
    if (depth == 0 || stack[depth - 1]->retained == 0)
        return misuse(function, INVALID_CONTEXT);
    return stack[depth - 1]->sticky;
}

#define BEGIN(name, needs_context)                                                                 \
    {                                                                                              \
        CUresult begun_ = begin(name, needs_context);                                              \
        if (begun_)                                                                                \
            return leave(begun_);                                                                  \
    }

/* ---- memory ------------------------------------------------------------------------------------------- */

static struct block *block_find(uint64_t at, size_t bytes)
{
    char *host = (char *)(uintptr_t)(at & ~DEVICE_BIT);

    if (!(at & DEVICE_BIT))
        return NULL;
    for (struct block *b = blocks; b; b = b->next)
        if (host >= b->at && host + bytes <= b->at + b->size)
            return b;
    return NULL;
}

void *fake_memory(uint64_t at, size_t bytes)
{
    if (block_find(at, bytes))
        return (char *)(uintptr_t)(at & ~DEVICE_BIT);
    misuse("device memory out of bounds", 0);
    return NULL;
}

static struct block *block_new(size_t size, bool pinned)
{
    struct block *block = calloc(1, sizeof *block);

    if (!block || posix_memalign((void **)&block->at, 256, size ? size : 1)) {
        free(block);
        return NULL;
    }
    memset(block->at, 0xcd, size);
    block->size = size;
    block->pinned = pinned;
    block->context = stack[depth - 1];
    block->next = blocks;
    blocks = block;
    return block;
}

static bool block_free(const char *at, bool pinned)
{
    for (struct block **b = &blocks; *b; b = &(*b)->next)
        if ((*b)->at == at && (*b)->pinned == pinned) {
            struct block *gone = *b;

            *b = gone->next;
            if (!pinned)
                fake_cuda.used[gone->context->device] -= gone->size;
            free(gone->at);
            free(gone);
            return true;
        }
    return false;
}

/* ---- streams -------------------------------------------------------------------------------------------- */

static CUresult stream_run(struct CUstream_st *stream, long until)
{
    if (stream->running)
        return CUDA_SUCCESS;
    stream->running = true;
    while (stream->first && stream->done < until) {
        struct work *work = stream->first;
        CUresult result = CUDA_SUCCESS;

        if (work->run)
            result = work->run(work->data);
        else
            stream_run(work->wait_stream, work->wait_count);
        stream->first = work->next;
        if (!stream->first)
            stream->last = &stream->first;
        stream->done++;
        fake_cuda.queued--;
        free(work);
        if (result)
            stream->context->sticky = result;
    }
    stream->running = false;
    return stream->context->sticky;
}

static CUresult enqueue(struct CUstream_st *stream, int (*run)(void *data), const void *data,
                        size_t size)
{
    struct work *work = calloc(1, sizeof *work + size);

    if (!work)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (stream->context != stack[depth - 1])
        misuse("a stream of another context", 0);
    work->run = run;
    if (size)
        memcpy(work->data, data, size);
    *stream->last = work;
    stream->last = &work->next;
    stream->queued++;
    fake_cuda.queued++;
    return CUDA_SUCCESS;
}

int fake_enqueue(void *stream, int (*run)(void *data), const void *data, size_t size)
{
    CUresult result;

    enter();
    result = depth ? enqueue(stream, run, data, size)
                   : misuse("work without a context", INVALID_CONTEXT);
    return leave(result);
}

/* ---- the functions ------------------------------------------------------------------------------------------ */

#define CU_DECLARE_(name, symbol, args) EXPORT CUresult fake_##name args __asm__(symbol);
CU_FUNCTIONS(CU_DECLARE_)
#undef CU_DECLARE_

CUresult fake_cuInit(unsigned flags)
{
    (void)flags;
    BEGIN("cuInit", false)
    fake_cuda.inits++;
    if (fake_cuda.init_result)
        return leave(fake_cuda.init_result);
    initialised = true;
    return leave(fake_cuda.devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE);
}

CUresult fake_cuDriverGetVersion(int *version)
{
    enter();
    *version = fake_cuda.version;
    return leave(CUDA_SUCCESS);
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
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuDeviceGet(CUdevice *device, int index)
{
    BEGIN("cuDeviceGet", false)
    if (index < 0 || index >= fake_cuda.devices || index >= FAKE_DEVICES)
        return leave(INVALID_DEVICE);
    *device = index;
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuDeviceGetName(char *name, int size, CUdevice device)
{
    BEGIN("cuDeviceGetName", false)
    snprintf(name, (size_t)size, "Fake GPU %d", (int)device);
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    (void)device;
    BEGIN("cuDeviceTotalMem", false)
    *bytes = fake_cuda.memory;
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    (void)device;
    BEGIN("cuDeviceGetAttribute", false)
    *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT       ? 4
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 8
                                                                         : 6;
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    BEGIN("cuDevicePrimaryCtxRetain", false)
    contexts[device].device = device;
    contexts[device].retained++;
    fake_cuda.retained++;
    *context = &contexts[device];
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuDevicePrimaryCtxRelease(CUdevice device)
{
    BEGIN("cuDevicePrimaryCtxRelease", false)
    contexts[device].retained--;
    fake_cuda.retained--;
    return leave(contexts[device].retained < 0 ? misuse("a context released twice", INVALID_CONTEXT)
                                               : CUDA_SUCCESS);
}

CUresult fake_cuCtxPushCurrent(CUcontext context)
{
    BEGIN("cuCtxPushCurrent", false)
    if (depth == MAX_DEPTH)
        return leave(misuse("contexts are pushed and not popped", INVALID_VALUE));
    stack[depth++] = context;
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuCtxPopCurrent(CUcontext *context)
{
    BEGIN("cuCtxPopCurrent", false)
    if (depth == 0)
        return leave(misuse("no context to pop", INVALID_CONTEXT));
    *context = stack[--depth];
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuMemGetInfo(size_t *available, size_t *total)
{
    BEGIN("cuMemGetInfo", true)
    *total = fake_cuda.memory;
    *available = fake_cuda.memory - fake_cuda.used[stack[depth - 1]->device];
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuMemAlloc(CUdeviceptr *at, size_t bytes)
{
    struct block *block;
    int device;

    BEGIN("cuMemAlloc", true)
    device = stack[depth - 1]->device;
    if (bytes == 0)
        return leave(misuse("an allocation of nothing", INVALID_VALUE));
    if (bytes > fake_cuda.memory - fake_cuda.used[device] || !(block = block_new(bytes, false)))
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    fake_cuda.used[device] += bytes;
    fake_cuda.live++;
    *at = (uint64_t)(uintptr_t)block->at | DEVICE_BIT;
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuMemFree(CUdeviceptr at)
{
    BEGIN("cuMemFree", true)
    /* as the real one does: it waits for the device */
    for (struct CUstream_st *stream = streams; stream; stream = stream->next)
        stream_run(stream, stream->queued);
    if (!block_free((char *)(uintptr_t)(at & ~DEVICE_BIT), false))
        return leave(misuse("memory freed that is not there", INVALID_VALUE));
    fake_cuda.live--;
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
    struct block *block;

    (void)flags;
    BEGIN("cuMemHostAlloc", true)
    block = block_new(bytes, true);
    if (!block)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    fake_cuda.live_pinned++;
    *at = block->at;
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuMemFreeHost(void *at)
{
    BEGIN("cuMemFreeHost", true)
    if (!block_free(at, true))
        return leave(misuse("pinned memory freed that is not there", INVALID_VALUE));
    fake_cuda.live_pinned--;
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuMemHostGetDevicePointer(CUdeviceptr *to, void *at, unsigned flags)
{
    (void)flags;
    BEGIN("cuMemHostGetDevicePointer", true)
    *to = (uint64_t)(uintptr_t)at | DEVICE_BIT;
    return leave(block_find(*to, 1) ? CUDA_SUCCESS : misuse("not pinned memory", INVALID_VALUE));
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

/* Asynchronous copies of host memory are only what they say when it is pinned. */
static CUresult transfer(CUstream stream, struct transfer t)
{
    if (!t.to_device && !block_find(t.to | DEVICE_BIT, t.bytes))
        misuse("a copy to memory that is not pinned", 0);
    if (!t.from_device && !block_find(t.from | DEVICE_BIT, t.bytes))
        misuse("a copy from memory that is not pinned", 0);
    return enqueue(stream, transfer_run, &t, sizeof t);
}

CUresult fake_cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    BEGIN("cuMemcpyHtoDAsync", true)
    return leave(
        transfer(stream, (struct transfer){ to, (uint64_t)(uintptr_t)from, bytes, true, false }));
}

CUresult fake_cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    BEGIN("cuMemcpyDtoHAsync", true)
    return leave(
        transfer(stream, (struct transfer){ (uint64_t)(uintptr_t)to, from, bytes, false, true }));
}

CUresult fake_cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    BEGIN("cuMemcpyDtoDAsync", true)
    return leave(transfer(stream, (struct transfer){ to, from, bytes, true, true }));
}

CUresult fake_cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                CUcontext from_context, size_t bytes, CUstream stream)
{
    struct block *target, *source;

    BEGIN("cuMemcpyPeerAsync", true)
    target = block_find(to, bytes);
    source = block_find(from, bytes);
    if (!target || !source || target->context != to_context || source->context != from_context)
        return leave(misuse("a peer copy between the wrong devices", INVALID_VALUE));
    return leave(transfer(stream, (struct transfer){ to, from, bytes, true, true }));
}

CUresult fake_cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    BEGIN("cuStreamCreate", true)
    *stream = calloc(1, sizeof **stream);
    if (!*stream)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    (*stream)->context = stack[depth - 1];
    (*stream)->last = &(*stream)->first;
    (*stream)->next = streams;
    streams = *stream;
    fake_cuda.live_streams++;
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuStreamDestroy(CUstream stream)
{
    BEGIN("cuStreamDestroy", true)
    stream_run(stream, stream->queued);
    fake_cuda.live_streams--;
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuStreamSynchronize(CUstream stream)
{
    BEGIN("cuStreamSynchronize", true)
    return leave(stream_run(stream, stream->queued));
}

CUresult fake_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    CUresult result;

    (void)flags;
    BEGIN("cuStreamWaitEvent", true)
    if (!event->stream)
        return leave(CUDA_SUCCESS);
    result = enqueue(stream, NULL, NULL, 0);
    if (!result) {
        struct work *work = stream->first;

        while (work->next)
            work = work->next;
        work->wait_stream = event->stream;
        work->wait_count = event->count;
    }
    return leave(result);
}

CUresult fake_cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    BEGIN("cuEventCreate", true)
    *event = calloc(1, sizeof **event);
    if (!*event)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    (*event)->next = events;
    events = *event;
    fake_cuda.live_events++;
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuEventDestroy(CUevent event)
{
    BEGIN("cuEventDestroy", true)
    for (struct CUevent_st **e = &events; *e; e = &(*e)->next)
        if (*e == event) {
            *e = event->next;
            break;
        }
    free(event);
    fake_cuda.live_events--;
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuEventRecord(CUevent event, CUstream stream)
{
    BEGIN("cuEventRecord", true)
    event->stream = stream;
    event->count = stream->queued;
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuEventSynchronize(CUevent event)
{
    BEGIN("cuEventSynchronize", true)
    return leave(event->stream ? stream_run(event->stream, event->count) : CUDA_SUCCESS);
}

/* The first question finds work not done; it is then. */
CUresult fake_cuEventQuery(CUevent event)
{
    BEGIN("cuEventQuery", true)
    if (!event->stream || event->stream->done >= event->count)
        return leave(CUDA_SUCCESS);
    stream_run(event->stream, event->count);
    return leave(CUDA_ERROR_NOT_READY);
}

CUresult fake_cuModuleLoadData(CUmodule *module, const void *image)
{
    BEGIN("cuModuleLoadData", true)
    if (!image)
        return leave(misuse("a module without an image", INVALID_VALUE));
    if (fake_cuda.module_result)
        return leave(fake_cuda.module_result);
    *module = calloc(1, sizeof **module);
    fake_cuda.live_modules++;
    return leave(*module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult fake_cuModuleUnload(CUmodule module)
{
    BEGIN("cuModuleUnload", true)
    free(module);
    fake_cuda.live_modules--;
    return leave(CUDA_SUCCESS);
}

CUresult fake_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    BEGIN("cuModuleGetFunction", true)
    for (size_t i = 0; i < fake_kernel_count; i++)
        if (strcmp(fake_kernels[i].name, name) == 0) {
            *function = (CUfunction)(uintptr_t)&fake_kernels[i];
            return leave(CUDA_SUCCESS);
        }
    return leave(NOT_FOUND);
}

/* A start under way: the kernel, how often, and a copy of its arguments. */
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
        return leave(misuse("a grid that does not fit the kernel", INVALID_VALUE));
    for (int i = 0; i < kernel->params; i++)
        size += (kernel->sizes[i] + 15) / 16 * 16;
    start = calloc(1, size);
    if (!start)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    start->kernel = kernel;
    start->x = kernel->kind == 0 ? (int64_t)grid_x * 256 : grid_x;
    start->z = grid_z;
    for (int i = 0; i < kernel->params; i++) {
        memcpy(start->arguments + at, params[i], kernel->sizes[i]);
        at += (kernel->sizes[i] + 15) / 16 * 16;
    }
    result = enqueue(stream, start_run, start, size);
    free(start);
    fake_cuda.launches++;
    snprintf(fake_cuda.kernel, sizeof fake_cuda.kernel, "%s", kernel->name);
    fake_cuda.grid[0] = grid_x;
    fake_cuda.grid[1] = grid_y;
    fake_cuda.grid[2] = grid_z;
    fake_cuda.block[0] = block_x;
    fake_cuda.block[1] = block_y;
    fake_cuda.block[2] = block_z;
    return leave(result);
}
