/* SPDX-License-Identifier: MIT
 *
 * The log: one line per call, to a sink of the program or, by default, to standard error or a file,
 * whole lines with one write each. */
#include "core/base/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_SIZE 4096

static const char *const level_names[] = { "off", "error", "warning", "info", "debug" };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tn_log_sink sink;
static void *sink_user;
static int file = -1;              /* of TENON_LOG=LEVEL:FILE */
static _Atomic int threshold = -1; /* -1: TENON_LOG was not read yet */

/* A sink that logs, or forks, is on the stack of the thread that holds the lock. */
static _Thread_local bool inside;

void tn__log_fork(int stage)
{
    if (inside)
        return;
    if (stage < 0)
        pthread_mutex_lock(&lock);
    else
        pthread_mutex_unlock(&lock);
}

/* ---- the default sink ------------------------------------------------------------------------ */

/* A closed pipe at the other end is no reason to end the process: SIGPIPE is held back for this
 * thread, and taken away if it was this write that raised it. */
static void write_quietly(int to, const char *bytes, size_t count)
{
    sigset_t pipe_signal, before, pending;
    int saved = errno;

    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    while (count > 0) {
        ssize_t written = write(to, bytes, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            if (written < 0 && errno == EPIPE && !was_pending) {
                const struct timespec at_once = { 0, 0 };
                while (sigtimedwait(&pipe_signal, NULL, &at_once) < 0 && errno == EINTR) {
                }
            }
            break;
        }
        bytes += written;
        count -= (size_t)written;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
}

static void write_line(int level, const char *plugin, const char *text)
{
    char line[LINE_MAX_SIZE];
    int64_t whole = tn_snprint(line, sizeof line, "tenon: %s: %s%s%s%s", level_names[level],
                               *plugin ? "[" : "", plugin, *plugin ? "] " : "", text);
    size_t length = whole < (int64_t)sizeof line ? (size_t)whole : sizeof line - 1;

    if (whole >= (int64_t)sizeof line)
        memcpy(line + length - 3, "...", 3);
    /* A text of several lines stays one entry, and cannot pose as another. */
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = ' ';
    line[length] = '\n';
    write_quietly(file >= 0 ? file : STDERR_FILENO, line, length + 1);
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* The level that a text names, -1 for none. */
static int level_of(const char *text, size_t length)
{
    for (int i = 0; i < (int)tn__countof(level_names); i++)
        if (strlen(level_names[i]) == length && memcmp(level_names[i], text, length) == 0)
            return i;
    return -1;
}

/* Reads TENON_LOG under the lock. What is wrong with it is itself a line of the log. */
static int read_threshold(void)
{
    const char *text = tn_env_get("TENON_LOG");
    const char *colon = strchr(text, ':');
    int level = level_of(text, colon ? (size_t)(colon - text) : strlen(text));
    char words[512] = "";

    if (level < 0) {
        level = TN_LOG_WARNING;
        tn_snprint(
            words, sizeof words,
            "TENON_LOG=%q is not off, error, warning, info or debug (or one of these with :FILE): "
            "warnings and errors are logged",
            text);
    }
    if (colon && !colon[1])
        tn_snprint(words, sizeof words,
                   "TENON_LOG=%q names no file after the colon: the log goes to standard error",
                   text);
    if (colon && colon[1]) {
        file = open(colon + 1, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
        if (file < 0)
            tn_snprint(words, sizeof words,
                       "TENON_LOG: %q cannot be opened for writing: the log goes to standard error",
                       colon + 1);
    }
    if (*words)
        write_line(TN_LOG_WARNING, "", words);
    return level;
}

static int current_threshold(void)
{
    int level = atomic_load_explicit(&threshold, memory_order_acquire);

    if (tn__likely(level >= 0))
        return level;
    pthread_mutex_lock(&lock);
    level = atomic_load(&threshold);
    if (level < 0) {
        level = read_threshold();
        atomic_store_explicit(&threshold, level, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return level;
}

/* ---- public ---------------------------------------------------------------------------------- */

void tn_logv(int level, const char *format, va_list args)
{
    char small[LINE_MAX_SIZE];

    if (level < TN_LOG_ERROR)
        level = TN_LOG_ERROR;
    if (level > TN_LOG_DEBUG)
        level = TN_LOG_DEBUG;
    if (inside) { /* from inside a sink: it goes past it */
        if (tn_snprintv(small, sizeof small, format, args) >= 0)
            write_line(level, tn__error_plugin_id(), small);
        return;
    }
    tn__forked(); /* from now on fork minds the lock */
    if (level > current_threshold())
        return;
    const char *text = tn_snprintv(small, sizeof small, format, args) < 0 ? format : small;
    pthread_mutex_lock(&lock);
    inside = true;
    if (sink)
        sink(sink_user, level, tn__error_plugin_id(), text);
    else
        write_line(level, tn__error_plugin_id(), text);
    inside = false;
    pthread_mutex_unlock(&lock);
}

void tn_log(int level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    tn_logv(level, format, args);
    va_end(args);
}

void tn__log(int level, const char *format, ...)
{
    const char *plugin = tn__error_plugin("");
    va_list args;

    va_start(args, format);
    tn_logv(level, format, args);
    va_end(args);
    tn__error_plugin(plugin);
}

void tn_log_set_sink(tn_log_sink function, void *user)
{
    if (!inside)
        pthread_mutex_lock(&lock);
    sink = function;
    sink_user = user;
    if (!inside)
        pthread_mutex_unlock(&lock);
}

void tn__log_shutdown(void)
{
    if (inside)
        return;
    pthread_mutex_lock(&lock);
    if (file >= 0)
        close(file);
    file = -1;
    atomic_store(&threshold, -1);
    pthread_mutex_unlock(&lock);
}
