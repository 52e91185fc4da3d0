/* SPDX-License-Identifier: MIT
 *
 * Frames: what ranks send each other through their connections. Writes to boards (without shared
 * memory), messages, failures, farewells. Nothing here waits. */
#ifndef TN_COMM_LOCAL_FRAME_H
#define TN_COMM_LOCAL_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include <tenon/plugin.h>

struct group;

enum frame_kind {
    FRAME_WRITE = 1,   /* `at`: the offset in the board of the sender; its bytes follow */
    FRAME_MESSAGE = 2, /* `at`: the dtype, `tag`; the bytes follow */
    FRAME_FAILURE = 3, /* `at`: the code; the reason follows */
    FRAME_LEAVE = 4    /* the sender has closed the group */
};

struct frame {
    uint32_t kind;
    int32_t tag;
    uint64_t at;
    uint64_t bytes; /* that follow */
};

enum { FRAME_SENT = 1, FRAME_LOST = 2 };

/* A frame on its way out. */
struct frame_out {
    struct frame_out *next;
    struct frame frame;
    const void *data; /* NULL: the bytes follow this struct */
    uint64_t sent;    /* bytes of the frame and its data that are sent */
    int *result;      /* gets a FRAME_SENT or FRAME_LOST at the end; may be NULL */
    _Alignas(16) char bytes[];
};

/* The connection to another rank. */
struct peer {
    int socket; /* -1: none */
    bool left;  /* it has closed the group */
    bool gone;  /* the connection is closed */
    /* it has failed, with the code in->at and the text: nothing that follows is of interest */
    bool reports;
    struct frame_out *out, **out_end;
    struct frame in;         /* the frame that is arriving */
    uint64_t arrived;        /* its bytes that have arrived, with those of the frame */
    char *body;              /* where the bytes go */
    struct message *message; /* of a FRAME_MESSAGE */
    char text[512];          /* of a FRAME_FAILURE */
};

/* Queues a frame. The bytes at `data` are copied if `copy`, else they must stay valid until *result
 * is set, or frame_cut is called. */
tn_status frame_put(struct group *group, int32_t to, const struct frame *frame, const void *data,
                    bool copy, int *result);
/* Queues a write of `bytes` bytes at an address in the own board, for all other ranks. Does nothing
 * with shared memory. The group fails if there is no memory. */
void frame_write(struct group *group, const void *at, size_t bytes);
/* Sends and receives what is possible now with all peers. */
tn_status frame_pump(struct group *group);
/* Fails if a rank has reported a failure. Not part of frame_pump: what the rank has sent before
 * may complete exchanges. */
tn_status frame_report(struct group *group);
/* Sends what is possible now. */
void frame_flush(struct group *group);
/* Removes all frames from the queues, but for the rest of one that is partly sent, which is
 * copied. */
void frame_cut(struct group *group);
/* Tells whether frames are queued. */
bool frame_pending(const struct group *group);
/* Frees the frames of a peer and closes its socket. */
void frame_close(struct peer *peer);

#endif
