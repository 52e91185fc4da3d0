/* SPDX-License-Identifier: MIT
 *
 * What queue.c and capture.c share: items, and the streams that queue them. */
#ifndef STRICT_QUEUE_H
#define STRICT_QUEUE_H

#include <pthread.h>

#include "strict.h"

enum item_kind { KERNEL, COPY_IN, COPY_OUT, COPY, RECORD, WAIT };

struct event {
    int32_t refs;
    uint64_t asked, reached; /* the newest record that was queued, that was reached */
};

struct item {
    struct item *next;
    enum item_kind kind;
    strict_body *body;
    struct strict_work work; /* KERNEL */
    uint64_t memory[2];      /* copies: to, from */
    uint64_t offset[2];
    size_t bytes;
    void *host; /* COPY_OUT: the caller's, which waits; COPY_IN: a copy, allocated with the item */
    struct event *event;
    uint64_t number; /* of the record */
};

struct stream {
    struct stream *next;
    struct device *device;
    struct item *first, *last;
    struct graph *record; /* gets the items while the stream records; NULL: it works */
    bool busy;            /* an item of it runs */
    tn_status code;       /* the first failure since the last sync */
    char text[512];
};

/* Recorded items: each launch queues copies of them. They keep the use of their memory. */
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

/* Queues an item, or records it. Owns it from here on, also when it fails. */
tn_status strict_push(struct stream *stream, struct item *item);
/* Under the device's lock. */
void strict_drop_item(struct item *item);

#endif
