/* SPDX-License-Identifier: MIT
 *
 * Runs the tests of tenon check, each in its own process (child.c). Anything that a plugin does to
 * the process, such as printing or crashing, fails only the test of that process. */
#include "conform.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the run ---- */

typedef struct buffer {
    char *at;
    size_t used, size;
} buffer;

/* The process of a test. pid == 0: this slot is free. */
typedef struct running {
    pid_t pid;
    int told, said;     /* read ends of two pipes: the outcome, and what the plugin printed */
    double began, died; /* times; died == 0: the process has not ended */
    buffer outcome, prints;
    const char *name;
    int64_t index;
    bool late, left; /* the test took too long; a process that it started still runs */
} running;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Appends what can be read from `fd` to a buffer; drops it when the buffer has reached `most`
 * bytes. Returns false at the end of the stream or on failure. */
static bool collect(buffer *b, int fd, size_t most)
{
    char piece[4096];
    ssize_t got = read(fd, piece, sizeof piece);

    if (got <= 0)
        return got < 0 && (errno == EINTR || errno == EAGAIN);
    if (b->used + (size_t)got + 1 > b->size && b->size < most) {
        size_t size = (b->size ? 2 * b->size : 8192) + (size_t)got;
        char *more = realloc(b->at, size);

        if (more == NULL)
            return true;
        b->at = more;
        b->size = size;
    }
    if (b->used + (size_t)got + 1 <= b->size) {
        memcpy(b->at + b->used, piece, (size_t)got);
        b->used += (size_t)got;
        b->at[b->used] = '\0';
    }
    return true;
}

static bool logs_to_file(void)
{
    const char *log = getenv("TENON_LOG");

    return log != NULL && strchr(log, ':') != NULL;
}

static bool start(const conform_options *o, const char *test, bool guarded, running *r)
{
    int told[2], said[2];
    char fd[16], seed[32], level[8];

    memset(r, 0, sizeof *r);
    if (pipe(told) != 0)
        return false;
    if (pipe(said) != 0) {
        close(told[0]);
        close(told[1]);
        return false;
    }
    fflush(NULL);
    r->began = now();
    r->pid = fork();
    if (r->pid == 0) {
        int nothing = open("/dev/null", O_RDONLY);
        const char *arguments[16] = { o->self, "check", "--run", test, "--fd", fd };
        int n = 6;

        setpgid(0, 0); /* is_stuck() ends the whole process group */
#ifdef __linux__
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* ends the test when tenon check ends */
#endif
        if (guarded) /* the core checks the memory around the outputs of kernels */
            setenv("TENON_CHECK", "1", 1);
        if (!logs_to_file()) /* keeps the log out of the captured output */
            setenv("TENON_LOG", "off", 1);
        dup2(nothing, 0);
        dup2(said[1], 1);
        dup2(said[1], 2);
        close(told[0]);
        close(said[0]);
        snprintf(fd, sizeof fd, "%d", told[1]);
        snprintf(seed, sizeof seed, "--seed=%llu", (unsigned long long)o->seed);
        snprintf(level, sizeof level, "%d", o->level);
        arguments[n++] = seed;
        arguments[n++] = "--cases";
        arguments[n++] = o->cases;
        arguments[n++] = "--depth";
        arguments[n++] = level;
        if (o->device != NULL) {
            arguments[n++] = "--device";
            arguments[n++] = o->device;
        }
        arguments[n++] = o->file;
        arguments[n] = NULL;
        execv(o->self, (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    close(told[1]);
    close(said[1]);
    if (r->pid < 0) {
        close(told[0]);
        close(said[0]);
        return false;
    }
    r->told = told[0];
    r->said = said[0];
    return true;
}

/* Reads from both pipes, waiting at most `milliseconds`. Returns true when both are closed. */
static bool listen_to(running *r, int milliseconds)
{
    struct pollfd fds[2] = { { r->told, POLLIN, 0 }, { r->said, POLLIN, 0 } };

    if (poll(fds, 2, milliseconds) <= 0)
        return false;
    if (fds[0].fd >= 0 && fds[0].revents != 0 && !collect(&r->outcome, r->told, 1 << 22)) {
        close(r->told);
        r->told = -1;
    }
    if (fds[1].fd >= 0 && fds[1].revents != 0 && !collect(&r->prints, r->said, 1 << 16)) {
        close(r->said);
        r->said = -1;
    }
    return r->told < 0 && r->said < 0;
}

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

static void add_line(conform_report *report, const char *text)
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
    snprintf(one.route, sizeof one.route, "%.95s", text + used);
    more = realloc(report->line, (size_t)(report->n_lines + 1) * sizeof *more);
    if (more == NULL)
        return;
    report->line = more;
    report->line[report->n_lines++] = one;
}

/* Derives the outcome of a test from the report of its process and from the exit status. */
static void conclude(conform_report *report, running *r, int status, conform_outcome *out)
{
    bool done = false, ended = false;
    char *rest = NULL;

    out->seconds = now() - r->began;
    out->verdict = CONFORM_PASS;
    for (char *line = r->outcome.at != NULL ? strtok_r(r->outcome.at, "\n", &rest) : NULL;
         line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "fail ", 5) == 0)
            set_words(out, CONFORM_FAIL, "%s", line + 5);
        else if (strncmp(line, "skip ", 5) == 0 && out->verdict == CONFORM_PASS)
            set_words(out, CONFORM_SKIP, "%s", line + 5);
        else if (strncmp(line, "row ", 4) == 0)
            add_line(report, line);
        else if (strncmp(line, "checks ", 7) == 0)
            out->checks = strtoll(line + 7, NULL, 10);
        done = done || strcmp(line, "done") == 0;
        ended = ended || strcmp(line, "ended") == 0;
    }
    if (out->verdict != CONFORM_FAIL && r->late)
        set_words(out, CONFORM_FAIL, "the test did not end within %d seconds",
                  report->options->seconds);
    else if (out->verdict != CONFORM_FAIL && WIFSIGNALED(status))
        set_words(out, CONFORM_FAIL, "signal %d (%s) ended the process%s", WTERMSIG(status),
                  strsignal(WTERMSIG(status)),
                  ended  ? ", after the shutdown"
                  : done ? " while the library was shut down"
                         : "");
    else if (out->verdict != CONFORM_FAIL && !done)
        set_words(
            out, CONFORM_FAIL,
            "the process ended with exit status %d inside the test: a plugin never calls exit",
            WEXITSTATUS(status));
    else if (out->verdict != CONFORM_FAIL && (!ended || WEXITSTATUS(status) != 0))
        set_words(out, CONFORM_FAIL,
                  "the process ended with exit status %d while the library was "
                  "shut down",
                  WEXITSTATUS(status));
    if (out->verdict != CONFORM_FAIL && r->prints.used > 0) {
        r->prints.at[r->prints.used < 200 ? r->prints.used : 200] = '\0';
        set_words(out, CONFORM_FAIL, "the plugin printed; it must use tn_log instead: %s",
                  r->prints.at);
    }
    if (out->verdict != CONFORM_FAIL && r->left)
        set_words(out, CONFORM_FAIL, "the plugin left a process running");
    if (out->verdict == CONFORM_PASS && out->checks == 0 && strcmp(out->name, "plan") != 0)
        set_words(out, CONFORM_FAIL, "the test checked nothing");
}

static void finish(conform_report *report, running *r, conform_outcome *out)
{
    int status = 0;

    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (r->told >= 0)
        close(r->told);
    if (r->said >= 0)
        close(r->said);
    conclude(report, r, status, out);
    free(r->prints.at);
}

/* Kills a process that takes too long, with all processes that it started. Returns true when the
 * process ended more than a second ago but another process keeps its pipes open; the caller must
 * not wait for them. */
static bool is_stuck(const conform_options *o, running *r)
{
    siginfo_t about = { 0 };

    if (r->died == 0 && waitid(P_PID, (id_t)r->pid, &about, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        about.si_pid == r->pid)
        r->died = now();
    if (r->died > 0 && now() - r->died > 1) {
        r->left = true;
        kill(-r->pid, SIGKILL);
        return true;
    }
    if (!r->late && now() - r->began > o->seconds) {
        r->late = true;
        kill(-r->pid, SIGKILL);
    }
    return false;
}

static void wait_for(const conform_options *o, running *r)
{
    while (!listen_to(r, 100) && !is_stuck(o, r))
        ;
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

    if (!start(o, "plan", false, &r)) {
        fprintf(stderr, "tenon check: cannot start a process: %s\n", strerror(errno));
        return false;
    }
    wait_for(o, &r);
    if (r.outcome.at != NULL)
        copy = strdup(r.outcome.at);
    finish(report, &r, &plan_outcome);
    free(r.outcome.at);
    for (char *line = copy != NULL ? strtok_r(copy, "\n", &rest) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        conform_outcome *more;

        if (strncmp(line, "id ", 3) == 0)
            snprintf(report->id, sizeof report->id, "%.127s", line + 3);
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

static void say(const conform_report *report, const conform_outcome *out)
{
    static const char *const words[] = { "ok", "FAIL", "skip" };

    if (report->options->tap != NULL && strcmp(report->options->tap, "-") == 0)
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

static void run_all(conform_report *report)
{
    const conform_options *o = report->options;
    running *slots = calloc((size_t)o->jobs, sizeof *slots);
    int64_t next = 0, active = 0;

    while (slots != NULL && (next < report->n_outcomes || active > 0)) {
        for (int i = 0; i < o->jobs; i++) {
            running *r = &slots[i];

            if (r->pid == 0 && next < report->n_outcomes) {
                if (!start(o, report->outcome[next].name,
                           is_guarded(report, report->outcome[next].name), r)) {
                    set_words(&report->outcome[next], CONFORM_FAIL, "cannot start a process");
                    r->pid = 0;
                } else {
                    r->index = next;
                    active++;
                }
                next++;
            }
            if (r->pid == 0)
                continue;
            if (listen_to(r, 20) || is_stuck(o, r)) {
                finish(report, r, &report->outcome[r->index]);
                say(report, &report->outcome[r->index]);
                free(r->outcome.at);
                memset(r, 0, sizeof *r);
                active--;
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
        bool quiet = options->tap != NULL && strcmp(options->tap, "-") == 0;

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
