/* SPDX-License-Identifier: MIT
 *
 * Streams of the device of mutant_device.c, with the errors (mutant_choose.h) that capture_begin
 * and the other functions for recording can have. Work is done immediately unless a stream records.
 * mutant_device.c includes this file. */
struct record {
    tn_copy_args at[16];
    int count, launches;
};
struct stream {
    struct record *record;
};

static void *idle(void *user);

static tn_status stream_new(void *device, const tn_stream_args *args, void **stream)
{
    pthread_t thread;

    if (is("stream-threads"))
        pthread_create(&thread, NULL, idle, NULL);
    (void)device, (void)args;
    *stream = calloc(1, sizeof(struct stream));
    return *stream != NULL ? TN_OK : tn_fail(TN_ERR_MEMORY, "mutant: no memory for a stream");
}

static void stream_drop(void *device, void *stream)
{
    (void)device;
    free(stream);
}

static tn_status nothing_to_wait_for(void *device, void *what)
{
    (void)device, (void)what;
    return TN_OK;
}

static tn_status event_new(void *device, const tn_event_args *args, void **event)
{
    (void)device, (void)args;
    *event = malloc(1);
    return *event != NULL ? TN_OK : tn_fail(TN_ERR_MEMORY, "mutant: no memory for an event");
}

static void event_drop(void *device, void *event)
{
    (void)device;
    free(event);
}

static tn_status event_pass(void *device, void *event, void *stream)
{
    (void)device, (void)event, (void)stream;
    return TN_OK;
}

static tn_status event_query(void *device, void *event, bool *done)
{
    (void)device, (void)event;
    *done = true;
    return TN_OK;
}

static tn_status copy_or_record(void *device, const tn_copy_args *args)
{
    struct record *record = ((struct stream *)args->stream)->record;

    if (record != NULL && record->count < 16)
        record->at[record->count++] = *args;
    return record == NULL || is("capture-runs") ? copy_bytes(device, args) : TN_OK;
}

static tn_status capture_begin(void *device, const tn_capture_args *args)
{
    struct record *record = calloc(1, sizeof *record);

    (void)device;
    ((struct stream *)args->stream)->record = record;
    return record != NULL ? TN_OK : tn_fail(TN_ERR_MEMORY, "mutant: no memory for a record");
}

static tn_status capture_end(void *device, tn_capture_args *args)
{
    struct stream *stream = args->stream;

    (void)device;
    args->graph = stream->record;
    stream->record = NULL;
    return TN_OK;
}

static tn_status capture_launch(void *device, const tn_capture_args *args)
{
    struct record *record = args->graph;
    int last = record->count - is("launch-without-last");

    if (is("launch-once") && record->launches++ > 0)
        return TN_OK;
    for (int i = is("launch-last-only") ? last - 1 : 0; i < last; i++)
        copy_bytes(device, &record->at[i]);
    return TN_OK;
}

static void capture_drop(void *device, const tn_capture_args *args)
{
    (void)device;
    free(args->graph);
}

#define MUTANT_CAPTURE                                                                             \
    .copy = copy_or_record, .stream_new = stream_new, .stream_drop = stream_drop,                  \
    .stream_sync = nothing_to_wait_for, .event_new = event_new, .event_drop = event_drop,          \
    .event_record = event_pass, .event_wait = event_pass, .event_sync = nothing_to_wait_for,       \
    .event_query = event_query, .capture_begin = capture_begin, .capture_end = capture_end,        \
    .capture_launch = capture_launch, .capture_drop = capture_drop
