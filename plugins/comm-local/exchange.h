/* SPDX-License-Identifier: MIT
 *
 * Exchanges of all ranks of a group, in rounds through the buffers of the boards. */
#ifndef TN_COMM_LOCAL_EXCHANGE_H
#define TN_COMM_LOCAL_EXCHANGE_H

#include "group.h"

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

/* Tells whether an exchange is between two ranks, not all. */
static inline bool exchange_is_message(tn_exchange kind)
{
    return kind == TN_EXCHANGE_SEND || kind == TN_EXCHANGE_RECV;
}

/* Returns the name of an exchange, such as "all_reduce". */
const char *exchange_name(uint32_t kind);
/* Fills a work from the call of the core and begins it. */
tn_status exchange_start(struct work *work, const tn_comm_call *call);
/* Does what is possible now for all works of the group, without waiting. */
tn_status exchange_progress(struct group *group);
/* Waits until a work is done. Fails if a rank is lost or late. */
tn_status exchange_wait(struct work *work);
/* Removes the works of the group that are not done. */
void exchange_forget(struct group *group);

#endif
