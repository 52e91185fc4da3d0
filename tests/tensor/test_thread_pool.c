/* SPDX-License-Identifier: MIT
 *
 * tn_parallel_for: which pieces there are, in which threads, and what a failure, a fork and a
 * change of the number of threads do. No timing. */
#include "core/tensor/internal.h"
#include "tests/base/suite.h"
#include "tests/idle_fork.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/tenon.h>

enum { PIECES = 1024 };

/* What the pieces of a call have recorded. */
struct seen {
    _Atomic int64_t count; /* of pieces */
    _Atomic int64_t sum;   /* of lengths */
    int64_t grain, total;
    _Atomic bool short_piece;
    uint8_t ends[100001]; /* 1 where a piece ends */
    pthread_t caller;
    _Atomic int64_t elsewhere; /* pieces that other threads ran */
};

static struct seen seen;

static tn_status look(void *user, int64_t begin, int64_t end)
{
    struct seen *s = user;

    atomic_fetch_add(&s->count, 1);
    atomic_fetch_add(&s->sum, end - begin);
    if (end - begin < s->grain && s->total >= s->grain)
        s->short_piece = true;
    s->ends[end] = 1;
    if (!pthread_equal(pthread_self(), s->caller))
        atomic_fetch_add(&s->elsewhere, 1);
    return TN_OK;
}

static void run(int64_t count, int64_t grain)
{
    memset(&seen, 0, sizeof seen);
    seen.grain = grain;
    seen.total = count;
    seen.caller = pthread_self();
    ck_assert_int_eq(tn_parallel_for(count, grain, look, &seen), TN_OK);
    ck_assert_int_eq(seen.sum, count);
    ck_assert(!seen.short_piece);
}

static int threads_of_the_process(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = -2; /* . and .. */

    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* Waits until the process has this number of threads: the system still lists a thread for a moment
 * after pthread_join() has returned. Returns the number after at most five seconds. */
static int threads_become(int expected)
{
    int count = threads_of_the_process();

    for (int i = 0; i < 5000 && count != expected; i++) {
        usleep(1000);
        count = threads_of_the_process();
    }
    return count;
}

static void *nothing(void *user)
{
    return user;
}

START_TEST(no_thread_starts_before_a_call_with_more_than_one_piece)
{
    pthread_t first;

    /* A sanitizer starts its own thread with the first one of the program. */
    ck_assert_int_eq(pthread_create(&first, NULL, nothing, NULL), 0);
    pthread_join(first, NULL);
    tn__thread_pool_shutdown();
    usleep(50000); /* the first thread leaves the list */
    int before = threads_of_the_process();
    ck_assert_int_eq(tn_set_num_threads(4), TN_OK);
    ck_assert_int_eq(tn_num_threads(), 4);
    run(1000, 1000);
    run(1999, 1000);
    ck_assert_int_eq(seen.count, 1);
    ck_assert_int_eq(threads_of_the_process(), before);
    run(2000, 1000);
    ck_assert_int_eq(seen.count, 2);
    ck_assert_int_eq(threads_of_the_process(), before + 3);
    tn__thread_pool_shutdown();
    ck_assert_int_eq(threads_become(before), before);
}
END_TEST

START_TEST(pieces_depend_on_count_and_grain_alone)
{
    static const int64_t counts[] = { 0, 1, 2, 7, 64, 1000, 1024, 4099, 100000 };
    static const int64_t grains[] = { -1, 0, 1, 3, 64, 1000, 100000 };
    static uint8_t ends[sizeof seen.ends];

    for (int64_t i = 0; i < tn__countof(counts); i++)
        for (int64_t k = 0; k < tn__countof(grains); k++) {
            int64_t pieces = 0;
            for (int threads = 1; threads <= 5; threads += 2) {
                ck_assert_int_eq(tn_set_num_threads(threads), TN_OK);
                run(counts[i], grains[k]);
                if (threads == 1) {
                    pieces = seen.count;
                    memcpy(ends, seen.ends, sizeof ends);
                }
                ck_assert_int_eq(seen.count, pieces);
                ck_assert_mem_eq(ends, seen.ends, sizeof ends);
                for (int64_t e = 0; grains[k] == 64 && e < tn__countof(seen.ends); e++)
                    ck_assert(!seen.ends[e] || e % 64 == 0 || e == counts[i]);
                if (threads == 1)
                    ck_assert_int_eq(seen.elsewhere, 0);
            }
            ck_assert_int_le(pieces, PIECES);
        }
    ck_assert_int_eq(tn_parallel_for(-5, 1, look, &seen), TN_OK);
    tn__thread_pool_shutdown();
}
END_TEST

static tn_status wait_for_the_other(void *user, int64_t begin, int64_t end)
{
    pthread_barrier_t *barrier = user;

    (void)begin;
    (void)end;
    pthread_barrier_wait(barrier);
    return TN_OK;
}

START_TEST(pieces_run_at_the_same_time_in_several_threads)
{
    pthread_barrier_t barrier;

    /* Would hang if one thread ran both pieces. */
    tn_set_num_threads(2);
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(tn_parallel_for(2, 1, wait_for_the_other, &barrier), TN_OK);
    pthread_barrier_destroy(&barrier);
    tn__thread_pool_shutdown();
}
END_TEST

static tn_status add_up(void *user, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        ((int64_t *)user)[i] += i;
    return TN_OK;
}

START_TEST(many_small_calls_lose_nothing)
{
    static int64_t sums[64];

    tn_set_num_threads(3);
    memset(sums, 0, sizeof sums);
    for (int i = 0; i < 5000; i++)
        ck_assert_int_eq(tn_parallel_for(2 + i % 63, 1, add_up, sums), TN_OK);
    int64_t calls = 0;
    for (int i = 0; i < 5000; i++)
        calls += 2 + i % 63 > 10;
    ck_assert_int_eq(sums[10], 10 * calls);
    tn__thread_pool_shutdown();
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

static tn_status fail_from_five(void *user, int64_t begin, int64_t end)
{
    (void)end;
    atomic_fetch_add((_Atomic int *)user, 1);
    if (begin < 5)
        return TN_OK;
    return tn_fail_native(begin == 5 ? TN_ERR_INDEX : TN_ERR_VALUE, (int)begin, "piece at %lld",
                          (long long)begin);
}

static tn_status fail_silently(void *user, int64_t begin, int64_t end)
{
    (void)user;
    (void)end;
    return begin == 1 ? TN_ERR_IO : TN_OK;
}

START_TEST(the_first_failure_in_piece_order_is_recorded_in_the_calling_thread)
{
    for (int threads = 1; threads <= 4; threads++) {
        tn_set_num_threads(threads);
        for (int i = 0; i < 50; i++) {
            _Atomic int calls = 0;
            tn_error_clear();
            const char *before = tn__error_plugin("org.example.x");
            ck_assert_int_eq(tn_parallel_for(100, 1, fail_from_five, &calls), TN_ERR_INDEX);
            tn__error_plugin(before);
            ck_assert_int_ge(calls, 6); /* of at least the pieces 0 to 5 */
            ck_assert_str_eq(tn_error_text(), "piece at 5");
            ck_assert_str_eq(tn_error_last()->plugin, "org.example.x");
            ck_assert_int_eq(tn_error_last()->native, 5);
        }
        tn_error_clear();
        tn_fail(TN_ERR_KEY, "held before");
        _Atomic int calls = 0;
        ck_assert_int_eq(tn_parallel_for(100, 1, fail_from_five, &calls), TN_ERR_INDEX);
        ck_assert_str_eq(tn_error_text(), "held before");
        ck_assert_str_eq(tn_error_last()->message, "piece at 5");
        tn_error_clear();
        ck_assert_int_eq(tn_parallel_for(3, 1, fail_silently, NULL), TN_ERR_IO);
        expect_failure(TN_ERR_IO, "recorded no message");
    }
    tn__thread_pool_shutdown();
}
END_TEST

/* ---- nesting, several callers ---------------------------------------------------------------- */

static tn_status inner(void *user, int64_t begin, int64_t end)
{
    if (!pthread_equal(pthread_self(), *(pthread_t *)user))
        return tn_fail(TN_ERR_ASSERT, "an inner piece ran elsewhere");
    return end - begin == 1 ? TN_OK : tn_fail(TN_ERR_ASSERT, "an inner piece has another size");
}

static tn_status outer(void *user, int64_t begin, int64_t end)
{
    pthread_t self = pthread_self();

    (void)begin;
    (void)end;
    (void)user;
    tn_status status = tn_parallel_for(10, 1, inner, &self);
    if (status == TN_OK && tn_set_num_threads(1) != TN_ERR_RUNTIME)
        return tn_fail(TN_ERR_ASSERT, "the number of threads changed inside a piece");
    tn_error_clear();
    return status;
}

START_TEST(inner_calls_run_in_line)
{
    for (int threads = 1; threads <= 4; threads++) {
        tn_error_clear();
        tn_set_num_threads(threads);
        ck_assert_int_eq(tn_parallel_for(20, 1, outer, NULL), TN_OK);
    }
    tn__thread_pool_shutdown();
}
END_TEST

static void *call_often(void *user)
{
    int64_t sums[40] = { 0 };

    for (int i = 0; i < 500; i++)
        if (tn_parallel_for(40, 1, add_up, sums) != TN_OK)
            return user;
    for (int64_t i = 0; i < 40; i++)
        if (sums[i] != 500 * i)
            return user;
    return NULL;
}

START_TEST(several_threads_call_at_the_same_time_and_one_changes_the_number)
{
    pthread_t threads[12];
    int wrong = 1;

    tn_set_num_threads(3);
    for (int i = 0; i < 12; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, &wrong), 0);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(tn_set_num_threads(1 + i % 4), TN_OK);
    for (int i = 0; i < 12; i++) {
        void *result = &wrong;
        pthread_join(threads[i], &result);
        ck_assert_ptr_null(result);
    }
    tn__thread_pool_shutdown();
}
END_TEST

/* ---- settings, signals, fork ----------------------------------------------------------------- */

START_TEST(the_number_of_threads_comes_from_the_environment_or_the_cores)
{
    tn__thread_pool_shutdown();
    tn__env_forget();
    setenv("TENON_NUM_THREADS", "3", 1);
    ck_assert_int_eq(tn_num_threads(), 3);
    tn__thread_pool_shutdown();
    tn__env_forget();
    setenv("TENON_LOG", "off", 1);
    setenv("TENON_NUM_THREADS", "many%n", 1);
    ck_assert_int_ge(tn_num_threads(), 1);
    unsetenv("TENON_NUM_THREADS");
    tn__thread_pool_shutdown();
    tn__env_forget();
    ck_assert_int_ge(tn_num_threads(), 1);
    tn_error_clear();
    ck_assert_int_eq(tn_set_num_threads(0), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "tn_set_num_threads: count: out of range, got 0");
    ck_assert_int_eq(tn_set_num_threads(100000), TN_ERR_VALUE);
    expect_failure(TN_ERR_VALUE, "expected 1 to");
    ck_assert_int_eq(tn_set_num_threads(2), TN_OK);
    ck_assert_str_eq(tn_env_get("TENON_NUM_THREADS"), "2");
    unsetenv("TENON_LOG");
    tn__thread_pool_shutdown();
    tn__env_forget();
}
END_TEST

static tn_status signals_blocked(void *user, int64_t begin, int64_t end)
{
    sigset_t set;

    (void)begin;
    (void)end;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    if (!pthread_equal(pthread_self(), ((struct seen *)user)->caller) &&
        (!sigismember(&set, SIGINT) || !sigismember(&set, SIGUSR1)))
        return tn_fail(TN_ERR_ASSERT, "a thread of the pool takes signals");
    return TN_OK;
}

START_TEST(threads_of_the_pool_take_no_signals)
{
    sigset_t before, after;

    pthread_sigmask(SIG_BLOCK, NULL, &before);
    tn_set_num_threads(4);
    seen.caller = pthread_self();
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(tn_parallel_for(64, 1, signals_blocked, &seen), TN_OK);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    ck_assert_int_eq(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
    tn__thread_pool_shutdown();
}
END_TEST

/* Runs in the child of a fork. Returns 0 if all pieces ran in its only thread. */
static int in_child(void)
{
    memset(&seen, 0, sizeof seen);
    seen.caller = pthread_self();
    if (!tn__fork_is_child() || tn_parallel_for(1000, 1, look, &seen) != TN_OK)
        return 1;
    if (seen.sum != 1000 || seen.elsewhere != 0 || threads_of_the_process() != 1)
        return 2;
    if (tn_set_num_threads(2) != TN_OK || tn_parallel_for(1000, 1, look, &seen) != TN_OK)
        return 3;
    tn__thread_pool_shutdown();
    return 0;
}

START_TEST(after_fork_the_child_runs_everything_in_the_calling_thread)
{
    int status = -1;

    tn_set_num_threads(4);
    run(1000, 1);
    ck_assert(!tn__fork_is_child());
    pid_t child = idle_fork();
    if (child == 0)
        _exit(in_child());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    run(1000, 1); /* the parent continues */
    tn__thread_pool_shutdown();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        no_thread_starts_before_a_call_with_more_than_one_piece,
        pieces_depend_on_count_and_grain_alone,
        pieces_run_at_the_same_time_in_several_threads,
        many_small_calls_lose_nothing,
        the_first_failure_in_piece_order_is_recorded_in_the_calling_thread,
        inner_calls_run_in_line,
        several_threads_call_at_the_same_time_and_one_changes_the_number,
        the_number_of_threads_comes_from_the_environment_or_the_cores,
        threads_of_the_pool_take_no_signals,
        after_fork_the_child_runs_everything_in_the_calling_thread,
        NULL,
    };

    return suite_run("pool", tests);
}
