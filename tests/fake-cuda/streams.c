/* SPDX-License-Identifier: MIT
 *
 * The fake driver's streams, which do their work when something waits for it, and its events. */
#include "tests/fake-cuda/driver.h"

#include <stdlib.h>
#include <string.h>

static struct CUstream_st *streams;
static struct CUevent_st *events;

CUresult fake_stream_run(struct CUstream_st *stream, long until)
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
            fake_stream_run(work->wait_stream, work->wait_count);
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

void fake_streams_run(void)
{
    for (struct CUstream_st *stream = streams; stream; stream = stream->next)
        fake_stream_run(stream, stream->queued);
}

CUresult fake_queue(struct CUstream_st *stream, int (*run)(void *data), const void *data,
                    size_t size)
{
    struct work *work = calloc(1, sizeof *work + size);

    if (!work)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (stream->context != fake_stack[fake_depth - 1])
        fake_misuse("a stream of another context", 0);
    work->run = run;
    work->size = size;
    if (size)
        memcpy(work->data, data, size);
    if (stream->record) {
        *stream->record->last = work;
        stream->record->last = &work->next;
        return CUDA_SUCCESS;
    }
    *stream->last = work;
    stream->last = &work->next;
    stream->queued++;
    fake_cuda.queued++;
    return CUDA_SUCCESS;
}

int fake_enqueue(void *stream, int (*run)(void *data), const void *data, size_t size)
{
    CUresult result;

    fake_enter();
    result = fake_depth ? fake_queue(stream, run, data, size)
                        : fake_misuse("work without a context", INVALID_CONTEXT);
    return fake_leave(result);
}

CUresult fake_cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    (void)flags;
    BEGIN("cuStreamCreateWithPriority", true)
    if (priority > 0 || priority < -5)
        return fake_leave(fake_misuse("a priority out of range", INVALID_VALUE));
    fake_cuda.priority = priority;
    *stream = calloc(1, sizeof **stream);
    if (!*stream)
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    (*stream)->context = fake_stack[fake_depth - 1];
    (*stream)->last = &(*stream)->first;
    (*stream)->next = streams;
    streams = *stream;
    fake_cuda.live_streams++;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuStreamDestroy(CUstream stream)
{
    BEGIN("cuStreamDestroy", true)
    fake_stream_run(stream, stream->queued);
    fake_cuda.live_streams--;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuStreamSynchronize(CUstream stream)
{
    BEGIN("cuStreamSynchronize", true)
    if (stream->record)
        return fake_leave(fake_records(stream, "cuStreamSynchronize"));
    return fake_leave(fake_stream_run(stream, stream->queued));
}

CUresult fake_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    CUresult result;

    (void)flags;
    BEGIN("cuStreamWaitEvent", true)
    if (stream->record)
        return fake_leave(fake_records(stream, "cuStreamWaitEvent"));
    if (!event->stream)
        return fake_leave(CUDA_SUCCESS);
    result = fake_queue(stream, NULL, NULL, 0);
    if (!result) {
        struct work *work = stream->first;

        while (work->next)
            work = work->next;
        work->wait_stream = event->stream;
        work->wait_count = event->count;
    }
    return fake_leave(result);
}

CUresult fake_cuEventCreate(CUevent *event, unsigned flags)
{
    BEGIN("cuEventCreate", true)
    *event = calloc(1, sizeof **event);
    if (!*event)
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    (*event)->timing = !(flags & CU_EVENT_DISABLE_TIMING);
    (*event)->next = events;
    events = *event;
    fake_cuda.live_events++;
    return fake_leave(CUDA_SUCCESS);
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
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuEventRecord(CUevent event, CUstream stream)
{
    BEGIN("cuEventRecord", true)
    if (stream->record)
        return fake_leave(fake_records(stream, "cuEventRecord"));
    event->stream = stream;
    event->count = stream->queued;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuEventSynchronize(CUevent event)
{
    BEGIN("cuEventSynchronize", true)
    return fake_leave(event->stream ? fake_stream_run(event->stream, event->count) : CUDA_SUCCESS);
}

/* Each piece of work takes a quarter of a millisecond. */
CUresult fake_cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to)
{
    BEGIN("cuEventElapsedTime", true)
    if (!from->timing || !to->timing || !from->stream || !to->stream)
        return fake_leave(fake_misuse("events that have no time", INVALID_VALUE));
    if (from->stream->done < from->count || to->stream->done < to->count)
        return fake_leave(CUDA_ERROR_NOT_READY);
    *milliseconds = (float)(to->count - from->count) * 0.25f;
    return fake_leave(CUDA_SUCCESS);
}

/* The first query reports that the work is not done, and does it. */
CUresult fake_cuEventQuery(CUevent event)
{
    BEGIN("cuEventQuery", true)
    if (!event->stream || event->stream->done >= event->count)
        return fake_leave(CUDA_SUCCESS);
    fake_stream_run(event->stream, event->count);
    return fake_leave(CUDA_ERROR_NOT_READY);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

CUresult fake_records(const struct CUstream_st *stream, const char *function)
{
    (void)stream;
    return fake_misuse(function, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

static struct CUgraph_st *graph_new(void)
{
    struct CUgraph_st *graph = calloc(1, sizeof *graph);

    if (graph) {
        graph->last = &graph->first;
        fake_cuda.live_graphs++;
    }
    return graph;
}

static void graph_free(struct CUgraph_st *graph)
{
    for (struct work *work = graph->first, *next; work; work = next) {
        next = work->next;
        free(work);
    }
    free(graph);
    fake_cuda.live_graphs--;
}

CUresult fake_cuStreamBeginCapture(CUstream stream, int mode)
{
    BEGIN("cuStreamBeginCapture", true)
    if (stream->record || mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        return fake_leave(fake_misuse("cuStreamBeginCapture", INVALID_VALUE));
    stream->record = graph_new();
    return fake_leave(stream->record ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult fake_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    BEGIN("cuStreamEndCapture", true)
    if (!stream->record)
        return fake_leave(fake_misuse("cuStreamEndCapture", INVALID_VALUE));
    *graph = stream->record;
    stream->record = NULL;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuGraphInstantiate(CUgraphExec *made, CUgraph graph, unsigned long long flags)
{
    struct CUgraph_st *copy;

    BEGIN("cuGraphInstantiate", true)
    copy = flags == 0 ? graph_new() : NULL;
    if (!copy)
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    for (const struct work *work = graph->first; work; work = work->next) {
        struct work *again = calloc(1, sizeof *again + work->size);

        if (!again) {
            graph_free(copy);
            return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
        }
        memcpy(again, work, sizeof *again + work->size);
        again->next = NULL;
        *copy->last = again;
        copy->last = &again->next;
    }
    *made = (CUgraphExec)copy;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuGraphLaunch(CUgraphExec made, CUstream stream)
{
    const struct CUgraph_st *graph = (const struct CUgraph_st *)made;
    CUresult result = CUDA_SUCCESS;

    BEGIN("cuGraphLaunch", true)
    if (stream->record)
        return fake_leave(fake_records(stream, "cuGraphLaunch"));
    fake_cuda.graph_launches++;
    for (const struct work *work = graph->first; work && result == CUDA_SUCCESS; work = work->next)
        result = fake_queue(stream, work->run, work->data, work->size);
    return fake_leave(result);
}

CUresult fake_cuGraphExecDestroy(CUgraphExec made)
{
    BEGIN("cuGraphExecDestroy", true)
    graph_free((struct CUgraph_st *)made);
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuGraphDestroy(CUgraph graph)
{
    BEGIN("cuGraphDestroy", true)
    graph_free(graph);
    return fake_leave(CUDA_SUCCESS);
}
