/* SPDX-License-Identifier: MIT
 *
 * Functions that plugins/gpu/gpu.h requires from a backend: starting kernels, copies, errors. */
#include "cuda.h"

#define MAX_ARGS 8

tn_status gpu_launch(const tn_call *call, enum gpu_kernel id, tn_dtype type, int64_t x, int64_t z,
                     const gpu_arg *args, int32_t count)
{
    struct cuda_device *device = call->device;
    struct cuda_stream *stream = call->stream;
    bool tiles = gpu_kernel_rows[id].shape == GPU_TILES;
    int64_t blocks = gpu_kernel_rows[id].shape == GPU_ITEMS ? (x + 255) / 256 : x;
    void *params[MAX_ARGS];
    CUfunction function;
    CUresult error;
    tn_status status;

    if (x == 0 || z == 0)
        return TN_OK;
    if (blocks > INT32_MAX)
        return tn_fail(TN_ERR_VALUE,
                       "%s: result: too many elements for one CUDA kernel, got %lld; expected at "
                       "most %lld",
                       call->op, (long long)x, INT32_MAX * (blocks == x ? 1LL : 256LL));
    status = cuda_enter(device);
    if (status)
        return status;
    status = cuda_function(device, id, type, &function);
    if (!status) {
        for (int32_t i = 0; i < count && i < MAX_ARGS; i++)
            params[i] = (void *)(uintptr_t)args[i].at;
        error = cu.cuLaunchKernel(function, (unsigned)blocks, 1, (unsigned)z, tiles ? 16 : 256,
                                  tiles ? 16 : 1, 1, 0, stream->stream, params, NULL);
        if (error != CUDA_SUCCESS) {
            char what[96];

            tn_snprint(what, sizeof what, "%s: starting tn_%s_%s", call->op,
                       gpu_kernel_rows[id].name, gpu_type_name(type));
            status = cuda_fail(device, error, what);
        }
    }
    cuda_leave();
    return status;
}

tn_status gpu_copy_bytes(const tn_call *call, void *to, uint64_t to_offset, void *from,
                         uint64_t from_offset, size_t bytes)
{
    const tn_copy_args args = { TN_HEAD(tn_copy_args), .to = { call->device, to, to_offset },
                                .from = { call->device, from, from_offset }, .bytes = bytes,
                                .stream = call->stream };

    return bytes > 0 ? cuda_backend.copy(call->device, &args) : TN_OK;
}

tn_status gpu_read_bytes(const tn_call *call, void *to, void *from, uint64_t offset, size_t bytes)
{
    const tn_copy_args args = { TN_HEAD(tn_copy_args), .to = { NULL, to, 0 },
                                .from = { call->device, from, offset }, .bytes = bytes,
                                .stream = call->stream };

    return bytes > 0 ? cuda_backend.copy(call->device, &args) : TN_OK;
}

void *gpu_error_memory(const tn_call *call)
{
    struct cuda_stream *stream = call->stream;

    stream->may_fail = true;
    return (void *)(uintptr_t)stream->error_at;
}

bool gpu_device_supports(const tn_call *call, tn_dtype dtype, char *reason, size_t size)
{
    (void)call;
    (void)dtype;
    (void)reason;
    (void)size;
    return true;
}
