/* SPDX-License-Identifier: MIT
 *
 * Streams and events, and memory that is used on several of them. */
#include "tests/tensor/fixture.h"

#include <unistd.h>

START_TEST(a_device_without_streams_has_trivial_ones)
{
    tn_stream *s;
    tn_event *e;

    room_open();
    s = tn_stream_new(device("cpu"), NULL);
    ck_assert_ptr_nonnull(s);
    tn_stream_begin(s);
    tn_tensor_full(TN_SHAPE(4), 1, TN_F32, NULL);
    e = tn_event_record(device("cpu"), s, 0);
    ck_assert(tn_event_done(e));
    ok(tn_event_wait(e, NULL));
    ok(tn_event_sync(e));
    tn_stream_end();
    ok(tn_stream_sync(s));
    ok(tn_device_sync(device("cpu")));
    tn_event_drop(e);
    tn_stream_drop(s);
    tn_event_drop(NULL);
    tn_stream_drop(NULL);
    room_close();
}
END_TEST

START_TEST(a_stream_has_a_priority_of_the_range_of_its_device)
{
    tn_stream_args args = { TN_HEAD(tn_stream_args), .priority = -2 };
    tn_stream *s;

    room_open();
    s = tn_stream_new(device("vault"), &args);
    ck_assert_ptr_nonnull(s);
    ck_assert_int_eq(room.priority, -2);
    tn_stream_drop(s);
    args.priority = -3;
    ck_assert_ptr_null(tn_stream_new(device("vault"), &args));
    said("priority: out of range, got -3; expected -2 to 0 on vault:0");
    args.priority = 1;
    ck_assert_ptr_null(tn_stream_new(device("vault"), &args));
    said("got 1; expected -2 to 0");
    args.priority = -1;
    ck_assert_ptr_null(tn_stream_new(device("cpu"), &args)); /* it has none */
    said("got -1; expected 0 to 0 on cpu:0");
    args.priority = 0;
    args.reserved = 7;
    ck_assert_ptr_null(tn_stream_new(device("vault"), &args));
    said("args.reserved: reserved");
    args.reserved = 0;
    args.head.kind = TN_KIND_tn_event_args;
    ck_assert_ptr_null(tn_stream_new(device("vault"), &args));
    said("expected TN_HEAD(tn_stream_args)");
    args.head.kind = TN_KIND_tn_stream_args;
    args.head.size = sizeof args.head; /* the struct of a program without any of the members */
    args.priority = 99;
    ck_assert_ptr_nonnull(s = tn_stream_new(device("vault"), &args));
    ck_assert_int_eq(room.priority, 0);
    tn_stream_drop(s);
    room_close();
}
END_TEST

START_TEST(a_stream_of_the_program_is_used_and_not_dropped)
{
    tn_stream_args args = { TN_HEAD(tn_stream_args), .external = stream_external() };
    tn_stream *s;
    tn_tensor *x;

    room_open();
    s = tn_stream_new(device("vault"), &args);
    ck_assert_ptr_nonnull(s);
    ck_assert_ptr_eq(tn_stream_native(s), stream_external());
    tn_stream_begin(s);
    ck_assert_ptr_eq(tn_stream_current(device("vault")), s);
    x = tn_tensor_full(TN_SHAPE(4), 3, TN_F32, device("vault"));
    tn_stream_end();
    ck_assert(tn_item(tn_tensor_as_strided(x, TN_SHAPE(1), TN_SHAPE(1), 2)) == 3);
    tn_stream_drop(s);
    ck_assert_ptr_ne(tn_stream_native(tn_stream_current(device("vault"))), stream_external());
    ck_assert_ptr_null(tn_stream_native(tn_stream_current(device("cpu"))));
    ck_assert(!tn_failed());
    ck_assert_ptr_null(tn_stream_new(device("brick"), &args));
    said("device brick:0 does not accept streams of the program");
    ck_assert_ptr_null(tn_stream_native(NULL));
    said("stream: it is NULL");
    room_close();
}
END_TEST

START_TEST(an_event_of_the_program_is_waited_for_and_not_dropped)
{
    tn_event_args args = { TN_HEAD(tn_event_args), .flags = TN_EVENT_TIMING };
    tn_event *e, *own;

    room_open();
    stream_hold(device("vault")->stream);
    args.external = event_external(device("vault")->stream);
    e = tn_event_new(device("vault"), &args);
    ck_assert_msg(e != NULL, "%s", tn_error_text());
    ck_assert_ptr_eq(tn_event_native(e), args.external);
    ck_assert(!tn_event_done(e));
    ok(tn_event_wait(e, NULL));
    ck_assert_ptr_eq(room.waited_for, args.external);
    ok(tn_event_sync(e));
    ck_assert(tn_event_done(e));
    own = tn_event_record(device("vault"), NULL, TN_EVENT_TIMING);
    ck_assert_ptr_nonnull(tn_event_native(own));
    ck_assert_ptr_ne(tn_event_native(own), args.external);
    ck_assert_double_eq(tn_event_elapsed(e, own), 0.5);
    tn_event_drop(own);
    tn_event_drop(e); /* its memory is the test's */
    room_close();
}
END_TEST

START_TEST(events_of_the_program_that_cannot_be_used_are_refused)
{
    tn_event_args args = { TN_HEAD(tn_event_args) };
    tn_event *e;

    room_open();
    ck_assert_ptr_null(tn_event_new(device("vault"), NULL));
    said("tn_event_new: args: it is NULL");
    ck_assert_ptr_null(tn_event_new(device("vault"), &args));
    said("external: it is NULL");
    args.external = event_external(device("vault")->stream);
    args.flags = 2;
    ck_assert_ptr_null(tn_event_new(device("vault"), &args));
    said("tn_event_new: flags: unknown, got 0x2");
    args.flags = 0;
    args.reserved = 1;
    ck_assert_ptr_null(tn_event_new(device("vault"), &args));
    said("args.reserved");
    args.reserved = 0;
    ck_assert_ptr_null(tn_event_new(device("brick"), &args));
    ck_assert_int_eq(tn_error_code(), TN_ERR_NOT_IMPLEMENTED);
    said("device brick:0 does not accept events of the program");
    args.head.size = sizeof args.head; /* an older and shorter struct */
    ck_assert_ptr_null(tn_event_new(device("vault"), &args));
    said("external: it is NULL");
    e = tn_event_record(device("cpu"), NULL, 0);
    ck_assert_ptr_null(tn_event_native(e));
    ck_assert(!tn_failed());
    tn_event_drop(e);
    ck_assert_ptr_null(tn_event_native(NULL));
    said("event: it is NULL");
    room_close();
}
END_TEST

START_TEST(events_with_timing_tell_what_lies_between_them)
{
    tn_event *a, *b, *plain, *other;
    double time;

    room_open();
    a = tn_event_record(device("vault"), NULL, TN_EVENT_TIMING);
    plain = tn_event_record(device("vault"), NULL, 0);
    b = tn_event_record(device("vault"), NULL, TN_EVENT_TIMING);
    other = tn_event_record(device("vault:1"), NULL, TN_EVENT_TIMING);
    ck_assert_double_eq(tn_event_elapsed(a, b), 1);
    ck_assert_double_eq(tn_event_elapsed(b, a), -1);
    ck_assert(isnan(tn_event_elapsed(a, plain)));
    said("to: recorded without TN_EVENT_TIMING");
    ck_assert(isnan(tn_event_elapsed(a, other)));
    said("wrong device, got vault:1; expected vault:0");
    ck_assert(isnan(tn_event_elapsed(NULL, a)));
    said("from: it is NULL");
    tn_event_drop(a);
    tn_event_drop(b);
    tn_event_drop(plain);
    tn_event_drop(other);
    /* On a device whose calls are complete when they return, events use the clock of the host. */
    a = tn_event_record(device("cpu"), NULL, TN_EVENT_TIMING);
    usleep(3000);
    b = tn_event_record(device("cpu"), NULL, TN_EVENT_TIMING);
    time = tn_event_elapsed(a, b);
    ck_assert_msg(time >= 3 && time < 3000, "%g", time);
    tn_event_drop(a);
    tn_event_drop(b);
    ck_assert_ptr_null(tn_event_record(device("cpu"), NULL, 6));
    said("flags: unknown, got 0x6; expected bits of 0x1");
    room_close();
}
END_TEST

/* Memory that the backend has allocated for one stream may be used only by work of that stream. */
START_TEST(new_memory_waits_for_the_stream_that_asked)
{
    tn_stream *s;
    tn_tensor *x, *y;

    room_open();
    s = tn_stream_new(device("vault"), NULL);
    tn_stream_begin(s);
    stream_hold(s);
    x = tn_tensor_empty(TN_SHAPE(1 << 20), TN_F32, device("vault")); /* half of a segment */
    tn_stream_end();
    y = tn_tensor_empty(TN_SHAPE(1 << 10), TN_F32, device("vault"));
    tn_tensor_keep(x);
    ck_assert_int_eq(room.allocs, 2); /* the rest of the first one is not ready */
    ck_assert_ptr_ne(tn_tensor_view(x)->data, tn_tensor_view(y)->data);
    stream_release(s);
    tn_tensor_drop(x);
    tn_stream_drop(s);
    room_close();
}
END_TEST

START_TEST(the_current_stream_is_the_innermost_of_its_device)
{
    tn_stream *a, *b, *other;

    room_open();
    a = tn_stream_new(device("vault:0"), NULL);
    b = tn_stream_new(device("vault:0"), NULL);
    other = tn_stream_new(device("vault:1"), NULL);
    ck_assert_ptr_eq(tn__stream_current(device("vault:0")), device("vault:0")->stream);
    tn_stream_begin(a);
    tn_stream_begin(other);
    ck_assert_ptr_eq(tn__stream_current(device("vault:0")), a);
    tn_stream_begin(b);
    ck_assert_ptr_eq(tn__stream_current(device("vault:0")), b);
    ck_assert_ptr_eq(tn__stream_current(device("vault:1")), other);
    tn_stream_end();
    tn_stream_end();
    tn_stream_end();
    ck_assert_ptr_eq(tn__stream_current(device("vault:1")), device("vault:1")->stream);
    tn_stream_end();
    said("tn_stream_end: no tn_stream_begin");
    ck_assert_ptr_null(tn_event_record(device("vault:1"), a, 0));
    said("wrong device, got vault:0; expected vault:1");
    tn_stream_drop(a);
    tn_stream_drop(b);
    tn_stream_drop(other);
    /* The struct of a dropped stream is used again for the next one. */
    ck_assert_ptr_nonnull(a = tn_stream_new(device("vault:0"), NULL));
    tn_stream_drop(a);
    room_close();
}
END_TEST

START_TEST(events_are_done_when_their_place_is_reached)
{
    tn_stream *s;
    tn_event *e;

    room_open();
    s = tn_stream_new(device("vault"), NULL);
    stream_hold(s);
    e = tn_event_record(device("vault"), s, 0);
    ck_assert(!tn_event_done(e));
    ok(tn_event_wait(e, NULL));
    stream_release(s);
    ck_assert(tn_event_done(e));
    stream_hold(s);
    tn_event_drop(e);
    e = tn_event_record(device("vault"), s, 0);
    ok(tn_event_sync(e));
    ck_assert(tn_event_done(e));
    tn_event_drop(e);
    tn_stream_drop(s);
    room_close();
}
END_TEST

START_TEST(a_device_waits_for_all_of_its_streams)
{
    tn_stream *s[2];
    tn_event *e[2];

    room_open();
    for (int i = 0; i < 2; i++) {
        s[i] = tn_stream_new(device("vault"), NULL);
        stream_hold(s[i]);
        e[i] = tn_event_record(device("vault"), s[i], 0);
    }
    ck_assert(!tn_event_done(e[0]) && !tn_event_done(e[1]));
    ok(tn_device_sync(device("vault")));
    ck_assert(tn_event_done(e[0]) && tn_event_done(e[1]));
    for (int i = 0; i < 2; i++) {
        tn_event_drop(e[i]);
        tn_stream_drop(s[i]);
    }
    room_close();
}
END_TEST

static void *place_of(tn_tensor *x, uint64_t *offset)
{
    *offset = x->view.byte_offset;
    return x->view.data;
}

START_TEST(memory_goes_to_another_stream_only_after_an_event)
{
    static const int64_t sizes[] = { 1000, 300000 };

    room_open();
    for (int i = 0; i < 2; i++) {
        tn_stream *s = tn_stream_new(device("vault"), NULL);
        uint64_t a, b;
        void *m, *n;

        stream_hold(s);
        tn_stream_begin(s);
        {
            TN_SCOPE;
            m = place_of(tn_tensor_empty(TN_SHAPE(sizes[i]), TN_U8, device("vault")), &a);
        }
        {
            /* On its own stream at once. */
            TN_SCOPE;
            n = place_of(tn_tensor_empty(TN_SHAPE(sizes[i]), TN_U8, device("vault")), &b);
            ck_assert(m == n && a == b);
        }
        tn_stream_end();
        {
            TN_SCOPE;
            n = place_of(tn_tensor_empty(TN_SHAPE(sizes[i]), TN_U8, device("vault")), &b);
            ck_assert_msg(m != n || a != b,
                          "the default stream got memory that another stream still uses");
        }
        ok(tn_device_trim(device("vault")));
        tn_stream_drop(s);
    }
    room_close();
}
END_TEST

START_TEST(memory_used_on_a_second_stream_waits_for_that_one)
{
    tn_stream *s;
    uint64_t a, b;
    void *m, *n;
    tn_memory_stats stats;

    room_open();
    s = tn_stream_new(device("vault"), NULL);
    stream_hold(s);
    {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_empty(TN_SHAPE(1000), TN_U8, device("vault"));
        m = place_of(x, &a);
        ok(tn__storage_use(x->storage, s));
        ok(tn__storage_use(x->storage, s));
    }
    {
        TN_SCOPE;
        n = place_of(tn_tensor_empty(TN_SHAPE(1000), TN_U8, device("vault")), &b);
        ck_assert(m != n || a != b);
    }
    stream_release(s);
    {
        TN_SCOPE;
        bool again = false;
        for (int i = 0; i < 3000 && !again; i++) {
            n = place_of(tn_tensor_empty(TN_SHAPE(1000), TN_U8, device("vault")), &b);
            again = m == n && a == b;
        }
        ck_assert_msg(again, "the memory never came back");
    }
    ok(tn_device_memory(device("vault"), &stats));
    ck_assert_int_eq(stats.live, 0);
    tn_stream_drop(s);
    room_close();
}
END_TEST

START_TEST(more_streams_than_places_are_waited_for)
{
    tn_stream *s[8];

    room_open();
    for (int i = 0; i < 8; i++)
        s[i] = tn_stream_new(device("vault"), NULL);
    {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_empty(TN_SHAPE(1000), TN_U8, device("vault"));
        for (int i = 0; i < 8; i++)
            ok(tn__storage_use(x->storage, s[i]));
        ck_assert_int_eq(room.syncs, 4);
    }
    for (int i = 0; i < 8; i++)
        tn_stream_drop(s[i]);
    room_close();
}
END_TEST

START_TEST(a_failure_that_the_allocator_met_is_told_at_the_next_sync)
{
    room_open();
    tn_keep(TN_NONE);
    tn_tensor_full(TN_SHAPE(4), 1, TN_F32, device("vault"));
    room.stream_failure = 1;
    ok(tn_device_trim(device("vault")));
    ck_assert(!tn_failed());
    ck_assert_int_eq(tn_device_sync(device("vault")), TN_ERR_DEVICE);
    said("a kernel wrote out of bounds");
    ok(tn_device_sync(device("vault")));
    room.stream_failure = 1;
    ck_assert_int_eq(tn_stream_sync(device("vault")->stream), TN_ERR_DEVICE);
    said("a kernel wrote out of bounds");
    room_close();
}
END_TEST

START_TEST(a_lost_device_says_so_from_then_on_and_others_live)
{
    tn_tensor *x;
    float out[4];
    tn_event *e;

    room_open();
    x = tn_tensor_full(TN_SHAPE(4), 1, TN_F32, device("vault"));
    e = tn_event_record(device("vault"), NULL, 0);
    room.lost = 1;
    fails(tn_tensor_copy_out(x, out, sizeof out), TN_ERR_LOST);
    room.lost = 0;
    ck_assert_int_eq(tn_tensor_copy_out(x, out, sizeof out), TN_ERR_LOST);
    said("device vault:0: lost");
    ck_assert_ptr_null(tn_tensor_empty(TN_SHAPE(4), TN_F32, device("vault")));
    ck_assert_int_eq(tn_error_code(), TN_ERR_LOST);
    tn_error_clear();
    ck_assert_ptr_null(tn_stream_new(device("vault"), NULL));
    tn_error_clear();
    fails(tn_device_sync(device("vault")), TN_ERR_LOST);
    fails(tn_device_trim(device("vault")), TN_ERR_LOST);
    ck_assert(!tn_event_done(e));
    tn_error_clear();
    tn_event_drop(e);
    ck_assert_ptr_nonnull(tn_tensor_full(TN_SHAPE(4), 1, TN_F32, device("vault:1")));
    ck_assert_ptr_nonnull(tn_tensor_full(TN_SHAPE(4), 1, TN_F32, NULL));
    room_close();
}
END_TEST

RUN_TESTS("stream", a_device_without_streams_has_trivial_ones,
          a_stream_has_a_priority_of_the_range_of_its_device,
          a_stream_of_the_program_is_used_and_not_dropped,
          an_event_of_the_program_is_waited_for_and_not_dropped,
          events_of_the_program_that_cannot_be_used_are_refused,
          events_with_timing_tell_what_lies_between_them,
          new_memory_waits_for_the_stream_that_asked,
          the_current_stream_is_the_innermost_of_its_device,
          events_are_done_when_their_place_is_reached, a_device_waits_for_all_of_its_streams,
          memory_goes_to_another_stream_only_after_an_event,
          memory_used_on_a_second_stream_waits_for_that_one,
          more_streams_than_places_are_waited_for,
          a_failure_that_the_allocator_met_is_told_at_the_next_sync,
          a_lost_device_says_so_from_then_on_and_others_live)
