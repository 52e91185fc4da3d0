/* SPDX-License-Identifier: MIT
 *
 * What the files of a report share: texts, files, series, events, the parts of the page. */
#ifndef TN_TOOLS_TRAIN_REPORT_PRIVATE_H
#define TN_TOOLS_TRAIN_REPORT_PRIVATE_H

#include "report.h"

/* ---- limits ---------------------------------------------------------------------------------- */

enum {
    REPORT_POINTS = 16384, /* of a series in memory; a longer one is thinned out */
    REPORT_NAME = 256      /* bytes of the name of a scalar or parameter */
};

/* ---- texts (report_text.c) ------------------------------------------------------------------- */

/* A text that grows. After a failure `status` is not TN_OK and nothing more is added. */
typedef struct report_text {
    char *bytes; /* ends with a NUL that is not counted; NULL while the text is empty */
    size_t size, room;
    tn_status status;
} report_text;

void report_text_bytes(report_text *t, const void *bytes, size_t size);
void report_text_put(report_text *t, const char *string);
/* The format is that of tn_snprint. */
void report_text_add(report_text *t, const char *format, ...);
/* Adds a string as text of HTML, also for attributes in double quotes. Bytes that are not valid
 * UTF-8, and control characters, become U+FFFD. */
void report_text_html(report_text *t, const char *string);
/* Adds a string as JSON with its quotes; '<', '>' and '&' are escaped, so that it can stand in a
 * script element. */
void report_text_json(report_text *t, const char *string);
void report_text_drop(report_text *t);

/* ---- files (report_files.c) ------------------------------------------------------------------ */

/* A file that only grows. */
typedef struct report_file {
    int fd;       /* -1: not open */
    int64_t size; /* of what was written completely */
    char *path;
} report_file;

/* Makes a folder with its parents. */
tn_status report_file_folder(const char *folder);
/* Returns FOLDER/NAME, which the caller frees with tn_free; NULL on failure. */
char *report_file_path(const char *folder, const char *name);
/* Opens a file for report_file_append(), at its end; creates it if it does not exist. Takes over
 * `path` in any case. */
tn_status report_file_open(report_file *f, char *path);
/* Appends bytes. After a failure the file has the size that it had before. */
tn_status report_file_append(report_file *f, const void *bytes, size_t size);
/* Shortens the file to a size that it had before. */
tn_status report_file_cut(report_file *f, int64_t size);
tn_status report_file_sync(report_file *f);
/* Closes the file and frees the path. Does nothing if it is not open. */
tn_status report_file_close(report_file *f);
/* Reads a whole file. A file that does not exist is an empty text. */
tn_status report_file_read(const char *path, report_text *out);
/* Replaces a file, or creates it, by a complete new one; on failure the old one stays. */
tn_status report_file_replace(const char *path, const void *bytes, size_t size);

/* ---- series (report_series.c) ---------------------------------------------------------------- */

typedef struct report_point {
    int64_t step;
    double value;
    double smooth; /* average of the values so far, in which older ones count less and less */
} report_point;

/* The values of a scalar. */
typedef struct report_series {
    char *name;
    report_point *points; /* finite values in the order of their steps */
    int64_t count, room;
    int64_t total;         /* values that were recorded, not finite ones included */
    int64_t bad, bad_step; /* values that are not finite, and the step of the first */
    double smooth;         /* the average after the last value */
    int64_t smoothed;      /* finite values in it */
    double row;            /* the value in the current row of metrics.csv */
    bool in_row;           /* it has one */
    bool fresh;            /* that is not in the event file yet */
} report_series;

typedef struct report_list {
    report_series *series;
    int64_t count, room;
    int64_t next; /* where the next search begins */
} report_list;

/* Finds a series by its name; returns NULL, without a failure, if there is none. */
report_series *report_series_find(const report_list *list, const char *name);
/* Finds a series, or adds one. Returns NULL and records the failure. */
report_series *report_series_make(report_list *list, const char *name);
/* Adds a value, or replaces the last one if it has the same step. */
tn_status report_series_add(report_series *s, int64_t step, double value);
/* Copies at most `most` points (at least 4) whose steps are spread evenly, with the least and the
 * largest value of each part. Returns their number. */
int64_t report_series_thin(const report_point *from, int64_t count, report_point *to, int64_t most);
void report_series_drop(report_list *list);

/* ---- the run (report.c) ---------------------------------------------------------------------- */

/* The values of all series at the end of an epoch. */
typedef struct report_epochs {
    int64_t epoch, step;
    double *values; /* by series; NaN: none */
    int64_t count;
} report_epochs;

struct report {
    char *folder, *title, *page_path;
    report_text settings, environment; /* rows of HTML */
    char **classes;
    int64_t class_count, planned;
    report_file csv, events;
    int64_t columns; /* series that have a column in metrics.csv */
    report_list list;
    int64_t row_step;   /* -1: no row has begun */
    int64_t row_offset; /* where the current row is, or will be, in metrics.csv */
    bool row_dirty;     /* it has values that are not in the files */
    report_epochs *epochs;
    int64_t epoch_count, epoch_room;
    int64_t step; /* of the last call */
    double began, epoch_began, page_took, page_ended;
};

/* ---- metrics.csv (report_rows.c) ------------------------------------------------------------- */

/* Opens metrics.csv, an empty one or the rows up to resume_step, which it adds to the series. */
tn_status report_rows_open(report *r, const report_setup *setup);
/* Writes the current row. */
tn_status report_rows_write(report *r);
/* Adds the current row to the epochs. */
tn_status report_rows_epoch(report *r, int64_t epoch, int64_t step);

#endif
