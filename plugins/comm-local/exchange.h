/* SPDX-License-Identifier: MIT
 *
 * Exchanges of all ranks of a group, in rounds through the buffers of the boards. */
#ifndef TN_COMM_LOCAL_EXCHANGE_H
#define TN_COMM_LOCAL_EXCHANGE_H

#include "group.h"

enum exchange_kind {
    EXCHANGE_ALL_REDUCE,
    EXCHANGE_BROADCAST,
    EXCHANGE_ALL_GATHER,
    EXCHANGE_REDUCE_SCATTER,
    EXCHANGE_BARRIER,
    EXCHANGE_ALL, /* those above are of all ranks, and compared; those below of two */
    EXCHANGE_SEND = EXCHANGE_ALL,
    EXCHANGE_RECV,
    EXCHANGE_KINDS
};

/* One exchange of this rank. */
struct work {
    struct work *next;
    struct group *group;
    struct board_call call;
    const char *in;
    char *out;
    size_t element, bytes; /* of an element, of the tensor of one rank */
    int32_t peer, tag;
    bool posted, compared, done;
    int sent;        /* FRAME_SENT or FRAME_LOST, of a send */
    uint64_t number; /* the number of the call in the group */
    uint64_t first;  /* the number of its first round in the group */
    uint64_t rounds, written, reduced, read;
};

/* Returns the name of an exchange, such as "all_reduce". */
const char *exchange_name(uint32_t kind);
/* Fills a work from the call of the core and begins it. */
tn_status exchange_start(struct work *work, const tn_comm_call *call, enum exchange_kind kind);
/* Does what is possible now for all works of the group, without waiting. */
tn_status exchange_progress(struct group *group);
/* Waits until a work is done. Fails if a rank is lost or late. */
tn_status exchange_wait(struct work *work);
/* Removes the works of the group that are not done. */
void exchange_forget(struct group *group);

#endif
