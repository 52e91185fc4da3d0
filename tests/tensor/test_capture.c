/* SPDX-License-Identifier: MIT
 *
 * Streams that record: launches, calls that are refused during the recording, and which memory a
 * record owns. */
#include <pthread.h>
#include <stdlib.h>

#include "tests/tensor/fixture.h"

static tn_stream *stream;

/* A stream of vault that is the current one. */
static void begin(void)
{
    room_open();
    stream = tn_stream_new(device("vault"), NULL);
    ck_assert_ptr_nonnull(stream);
    ok(tn_stream_begin(stream));
}

static void end(void)
{
    tn_stream_end();
    tn_stream_drop(stream);
    room_close();
}

static tn_tensor *numbers(float first)
{
    float values[4] = { first, first + 1, first + 2, first + 3 };
    tn_tensor *tensor = tn_tensor_empty(TN_SHAPE(4), TN_F32, device("vault"));

    ok(tn_tensor_copy_in(tensor, values, sizeof values));
    return tensor;
}

static float value(tn_tensor *tensor)
{
    float values[4];

    ok(tn_tensor_copy_out(tensor, values, sizeof values));
    return values[0];
}

START_TEST(a_launch_does_the_recorded_work_with_what_the_inputs_hold_then)
{
    begin();
    uint64_t scope = tn_scope_begin();
    tn_tensor *x = numbers(1), *y = numbers(50), *filled;
    tn_device_graph *graph;
    uint64_t version;

    ok(tn_stream_capture_begin(stream));
    ok(tn__copy(y, x));
    filled = tn_tensor_full(TN_SHAPE(4), 7, TN_F32, device("vault"));
    ck_assert_ptr_nonnull(filled);
    ck_assert_int_eq(room.copies + room.fills, 0); /* nothing was done */
    graph = tn_stream_capture_end(stream);
    ck_assert_msg(graph != NULL, "%s", tn_error_text());
    ck_assert_float_eq(value(y), 50);
    version = tn_tensor_version(y);
    ok(tn_device_graph_launch(graph, NULL));
    ck_assert_float_eq(value(y), 1);
    ck_assert_float_eq(value(filled), 7);
    ck_assert_uint_gt(tn_tensor_version(y), version);
    ok(tn_tensor_copy_in(x, (float[]){ 9, 9, 9, 9 }, 16));
    version = tn_tensor_version(x);
    ok(tn_device_graph_launch(graph, stream));
    ck_assert_float_eq(value(y), 9);
    ck_assert_uint_eq(tn_tensor_version(x), version);
    tn_scope_end(scope); /* the graph holds what it uses */
    ok(tn_device_graph_launch(graph, stream));
    tn_device_graph_drop(graph);
    tn_device_graph_drop(NULL);
    end();
}
END_TEST

START_TEST(memory_of_a_capture_is_used_by_nothing_else_until_the_graph_is_dropped)
{
    begin();
    uint64_t outer = tn_scope_begin();
    tn_tensor *x = numbers(1), *other[8];
    const tn_view *first, *second;
    tn_device_graph *graph;
    tn_memory_stats before, during, after;
    void *memory;
    uint64_t offset;
    bool guarded = getenv("TENON_CHECK") != NULL; /* memory with guard zones is not used again */

    ok(tn_device_trim(device("vault")));
    ok(tn_device_memory(device("vault"), &before));
    ok(tn_stream_capture_begin(stream));
    uint64_t inner = tn_scope_begin();
    first = tn_tensor_view(tn_tensor_empty(TN_SHAPE(4), TN_F32, device("vault")));
    memory = first->data;
    offset = first->byte_offset;
    tn_scope_end(inner);
    /* freed: it serves later work of the same capture, but not of another size */
    second = tn_tensor_view(tn_tensor_empty(TN_SHAPE(4000), TN_F32, device("vault")));
    ck_assert(second->data != memory || second->byte_offset != offset);
    inner = tn_scope_begin();
    second = tn_tensor_view(tn_tensor_empty(TN_SHAPE(3), TN_F32, device("vault")));
    ck_assert(guarded || (second->data == memory && second->byte_offset == offset));
    ok(tn__copy(tn_tensor_empty(TN_SHAPE(4), TN_F32, device("vault")), x));
    tn_scope_end(inner);
    graph = tn_stream_capture_end(stream);
    ck_assert_ptr_nonnull(graph);
    for (int i = 0; i < 8; i++) {
        const tn_view *view;

        other[i] = tn_tensor_empty(TN_SHAPE(4), TN_F32, device("vault"));
        view = tn_tensor_view(other[i]);
        ck_assert(view->data != memory || view->byte_offset != offset);
    }
    ok(tn_device_trim(device("vault"))); /* does not take it, either */
    ok(tn_device_memory(device("vault"), &during));
    ck_assert_int_eq(during.live, before.live + 8 * 16 + 16000 + 12 + 16 + (guarded ? 16 : 0));
    ok(tn_device_graph_launch(graph, NULL));
    tn_scope_end(outer);
    tn_device_graph_drop(graph);
    ok(tn_device_memory(device("vault"), &after));
    ck_assert_int_eq(after.live, 0);
    end();
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------- */

static tn_tensor *subject;
static tn_event *earlier;

static tn_status item(void)
{
    return isnan(tn_item(subject)) ? tn_error_code() : TN_OK;
}
static tn_status copy_out(void)
{
    float values[4];
    return tn_tensor_copy_out(subject, values, sizeof values);
}
static tn_status copy_in(void)
{
    float values[4] = { 0 };
    return tn_tensor_copy_in(subject, values, sizeof values);
}
static tn_status sync_stream(void)
{
    return tn_stream_sync(stream);
}
static tn_status sync_device(void)
{
    return tn_device_sync(device("vault"));
}
static tn_status record(void)
{
    return tn_event_record(device("vault"), NULL, 0) == NULL ? tn_error_code() : TN_OK;
}
static tn_status wait_event(void)
{
    return tn_event_wait(earlier, stream);
}
static tn_status query(void)
{
    return tn_event_done(earlier) ? TN_OK : tn_error_code();
}
static tn_status sync_event(void)
{
    return tn_event_sync(earlier);
}
static tn_status draw(void)
{
    return tn_random_take(4, 1, NULL, NULL);
}
static tn_status convert(void)
{
    return tn__copy(tn_tensor_empty(TN_SHAPE(1), TN_F64, device("vault")), subject);
}
static tn_status to_host(void)
{
    return tn__copy(tn_tensor_empty(TN_SHAPE(1), TN_F32, device("cpu")), subject);
}

static const struct {
    tn_status (*work)(void);
    const char *words;
} refusals[] = {
    { item, "tn_item: refused while a stream of vault:0 records" },
    { copy_out, "tn_tensor_copy_out: refused while" },
    { copy_in, "tn_tensor_copy_in: refused while" },
    { sync_stream, "tn_stream_sync: refused while" },
    { sync_device, "tn_stream_sync: refused while" },
    { record, "tn_event_record: refused while" },
    { wait_event, "tn_event_wait: refused while" },
    { query, "tn_event_done: refused while" },
    { sync_event, "tn_event_sync: refused while" },
    { draw, "tn_random_take: refused while" },
    { convert,
      "room_copy: refused while a stream of vault:0 records (tn_stream_capture_begin): the "
      "kernel is not marked TN_KERNEL_CAPTURE_SAFE" },
    { to_host, "copy: refused while" },
};

START_TEST(what_cannot_be_recorded_is_refused_by_name_and_ends_the_capture)
{
    begin();
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        uint64_t scope = tn_scope_begin();
        tn_device_graph *graph;
        tn_tensor *y, *z;

        subject = tn_tensor_empty(TN_SHAPE(1), TN_F32, device("vault"));
        if (refusals[i].work == copy_out || refusals[i].work == copy_in)
            subject = numbers(1);
        y = numbers(1);
        z = numbers(2);
        earlier = tn_event_record(device("vault"), stream, 0);
        ok(tn_stream_capture_begin(stream));
        ck_assert_int_eq(refusals[i].work(), TN_ERR_RUNTIME);
        said(refusals[i].words);
        /* The capture has failed: it refuses further calls. */
        ck_assert_int_eq(tn__copy(y, z), TN_ERR_RUNTIME);
        said("the capture has failed");
        graph = tn_stream_capture_end(stream);
        ck_assert_ptr_null(graph);
        said(refusals[i].words);
        tn_event_drop(earlier);
        tn_scope_end(scope);
        ok(tn_stream_sync(stream)); /* the stream works again */
    }
    end();
}
END_TEST

START_TEST(a_failure_of_any_call_meanwhile_ends_in_no_graph)
{
    begin();
    uint64_t scope = tn_scope_begin();
    tn_tensor *x = numbers(1);

    ok(tn_stream_capture_begin(stream));
    ck_assert_ptr_null(tn_tensor_empty(TN_SHAPE(-1), TN_F32, device("vault")));
    ck_assert_ptr_null(tn_stream_capture_end(stream));
    ck_assert_int_eq(tn_error_code(), TN_ERR_VALUE);
    tn_error_clear();
    atomic_store(&room.capture_failure, 1);
    ck_assert_int_eq(tn_stream_capture_begin(stream), TN_ERR_DEVICE);
    said("nothing to record on");
    ok(tn_stream_capture_begin(stream)); /* the stream ends with a capture under way */
    ok(tn__copy(tn_tensor_empty(TN_SHAPE(4), TN_F32, device("vault")), x));
    tn_scope_end(scope);
    end();
}
END_TEST

static void *uses_it(void *user)
{
    uint64_t scope = tn_scope_begin();
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(4), TN_F32, device("vault"));

    (void)user;
    ok(tn_tensor_copy_in(x, (float[]){ 1, 2, 3, 4 }, 16)); /* the default stream works on */
    ok(tn_stream_begin(stream));
    fails(tn_tensor_copy_in(x, (float[]){ 1, 2, 3, 4 }, 16), TN_ERR_RUNTIME);
    tn_stream_end();
    fails(tn_stream_sync(stream), TN_ERR_RUNTIME);
    ck_assert_int_eq(tn_stream_capture_begin(stream), TN_ERR_RUNTIME);
    said("the stream records already, in another thread");
    ck_assert_ptr_null(tn_stream_capture_end(stream));
    said("another thread began this capture");
    tn_scope_end(scope);
    return NULL;
}

START_TEST(one_thread_records_and_others_leave_its_stream_alone)
{
    begin();
    uint64_t scope = tn_scope_begin();
    tn_tensor *x = numbers(1), *y = numbers(2);
    tn_device_graph *graph;
    pthread_t thread;

    ok(tn_stream_capture_begin(stream));
    ok(tn__copy(y, x));
    ck_assert_int_eq(pthread_create(&thread, NULL, uses_it, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(tn_stream_capture_begin(stream), TN_ERR_RUNTIME);
    said("this thread records already");
    graph = tn_stream_capture_end(stream);
    ck_assert_msg(graph != NULL, "%s", tn_error_text());
    ok(tn_device_graph_launch(graph, NULL));
    ck_assert_float_eq(value(y), 1);
    tn_device_graph_drop(graph);
    tn_scope_end(scope);
    end();
}
END_TEST

static void *drops_it(void *user)
{
    tn_stream_drop(user);
    return NULL;
}

START_TEST(a_stream_that_another_thread_drops_records_no_more)
{
    begin();
    tn_stream *other = tn_stream_new(device("vault"), NULL);
    pthread_t thread;

    ok(tn_stream_capture_begin(other));
    ck_assert_int_eq(pthread_create(&thread, NULL, drops_it, other), 0);
    pthread_join(thread, NULL);
    ok(tn_random_take(4, 1, NULL, NULL));
    ok(tn_stream_capture_begin(stream)); /* this thread may record again */
    tn_device_graph_drop(tn_stream_capture_end(stream));
    end();
}
END_TEST

START_TEST(only_a_stream_of_a_device_that_records_can)
{
    begin();
    tn_stream *plain = tn_stream_new(device("cpu"), NULL);

    ck_assert_int_eq(tn_stream_capture_begin(plain), TN_ERR_NOT_IMPLEMENTED);
    said("device cpu:0 cannot record work");
    ck_assert_int_eq(tn_stream_capture_begin(NULL), TN_ERR_VALUE);
    tn_error_clear();
    tn_stream_end();
    ck_assert_int_eq(tn_stream_capture_begin(tn_stream_current(device("vault"))), TN_ERR_VALUE);
    said("the default stream of vault:0 cannot record");
    ok(tn_stream_begin(stream));
    ck_assert_ptr_null(tn_stream_capture_end(stream));
    said("the stream does not record");
    ck_assert_ptr_null(tn_stream_capture_end(NULL));
    tn_error_clear();
    ck_assert_int_eq(tn_device_graph_launch(NULL, NULL), TN_ERR_VALUE);
    tn_error_clear();
    tn_stream_drop(plain);
    end();
}
END_TEST

START_TEST(launches_of_a_graph_follow_each_other_on_any_stream)
{
    begin();
    uint64_t scope = tn_scope_begin();
    tn_tensor *x = numbers(1), *y = numbers(2);
    tn_stream *second = tn_stream_new(device("vault"), NULL),
              *elsewhere = tn_stream_new(device("vault:1"), NULL);
    tn_device_graph *graph, *none;
    int64_t waits;

    ok(tn_stream_capture_begin(stream));
    ok(tn__copy(y, x));
    graph = tn_stream_capture_end(stream);
    waits = room.waits;
    ok(tn_device_graph_launch(graph, stream));
    ok(tn_device_graph_launch(graph, stream));
    ck_assert_int_eq(room.waits, waits);
    ok(tn_device_graph_launch(graph, second));
    ck_assert_int_eq(room.waits, waits + 1);
    ok(tn_device_graph_launch(graph, stream));
    ck_assert_int_eq(room.waits, waits + 2);
    ck_assert_int_eq(tn_device_graph_launch(graph, elsewhere), TN_ERR_VALUE);
    said("wrong device, got vault:1; expected vault:0");
    ok(tn_stream_capture_begin(stream));
    ck_assert_int_eq(tn_device_graph_launch(graph, stream), TN_ERR_RUNTIME);
    said("a graph cannot contain another graph");
    none = tn_stream_capture_end(stream);
    ck_assert_ptr_null(none);
    tn_error_clear();
    stream_hold(second);
    ok(tn_device_graph_launch(graph, second));
    tn_device_graph_drop(graph); /* waits for the launch */
    tn_stream_drop(second);
    tn_stream_drop(elsewhere);
    tn_scope_end(scope);
    end();
}
END_TEST

/* ---- memory ---- */

static void record_and_launch(tn_tensor *y, tn_tensor *x)
{
    uint64_t scope = tn_scope_begin();
    tn_device_graph *graph = NULL;

    if (tn_stream_capture_begin(stream) == TN_OK) {
        tn_tensor *between = tn_tensor_empty(TN_SHAPE(4), TN_F32, device("vault"));
        if (between != NULL && tn__copy(between, x) == TN_OK)
            (void)tn__copy(y, between);
        graph = tn_stream_capture_end(stream);
    }
    if (graph != NULL && tn_device_graph_launch(graph, NULL) == TN_OK)
        (void)tn_device_graph_launch(graph, stream);
    tn_device_graph_drop(graph);
    tn_scope_end(scope);
}

START_TEST(each_allocation_fails_in_turn_law_4)
{
    begin();
    uint64_t scope = tn_scope_begin();
    tn_tensor *x = numbers(1), *y = numbers(2);
    int64_t failures = 0;
    bool reached = true;

    for (uint64_t n = 1; reached; n++) {
        tn_memory_stats before, after;

        ck_assert_uint_lt(n, 1000);
        ok(tn_device_memory(device("vault"), &before));
        tn__memory_fail(n);
        record_and_launch(y, x);
        reached = tn__memory_fail(0) >= n;
        ck_assert(!tn_failed() || tn_error_code() == TN_ERR_MEMORY);
        failures += tn_failed();
        tn_error_clear();
        ok(tn_device_memory(device("vault"), &after));
        ck_assert_int_eq(after.live, before.live);
        ok(tn_stream_sync(stream)); /* it records no more */
    }
    ck_assert_int_ge(failures, 3);
    ck_assert_float_eq(value(y), 1);
    tn_scope_end(scope);
    end();
}
END_TEST

RUN_TESTS("capture", each_allocation_fails_in_turn_law_4,
          a_launch_does_the_recorded_work_with_what_the_inputs_hold_then,
          memory_of_a_capture_is_used_by_nothing_else_until_the_graph_is_dropped,
          what_cannot_be_recorded_is_refused_by_name_and_ends_the_capture,
          a_failure_of_any_call_meanwhile_ends_in_no_graph,
          one_thread_records_and_others_leave_its_stream_alone,
          a_stream_that_another_thread_drops_records_no_more,
          only_a_stream_of_a_device_that_records_can,
          launches_of_a_graph_follow_each_other_on_any_stream)
