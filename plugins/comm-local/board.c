/* SPDX-License-Identifier: MIT
 *
 * The boards of a group: memory of this process, or a sealed file without a name. */
#include "board.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Maps a file, or memory of this process for -1. */
static tn_status map(struct boards *boards, int file)
{
    const int flags = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void *at = mmap(NULL, boards->size, PROT_READ | PROT_WRITE, flags, file, 0);

    if (at == MAP_FAILED)
        return tn_fail_native(TN_ERR_MEMORY, errno, "local: boards: cannot map %zu bytes: %s",
                              boards->size, strerror(errno));
    boards->at = at;
    return TN_OK;
}

/* Gives a file its size and its memory: without memory, a later access would end the process. */
static bool reserve(int file, size_t size)
{
    struct rlimit limit;

    errno = EFBIG;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        size > limit.rlim_cur) /* the system would send SIGXFSZ */
        return false;
    do
        errno = posix_fallocate(file, 0, (off_t)size);
    while (errno == EINTR);
    return errno == 0;
}

tn_status board_create(struct boards *boards, int32_t ranks, bool shared)
{
    *boards = (struct boards){ NULL, (size_t)ranks * sizeof(struct board), -1 };
    if (shared) {
        boards->file = memfd_create("tenon-comm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (boards->file < 0 || !reserve(boards->file, boards->size) ||
            fcntl(boards->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
            tn_fail_native(TN_ERR_MEMORY, errno,
                           "local: boards: cannot allocate %zu bytes of shared memory: %s",
                           boards->size, strerror(errno));
            board_free(boards);
            return TN_ERR_MEMORY;
        }
    }
    if (map(boards, boards->file) == TN_OK)
        return TN_OK;
    board_free(boards);
    return TN_ERR_MEMORY;
}

tn_status board_map(struct boards *boards, int32_t ranks, int file)
{
    const int seals = fcntl(file, F_GET_SEALS); /* -1: not a memfd */
    struct stat facts;

    *boards = (struct boards){ NULL, (size_t)ranks * sizeof(struct board), file };
    /* a file that could shrink, or shrank before it was sealed, would end this process with
     * SIGBUS */
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(file, &facts) != 0 ||
        facts.st_size != (off_t)boards->size) {
        board_free(boards);
        return tn_fail(TN_ERR_PEER, "local: boards: rank 0 sent a file of another size or without "
                                    "seals; expected the same version of Tenon in all processes");
    }
    if (map(boards, file) == TN_OK)
        return TN_OK;
    board_free(boards);
    return TN_ERR_MEMORY;
}

void board_free(struct boards *boards)
{
    if (boards->at != NULL)
        munmap(boards->at, boards->size);
    if (boards->file >= 0)
        close(boards->file);
    *boards = (struct boards){ NULL, 0, -1 };
}
