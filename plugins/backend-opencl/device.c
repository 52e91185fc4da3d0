/* SPDX-License-Identifier: MIT
 *
 * OpenCL devices: finding and opening them, memory, streams (in-order command queues), copies. */
#include "opencl.h"

#include <string.h>
#include <unistd.h>

#define MAX_PLATFORMS 16

struct opencl_options opencl_options = { .seconds = 30 };
struct opencl_probe opencl_probes[OPENCL_MAX_DEVICES];

/* Usable devices are numbered in this order: GPUs, accelerators, processors; within each of these
 * classes by the name of the platform, then in the order of the driver. */
static struct opencl_listed found[OPENCL_MAX_DEVICES];
static int32_t found_count;

/* ---- finding devices ------------------------------------------------------------------------- */

static bool found_before(const struct opencl_listed *a, const struct opencl_listed *b)
{
    return a->rank != b->rank ? a->rank < b->rank : strcmp(a->vendor, b->vendor) < 0;
}

/* Devices come in the order of the drivers, and those that compare equal keep it. */
static void found_add(const struct opencl_listed *one)
{
    int32_t at = found_count;

    while (at > 0 && found_before(one, &found[at - 1])) {
        found[at] = found[at - 1];
        at--;
    }
    found[at] = *one;
    found_count++;
}

static void describe(struct opencl_listed *one)
{
    cl_device_type type = 0;
    cl_bool available = 0, compiler = 0;
    size_t group = 0;

    cl.clGetDeviceInfo(one->id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    cl.clGetDeviceInfo(one->id, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL);
    cl.clGetDeviceInfo(one->id, CL_DEVICE_COMPILER_AVAILABLE, sizeof compiler, &compiler, NULL);
    cl.clGetDeviceInfo(one->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof group, &group, NULL);
    cl.clGetDeviceInfo(one->id, CL_DEVICE_NAME, sizeof one->name - 1, one->name, NULL);
    one->unusable = !available    ? "it is not available"
                    : !compiler   ? "it has no compiler"
                    : group < 256 ? "it does not support work groups of 256 items"
                                  : NULL;
    one->rank = type & CL_DEVICE_TYPE_GPU ? 0 : type & CL_DEVICE_TYPE_ACCELERATOR ? 1 : 2;
}

static void no_step(const char *name)
{
    (void)name;
}

tn_status opencl_list(struct opencl_listed *all, int32_t *count, void (*step)(const char *name))
{
    cl_platform_id platforms[MAX_PLATFORMS] = { NULL };
    cl_uint n_platforms = 0;

    if (!step)
        step = no_step;
    *count = 0;
    step("clGetPlatformIDs");
    cl_int error = cl.clGetPlatformIDs(MAX_PLATFORMS, platforms, &n_platforms);
    if (error != CL_SUCCESS || n_platforms == 0)
        return tn_fail_native(
            TN_ERR_UNAVAILABLE, error,
            "OpenCL: the loader found no driver; install one (for the processor: Debian package "
            "pocl-opencl-icd)");
    for (cl_uint p = 0; p < n_platforms && p < MAX_PLATFORMS; p++) {
        cl_device_id ids[OPENCL_MAX_DEVICES] = { NULL };
        char vendor[128] = "";
        cl_uint n = 0;

        if (!platforms[p])
            continue;
        step("clGetPlatformInfo");
        cl.clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof vendor - 1, vendor, NULL);
        step("clGetDeviceIDs");
        if (cl.clGetDeviceIDs(platforms[p],
                              CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_ACCELERATOR,
                              OPENCL_MAX_DEVICES, ids, &n) != CL_SUCCESS)
            continue;
        step("clGetDeviceInfo");
        for (cl_uint i = 0; i < n && i < OPENCL_MAX_DEVICES && *count < OPENCL_MAX_DEVICES; i++) {
            if (!ids[i])
                continue;
            struct opencl_listed *one = &all[(*count)++];
            *one = (struct opencl_listed){ .platform = platforms[p], .id = ids[i] };
            memcpy(one->vendor, vendor, sizeof vendor);
            describe(one);
        }
    }
    return TN_OK;
}

tn_status opencl_enumerate(const tn_backend_def *self, int32_t *count)
{
    (void)self;
    static struct opencl_listed all[OPENCL_MAX_DEVICES];
    char last[400] = "";
    int32_t listed;
    tn_status status = opencl_list(all, &listed, NULL);

    found_count = 0;
    if (status != TN_OK)
        return status;
    for (int32_t i = 0; i < listed; i++) {
        const char *why = all[i].unusable ? all[i].unusable : opencl_probes[i].words;

        if (!all[i].unusable && !opencl_probes[i].failed) {
            found_add(&all[i]);
            continue;
        }
        tn_snprint(last, sizeof last, "; %q of %q: %s", all[i].name, all[i].vendor, why);
        /* A device without a compiler is no news; one whose driver crashes is. */
        tn_log(all[i].unusable ? TN_LOG_INFO : TN_LOG_WARNING,
               "OpenCL device %q of %q is ignored: %s", all[i].name, all[i].vendor, why);
    }
    if (found_count == 0)
        return tn_fail(TN_ERR_UNAVAILABLE,
                       "OpenCL: none of %d devices is usable%s; TENON_LOG=info gives the reason "
                       "for each",
                       (int)listed, last);
    *count = found_count;
    return TN_OK;
}

void opencl_reset(void)
{
    found_count = 0;
}

static void *queue_of(void *stream)
{
    return ((struct opencl_stream *)stream)->queue;
}

/* Sets device->fp64, and the options for the compiler of the device. */
static void choose_options(struct opencl_device *device)
{
    char extensions[8192] = "";
    cl_device_fp_config single = 0, wide = 0;

    cl.clGetDeviceInfo(device->id, CL_DEVICE_EXTENSIONS, sizeof extensions - 1, extensions, NULL);
    cl.clGetDeviceInfo(device->id, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof wide, &wide, NULL);
    cl.clGetDeviceInfo(device->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof single, &single, NULL);
    device->fp64 = wide != 0 || strstr(extensions, "cl_khr_fp64");
    tn_snprint(device->build_options, sizeof device->build_options, "-cl-std=CL1.2 -w%s%s %s",
               device->fp64 ? " -DTN_FP64" : "",
               single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT
                   ? " -cl-fp32-correctly-rounded-divide-sqrt"
                   : "",
               opencl_options.build ? opencl_options.build : "");
}

static void device_close(void *handle)
{
    struct opencl_device *device = handle;

    if (device->pid == (int64_t)getpid()) {
        opencl_programs_drop(device);
        if (device->queue)
            cl.clReleaseCommandQueue(device->queue);
        if (device->context)
            cl.clReleaseContext(device->context);
    }
    pthread_mutex_destroy(&device->lock);
    tn_free(device);
}

static tn_status device_open(const tn_backend_def *self, int32_t index, void **out)
{
    (void)self;
    struct opencl_device *device;
    char platform[96] = "", version[96] = "";
    cl_ulong max_alloc = 0;
    cl_int error = CL_SUCCESS;

    if (index < 0 || index >= found_count)
        return tn_fail(TN_ERR_INDEX, "OpenCL device: index: out of range, got %d; expected 0 to %d",
                       (int)index, (int)found_count - 1);
    device = tn_calloc(1, sizeof *device);
    if (!device)
        return TN_ERR_MEMORY;
    pthread_mutex_init(&device->lock, NULL);
    device->pid = (int64_t)getpid();
    device->platform = found[index].platform;
    device->id = found[index].id;
    cl.clGetDeviceInfo(device->id, CL_DEVICE_NAME, sizeof device->name - 1, device->name, NULL);
    cl.clGetDeviceInfo(device->id, CL_DRIVER_VERSION, sizeof version - 1, version, NULL);
    cl.clGetPlatformInfo(device->platform, CL_PLATFORM_NAME, sizeof platform - 1, platform, NULL);
    tn_snprint(device->driver, sizeof device->driver, "%s %s", platform, version);
    cl.clGetDeviceInfo(device->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof max_alloc, &max_alloc,
                       NULL);
    device->max_alloc = max_alloc;
    choose_options(device);
    device->context = cl.clCreateContext(NULL, 1, &device->id, NULL, NULL, &error);
    if (device->context)
        device->queue = cl.clCreateCommandQueue(device->context, device->id, 0, &error);
    if (!device->queue) {
        tn_status status = cl_api_fail(error, "opening a context", device->name);

        device_close(device);
        return status;
    }
    device->native = (tn_opencl_native){ .size = sizeof device->native,
                                         .platform = device->platform,
                                         .device = device->id,
                                         .context = device->context,
                                         .library = cl.library,
                                         .queue = queue_of };
    *out = device;
    return TN_OK;
}

static tn_status device_info(void *handle, tn_device_info *out)
{
    struct opencl_device *device = handle;
    cl_ulong memory = 0;
    cl_uint units = 0, align_bits = 0;

    cl.clGetDeviceInfo(device->id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, NULL);
    cl.clGetDeviceInfo(device->id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
    cl.clGetDeviceInfo(device->id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof align_bits, &align_bits,
                       NULL);
    tn_snprint(out->name, sizeof out->name, "%s", device->name);
    tn_snprint(out->driver, sizeof out->driver, "%s", device->driver);
    out->memory_total = (int64_t)memory;
    out->memory_free = -1;
    out->compute_units = units;
    out->memory_kinds = TN_MEMORY_BIT(TN_MEMORY_DEVICE) | TN_MEMORY_BIT(TN_MEMORY_PINNED);
    out->alignment = align_bits >= 64 ? align_bits / 8 : 8;
    out->dtypes = (TN_MASK_FLOAT & ~(device->fp64 ? 0 : TN_BIT(TN_F64))) | GPU_MASK_INT |
                  GPU_MASK_BOOL;
    return TN_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Writes one byte to a new buffer and waits. Most drivers allocate the memory of a buffer only when
 * it is first used; without this write, a failure would come later. */
static cl_int buffer_touch(struct opencl_device *device, cl_mem buffer, uint64_t bytes)
{
    const char zero = 0;
    cl_int error;

    pthread_mutex_lock(&device->lock);
    error = cl.clEnqueueFillBuffer(device->queue, buffer, &zero, 1, bytes - 1, 1, 0, NULL, NULL);
    if (error == CL_SUCCESS)
        error = cl.clFinish(device->queue);
    pthread_mutex_unlock(&device->lock);
    return error;
}

/* Maps a buffer for pinned memory: the driver keeps it in host memory, and it stays mapped until it
 * is freed. */
static cl_int buffer_map(struct opencl_device *device, cl_mem buffer, tn_memory *memory)
{
    cl_int error = CL_SUCCESS;

    pthread_mutex_lock(&device->lock);
    memory->host = cl.clEnqueueMapBuffer(device->queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                         0, memory->bytes, 0, NULL, NULL, &error);
    pthread_mutex_unlock(&device->lock);
    return error == CL_SUCCESS && !memory->host ? CL_MAP_FAILURE : error;
}

static tn_status device_alloc(void *handle, tn_memory *memory)
{
    struct opencl_device *device = handle;
    bool pinned = memory->kind == TN_MEMORY_PINNED;
    cl_int error = CL_SUCCESS;
    cl_mem buffer;

    if (memory->kind != TN_MEMORY_DEVICE && !pinned)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: memory: unsupported kind, got %u; expected device or pinned memory",
                       device->name, memory->kind);
    if (device->max_alloc && memory->bytes > device->max_alloc)
        return tn_fail(
            TN_ERR_MEMORY, "%s: allocation: too large, got %llu bytes; expected at most %llu",
            device->name, (unsigned long long)memory->bytes, (unsigned long long)device->max_alloc);
    buffer = cl.clCreateBuffer(device->context,
                               CL_MEM_READ_WRITE | (pinned ? CL_MEM_ALLOC_HOST_PTR : 0),
                               memory->bytes, NULL, &error);
    if (buffer) {
        error = pinned ? buffer_map(device, buffer, memory)
                       : buffer_touch(device, buffer, memory->bytes);
        if (error == CL_SUCCESS) {
            memory->handle = buffer;
            return TN_OK;
        }
        cl.clReleaseMemObject(buffer);
    }
    return tn_fail_native(error == CL_DEVICE_NOT_AVAILABLE ? TN_ERR_LOST : TN_ERR_MEMORY, error,
                          "%s: allocation of %llu bytes failed: %s (%d)", device->name,
                          (unsigned long long)memory->bytes, cl_api_error_name(error), (int)error);
}

static void device_free(void *handle, const tn_memory *memory)
{
    struct opencl_device *device = handle;

    if (!memory->handle || device->pid != (int64_t)getpid())
        return;
    if (memory->host) {
        pthread_mutex_lock(&device->lock);
        cl.clEnqueueUnmapMemObject(device->queue, memory->handle, memory->host, 0, NULL, NULL);
        cl.clFinish(device->queue);
        pthread_mutex_unlock(&device->lock);
    }
    cl.clReleaseMemObject(memory->handle);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void stream_drop(void *handle, void *stream_)
{
    struct opencl_device *device = handle;
    struct opencl_stream *stream = stream_;

    if (!stream)
        return;
    if (device->pid == (int64_t)getpid()) {
        if (stream->queue) {
            cl.clFinish(stream->queue);
            opencl_kernels_drop(stream);
            cl.clReleaseCommandQueue(stream->queue);
        }
        if (stream->error)
            cl.clReleaseMemObject(stream->error);
    }
    tn_free(stream);
}

static tn_status stream_new(void *handle, const tn_stream_args *args, void **out)
{
    struct opencl_device *device = handle;
    struct opencl_stream *stream = tn_calloc(1, sizeof *stream);
    gpu_error none = { 0 };
    cl_int error = CL_SUCCESS;

    if (!stream)
        return TN_ERR_MEMORY;
    stream->device = device;
    if (!args->external)
        stream->queue = cl.clCreateCommandQueue(device->context, device->id, 0, &error);
    else if ((error = cl.clRetainCommandQueue(args->external)) == CL_SUCCESS)
        stream->queue = args->external;
    if (stream->queue)
        stream->error = cl.clCreateBuffer(device->context, CL_MEM_READ_WRITE, sizeof none, NULL,
                                          &error);
    if (stream->error)
        error = cl.clEnqueueWriteBuffer(stream->queue, stream->error, CL_TRUE, 0, sizeof none,
                                        &none, 0, NULL, NULL);
    if (error != CL_SUCCESS || !stream->error) {
        tn_status status = cl_api_fail(error, "making a queue", device->name);

        stream_drop(device, stream);
        return status;
    }
    *out = stream;
    return TN_OK;
}

/* Reads and clears the stream's error record, and returns the error that a kernel recorded there.
 * The stream's work must be done. */
tn_status opencl_check_errors(struct opencl_stream *stream)
{
    gpu_error record = { 0 }, none = { 0 };
    cl_int error;

    if (!stream->may_fail)
        return TN_OK;
    stream->may_fail = false;
    error = cl.clEnqueueReadBuffer(stream->queue, stream->error, CL_TRUE, 0, sizeof record, &record,
                                   0, NULL, NULL);
    if (error == CL_SUCCESS && !record.taken)
        return TN_OK;
    if (error == CL_SUCCESS)
        error = cl.clEnqueueWriteBuffer(stream->queue, stream->error, CL_TRUE, 0, sizeof none,
                                        &none, 0, NULL, NULL);
    if (error != CL_SUCCESS)
        return cl_api_fail(error, "reading the error record", stream->device->name);
    return gpu_error_fail(&record, stream->device->name);
}

static tn_status stream_sync(void *handle, void *stream_)
{
    struct opencl_stream *stream = stream_;
    cl_int error = cl.clFinish(stream->queue);

    (void)handle;
    stream->since_flush = 0;
    if (error != CL_SUCCESS)
        return cl_api_fail(error, "waiting for a queue", stream->device->name);
    return opencl_check_errors(stream);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Copies from or to the host wait until the copy is done, except with TN_COPY_ASYNC, with which the
 * caller keeps the host memory unchanged. A copy to the host that waits also returns errors that
 * kernels recorded, because the values depend on the work of these kernels. */
static tn_status copy(void *handle, const tn_copy_args *args)
{
    struct opencl_device *device = handle;
    struct opencl_stream *stream = args->stream;
    cl_bool wait = args->flags & TN_COPY_ASYNC ? CL_FALSE : CL_TRUE;
    size_t bytes = (size_t)args->bytes;
    cl_int error;

    if (!args->from.device)
        error = cl.clEnqueueWriteBuffer(stream->queue, args->to.memory, wait, args->to.offset,
                                        bytes, (char *)args->from.memory + args->from.offset, 0,
                                        NULL, NULL);
    else if (!args->to.device)
        error = cl.clEnqueueReadBuffer(stream->queue, args->from.memory, wait, args->from.offset,
                                       bytes, (char *)args->to.memory + args->to.offset, 0, NULL,
                                       NULL);
    else
        error = cl.clEnqueueCopyBuffer(stream->queue, args->from.memory, args->to.memory,
                                       args->from.offset, args->to.offset, bytes, 0, NULL, NULL);
    if (error != CL_SUCCESS)
        return cl_api_fail(error,
                           !args->from.device ? "copying to the device"
                           : !args->to.device ? "copying from the device"
                                              : "copying inside the device",
                           device->name);
    return !args->to.device && wait ? opencl_check_errors(stream) : TN_OK;
}

static tn_status fill(void *handle, const tn_fill_args *args)
{
    struct opencl_device *device = handle;
    struct opencl_stream *stream = args->stream;
    cl_int error = cl.clEnqueueFillBuffer(stream->queue, args->memory, args->pattern,
                                          args->pattern_bytes, args->offset, (size_t)args->bytes, 0,
                                          NULL, NULL);

    return error == CL_SUCCESS ? TN_OK : cl_api_fail(error, "filling memory", device->name);
}

/* ---- properties ------------------------------------------------------------------------------ */

static tn_status properties(void *handle, tn_pack *out)
{
    struct opencl_device *device = handle;
    static const struct {
        const char *name;
        cl_device_info query;
    } texts[] = { { "vendor", CL_DEVICE_VENDOR },
                  { "opencl_version", CL_DEVICE_VERSION },
                  { "opencl_extensions", CL_DEVICE_EXTENSIONS } };
    cl_uint clock = 0;
    cl_ulong shared = 0;
    size_t group = 0;
    tn_status status = TN_OK;

    for (size_t i = 0; i < sizeof texts / sizeof *texts && status == TN_OK; i++) {
        char text[8192] = "";

        cl.clGetDeviceInfo(device->id, texts[i].query, sizeof text - 1, text, NULL);
        status = tn_pack_add(out, texts[i].name, tn_value_string(text));
    }
    cl.clGetDeviceInfo(device->id, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof clock, &clock, NULL);
    cl.clGetDeviceInfo(device->id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof shared, &shared, NULL);
    cl.clGetDeviceInfo(device->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof group, &group, NULL);
    if (status == TN_OK)
        status = tn_pack_add(out, "clock_mhz", tn_value_int(clock));
    if (status == TN_OK)
        status = tn_pack_add(out, "shared_memory_per_group", tn_value_int((int64_t)shared));
    return status == TN_OK ? tn_pack_add(out, "group_size_max", tn_value_int((int64_t)group))
                           : status;
}

static const void *native(void *handle, const char *id)
{
    struct opencl_device *device = handle;

    return strcmp(id, TN_OPENCL_NATIVE) == 0 ? &device->native : NULL;
}

static void *native_stream(void *handle, void *stream)
{
    (void)handle;
    return queue_of(stream);
}

const tn_backend_def opencl_backend = {
    TN_HEAD(tn_backend_def),
    .type = "opencl",
    .help = "every OpenCL 1.2 device of this machine; kernels are compiled when first used",
    .flags = TN_BACKEND_ASYNC,
    .dlpack_type = 4, /* kDLOpenCL */
    .enumerate = opencl_enumerate,
    .open = device_open,
    .close = device_close,
    .info = device_info,
    .alloc = device_alloc,
    .free = device_free,
    .copy = copy,
    .stream_new = stream_new,
    .stream_drop = stream_drop,
    .stream_sync = stream_sync,
    .event_new = opencl_event_new,
    .event_drop = opencl_event_drop,
    .event_record = opencl_event_record,
    .event_wait = opencl_event_wait,
    .event_sync = opencl_event_sync,
    .event_query = opencl_event_query,
    .fill = fill,
    .properties = properties,
    .native = native,
    .native_stream = native_stream,
    .native_event = opencl_event_native,
};
