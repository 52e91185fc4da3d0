/* SPDX-License-Identifier: MIT
 *
 * Programs and kernels: text that was embedded at build time is compiled for one device and one element type when a
 * kernel of it is first needed; a stream keeps kernel objects of its own. */
#include "opencl.h"

#include <stdatomic.h>
#include <string.h>

#define TEXT_(name) extern const unsigned char tn_embed_##name[];
GPU_TEXTS(TEXT_)
TEXT_(dialect)
TEXT_(layout)
TEXT_(common)
TEXT_(types)
#undef TEXT_

#define FLUSH_EVERY 32 /* kernels; without it some drivers start nothing before someone waits */

static tn_status build_failed(struct opencl_device *device, cl_program program, cl_int error,
                              enum gpu_text text, tn_dtype type)
{
    static const char *const names[] = {
#define NAME_(name) #name,
        GPU_TEXTS(NAME_)
#undef NAME_
    };
    size_t size = 0;
    char *log = NULL;
    tn_status status;

    cl.clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    if (size > 1 && (log = tn_calloc(1, size + 1)))
        cl.clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, size, log, NULL);
    if (log)
        tn_log(TN_LOG_DEBUG, "compile log of %s.cl for %s: %s", names[text], device->name, log);
    status = tn_fail_native(TN_ERR_DEVICE, error,
                            "%s.cl for %s does not compile on %s: %s (%d)\n%.600s", names[text],
                            gpu_type_name(type), device->name, cl_api_error_name(error), (int)error,
                            log && *log ? log : "(the driver gives no log)");
    tn_free(log);
    return status;
}

static tn_status build(struct opencl_device *device, enum gpu_text text, tn_dtype type,
                       cl_program *out)
{
    static const unsigned char *const texts[] = {
#define AT_(name) tn_embed_##name,
        GPU_TEXTS(AT_)
#undef AT_
    };
    const char *parts[] = { (const char *)tn_embed_dialect, (const char *)tn_embed_layout,
                            (const char *)tn_embed_common, (const char *)tn_embed_types,
                            (const char *)texts[text] };
    char options[288];
    cl_int error;
    cl_program program = cl.clCreateProgramWithSource(device->context, 5, parts, NULL, &error);

    if (!program)
        return cl_api_fail(error, "making a program", device->name);
    tn_snprint(options, sizeof options, "-DTN_TYPE=%d %s", (int)type, device->build_options);
    error = cl.clBuildProgram(program, 1, &device->id, options, NULL, NULL);
    if (error != CL_SUCCESS) {
        tn_status status = build_failed(device, program, error, text, type);

        cl.clReleaseProgram(program);
        return status;
    }
    *out = program;
    return TN_OK;
}

static tn_status program_get(struct opencl_device *device, enum gpu_text text, tn_dtype type,
                             cl_program *out)
{
    cl_program program = atomic_load_explicit(&device->programs[text][type], memory_order_acquire);
    tn_status status = TN_OK;

    if (!program) {
        pthread_mutex_lock(&device->lock);
        program = atomic_load_explicit(&device->programs[text][type], memory_order_relaxed);
        if (!program) {
            status = build(device, text, type, &program);
            if (!status)
                atomic_store_explicit(&device->programs[text][type], program, memory_order_release);
        }
        pthread_mutex_unlock(&device->lock);
    }
    *out = program;
    return status;
}

tn_status opencl_kernel(struct opencl_stream *stream, enum gpu_kernel kernel, tn_dtype type,
                        cl_kernel *out)
{
    cl_program program;
    char name[64];
    cl_int error;
    tn_status status;

    if ((size_t)type >= TN_DTYPE_COUNT)
        return tn_fail(TN_ERR_TYPE, "no kernel of this device takes an unknown type");
    if (stream->kernels[kernel][type]) {
        *out = stream->kernels[kernel][type];
        return TN_OK;
    }
    status = program_get(stream->device, gpu_kernel_rows[kernel].text, type, &program);
    if (status)
        return status;
    gpu_kernel_text(name, sizeof name, kernel, type);
    *out = cl.clCreateKernel(program, name, &error);
    if (!*out) {
        char what[96];

        tn_snprint(what, sizeof what, "finding kernel %s", name);
        return cl_api_fail(error, what, stream->device->name);
    }
    stream->kernels[kernel][type] = *out;
    return TN_OK;
}

void opencl_programs_drop(struct opencl_device *device)
{
    for (int text = 0; text < GPU_TEXT_COUNT; text++)
        for (int type = 0; type < TN_DTYPE_COUNT; type++)
            if (device->programs[text][type])
                cl.clReleaseProgram(device->programs[text][type]);
}

void opencl_kernels_drop(struct opencl_stream *stream)
{
    for (int kernel = 0; kernel < GPU_KERNEL_COUNT; kernel++)
        for (int type = 0; type < TN_DTYPE_COUNT; type++)
            if (stream->kernels[kernel][type])
                cl.clReleaseKernel(stream->kernels[kernel][type]);
}

tn_status gpu_launch(const tn_call *call, enum gpu_kernel id, tn_dtype type, int64_t x, int64_t z,
                     const gpu_arg *args, int32_t count)
{
    struct opencl_stream *stream = call->stream;
    size_t global[3] = { (size_t)x, 1, (size_t)z }, local[3] = { 256, 1, 1 };
    cl_uint dims = 1;
    cl_kernel kernel;
    cl_int error;
    tn_status status;

    if (x == 0 || z == 0)
        return TN_OK;
    status = opencl_kernel(stream, id, type, &kernel);
    if (status)
        return status;
    switch (gpu_kernel_rows[id].shape) {
    case GPU_ITEMS: global[0] = (global[0] + local[0] - 1) / local[0] * local[0]; break;
    case GPU_GROUPS: global[0] *= local[0]; break;
    default:
        local[0] = 16;
        local[1] = 16;
        global[0] *= local[0];
        global[1] *= local[1];
        dims = 3;
        break;
    }
    for (int32_t i = 0; i < count; i++) {
        error = cl.clSetKernelArg(kernel, (cl_uint)i, args[i].size, args[i].at);
        if (error != CL_SUCCESS)
            goto failed;
    }
    error = cl.clEnqueueNDRangeKernel(stream->queue, kernel, dims, NULL, global, local, 0, NULL,
                                      NULL);
    if (error != CL_SUCCESS)
        goto failed;
    if (++stream->since_flush >= FLUSH_EVERY) {
        stream->since_flush = 0;
        error = cl.clFlush(stream->queue);
        if (error != CL_SUCCESS)
            goto failed;
    }
    return TN_OK;
failed:;
    char what[96];

    tn_snprint(what, sizeof what, "%s: starting tn_%s_%s", call->op, gpu_kernel_rows[id].name,
               gpu_type_name(type));
    return cl_api_fail(error, what, stream->device->name);
}

tn_status gpu_copy_bytes(const tn_call *call, void *to, uint64_t to_offset, void *from,
                         uint64_t from_offset, size_t bytes)
{
    return opencl_backend.copy(call->device, call->stream, to, to_offset, from, from_offset, bytes);
}

tn_status gpu_read_bytes(const tn_call *call, void *to, void *from, uint64_t offset, size_t bytes)
{
    return opencl_backend.copy_out(call->device, call->stream, to, from, offset, bytes);
}

void *gpu_error_memory(const tn_call *call)
{
    struct opencl_stream *stream = call->stream;

    stream->may_fail = true;
    return stream->error;
}

bool gpu_device_has(const tn_call *call, tn_dtype dtype, char *reason, size_t size)
{
    const struct opencl_device *device = call->device;

    if ((dtype == TN_F64 || dtype == TN_C128) && !device->fp64) {
        tn_snprint(reason, size, "%s has no double precision (cl_khr_fp64)", device->name);
        return false;
    }
    return true;
}
