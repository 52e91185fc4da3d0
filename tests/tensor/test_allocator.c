/* SPDX-License-Identifier: MIT
 *
 * The caching allocator: statistics, reuse of blocks, behaviour when memory runs out. */
#include "tests/tensor/fixture.h"

static tn_memory_stats stats_of(const char *name)
{
    tn_memory_stats stats;

    ok(tn_device_memory(device(name), &stats));
    return stats;
}

static tn_tensor *bytes(int64_t count, const char *name)
{
    tn_tensor *x = tn_tensor_empty(TN_SHAPE(count), TN_U8, device(name));

    ck_assert_msg(x != NULL, "%s", tn_error_last()->message);
    return x;
}

START_TEST(size_classes_cover_every_size_and_respect_the_quantum)
{
    struct tn__allocator a = { .quantum = 64 };
    uint64_t quanta[] = { 64, 256, 4096, 65536 }, last = 0;
    int class, before = -1;

    for (int q = 0; q < 4; q++) {
        a.quantum = quanta[q];
        a.shift = __builtin_ctzll(quanta[q]);
        before = -1;
        last = 0;
        for (uint64_t size = 1; size <= 70000; size++) {
            uint64_t block = tn__allocator_block_size(&a, size, &class);
            ck_assert_uint_ge(block, size);
            ck_assert_uint_eq(block % a.quantum, 0);
            ck_assert_int_ge(class, 0);
            ck_assert_int_le(class, TN__SIZE_CLASSES);
            ck_assert((class == TN__SIZE_CLASSES) == (size > TN__SMALL_BLOCK));
            ck_assert_int_ge(class, before);
            if (class == before && class < TN__SIZE_CLASSES)
                ck_assert_uint_eq(block, last);
            if (size > 8 * a.quantum)
                ck_assert_uint_le(block, size + size / 4 + a.quantum);
            before = class;
            last = block;
        }
    }
}
END_TEST

START_TEST(what_is_live_cached_and_asked_for_is_counted_to_the_byte)
{
    tn_memory_stats s;

    room_open();
    {
        TN_SCOPE;
        bytes(1000, "cpu");
        bytes(24, "cpu");
        bytes(0, "cpu");
        bytes(300000, "cpu");
        s = stats_of("cpu");
        ck_assert_int_eq(s.live, 301024);
        ck_assert_int_eq(s.live_blocks, 3);
        ck_assert_int_eq(s.requests, 3);
        ck_assert_int_eq(s.peak, 301024);
        ck_assert_int_eq(s.live + s.cached, room.bytes);
        ck_assert_int_eq(s.device_allocs, 2);
    }
    s = stats_of("cpu");
    ck_assert_int_eq(s.live, 0);
    ck_assert_int_eq(s.live_blocks, 0);
    ck_assert_int_eq(s.peak, 301024);
    ck_assert_int_eq(s.cached, room.bytes);
    tn_device_reset_peak(device("cpu"));
    {
        TN_SCOPE;
        bytes(10, "cpu");
    }
    ck_assert_int_eq(stats_of("cpu").peak, 10);
    ck_assert_int_eq(stats_of("cpu").requests, 4);
    room_close();
}
END_TEST

START_TEST(memory_is_used_again_without_asking_the_device)
{
    int64_t asked;

    room_open();
    for (int64_t size = 1; size < 3000000; size = size * 3 + 7) {
        TN_SCOPE;
        bytes(size, "cpu");
    }
    asked = stats_of("cpu").device_allocs;
    for (int round = 0; round < 50; round++)
        for (int64_t size = 1; size < 3000000; size = size * 3 + 7) {
            TN_SCOPE;
            bytes(size, "cpu");
        }
    ck_assert_int_eq(stats_of("cpu").device_allocs, asked);
    room_close();
}
END_TEST

START_TEST(blocks_never_overlap_and_begin_aligned)
{
    enum { N = 200 };
    static const char *const names[] = { "cpu", "vault" };
    tn_tensor *held[N] = { NULL };
    unsigned seed = 1;

    room_open();
    for (int d = 0; d < 2; d++) {
        for (int step = 0; step < 5000; step++) {
            int i = (int)((seed = seed * 1103515245u + 12345u) >> 16) % N;
            if (held[i] != NULL) {
                TN_SCOPE;
                unsigned char first, last;
                int64_t n = tn_tensor_numel(held[i]);
                ok(tn_tensor_copy_out(tn_tensor_as_strided(held[i], TN_SHAPE(1), TN_INTS(1), 0),
                                      &first, 1));
                ok(tn_tensor_copy_out(tn_tensor_as_strided(held[i], TN_SHAPE(1), TN_INTS(1), n - 1),
                                      &last, 1));
                ck_assert_uint_eq(first, (unsigned char)i);
                ck_assert_uint_eq(last, (unsigned char)i);
                tn_tensor_drop(held[i]);
                held[i] = NULL;
            } else {
                TN_SCOPE;
                int64_t n = 1 + (int64_t)((seed = seed * 1103515245u + 12345u) >> 8) %
                                    (step % 50 == 0 ? 300000 : 3000);
                unsigned char *fill = malloc((size_t)n);
                memset(fill, i, (size_t)n);
                held[i] = tn_keep(bytes(n, names[d]));
                ok(tn_tensor_copy_in(held[i], fill, (size_t)n));
                ck_assert_uint_eq(held[i]->view.byte_offset % (d == 0 ? 64 : 256), 0);
                free(fill);
            }
        }
        for (int i = 0; i < N; i++) {
            tn_tensor_drop(held[i]);
            held[i] = NULL;
        }
        ck_assert_int_eq(stats_of(names[d]).live, 0);
    }
    room_close();
}
END_TEST

START_TEST(trim_gives_everything_that_is_free_back)
{
    tn_tensor *x;

    room_open();
    x = tn_keep(bytes(100, "cpu"));
    {
        TN_SCOPE;
        for (int i = 0; i < 300; i++)
            bytes(10000 + i, "cpu");
        bytes(50 << 20, "cpu");
    }
    ck_assert_int_gt(stats_of("cpu").cached, 50 << 20);
    ok(tn_device_trim(device("cpu")));
    ck_assert_int_le(stats_of("cpu").cached, 1 << 20);
    tn_tensor_drop(x);
    ok(tn_device_trim(device("cpu")));
    ck_assert_int_le(stats_of("cpu").cached, 1 << 20);
    tn_scope_end(0);
    room_close();
}
END_TEST

START_TEST(small_pieces_join_to_large_ones_again)
{
    int64_t asked;

    room_open();
    {
        TN_SCOPE;
        for (int i = 0; i < 8; i++)
            bytes(900000, "cpu");
    }
    asked = stats_of("cpu").device_allocs;
    ck_assert_int_eq(asked, 1);
    {
        TN_SCOPE;
        bytes(3500000, "cpu");
        bytes(3500000, "cpu");
    }
    ck_assert_int_eq(stats_of("cpu").device_allocs, asked);
    room_close();
}
END_TEST

START_TEST(a_full_device_is_trimmed_and_asked_again)
{
    room_open();
    room.limit = 100 << 20;
    {
        TN_SCOPE;
        bytes(60 << 20, "vault");
    }
    /* The cached 60 MiB are too few for 80 MiB: they are freed, and the request succeeds. */
    {
        TN_SCOPE;
        bytes(80 << 20, "vault");
    }
    ck_assert_int_eq(stats_of("vault").trims, 1);
    ck_assert(!tn_failed());
    room_close();
}
END_TEST

START_TEST(a_device_that_is_nearly_full_gives_what_is_needed)
{
    room_open();
    room.limit = 100000;
    bytes(1000, "cpu"); /* not enough memory for a whole segment */
    bytes(70000, "cpu");
    ck_assert(!tn_failed());
    ck_assert_int_eq(stats_of("cpu").live, 71000);
    room_close();
}
END_TEST

/* Allocates more sizes than the report counts: 60 small ones, and 5 large ones before the small
 * sizes whose numbers are in `before`. The report must name the sizes with the largest sums, in
 * order, independent of the time of their allocation. */
static void the_largest_sums_are_named(const int *before)
{
    static const int64_t large[] = { 3 << 20, 5 << 20, 2 << 20, 4 << 20, 6 << 20 };
    int next = 0;

    room_open();
    room.limit = 64 << 20;
    for (int i = 0; i <= 60; i++) {
        for (; next < 5 && before[next] == i; next++)
            bytes(large[next], "cpu");
        if (i < 60)
            bytes(1000 + 200 * i, "cpu");
    }
    bytes(2 << 20, "cpu"); /* 2 of 2 MiB are more than one of 3 */
    ck_assert(!tn_failed());
    ck_assert_ptr_null(tn_tensor_empty(TN_SHAPE(60 << 20), TN_U8, device("cpu")));
    ck_assert_int_eq(tn_error_code(), TN_ERR_MEMORY);
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "in 66 tensors"));
    ck_assert_ptr_nonnull(
        strstr(tn_error_text(), "; the largest sizes: 1 x 6.00 MiB, 1 x 5.00 MiB, "));
    said("1 x 3.00 MiB; drop tensors");
    room_close();
}

START_TEST(out_of_memory_names_the_sizes_that_hold_most)
{
    the_largest_sums_are_named((const int[]){ 12, 24, 36, 48, 60 });
}
END_TEST

START_TEST(out_of_memory_names_large_blocks_that_came_first)
{
    the_largest_sums_are_named((const int[]){ 0, 0, 0, 0, 0 });
}
END_TEST

START_TEST(out_of_memory_names_large_blocks_that_came_last)
{
    the_largest_sums_are_named((const int[]){ 60, 60, 60, 60, 60 });
}
END_TEST

START_TEST(out_of_memory_says_what_holds_it)
{
    room_open();
    room.limit = 64 << 20;
    for (int i = 0; i < 3; i++)
        bytes(15 << 20, "cpu");
    bytes(5000, "cpu");
    ck_assert_ptr_null(tn_tensor_empty(TN_SHAPE(40 << 20), TN_U8, device("cpu")));
    ck_assert_int_eq(tn_error_code(), TN_ERR_MEMORY);
    ck_assert_ptr_nonnull(strstr(
        tn_error_text(), "out of memory on cpu:0: 40.0 MiB requested; 45.0 MiB in 4 tensors"));
    ck_assert_ptr_nonnull(strstr(tn_error_text(), "the largest sizes: 3 x 15.0 MiB, 1 x 4.88 KiB"));
    said("the limit of the test");
    /* The device still works. */
    bytes(1 << 20, "cpu");
    room_close();
}
END_TEST

START_TEST(a_failing_device_costs_one_tensor_and_no_memory)
{
    room_open();
    for (int64_t size = 10; size < 100000000; size *= 30)
        for (int n = 1; n <= 3; n++) {
            TN_SCOPE;
            room.fail_alloc = n;
            if (tn_tensor_empty(TN_SHAPE(size), TN_U8, device("cpu")) == NULL) {
                ck_assert_int_eq(tn_error_code(), TN_ERR_MEMORY);
                tn_error_clear();
            }
            room.fail_alloc = 0;
        }
    ck_assert_int_eq(stats_of("cpu").live, 0);
    room_close();
}
END_TEST

START_TEST(a_backend_that_says_yes_and_gives_nothing_is_an_error)
{
    room_open();
    room.give_nothing = 1;
    for (int64_t size = 10; size < 100000000; size *= 3000) {
        ck_assert_ptr_null(tn_tensor_empty(TN_SHAPE(size), TN_U8, device("cpu")));
        ck_assert_int_eq(tn_error_code(), TN_ERR_DEVICE);
        said("returned TN_OK and no memory");
    }
    room.give_nothing = 0;
    bytes(1000, "cpu");
    room_close();
}
END_TEST

static int64_t observed, calls;

static void observe(const tn_device *d, int64_t n)
{
    ck_assert_str_eq(tn_device_name(d), "cpu:0");
    observed += n;
    calls++;
}
static const tn__memory_hooks observing = { .bytes = observe };

START_TEST(observers_of_memory_see_what_tensors_take_and_give)
{
    room_open();
    atomic_store(&tn__memory_hook, &observing);
    {
        TN_SCOPE;
        for (int i = 0; i < 10; i++) {
            TN_SCOPE;
            bytes(100, "cpu");
        }
        bytes(100, "cpu");
        bytes(1 << 20, "cpu");
        ck_assert_int_eq(observed, 100 + (1 << 20));
    }
    ck_assert_int_eq(observed, 0);
    ck_assert_int_eq(calls, 24);
    atomic_store(&tn__memory_hook, NULL);
    room_close();
}
END_TEST

RUN_TESTS("allocator", a_backend_that_says_yes_and_gives_nothing_is_an_error,
          size_classes_cover_every_size_and_respect_the_quantum,
          what_is_live_cached_and_asked_for_is_counted_to_the_byte,
          memory_is_used_again_without_asking_the_device, blocks_never_overlap_and_begin_aligned,
          trim_gives_everything_that_is_free_back, small_pieces_join_to_large_ones_again,
          a_full_device_is_trimmed_and_asked_again,
          a_device_that_is_nearly_full_gives_what_is_needed, out_of_memory_says_what_holds_it,
          out_of_memory_names_the_sizes_that_hold_most,
          out_of_memory_names_large_blocks_that_came_first,
          out_of_memory_names_large_blocks_that_came_last,
          a_failing_device_costs_one_tensor_and_no_memory,
          observers_of_memory_see_what_tensors_take_and_give)
