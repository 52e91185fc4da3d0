/* SPDX-License-Identifier: MIT
 *
 * Preloaded into tenon: counts the calls that change files, and at one of them ends the process or
 * fails. A call that ends the process does not happen.
 *
 *   TN_FAULT=kill:N     SIGKILL in place of call N (from 1)
 *   TN_FAULT=fail:N     call N fails with ENOSPC
 *   TN_FAULT=count      neither
 *
 * At the end, TN_FAULT_CALLS=FILE gets the number of calls, unless the process was killed. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static _Atomic long calls;

/* Counts a call. Returns true if it must fail. */
static bool faulty(void)
{
    const char *fault = getenv("TN_FAULT");
    long call = atomic_fetch_add(&calls, 1) + 1;

    if (fault == NULL || strlen(fault) < 6 || strtol(fault + 5, NULL, 10) != call)
        return false;
    if (fault[0] == 'k')
        raise(SIGKILL);
    errno = ENOSPC;
    return true;
}

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* Standard output, pipes and devices are no files that a run keeps. */
static bool is_file(int fd)
{
    struct stat is;

    return fstat(fd, &is) == 0 && S_ISREG(is.st_mode) && fd > STDERR_FILENO;
}

ssize_t write(int fd, const void *from, size_t size)
{
    ssize_t (*call)(int, const void *, size_t) = real("write");

    return is_file(fd) && faulty() ? -1 : call(fd, from, size);
}

int ftruncate(int fd, off_t size)
{
    int (*call)(int, off_t) = real("ftruncate");

    return faulty() ? -1 : call(fd, size);
}

int ftruncate64(int fd, off_t size)
{
    return ftruncate(fd, size);
}

int fsync(int fd)
{
    int (*call)(int) = real("fsync");

    return faulty() ? -1 : call(fd);
}

int rename(const char *from, const char *to)
{
    int (*call)(const char *, const char *) = real("rename");

    return faulty() ? -1 : call(from, to);
}

int renameat(int folder, const char *from, int other, const char *to)
{
    int (*call)(int, const char *, int, const char *) = real("renameat");

    return faulty() ? -1 : call(folder, from, other, to);
}

int renameat2(int folder, const char *from, int other, const char *to, unsigned flags)
{
    int (*call)(int, const char *, int, const char *, unsigned) = real("renameat2");

    return faulty() ? -1 : call(folder, from, other, to, flags);
}

int link(const char *from, const char *to)
{
    int (*call)(const char *, const char *) = real("link");

    return faulty() ? -1 : call(from, to);
}

int linkat(int folder, const char *from, int other, const char *to, int flags)
{
    int (*call)(int, const char *, int, const char *, int) = real("linkat");

    return faulty() ? -1 : call(folder, from, other, to, flags);
}

int unlink(const char *path)
{
    int (*call)(const char *) = real("unlink");

    return faulty() ? -1 : call(path);
}

int unlinkat(int folder, const char *path, int flags)
{
    int (*call)(int, const char *, int) = real("unlinkat");

    return faulty() ? -1 : call(folder, path, flags);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("TN_FAULT_CALLS");
    FILE *file = path != NULL ? fopen(path, "w") : NULL;

    if (file == NULL)
        return;
    fprintf(file, "%ld\n", (long)calls);
    fclose(file);
}
