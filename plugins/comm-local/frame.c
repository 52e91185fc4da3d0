/* SPDX-License-Identifier: MIT
 *
 * Frames: sends queued frames, and stores those that arrive. */
#include "group.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "message.h"

/* ---- out ------------------------------------------------------------------------------------- */

tn_status frame_put(struct group *group, int32_t to, const struct frame *frame, const void *data,
                    bool copy, int *result)
{
    struct peer *peer = &group->peers[to];
    struct frame_out *out;

    if (peer->gone) { /* what a rank that has ended does not get, it does not need */
        if (result != NULL)
            *result = FRAME_LOST;
        return TN_OK;
    }
    out = tn_malloc(sizeof *out + (copy ? frame->bytes : 0));
    if (out == NULL)
        return tn_error_last_code();
    *out = (struct frame_out){ NULL, *frame, copy ? NULL : data, 0, result };
    if (copy && frame->bytes > 0)
        memcpy(out->bytes, data, frame->bytes);
    *peer->out_end = out;
    peer->out_end = &out->next;
    return TN_OK;
}

void frame_write(struct group *group, const void *at, size_t bytes)
{
    const char *board = (const char *)group_board(group, group->rank);
    const struct frame frame = { FRAME_WRITE, 0, (uint64_t)((const char *)at - board), bytes };
    /* counters change before they are sent; buffers do not change until all ranks have read them */
    const bool copy = bytes <= sizeof(struct board_call);

    /* after a failure, a counter must not tell the others of data that was not sent */
    for (int32_t r = 0; r < group->size && !group->shared && group->failed == TN_OK; r++)
        if (r != group->rank && frame_put(group, r, &frame, at, copy, NULL) != TN_OK)
            group_fail(group, TN_ERR_MEMORY, "no memory to send %zu bytes", bytes);
}

static void forget_first(struct peer *peer, int result)
{
    struct frame_out *out = peer->out;

    if (out->result != NULL)
        *out->result = result;
    peer->out = out->next;
    if (peer->out == NULL)
        peer->out_end = &peer->out;
    tn_free(out);
}

static void forget_all(struct peer *peer)
{
    while (peer->out != NULL)
        forget_first(peer, FRAME_LOST);
}

/* Keeps only the rest of a frame that is partly sent, with a copy of its bytes. */
static void cut(struct peer *peer)
{
    struct frame_out *out = peer->out, *copy = NULL;

    if (out != NULL && out->sent > 0) {
        copy = tn_malloc(sizeof *copy + out->frame.bytes);
        if (copy != NULL) {
            *copy = *out;
            memcpy(copy->bytes, out->data != NULL ? out->data : out->bytes, out->frame.bytes);
            copy->next = NULL;
            copy->data = NULL;
            copy->result = NULL;
        }
        peer->gone = peer->gone || copy == NULL;
    }
    forget_all(peer);
    if (copy != NULL) {
        peer->out = copy;
        peer->out_end = &copy->next;
    }
}

void frame_cut(struct group *group)
{
    for (int32_t r = 0; r < group->size; r++)
        if (r != group->rank)
            cut(&group->peers[r]);
}

/* Sends queued frames until the socket is full. */
static void send_frames(struct peer *peer)
{
    while (peer->out != NULL && !peer->gone) {
        struct frame_out *out = peer->out;
        const char *data = out->data != NULL ? out->data : out->bytes;
        const uint64_t head = out->sent < sizeof out->frame ? sizeof out->frame - out->sent : 0;
        const uint64_t body = out->sent > sizeof out->frame ? out->sent - sizeof out->frame : 0;
        struct iovec parts[2] = {
            { (char *)&out->frame + (sizeof out->frame - head), head },
            { (char *)(uintptr_t)data + body, out->frame.bytes - body },
        };
        const struct msghdr header = { .msg_iov = parts, .msg_iovlen = 2 };
        ssize_t n = sendmsg(peer->socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS))
            return;
        if (n < 0) { /* the peer has ended; what it has sent before can still be read */
            forget_all(peer);
            return;
        }
        out->sent += (uint64_t)n;
        if (out->sent == sizeof out->frame + out->frame.bytes)
            forget_first(peer, FRAME_SENT);
    }
}

void frame_flush(struct group *group)
{
    for (int32_t r = 0; r < group->size; r++)
        if (r != group->rank)
            send_frames(&group->peers[r]);
}

/* ---- in -------------------------------------------------------------------------------------- */

static tn_status malformed(struct group *group, int32_t from, const struct frame *frame)
{
    return group_fail(group, TN_ERR_PEER,
                      "rank %d sent a malformed frame: kind %u, %llu bytes at %llu", (int)from,
                      frame->kind, (unsigned long long)frame->bytes, (unsigned long long)frame->at);
}

/* Decides where the bytes of a frame go. */
static tn_status begin(struct group *group, int32_t from)
{
    struct peer *peer = &group->peers[from];
    const struct frame *frame = &peer->in;

    switch (frame->kind) {
    case FRAME_WRITE:
        if (group->shared || frame->at > sizeof(struct board) ||
            frame->bytes > sizeof(struct board) - frame->at)
            return malformed(group, from, frame);
        peer->body = (char *)group_board(group, from) + frame->at;
        return TN_OK;
    case FRAME_MESSAGE:
        if (frame->at >= TN_DTYPE_COUNT || frame->bytes > INT64_MAX / 2)
            return malformed(group, from, frame);
        peer->message = message_new(from, frame->tag, (tn_dtype)frame->at, (size_t)frame->bytes);
        if (peer->message == NULL)
            return group_fail(group, TN_ERR_MEMORY, "no memory for a message of %llu bytes",
                              (unsigned long long)frame->bytes);
        peer->body = peer->message->bytes;
        return TN_OK;
    case FRAME_FAILURE:
        if (frame->bytes >= sizeof peer->text)
            return malformed(group, from, frame);
        peer->body = peer->text;
        return TN_OK;
    case FRAME_LEAVE:
        if (frame->bytes == 0)
            return TN_OK;
        break;
    }
    return malformed(group, from, frame);
}

/* Acts on a frame that has arrived. */
static tn_status finish(struct group *group, int32_t from)
{
    struct peer *peer = &group->peers[from];
    const struct frame frame = peer->in;

    peer->arrived = 0;
    if (frame.kind == FRAME_MESSAGE) {
        message_keep(group, peer->message);
        peer->message = NULL;
    }
    if (frame.kind == FRAME_LEAVE)
        peer->left = true;
    if (frame.kind != FRAME_FAILURE)
        return TN_OK;
    peer->text[frame.bytes] = '\0';
    peer->reports = !group->closing;
    return TN_OK;
}

tn_status frame_report(struct group *group)
{
    int32_t first = -1;

    for (int32_t r = group->size - 1; r >= 0; r--) {
        first = group->peers[r].reports ? r : first;
        group->peers[r].reports = false;
    }
    if (first < 0)
        return group->failed;
    /* What all ranks do wrong together keeps its code; else the other rank is the reason. */
    return group_fail(group, group->peers[first].in.at == TN_ERR_VALUE ? TN_ERR_VALUE : TN_ERR_PEER,
                      "rank %d reports: %s", (int)first, group->peers[first].text);
}

/* Receives frames until none is left. */
static tn_status receive_frames(struct group *group, int32_t from)
{
    struct peer *peer = &group->peers[from];

    while (!peer->gone && !peer->reports && group->failed == TN_OK) {
        const bool body = peer->arrived >= sizeof peer->in;
        const uint64_t at = body ? peer->arrived - sizeof peer->in : peer->arrived;
        char *to = body ? peer->body + at : (char *)&peer->in + at;
        const size_t most = body ? peer->in.bytes - at : sizeof peer->in - at;
        ssize_t n = recv(peer->socket, to, most, MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return TN_OK;
        if (n <= 0) {
            peer->gone = true;
            forget_all(peer);
            return TN_OK;
        }
        peer->arrived += (uint64_t)n;
        if (peer->arrived == sizeof peer->in && begin(group, from) != TN_OK) {
            peer->gone = true; /* there is no place for its bytes, also in say_farewell */
            forget_all(peer);
            return group->failed;
        }
        if (peer->arrived == sizeof peer->in + peer->in.bytes && finish(group, from) != TN_OK)
            return group->failed;
    }
    return group->failed;
}

/* ---- all peers ------------------------------------------------------------------------------- */

tn_status frame_pump(struct group *group)
{
    for (int32_t r = 0; r < group->size; r++) {
        struct peer *peer = &group->peers[r];

        if (r == group->rank || peer->gone)
            continue;
        send_frames(peer);
        if (receive_frames(group, r) != TN_OK)
            return group->failed;
    }
    return TN_OK;
}

bool frame_pending(const struct group *group)
{
    for (int32_t r = 0; r < group->size; r++)
        if (r != group->rank && group->peers[r].out != NULL)
            return true;
    return false;
}

void frame_close(struct peer *peer)
{
    forget_all(peer);
    message_free(peer->message);
    peer->message = NULL;
    if (peer->socket >= 0)
        close(peer->socket);
    peer->socket = -1;
}
