/* SPDX-License-Identifier: MIT
 *
 * The fake driver's memory that other processes open: a file that the handle names. As with the
 * real driver, the process that made the memory cannot open it. */
#include "tests/fake-cuda/driver.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct name {
    char mark[8];
    long process, size;
    int file, device;
};

/* Moves the block to a file, at the same address. */
static bool block_share(struct fake_block *block)
{
    int file = memfd_create("fake-cuda", MFD_CLOEXEC);

    if (file >= 0 && write(file, block->at, block->size) == (ssize_t)block->size &&
        mmap(block->at, block->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) !=
            MAP_FAILED) {
        block->file = file;
        return true;
    }
    if (file >= 0)
        close(file);
    return false;
}

CUresult fake_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at)
{
    struct name name = { "fakeipc", getpid(), 0, -1, 0 };
    struct fake_block *block;

    BEGIN("cuIpcGetMemHandle", true)
    block = fake_block_find(at, 1);
    if (!block || block->pinned || block->managed || block->opened ||
        block->at != (char *)(uintptr_t)(at & ~DEVICE_BIT))
        return fake_leave(INVALID_VALUE);
    if (block->file < 0 && !block_share(block))
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    name.size = (long)block->size;
    name.file = block->file;
    name.device = block->context->device;
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &name, sizeof name);
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuIpcOpenMemHandle(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags)
{
    struct fake_block *block;
    struct name name;
    struct stat file;
    char path[64];
    void *memory = MAP_FAILED;
    int opened;

    (void)flags;
    BEGIN("cuIpcOpenMemHandle", true)
    memcpy(&name, &handle, sizeof name);
    if (memcmp(name.mark, "fakeipc", 8) != 0 || name.size < 1)
        return fake_leave(INVALID_VALUE);
    if (name.process == getpid())
        return fake_leave(INVALID_CONTEXT);
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", name.process, name.file);
    opened = open(path, O_RDWR | O_CLOEXEC);
    if (opened >= 0 && fstat(opened, &file) == 0 && file.st_size >= name.size)
        memory = mmap(NULL, (size_t)name.size, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
    if (opened >= 0)
        close(opened);
    block = memory != MAP_FAILED ? calloc(1, sizeof *block) : NULL;
    if (!block)
        return fake_leave(INVALID_VALUE);
    *block = (struct fake_block){ .next = fake_blocks,
                                  .at = memory,
                                  .size = (size_t)name.size,
                                  .context = fake_stack[fake_depth - 1],
                                  .opened = true,
                                  .file = -1 };
    fake_blocks = block;
    fake_cuda.live_opened++;
    *at = (uint64_t)(uintptr_t)memory | DEVICE_BIT;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_cuIpcCloseMemHandle(CUdeviceptr at)
{
    BEGIN("cuIpcCloseMemHandle", true)
    fake_streams_run();
    for (struct fake_block **b = &fake_blocks; *b; b = &(*b)->next)
        if ((*b)->opened && (*b)->at == (char *)(uintptr_t)(at & ~DEVICE_BIT)) {
            struct fake_block *gone = *b;

            *b = gone->next;
            munmap(gone->at, gone->size);
            free(gone);
            fake_cuda.live_opened--;
            return fake_leave(CUDA_SUCCESS);
        }
    return fake_leave(fake_misuse("memory closed that was not opened", INVALID_VALUE));
}

CUresult fake_cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr at)
{
    struct fake_block *block;

    BEGIN("cuMemGetAddressRange", true)
    block = fake_block_find(at, 1);
    if (!block)
        return fake_leave(INVALID_VALUE);
    *base = (uint64_t)(uintptr_t)block->at | (at & DEVICE_BIT);
    *size = block->size;
    return fake_leave(CUDA_SUCCESS);
}
