/* SPDX-License-Identifier: MIT
 *
 * Shared by record.c, observer.c and device.c: the state of a thread and of the profile. */
#ifndef TN_PROFILE_RECORD_H
#define TN_PROFILE_RECORD_H

#include "profile.h"

enum {
    RECORD_FRAMES = 256,    /* open ranges of a thread; deeper ones are dropped */
    RECORD_BUCKETS = 512,   /* of the texts of a thread */
    RECORD_NAME = 512,      /* bytes of a name or path; longer ones are cut off */
    RECORD_SHAPED = 16,     /* inputs whose shapes are recorded */
    RECORD_TIMED = 1 << 15, /* calls on devices that one profile times by events */
    RECORD_DEPTH_BITS = 20  /* of a token: the depth; above them the number of the profile */
};

typedef struct record_frame {
    record_span span;
    int64_t inside; /* time of the ranges inside */
    int64_t base;   /* live bytes of the thread at the beginning */
    int64_t high;   /* the most live bytes of the thread since then */
} record_frame;

struct record_thread {
    struct record_thread *next;
    _Atomic bool ended;      /* the thread is gone */
    _Atomic uint64_t number; /* of the profile whose records these are */
    int64_t id;
    buffer records;
    int64_t depth;
    int64_t live;     /* bytes that this thread allocated minus those that it freed */
    const char *root; /* the type of the outermost module */
    record_text *texts[RECORD_BUCKETS];
    record_frame frames[RECORD_FRAMES];
};

typedef struct record_session {
    _Atomic uint64_t number;
    _Atomic bool on;
    _Atomic int64_t dropped, unbalanced, timed;
    _Atomic uint32_t flags;
    _Atomic int64_t started;
    _Atomic(record_thread *) threads;
} record_session;
extern record_session record_current;

/* Returns the state of this thread, NULL if no profile runs or memory is short. */
record_thread *record_here(void);
/* Returns whether there was no room for this thread in this profile. */
bool record_refused(void);
/* Counts a record that is lost. */
void record_drop(void);
/* Returns the stored copy of these bytes, NULL if there is no room. */
const record_text *record_text_of(record_thread *t, const void *bytes, size_t size);
/* The innermost open range; NULL without one, and if it is too deep. */
record_frame *record_top(record_thread *t);
/* Returns the path of the innermost open module, NULL outside of modules. */
const record_text *record_module(const record_thread *t);
/* Returns the token of the innermost range, for record_find() and record_end(). */
uint64_t record_token(const record_thread *t);
/* Opens a range; the caller fills in the rest of the record. If the range is too deep, returns
 * NULL, but counts the range in the depth. If the memory has reached its limit, the record has no
 * name, and record_close() drops it. */
record_frame *record_open(record_thread *t, uint8_t kind, const char *name);
/* Closes the innermost range and writes its record. */
void record_close(record_thread *t);
/* Closes the ranges inside of the range of this token that have not ended. Returns the thread,
 * whose innermost range then is this one; NULL if this thread has no such range in this profile. */
record_thread *record_find(uint64_t token);
void record_end(uint64_t token, tn_status status);

/* ---- device.c -------------------------------------------------------------------------------- */

/* Returns the index of a device, -1 for NULL and if there are too many. */
int16_t device_index(const tn_device *device);
/* Returns whether the work of the device is timed by events. */
bool device_is_timed(int16_t index);
/* Records an event on the current stream; NULL if the device cannot do so now. */
tn_event *device_event(const tn_device *device);
void device_drop_events(const record_span *span);
/* Adds to the live bytes of a device and returns them. */
int64_t device_add_memory(int16_t index, int64_t bytes);
void device_reset(void);

#endif
