/* SPDX-License-Identifier: MIT
 *
 * The checked boundary (TENON_CHECK=1): the state of the calling thread that a plugin's function
 * must leave unchanged. When checking is off, a call costs one load. */
#ifndef TN_CORE_TENSOR_BOUNDARY_H
#define TN_CORE_TENSOR_BOUNDARY_H

#include "core/plugin/internal.h"

enum { TN__BOUNDARY_MODES = 3 };

typedef struct tn__boundary_thread {
    bool on;
    int rounding;
    uint32_t control; /* control register of the vector unit: rounding, flush to zero */
    int32_t threads;  /* number of threads of the process; 0: not counted */
    int64_t scopes, devices, streams, autocasts;
    int32_t depth[TN__BOUNDARY_MODES]; /* this and `now` are those of tn__modes_get() */
    bool now[TN__BOUNDARY_MODES];
} tn__boundary_thread;

/* The slow path of the functions below, while checking is on. */
void tn__boundary_thread_note(tn__boundary_thread *before);
tn_status tn__boundary_thread_judge(const tn__boundary_thread *before, const char *plugin,
                                    const char *what, tn_status status);

/* Records the state of the thread; to be called before a function of a plugin. */
static inline void tn__boundary_enter(tn__boundary_thread *before)
{
    before->on = tn__boundary_on();
    if (tn__unlikely(before->on))
        tn__boundary_thread_note(before);
}
/* Compares the state of the thread after the function has returned, and restores what it has
 * changed. If the function returned TN_OK but changed something, fails with TN_ERR_REFUSED and
 * names the plugin, the function and the change; otherwise returns `status`. */
static inline tn_status tn__boundary_leave(const tn__boundary_thread *before, const char *plugin,
                                           const char *what, tn_status status)
{
    return tn__likely(!before->on) ? status
                                   : tn__boundary_thread_judge(before, plugin, what, status);
}
/* Calls the function `activate` of a plugin, which must not start threads either. */
tn_status tn__boundary_activate(const tn_plugin *plugin);

#endif
