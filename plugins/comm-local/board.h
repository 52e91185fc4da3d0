/* SPDX-License-Identifier: MIT
 *
 * The boards of a group: for each rank the memory that only it writes, and all ranks read. With
 * shared memory, all boards are one file without a name that every rank maps. Without it, each rank
 * has a copy of all boards and sends what it writes to its own (frame.h). */
#ifndef TN_COMM_LOCAL_BOARD_H
#define TN_COMM_LOCAL_BOARD_H

#include <stdatomic.h>
#include <tenon/plugin.h>

enum {
    BOARD_CALLS = 256,        /* the calls that a board remembers */
    BOARD_BUFFERS = 4,        /* rounds that a rank can be ahead of the others */
    BOARD_BUFFER = 256 << 10, /* bytes of one round */
    BOARD_LINE = 64           /* bytes of a cache line */
};

/* What a rank asks for in an exchange. The ranks compare it before they use any data. */
struct board_call {
    tn_exchange kind;
    uint32_t reduction;
    uint32_t dtype;
    int32_t root;
    int64_t count; /* elements of the tensor of one rank */
};

/* Counters only grow. `posted` is the number of calls that a rank has begun, `done` of those that
 * it has completed. Rounds are numbered through all exchanges: `written` counts those whose data is
 * in the buffers, `reduced` those whose own slice is combined, `read` those that the rank needs no
 * more. */
struct board {
    _Alignas(BOARD_LINE) _Atomic uint64_t posted;
    _Atomic uint64_t done;
    _Alignas(BOARD_LINE) _Atomic uint64_t written;
    _Alignas(BOARD_LINE) _Atomic uint64_t reduced;
    _Alignas(BOARD_LINE) _Atomic uint64_t read;
    _Alignas(BOARD_LINE) struct board_call calls[BOARD_CALLS];
    _Alignas(4096) char buffers[BOARD_BUFFERS][BOARD_BUFFER];
};

/* The boards of `ranks` ranks. `file` is the descriptor of the shared file; -1: memory of this
 * process. */
struct boards {
    struct board *at;
    size_t size;
    int file;
};

/* Creates boards: in a shared file, or in memory of this process. */
tn_status board_create(struct boards *boards, int32_t ranks, bool shared);
/* Maps the boards that another rank has created. Takes `file`, also on failure. */
tn_status board_map(struct boards *boards, int32_t ranks, int file);
void board_free(struct boards *boards);

#endif
