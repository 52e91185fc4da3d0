/* SPDX-License-Identifier: MIT
 *
 * Copies between layouts, types and devices. */
#include "tests/tensor/fixture.h"

static const char *const names[] = { "cpu", "vault:0", "vault:1", "brick" };

static tn_tensor *counted(tn_dtype dtype, const char *name)
{
    unsigned char values[24 * 16];
    tn_tensor *x;

    for (int i = 0; i < 24; i++)
        tn__convert_write(values + (size_t)i * tn_dtype_size(dtype), dtype, tn_scalar_int(i));
    tn_device_begin(device(name));
    x = tn_tensor_from(values, dtype, TN_SHAPE(4, 6));
    tn_device_end();
    ck_assert_msg(x != NULL, "%s", tn_error_last()->message);
    return x;
}

static double at(const tn_tensor *x, int64_t index)
{
    unsigned char values[64 * 16];
    tn__number number;

    ok(tn_tensor_copy_out(x, values,
                          (size_t)tn_tensor_numel(x) * tn_dtype_size(tn_tensor_dtype(x))));
    number = tn__convert_read(values + (size_t)index * tn_dtype_size(tn_tensor_dtype(x)),
                              tn_tensor_dtype(x));
    return tn__convert_number(&number);
}

START_TEST(contiguous_copies_go_between_any_two_devices)
{
    room_open();
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++) {
            TN_SCOPE;
            tn_tensor *from = counted(TN_F32, names[a]),
                      *to = tn_tensor_full(TN_SHAPE(4, 6), -1, TN_F32, device(names[b]));
            uint64_t version = tn_tensor_version(to);

            ok(tn__copy(to, from));
            ck_assert(at(to, 0) == 0 && at(to, 23) == 23);
            ck_assert_uint_eq(tn_tensor_version(to), version + 1);
        }
    ck_assert_int_eq(room.peers, 2);
    room_close();
}
END_TEST

START_TEST(layouts_and_types_are_converted_on_a_side_that_can)
{
    room_open();
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++) {
            TN_SCOPE;
            tn_tensor *from = counted(TN_I32, names[a]);
            tn_tensor *turned = tn_tensor_as_strided(from, TN_SHAPE(6, 4), TN_INTS(1, 6), 0);
            tn_tensor *to = tn_tensor_full(TN_SHAPE(6, 4), -1, TN_F64, device(names[b]));
            tn_tensor *wide = tn_tensor_full(TN_SHAPE(6, 8), -1, TN_F32, device(names[b]));
            tn_tensor *odd = tn_tensor_as_strided(wide, TN_SHAPE(6, 4), TN_INTS(8, 2), 1);
            tn_status status = tn__copy(to, turned);

            /* brick has no kernel, so layouts on it cannot be changed; the core must not change
             * them on the host instead. */
            if (a == 3) {
                ck_assert_int_eq(status, TN_ERR_NOT_IMPLEMENTED);
                tn_error_clear();
                status = tn__copy(to, tn_tensor_as_strided(from, TN_SHAPE(6, 4), TN_INTS(4, 1), 0));
                if (b == 3)
                    ck_assert_int_eq(status, TN_ERR_NOT_IMPLEMENTED);
                else
                    ok(status);
                tn_error_clear();
                continue;
            }
            if (b == 3) {
                if (status == TN_OK)
                    ck_assert(at(to, 1) == 6);
                else
                    ck_assert_int_eq(status, TN_ERR_NOT_IMPLEMENTED);
                tn_error_clear();
                ck_assert_int_eq(tn__copy(odd, turned), TN_ERR_NOT_IMPLEMENTED);
                tn_error_clear();
                continue;
            }
            ok(status);
            ck_assert(at(to, 0) == 0 && at(to, 1) == 6 && at(to, 4) == 1 && at(to, 23) == 23);
            ok(tn__copy(odd, turned));
            ck_assert(at(odd, 1) == 6 && at(odd, 23) == 23);
            ck_assert(at(wide, 0) == -1 && at(wide, 1) == 0 && at(wide, 3) == 6);
        }
    room_close();
}
END_TEST

/* A fallback would copy to the other device first, for which it needs the same kernel. */
START_TEST(a_copy_without_kernel_fails_also_if_operators_fall_back)
{
    room_open();
    ok(tn_set_fallback("cpu"));
    {
        TN_SCOPE;
        tn_tensor *from = counted(TN_I32, "brick");
        tn_tensor *turned = tn_tensor_as_strided(from, TN_SHAPE(6, 4), TN_INTS(1, 6), 0);
        tn_tensor *to = tn_tensor_full(TN_SHAPE(6, 4), -1, TN_I32, device("brick"));

        ck_assert_int_eq(tn__copy(to, turned), TN_ERR_NOT_IMPLEMENTED);
        tn_error_clear();
        ck_assert(at(to, 0) == -1 && at(to, 23) == -1);
    }
    ok(tn_set_fallback("error"));
    room_close();
}
END_TEST

START_TEST(copies_of_the_host_reach_every_layout_of_every_device)
{
    int16_t values[12], back[12];

    for (int i = 0; i < 12; i++)
        values[i] = (int16_t)(100 + i);
    room_open();
    for (int a = 0; a < 4; a++) {
        TN_SCOPE;
        tn_tensor *all = tn_tensor_full(TN_SHAPE(4, 6), 7, TN_I16, device(names[a]));
        tn_tensor *part = tn_tensor_as_strided(all, TN_SHAPE(3, 4), TN_INTS(2, 6), 1);

        ok(tn_tensor_copy_in(part, values, sizeof values));
        ok(tn_tensor_copy_out(part, back, sizeof back));
        ck_assert_int_eq(memcmp(values, back, sizeof back), 0);
        ck_assert(at(all, 0) == 7 && at(all, 1) == 100 && at(all, 2) == 7 && at(all, 7) == 101 &&
                  at(all, 3) == 104);
    }
    ck_assert(!tn_failed());
    room_close();
}
END_TEST

START_TEST(overlapping_views_are_copied_as_if_apart)
{
    tn_tensor *x;

    room_open();
    for (int a = 0; a < 2; a++) {
        x = counted(TN_F32, names[a]);
        ok(tn__copy(tn_tensor_as_strided(x, TN_SHAPE(10), TN_INTS(1), 2),
                    tn_tensor_as_strided(x, TN_SHAPE(10), TN_INTS(1), 0)));
        ck_assert(at(x, 2) == 0 && at(x, 11) == 9 && at(x, 12) == 12);
        ok(tn__copy(x, x));
        ok(tn__copy(tn_tensor_as_strided(x, TN_SHAPE(4), TN_INTS(1), 0),
                    tn_tensor_as_strided(x, TN_SHAPE(4), TN_INTS(0), 3)));
        ck_assert(at(x, 0) == 1 && at(x, 3) == 1);
    }
    room_close();
}
END_TEST

START_TEST(dense_layouts_of_one_order_are_copied_as_bytes)
{
    tn_tensor *a, *b;
    int64_t kernels;

    room_open();
    a = tn_tensor_empty_strided(TN_SHAPE(2, 3), TN_INTS(1, 2), TN_F32, NULL);
    b = tn_tensor_empty_strided(TN_SHAPE(2, 3), TN_INTS(1, 2), TN_F32, NULL);
    ok(tn_tensor_copy_in(a, (const float[6]){ 1, 2, 3, 4, 5, 6 }, 24));
    kernels = room.kernels;
    ok(tn__copy(b, a));
    ck_assert_int_eq(room.kernels, kernels);
    ck_assert(at(b, 1) == 2 && at(b, 5) == 6);
    room_close();
}
END_TEST

START_TEST(large_copies_go_in_pieces)
{
    enum { N = 5 << 20 };
    unsigned char *data = malloc(N), *back = malloc(N);
    tn_tensor *a, *b;

    room_open();
    for (int i = 0; i < N; i++)
        data[i] = (unsigned char)(i * 7 + i / 1000);
    tn_device_begin(device("vault"));
    a = tn_tensor_from(data, TN_U8, TN_SHAPE(N));
    tn_device_end();
    b = tn_tensor_empty(TN_SHAPE(N), TN_U8, device("brick"));
    ok(tn__copy(b, a));
    ok(tn_tensor_copy_out(b, back, N));
    ck_assert_int_eq(memcmp(data, back, N), 0);
    ck_assert_int_ge(room.copies_in, 3); /* the data, then pieces of 4 MiB and 1 MiB */
    free(data);
    free(back);
    room_close();
}
END_TEST

START_TEST(streams_of_two_devices_wait_for_each_other_and_the_host_for_neither)
{
    tn_tensor *a, *b;
    int64_t syncs, waits;

    room_open();
    a = tn_tensor_full(TN_SHAPE(4), 1, TN_F32, device("vault:0"));
    b = tn_tensor_full(TN_SHAPE(4), 2, TN_F32, device("vault:1"));
    syncs = room.syncs;
    waits = room.waits;
    ok(tn__copy(a, b));
    ck_assert_int_eq(room.peers, 1);
    ck_assert_int_eq(room.syncs, syncs);
    ck_assert_int_eq(room.waits, waits + 2); /* of one stream for the other, and back */
    ck_assert(at(a, 3) == 2);
    room_close();
}
END_TEST

/* Returns how many copies to the device filling a tensor needs, without those that only make it. */
static int64_t copies_of_fill(const char *name, double value)
{
    const tn_device *d = device(name);
    int64_t before = room.copies_in, empty;
    tn_tensor *x;

    tn_tensor_empty(TN_SHAPE(5), TN_F64, d); /* with TENON_CHECK=1, copies write a pattern to it */
    empty = room.copies_in - before;
    x = tn_tensor_full(TN_SHAPE(5), value, TN_F64, d);
    ck_assert(at(x, 0) == value && at(x, 4) == value);
    return room.copies_in - before - 2 * empty;
}

START_TEST(a_device_without_a_kernel_for_fill_is_filled_by_its_backend)
{
    room_open();
    ck_assert_int_eq(copies_of_fill("vault", 1.5), 0);
    ck_assert_int_eq(room.fills, 1);
    ck_assert_int_eq(copies_of_fill("brick", 2.5), 1); /* which has no fill, either */
    room_close();
}
END_TEST

START_TEST(a_device_without_memory_takes_everything_and_gives_nothing)
{
    tn_tensor *ghost, *x;
    float out[4];

    room_open();
    ghost = tn_tensor_full(TN_SHAPE(4), 1, TN_F32, device("ghost"));
    x = tn_tensor_full(TN_SHAPE(4), 1, TN_F32, NULL);
    ck_assert_uint_eq(tn_tensor_storage_size(ghost), 16);
    ok(tn__copy(ghost, x));
    ok(tn_tensor_copy_in(ghost, out, sizeof out));
    ck_assert_int_eq(tn__copy(x, ghost), TN_ERR_RUNTIME);
    said("device ghost:0: no values to copy");
    fails(tn_tensor_copy_out(ghost, out, sizeof out), TN_ERR_RUNTIME);
    ck_assert_ptr_null(tn_tensor_data(ghost));
    said("not the host's");
    ck_assert(isnan(tn_item(tn_tensor_empty(TN_SCALAR_SHAPE, TN_F32, device("ghost")))));
    tn_error_clear();
    room_close();
}
END_TEST

START_TEST(shapes_that_differ_are_named)
{
    room_open();
    ck_assert_int_eq(tn__copy(tn_tensor_full(TN_SHAPE(2, 3), 0, TN_F32, NULL),
                              tn_tensor_full(TN_SHAPE(3, 2), 0, TN_I8, NULL)),
                     TN_ERR_VALUE);
    said("copy: shapes differ, got int8[3, 2] on cpu:0; expected float32[2, 3] on cpu:0");
    ck_assert_int_eq(tn__copy(NULL, NULL), TN_ERR_RUNTIME);
    tn_error_clear();
    room_close();
}
END_TEST

RUN_TESTS("copy", contiguous_copies_go_between_any_two_devices,
          layouts_and_types_are_converted_on_a_side_that_can,
          copies_of_the_host_reach_every_layout_of_every_device,
          a_copy_without_kernel_fails_also_if_operators_fall_back,
          overlapping_views_are_copied_as_if_apart, dense_layouts_of_one_order_are_copied_as_bytes,
          large_copies_go_in_pieces,
          streams_of_two_devices_wait_for_each_other_and_the_host_for_neither,
          a_device_without_a_kernel_for_fill_is_filled_by_its_backend,
          a_device_without_memory_takes_everything_and_gives_nothing, shapes_that_differ_are_named)
