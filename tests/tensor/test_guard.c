/* SPDX-License-Identifier: MIT
 *
 * The allocator of TENON_CHECK=1: guard zones, patterns. */
#include "tests/tensor/fixture.h"

static const char *const names[] = { "cpu", "vault", "brick" };
static int complaints;

static void listen(void *user, int level, const char *plugin, const char *text)
{
    (void)user;
    (void)plugin;
    if (level == TN_LOG_ERROR && strstr(text, "out-of-bounds write") != NULL)
        complaints++;
}

static void begin(void)
{
    setenv("TENON_CHECK", "1", 1);
    room_open();
    tn_set_log_sink(listen, NULL);
    ck_assert(device("cpu")->allocator->guarded);
}

/* Writes a byte outside the tensor, by the backend. */
static void spoil(const tn_tensor *x, int64_t offset)
{
    static char byte = 1;
    const tn_device *d = x->device;
    const tn_copy_args args = {
        TN_HEAD(tn_copy_args),
        .to = { d->handle, x->view.data, x->view.byte_offset + (uint64_t)offset },
        .from = { NULL, &byte, 0 }, .bytes = 1, .stream = d->stream->handle
    };

    ok(d->type->backend.copy(d->handle, &args));
}

START_TEST(intact_memory_is_passed_over)
{
    begin();
    for (int i = 0; i < 3; i++) {
        TN_SCOPE;
        const tn_device *d = device(names[i]);
        tn_tensor *x = tn_tensor_full(TN_SHAPE(1000), 1, TN_F32, d);
        tn_memory_stats stats;

        ck_assert_ptr_nonnull(x);
        ok(tn__allocator_check(d->allocator));
        ok(tn_device_memory(d, &stats));
        ck_assert_int_eq(stats.live, 4000);
        ck_assert_int_eq(stats.cached, 0);
        ok(tn_device_trim(d));
    }
    ck_assert_int_eq(complaints, 0);
    room_close();
}
END_TEST

START_TEST(a_write_beside_a_tensor_is_found_and_placed)
{
    begin();
    for (int i = 0; i < 3; i++) {
        const tn_device *d = device(names[i]);
        uint64_t scope = tn_scope_begin();
        tn_tensor *x = tn_tensor_full(TN_SHAPE(10), 1, TN_F32, d);

        spoil(x, 42);
        ck_assert_int_eq(tn__allocator_check(d->allocator), TN_ERR_ASSERT);
        ck_assert_ptr_nonnull(strstr(tn_error_last()->message, "bytes after its end"));
        said("2 bytes after its end");
        complaints = 0;
        tn_scope_end(scope);
        ck_assert_int_eq(complaints, 1);
        said("bytes after its end");

        scope = tn_scope_begin();
        x = tn_tensor_full(TN_SHAPE(10), 1, TN_F32, d);
        spoil(x, -8);
        tn_scope_end(scope);
        said("8 bytes before its start");
        ok(tn__allocator_check(d->allocator));
    }
    room_close();
}
END_TEST

START_TEST(fresh_memory_has_a_pattern)
{
    unsigned char out[8];

    begin();
    for (int i = 0; i < 3; i++) {
        TN_SCOPE;
        ok(tn_tensor_copy_out(tn_tensor_empty(TN_SHAPE(8), TN_U8, device(names[i])), out, 8));
        ck_assert_uint_eq(out[0], 0xCB);
        ck_assert_uint_eq(out[7], 0xCB);
    }
    room_close();
}
END_TEST

START_TEST(out_of_memory_is_explained_here_too)
{
    begin();
    room.limit = 1 << 20;
    tn_tensor_empty(TN_SHAPE(1000000), TN_U8, device("brick"));
    ck_assert_ptr_null(tn_tensor_empty(TN_SHAPE(100000), TN_U8, device("brick")));
    ck_assert_int_eq(tn_error_code(), TN_ERR_MEMORY);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "out of memory on brick:0"));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "97.7 KiB requested"));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "(the device reports: "));
    said("the largest sizes: 1 x 976.6 KiB");
    room_close();
}
END_TEST

RUN_TESTS("guard", intact_memory_is_passed_over, a_write_beside_a_tensor_is_found_and_placed,
          fresh_memory_has_a_pattern, out_of_memory_is_explained_here_too)
