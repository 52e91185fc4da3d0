/* SPDX-License-Identifier: MIT
 *
 * The checked boundary: modes, scopes and the state of the processor, which a function of a plugin
 * must leave unchanged. */
#include "core/tensor/boundary.h"
#include "core/tensor/autocast.h"
#include "core/tensor/mode.h"
#include "core/tensor/thread.h"

#include <dirent.h>
#include <fenv.h>

#include <tenon/grad.h>

/* The bits of MXCSR for rounding, "flush to zero" and "denormals are zero"; the other bits concern
 * exceptions. */
#define CONTROL_BITS 0xe040u

static uint32_t control_now(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr() & CONTROL_BITS;
#else
    return 0;
#endif
}

static void control_back(uint32_t before)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~CONTROL_BITS) | before);
#else
    (void)before;
#endif
}

static int32_t threads_now(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int32_t count = 0;

    if (tasks == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

void tn__boundary_thread_note(tn__boundary_thread *before)
{
    const tn__thread *thread = tn__thread_here;

    before->rounding = fegetround();
    before->control = control_now();
    before->threads = 0;
    before->scopes = thread != NULL ? thread->n_marks : 0;
    before->devices = thread != NULL ? thread->n_devices : 0;
    before->streams = thread != NULL ? thread->n_streams : 0;
    before->autocasts = tn__autocast_depth();
    tn__modes_get(before->depth, before->now);
}

/* Each of the following functions checks for one kind of change. If there is one, the function
 * undoes the change if possible and returns a message; otherwise it returns NULL. */

static const char *rounding(const tn__boundary_thread *before)
{
    if (fegetround() == before->rounding && control_now() == before->control)
        return NULL;
    fesetround(before->rounding);
    control_back(before->control);
    return "left the rounding mode or the flushing of small numbers changed (fesetround, MXCSR)";
}

static const char *modes(const tn__boundary_thread *before)
{
    static const char *const words[2][TN__BOUNDARY_MODES] = {
        { "left a gradient mode on (tn_grad_begin without tn_grad_end)",
          "left an inference mode on (tn_inference_begin without tn_inference_end)",
          "left an anomaly mode on (tn_anomaly_begin without tn_anomaly_end)" },
        { "ended a gradient mode that it did not begin",
          "ended an inference mode that it did not begin",
          "ended an anomaly mode that it did not begin" }
    };
    int32_t depth[TN__BOUNDARY_MODES];
    bool now[TN__BOUNDARY_MODES];
    const char *found = NULL;

    tn__modes_get(depth, now);
    /* inference mode also changes the gradient mode, so it is checked before that */
    for (int i = TN__BOUNDARY_MODES - 1; i >= 0; i--)
        if (found == NULL && (depth[i] != before->depth[i] || now[i] != before->now[i]))
            found = words[depth[i] < before->depth[i]][i];
    if (found != NULL)
        tn__modes_set(before->depth, before->now);
    return found;
}

static const char *scopes(const tn__boundary_thread *before)
{
    tn__thread *thread = tn__thread_here;

    if (thread == NULL || thread->n_marks == before->scopes)
        return NULL;
    if (thread->n_marks < before->scopes)
        return "ended a scope that it did not begin";
    tn_scope_end(thread->marks[before->scopes].number);
    return "left a scope open (tn_scope_begin without tn_scope_end)";
}

static const char *devices(const tn__boundary_thread *before)
{
    tn__thread *thread = tn__thread_here;

    if (thread == NULL ||
        (thread->n_devices == before->devices && thread->n_streams == before->streams))
        return NULL;
    if (thread->n_devices < before->devices || thread->n_streams < before->streams)
        return "ended a device or stream that it did not begin";
    while (thread->n_devices > before->devices)
        tn_device_end();
    while (thread->n_streams > before->streams)
        tn_stream_end();
    return "did not end a device or stream that it began (tn_device_begin, tn_stream_begin)";
}

static const char *autocasts(const tn__boundary_thread *before)
{
    if (tn__autocast_depth() == before->autocasts)
        return NULL;
    if (tn__autocast_depth() < before->autocasts)
        return "ended an autocast that it did not begin";
    while (tn__autocast_depth() > before->autocasts)
        tn_autocast_end();
    return "left autocast on (tn_autocast_begin without tn_autocast_end)";
}

/* Returns a message only if the process had one thread before: if it had others, they may have
 * started new threads. */
static const char *threads(const tn__boundary_thread *before)
{
    return before->threads == 1 && threads_now() > 1
               ? "started a thread; threads belong to the host: use tn_parallel_for, or set the "
                 "flag TN_PLUGIN_OWN_THREADS"
               : NULL;
}

tn_status tn__boundary_thread_judge(const tn__boundary_thread *before, const char *plugin,
                                    const char *what, tn_status status)
{
    static const char *(*const kinds[])(
        const tn__boundary_thread *) = { rounding, modes, scopes, autocasts, devices, threads };
    const char *first = NULL;

    for (int64_t i = 0; i < tn__countof(kinds); i++) {
        const char *words = kinds[i](before);

        first = first != NULL ? first : words;
    }
    if (first == NULL || status != TN_OK)
        return status;
    return tn_fail(TN_ERR_REFUSED, "checked boundary: plugin %q: %s %s",
                   plugin != NULL && plugin[0] != '\0' ? plugin : "?", what, first);
}

tn_status tn__boundary_activate(const tn_plugin *plugin)
{
    tn__boundary_thread thread;
    tn_status status;

    tn__boundary_enter(&thread);
    /* counting threads needs one or two system calls */
    if (thread.on && (plugin->flags & TN_PLUGIN_OWN_THREADS) == 0)
        thread.threads = threads_now();
    status = tn__error_status_of(plugin->activate(plugin), "activate");
    return tn__boundary_leave(&thread, plugin->id, "activate", status);
}
