/* SPDX-License-Identifier: MIT
 *
 * tenon report: what its files share. */
#ifndef TN_TOOLS_TRAIN_COMPARE_H
#define TN_TOOLS_TRAIN_COMPARE_H

#include "report_private.h"
#include "settings.h"

enum {
    COMPARE_RUNS = 6, /* as many as the page has colors */
    COMPARE_NAME = 64,
    COMPARE_COLUMNS = 6
};

/* The best value of a column; NaN: none. */
typedef struct compare_best {
    double value;
    int64_t epoch; /* 0: not known */
} compare_best;

/* A run that was read. */
typedef struct compare_run {
    const char *folder;
    char name[COMPARE_NAME]; /* without '/', different from those of the others */
    report rows;             /* its series and epochs; nothing else of it is used */
    char *settings[SETTINGS];
    bool known; /* the settings are those of a checkpoint */
    compare_best best[COMPARE_COLUMNS];
} compare_run;

typedef struct compare {
    compare_run runs[COMPARE_RUNS];
    int count;
} compare;

/* The scalars of which the best values are compared. */
typedef struct compare_column {
    const char *scalar, *title;
    bool more; /* larger values are better */
} compare_column;
extern const compare_column compare_columns[COMPARE_COLUMNS];

/* Return whether a run has the column, and whether no run has a better value of it than this. */
bool compare_has(const compare *all, int column);
bool compare_is_best(const compare *all, int column, double value);
/* Returns the text of a setting of a run, "-" if it has none. */
const char *compare_setting(const compare_run *run, int which);
/* Returns the number of runs whose settings are known. */
int compare_known(const compare *all);
/* Returns whether the runs whose settings are known have different ones. */
bool compare_differs(const compare *all, int which);
int64_t compare_steps(const compare_run *run);

/* compare_page.c: writes the page to a file. Takes the series out of the runs. */
tn_status compare_page(compare *all, const char *path);

#endif
