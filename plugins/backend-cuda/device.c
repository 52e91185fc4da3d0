/* SPDX-License-Identifier: MIT
 *
 * CUDA devices: memory, streams, events, copies through pinned memory. */
#include "cuda.h"

#include <stdio.h>
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
    int version = 0, units = 0, managed = 0, lowest = 0, highest = 0;
    char blas[32];
    tn_status status = cuda_enter(device);
    CUresult error;

    if (status)
        return status;
    error = cu.cuMemGetInfo(&available, &total);
    if (error == CUDA_SUCCESS)
        error = cu.cuCtxGetStreamPriorityRange(&lowest, &highest);
    cuda_leave();
    if (error != CUDA_SUCCESS)
        return cuda_fail(device, error, "querying free memory and priorities");
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
    cu.cuDeviceGetAttribute(&managed, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, device->id);
    out->memory_kinds = TN_MEMORY_BIT(TN_MEMORY_DEVICE) | TN_MEMORY_BIT(TN_MEMORY_PINNED) |
                        (managed ? TN_MEMORY_BIT(TN_MEMORY_MANAGED) : 0);
    out->priority_lowest = lowest;
    out->priority_highest = highest;
    out->dtypes = TN_MASK_FLOAT | GPU_MASK_INT | GPU_MASK_BOOL;
    return TN_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static tn_status device_alloc(void *handle, tn_memory *memory)
{
    struct cuda_device *device = handle;
    CUdeviceptr at = 0;
    CUresult error;
    tn_status status = cuda_enter(device);

    if (status)
        return status;
    switch (memory->kind) {
    case TN_MEMORY_DEVICE: error = cu.cuMemAlloc(&at, (size_t)memory->bytes); break;
    case TN_MEMORY_PINNED:
        error = cu.cuMemHostAlloc(&memory->host, (size_t)memory->bytes, CU_MEMHOSTALLOC_PORTABLE);
        at = (CUdeviceptr)(uintptr_t)memory->host;
        break;
    case TN_MEMORY_MANAGED:
        error = cu.cuMemAllocManaged(&at, (size_t)memory->bytes, CU_MEM_ATTACH_GLOBAL);
        memory->host = (void *)(uintptr_t)at;
        break;
    default:
        cuda_leave();
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: memory: kind %u is not there; expected device, pinned or managed "
                       "memory",
                       device->name, memory->kind);
    }
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

static void device_free(void *handle, const tn_memory *memory)
{
    struct cuda_device *device = handle;

    if (memory->handle && cuda_enter_to_free(device)) {
        if (memory->kind == TN_MEMORY_PINNED)
            cu.cuMemFreeHost(memory->handle);
        else
            cu.cuMemFree((CUdeviceptr)(uintptr_t)memory->handle);
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
            if (!stream->external)
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

static tn_status stream_new(void *handle, const tn_stream_args *args, void **out)
{
    struct cuda_device *device = handle;
    struct cuda_stream *stream;
    void *record = NULL;
    CUresult error = CUDA_SUCCESS;
    tn_status status = cuda_enter(device);

    if (status)
        return status;
    stream = tn_calloc(1, sizeof *stream);
    if (!stream) {
        cuda_leave();
        return TN_ERR_MEMORY;
    }
    stream->device = device;
    stream->external = args->external != NULL;
    if (stream->external)
        stream->stream = args->external;
    else
        error = cu.cuStreamCreateWithPriority(&stream->stream, CU_STREAM_NON_BLOCKING,
                                              args->priority);
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

static tn_status event_new(void *handle, const tn_event_args *args, void **out)
{
    CUevent event = NULL;
    CUresult error;
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    error = cu.cuEventCreate(&event, args->flags & TN_EVENT_TIMING ? 0 : CU_EVENT_DISABLE_TIMING);
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

static tn_status event_elapsed(void *handle, void *from, void *to, double *milliseconds)
{
    float time = 0;
    CUresult error;
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    error = cu.cuEventElapsedTime(&time, from, to);
    cuda_leave();
    *milliseconds = time;
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(handle, error, "timing events");
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
static CUresult copy_in(struct cuda_stream *stream, CUdeviceptr to, const char *from, size_t bytes)
{
    CUresult error = CUDA_SUCCESS;

    for (int which = 0; bytes > 0 && error == CUDA_SUCCESS; which = (which + 1) % CUDA_STAGES) {
        size_t part = bytes < CUDA_STAGE_BYTES ? bytes : CUDA_STAGE_BYTES;
        struct cuda_stage *stage;

        error = stage_take(stream, which, &stage);
        if (error != CUDA_SUCCESS)
            break;
        memcpy(stage->at, from, part);
        error = cu.cuMemcpyHtoDAsync(to, stage->at, part, stream->stream);
        if (error == CUDA_SUCCESS)
            error = cu.cuEventRecord(stage->done, stream->stream);
        stage->busy = error == CUDA_SUCCESS;
        from += part;
        to += part;
        bytes -= part;
    }
    return error;
}

/* One part is copied to pinned memory while the one before is copied to `to`. */
static CUresult copy_out(struct cuda_stream *stream, char *to, CUdeviceptr from, size_t bytes)
{
    size_t asked[CUDA_STAGES] = { 0 }, left = bytes;
    const char *end = to + bytes;
    CUresult error = CUDA_SUCCESS;

    for (int which = 0; error == CUDA_SUCCESS; which = (which + 1) % CUDA_STAGES) {
        struct cuda_stage *stage;

        error = stage_take(stream, which, &stage);
        if (error != CUDA_SUCCESS)
            break;
        if (asked[which]) {
            memcpy(to, stage->at, asked[which]);
            to += asked[which];
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
        } else if (to == end) {
            break;
        }
    }
    return error;
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

static CUdeviceptr address(const tn_copy_end *end)
{
    return (CUdeviceptr)(uintptr_t)end->memory + end->offset;
}

static char *host_address(const tn_copy_end *end)
{
    return (char *)end->memory + end->offset;
}

/* From the host, to the host, inside the device, to another device. The context is current. */
static CUresult copy_by_ends(const tn_copy_args *args)
{
    struct cuda_stream *stream = args->stream;
    struct cuda_device *target = args->to.device, *source = args->from.device;
    bool async = (args->flags & TN_COPY_ASYNC) != 0;
    size_t bytes = (size_t)args->bytes;

    if (!source)
        return async ? cu.cuMemcpyHtoDAsync(address(&args->to), host_address(&args->from), bytes,
                                            stream->stream)
                     : copy_in(stream, address(&args->to), host_address(&args->from), bytes);
    if (!target)
        return async ? cu.cuMemcpyDtoHAsync(host_address(&args->to), address(&args->from), bytes,
                                            stream->stream)
                     : copy_out(stream, host_address(&args->to), address(&args->from), bytes);
    if (target == source)
        return cu.cuMemcpyDtoDAsync(address(&args->to), address(&args->from), bytes,
                                    stream->stream);
    peer_enable(source, target);
    return cu.cuMemcpyPeerAsync(address(&args->to), target->context, address(&args->from),
                                source->context, bytes, stream->stream);
}

/* A copy to the host that waits returns a failure of the work that computed the values, too. */
static tn_status copy(void *handle, const tn_copy_args *args)
{
    struct cuda_stream *stream = args->stream;
    CUresult error;
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    error = copy_by_ends(args);
    if (error != CUDA_SUCCESS)
        status = cuda_fail(handle, error,
                           !args->from.device                     ? "copying to the device"
                           : !args->to.device                     ? "copying from the device"
                           : args->to.device == args->from.device ? "copying inside the device"
                                                                  : "copying to another device");
    else if (!args->to.device && !(args->flags & TN_COPY_ASYNC) && stream->may_fail)
        status = stream_wait(stream);
    cuda_leave();
    return status;
}

/* A pattern of 1, 2 or 4 bytes; longer ones are copied from the host. */
static CUresult fill_with(const tn_fill_args *args, struct cuda_stream *stream)
{
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)args->memory + args->offset;
    size_t count = (size_t)(args->bytes / args->pattern_bytes), done = 0;
    char block[4096];
    CUresult error = CUDA_SUCCESS;
    uint16_t two;
    uint32_t four;

    switch (args->pattern_bytes) {
    case 1: return cu.cuMemsetD8Async(at, args->pattern[0], count, stream->stream);
    case 2:
        memcpy(&two, args->pattern, sizeof two);
        return cu.cuMemsetD16Async(at, two, count, stream->stream);
    case 4:
        memcpy(&four, args->pattern, sizeof four);
        return cu.cuMemsetD32Async(at, four, count, stream->stream);
    default: break;
    }
    for (size_t i = 0; i < sizeof block; i += args->pattern_bytes)
        memcpy(block + i, args->pattern, args->pattern_bytes);
    for (; done < args->bytes && error == CUDA_SUCCESS; done += sizeof block) {
        size_t part = args->bytes - done < sizeof block ? (size_t)(args->bytes - done)
                                                        : sizeof block;

        error = copy_in(stream, at + done, block, part);
    }
    return error;
}

static tn_status fill(void *handle, const tn_fill_args *args)
{
    CUresult error;
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    error = fill_with(args, args->stream);
    cuda_leave();
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(handle, error, "filling memory");
}

/* ---- what else there is to know -------------------------------------------------------------- */

static tn_status peer(void *handle, void *other_, bool *direct)
{
    struct cuda_device *device = handle, *other = other_;
    int can = 0;
    CUresult error = cu.cuDeviceCanAccessPeer(&can, device->id, other->id);

    *direct = can != 0;
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(device, error, "querying peer access");
}

/* The NUMA node of a device on the PCI bus, as the kernel has it; -1: unknown. */
static int64_t numa_node(const char *pci)
{
    char path[64], text[32] = "";
    int64_t node = -1;
    FILE *file;

    tn_snprint(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", pci);
    for (char *c = path; *c; c++)
        if (*c >= 'A' && *c <= 'F')
            *c = (char)(*c - 'A' + 'a');
    file = fopen(path, "re");
    if (!file)
        return -1;
    if (fgets(text, sizeof text, file)) {
        text[strcspn(text, "\n")] = '\0';
        if (!tn_read_int(text, &node))
            node = -1;
    }
    fclose(file);
    return node;
}

static tn_status add_texts(struct cuda_device *device, tn_pack *out)
{
    char pci[32] = "", text[64];
    CUuuid uuid = { { 0 } };
    tn_status status = TN_OK;

    tn_snprint(text, sizeof text, "%d.%d", (int)device->capability[0], (int)device->capability[1]);
    status = tn_pack_add(out, "compute_capability", tn_value_string(text));
    if (status == TN_OK &&
        cu.cuDeviceGetPCIBusId(pci, (int)sizeof pci, device->id) == CUDA_SUCCESS) {
        status = tn_pack_add(out, "pci", tn_value_string(pci));
        if (status == TN_OK)
            status = tn_pack_add(out, "numa_node", tn_value_int(numa_node(pci)));
    }
    if (status == TN_OK && cu.cuDeviceGetUuid(&uuid, device->id) == CUDA_SUCCESS) {
        for (int i = 0; i < 16; i++)
            tn_snprint(text + 2 * i, sizeof text - (size_t)(2 * i), "%02x", uuid.bytes[i]);
        status = tn_pack_add(out, "uuid", tn_value_string(text));
    }
    return status;
}

static tn_status properties(void *handle, tn_pack *out)
{
    static const struct {
        const char *name;
        int attribute;
    } numbers[] = {
        { "shared_memory_per_group", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK },
        { "l2_cache", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE },
        { "memory_bus_bits", CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH },
    };
    struct cuda_device *device = handle;
    int clock = 0;
    tn_status status = add_texts(device, out);

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && status == TN_OK; i++) {
        int value = 0;

        if (cu.cuDeviceGetAttribute(&value, numbers[i].attribute, device->id) == CUDA_SUCCESS)
            status = tn_pack_add(out, numbers[i].name, tn_value_int(value));
    }
    if (status == TN_OK &&
        cu.cuDeviceGetAttribute(&clock, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device->id) == CUDA_SUCCESS)
        status = tn_pack_add(out, "clock_mhz", tn_value_int(clock / 1000));
    return status;
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
    .flags = TN_BACKEND_ASYNC | TN_BACKEND_PEER,
    .dlpack_type = 2, /* kDLCUDA */
    .enumerate = enumerate,
    .open = device_open,
    .close = device_close,
    .info = device_info,
    .alloc = device_alloc,
    .free = device_free,
    .copy = copy,
    .stream_new = stream_new,
    .stream_drop = stream_drop,
    .stream_sync = stream_sync,
    .event_new = event_new,
    .event_drop = event_drop,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_sync = event_sync,
    .event_query = event_query,
    .event_elapsed = event_elapsed,
    .fill = fill,
    .peer = peer,
    .properties = properties,
    .native = native,
    .native_stream = native_stream,
};
