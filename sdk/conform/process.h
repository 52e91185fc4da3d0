/* SPDX-License-Identifier: MIT
 *
 * The processes of tenon check, seen from the one that started them. */
#ifndef TN_CONFORM_PROCESS_H
#define TN_CONFORM_PROCESS_H

#include <sys/types.h>

#include "conform.h"

typedef struct buffer {
    char *at;
    size_t used, size;
} buffer;

/* A process with tests. pid == 0: this slot is free. */
typedef struct running {
    pid_t pid;
    int told, said;     /* read ends of two pipes: the outcome, and what the plugin printed */
    double began, died; /* times; died == 0: the process has not ended */
    double test_began;  /* of the last test that is known to have begun */
    buffer outcome, prints;
    int64_t index;   /* of the first test; the others follow it */
    int count;       /* of the tests */
    bool late, left; /* the tests took too long; a process that a test started still runs */
} running;

/* The time in seconds. */
double conform_now(void);
/* Starts a process for tests, whose names are separated by commas. With `guarded`, it runs with
 * TENON_CHECK=1. */
bool process_start(const conform_options *o, const char *tests, bool guarded, running *r);
/* Reads from both pipes, waiting at most `milliseconds`. Returns true when both are closed. */
bool process_listen(running *r, int milliseconds);
/* Kills a process that takes too long, with all processes that it started. Returns true when the
 * process ended more than a second ago but another process keeps its pipes open; the caller must
 * not wait for them. */
bool process_is_stuck(const conform_options *o, running *r);
/* Waits until both pipes are closed, or the process is stuck. */
void process_wait(const conform_options *o, running *r);

#endif
