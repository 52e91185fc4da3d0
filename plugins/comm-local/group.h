/* SPDX-License-Identifier: MIT
 *
 * A group: its ranks, the connections to them, and the exchanges that have begun. */
#ifndef TN_COMM_LOCAL_GROUP_H
#define TN_COMM_LOCAL_GROUP_H

#include <pthread.h>
#include <sys/types.h>

#include "board.h"
#include "frame.h"

enum {
    GROUP_REASON = 768 /* bytes of the reason of a failure */
};

/* The options of the communicator. */
struct group_options {
    const char *token;
};

struct work;
struct message;

struct group {
    int32_t rank, size;
    pid_t process; /* a child after fork must not use the group */
    bool host;     /* tensors are in host memory */
    bool shared;   /* the boards are shared memory */
    bool closing;  /* no failure matters to the others any more */
    double timeout;
    pthread_mutex_t lock;
    _Atomic bool aborted;
    tn_status failed; /* TN_OK, or the code of the first failure, which all later calls return */
    char reason[GROUP_REASON];
    struct boards boards;
    struct peer *peers;                    /* of each rank; that of this rank is not used */
    int64_t looked;                        /* when the connections were last read, in ns */
    uint64_t calls;                        /* collective exchanges that have begun */
    uint64_t rounds;                       /* rounds of exchanges that are complete */
    struct work *works, **works_end;       /* collective exchanges, of which the first is running */
    struct work *messages, **messages_end; /* sends and receives that are not complete */
    struct message *inbox, **inbox_end;    /* messages that no call has received yet */
};

/* Joins a group, as `open` of tn_comm_def; leaves it, as `close`; `abort`. */
tn_status group_open(const tn_comm_def *self, const tn_comm_args *args, void **comm);
void group_close(void *comm);
tn_status group_abort(void *comm);

/* Begins a call: locks the group. Fails if the group has failed, or this is another process. Every
 * successful group_enter is followed by group_leave, which returns `status`. */
tn_status group_enter(struct group *group);
tn_status group_leave(struct group *group, tn_status status);

/* Records the first failure of the group and tells the other ranks. Returns its code. */
tn_status group_fail(struct group *group, tn_status code, const char *format, ...);
/* Records the failure of the group as a failure of this thread. */
tn_status group_refuse(const struct group *group);
/* Returns the time of a clock that never goes back, in ns. */
int64_t group_now(void);

static inline struct board *group_board(const struct group *group, int32_t rank)
{
    return &group->boards.at[rank];
}

#endif
