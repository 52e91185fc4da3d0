/* SPDX-License-Identifier: MIT
 *
 * The threads of a loader: dropped at any moment, several loaders over one dataset, fork, shutdown
 * and the end of the process. */
#include "toy.h"
#include "tests/idle_fork.h"

#include <pthread.h>
#include <sys/wait.h>

#include <tenon/query.h>

static tn_loader *loader_of(tn_dataset *dataset, const char *options)
{
    tn_loader *loader = tn_loader_parse(dataset, options);

    ck_assert_msg(loader != NULL, "%s: %s", options, tn_error_text());
    return loader;
}

START_TEST(a_loader_can_be_dropped_at_any_moment)
{
    toys_register();
    for (int stop = 0; stop < 12; stop++)
        for (int slow = 0; slow < 2; slow++) {
            tn_dataset *dataset = toys(slow ? "Toy(40, slow=200)" : "Toy(40)");
            tn_loader *loader = loader_of(dataset, "4, workers=3, prefetch=2, shuffle=True");
            tn_dataset_drop(dataset);
            for (int i = 0; i < stop; i++)
                (void)tn_loader_next(loader);
            usleep((useconds_t)(stop * 150));
            tn_loader_drop(loader);
            ck_assert_int_eq(toys_open, 0);
        }
    ck_assert(!tn_failed());
    toys_unregister();
}
END_TEST

START_TEST(drop_does_not_wait_for_the_rest_of_a_batch)
{
    toys_register();
    tn_dataset *dataset = toys("Toy(100000, slow=20000)");
    tn_loader *loader = loader_of(dataset, "1, workers=1");
    ck_assert_ptr_nonnull(tn_loader_next(loader));
    tn_loader_drop(loader);
    loader = loader_of(dataset, "100000, workers=2"); /* a batch takes half an hour */
    int64_t before = toys_read;
    pthread_t thread;
    ck_assert_int_eq(
        pthread_create(&thread, NULL, (void *(*)(void *))(void *)tn_loader_next, loader), 0);
    while (toys_read == before)
        usleep(100);
    tn_shutdown(); /* ends the threads; the call in the other thread fails */
    pthread_join(thread, NULL);
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

START_TEST(threads_read_ahead_as_far_as_they_may)
{
    toys_register();
    tn_dataset *dataset = toys("Toy(100)");
    tn_loader *loader = loader_of(dataset, "1, workers=2, prefetch=3");
    int64_t before = toys_read;
    ck_assert_ptr_nonnull(tn_loader_next(loader));
    for (int i = 0; i < 2000 && toys_read - before < 7; i++)
        usleep(1000);
    usleep(20000);
    ck_assert_int_eq(toys_read - before, 7); /* one was returned, six wait */
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

/* ---- several threads ------------------------------------------------------------------------- */

struct job {
    pthread_t thread;
    tn_dataset *dataset;
    tn_loader *loader;
    int64_t seen;
};

static void *read_loader(void *user)
{
    struct job *job = user;
    tn_loader *loader = tn_loader_parse(job->dataset, "3, workers=2, shuffle=True, seed=1");

    for (int epoch = 0; loader != NULL && epoch < 5; epoch++)
        for (tn_pack *batch; (batch = tn_loader_next(loader)) != NULL;)
            job->seen += tn_tensor_size(tn_pack_tensor(batch, 1), 0);
    tn_loader_drop(loader);
    return NULL;
}

static void *read_samples(void *user)
{
    struct job *job = user;

    for (int i = 0; i < 200; i++) {
        tn_pack *pack = tn_pack_new();

        if (pack != NULL && tn_dataset_get(job->dataset, i % 31, 1, i, pack) == TN_OK)
            job->seen += tn_pack_at(pack, 1).as.i == i % 31;
        tn_pack_drop(pack);
    }
    return NULL;
}

START_TEST(threads_share_a_dataset)
{
    struct job jobs[6] = { 0 };

    toys_register();
    tn_dataset *source = toys("Toy(31)");
    tn_dataset *dataset = tn_dataset_transform(source, "[Noise(), Noise(2)]");
    tn_dataset_drop(source);
    for (int i = 0; i < 6; i++) {
        jobs[i].dataset = tn_dataset_keep(dataset);
        ck_assert_int_eq(
            pthread_create(&jobs[i].thread, NULL, i < 3 ? read_loader : read_samples, &jobs[i]), 0);
    }
    tn_dataset_drop(dataset);
    for (int i = 0; i < 6; i++) {
        pthread_join(jobs[i].thread, NULL);
        ck_assert_int_eq(jobs[i].seen, i < 3 ? 5 * 31 : 200);
        tn_dataset_drop(jobs[i].dataset);
    }
    toys_unregister();
}
END_TEST

static void *ask_loader(void *user)
{
    struct job *job = user;
    char state[512];

    for (int i = 0; i < 300; i++) {
        ck_assert(tn_loader_position(job->loader) >= 0);
        ck_assert(tn_loader_epoch(job->loader) >= 0);
        ck_assert_int_eq(tn_loader_count(job->loader), 11);
        if (i % 10 == 0 && tn_loader_state_text(job->loader, state, sizeof state) > 0)
            job->seen += tn_loader_set_state(job->loader, state) == TN_OK;
    }
    return NULL;
}

START_TEST(a_loader_can_be_asked_by_another_thread)
{
    struct job job = { 0 };

    toys_register();
    tn_dataset *dataset = toys("Toy(31)");
    job.loader = loader_of(dataset, "3, workers=2, shuffle=True, seed=1");
    ck_assert_int_eq(pthread_create(&job.thread, NULL, ask_loader, &job), 0);
    for (int i = 0; i < 300; i++)
        (void)tn_loader_next(job.loader);
    pthread_join(job.thread, NULL);
    ck_assert_int_eq(job.seen, 30);
    ck_assert(!tn_failed());
    tn_loader_drop(job.loader);
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

/* ThreadSanitizer cannot start threads in the child of a process that has threads. */
#if TN_BUILD_TSAN
static const char *const in_child = "3";
#else
static const char *const in_child = "3, workers=2";
#endif

/* ---- processes ------------------------------------------------------------------------------- */

static int child_status(pid_t child)
{
    int status = 0;

    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

START_TEST(a_child_process_gets_an_error_and_can_make_a_loader)
{
    toys_register();
    tn_dataset *dataset = toys("Toy(31)");
    tn_loader *loader = loader_of(dataset, "3, workers=2");
    tn_loader *idle = loader_of(dataset, in_child);
    tn_loader *plain = loader_of(dataset, "3");
    ck_assert_ptr_nonnull(tn_loader_next(loader));
    ck_assert_ptr_nonnull(tn_loader_next(plain));
    fflush(NULL);
    pid_t child = idle_fork();
    if (child == 0) {
        bool good = tn_loader_next(loader) == NULL &&
                    strstr(tn_error_text(), "create a loader in the child") != NULL;

        tn_error_clear();
        good = good && tn_loader_set_state(loader, "") == TN_ERR_RUNTIME;
        tn_error_clear();
        tn_loader_drop(loader);
        for (int i = 0; i < 10 && good; i++)
            good = tn_loader_next(idle) != NULL && (i == 9 || tn_loader_next(plain) != NULL);
        tn_loader_drop(idle);
        tn_loader_drop(plain);
        _exit(good ? 42 : 1); /* no check of leaks: the lost threads have memory */
    }
    ck_assert_int_eq(child_status(child), 42);
    for (int i = 0; i < 10; i++) /* the parent's threads still run */
        ck_assert_ptr_nonnull(tn_loader_next(loader));
    tn_loader_drop(loader);
    tn_loader_drop(idle);
    tn_loader_drop(plain);
    tn_dataset_drop(dataset);
    toys_unregister();
}
END_TEST

START_TEST(a_process_can_end_while_threads_read)
{
    toys_register();
    fflush(NULL);
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        if (child == 0) {
            static tn_loader *volatile loader; /* where leak checkers look */
            loader = loader_of(toys("Toy(100000, slow=100)"), "50, workers=4");
            bool good = i == 0 || tn_loader_next(loader) != NULL;
            exit(good ? 42 : 1);
        }
        ck_assert_int_eq(child_status(child), 42);
    }
    toys_unregister();
}
END_TEST

START_TEST(a_loader_continues_after_a_shutdown)
{
    toys_register();
    tn_dataset *dataset = tn_dataset_of_tensors(
        (tn_tensor *[]){ tn_tensor_full(TN_SHAPE(9, 2), 1, TN_F32, NULL) }, 1);
    tn_loader *loader = loader_of(dataset, "2, workers=2");
    for (int i = 0; i < 5; i++) {
        tn_pack *batch = tn_loader_next(loader);
        ck_assert_msg(batch != NULL, "%s", tn_error_text());
        ck_assert_int_eq(tn_tensor_size(tn_pack_tensor(batch, 0), 0), i < 4 ? 2 : 1);
        tn_shutdown();
    }
    ck_assert_ptr_null(tn_loader_next(loader));
    ck_assert(!tn_failed());
    tn_loader_drop(loader);
    tn_dataset_drop(dataset);
}
END_TEST

START_TEST(memory_that_fails_in_a_thread_is_an_error_of_the_batch)
{
    toys_register();
    for (uint64_t n = 1; n < 400; n++) {
        tn_dataset *dataset = toys("Toy(5, form='nested')");
        tn_loader *loader = loader_of(dataset, "2, workers=2");
        int64_t batches = 0;
        tn__memory_fail(n);
        while (tn_loader_next(loader) != NULL)
            batches++;
        bool again = tn_failed();
        tn__memory_fail(0);
        ck_assert_msg(!again || tn_error_code() == TN_ERR_MEMORY, "%s", tn_error_text());
        tn_error_clear();
        while (again && tn_loader_next(loader) != NULL)
            batches++;
        ck_assert_msg(!tn_failed(), "%s", tn_error_text());
        ck_assert_int_eq(batches, 3);
        tn_loader_drop(loader);
        tn_dataset_drop(dataset);
    }
    toys_unregister();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_loader_can_be_dropped_at_any_moment,
        drop_does_not_wait_for_the_rest_of_a_batch,
        threads_read_ahead_as_far_as_they_may,
        threads_share_a_dataset,
        a_loader_can_be_asked_by_another_thread,
        a_child_process_gets_an_error_and_can_make_a_loader,
        a_process_can_end_while_threads_read,
        a_loader_continues_after_a_shutdown,
        memory_that_fails_in_a_thread_is_an_error_of_the_batch,
        NULL,
    };
    return suite_run("threads of a loader", tests);
}
