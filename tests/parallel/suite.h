/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of training on several ranks, which are child processes of a test. The
 * process of the test itself uses no device, so that it can fork. */
#ifndef TN_TESTS_PARALLEL_SUITE_H
#define TN_TESTS_PARALLEL_SUITE_H

#include "tests/libcheck.h"
#include "tests/spec/proves.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/parallel.h>

enum { RANKS = 4, NUMBERS = 1 << 14 };

/* What the ranks find, in memory that all processes share. */
static struct found {
    double numbers[NUMBERS];
    int64_t count;
    char text[1024];
} * found;

static int rank_, size_;
static tn_comm *group_; /* NULL with one rank */
static char folder_[64];

/* Ends a rank that has failed. */
#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %d of %d: %s: %s\n", __FILE__, __LINE__, rank_, size_,    \
                    #condition, tn_error_text());                                                  \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
#define NEED_OK(call) NEED((call) == TN_OK)
/* The last call has failed, and its message contains these words. */
#define NEED_ERROR(code, words)                                                                    \
    do {                                                                                           \
        NEED(tn_error_code() == (code) && strstr(tn_error_text(), words) != NULL);                 \
        tn_error_clear();                                                                          \
    } while (0)

static inline tn_comm *join(const char *name)
{
    char address[128], spec[80];
    const tn_comm_args args = { TN_HEAD(tn_comm_args), .rank = rank_, .size = size_,
                                .address = address, .timeout = 20 };

    snprintf(address, sizeof address, "%s/%s", folder_, name);
    snprintf(spec, sizeof spec, "local(token='%032d')", 7);
    return tn_comm_new(spec, &args);
}

static inline void start_rank(void (*code)(void), int rank, int size)
{
    rank_ = rank;
    size_ = size;
    alarm(60);
    setenv("TENON_NUM_THREADS", "1", 1);
    tn_random_seed(1);
    if (size > 1) {
        group_ = join("group");
        NEED(group_ != NULL);
    }
    code();
    tn_comm_drop(group_);
    tn_shutdown();
    _exit(0);
}

static inline void start_ranks(void (*code)(void), int size, pid_t pids[RANKS])
{
    fflush(NULL);
    memset(found, 0, RANKS * sizeof *found);
    strcpy(folder_, "/tmp/tenon-parallel-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder_));
    for (int r = 0; r < size; r++) {
        pids[r] = fork();
        ck_assert_int_ge(pids[r], 0);
        if (pids[r] == 0)
            start_rank(code, r, size);
    }
}

/* Returns the exit status of a rank, or minus the signal that ended it. */
static inline int end_rank(pid_t pid)
{
    int status = 0;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static inline void end_ranks(int size, const pid_t pids[RANKS])
{
    int statuses[RANKS] = { 0 };

    for (int r = 0; r < size; r++)
        statuses[r] = end_rank(pids[r]);
    for (int r = 0; r < size; r++)
        ck_assert_int_eq(statuses[r], 0);
    ck_assert_int_eq(rmdir(folder_), 0); /* no socket is left */
}

/* Runs the code on `size` ranks; all must end well. */
static inline void on_ranks(int size, void (*code)(void))
{
    pid_t pids[RANKS];

    start_ranks(code, size, pids);
    end_ranks(size, pids);
}

/* ---- in a rank ------------------------------------------------------------------------------- */

/* Adds all elements of a tensor to the results of this rank. */
static inline void tell(tn_tensor *tensor)
{
    struct found *f = &found[rank_];
    int64_t count = tensor != NULL && tensor != TN_NONE ? tn_tensor_numel(tensor) : -1;
    TN_SCOPE;
    tn_tensor *wide;

    NEED(count >= 0 && f->count + count <= NUMBERS);
    tn_grad_begin(false);
    wide = tn_copy_(tn_tensor_empty(tn_tensor_shape(tensor), TN_F64, NULL), tensor);
    tn_grad_end();
    NEED_OK(tn_tensor_copy_out(wide, f->numbers + f->count, (size_t)count * sizeof(double)));
    f->count += count;
}

static inline void tell_number(double number)
{
    NEED(found[rank_].count < NUMBERS);
    found[rank_].numbers[found[rank_].count++] = number;
}

static inline void tell_state(tn_module *module, bool gradients)
{
    tn_walk *walk = tn_walk_begin(module, TN_SLOT_PARAMETER | TN_SLOT_BUFFER, NULL);

    for (const tn_visit *at = tn_walk_next(walk); at != NULL; at = tn_walk_next(walk)) {
        if (!gradients)
            tell(at->tensor);
        else if (at->kind == TN_SLOT_PARAMETER && tn_tensor_grad(at->tensor) != TN_NONE)
            tell(tn_tensor_grad(at->tensor));
    }
    tn_walk_end(walk);
}

/* A tensor with numbers that depend on its shape and `seed` alone, about -1 to 1. */
static inline tn_tensor *numbers(tn_ints shape, int seed)
{
    tn_tensor *x = tn_tensor_empty(shape, TN_F32, NULL);
    int64_t count = tn_tensor_numel(x);
    float *values = malloc((size_t)(count + 1) * sizeof *values);

    for (int64_t i = 0; i < count; i++)
        values[i] = (float)sin((double)(i * 7 + seed * 13) + 0.3 * (double)(i % 5));
    NEED_OK(tn_tensor_copy_in(x, values, (size_t)count * sizeof *values));
    free(values);
    return x;
}

/* ---- in the test ----------------------------------------------------------------------------- */

static inline void same_numbers(const struct found *a, const struct found *b, double tolerance)
{
    ck_assert_int_gt(a->count, 0);
    ck_assert_int_eq(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++)
        ck_assert_msg(tolerance == 0 ? memcmp(&a->numbers[i], &b->numbers[i], sizeof(double)) == 0
                                     : fabs(a->numbers[i] - b->numbers[i]) <= tolerance,
                      "number %d: %.17g and %.17g", (int)i, a->numbers[i], b->numbers[i]);
}

static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    found = mmap(NULL, RANKS * sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}

#endif
