/* SPDX-License-Identifier: MIT
 *
 * The log. Each call writes one line: to the program's sink, or by default to standard error or a
 * file. A line is written by one write() call. */
#include "core/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tenon/runtime.h>

#define LINE_MAX_SIZE 4096 /* PIPE_BUF: a write of at most this size to a pipe is atomic */
#define FIFO_PATIENCE 1000 /* milliseconds to wait for space in a full FIFO */

static const char *const level_names[] = { "off", "error", "warning", "info", "debug" };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tn_log_sink sink;
static void *sink_user;
static int file = -1;              /* the file of TENON_LOG=LEVEL:FILE; -1: standard error */
static uint64_t lost;              /* lines dropped since the last line that was written */
static _Atomic int threshold = -1; /* -1: TENON_LOG was not read yet */

/* True in a thread that runs the sink and so holds the lock. If the sink itself logs or forks, this
 * thread must not take the lock again. */
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

/* Writes bytes; failures are ignored. If a FIFO is full, waits for its reader once; after that,
 * lines are dropped until the FIFO is writable again. Returns false if the FIFO is full. */
static bool write_quietly(int to, const char *bytes, size_t count)
{
    size_t done = 0;
    int saved = errno, number = tn__fd_write(to, bytes, count, &done);
    struct pollfd room = { .fd = to, .events = POLLOUT };

    if (number == EAGAIN && lost == 0 && poll(&room, 1, FIFO_PATIENCE) == 1)
        number = tn__fd_write(to, bytes + done, count - done, &done);
    errno = saved;
    return number != EAGAIN;
}

static void write_line(int level, const char *plugin, const char *text)
{
    char line[LINE_MAX_SIZE];
    int64_t whole = tn_snprint(line, sizeof line, "tenon: %s: %s%s%s%s", level_names[level],
                               *plugin ? "[" : "", plugin, *plugin ? "] " : "", text);
    size_t length = whole < (int64_t)sizeof line ? (size_t)whole : sizeof line - 1;
    int to = file >= 0 ? file : STDERR_FILENO;

    if (whole >= (int64_t)sizeof line)
        memcpy(line + length - 3, "...", 3);
    /* Control characters become spaces, so that a text with newlines stays one line and cannot
     * imitate other lines of the log. */
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = ' ';
    line[length] = '\n';
    if (lost > 0) {
        char words[96];
        int64_t size = tn_snprint(words, sizeof words,
                                  "tenon: warning: %llu lines before this one were lost: the "
                                  "pipe was full\n",
                                  (unsigned long long)lost);
        if (!write_quietly(to, words, (size_t)size)) {
            lost++;
            return;
        }
        lost = 0;
    }
    if (!write_quietly(to, line, length + 1))
        lost++;
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* Returns the level with that name, -1 if there is none. */
static int level_of(const char *text, size_t length)
{
    for (int i = 0; i < (int)tn__countof(level_names); i++)
        if (strlen(level_names[i]) == length && memcmp(level_names[i], text, length) == 0)
            return i;
    return -1;
}

/* Opens the file with O_NONBLOCK, because opening a FIFO that has no reader would block. For all
 * files but FIFOs, the flag is removed afterwards. */
static int open_file(const char *path)
{
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY, opened;
    struct stat info;

    opened = tn__fd_open(AT_FDCWD, path, flags | O_NONBLOCK, 0666);
    if (opened >= 0 && (fstat(opened, &info) != 0 || !S_ISFIFO(info.st_mode)))
        fcntl(opened, F_SETFL, O_APPEND);
    return opened;
}

/* Reads TENON_LOG; the caller holds the lock. A mistake in the variable is reported as a line of
 * the log. */
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
            "TENON_LOG=%q is unknown; expected off, error, warning, info or debug, or one of these "
            "with :FILE; warnings and errors are logged",
            text);
    }
    if (colon && !colon[1])
        tn_snprint(words, sizeof words,
                   "TENON_LOG=%q names no file after the colon: the log goes to standard error",
                   text);
    if (colon && colon[1]) {
        file = open_file(colon + 1);
        if (file < 0)
            tn_snprint(words, sizeof words,
                       "TENON_LOG: %q cannot be opened for writing: %s: the log goes to standard "
                       "error",
                       colon + 1,
                       errno == ENXIO ? "it is a pipe that no process reads" : strerror(errno));
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

    if (!tn__given(format != NULL, "tn_log: format"))
        return;
    if (level < TN_LOG_ERROR)
        level = TN_LOG_ERROR;
    if (level > TN_LOG_DEBUG)
        level = TN_LOG_DEBUG;
    if (inside) { /* the sink itself logs: this line bypasses the sink */
        if (tn_snprintv(small, sizeof small, format, args) >= 0)
            write_line(level, tn__error_plugin_id(), small);
        return;
    }
    tn__fork_is_child(); /* registers the fork handlers for the lock that is taken below */
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
    tn__error_plugin_back(plugin);
}

void tn_set_log_sink(tn_log_sink function, void *user)
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
    lost = 0;
    atomic_store(&threshold, -1);
    pthread_mutex_unlock(&lock);
}

void tn_log_text(int level, const char *text)
{
    if (tn__given(text != NULL, "tn_log_text: text"))
        tn_log(level, "%s", text);
}
