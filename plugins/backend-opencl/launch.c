/* SPDX-License-Identifier: MIT
 *
 * Functions that plugins/gpu/gpu.h requires from a backend: starting kernels, copies, errors. */
#include "opencl.h"

#define FLUSH_EVERY 32 /* launches; some drivers start no kernel before a flush or a wait */

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
    const tn_copy_args args = { TN_HEAD(tn_copy_args), .to = { call->device, to, to_offset },
                                .from = { call->device, from, from_offset }, .bytes = bytes,
                                .stream = call->stream };

    return bytes > 0 ? opencl_backend.copy(call->device, &args) : TN_OK;
}

tn_status gpu_read_bytes(const tn_call *call, void *to, void *from, uint64_t offset, size_t bytes)
{
    const tn_copy_args args = { TN_HEAD(tn_copy_args), .to = { NULL, to, 0 },
                                .from = { call->device, from, offset }, .bytes = bytes,
                                .stream = call->stream };

    return bytes > 0 ? opencl_backend.copy(call->device, &args) : TN_OK;
}

void *gpu_error_memory(const tn_call *call)
{
    struct opencl_stream *stream = call->stream;

    stream->may_fail = true;
    return stream->error;
}

bool gpu_device_supports(const tn_call *call, tn_dtype dtype, char *reason, size_t size)
{
    const struct opencl_device *device = call->device;

    if ((dtype == TN_F64 || dtype == TN_C128) && !device->fp64) {
        tn_snprint(reason, size, "%s has no double precision (cl_khr_fp64)", device->name);
        return false;
    }
    return true;
}
