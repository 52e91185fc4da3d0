/* SPDX-License-Identifier: MIT
 *
 * Makes every allocation of core/tensor fail in turn: an error each time, no leak, no crash. */
#include "tests/tensor/fixture.h"

static int deleted;

static void count_deleted(tn_dlpack *self)
{
    (void)self;
    deleted++;
}

/* Calls most functions of tensors; stops at the first failure. */
static tn_status walk(void)
{
    static float memory[6] = { 1, 2, 3, 4, 5, 6 };
    static int64_t shape[] = { 2, 3 };
    static const char *const names[] = { "cpu", "vault:1", "brick" };
    static const int64_t many[8] = { 1, 2, 1, 2, 1, 2, 1, 2 };
    tn_dlpack managed = {
        { .data = memory, .device = { 1, 0 }, .ndim = 2, .dtype = { 2, 32, 1 }, .shape = shape },
        NULL,
        count_deleted
    };
    TN_SCOPE;

    for (int i = 0; i < 3; i++) {
        const tn_device *d = tn_device_find(names[i]);
        tn_tensor *x, *y, *list[1];
        tn_stream *s = NULL;
        tn_event *e = NULL;
        tn_dlpack *out;
        uint64_t scope;
        tn_status status = TN_OK;

        if (d == NULL)
            return tn_error_last_code();
        scope = tn_scope_begin();
        x = tn_tensor_full(TN_SHAPE(4, 5), 1, TN_F32, d);
        y = x == NULL ? NULL : tn_tensor_as_strided(x, TN_SHAPE(5, 4), TN_INTS(1, 5), 0);
        list[0] = y;
        tn_scope_end_with(scope, list, 1);
        if (y == NULL || tn_failed())
            return tn_error_last_code();
        x = tn_tensor_empty((tn_ints){ many, 8 }, TN_I64, d);
        if (x == NULL || tn_tensor_empty(TN_SHAPE(100000), TN_F32, d) == NULL)
            return tn_error_last_code();
        s = tn_stream_new(d, NULL);
        if (s == NULL)
            return tn_error_last_code();
        e = tn_event_record(d, s, 0);
        if (e == NULL)
            status = tn_error_last_code();
        tn_event_drop(e);
        tn_stream_drop(s);
        if (status != TN_OK)
            return status;
        if (i == 0) {
            out = tn_tensor_to_dlpack(x, NULL);
            if (out == NULL)
                return tn_error_last_code();
            if (tn_tensor_from_dlpack(out) == NULL) {
                out->deleter(out);
                return tn_error_last_code();
            }
        }
        x = tn_tensor_full(TN_SHAPE(5, 4), 2, TN_F32, tn_device_find(names[(i + 1) % 3]));
        if (x == NULL)
            return tn_error_last_code();
        status = tn__copy(x, y);
        if (status == TN_ERR_NOT_IMPLEMENTED) /* brick */
            tn_error_clear();
        else if (status != TN_OK)
            return status;
    }
    deleted = 0;
    if (tn_tensor_from_dlpack(&managed) == NULL)
        return deleted == 0 ? tn_error_last_code() : TN_OK;
    return TN_OK;
}

START_TEST(every_allocation_fails_once)
{
    tn_status status;
    uint64_t nth;
    bool reached = true;
    int failed = 0;

    room_open();
    /* Until the walk makes fewer allocations than the one that would fail. */
    for (nth = 1; reached; nth++) {
        tn__memory_fail(nth);
        status = walk();
        reached = tn__memory_fail(0) >= nth;
        ck_assert_msg(status == TN_OK || status == TN_ERR_MEMORY, "allocation %d: %s", (int)nth,
                      tn_error_last()->message);
        failed += status != TN_OK;
        tn_error_clear();
        tn_shutdown();
        ck_assert_int_eq(room.bytes, 0);
    }
    ck_assert_int_ge(failed, 30);
    ok(walk());
    room_close();
}
END_TEST

START_TEST(every_request_to_a_device_fails_once)
{
    room_open();
    for (int nth = 1; nth < 40; nth++) {
        tn_status status;

        room.fail_alloc = nth;
        status = walk();
        room.fail_alloc = 0;
        ck_assert(status == TN_OK || status == TN_ERR_MEMORY);
        tn_error_clear();
        tn_shutdown();
        ck_assert_int_eq(room.bytes, 0);
    }
    ok(walk());
    room_close();
}
END_TEST

RUN_TESTS("faults", every_allocation_fails_once, every_request_to_a_device_fails_once)
