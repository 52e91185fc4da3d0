/* SPDX-License-Identifier: MIT
 *
 * The progress of a training run on a terminal. */
#include "progress.h"

struct progress {
    progress_setup setup;
};

progress *progress_new(const progress_setup *setup)
{
    progress *p = tn_calloc(1, sizeof *p);
    if (p != NULL)
        p->setup = *setup;
    return p;
}

void progress_drop(progress *p)
{
    tn_free(p);
}

void progress_begin(progress *p, int64_t epoch, const char *phase, int64_t steps)
{
}
void progress_step(progress *p, int64_t step, int64_t samples, const progress_metric *metrics,
                   int64_t count)
{
}
void progress_epoch(progress *p, const progress_metric *metrics, int64_t count)
{
}
void progress_say(progress *p, const char *format, ...)
{
}
void progress_clear(progress *p)
{
}
