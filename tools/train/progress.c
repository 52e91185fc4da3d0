/* SPDX-License-Identifier: MIT
 *
 * The progress of a training run on a terminal. */
#include "progress.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct progress {
    progress_setup setup;
    bool line; /* one line that is updated; false: complete lines */
    bool shown; /* the line is on the terminal */
    const char *phase;
    int64_t epoch, steps;
    double began, written, first; /* the phase, the last output, the epoch */
};

static double now(const progress *p)
{
    struct timespec time;

    if (p->setup.clock != NULL)
        return p->setup.clock();
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

progress *progress_new(const progress_setup *setup)
{
    progress *p = tn_calloc(1, sizeof *p);
    const char *term = getenv("TERM");

    if (p == NULL)
        return NULL;
    p->setup = *setup;
    p->line = setup->style == PROGRESS_LINE;
    if (setup->style == PROGRESS_AUTO)
        p->line = isatty(fileno(setup->to)) && getenv("NO_COLOR") == NULL &&
                  (term == NULL || strcmp(term, "dumb") != 0);
    if (p->setup.interval <= 0)
        p->setup.interval = 10;
    return p;
}

void progress_drop(progress *p)
{
    progress_clear(p);
    tn_free(p);
}

void progress_clear(progress *p)
{
    if (p == NULL || !p->shown)
        return;
    fputs("\r\033[K", p->setup.to);
    fflush(p->setup.to);
    p->shown = false;
}

void progress_begin(progress *p, int64_t epoch, const char *phase, int64_t steps)
{
    if (p == NULL)
        return;
    p->began = now(p);
    p->written = p->began;
    if (epoch != p->epoch)
        p->first = p->began;
    p->epoch = epoch;
    p->phase = phase;
    p->steps = steps;
}

static void put_epoch(progress *p)
{
    if (p->setup.epochs > 0)
        fprintf(p->setup.to, "epoch %lld/%lld", (long long)p->epoch, (long long)p->setup.epochs);
    else
        fprintf(p->setup.to, "epoch %lld", (long long)p->epoch);
}

static void put_metrics(progress *p, const progress_metric *metrics, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        fprintf(p->setup.to, "  %s %.4f", metrics[i].name, metrics[i].value);
}

static void put_left(progress *p, double seconds)
{
    long long left = (long long)seconds;

    fprintf(p->setup.to, "  %lld:%02lld left", left / 60, left % 60);
}

void progress_step(progress *p, int64_t step, int64_t samples, const progress_metric *metrics,
                   int64_t count)
{
    double time, passed;

    if (p == NULL || p->setup.style == PROGRESS_OFF)
        return;
    time = now(p);
    if (time - p->written < (p->line ? 0.1 : p->setup.interval))
        return;
    p->written = time;
    passed = time - p->began;
    if (p->line)
        fputs("\r\033[K", p->setup.to);
    put_epoch(p);
    fprintf(p->setup.to, "  %s %lld/%lld  %.0f samples/s", p->phase, (long long)step,
            (long long)p->steps, passed > 0 ? (double)samples / passed : 0.0);
    if (step > 0 && p->steps > step)
        put_left(p, passed / (double)step * (double)(p->steps - step));
    put_metrics(p, metrics, count);
    if (!p->line)
        fputc('\n', p->setup.to);
    fflush(p->setup.to);
    p->shown = p->line;
}

void progress_epoch(progress *p, const progress_metric *metrics, int64_t count)
{
    if (p == NULL || p->setup.style == PROGRESS_OFF)
        return;
    progress_clear(p);
    put_epoch(p);
    put_metrics(p, metrics, count);
    fprintf(p->setup.to, "  %.1f s\n", now(p) - p->first);
    fflush(p->setup.to);
}

void progress_say(progress *p, const char *format, ...)
{
    va_list args;

    if (p == NULL)
        return;
    progress_clear(p);
    va_start(args, format);
    vfprintf(p->setup.to, format, args);
    va_end(args);
    fputc('\n', p->setup.to);
    fflush(p->setup.to);
}
