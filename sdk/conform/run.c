/* SPDX-License-Identifier: MIT
 *
 * Runs the tests of tenon check, each in a process of its own: what a plugin does to its process, from printing to
 * crashing, is the failure of that test and of no other. */
#include "conform.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "reference.h"

/* ---- what a test says ---- */

bool conform_fail(conform *c, const char *format, ...)
{
    va_list args;

    if (c->verdict == CONFORM_FAIL)
        return false;
    c->verdict = CONFORM_FAIL;
    fprintf(c->to, "fail ");
    {
        char words[2000];

        va_start(args, format);
        vsnprintf(words, sizeof words, format, args);
        va_end(args);
        for (char *p = words; *p != '\0'; p++)
            fputc(*p == '\n' ? ' ' : *p, c->to);
    }
    fputc('\n', c->to);
    fflush(c->to);
    return false;
}

void conform_skip(conform *c, const char *format, ...)
{
    va_list args;
    char words[1000];

    if (c->verdict != CONFORM_PASS)
        return;
    c->verdict = CONFORM_SKIP;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    for (char *p = words; *p != '\0'; p++)
        *p = *p == '\n' ? ' ' : *p;
    fprintf(c->to, "skip %s\n", words);
    fflush(c->to);
}

void conform_row(conform *c, const char *op, const char *dtype, const char *route, int64_t cases,
                 int64_t failed, double worst)
{
    fprintf(c->to, "row %s %s %lld %lld %.3g %s\n", op, dtype, (long long)cases, (long long)failed,
            worst, route);
}

/* ---- the process of a test ---- */

static const tn_device *first_of(const char *type)
{
    int64_t count = tn_device_count();

    for (int64_t i = 0; i < count; i++)
        if (strcmp(tn_device_type(tn_device_at(i)), type) == 0)
            return tn_device_at(i);
    return NULL;
}

/* The line of the report that belongs to the file. */
static bool find_plugin(const char *file, tn_plugin_report *report)
{
    int64_t count = tn_plugin_count();
    char own[4096], other[4096];

    if (realpath(file, own) == NULL)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (tn_plugin_report_at(i, report) == TN_OK && realpath(report->file, other) != NULL &&
            strcmp(own, other) == 0)
            return true;
    return false;
}

/* Loads the plugin and finds what it brings; false after words. */
static bool load(conform *c, conform_plugin *plugin)
{
    const conform_options *o = plugin->options;
    tn_plugin_report report;
    tn_status status = tn_plugin_load(o->file);

    if (status != TN_OK && !(find_plugin(o->file, &report) && report.outcome == TN_OUTCOME_OK))
        return conform_fail(c, "it does not load: %s", tn_error_text());
    tn_error_clear();
    if (!find_plugin(o->file, &report))
        return conform_fail(c, "the report has no line for this file");
    if (report.outcome == TN_OUTCOME_NOT_APPLICABLE) {
        conform_skip(c, "%s", report.reason);
        return false;
    }
    if (report.outcome != TN_OUTCOME_OK)
        return conform_fail(c, "it does not load: %s", report.reason);
    plugin->id = report.id;
    for (int64_t i = 0; i < tn_registry_count(TN_KIND_tn_op_def) && !plugin->ops; i++) {
        const char *owner = tn_registry_plugin(TN_KIND_tn_op_def,
                                               tn_registry_name(TN_KIND_tn_op_def, i));

        plugin->ops = owner != NULL && strcmp(owner, plugin->id) == 0;
    }
    return true;
}

/* The device that operators are called on: the plugin's own type, else the one asked for. */
static bool find_device(conform *c, conform_plugin *plugin)
{
    char name[64] = "cpu";

    for (int64_t i = 0; i < tn_registry_count(TN_KIND_tn_backend); i++) {
        const char *type = tn_registry_name(TN_KIND_tn_backend, i);
        const char *owner = tn_registry_plugin(TN_KIND_tn_backend, type);

        if (owner != NULL && strcmp(owner, plugin->id) == 0) {
            plugin->backend = true;
            plugin->device = first_of(type);
            if (plugin->device == NULL) {
                conform_skip(c, "there is no device of type %s here: %s", type, tn_error_text());
                return false;
            }
            if (!tn_device_has_memory(plugin->device)) {
                conform_skip(c, "devices of type %s have no memory to compute in", type);
                return false;
            }
            return true;
        }
    }
    if (plugin->options->device != NULL)
        snprintf(name, sizeof name, "%.*s", (int)strcspn(plugin->options->device, ","),
                 plugin->options->device);
    plugin->device = tn_device_find(name);
    if (plugin->device == NULL)
        return conform_fail(c, "--device: %s", tn_error_text());
    return true;
}

/* Writes the names of all tests that apply. */
static void plan(conform *c, conform_plugin *plugin)
{
    bool backend = false;
    int64_t ops;

    for (int64_t i = 0; i < tn_registry_count(TN_KIND_tn_backend); i++) {
        const char *owner = tn_registry_plugin(TN_KIND_tn_backend,
                                               tn_registry_name(TN_KIND_tn_backend, i));

        backend = backend || (owner != NULL && strcmp(owner, plugin->id) == 0);
    }
    for (const conform_test *t = conform_contract_tests; t->name != NULL; t++)
        if (backend || !t->for_backends)
            fprintf(c->to, "test contract/%s\n", t->name);
    if (plugin->options->level < CONFORM_OPS || !find_device(c, plugin))
        return;
    fprintf(c->to, "device %s\n%s", tn_device_name(plugin->device),
            tn_device_is_host(plugin->device) ? "host\n" : "");
    ops = tn_op_count();
    for (int level = CONFORM_OPS; level <= plugin->options->level && level <= CONFORM_GRAD; level++)
        for (int64_t i = 0; i < ops; i++) {
            const char *name = tn_op_name_at(i);
            const tn_op_def *def = tn_op_definition(tn_op_find(name, 0));

            if (!conform_concerns(plugin, name))
                continue;
            if (level == CONFORM_GRAD && def->derive == NULL && def->decompose == NULL &&
                !(def->flags & TN_OP_VIEW))
                continue;
            fprintf(c->to, "test %s/%s\n", level == CONFORM_OPS ? "ops" : "grad", name);
        }
    for (int64_t i = 0;
         plugin->options->level >= CONFORM_LAYERS && i < tn_registry_count(TN_KIND_tn_layer); i++) {
        const char *name = tn_registry_name(TN_KIND_tn_layer, i);
        const char *owner = tn_registry_plugin(TN_KIND_tn_layer, name);

        if (owner != NULL && strcmp(owner, plugin->id) == 0)
            fprintf(c->to, "test layers/%s\n", name);
    }
}

static void perform(conform *c, conform_plugin *plugin)
{
    const conform_test *t = conform_contract_tests;

    if (strncmp(c->name, "contract/", 9) == 0) {
        while (t->name != NULL && strcmp(t->name, c->subject) != 0)
            t++;
        if (t->name == NULL) {
            conform_fail(c, "there is no such test");
            return;
        }
        if ((t->for_backends || strcmp(c->subject, "scarce-memory") == 0 ||
             strcmp(c->subject, "kernels-run") == 0) &&
            !find_device(c, plugin))
            return;
        t->run(c);
        return;
    }
    if (conform_reference() != TN_OK) {
        conform_fail(c, "the reference: %s", tn_error_text());
        return;
    }
    if (!find_device(c, plugin))
        return;
    if (strncmp(c->name, "layers/", 7) == 0)
        conform_layer(c);
    else if (strncmp(c->name, "ops/", 4) == 0)
        conform_op(c);
    else
        conform_gradient(c);
}

int conform_child(const conform_options *options, const char *test, int fd)
{
    conform_plugin plugin = { .options = options };
    conform c = { .plugin = &plugin, .name = test, .to = fdopen(fd, "w") };

    if (c.to == NULL)
        return 3;
    c.subject = strchr(test, '/') != NULL ? strchr(test, '/') + 1 : test;
    conform_remember_process();
    if (strcmp(test, "contract/scarce-memory") == 0)
        conform_scarce_memory();
    if (load(&c, &plugin)) {
        if (strcmp(test, "plan") == 0) {
            fprintf(c.to, "id %s\n", plugin.id);
            plan(&c, &plugin);
        } else {
            perform(&c, &plugin);
        }
    }
    fprintf(c.to, "checks %lld\ndone\n", (long long)c.checks);
    fflush(c.to);
    tn_shutdown();
    fprintf(c.to, "ended\n");
    fclose(c.to);
    return 0;
}

/* ---- the run ---- */

typedef struct buffer {
    char *at;
    size_t used, size;
} buffer;

typedef struct running {
    pid_t pid;
    int told, said;     /* the ends of two pipes: the outcome, and what the plugin printed */
    double began, died; /* 0: it lives */
    buffer outcome, prints;
    const char *name;
    int64_t index;
    bool late, left; /* it took too long; it left a process behind */
} running;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

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

        setpgid(0, 0); /* what it starts is ended with it */
#ifdef __linux__
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* and it with the run */
#endif
        if (guarded) /* the core looks around what kernels write */
            setenv("TENON_CHECK", "1", 1);
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

/* Reads what there is; true when the process has closed both pipes. */
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

/* What a process told, and how it ended, become the outcome of its test. */
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
        set_words(out, CONFORM_FAIL, "it was not done after %d seconds", report->options->seconds);
    else if (out->verdict != CONFORM_FAIL && WIFSIGNALED(status))
        set_words(out, CONFORM_FAIL, "signal %d (%s) ended the process%s", WTERMSIG(status),
                  strsignal(WTERMSIG(status)),
                  ended  ? ", after all was shut down"
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
        set_words(out, CONFORM_FAIL, "it printed; a plugin never does (tn_log is there): %s",
                  r->prints.at);
    }
    if (out->verdict != CONFORM_FAIL && r->left)
        set_words(out, CONFORM_FAIL, "it left a process behind");
    if (out->verdict == CONFORM_PASS && out->checks == 0 && strcmp(out->name, "plan") != 0)
        set_words(out, CONFORM_FAIL, "nothing was checked");
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

/* Ends a process that takes too long, with all that it started. True when it is gone and something else holds its
 * pipes, which nobody waits for. */
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

/* The plan: names in the order in which the process told them. */
static bool make_plan(conform_report *report)
{
    const conform_options *o = report->options;
    conform_outcome plan_outcome = { .name = (char *)(uintptr_t) "plan" };
    running r;
    char *copy = NULL, *rest = NULL;

    if (!start(o, "plan", false, &r)) {
        fprintf(stderr, "tenon check: no process can be started: %s\n", strerror(errno));
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
        if (strncmp(line, "test ", 5) != 0 ||
            (o->only != NULL && fnmatch(o->only, line + 5, 0) != 0))
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
                           report->host && strncmp(report->outcome[next].name, "grad/", 5) != 0,
                           r)) {
                    set_words(&report->outcome[next], CONFORM_FAIL, "no process can be started");
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

    if (!well)
        return 1;
    if (options->list) {
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
                printf(
                    "\n%lld rows say missing: neither kernel nor decomposition for that dtype%s\n",
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
