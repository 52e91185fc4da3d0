/* SPDX-License-Identifier: MIT
 *
 * Tables as text, as spreadsheets write them: records, names of columns, labels. */
#ifndef TN_DATA_CSV_H
#define TN_DATA_CSV_H

#include "data.h"

/* ---- records (csv_text.c) -------------------------------------------------------------------- */

/* A text with a record in each line; fields in quotes may have separators and ends of lines. */
struct csv_text {
    const char *path; /* for messages */
    char separator;
    char *at;        /* the rest of the text, which is changed: fields get a NUL at their end */
    int64_t line;    /* where the current record begins, from 1 */
    int64_t next;    /* the line of `at` */
    int64_t columns; /* of each record; 0: not known yet */
    char **fields;   /* of the current record; they point into the text */
    int64_t count, capacity;
};

/* Reads a file into new memory, which the caller frees with tn_free. Fails if it is no text. */
char *csv_load(const char *path);
/* Whether the first two bytes of a file are the mark of UTF-16, and the failure that says so. */
bool csv_is_wide(const char *text);
tn_status csv_wide(const char *path);
/* Checks the option `separator` of a dataset. */
tn_status csv_check_separator(const char *separator);
/* Checks the option `header` of a dataset that can find out whether there is one. */
tn_status csv_check_header(const tn_value *header);
/* Begins to read a text, which may begin with a byte-order mark. csv_end() must follow. */
void csv_begin(struct csv_text *t, const char *path, char separator, char *text);
/* Reads the next record with a field that is not empty, and sets *more to whether there is one. */
tn_status csv_next(struct csv_text *t, bool *more);
void csv_end(struct csv_text *t);
/* Whether a field says that there is no value: empty, NA, NULL and similar. */
bool csv_is_missing(const char *field);
/* Fails unless the text is UTF-8. `what` says what it is. */
tn_status csv_check_utf8(const struct csv_text *t, const char *text, const char *what);

/* ---- columns (csv_labels.c) ------------------------------------------------------------------ */

/* Finds the column of an option: a number, which is negative from the last column on, a name, or
 * None, which sets *out to -1. `names` are those of the columns, NULL: none. */
tn_status csv_column(const struct csv_text *t, const char *option, const tn_value *which,
                     char *const *names, int64_t *out);

/* ---- labels (csv_labels.c) ------------------------------------------------------------------- */

struct csv_labels {
    bool numbers;  /* the labels are numbers, else classes */
    float *values; /* of numbers */
    char **texts;  /* of classes; they point into the text */
    int64_t count, capacity;
};

/* Reads the option `target`: 'class' or 'number'. */
tn_status csv_labels_kind(struct csv_labels *labels, const char *target);
/* Adds the label of a record. */
tn_status csv_labels_add(struct csv_labels *labels, const struct csv_text *t, int64_t column);
/* Numbers the classes of `memory`, which has as many samples as there are labels. `names` is the
 * option `classes`: None, or a list of the names in their order. */
tn_status csv_labels_number(const struct csv_labels *labels, const tn_value *names,
                            struct data_memory *memory);
void csv_labels_free(struct csv_labels *labels);

/* ---- files without labels (csv_rows.c) ------------------------------------------------------- */

/* The samples of files, one after the other, each with its file and its number. */
struct csv_rows;

/* Opens the files of the option `paths`. `make` opens one of them. */
tn_status csv_rows_open(tn_dataset_open *args, const tn_value *paths,
                        tn_dataset *(*make)(const void *options, const char *path));
tn_status csv_rows_get(const tn_sample_args *args);
void csv_rows_close(void *handle);

#endif
