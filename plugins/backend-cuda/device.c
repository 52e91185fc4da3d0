/* SPDX-License-Identifier: MIT
 *
 * CUDA devices: memory, streams, events, copies through pinned memory. */
#include "cuda.h"

#include <string.h>
#include <unistd.h>

#define OLDEST_DRIVER 11020 /* CUDA 11.2 */

static int32_t device_count;

/* ---- finding devices ------------------------------------------------------------------------- */

static tn_status enumerate(const tn_backend_def *self, int32_t *count)
{
    (void)self;
    int version = 0, n = 0;
    CUresult error = cu.cuInit(0);

    device_count = 0;
    if (error == CUDA_ERROR_NO_DEVICE)
        return tn_fail_native(TN_ERR_UNAVAILABLE, error, "CUDA: the driver found no GPU: %s (%d)",
                              cu_api_error_name(error), (int)error);
    if (error != CUDA_SUCCESS)
        return tn_fail_native(TN_ERR_UNAVAILABLE, error, "CUDA: the driver does not start: %s (%d)",
                              cu_api_error_name(error), (int)error);
    cu.cuDriverGetVersion(&version);
    if (version < OLDEST_DRIVER)
        return tn_fail(TN_ERR_UNAVAILABLE,
                       "CUDA: driver: too old, got CUDA %d.%d; expected 11.2 or newer",
                       version / 1000, version % 1000 / 10);
    error = cu.cuDeviceGetCount(&n);
    if (error != CUDA_SUCCESS || n == 0)
        return tn_fail_native(TN_ERR_UNAVAILABLE, error,
                              "CUDA: the driver found no GPU that this process may use");
    device_count = n;
    *count = n;
    return TN_OK;
}

static void *stream_of(void *stream)
{
    return ((struct cuda_stream *)stream)->stream;
}

static void device_close(void *handle)
{
    struct cuda_device *device = handle;

    if (cuda_enter_to_free(device)) {
        blaslt_device_close(&device->blas);
        cuda_modules_drop(device);
        cuda_leave();
    }
    if (device->context && device->pid == (int64_t)getpid())
        cu.cuDevicePrimaryCtxRelease(device->id);
    pthread_mutex_destroy(&device->lock);
    tn_free(device->plans);
    tn_free(device);
}

static tn_status device_open(const tn_backend_def *self, int32_t index, void **out)
{
    (void)self;
    struct cuda_device *device;
    CUresult error;
    tn_status status;

    if (index < 0 || index >= device_count)
        return tn_fail(TN_ERR_INDEX, "CUDA device: index out of range, got %d; the count is %d",
                       (int)index, (int)device_count);
    device = tn_calloc(1, sizeof *device);
    if (!device)
        return TN_ERR_MEMORY;
    pthread_mutex_init(&device->lock, NULL);
    device->pid = (int64_t)getpid();
    tn_snprint(device->name, sizeof device->name, "CUDA device %d", (int)index);
    error = cu.cuDeviceGet(&device->id, index);
    if (error == CUDA_SUCCESS)
        error = cu.cuDeviceGetName(device->name, (int)sizeof device->name, device->id);
    if (error == CUDA_SUCCESS)
        error = cu.cuDeviceGetAttribute(&device->capability[0],
                                        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device->id);
    if (error == CUDA_SUCCESS)
        error = cu.cuDeviceGetAttribute(&device->capability[1],
                                        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device->id);
    if (error == CUDA_SUCCESS)
        error = cu.cuDevicePrimaryCtxRetain(&device->context, device->id);
    if (error != CUDA_SUCCESS) {
        status = cuda_fail(device, error, "opening the device");
        device->context = NULL;
        device_close(device);
        return status;
    }
    device->native = (tn_cuda_native){ .size = sizeof device->native,
                                       .device = device->id,
                                       .context = device->context,
                                       .library = cu.library,
                                       .stream = stream_of };
    *out = device;
    return TN_OK;
}

static tn_status device_info(void *handle, tn_device_info *out)
{
    struct cuda_device *device = handle;
    size_t available = 0, total = 0;
    int version = 0, units = 0;
    char blas[32];
    tn_status status = cuda_enter(device);
    CUresult error;

    if (status)
        return status;
    error = cu.cuMemGetInfo(&available, &total);
    cuda_leave();
    if (error != CUDA_SUCCESS)
        return cuda_fail(device, error, "querying free memory");
    cu.cuDriverGetVersion(&version);
    cu.cuDeviceGetAttribute(&units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device->id);
    pthread_mutex_lock(&device->lock);
    blaslt_describe(&device->blas, blas, sizeof blas);
    pthread_mutex_unlock(&device->lock);
    tn_snprint(out->name, sizeof out->name, "%s", device->name);
    tn_snprint(out->driver, sizeof out->driver, "CUDA %d.%d, compute capability %d.%d%s",
               version / 1000, version % 1000 / 10, (int)device->capability[0],
               (int)device->capability[1], blas);
    out->memory_total = (int64_t)total;
    out->memory_free = (int64_t)available;
    out->compute_units = units;
    out->alignment = 256;
    out->dtypes = TN_MASK_FLOAT | GPU_MASK_INT | GPU_MASK_BOOL;
    return TN_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static tn_status device_alloc(void *handle, size_t bytes, void **out)
{
    struct cuda_device *device = handle;
    CUdeviceptr at = 0;
    CUresult error;
    tn_status status = cuda_enter(device);

    if (status)
        return status;
    error = cu.cuMemAlloc(&at, bytes ? bytes : 1);
    cuda_leave();
    if (error != CUDA_SUCCESS) {
        char what[64];

        tn_snprint(what, sizeof what, "allocating %zu bytes", bytes);
        return cuda_fail(device, error, what);
    }
    *out = (void *)(uintptr_t)at;
    return TN_OK;
}

static void device_free(void *handle, void *memory, size_t bytes)
{
    struct cuda_device *device = handle;

    (void)bytes;
    if (memory && cuda_enter_to_free(device)) {
        cu.cuMemFree((CUdeviceptr)(uintptr_t)memory);
        cuda_leave();
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

static void stream_drop(void *handle, void *stream_)
{
    struct cuda_device *device = handle;
    struct cuda_stream *stream = stream_;

    if (!stream)
        return;
    if (cuda_enter_to_free(device)) {
        if (stream->stream) {
            cu.cuStreamSynchronize(stream->stream);
            cu.cuStreamDestroy(stream->stream);
        }
        for (int i = 0; i < CUDA_STAGES; i++) {
            if (stream->stages[i].done)
                cu.cuEventDestroy(stream->stages[i].done);
            if (stream->stages[i].at)
                cu.cuMemFreeHost(stream->stages[i].at);
        }
        if (stream->error)
            cu.cuMemFreeHost(stream->error);
        cuda_leave();
    }
    tn_free(stream);
}

static tn_status stream_new(void *handle, void **out)
{
    struct cuda_device *device = handle;
    struct cuda_stream *stream;
    void *record = NULL;
    CUresult error;
    tn_status status = cuda_enter(device);

    if (status)
        return status;
    stream = tn_calloc(1, sizeof *stream);
    if (!stream) {
        cuda_leave();
        return TN_ERR_MEMORY;
    }
    stream->device = device;
    error = cu.cuStreamCreate(&stream->stream, CU_STREAM_NON_BLOCKING);
    if (error == CUDA_SUCCESS)
        error = cu.cuMemHostAlloc(&record, sizeof *stream->error,
                                  CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (error == CUDA_SUCCESS) {
        stream->error = record;
        memset(record, 0, sizeof *stream->error);
        error = cu.cuMemHostGetDevicePointer(&stream->error_at, record, 0);
    }
    cuda_leave();
    if (error != CUDA_SUCCESS) {
        status = cuda_fail(device, error, "making a stream");
        stream_drop(device, stream);
        return status;
    }
    *out = stream;
    return TN_OK;
}

/* Waits, and returns the first failure of the work. The context is current. */
static tn_status stream_wait(struct cuda_stream *stream)
{
    CUresult error = cu.cuStreamSynchronize(stream->stream);
    gpu_error record;

    for (int i = 0; i < CUDA_STAGES; i++)
        stream->stages[i].busy = false;
    if (error != CUDA_SUCCESS)
        return cuda_fail(stream->device, error, "work of a stream");
    if (!stream->may_fail)
        return TN_OK;
    stream->may_fail = false;
    record = *stream->error;
    if (!record.taken)
        return TN_OK;
    memset(stream->error, 0, sizeof *stream->error);
    return gpu_error_fail(&record, stream->device->name);
}

static tn_status stream_sync(void *handle, void *stream)
{
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    status = stream_wait(stream);
    cuda_leave();
    return status;
}

/* ---- events ---------------------------------------------------------------------------------- */

static tn_status event_new(void *handle, void **out)
{
    CUevent event = NULL;
    CUresult error;
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    error = cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    cuda_leave();
    if (error != CUDA_SUCCESS)
        return cuda_fail(handle, error, "creating an event");
    *out = event;
    return TN_OK;
}

static void event_drop(void *handle, void *event)
{
    if (event && cuda_enter_to_free(handle)) {
        cu.cuEventDestroy(event);
        cuda_leave();
    }
}

static tn_status event_record(void *handle, void *event, void *stream)
{
    CUresult error;
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    error = cu.cuEventRecord(event, stream_of(stream));
    cuda_leave();
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(handle, error, "recording an event");
}

static tn_status event_wait(void *handle, void *event, void *stream)
{
    CUresult error;
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    error = cu.cuStreamWaitEvent(stream_of(stream), event, 0);
    cuda_leave();
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(handle, error, "waiting for an event");
}

static tn_status event_sync(void *handle, void *event)
{
    CUresult error;
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    error = cu.cuEventSynchronize(event);
    cuda_leave();
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(handle, error, "waiting for an event");
}

static tn_status event_query(void *handle, void *event, bool *done)
{
    CUresult error;
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    error = cu.cuEventQuery(event);
    cuda_leave();
    if (error != CUDA_SUCCESS && error != CUDA_ERROR_NOT_READY)
        return cuda_fail(handle, error, "querying an event");
    *done = error == CUDA_SUCCESS;
    return TN_OK;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Waits until pinned memory is free. It is allocated at the first copy: many streams never need
 * it. */
static CUresult stage_take(struct cuda_stream *stream, int which, struct cuda_stage **out)
{
    struct cuda_stage *stage = &stream->stages[which];
    CUresult error = CUDA_SUCCESS;

    if (!stage->at)
        error = cu.cuMemHostAlloc(&stage->at, CUDA_STAGE_BYTES, CU_MEMHOSTALLOC_PORTABLE);
    if (error == CUDA_SUCCESS && !stage->done)
        error = cu.cuEventCreate(&stage->done, CU_EVENT_DISABLE_TIMING);
    if (error == CUDA_SUCCESS && stage->busy)
        error = cu.cuEventSynchronize(stage->done);
    if (error == CUDA_SUCCESS)
        stage->busy = false;
    *out = stage;
    return error;
}

/* Returns when `from` is in pinned memory; the copy to the device may still be running. */
static tn_status copy_in(void *handle, void *stream_, void *memory, uint64_t offset,
                         const void *from, size_t bytes)
{
    struct cuda_stream *stream = stream_;
    CUdeviceptr to = (CUdeviceptr)(uintptr_t)memory + offset;
    const char *at = from;
    CUresult error = CUDA_SUCCESS;
    tn_status status;

    if (bytes == 0)
        return TN_OK;
    status = cuda_enter(handle);
    if (status)
        return status;
    for (int which = 0; bytes > 0 && error == CUDA_SUCCESS; which = (which + 1) % CUDA_STAGES) {
        size_t part = bytes < CUDA_STAGE_BYTES ? bytes : CUDA_STAGE_BYTES;
        struct cuda_stage *stage;

        error = stage_take(stream, which, &stage);
        if (error != CUDA_SUCCESS)
            break;
        memcpy(stage->at, at, part);
        error = cu.cuMemcpyHtoDAsync(to, stage->at, part, stream->stream);
        if (error == CUDA_SUCCESS)
            error = cu.cuEventRecord(stage->done, stream->stream);
        stage->busy = error == CUDA_SUCCESS;
        at += part;
        to += part;
        bytes -= part;
    }
    cuda_leave();
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(handle, error, "copying to the device");
}

/* One part is copied to pinned memory while the one before is copied to `to`. A failure of the
 * work that computed the values is returned here, too. */
static tn_status copy_out(void *handle, void *stream_, void *to, void *memory, uint64_t offset,
                          size_t bytes)
{
    struct cuda_stream *stream = stream_;
    CUdeviceptr from = (CUdeviceptr)(uintptr_t)memory + offset;
    size_t asked[CUDA_STAGES] = { 0 }, left = bytes;
    char *at = to;
    CUresult error = CUDA_SUCCESS;
    tn_status status;

    if (bytes == 0)
        return TN_OK;
    status = cuda_enter(handle);
    if (status)
        return status;
    for (int which = 0; error == CUDA_SUCCESS; which = (which + 1) % CUDA_STAGES) {
        struct cuda_stage *stage;

        error = stage_take(stream, which, &stage);
        if (error != CUDA_SUCCESS)
            break;
        if (asked[which]) {
            memcpy(at, stage->at, asked[which]);
            at += asked[which];
            asked[which] = 0;
        }
        if (left > 0) {
            size_t part = left < CUDA_STAGE_BYTES ? left : CUDA_STAGE_BYTES;

            error = cu.cuMemcpyDtoHAsync(stage->at, from, part, stream->stream);
            if (error == CUDA_SUCCESS)
                error = cu.cuEventRecord(stage->done, stream->stream);
            stage->busy = error == CUDA_SUCCESS;
            asked[which] = part;
            from += part;
            left -= part;
        } else if ((size_t)(at - (char *)to) == bytes) {
            break;
        }
    }
    status = error == CUDA_SUCCESS ? TN_OK : cuda_fail(handle, error, "copying from the device");
    if (!status && stream->may_fail)
        status = stream_wait(stream);
    cuda_leave();
    return status;
}

static tn_status copy(void *handle, void *stream, void *to, uint64_t to_offset, void *from,
                      uint64_t from_offset, size_t bytes)
{
    CUresult error;
    tn_status status;

    if (bytes == 0)
        return TN_OK;
    status = cuda_enter(handle);
    if (status)
        return status;
    error = cu.cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)to + to_offset,
                                 (CUdeviceptr)(uintptr_t)from + from_offset, bytes,
                                 stream_of(stream));
    cuda_leave();
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(handle, error, "copying inside the device");
}

/* Requests direct access from source to target, once per pair. Without it the driver copies
 * through the host. The source's context is current. */
static void peer_enable(struct cuda_device *source, const struct cuda_device *target)
{
    uint64_t bit = (uint64_t)1 << (target->id % 64), *peers;
    CUresult error = CUDA_SUCCESS;
    int can = 0;

    if (target->id < 0 || target->id >= CUDA_PEERS)
        return;
    peers = &source->peers[target->id / 64];
    pthread_mutex_lock(&source->lock);
    if (!(*peers & bit)) {
        *peers |= bit;
        error = cu.cuDeviceCanAccessPeer(&can, source->id, target->id);
        if (error == CUDA_SUCCESS && can)
            error = cu.cuCtxEnablePeerAccess(target->context, 0);
        if (error == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
            error = CUDA_SUCCESS; /* by the program, or another library of the process */
        if (error != CUDA_SUCCESS || !can)
            tn_log(TN_LOG_INFO, "cuda: copies from %s to %s go through the host: %s", source->name,
                   target->name,
                   error != CUDA_SUCCESS ? cu_api_error_name(error) : "no peer access");
    }
    pthread_mutex_unlock(&source->lock);
}

static tn_status copy_peer(void *to_device, void *to, uint64_t to_offset, void *from_device,
                           void *stream, void *from, uint64_t from_offset, size_t bytes)
{
    struct cuda_device *target = to_device, *source = from_device;
    CUresult error;
    tn_status status;

    if (bytes == 0)
        return TN_OK;
    status = cuda_enter(source);
    if (status)
        return status;
    peer_enable(source, target);
    error = cu.cuMemcpyPeerAsync((CUdeviceptr)(uintptr_t)to + to_offset, target->context,
                                 (CUdeviceptr)(uintptr_t)from + from_offset, source->context, bytes,
                                 stream_of(stream));
    cuda_leave();
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(source, error, "copying to another device");
}

static const void *native(void *handle, const char *id)
{
    struct cuda_device *device = handle;

    return strcmp(id, TN_CUDA_NATIVE) == 0 ? &device->native : NULL;
}

static void *native_stream(void *handle, void *stream)
{
    (void)handle;
    return stream_of(stream);
}

const tn_backend_def cuda_backend = {
    TN_HEAD(tn_backend_def),
    .type = "cuda",
    .help = "NVIDIA GPUs through the CUDA driver",
    .flags = TN_BACKEND_ASYNC,
    .dlpack_type = 2, /* kDLCUDA */
    .enumerate = enumerate,
    .open = device_open,
    .close = device_close,
    .info = device_info,
    .alloc = device_alloc,
    .free = device_free,
    .stream_new = stream_new,
    .stream_drop = stream_drop,
    .stream_sync = stream_sync,
    .event_new = event_new,
    .event_drop = event_drop,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_sync = event_sync,
    .event_query = event_query,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy = copy,
    .copy_peer = copy_peer,
    .native = native,
    .native_stream = native_stream,
};
