/* SPDX-License-Identifier: MIT
 *
 * The depth of trees and of nested calls. Each function that calls itself for the children of a
 * module asks here at its beginning. */
#ifndef TN_CORE_MODULE_DEPTH_H
#define TN_CORE_MODULE_DEPTH_H

#include "core/base/stack.h"
#include "core/module/internal.h"

/* Sets the error for tn__depth_check. */
tn_status tn__depth_fail(const char *what, int64_t depth);

/* Fails if `depth` is more than is allowed, or more than the stack of this thread carries. `what`
 * begins the message. Nothing is refused at depth 0. */
static inline tn_status tn__depth_check(const char *what, int64_t depth)
{
    if (tn__likely(depth == 0 || (depth <= TN__MODULE_DEPTH && !tn__stack_is_low())))
        return TN_OK;
    return tn__depth_fail(what, depth);
}

#endif
