/* SPDX-License-Identifier: MIT
 *
 * The processes of tenon check, seen from the one that started them: starting, reading what they
 * say, and ending those that take too long. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
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

double conform_now(void)
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

bool process_start(const conform_options *o, const char *tests, bool guarded, running *r)
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
    r->began = r->test_began = conform_now();
    r->pid = fork();
    if (r->pid == 0) {
        int nothing = open("/dev/null", O_RDONLY);
        const char *arguments[16] = { o->self, "check", "--run", tests, "--fd", fd };
        int n = 6;

        setpgid(0, 0); /* process_is_stuck() ends the whole process group */
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

bool process_listen(running *r, int milliseconds)
{
    struct pollfd fds[2] = { { r->told, POLLIN, 0 }, { r->said, POLLIN, 0 } };
    size_t before = r->outcome.used;

    if (poll(fds, 2, milliseconds) <= 0)
        return false;
    if (fds[0].fd >= 0 && fds[0].revents != 0 && !collect(&r->outcome, r->told, 1 << 22)) {
        close(r->told);
        r->told = -1;
    }
    if (r->outcome.used > before && strstr(r->outcome.at + before, "begin ") != NULL)
        r->test_began = conform_now();
    if (fds[1].fd >= 0 && fds[1].revents != 0 && !collect(&r->prints, r->said, 1 << 16)) {
        close(r->said);
        r->said = -1;
    }
    return r->told < 0 && r->said < 0;
}

bool process_is_stuck(const conform_options *o, running *r)
{
    siginfo_t about = { 0 };

    if (r->died == 0 && waitid(P_PID, (id_t)r->pid, &about, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        about.si_pid == r->pid)
        r->died = conform_now();
    if (r->died > 0 && conform_now() - r->died > 1) {
        r->left = true;
        kill(-r->pid, SIGKILL);
        return true;
    }
    if (!r->late && conform_now() - r->test_began > o->seconds) {
        r->late = true;
        kill(-r->pid, SIGKILL);
    }
    return false;
}

void process_wait(const conform_options *o, running *r)
{
    while (!process_listen(r, 100) && !process_is_stuck(o, r))
        ;
}
