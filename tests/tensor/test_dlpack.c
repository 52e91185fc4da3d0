/* SPDX-License-Identifier: MIT
 *
 * DLPack in both forms: layouts, references, deleters. */
#include "tests/tensor/fixture.h"

START_TEST(layouts_are_those_of_dlpack)
{
    /* From dlpack.h 1.0, compiled for x86-64. */
    ck_assert_uint_eq(sizeof(tn_view), 48);
    ck_assert_uint_eq(offsetof(tn_view, device.type), 8);
    ck_assert_uint_eq(offsetof(tn_view, device.id), 12);
    ck_assert_uint_eq(offsetof(tn_view, ndim), 16);
    ck_assert_uint_eq(offsetof(tn_view, dtype.code), 20);
    ck_assert_uint_eq(offsetof(tn_view, dtype.bits), 21);
    ck_assert_uint_eq(offsetof(tn_view, dtype.lanes), 22);
    ck_assert_uint_eq(offsetof(tn_view, shape), 24);
    ck_assert_uint_eq(offsetof(tn_view, strides), 32);
    ck_assert_uint_eq(offsetof(tn_view, byte_offset), 40);
    ck_assert_uint_eq(sizeof(tn_dlpack), 64);
    ck_assert_uint_eq(offsetof(tn_dlpack, manager_ctx), 48);
    ck_assert_uint_eq(offsetof(tn_dlpack, deleter), 56);
    ck_assert_uint_eq(sizeof(tn_dlpack_versioned), 80);
    ck_assert_uint_eq(offsetof(tn_dlpack_versioned, version.minor), 4);
    ck_assert_uint_eq(offsetof(tn_dlpack_versioned, manager_ctx), 8);
    ck_assert_uint_eq(offsetof(tn_dlpack_versioned, deleter), 16);
    ck_assert_uint_eq(offsetof(tn_dlpack_versioned, flags), 24);
    ck_assert_uint_eq(offsetof(tn_dlpack_versioned, tensor), 32);
}
END_TEST

static int64_t live(void)
{
    tn_memory_stats stats;

    ok(tn_device_memory(device("cpu"), &stats));
    return stats.live_blocks;
}

START_TEST(an_exported_tensor_lives_until_the_consumer_is_done)
{
    tn_dlpack *plain;
    tn_dlpack_versioned *versioned;

    room_open();
    {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_full(TN_SHAPE(2, 3), 4, TN_F32, NULL), *y;
        y = tn_tensor_as_strided(x, TN_SHAPE(3, 2), TN_INTS(1, 3), 0);
        plain = tn_tensor_to_dlpack(x, NULL);
        versioned = tn_tensor_to_dlpack_versioned(y, NULL);
        /* The exported struct does not change when the tensor gets another storage. */
        ok(tn_tensor_swap(x, tn_tensor_full(TN_SHAPE(7), 0, TN_I64, NULL)));
    }
    ck_assert_int_eq(live(), 1);
    ck_assert_int_eq(plain->tensor.ndim, 2);
    ck_assert_int_eq(plain->tensor.shape[1], 3);
    ck_assert_int_eq(plain->tensor.device.type, 1);
    ck_assert_int_eq(plain->tensor.dtype.code, 2);
    ck_assert_int_eq(plain->tensor.dtype.bits, 32);
    ck_assert_int_eq(plain->tensor.dtype.lanes, 1);
    ck_assert(((float *)((char *)plain->tensor.data + plain->tensor.byte_offset))[5] == 4);
    ck_assert_uint_eq(versioned->version.major, 1);
    ck_assert_uint_eq(versioned->flags, 0);
    ck_assert_int_eq(versioned->tensor.strides[1], 3);
    plain->deleter(plain);
    ck_assert_int_eq(live(), 1);
    versioned->deleter(versioned);
    ck_assert_int_eq(live(), 0);
    room_close();
}
END_TEST

static int deleted;

static void count_deleted(tn_dlpack *self)
{
    ck_assert_ptr_eq(self->manager_ctx, &deleted);
    deleted++;
}

static void count_deleted_versioned(tn_dlpack_versioned *self)
{
    ck_assert_ptr_eq(self->manager_ctx, &deleted);
    deleted++;
}

static float memory[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
static int64_t shape[] = { 2, 3 }, strides[] = { 3, 1 };

static tn_view view_of(void *data)
{
    tn_view view = { .data = data,
                     .device = { 1, 0 },
                     .ndim = 2,
                     .dtype = { 2, 32, 1 },
                     .shape = shape,
                     .strides = strides,
                     .byte_offset = 4 };
    return view;
}

START_TEST(an_imported_tensor_calls_the_deleter_once_when_the_last_view_goes)
{
    tn_dlpack managed = { view_of(memory), &deleted, count_deleted };
    tn_tensor *view;

    room_open();
    {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_from_dlpack(&managed);
        ck_assert_msg(x != NULL, "%s", tn_error_last()->message);
        ck_assert_ptr_eq(tn_tensor_data(x), memory + 1);
        ck_assert_int_eq(tn_tensor_offset(x), 0);
        ck_assert_uint_eq(tn_tensor_storage_size(x), 24);
        ck_assert(tn_tensor_is_contiguous(x));
        view = tn_keep(tn_tensor_as_strided(x, TN_SHAPE(2), TN_INTS(1), 4));
        ck_assert_ptr_null(tn_tensor_as_strided(x, TN_SHAPE(7), TN_INTS(1), 0));
        tn_error_clear();
    }
    ck_assert_int_eq(deleted, 0);
    ck_assert(((float *)tn_tensor_data(view))[0] == 5);
    tn_tensor_drop(view);
    ck_assert_int_eq(deleted, 1);
    /* Without strides: row-major. */
    managed.tensor.strides = NULL;
    {
        TN_SCOPE;
        ck_assert_int_eq(tn_tensor_strides(tn_tensor_from_dlpack(&managed)).at[0], 3);
    }
    ck_assert_int_eq(deleted, 2);
    room_close();
}
END_TEST

START_TEST(read_only_memory_is_refused_for_writing)
{
    tn_dlpack_versioned managed = { { 1, 3 },
                                    &deleted,
                                    count_deleted_versioned,
                                    1,
                                    view_of(memory) },
                        *again;
    float values[6] = { 0 };

    room_open();
    {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_from_dlpack_versioned(&managed),
                  *y = tn_tensor_full(TN_SHAPE(2, 3), 1, TN_F32, NULL);
        ck_assert_ptr_nonnull(x);
        ck_assert_int_eq(tn_tensor_copy_in(x, values, sizeof values), TN_ERR_REFUSED);
        said("read-only");
        fails(tn__copy(tn_tensor_as_strided(x, TN_SHAPE(2, 3), TN_INTS(3, 1), 0), y),
              TN_ERR_REFUSED);
        ok(tn__copy(y, x));
        ck_assert(((float *)tn_tensor_data(y))[5] == 6);
        ck_assert_ptr_null(tn_tensor_to_dlpack(x, NULL));
        said("versioned");
        again = tn_tensor_to_dlpack_versioned(x, NULL);
        ck_assert_uint_eq(again->flags, 1);
    }
    ck_assert_int_eq(deleted, 0);
    again->deleter(again);
    ck_assert_int_eq(deleted, 1);
    room_close();
}
END_TEST

START_TEST(what_is_refused_stays_the_callers)
{
    tn_dlpack managed = { view_of(memory), &deleted, count_deleted };
    tn_dlpack_versioned versioned = {
        { 2, 0 }, &deleted, count_deleted_versioned, 0, view_of(memory)
    };
    int64_t negative[] = { -3, 1 };

    room_open();
#define refused(words)                                                                             \
    ck_assert_ptr_null(tn_tensor_from_dlpack(&managed));                                           \
    said(words);                                                                                   \
    managed.tensor = view_of(memory)
    managed.tensor.dtype.bits = 4;
    refused("code 2, 4 bits, 1 lanes");
    managed.tensor.dtype.lanes = 4;
    refused("4 lanes");
    managed.tensor.ndim = 33;
    refused("wrong number of dimensions, got 33");
    managed.tensor.device.type = 77;
    refused("type 77");
    managed.tensor.device.id = 5;
    refused("device \"cpu:5\": does not exist");
    managed.tensor.strides = negative;
    refused("negative");
    managed.tensor.byte_offset = 2;
    refused("not aligned");
    managed.tensor.data = NULL;
    refused("data: it is NULL");
    ck_assert_ptr_null(tn_tensor_from_dlpack_versioned(&versioned));
    ck_assert_int_eq(tn_error_code(), TN_ERR_VERSION);
    said("wrong version, got 2.0");
    ck_assert_ptr_null(tn_tensor_from_dlpack(NULL));
    tn_error_clear();
    ck_assert_ptr_null(tn_tensor_to_dlpack(NULL, NULL));
    tn_error_clear();
    ck_assert_ptr_null(
        tn_tensor_to_dlpack(tn_tensor_full(TN_SHAPE(2), 1, TN_F32, device("brick")), NULL));
    said("device type \"brick\": it has no number in DLPack");
    ck_assert_int_eq(deleted, 0);
    room_close();
}
END_TEST

START_TEST(every_type_survives_the_way_out_and_in)
{
    room_open();
    for (int i = 0; i < TN_DTYPE_COUNT; i++) {
        tn_dlpack *out = tn_tensor_to_dlpack(tn_tensor_full(TN_SHAPE(2), 1, (tn_dtype)i, NULL),
                                             NULL);
        tn_tensor *back = tn_tensor_from_dlpack(out);
        ck_assert_int_eq(tn_tensor_dtype(back), i);
    }
    room_close();
}
END_TEST

START_TEST(work_is_waited_for_unless_the_consumer_has_our_stream)
{
    tn_tensor *x;
    tn_dlpack *out;
    int64_t syncs;

    room_open();
    x = tn_tensor_full(TN_SHAPE(2), 1, TN_F32, device("vault"));
    syncs = room.syncs;
    out = tn_tensor_to_dlpack(x, NULL);
    ck_assert_int_gt(room.syncs, syncs);
    ck_assert_int_eq(out->tensor.device.type, 4);
    out->deleter(out);
    syncs = room.syncs;
    out = tn_tensor_to_dlpack(x, device("vault")->stream->handle);
    ck_assert_int_eq(room.syncs, syncs);
    out->deleter(out);
    room_close();
}
END_TEST

RUN_TESTS("dlpack", layouts_are_those_of_dlpack,
          an_exported_tensor_lives_until_the_consumer_is_done,
          an_imported_tensor_calls_the_deleter_once_when_the_last_view_goes,
          read_only_memory_is_refused_for_writing, what_is_refused_stays_the_callers,
          every_type_survives_the_way_out_and_in,
          work_is_waited_for_unless_the_consumer_has_our_stream)
