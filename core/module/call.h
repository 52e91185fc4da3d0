/* SPDX-License-Identifier: MIT
 *
 * Calls of modules that are in progress: their paths and their observers. */
#ifndef TN_CORE_MODULE_CALL_H
#define TN_CORE_MODULE_CALL_H

#include "core/module/internal.h"

/* Appends the path of a frame's module, such as "0.fc1", relative to the outermost module that is
 * being called. */
void tn__call_path_put(const tn__call_frame *frame, tn__text *text);
/* Appends the type of the outermost module, and the path and the type of the frame's module. */
void tn__call_path_where(const tn__call_frame *frame, tn__text *text);

/* What observers are told of a call. */
typedef struct tn__call_observed {
    const tn_observer_def *observers[TN__OBSERVERS];
    uint64_t tokens[TN__OBSERVERS];
    int64_t count;
    tn_module_event event;
    tn__text path;
} tn__call_observed;

/* Tell the observers that a call begins, and that it has ended. `frame` is that of the call. */
void tn__call_observe_begin(tn__call_observed *seen, const tn__call_frame *frame);
void tn__call_observe_end(tn__call_observed *seen, tn_status status);

#endif
