/* SPDX-License-Identifier: MIT
 *
 * Tensors: making, asking, views, scopes. */
#include "tests/tensor/fixture.h"

#include <pthread.h>

static int64_t live(const char *name)
{
    tn_memory_stats stats;

    ok(tn_device_memory(device(name), &stats));
    return stats.live_blocks;
}

/* ---- making ---- */

START_TEST(a_new_tensor_is_row_major_and_on_the_default_device)
{
    tn_tensor *x;

    room_open();
    x = tn_tensor_empty(TN_SHAPE(2, 3, 4), TN_DTYPE_AUTO, NULL);
    ck_assert_ptr_nonnull(x);
    ck_assert_str_eq(tn_device_name(tn_tensor_device(x)), "cpu:0");
    ck_assert_int_eq(tn_tensor_dtype(x), TN_F32);
    ck_assert_int_eq(tn_tensor_ndim(x), 3);
    ck_assert_int_eq(tn_tensor_numel(x), 24);
    ck_assert_int_eq(tn_tensor_size(x, -1), 4);
    ck_assert_int_eq(tn_tensor_size(x, 0), 2);
    ck_assert_int_eq(tn_tensor_strides(x).at[0], 12);
    ck_assert_int_eq(tn_tensor_strides(x).at[1], 4);
    ck_assert_int_eq(tn_tensor_strides(x).at[2], 1);
    ck_assert(tn_tensor_is_contiguous(x));
    ck_assert_uint_eq(tn_tensor_storage_size(x), 96);
    ck_assert_uint_eq((uintptr_t)tn_tensor_data(x) % 64, 0);
    ck_assert_int_eq(tn_tensor_size(x, 3), -1);
    said("tn_tensor_size: dim: out of range, got 3; expected -3 to 2");
    room_close();
}
END_TEST

START_TEST(zero_sizes_and_no_dimensions_are_tensors_too)
{
    tn_tensor *none, *scalar;

    room_open();
    none = tn_tensor_empty(TN_SHAPE(3, 0, 2), TN_F64, NULL);
    ck_assert_ptr_nonnull(none);
    ck_assert_int_eq(tn_tensor_numel(none), 0);
    ck_assert_int_eq(tn_tensor_strides(none).at[0], 2);
    ck_assert(tn_tensor_is_contiguous(none));
    ck_assert_uint_eq(tn_tensor_storage_size(none), 0);
    ok(tn_tensor_copy_out(none, NULL, 0));
    scalar = tn_tensor_full(TN_SCALAR_SHAPE, 2.5, TN_F64, NULL);
    ck_assert_ptr_nonnull(scalar);
    ck_assert_int_eq(tn_tensor_ndim(scalar), 0);
    ck_assert_int_eq(tn_tensor_numel(scalar), 1);
    ck_assert(tn_item(scalar) == 2.5);
    room_close();
}
END_TEST

START_TEST(sizes_that_cannot_be_are_refused_with_words)
{
    static const int64_t many[17] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

    room_open();
    ck_assert_ptr_null(tn_tensor_empty(TN_SHAPE(2, -3), TN_F32, NULL));
    said("shape: negative size, got [2, -3]");
    ck_assert_ptr_null(tn_tensor_empty(TN_SHAPE(INT64_MAX, 2), TN_F32, NULL));
    said("too many elements");
    ck_assert_ptr_null(tn_tensor_empty(TN_SHAPE(INT64_MAX - 1), TN_F32, NULL));
    said("tensor: sizes or strides too large");
    ck_assert_ptr_null(tn_tensor_empty(TN_SHAPE(0, INT64_MAX), TN_F32, NULL));
    said("shape: too large, got 9223372036854775807 or more for dimension 1; expected less");
    ck_assert_ptr_null(tn_tensor_empty(TN_SHAPE(INT64_MAX / 8), TN_F64, NULL));
    said("out of memory on cpu:0");
    ck_assert_ptr_null(tn_tensor_empty((tn_ints){ many, 17 }, TN_F32, NULL));
    said("0 to 16");
    ck_assert_ptr_null(tn_tensor_empty((tn_ints){ NULL, 2 }, TN_F32, NULL));
    tn_error_clear();
    ck_assert_ptr_null(tn_tensor_empty(TN_SHAPE(2), (tn_dtype)77, NULL));
    said("dtype: unknown");
    /* A size of 0 among large sizes is not an overflow. */
    ck_assert_ptr_nonnull(tn_tensor_empty(TN_SHAPE(INT64_MAX - 1, INT64_MAX - 1, 0), TN_F32, NULL));
    ck_assert_ptr_nonnull(tn_tensor_empty((tn_ints){ many, 16 }, TN_F32, NULL));
    /* Without elements, strides may be any numbers that can be multiplied with the sizes and then
     * counted in bytes. Those that cannot are 0. */
    tn_tensor *none = tn_tensor_empty(TN_SHAPE(2, 0, INT64_MAX / 17), TN_C128, NULL);
    ck_assert_int_eq(tn_tensor_strides(none).at[0], INT64_MAX / 17);
    none = tn_tensor_empty(TN_SHAPE(2, 0, INT64_MAX / 15), TN_C128, NULL);
    ck_assert_int_eq(tn_tensor_strides(none).at[0], 0);
    ck_assert_int_eq(tn_tensor_strides(none).at[2], 1);
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(2), TN_F32, NULL);
    ck_assert_ptr_nonnull(tn_tensor_as_strided(x, TN_SHAPE(9, 0), TN_INTS(1000, 1 << 30), 0));
    ck_assert_ptr_null(tn_tensor_as_strided(x, TN_SHAPE(9, 0), TN_INTS(INT64_MAX / 4, 1), 0));
    said("tensor: sizes or strides too large");
    none = tn_tensor_as_strided(x, TN_SHAPE(0), TN_INTS(INT64_MAX / 4), 0);
    ck_assert_int_eq(tn_tensor_strides(none).at[0], 0);
    ck_assert_ptr_null(tn_tensor_as_strided(x, TN_SHAPE(0), TN_INTS(INT64_MAX), 1));
    said("tensor: sizes or strides too large");
    room_close();
}
END_TEST

START_TEST(strides_of_ones_own_may_not_lay_elements_over_each_other)
{
    tn_tensor *x;

    room_open();
    x = tn_tensor_empty_strided(TN_SHAPE(2, 3), TN_INTS(1, 2), TN_F32, NULL);
    ck_assert_ptr_nonnull(x);
    ck_assert(!tn_tensor_is_contiguous(x));
    ck_assert_uint_eq(tn_tensor_storage_size(x), 24);
    ck_assert_ptr_nonnull(tn_tensor_empty_strided(TN_SHAPE(2, 3), TN_INTS(0, 1), TN_F32, NULL));
    /* The strides do not nest, but no two elements have the same offset: 0 2 4, 3 5 7. */
    ck_assert_ptr_nonnull(tn_tensor_empty_strided(TN_SHAPE(2, 3), TN_INTS(3, 2), TN_F32, NULL));
    ck_assert_ptr_null(tn_tensor_empty_strided(TN_SHAPE(2, 3), TN_INTS(2, 1), TN_F32, NULL));
    said("elements overlap");
    ck_assert_ptr_null(tn_tensor_empty_strided(TN_SHAPE(2, 3), TN_INTS(-3, 1), TN_F32, NULL));
    said("negative");
    ck_assert_ptr_null(tn_tensor_empty_strided(TN_SHAPE(2, 3), TN_INTS(3), TN_F32, NULL));
    said("got 1; expected 2");
    ck_assert_ptr_null(
        tn_tensor_empty_strided(TN_SHAPE(2, 3), TN_INTS(INT64_MAX, 1), TN_F32, NULL));
    tn_error_clear();
    ck_assert_ptr_null(
        tn_tensor_empty_strided(TN_SHAPE(1 << 20, 1 << 20), TN_INTS(1, 1), TN_F32, NULL));
    tn_error_clear();
    room_close();
}
END_TEST

START_TEST(values_come_in_and_go_out_in_row_major_order)
{
    static const float values[6] = { 1, 2, 3, 4, 5, 6 };
    float out[6] = { 0 };
    tn_tensor *x, *t;

    room_open();
    x = tn_tensor_from(values, TN_F32, TN_SHAPE(2, 3));
    ck_assert_ptr_nonnull(x);
    t = tn_tensor_as_strided(x, TN_SHAPE(3, 2), TN_INTS(1, 3), 0);
    ok(tn_tensor_copy_out(t, out, sizeof out));
    ck_assert(out[0] == 1 && out[1] == 4 && out[2] == 2 && out[5] == 6);
    fails(tn_tensor_copy_out(x, out, 8), TN_ERR_VALUE);
    ck_assert_int_eq(tn_tensor_copy_out(x, out, 8), TN_ERR_VALUE);
    said("memory: wrong size, got 8 bytes; expected 24 for float32[2, 3] on cpu:0");
    fails(tn_tensor_copy_in(x, NULL, 24), TN_ERR_VALUE);
    room_close();
}
END_TEST

START_TEST(full_works_for_every_type_with_a_kernel_and_without)
{
    static const char *const names[] = { "cpu", "brick", "vault:1" };
    unsigned char out[4 * 16];

    room_open();
    for (int d = 0; d < 3; d++)
        for (int i = 0; i < TN_DTYPE_COUNT; i++) {
            tn_tensor *x = tn_tensor_full(TN_SHAPE(2, 2), i == TN_BOOL ? 1 : 3, (tn_dtype)i,
                                          device(names[d]));
            tn__number number;

            ck_assert_msg(x != NULL, "%s", tn_error_last()->message);
            ok(tn_tensor_copy_out(x, out, 4 * tn_dtype_size((tn_dtype)i)));
            number = tn__convert_read(out + 3 * tn_dtype_size((tn_dtype)i), (tn_dtype)i);
            ck_assert(tn__convert_number(&number) == (i == TN_BOOL ? 1 : 3));
        }
    ck_assert(!tn_failed());
    room_close();
}
END_TEST

START_TEST(item_reads_one_element_and_says_why_not_otherwise)
{
    int8_t minus = -7;
    tn_tensor *x;

    room_open();
    x = tn_tensor_from(&minus, TN_I8, TN_SHAPE(1, 1));
    ck_assert(tn_item(x) == -7);
    x = tn_tensor_empty(TN_SHAPE(2), TN_F32, NULL);
    ck_assert(isnan(tn_item(x)));
    said("float32[2] on cpu:0: wrong number of elements, got 2");
    x = tn_tensor_full(TN_SHAPE(1), tn_scalar_complex(1, 2), TN_C64, NULL);
    ck_assert(isnan(tn_item(x)));
    said("not real, got 1.0 and 2.0j");
    ck_assert(tn_item(tn_tensor_full(TN_SHAPE(1), 3, TN_C64, NULL)) == 3);
    room_close();
}
END_TEST

static int released;

static void count_release(void *user, void *data)
{
    ck_assert_ptr_eq(user, &released);
    ck_assert_ptr_nonnull(data);
    released++;
}

START_TEST(wrapped_memory_is_used_as_it_is_and_released_once)
{
    static float data[6] = { 1, 2, 3, 4, 5, 6 };
    static const int64_t strides[] = { 1, 3 };

    room_open();
    {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_wrap(data, TN_F32, TN_SHAPE(3, 2), strides, NULL, count_release,
                                      &released),
                  *y;
        ck_assert_ptr_eq(tn_tensor_data(x), data);
        y = tn_tensor_as_strided(x, TN_SHAPE(2), TN_INTS(1), 4);
        ((float *)tn_tensor_data(y))[0] = 50;
        ck_assert(data[4] == 50);
        ck_assert_ptr_null(tn_tensor_as_strided(x, TN_SHAPE(3), TN_INTS(1), 4));
        said("view: beyond its storage, got 28 bytes; expected at most 24");
        ck_assert_int_eq(released, 0);
    }
    ck_assert_int_eq(released, 1);
    /* After a refusal the caller still owns the memory. */
    ck_assert_ptr_null(tn_tensor_wrap((char *)data + 1, TN_F32, TN_SHAPE(2), NULL, NULL,
                                      count_release, &released));
    said("not aligned");
    ck_assert_ptr_null(
        tn_tensor_wrap(NULL, TN_F32, TN_SHAPE(2), NULL, NULL, count_release, &released));
    said("NULL");
    ck_assert_ptr_null(
        tn_tensor_wrap(data, TN_F32, TN_SHAPE(2), NULL, device("vault"), count_release, &released));
    said("device vault:0: cannot use memory of the program");
    ck_assert_int_eq(released, 1);
    room_close();
}
END_TEST

/* ---- views ---- */

START_TEST(views_share_storage_and_version)
{
    tn_tensor *x, *y, *z;
    uint64_t before;

    room_open();
    x = tn_tensor_full(TN_SHAPE(4, 4), 1, TN_F32, NULL);
    y = tn_tensor_as_strided(x, TN_SHAPE(4), TN_INTS(4), 2);
    z = tn_tensor_full(TN_SHAPE(4), 5, TN_F32, NULL);
    ck_assert(tn_tensor_shares_storage(x, y));
    ck_assert(!tn_tensor_shares_storage(x, z));
    ck_assert_int_eq(tn_tensor_offset(y), 2);
    ck_assert(!tn_tensor_is_contiguous(y));
    before = tn_tensor_version(x);
    ok(tn__copy(y, z));
    ck_assert_uint_eq(tn_tensor_version(x), before + 1);
    tn_tensor_touch(x);
    ck_assert_uint_eq(tn_tensor_version(y), before + 2);
    ck_assert(((float *)tn_tensor_data(x))[6] == 5 && ((float *)tn_tensor_data(x))[5] == 1);
    ck_assert(tn__tensor_overlap(x, y) && !tn__tensor_overlap(x, z));
    ck_assert(tn__tensor_same_view(x, x) && !tn__tensor_same_view(x, y));
    /* Two halves of one storage do not overlap. */
    ck_assert(!tn__tensor_overlap(tn_tensor_as_strided(x, TN_SHAPE(8), TN_INTS(1), 0),
                                  tn_tensor_as_strided(x, TN_SHAPE(8), TN_INTS(1), 8)));
    room_close();
}
END_TEST

START_TEST(contiguous_and_dense_are_told_apart)
{
    tn_tensor *x;

    room_open();
    x = tn_tensor_empty(TN_SHAPE(2, 3, 4), TN_F32, NULL);
    ck_assert(
        tn__tensor_is_dense(tn_tensor_as_strided(x, TN_SHAPE(4, 2, 3), TN_INTS(1, 12, 4), 0)));
    ck_assert(!tn__tensor_is_dense(tn_tensor_as_strided(x, TN_SHAPE(2, 3), TN_INTS(12, 4), 0)));
    ck_assert(!tn__tensor_is_dense(tn_tensor_as_strided(x, TN_SHAPE(2, 3), TN_INTS(0, 1), 0)));
    ck_assert(tn_tensor_is_contiguous(tn_tensor_as_strided(x, TN_SHAPE(1, 4), TN_INTS(99, 1), 0)));
    ck_assert(tn_tensor_is_contiguous(tn_tensor_as_strided(x, TN_SHAPE(1), TN_INTS(7), 0)));
    room_close();
}
END_TEST

START_TEST(swap_exchanges_what_tensors_look_at_and_nothing_else)
{
    int64_t sizes[8] = { 1, 2, 1, 2, 1, 2, 1, 2 };
    tn_tensor *a, *b;

    room_open();
    a = tn_tensor_full(TN_SHAPE(2), 1, TN_F32, NULL);
    b = tn_tensor_full((tn_ints){ sizes, 8 }, 2, TN_F64, device("brick"));
    a->requires_grad = true;
    ok(tn_tensor_swap(a, b));
    ck_assert_int_eq(tn_tensor_ndim(a), 8);
    ck_assert_int_eq(tn_tensor_size(a, 1), 2);
    ck_assert_int_eq(tn_tensor_dtype(a), TN_F64);
    ck_assert(a->requires_grad && !b->requires_grad);
    ck_assert_str_eq(tn_device_name(tn_tensor_device(a)), "brick:0");
    ck_assert_int_eq(tn_tensor_size(b, 0), 2);
    ck_assert_ptr_eq(b->view.shape, b->dims);
    ck_assert(((float *)tn_tensor_data(b))[1] == 1);
    ok(tn_tensor_swap(a, a));
    room_close();
}
END_TEST

START_TEST(swap_leaves_no_whole_numbers_that_require_gradients)
{
    const tn_dtype whole[] = { TN_I64, TN_U8, TN_BOOL }, parts[] = { TN_F16, TN_F64, TN_C64 };

    room_open();
    for (int i = 0; i < 3; i++) {
        tn_tensor *x = tn_tensor_full(TN_SHAPE(2), 1, TN_F32, NULL),
                  *y = tn_tensor_full(TN_SHAPE(2), 1, whole[i], NULL);
        x->requires_grad = true;
        for (int turn = 0; turn < 2; turn++) {
            ck_assert_int_eq(turn ? tn_tensor_swap(x, y) : tn_tensor_swap(y, x), TN_ERR_RUNTIME);
            ck_assert_ptr_nonnull(strstr(tn_error_text(), "wrong dtype"));
            ck_assert_ptr_nonnull(strstr(tn_error_text(), tn_dtype_name(whole[i])));
            tn_error_clear();
            ck_assert_int_eq(tn_tensor_dtype(x), TN_F32);
            ck_assert_int_eq(tn_tensor_dtype(y), whole[i]);
        }
        ok(tn_tensor_swap(x, tn_tensor_full(TN_SHAPE(2), 1, parts[i], NULL)));
        ck_assert_int_eq(tn_tensor_dtype(x), parts[i]);
    }
    room_close();
}
END_TEST

/* ---- what is not a tensor ---- */

START_TEST(a_null_tensor_passes_through_without_a_second_error)
{
    const char *first;

    room_open();
    ck_assert_ptr_null(tn_tensor_empty(TN_SHAPE(-1), TN_F32, NULL));
    first = tn_error_text();
    ck_assert_ptr_null(tn_tensor_as_strided(NULL, TN_SHAPE(1), TN_INTS(1), 0));
    ck_assert_ptr_null(tn_keep(NULL));
    ck_assert_ptr_null(tn_tensor_to_scope(NULL));
    ck_assert_int_eq(tn__tensor_bad(NULL, "test"), TN_ERR_VALUE);
    ck_assert_int_eq(tn_tensor_copy_out(NULL, NULL, 0), TN_ERR_VALUE);
    ck_assert_str_eq(tn_error_last()->message, first);
    tn_error_clear();
    /* Without a failure on record one is recorded. */
    ck_assert_int_eq(tn_tensor_copy_out(NULL, NULL, 0), TN_ERR_RUNTIME);
    tn_error_clear();
    ck_assert_int_eq(tn_tensor_copy_out(TN_NONE, NULL, 0), TN_ERR_TYPE);
    said("TN_NONE");
    ck_assert_int_eq(tn_tensor_dtype(NULL), TN_DTYPE_AUTO);
    ck_assert_ptr_null(tn_tensor_device(TN_NONE));
    ck_assert_int_eq(tn_tensor_shape(NULL).count, 0);
    tn_tensor_drop(NULL);
    tn_tensor_drop(TN_NONE);
    ck_assert_ptr_eq(tn_keep(TN_NONE), TN_NONE);
    room_close();
}
END_TEST

/* ---- scopes ---- */

START_TEST(a_scope_ends_with_its_block_however_that_is_left)
{
    room_open();
    for (int i = 0; i < 3; i++) {
        TN_SCOPE;
        ck_assert_ptr_nonnull(tn_tensor_empty(TN_SHAPE(4), TN_F32, NULL));
        ck_assert_int_eq(live("cpu"), 1);
        if (i == 1)
            continue;
    }
    ck_assert_int_eq(live("cpu"), 0);
    room_close();
}
END_TEST

START_TEST(ending_an_outer_scope_ends_those_inside)
{
    uint64_t outer, inner;

    room_open();
    outer = tn_scope_begin();
    tn_tensor_empty(TN_SHAPE(4), TN_F32, NULL);
    inner = tn_scope_begin();
    tn_tensor_empty(TN_SHAPE(4), TN_F32, NULL);
    tn_scope_begin();
    tn_tensor_empty(TN_SHAPE(4), TN_F32, NULL);
    ck_assert_int_eq(live("cpu"), 3);
    tn_scope_end(outer);
    ck_assert_int_eq(live("cpu"), 0);
    /* Scopes that have ended may be ended again. */
    tn_scope_end(inner);
    tn_scope_end(outer);
    tn_scope_end(UINT64_MAX);
    said("was not begun by this thread");
    ck_assert(!tn_failed());
    room_close();
}
END_TEST

START_TEST(results_move_to_the_scope_around)
{
    uint64_t outer, inner;
    tn_tensor *a, *b, *mine, *list[5];

    room_open();
    mine = tn_keep(tn_tensor_empty(TN_SHAPE(4), TN_F32, NULL));
    outer = tn_scope_begin();
    inner = tn_scope_begin();
    a = tn_tensor_empty(TN_SHAPE(4), TN_F32, NULL);
    b = tn_tensor_empty(TN_SHAPE(8), TN_F32, NULL);
    (void)b;
    tn_tensor_empty(TN_SHAPE(8), TN_F32, NULL);
    list[0] = a;
    list[1] = NULL;
    list[2] = TN_NONE;
    list[3] = a;
    list[4] = mine;
    tn_scope_end_with(inner, list, 5);
    ck_assert_int_eq(live("cpu"), 2);
    ck_assert_int_eq(tn_tensor_numel(a), 4);
    tn_scope_end(outer);
    ck_assert_int_eq(live("cpu"), 1);
    ck_assert_int_eq(tn_tensor_numel(mine), 4);
    tn_tensor_drop(mine);
    room_close();
}
END_TEST

START_TEST(keep_and_drop_pair_and_to_scope_gives_away)
{
    tn_tensor *x;

    room_open();
    {
        TN_SCOPE;
        x = tn_keep(tn_tensor_empty(TN_SHAPE(4), TN_F32, NULL));
    }
    ck_assert_int_eq(live("cpu"), 1);
    {
        TN_SCOPE;
        ck_assert_ptr_eq(tn_tensor_to_scope(x), x);
    }
    ck_assert_int_eq(live("cpu"), 0);
    room_close();
}
END_TEST

static int warnings;

static void count_warnings(void *user, int level, const char *plugin, const char *text)
{
    (void)user;
    (void)plugin;
    if (level == TN_LOG_WARNING && strstr(text, "root scope") != NULL)
        warnings++;
}

START_TEST(the_root_scope_warns_once_when_it_holds_many)
{
    room_open();
    tn_set_log_sink(count_warnings, NULL);
    for (int i = 0; i < 65535; i++)
        tn_tensor_empty(TN_SHAPE(0), TN_F32, NULL);
    ck_assert_int_eq(warnings, 0);
    for (int i = 0; i < 10; i++)
        tn_tensor_empty(TN_SHAPE(0), TN_F32, NULL);
    ck_assert_int_eq(warnings, 1);
    tn_set_log_sink(NULL, NULL);
    room_close();
}
END_TEST

static void *thread_that_leaves_things(void *scope)
{
    tn_tensor_empty(TN_SHAPE(100), TN_F32, NULL);
    tn_scope_begin();
    tn_tensor_empty(TN_SHAPE(100), TN_F32, NULL);
    tn_scope_end(*(uint64_t *)scope);
    ck_assert_int_eq(tn_error_code(), TN_ERR_RUNTIME);
    return NULL;
}

START_TEST(a_thread_drops_what_it_holds_when_it_ends)
{
    pthread_t thread;
    uint64_t scope;
    tn_memory_stats stats;

    room_open();
    scope = tn_scope_begin();
    tn_tensor_empty(TN_SHAPE(4), TN_F32, NULL);
    pthread_create(&thread, NULL, thread_that_leaves_things, &scope);
    pthread_join(thread, NULL);
    ok(tn_device_memory(device("cpu"), &stats));
    ck_assert_int_eq(stats.live_blocks, 1);
    ck_assert_int_eq(stats.live, 16);
    tn_scope_end(scope);
    room_close();
}
END_TEST

START_TEST(a_tensor_outlives_shutdown_and_the_device_opens_again)
{
    tn_tensor *x;

    room_open();
    x = tn_keep(tn_tensor_full(TN_SHAPE(4), 3, TN_F32, NULL));
    tn_shutdown();
    ck_assert(((float *)tn_tensor_data(x))[2] == 3);
    tn_tensor_drop(x);
    tn_shutdown();
    ck_assert_int_eq(room.bytes, 0);
    x = tn_tensor_full(TN_SHAPE(4), 4, TN_F32, NULL);
    ck_assert_ptr_nonnull(x);
    ck_assert(((float *)tn_tensor_data(x))[2] == 4);
    room_close();
}
END_TEST

RUN_TESTS("tensor", a_new_tensor_is_row_major_and_on_the_default_device,
          zero_sizes_and_no_dimensions_are_tensors_too, sizes_that_cannot_be_are_refused_with_words,
          strides_of_ones_own_may_not_lay_elements_over_each_other,
          values_come_in_and_go_out_in_row_major_order,
          full_works_for_every_type_with_a_kernel_and_without,
          item_reads_one_element_and_says_why_not_otherwise,
          wrapped_memory_is_used_as_it_is_and_released_once, views_share_storage_and_version,
          contiguous_and_dense_are_told_apart, swap_exchanges_what_tensors_look_at_and_nothing_else,
          swap_leaves_no_whole_numbers_that_require_gradients,
          a_null_tensor_passes_through_without_a_second_error,
          a_scope_ends_with_its_block_however_that_is_left, ending_an_outer_scope_ends_those_inside,
          results_move_to_the_scope_around, keep_and_drop_pair_and_to_scope_gives_away,
          the_root_scope_warns_once_when_it_holds_many, a_thread_drops_what_it_holds_when_it_ends,
          a_tensor_outlives_shutdown_and_the_device_opens_again)
