/* SPDX-License-Identifier: MIT
 *
 * Pinned memory, and copies that may still be running when the call returns. */
#include "tests/tensor/fixture.h"

static float *floats(tn_tensor *tensor)
{
    return (float *)((char *)tn_tensor_view(tensor)->data + tn_tensor_view(tensor)->byte_offset);
}

static bool is_pinned(const tn_tensor *tensor)
{
    return tn_tensor_memory_kind(tensor) == TN_MEMORY_PINNED;
}

static tn_tensor *pinned(int64_t count)
{
    tn_tensor *tensor = tn_tensor_empty_in(TN_SHAPE(count), TN_F32, device("vault"),
                                           TN_MEMORY_PINNED);

    ck_assert_msg(tensor != NULL, "%s", tn_error_text());
    return tensor;
}

START_TEST(pinned_memory_is_the_hosts_and_goes_back_to_the_device)
{
    uint64_t scope;
    tn_tensor *x;

    room_open();
    scope = tn_scope_begin();
    x = pinned(6);
    ck_assert(is_pinned(x));
    ck_assert_ptr_eq(tn_tensor_device(x), device("cpu"));
    ck_assert_int_eq(room.pinned, 1);
    ck_assert_ptr_nonnull(tn_tensor_data(x));
    for (int i = 0; i < 6; i++)
        floats(x)[i] = (float)i;
    ck_assert(is_pinned(tn_tensor_as_strided(x, TN_SHAPE(2), TN_SHAPE(2), 1)));
    tn_scope_end(scope);
    ck_assert_int_eq(room.pinned, 0);
    ck_assert(!is_pinned(tn_tensor_empty(TN_SHAPE(2), TN_F32, device("cpu"))));
    ck_assert(!tn_failed());
    room_close();
}
END_TEST

START_TEST(a_device_without_pinned_memory_gets_ordinary_memory)
{
    tn_tensor *x, *y;

    room_open();
    x = tn_tensor_empty_in(TN_SHAPE(4), TN_F32, device("brick"), TN_MEMORY_PINNED);
    ck_assert_ptr_nonnull(x);
    ck_assert(!is_pinned(x));
    ck_assert_ptr_eq(tn_tensor_device(x), device("cpu"));
    y = tn_tensor_empty(TN_SHAPE(4), TN_F32, device("brick"));
    floats(x)[2] = 5;
    ok(tn_tensor_copy_async(y, x)); /* done at once */
    ck_assert(tn_item(tn_tensor_as_strided(y, TN_SHAPE(1), TN_SHAPE(1), 2)) == 5);
    room_close();
}
END_TEST

START_TEST(wrong_shapes_and_failures_of_the_device_leave_nothing)
{
    room_open();
    ck_assert_ptr_null(tn_tensor_empty_in(TN_SHAPE(-1), TN_F32, device("vault"), TN_MEMORY_PINNED));
    said("-1");
    ck_assert_ptr_null(
        tn_tensor_empty_in(TN_SHAPE(INT64_MAX, 8), TN_F32, device("vault"), TN_MEMORY_PINNED));
    tn_error_clear();
    room.fail_alloc = 1;
    ck_assert_ptr_null(tn_tensor_empty_in(TN_SHAPE(8), TN_F32, device("vault"), TN_MEMORY_PINNED));
    said("made to fail");
    ck_assert_int_eq(room.pinned, 0);
    ck_assert_ptr_nonnull(
        tn_tensor_empty_in(TN_SHAPE(0), TN_F32, device("vault"), TN_MEMORY_PINNED));
    room_close();
}
END_TEST

START_TEST(a_copy_to_the_device_takes_the_values_when_the_stream_comes_to_it)
{
    tn_tensor *x, *y;
    tn_stream *s;
    int64_t copies;

    room_open();
    s = tn_stream_new(device("vault"), NULL);
    tn_stream_begin(s);
    x = pinned(3);
    y = tn_tensor_empty(TN_SHAPE(3), TN_F32, device("vault"));
    floats(x)[1] = 1;
    stream_hold(s);
    copies = room.copies_in; /* with TENON_CHECK=1, copies write a pattern to new memory */
    ok(tn_tensor_copy_async(y, x));
    ck_assert_int_eq(room.copies_in, copies);
    floats(x)[1] = 2; /* a program must not; so one sees when the copy is done */
    stream_release(s);
    ck_assert_int_eq(room.copies_in, copies + 1);
    tn_stream_end();
    ck_assert(tn_item(tn_tensor_as_strided(y, TN_SHAPE(1), TN_SHAPE(1), 1)) == 2);
    tn_stream_drop(s);
    room_close();
}
END_TEST

START_TEST(tn_tensor_data_waits_for_a_copy_from_the_device)
{
    tn_tensor *x, *y;
    float back[3];

    room_open();
    x = pinned(3);
    y = tn_tensor_full(TN_SHAPE(3), 7, TN_F32, device("vault"));
    floats(x)[0] = 1;
    stream_hold(device("vault")->stream);
    ok(tn_tensor_copy_async(x, y));
    ck_assert(floats(x)[0] == 1); /* not yet */
    ck_assert(((float *)tn_tensor_data(x))[0] == 7);
    stream_hold(device("vault")->stream);
    floats(x)[0] = 1;
    ok(tn_tensor_copy_async(x, y));
    ok(tn_tensor_copy_out(x, back, sizeof back));
    ck_assert(back[0] == 7);
    stream_hold(device("vault")->stream);
    ok(tn_tensor_copy_async(y, x));
    back[0] = 9;
    ok(tn_tensor_copy_in(x, back, sizeof back)); /* after the copy has read it */
    ck_assert(tn_item(tn_tensor_as_strided(y, TN_SHAPE(1), TN_SHAPE(1), 0)) == 7);
    room_close();
}
END_TEST

START_TEST(pinned_memory_outlives_the_copies_that_use_it)
{
    uint64_t scope;
    tn_tensor *y;

    room_open();
    y = tn_tensor_full(TN_SHAPE(3), 0, TN_F32, device("vault"));
    stream_hold(device("vault")->stream);
    scope = tn_scope_begin();
    {
        tn_tensor *x = pinned(3);
        for (int i = 0; i < 3; i++)
            floats(x)[i] = 4;
        ok(tn_tensor_copy_async(y, x));
    }
    tn_scope_end(scope); /* waits, then frees */
    ck_assert_int_eq(room.pinned, 0);
    ck_assert(tn_item(tn_tensor_as_strided(y, TN_SHAPE(1), TN_SHAPE(1), 2)) == 4);
    room_close();
}
END_TEST

START_TEST(copies_on_two_streams_come_one_after_the_other)
{
    tn_tensor *x, *a, *b;
    tn_stream *s;
    int64_t waits;

    room_open();
    x = pinned(2);
    a = tn_tensor_full(TN_SHAPE(2), 1, TN_F32, device("vault"));
    b = tn_tensor_full(TN_SHAPE(2), 2, TN_F32, device("vault"));
    s = tn_stream_new(device("vault"), NULL);
    ok(tn_tensor_copy_async(x, a));
    waits = room.waits;
    tn_stream_begin(s);
    ok(tn_tensor_copy_async(x, b));
    tn_stream_end();
    ck_assert_int_eq(room.waits, waits + 1); /* of the second stream for the first copy */
    ck_assert(((float *)tn_tensor_data(x))[1] == 2);
    tn_stream_drop(s);
    room_close();
}
END_TEST

START_TEST(other_copies_are_done_as_usual)
{
    tn_tensor *x, *y, *z, *plain;

    room_open();
    x = pinned(4);
    plain = tn_tensor_empty(TN_SHAPE(4), TN_F32, device("cpu"));
    y = tn_tensor_full(TN_SHAPE(4), 3, TN_F32, device("vault"));
    z = tn_tensor_full(TN_SHAPE(4), 6, TN_F32, device("vault:1"));
    ok(tn_tensor_copy_async(plain, y)); /* not pinned */
    ck_assert(floats(plain)[3] == 3);
    ok(tn_tensor_copy_async(y, z)); /* between devices */
    ok(tn_tensor_copy_async(x, y));
    ck_assert(((float *)tn_tensor_data(x))[0] == 6);
    fails(tn_tensor_copy_async(x, tn_tensor_empty(TN_SHAPE(3), TN_F32, device("vault"))),
          TN_ERR_VALUE);
    fails(tn_tensor_copy_async(NULL, x), TN_ERR_RUNTIME);
    room_close();
}
END_TEST

START_TEST(a_lost_device_does_not_keep_pinned_memory)
{
    uint64_t scope;
    tn_tensor *y;

    room_open();
    y = tn_tensor_full(TN_SHAPE(2), 1, TN_F32, device("vault"));
    scope = tn_scope_begin();
    ok(tn_tensor_copy_async(pinned(2), y));
    room.lost = 1;
    tn_scope_end(scope);
    ck_assert_int_eq(room.pinned, 0);
    room.lost = 0;
    room_close();
}
END_TEST

RUN_TESTS("pinned memory", pinned_memory_is_the_hosts_and_goes_back_to_the_device,
          a_device_without_pinned_memory_gets_ordinary_memory,
          wrong_shapes_and_failures_of_the_device_leave_nothing,
          a_copy_to_the_device_takes_the_values_when_the_stream_comes_to_it,
          tn_tensor_data_waits_for_a_copy_from_the_device,
          pinned_memory_outlives_the_copies_that_use_it,
          copies_on_two_streams_come_one_after_the_other, other_copies_are_done_as_usual,
          a_lost_device_does_not_keep_pinned_memory)
