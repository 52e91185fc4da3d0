/* SPDX-License-Identifier: MIT
 *
 * The files of a sweep, besides the folders of its trials. sweep.csv has what the sweep is: an
 * option and its value in each line. trials.csv has the table of the trials; a sweep that continues
 * reads which of them have ended. Both are replaced as a whole. */
#include "sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>

enum {
    LOCK_TRIES = 60, /* a tenth of a second each, for a trial whose sweep was killed */
    FIRST_VALUE = 7, /* the column of the first --set in trials.csv */
    FIELDS = FIRST_VALUE + SWEEP_SETS
};

static const char options_header[] = "option,value\n",
                  trials_header[] = "trial,state,metric,best,best_epoch,epochs,message";

/* What may differ when a sweep continues: it does not change what the trials compute. */
static const setting may_differ[] = { SET_DEVICE, SET_WORKERS, SET_KEEP, SET_CHECKPOINT_EVERY };

static tn_status read_whole(const sweep *s, const char *name, report_text *out)
{
    char path[SWEEP_PATH];
    tn_status status;

    tn_snprint(path, sizeof path, "%s/%s", s->folder, name);
    status = report_file_read(path, out);
    if (status == TN_OK && out->size > 0 && memchr(out->bytes, '\0', out->size) != NULL)
        return tn_fail(TN_ERR_FORMAT, "--resume: %s: it has a byte 0; expected a file of a sweep",
                       path);
    return status;
}

static tn_status write_whole(const sweep *s, const char *name, report_text *text)
{
    char path[SWEEP_PATH];
    tn_status status = text->status;

    tn_snprint(path, sizeof path, "%s/%s", s->folder, name);
    if (status == TN_OK)
        status = report_file_replace(path, text->bytes, text->size);
    report_text_drop(text);
    return status;
}

/* Takes a line off a text. Returns NULL after the last; one without its end is none. */
static char *next_line(char **at)
{
    char *line = *at, *end = line != NULL ? strchr(line, '\n') : NULL;

    if (end == NULL)
        return NULL;
    *end = '\0';
    *at = end + 1;
    return line;
}

/* ---- what the sweep is ----------------------------------------------------------------------- */

static void put_option(report_text *t, const char *name, const char *value)
{
    report_text_put(t, name);
    report_text_put(t, ",");
    report_rows_put(t, value);
    report_text_put(t, "\n");
}

tn_status sweep_files_begin(const sweep *s)
{
    report_text t = { .status = TN_OK };
    char number[24];

    report_text_put(&t, options_header);
    for (int i = 0; i < s->n_sets; i++)
        put_option(&t, "set", s->sets[i]);
    tn_snprint(number, sizeof number, "%lld", (long long)s->n_trials);
    put_option(&t, "trials", number);
    put_option(&t, "grid", s->grid ? "true" : "false");
    for (int i = 0; i < SETTINGS; i++)
        if (setting_text(&s->set, (setting)i) != NULL && s->set.origin[i] > FROM_TABLE &&
            i != SET_OUT && i != SET_RESUME && i != SET_CONFIG)
            put_option(&t, settings_row((setting)i)->name, setting_text(&s->set, (setting)i));
    return write_whole(s, "sweep.csv", &t);
}

/* What is read of sweep.csv, and what of it the command line has another value for. */
typedef struct reading {
    sweep *s;
    int sets; /* that were read */
    bool given_sets;
    bool there[SETTINGS];
    int different;
} reading;

static void say_difference(reading *r, const char *name, const char *was, const char *here)
{
    if (r->different++ == 0)
        fprintf(stderr, "tenon: the sweep in %s has other settings:\n", r->s->folder);
    fprintf(stderr, "  --%s: %s; here %s\n", name, was, here);
}

static bool can_differ(setting which)
{
    for (size_t i = 0; i < sizeof may_differ / sizeof *may_differ; i++)
        if (may_differ[i] == which)
            return true;
    return false;
}

/* Compares a --set with that of the command line, or takes it over. */
static tn_status take_set(reading *r, const char *value)
{
    sweep *s = r->s;
    int at = r->sets++;
    char **more, *copy;

    if (r->given_sets) {
        if (at >= s->n_sets || strcmp(s->sets[at], value) != 0)
            say_difference(r, "set", value, at < s->n_sets ? s->sets[at] : "not given");
        return TN_OK;
    }
    more = at < SWEEP_SETS ? tn_realloc(s->sets, (size_t)(at + 1) * sizeof *more) : NULL;
    if (more == NULL)
        return at < SWEEP_SETS
                   ? TN_ERR_MEMORY
                   : tn_fail(TN_ERR_FORMAT, "--resume: too many set, expected %d", SWEEP_SETS);
    s->sets = more;
    copy = tn_strdup(value);
    if (copy == NULL)
        return TN_ERR_MEMORY;
    s->sets[s->n_sets++] = copy;
    return TN_OK;
}

static tn_status take_setting(reading *r, setting which, const char *value)
{
    settings *set = &r->s->set;
    bool given = setting_given(set, which);

    r->there[which] = true;
    if (given && !can_differ(which) && strcmp(setting_text(set, which), value) != 0) {
        say_difference(r, settings_row(which)->name, value, setting_text(set, which));
        return TN_OK;
    }
    return given ? TN_OK : settings_put(set, which, value, FROM_CHECKPOINT);
}

static tn_status take_line(reading *r, const char *name, const char *value)
{
    sweep *s = r->s;
    setting which;
    int64_t trials;

    if (strcmp(name, "set") == 0)
        return take_set(r, value);
    if (strcmp(name, "trials") == 0) {
        if (!tn_read_int(value, &trials) || trials < 1 || trials > SWEEP_TRIALS)
            return tn_fail(TN_ERR_FORMAT,
                           "--resume: %s/sweep.csv: trials: wrong, got %q; expected a whole number "
                           "from 1 to %d",
                           s->folder, value, SWEEP_TRIALS);
        s->n_trials = s->trials_given ? s->n_trials : trials;
        return TN_OK;
    }
    if (strcmp(name, "grid") == 0) {
        bool grid = strcmp(value, "true") == 0;

        if (s->grid_given && !grid)
            say_difference(r, "grid", "not given", "given");
        s->grid = grid;
        return TN_OK;
    }
    which = settings_find(&s->set, name);
    return which != SETTINGS ? take_setting(r, which, value) : tn_error_last_code();
}

static tn_status read_options(sweep *s, report_text *text)
{
    reading r = { .s = s, .given_sets = s->n_sets > 0 };
    report_text name = { .status = TN_OK }, value = { .status = TN_OK };
    char *at = text->bytes, *line = next_line(&at);
    tn_status status = TN_OK;
    bool good = line != NULL && strncmp(line, options_header, strlen(line)) == 0;

    while (good && status == TN_OK && (line = next_line(&at)) != NULL) {
        const char *rest = line;

        good = report_rows_field(&rest, &name) && report_rows_field(&rest, &value) && rest == NULL;
        if (good)
            status = take_line(&r, name.bytes, value.bytes);
    }
    if (status == TN_OK && !good)
        status = tn_fail(TN_ERR_FORMAT,
                         "--resume: %s/sweep.csv: damaged, got %.60q; expected a line "
                         "option,value for each option",
                         s->folder, line != NULL ? line : "");
    if (status == TN_OK && r.given_sets)
        for (; r.sets < s->n_sets; r.sets++)
            say_difference(&r, "set", "not given", s->sets[r.sets]);
    for (int i = 0; i < SETTINGS && status == TN_OK; i++)
        if (!r.there[i] && setting_given(&s->set, (setting)i) && !can_differ((setting)i) &&
            i != SET_OUT && i != SET_RESUME && i != SET_CONFIG)
            say_difference(&r, settings_row((setting)i)->name, "not given",
                           setting_text(&s->set, (setting)i));
    report_text_drop(&name);
    report_text_drop(&value);
    if (status != TN_OK || r.different == 0)
        return status;
    return tn_fail(TN_ERR_VALUE,
                   "--resume: %d setting%s differ%s from the sweep in %s; expected the same, or "
                   "another folder",
                   r.different, r.different == 1 ? "" : "s", r.different == 1 ? "s" : "",
                   s->folder);
}

static tn_status lock_folder(sweep *s)
{
    s->lock = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->lock < 0)
        return tn_fail_native(TN_ERR_IO, errno, "--out: %s: %s", s->folder, strerror(errno));
    for (int i = 0; flock(s->lock, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK)
            return tn_fail_native(TN_ERR_REFUSED, errno, "--out: %s: cannot be locked: %s",
                                  s->folder, strerror(errno));
        if (i == LOCK_TRIES)
            return tn_fail(TN_ERR_REFUSED,
                           "--out: %s: another process sweeps in this folder; expected another "
                           "folder, or to wait for its end",
                           s->folder);
        poll(NULL, 0, 100);
    }
    return TN_OK;
}

tn_status sweep_files_open(sweep *s)
{
    report_text text = { .status = TN_OK };
    bool resume = setting_on(&s->set, SET_RESUME);
    tn_status status = report_file_folder(s->folder);

    if (status == TN_OK)
        status = lock_folder(s);
    if (status == TN_OK)
        status = read_whole(s, "sweep.csv", &text);
    if (status == TN_OK && text.size > 0 && !resume)
        status = tn_fail(TN_ERR_REFUSED,
                         "--out: %s has a sweep; expected --resume to continue it, or another "
                         "folder",
                         s->folder);
    if (status == TN_OK && text.size > 0)
        status = read_options(s, &text);
    if (status == TN_OK &&
        (setting_text(&s->set, SET_MODEL) == NULL || setting_text(&s->set, SET_DATA) == NULL))
        status = tn_fail(TN_ERR_IO, "--resume: %s has no sweep; expected the folder of a sweep",
                         s->folder);
    report_text_drop(&text);
    return status;
}

/* ---- the trials ------------------------------------------------------------------------------ */

static void put_trial(report_text *t, const sweep *s, int64_t at)
{
    const sweep_trial *one = &s->trials[at];

    report_text_add(t, "%lld,%s,", (long long)at + 1, sweep_state_names[one->state]);
    if (one->metric[0] != '\0')
        report_text_add(t, "%s,%g,%lld,", one->metric, one->best, (long long)one->best_epoch);
    else
        report_text_put(t, ",,,");
    if (one->epochs > 0)
        report_text_add(t, "%lld", (long long)one->epochs);
    report_text_put(t, ",");
    report_rows_put(t, one->words);
    for (int i = 0; i < s->n_sets; i++) {
        report_text_put(t, ",");
        report_rows_put(t, one->values[i]);
    }
    report_text_put(t, "\n");
}

static void put_header(report_text *t, const sweep *s)
{
    report_text_put(t, trials_header);
    for (int i = 0; i < s->n_sets; i++) {
        report_text_put(t, ",");
        report_rows_put(t, s->ranges[i].name);
    }
    report_text_put(t, "\n");
}

tn_status sweep_files_write(const sweep *s)
{
    report_text t = { .status = TN_OK };

    put_header(&t, s);
    for (int64_t i = 0; i < s->n_trials; i++)
        if (s->trials[i].state != SWEEP_WAITING)
            put_trial(&t, s, i);
    return write_whole(s, "trials.csv", &t);
}

/* Reads the fields of a line into the trial that they are of. Returns false if they are none. */
static bool take_fields(sweep *s, report_text *fields)
{
    sweep_trial read = { .state = SWEEP_WAITING }, *one;
    int64_t at, state = 0;

    if (!tn_read_int(fields[0].bytes, &at) || at < 1 || at > s->n_trials)
        return false;
    one = &s->trials[at - 1];
    while (state < SWEEP_STATES && strcmp(sweep_state_names[state], fields[1].bytes) != 0)
        state++;
    for (int i = 0; i < s->n_sets; i++)
        if (strcmp(one->values[i], fields[FIRST_VALUE + i].bytes) != 0)
            return false;
    if (state == SWEEP_STATES || one->state != SWEEP_WAITING ||
        (fields[2].size > 0 && (!tn_read_float(fields[3].bytes, &read.best) ||
                                !tn_read_int(fields[4].bytes, &read.best_epoch))) ||
        (fields[5].size > 0 && !tn_read_int(fields[5].bytes, &read.epochs)))
        return false;
    one->state = (sweep_state)state;
    one->best = read.best;
    one->best_epoch = read.best_epoch;
    one->epochs = read.epochs;
    tn_snprint(one->metric, sizeof one->metric, "%s", fields[2].bytes);
    tn_snprint(one->words, sizeof one->words, "%s", fields[6].bytes);
    if (s->metric[0] == '\0')
        tn_snprint(s->metric, sizeof s->metric, "%s", one->metric);
    return true;
}

static bool take_trial(sweep *s, const char *line)
{
    report_text fields[FIELDS] = { { .status = TN_OK } };
    int count = 0;
    bool good = true;

    while (good && line != NULL) {
        good = count < FIRST_VALUE + s->n_sets && report_rows_field(&line, &fields[count]);
        count += good;
    }
    good = good && count == FIRST_VALUE + s->n_sets && take_fields(s, fields);
    for (int i = 0; i < FIELDS; i++)
        report_text_drop(&fields[i]);
    return good;
}

tn_status sweep_files_read(sweep *s)
{
    report_text text = { .status = TN_OK }, header = { .status = TN_OK };
    tn_status status = read_whole(s, "trials.csv", &text);
    char *at = text.bytes, *line = next_line(&at);
    bool good = text.size == 0;

    put_header(&header, s);
    status = status == TN_OK ? header.status : status;
    if (status == TN_OK && line != NULL)
        good = strncmp(line, header.bytes, header.size - 1) == 0 && line[header.size - 1] == '\0';
    while (good && status == TN_OK && (line = next_line(&at)) != NULL)
        good = take_trial(s, line);
    if (status == TN_OK && !good)
        status = tn_fail(TN_ERR_VALUE,
                         "--resume: %s/trials.csv: no trial of this sweep, got %.60q; expected the "
                         "file as the sweep wrote it, and at least as many --trials",
                         s->folder, line != NULL ? line : "");
    report_text_drop(&header);
    report_text_drop(&text);
    return status;
}
