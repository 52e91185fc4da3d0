/* SPDX-License-Identifier: MIT
 *
 * System calls of the core that fail, write less, or end the process, on purpose. The core is
 * linked into the program that includes this file, so that the core calls these functions. */
#ifndef TN_TESTS_IO_FAILING_CALLS_H
#define TN_TESTS_IO_FAILING_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum fault_call { CALL_OPEN, CALL_WRITE, CALL_SYNC, CALL_LINK, CALL_RENAME, CALL_UNLINK, CALLS };

static struct {
    bool armed;
    unsigned calls;   /* bits of those that count */
    int64_t nth;      /* the one that fails, from 1; 0: none */
    bool onwards;     /* all after it, too */
    int number;       /* errno */
    bool kill;        /* the process ends instead */
    bool short_write; /* every write takes half of what it gets */
    bool no_tmpfile;  /* the file system has no files without names */
    bool no_link;     /* the file system has such files, but cannot name them later */
    int64_t seen;
} fault;

static inline void faults_off(void)
{
    fault.armed = false;
}

/* Whether this call must fail. */
static inline bool fault_strikes(enum fault_call call)
{
    if (!fault.armed || (fault.calls & 1u << call) == 0)
        return false;
    fault.seen++;
    if (fault.nth == 0 || fault.seen < fault.nth || (fault.seen > fault.nth && !fault.onwards))
        return false;
    if (fault.kill)
        syscall(SYS_kill, getpid(), SIGKILL);
    errno = fault.number;
    return true;
}

int openat(int folder, const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (fault.armed && fault.no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    /* Folders are opened for reading; that is not a step of a save. */
    if ((flags & O_ACCMODE) != O_RDONLY && fault_strikes(CALL_OPEN))
        return -1;
    return (int)syscall(SYS_openat, folder, name, flags, mode);
}

ssize_t write(int file, const void *bytes, size_t count)
{
    if (fault_strikes(CALL_WRITE))
        return -1;
    if (fault.armed && fault.short_write && count > 1)
        count /= 2;
    return syscall(SYS_write, file, bytes, count);
}

/* Does not wait for the disk, because no test here is about a power failure. */
int fsync(int file)
{
    return fault_strikes(CALL_SYNC) ? -1 : fcntl(file, F_GETFD) < 0 ? -1 : 0;
}

int linkat(int from, const char *name, int to, const char *other, int flags)
{
    if (fault.armed && fault.no_link) {
        errno = EPERM;
        return -1;
    }
    return fault_strikes(CALL_LINK) ? -1 : (int)syscall(SYS_linkat, from, name, to, other, flags);
}

int renameat(int from, const char *name, int to, const char *other)
{
    return fault_strikes(CALL_RENAME) ? -1 : (int)syscall(SYS_renameat2, from, name, to, other, 0);
}

int renameat2(int from, const char *name, int to, const char *other, unsigned flags)
{
    return fault_strikes(CALL_RENAME) ? -1
                                      : (int)syscall(SYS_renameat2, from, name, to, other, flags);
}

int unlinkat(int folder, const char *name, int flags)
{
    return fault_strikes(CALL_UNLINK) ? -1 : (int)syscall(SYS_unlinkat, folder, name, flags);
}

#endif
