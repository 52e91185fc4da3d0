/* SPDX-License-Identifier: MIT
 *
 * Runs the tests of tenon check in processes (child.c). Starting a process, with its devices, takes
 * longer than most tests of an operator, so up to BATCH such tests share one. Their outcomes count
 * only if all goes well: a test that fails there, and every test of a process in which anything
 * else goes wrong, runs again in a process of its own. So anything that a plugin does to the
 * process, such as printing or crashing, fails only one test. */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

enum { BATCH = 16 };

static void set_words(conform_outcome *out, conform_verdict verdict, const char *format, ...)
    TN_ATTR(format(printf, 3, 4));
static void set_words(conform_outcome *out, conform_verdict verdict, const char *format, ...)
{
    char words[2400];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    free(out->words);
    out->words = strdup(words);
    out->verdict = verdict;
}

static void add_line(conform_report *report, const char *text, int64_t test)
{
    conform_line one, *more;
    long long cases, failed;
    int used = 0;

    memset(&one, 0, sizeof one);
    if (sscanf(text, "row %63s %15s %lld %lld %lf %n", one.op, one.dtype, &cases, &failed,
               &one.worst, &used) != 5)
        return;
    one.cases = cases;
    one.failed = failed;
    one.test = test;
    snprintf(one.route, sizeof one.route, "%.95s", text + used);
    more = realloc(report->line, (size_t)(report->n_lines + 1) * sizeof *more);
    if (more == NULL)
        return;
    report->line = more;
    report->line[report->n_lines++] = one;
}

/* Reads one line of a process's report, in the part that belongs to the test of `out`. */
static void read_outcome(conform_outcome *out, const char *line)
{
    if (strncmp(line, "fail ", 5) == 0)
        set_words(out, CONFORM_FAIL, "%s", line + 5);
    else if (strncmp(line, "skip ", 5) == 0 && out->verdict == CONFORM_PASS)
        set_words(out, CONFORM_SKIP, "%s", line + 5);
    else if (strncmp(line, "checks ", 7) == 0)
        out->checks = strtoll(line + 7, NULL, 10);
    else if (strncmp(line, "took ", 5) == 0)
        out->seconds = strtod(line + 5, NULL);
}

/* What the whole process did. */
typedef struct process {
    bool done, ended; /* all tests have run; the library was shut down */
    int status;       /* of waitpid */
} process;

/* Returns true if nothing went wrong in a process apart from failures that its tests reported.
 * Otherwise writes to `words` what went wrong. */
static bool went_well(const conform_report *report, running *r, const process *p, char *words,
                      size_t size)
{
    words[0] = '\0';
    if (r->late)
        snprintf(words, size, "the test did not end within %d seconds", report->options->seconds);
    else if (WIFSIGNALED(p->status))
        snprintf(words, size, "signal %d (%s) ended the process%s", WTERMSIG(p->status),
                 strsignal(WTERMSIG(p->status)),
                 p->ended  ? ", after the shutdown"
                 : p->done ? " while the library was shut down"
                           : "");
    else if (!p->done)
        snprintf(
            words, size,
            "the process ended with exit status %d inside the test: a plugin must not call exit",
            WEXITSTATUS(p->status));
    else if (!p->ended || WEXITSTATUS(p->status) != 0)
        snprintf(words, size,
                 "the process ended with exit status %d while the library was shut "
                 "down",
                 WEXITSTATUS(p->status));
    else if (r->prints.used > 0)
        snprintf(words, size, "the plugin printed; it must use tn_log instead: %.200s",
                 r->prints.at);
    else if (r->left)
        snprintf(words, size, "the plugin left a process running");
    return words[0] == '\0';
}

/* Derives the outcomes of the tests of a process from its report and from its exit status. Returns
 * false if they must run again, each alone. */
static bool conclude(conform_report *report, running *r, int status, conform_outcome *out)
{
    process p = { .status = status };
    char words[600], *rest = NULL;
    double seconds = conform_now() - r->began;
    bool well;
    int at = -1;

    for (char *line = r->outcome.at != NULL ? strtok_r(r->outcome.at, "\n", &rest) : NULL;
         line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        at += strncmp(line, "begin ", 6) == 0 && at + 1 < r->count;
        if (at >= 0)
            read_outcome(&out[at], line);
        if (at >= 0 && strncmp(line, "row ", 4) == 0)
            add_line(report, line, r->index + at);
        p.done = p.done || strcmp(line, "done") == 0;
        p.ended = p.ended || strcmp(line, "ended") == 0;
    }
    well = went_well(report, r, &p, words, sizeof words);
    if (r->count > 1 && !well)
        return false;
    if (out->verdict != CONFORM_FAIL && !well)
        set_words(out, CONFORM_FAIL, "%s", words);
    if (r->count == 1)
        out->seconds = seconds;
    for (int i = 0; i < r->count; i++)
        if (out[i].verdict == CONFORM_PASS && out[i].checks == 0 &&
            strcmp(out[i].name, "plan") != 0)
            set_words(&out[i], CONFORM_FAIL, "the test checked nothing");
    return true;
}

/* Forgets what was reported of a test that runs again. */
static void forget(conform_report *report, int64_t index)
{
    conform_outcome *out = &report->outcome[index];
    int64_t kept = 0;

    free(out->words);
    *out = (conform_outcome){ .name = out->name, .again = true };
    for (int64_t i = 0; i < report->n_lines; i++)
        if (report->line[i].test != index)
            report->line[kept++] = report->line[i];
    report->n_lines = kept;
}

/* Ends a process: its tests have outcomes, or must run again. */
static void finish(conform_report *report, running *r, conform_outcome *out)
{
    bool counts;
    int status = 0;

    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (r->told >= 0)
        close(r->told);
    if (r->said >= 0)
        close(r->said);
    counts = conclude(report, r, status, out);
    free(r->prints.at);
    for (int i = 0; r->count > 1 && i < r->count; i++)
        if (!counts || out[i].verdict == CONFORM_FAIL)
            forget(report, r->index + i);
}

/* Returns true if the name of a test matches one of the globs, which are separated by commas. */
static bool is_wanted(const char *globs, const char *name)
{
    char glob[256];
    size_t length;

    if (globs == NULL)
        return true;
    for (; *globs != '\0'; globs += length + (globs[length] == ',')) {
        length = strcspn(globs, ",");
        snprintf(glob, sizeof glob, "%.*s", (int)length, globs);
        if (fnmatch(glob, name, 0) == 0)
            return true;
    }
    return false;
}

/* Starts a process that lists the tests of the plugin and stores their names in the report. Returns
 * false after a message on standard error. */
static bool make_plan(conform_report *report)
{
    const conform_options *o = report->options;
    conform_outcome plan_outcome = { .name = (char *)(uintptr_t) "plan" };
    running r;
    char *copy = NULL, *rest = NULL;

    bool begun = process_start(o, "plan", false, &r);

    r.count = 1;
    if (!begun) {
        fprintf(stderr, "tenon check: cannot start a process: %s\n", strerror(errno));
        return false;
    }
    process_wait(o, &r);
    if (r.outcome.at != NULL)
        copy = strdup(r.outcome.at);
    finish(report, &r, &plan_outcome);
    free(r.outcome.at);
    for (char *line = copy != NULL ? strtok_r(copy, "\n", &rest) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        conform_outcome *more;

        if (strncmp(line, "id ", 3) == 0)
            snprintf(report->id, sizeof report->id, "%.127s", line + 3);
        else if (strncmp(line, "version ", 8) == 0)
            snprintf(report->version, sizeof report->version, "%.63s", line + 8);
        else if (strcmp(line, "host") == 0)
            report->host = true;
        else if (strncmp(line, "device ", 7) == 0)
            snprintf(report->device, sizeof report->device, "%.63s", line + 7);
        if (strncmp(line, "test ", 5) != 0 || !is_wanted(o->only, line + 5))
            continue;
        more = realloc(report->outcome, (size_t)(report->n_outcomes + 1) * sizeof *more);
        if (more == NULL)
            break;
        report->outcome = more;
        memset(&more[report->n_outcomes], 0, sizeof *more);
        more[report->n_outcomes].name = strdup(line + 5);
        report->n_outcomes++;
    }
    free(copy);
    if (plan_outcome.verdict == CONFORM_FAIL ||
        (plan_outcome.verdict == CONFORM_SKIP && report->n_outcomes == 0)) {
        fprintf(stderr, "tenon check: %s: %s\n", o->file, plan_outcome.words);
        free(plan_outcome.words);
        return plan_outcome.verdict == CONFORM_SKIP;
    }
    if (plan_outcome.verdict == CONFORM_SKIP)
        fprintf(stderr, "tenon check: only the contract: %s\n", plan_outcome.words);
    free(plan_outcome.words);
    return true;
}

/* Returns whether standard output has a report, and nothing else. */
static bool is_quiet(const conform_options *options)
{
    return (options->tap != NULL && strcmp(options->tap, "-") == 0) ||
           (options->json != NULL && strcmp(options->json, "-") == 0) ||
           (options->report != NULL && strcmp(options->report, "-") == 0);
}

static void say(const conform_report *report, const conform_outcome *out)
{
    static const char *const words[] = { "ok", "FAIL", "skip" };

    if (is_quiet(report->options))
        return;
    if (out->verdict == CONFORM_PASS)
        printf("%-5s %-36s %lld checks, %.1f s\n", words[0], out->name, (long long)out->checks,
               out->seconds);
    else
        printf("%-5s %-36s %s\n", words[out->verdict], out->name, out->words);
    fflush(stdout);
}

/* Returns true if a test runs with TENON_CHECK=1: tests of the contract, and tests on devices with
 * host memory, except gradients, which need too many calls. */
static bool is_guarded(const conform_report *report, const char *test)
{
    return strncmp(test, "contract/", 9) == 0 || (report->host && strncmp(test, "grad/", 5) != 0);
}

/* Returns true if a test may share a process with others. The tests of the contract may not: they
 * look at what a process has from its start. */
static bool may_share(const char *test)
{
    static const char *const folders[] = { "ops/", "grad/", "layers/" };

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strncmp(test, folders[i], strlen(folders[i])) == 0)
            return true;
    return false;
}

/* The tests that have not begun: first those from `next` on, then those that run again. */
typedef struct queue {
    int64_t next, again;
} queue;

/* Takes the tests for the next process. Returns how many there are, from *first on; 0: none is
 * left. */
static int take(const conform_report *report, queue *q, int64_t *first)
{
    const conform_outcome *out = report->outcome;
    int64_t left = report->n_outcomes - q->next, most = left / (2 * report->options->jobs);
    int count = 1;

    if (left == 0) {
        while (q->again < report->n_outcomes && !out[q->again].again)
            q->again++;
        *first = q->again;
        return q->again++ < report->n_outcomes;
    }
    *first = q->next;
    while (count < BATCH && count < most && may_share(out[*first].name) &&
           may_share(out[*first + count].name) &&
           is_guarded(report, out[*first].name) == is_guarded(report, out[*first + count].name))
        count++;
    q->next += count;
    return count;
}

static bool start_tests(const conform_report *report, running *r, int64_t first, int count)
{
    size_t length = 0;
    bool good;
    char *names;

    for (int i = 0; i < count; i++)
        length += strlen(report->outcome[first + i].name) + 1;
    names = malloc(length + 1);
    if (names == NULL)
        return false;
    length = 0;
    for (int i = 0; i < count; i++)
        length += (size_t)sprintf(names + length, "%s%s", i > 0 ? "," : "",
                                  report->outcome[first + i].name);
    good = process_start(report->options, names, is_guarded(report, report->outcome[first].name),
                         r);
    free(names);
    r->index = first;
    r->count = count;
    return good;
}

/* Says the outcomes of the tests that do not run again. */
static void say_all(const conform_report *report, int64_t first, int count)
{
    for (int64_t i = first; i < first + count; i++)
        if (!report->outcome[i].again)
            say(report, &report->outcome[i]);
}

/* Starts the next tests in a free slot. Returns false if none is left. */
static bool begin(conform_report *report, queue *q, running *r)
{
    int64_t first;
    int count = take(report, q, &first);

    if (count == 0)
        return false;
    for (int i = 0; i < count; i++)
        report->outcome[first + i].again = false;
    if (start_tests(report, r, first, count))
        return true;
    if (count > 1) { /* a later start may succeed: the tests run again, each alone */
        for (int i = 0; i < count; i++)
            report->outcome[first + i].again = true;
        q->again = 0;
    } else {
        set_words(&report->outcome[first], CONFORM_FAIL, "cannot start a process");
        say_all(report, first, count);
    }
    r->pid = 0;
    return true;
}

static void run_all(conform_report *report)
{
    const conform_options *o = report->options;
    running *slots = calloc((size_t)o->jobs, sizeof *slots);
    bool more = true;
    queue q = { 0, 0 };

    while (slots != NULL && more) {
        more = false;
        for (int i = 0; i < o->jobs; i++) {
            running *r = &slots[i];

            if (r->pid == 0)
                more = begin(report, &q, r) || more;
            if (r->pid == 0)
                continue;
            more = true;
            if (process_listen(r, 20) || process_is_stuck(o, r)) {
                finish(report, r, &report->outcome[r->index]);
                say_all(report, r->index, r->count);
                free(r->outcome.at);
                memset(r, 0, sizeof *r);
                q.again = 0;
            }
        }
    }
    free(slots);
}

static void print_table(const conform_report *report)
{
    const char *op = "";

    if (report->n_lines == 0)
        return;
    printf("\nOperators on %s: cases, and the largest share of the tolerance that was used\n",
           report->device);
    for (int64_t i = 0; i < report->n_lines; i++) {
        const conform_line *l = &report->line[i];

        if (strcmp(l->op, op) != 0)
            printf("%s  %-28s", i > 0 ? "\n" : "", l->op);
        op = l->op;
        if (strcmp(l->route, "missing") == 0)
            printf(" %s missing", l->dtype);
        else if (strcmp(l->route, "untested") == 0)
            printf(" %s not tested", l->dtype);
        else
            printf(" %s %s%lld (%.2f)", l->dtype, l->failed ? "FAILED of " : "",
                   (long long)l->cases, l->worst);
    }
    printf("\n");
}

int conform_run(const conform_options *options)
{
    conform_report report = { .options = options };
    int64_t count[3] = { 0, 0, 0 }, missing = 0;
    bool well = make_plan(&report);

    if (!well) {
        /* what was listed is freed below */
    } else if (options->list) {
        for (int64_t i = 0; i < report.n_outcomes; i++)
            printf("%s\n", report.outcome[i].name);
    } else if (report.n_outcomes == 0) {
        fprintf(stderr, "tenon check: no test %s%s applies to %s\n",
                options->only != NULL ? "named " : "", options->only != NULL ? options->only : "",
                options->file);
        well = false;
    } else {
        bool quiet = is_quiet(options);

        if (!quiet)
            printf("%s (%s)%s%s\n", options->file, report.id, report.device[0] ? " on " : "",
                   report.device);
        run_all(&report);
        for (int64_t i = 0; i < report.n_outcomes; i++)
            count[report.outcome[i].verdict]++;
        for (int64_t i = 0; i < report.n_lines; i++)
            missing += strcmp(report.line[i].route, "missing") == 0;
        if (!quiet) {
            print_table(&report);
            if (missing > 0)
                printf("\n%lld rows missing: neither kernel nor decomposition for that dtype%s\n",
                       (long long)missing, options->complete ? ", a failure with --complete" : "");
        }
        well = conform_write_reports(&report) && count[CONFORM_FAIL] == 0 &&
               !(options->complete && missing > 0);
        if (!quiet)
            printf("\n%lld passed, %lld failed, %lld skipped\n", (long long)count[CONFORM_PASS],
                   (long long)count[CONFORM_FAIL], (long long)count[CONFORM_SKIP]);
    }
    for (int64_t i = 0; i < report.n_outcomes; i++) {
        free(report.outcome[i].name);
        free(report.outcome[i].words);
    }
    free(report.outcome);
    free(report.line);
    return well ? 0 : 1;
}
