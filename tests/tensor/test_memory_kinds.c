/* SPDX-License-Identifier: MIT
 *
 * Memory of a kind that the program chooses: managed and shared. test_pinned.c has pinned
 * memory. */
#include "tests/tensor/fixture.h"

static tn_tensor *in(const char *name, int64_t count, tn_memory_kind kind)
{
    tn_tensor *tensor = tn_tensor_empty_in(TN_SHAPE(count), TN_F32, device(name), kind);

    ck_assert_msg(tensor != NULL, "%s", tn_error_text());
    ck_assert_uint_eq(tn_tensor_memory_kind(tensor), kind);
    return tensor;
}

static void fill(tn_tensor *tensor, float value)
{
    float values[8];

    for (int i = 0; i < 8; i++)
        values[i] = value;
    ok(tn_tensor_copy_in(tensor, values, (size_t)tn_tensor_numel(tensor) * sizeof *values));
}

static double at(tn_tensor *tensor, int64_t i)
{
    return tn_item(tn_tensor_as_strided(tensor, TN_SHAPE(1), TN_SHAPE(1), i));
}

START_TEST(managed_memory_is_the_devices_and_the_hosts)
{
    uint64_t scope;
    tn_tensor *x, *y;
    float *values;

    room_open();
    scope = tn_scope_begin();
    x = in("vault", 4, TN_MEMORY_MANAGED);
    ck_assert_ptr_eq(tn_tensor_device(x), device("vault"));
    values = tn_tensor_data(x);
    ck_assert_ptr_nonnull(values);
    for (int i = 0; i < 4; i++)
        values[i] = (float)(10 * i);
    y = tn_tensor_empty(TN_SHAPE(4), TN_F32, device("vault"));
    ok(tn_tensor_copy_async(y, x));
    ck_assert(at(y, 3) == 30);
    fill(x, 7);
    ck_assert(((float *)tn_tensor_data(x))[2] == 7);
    ck_assert(((float *)tn_tensor_data(tn_tensor_as_strided(x, TN_SHAPE(2), TN_SHAPE(1), 2))) ==
              values + 2);
    ck_assert_ptr_null(tn_tensor_data(y)); /* ordinary memory is not the host's */
    said("its memory is not the host's");
    tn_scope_end(scope);
    room_close();
}
END_TEST

START_TEST(tn_tensor_data_of_managed_memory_waits_for_the_device)
{
    tn_tensor *x;
    int64_t syncs;

    room_open();
    x = in("vault", 2, TN_MEMORY_MANAGED);
    stream_hold(device("vault")->stream);
    syncs = room.syncs;
    ck_assert_ptr_nonnull(tn_tensor_data(x));
    ck_assert_int_gt(room.syncs, syncs);
    room_close();
}
END_TEST

START_TEST(a_device_without_a_kind_says_which_kinds_it_has)
{
    room_open();
    ck_assert_ptr_null(tn_tensor_empty_in(TN_SHAPE(2), TN_F32, device("brick"), TN_MEMORY_MANAGED));
    ck_assert_int_eq(tn_error_code(), TN_ERR_NOT_IMPLEMENTED);
    said("device brick:0 has none of this kind, got managed; expected one of device");
    ck_assert_ptr_null(tn_tensor_empty_in(TN_SHAPE(2), TN_F32, device("ghost"), TN_MEMORY_SHARED));
    said("device ghost:0 has none of this kind, got shared");
    ck_assert_ptr_null(tn_tensor_empty_in(TN_SHAPE(2), TN_F32, device("vault"), 4));
    said("kind: unknown, got 4; expected 0 to 3");
    ck_assert_uint_eq(
        tn_tensor_memory_kind(tn_tensor_empty_in(TN_SHAPE(2), TN_F32, device("brick"), 0)),
        TN_MEMORY_DEVICE);
    ck_assert_uint_eq(tn_tensor_memory_kind(NULL), TN_MEMORY_DEVICE);
    tn_error_clear();
    ck_assert_uint_eq(tn_tensor_memory_kind(TN_NONE), TN_MEMORY_DEVICE);
    room_close();
}
END_TEST

START_TEST(failures_leave_nothing)
{
    room_open();
    ck_assert_ptr_null(
        tn_tensor_empty_in(TN_SHAPE(-1), TN_F32, device("vault"), TN_MEMORY_MANAGED));
    said("-1");
    room.hide_host = 1;
    ck_assert_ptr_null(tn_tensor_empty_in(TN_SHAPE(2), TN_F32, device("vault"), TN_MEMORY_MANAGED));
    said("backend of vault:0: returned managed memory without an address of the host");
    room.hide_host = 0;
    ck_assert_int_eq(room.bytes, 0);
    room.fail_alloc = 1; /* once: frees what is cached, and asks again */
    ck_assert_ptr_nonnull(
        tn_tensor_empty_in(TN_SHAPE(0), TN_F32, device("vault"), TN_MEMORY_SHARED));
    ck_assert(!tn_failed());
    room.limit = room.bytes + 8;
    ck_assert_ptr_null(tn_tensor_empty_in(TN_SHAPE(64), TN_F32, device("vault"), TN_MEMORY_SHARED));
    said("the limit of the test");
    room.limit = 0;
    room_close(); /* all memory went back */
}
END_TEST

START_TEST(a_host_without_memory_costs_one_tensor_and_no_memory)
{
    int64_t failures = 0;
    bool reached = true;
    tn_shared shared;

    room_open();
    ok(tn_tensor_share(in("vault", 3, TN_MEMORY_SHARED), 0, &shared));
    for (uint64_t n = 1; reached; n++) {
        uint64_t scope = tn_scope_begin();
        tn_tensor *x, *y;

        ck_assert_uint_lt(n, 100);
        tn__memory_fail(n);
        x = tn_tensor_empty_in(TN_SHAPE(3), TN_F32, device("vault"), TN_MEMORY_SHARED);
        y = tn_tensor_open_shared(&shared, TN_SHAPE(3), TN_F32, NULL);
        reached = tn__memory_fail(0) >= n;
        ck_assert((x != NULL && y != NULL) || tn_error_code() == TN_ERR_MEMORY);
        failures += x == NULL || y == NULL;
        tn_error_clear();
        tn_scope_end(scope);
    }
    ck_assert_int_ge(failures, 2);
    room_close();
}
END_TEST

START_TEST(shared_memory_is_opened_by_what_describes_it)
{
    uint64_t scope;
    tn_tensor *x, *part, *y;
    tn_shared shared;

    room_open();
    scope = tn_scope_begin();
    x = in("vault:1", 6, TN_MEMORY_SHARED);
    fill(x, 2);
    part = tn_tensor_as_strided(x, TN_SHAPE(2), TN_SHAPE(1), 3);
    ok(tn_tensor_share(part, 0, &shared));
    ck_assert_str_eq(shared.type, "vault");
    ck_assert_int_eq(shared.index, 1);
    ck_assert_int_eq(shared.fd, -1);
    ck_assert_uint_eq(shared.bytes, 24);
    ck_assert_uint_eq(shared.offset, 12);
    y = tn_tensor_open_shared(&shared, TN_SHAPE(2), TN_F32, NULL);
    ck_assert_msg(y != NULL, "%s", tn_error_text());
    ck_assert_ptr_eq(tn_tensor_device(y), device("vault:1"));
    ck_assert_uint_eq(tn_tensor_memory_kind(y), TN_MEMORY_SHARED);
    ck_assert_int_eq(room.shared_open, 1);
    ck_assert(at(tn_tensor_as_strided(y, TN_SHAPE(6), TN_SHAPE(1), 0), 5) == 2);
    fill(y, 9);
    ck_assert(at(x, 2) == 2 && at(x, 3) == 9 && at(x, 4) == 9 && at(x, 5) == 2);
    /* Only the process that made the memory shares it. */
    fails(tn_tensor_share(y, 0, &shared), TN_ERR_VALUE);
    tn_scope_end(scope);
    ck_assert_int_eq(room.shared_open, 0);
    room_close();
}
END_TEST

static void refused(const tn_shared *shared, int64_t count, tn_dtype dtype, const char *name,
                    const char *words)
{
    ck_assert_ptr_null(
        tn_tensor_open_shared(shared, TN_SHAPE(count), dtype, name != NULL ? device(name) : NULL));
    said(words);
}

START_TEST(what_other_processes_send_is_checked)
{
    uint64_t scope;
    tn_shared good, bad;

    room_open();
    scope = tn_scope_begin();
    ok(tn_tensor_share(in("vault", 6, TN_MEMORY_SHARED), 0, &good));
    refused(&good, 7, TN_F32, NULL,
            "beyond the memory, got 28 bytes from 0 on; expected at most 24");
    refused(&good, 2, TN_F32, "cpu", "device: wrong type, got cpu:0; expected vault");
    refused(&good, -1, TN_F32, NULL, "-1");
    bad = good;
    bad.offset = 22;
    refused(&bad, 1, TN_F32, NULL, "beyond the memory");
    bad.offset = UINT64_MAX - 3;
    refused(&bad, 1, TN_F32, NULL, "beyond the memory");
    bad.offset = 2;
    refused(&bad, 1, TN_F32, NULL, "dtype: does not fit the offset, got float32 at byte 2");
    bad = good;
    bad.bytes = 4096;
    refused(&bad, 2, TN_F32, NULL, "vault: only 24 bytes");
    bad.bytes = 0;
    refused(&bad, 0, TN_F32, NULL, "beyond the memory");
    bad.bytes = UINT64_MAX;
    refused(&bad, 2, TN_F32, NULL, "beyond the memory");
    bad = good;
    memset(bad.type, 'v', sizeof bad.type);
    refused(&bad, 2, TN_F32, NULL, "shared: no device");
    bad = good;
    bad.index = -1;
    refused(&bad, 2, TN_F32, NULL, "shared: no device, got index -1");
    bad.index = 7;
    refused(&bad, 2, TN_F32, NULL, "\"vault:7\": does not exist");
    bad = good;
    bad.reserved[1] = 1;
    refused(&bad, 2, TN_F32, NULL, "shared.reserved");
    bad = good;
    tn_snprint(bad.type, sizeof bad.type, "brick");
    bad.index = 0;
    refused(&bad, 2, TN_F32, NULL, "device brick:0 has none of this kind, got shared");
    tn_scope_end(scope);
    refused(&good, 2, TN_F32, NULL, "vault: no memory"); /* it was freed */
    ck_assert_ptr_null(tn_tensor_open_shared(NULL, TN_SHAPE(1), TN_F32, NULL));
    said("tn_tensor_open_shared: shared");
    room_close();
}
END_TEST

START_TEST(only_shared_memory_is_shared)
{
    tn_shared out;

    room_open();
    fails(tn_tensor_share(NULL, 0, &out), TN_ERR_RUNTIME);
    fails(tn_tensor_share(TN_NONE, 0, &out), TN_ERR_TYPE);
    ck_assert_int_eq(tn_tensor_share(in("vault", 2, TN_MEMORY_MANAGED), 0, &out), TN_ERR_VALUE);
    said("wrong memory, got managed memory of vault:0; expected shared memory");
    ck_assert_int_eq(tn_tensor_share(in("vault", 2, TN_MEMORY_DEVICE), 0, &out), TN_ERR_VALUE);
    said("got device memory");
    ck_assert_int_eq(tn_tensor_share(in("vault", 2, TN_MEMORY_SHARED), 2, &out), TN_ERR_VALUE);
    said("flags: unknown, got 0x2");
    ck_assert_int_eq(tn_tensor_share(in("vault", 2, TN_MEMORY_SHARED), TN_SHARE_FD, &out),
                     TN_ERR_NOT_IMPLEMENTED);
    said("device vault:0 has no file descriptors of its memory");
    fails(tn_tensor_share(in("vault", 2, TN_MEMORY_SHARED), 0, NULL), TN_ERR_VALUE);
    room_close();
}
END_TEST

START_TEST(a_lost_device_does_not_keep_the_memory)
{
    uint64_t scope;

    room_open();
    scope = tn_scope_begin();
    in("vault", 2, TN_MEMORY_MANAGED);
    in("vault", 2, TN_MEMORY_SHARED);
    room.lost = 1;
    ck_assert_int_eq(tn_device_sync(device("vault")), TN_ERR_LOST);
    tn_error_clear();
    tn_scope_end(scope);
    ck_assert_int_eq(room.bytes, 0);
    room.lost = 0;
    room_close();
}
END_TEST

RUN_TESTS("kinds of memory", managed_memory_is_the_devices_and_the_hosts,
          tn_tensor_data_of_managed_memory_waits_for_the_device,
          a_device_without_a_kind_says_which_kinds_it_has, failures_leave_nothing,
          a_host_without_memory_costs_one_tensor_and_no_memory,
          shared_memory_is_opened_by_what_describes_it, what_other_processes_send_is_checked,
          only_shared_memory_is_shared, a_lost_device_does_not_keep_the_memory)
