/* SPDX-License-Identifier: MIT
 *
 * Messages between two ranks: send and recv. */
#ifndef TN_COMM_LOCAL_MESSAGE_H
#define TN_COMM_LOCAL_MESSAGE_H

#include <stddef.h>
#include <tenon/plugin.h>

struct group;
struct work;

/* A message that has arrived, or is arriving. */
struct message {
    struct message *next;
    int32_t from, tag;
    tn_dtype dtype;
    size_t size;
    char bytes[];
};

struct message *message_new(int32_t from, int32_t tag, tn_dtype dtype, size_t size);
void message_free(struct message *message);
/* Adds a message that is complete to those that wait for a call. Takes it. */
void message_keep(struct group *group, struct message *message);

/* Begins to send the tensor of a work, or to receive it. */
tn_status message_send(struct work *work);
tn_status message_receive(struct work *work);
/* Stores messages that have arrived in the works that wait for them, in order, and marks works
 * that are done. Fails if a rank that a work needs is gone. */
tn_status message_advance(struct group *group);

#endif
