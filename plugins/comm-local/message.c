/* SPDX-License-Identifier: MIT
 *
 * Messages between two ranks. A message goes through the connection of the ranks as soon as it is
 * sent; the receiver keeps it until a call asks for it. So two ranks may send to each other at the
 * same time. */
#include "message.h"

#include <string.h>

#include "exchange.h"

struct message *message_new(int32_t from, int32_t tag, tn_dtype dtype, size_t size)
{
    struct message *message = tn_malloc(sizeof *message + size);

    if (message != NULL)
        *message = (struct message){ NULL, from, tag, dtype, size };
    return message;
}

void message_free(struct message *message)
{
    tn_free(message);
}

void message_keep(struct group *group, struct message *message)
{
    *group->inbox_end = message;
    group->inbox_end = &message->next;
}

/* Adds a work to those that wait for messages. */
static void wait_for_message(struct work *work)
{
    struct group *group = work->group;

    *group->messages_end = work;
    group->messages_end = &work->next;
}

tn_status message_send(struct work *work)
{
    struct group *group = work->group;
    const struct frame frame = { FRAME_MESSAGE, work->tag, work->call.dtype, work->bytes };
    struct message *message;
    tn_status status;

    if (work->peer != group->rank) {
        status = frame_put(group, work->peer, &frame, work->in, false, &work->sent);
        if (status != TN_OK)
            return status;
        wait_for_message(work);
        exchange_progress(group);
        return work->done ? TN_OK : group->failed;
    }
    message = message_new(group->rank, work->tag, work->call.dtype, work->bytes);
    if (message == NULL)
        return tn_error_last_code();
    memcpy(message->bytes, work->in, work->bytes);
    message_keep(group, message);
    work->done = true;
    return TN_OK;
}

tn_status message_receive(struct work *work)
{
    wait_for_message(work);
    exchange_progress(work->group);
    return work->done ? TN_OK : work->group->failed;
}

/* Stores the first message that a work waits for, if there is one. */
static tn_status receive(struct work *work)
{
    struct group *group = work->group;
    struct message **at = &group->inbox, *message;

    while (*at != NULL && ((*at)->from != work->peer || (*at)->tag != work->tag))
        at = &(*at)->next;
    message = *at;
    if (message == NULL && work->peer != group->rank && group->peers[work->peer].gone)
        return group_fail(
            group, TN_ERR_PEER,
            "rank %d %s: recv of tag %d: no message is left; expected one of %lld %s",
            (int)work->peer, group->peers[work->peer].left ? "has left the group" : "is lost",
            (int)work->tag, (long long)work->call.count, tn_dtype_name(work->call.dtype));
    if (message == NULL)
        return TN_OK;
    if (message->dtype != work->call.dtype || message->size != work->bytes)
        return group_fail(group, TN_ERR_VALUE,
                          "rank %d receives %lld %s with tag %d; rank %d sent %zu bytes of %s",
                          (int)group->rank, (long long)work->call.count,
                          tn_dtype_name(work->call.dtype), (int)work->tag, (int)work->peer,
                          message->size, tn_dtype_name(message->dtype));
    memcpy(work->out, message->bytes, work->bytes);
    *at = message->next;
    if (*at == NULL)
        group->inbox_end = at;
    message_free(message);
    work->done = true;
    return TN_OK;
}

tn_status message_advance(struct group *group)
{
    struct work **at = &group->messages;

    while (*at != NULL) {
        struct work *work = *at;

        if (work->call.kind == TN_EXCHANGE_RECV && receive(work) != TN_OK)
            return group->failed;
        if (work->sent == FRAME_LOST)
            return group_fail(
                group, TN_ERR_PEER, "rank %d %s: send of %lld %s with tag %d: not received",
                (int)work->peer, group->peers[work->peer].left ? "has left the group" : "is lost",
                (long long)work->call.count, tn_dtype_name(work->call.dtype), (int)work->tag);
        work->done = work->done || work->sent == FRAME_SENT;
        if (!work->done) {
            at = &work->next;
            continue;
        }
        *at = work->next;
        if (*at == NULL)
            group->messages_end = at;
    }
    return TN_OK;
}
