/* SPDX-License-Identifier: MIT
 *
 * Signals that interrupt a training. */
#include "train.h"

#include <signal.h>
#include <time.h>

static volatile sig_atomic_t asked;

static const int stopping[] = { SIGINT, SIGTERM, SIGHUP };
enum { STOPPING = sizeof stopping / sizeof *stopping };

/* The second signal ends the process by its default action, except for SIGHUP: a terminal that is
 * closed sends it twice, by its shell and by the kernel. */
static void handle(int number)
{
    asked = number;
    for (int i = 0; i < STOPPING; i++)
        signal(stopping[i], stopping[i] == SIGHUP ? SIG_IGN : SIG_DFL);
}

/* Returns whether who started this process wants it to ignore SIGHUP, as nohup does. */
static bool is_kept(int number)
{
    struct sigaction now;

    return number == SIGHUP && sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void signals_watch(void)
{
    struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };

    sigemptyset(&action.sa_mask);
    for (int i = 0; i < STOPPING; i++)
        if (!is_kept(stopping[i]))
            sigaction(stopping[i], &action, NULL);
    /* A file that reaches the size limit of the process is an error of the write; so is a pipe
     * whose reader has ended: the training goes on without one. */
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
}

void signals_unwatch(void)
{
    for (int i = 0; i < STOPPING; i++)
        if (!is_kept(stopping[i]))
            signal(stopping[i], SIG_DFL);
}

bool signals_stopped(int code)
{
    for (int i = 0; i < STOPPING; i++)
        if (code == 128 + stopping[i])
            return true;
    return false;
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
