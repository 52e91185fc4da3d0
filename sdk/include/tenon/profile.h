/* SPDX-License-Identifier: MIT
 *
 * The profiler: what operators, modules and ranges of a program cost in time and memory. The
 * functions call the plugin tenon.profile, which provides the interface tenon.profile.api; without
 * the plugin they fail and name the interface. A program marks parts of its own with tn_range_begin
 * and tn_range_end (<tenon/runtime.h>). docs/guides/profiling.md is the guide.
 *
 * One profile exists at a time. Functions that read it return the records of the last window: the
 * time between tn_profile_start and tn_profile_stop, or with a schedule the recorded steps of a
 * cycle. The next warmup or window discards them, so a program with a schedule reads them in
 * on_trace_ready. Any thread may call any function. */
#ifndef TENON_PROFILE_H
#define TENON_PROFILE_H

#ifndef TENON_PLUGIN_H
#include <tenon/tenon.h>

#include <tenon/query.h>
#endif

TN_BEGIN_DECLS

enum {
    TN_PROFILE_NO_SHAPES = 1, /* does not record the shapes of inputs */
    TN_PROFILE_NO_MEMORY = 2, /* does not record allocations */
    TN_PROFILE_NO_DEVICE = 4  /* does not time the work of asynchronous devices by events */
};

/* What is recorded, and when. Without a schedule (`active` 0), everything between tn_profile_start
 * and tn_profile_stop. With one, tn_profile_step ends a step of the program: the first `skip_first`
 * steps are not recorded; then come cycles of `wait` steps that are not recorded, `warmup` steps
 * that are recorded and discarded, and `active` steps that are recorded, the window. `repeat` is
 * the number of cycles; 0: until tn_profile_stop. */
typedef struct tn_profile_options {
    uint64_t size;  /* sizeof(tn_profile_options) */
    uint64_t limit; /* bytes of memory for records of all threads; 0: 256 MiB */
    uint32_t flags; /* TN_PROFILE_NO_* */
    uint32_t reserved;
    int64_t skip_first, wait, warmup, active, repeat;
    /* Called after the last active step of each cycle, with the records of that cycle, and by
     * tn_profile_stop inside of a window. May be NULL. A failure is returned by the function that
     * ended the step. */
    tn_status (*on_trace_ready)(void *user);
    void *user;
} tn_profile_options;

/* What a schedule does in a step. */
typedef uint32_t tn_profile_action;
enum {
    TN_PROFILE_ACTION_NONE = 0,
    TN_PROFILE_ACTION_WARMUP = 1,
    TN_PROFILE_ACTION_RECORD = 2,
    TN_PROFILE_ACTION_RECORD_AND_SAVE = 3 /* the last active step of a cycle */
};

typedef uint32_t tn_profile_group;
enum {
    /* Operators, derivatives and ranges, by name; the calls of all modules are one row. */
    TN_PROFILE_BY_OPERATOR = 0,
    TN_PROFILE_BY_SHAPE = 1, /* like BY_OPERATOR, but by name and shapes of the inputs */
    TN_PROFILE_BY_MODULE = 2 /* modules, by path */
};

/* The columns by which rows are sorted: the largest first, names in the order of the alphabet.
 * AVERAGE is total / calls, MEMORY is self_allocated. */
typedef uint32_t tn_profile_sort;
enum {
    TN_PROFILE_SORT_SELF = 0,
    TN_PROFILE_SORT_TOTAL = 1,
    TN_PROFILE_SORT_CALLS = 2,
    TN_PROFILE_SORT_AVERAGE = 3,
    TN_PROFILE_SORT_MEMORY = 4,
    TN_PROFILE_SORT_PEAK = 5,
    TN_PROFILE_SORT_FLOPS = 6,
    TN_PROFILE_SORT_DEVICE = 7,
    TN_PROFILE_SORT_NAME = 8
};

/* The sums over all records with one key. Times are in nanoseconds. `total` and the bytes include
 * the operators, ranges and modules inside; `self` and the bytes with self_ do not, but of modules
 * they leave out only the modules inside. A call inside of a call with the same key is part of the
 * total of the outer one only. */
typedef struct tn_profile_row {
    const char *name;
    const char *shapes; /* such as "[8, 64], [10, 64]"; "" if rows are not by shape */
    int64_t calls;
    int64_t self;
    int64_t total;
    int64_t device;           /* time of the work on an asynchronous device; 0 without events */
    int64_t backward;         /* of modules: time of the derivatives of what the module computed */
    int64_t allocated, freed; /* bytes, with what is inside */
    int64_t self_allocated, self_freed; /* bytes */
    int64_t peak;                       /* the most bytes that one call added */
    double flops;                       /* 0 where no formula is known; of modules: forward only */
} tn_profile_row;

/* One record. Times are in nanoseconds; `start` counts from the start of the window. */
typedef struct tn_profile_event {
    const char *name;
    const char
        *category;      /* "operator", "module", "backward", "optimizer", "copy", "user", "step" */
    const char *module; /* path of the innermost module; of a derivative: of the forward call */
    const char *shapes;
    const char *device; /* "" if unknown */
    int64_t start, duration, self;
    int64_t device_time; /* -1: unknown */
    int64_t thread;      /* the number of the thread in the system */
    int64_t depth;       /* number of records around this one in its thread */
    uint64_t sequence;   /* of a recorded call of an operator, and of its derivative; 0: none */
    int64_t allocated, freed, self_allocated, self_freed, peak;
    int64_t copied; /* bytes, of copies */
    double flops;
    bool failed;     /* the call failed */
    bool unfinished; /* the profile, or a range around it, ended before it */
} tn_profile_event;

typedef struct tn_profile_totals {
    int64_t events;
    /* Records that were lost: the limit was reached, or more than 256 ranges were open. */
    int64_t dropped;
    int64_t unbalanced; /* ends of ranges without begin, and ranges that did not end */
    int64_t threads;
    int64_t duration; /* length of the window */
    int64_t self;     /* sum of the self times of all records */
    int64_t steps;    /* number of steps in the window that have ended */
    int64_t before;   /* bytes of tensors at the start */
    int64_t live;     /* bytes allocated minus bytes freed since then */
    int64_t peak;     /* the most bytes of tensors at one time */
    double flops;
    double ceiling; /* FLOP/s that this machine reaches in float32; 0: not measured yet */
} tn_profile_totals;

/* The table of the interface. Programs call the functions below. */
typedef struct tn_profile_api {
    tn_status (*start)(const tn_profile_options *options);
    tn_status (*stop)(void);
    tn_status (*step)(void);
    tn_status (*action)(const tn_profile_options *options, int64_t step, tn_profile_action *out);
    int64_t (*rows)(tn_profile_group group, tn_profile_sort sort, tn_profile_row *out,
                    int64_t room);
    int64_t (*table)(tn_profile_group group, tn_profile_sort sort, int64_t rows, char *out,
                     size_t size);
    tn_status (*totals)(tn_profile_totals *out);
    tn_status (*event)(int64_t index, tn_profile_event *out);
    tn_status (*write)(const char *path);
} tn_profile_api;

/* Returns the functions of the plugin; NULL and sets the error on failure. */
static inline const tn_profile_api *tn_profile_find(void)
{
    const struct tn_interface_need need = { "tenon.profile.api", 0, 0,
                                            (uint32_t)sizeof(tn_profile_api), 0 };
    return (const tn_profile_api *)tn_interface_find(NULL, &need, NULL);
}

/* Starts a profile and discards the records of the last one. `options` may be NULL: no schedule,
 * everything is recorded. Fails with TN_ERR_RUNTIME if a profile is running. */
static inline tn_status tn_profile_start(const tn_profile_options *options)
{
    const tn_profile_api *api = tn_profile_find();
    return api != NULL ? api->start(options) : tn_error_last_code();
}

/* Ends the profile; fails with TN_ERR_RUNTIME if none is running. Ranges that this thread has not
 * ended end here. */
static inline tn_status tn_profile_stop(void)
{
    const tn_profile_api *api = tn_profile_find();
    return api != NULL ? api->stop() : tn_error_last_code();
}

/* Ends a step of the program and begins the next; fails with TN_ERR_RUNTIME if no profile is
 * running. */
static inline tn_status tn_profile_step(void)
{
    const tn_profile_api *api = tn_profile_find();
    return api != NULL ? api->step() : tn_error_last_code();
}

/* Stores what the schedule of `options` does in a step, counted from 0. */
static inline tn_status tn_profile_action_at(const tn_profile_options *options, int64_t step,
                                             tn_profile_action *out)
{
    const tn_profile_api *api = tn_profile_find();
    return api != NULL ? api->action(options, step, out) : tn_error_last_code();
}

/* Writes at most `room` rows to `out` and returns the number of all rows; -1 on failure. The texts
 * live until the next tn_profile_start or window. */
static inline int64_t tn_profile_rows(tn_profile_group group, tn_profile_sort sort,
                                      tn_profile_row *out, int64_t room)
{
    const tn_profile_api *api = tn_profile_find();
    return api != NULL ? api->rows(group, sort, out, room) : -1;
}

/* Writes a table of at most `rows` rows (0: all) as text to out[size], always with a 0 at the end,
 * and returns the length of the whole text; -1 on failure. `out` may be NULL if `size` is 0: the
 * call only measures. */
static inline int64_t tn_profile_table(tn_profile_group group, tn_profile_sort sort, int64_t rows,
                                       char *out, size_t size)
{
    const tn_profile_api *api = tn_profile_find();
    return api != NULL ? api->table(group, sort, rows, out, size) : -1;
}

static inline tn_status tn_profile_totals_get(tn_profile_totals *out)
{
    const tn_profile_api *api = tn_profile_find();
    return api != NULL ? api->totals(out) : tn_error_last_code();
}

/* Copies record `index`, below tn_profile_totals.events, in the order of their start. */
static inline tn_status tn_profile_event_at(int64_t index, tn_profile_event *out)
{
    const tn_profile_api *api = tn_profile_find();
    return api != NULL ? api->event(index, out) : tn_error_last_code();
}

/* Writes the records to a file, by the end of its name: `.json` is a trace for Perfetto and
 * chrome://tracing, `.html` a page with flame graph and memory, `.txt` tables. */
static inline tn_status tn_profile_write(const char *path)
{
    const tn_profile_api *api = tn_profile_find();
    return api != NULL ? api->write(path) : tn_error_last_code();
}

TN_END_DECLS
#endif
