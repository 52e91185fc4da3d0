/* SPDX-License-Identifier: MIT
 *
 * The descriptor of an observer, which sees calls of operators and modules, memory and ranges.
 *
 * <tenon/contrib.h> says what holds for all descriptors. Tags in brackets: see base.h. */
#ifndef TENON_OBSERVER_H
#define TENON_OBSERVER_H

#include <tenon/kernel.h>

TN_BEGIN_DECLS

/* A call of an operator, as an observer sees it. op_begin and op_end receive the same struct. */
typedef struct tn_op_event {
    tn_head head;
    const struct tn_op_def *op;
    const void *options; /* option struct of the operator; NULL: all defaults */
    /* The device of the tensor that is written, or of the first input. NULL: the call has neither,
     * as an operator that creates a tensor. */
    const tn_device *device;
    tn_tensor *const *in;
    int64_t n_in;
    tn_module *module; /* the innermost module that is being called; NULL outside of module calls */
    /* The members that follow are set for op_end only. */
    tn_tensor *const *out;
    int64_t n_out;    /* 0 if the call failed */
    tn_status status; /* status of the call */
    uint32_t reserved;
    /* The kernel that ran; NULL: a view, a decomposition, or no work. */
    const tn_kernel_def *kernel;
    void *stream; /* the backend's handle of the stream that the kernel received */
    /* If the call was recorded for gradients, its number among the recorded calls of this thread:
     * the range of its derivative (TN_RANGE_NODE) has the same number. 0: not recorded. */
    uint64_t sequence;
} tn_op_event;

/* A call of a module, as an observer sees it. */
typedef struct tn_module_event {
    tn_head head;
    tn_module *module;
    /* Dotted path from the module of the outermost call; "" for that module itself. */
    const char *path;
    tn_status status; /* status of the call; set for module_end only */
    uint32_t reserved;
} tn_module_event;

/* Memory that an allocator handed out for a tensor or got back from one, whether it comes from the
 * device or from the cache; also the memory of prepared data (`prepare` of tn_kernel_def). */
typedef struct tn_memory_event {
    tn_head head;
    const tn_device *device;
    int64_t bytes; /* positive: taken, negative: returned */
} tn_memory_event;

/* What a range is. */
enum {
    TN_RANGE_USER = 0,      /* from tn_range_begin to tn_range_end */
    TN_RANGE_STEP = 1,      /* a step of an optimizer; `name` is the name of its rule */
    TN_RANGE_ZERO_GRAD = 2, /* an optimizer clears the gradients of its parameters */
    TN_RANGE_BACKWARD = 3,  /* a call of tn_backward or tn_grad, with all its derivatives */
    TN_RANGE_NODE = 4,      /* the derivative of one recorded call; `name` is its operator */
    TN_RANGE_COPY = 5       /* bytes that a device copies, outside of operators */
};

/* A part of the work of a thread, as an observer sees it. Ranges of a thread are nested in each
 * other and in calls of operators and modules, except those of TN_RANGE_USER: a program may end the
 * call around such a range first. */
typedef struct tn_range_event {
    tn_head head;
    uint32_t kind;    /* TN_RANGE_* */
    tn_status status; /* status of the work; set for range_end only, TN_OK for TN_RANGE_USER */
    const char *name;
    uint64_t sequence;       /* of TN_RANGE_NODE: tn_op_event.sequence of the recorded call */
    const tn_device *device; /* of TN_RANGE_COPY: the device that copies */
    int64_t bytes;           /* of TN_RANGE_COPY */
} tn_range_event;

enum {
    /* The observer starts switched off, except if the environment variable TENON_PROFILE is set.
     * tn_observer_set_on switches any observer on and off. */
    TN_OBSERVER_PROFILER = 1
};

/* An observer: functions that the core calls before and after calls of operators and modules, in
 * any thread. Each may be NULL. The `end` function receives the value that the `begin` function
 * returned as `token`. The first call of an operator or module activates the plugin, and memory
 * events are reported from then on. At most 16 observers can be active. */
typedef struct tn_observer_def {
    tn_head head;
    const char *name;
    void *user; /* for the plugin: the first argument of all functions */
    uint64_t (*op_begin)(void *user, const tn_op_event *event);
    void (*op_end)(void *user, uint64_t token, const tn_op_event *event);
    uint64_t (*module_begin)(void *user, const tn_module_event *event);
    void (*module_end)(void *user, uint64_t token, const tn_module_event *event);
    void (*memory)(void *user, const tn_memory_event *event);
    uint64_t flags; /* TN_OBSERVER_* */
    /* A range of TN_RANGE_USER may end without a begin that the observer saw, and the token of its
     * end is always 0. */
    uint64_t (*range_begin)(void *user, const tn_range_event *event);
    void (*range_end)(void *user, uint64_t token, const tn_range_event *event);
    /* tn_shutdown calls it first, while devices and plugins still work. */
    void (*finish)(void *user);
} tn_observer_def;

TN_END_DECLS

#endif
