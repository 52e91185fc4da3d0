/* SPDX-License-Identifier: MIT
 *
 * Observers: callbacks around operators (and, through the allocator's hook, around memory).
 * Without one they cost a load. */
#include "core/op/private.h"

_Atomic int32_t tn__observers_on;

/* The observer of an entry, NULL when it does not listen: one of a plugin hears nothing before the
 * plugin is activated (rule 1), which `activate` does. Failing at that is a line of the log and of
 * the report, and nothing that the call of the user would hear of. */
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
        const tn_observer_def *observer = listener(entries[i], activate);
        if (observer != NULL)
            out[used++] = observer;
    }
    return used;
}

int64_t tn__observers(const tn_observer_def **out)
{
    return listening(out, true);
}

/* From inside the allocator, where no plugin can be activated. */
static void memory_changed(const tn_device *device, int64_t bytes)
{
    const tn_observer_def *observers[TN__OBSERVERS];
    int64_t count = listening(observers, false);

    for (int64_t i = 0; i < count; i++)
        if (observers[i]->memory != NULL)
            observers[i]->memory(observers[i]->user, device, bytes);
}

void tn__observers_changed(void)
{
    const tn__entry *const *entries;
    int64_t count = tn__registry_all(TN_KIND_tn_observer_def, &entries);

    atomic_store_explicit(&tn__memory_hook, count > 0 ? memory_changed : NULL,
                          memory_order_release);
    atomic_store_explicit(&tn__observers_on, (int32_t)count, memory_order_release);
}

void tn__observers_shutdown(void)
{
    atomic_store_explicit(&tn__memory_hook, NULL, memory_order_release);
    atomic_store_explicit(&tn__observers_on, 0, memory_order_release);
}

tn_status tn__observer_call(const tn_op *op, tn_tensor *const *in, int64_t n_in,
                            const void *options, tn_tensor **out, int64_t n_out, tn_tensor *into)
{
    const tn_observer_def *observers[TN__OBSERVERS];
    uint64_t tokens[TN__OBSERVERS];
    int64_t count = tn__observers(observers);
    const tn_device *device = into != NULL && !tn__is_none(into) ? into->device : NULL;
    tn_status status;

    for (int64_t i = 0; i < n_in && device == NULL; i++)
        if (tn__tensor_ok(in[i]))
            device = in[i]->device;
    for (int64_t i = 0; i < count; i++)
        tokens[i] = observers[i]->op_begin != NULL
                        ? observers[i]->op_begin(observers[i]->user, op->def.name, device, in, n_in)
                        : 0;
    status = tn__call_plain(op, in, n_in, options, out, n_out, into);
    for (int64_t i = count - 1; i >= 0; i--)
        if (observers[i]->op_end != NULL)
            observers[i]->op_end(observers[i]->user, tokens[i], status, out,
                                 status == TN_OK ? n_out : 0);
    return status;
}
