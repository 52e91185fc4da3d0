/* SPDX-License-Identifier: MIT
 *
 * Inspects plugins in a child process (this program, started again), because a plugin may crash,
 * end the process or never return, in any call. The child writes the name of each step to a pipe
 * before the step begins. The parent limits the time of each step and reports the last step of a
 * child that failed. */
#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Environment variables for the child. STEPS: the descriptor of the pipe for its steps, and the log
 * level of the user. FAULTS: the faults of plugins that the child must leave out. */
#define STEPS "TENON_TEST_CHILD_STEPS"
#define FAULTS "TENON_TEST_CHILD_FAULTS"

enum {
    MOST_FAULTS = 32,
    NOT_STARTED = 127 /* the status of a process whose program cannot be started, as in a shell */
};

int64_t tool_seconds = 30;

static const struct step {
    const char *begins; /* the first words of the log message */
    int stage;
    const char *crashed; /* "it crashed with SIGSEGV ..." */
    const char *hung;    /* "... did not return within 30 s" */
} known_steps[] = {
    { "mapping ", TN_STAGE_DLOPEN,
      "while it was mapped, in its constructor or that of a library that it needs",
      "mapping it (its constructors or those of a library that it needs)" },
    { "asking ", TN_STAGE_QUERY, "in its query", "its query" },
    { "activating ", TN_STAGE_ACTIVATE, "in its activate function", "its activate function" },
    { "counting devices ", TN_STAGE_PROBE, "in its enumerate function", "its enumerate function" },
    { "opening ", TN_STAGE_PROBE, "while one of its devices was opened",
      "opening one of its devices" },
    { "deactivating ", TN_STAGE_ACTIVATE, "in its deactivate function", "its deactivate function" },
};

/* ---- the child ------------------------------------------------------------------------------- */

static int steps_fd = -1, user_level = TN_LOG_WARNING;
static char last_step[512];

/* The log sink of the child: debug messages are steps. Messages that the user wants are also logged
 * as usual. */
static void write_step(void *user, int level, const char *plugin, const char *text)
{
    (void)user, (void)plugin;
    if (level == TN_LOG_DEBUG) {
        snprintf(last_step, sizeof last_step, "%s", text);
        if (dprintf(steps_fd, "%s\n", text) < 0)
            return;
    }
    if (level <= user_level)
        tn_log(level, "%s",
               text); /* called inside a log sink, tn_log() writes to the default destination */
}

bool child_here(void)
{
    const char *text = getenv(STEPS);
    if (!text)
        return false;
    if (steps_fd < 0 && sscanf(text, "%d:%d", &steps_fd, &user_level) == 2)
        tn_set_log_sink(write_step, NULL);
    return steps_fd >= 0;
}

bool child_stepped(const char *words)
{
    return !strncmp(last_step, words, strlen(words));
}

void child_reported(void)
{
    if (steps_fd >= 0)
        tn_log(TN_LOG_DEBUG, "reported");
}

bool child_fault(const char *file, fault *out)
{
    const char *line = getenv(FAULTS);
    size_t length = strlen(file);
    for (; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        int used = 0;
        memset(out, 0, sizeof *out);
        if (sscanf(line, "%d\t%n", &out->stage, &used) != 1 || strncmp(line + used, file, length) ||
            line[used + length] != '\t')
            continue;
        snprintf(out->file, sizeof out->file, "%s", file);
        const char *reason = line + used + length + 1;
        snprintf(out->reason, sizeof out->reason, "%.*s", (int)strcspn(reason, "\n"), reason);
        return true;
    }
    return false;
}

/* ---- the parent ------------------------------------------------------------------------------ */

struct child {
    pid_t pid;
    int output, steps; /* the parent's ends of the pipes */
    char *text;        /* the output of the child */
    size_t length, capacity;
    char line[PATH_MAX + 256]; /* the part of a line that has been read from the pipe of steps */
    size_t used;
    char step[PATH_MAX + 256]; /* the last step that the child began */
    bool reported, hung;
    int status;
};

/* Returns the log level that the user set. The child itself runs with level debug, for its
 * steps. */
static int wanted_level(void)
{
    static const char *const names[] = { "off", "error", "warning", "info", "debug" };
    const char *text = tn_env_get("TENON_LOG");
    for (int i = 0; text && i < 5; i++)
        if (!strncmp(text, names[i], strcspn(text, ":")) && !names[i][strcspn(text, ":")])
            return i;
    return TN_LOG_WARNING;
}

/* Sets TENON_PLUGINS in the child: the value of the user, plus a denial of every plugin that had a
 * fault. */
static void set_filter(const fault *faults, int count)
{
    const char *list = tn_env_get("TENON_PLUGINS");
    size_t size = (list ? strlen(list) : 0) + (size_t)count * 260 + 1;
    char *filter = malloc(size), stem[256];
    if (!filter || !count) {
        free(filter);
        return;
    }
    snprintf(filter, size, "%s", list ? list : "");
    for (int i = 0; i < count; i++) {
        plugin_stem(faults[i].file, stem, sizeof stem);
        for (char *c = stem; *c; c++)
            if (!isalnum((unsigned char)*c) && !strchr("_-.", *c))
                *c = '?';
        size_t length = strlen(filter);
        snprintf(filter + length, size - length, "%s!%s", length ? "," : "", stem);
    }
    setenv("TENON_PLUGINS", filter, 1);
    free(filter);
}

/* Stores the faults in the environment of the child, for child_fault(). */
static void set_faults(const fault *faults, int count)
{
    size_t size = (size_t)count * sizeof *faults + 1, length = 0;
    char *text = malloc(size);
    if (!text)
        return;
    text[0] = 0;
    for (int i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, size - length, "%d\t%s\t%s\n", faults[i].stage,
                                   faults[i].file, faults[i].reason);
    setenv(FAULTS, text, 1);
    free(text);
}

/* Sets the log level of the child to debug, because steps are debug messages. Keeps the log file
 * that the user named. */
static void set_log(void)
{
    const char *before = tn_env_get("TENON_LOG"), *colon = before ? strchr(before, ':') : NULL;
    char *setting = NULL;
    if (colon && asprintf(&setting, "debug%s", colon) < 0)
        setting = NULL;
    setenv("TENON_LOG", setting ? setting : "debug", 1);
    free(setting);
}

static bool start(struct child *child, const char *const *arguments, const fault *faults, int count)
{
    int output[2], steps[2];
    char text[32];
    memset(child, 0, sizeof *child);
    if (pipe2(output, O_CLOEXEC) || pipe2(steps, O_CLOEXEC))
        return false;
    fflush(NULL);
    child->pid = fork();
    if (!child->pid) {
        dup2(output[1], STDOUT_FILENO);
        int fd = fcntl(steps[1], F_DUPFD, 10); /* a descriptor without close-on-exec */
        snprintf(text, sizeof text, "%d:%d", fd, wanted_level());
        setenv(STEPS, text, 1);
        set_log();
        set_filter(faults, count);
        set_faults(faults, count);
        execv("/proc/self/exe", (char *const *)(uintptr_t)arguments);
        _exit(NOT_STARTED);
    }
    close(output[1]);
    close(steps[1]);
    child->output = output[0];
    child->steps = steps[0];
    return child->pid > 0;
}

/* Reads output of the child. Returns false at the end of the output or on failure. */
static bool take_output(struct child *child)
{
    char bytes[4096];
    ssize_t got = read(child->output, bytes, sizeof bytes);
    if (got <= 0)
        return got < 0 && errno == EINTR;
    if (child->length + (size_t)got > child->capacity) {
        size_t capacity = 2 * (child->length + (size_t)got);
        char *grown = realloc(child->text, capacity);
        if (!grown)
            return false;
        child->text = grown;
        child->capacity = capacity;
    }
    memcpy(child->text + child->length, bytes, (size_t)got);
    child->length += (size_t)got;
    return true;
}

static const struct step *step_of(const char *line)
{
    for (size_t i = 0; i < sizeof known_steps / sizeof *known_steps; i++)
        if (!strncmp(line, known_steps[i].begins, strlen(known_steps[i].begins)))
            return &known_steps[i];
    return NULL;
}

/* Reads steps of the child. Returns false at the end of the pipe or on failure. */
static bool take_steps(struct child *child)
{
    char bytes[4096];
    ssize_t got = read(child->steps, bytes, sizeof bytes);
    for (ssize_t i = 0; i < got; i++) {
        if (bytes[i] != '\n') {
            if (child->used + 1 < sizeof child->line)
                child->line[child->used++] = bytes[i];
            continue;
        }
        child->line[child->used] = 0;
        child->reported = child->reported || !strcmp(child->line, "reported");
        if (step_of(child->line))
            memcpy(child->step, child->line, child->used + 1);
        child->used = 0;
    }
    return got > 0 || (got < 0 && errno == EINTR);
}

static int64_t now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

/* Reads from both pipes until the child has closed them, or has ended (another process may still
 * hold the pipes), or a step takes too long. Kills a child whose step takes too long. */
static void follow(struct child *child)
{
    struct pollfd ends[2] = { { child->output, POLLIN, 0 }, { child->steps, POLLIN, 0 } };
    int64_t limit = now() + tool_seconds * 1000;
    bool ended = false;
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        int64_t left = limit - now();
        if (left <= 0 && !ended) {
            child->hung = true;
            break;
        }
        int ready = poll(ends, 2, ended ? 0 : left > 200 ? 200 : (int)left);
        if (ended && ready <= 0)
            break;
        if (ends[0].revents && !take_output(child))
            ends[0].fd = -1;
        if (ends[1].revents) {
            limit = now() + tool_seconds * 1000;
            if (!take_steps(child))
                ends[1].fd = -1;
        }
        ends[0].revents = ends[1].revents = 0;
        if (!ended && !ready)
            ended = waitpid(child->pid, &child->status, WNOHANG) == child->pid;
    }
    while (!ended && !child->hung) {
        ended = waitpid(child->pid, &child->status, WNOHANG) == child->pid;
        child->hung = !ended && now() >= limit;
        if (!ended && !child->hung)
            poll(NULL, 0, 5);
    }
    if (child->hung) {
        kill(child->pid, SIGKILL);
        while (waitpid(child->pid, &child->status, 0) < 0 && errno == EINTR)
            ;
    }
    close(child->output);
    close(child->steps);
}

/* Finds the plugin file in the text of a step: after the verb, or, for "counting" and "opening", in
 * parentheses. */
static void file_of(const char *step, char *out, size_t size)
{
    const char *open = strchr(step, '('), *space = strchr(step, ' ');
    bool plain = !strncmp(step, "counting", 8) || !strncmp(step, "opening", 7) ? false : true;
    const char *from = plain ? (space ? space + 1 : "") : (open ? open + 1 : "");
    size_t length = strlen(from);
    snprintf(out, size, "%.*s", (int)(!plain && length ? length - 1 : length), from);
}

/* Returns the name of a signal without SIG; NULL if it has none here. musl, and glibc before 2.32,
 * have no sigabbrev_np. */
static const char *signal_name(int number)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
        { SIGABRT, "ABRT" }, { SIGALRM, "ALRM" }, { SIGBUS, "BUS" },   { SIGFPE, "FPE" },
        { SIGHUP, "HUP" },   { SIGILL, "ILL" },   { SIGINT, "INT" },   { SIGKILL, "KILL" },
        { SIGPIPE, "PIPE" }, { SIGQUIT, "QUIT" }, { SIGSEGV, "SEGV" }, { SIGSYS, "SYS" },
        { SIGTERM, "TERM" }, { SIGTRAP, "TRAP" }, { SIGUSR1, "USR1" }, { SIGUSR2, "USR2" },
        { SIGXCPU, "XCPU" }, { SIGXFSZ, "XFSZ" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].number == number)
            return names[i].name;
    return NULL;
}

/* Describes why a child failed: the signal, exit status or timeout, and the last step. */
static void fault_of(const struct child *child, fault *out)
{
    const struct step *step = step_of(child->step);
    int number = WIFSIGNALED(child->status) ? WTERMSIG(child->status) : 0;
    const char *abbreviation = signal_name(number);
    const char *where = step ? step->crashed : "before the first plugin";
    memset(out, 0, sizeof *out);
    out->stage = step ? step->stage : TN_STAGE_FOUND;
    file_of(child->step, out->file, sizeof out->file);
    if (child->hung) {
        snprintf(out->signal, sizeof out->signal, "timeout");
        snprintf(out->reason, sizeof out->reason, "%s did not return within %lld s (--seconds)",
                 step ? step->hung : "the work before the first plugin", (long long)tool_seconds);
        return;
    }
    if (abbreviation)
        snprintf(out->signal, sizeof out->signal, "SIG%s", abbreviation);
    else
        snprintf(out->signal, sizeof out->signal, number ? "signal %d" : "exit", number);
    if (number)
        snprintf(out->reason, sizeof out->reason, "it crashed with %s (%s) %s", out->signal,
                 strsignal(number), where);
    else if (!step && WEXITSTATUS(child->status) == NOT_STARTED)
        snprintf(out->reason, sizeof out->reason,
                 "the command cannot start itself once more, by /proc/self/exe; an emulator needs "
                 "binfmt_misc for that, and a dynamic loader that is called by name cannot do it");
    else
        snprintf(out->reason, sizeof out->reason, "it ended the process with exit status %d %s",
                 WEXITSTATUS(child->status), where);
}

int child_run(const char *const *arguments, bool (*wanted)(const fault *, const char *),
              const char *name, int (*show)(const fault *))
{
    static fault faults[MOST_FAULTS];
    struct child child;
    for (int count = 0; count < MOST_FAULTS; count++) {
        fault *last = &faults[count];
        if (!start(&child, arguments, faults, count)) {
            char words[128];
            snprintf(words, sizeof words, "a child process cannot be started: %s", strerror(errno));
            return tool_refuse(TN_ERR_IO, words);
        }
        follow(&child);
        bool good = WIFEXITED(child.status) && child.reported && !child.hung;
        if (child.reported)
            fwrite(child.text, 1, child.length, stdout);
        free(child.text);
        if (good)
            return WEXITSTATUS(child.status);
        fault_of(&child, last);
        if (child.reported) {
            fprintf(stderr, "tenon: at the end: %s: %s\n", last->file, last->reason);
            return EXIT_NOT_OK;
        }
        if (wanted && (wanted(last, name) || last->stage >= TN_STAGE_ACTIVATE))
            return show(last);
        bool again = last->file[0] == '/';
        for (int i = 0; i < count; i++)
            again = again && strcmp(faults[i].file, last->file) != 0;
        if (!again) {
            char words[PATH_MAX + 600];
            snprintf(words, sizeof words, "%s%s%s", last->file, last->file[0] ? ": " : "",
                     last->reason);
            return tool_refuse(TN_ERR_RUNTIME, words);
        }
        if (wanted)
            fprintf(stderr, "tenon: note: another plugin is excluded, %s: %s\n", last->file,
                    last->reason);
    }
    return tool_refuse(
        TN_ERR_RUNTIME,
        "too many plugins crash or do not return; expected fewer in the plugin path");
}
