/* SPDX-License-Identifier: MIT
 *
 * Copies and fills. Copies between the device and host memory that is not pinned go through the
 * stream's blocks of pinned memory. */
#include "cuda.h"

#include <string.h>

/* Waits until block number `which` of the stream's pinned memory is free. The block is allocated at
 * the first copy, because many streams never need one. */
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

/* Copies from the host through pinned memory. Returns when all of `from` has been read; the copy to
 * the device may still be running. */
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

/* Copies to the host through pinned memory: while the device copies one part to pinned memory, the
 * host copies the part before from pinned memory to `to`. */
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

/* Requests direct access from the source device to the target device, once per pair. Without this
 * access the driver copies through the host. The source's context must be current. */
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
            error = CUDA_SUCCESS; /* the program or another library has enabled it */
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

/* Enqueues a copy of any direction: from the host, to the host, inside the device, or to another
 * device. Without TN_COPY_ASYNC, a copy from or to the host is finished with the host memory when
 * this returns. The device's context must be current. */
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

/* A copy to the host without TN_COPY_ASYNC also returns errors that kernels recorded, because the
 * values depend on the work of these kernels. */
tn_status cuda_copy(void *handle, const tn_copy_args *args)
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
        status = cuda_stream_wait(stream);
    cuda_leave();
    return status;
}

/* Fills memory with a pattern. For patterns of 1, 2 or 4 bytes the driver has a function; a longer
 * pattern is copied from the host. */
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

tn_status cuda_fill(void *handle, const tn_fill_args *args)
{
    const struct cuda_stream *stream = args->stream;
    CUresult error;
    tn_status status;

    if (stream->records && args->pattern_bytes > 4) /* the pattern would be copied from the host */
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: a fill with a pattern of %u bytes cannot be recorded; expected 1, 2 or "
                       "4 bytes, or the operator fill",
                       stream->device->name, args->pattern_bytes);
    status = cuda_enter(handle);

    if (status)
        return status;
    error = fill_with(args, args->stream);
    cuda_leave();
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(handle, error, "filling memory");
}
