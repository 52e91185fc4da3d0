/* SPDX-License-Identifier: MIT
 *
 * Observers of calls of modules. */
#include "core/module/call.h"
#include "core/op/internal.h"

void tn__call_observe_begin(tn__call_observed *seen, const tn__call_frame *frame)
{
    seen->count = tn__observers(seen->observers);
    seen->path = (tn__text){ 0 };
    tn__call_path_put(frame, &seen->path);
    seen->event = (tn_module_event){ TN_HEAD(tn_module_event), .module = frame->module,
                                     .path = seen->path.at != NULL ? seen->path.at : "" };
    for (int64_t i = 0; i < seen->count; i++) {
        const tn_observer_def *observer = seen->observers[i];
        seen->tokens[i] = observer->module_begin != NULL
                              ? observer->module_begin(observer->user, &seen->event)
                              : 0;
    }
}

void tn__call_observe_end(tn__call_observed *seen, tn_status status)
{
    seen->event.status = status;
    for (int64_t i = seen->count; i-- > 0;) {
        const tn_observer_def *observer = seen->observers[i];
        if (observer->module_end != NULL)
            observer->module_end(observer->user, seen->tokens[i], &seen->event);
    }
    tn__text_free(&seen->path);
}
