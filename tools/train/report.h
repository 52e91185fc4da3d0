/* SPDX-License-Identifier: MIT
 *
 * What a training run writes for people into its folder:
 *
 *   metrics.csv                     a row for each step at which a scalar was recorded
 *   events.out.tfevents.tenon       the same scalars, and histograms and pictures, for TensorBoard
 *   report.html                     one page with curves, confusion matrix, samples, histograms
 *
 * A report is used by one thread. Functions that return tn_status record the failure (tn_fail);
 * the report stays usable: a failed write leaves the files as they were before the call, so the
 * caller may continue without the report or end the run. Writes beyond the size limit of a process
 * (ulimit -f) raise SIGXFSZ, which ends it unless the program ignores that signal. */
#ifndef TN_TOOLS_TRAIN_REPORT_H
#define TN_TOOLS_TRAIN_REPORT_H

#include <tenon/tenon.h>

typedef struct report report;

/* A row of a table of texts, such as { "optimizer", "SGD(lr=0.1)" }. */
typedef struct report_row {
    const char *name;
    const char *value;
} report_row;

/* What report_open() does with a run that is in the folder already. */
enum {
    REPORT_NEW = 0,     /* fails with TN_ERR_REFUSED */
    REPORT_REPLACE = 1, /* replaces its files */
    REPORT_RESUME = 2   /* continues after resume_step; later steps are removed from the files */
};

enum { REPORT_WORST = 20 };

/* The description of a run. All texts and lists are copied; NULL and 0 leave things out. */
typedef struct report_setup {
    const char *folder; /* made with its parents if it does not exist */
    const char *title;  /* such as "LeNet on MNIST"; NULL: the name of the folder */
    int how;            /* REPORT_NEW, REPORT_REPLACE, REPORT_RESUME */
    int64_t resume_step;
    const report_row *settings; /* the configuration: dataset, network, optimizer, seed, ... */
    int64_t setting_count;
    const report_row *environment; /* what the caller adds to the versions, device, threads and
                                      plugins, which are read from the library */
    int64_t environment_count;
    const char *const *classes; /* names; NULL: their numbers */
    int64_t class_count;
    int64_t epochs; /* planned; 0: unknown */
} report_setup;

/* Opens a report in a folder. On failure *out is NULL. */
tn_status report_open(report **out, const report_setup *setup);

/* Records the value of a scalar at a step. A name has the form CHART or CHART/SERIES: scalars whose
 * names differ only after the last '/' share a chart ("loss/train", "loss/validation"), as they do
 * in TensorBoard. "learning_rate" and "samples_per_second" have a place of their own on the page.
 * Values may be NaN or infinite. Steps may not decrease. The values of a step become one row of
 * metrics.csv when the step is complete: with the first scalar of a later step, or by
 * report_epoch(), report_flush() or report_close(). */
tn_status report_scalar(report *r, const char *name, int64_t step, double value);

/* Ends an epoch (from 1) after `step`. Writes the row of the step; records the duration of the
 * epoch as the scalar "epoch_seconds" and its number as "epoch", both at `step`; takes the
 * confusion counts and worst samples since the last call as those of this epoch; writes report.html
 * if the last time is long enough ago that writing it costs little of the run. `seconds` is the
 * duration of the epoch; a negative one means the time since the report was opened or the last
 * epoch ended. */
tn_status report_epoch(report *r, int64_t epoch, int64_t step, double seconds);
/* Returns the step of the last epoch of this process whose row and events were written, 0 without
 * one: that of a report_epoch() that failed if only its page could not be written. */
int64_t report_epoch_step(const report *r);

/* Adds `count` predictions of validation: the class of each sample and the predicted class, from 0.
 * Classes beyond class_count are TN_ERR_INDEX. */
tn_status report_predictions(report *r, const int64_t *truth, const int64_t *predicted,
                             int64_t count);
/* Adds a matrix of counts [class_count, class_count]: row true class, column predicted class. */
tn_status report_confusion(report *r, const int64_t *counts);

/* A validated sample. The tensors are read only during the call, and only if the loss is among the
 * REPORT_WORST largest of the epoch. */
typedef struct report_sample {
    tn_tensor *image;  /* [H, W] or [C, H, W], C 1, 3 or 4 (with alpha); of integers: 0 to 255; of
                          floats: 0 to 1, other ranges are stretched to it. NULL: no picture */
    int64_t index;     /* in the dataset; -1: unknown */
    int64_t truth;     /* class; -1: unknown */
    int64_t predicted; /* class; -1: unknown */
    double loss;
} report_sample;
tn_status report_worst(report *r, const report_sample *sample);
/* Gives the worst samples of the current epoch names, such as those of their files. `name` writes
 * that of the sample at an index of the dataset, and returns false if it has none. */
tn_status report_name_worst(report *r,
                            bool (*name)(void *user, int64_t index, char *out, size_t size),
                            void *user);
/* Returns true if a sample of this loss would be among the worst. A caller can ask before it cuts a
 * sample out of its batch. NaN counts as larger than all numbers. */
bool report_is_bad(const report *r, double loss);
/* Returns true if report_worst() can draw a tensor of this shape. */
bool report_can_draw(const tn_tensor *image);

enum { REPORT_WEIGHTS = 0, REPORT_GRADIENTS = 1 };

/* Records the distribution of the values of a parameter or of its gradient, from any device. */
tn_status report_histogram(report *r, int kind, const char *parameter, int64_t step,
                           tn_tensor *values);

/* Writes the row of the step that is not complete yet, and makes the files durable. For use before
 * a checkpoint is saved: after a crash, a resume at its step finds everything. */
tn_status report_flush(report *r);
/* Writes report.html now. */
tn_status report_page(report *r);

/* Ends the run: flushes, writes report.html with `outcome` ("finished", "stopped by the user",
 * "failed: ..."), and frees the report in any case. NULL is ignored. Returns the first failure. */
tn_status report_close(report *r, const char *outcome);

/* ---- at the end, for the terminal ------------------------------------------------------------ */

/* Returns the number of values of a scalar that the report holds, and copies at most `capacity` of
 * them in the order of their steps. A long series is thinned out, its extremes stay. */
int64_t report_values(const report *r, const char *name, int64_t *steps, double *values,
                      int64_t capacity);
/* Prints a loss, the average of each epoch, as a chart of characters on standard output, with at
 * most `room` lines (-1: any number). Prints nothing if there are less than two epochs, or if the
 * room does not suffice. */
tn_status report_chart(const report *r, const char *name, int room);

#endif
