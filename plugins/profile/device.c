/* SPDX-License-Identifier: MIT
 *
 * The devices of a profile: their live memory, and events that time work which the host does not
 * wait for. */
#include "record.h"

static struct device {
    _Atomic(const tn_device *) device;
    _Atomic int64_t live, peak;
    _Atomic int32_t timed; /* 1: by events, -1: not, 0: not decided yet */
} devices[RECORD_DEVICES];

/* Returns the index of a device, -1 if there are too many. */
int16_t device_index(const tn_device *device)
{
    for (int16_t i = 0; i < RECORD_DEVICES && device != NULL; i++) {
        const tn_device *seen = atomic_load_explicit(&devices[i].device, memory_order_acquire);
        if (seen == NULL)
            atomic_compare_exchange_strong(&devices[i].device, &seen, device);
        if (seen == NULL || seen == device)
            return i;
    }
    return -1;
}

const tn_device *device_at(int64_t index)
{
    return index >= 0 && index < RECORD_DEVICES ? atomic_load(&devices[index].device) : NULL;
}

bool device_is_timed(int16_t index)
{
    struct device *d = &devices[index];
    int32_t timed = atomic_load_explicit(&d->timed, memory_order_relaxed);

    if (timed == 0) {
        uint64_t mark = tn_error_mark();
        const tn_device *device = atomic_load(&d->device);
        const tn_backend_def *backend = (const tn_backend_def *)(const void *)tn_registry_find(
            TN_KIND_tn_backend_def, tn_device_type(device));
        timed = backend != NULL && (backend->flags & TN_BACKEND_ASYNC) != 0 &&
                        backend->event_elapsed != NULL
                    ? 1
                    : -1;
        tn_error_restore(mark);
        atomic_store_explicit(&d->timed, timed, memory_order_relaxed);
    }
    return timed > 0;
}

/* Records an event on the current stream; NULL if the device cannot do so now. */
tn_event *device_event(const tn_device *device)
{
    uint64_t mark = tn_error_mark();
    tn_event *event = tn_event_record(device, NULL, TN_EVENT_TIMING);

    if (event == NULL)
        tn_error_restore(mark);
    return event;
}

int64_t device_live(int64_t index)
{
    return atomic_load(&devices[index].live);
}

int64_t device_peak(int64_t index)
{
    return atomic_load(&devices[index].peak);
}

void device_drop_events(const record_span *span)
{
    tn_event_drop(span->begin);
    tn_event_drop(span->end);
}

int64_t device_add_memory(int16_t index, int64_t bytes)
{
    struct device *d = &devices[index];
    int64_t live = atomic_fetch_add_explicit(&d->live, bytes, memory_order_relaxed) + bytes;
    int64_t peak = atomic_load_explicit(&d->peak, memory_order_relaxed);

    while (live > peak && !atomic_compare_exchange_weak_explicit(
                              &d->peak, &peak, live, memory_order_relaxed, memory_order_relaxed))
        continue;
    return live;
}

void device_reset(void)
{
    for (int i = 0; i < RECORD_DEVICES; i++) {
        atomic_store(&devices[i].live, 0);
        atomic_store(&devices[i].peak, 0);
    }
}
