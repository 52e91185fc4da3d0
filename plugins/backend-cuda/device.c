/* SPDX-License-Identifier: MIT
 *
 * CUDA devices: finding and opening them, and querying their properties. */
#include "cuda.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OLDEST_DRIVER 11020 /* CUDA 11.2, in the encoding of cuDriverGetVersion() */

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
    if (error != CUDA_SUCCESS)
        return tn_fail_native(TN_ERR_UNAVAILABLE, error, "CUDA: counting the GPUs failed: %s (%d)",
                              cu_api_error_name(error), (int)error);
    if (n == 0)
        return tn_fail(
            TN_ERR_UNAVAILABLE,
            "CUDA: the driver found no GPU that this process may use (CUDA_VISIBLE_DEVICES "
            "limits them)");
    device_count = n;
    *count = n;
    return TN_OK;
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
        return tn_fail(TN_ERR_INDEX, "CUDA device: index: out of range, got %d; expected 0 to %d",
                       (int)index, (int)device_count - 1);
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
                                       .stream = cuda_stream_native };
    *out = device;
    return TN_OK;
}

static tn_status device_info(void *handle, tn_device_info *out)
{
    struct cuda_device *device = handle;
    size_t available = 0, total = 0;
    int version = 0, units = 0, lowest = 0, highest = 0;
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
    out->memory_kinds = cuda_memory_kinds(device);
    out->priority_lowest = lowest;
    out->priority_highest = highest;
    out->dtypes = TN_MASK_FLOAT | GPU_MASK_INT | GPU_MASK_BOOL;
    return TN_OK;
}

/* ---- properties ------------------------------------------------------------------------------ */

static tn_status peer(void *handle, void *other_, bool *direct)
{
    struct cuda_device *device = handle, *other = other_;
    int can = 0;
    CUresult error = cu.cuDeviceCanAccessPeer(&can, device->id, other->id);

    *direct = can != 0;
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(device, error, "querying peer access");
}

/* Returns the NUMA node of a PCI device, which the Linux kernel shows in /sys; -1 if unknown. */
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
    return cuda_stream_native(stream);
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
    .alloc = cuda_alloc,
    .free = cuda_free,
    .copy = cuda_copy,
    .stream_new = cuda_stream_new,
    .stream_drop = cuda_stream_drop,
    .stream_sync = cuda_stream_sync,
    .event_new = cuda_event_new,
    .event_drop = cuda_event_drop,
    .event_record = cuda_event_record,
    .event_wait = cuda_event_wait,
    .event_sync = cuda_event_sync,
    .event_query = cuda_event_query,
    .event_elapsed = cuda_event_elapsed,
    .fill = cuda_fill,
    .peer = peer,
    .properties = properties,
    .native = native,
    .native_stream = native_stream,
    .capture_begin = cuda_capture_begin,
    .capture_end = cuda_capture_end,
    .capture_launch = cuda_capture_launch,
    .capture_drop = cuda_capture_drop,
    .memory_share = cuda_memory_share,
    .memory_open = cuda_memory_open,
    .native_event = cuda_event_native,
};
