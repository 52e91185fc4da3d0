/* SPDX-License-Identifier: MIT
 *
 * The settings of tenon train and tenon finetune: one table with names, defaults and help, read
 * from the command line, from a file (config.c) and from a checkpoint. */
#ifndef TN_TOOLS_TRAIN_SETTINGS_H
#define TN_TOOLS_TRAIN_SETTINGS_H

#include "../tool.h"

typedef enum setting {
    SET_MODEL,
    SET_INIT,
    SET_HEAD,
    SET_UNFREEZE,
    SET_FREEZE,
    SET_DATA,
    SET_VAL,
    SET_VAL_SPLIT,
    SET_TRANSFORM,
    SET_AUGMENT,
    SET_STANDARDIZE,
    SET_MIX,
    SET_LOSS,
    SET_OPTIM,
    SET_SCHEDULE,
    SET_SCHEDULE_BY,
    SET_EPOCHS,
    SET_MAX_STEPS,
    SET_BEST,
    SET_PATIENCE,
    SET_BATCH_SIZE,
    SET_ACCUMULATE,
    SET_SHARDS,
    SET_CLIP_NORM,
    SET_EMA,
    SET_AMP,
    SET_COMPILE,
    SET_COMPILE_STEP,
    SET_SEED,
    SET_DEVICE,
    SET_WORKERS,
    SET_SKIP_DAMAGED,
    SET_FIND_LR,
    SET_CHART,
    SET_OUT,
    SET_RESUME,
    SET_KEEP,
    SET_CHECKPOINT_EVERY,
    SET_CONFIG,
    SETTINGS
} setting;

/* What a setting takes. */
typedef enum setting_kind {
    SETTING_TEXT,
    SETTING_COUNT,
    SETTING_NUMBER,
    SETTING_FLAG
} setting_kind;

enum {
    SETTING_TUNE = 1,    /* only of tenon finetune */
    SETTING_SAME = 2,    /* must not change when a run is resumed; is kept in the checkpoint */
    SETTING_KEPT = 4,    /* is kept in the checkpoint, and may change */
    SETTING_LIST = 8,    /* can be given several times; the texts are joined by commas */
    SETTING_NEEDED = 16, /* must be given, unless a run is resumed */
    SETTING_ALONE = 32,  /* of one run: not of tenon sweep */
    SETTING_ONCE = 64    /* given twice, it is an error: several datasets are not joined */
};

typedef struct setting_row {
    const char *name;  /* without dashes, such as "batch-size" */
    const char *value; /* what the help calls the value */
    setting_kind kind;
    int flags;
    const char *standard; /* the default; NULL: none */
    double least;         /* of numbers */
    const char *help;
} setting_row;

/* Where the text of a setting comes from; later ones win. */
typedef enum setting_origin { FROM_TABLE, FROM_CHECKPOINT, FROM_FILE, FROM_USER } setting_origin;

/* The command whose settings they are. */
typedef enum setting_command { OF_TRAIN, OF_FINETUNE, OF_SWEEP } setting_command;

typedef struct settings {
    setting_command of;
    bool json; /* --json was given */
    char *text[SETTINGS];
    setting_origin origin[SETTINGS];
} settings;

/* What decides which weights are best (--best). */
typedef enum metric {
    METRIC_LOSS,
    METRIC_ACCURACY,
    METRIC_TOP5,
    METRIC_F1,
    METRIC_AUC,
    METRIC_COUNT
} metric;
extern const char *const metric_names[METRIC_COUNT];
/* Returns the metric with this name, METRIC_COUNT if there is none. */
metric metric_find(const char *name);

const setting_row *settings_row(setting which);
/* Sets all settings to their defaults. */
tn_status settings_init(settings *s, setting_command of);
void settings_free(settings *s);
/* Finds a setting by its name, with - or _ between words. Returns SETTINGS and records a failure
 * that names the nearest setting if there is none. */
setting settings_find(const settings *s, const char *name);
/* Checks a text and stores it, unless the current one comes from a later origin. */
tn_status settings_put(settings *s, setting which, const char *text, setting_origin origin);
/* Reads the command line, and the file of --config. */
tn_status settings_read(settings *s, int count, char **arguments);
/* Prints the options of a command for its help. */
void settings_help(setting_command of);

/* Reads a file of settings in TOML or JSON (config.c). */
tn_status config_read(settings *s, const char *path);

/* The text of a setting, NULL if there is none; its value as a number; whether a flag is set. */
static inline const char *setting_text(const settings *s, setting which)
{
    return s->text[which];
}
int64_t setting_count(const settings *s, setting which);
double setting_number(const settings *s, setting which);
bool setting_on(const settings *s, setting which);
static inline bool setting_given(const settings *s, setting which)
{
    return s->origin[which] > FROM_CHECKPOINT;
}

#endif
