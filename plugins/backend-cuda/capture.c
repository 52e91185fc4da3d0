/* SPDX-License-Identifier: MIT
 *
 * Recording the work of a stream, as a CUDA graph. The capture mode is relaxed, because the core
 * may allocate memory while a stream records, which the other modes forbid. */
#include "cuda.h"

tn_status cuda_capture_begin(void *handle, const tn_capture_args *args)
{
    struct cuda_device *device = handle;
    struct cuda_stream *stream = args->stream;
    CUresult error;
    tn_status status;

    if (!cu.cuStreamBeginCapture || !cu.cuStreamEndCapture || !cu.cuGraphInstantiate ||
        !cu.cuGraphLaunch || !cu.cuGraphExecDestroy || !cu.cuGraphDestroy)
        return tn_fail(TN_ERR_NOT_IMPLEMENTED,
                       "%s: the driver cannot record work (no cuGraphInstantiateWithFlags); "
                       "expected the driver of CUDA 11.4 or newer",
                       device->name);
    status = cuda_enter(device);
    if (status)
        return status;
    error = cu.cuStreamBeginCapture(stream->stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    stream->records = error == CUDA_SUCCESS;
    cuda_leave();
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(device, error, "recording a stream");
}

tn_status cuda_capture_end(void *handle, tn_capture_args *args)
{
    struct cuda_stream *stream = args->stream;
    CUgraph graph = NULL;
    CUgraphExec made = NULL;
    CUresult error;
    tn_status status = cuda_enter(handle);

    stream->records = false;
    if (status)
        return status;
    error = cu.cuStreamEndCapture(stream->stream, &graph);
    if (error == CUDA_SUCCESS && graph)
        error = cu.cuGraphInstantiate(&made, graph, 0);
    if (graph)
        cu.cuGraphDestroy(graph); /* `made` is an executable copy of the graph */
    cuda_leave();
    args->graph = made;
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(handle, error, "ending a record");
}

tn_status cuda_capture_launch(void *handle, const tn_capture_args *args)
{
    CUresult error;
    tn_status status = cuda_enter(handle);

    if (status)
        return status;
    error = cu.cuGraphLaunch(args->graph, cuda_stream_native(args->stream));
    cuda_leave();
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail(handle, error, "launching a record");
}

void cuda_capture_drop(void *handle, const tn_capture_args *args)
{
    if (args->graph && cuda_enter_to_free(handle)) {
        cu.cuGraphExecDestroy(args->graph);
        cuda_leave();
    }
}
