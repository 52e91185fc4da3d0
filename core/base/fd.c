/* SPDX-License-Identifier: MIT
 *
 * Opening and writing files in the process of a program. The program may have closed its standard
 * streams, and its signal handlers must not see signals that writes of Tenon cause. */
#include "core/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define LARGEST_WRITE ((size_t)1 << 30)

/* ---- opening --------------------------------------------------------------------------------- */

int tn__fd_open(int folder, const char *name, int flags, mode_t mode)
{
    int low[STDERR_FILENO + 1], count = 0;

    /* If a file got the number of a closed standard stream, even for a moment, output of other
     * threads to that stream would go to the file. Therefore descriptors that cannot be written
     * (O_PATH) occupy these numbers while the file is opened. */
    while (count <= STDERR_FILENO) {
        int reserved = open("/", O_PATH | O_CLOEXEC);
        if (reserved < 0)
            break;
        if (reserved > STDERR_FILENO) {
            close(reserved);
            break;
        }
        low[count++] = reserved;
    }
    int file = openat(folder, name, flags | O_CLOEXEC, mode);
    int saved = errno;
    if (file >= 0 && file <= STDERR_FILENO) { /* another thread has just closed a standard stream */
        int above = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        saved = errno;
        close(file);
        file = above;
    }
    while (count > 0)
        close(low[--count]);
    errno = saved;
    return file;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Signals that a failed write sends to the thread: broken pipe, and file size limit exceeded. */
static const int raised_by_write[] = { SIGPIPE, SIGXFSZ };
enum { RAISED = sizeof raised_by_write / sizeof *raised_by_write };

static int write_all(int file, const char *at, size_t count, size_t *done)
{
    while (*done < count) {
        size_t rest = count - *done;
        ssize_t written = write(file, at + *done, rest < LARGEST_WRITE ? rest : LARGEST_WRITE);
        if (written > 0)
            *done += (size_t)written;
        else if (written == 0)
            return EIO;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

int tn__fd_write(int file, const void *bytes, size_t count, size_t *done)
{
    sigset_t held, before, pending;
    const struct timespec at_once = { 0, 0 };
    int saved = errno;

    sigemptyset(&held);
    for (int i = 0; i < RAISED; i++)
        sigaddset(&held, raised_by_write[i]);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &held, &before);
    *done = 0;
    int number = write_all(file, bytes, count, done);
    /* A signal that was pending before the write belongs to the program and stays pending. */
    for (int i = 0; i < RAISED; i++)
        if (sigismember(&pending, raised_by_write[i]) == 1)
            sigdelset(&held, raised_by_write[i]);
    if (number == EPIPE || number == EFBIG)
        while (sigtimedwait(&held, NULL, &at_once) < 0 && errno == EINTR) {
        }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return number;
}
