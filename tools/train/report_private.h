/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of a report: texts, files, series, events, the parts of the page. */
#ifndef TN_TOOLS_TRAIN_REPORT_PRIVATE_H
#define TN_TOOLS_TRAIN_REPORT_PRIVATE_H

#include "report.h"

/* ---- limits ---------------------------------------------------------------------------------- */

enum {
    REPORT_POINTS = 16384, /* points of a series in memory; a longer series is thinned out */
    REPORT_NAME = 256,     /* bytes of the name of a scalar or parameter */
    REPORT_BINS = 64,      /* bins of a histogram; two more hold values beyond the range of these */
    REPORT_TIMES = 32,     /* histograms of a parameter in memory */
    REPORT_SIDE = 96       /* pixels of the longer side of a picture */
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
/* Adds formatted text. The format is that of tn_snprint. */
void report_text_add(report_text *t, const char *format, ...);
/* Adds a string as text of HTML, also for attributes in double quotes. Bytes that are not valid
 * UTF-8, and control characters, become U+FFFD. */
void report_text_html(report_text *t, const char *string);
/* Adds a string as JSON with its quotes; '<', '>' and '&' are escaped, so that it can be in a
 * script element. */
void report_text_json(report_text *t, const char *string);
/* Like report_text_html(), but a string of more than `most` characters ends in an ellipsis. */
void report_text_short(report_text *t, const char *string, int most);
/* Add a number for readers: with four digits; a whole number with commas; a duration, of which
 * `seconds` is the length. */
void report_text_number(report_text *t, double number);
void report_text_whole(report_text *t, double number);
void report_text_duration(report_text *t, double seconds);
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
/* Replaces everything from an offset on. The old bytes are written over, not cut off first, so a
 * process that is killed before the write does not lose them. */
tn_status report_file_end(report_file *f, int64_t offset, const void *bytes, size_t size);
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
    double smooth; /* moving average up to this value */
} report_point;

/* The values of a scalar. */
typedef struct report_series {
    char *name;
    report_point *points; /* finite values in the order of their steps */
    int64_t count, room;
    int64_t total;         /* values that were recorded, not finite ones included */
    int64_t bad, bad_step; /* values that are not finite, and the step of the first */
    double smooth;         /* the average after the last value */
    int64_t smoothed;      /* number of finite values that the average has seen */
    int64_t stride;        /* of every `stride` values the least and the largest stay */
    int64_t part,
        in_part; /* index of the first point of the current `stride` values; their number so far */
    double least, most; /* the least and the largest finite value */
    double moved;       /* sum of the differences between successive values, without their signs */
    double row;         /* the value in the current row of metrics.csv */
    bool in_row;        /* `row` has a value */
    bool fresh;         /* the value in `row` is not in the event file yet */
    int color;          /* 1 + the number of its color in all charts; 0: by its name */
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

/* ---- histograms (report_histograms.c) -------------------------------------------------------- */

/* The distribution of the values of a tensor at a step. */
typedef struct report_bins {
    int64_t step;
    int64_t bad;              /* values that are not finite; the other members do not count them */
    double number, low, high; /* number of values, the least and the largest value */
    double sum, squares;      /* sum of the values, sum of their squares */
    int64_t count;            /* bins */
    double limits[REPORT_BINS + 2]; /* upper ends; the first bin begins at `low` */
    double counts[REPORT_BINS + 2];
} report_bins;

/* The distributions of a parameter or its gradient. */
typedef struct report_spread {
    char *name;
    int kind;
    report_bins *times; /* in the order of their steps */
    int64_t count;
    int64_t bad, bad_step; /* values that are not finite, and the step of the first */
} report_spread;

typedef struct report_spreads {
    report_spread *spreads;
    int64_t count, room, next;
} report_spreads;

/* The first part of the tags of histograms, by kind: "weights/", "gradients/". */
extern const char *const report_histogram_tags[2];
/* Adds a distribution. If REPORT_TIMES are there, every second one is removed first. */
tn_status report_histogram_keep(report_spreads *all, int kind, const char *name,
                                const report_bins *bins);
void report_histogram_drop(report_spreads *all);

/* ---- pictures (report_png.c, report_samples.c) ----------------------------------------------- */

typedef struct report_picture {
    int width, height, channels; /* channels: 1 for gray, 3 for RGB, 4 for RGBA */
    unsigned char *pixels;       /* rows from the top, channels of a pixel side by side */
} report_picture;

/* Adds a picture as a PNG file. */
tn_status report_png(report_text *out, const report_picture *picture);
/* Adds bytes in base64. */
void report_base64(report_text *out, const void *bytes, size_t size);

/* One of the worst samples. */
typedef struct report_shot {
    report_picture picture; /* pixels NULL: no picture */
    char *name;             /* NULL: none */
    int64_t index, truth, predicted;
    double loss;
} report_shot;

typedef struct report_shots {
    report_shot shots[REPORT_WORST]; /* the worst first */
    int count;
    int64_t epoch;
} report_shots;

void report_samples_drop(report_shots *shots);

/* ---- predictions (report_counts.c) ----------------------------------------------------------- */

typedef struct report_count {
    int64_t truth, predicted;
    int64_t count; /* 0: the place is free */
} report_count;

/* The pairs of classes that occurred: a hash table whose size is a power of two. */
typedef struct report_counts {
    report_count *places;
    int64_t used, size;
    int64_t epoch;
} report_counts;

tn_status report_counts_add(report_counts *all, int64_t truth, int64_t predicted, int64_t count);
int64_t report_counts_get(const report_counts *all, int64_t truth, int64_t predicted);
void report_counts_drop(report_counts *all);

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
    bool row_dirty;     /* the current row has values that are not in the files */
    report_epochs *epochs;
    int64_t epoch_count, epoch_room;
    double began, epoch_began, page_took, page_ended;
    report_text values; /* the values of the event for the current row, in its format */
    report_spreads spreads;
    report_counts counting,
        counts; /* counts of this epoch; counts of the last epoch that had any */
    report_shots shooting, shots;
    const char *outcome; /* NULL: the run continues */
    int64_t epoch_step;  /* of the last epoch whose row and events are in the files; 0: none */
};

/* Check a name, and begin the row of a step if it is a new one; steps may not go back. */
tn_status report_check_name(const char *name);
tn_status report_at(report *r, int64_t step);

/* ---- metrics.csv (report_rows.c) ------------------------------------------------------------- */

/* Adds a field to a line; one with a comma or a quote gets quotes. */
void report_rows_put(report_text *t, const char *text);
/* Takes the next field of a line off `*at` into `out`, without quotes. Returns false after the
 * last. */
bool report_rows_field(const char **at, report_text *out);
/* Reads metrics.csv of a run, which may still go on, into the series and epochs of a report that
 * has nothing else; only reads. */
tn_status report_rows_load(report *r, const char *folder);
/* Opens metrics.csv, an empty one or the rows up to resume_step, which it adds to the series. */
tn_status report_rows_open(report *r, const report_setup *setup);
/* Writes the current row. */
tn_status report_rows_write(report *r);
/* Adds the current row to the epochs. */
tn_status report_rows_epoch(report *r, int64_t epoch, int64_t step);

/* ---- the page (report_page.c, report_plot.c, ...) -------------------------------------------- */

/* Make the rows of the tables of settings and of the environment. */
tn_status report_page_rows(report *r, const report_setup *setup);
/* Adds the beginning of a page up to its title, which is its only h1. */
void report_page_begin(report_text *page, const char *title);
/* Adds the present time. */
void report_page_time(report_text *page);
/* Adds the end of a page: a note, which is HTML, and the values of its charts. */
void report_page_end(report_text *page, const char *note, const report_text *data);
/* Adds the whole page. */
tn_status report_page_text(const report *r, report_text *page);
/* Each adds a section of the page, if the run has what it shows. */
void report_plot_section(const report *r, report_text *page, report_text *data);
void report_epochs_section(const report *r, report_text *page);
void report_matrix_section(const report *r, report_text *page);
void report_samples_section(const report *r, report_text *page);
void report_ridges_section(const report *r, report_text *page);
/* Returns the part of the name of a scalar after the last '/', or NULL, and stores the length of
 * the part before it, or of the whole name. */
const char *report_plot_series(const char *name, int *chart);
/* Adds what the page calls a scalar or chart. */
void report_plot_title(report_text *page, const char *name, int length);
/* Returns the order of a scalar or chart on the page: the loss is 0. */
int report_plot_rank(const char *name, int length);

/* ---- event file (report_events.c, report_replay.c) ------------------------------------------- */

/* Opens the event file, an empty one or the events up to resume_step. */
tn_status report_events_open(report *r, const report_setup *setup);
/* Reads the histograms of the events up to a step. *kept becomes the size of these events. */
tn_status report_replay(report *r, int64_t resume_step, int64_t *kept);
/* Returns the checksum of a part of a record. */
uint32_t report_event_sum(const void *bytes, size_t size);
/* Add a value to the event of the current row. */
tn_status report_event_scalar(report *r, const char *tag, double value);
tn_status report_event_bins(report *r, const char *tag, const report_bins *bins);
tn_status report_event_picture(report *r, const char *tag, const report_picture *picture,
                               const report_text *png);
/* Writes the event of the current row, if it has values. */
tn_status report_events_write(report *r);

#endif
