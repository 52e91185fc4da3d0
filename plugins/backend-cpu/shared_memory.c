/* SPDX-License-Identifier: MIT
 *
 * Memory that other processes can open. It is a file without a name (memfd). The mapping of the
 * file follows a private page, which stores the file's descriptor. The handle for other processes
 * contains the process, the descriptor and the file. They open /proc/PROCESS/fd/DESCRIPTOR, or
 * use a descriptor that was sent to them. The files are sealed against shrinking, because a process
 * that reads memory behind the end of a file that another process has cut is killed (SIGBUS). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "device.h"

static const char mark[8] = "tn-cpu-1";

struct name {
    char mark[8];
    int64_t process;
    uint64_t device, file; /* st_dev and st_ino */
    int64_t descriptor;
};
_Static_assert(sizeof(struct name) <= sizeof((tn_share_args *)0)->handle, "a handle has 64 bytes");

/* At the beginning of the page before the memory. */
struct note {
    size_t mapped; /* bytes, with this page */
    int descriptor;
};

static size_t page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static struct note *note_of(const tn_memory *memory)
{
    return (struct note *)(void *)((char *)memory->handle - page());
}

/* Maps a file. Afterwards `memory` owns the descriptor; on failure the descriptor is closed.
 * `wrong` is the status of a failure for another reason than lack of memory. */
static tn_status map(tn_memory *memory, int descriptor, tn_status wrong)
{
    size_t bytes = ((size_t)memory->bytes + page() - 1) / page() * page();
    char *at = mmap(NULL, bytes + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                    0);
    if (at == MAP_FAILED || mmap(at + page(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                                 descriptor, 0) == MAP_FAILED) {
        int error = errno;
        if (at != MAP_FAILED)
            munmap(at, bytes + page());
        close(descriptor);
        return tn_fail(error == ENOMEM ? TN_ERR_MEMORY : wrong,
                       "cpu: shared memory: cannot map %llu bytes: %s",
                       (unsigned long long)memory->bytes, strerror(error));
    }
    memory->handle = at + page();
    *note_of(memory) = (struct note){ bytes + page(), descriptor };
    return TN_OK;
}

/* Returns the largest size that the machine could ever provide. This check is needed because the
 * system accepts a file of any size, and allocates its memory only when it is written to. (Ordinary
 * memory is the same, unless the administrator has forbidden it: docs/plugins/backends.md.) */
static uint64_t most(void)
{
    struct sysinfo machine;
    uint64_t all = (uint64_t)INT64_MAX;
    if (sysinfo(&machine) == 0)
        all = ((uint64_t)machine.totalram + machine.totalswap) * machine.mem_unit;
    return all < (uint64_t)INT64_MAX - 2 * page() ? all : (uint64_t)INT64_MAX - 2 * page();
}

tn_status tn__shared_alloc(tn_memory *memory)
{
    if (memory->bytes > most())
        return tn_fail(TN_ERR_MEMORY,
                       "cpu: shared memory: too large, got %llu bytes; expected at most %llu",
                       (unsigned long long)memory->bytes, (unsigned long long)most());
    uint64_t bytes = (memory->bytes + page() - 1) / page() * page();
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        bytes > limit.rlim_cur) /* ftruncate would send SIGXFSZ */
        return tn_fail(TN_ERR_MEMORY, "cpu: shared memory: cannot allocate %llu bytes: %s",
                       (unsigned long long)memory->bytes, strerror(EFBIG));
    int descriptor = memfd_create("tenon", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor >= 0 && ftruncate(descriptor, (off_t)bytes) == 0 &&
        fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
        return map(memory, descriptor, TN_ERR_MEMORY);
    int error = errno;
    if (descriptor >= 0)
        close(descriptor);
    return tn_fail(TN_ERR_MEMORY, "cpu: shared memory: cannot allocate %llu bytes: %s",
                   (unsigned long long)memory->bytes, strerror(error));
}

void tn__shared_free(const tn_memory *memory)
{
    struct note note = *note_of(memory);
    munmap((char *)memory->handle - page(), note.mapped);
    close(note.descriptor);
}

tn_status tn__shared_share(void *device, const tn_memory *memory, tn_share_args *args)
{
    struct note *note = note_of(memory);
    struct name name = { .process = getpid(), .descriptor = note->descriptor };
    struct stat file;
    (void)device;
    if (fstat(note->descriptor, &file) != 0)
        return tn_fail(TN_ERR_DEVICE, "cpu: shared memory: descriptor %d: %s", note->descriptor,
                       strerror(errno));
    memcpy(name.mark, mark, sizeof mark);
    name.device = file.st_dev;
    name.file = file.st_ino;
    memset(args->handle, 0, sizeof args->handle);
    memcpy(args->handle, &name, sizeof name);
    if (args->flags & TN_SHARE_FD) {
        args->fd = fcntl(note->descriptor, F_DUPFD_CLOEXEC, 0);
        if (args->fd < 0)
            return tn_fail(TN_ERR_DEVICE, "cpu: shared memory: no descriptor: %s", strerror(errno));
    }
    return TN_OK;
}

static bool is_named(const struct stat *file, const struct name *name)
{
    return S_ISREG(file->st_mode) && file->st_dev == name->device && file->st_ino == name->file;
}

/* Returns whether the file can be written and never shrinks. */
static bool is_sealed(int descriptor)
{
    int seals = fcntl(descriptor, F_GET_SEALS), mode = fcntl(descriptor, F_GETFL);
    return seals >= 0 && mode >= 0 && (seals & F_SEAL_SHRINK) != 0 &&
           (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) == 0 && (mode & O_ACCMODE) == O_RDWR;
}

/* Returns a new descriptor of the file: a copy of the descriptor `sent`, or if that is negative one
 * that is opened in /proc. Returns -1 and sets errno on failure. */
static int open_named(const struct name *name, int sent)
{
    char path[64];
    struct stat file;
    if (sent >= 0)
        return fcntl(sent, F_DUPFD_CLOEXEC, 0);
    tn_snprint(path, sizeof path, "/proc/%lld/fd/%lld", (long long)name->process,
               (long long)name->descriptor);
    /* O_PATH finds the file without opening it, because opening a device or a pipe could have
     * effects. After the check, the same file is opened, even if its owner has replaced the
     * descriptor since. */
    int found = open(path, O_PATH | O_CLOEXEC), opened = -1;
    if (found < 0)
        return -1;
    if (fstat(found, &file) == 0 && is_named(&file, name)) {
        tn_snprint(path, sizeof path, "/proc/self/fd/%d", found);
        opened = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    } else {
        errno = ESTALE;
    }
    int error = errno;
    close(found);
    errno = error;
    return opened;
}

tn_status tn__shared_open(void *device, const tn_share_args *args, tn_memory *memory)
{
    struct name name;
    struct stat file;
    (void)device;
    memcpy(&name, args->handle, sizeof name);
    if (memcmp(name.mark, mark, sizeof mark) != 0)
        return tn_fail(TN_ERR_VALUE, "cpu: shared memory: not a handle of this backend; expected "
                                     "the handle that tn_tensor_share wrote");
    int descriptor = open_named(&name, args->fd);
    if (descriptor < 0)
        return tn_fail(TN_ERR_VALUE,
                       "cpu: shared memory: cannot be opened, got descriptor %lld of process "
                       "%lld: %s",
                       (long long)name.descriptor, (long long)name.process, strerror(errno));
    if (fstat(descriptor, &file) != 0 || !is_named(&file, &name) || !is_sealed(descriptor)) {
        close(descriptor);
        return tn_fail(TN_ERR_VALUE,
                       "cpu: shared memory: another file, got descriptor %lld of process %lld; "
                       "expected the memory that was shared",
                       (long long)name.descriptor, (long long)name.process);
    }
    if (memory->bytes > (uint64_t)file.st_size) {
        close(descriptor);
        return tn_fail(TN_ERR_VALUE,
                       "cpu: shared memory: too small, got %lld bytes; expected at least %llu",
                       (long long)file.st_size, (unsigned long long)memory->bytes);
    }
    return map(memory, descriptor, TN_ERR_VALUE);
}
