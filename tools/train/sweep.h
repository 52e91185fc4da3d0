/* SPDX-License-Identifier: MIT
 *
 * tenon sweep: what its files share. */
#ifndef TN_TOOLS_TRAIN_SWEEP_H
#define TN_TOOLS_TRAIN_SWEEP_H

#include "report_private.h"
#include "settings.h"

enum {
    SWEEP_SETS = 16,     /* --set options */
    SWEEP_TRIALS = 1000, /* trials */
    SWEEP_NAME = 64,     /* bytes of the name in a --set */
    SWEEP_PATH = 4400
};

/* What the name of a --set stands for. */
typedef enum sweep_kind {
    SWEEP_SETTING, /* an option of tenon train */
    SWEEP_OPTION,  /* an option in the spec that an option of tenon train has */
    SWEEP_PLACE    /* {NAME} in the texts of the options */
} sweep_kind;

/* A --set: a list of texts, or a range of numbers. */
typedef struct sweep_range {
    const char *text; /* the argument, such as "lr=1e-4:1e-2" */
    char name[SWEEP_NAME];
    char **values; /* of a list */
    int64_t count; /* 0: a range */
    double low, high;
    bool whole, logarithmic;
    sweep_kind kind;
    setting which;      /* of SWEEP_SETTING and SWEEP_OPTION */
    const char *option; /* of SWEEP_OPTION: the last part of the name */
} sweep_range;

typedef enum sweep_state {
    SWEEP_WAITING,
    SWEEP_STOPPED, /* has begun, and can continue */
    SWEEP_FAILED,
    SWEEP_EARLY, /* finished, by --patience */
    SWEEP_FINISHED,
    SWEEP_STATES
} sweep_state;
extern const char *const sweep_state_names[SWEEP_STATES];

typedef struct sweep_trial {
    char *values[SWEEP_SETS];
    sweep_state state;
    char metric[32]; /* such as "val_accuracy"; "": none */
    double best;
    int64_t best_epoch, epochs;
    char words[1000]; /* why it failed */
} sweep_trial;

typedef struct sweep {
    settings set; /* those that all trials share */
    const char *folder;
    bool grid, retry;
    bool grid_given, trials_given;
    char **sets; /* the arguments of --set */
    int n_sets;
    sweep_range ranges[SWEEP_SETS];
    sweep_trial *trials;
    int64_t n_trials;
    char metric[32]; /* of the first trial that has one: trials are compared by it */
    int lock;        /* descriptor of the folder, which is locked; -1: none */
} sweep;

/* ---- sweep_range.c ---- */

/* Reads the ranges of s->sets, and finds what their names stand for. */
tn_status sweep_range_read(sweep *s);
/* Makes the trials with their values. */
tn_status sweep_range_draw(sweep *s);
void sweep_range_drop(sweep *s);

/* ---- sweep_trial.c ---- */

/* Makes the settings of a trial; fails if a value is wrong. `to` has no settings yet. */
tn_status sweep_trial_settings(const sweep *s, int64_t at, settings *to);
/* Adds a command that trains with these settings into a folder, for a shell. */
void sweep_trial_command(const settings *set, const char *folder, report_text *out);
/* Returns the folder of a trial. */
const char *sweep_trial_folder(const sweep *s, int64_t at, char path[SWEEP_PATH]);
/* Runs a trial in a child process and stores how it ended. A failure is one of the sweep. */
tn_status sweep_trial_run(sweep *s, int64_t at);

/* ---- sweep_files.c ---- */

/* Makes and locks the folder. Takes over what a sweep that continues has; fails with a list if
 * something differs. */
tn_status sweep_files_open(sweep *s);
/* Reads the trials that a sweep that continues has run. */
tn_status sweep_files_read(sweep *s);
/* Writes the table of the trials. */
tn_status sweep_files_write(const sweep *s);
/* Writes what the sweep is. */
tn_status sweep_files_begin(const sweep *s);

/* ---- sweep_answer.c ---- */

/* Returns whether a trial has the metric that the sweep compares. */
bool sweep_answer_has_best(const sweep *s, const sweep_trial *one);
/* Prints a line for a trial that has ended. */
void sweep_answer_trial(const sweep *s, int64_t at);
/* Prints the table, or JSON, of all trials. */
tn_status sweep_answer(const sweep *s);

#endif
