/* SPDX-License-Identifier: MIT
 *
 * The profiler. observer.c receives the calls of the core; record.c writes records into a buffer of
 * the thread (buffer.c); schedule.c starts and stops; result.c collects the records of all threads.
 * flops.c and ceiling.c compute FLOPs; group.c, table.c, trace.c, page.c and flame.c show the
 * result. */
#ifndef TN_PROFILE_PROFILE_H
#define TN_PROFILE_PROFILE_H

#include <tenon/plugin.h>

#include <tenon/profile.h>

#include <stdatomic.h>
#include <stdio.h>

/* The kinds of records: those of tn_range_event, and three more. */
enum {
    KIND_OPERATOR = 6,
    KIND_MODULE = 7,
    KIND_PROFILER_STEP = 8, /* the step of a schedule, "ProfilerStep#3" */
    KINDS = 9
};

/* A text or a list of shapes that a thread has stored once. Lives until the next start. */
typedef struct record_text {
    struct record_text *next;
    uint32_t hash;
    uint32_t size;
    char bytes[];
} record_text;

/* One finished range. Times are in nanoseconds of the monotonic clock. */
typedef struct record_span {
    int64_t start, duration, self;
    int64_t allocated, freed, self_allocated, self_freed, peak;
    uint64_t sequence;
    uint64_t forward; /* the sequence of the derivative around it; 0: none */
    int64_t copied;   /* bytes, of TN_RANGE_COPY */
    double flops;
    const record_text *name, *module, *shapes; /* module and shapes may be NULL */
    tn_event *begin, *end;                     /* on the device; NULL: not timed */
    int16_t device;                            /* index of device_at(); -1: unknown */
    uint16_t depth;
    uint8_t kind;
    bool failed;
    bool inner;      /* inside of a range of the same kind and name */
    bool unfinished; /* the profile or a range around it ended first */
} record_span;

/* A change of the allocated memory. */
typedef struct record_memory {
    int64_t time;
    int64_t bytes;
    int64_t live; /* bytes of the device after the change. Those that were live at the start are not
                   * counted until result_collect() adds them. */
    int64_t device;
} record_memory;

enum { RECORD_SPAN = 1, RECORD_MEMORY = 2, RECORD_TEXT = 3 };
enum { RECORD_DEVICES = 64 };

/* What a thread has recorded. */
typedef struct record_thread record_thread;

/* ---- record.c, observer.c, device.c ---------------------------------------------------------- */

/* Discards all records and begins to record. Only one thread at a time may call it and the
 * functions below that start, stop and read. */
void record_start(uint64_t limit, uint32_t flags);
/* Frees what records that are not collected refer to. */
void record_forget(void);
/* Ends recording; open ranges of this thread end. */
void record_stop(void);
int64_t record_now(void);
/* A range of the profiler itself: a step of the schedule. */
void record_step_begin(const char *name);
void record_step_end(void);
int64_t record_started(void);
int64_t record_dropped(void);
int64_t record_unbalanced(void);
/* Calls `take` with each record of each thread that has records of this profile, a thread at a
 * time. Stops at the first failure. */
tn_status record_each(tn_status (*take)(void *user, int64_t thread, uint32_t type,
                                        const void *record),
                      void *user);
/* Writes the shapes as text, such as "[2, 3], []". */
void observer_shapes_text(const record_text *shapes, char *out, size_t size);
extern const tn_observer_def observer_profile;
const tn_device *device_at(int64_t index);
/* The live bytes of a device minus those at the start of the profile, and their highest value. */
int64_t device_live(int64_t index);
int64_t device_peak(int64_t index);

/* ---- buffer.c -------------------------------------------------------------------------------- */

typedef struct buffer {
    _Atomic(struct buffer_chunk *) first;
    struct buffer_chunk *last;
} buffer;

/* Sets the most bytes that all buffers of the process may have. */
void buffer_limit(uint64_t bytes);
/* Counts bytes that a thread needs besides its buffers; false if there is no room. */
bool buffer_reserve(uint64_t bytes);
/* Returns space for a record, NULL if the limit is reached or memory is short. The record becomes
 * visible to readers by buffer_publish(). Only the thread that owns the buffer may call it. */
void *buffer_add(buffer *b, uint32_t type, size_t size);
void buffer_publish(buffer *b);
/* Frees the records. Only the thread that owns the buffer may call it; after that thread has ended,
 * any one thread may. */
void buffer_clear(buffer *b);
/* Reads a buffer from its start: buffer_next() returns the next record and stores its type; NULL at
 * the end. */
typedef struct buffer_reader {
    struct buffer_chunk *chunk;
    uint32_t at, used;
} buffer_reader;
buffer_reader buffer_read(buffer *b);
const void *buffer_next(buffer_reader *reader, uint32_t *type);

/* ---- flops.c, ceiling.c ---------------------------------------------------------------------- */

/* Returns the floating-point operations of a call of an operator; 0 if no formula is known. */
double flops_of(const tn_op_event *event);
/* Returns the FLOP/s of multiply-adds in float32 on all threads; measures them in the first call.
 */
double ceiling_flops(void);
/* Like ceiling_flops(), but does not measure: returns 0 before the first call
 * of ceiling_flops(). */
double ceiling_known(void);

/* ---- schedule.c ------------------------------------------------------------------------------ */

/* `switched`: the observer is on already, and stays so until the end. */
tn_status schedule_start(const tn_profile_options *options, bool switched);
tn_status schedule_stop(void);
tn_status schedule_step(void);
tn_status schedule_action(const tn_profile_options *options, int64_t step, tn_profile_action *out);
/* Ends a profile that runs, without the callback. Returns whether one ran. */
bool schedule_end(void);
/* Protect the profile: a thread must hold the lock while it starts, stops or reads a profile. */
void schedule_lock(void);
void schedule_unlock(void);

/* ---- result.c -------------------------------------------------------------------------------- */

/* A record with what is known after all threads are collected. */
typedef struct result_span {
    record_span s;
    int64_t thread;
    int64_t device_start, device_time; /* -1: unknown */
    const char *name, *module, *shapes;
    int64_t link; /* of a derivative: the index of the forward call; -1: none */
} result_span;

typedef struct result {
    result_span *spans; /* sorted by start, the outer before the inner */
    int64_t count;
    record_memory *memory; /* sorted by time */
    int64_t memory_count;
    int64_t started, ended;
    int64_t dropped, unbalanced, threads, steps;
    int64_t before; /* live bytes at the start */
    int64_t live;   /* change of the live bytes since then */
    int64_t peak;   /* the most live bytes */
    char **texts;   /* owned */
    int64_t text_count, text_room;
} result;

/* The result of the last profile. Only while schedule_lock() is held. */
const result *result_get(void);
/* Collects the records of all threads, discards the last result. */
tn_status result_collect(int64_t steps);
void result_clear(void);
const char *result_category(const result_span *span);

/* ---- group.c, table.c ------------------------------------------------------------------------ */

/* Sets *rows to the rows, sorted, which the caller frees with tn_free(), and *count to their
 * number. *rows becomes NULL if there are none, and on failure. */
tn_status group_rows(const result *r, tn_profile_group group, tn_profile_sort sort,
                     tn_profile_row **rows, int64_t *count);
int64_t group_copy(tn_profile_group group, tn_profile_sort sort, tn_profile_row *out, int64_t room);

/* ---- text.c ---------------------------------------------------------------------------------- */

/* A text that grows. A failure stays in `failed`. */
typedef struct output {
    char *at;
    size_t size, room;
    bool failed;
} output;
void text_add(output *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_put(output *t, const char *bytes);
/* Adds a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void text_json(output *t, const char *value);
/* Adds a text for HTML. */
void text_html(output *t, const char *value);
/* Adds a time of nanoseconds, such as "1.25 ms", and bytes, such as "3.1 MiB". */
void text_time(output *t, double nanoseconds);
void text_bytes(output *t, double bytes);
void text_rate(output *t, double flops, double nanoseconds);
void text_free(output *t);

int64_t table_text(tn_profile_group group, tn_profile_sort sort, int64_t rows, char *out,
                   size_t size);
void table_add(output *t, const result *r, tn_profile_group group, tn_profile_sort sort,
               int64_t rows);
void table_summary(output *t, const result *r);
/* Adds a share of the ceiling. A larger rate than the ceiling is ">100%": of a smaller dtype, or
 * because other work of the machine disturbed the measurement. */
void table_share(output *t, double share);

/* ---- write.c, trace.c, page.c ---------------------------------------------------------------- */

tn_status write_file(const char *path);
/* Writes to the files of a list that is separated by colons; logs failures as warnings. */
void write_list(const char *paths);
/* Ends the profile that TENON_PROFILE has started and writes its files, once. */
void profile_at_end(void);
void trace_add(output *t, const result *r);
void page_add(output *t, const result *r);

#endif
