/* SPDX-License-Identifier: MIT
 *
 * tenon why NAME|FILE: one plugin taken through all stages. The work is done by a child process
 * (this program, started anew), because a plugin may crash in its constructors; the parent then
 * says how far it came and by which signal it died. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Set for the child: the number of the pipe that it writes its steps to. */
#define STEPS "TENON_TEST_WHY_STEPS"

/* ---- the child ------------------------------------------------------------------------------- */

static void write_step(void *user, int level, const char *plugin, const char *text)
{
    int fd = *(int *)user;
    (void)plugin;
    if (level == TN_LOG_DEBUG) {
        if (dprintf(fd, "%s\n", text) < 0)
            return;
    } else {
        fprintf(stderr, "tenon: %s\n", text);
    }
}

/* The name of a file without "lib" and ".so", as TENON_PLUGINS sees it. */
static void stem_of(const char *path, char *out, size_t size)
{
    const char *base = base_name(path);
    base += !strncmp(base, "lib", 3) ? 3 : 0;
    const char *dot = strstr(base, ".so");
    snprintf(out, size, "%.*s", dot ? (int)(dot - base) : (int)strlen(base), base);
}

static bool is_named(const tn_plugin_report *r, const char *name, const char *real)
{
    char stem[256];
    const char *part = strrchr(r->id, '.');
    if (!strcmp(r->file, name) || (real && !strcmp(r->file, real)))
        return true;
    if (strchr(name, '/'))
        return false;
    stem_of(r->file, stem, sizeof stem);
    return !strcmp(r->id, name) || (part && !strcmp(part + 1, name)) ||
           !strcmp(base_name(r->file), name) || !strcmp(stem, name);
}

static bool line_of(const char *name, const char *real, tn_plugin_report *r)
{
    tn_plugin_report each;
    bool found = false;
    for (int64_t i = 0; tn_plugin_report_at(i, &each) == TN_OK; i++)
        if (is_named(&each, name, real) &&
            (!found || (each.outcome == TN_OUTCOME_OK && r->outcome != TN_OUTCOME_OK))) {
            *r = each;
            found = true;
        }
    tn_error_clear();
    return found;
}

/* Activates, and looks for the devices of its device types. */
static void go_all_the_way(const tn_plugin_report *r)
{
    int64_t types = tn_registry_count(TN_KIND_tn_backend);
    if (r->outcome != TN_OUTCOME_OK || !r->id[0])
        return;
    bool good = tn_plugin_activate(r->id) == TN_OK;
    for (int64_t i = 0; good && i < types; i++) {
        const char *type = tn_registry_name(TN_KIND_tn_backend, i);
        const char *owner = type ? tn_registry_plugin(TN_KIND_tn_backend, type) : NULL;
        if (owner && !strcmp(owner, r->id))
            tn_device_find(type);
    }
    tn_error_clear();
}

static void show(const tn_plugin_report *r, const char *crash, bool json)
{
    if (json) {
        json_begin(NULL, '{');
        report_json(r);
        if (crash)
            json_text("signal", crash);
        else
            gives_json(r->id);
        json_end('}');
        return;
    }
    print_wrapped("plugin", 15, r->id[0] ? r->id : "-");
    if (r->version[0])
        print_wrapped("version", 15, r->version);
    print_wrapped("file", 15, r->file);
    if (r->help[0])
        print_wrapped("help", 15, r->help);
    print_wrapped("outcome", 15, tn_outcome_name(r->outcome));
    print_wrapped("stage", 15, tn_stage_name(r->stage));
    if (r->reason[0])
        print_wrapped("reason", 15, r->reason);
    if (r->id[0])
        gives_print(r->id);
}

static int examine(const char *name, bool json)
{
    char path[PATH_MAX];
    const char *real = realpath(name, path) ? path : NULL;
    tn_plugin_report r;
    if (tn_plugin_count() < 0)
        return tool_fail("the plugins cannot be looked at");
    if (!line_of(name, real, &r)) {
        bool file = real && (strchr(name, '/') || strstr(name, ".so"));
        if (file)
            tn_plugin_load(real);
        tn_error_clear();
        if (!file || !line_of(name, real, &r)) {
            char words[512];
            snprintf(
                words, sizeof words,
                "no plugin and no file is called \"%.300s\"; `tenon plugins` lists what was found",
                name);
            return tool_refuse(TN_ERR_KEY, words);
        }
    }
    go_all_the_way(&r);
    line_of(name, real, &r);
    show(&r, NULL, json);
    return r.outcome == TN_OUTCOME_OK ? EXIT_OK : EXIT_NOT_OK;
}

/* ---- the parent ------------------------------------------------------------------------------ */

struct child {
    char *output;
    size_t length;
    char step[PATH_MAX + 64]; /* the last that it began */
    int status;
};

/* Whatever comes until both ends are closed: output to a buffer, of the steps the last whole
 * line. */
static bool listen_to(struct child *child, int output, int steps)
{
    char line[sizeof child->step] = "";
    size_t used = 0, capacity = 0;
    char byte, bytes[4096];
    ssize_t got;
    while ((got = read(output, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR)) {
        if (got < 0)
            continue;
        if (child->length + (size_t)got > capacity) {
            capacity = 2 * (child->length + (size_t)got);
            char *grown = realloc(child->output, capacity);
            if (!grown)
                return false;
            child->output = grown;
        }
        memcpy(child->output + child->length, bytes, (size_t)got);
        child->length += (size_t)got;
    }
    while ((got = read(steps, &byte, 1)) == 1) {
        if (byte != '\n') {
            if (used + 1 < sizeof line)
                line[used++] = byte;
            continue;
        }
        line[used] = 0;
        if (!strncmp(line, "mapping ", 8) || !strncmp(line, "asking ", 7) ||
            !strncmp(line, "activating ", 11))
            memcpy(child->step, line, used + 1);
        used = 0;
    }
    return true;
}

/* Runs this program again to examine `name`; only files of the name `only` are mapped when that
 * is given. */
static bool run_child(struct child *child, const char *name, const char *only, bool json)
{
    int output[2], steps[2];
    char number[16];
    memset(child, 0, sizeof *child);
    /* Steps are few and short: they fit the pipe, which is read when the output has ended. */
    if (pipe2(output, O_CLOEXEC) || pipe2(steps, O_CLOEXEC | O_NONBLOCK))
        return false;
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        dup2(output[1], STDOUT_FILENO);
        int fd = fcntl(steps[1], F_DUPFD, 10); /* without close-on-exec */
        snprintf(number, sizeof number, "%d", fd);
        setenv(STEPS, number, 1);
        setenv("TENON_LOG", "debug", 1);
        if (only)
            setenv("TENON_PLUGINS", only, 1);
        char *arguments[] = { (char *)"tenon",
                              (char *)"why",
                              json ? (char *)"--json" : (char *)"--",
                              json ? (char *)"--" : (char *)name,
                              json ? (char *)name : NULL,
                              NULL };
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    close(output[1]);
    close(steps[1]);
    bool good = pid > 0 && listen_to(child, output[0], steps[0]);
    close(output[0]);
    close(steps[0]);
    while (pid > 0 && waitpid(pid, &child->status, 0) < 0 && errno == EINTR)
        ;
    return good;
}

static int pass_on(struct child *child)
{
    fwrite(child->output, 1, child->length, stdout);
    free(child->output);
    return WIFEXITED(child->status) ? WEXITSTATUS(child->status) : EXIT_NOT_OK;
}

/* The report of a plugin that could not write one itself. */
static int crashed(struct child *child, bool json)
{
    char reason[512], signal_name[32];
    int number = WIFSIGNALED(child->status) ? WTERMSIG(child->status) : 0;
    const char *file = strchr(child->step, '/');
    const char *abbreviation = number ? sigabbrev_np(number) : NULL;
    bool activating = !strncmp(child->step, "activating", 10),
         asking = !strncmp(child->step, "asking", 6);
    free(child->output);
    if (abbreviation)
        snprintf(signal_name, sizeof signal_name, "SIG%s", abbreviation);
    else
        snprintf(signal_name, sizeof signal_name, number ? "signal %d" : "exit", number);
    if (number)
        snprintf(
            reason, sizeof reason, "it crashed with %s (%s) %s", signal_name, strsignal(number),
            activating ? "in its activate function"
            : asking
                ? "in its query"
                : "while it was mapped, in a constructor of its own or of a library that it needs");
    else
        snprintf(reason, sizeof reason, "it ended the process with exit status %d %s",
                 WEXITSTATUS(child->status),
                 activating ? "in its activate function"
                 : asking   ? "in its query"
                            : "while it was mapped");
    tn_plugin_report r = { .id = "",
                           .version = "",
                           .file = file ? file : "?",
                           .help = "",
                           .reason = reason,
                           .outcome = TN_OUTCOME_FAILED,
                           .stage = activating ? TN_STAGE_ACTIVATE
                                    : asking   ? TN_STAGE_QUERY
                                               : TN_STAGE_DLOPEN };
    show(&r, signal_name, json);
    return EXIT_NOT_OK;
}

/* Whether the child wrote its report to the end: a plugin might also call exit. */
static bool ended_well(const struct child *child)
{
    return WIFEXITED(child->status) && WEXITSTATUS(child->status) <= EXIT_USAGE &&
           (child->length || WEXITSTATUS(child->status) != EXIT_OK || !child->step[0]);
}

static int run(int count, char **arguments, bool json)
{
    const char *name = arguments[0], *fd_text = getenv(STEPS);
    char stem[256], real[PATH_MAX];
    struct child child;
    static int fd;
    (void)count;
    if (fd_text) {
        fd = atoi(fd_text);
        tn_log_set_sink(write_step, &fd);
        return examine(name, json);
    }
    if (!run_child(&child, name, NULL, json)) {
        char words[128];
        snprintf(words, sizeof words, "a child process cannot be started: %s", strerror(errno));
        return tool_refuse(TN_ERR_IO, words);
    }
    if (ended_well(&child))
        return pass_on(&child);
    const char *file = strchr(child.step, '/');
    tn_plugin_report at = { .id = "", .file = file ? file : "" };
    if (is_named(&at, name, realpath(name, real) ? real : NULL) ||
        !strncmp(child.step, "activating", 10))
        return crashed(&child, json);
    /* Another plugin of the folder took the child down: once more without the others. */
    free(child.output);
    fprintf(stderr, "tenon: note: another plugin crashes when it is mapped: %s\n",
            file ? file : child.step);
    stem_of(name, stem, sizeof stem);
    if (!run_child(&child, name, stem, json))
        return EXIT_NOT_OK;
    return ended_well(&child) ? pass_on(&child) : crashed(&child, json);
}

const command why_command = {
    "why",
    "NAME",
    "one plugin taken through all stages",
    "Takes one plugin, by id, by the last part of it, by file name or by path, through all "
    "stages, activation and the search for "
    "devices included, and prints what came of it and what it gives. This happens in a child "
    "process, so that a plugin that "
    "crashes can be looked at: the signal is the reason then.\n\nExit status 1 when its outcome "
    "is not OK or nothing has that "
    "name.",
    1,
    1,
    run,
    false
};
