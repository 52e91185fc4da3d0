/* SPDX-License-Identifier: MIT
 *
 * The progress of a training run on a terminal: one line that is updated. Elsewhere, and if
 * NO_COLOR or TERM=dumb asks for plain output, complete lines at an interval. */
#ifndef TN_TOOLS_TRAIN_PROGRESS_H
#define TN_TOOLS_TRAIN_PROGRESS_H

#include <stdio.h>

#include <tenon/tenon.h>

typedef struct progress progress;

enum {
    PROGRESS_AUTO = 0, /* a line that is updated if `to` is a terminal that can, else plain lines */
    PROGRESS_LINE = 1, /* a line that is updated */
    PROGRESS_PLAIN = 2, /* complete lines without control characters */
    PROGRESS_OFF = 3    /* only progress_say() */
};

typedef struct progress_setup {
    FILE *to; /* such as stderr */
    int style;
    int64_t epochs;        /* 0: unknown; not shown after this many */
    double interval;       /* seconds between plain lines; 0: 10 */
    double (*clock)(void); /* seconds, never going back; NULL: the clock of the system */
} progress_setup;

typedef struct progress_metric {
    const char *name; /* such as "loss" */
    double value;
    bool is_share; /* an accuracy, between 0 and 1 */
} progress_metric;

/* Writes a number with `digits` significant digits, also if they are zeros: 2.000, 0.01250. Numbers
 * that would be long get an exponent. Returns out. */
const char *progress_number(double number, int digits, char *out, size_t size);

/* Returns NULL and records the failure if memory runs out. The other functions ignore NULL. */
progress *progress_new(const progress_setup *setup);
void progress_drop(progress *p);

/* Begins a phase ("train", "validate") of an epoch. Epochs count from 1; the phase has `steps`
 * steps (0: unknown). The rate and the time left are those of the phase. If the number of epochs is
 * known, the time left in the phase "train" also includes all later epochs, which are assumed to
 * take as long as those that have ended. */
void progress_begin(progress *p, int64_t epoch, const char *phase, int64_t steps);
/* Tells how far the phase is: the steps and the samples since it began, and what to show. Cheap
 * enough for every step: the terminal is written to at most ten times a second. */
void progress_step(progress *p, int64_t step, int64_t samples, const progress_metric *metrics,
                   int64_t count);
/* Ends an epoch: replaces the line by one that stays, with the metrics and the duration. On a
 * terminal the line is made to fit. */
void progress_epoch(progress *p, const progress_metric *metrics, int64_t count);
/* Writes a line that stays, above the one that is updated. */
void progress_say(progress *p, const char *format, ...);
/* Returns how many more lines that stay the terminal has room for, without scrolling away the first
 * of them; -1 without a terminal that tells its height. */
int progress_room(const progress *p);
/* Removes the line that is updated, before something else is written to the terminal. */
void progress_clear(progress *p);

#endif
