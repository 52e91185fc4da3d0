/* SPDX-License-Identifier: MIT
 *
 * Declarations shared by queue.c and capture.c: items of work, and the streams that queue them. */
#ifndef STRICT_DEVICE_QUEUE_H
#define STRICT_DEVICE_QUEUE_H

#include <pthread.h>

#include "strict.h"

enum item_kind { KERNEL, COPY_IN, COPY_OUT, COPY, RECORD, WAIT };

struct event {
    int32_t refs;
    /* Records of an event are numbered: the last one that was queued, and the last that ran. */
    uint64_t asked, reached;
};

struct item {
    struct item *next;
    enum item_kind kind;
    strict_body *body;
    struct strict_work work; /* the call, if kind is KERNEL */
    uint64_t memory[2];      /* copies: handles of target and source */
    uint64_t offset[2];
    size_t bytes;
    /* Host memory: of the caller, or, for COPY_IN without TN_COPY_ASYNC, a copy after the item. */
    void *host;
    struct event *event;
    uint64_t number; /* RECORD, WAIT: the number of the record */
};

struct stream {
    struct stream *next;
    struct device *device;
    struct item *first, *last;
    struct graph *record; /* receives the items while the stream records; else NULL */
    bool busy;            /* an item of this stream is running */
    tn_status code;       /* the first failure since the last sync */
    char text[512];
};

/* Recorded items. Each launch queues copies of them. The items count as users of their memory until
 * the graph is dropped. */
struct graph {
    struct item *first, *last;
};

struct device {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    pthread_t thread;
    struct stream *streams;
    bool closing, lost;
};

/* Queues an item, or records it if the stream records. Takes ownership of the item, also on
 * failure. */
tn_status strict_push(struct stream *stream, struct item *item);
/* Frees an item. The caller holds the lock of the device. */
void strict_drop_item(struct item *item);

#endif
