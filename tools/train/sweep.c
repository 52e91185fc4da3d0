/* SPDX-License-Identifier: MIT
 *
 * tenon sweep: trains several times with other settings, and compares the results. */
#include "sweep.h"
#include "train.h"

#include <string.h>
#include <unistd.h>

enum { TRIALS = 20 };

/* ---- the command line ------------------------------------------------------------------------ */

/* Returns whether an argument is the option, as --name or --name=VALUE. */
static bool is_option(const char *given, const char *name)
{
    size_t length = strlen(name);

    return strncmp(given, name, length) == 0 && (given[length] == '\0' || given[length] == '=');
}

static tn_status add_set(sweep *s, const char *value)
{
    char **more, *copy;

    if (s->n_sets == SWEEP_SETS)
        return tn_fail(TN_ERR_VALUE, "--set: too many; expected at most %d", SWEEP_SETS);
    if (strpbrk(value, "\n\r") != NULL)
        return tn_fail(TN_ERR_VALUE, "--set: it has a line break, got %.60q; expected one line",
                       value);
    more = tn_realloc(s->sets, (size_t)(s->n_sets + 1) * sizeof *more);
    copy = more != NULL ? tn_strdup(value) : NULL;
    s->sets = more != NULL ? more : s->sets;
    if (copy == NULL)
        return TN_ERR_MEMORY;
    s->sets[s->n_sets++] = copy;
    return TN_OK;
}

static tn_status take_trials(sweep *s, const char *value)
{
    if (!tn_read_int(value, &s->n_trials) || s->n_trials < 1 || s->n_trials > SWEEP_TRIALS)
        return tn_fail(TN_ERR_VALUE,
                       "--trials: wrong, got %q; expected a whole number from 1 to %d", value,
                       SWEEP_TRIALS);
    s->trials_given = true;
    return TN_OK;
}

/* Takes the options of the sweep out of the arguments; the other ones are those of tenon train.
 * *kept becomes their number. */
static tn_status take_own(sweep *s, int count, char **given, int *kept)
{
    tn_status status = TN_OK;

    *kept = 0;
    for (int i = 0; i < count && status == TN_OK; i++) {
        bool set = is_option(given[i], "--set"), trials = is_option(given[i], "--trials");
        const char *equals = strchr(given[i], '='), *value;

        if (strcmp(given[i], "--grid") == 0) {
            s->grid = s->grid_given = true;
        } else if (strcmp(given[i], "--retry") == 0) {
            s->retry = true;
        } else if (!set && !trials) {
            given[(*kept)++] = given[i];
        } else {
            value = equals != NULL ? equals + 1 : i + 1 < count ? given[++i] : NULL;
            if (value == NULL)
                status = tn_fail(TN_ERR_VALUE, "%s: its value is missing; expected %s", given[i],
                                 set ? "NAME=VALUES" : "N");
            else
                status = set ? add_set(s, value) : take_trials(s, value);
        }
    }
    if (status == TN_OK && s->grid_given && s->trials_given)
        status = tn_fail(TN_ERR_VALUE, "--grid and --trials: both are given; expected one, because "
                                       "a grid has a trial for each combination");
    return status;
}

/* The files of a sweep have a line for each option; where a spec has a line break, a space is the
 * same. */
static void join_lines(settings *set)
{
    for (int i = 0; i < SETTINGS; i++)
        for (char *at = set->text[i]; at != NULL && *at != '\0'; at++)
            if (*at == '\n' || *at == '\r')
                *at = ' ';
}

static tn_status read_command_line(sweep *s, int count, char **given)
{
    int kept = 0;
    tn_status status = settings_init(&s->set, OF_SWEEP);

    if (status == TN_OK)
        status = take_own(s, count, given, &kept);
    if (status == TN_OK)
        status = settings_read(&s->set, kept, given);
    if (status == TN_OK && strlen(setting_text(&s->set, SET_OUT)) > SWEEP_PATH - 100)
        status = tn_fail(TN_ERR_VALUE, "--out: too long; expected at most %d bytes",
                         SWEEP_PATH - 100);
    join_lines(&s->set);
    return status;
}

/* ---- the trials ------------------------------------------------------------------------------ */

/* Fails, before anything runs, if a trial would have a wrong option. */
static tn_status check_trials(const sweep *s)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < s->n_trials && status == TN_OK; i++) {
        settings set;

        status = sweep_trial_settings(s, i, &set);
        settings_free(&set);
    }
    return status;
}

static tn_status make_trials(sweep *s)
{
    tn_status status = sweep_range_read(s);

    if (status == TN_OK)
        status = sweep_range_draw(s);
    return status == TN_OK ? check_trials(s) : status;
}

/* Opens the folder. The trials of a sweep that continues are known only then, and some of them have
 * ended. */
static tn_status begin(sweep *s)
{
    tn_status status = sweep_files_open(s);

    if (status == TN_OK && setting_on(&s->set, SET_RESUME))
        status = make_trials(s);
    if (status == TN_OK && setting_on(&s->set, SET_RESUME))
        status = sweep_files_read(s);
    return status == TN_OK ? sweep_files_begin(s) : status;
}

static bool has_ended(const sweep *s, const sweep_trial *one)
{
    return one->state > SWEEP_FAILED || (one->state == SWEEP_FAILED && !s->retry);
}

/* Says which trial runs, on a terminal, until its line follows. */
static void say_running(const sweep *s, int64_t at)
{
    if (tool_json || !isatty(STDOUT_FILENO))
        return;
    printf("trial %lld/%lld runs\r", (long long)at + 1, (long long)s->n_trials);
    fflush(stdout);
}

static tn_status run_trials(sweep *s)
{
    tn_status status = TN_OK;

    for (int64_t i = 0; i < s->n_trials && status == TN_OK && signals_asked() == 0; i++) {
        if (has_ended(s, &s->trials[i]))
            continue;
        say_running(s, i);
        status = sweep_trial_run(s, i);
        if (status == TN_OK)
            status = sweep_files_write(s);
        if (status == TN_OK)
            sweep_answer_trial(s, i);
    }
    return status;
}

/* Counts the trials that have ended; `good`: only those with a result. */
static int64_t count_ended(const sweep *s, bool good)
{
    int64_t count = 0;

    for (int64_t i = 0; i < s->n_trials; i++)
        count += good ? sweep_answer_has_best(s, &s->trials[i])
                      : s->trials[i].state >= SWEEP_FAILED;
    return count;
}

static int run_sweep(sweep *s)
{
    tn_status status = begin(s);

    if (status == TN_OK)
        status = run_trials(s);
    if (status == TN_OK && (signals_asked() == 0 || tool_json))
        status = sweep_answer(s);
    if (status != TN_OK)
        return tool_refuse(tn_error_last_code(), tn_error_last()->message);
    if (signals_asked() != 0) {
        fprintf(stderr, "tenon: stopped with %lld of %lld trials; --resume continues\n",
                (long long)count_ended(s, false), (long long)s->n_trials);
        return 128 + signals_asked();
    }
    return count_ended(s, true) > 0 ? EXIT_OK : EXIT_NOT_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void print_help(void)
{
    printf("\nOptions of the sweep:\n");
    print_wrapped("  --set NAME=VALUES", 26,
                  "what changes from trial to trial; give it once for each name. NAME is an option "
                  "below, an option of the optimizer or of the model (lr), of another spec "
                  "(loss.label_smoothing), or any name for which a spec has {NAME}. VALUES is a "
                  "list A,B,C or a range LOW:HIGH, perhaps with :log or :linear and a number of "
                  "points, such as 1e-4:1e-2:log:5");
    print_wrapped("  --trials N", 26, "how many trials are drawn at random; default: 20");
    print_wrapped("  --grid", 26, "a trial for each combination instead");
    print_wrapped("  --retry", 26, "with --resume, also runs the trials again that failed");
    settings_help(OF_SWEEP);
}

static int run_command(int count, char **given, bool only_help)
{
    sweep s = { .n_trials = TRIALS, .lock = -1 };
    int code = EXIT_USAGE;

    if (only_help)
        return print_help(), EXIT_OK;
    if (read_command_line(&s, count, given) != TN_OK ||
        (!setting_on(&s.set, SET_RESUME) && make_trials(&s) != TN_OK)) {
        fprintf(stderr, "tenon sweep: %s; `tenon sweep --help` lists the options\n",
                tn_error_last()->message);
    } else {
        tool_json = s.set.json;
        s.folder = setting_text(&s.set, SET_OUT);
        signals_watch();
        code = run_sweep(&s);
    }
    sweep_range_drop(&s);
    for (int i = 0; i < s.n_sets; i++)
        tn_free(s.sets[i]);
    tn_free(s.sets);
    settings_free(&s.set);
    if (s.lock >= 0)
        close(s.lock);
    return code;
}

const command sweep_command = {
    .name = "sweep",
    .arguments = "MODEL --data SPEC --set NAME=VALUES --out DIR [OPTION]...",
    .summary = "trains with many settings, and compares them",
    .help =
        "Trains as `tenon train` does, once for each trial, with values drawn at random by --seed "
        "or, with --grid, in all combinations: `--set lr=1e-4:1e-2 --set batch-size=16,32,64`. "
        "Numbers are drawn evenly by their logarithm if HIGH is 10 times LOW or more; they are "
        "whole if LOW and HIGH are. DIR gets trials.csv, a row for each trial with its best "
        "result, and the folders trial-001, trial-002, ... Each trial is a process of its own: one "
        "that fails is listed, and the others go on. At the end a table lists the trials, the best "
        "first, with the command that trains the best one again.\n\nThe first SIGINT, "
        "SIGTERM or SIGHUP saves a checkpoint of the trial and exits with status 130, 143 or 129. "
        "With --resume a sweep "
        "goes on where it was, also after a crash and with more --trials; trials that have ended "
        "are not run again.",
    .run = run_command,
    .options = TOOL_OWN_OPTIONS,
};
