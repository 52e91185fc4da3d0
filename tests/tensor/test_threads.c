/* SPDX-License-Identifier: MIT
 *
 * Tensors made, dropped and freed by several threads; run under ThreadSanitizer, too. */
#include "tests/tensor/fixture.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 4, ROUNDS = 3000, SLOTS = 64 };

static tn_tensor *_Atomic slots[SLOTS];

static void *swap_tensors(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg * 77777u + 1;
    const tn_device *devices[] = { device("cpu"), device("vault:0"), device("vault:1") };

    for (int i = 0; i < ROUNDS; i++) {
        TN_SCOPE;
        int slot = (int)((seed = seed * 1103515245u + 12345u) >> 16) % SLOTS;
        int64_t size = 1 + (int64_t)((seed = seed * 1103515245u + 12345u) >> 8) %
                               (i % 100 == 0 ? 200000 : 600);
        tn_tensor *x = tn_keep(tn_tensor_full(TN_SHAPE(size), slot, TN_U8, devices[i % 3])), *old;

        ck_assert_ptr_nonnull(x);
        old = atomic_exchange(&slots[slot], x); /* what another thread made is freed here */
        if (old != NULL) {
            unsigned char first;
            ok(tn_tensor_copy_out(
                tn_tensor_as_strided(old, TN_SHAPE(1), TN_INTS(1), tn_tensor_numel(old) - 1),
                &first, 1));
            ck_assert_uint_eq(first, (unsigned char)slot);
            tn_tensor_drop(old);
        }
        if (i % 500 == 0)
            ok(tn_device_trim(devices[i / 500 % 3]));
        if (i % 300 == 0) {
            tn_memory_stats stats;
            ok(tn_device_memory(devices[0], &stats));
            ck_assert_int_ge(stats.requests, 0);
        }
    }
    return NULL;
}

START_TEST(threads_make_and_free_each_others_tensors)
{
    pthread_t threads[THREADS];
    tn_memory_stats stats;

    room_open();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, swap_tensors, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++)
        tn_tensor_drop(slots[i]);
    for (int i = 0; i < 2; i++) {
        ok(tn_device_memory(device(i ? "vault" : "cpu"), &stats));
        ck_assert_int_eq(stats.live, 0);
        ck_assert_int_eq(stats.live_blocks, 0);
    }
    ok(tn_device_memory(device("cpu"), &stats));
    ck_assert_int_eq(stats.requests, THREADS * ROUNDS / 3);
    room_close();
}
END_TEST

static void *share(void *tensor)
{
    for (int i = 0; i < ROUNDS; i++) {
        TN_SCOPE;
        tn_tensor *x = tn_keep(tensor);
        tn_tensor *view = tn_tensor_as_strided(x, TN_SHAPE(2), TN_INTS(1), i % 3);
        ck_assert_int_eq(tn_tensor_numel(view), 2);
        tn_tensor_touch(x);
        tn_tensor_drop(x);
    }
    return NULL;
}

START_TEST(one_tensor_is_held_and_viewed_by_many_threads)
{
    pthread_t threads[THREADS];
    tn_tensor *x;

    room_open();
    x = tn_keep(tn_tensor_full(TN_SHAPE(4), 1, TN_F32, NULL));
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, share, x);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_ge(tn_tensor_version(x), THREADS * ROUNDS);
    tn_tensor_drop(x);
    room_close();
}
END_TEST

static void *find_devices(void *arg)
{
    (void)arg;
    for (int i = 0; i < 200; i++) {
        ck_assert_str_eq(tn_device_name(device(i % 2 ? "vault:1" : "brick")),
                         i % 2 ? "vault:1" : "brick:0");
        ck_assert_ptr_nonnull(tn_default_device());
        ck_assert_int_eq(tn_device_count(), 5);
    }
    return NULL;
}

START_TEST(devices_open_once_whoever_comes_first)
{
    pthread_t threads[THREADS];

    room_open();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, find_devices, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(room.opened, 3);
    room_close();
}
END_TEST

static void *use_streams(void *arg)
{
    const tn_device *d = device("vault");

    (void)arg;
    for (int i = 0; i < 300; i++) {
        TN_SCOPE;
        tn_stream *s = tn_stream_new(d, NULL);
        tn_event *e;
        tn_tensor *x;

        tn_stream_begin(s);
        x = tn_tensor_full(TN_SHAPE(100 + i), 1, TN_F32, d);
        e = tn_event_record(d, s, 0);
        tn_stream_end();
        ok(tn_event_wait(e, NULL));
        ok(tn__storage_use(x->storage, d->stream));
        ok(tn_event_sync(e));
        tn_event_drop(e);
        if (i % 20 == 0) {
            ok(tn_device_trim(d));
            ok(tn_device_sync(d));
        }
        tn_stream_drop(s);
    }
    return NULL;
}

START_TEST(streams_come_and_go_in_many_threads)
{
    pthread_t threads[THREADS];

    room_open();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, use_streams, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    room_close();
}
END_TEST

static pthread_barrier_t barrier;

static void *hold_a_cache(void *arg)
{
    (void)arg;
    {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_full(TN_SHAPE(1000), 1, TN_F32, device("cpu"));
        ck_assert_ptr_nonnull(x);
    }
    pthread_barrier_wait(&barrier); /* the main thread shuts down */
    pthread_barrier_wait(&barrier);
    {
        /* The device opens again, and this thread's cache with it. */
        TN_SCOPE;
        ck_assert_ptr_nonnull(tn_tensor_full(TN_SHAPE(1000), 1, TN_F32, device("cpu")));
    }
    return NULL;
}

START_TEST(shutdown_takes_what_idle_threads_keep)
{
    pthread_t thread;

    room_open();
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, hold_a_cache, NULL);
    pthread_barrier_wait(&barrier);
    tn_shutdown();
    ck_assert_int_eq(room.bytes, 0);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    room_close();
}
END_TEST

RUN_TESTS("threads", threads_make_and_free_each_others_tensors,
          one_tensor_is_held_and_viewed_by_many_threads, devices_open_once_whoever_comes_first,
          streams_come_and_go_in_many_threads, shutdown_takes_what_idle_threads_keep)
