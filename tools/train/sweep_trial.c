/* SPDX-License-Identifier: MIT
 *
 * A trial of a sweep: its settings, and the process that trains with them. Each trial is a process
 * of its own, `tenon train` with the options that the user could give: a trial that crashes, or
 * that is killed because memory runs out, does not end the sweep, and no state (device, caches,
 * plans) of one trial is that of the next. child.c is for plugins that are inspected: it limits the
 * time of each step, logs all of them, and keeps the output until the end. */
#include "sweep.h"
#include "train.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ARGUMENTS = 2 * SETTINGS + 8,
    ANSWER_MOST = 1 << 16, /* bytes of the JSON of a trial */
    LOG_END = 4096         /* bytes of the log in which its last line is looked for */
};

const char *const sweep_state_names[SWEEP_STATES] = { "waiting", "stopped", "failed", "early",
                                                      "finished" };

/* ---- settings -------------------------------------------------------------------------------- */

/* Returns the place of the value of an option in the parentheses of a spec, NULL if it is not
 * there. *end becomes the end of the value, or where another option can be added; NULL: nowhere. */
static const char *find_option(const char *spec, const char *name, const char **end)
{
    size_t length = strlen(name);
    int depth = 0;
    char quote = '\0';
    const char *begin = NULL;

    *end = NULL;
    for (const char *at = spec; *at != '\0'; at++) {
        if (quote != '\0') {
            quote = *at == quote ? '\0' : quote;
            continue;
        }
        quote = *at == '"' || *at == '\'' ? *at : '\0';
        if ((*at == ',' || *at == ')') && depth == 1) {
            *end = at;
            if (begin != NULL || *at == ')')
                return begin;
        }
        depth += strchr("([{", *at) != NULL;
        depth -= strchr(")]}", *at) != NULL;
        if ((*at == '(' || *at == ',') && depth == 1) {
            const char *word = at + 1 + strspn(at + 1, " ");

            if (strncmp(word, name, length) == 0 &&
                word[length + strspn(word + length, " ")] == '=')
                begin = strchr(word, '=') + 1;
        }
    }
    return NULL;
}

/* Replaces the text of a setting, also that of a list. */
static tn_status replace(settings *set, setting which, const char *text)
{
    tn_free(set->text[which]);
    set->text[which] = NULL;
    return settings_put(set, which, text, FROM_USER);
}

/* Sets an option in the spec of a setting. */
static tn_status put_option(settings *set, const sweep_range *g, const char *value)
{
    report_text spec = { .status = TN_OK }, out = { .status = TN_OK };
    const char *begin, *end, *was = setting_text(set, g->which);
    tn_status status;

    report_text_put(&spec, was != NULL ? was : "");
    if (spec.status == TN_OK && strchr(spec.bytes, '(') == NULL)
        report_text_put(&spec, "()");
    if (spec.status != TN_OK)
        return spec.status;
    begin = find_option(spec.bytes, g->option, &end);
    if (end == NULL) {
        status = tn_fail(TN_ERR_VALUE,
                         "--set: --%s has no place for %s, got %q; expected a spec such as "
                         "NAME(OPTION=VALUE)",
                         settings_row(g->which)->name, g->option, was != NULL ? was : "");
    } else {
        const char *last = end;

        while (last > spec.bytes && last[-1] == ' ')
            last--;
        report_text_bytes(&out, spec.bytes, (size_t)((begin != NULL ? begin : end) - spec.bytes));
        if (begin == NULL)
            report_text_add(&out, "%s%s=", last[-1] == '(' ? "" : ", ", g->option);
        report_text_put(&out, value);
        report_text_put(&out, end);
        status = out.status == TN_OK ? replace(set, g->which, out.bytes) : out.status;
    }
    report_text_drop(&spec);
    report_text_drop(&out);
    return status;
}

/* Replaces {NAME} in the texts of all settings. */
static tn_status put_places(settings *set, const sweep_range *g, const char *value)
{
    char place[SWEEP_NAME + 2];
    size_t length = (size_t)tn_snprint(place, sizeof place, "{%s}", g->name);
    tn_status status = TN_OK;

    for (int i = 0; i < SETTINGS && status == TN_OK; i++) {
        const char *from = setting_text(set, (setting)i), *at;
        report_text out = { .status = TN_OK };

        if (settings_row((setting)i)->kind != SETTING_TEXT || from == NULL ||
            strstr(from, place) == NULL)
            continue;
        for (; (at = strstr(from, place)) != NULL; from = at + length) {
            report_text_bytes(&out, from, (size_t)(at - from));
            report_text_put(&out, value);
        }
        report_text_put(&out, from);
        status = out.status == TN_OK ? replace(set, (setting)i, out.bytes) : out.status;
        report_text_drop(&out);
    }
    return status;
}

static tn_status copy_settings(const settings *from, settings *to)
{
    *to = (settings){ .of = from->of };
    for (int i = 0; i < SETTINGS; i++) {
        if (from->text[i] == NULL)
            continue;
        to->text[i] = tn_strdup(from->text[i]);
        to->origin[i] = from->origin[i];
        if (to->text[i] == NULL)
            return TN_ERR_MEMORY;
    }
    return TN_OK;
}

const char *sweep_trial_folder(const sweep *s, int64_t at, char path[SWEEP_PATH])
{
    tn_snprint(path, SWEEP_PATH, "%s/trial-%03lld", s->folder, (long long)at + 1);
    return path;
}

tn_status sweep_trial_settings(const sweep *s, int64_t at, settings *to)
{
    char folder[SWEEP_PATH];
    tn_status status = copy_settings(&s->set, to);

    /* A spec is replaced before its options are set, and these may be in a place of a spec. */
    for (sweep_kind kind = SWEEP_SETTING; kind <= SWEEP_PLACE; kind++)
        for (int i = 0; i < s->n_sets && status == TN_OK; i++) {
            const sweep_range *g = &s->ranges[i];
            const char *value = s->trials[at].values[i];

            if (g->kind != kind)
                continue;
            status = kind == SWEEP_SETTING  ? replace(to, g->which, value)
                     : kind == SWEEP_OPTION ? put_option(to, g, value)
                                            : put_places(to, g, value);
        }
    return status == TN_OK ? replace(to, SET_OUT, sweep_trial_folder(s, at, folder)) : status;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Whether an option is one of the command of a trial. */
static bool is_given(const settings *set, int which)
{
    return setting_text(set, (setting)which) != NULL && set->origin[which] > FROM_TABLE &&
           which != SET_CONFIG && which != SET_RESUME && which != SET_OUT;
}

/* Adds an argument as a shell reads it. */
static void put_quoted(report_text *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:=,+@%";

    report_text_put(out, " ");
    if (text[0] != '\0' && text[strspn(text, plain)] == '\0') {
        report_text_put(out, text);
        return;
    }
    report_text_put(out, "'");
    for (; *text != '\0'; text++)
        report_text_bytes(out, *text == '\'' ? "'\\''" : text, *text == '\'' ? 4 : 1);
    report_text_put(out, "'");
}

void sweep_trial_command(const settings *set, const char *folder, report_text *out)
{
    report_text_put(out, "tenon train");
    for (int i = 0; i < SETTINGS; i++) {
        const setting_row *row = settings_row((setting)i);

        if (!is_given(set, i) || (row->kind == SETTING_FLAG && !setting_on(set, (setting)i)))
            continue;
        report_text_add(out, " --%s", row->name);
        if (row->kind != SETTING_FLAG)
            put_quoted(out, setting_text(set, (setting)i));
    }
    report_text_put(out, " --out");
    put_quoted(out, folder);
}

/* Lists the arguments of the process. `options` keeps the names of options. */
static void list_arguments(const settings *set, const char **list, char options[SETTINGS][48])
{
    int count = 0;

    list[count++] = "tenon";
    list[count++] = "train";
    for (int i = 0; i < SETTINGS; i++) {
        const setting_row *row = settings_row((setting)i);
        bool flag = row->kind == SETTING_FLAG;

        if (!is_given(set, i))
            continue;
        tn_snprint(options[i], sizeof options[i], "--%s%s%s", row->name, flag ? "=" : "",
                   flag ? setting_text(set, (setting)i) : "");
        list[count++] = options[i];
        if (!flag)
            list[count++] = setting_text(set, (setting)i);
    }
    list[count++] = "--out";
    list[count++] = setting_text(set, SET_OUT);
    list[count++] = "--resume";
    list[count++] = "--json";
    list[count] = NULL;
}

/* ---- the process ----------------------------------------------------------------------------- */

/* Becomes the trial. A signal of the terminal reaches the sweep alone, which passes it on once: two
 * would end the trial without a checkpoint. If the sweep is killed, the trial is, too; the lock of
 * the sweep stays with it until then. */
static void become(const char *const *arguments, int answer, int log, int lock, pid_t parent)
{
    int none = open("/dev/null", O_RDONLY);

    /* A signal that comes before these lines ran the handler of the sweep, and would be lost. */
    signals_unwatch();
    if (signals_asked() != 0)
        _exit(128 + signals_asked());
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || none < 0 || dup2(none, STDIN_FILENO) < 0 ||
        dup2(answer, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0 ||
        fcntl(lock, F_SETFD, 0) < 0)
        _exit(127);
    execv("/proc/self/exe", (char *const *)(uintptr_t)arguments);
    _exit(127);
}

/* Reads the output of a trial until its end, and passes on the signal that asks to stop. */
static void follow(int answer, pid_t child, report_text *out)
{
    struct pollfd end = { answer, POLLIN, 0 };
    bool told = false;

    for (;;) {
        char bytes[4096];
        ssize_t got;

        if (signals_asked() != 0 && !told) {
            kill(child, signals_asked());
            told = true;
        }
        if (poll(&end, 1, 100) <= 0)
            continue;
        got = read(answer, bytes, sizeof bytes);
        if (got == 0 || (got < 0 && errno != EINTR))
            return;
        if (got > 0 && out->size < ANSWER_MOST)
            report_text_bytes(out, bytes, (size_t)got);
    }
}

/* Runs a process; *status becomes that of waitpid(). */
static tn_status run_process(const sweep *s, const char *const *arguments, int log,
                             report_text *answer, int *status)
{
    pid_t parent = getpid(), child;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return tn_fail_native(TN_ERR_IO, errno, "sweep: a pipe cannot be made: %s",
                              strerror(errno));
    fflush(NULL);
    child = fork();
    if (child == 0)
        become(arguments, ends[1], log, s->lock, parent);
    close(ends[1]);
    if (child > 0) {
        follow(ends[0], child, answer);
        while (waitpid(child, status, 0) < 0 && errno == EINTR)
            ;
    }
    close(ends[0]);
    return child > 0 ? answer->status
                     : tn_fail_native(TN_ERR_IO, errno, "sweep: a process cannot be started: %s",
                                      strerror(errno));
}

/* ---- how it ended ---------------------------------------------------------------------------- */

/* Copies the last line of the log without the words that begin each message. */
static void read_reason(const char *path, sweep_trial *one)
{
    char text[LOG_END + 1];
    ssize_t size = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const char *line = text;

    if (file >= 0 && lseek(file, -LOG_END, SEEK_END) < 0)
        lseek(file, 0, SEEK_SET);
    if (file >= 0)
        size = read(file, text, LOG_END);
    if (file >= 0)
        close(file);
    text[size > 0 ? size : 0] = '\0';
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == ' '))
        text[--size] = '\0';
    for (const char *c = text; *c != '\0'; c++)
        line = *c == '\n' ? c + 1 : line;
    line += strncmp(line, "tenon: ", 7) == 0 ? 7 : 0;
    tn_snprint(one->words, sizeof one->words, "%s", *line != '\0' ? line : "it gave no reason");
}

/* Reads the number after a key of the JSON that tenon train prints. */
static bool read_number(const char *text, const char *key, double *out)
{
    char name[48], number[64];
    const char *at;

    tn_snprint(name, sizeof name, "\"%s\": ", key);
    at = text != NULL ? strstr(text, name) : NULL;
    if (at == NULL)
        return false;
    at += strlen(name);
    tn_snprint(number, sizeof number, "%.*s", (int)strcspn(at, ",\n} "), at);
    return tn_read_float(number, out);
}

static void read_answer(const char *text, sweep_trial *one)
{
    const char *best = text != NULL ? strstr(text, "\"best\": {") : NULL;
    double epochs = 0, epoch = 0;

    one->state = text != NULL && strstr(text, "\"outcome\": \"finished early\"") != NULL
                     ? SWEEP_EARLY
                     : SWEEP_FINISHED;
    if (read_number(text, "epochs", &epochs))
        one->epochs = (int64_t)epochs;
    if (best == NULL || !read_number(best, "epoch", &epoch))
        return;
    for (int i = 0; i < METRIC_COUNT; i++)
        for (int val = 0; val < 2; val++) {
            char name[32];

            tn_snprint(name, sizeof name, "%s%s", val ? "val_" : "", metric_names[i]);
            if (!read_number(best, name, &one->best))
                continue;
            one->best_epoch = (int64_t)epoch;
            tn_snprint(one->metric, sizeof one->metric, "%s", name);
        }
}

static void read_end(sweep_trial *one, int status, const char *answer, const char *log)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

    one->words[0] = one->metric[0] = '\0';
    one->epochs = 0;
    if (code == EXIT_OK) {
        read_answer(answer, one);
    } else if (signals_stopped(code) || (WIFSIGNALED(status) && signals_asked() != 0)) {
        one->state = SWEEP_STOPPED; /* a signal may come before the trial handles it */
    } else {
        one->state = SWEEP_FAILED;
        if (WIFSIGNALED(status))
            tn_snprint(one->words, sizeof one->words, "the process ended by signal %d (%s)",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
        else if (code == 127)
            tn_snprint(one->words, sizeof one->words,
                       "the command cannot start itself once more, by /proc/self/exe");
        else
            read_reason(log, one);
    }
}

/* The first trial with a metric decides which one is compared. */
static void take_metric(sweep *s, const sweep_trial *one)
{
    if (s->metric[0] == '\0')
        tn_snprint(s->metric, sizeof s->metric, "%s", one->metric);
}

/* Opens the log. A pipe in its place could let the sweep wait for ever. */
static tn_status open_log(const char *path, int *out)
{
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    struct stat is;

    *out = open(path, flags, 0666);
    if (*out < 0)
        return tn_fail_native(TN_ERR_IO, errno, "sweep: %s: %s", path, strerror(errno));
    if (fstat(*out, &is) != 0 || !S_ISREG(is.st_mode))
        return tn_fail(TN_ERR_IO, "sweep: %s: it is no regular file; expected one, or none", path);
    return TN_OK;
}

tn_status sweep_trial_run(sweep *s, int64_t at)
{
    sweep_trial *one = &s->trials[at];
    const char *arguments[ARGUMENTS];
    char options[SETTINGS][48], path[SWEEP_PATH + 16];
    settings set = { .json = false };
    report_text answer = { .status = TN_OK };
    tn_status status = sweep_trial_settings(s, at, &set);
    int log = -1, ended = 0;

    if (status == TN_OK)
        status = report_file_folder(setting_text(&set, SET_OUT));
    if (status == TN_OK) {
        tn_snprint(path, sizeof path, "%s/log.txt", setting_text(&set, SET_OUT));
        status = open_log(path, &log);
    }
    list_arguments(&set, arguments, options);
    if (status == TN_OK)
        status = run_process(s, arguments, log, &answer, &ended);
    if (log >= 0)
        close(log);
    if (status == TN_OK) {
        read_end(one, ended, answer.bytes, path);
        take_metric(s, one);
    }
    report_text_drop(&answer);
    settings_free(&set);
    return status;
}
