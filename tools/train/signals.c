/* SPDX-License-Identifier: MIT
 *
 * Signals that interrupt a training. */
#include "train.h"

#include <signal.h>
#include <time.h>

static volatile sig_atomic_t asked;

/* The second signal ends the process by its default action. */
static void handle(int number)
{
    asked = number;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

void signals_watch(void)
{
    struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* A file that reaches the size limit of the process is an error of the write. */
    signal(SIGXFSZ, SIG_IGN);
}

int signals_asked(void)
{
    return asked;
}

double run_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
