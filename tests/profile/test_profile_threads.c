/* SPDX-License-Identifier: MIT
 *
 * Threads: each has its own records, and profiles start and stop while others work. */
#include "tests/profile/suite.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4, ROUNDS = 50 };

static atomic_bool go_on;
static char worker[] = "worker", alone[] = "alone";

/* Computes with a range of its own around each round. */
static void *work(void *name)
{
    for (int i = 0; i < ROUNDS; i++) {
        TN_SCOPE;
        tn_range_begin(name);
        tn_backward(tn_sum(tn_exp(tn_mul(LEAF(1, 2, 3), VEC(1, 2, 3)))));
        tn_range_end();
    }
    return NULL;
}

START_TEST(each_thread_has_records_of_its_own_prf_011)
{
    static char names[THREADS][8];
    int64_t ids[THREADS];
    pthread_t threads[THREADS];
    tn_profile_event event, inner;
    ok(tn_profile_start(NULL));
    for (int i = 0; i < THREADS; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, names[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ok(tn_profile_stop());
    ck_assert_int_ge(totals().threads, THREADS);
    ck_assert_int_eq(totals().unbalanced, 0);
    ck_assert_int_eq(row_by(TN_PROFILE_BY_OPERATOR, "exp")->calls, THREADS * ROUNDS);
    ck_assert_int_eq(row_by(TN_PROFILE_BY_OPERATOR, "backward of exp")->calls, THREADS * ROUNDS);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(row_by(TN_PROFILE_BY_OPERATOR, names[i])->calls, ROUNDS);
        ck_assert_int_ge(find_event(names[i], 0, &event), 0);
        ids[i] = event.thread;
        for (int k = 0; k < i; k++)
            ck_assert_int_ne(ids[k], ids[i]);
        ck_assert_int_eq(event.depth, 0);
    }
    /* an operator is inside a range of its thread */
    ck_assert_int_ge(find_event("exp", 0, &inner), 0);
    int found = 0;
    for (int i = 0; i < THREADS; i++)
        for (int64_t at = -1; (at = find_event(names[i], at + 1, &event)) >= 0;)
            found += event.thread == inner.thread && event.start <= inner.start &&
                     event.start + event.duration >= inner.start + inner.duration;
    ck_assert_int_eq(found, 1);
    TN_PROVES("PRF-011");
}
END_TEST

static void *work_on(void *name)
{
    while (atomic_load(&go_on))
        work(name);
    return NULL;
}

/* Profiles start, step and stop while threads compute, begin and end. */
START_TEST(profiles_start_and_stop_while_threads_work_prf_011)
{
    tn_profile_options options = { .size = sizeof options, .warmup = 1, .active = 1 };
    pthread_t threads[THREADS];
    char table[1024];
    atomic_store(&go_on, true);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work_on, worker), 0);
    for (int i = 0; i < 20; i++) {
        ok(tn_profile_start(i % 2 ? &options : NULL));
        for (int k = 0; k < 4; k++) {
            nap(1);
            ok(tn_profile_step());
        }
        ok(tn_profile_stop());
        ck_assert_int_ge(
            tn_profile_table(TN_PROFILE_BY_SHAPE, TN_PROFILE_SORT_SELF, 5, table, sizeof table), 0);
    }
    atomic_store(&go_on, false);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ok(tn_profile_start(NULL));
    work(alone);
    ok(tn_profile_stop());
    ck_assert_int_eq(row_by(TN_PROFILE_BY_OPERATOR, "alone")->calls, ROUNDS);
    ck_assert_ptr_null(row_of("worker", NULL));
    TN_PROVES("PRF-011");
}
END_TEST

static void *one_range(void *user)
{
    (void)user;
    tn_range_begin("short");
    tn_range_end();
    return NULL;
}

/* The buffers of threads that have ended are used again. */
START_TEST(many_short_threads_keep_to_the_limit_prf_011)
{
    tn_profile_options options = { .size = sizeof options, .limit = 4 << 20 };
    for (int round = 0; round < 3; round++) {
        ok(tn_profile_start(&options));
        for (int i = 0; i < 100; i++) {
            pthread_t thread;
            ck_assert_int_eq(pthread_create(&thread, NULL, one_range, NULL), 0);
            pthread_join(thread, NULL);
        }
        ok(tn_profile_stop());
        ck_assert_int_eq(totals().events + totals().dropped, 100);
        ck_assert_int_gt(totals().events, 10);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("profile threads");
    TCase *tests = tcase_create("profile threads");

    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, each_thread_has_records_of_its_own_prf_011);
    tcase_add_test(tests, profiles_start_and_stop_while_threads_work_prf_011);
    tcase_add_test(tests, many_short_threads_keep_to_the_limit_prf_011);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
