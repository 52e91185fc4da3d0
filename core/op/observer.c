/* SPDX-License-Identifier: MIT
 *
 * Observers: callbacks around operators and, through the allocator's hook, around memory. If there
 * is no observer, a call only loads one variable for them. */
#include "core/op/private.h"
#include "core/tensor/trace.h"

_Atomic int32_t tn__observers_on;
_Thread_local tn__call_frame *tn__call_here TN__TLS_NEAR;
static int32_t registered; /* the observers counted in tn__observers_on; the rest are traces */

/* Returns the observer of an entry, NULL if its plugin is not active. An observer is not called
 * before its plugin is activated (rule 1 of docs/abi.md); `activate` activates it. If that fails, a
 * line of the log and of the report says so, but the user's call does not fail. */
static const tn_observer_def *listener(const tn__entry *entry, bool activate)
{
    _Atomic int32_t *active = &entry->plugin->active;
    if (tn__unlikely(atomic_load_explicit(active, memory_order_acquire) == 0) && activate) {
        uint64_t mark = tn_error_mark();
        if (tn__plugin_use(entry->plugin) != TN_OK)
            tn_log(TN_LOG_WARNING, "the observer %q is not called: %s", entry->name,
                   tn_error_last()->message);
        tn_error_restore(mark);
    }
    return atomic_load_explicit(active, memory_order_acquire) > 0
               ? (const tn_observer_def *)entry->contribution
               : NULL;
}

static int64_t listening(const tn_observer_def **out, bool activate)
{
    const tn__entry *const *entries;
    int64_t count = tn__registry_all(TN_KIND_tn_observer_def, &entries), used = 0;

    for (int64_t i = 0; i < count && used < TN__OBSERVERS; i++) {
        const tn_observer_def *observer = atomic_load_explicit(&entries[i]->on,
                                                               memory_order_acquire) > 0
                                              ? listener(entries[i], activate)
                                              : NULL;
        if (observer != NULL)
            out[used++] = observer;
    }
    return used;
}

int64_t tn__observers(const tn_observer_def **out)
{
    return listening(out, true);
}

/* The allocator calls this function while no plugin may be activated: skips observers that are
 * inactive. */
static void memory_changed(const tn_device *device, int64_t bytes)
{
    const tn_memory_event event = { TN_HEAD(tn_memory_event), .device = device, .bytes = bytes };
    const tn_observer_def *observers[TN__OBSERVERS];
    int64_t count = listening(observers, false);

    for (int64_t i = 0; i < count; i++)
        if (observers[i]->memory != NULL)
            observers[i]->memory(observers[i]->user, &event);
}

static const tn__memory_hooks memory_hooks = { .bytes = memory_changed, .copy = tn__range_copy };
static pthread_mutex_t switching = PTHREAD_MUTEX_INITIALIZER;

/* Decides whether a new observer is on, and counts those that are. */
void tn__observers_changed(void)
{
    const tn__entry *const *entries;
    int64_t count = 0;

    pthread_mutex_lock(&switching);
    for (int64_t i = tn__registry_all(TN_KIND_tn_observer_def, &entries); i-- > 0;) {
        const tn_observer_def *observer = (const tn_observer_def *)entries[i]->contribution;
        tn__entry *entry = (tn__entry *)(uintptr_t)entries[i];
        int32_t on = atomic_load_explicit(&entry->on, memory_order_acquire);

        if (on == 0) {
            bool starts_off = (observer->flags & TN_OBSERVER_PROFILER) != 0 &&
                              tn_env_get("TENON_PROFILE") == NULL;
            on = starts_off ? -1 : 1;
            atomic_store_explicit(&entry->on, on, memory_order_release);
        }
        count += on > 0;
    }
    atomic_store_explicit(&tn__memory_hook, count > 0 ? &memory_hooks : NULL, memory_order_release);
    atomic_fetch_add_explicit(&tn__observers_on, (int32_t)count - registered, memory_order_release);
    registered = (int32_t)count;
    pthread_mutex_unlock(&switching);
}

tn_status tn_observer_set_on(const char *name, bool on)
{
    const tn__entry *entry;

    if (!tn__given(name != NULL, "tn_observer_set_on: name"))
        return TN_ERR_VALUE;
    entry = tn__registry_use(TN_KIND_tn_observer_def, name);
    if (entry == NULL)
        return tn_error_last_code();
    atomic_store_explicit(&((tn__entry *)(uintptr_t)entry)->on, on ? 1 : -1, memory_order_release);
    tn__observers_changed();
    return TN_OK;
}

void tn__observers_shutdown(void)
{
    const tn_observer_def *observers[TN__OBSERVERS];

    for (int64_t i = listening(observers, false); i-- > 0;)
        if (observers[i]->finish != NULL)
            observers[i]->finish(observers[i]->user);
    atomic_store_explicit(&tn__memory_hook, NULL, memory_order_release);
    atomic_store_explicit(&tn__observers_on, 0, memory_order_release);
    registered = 0;
}

/* The event of the innermost operator that this thread is calling. */
static _Thread_local tn_op_event *innermost TN__TLS_NEAR;

/* Ignores kernels of other operators: casts and copies within a call have no event of their own. */
void tn__observer_kernel(const tn_op *op, const tn_call *call)
{
    if (innermost == NULL || innermost->op != &op->def)
        return;
    innermost->kernel = call->kernel;
    innermost->stream = call->stream;
}

void tn__observer_begin(tn__observed *seen, const tn_op *op, tn_tensor *const *in, int64_t n_in,
                        const void *options, const tn_device *device)
{
    seen->count = tn__observers(seen->observers);
    seen->outer = innermost;
    seen->event = (tn_op_event){ TN_HEAD(tn_op_event),    .op = &op->def, .options = options,
                                 .device = device,        .in = in,       .n_in = n_in,
                                 .module = tn__call_now() };
    for (int64_t i = 0; i < n_in && seen->event.device == NULL; i++)
        if (tn__tensor_ok(in[i]))
            seen->event.device = in[i]->device;
    for (int64_t i = 0; i < seen->count; i++)
        seen->tokens[i] = seen->observers[i]->op_begin != NULL
                              ? seen->observers[i]->op_begin(seen->observers[i]->user, &seen->event)
                              : 0;
    innermost = &seen->event;
}

tn_status tn__observer_end(tn__observed *seen, tn_tensor *const *out, int64_t n_out,
                           tn_status status)
{
    innermost = seen->outer;
    seen->event.status = status;
    seen->event.out = out;
    seen->event.n_out = status == TN_OK ? n_out : 0;
    if (seen->event.n_out > 0 && tn__tensor_ok(out[0]))
        seen->event.sequence = tn__op_up.grad_sequence(out[0]);
    for (int64_t i = seen->count - 1; i >= 0; i--)
        if (seen->observers[i]->op_end != NULL)
            seen->observers[i]->op_end(seen->observers[i]->user, seen->tokens[i], &seen->event);
    return status;
}

tn_status tn__observer_call(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                            const void *options, tn_tensor **out, int64_t n_out, tn_tensor *into)
{
    tn__observed seen;

    if (tn__tracer_here != NULL)
        return tn__tracer_here->op(tn__tracer_here, op, in, n_in, options, out, n_out, into);
    tn__observer_begin(&seen, op, in, n_in, options,
                       into != NULL && !tn__is_none(into) ? into->device : NULL);
    return tn__observer_end(&seen, out, n_out,
                            tn__call_plain(op, in, n_in, options, out, n_out, into));
}

tn_status tn__observer_run(const tn_op *op, const tn_call *call, const tn_device *device,
                           tn_tensor *const *in, tn_tensor *const *out)
{
    tn__observed seen;

    tn__observer_begin(&seen, op, in, call->n_in, call->options, device);
    tn__observer_kernel(op, call);
    return tn__observer_end(&seen, out, call->n_out, call->kernel->run(call));
}
