/* SPDX-License-Identifier: MIT
 *
 * The process ends while detached threads still call the library: main returns, or a thread calls
 * exit(). Nothing that other threads use may be freed by then. This program starts itself again
 * with the name of a task, many times, because the result depends on the moment at which the
 * process ends.
 *
 * TN_TEST_ENDS is the number of processes for each task. */
#include "tests/base/suite.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, ENDS = 6 };

/* ---- what a thread of the child does --------------------------------------------------------- */

static tn_module *shared;

/* Many small tensors, and their gradients. */
static tn_status operators(void)
{
    TN_SCOPE;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(2), 3, TN_F32, NULL);
    tn_tensor_set_requires_grad(x, true);
    tn_tensor *y = tn_sum(tn_relu(tn_mul(x, x)));
    return tn_backward(y);
}

static tn_status forward(void)
{
    TN_SCOPE;
    tn_tensor *y = tn_module_call(shared, tn_tensor_full(TN_SHAPE(8, 1, 8, 8), 0.5, TN_F32, NULL));
    return y != NULL ? TN_OK : tn_error_last_code();
}

static tn_status train(void)
{
    TN_SCOPE;
    tn_module *net = tn_module_new("Sequential(Linear(4, 8), ReLU(), Dropout(0.5), Linear(8, 1))");
    tn_optimizer *optimizer = tn_optimizer_new(net, "Adam(lr=0.1)");
    tn_tensor *x = tn_tensor_full(TN_SHAPE(16, 4), 0.5, TN_F32, NULL);
    tn_status status = tn_backward(tn_sum(tn_module_call(net, x)));
    if (status == TN_OK)
        status = tn_optimizer_step(optimizer);
    tn_optimizer_drop(optimizer);
    tn_module_drop(net);
    return status;
}

/* A small product, which a plugin computes with another library, and a large one, which the threads
 * of the pool share. */
static tn_status products(void)
{
    TN_SCOPE;
    tn_tensor *small = tn_tensor_full(TN_SHAPE(48, 48), 0.5, TN_F32, NULL);
    tn_tensor *large = tn_tensor_full(TN_SHAPE(192, 192), 0.5, TN_F32, NULL);
    for (int i = 0; i < 16; i++)
        if (tn_matmul(small, small) == NULL)
            return tn_error_last_code();
    return tn_matmul(large, large) != NULL ? TN_OK : tn_error_last_code();
}

/* With channels last: these convolutions are computed by another plugin with another library. */
static tn_status convolutions(void)
{
    TN_SCOPE;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(8, 8, 8, 16), 0.5, TN_F32, NULL);
    tn_tensor *weight = tn_tensor_full(TN_SHAPE(16, 16, 1, 1), 0.5, TN_F32, NULL);
    tn_tensor *y = tn_conv2d(tn_permute(x, TN_INTS(0, 3, 1, 2)), weight);
    return y != NULL ? TN_OK : tn_error_last_code();
}

static const struct task {
    const char *name;
    tn_status (*work)(void);
    bool prepare; /* works once before threads start: if the process ends while oneDNN makes its
                   * first plan, it can crash (docs/plugins/kernels-onednn.md) */
    bool without_pack; /* the device's own kernels compute what oneDNN would compute */
} tasks[] = {
    { "operators", operators, false, false },
    { "forward", forward, false, true },
    { "train", train, false, false },
    { "products", products, false, false },
    { "convolutions", convolutions, true, false },
};

static _Noreturn void fail_here(void)
{
    dprintf(STDERR_FILENO, "%s\n", tn_error_text());
    _exit(3);
}

static void *work_on(void *user)
{
    const struct task *task = user;
    while (task->work() == TN_OK)
        ;
    fail_here();
}

/* Ends after one turn, so its memory is freed at about the time at which the process ends. */
static void *work_once(void *user)
{
    const struct task *task = user;
    if (task->work() != TN_OK)
        fail_here();
    return NULL;
}

static void start_thread(void *(*run)(void *), const struct task *task)
{
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &detached, run, (void *)task) != 0)
        _exit(4);
    pthread_attr_destroy(&detached);
}

static _Noreturn void *start_without_end(void *user)
{
    for (;;) {
        start_thread(work_once, user);
        nanosleep(&(struct timespec){ .tv_nsec = 300000 }, NULL);
    }
}

static _Noreturn void *exit_later(void *user)
{
    nanosleep(user, NULL);
    exit(0);
}

/* Returns from main after a time. `how`: "main" has threads that keep running, "threads" has
 * threads that end and begin all the time, in "exit" a thread calls exit() while main is in the
 * library. */
static int child(const char *name, const char *how, int microseconds)
{
    static struct timespec pause;
    const struct task *task = NULL;
    for (int64_t i = 0; i < tn__countof(tasks); i++)
        if (strcmp(tasks[i].name, name) == 0)
            task = &tasks[i];
    if (task == NULL)
        return 5;
    if (task->without_pack)
        setenv("TENON_PLUGINS", "!kernels-onednn", 1);
    shared = tn_module_new("Sequential(Conv2d(1, 8, 3), BatchNorm2d(8), ReLU(), Flatten())");
    if (shared == NULL || tn_module_eval(shared) != TN_OK)
        fail_here();
    if (task->prepare && task->work() != TN_OK)
        fail_here();
    pause.tv_nsec = microseconds * 1000L;
    for (int i = 0; i < THREADS; i++)
        start_thread(work_on, task);
    if (strcmp(how, "threads") == 0)
        start_thread(start_without_end, task);
    if (strcmp(how, "exit") == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, exit_later, &pause) != 0)
            return 4;
        work_on((void *)task);
    }
    nanosleep(&pause, NULL);
    return 0;
}

/* ---- a plan of oneDNN after the end began ------------------------------------------------------
 */

enum { NO_PACK = 7 };

static int plans;

static void count_plans(void *user, int level, const char *plugin, const char *text)
{
    (void)user;
    (void)level;
    if (strcmp(plugin, "tenon.onednn") == 0 && strstr(text, "a plan of kind") != NULL)
        plans++;
}

/* Whether a convolution of images of this size, which oneDNN takes, has the right values. */
static bool convolves(int64_t size)
{
    TN_SCOPE;
    tn_tensor *x = tn_tensor_full(TN_SHAPE(8, size, size, 16), 0.5, TN_F32, NULL);
    tn_tensor *weight = tn_tensor_full(TN_SHAPE(16, 16, 1, 1), 0.5, TN_F32, NULL);
    tn_tensor *y = tn_conv2d(tn_permute(x, TN_INTS(0, 3, 1, 2)), weight);
    tn_tensor *low = tn_amin(y), *high = tn_amax(y);
    tn_scalar values[2];

    return tn_tensor_scalar(low, &values[0]) == TN_OK &&
           tn_tensor_scalar(high, &values[1]) == TN_OK && tn_scalar_as_float(values[0]) == 4 &&
           tn_scalar_as_float(values[1]) == 4;
}

/* exit() calls this after the static objects of oneDNN are destroyed. The plan that exists is used,
 * and the device's own kernel computes another shape. */
static void convolve_late(void)
{
    int before = plans;

    if (!convolves(8) || !convolves(9))
        fail_here();
    _exit(plans == before ? 0 : 6);
}

static int convolve_at_end(void)
{
    setenv("TENON_LOG", "debug", 1);
    tn_set_log_sink(count_plans, NULL);
    if (atexit(convolve_late) != 0) /* registered before oneDNN's functions, so called after them */
        return 4;
    if (!convolves(8))
        fail_here();
    if (plans != 1)
        _exit(NO_PACK);
    return 0;
}

/* ---- what the parent does -------------------------------------------------------------------- */

static void add_option(const char *variable, const char *option)
{
    const char *before = getenv(variable);
    char text[512];
    tn_snprint(text, sizeof text, "%s:%s", before != NULL ? before : "", option);
    setenv(variable, text, 1);
}

/* No search for leaks, because threads that still run have memory, and the search can crash on a
 * thread that begins or ends. ThreadSanitizer does not sleep for a second at each end. */
static void set_sanitizers(void)
{
    add_option("ASAN_OPTIONS", "detect_leaks=0");
    add_option("TSAN_OPTIONS", "atexit_sleep_ms=0");
}

static int status_of_program(const char *task, const char *how, const char *time)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        set_sanitizers();
        alarm(60);
        execl("/proc/self/exe", "test_process_end", task, how, time, (char *)NULL);
        _exit(127);
    }
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static int status_of(const char *task, const char *how, int microseconds)
{
    char text[16];
    tn_snprint(text, sizeof text, "%d", microseconds);
    return status_of_program(task, how, text);
}

static void end_often(const char *how)
{
    const char *number = getenv("TN_TEST_ENDS");
    int ends = number != NULL ? atoi(number) : ENDS;
    for (int64_t i = 0; i < tn__countof(tasks); i++)
        for (int k = 0; k < ends; k++) {
            int time = k % ENDS * 9000; /* 0: while plugins are activated */
            int status = status_of(tasks[i].name, how, time);
            ck_assert_msg(status == 0, "%s, %s after %d us: status %x", tasks[i].name, how, time,
                          (unsigned)status);
        }
}

START_TEST(main_returns_while_threads_compute)
{
    end_often("main");
}
END_TEST

START_TEST(main_returns_while_threads_begin_and_end)
{
    end_often("threads");
}
END_TEST

START_TEST(a_thread_exits_while_main_computes)
{
    end_often("exit");
}
END_TEST

START_TEST(no_plan_is_made_after_the_end_began)
{
    int status = status_of_program("late", NULL, NULL);

    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_PACK)
        printf("SKIP: the kernel pack of oneDNN is missing\n");
    else
        ck_assert_msg(status == 0, "status %x", (unsigned)status);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {
        main_returns_while_threads_compute,
        main_returns_while_threads_begin_and_end,
        a_thread_exits_while_main_computes,
        no_plan_is_made_after_the_end_began,
        NULL,
    };
    if (argc == 4)
        return child(argv[1], argv[2], atoi(argv[3]));
    if (argc == 2)
        return convolve_at_end();
    return suite_run("process_end", tests);
}
