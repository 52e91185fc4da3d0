/* SPDX-License-Identifier: MIT
 *
 * Temporary files: their names, and removing those of processes that were killed. The process
 * that writes such a file holds a lock on it. If another process can lock the file, its writer has
 * ended. */
#include "lib/io/private.h"

#include "core/base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define START ".tenon-" /* then 8 digits for the machine, "-", 16 digits, and the ending */
#define NAME_TRIES 100
#define DAY 86400 /* seconds */

static const char digits[] = "0123456789abcdef";

/* ---- names ----------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Returns a number for this machine, because on some file systems a lock is not visible to other
 * machines. */
static uint32_t machine(void)
{
    struct utsname names;
    uint64_t hash = 1;
    if (uname(&names) == 0)
        for (const char *at = names.nodename; *at != '\0'; at++)
            hash = mix(hash ^ (unsigned char)*at);
    return (uint32_t)hash;
}

static void make_name(char *name, const char *ending)
{
    static _Atomic uint32_t serial;
    struct timespec now = { 0, 0 };
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t number = mix((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
    number = mix(number ^ (uint64_t)getpid() << 32 ^ atomic_fetch_add(&serial, 1));
    tn_snprint(name, TN__TEMPORARY_NAME, START "%08x-%016llx%s", (unsigned)machine(),
               (unsigned long long)number, ending);
}

static bool is_own(const char *name, const char *ending)
{
    const char *host = name + sizeof START - 1, *number = host + 9;
    return strncmp(name, START, sizeof START - 1) == 0 && strspn(host, digits) == 8 &&
           host[8] == '-' && strspn(number, digits) == 16 && strcmp(number + 16, ending) == 0;
}

/* ---- creating -------------------------------------------------------------------------------- */

/* Returns whether `name` in the folder is the open file. Sets *opened to the status of the open
 * file. */
static bool is_file(int folder, const char *name, int file, struct stat *opened)
{
    struct stat named;
    return fstat(file, opened) == 0 && fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(named.st_mode) && named.st_dev == opened->st_dev &&
           named.st_ino == opened->st_ino;
}

int tn__temporary_create(int folder, const char *ending, mode_t mode, char name[TN__TEMPORARY_NAME])
{
    struct stat info;
    for (int i = 0; i < NAME_TRIES; i++) {
        make_name(name, ending);
        int file = tn__fd_open(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
        if (file < 0 && errno != EEXIST)
            break;
        if (file < 0)
            continue;
        flock(file, LOCK_EX | LOCK_NB);
        if (is_file(folder, name, file, &info))
            return file;
        close(file); /* another process removed it as stale before it was locked */
        errno = EEXIST;
    }
    name[0] = '\0';
    return -1;
}

int tn__temporary_link(int folder, int file, const char *ending, char name[TN__TEMPORARY_NAME])
{
    int number = EEXIST;
    for (int i = 0; i < NAME_TRIES && number == EEXIST; i++) {
        make_name(name, ending);
        number = tn__temporary_link_as(folder, file, name);
    }
    if (number != 0)
        name[0] = '\0';
    return number;
}

int tn__temporary_link_as(int folder, int file, const char *name)
{
    char path[32];
    tn_snprint(path, sizeof path, "/proc/self/fd/%d", file);
    if (linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    /* Works without /proc, but the system allows this form only to privileged processes. */
    if (errno == ENOENT && linkat(file, "", folder, name, AT_EMPTY_PATH) == 0)
        return 0;
    return errno;
}

/* ---- removing -------------------------------------------------------------------------------- */

/* Opens and locks a temporary file whose writer has ended. Returns -1 for any other file. A file
 * from another machine must be a day old. Only root gets files of other users. */
static int take_stale(int folder, const char *name)
{
    struct stat info;
    int file = tn__fd_open(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (file < 0)
        file = tn__fd_open(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (file < 0)
        return -1;
    char host[9];
    tn_snprint(host, sizeof host, "%08x", (unsigned)machine());
    bool stale = flock(file, LOCK_EX | LOCK_NB) == 0 && is_file(folder, name, file, &info) &&
                 (info.st_uid == geteuid() || geteuid() == 0) &&
                 (strncmp(name + sizeof START - 1, host, 8) == 0 ||
                  info.st_mtime + DAY < time(NULL));
    if (stale)
        return file;
    close(file);
    return -1;
}

void tn__temporary_sweep(int folder, const char *ending, bool (*settle)(void *user, int file),
                         void *user)
{
    int saved = errno;
    int again = tn__fd_open(folder, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *list = again >= 0 ? fdopendir(again) : NULL;
    if (list == NULL && again >= 0)
        close(again);
    for (struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;) {
        int file = is_own(entry->d_name, ending) ? take_stale(folder, entry->d_name) : -1;
        if (file < 0)
            continue;
        if (settle == NULL || settle(user, file)) {
            tn__log(TN_LOG_INFO, "removed %s, left by a process that ended while it saved",
                    entry->d_name);
            unlinkat(folder, entry->d_name, 0);
        }
        close(file);
    }
    if (list != NULL)
        closedir(list);
    errno = saved;
}
