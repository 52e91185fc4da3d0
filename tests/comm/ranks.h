/* SPDX-License-Identifier: MIT
 *
 * Runs the ranks of a group as child processes of a test. */
#ifndef TN_TESTS_COMM_RANKS_H
#define TN_TESTS_COMM_RANKS_H

#include "tests/base/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tenon/tenon.h>

enum { MOST_RANKS = 8 };

static const char token[] = "0123456789abcdef0123456789abcdef";

/* Where the ranks of this test meet: a path, or a port of the loopback interface. */
static char folder[64], address[80];
static bool over_tcp;

/* Ends a child that has failed. */
#define need(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, tn_error_text());   \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
#define need_ok(call) need((call) == TN_OK)

static inline void make_address(bool tcp)
{
    over_tcp = tcp;
    snprintf(folder, sizeof folder, "/tmp/tenon-ranks-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    if (tcp) /* each process has ports of its own */
        snprintf(address, sizeof address, "127.0.0.1:%d", 20000 + (int)getpid() % 4000 * 10);
    else
        snprintf(address, sizeof address, "%s/comm", folder);
}

/* The folder is empty again: no socket is left. */
static inline void remove_address(void)
{
    ck_assert_int_eq(rmdir(folder), 0);
}

static inline tn_comm *join_for(int rank, int size, double seconds)
{
    const tn_comm_args args = { TN_HEAD(tn_comm_args), .rank = rank, .size = size,
                                .address = address, .timeout = seconds };
    char spec[64];

    snprintf(spec, sizeof spec, "local(token='%s')", token);
    return tn_comm_new(spec, &args);
}

static inline tn_comm *join(int rank, int size)
{
    tn_comm *comm = join_for(rank, size, 30);

    need(comm != NULL);
    return comm;
}

static inline double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

typedef void rank_body(int rank, int size);

/* Starts the ranks. */
static inline void start_ranks(rank_body *body, int size, pid_t *pids)
{
    fflush(NULL);
    for (int r = 0; r < size; r++) {
        pids[r] = fork();
        ck_assert_int_ge(pids[r], 0);
        if (pids[r] == 0) {
            signal(SIGALRM, SIG_DFL);
            alarm(60);
            body(r, size);
            _exit(0);
        }
    }
}

/* Waits for a rank; returns its exit status, or minus the signal that ended it. */
static inline int end_of_rank(pid_t pid)
{
    int status = 0;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* Runs a body in each rank; all must end well. */
static inline void run_ranks(rank_body *body, int size, bool tcp)
{
    pid_t pids[MOST_RANKS];

    make_address(tcp);
    start_ranks(body, size, pids);
    for (int r = 0; r < size; r++)
        ck_assert_int_eq(end_of_rank(pids[r]), 0);
    remove_address();
}

#endif
