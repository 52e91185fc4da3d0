/* SPDX-License-Identifier: MIT
 *
 * Ranges: parts of the work of a thread that are neither calls of operators nor of modules. If
 * there is no observer, a range only loads one variable. */
#include "core/op/private.h"

void tn__range_open(tn__range *range)
{
    range->count = tn__observers(range->observers);
    for (int64_t i = 0; i < range->count; i++) {
        const tn_observer_def *observer = range->observers[i];
        range->tokens[i] = observer->range_begin != NULL
                               ? observer->range_begin(observer->user, &range->event)
                               : 0;
    }
}

void tn__range_close(tn__range *range, tn_status status)
{
    range->event.status = status;
    for (int64_t i = range->count; i-- > 0;) {
        const tn_observer_def *observer = range->observers[i];
        if (observer->range_end != NULL)
            observer->range_end(observer->user, range->tokens[i], &range->event);
    }
}

tn_status tn_range_begin(const char *name)
{
    tn__range range;

    if (!tn__given(name != NULL, "tn_range_begin: name"))
        return TN_ERR_VALUE;
    tn__range_begin(&range, TN_RANGE_USER, name, 0);
    return TN_OK;
}

void tn_range_end(void)
{
    if (tn__likely(atomic_load_explicit(&tn__observers_on, memory_order_relaxed) == 0))
        return;
    tn__range range = { .event = { TN_HEAD(tn_range_event), .kind = TN_RANGE_USER } };
    range.count = tn__observers(range.observers);
    tn__range_close(&range, TN_OK);
}

tn_status tn__range_copy(const tn_device *device, const char *name, uint64_t bytes,
                         tn_status (*run)(void *user), void *user)
{
    tn__range range = { .event = { TN_HEAD(tn_range_event), .kind = TN_RANGE_COPY, .name = name,
                                   .device = device, .bytes = (int64_t)bytes } };

    tn__range_open(&range);
    return tn__range_end(&range, run(user));
}
